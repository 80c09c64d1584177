"""Simplices and boxes: weights with a given sum, and entries between bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.points.vertex import Coordinate, DenseVertex, Vertex
from extremal.quadratic.search import longest_step
from extremal.sets.base import ConvexSet, Spikes, refuse_non_finite
from extremal.sets.shared import CompiledOracle, float_of, numbers
from extremal.sets.simplices import bounds


@dataclass(frozen=True, eq=False, repr=False)
class Simplex(bounds.ZeroFaced):
    """The simplex: non-negative weights that sum to ``total``.

        {x : x >= 0, sum_j x_j = total},   lmo(g) = total e_j,  j = argmin g_j

    A call is one pass over g, and the vertex is two numbers. The diameter is sqrt(2) total (0 in one dimension). Ties go to
    the smallest j.

    Parameters
    ----------
    total : float
        Positive; 1 for probabilities.
    shape : int or tuple of int, optional
        Shape of the points. Default: any.

    References
    ----------
    Jaggi (2013), Revisiting Frank-Wolfe: projection-free sparse convex optimization, ICML.

    Examples
    --------
    >>> Simplex().lmo(np.array([1.0, -3.0])).to_array()
    array([0., 1.])
    """

    total: float = 1.0
    shape: tuple[int, ...] | None = None

    def __post_init__(self):
        self._fix(total=checks.positive("Simplex", "total", self.total))

    def lmo(self, g: np.ndarray) -> Coordinate:
        j = int(g.argmin())  # argmin finds a NaN first; an infinity is the smallest or the largest entry
        refuse_non_finite(self, float(g.flat[j]), float(g.max()))
        return Coordinate(j, self.total, g.shape)

    def contains(self, x: np.ndarray, tol: float = 1e-9) -> bool:
        """Whether x_j >= -tol total, and the sum is total up to tol."""
        off = abs(float(x.sum(dtype=np.float64)) - self.total)
        return off <= tol * self.total and float(x.min()) >= -tol * self.total

    @property
    def diameter(self) -> float:
        return 0.0 if self.shape is not None and math.prod(self.shape) == 1 else math.sqrt(2) * self.total

    def start(self) -> np.ndarray:
        shape = self._known_shape("start()")
        return np.full(shape, self.total / math.prod(shape))

    def project(self, x: np.ndarray) -> np.ndarray:
        """max(x - theta, 0), for the number theta that gives the right sum: O(d log d)."""
        return bounds.nearest(x, 0.0, self.total, self.total)

    def away(self, g: np.ndarray, x: np.ndarray) -> Coordinate:
        """total e_j at the largest g_j where x_j > 0, up to 1e-12 total."""
        used = bounds.support(x, self.total)
        return Coordinate(int(np.where(used, g, -np.inf).argmax()), self.total, x.shape)

    def compiled(self) -> CompiledOracle:
        """The oracle for compiled loops."""
        return CompiledOracle("least", self.total)

    def spikes(self) -> Spikes:
        return Spikes(0.0, self.total, origin=False)


@dataclass(frozen=True, eq=False, repr=False)
class UnitSimplex(ConvexSet):
    """The simplex with its interior: non-negative weights with a sum of at most ``total``.

        {x : x >= 0, sum_j x_j <= total},   lmo(g) = total e_j,  j = argmin g_j,  or 0 if no g_j is negative

    The set is the part of the l1 ball of radius ``total`` in the positive orthant: a budget that need not be spent entirely. A
    call is one pass over g, and the vertex is two numbers. The diameter is sqrt(2) total (total in one dimension). Ties go to
    0, then to the smallest j.

    Parameters
    ----------
    total : float
        A positive number.
    shape : int or tuple of int, optional
        Shape of the points. Default: any.

    References
    ----------
    Jaggi (2013), Revisiting Frank-Wolfe: projection-free sparse convex optimization, ICML.

    Examples
    --------
    >>> C = UnitSimplex(2.0)
    >>> C.lmo(np.array([1.0, -3.0])).to_array(), C.lmo(np.array([1.0, 3.0])).to_array()
    (array([0., 2.]), array([0., 0.]))
    """

    total: float = 1.0
    shape: tuple[int, ...] | None = None

    def __post_init__(self):
        self._fix(total=checks.positive("UnitSimplex", "total", self.total))

    def lmo(self, g: np.ndarray) -> Coordinate:
        j = int(g.argmin())  # argmin finds a NaN first; an infinity is the smallest or the largest entry
        least = float(g.flat[j])
        refuse_non_finite(self, least, float(g.max()))
        return Coordinate(j, self.total, g.shape) if least < 0 else Coordinate(0, 0.0, g.shape)

    def contains(self, x: np.ndarray, tol: float = 1e-9) -> bool:
        """Whether x_j >= -tol total, and the sum is at most total (1 + tol)."""
        return float(x.sum(dtype=np.float64)) <= self.total * (1 + tol) and float(x.min()) >= -tol * self.total

    @property
    def diameter(self) -> float:
        return self.total if self.shape is not None and math.prod(self.shape) == 1 else math.sqrt(2) * self.total

    def start(self) -> np.ndarray:
        return np.zeros(self._known_shape("start()"))

    def project(self, x: np.ndarray) -> np.ndarray:
        """max(x, 0) if its sum is at most total, otherwise the nearest point of the simplex."""
        y = np.maximum(x, 0.0)
        inside = float(y.sum(dtype=np.float64)) <= self.total
        return y if inside else bounds.nearest(x, 0.0, self.total, self.total)

    def away(self, g: np.ndarray, x: np.ndarray) -> Coordinate:
        """total e_j at the largest g_j where x_j > 0, or 0 if that is better and sum x < total, both up to 1e-12 total."""
        used = bounds.support(self._with_slack(x), self.total)
        j = int(np.where(used, np.append(g, 0.0), -np.inf).argmax())
        return Coordinate(j, self.total, x.shape) if j < x.size else Coordinate(0, 0.0, x.shape)

    def max_step(self, x: np.ndarray, s: Vertex, a: Vertex) -> float:
        """The largest t <= 1 with x + t (s - a) >= 0 and a sum of at most total."""
        d = (s.to_array() - a.to_array()).reshape(-1)
        return longest_step(self._with_slack(x), np.append(d, -d.sum()))

    def compiled(self) -> CompiledOracle:
        """The oracle for compiled loops."""
        return CompiledOracle("unit", self.total)

    def spikes(self) -> Spikes:
        return Spikes(0.0, self.total, origin=True)

    def _with_slack(self, x: np.ndarray) -> np.ndarray:
        """x with the unspent amount as one more entry: a point of the simplex of one more dimension."""
        return np.append(x, float_of(x).type(self.total - x.sum(dtype=np.float64)))


@dataclass(frozen=True, eq=False, repr=False)
class Box(bounds.BoxFaced):
    """A box: every entry between its own bounds.

        {x : lower <= x <= upper},   lmo(g)_j = lower_j if g_j > 0 else upper_j

    A call is one pass over g, and the vertex is dense. The diameter is |upper - lower|. With a given sum, use `BudgetBox`.

    Parameters
    ----------
    lower, upper : float or array
        Finite bounds with lower <= upper; one number holds for every entry.
    shape : int or tuple of int, optional
        Shape of the points. Default: the shape of the bounds if they are arrays, otherwise any.

    Examples
    --------
    >>> Box(0.0, [1.0, 2.0]).lmo(np.array([3.0, -4.0])).to_array()
    array([0., 2.])
    """

    lower: Any
    upper: Any
    shape: tuple[int, ...] | None = None

    def __post_init__(self):
        lower, upper = numbers("Box", "lower", self.lower), numbers("Box", "upper", self.upper)
        self._fix(lower=lower, upper=upper)
        self._fix(shape=bounds.common_shape("Box", self.shape, lower=lower, upper=upper))
        if not (lower <= upper).all():
            raise InputError("`Box(lower=..., upper=...)` must have lower <= upper everywhere")

    def lmo(self, g: np.ndarray) -> DenseVertex:
        refuse_non_finite(self, float(np.abs(g).max()))
        return DenseVertex(np.where(g <= 0, self.upper, self.lower).astype(float_of(g), copy=False))

    def contains(self, x: np.ndarray, tol: float = 1e-9) -> bool:
        """Whether lower <= x <= upper, up to tol times the size of the larger bound."""
        slack = tol * np.maximum(np.abs(self.lower), np.abs(self.upper))
        return bool((x >= self.lower - slack).all() and (x <= self.upper + slack).all())

    @property
    def diameter(self) -> float:
        return float(np.linalg.norm(np.broadcast_to(self.upper - self.lower, self._known_shape("diameter")).reshape(-1)))

    def start(self) -> np.ndarray:
        return np.broadcast_to(self.lower + (self.upper - self.lower) / 2, self._known_shape("start()")).copy()

    def project(self, x: np.ndarray) -> np.ndarray:
        """clip(x, lower, upper)."""
        return np.clip(x, self.lower, self.upper)

    def compiled(self) -> CompiledOracle:
        """The oracle for compiled loops."""
        return CompiledOracle("corner", lower=self.lower, upper=self.upper)

    def limits(self) -> tuple[np.ndarray, np.ndarray]:
        """lower and upper."""
        return self.lower, self.upper
