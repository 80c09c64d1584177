"""Polytopes given by points or by inequalities, and convex hulls of integer points."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.points.vertex import DenseVertex, Vertex
from extremal.quadratic.polyhedral import Inequalities
from extremal.sets.base import ConvexSet, WarmSet, refuse_non_finite
from extremal.sets.oracle import member
from extremal.sets.polytopes.programs import Program, in_box, middle, vertex
from extremal.sets.polytopes.rows import ProgramRows
from extremal.sets.shared import constraints, numbers, scaled_gradient

CORNERS = 32  # up to this number of variables, the solver of quadratic problems finds vertices faster than HiGHS
DECLARED_ENTRIES = 2**22  # entries of all rows that a set declares as inequalities
EXACT_DIAMETER = 2000  # up to this number of points, the diameter of their hull is the maximum over all distances


@dataclass(frozen=True, eq=False, repr=False)
class ConvexHull(ConvexSet):
    """The convex hull of points.

        {sum_i w_i p_i : w >= 0, sum_i w_i = 1},   lmo(g) = p_i,  i = argmin <g, p_i>

    A call is one product with the m x d matrix of the points; the vertex is dense and a view of the point. Ties go to the
    smallest i. For up to 2000 points the diameter is the largest distance between two points. For more points it is a bound,
    twice the largest distance from the mean. ``contains`` calls the oracle, see `extremal.sets.oracle.distance`.

    Parameters
    ----------
    points : array of shape (m, ...)
        At least one point; all dimensions after the first are the shape of a point.

    References
    ----------
    Wolfe (1976), Finding the nearest point in a polytope, Mathematical Programming 11 (membership).

    Examples
    --------
    >>> C = ConvexHull([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    >>> C.lmo(np.array([-1.0, -3.0])).to_array(), round(C.diameter**2, 9)
    (array([0., 1.]), 5.0)
    >>> C.contains(np.array([1.0, 0.5])), C.contains(np.array([1.0, 0.6]))
    (True, False)
    """

    points: Any
    shape: tuple[int, ...] | None = field(init=False, default=None)

    def __post_init__(self):
        points = numbers("ConvexHull", "points", self.points, "points of real numbers in rows")
        self._fix(points=points, shape=points.shape[1:])

    def lmo(self, g: np.ndarray) -> DenseVertex:
        u = scaled_gradient(self, g)[0].reshape(-1)
        return DenseVertex(self.points[int((self._rows @ u).argmin())])

    def contains(self, x: np.ndarray, tol: float = 1e-9) -> bool:
        return member(self, x, tol)

    @property
    def diameter(self) -> float:
        return self._diameter

    def start(self) -> np.ndarray:
        return self.points.mean(axis=0)

    @cached_property
    def _diameter(self) -> float:
        centred = self._rows - self._rows.mean(axis=0)
        norms = np.einsum("ij,ij->i", centred, centred)
        if len(centred) > EXACT_DIAMETER:
            return 2 * math.sqrt(float(norms.max()))
        farthest = [int((norms - 2 * (centred @ p)).argmax()) for p in centred]  # |p_j - p|^2 = |p_j|^2 - 2 <p_j, p> + |p|^2
        return math.sqrt(float(np.square(centred - centred[farthest]).sum(axis=1).max()))

    @property
    def _rows(self) -> np.ndarray:
        return self.points.reshape(len(self.points), -1)


@dataclass(frozen=True, eq=False, repr=False)
class Constrained(ConvexSet):
    """A nonempty set of vectors with linear constraints, in the notation of `scipy.optimize.linprog`."""

    A_ub: Any = None
    b_ub: Any = None
    A_eq: Any = None
    b_eq: Any = None
    bounds: Any = None
    shape: tuple[int, ...] | None = field(init=False, default=None)

    def __post_init__(self):
        call = type(self).__name__
        fields = constraints(call, self.A_ub, self.b_ub, self.A_eq, self.b_eq, self.bounds)
        self._fix(**fields, shape=(len(fields["bounds"]),))
        self._program.examine(call)

    @cached_property
    def _program(self) -> Program:
        return Program(ProgramRows(self.A_ub, self.b_ub, self.A_eq, self.b_eq, self.bounds))


@dataclass(frozen=True, eq=False, repr=False)
class Polytope(WarmSet, Constrained):
    """The polytope of a linear program, in the notation of `scipy.optimize.linprog`.

        {x : A_ub x <= b_ub, A_eq x = b_eq, lower <= x <= upper, |x|_1 <= radius},   lmo(g) by the dual simplex method of HiGHS

    With up to 32 variables, the dual active-set method of `Inequalities.corner` finds most vertices, and multipliers prove them.
    Otherwise an oracle call solves a linear program with scipy, with a radius over the positive and negative parts of x. The
    package highspy (extra ``polytopes``) keeps a model, and ``lmo_from`` starts from the basis of the last answer, which is
    faster if gradients change little. On ties the answer is a minimiser that may depend on that start, and need not be extreme
    if variables have no bounds. Vertices are sparse if fewer than half of their entries are nonzero.

    Vertices satisfy the constraints up to 1e-9 of the polytope's size, with each row divided by its largest entry. Two
    opposite vertices measure the size. Entries are rounded to 2^-46 of the size, so that equal vertices mostly have equal
    keys. HiGHS treats entries of a row below 1e-9 of its largest as zero. Empty and unbounded sets are refused.

    The diameter is a bound. It uses a box [l, u] around the polytope, which 2 d programs find at the first use. With more than
    100 variables, finite bounds are used as they are. The bound is the smallest of

        |w|,   sqrt(2 max <w, x - l>),   sqrt(2 max <w, u - x>),   w = u - l

    Parameters
    ----------
    A_ub, A_eq : array or scipy sparse array of shape (m, d), optional
        Left sides of the inequalities and of the equations.
    b_ub, b_eq : array of shape (m,), optional
        Right sides.
    bounds : pair or sequence of d pairs, optional
        Lower and upper bounds, with None for no bound; one pair holds for every variable. By default variables are free,
        unlike in scipy, where they are non-negative.
    radius : float, optional
        The largest sum of magnitudes. Default: no limit.

    References
    ----------
    Huangfu, Hall (2018), Parallelizing the dual revised simplex method, Mathematical Programming Computation 10 (HiGHS).

    Examples
    --------
    >>> C = Polytope(A_ub=[[1.0, 2.0]], b_ub=[2.0], bounds=(0, None))
    >>> C.lmo(np.array([-1.0, -3.0])).to_array()
    array([0., 1.])
    >>> C.contains(np.array([1.0, 0.5])), C.contains(np.array([1.0, 0.6])), round(C.diameter**2, 9)
    (True, False, 5.0)
    >>> Polytope(A_ub=[[1.0, 2.0]], b_ub=[2.0])
    Traceback (most recent call last):
        ...
    extremal.checks.InputError: `Polytope(...)` must be bounded, but HiGHS calls it: Unbounded (variable 0 has no limit)
    >>> Polytope(A_ub=[[1.0, -1.0]], b_ub=[0.0], radius=2.0).lmo(np.array([-2.0, -1.0])).to_array()
    array([1., 1.])
    """

    radius: float | None = None

    def __post_init__(self):
        if self.radius is not None:
            self._fix(radius=checks.positive("Polytope", "radius", self.radius))
        super().__post_init__()

    def lmo_from(self, g: np.ndarray, near: Vertex | None) -> Vertex:
        """The same as ``lmo``, but from the basis of ``near`` if that is an earlier answer and highspy is installed."""
        top = float(np.abs(g).max())
        refuse_non_finite(self, top)
        rows = self._inequalities if len(self.bounds) <= CORNERS and top else None
        found = None if rows is None else rows.corner(g.reshape(-1).astype(np.float64) / top)
        return self._program.ask(g, near) if found is None else vertex(self._program.rounded(found, *self.bounds.T), g.shape)

    def contains(self, x: np.ndarray, tol: float = 1e-9) -> bool:
        """Whether all constraints hold, up to tol times the size, with rows divided by their largest entry."""
        return self._program.holds(x, tol * self._program.size)

    @property
    def diameter(self) -> float:
        return self._diameter

    def start(self) -> np.ndarray:
        return middle(self._program.ask, len(self.bounds))

    def inequalities(self) -> Inequalities | None:
        """The constraints, unless the rows have more than 2^22 entries."""
        return self._inequalities

    @cached_property
    def _inequalities(self) -> Inequalities | None:
        size, rows = len(self.bounds), sum(len(b) for b in (self.b_ub, self.b_eq) if b is not None)
        radius = math.inf if self.radius is None else self.radius
        lower, upper = self.bounds.T
        given = self.A_ub, self.b_ub, self.A_eq, self.b_eq
        return Inequalities.of(size, *given, lower, upper, radius) if rows * size <= DECLARED_ENTRIES else None

    @cached_property
    def _program(self) -> Program:
        return Program(self.lifted, self.folds)

    @property
    def folds(self) -> bool:
        """Whether the linear program is over the positive and the negative parts of x."""
        return self.radius is not None and not ((self.bounds[:, 0] >= 0).all() or (self.bounds[:, 1] <= 0).all())

    @cached_property
    def lifted(self) -> ProgramRows:
        """The constraints of the linear program: the limit of |x|_1 as a row, over the two parts of x if signs are mixed."""
        rows = ProgramRows(self.A_ub, self.b_ub, self.A_eq, self.b_eq, self.bounds)
        return rows if self.radius is None else rows.within(self.radius, self.folds)

    @cached_property
    def _diameter(self) -> float:
        if self.radius is not None:
            return min(2 * self.radius, float(np.linalg.norm(self.bounds[:, 1] - self.bounds[:, 0])))
        return in_box(self._program.ask, *self._program.box())


@dataclass(frozen=True, eq=False, repr=False)
class IntegerHull(Constrained):
    """The convex hull of the integer points of a polytope, in the notation of `scipy.optimize.linprog`.

        conv {x : A_ub x <= b_ub, A_eq x = b_eq, lower <= x <= upper, x_j integer where integrality_j = 1}
        lmo(g) by the branch and cut method of HiGHS

    Each oracle call solves a mixed-integer program to optimality, up to a gap of 1e-12 of the largest cost. This is easy for
    some constraints and exponential in d for others. On ties the answer is a minimiser that need not be extreme. ``contains``
    calls the oracle, see `extremal.sets.oracle.distance`. The diameter is a bound: that of `Polytope`, for the polytope's box
    rounded inward. Empty and unbounded sets are refused.

    Parameters
    ----------
    A_ub, b_ub, A_eq, b_eq, bounds
        As for `Polytope`.
    integrality : int or sequence of d ints
        1 for integer variables, 0 for others; one number holds for every variable.

    References
    ----------
    Huangfu, Hall (2018), Parallelizing the dual revised simplex method, Mathematical Programming Computation 10 (HiGHS).

    Examples
    --------
    >>> C = IntegerHull(A_ub=[[2.0, 2.0]], b_ub=[3.0], bounds=(0, None))
    >>> C.lmo(np.array([-1.0, -3.0])).to_array()
    array([0., 1.])
    >>> C.contains(np.array([0.5, 0.5])), C.contains(np.array([0.5, 0.6]))
    (True, False)
    """

    integrality: Any = 1

    def __post_init__(self):
        super().__post_init__()
        d = len(self.bounds)
        self._fix(integrality=_whole_or_not(self.integrality, d))
        found = self._program.integer(np.zeros(d), self.integrality)
        if isinstance(found, str):
            raise InputError(f"`IntegerHull(...)` must have an integer point, but HiGHS calls its constraints: {found}")

    def lmo(self, g: np.ndarray) -> Vertex:
        refuse_non_finite(self, float(np.abs(g).max()))
        found = self._program.integer(g, self.integrality)
        if isinstance(found, str):
            raise RuntimeError(f"HiGHS found no integer point of the polytope: {found}")
        return vertex(found, g.shape)

    def contains(self, x: np.ndarray, tol: float = 1e-9) -> bool:
        """Whether x satisfies the constraints and is a mixture of integer points, up to tol times their norm."""
        return self._program.holds(x, max(tol, 1e-9) * self._program.size) and member(self, x, tol)

    @property
    def diameter(self) -> float:
        """A bound from a box and two calls of the oracle; not cached, so that equal runs have equal counts."""
        whole, (lower, upper) = self.integrality == 1, self._program.box()
        lower, upper = np.where(whole, np.ceil(lower - 1e-6), lower), np.where(whole, np.floor(upper + 1e-6), upper)
        return in_box(self.lmo, lower, upper)

    def start(self) -> np.ndarray:
        return middle(self.lmo, len(self.bounds))


def _whole_or_not(value: object, d: int) -> np.ndarray:
    a = checks.array("IntegerHull", "integrality", value)
    if a.dtype.kind not in "biu" or a.shape not in ((), (d,)) or not np.isin(a, (0, 1)).all() or not a.any():
        raise InputError(f"`IntegerHull(integrality=...)` must be 1, or 0 and 1 for each of the {d} variables, got {value!r}")
    a = np.broadcast_to(a, d).astype(np.int64)
    a.flags.writeable = False
    return a
