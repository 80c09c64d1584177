"""Losses, oracles and estimators as compiled loops take them: numbers, since numba keeps no kernel that takes a function."""

LOGISTIC, NONLINEAR, SQUARED, HUBER = range(4)  # losses, see `extremal.kernels.losses`
PEAK, WEIGHTED, LEAST, UNIT, CORNER, FILL = range(6)  # sets, see `extremal.kernels.oracles`
RECURSE, AVERAGE, REFRESH, FOLLOW, TABLE, BOTH, SNAPSHOT = range(7)  # estimators, see `extremal.kernels.burst`
ORACLE_CODES = {
    "peak": PEAK,
    "weighted": WEIGHTED,
    "least": LEAST,
    "unit": UNIT,
    "corner": CORNER,
    "fill": FILL,
}  # as sets call them
SHIFT = 6  # the index of oracles has blocks of 2^6 coordinates
