"""Tools for sets between bounds: shapes, pinned entries, longest steps, filling up to a total, nearest points.

Bounds are float64: one number for every entry, or an array in the shape of the points.
"""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np

from extremal.checks import InputError
from extremal.points.vertex import DenseVertex, Vertex
from extremal.quadratic.search import longest_step
from extremal.sets.base import ConvexSet
from extremal.sets.shared import float_of
from extremal.support.kinds import Numbers

ROUNDING = 1e-12  # a difference below this share of a set's size counts as rounding


def common_shape(call: str, shape: tuple[int, ...] | None, **bounds: np.ndarray) -> tuple[int, ...] | None:
    """The common shape of bounds and points; None if all bounds are numbers and the shape is open."""
    shapes = [bound.shape for bound in bounds.values()]
    try:
        fits = np.broadcast_shapes(*shapes, shape or ())
    except ValueError:
        fits = None
    if fits is None or 0 in fits or (shape is not None and fits != shape):
        given = ", ".join(f"{name}=..." for name in bounds)
        raise InputError(f"`{call}({given}, shape=...)` must fit one shape, got {', '.join(map(str, shapes))} and {shape}")
    return fits or None


def as_large(bound: np.ndarray, shape: tuple[int, ...] | None) -> np.ndarray:
    """An array of bounds, broadcast to the shape of the points; a number stays a number."""
    if bound.ndim == 0 or shape is None or bound.shape == shape:
        return bound
    full = np.broadcast_to(bound, shape).copy()
    full.flags.writeable = False
    return full


def summed(bound: Numbers, size: int) -> float:
    """The sum of a bound over all entries."""
    return float(bound) * size if np.ndim(bound) == 0 else float(np.sum(bound))


def flat(bound: np.ndarray) -> np.ndarray:
    """An array of bounds as a vector; a number stays a number."""
    return np.asarray(bound) if np.ndim(bound) == 0 else bound.reshape(-1)


# faces and steps


def support(x: np.ndarray, size: float) -> np.ndarray:
    """Where x > 0, up to rounding at its size."""
    return x > rounding(x) * size


