"""What an oracle answers: extreme points, kept as small as their structure allows.

A vertex v offers ``dot(g)`` = <g, v>, ``add_to(x, w)`` (x += w v, in place), ``norm2`` = |v|^2, ``key``
(hashable, equal for equal vertices: active sets look atoms up by it) and ``to_array()``.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Protocol

import numpy as np


def dot64(a: np.ndarray, b: np.ndarray) -> float:
    """<a, b>, summed in float64 whatever the arrays hold: gaps are differences of such sums."""
    return float(np.vdot(a.astype(np.float64, copy=False), b.astype(np.float64, copy=False)))


class Vertex(Protocol):
    """The contract of an oracle's answer."""

    @property
    def norm2(self) -> float: ...  # |v|^2
    @property
    def key(self) -> Hashable: ...  # equal for equal vertices
    def dot(self, g: np.ndarray) -> float: ...  # <g, v>
    def add_to(self, x: np.ndarray, w: float) -> None: ...  # x += w v, in place
    def to_array(self) -> np.ndarray: ...  # a fresh dense copy


@dataclass(frozen=True, slots=True)
class Coordinate:
    """A multiple of a unit vector: v = value * e_j. Two numbers, whatever the dimension.

    Examples
    --------
    >>> import numpy as np
    >>> v = Coordinate(1, -2.0, (3,))
    >>> v.dot(np.array([5.0, 7.0, 9.0])), v.to_array()
    (-14.0, array([ 0., -2.,  0.]))
    """

    j: int  # flat index of the non-zero entry
    value: float  # that entry
    shape: tuple[int, ...]  # shape of the vertex as an array

    @property
    def norm2(self) -> float:
        """|v|^2."""
        return self.value * self.value

    @property
    def key(self) -> Hashable:
        """Index and value."""
        return self.j, self.value

    def dot(self, g: np.ndarray) -> float:
        """<g, v>, O(1)."""
        return self.value * float(g.flat[self.j])

    def add_to(self, x: np.ndarray, w: float) -> None:
        """x += w v in place, O(1)."""
        x.flat[self.j] += w * self.value

    def to_array(self) -> np.ndarray:
        """A dense copy."""
        out = np.zeros(self.shape)
        out.flat[self.j] = self.value
        return out


@dataclass(frozen=True)
class DenseVertex:
    """A vertex without structure: all its entries, as on a Euclidean ball or a box.

    Examples
    --------
    >>> import numpy as np
    >>> DenseVertex(np.array([3.0, -4.0])).norm2
    25.0
    """

    values: np.ndarray

    @property
    def norm2(self) -> float:
        """|v|^2."""
        return self.dot(self.values)

    @property
    def key(self) -> Hashable:
        """The entries' bytes, with one kind of zero."""
        return (self.values + 0.0).tobytes()

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the vertex as an array."""
        return self.values.shape

    def dot(self, g: np.ndarray) -> float:
        """<g, v>."""
        return dot64(g, self.values)

    def add_to(self, x: np.ndarray, w: float) -> None:
        """x += w v in place."""
        x += w * self.values

    def to_array(self) -> np.ndarray:
        """A dense copy."""
        return self.values.copy()
