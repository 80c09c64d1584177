"""Balls of norms that single out the k largest entries."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from extremal import checks
from extremal.points.plain import Coordinate, DenseVertex
from extremal.points.vertex import Vertex
from extremal.sets.answers import few, largest, peak, signs, unit
from extremal.sets.norms.base import NormBall


@dataclass(frozen=True, eq=False, repr=False)
class KSupportBall(NormBall):
    """The k-support ball: the convex hull of all unit vectors, times the radius, with at most k entries that are not zero.

        conv {x : |x|_0 <= k, |x|_2 <= radius},   lmo(g) = -radius g_S / |g_S|,  S = the k largest |g_j|

    A selection, O(dimension), and a vertex of k numbers. Diameter 2 radius. Ties go to the smallest indices, and g = 0 to
    radius e_0. The norm is sqrt(sum_{i <= k-r-1} a_i^2 + (sum_{i > k-r-1} a_i)^2 / (r+1)), a being the magnitudes in
    falling order and r the one of 0, ..., k-1 that fits; the k largest are sorted for it.

    Parameters
    ----------
    radius : float
        Positive.
    k : int
        At least 1 (the l1 ball), at most the dimension (the l2 ball).
    shape : int or tuple of int, optional
        Shape of the points; any if left out.
    centre : array, optional
        The ball's centre; 0 if left out. It gives the shape.

    References
    ----------
    Argyriou, Foygel, Srebro (2012), Sparse prediction with the k-support norm, NeurIPS.

    Examples
    --------
    >>> KSupportBall(1.0, k=2).lmo(np.array([3.0, 1.0, -4.0])).to_array()
    array([-0.6,  0. ,  0.8])
    """

    k: int

    def __post_init__(self):
        _fix_k(self)

    def _norm(self, a: np.ndarray) -> float:
        # each r whose mean is at most a_{k-r-1} gives the value of a feasible point of the dual: the one that fits, the largest
        k = min(self.k, len(a))
        rest, head = np.split(np.partition(a, len(a) - k), [len(a) - k])
        head, count = np.sort(head), np.arange(1, k + 1)  # rising, so that those that join the rest are the first r + 1
        mean = (rest.sum() + np.cumsum(head)) / count
        squares = np.append(np.cumsum(head[::-1] ** 2)[::-1][1:], 0.0)
        return math.sqrt((squares + mean**2 * count)[mean <= np.append(head[1:], np.inf)].max())

    def _extreme(self, g: np.ndarray) -> Vertex:
        u = unit(self, g)
        S = largest(np.abs(u), self.k)
        size = math.sqrt(float(u[S] @ u[S]))
        return Coordinate(0, self.radius, g.shape) if size == 0 else few(S, u[S] * (-self.radius / size), g.shape)

    def _reach(self) -> float:
        return 1.0


@dataclass(frozen=True, eq=False, repr=False)
class KSparseBall(NormBall):
    """The k-sparse polytope: every entry in [-radius, radius], and magnitudes that sum to k radius at most.

        {x : max_j |x_j| <= radius, sum_j |x_j| <= k radius},   lmo(g) = -radius sign(g_S),  S = the k largest |g_j|

    A selection, O(dimension), and a vertex of k numbers. Diameter 2 radius sqrt(k): |x|_2^2 <= max_j |x_j| sum_j |x_j|. Ties
    go to the smallest indices; entries of S where g_j = 0 are ``radius``. The norm is max(|x|_inf, |x|_1 / k).

    Parameters
    ----------
    radius : float
        Positive.
    k : int
        At least 1 (the l1 ball), at most the dimension (the maximum-norm ball).
    shape : int or tuple of int, optional
        Shape of the points; any if left out.
    centre : array, optional
        The ball's centre; 0 if left out. It gives the shape.

    References
    ----------
    Besançon, Carderera, Pokutta (2022), FrankWolfe.jl, INFORMS Journal on Computing 34, arXiv:2104.06675 (KSparseLMO).

    Examples
    --------
    >>> KSparseBall(2.0, k=2).lmo(np.array([3.0, 1.0, -4.0])).to_array()
    array([-2.,  0.,  2.])
    """

    k: int

    def __post_init__(self):
        _fix_k(self)

    def _norm(self, a: np.ndarray) -> float:
        return max(a.max(), a.sum() / self.k)

    def _extreme(self, g: np.ndarray) -> Vertex:
        u = unit(self, g)
        S = largest(np.abs(u), self.k)
        return few(S, np.where(u[S] > 0, -self.radius, self.radius), g.shape)

    def _reach(self) -> float:
        return math.sqrt(self.k)


@dataclass(frozen=True, eq=False, repr=False)
class KNormBall(NormBall):
    """The ball of the k-norm: a budget on the sum of the k largest magnitudes.

        {x : |x|_(1) + ... + |x|_(k) <= radius},
        lmo(g) = -radius sign(g_j) e_j, j = argmax |g_j|, if max_j |g_j| >= |g|_1 / k, else -(radius / k) sign(g)

    A few passes over g; the vertex is two numbers or dense. Diameter 2 radius max(1, sqrt(dimension) / k): the vertices are
    of these two kinds. Ties go to the smallest j. Membership takes a selection, O(dimension).

    Parameters
    ----------
    radius : float
        Positive.
    k : int
        At least 1 (the maximum-norm ball), at most the dimension (the l1 ball).
    shape : int or tuple of int, optional
        Shape of the points; any if left out.
    centre : array, optional
        The ball's centre; 0 if left out. It gives the shape.

    References
    ----------
    Besançon, Carderera, Pokutta (2022), FrankWolfe.jl, INFORMS Journal on Computing 34, arXiv:2104.06675 (KNormBallLMO).

    Examples
    --------
    >>> KNormBall(4.0, k=2).lmo(np.array([3.0, 2.0, -2.0])).to_array()
    array([-2., -2.,  2.])
    """

    k: int

    def __post_init__(self):
        _fix_k(self)

    def _norm(self, a: np.ndarray) -> float:
        return a.sum() if self.k >= len(a) else np.partition(a, len(a) - self.k)[len(a) - self.k :].sum()

    def _extreme(self, g: np.ndarray) -> DenseVertex | Coordinate:
        a = np.abs(unit(self, g))
        if self.k >= g.size or (self.k > 1 and a.max() >= a.sum() / self.k):  # for k = 1 no e_j is extreme, for k = d only they
            return peak(self, g, self.radius)
        return signs(self, g, self.radius / self.k)

    def _reach(self) -> float:
        return max(1.0, math.sqrt(math.prod(self._known_shape("diameter"))) / self.k)


def _fix_k(C: KSupportBall | KSparseBall | KNormBall) -> None:
    C._fix_ball()
    C._fix(k=checks.whole(type(C).__name__, "k", C.k, 1, None if C.shape is None else math.prod(C.shape)))
