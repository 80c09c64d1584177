"""Sets known only by their oracle: the distance to such a set, with a proof either way, and sets defined by the user."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from extremal import checks
from extremal.checks import InputError
from extremal.points.composed import Blocks, Combination
from extremal.points.low_rank import LowRank, RankOne
from extremal.points.vertex import Coordinate, DenseVertex, SparseVertex, Vertex
from extremal.quadratic.solver import GrowingQuadratic
from extremal.sets.base import ConvexSet, Warm, refuse_non_finite

LEAST_TOL = 1e-13  # the smallest tolerance in use: points of the set are rounded sums
SPARE_POINTS = 50  # points without weight are kept until there are this many beyond two per dimension
NEAREST_ROUNDS = 100  # upper limit for the quadratic problem after each answer
VERTICES = Blocks, Combination, Coordinate, DenseVertex, LowRank, RankOne, SparseVertex  # answers that need no check
NEAR_ENOUGH = 1e-5  # a point this near, relative to the size, counts as inside unless a proof separates it


@dataclass(frozen=True)
class Distance:
    """Bounds on the distance of x from a set: lower <= |x - y| for all y in the set, and |x - nearest| = upper."""

    nearest: np.ndarray  # a point of the set
    direction: np.ndarray  # <direction, y - x> >= lower |direction| for all y in the set
    lower: float
    upper: float
    size: float  # the largest norm among the points of the set that the search met
    inside: bool  # upper <= tol size, or upper <= 1e-5 size and no direction separates x by more than tol size


def member(C: ConvexSet, x: np.ndarray, tol: float = 1e-9) -> bool:
    """Whether x is in C up to ``tol`` times the size of C, decided by calls of its oracle.

    Sets without a formula use this function for their method ``contains``. See `distance` for the cases that stay undecided. C
    needs a shape only if x has to be checked against it.

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
    """Bound the distance of x from a set, until the bounds decide whether it exceeds ``tol`` times the set's size.

        min |p - x|  over p = sum_i w_i v_i,  w >= 0,  sum_i w_i = 1,   v_i the oracle's answers at p - x

    The search finds the nearest point p of the convex hull of the answers again after each answer (Wolfe 1976). It updates a
    factorisation of the points that have a weight, in O(d) times their number. The search ends when p is within tol size of x,
    or when the oracle's answer (or its proven bound) gives a direction in which every point of the set is farther away. It
    also ends after ``limit`` answers, or when rounding stops the progress. x then counts as inside if p is within
    1e-5 size and no separation was proved. The size is the largest norm among the points met.

    On polytopes the search is finite, mostly with one or two answers per dimension. On sets with a curved boundary, points
    well inside or outside are decided as fast. For points on that boundary the bounds converge linearly: they reach 1e-9 after
    about 200 answers in ten dimensions and 5000 in thirty. In more dimensions a larger ``tol`` is needed.

    x is finite, and ``tol``, relative to the size, counts as at least 1e-13. The search begins at ``start``, a point of the
    set, or at the vertex farthest in the direction of x. Default ``limit``: 1000 answers, and 100 more per dimension.

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
    """The oracle of C; each call starts from the last answer if the set allows it."""
    if not isinstance(C, Warm):
        return C.lmo
    last: Vertex | None = None

    def ask(g: np.ndarray) -> Vertex:
        nonlocal last
        last = C.lmo_from(g, last)
        return last

    return ask


def _excess(v: Vertex, corner: np.ndarray, g: np.ndarray, x: np.ndarray) -> float:
    """min <g, y - x> / |g| over y in the set, or a lower bound: every point of the set is at least that far from x."""
    top = float(np.abs(g).max())
    g = g / top
    rise = float(np.vdot(g, corner - x)) if v.low is None else v.low / top - float(np.vdot(g, x))
    return rise / _norm(g)


def _norm(x: np.ndarray) -> float:
    top = float(np.abs(x).max())  # divided out, so that squares neither overflow nor vanish
    return top * math.sqrt(float(np.vdot(x / top, x / top))) if 0 < top < math.inf else top


class _Hull:
    """The convex hull of some points, and the weights of its point nearest to 0: min |sum_i w_i u_i|^2 / 2."""

    def __init__(self, u: np.ndarray, unit: float):
        self._shape, self._unit = u.shape, unit or 1.0  # lengths are multiples of the unit
        self._begin(u.reshape(1, -1) / self._unit, np.ones(1))

    def _begin(self, points: np.ndarray, weights: np.ndarray) -> None:
        self._points, self._weights, self._problem = points, weights, GrowingQuadratic(points, np.zeros(len(points)))

    def point(self) -> np.ndarray:
        """sum_i w_i u_i."""
        return self._unit * (self._weights @ self._points).reshape(self._shape)

    def add(self, u: np.ndarray) -> bool:
        """Add a point and move to the nearest point; return whether the distance decreased."""
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


@dataclass(frozen=True)
class Functions:
    """The user's arguments, as a value."""

    lmo: Callable[[np.ndarray], object]
    diameter: float
    start: tuple[tuple[int, ...], bytes] | None  # shape and entries
    contains: Callable[..., object] | None  # (x, tol) -> bool

    def __repr__(self) -> str:
        return f"<{getattr(self.lmo, '__qualname__', type(self.lmo).__qualname__)}, diameter {self.diameter:g}>"


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Oracle(ConvexSet):
    """Your own set, from a function that minimises a linear form over it.

        lmo(g) = argmin over s in the set of <g, s>

    The function and a diameter are enough. `Oracle` copies each answer and checks that it has the right shape and is finite.
    It does not check that the answer is the best point of the set: certificates are only as true as ``lmo``. A call costs the
    function and a copy. The vertex is dense, or of the kind that the function returns. The diameter is as given.

    Two oracles are equal if they have the same functions and numbers. They can be pickled if their functions can.

    Parameters
    ----------
    lmo : callable
        ``lmo(g)`` returns a point s of the set with the smallest <g, s>, as an array of the shape of g or as a vertex
        (`Coordinate`, `SparseVertex`, `RankOne`, ...). g is finite and read-only, and may be zero or float32.
    diameter : float
        Positive: the largest distance between two points, or a bound on it.
    shape : int or tuple of int, optional
        Shape of the points. Default: the shape of ``start`` if given, otherwise any.
    start : array, optional
        A point of the set. Default: the answer to g = (1, ..., 1).
    contains : callable, optional
        ``contains(x, tol)`` returns whether x is in the set up to tol times its size. If omitted, Frank-Wolfe steps toward x
        decide, with many calls of ``lmo``.
    functions : Functions, optional
        All arguments but the shape, as another `Oracle` stores them; ``on(shape)`` uses this argument.

    Examples
    --------
    >>> corners = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    >>> C = Oracle(lambda g: corners[(corners @ g).argmin()], diameter=np.sqrt(5), shape=2)
    >>> C.lmo(np.array([-1.0, -3.0])).to_array()
    array([0., 1.])
    >>> C.contains(np.array([1.0, 0.5])), C.contains(np.array([1.0, 0.6]))
    (True, False)
    """

    functions: Functions
    shape: tuple[int, ...] | None

    def __init__(
        self,
        lmo: Callable[[np.ndarray], object] | None = None,
        diameter: float | None = None,
        shape: int | tuple[int, ...] | None = None,
        start: ArrayLike | None = None,
        contains: Callable[..., object] | None = None,
        *,
        functions: Functions | None = None,
    ):
        functions = functions or _functions(lmo, diameter, start, contains)
        checks.fix(self, functions=functions, shape=functions.start[0] if shape is None and functions.start else shape)
        self._fix()
        if functions.start is not None and functions.start[0] != self.shape:
            raise InputError(f"`Oracle(start=...)` must have the shape {self.shape}, got {functions.start[0]}")

    def lmo(self, g: np.ndarray) -> Vertex:
        refuse_non_finite(self, float(np.abs(g).max()))
        shown = g.view()
        shown.flags.writeable = False
        return _checked(self.functions.lmo(shown), g.shape)

    def contains(self, x: np.ndarray, tol: float = 1e-9) -> bool:
        """The function's answer; without a function, whether no g separates x from the set, up to tol times its size."""
        if not np.isfinite(x).all():
            return False
        own = self.functions.contains
        return member(self, x, tol) if own is None else bool(own(x, tol))

    @property
    def diameter(self) -> float:
        return self.functions.diameter

    def start(self) -> np.ndarray:
        """The point given, or the answer to g = (1, ..., 1)."""
        if self.functions.start is None:
            return self.lmo(np.ones(self._known_shape("start()"))).to_array().astype(np.float64, copy=False)
        shape, entries = self.functions.start
        return np.frombuffer(entries).reshape(shape).copy()


