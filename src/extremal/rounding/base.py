"""The common base of the rounding rules: the two tables by type of set, and bounds in a float type."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import singledispatch

import numpy as np
from numpy.typing import ArrayLike

from extremal.sets.base import ConvexSet

BROKEN = 1e-3  # a constraint broken by more than this share of its size is not a matter of rounding
Pairs = Iterator[tuple[float, float]]  # the amount by which a constraint is broken, and the size of its numbers


@singledispatch
def settled(C: ConvexSet, x: np.ndarray) -> np.ndarray:
    """Apply the rule for a type of set; without a rule, return x. ``extremal.rounding.rows`` has the rule for polytopes."""
    return x


@singledispatch
def broken(C: ConvexSet, x: np.ndarray) -> Pairs:
    """The amounts by which constraints are broken, each with the size of its numbers; by membership if nothing else is known."""
    tolerance = next((tol for tol in (1e-13, 1e-11, 1e-9, 1e-7, 1e-5) if C.contains(x, tol)), 1.0)
    yield 0.0 if tolerance == 1e-13 else tolerance * C.diameter, C.diameter


def rounded_inward(lower: ArrayLike, upper: ArrayLike, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """The bounds in a float type, rounded inward, or to the nearest number if no number lies between them."""
    lower, upper = np.asarray(lower, np.float64), np.asarray(upper, np.float64)
    lo, up = lower.astype(dtype), upper.astype(dtype)
    lo = np.where(lo < lower, np.nextafter(lo, dtype.type(np.inf)), lo)
    up = np.where(up > upper, np.nextafter(up, dtype.type(-np.inf)), up)
    crossed = lo > up
    return np.where(crossed, lower.astype(dtype), lo), np.where(crossed, lower.astype(dtype), up)


def out_of(x: np.ndarray, lower: ArrayLike, upper: ArrayLike, most: float = math.inf) -> Pairs:
    """The distances of entries beyond their bounds."""
    lo, up = (np.asarray(b, np.float64) for b in rounded_inward(lower, upper, x.dtype))
    wide = x.astype(np.float64)
    ends = np.abs(np.concatenate([lo.reshape(-1), up.reshape(-1), wide.reshape(-1)]))
    size = min(most, float(np.max(ends, where=np.isfinite(ends), initial=0.0)))
    yield max(0.0, float((lo - wide).max()), float((wide - up).max())), size
