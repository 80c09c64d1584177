"""Objectives with values and gradients only, for Newton steps: the Hessian is learnt from gradients."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal.objectives.base import Objective, Segment
from extremal.objectives.column_blocks import Slice
from extremal.points.composed import Chord
from extremal.points.vertex import DenseVertex, Vertex

HELD_NUMBERS = 2**22  # numbers of component gradients held at once


class Secants:
    """f with x itself instead of margins: a `MarginModel` of the identity, whose first Hessian is a guess.

        H = (1/n) sum_i g_i g_i',   g_i the gradient of component i

    The guess has the right units of the coordinates, and for sums of losses of one margin also the right directions. Corrections
    by the change of the gradient (BFGS) turn it into the Hessian step by step. Cost: n component gradients for the guess, d^2
    memory.
    """

    convex = False  # no shortcut of linear models applies
    deriv_shape = ()
    known = None

    def __init__(self, f: Objective):
        self.f, self.n, self.shape, self.dtype = f, f.n, f.shape, f.dtype

    def margins(self, x: np.ndarray) -> np.ndarray:
        return x.reshape(-1).astype(np.float64, copy=False)

    def vertex_margins(self, s: Vertex) -> np.ndarray:
        return s.to_array().reshape(-1).astype(np.float64, copy=False)

    def between(self, z: np.ndarray, dz: np.ndarray) -> Segment:
        x, d = (a.reshape(self.shape).astype(self.dtype, copy=False) for a in (z, dz))
        return self.f.along(x, Chord(0.0, ((1.0, DenseVertex(d)),)))

    def grad(self, z: np.ndarray) -> np.ndarray:
        return np.asarray(self.f.grad(z.reshape(self.shape).astype(self.dtype, copy=False)), np.float64).reshape(-1)

    def on_columns(self, W: np.ndarray) -> Slice:
        return _All(self, W)

    def change(self, z: np.ndarray, new: np.ndarray) -> np.ndarray:
        return new - z

    def length(self, dz: np.ndarray) -> float:
        return math.sqrt(float(np.square(dz).mean()))

    def guess(self, x: np.ndarray) -> np.ndarray:
        """The mean of g_i g_i'; g g' if component gradients are not arrays of the shape of x."""
        d, H = x.size, np.zeros((x.size, x.size))
        x = x.reshape(self.shape).astype(self.dtype, copy=False)
        if self.f.deriv_shape != self.shape:
            g = self.grad(x)
            return np.outer(g, g)
        size = max(1, HELD_NUMBERS // d)
        for start in range(0, self.n, size):
            rows = self.f.derivs(x, np.arange(start, min(start + size, self.n))).reshape(-1, d).astype(np.float64, copy=False)
            H += rows.T @ rows
        return H / self.n


@dataclass(frozen=True)
class _All(Slice):
    """All coordinates."""

    f: Secants

    def of(self, f: Any) -> Slice:
        return _All(f, self.W)

    def dot(self, d: np.ndarray) -> np.ndarray:
        return d

    def hessian(self, z: np.ndarray, far: bool = False, width: float = 0.0) -> np.ndarray:
        """The guess, with some curvature in every direction."""
        H = self.f.guess(z)
        H.flat[:: len(H) + 1] *= 1.0 + 1e-6
        return H
