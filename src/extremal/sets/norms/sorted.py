"""Balls of norms whose oracles select or sort magnitudes: the k largest, ordered weights, a mixture of l1 and l2."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.points.vertex import Coordinate, DenseVertex, Vertex
from extremal.sets.base import brief_array
from extremal.sets.norms.base import NormBall
from extremal.sets.norms.bounded_l1 import BoundedL1Ball
from extremal.sets.norms.faces import FacedBall
from extremal.sets.shared import few, largest, numbers, one_number, peak, signs, unit


@dataclass(frozen=True, eq=False, repr=False)
class KBall(NormBall):
    """The ball of a norm with a number k, from 1 to the dimension."""

    k: int

    def __post_init__(self):
        super().__post_init__()
        most = None if self.shape is None else math.prod(self.shape)
        self._fix(k=checks.whole(type(self).__name__, "k", self.k, 1, most))


@dataclass(frozen=True, eq=False, repr=False)
class KSupportBall(KBall):
    """The k-support ball: the convex hull of all vectors of norm ``radius`` with at most k nonzero entries.

        conv {x : |x|_0 <= k, |x|_2 <= radius},   lmo(g) = -radius g_S / |g_S|,  S = the k largest |g_j|

    A call is a selection, O(dimension), and the vertex is k numbers. The diameter is 2 radius. Ties go to the smallest
    indices, and g = 0 gives radius e_0. The norm is sqrt(sum_{i <= k-r-1} a_i^2 + (sum_{i > k-r-1} a_i)^2 / (r+1)). Here a
    holds the magnitudes in falling order, and r is the one index of 0, ..., k-1 that fits; the k largest are sorted to find r.

    Parameters
    ----------
    radius, shape, centre
        As for `NormBall`: the radius is positive. Defaults: any shape, and centre 0.
    k : int
        From 1 (the l1 ball) to the dimension (the l2 ball).

    References
    ----------
    Argyriou, Foygel, Srebro (2012), Sparse prediction with the k-support norm, NeurIPS.

    Examples
    --------
    >>> KSupportBall(1.0, k=2).lmo(np.array([3.0, 1.0, -4.0])).to_array()
    array([-0.6,  0. ,  0.8])
    """

    def _norm(self, a: np.ndarray) -> float:
        # each r whose mean is at most a_{k-r-1} gives the value of a feasible point of the dual; the r that fits gives the
        # largest
        k = min(self.k, len(a))
        rest, head = np.split(np.partition(a, len(a) - k), [len(a) - k])
        head, count = np.sort(head), np.arange(1, k + 1)  # rising, so that the first r + 1 join the rest
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
class KSparseBall(KBall, FacedBall):
    """The k-sparse polytope: every entry in [-radius, radius], and the sum of magnitudes at most k radius.

        {x : max_j |x_j| <= radius, sum_j |x_j| <= k radius},   lmo(g) = -radius sign(g_S),  S = the k largest |g_j|

    A call is a selection, O(dimension), and the vertex is k numbers. The diameter is 2 radius sqrt(k), because
    |x|_2^2 <= max_j |x_j| sum_j |x_j|. Ties go to the smallest indices; entries of S where g_j = 0 are ``radius``. The norm is
    max(|x|_inf, |x|_1 / k).

    Parameters
    ----------
    radius, shape, centre
        As for `NormBall`: the radius is positive. Defaults: any shape, and centre 0.
    k : int
        From 1 (the l1 ball) to the dimension (the maximum-norm ball).

    References
    ----------
    Besançon, Carderera, Pokutta (2022), FrankWolfe.jl, INFORMS Journal on Computing 34, arXiv:2104.06675 (KSparseLMO).

    Examples
    --------
    >>> KSparseBall(2.0, k=2).lmo(np.array([3.0, 1.0, -4.0])).to_array()
    array([-2.,  0.,  2.])
    """

    def _norm(self, a: np.ndarray) -> float:
        return max(a.max(), a.sum() / self.k)

    def _extreme(self, g: np.ndarray) -> Vertex:
        u = unit(self, g)
        S = largest(np.abs(u), self.k)
        return few(S, np.where(u[S] > 0, -self.radius, self.radius), g.shape)

    def _reach(self) -> float:
        return math.sqrt(self.k)

    def _worst(self, g: np.ndarray, y: np.ndarray, noise: float) -> Vertex:
        return self._polytope.worst(g, y.reshape(g.shape), noise)

    def max_step(self, x: np.ndarray, s: Vertex, a: Vertex) -> float:
        """The largest t <= 1 with norm(x + t (s - a) - centre) <= radius, up to rounding."""
        return self._polytope.longest(self._centred(x), (s.to_array() - a.to_array()).reshape(-1), self._noise(x))

    @property
    def _polytope(self) -> BoundedL1Ball:
        return BoundedL1Ball(self.k * self.radius, -self.radius, self.radius)


@dataclass(frozen=True, eq=False, repr=False)
class KNormBall(KBall):
    """The ball of the k-norm: a budget on the sum of the k largest magnitudes.

        {x : |x|_(1) + ... + |x|_(k) <= radius},
        lmo(g) = -radius sign(g_j) e_j, j = argmax |g_j|, if max_j |g_j| >= |g|_1 / k, else -(radius / k) sign(g)

    A call is a few passes over g, and the vertex is two numbers or dense. The diameter is 2 radius
    max(1, sqrt(dimension) / k), because all vertices are of these two kinds. Ties go to the smallest j. Membership takes a
    selection, O(dimension).

    Parameters
    ----------
    radius, shape, centre
        As for `NormBall`: the radius is positive. Defaults: any shape, and centre 0.
    k : int
        From 1 (the maximum-norm ball) to the dimension (the l1 ball).

    References
    ----------
    Besançon, Carderera, Pokutta (2022), FrankWolfe.jl, INFORMS Journal on Computing 34, arXiv:2104.06675 (KNormBallLMO).

    Examples
    --------
    >>> KNormBall(4.0, k=2).lmo(np.array([3.0, 2.0, -2.0])).to_array()
    array([-2., -2.,  2.])
    """

    def _norm(self, a: np.ndarray) -> float:
        return a.sum() if self.k >= len(a) else np.partition(a, len(a) - self.k)[len(a) - self.k :].sum()

    def _extreme(self, g: np.ndarray) -> DenseVertex | Coordinate:
        a = np.abs(unit(self, g))
        if self.k >= g.size or (self.k > 1 and a.max() >= a.sum() / self.k):  # for k = 1 no e_j is extreme, for k = d only those
            return peak(self, g, self.radius)
        return signs(self, g, self.radius / self.k)

    def _reach(self) -> float:
        return max(1.0, math.sqrt(math.prod(self._known_shape("diameter"))) / self.k)


@dataclass(frozen=True, eq=False, repr=False)
class OwlBall(NormBall):
    """The ball of the ordered weighted l1 norm (OWL, SLOPE): larger magnitudes weigh more.

        {x : sum_i weights_i |x|_(i) <= radius},   lmo(g) = -(radius / W_k) sign(g_S),  S = the k largest |g_j|,
        W_k = weights_1 + ... + weights_k,  k = argmax (|g|_(1) + ... + |g|_(k)) / W_k

    |x|_(1) >= |x|_(2) >= ... are the magnitudes in falling order. A call is a sort, O(dimension log dimension). The vertex is
    k numbers of equal magnitude. The diameter is 2 radius max_k sqrt(k) / W_k, because all vertices are of this kind. Ties go
    to the smallest k and the smallest indices.

    Parameters
    ----------
    radius, shape, centre
        As for `NormBall`: the radius is positive. Defaults: vectors as long as the weights, and centre 0.
    weights : array
        One weight per entry: not increasing, not negative, and the first one positive.

    References
    ----------
    Zeng, Figueiredo (2014), The ordered weighted l1 norm: atomic formulation, projections, and algorithms, arXiv:1409.4271.
    Bogdan, van den Berg, Sabatti, Su, Candès (2015), SLOPE: adaptive variable selection via convex optimization, Annals of
    Applied Statistics 9.

    Examples
    --------
    >>> OwlBall(3.0, weights=[2.0, 1.0, 1.0]).lmo(np.array([3.0, 1.0, -4.0])).to_array()
    array([-1.,  0.,  1.])
    """

    weights: Any

    def __post_init__(self):
        super().__post_init__()
        w = numbers("OwlBall", "weights", self.weights, "an array of numbers")
        if w.ndim > 1 or (w < 0).any() or w[0] == 0 or (np.diff(w) > 0).any():
            wanted = "a list of numbers that do not increase, 0 or more, the first above 0"
            raise InputError(f"`OwlBall(weights=...)` must be {wanted}, got {brief_array(self.weights)}")
        self._fix(weights=w, shape=w.shape if self.shape is None else self.shape)
        entries = math.prod(self._known_shape("weights"))
        if len(w) != entries:
            raise InputError(f"`OwlBall(weights=...)` must be one for each of the {entries} entries, got {len(w)}")

    def _norm(self, a: np.ndarray) -> float:
        return np.sort(a)[::-1] @ self.weights

    def _extreme(self, g: np.ndarray) -> Vertex:
        u = unit(self, g)
        a = np.abs(u)
        gain = np.where(self._sizes(), np.cumsum(np.sort(a)[::-1]) / np.cumsum(self.weights), -1.0)
        k = int(gain.argmax()) + 1
        S, size = largest(a, k), self.radius / float(self.weights[:k].sum())
        return few(S, np.where(u[S] > 0, -size, size), g.shape)

    def _sizes(self) -> np.ndarray:
        """Whether vertices can have k = 1, 2, ... entries. k > 1 needs weights_k < weights_1; k < d needs weights_(k+1) > 0."""
        w = self.weights
        return np.append(True, w[1:] < w[0]) & np.append(w[1:] > 0, True)

    def _reach(self) -> float:
        return float((np.sqrt(np.arange(1, len(self.weights) + 1)) / np.cumsum(self.weights)).max())


@dataclass(frozen=True, eq=False, repr=False)
class ElasticBall(NormBall):
    """The ball of a mixture of the l1 and the l2 norm.

        {x : l1_ratio |x|_1 + (1 - l1_ratio) |x|_2 <= radius},   lmo(g) = -radius z / norm(z),
        z_j = sign(g_j) max(|g_j| - l1_ratio t, 0),  t >= 0 the smallest with |z|_2 <= (1 - l1_ratio) t

    A call is a few passes over g and a sort of the entries that may be above l1_ratio t. The vertex is zero where
    |g_j| <= l1_ratio t. The diameter is 2 radius: the norm is at least |x|_2, and equal to it at e_j. g = 0 gives radius e_0.

    Parameters
    ----------
    radius, shape, centre
        As for `NormBall`: the radius is positive. Defaults: any shape, and centre 0.
    l1_ratio : float
        From 0 (the l2 ball) to 1 (the l1 ball).

    References
    ----------
    Ndiaye, Fercoq, Gramfort, Salmon (2016), GAP safe screening rules for sparse-group lasso, arXiv:1602.06225 (the dual
    norm t, there called the epsilon-norm).

    Examples
    --------
    >>> ElasticBall(2.0, l1_ratio=0.5).lmo(np.array([1.0, -5.0])).to_array().round(12)
    array([0., 2.])
    """

    l1_ratio: float

    def __post_init__(self):
        super().__post_init__()
        self._fix(l1_ratio=one_number("ElasticBall", "l1_ratio", self.l1_ratio, "a number in [0, 1]", lambda c: 0 <= c <= 1))

    def _norm(self, a: np.ndarray) -> float:
        return self.l1_ratio * float(a.sum()) + (1 - self.l1_ratio) * math.sqrt(a @ a)

    def _extreme(self, g: np.ndarray) -> Vertex:
        u = unit(self, g)
        a = np.abs(u)
        if self.l1_ratio == 1 or not a.any():
            return peak(self, g, self.radius)
        low = max(float(a.max()), float(a @ a) / self._norm(a))  # <= t, by <g, x> <= t norm(x) for x = e_j and x = g
        last, more = _support(np.sort(a[a >= self.l1_ratio * low * (1 - 1e-12)])[::-1], self.l1_ratio)
        S = np.flatnonzero(a >= last)
        z = (a[S] - last) + more
        return few(S, np.where(u[S] > 0, -z, z) * (self.radius / self._norm(z)), g.shape)

    def _reach(self) -> float:
        return 1.0


def _support(b: np.ndarray, ratio: float) -> tuple[float, float]:
    """The last entry b_m of b, in falling order, that is above ratio t, and its excess y = b_m - ratio t.

    t is the smallest number with |max(b - ratio t, 0)|_2 <= (1 - ratio) t. The square of that norm is D + 2 E y + m y^2. Here
    E is sum_{i <= m} (b_i - b_m), and D is the sum of the squares of these terms. All terms are positive, so no digits are lost
    if ratio is close to 1. b_m is above ratio t if and only if ratio^2 D < (1 - ratio)^2 b_m^2.
    """
    before, fall = np.arange(len(b)), -np.diff(b, prepend=b[0])
    E = np.cumsum(before * fall)
    D = np.cumsum(fall * (2 * E - before * fall))
    one, two = ratio**2, (1 - ratio) ** 2
    m = int(np.count_nonzero(one * D < two * b**2))
    last = float(b[m - 1])
    e, c = one * float(E[m - 1]) + two * last, two * last**2 - one * float(D[m - 1])
    return last, c / (e + math.sqrt(max(e * e + (one * m - two) * c, 0.0)))  # y: (one m - two) y^2 + 2 e y = c
