"""Quadratic functions of x in the place of a linear model: values and gradients without a row."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from extremal.objectives.base import Parabola, Segment
from extremal.objectives.column_blocks import Slice
from extremal.points.vertex import Vertex


class CentredQuadratic(ABC):
    """A quadratic function around a centre, as a `MarginModel` of the identity: x itself takes the place of the margins.

    q(c + d) = q(c) + <g, d> + d'Hd / 2,   grad q(c + d) = g + H d
    """

    shape: tuple[int, ...]
    c: np.ndarray  # the centre
    value: float  # q(c)
    g: np.ndarray  # grad q(c)

    dtype = np.dtype(np.float64)
    convex = True
    deriv_shape = ()

    @property
    def known(self) -> np.ndarray | None:
        """The only columns on which H is known; None for all."""
        return None

    @abstractmethod
    def bent(self, d: np.ndarray) -> np.ndarray:
        """H d."""

    def look(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """q(x) and its gradient, without a row."""
        d = x - self.c
        bent = self.bent(d)
        return self.value + float(d @ self.g) + 0.5 * float(d @ bent), self.g + bent

    def value_grad_margins(self, x: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """q(x), its gradient, and x."""
        return *self.look(x), x

    def margins(self, x: np.ndarray) -> np.ndarray:
        return x

    def vertex_margins(self, s: Vertex) -> np.ndarray:
        return s.to_array()

    def change(self, z: np.ndarray, new: np.ndarray) -> np.ndarray:
        return new - z

    def length(self, dz: np.ndarray) -> float:
        """The root mean square of the change of the margins."""
        return math.sqrt(max(float(dz @ self.bent(dz)), 0.0))

    def between(self, z: np.ndarray, dz: np.ndarray) -> Segment:
        value, g = self.look(z)
        return Parabola(value, float(g @ dz), float(dz @ self.bent(dz)))

    def tail_ratio(self, z: np.ndarray) -> float:
        """Infinite: q is not like a sum of exponentials."""
        return math.inf

    @abstractmethod
    def on_columns(self, W: np.ndarray) -> Slice: ...


@dataclass(frozen=True)
class SliceOfQuadratic(Slice):
    """Some coordinates of a quadratic function, whose Hessian is the same everywhere."""

    @property
    def constant(self) -> bool:
        return True

    def dot(self, d: np.ndarray) -> np.ndarray:
        x = np.zeros(self.f.shape)
        x[self.W] = d
        return x
