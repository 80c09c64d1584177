"""Losses, oracles and estimators as compiled loops take them: numbers, since numba keeps no kernel that takes a function."""

LOGISTIC, NONLINEAR, SQUARED, HUBER = range(4)  # losses, see `extremal.kernels.terms`
PEAK, WEIGHTED, LEAST, UNIT, CORNER, FILL = range(6)  # sets, see `extremal.kernels.oracles`
RECURSE, AVERAGE, REFRESH, FOLLOW, TABLE, BOTH, SNAPSHOT = range(7)  # estimators, see `extremal.kernels.burst`
ORACLE_CODES = dict(zip(("peak", "weighted", "least", "unit", "corner", "fill"), range(6), strict=True))  # as sets call them
SHIFT = 6  # the index of oracles has blocks of 2^6 coordinates
