"""Balls that know their faces: the worst vertex of the smallest face that holds a point, and the longest step to the boundary."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from extremal.points.vertex import Vertex
from extremal.sets.norms.base import NormBall
from extremal.support.lazy import imported


@dataclass(frozen=True, eq=False, repr=False)
class FacedBall(NormBall):
    """A ball that knows its faces; a class has `_worst`, the answer on the boundary of the ball around 0.

    Inside the ball, the smallest face is the whole ball, and the worst vertex is opposite to the best one.
    """

    @abstractmethod
    def _worst(self, g: np.ndarray, y: np.ndarray, noise: float) -> Vertex:
        """The vertex with the largest <g, v> of the smallest face that holds y; |y| is 1 radius, up to a share ``noise``."""

    def away(self, g: np.ndarray, x: np.ndarray) -> Vertex:
        """The vertex with the largest <g, v> of the smallest face that holds x, up to rounding."""
        y, noise = self._centred(x), self._noise(x)
        if self.norm(y) < (1.0 - noise) * self.radius:
            return self.lmo(-g)
        return self._placed(self._worst(g, y, noise))

    def max_step(self, x: np.ndarray, s: Vertex, a: Vertex) -> float:
        """The largest t <= 1 with norm(x + t (s - a) - centre) <= radius, up to rounding: about ten norms."""
        y, u, v = self._centred(x), self._centred(s.to_array()), self._centred(a.to_array())
        return longest_in_ball(lambda t: self.norm(y + t * (u - v)), self.radius, self._noise(x), self._share(y, v))

    def _share(self, y: np.ndarray, v: np.ndarray) -> float:
        """A share of the vertex v in the mixture y, if there is one: a step of this length away from v drops it."""
        return 0.0


def longest_in_ball(norm: Callable[[float], float], radius: float, noise: float, drop: float = 0.0) -> float:
    """The largest t <= 1 with norm(t) <= radius, for a convex function with norm(0) <= radius, up to rounding.

    Along a face of the ball, the norm is constant up to ``drop``, where it begins to rise: rounding must not end the step before.

    Examples
    --------
    >>> round(longest_in_ball(lambda t: abs(3.0 * t - 1.0), 1.0, 1e-12), 9)
    0.666666667
    """
    edge = (1.0 + noise) * radius
    if norm(1.0) <= edge:
        return 1.0
    there = norm(drop)
    if (1.0 - noise) * radius <= there <= edge and drop > 0.0:
        return drop
    low, start = (drop, there) if there < radius else (0.0, norm(0.0))
    if start >= edge:
        return 0.0
    level = radius if start < radius else edge
    return float(imported("scipy.optimize").brentq(lambda t: norm(t) - level, low, 1.0, xtol=1e-15, rtol=1e-15))


def longest_in_l1(y: np.ndarray, d: np.ndarray, weights: np.ndarray, spent: float, radius: float, noise: float) -> float:
    """The largest t <= 1 with sum_j weights_j |y_j + t d_j| <= radius; ``spent`` is the sum at t = 0.

    The sum is linear between the signs of entries, so the steps end exactly, up to a share ``noise`` of the radius.

    Examples
    --------
    >>> import numpy as np
    >>> longest_in_l1(np.array([-0.5, 0.5]), np.array([4.0, 0.0]), np.ones(2), 1.0, 1.0, 1e-12)
    0.25
    """
    moved = np.flatnonzero(d)
    if moved.size == 0:
        return 1.0
    w, y, d = weights[moved], y[moved], d[moved]
    rest, noise = radius - max(0.0, spent - float(w @ np.abs(y))), noise * radius  # what the moved entries may spend
    breaks = -y / d
    t = 0.0
    for end in np.append(np.sort(breaks[(breaks > 0.0) & (breaks < 1.0)]), 1.0):
        now, there = (float(w @ np.abs(y + share * d)) for share in (t, end))
        if there > rest + noise:
            return t if now >= rest else float(min(end, t + (rest - now) * (end - t) / (there - now)))
        t = float(end)
    return t