def _functions(lmo: object, diameter: object, start: ArrayLike | None, contains: object) -> Functions:
    """Check the arguments and pack them."""
    if not callable(lmo):
        raise InputError(f"`Oracle(lmo=...)` must be a callable g -> point, got {lmo!r}")
    if contains is not None and not callable(contains):
        raise InputError(f"`Oracle(contains=...)` must be a callable (x, tol) -> bool, got {contains!r}")
    diameter = checks.positive("Oracle", "diameter", diameter)
    if start is None:
        return Functions(lmo, diameter, None, contains)
    x = checks.finite("Oracle", "start", _real("start", start, "be").astype(np.float64))
    return Functions(lmo, diameter, (x.shape, x.tobytes()), contains)


def _checked(answer: object, shape: tuple[int, ...]) -> Vertex:
    """Return a copy of the answer as a vertex, or refuse it if it is not finite or has another shape."""
    if isinstance(answer, VERTICES):
        v, finite = copy.deepcopy(answer), math.isfinite(answer.norm2)
    else:
        v = DenseVertex(_real("lmo", answer, "answer"))
        finite = bool(np.isfinite(v.values).all())
    if v.shape != shape:
        raise InputError(f"`Oracle(lmo=...)` must answer points of shape {shape}, the shape of g, got shape {v.shape}")
    if not finite:
        raise InputError("`Oracle(lmo=...)` must answer finite points, got a NaN or an infinite entry")
    return v


def _real(name: str, value: object, verb: str) -> np.ndarray:
    """A copy of an array of real numbers: float32 is kept, other numbers become float64."""
    a = checks.array("Oracle", name, value)
    if a.dtype.kind not in "biuf":
        raise InputError(f"`Oracle({name}=...)` must {verb} an array of real numbers, got {value!r}")
    return np.array(a, np.float32 if a.dtype == np.float32 else np.float64, order="C")
