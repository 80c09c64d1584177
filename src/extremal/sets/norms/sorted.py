"""Balls of norms whose oracles sort: ordered weights, and a mixture of l1 and l2."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal.checks import InputError
from extremal.points.vertex import Vertex
from extremal.sets.answers import few, largest, peak, unit
from extremal.sets.arguments import numbers, one_number
from extremal.sets.base import brief_array
from extremal.sets.norms.base import NormBall


@dataclass(frozen=True, eq=False, repr=False)
class OwlBall(NormBall):
    """The ball of the ordered weighted l1 norm (OWL, SLOPE): larger magnitudes weigh more.

        {x : sum_i weights_i |x|_(i) <= radius},   lmo(g) = -(radius / W_k) sign(g_S),  S = the k largest |g_j|,
        W_k = weights_1 + ... + weights_k,  k = argmax (|g|_(1) + ... + |g|_(k)) / W_k

    |x|_(1) >= |x|_(2) >= ... are the magnitudes in falling order. A sort, O(dimension log dimension), and a vertex of k
    numbers that are equal but for their signs. Diameter 2 radius max_k sqrt(k) / W_k: all vertices are of this kind. Ties go
    to the smallest k and indices.

    Parameters
    ----------
    radius : float
        Positive.
    weights : array
        One for each entry, not increasing, not negative, the first one positive.
    shape : int or tuple of int, optional
        Shape of the points; (number of weights,) if left out.
    centre : array, optional
        The ball's centre; 0 if left out.

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
        self._fix_ball()
        w = numbers("OwlBall", "weights", self.weights, "an array of numbers")
        if w.ndim > 1 or (w < 0).any() or w[0] == 0 or (np.diff(w) > 0).any():
            wanted = "a list of numbers that do not increase, 0 or more, the first above 0"
            raise InputError(f"`OwlBall(weights=...)` must be {wanted}, got {brief_array(self.weights)}")
        self._fix(weights=w)
        self._fit_size("weights", len(w))

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
        """Whether vertices have 1, 2, ... entries: not several if all these weigh the same, and all if the others weigh 0."""
        w = self.weights
        return np.append(True, w[1:] < w[0]) & np.append(w[1:] > 0, True)

    def _reach(self) -> float:
        return float((np.sqrt(np.arange(1, len(self.weights) + 1)) / np.cumsum(self.weights)).max())


@dataclass(frozen=True, eq=False, repr=False)
class ElasticBall(NormBall):
    """The ball of a mixture of the l1 and the l2 norm.

        {x : l1_ratio |x|_1 + (1 - l1_ratio) |x|_2 <= radius},   lmo(g) = -radius z / norm(z),
        z_j = sign(g_j) max(|g_j| - l1_ratio t, 0),  t >= 0 the smallest with |z|_2 <= (1 - l1_ratio) t

    A few passes over g and a sort of the entries that may be above l1_ratio t; the vertex is zero where |g_j| <= l1_ratio t.
    Diameter 2 radius: the norm is |x|_2 at least, and equal to it at e_j. g = 0 gives radius e_0.

    Parameters
    ----------
    radius : float
        Positive.
    l1_ratio : float
        From 0 (the l2 ball) to 1 (the l1 ball).
    shape : int or tuple of int, optional
        Shape of the points; any if left out.
    centre : array, optional
        The ball's centre; 0 if left out. It gives the shape.

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
        self._fix_ball()
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
    """The last entry of b, in falling order, that is above ratio t, and by how much: y = b_m - ratio t.

    t is the smallest with |max(b - ratio t, 0)|_2 <= (1 - ratio) t. The square of that norm is D + 2 E y + m y^2, E being
    sum_{i <= m} (b_i - b_m) and D the sum of these squares: of positive terms, so that no digits are lost where ratio is next
    to 1. b_m is above ratio t if and only if ratio^2 D < (1 - ratio)^2 b_m^2.
    """
    before, fall = np.arange(len(b)), -np.diff(b, prepend=b[0])
    E = np.cumsum(before * fall)
    D = np.cumsum(fall * (2 * E - before * fall))
    one, two = ratio**2, (1 - ratio) ** 2
    m = int(np.count_nonzero(one * D < two * b**2))
    last = float(b[m - 1])
    e, c = one * float(E[m - 1]) + two * last, two * last**2 - one * float(D[m - 1])
    return last, c / (e + math.sqrt(max(e * e + (one * m - two) * c, 0.0)))  # y: (one m - two) y^2 + 2 e y = c
