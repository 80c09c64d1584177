"""Bounds, totals and budgets: entries in order, weights with a given sum, magnitudes within a radius.

Entries become multiples of one power of two u with total = K u, where the mantissa can hold K. Sums of such numbers are exact
in any order, so the last digits can be distributed as whole numbers. Either the largest remainders get one more each
(Hamilton's method), or all entries get an equal share.
"""

from __future__ import annotations

import math

import numpy as np

from extremal.rounding.base import Pairs, broken, out_of, rounded_inward, settled
from extremal.sets.norms.bounded_l1 import BoundedL1Ball
from extremal.sets.simplices import bounds
from extremal.sets.simplices.boxes import BudgetSet
from extremal.sets.simplices.chains import Monotone
from extremal.sets.simplices.plain import Box, Simplex, UnitSimplex


@settled.register
def _(C: Box, x: np.ndarray) -> np.ndarray:
    return np.clip(x, *rounded_inward(C.lower, C.upper, x.dtype))


@broken.register
def _(C: Box, x: np.ndarray) -> Pairs:
    return out_of(x, C.lower, C.upper)


@settled.register
def _(C: Monotone, x: np.ndarray) -> np.ndarray:
    up = np.maximum.accumulate(C._turned(np.clip(x, *rounded_inward(C.lower, C.upper, x.dtype))))
    return C._turned(up).reshape(x.shape)


@broken.register
def _(C: Monotone, x: np.ndarray) -> Pairs:
    yield from out_of(x, C.lower, C.upper)
    falls = -np.diff(C._turned(x).astype(np.float64))
    yield max(0.0, float(falls.max(initial=0.0))), max(abs(C.lower), abs(C.upper))


def exact_unit(total: float, dtype: np.dtype) -> float:
    """The smallest power of two u with ``total`` <= 2^mantissa u, so that all multiples of u up to there are exact."""
    m, e = math.frexp(total)
    return math.ldexp(1.0, (e - 1 if m == 0.5 else e) - np.finfo(dtype).nmant - 1)


