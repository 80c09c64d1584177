"""Balls whose vertices lie on the axes, in both directions, and their faces."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from extremal.points.composed import Combination
from extremal.points.vertex import Coordinate, DenseVertex, Vertex
from extremal.sets.norms.base import ProjectableBall
from extremal.sets.shared import float_of
from extremal.sets.simplices.bounds import rounding


class CrossPolytope(ProjectableBall):
    """A weighted l1 ball: its vertices are centre +- reach_j e_j, and the norm is sum_j |x_j| radius / reach_j.

    On the boundary, the smallest face that holds x has the vertices sign(x_j) reach_j e_j where x_j is not 0. Inside, it is the
    whole ball, and the worst vertex is opposite to the best one.
    """

    @abstractmethod
    def _reaches(self) -> np.ndarray:
        """The distance of the vertices from the centre along each axis; one number if all are equal."""

    def away(self, g: np.ndarray, x: np.ndarray) -> Vertex:
        """The vertex with the largest <g, v> of the smallest face that holds x, up to rounding."""
        y, reaches = self._centred(x), self._reaches()
        noise = self._noise(x)
        if self.norm(y) < (1.0 - noise) * self.radius:
            return self.lmo(-g)
        score = np.where(np.abs(y) > noise * reaches, np.sign(y) * reaches * g.reshape(-1), -np.inf)
        j = int(score.argmax())
        v = Coordinate(j, float(np.sign(y[j]) * np.broadcast_to(reaches, y.shape)[j]), g.shape)
        return v if self.centre is None else Combination(((1.0, v), (1.0, DenseVertex(self.centre))))

    def max_step(self, x: np.ndarray, s: Vertex, a: Vertex) -> float:
        """The largest t <= 1 with norm(x + t (s - a) - centre) <= radius, up to rounding; the norm is linear between breaks."""
        d = (s.to_array() - a.to_array()).reshape(-1)
        moved = np.flatnonzero(d)
        if moved.size == 0:
            return 1.0
        y, reaches = self._centred(x), self._reaches()
        w = self.radius / np.broadcast_to(reaches, y.shape)[moved]
        rest = self.radius - max(0.0, self.norm(y) - float(w @ np.abs(y[moved])))  # what the moved entries may spend
        y, d, noise = y[moved], d[moved], self._noise(x) * self.radius
        breaks = -y / d
        ends = np.append(np.sort(breaks[(breaks > 0.0) & (breaks < 1.0)]), 1.0)
        t = 0.0
        for end in ends:
            now, there = (float(w @ np.abs(y + share * d)) for share in (t, end))
            if there > rest + noise:
                return t if now >= rest else min(float(end), t + (rest - now) * (end - t) / (there - now))
            t = float(end)
        return t

    def _noise(self, x: np.ndarray) -> float:
        """The share of the radius that is rounding: a point near a far centre has lost digits."""
        far = 0.0 if self.centre is None else self.norm(self.centre.reshape(-1)) / self.radius
        return rounding(x) + 8.0 * float(np.finfo(float_of(x)).eps) * far

    def _centred(self, x: np.ndarray) -> np.ndarray:
        """x - centre, flat and in float64."""
        return (x.astype(np.float64) - (0.0 if self.centre is None else self.centre)).reshape(-1)
