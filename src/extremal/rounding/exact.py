"""Points whose constraints hold exactly, in floating point and without a tolerance: the last step of a fit.

Each family of sets has its rules in a separate module. This module has the rules of composed sets, which go part by part.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from extremal.checks import InputError
from extremal.points.factored import FactoredMatrix
from extremal.points.matrix import Iterate
from extremal.rounding import norms, rows, totals  # noqa: F401  (their rules)
from extremal.rounding.base import BROKEN, Pairs, broken, settled
from extremal.sets.base import ConvexSet
from extremal.sets.made.blocks import Product, Rows
from extremal.sets.made.cuts import AffineCut
from extremal.sets.made.images import Columns
from extremal.sets.made.sums import ScaledSet, ShiftedSet


def settle(C: ConvexSet, x: Iterate) -> Any:
    """A point next to x, of the same float type, at which the constraints of C hold exactly as computed.

    Weights of a simplex sum to their total, and magnitudes to at most the radius, in any order of summation. Bounds hold for
    every entry, and norms are at most the radius as numpy computes them. Totals and bounds are rounded to x's float type,
    bounds inward. Zeros stay zeros, and a settled point is returned unchanged.

    Equations of a polytope hold if their coefficients are small whole numbers, possibly divided by a power of two, and numbers
    of x's type solve them (1/3 is no such number). They hold in any order of summation if the right side has no more digits
    than the terms together. Other equations hold as well as rounding allows. Sets without a rule (see `violation`) leave x
    unchanged.

    The cost is a few passes over x, plus a linear program for a polytope and some singular value decompositions for norms of
    matrices.

    Parameters
    ----------
    C : ConvexSet
        The set.
    x : array or FactoredMatrix
        A point of the set up to 1e-3 of its size; points farther away are refused.

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
    """The largest amount by which x breaks a constraint of C: 0.0 if x breaks none, and after `settle`.

    The amount is computed in float64 from the numbers in x, with sums by `math.fsum`. For sets known only by their oracle, it
    is the diameter times the smallest of some relative tolerances at which ``C.contains(x)``; below 1e-13 it counts as 0.

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


@settled.register
def _(C: Product, x: np.ndarray) -> np.ndarray:
    return C.join([settled(part, block) for part, block in zip(C.sets, C.split(x), strict=True)])


@broken.register
def _(C: Product, x: np.ndarray) -> Pairs:
    for part, block in zip(C.sets, C.split(x), strict=True):
        yield from broken(part, block)


@settled.register
def _(C: Rows, x: np.ndarray) -> np.ndarray:
    return np.stack([settled(C.C, row) for row in x])


@broken.register
def _(C: Rows, x: np.ndarray) -> Pairs:
    for row in x:
        yield from broken(C.C, row)


@settled.register
def _(C: Columns, x: np.ndarray) -> np.ndarray:
    return np.stack([settled(C.C, np.ascontiguousarray(column)) for column in x.T], axis=1)


@broken.register
def _(C: Columns, x: np.ndarray) -> Pairs:
    for column in x.T:
        yield from broken(C.C, np.ascontiguousarray(column))


@settled.register
def _(C: ScaledSet, x: np.ndarray) -> np.ndarray:
    c = x.dtype.type(C.factor)
    return settled(C.C, x / c) * c if abs(math.frexp(C.factor)[0]) == 0.5 else x  # other factors round again


@broken.register
def _(C: ScaledSet, x: np.ndarray) -> Pairs:
    for amount, size in broken(C.C, x / x.dtype.type(C.factor)):
        yield amount * abs(C.factor), size * abs(C.factor)


@broken.register
def _(C: ShiftedSet, x: np.ndarray) -> Pairs:
    return broken(C.C, x.astype(np.float64) - C.offset)


@broken.register
def _(C: AffineCut, x: np.ndarray) -> Pairs:
    yield from broken(C.C, x)
    yield C.violation(x), C.diameter