def pinned(x: np.ndarray, lower: np.ndarray, upper: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Masks of the entries of x at their lower bound, and of the other entries at their upper bound, up to rounding."""
    slack = rounding(x) * size
    low = x <= lower + slack
    return low, ~low & (x >= upper - slack)


def rounding(x: np.ndarray) -> float:
    """1e-12, or 8 eps for float32: a step of maximal length ends at a bound up to this share of the size."""
    return max(ROUNDING, 8 * float(np.finfo(float_of(x)).eps))


class ZeroFaced(ConvexSet):
    """A set {x >= 0 : equations}: the zeros of x determine the smallest face that contains x."""

    def max_step(self, x: np.ndarray, s: Vertex, a: Vertex) -> float:
        """The largest t <= 1 with x + t (s - a) >= 0."""
        return longest_step(x, s.to_array() - a.to_array())


class BoxFaced(ConvexSet):
    """A box: the entries of x at a bound determine the smallest face that contains x."""

    @abstractmethod
    def limits(self) -> tuple[np.ndarray, np.ndarray]:
        """The lowest and the highest corner, or one number for all entries."""

    def away(self, g: np.ndarray, x: np.ndarray) -> DenseVertex:
        """upper_j where g_j > 0 and lower_j elsewhere, but x_j where x_j is at a bound, up to 1e-12 of its size."""
        lower, upper = self.limits()
        low, high = pinned(x, lower, upper, np.maximum(np.abs(lower), np.abs(upper)))
        return DenseVertex(np.where(high | (~low & (g > 0)), upper, lower).astype(float_of(g), copy=False))

    def max_step(self, x: np.ndarray, s: Vertex, a: Vertex) -> float:
        """The largest t <= 1 with lower <= x + t (s - a) <= upper."""
        return longest_step(x, s.to_array() - a.to_array(), *self.limits())


def not_in(C: ConvexSet) -> InputError:
    """The error to raise if no vertex has its nonzero entries where x has them."""
    return InputError(f"`{type(C).__name__}.away(g, x)` must be asked at a point x of the set")


# filling up to a total


def split(amount: float, room: float) -> tuple[int, float]:
    """How often ``room`` fits into ``amount`` >= room, and the remainder, 0 if it is rounding."""
    if room <= 0:
        return 0, 0.0
    full = math.floor(amount / room)
    rest, noise = amount - full * room, ROUNDING * amount
    if room - rest <= noise:
        return full + 1, 0.0
    return full, rest if rest > noise else 0.0


def filled(g: np.ndarray, room: np.ndarray, amount: float) -> tuple[np.ndarray, np.ndarray]:
    """Spend ``amount`` where g is smallest: argmin of <g, y> over 0 <= y <= room, sum y = amount.

    Return the indices (increasing) and values of the nonzero entries. All of them but one are full; ties go to the smallest
    index. The cost is O(len(g)): one selection if all entries have the same room, otherwise a few selections on ever fewer
    entries.
    """
    if amount <= 0 or len(g) == 0 or not room.any():
        return np.empty(0, np.intp), np.empty(0)
    if room.ndim == 0:
        return _fill_equal(g, min(float(room), amount), amount)
    indices = np.flatnonzero(g <= _price(g, room, amount))
    return _fill_in_turn(indices, g[indices], np.minimum(room[indices], amount), amount)


def _fill_equal(g: np.ndarray, room: float, amount: float) -> tuple[np.ndarray, np.ndarray]:
    full, rest = split(amount, room)
    count = min(full + (rest > 0), len(g))
    price = np.partition(g, count - 1)[count - 1]
    indices = np.flatnonzero(g <= price)
    ties = np.flatnonzero(g[indices] == price)
    last = ties[len(ties) - 1 - (len(indices) - count)]  # among the ties that get something
    values = np.full(len(indices), room)
    if count > full:
        values[last] = rest
    kept = np.ones(len(indices), bool)
    kept[ties[ties > last]] = False
    return indices[kept], values[kept]


def _price(g: np.ndarray, room: np.ndarray, amount: float) -> np.floating:
    """The value of g at which the amount is used up; the median of some entries decides which half to search next.

    If a median leaves more than three quarters, the next one is over all entries, so the work is O(len(g)) for any g.
    """
    bad = False
    while True:
        some = g if bad else g[:: 1 + len(g) // 1000]
        price = np.partition(some, len(some) // 2)[len(some) // 2]
        cheaper = g < price
        cost = float(room @ cheaper)
        if cost >= amount:
            kept = np.flatnonzero(cheaper)
        else:
            cost += float(room @ (g == price))
            kept = np.flatnonzero(g > price)
            if cost >= amount or len(kept) == 0:
                return price
            amount -= cost
        bad = len(kept) > 0.75 * len(g)
        g, room = g[kept], room[kept]


def _fill_in_turn(indices: np.ndarray, g: np.ndarray, room: np.ndarray, amount: float) -> tuple[np.ndarray, np.ndarray]:
    """Fill all but the most expensive entries, and then those one by one."""
    tiny = ROUNDING * amount
    values, dear = room.copy(), np.flatnonzero(g == g.max())
    values[dear] = 0.0
    left = amount - values.sum() - (np.cumsum(room[dear]) - room[dear])
    values[dear] = np.where(left > tiny, room[dear], 0.0)
    if (left > tiny).any():
        last = dear[np.flatnonzero(left > tiny)[-1]]
        values[last] = 0.0
        rest = amount - float(values.sum())  # summed in index order: equal vertices have equal bytes
        values[last] = room[last] if rest > room[last] - tiny else rest
    kept = np.flatnonzero(values)
    return indices[kept], values[kept]


# distances between points


def equal_diameter(room: float, amount: float, size: int) -> float:
    """The diameter of {0 <= y <= room, sum y = amount}, with ``size`` entries.

    A vertex has m entries ``room``, one ``rest`` and z zeros, in any order. Two vertices are farthest apart if <v, w> is
    smallest. By the rearrangement inequality, w then rises where v falls, and min(m, z) entries at either end differ by
    ``room``. Inside these, one entry on either side differs by ``rest`` (m < z) or room - rest (m > z), or the two rests meet
    (m = z).
    """
    room = min(room, max(amount, 0.0))
    m, rest = split(amount, room)
    z = size - m - 1
    inner = 0.0 if m == z else rest if m < z else room - rest
    return math.sqrt(2 * max(0.0, min(m, z) * room * room + inner * inner))


def diameter_bound(room: np.ndarray, amount: float) -> float:
    """A bound on the diameter of {0 <= y <= room, sum y = amount}.

    Let d = v - w, of sum 0. The sum of its positive entries is at most sum v = amount, and at most sum(room - w); let a be the
    smaller one. So sum |d_j| <= 2 a, |d_j| <= c_j = min(room_j, a), and |d|^2 <= sum c_j |d_j|. The maximum of the last sum is
    a knapsack problem.
    """
    a = max(0.0, min(amount, float(room.sum()) - amount))
    c = np.minimum(room, a)
    indices, d = filled(-c, c, min(2 * a, float(c.sum())))
    return math.sqrt(float(c[indices] @ d))


# nearest points


def nearest(x: np.ndarray, lower: Numbers, upper: Numbers, total: float) -> np.ndarray:
    """The nearest point to x between the bounds with sum ``total``: clip(x - theta, lower, upper) for one number theta.

    The sum decreases in theta, and is linear between the 2 d numbers x - upper and x - lower. A bisection over these numbers,
    sorted, finds the two neighbours of theta; a division then gives theta. The cost is O(d log d).
    """
    x = x.astype(np.float64)
    lower, upper = tight(lower, upper, total, x.size)
    turns = np.sort(np.concatenate([(x - upper).reshape(-1), (x - lower).reshape(-1)]))
    low, high = 0, len(turns) - 1
    while high - low > 1:
        middle = (low + high) // 2
        enough = float(np.clip(x - turns[middle], lower, upper).sum()) >= total
        low, high = (middle, high) if enough else (low, middle)
    if abs(turns[low]) > 1e4 * float((upper - lower).max()) > 0:  # x is far away: repeat from a nearby point, to get all digits
        return nearest(x - turns[low], lower, upper, total)
    return _settle(np.clip(x - (turns[low] + (turns[high] - turns[low]) / 2), lower, upper), lower, upper, total)


def tight(lower: Numbers, upper: Numbers, total: float, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Bounds, cut to the values that a sum of ``total`` allows, so that huge bounds cost no digits."""
    amount, spare = total - summed(lower, size), summed(upper, size) - total
    return np.maximum(lower, upper - max(spare, 0.0)), np.minimum(upper, lower + max(amount, 0.0))


def _settle(x: np.ndarray, lower: np.ndarray, upper: np.ndarray, total: float) -> np.ndarray:
    """Shift the entries strictly between their bounds by one number to correct the sum, twice because of rounding."""
    free = (x > lower) & (x < upper)
    for _ in range(2 if free.any() else 0):
        x[free] += (total - float(x.sum())) / np.count_nonzero(free)
        np.clip(x, lower, upper, out=x)
    return x


def shrunk(a: np.ndarray, w: np.ndarray, radius: float) -> np.ndarray:
    """max(a - t w, 0) for the t with sum_j w_j max(a_j - t w_j, 0) = radius, where w > 0.

    This is the nearest point to a in {y >= 0 : sum_j w_j y_j = radius}. The function sorts the entries that may stay nonzero.

    a_k / w_k = q_k is above t if and only if sum_i w_i^2 (q_i - q_k) < radius over the i with q_i > q_k. Differences of
    neighbours are summed, so that points far outside lose no digits.
    """
    q = a / w
    top = int(q.argmax())
    near = np.flatnonzero(q[top] - q < radius / w[top] ** 2)
    order = near[np.argsort(-q[near])]
    weight = np.cumsum(w[order] ** 2)
    used = np.cumsum(np.append(0.0, weight[:-1] * -np.diff(q[order])))
    last = int(np.count_nonzero(used < radius)) - 1
    S, out = order[: last + 1], np.zeros_like(a)
    out[S] = w[S] * ((q[S] - q[S[-1]]) + (radius - used[last]) / weight[last])
    return out
