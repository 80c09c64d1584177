"""Chains: entries in rising or falling order."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.points.vertex import DenseVertex, Vertex
from extremal.quadratic.polyhedral import Inequalities
from extremal.quadratic.search import longest_step
from extremal.sets.base import ConvexSet
from extremal.sets.shared import float_of, numbers, scaled_gradient
from extremal.sets.simplices import bounds


@dataclass(frozen=True, eq=False, repr=False)
class Monotone(ConvexSet):
    """The chain polytope: sequences between two bounds that never decrease (or never increase), as in isotonic regression.

        {x : lower <= x_1 <= x_2 <= ... <= x_d <= upper}
        lmo(g) = lower before an index, upper from it on; the index has the smallest sum of the g_j from it on

    A call is one pass of sums over g, and the vertex is dense. There are d + 1 vertices, so the set is a simplex. Arrays are
    ordered as in ``reshape(-1)``. Ties go to the vertex with the fewest entries ``lower``. The diameter is (upper - lower)
    sqrt(dimension).

    Parameters
    ----------
    lower, upper : float
        Finite bounds with lower <= upper.
    increasing : bool
        False for upper >= x_1 >= ... >= x_d >= lower.
    shape : int or tuple of int, optional
        Shape of the points. Default: any.

    References
    ----------
    Best, Chakravarti (1990), Active set algorithms for isotonic regression; a unifying framework, Mathematical Programming 47
    (the projection: pool adjacent violators).

    Examples
    --------
    >>> Monotone(0.0, 1.0).lmo(np.array([1.0, -2.0, 0.5, -1.0])).to_array()
    array([0., 1., 1., 1.])
    """

    lower: float
    upper: float
    increasing: bool = True
    shape: tuple[int, ...] | None = None

    def __post_init__(self):
        lower = float(numbers("Monotone", "lower", self.lower, "one number"))
        upper = float(numbers("Monotone", "upper", self.upper, "one number"))
        self._fix(lower=lower, upper=upper, increasing=checks.flag("Monotone", "increasing", self.increasing))
        if lower > upper:
            raise InputError(f"`Monotone(lower=..., upper=...)` must have lower <= upper, got {lower} and {upper}")

    def lmo(self, g: np.ndarray) -> DenseVertex:
        return self._vertex(int(self._tails(g).argmin()), g.shape)

    def contains(self, x: np.ndarray, tol: float = 1e-9) -> bool:
        """Whether lower <= x_1 <= ... <= x_d <= upper, each up to tol times the size of the larger bound."""
        return bool((self._gaps(x) >= -tol * max(abs(self.lower), abs(self.upper))).all())

    @property
    def diameter(self) -> float:
        return (self.upper - self.lower) * math.sqrt(math.prod(self._known_shape("diameter")))

    def start(self) -> np.ndarray:
        """The barycentre: equal steps from lower to upper."""
        shape = self._known_shape("start()")
        steps = np.linspace(self.lower, self.upper, math.prod(shape) + 2)[1:-1]
        return self._turned(steps).reshape(shape).copy()

    def project(self, x: np.ndarray) -> np.ndarray:
        """Pool adjacent violators, then clip: O(d)."""
        from scipy.optimize import isotonic_regression

        pooled = isotonic_regression(x.reshape(-1).astype(np.float64), increasing=self.increasing).x
        return np.clip(pooled, self.lower, self.upper).reshape(x.shape)

    def away(self, g: np.ndarray, x: np.ndarray) -> DenseVertex:
        """The vertex with the largest <g, v> among those that jump where x does, by more than 1e-12 of the bounds' size."""
        jumps = bounds.support(self._gaps(x), max(abs(self.lower), abs(self.upper)))
        return self._vertex(int(np.where(jumps, self._tails(g), -np.inf).argmax()), x.shape)

    def max_step(self, x: np.ndarray, s: Vertex, a: Vertex) -> float:
        """The largest t <= 1 with x + t (s - a) in the set."""
        return longest_step(self._gaps(x), self._gaps(s.to_array()) - self._gaps(a.to_array()))

    def inequalities(self) -> Inequalities:
        """The bounds, and x_j <= x_{j + 1} for neighbours."""
        size = math.prod(self._known_shape("inequalities()"))
        steps = np.eye(size - 1, size) - np.eye(size - 1, size, k=1)
        return Inequalities.of(size, steps if self.increasing else -steps, np.zeros(size - 1), lower=self.lower, upper=self.upper)

    def _turned(self, x: np.ndarray) -> np.ndarray:
        return x.reshape(-1) if self.increasing else x.reshape(-1)[::-1]

    def _gaps(self, x: np.ndarray) -> np.ndarray:
        """x_1 - lower, x_2 - x_1, ..., upper - x_d: divided by upper - lower, the weights of the d + 1 vertices."""
        kind = float_of(x).type
        return np.diff(self._turned(x), prepend=kind(self.lower), append=kind(self.upper))

    def _tails(self, g: np.ndarray) -> np.ndarray:
        """The sums of g_j, ..., g_d for all j, and 0: <g, v> of the vertices, up to a factor and a constant."""
        u = self._turned(scaled_gradient(self, g)[0])
        return np.append(np.cumsum(u[::-1])[::-1], 0.0)

    def _vertex(self, j: int, shape: tuple[int, ...]) -> DenseVertex:
        """lower on j entries, then upper."""
        v = np.full(math.prod(shape), self.lower)
        v[j:] = self.upper
        return DenseVertex(self._turned(v).reshape(shape))
