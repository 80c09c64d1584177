"""Points made of vertices: sums, and an iterate and some more."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

import numpy as np

from extremal.points.vertex import Vertex


@dataclass(frozen=True)
class Combination:
    """A sum of vertices with coefficients, v = sum_i c_i v_i: what scaled, shifted and summed sets answer.

    Examples
    --------
    >>> import numpy as np
    >>> from extremal.points import Coordinate, DenseVertex
    >>> v = Combination(((2.0, Coordinate(0, 1.0, (2,))), (1.0, DenseVertex(np.array([1.0, 1.0])))))
    >>> v.to_array(), v.norm2, v.dot(np.array([1.0, 10.0]))
    (array([3., 1.]), 10.0, 13.0)
    """

    terms: tuple[tuple[float, Vertex], ...]  # (c_i, v_i), at least one
    low: float | None = None  # <g, s> >= low for all s of the set, if an oracle that answered is not exact

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the vertex as an array."""
        return self.terms[0][1].shape

    @property
    def norm2(self) -> float:
        """|v|^2."""
        return self.dot(self.to_array())

    @property
    def key(self) -> Hashable:
        """Coefficients and keys."""
        return tuple((c, v.key) for c, v in self.terms)

    def dot(self, g: np.ndarray) -> float:
        """<g, v> = sum_i c_i <g, v_i>."""
        return sum(c * v.dot(g) for c, v in self.terms)

    def add_to(self, x: np.ndarray, w: float) -> None:
        """x += w v in place."""
        for c, v in self.terms:
            v.add_to(x, w * c)

    def to_array(self) -> np.ndarray:
        """A dense copy."""
        out = np.zeros(self.shape)
        self.add_to(out, 1.0)
        return out


@dataclass(frozen=True)
class Chord:
    """A direction that x and vertices span, d = own x + sum_j c_j v_j, such that x + d is the farthest point allowed.

    A step toward s has own = -1 and the term (1, s); one away from a, as far as t, has own = t and (-t, a); a pairwise one
    has own = 0, (t, s) and (-t, a). What rules ask of d is computed from the terms, without subtracting points that are near.
    """

    own: float  # coefficient of x
    terms: tuple[tuple[float, Vertex], ...]  # (c_j, v_j)

    @classmethod
    def to(cls, s: Vertex | Chord) -> Chord:
        """The chord from x to a vertex; a chord stays as it is."""
        return s if isinstance(s, Chord) else cls(-1.0, ((1.0, s),))

    def image(self, x: np.ndarray, of: Callable[[Vertex], np.ndarray]) -> np.ndarray:
        """What a linear map makes of d, given what it makes of x and of each vertex."""
        total = np.zeros_like(x) if self.own == 0 else self.own * x
        for c, v in self.terms:
            total = total + c * of(v) if c != 1 else total + of(v)
        return total

    def dot(self, g: np.ndarray, x: float) -> float:
        """<g, d>, given <g, x>."""
        return self.own * x + sum(c * v.dot(g) for c, v in self.terms)

    def norm2(self) -> float:
        """|sum_j c_j v_j|^2."""
        if len(self.terms) == 1:
            c, v = self.terms[0]
            return c * c * v.norm2
        return Combination(self.terms).norm2
