"""Points whose constraints hold exactly, in floating point and without a tolerance: the last step of a fit."""

from __future__ import annotations

from typing import Any

import numpy as np

from extremal.checks import InputError
from extremal.points.factored import FactoredMatrix
from extremal.points.matrix import Iterate
from extremal.rounding import composed, norms, rows, totals  # noqa: F401  (their rules)
from extremal.rounding.base import BROKEN, broken, settled
from extremal.sets.base import ConvexSet


def settle(C: ConvexSet, x: Iterate) -> Any:
    """A point next to x, of the same float type, at which the constraints of C hold exactly as computed.

    Weights of a simplex sum to their total, and magnitudes to the radius at most, in any order of summation; bounds hold for
    every entry; norms are at most the radius as numpy computes them. Totals and bounds are those that x's float type can
    hold, bounds rounded inward. Zeros stay zeros, and a settled point is left as it is. Equations of a polytope hold if their
    coefficients are small whole numbers, or such over a power of two, and there are numbers of x's type that solve them (thirds
    are none); in any order of summation if the right side has no more digits than the terms together. Other equations are met as
    well as rounding allows. Sets without a rule (see `violation`) leave x as it is. A few passes over x; for a polytope one
    linear program, and some singular value decompositions for norms of matrices.

    Parameters
    ----------
    C : ConvexSet
        The set.
    x : array or FactoredMatrix
        A point of the set up to 1e-3 of its size; what is farther away is refused.

    References
    ----------
    Balinski, Young (1982), Fair Representation (Hamilton's method of largest remainders).

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> x = np.full(10, 0.1)
    >>> np.cumsum(x)[-1] == 1, np.cumsum(settle(ex.Simplex(), x))[-1] == 1
    (np.False_, np.True_)
    >>> settle(ex.Simplex(), np.array([0.5, 0.6]))
    Traceback (most recent call last):
        ...
    extremal.checks.InputError: `settle(C, x)` must be given a point of Simplex(shape=(2,)) up to rounding, got one that breaks \
a constraint by 0.1
    """
    C, x = _fitting(C, x)
    for amount, size in broken(C, x):
        if not amount <= BROKEN * size:
            raise InputError(
                f"`settle(C, x)` must be given a point of {C} up to rounding, got one that breaks a constraint by {amount:.2g}"
            )
    return settled(C, x)


def violation(C: ConvexSet, x: Iterate) -> float:
    """The largest amount by which x breaks a constraint of C: 0.0 if it breaks none, and after `settle`.

    Computed in float64 from the numbers in x, sums by `math.fsum`. For sets that are known by their oracle alone, the smallest
    of some relative tolerances at which ``C.contains(x)``, times the diameter; below 1e-13 that counts as none.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> violation(ex.Simplex(), np.array([0.5, 0.5])), violation(ex.Box(0.0, 1.0), np.array([0.5, 1.25]))
    (0.0, 0.25)
    """
    return max(0.0, *(amount for amount, _ in broken(*_fitting(C, x))))


def _fitting(C: ConvexSet, x: Iterate) -> tuple[ConvexSet, Any]:
    if not isinstance(x, FactoredMatrix):
        x = np.asarray(x)
        x = x if x.dtype in (np.float32, np.float64) else x.astype(np.float64)
        if not np.isfinite(x).all():
            raise InputError("`settle(C, x)` and `violation(C, x)` must be given finite numbers")
    return C.on(x.shape), x
