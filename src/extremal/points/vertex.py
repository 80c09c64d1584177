"""Answers of oracles: the contract of a vertex, and vertices with one entry, a few, or all of them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np


def dot64(a: np.ndarray, b: np.ndarray) -> float:
    """<a, b>, summed in float64 for any type of array, because gaps are differences of such sums.

    Matrices that are not arrays (factored, or known at some positions only) have a method ``inner`` for this. Arrays of
    fractions are summed as they are.
    """
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        if a.dtype.kind == "O" or b.dtype.kind == "O":
            return (a * b).sum()
        return float(np.vdot(a.astype(np.float64, copy=False), b.astype(np.float64, copy=False)))
    return b.inner(a) if isinstance(a, np.ndarray) else a.inner(b)


class Vertex(Protocol):
    """An extreme point, stored as compactly as its structure allows."""

    @property
    def shape(self) -> tuple[int, ...]: ...  # shape of the vertex as an array
    @property
    def norm2(self) -> float: ...  # |v|^2
    @property
    def key(self) -> Hashable: ...  # equal for equal vertices: active sets find atoms by it
    @property
    def low(self) -> float | None: ...  # a proven bound, <g, s> >= low for all s in the set; None if <g, v> is that bound
    def dot(self, g: np.ndarray) -> float: ...  # <g, v>
    def add_to(self, x: np.ndarray, w: float) -> None: ...  # x += w v, in place
    def to_array(self) -> np.ndarray: ...  # a fresh dense copy


def least(v: Vertex, g: np.ndarray) -> float:
    """A lower bound of <g, s> over the set: <g, v> for the answer v of an exact oracle, its proven bound otherwise."""
    return v.dot(g) if v.low is None else v.low


@dataclass(frozen=True, slots=True)
class Coordinate:
    """A multiple of a unit vector, v = value * e_j: two numbers in any dimension.

    Examples
    --------
    >>> import numpy as np
    >>> v = Coordinate(1, -2.0, (3,))
    >>> v.dot(np.array([5.0, 7.0, 9.0])), v.to_array()
    (-14.0, array([ 0., -2.,  0.]))
    """

    j: int  # flat index of the non-zero entry
    value: float  # the entry
    shape: tuple[int, ...]  # shape of the vertex as an array
    low: float | None = field(default=None, repr=False, compare=False)  # see `Vertex`

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
class SparseVertex:
    """A vertex with a few non-zero entries: v[indices] = values, zero elsewhere.

    Examples
    --------
    >>> import numpy as np
    >>> v = SparseVertex(np.array([0, 2]), np.array([1.0, -1.0]), (4,))
    >>> v.dot(np.array([5.0, 7.0, 9.0, 1.0])), v.to_array()
    (-4.0, array([ 1.,  0., -1.,  0.]))
    """

    indices: np.ndarray  # flat indices, increasing and distinct
    values: np.ndarray  # the entries at these indices
    shape: tuple[int, ...]  # shape of the vertex as an array
    low: float | None = field(default=None, repr=False, compare=False)  # see `Vertex`

    @property
    def norm2(self) -> float:
        """|v|^2."""
        return dot64(self.values, self.values)

    @property
    def key(self) -> Hashable:
        """The bytes of the indices and of the values."""
        return np.asarray(self.indices, np.int64).tobytes(), (self.values + 0.0).tobytes()

    def dot(self, g: np.ndarray) -> float:
        """<g, v>: one product per non-zero."""
        return dot64(g.flat[self.indices], self.values)

    def add_to(self, x: np.ndarray, w: float) -> None:
        """x += w v in place: one sum per non-zero."""
        x.flat[self.indices] += (w * self.values).astype(x.dtype, copy=False)

    def to_array(self) -> np.ndarray:
        """A dense copy."""
        out = np.zeros(self.shape)
        out.flat[self.indices] = self.values
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
    low: float | None = field(default=None, repr=False, compare=False)  # see `Vertex`

    @property
    def norm2(self) -> float:
        """|v|^2."""
        return self.dot(self.values)

    @property
    def key(self) -> Hashable:
        """The bytes of the entries, with -0.0 as 0.0."""
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
