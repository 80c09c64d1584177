"""Balls of norms: all x whose norm is at most ``radius``, around 0 or around a centre."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal.points.vertex import Coordinate, DenseVertex
from extremal.sets.base import Spikes, refuse_non_finite
from extremal.sets.norms.base import NormBall, ProjectableBall, p_norm
from extremal.sets.norms.cross import CrossPolytope
from extremal.sets.norms.faces import FacedBall
from extremal.sets.shared import CompiledOracle, float_of, one_number, peak, positive_numbers, signs, unit
from extremal.sets.simplices.bounds import BoxFaced, shrunk

SMALL_NORM, LARGE_NORM = 1e-200, 1e200  # between these, a sum of magnitudes keeps all its digits


@dataclass(frozen=True, eq=False, repr=False)
class L1Ball(CrossPolytope):
    """The l1 ball: a budget on the sum of magnitudes, with sparse solutions.

        {x : sum_j |x_j| <= radius},   lmo(g) = -radius sign(g_j) e_j,  j = argmax |g_j|

    A call reads each entry of g once, and the vertex is two numbers. The diameter is 2 radius. Ties go to the smallest j, and
    g = 0 gives radius e_0. `project` sorts the entries within ``radius`` of the largest.

    Parameters
    ----------
    radius, shape, centre
        As for `NormBall`: the radius is positive. Defaults: any shape, and centre 0.

    References
    ----------
    Jaggi (2013), Revisiting Frank-Wolfe: projection-free sparse convex optimization, ICML.
    Duchi, Shalev-Shwartz, Singer, Chandra (2008), Efficient projections onto the l1-ball for learning in high dimensions, ICML.

    Examples
    --------
    >>> L1Ball(2.0).lmo(np.array([1.0, -3.0])).to_array()
    array([0., 2.])
    """

    def norm(self, x: np.ndarray) -> float:
        """The sum of |x_j|, in float64; entries are scaled only if their sum is near the ends of float64."""
        with np.errstate(over="ignore"):
            size = float(np.abs(x, dtype=np.float64).sum())
        return size if size == 0.0 or SMALL_NORM < size < LARGE_NORM else super().norm(x)

    def _norm(self, a: np.ndarray) -> float:
        return a.sum()

    def _extreme(self, g: np.ndarray) -> Coordinate:
        return peak(self, g, self.radius)

    def _reach(self) -> float:
        return 1.0

    def _nearest(self, y: np.ndarray) -> np.ndarray:
        return np.copysign(shrunk(np.abs(y).reshape(-1), np.ones(y.size), self.radius).reshape(y.shape), y)

    def _reaches(self) -> np.ndarray:
        return np.asarray(self.radius)

    def spikes(self) -> Spikes | None:
        return Spikes(-self.radius, self.radius, origin=True) if self.centre is None else None

    def compiled(self) -> CompiledOracle | None:
        """The oracle for compiled loops, if the centre is 0."""
        return CompiledOracle("peak", self.radius) if self.centre is None else None


@dataclass(frozen=True, eq=False, repr=False)
class L2Ball(FacedBall, ProjectableBall):
    """The Euclidean ball.

        {x : |x|_2 <= radius},   lmo(g) = -radius g / |g|

    A call is one pass over g, and the vertex is dense. The diameter is 2 radius. g = 0 gives radius e_0.

    Parameters
    ----------
    radius, shape, centre
        As for `NormBall`: the radius is positive. Defaults: any shape, and centre 0.

    References
    ----------
    Combettes, Pokutta (2021), Complexity of linear minimization and projection on some sets, arXiv:2101.10040.

    Examples
    --------
    >>> L2Ball(1.0).lmo(np.array([3.0, -4.0])).to_array()
    array([-0.6,  0.8])
    """

    def _norm(self, a: np.ndarray) -> float:
        return math.sqrt(a @ a)

    def _extreme(self, g: np.ndarray) -> DenseVertex | Coordinate:
        top = float(np.abs(g).max())
        refuse_non_finite(self, top)
        if top == 0:
            return Coordinate(0, self.radius, g.shape)
        u = g / top  # scaled first, so that squares neither overflow nor vanish
        return DenseVertex(u * (-self.radius / math.sqrt(float(np.vdot(u, u)))))

    def _reach(self) -> float:
        return 1.0

    def _nearest(self, y: np.ndarray) -> np.ndarray:
        u = y / np.abs(y).max()
        return u * (self.radius / math.sqrt(float(np.vdot(u, u))))

    def _worst(self, g: np.ndarray, y: np.ndarray, noise: float) -> DenseVertex:
        return DenseVertex(self._nearest(y).reshape(g.shape))  # a point on the sphere is a face of its own


@dataclass(frozen=True, eq=False, repr=False)
class LinfBall(BoxFaced, ProjectableBall):
    """The maximum-norm ball: every entry lies in [-radius, radius].

        {x : max_j |x_j| <= radius},   lmo(g) = -radius sign(g)  (radius where g_j = 0)

    A call is one pass over g, and the vertex is dense. The diameter is 2 radius sqrt(dimension). For other bounds see `Box`.

    Parameters
    ----------
    radius, shape, centre
        As for `NormBall`: the radius is positive. Defaults: any shape, and centre 0.

    References
    ----------
    Combettes, Pokutta (2021), Complexity of linear minimization and projection on some sets, arXiv:2101.10040.

    Examples
    --------
    >>> LinfBall(2.0).lmo(np.array([3.0, -4.0])).to_array()
    array([-2.,  2.])
    """

    def _norm(self, a: np.ndarray) -> float:
        return a.max()

    def _extreme(self, g: np.ndarray) -> DenseVertex:
        return signs(self, g, self.radius)

    def _reach(self) -> float:
        return math.sqrt(math.prod(self._known_shape("diameter")))

    def _nearest(self, y: np.ndarray) -> np.ndarray:
        return np.clip(y, -self.radius, self.radius)

    def limits(self) -> tuple[np.ndarray, np.ndarray]:
        """centre - radius and centre + radius."""
        centre = np.asarray(0.0 if self.centre is None else self.centre)
        return centre - self.radius, centre + self.radius

    def compiled(self) -> CompiledOracle:
        """The oracle for compiled loops."""
        centre = 0.0 if self.centre is None else self.centre
        return CompiledOracle("corner", lower=centre - self.radius, upper=centre + self.radius)


@dataclass(frozen=True, eq=False, repr=False)
class LpBall(NormBall):
    """The ball of the p-norm, for any p from 1 to infinity.

        {x : (sum_j |x_j|^p)^(1/p) <= radius},   lmo(g) = -radius sign(g) t / |t|_p,  t_j = |g_j|^(1/(p-1))

    A call is one pass over g with a power of each entry, and the vertex is dense. For p = 1 and p = infinity the answers are
    those of `L1Ball` and `LinfBall`. The diameter is 2 radius for p <= 2, and 2 radius dimension^(1/2 - 1/p) for larger p.
    g = 0 gives radius e_0 if p is finite.

    Parameters
    ----------
    radius, shape, centre
        As for `NormBall`: the radius is positive. Defaults: any shape, and centre 0.
    p : float
        At least 1; ``math.inf`` is allowed.

    References
    ----------
    Combettes, Pokutta (2021), Complexity of linear minimization and projection on some sets, arXiv:2101.10040.

    Examples
    --------
    >>> LpBall(1.0, p=1.5).lmo(np.array([0.0, -4.0])).to_array()
    array([0., 1.])
    >>> LpBall(1.0, p=4, shape=16).diameter
    4.0
    """

    p: float

    def __post_init__(self):
        super().__post_init__()
        self._fix(p=one_number("LpBall", "p", self.p, "a number of at least 1 (math.inf is one)", lambda p: p >= 1))

    def _norm(self, a: np.ndarray) -> float:
        return p_norm(a, self.p)

    def _extreme(self, g: np.ndarray) -> DenseVertex | Coordinate:
        if self.p == math.inf:
            return signs(self, g, self.radius)
        first = peak(self, g, self.radius)
        top = abs(float(g.flat[first.j]))
        if self.p == 1 or top == 0:
            return first
        t = (np.abs(g.astype(np.float64)) / top) ** (1 / (self.p - 1))
        t *= self.radius / p_norm(t, self.p)
        return DenseVertex(np.where(g > 0, -t, t).astype(float_of(g), copy=False))

    def _reach(self) -> float:
        # |x|_2 <= |x|_p for p <= 2, with equality at e_j. For p > 2, the mean of x_j^2 is at most the mean of |x_j|^p to the
        # power 2/p (Jensen), with equality if all magnitudes are equal.
        return 1.0 if self.p <= 2 else math.prod(self._known_shape("diameter")) ** (0.5 - 1 / self.p)


@dataclass(frozen=True, eq=False, repr=False)
class WeightedL1Ball(CrossPolytope):
    """The l1 ball with a weight for each entry.

        {x : sum_j weights_j |x_j| <= radius},   lmo(g) = -(radius / weights_j) sign(g_j) e_j,  j = argmax |g_j| / weights_j

    A call is a few passes over g, and the vertex is two numbers. The diameter is 2 radius / min weights, because
    |x|_2 <= sum_j |x_j|. Ties go to the smallest j, and g = 0 to entry 0. `project` sorts the entries that may stay nonzero.

    Parameters
    ----------
    radius, shape, centre
        As for `NormBall`: the radius is positive. Defaults: the shape of the weights, and centre 0.
    weights : array
        Positive weights, in the shape of the points.

    References
    ----------
    Candès, Wakin, Boyd (2008), Enhancing sparsity by reweighted l1 minimization, Journal of Fourier Analysis and
    Applications 14.

    Examples
    --------
    >>> WeightedL1Ball(2.0, weights=[1.0, 4.0]).lmo(np.array([1.0, -3.0])).to_array()
    array([-2.,  0.])
    """

    weights: Any

    def __post_init__(self):
        super().__post_init__()
        self._fix(weights=positive_numbers("WeightedL1Ball", "weights", self.weights))
        self._fit("weights", self.weights.shape)

    def _norm(self, a: np.ndarray) -> float:
        return a @ self.weights.reshape(-1)

    def _extreme(self, g: np.ndarray) -> Coordinate:
        u, w = unit(self, g), self.weights.reshape(-1)
        j = int((np.abs(u) / w).argmax())
        return Coordinate(j, float((-1 if u[j] > 0 else 1) * self.radius / w[j]), g.shape)

    def _reach(self) -> float:
        return 1 / float(self.weights.min())

    def _nearest(self, y: np.ndarray) -> np.ndarray:
        return np.copysign(shrunk(np.abs(y).reshape(-1), self.weights.reshape(-1), self.radius).reshape(y.shape), y)

    def _reaches(self) -> np.ndarray:
        return self.radius / self.weights.reshape(-1)

    def spikes(self) -> Spikes | None:
        return Spikes(-self._reaches(), self._reaches(), origin=True) if self.centre is None else None

    def compiled(self) -> CompiledOracle | None:
        """The oracle for compiled loops, if the centre is 0."""
        return CompiledOracle("weighted", self.radius, self.weights) if self.centre is None else None
