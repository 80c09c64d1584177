"""Boxes cut by a budget: entries between bounds with a given sum."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.points.vertex import DenseVertex, SparseVertex, Vertex
from extremal.quadratic.polyhedral import Inequalities
from extremal.quadratic.search import longest_step
from extremal.sets.base import ConvexSet, refuse_non_finite
from extremal.sets.shared import CompiledOracle, numbers
from extremal.sets.simplices import bounds


class BudgetSet(ConvexSet):
    """All x with lower <= x <= upper and sum_j x_j = total: the common base of the sets in this module.

    The oracle spends total - sum(lower) where g is smallest, as much as fits on each entry. This fractional knapsack problem
    with equal weights is solved by selection. All entries of a vertex but one are at a bound. The smallest face that contains
    x fixes the entries that are at a bound.
    """

    @property
    @abstractmethod
    def _limits(self) -> tuple[np.ndarray, np.ndarray, float]:
        """lower, upper (numbers, or arrays of the set's shape) and total."""

    def lmo(self, g: np.ndarray) -> SparseVertex | DenseVertex:
        refuse_non_finite(self, float(g.min()), float(g.max()))
        lower, upper, total = self.on(g.shape)._limits
        amount = total - bounds.summed(lower, g.size)
        indices, values = bounds.filled(g.reshape(-1), bounds.flat(upper - lower), amount)
        if not lower.any():
            return SparseVertex(indices, values, g.shape)
        x = np.broadcast_to(lower, g.shape).copy()
        x.flat[indices] += values
        return DenseVertex(np.minimum(x, upper, out=x))

    def compiled(self) -> CompiledOracle:
        """The oracle for compiled loops; a class that uses it defines ``compiled`` itself."""
        lower, upper, total = self._limits
        amount = total - float(np.broadcast_to(lower, self.shape or np.shape(lower)).sum())
        return CompiledOracle("fill", amount, lower, upper)

    def contains(self, x: np.ndarray, tol: float = 1e-9) -> bool:
        """Whether lower <= x <= upper up to tol times an entry's size, and sum x = total up to tol max sum |x_j|."""
        lower, upper, total = self.on(x.shape)._limits
        mass = _mass(lower, upper, total, x.size)
        slack = tol * _sizes(lower, upper, mass)
        near = abs(float(x.sum(dtype=np.float64)) - total) <= tol * mass
        return near and bool((x >= lower - slack).all() and (x <= upper + slack).all())

    @property
    def diameter(self) -> float:
        size = math.prod(self._known_shape("diameter"))
        lower, upper, total = self._limits
        room, amount = upper - lower, total - bounds.summed(lower, size)
        if room.min() == room.max():
            return bounds.equal_diameter(float(room.max()), amount, size)
        return bounds.diameter_bound(bounds.flat(room), amount)

    def start(self) -> np.ndarray:
        """lower + c (upper - lower), for the c that gives the right sum."""
        shape = self._known_shape("start()")
        size = math.prod(shape)
        lower, upper, total = self._limits
        low, high = bounds.summed(lower, size), bounds.summed(upper, size)
        c = (total - low) / (high - low) if high > low else 0.0
        return np.broadcast_to(np.clip(lower + c * (upper - lower), lower, upper), shape).copy()

    def project(self, x: np.ndarray) -> np.ndarray:
        """clip(x - theta, lower, upper), for the number theta that gives the right sum: O(d log d)."""
        return bounds.nearest(x, *self.on(x.shape)._limits)

    def inequalities(self) -> Inequalities:
        """The bounds and the total."""
        lower, upper, total = self._limits
        size = math.prod(self._known_shape("inequalities()"))
        return Inequalities.of(size, A_eq=np.ones((1, size)), b_eq=np.array([total]), lower=lower, upper=upper)

    def away(self, g: np.ndarray, x: np.ndarray) -> SparseVertex | DenseVertex:
        """The vertex with the largest <g, v> among those at the same bounds as x, up to 1e-12 of the size."""
        lower, upper, total = self.on(x.shape)._limits
        low, high = bounds.pinned(x, lower, upper, _sizes(lower, upper, _mass(lower, upper, total, x.size)))
        v = np.where(high, upper, lower)
        free, room = np.flatnonzero(~(low | high)), bounds.flat(upper - lower)
        indices, values = bounds.filled(-g.flat[free], room[free] if room.ndim else room, total - float(v.sum()))
        v.flat[free[indices]] += values
        np.minimum(v, upper, out=v)
        if lower.any():
            return DenseVertex(v)
        indices = np.flatnonzero(v)
        return SparseVertex(indices, v.flat[indices], x.shape)

    def max_step(self, x: np.ndarray, s: Vertex, a: Vertex) -> float:
        """The largest t <= 1 with lower <= x + t (s - a) <= upper."""
        lower, upper, _ = self.on(x.shape)._limits
        return longest_step(x, s.to_array() - a.to_array(), lower, upper)


@dataclass(frozen=True, eq=False, repr=False)
class CappedSimplex(BudgetSet):
    """The capped simplex: non-negative weights with sum ``total``, none above its cap.

        {x : 0 <= x <= cap, sum_j x_j = total}
        lmo(g) = cap on the entries with the smallest g_j, one after the other until total is reached; the last one gets the
        rest

    A call is a selection, O(dimension); the vertex has total / cap entries, rounded up. Ties go to the smallest j. For a
    single cap, let m = total / cap rounded down, r = total - m cap and z = dimension - m - 1. The diameter is then

        sqrt(2 (min(m, z) cap^2 + (r^2 if m < z, (cap - r)^2 if m > z)))

    With one cap per entry the diameter is a bound, at most min(sqrt(2 total max(cap)), |cap|).

    Parameters
    ----------
    cap : float or array
        The largest weight; one number holds for every entry. The caps must leave room for total: a single cap cannot be below
        total / dimension. Entries of an array may be 0, or infinite for no cap.
    total : float
        Positive; 1 for probabilities.
    shape : int or tuple of int, optional
        Shape of the points. Default: the shape of cap if it is an array, otherwise any.

    References
    ----------
    Kiwiel (2008), Breakpoint searching algorithms for the continuous quadratic knapsack problem, Mathematical Programming 112
    (the projection).

    Examples
    --------
    My weights are non-negative, sum to one, no one above 10 %:

    >>> C = CappedSimplex(0.1)
    >>> C.lmo(np.arange(20.0)).values.round(2)
    array([0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1])
    >>> C.on(8)
    Traceback (most recent call last):
        ...
    extremal.checks.InputError: `CappedSimplex(cap=...)` must be at least total / dimension = 0.125 for 8 entries, got 0.1
    """

    cap: Any
    total: float = 1.0
    shape: tuple[int, ...] | None = None

    compiled = BudgetSet.compiled

    def __post_init__(self):
        total = checks.positive("CappedSimplex", "total", self.total)
        cap = numbers("CappedSimplex", "cap", self.cap, infinite=True)
        self._fix(total=total, cap=cap)
        self._fix(shape=bounds.common_shape("CappedSimplex", self.shape, cap=cap))
        self._fix(cap=bounds.as_large(cap, self.shape))
        if not (cap >= 0).all() or not cap.any():
            raise InputError(f"`CappedSimplex(cap=...)` must be positive, or an array without negatives, got {self.cap}")
        size = math.prod(self.shape or ())
        most = bounds.summed(np.asarray(np.minimum(self.cap, total)), size)
        if self.shape is not None and most < total * (1 - bounds.ROUNDING):
            wanted, got = f"be at least total / dimension = {total / size}", f"{self.cap}"
            if self.cap.ndim:
                wanted, got = f"sum to total = {total} or more, {total / size} on average", f"caps that sum to {most}"
            raise InputError(f"`CappedSimplex(cap=...)` must {wanted} for {size} entries, got {got}")

    @property
    def _limits(self) -> tuple[np.ndarray, np.ndarray, float]:
        return np.zeros(()), np.asarray(np.minimum(self.cap, self.total)), self.total


@dataclass(frozen=True, eq=False, repr=False)
class Hypersimplex(BudgetSet):
    """The hypersimplex: choose k entries, the convex hull of the 0/1 vectors with k ones.

        {x : 0 <= x <= scale, sum_j x_j = k scale},   lmo(g) = scale on the k smallest g_j

    A call is a selection, O(dimension); the vertex has k entries. Ties go to the smallest j. The diameter is scale
    sqrt(2 min(k, dimension - k)).

    Parameters
    ----------
    k : int
        Number of chosen entries, from 1 to the dimension.
    scale : float
        The value of a chosen entry; positive.
    shape : int or tuple of int, optional
        Shape of the points. Default: any.

    References
    ----------
    Ziegler (1995), Lectures on Polytopes.

    Examples
    --------
    >>> Hypersimplex(2).lmo(np.array([3.0, -1.0, 0.0, 2.0])).to_array()
    array([0., 1., 1., 0.])
    """

    k: int
    scale: float = 1.0
    shape: tuple[int, ...] | None = None

    compiled = BudgetSet.compiled

    def __post_init__(self):
        self._fix(scale=checks.positive("Hypersimplex", "scale", self.scale))
        most = None if self.shape is None else math.prod(self.shape)
        self._fix(k=checks.whole("Hypersimplex", "k", self.k, 1, most))

    @property
    def _limits(self) -> tuple[np.ndarray, np.ndarray, float]:
        return np.zeros(()), np.asarray(self.scale), self.k * self.scale


@dataclass(frozen=True, eq=False, repr=False)
class BudgetBox(BudgetSet):
    """A box cut by a budget: every entry between its own bounds, and a given sum.

        {x : lower <= x <= upper, sum_j x_j = total}
        lmo(g) = upper_j where g_j is smallest, lower_j where it is largest, one entry between

    A call is a few selections, O(dimension); the vertex is sparse if lower is 0, otherwise dense. Ties go to the smallest j.
    The diameter is exact if upper - lower is the same everywhere (as for `CappedSimplex`), otherwise a bound, at most
    |upper - lower|.

    Parameters
    ----------
    lower, upper : float or array
        Finite bounds with lower <= upper; one number holds for every entry.
    total : float
        The sum of the entries, from sum(lower) to sum(upper).
    shape : int or tuple of int, optional
        Shape of the points. Default: the shape of the bounds if they are arrays, otherwise any.

    References
    ----------
    Kiwiel (2008), as for `CappedSimplex` (the projection).

    Examples
    --------
    Long and short positions that cancel out, none above one half:

    >>> BudgetBox(-0.5, 0.5, 0.0).lmo(np.array([3.0, -1.0, 0.0])).to_array()
    array([-0.5,  0.5,  0. ])
    """

    lower: Any
    upper: Any
    total: float
    shape: tuple[int, ...] | None = None

    compiled = BudgetSet.compiled

    def __post_init__(self):
        lower, upper = numbers("BudgetBox", "lower", self.lower), numbers("BudgetBox", "upper", self.upper)
        self._fix(total=float(numbers("BudgetBox", "total", self.total, "one number")))
        shape = bounds.common_shape("BudgetBox", self.shape, lower=lower, upper=upper)
        self._fix(shape=shape, lower=bounds.as_large(lower, shape), upper=bounds.as_large(upper, shape))
        if not (lower <= upper).all():
            raise InputError("`BudgetBox(lower=..., upper=...)` must have lower <= upper everywhere")
        if shape is None:
            return
        size = math.prod(shape)
        least, most = bounds.summed(self.lower, size), bounds.summed(self.upper, size)
        slack = bounds.ROUNDING * max(abs(self.total), abs(least), abs(most))
        if not least - slack <= self.total <= most + slack:
            wanted = f"from sum(lower) = {least} to sum(upper) = {most} for {size} entries"
            raise InputError(f"`BudgetBox(total=...)` must be {wanted}, got {self.total}")

    @property
    def _limits(self) -> tuple[np.ndarray, np.ndarray, float]:
        return self.lower, self.upper, self.total


def _mass(lower: np.ndarray, upper: np.ndarray, total: float, size: int) -> float:
    """The largest possible sum |x_j|, which equals sum x + 2 sum max(-x, 0) and 2 sum max(x, 0) - sum x."""
    below, above = np.asarray(np.maximum(-lower, 0)), np.asarray(np.maximum(upper, 0))
    return max(0.0, min(total + 2 * bounds.summed(below, size), 2 * bounds.summed(above, size) - total))


def _sizes(lower: np.ndarray, upper: np.ndarray, mass: float) -> np.ndarray:
    """The largest possible |x_j|, the measure for its rounding."""
    return np.minimum(np.maximum(np.abs(lower), np.abs(upper)), mass)
