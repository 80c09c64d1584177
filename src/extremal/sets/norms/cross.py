"""Balls whose vertices lie on the axes, in both directions, and their faces."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from extremal.points.vertex import Coordinate, Vertex
from extremal.sets.norms.base import ProjectableBall
from extremal.sets.norms.faces import FacedBall, longest_in_l1


class CrossPolytope(FacedBall, ProjectableBall):
    """A weighted l1 ball: its vertices are centre +- reach_j e_j, and the norm is sum_j |x_j| radius / reach_j.

    On the boundary, the smallest face that holds x has the vertices sign(x_j) reach_j e_j where x_j is not 0. Inside, it is the
    whole ball, and the worst vertex is opposite to the best one.
    """

    @abstractmethod
    def _reaches(self) -> np.ndarray:
        """The distance of the vertices from the centre along each axis; one number if all are equal."""

    def _worst(self, g: np.ndarray, y: np.ndarray, noise: float) -> Coordinate:
        reaches = self._reaches()
        score = np.where(np.abs(y) > noise * reaches, np.sign(y) * reaches * g.reshape(-1), -np.inf)
        j = int(score.argmax())
        return Coordinate(j, float(np.sign(y[j]) * np.broadcast_to(reaches, y.shape)[j]), g.shape)

    def max_step(self, x: np.ndarray, s: Vertex, a: Vertex) -> float:
        """The largest t <= 1 with norm(x + t (s - a) - centre) <= radius, up to rounding; the norm is linear between breaks."""
        y, d = self._centred(x), (s.to_array() - a.to_array()).reshape(-1)
        weights = self.radius / np.broadcast_to(self._reaches(), y.shape)
        return longest_in_l1(y, d, weights, self.norm(y), self.radius, self._noise(x))
