"""How far a point is from a set that is known by its oracle alone, with a proof either way."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from extremal.points.vertex import Vertex
from extremal.quadratic.solver import GrowingQuadratic
from extremal.sets.base import ConvexSet, Warm

LEAST_TOL = 1e-13  # smaller tolerances count as this one: points of the set are sums that are rounded
SPARE_POINTS = 50  # points beyond two for each dimension that are kept, though they have no weight
NEAREST_ROUNDS = 100  # of the quadratic problem after each answer, at most
NEAR_ENOUGH = 1e-5  # of the size: so near, a point counts as inside unless it is proved to be outside


@dataclass(frozen=True)
class Distance:
    """Bounds on the distance of x from a set, lower <= |x - y| for all y of the set and |x - nearest| = upper."""

    nearest: np.ndarray  # a point of the set
    direction: np.ndarray  # <direction, y - x> >= lower |direction| for all y of the set
    lower: float
    upper: float
    size: float  # the largest norm of a point of the set that was met
    inside: bool  # upper <= tol size, or upper <= 1e-5 size and nothing separates x by more than tol size


def member(C: ConvexSet, x: np.ndarray, tol: float = 1e-9) -> bool:
    """Whether x is in C up to ``tol`` times its size, by calls of its oracle: see `distance`, also for what is left undecided.

    For the method ``contains`` of sets without a formula for it. C needs its shape only if x has to be checked against it.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> member(ex.L1Ball(1.0), np.array([0.5, 0.5])), member(ex.L1Ball(1.0), np.array([0.5, 0.6]))
    (True, False)
    """
    return bool(np.isfinite(x).all()) and distance(_oracle(C), x, tol).inside


def distance(
    lmo: Callable[[np.ndarray], Vertex],
    x: np.ndarray,
    tol: float = 1e-9,
    start: np.ndarray | None = None,
    limit: int | None = None,
) -> Distance:
    """Bound the distance of x from a set until it is known whether it exceeds ``tol`` times the set's size.

        min |p - x|  over p = sum_i w_i v_i,  w >= 0,  sum_i w_i = 1,   v_i the oracle's answers at p - x

    The nearest point of all that the answers span, again after each answer (Wolfe 1976): a factorisation of those that have a
    weight is updated, O(d) times their number. It ends with p within tol size of x; or with a direction
    in which every point of the set is farther than that, by the oracle's answer (by its proven bound, if it has one); or after
    ``limit`` answers, or where rounding allows no progress, with the bounds found: x is then taken to be inside if p is within
    1e-5 size and no separation was proved. The size is the largest norm of a point met.

    On polytopes it is finite, mostly with one or two answers for each dimension. Points well inside or outside of sets with a
    curved boundary are decided as fast; on that boundary the bounds converge linearly, at 1e-9 after about 200 answers in ten
    dimensions and 5000 in thirty, so that in more dimensions it takes a larger ``tol`` to find such points inside.

    x is finite, and ``tol``, relative to the size, counts as 1e-13 at least. It begins at ``start``, a point of the set, or at
    the vertex farthest in the direction of x. Without a ``limit``, that is 1000 answers and 100 for each dimension.

    References
    ----------
    Wolfe (1976), Finding the nearest point in a polytope, Mathematical Programming 11.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> found = distance(ex.Simplex().lmo, np.array([0.2, 0.8]))
    >>> found.nearest, found.inside
    (array([0.2, 0.8]), True)
    """
    x = np.asarray(x, np.float64)
    first = lmo(-x).to_array() if start is None else np.asarray(start, np.float64)
    hull = _Hull(first - x, min(_norm(first) + _norm(x), float(np.finfo(np.float64).max)))
    size, lower, direction = _norm(first), 0.0, np.zeros_like(x)
    for _ in range(1000 + 100 * x.size if limit is None else limit):
        g = hull.point()
        if _norm(g) <= max(tol, LEAST_TOL) * size or not _norm(g):
            break
        v = lmo(g)
        corner = v.to_array().astype(np.float64, copy=False)
        size = max(size, _norm(corner))
        off = _excess(v, corner, g, x)
        if off > lower:
            lower, direction = off, g
        if lower > max(tol, LEAST_TOL) * size or not hull.add(corner - x):
            break
    upper, slack = _norm(hull.point()), max(tol, LEAST_TOL) * size
    inside = upper <= slack or (lower <= slack and upper <= NEAR_ENOUGH * size)
    return Distance(x + hull.point(), direction, lower, upper, size, inside)


def _oracle(C: ConvexSet) -> Callable[[np.ndarray], Vertex]:
    """The oracle of C, each time from its last answer if it can."""
    if not isinstance(C, Warm):
        return C.lmo
    last: Vertex | None = None

    def ask(g: np.ndarray) -> Vertex:
        nonlocal last
        last = C.lmo_from(g, last)
        return last

    return ask


def _excess(v: Vertex, corner: np.ndarray, g: np.ndarray, x: np.ndarray) -> float:
    """min <g, y - x> / |g| over the y of the set, or a bound: every point of the set is at least that far from x."""
    top = float(np.abs(g).max())
    g = g / top
    rise = float(np.vdot(g, corner - x)) if v.low is None else v.low / top - float(np.vdot(g, x))
    return rise / _norm(g)


def _norm(x: np.ndarray) -> float:
    top = float(np.abs(x).max())  # taken out, so that squares neither overflow nor vanish
    return top * math.sqrt(float(np.vdot(x / top, x / top))) if 0 < top < math.inf else top


class _Hull:
    """The convex hull of some points, and the weights of the point of it that is nearest to 0: min |sum_i w_i u_i|^2 / 2."""

    def __init__(self, u: np.ndarray, unit: float):
        self._shape, self._unit = u.shape, unit or 1.0  # lengths are in terms of a unit
        self._begin(u.reshape(1, -1) / self._unit, np.ones(1))

    def _begin(self, points: np.ndarray, weights: np.ndarray) -> None:
        self._points, self._weights, self._problem = points, weights, GrowingQuadratic(points, np.zeros(len(points)))

    def point(self) -> np.ndarray:
        """sum_i w_i u_i."""
        return self._unit * (self._weights @ self._points).reshape(self._shape)

    def add(self, u: np.ndarray) -> bool:
        """Take in one more point and move to the nearest one; whether that came nearer."""
        row, before = u.reshape(-1) / self._unit, self._weights @ self._points
        if before @ (before - row) <= 1e-15 * math.sqrt(before @ before):
            return False
        if len(self._points) > 2 * row.size + SPARE_POINTS:
            self._begin(self._points[self._weights > 0], self._weights[self._weights > 0])
        self._problem.add(row, 0.0)
        self._points = np.vstack([self._points, row])
        self._weights = self._problem.minimise(np.append(self._weights, 0.0), 0.0, NEAREST_ROUNDS)
        after = self._weights @ self._points
        return bool(after @ after < before @ before)
