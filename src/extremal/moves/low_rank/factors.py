"""Minimise over the factors of a matrix: a smooth problem, as large as the factors.

The nuclear norm is half of the least squared length of two factors,

    |X|_* = min of (|left|^2 + |right|^2) / 2   over all   left right' = X,

attained by left = U diag(s)^(1/2), right = V diag(s)^(1/2) for X = U diag(s) V'. Over the matrices of some rank in a nuclear
ball, f is therefore f(left right') over a Euclidean ball of the pair (Srebro, Rennie, Jaakkola 2005). This problem is not
convex, but its solutions lie in the nuclear ball, and the gap certifies how good they are.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal.objectives.base import Objective
from extremal.points.factored import FactoredMatrix
from extremal.points.iterates import freeze
from extremal.points.matrix import Iterate
from extremal.quadratic.search import first_decrease
from extremal.support import linalg

SMALLER = 0.9  # a slope below this share counts as smaller
EPS = float(np.finfo(np.float64).eps)
CURVED = 1e-10  # a step says nothing about the curvature if its cosine with the change of the slope is smaller
PAIRS = 6  # changes that define the inverse Hessian
ROOM = 2**25  # numbers that all changes together may take; three are always kept
TIGHT = 1e-9  # a pair is on the sphere if its length is this close, relatively


@dataclass(frozen=True)
class Decomposition:
    """X = left diag(values) right', a singular value decomposition without its zeros, in float64."""

    left: np.ndarray  # m x r, orthonormal
    values: np.ndarray  # r, decreasing
    right: np.ndarray  # n x r, orthonormal

    @classmethod
    def of(cls, x: Iterate) -> Decomposition:
        """Decompose an array, or a matrix in factors."""
        if isinstance(x, FactoredMatrix):
            return cls.of_pair(*(a.astype(np.float64) for a in x.factors()))
        u, s, vt = linalg.svd(np.asarray(x, np.float64), full_matrices=False)
        return cls(u, s, vt.T)._trimmed()

    @classmethod
    def of_pair(cls, left: np.ndarray, right: np.ndarray) -> Decomposition:
        """Decompose left right' in O((m + n) r^2)."""
        (q1, r1), (q2, r2) = np.linalg.qr(left), np.linalg.qr(right)
        u, s, vt = linalg.svd(r1 @ r2.T, full_matrices=False)
        return cls(q1 @ u, s, q2 @ vt.T)._trimmed()

    def _trimmed(self) -> Decomposition:
        keep = self.values > 1e-14 * self.values.max(initial=0.0)
        return Decomposition(self.left[:, keep], self.values[keep], self.right[:, keep])

    def within(self, radius: float) -> Decomposition:
        """The same with a sum of values of at most ``radius``."""
        total = float(self.values.sum())
        return self if total <= radius else Decomposition(self.left, self.values * (radius / total), self.right)


def product_like(left: np.ndarray, right: np.ndarray, like: Iterate) -> Any:
    """left right' in factors, or as an array, whichever ``like`` is."""
    if isinstance(like, FactoredMatrix):
        return FactoredMatrix(left.astype(like.dtype), right.astype(like.dtype))
    return freeze((left @ right.T).astype(like.dtype, copy=False))


@dataclass(frozen=True)
class FactorPoint:
    """A pair of factors, concatenated into a vector, and f there."""

    pair: np.ndarray  # a vector of length (m + n) r
    value: float  # f
    slope: np.ndarray  # the gradient; tangential if the pair is on the sphere and f falls outward
    tight: bool  # whether the slope is tangential