def whole_shares(
    r: np.ndarray, low: float | np.ndarray, high: float | np.ndarray, total: int, less: bool = False
) -> np.ndarray | None:
    """Whole numbers next to r, from low to high, that sum to ``total``; None if there are none.

    The remainder of rounding down goes to the largest remainders. If it is more than one per entry, all entries get the same
    share, which gives the nearest point. Entries at a bound stay there while others can take the share, and always if the sum
    may be ``less``.
    """
    low, high = np.broadcast_to(low, r.shape), np.broadcast_to(high, r.shape)
    n = np.clip(np.floor(r), low, high).astype(np.int64)
    left = total - int(n.sum())
    for places in (np.flatnonzero((r > low) & (r < high)), np.arange(len(r))):
        while left:
            sign, room = (1, high[places] - n[places]) if left > 0 else (-1, n[places] - low[places])
            places, room = places[room > 0], room[room > 0]
            if not len(places):
                break
            if abs(left) < len(places):
                first = np.argsort(-sign * (r[places] - n[places]), kind="stable")[: abs(left)]
                places, room = places[first], room[first]
            step = np.minimum(room, abs(left) // len(places)).astype(np.int64)
            n[places] += sign * step
            left -= sign * int(step.sum())
        if less and left > 0:
            return n
    return n if left == 0 else None


def exact_sum(x: np.ndarray) -> float:
    """The sum, rounded once."""
    return math.fsum(x.reshape(-1).tolist())


def limits(
    lower: float | np.ndarray, upper: float | np.ndarray, total: float, dtype: np.dtype
) -> tuple[np.ndarray, np.ndarray, float]:
    """The bounds in a float type, rounded inward, and the nearest total, which also bounds non-negative entries."""
    lo, up = rounded_inward(lower, upper, dtype)
    own = dtype.type(total)
    if (lo >= 0).all():
        up = np.where(np.asarray(upper) >= total, own, up)
    return lo, up, float(own)


def sum_to(x: np.ndarray, lower: float | np.ndarray, upper: float | np.ndarray, total: float) -> np.ndarray:
    """x between bounds, with a sum of ``total``."""
    lo, up, total = limits(lower, upper, total, x.dtype)
    x = np.clip(x, lo, up)
    wide = x.reshape(-1).astype(np.float64)
    one_sign = (lo >= 0).all() or (up <= 0).all()
    most = abs(total) if one_sign else max(abs(total), exact_sum(np.maximum(wide, 0.0)), exact_sum(np.maximum(-wide, 0.0)))
    for spare in (1.0, 1 + 1e-6):  # sums of either sign may grow a little, but not for a point that is already settled
        u = exact_unit(most if one_sign else most * spare, x.dtype)
        limit = 2.0 ** (np.finfo(x.dtype).nmant + 1)
        low, high = (np.clip(edge(bounds.flat(b) / u), -limit, limit) for edge, b in ((np.ceil, lo), (np.floor, up)))
        n = whole_shares(wide / u, low, high, round(total / u))
        if n is not None and max(int(n[n > 0].sum()), -int(n[n < 0].sum())) <= limit:
            return _with_rest((n * u).astype(x.dtype), total, lo, up).reshape(x.shape)
    return x


def _with_rest(x: np.ndarray, total: float, lo: np.ndarray, up: np.ndarray) -> np.ndarray:
    """x with the remainder of the total beyond a multiple of the unit, on the smallest entry that can take it."""
    rest = total - exact_sum(x)
    if rest:
        y = (x.astype(np.float64) + rest).astype(x.dtype)
        fits = (y.astype(np.float64) - x == rest) & (y >= bounds.flat(lo)) & (y <= bounds.flat(up))
        if fits.any():
            j = int(np.where(fits, np.abs(x), np.inf).argmin())
            x[j] = y[j]
    return x


def within_radius(x: np.ndarray, radius: float, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """x with magnitudes from ``low`` to ``high`` that sum to at most the radius; x itself if they do in any order."""
    a = np.abs(x.reshape(-1).astype(np.float64))
    spent = exact_sum(a)
    if spent * (1 + 2 * x.size * float(np.finfo(x.dtype).eps)) <= radius:
        return x
    top = float(rounded_inward(0.0, radius, x.dtype)[1])
    u = exact_unit(top, x.dtype)
    most = round(top / u)
    low, high = np.ceil(bounds.flat(low) / u), np.minimum(np.floor(bounds.flat(high) / u), most)
    n = whole_shares(a / u, low, high, min(most, round(spent / u)), less=True)
    return x if n is None else (np.where(x.reshape(-1) < 0, -n, n) * u).astype(x.dtype).reshape(x.shape)


@settled.register
def _(C: Simplex, x: np.ndarray) -> np.ndarray:
    return sum_to(x, 0.0, C.total, C.total)


@broken.register
def _(C: Simplex, x: np.ndarray) -> Pairs:
    yield max(0.0, -float(x.min())), C.total
    yield abs(exact_sum(x) - float(x.dtype.type(C.total))), C.total


@settled.register
def _(C: BudgetSet, x: np.ndarray) -> np.ndarray:
    return sum_to(x, *C._limits)


@broken.register
def _(C: BudgetSet, x: np.ndarray) -> Pairs:
    lower, upper, total = limits(*C._limits, x.dtype)
    yield from out_of(x, lower, upper)
    yield abs(exact_sum(x) - total), max(abs(total), float(np.abs(x).sum()))


@settled.register
def _(C: UnitSimplex, x: np.ndarray) -> np.ndarray:
    return within_radius(np.maximum(x, 0), C.total, np.zeros(()), np.asarray(C.total))


@broken.register
def _(C: UnitSimplex, x: np.ndarray) -> Pairs:
    yield max(0.0, -float(x.min())), C.total
    yield max(0.0, exact_sum(x) - C.total), C.total


@settled.register
def _(C: BoundedL1Ball, x: np.ndarray) -> np.ndarray:
    lo, up = rounded_inward(C.lower, C.upper, x.dtype)
    x = np.clip(x, lo, up)
    return within_radius(x, C.radius, np.abs(np.clip(0, lo, up)), np.where(x < 0, -lo, np.maximum(up, 0)))


@broken.register
def _(C: BoundedL1Ball, x: np.ndarray) -> Pairs:
    yield from out_of(x, C.lower, C.upper, C.radius)
    yield max(0.0, exact_sum(np.abs(x)) - C.radius), C.radius