@dataclass(frozen=True)
class FactorProblem:
    """h(left, right) = f(left right') over |left|^2 + |right|^2 <= 2 radius.

        grad h = (G right, G' left),   G = grad f(left right')

    A value with its gradient costs those of f, and 2 r products with G.
    """

    f: Objective
    radius: float
    like: np.ndarray  # an iterate, in the form that f expects

    def split(self, pair: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Left and right, as views."""
        m, n = self.like.shape
        rank = len(pair) // (m + n)
        return pair[: m * rank].reshape(m, rank), pair[m * rank :].reshape(n, rank)

    def balanced(self, x: Decomposition) -> np.ndarray:
        """The shortest pair with this product."""
        roots = np.sqrt(x.values)
        return np.concatenate([(x.left * roots).reshape(-1), (x.right * roots).reshape(-1)])

    def at(self, pair: np.ndarray) -> FactorPoint:
        """f at a pair, and its slope."""
        left, right = self.split(pair)
        value, G = self.f.value_and_grad(product_like(left, right, self.like))
        slope = np.concatenate([np.asarray(G @ right, np.float64).reshape(-1), np.asarray(G.T @ left, np.float64).reshape(-1)])
        weight = -float(np.vdot(slope, pair)) / (2 * self.radius)
        tight = weight > 0 and float(np.vdot(pair, pair)) >= 2 * self.radius * (1 - TIGHT)
        if tight:
            slope += weight * pair
        return FactorPoint(pair, value, slope, tight)

    def move(self, place: FactorPoint, d: np.ndarray, t: float) -> FactorPoint:
        """The point at the pair nearest to pair + t d."""
        pair = place.pair + t * d
        size2 = float(np.vdot(pair, pair))
        if size2 > 2 * self.radius:
            pair *= math.sqrt(2 * self.radius / size2)
        return self.at(pair)


class FactorMemory:
    """An inverse Hessian from the last changes of the point and the slope: L-BFGS (Liu, Nocedal 1989)."""

    def __init__(self, size: int, scale: float):
        most = max(3, min(PAIRS, ROOM // (2 * size + 1)))
        self._pairs: deque[tuple[np.ndarray, np.ndarray, float]] = deque(maxlen=most)
        self._scale = scale

    def direction(self, g: np.ndarray) -> np.ndarray:
        """-H g, by two passes over the pairs."""
        d, parts = -g, []
        for s, y, sy in reversed(self._pairs):
            parts.append(float(np.vdot(s, d)) / sy)
            d -= parts[-1] * y
        d *= self._scale
        for s, y, sy in self._pairs:
            d += (parts.pop() - float(np.vdot(y, d)) / sy) * s
        return d

    def learn(self, old: FactorPoint, new: FactorPoint) -> None:
        """Add a step; a step that leaves or reaches the sphere clears the memory instead."""
        if old.tight != new.tight:
            self._pairs.clear()
            return
        s, y = new.pair - old.pair, new.slope - old.slope
        sy, yy = float(np.vdot(s, y)), float(np.vdot(y, y))
        if yy > 0 and sy > CURVED * math.sqrt(yy) * float(np.linalg.norm(s)):
            self._pairs.append((s, y, sy))
            self._scale = sy / yy


def descend_factors(
    problem: FactorProblem, place: FactorPoint, scale: float, share: float, limit: int
) -> tuple[FactorPoint, bool]:
    """Descend until the slope is a ``share`` of its first value or no step lowers f; return also whether the limit was reached.

    ``scale`` is the length of the first step, in units of the slope. Each of at most ``limit`` steps takes one value and
    gradient of f, and so does each trial of a step that was too long.
    """
    memory, wanted = FactorMemory(len(place.pair), scale), share * float(np.linalg.norm(place.slope))
    ceiling = place.value + EPS * abs(place.value)
    for _ in range(limit):
        d = memory.direction(place.slope)
        if place.tight:
            d -= float(np.vdot(d, place.pair)) / (2 * problem.radius) * place.pair
        new = _search(problem, place, d, ceiling)
        if new is None:
            return place, False
        memory.learn(place, new)
        place = new
        if float(np.linalg.norm(place.slope)) <= wanted:
            return place, False
    return place, True


def _search(problem: FactorProblem, place: FactorPoint, d: np.ndarray, ceiling: float) -> FactorPoint | None:
    """The first of d, d/4, d/16, ... with a sufficient decrease of f, or of the slope if the values differ only by rounding."""
    slope = float(np.vdot(d, place.slope))

    def look(t: float) -> tuple[float, FactorPoint]:
        new = problem.move(place, d, t)
        close = new.value <= min(ceiling, place.value + EPS * abs(place.value))
        enough = close and abs(float(np.vdot(d, new.slope))) <= -SMALLER * slope
        return -math.inf if enough else new.value, new

    found = first_decrease(look, place.value, slope, shorter=0.25, least=1e-6, blur=0.0) if slope < 0 else None
    return None if found is None else found[2]
