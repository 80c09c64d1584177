"""Points composed of vertices: sums of vertices, an iterate plus vertices, and one vertex per block of a product of sets."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from extremal.points.vertex import Coordinate, DenseVertex, SparseVertex, Vertex, least

Place: TypeAlias = tuple[int | slice, ...]  # the index of a block in a point: x[place] is a view of the block


@dataclass(frozen=True)
class Combination:
    """A sum of vertices with coefficients, v = sum_i c_i v_i: the answer of scaled, shifted and summed sets.

    Examples
    --------
    >>> import numpy as np
    >>> from extremal.points import Coordinate, DenseVertex
    >>> v = Combination(((2.0, Coordinate(0, 1.0, (2,))), (1.0, DenseVertex(np.array([1.0, 1.0])))))
    >>> v.to_array(), v.norm2, v.dot(np.array([1.0, 10.0]))
    (array([3., 1.]), 10.0, 13.0)
    """

    terms: tuple[tuple[float, Vertex], ...]  # (c_i, v_i), at least one
    low: float | None = None  # <g, s> >= low for all s in the set, if the oracle is not exact

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
        """The coefficients and the keys of the terms."""
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
    """A direction spanned by x and vertices, d = own x + sum_j c_j v_j, such that x + d is the farthest point allowed.

    A step toward s has own = -1 and the term (1, s). A step away from a, as far as t, has own = t and (-t, a). A pairwise step
    has own = 0, (t, s) and (-t, a). Properties of d are computed from the terms, without subtracting nearby points.
    """

    own: float  # coefficient of x
    terms: tuple[tuple[float, Vertex], ...]  # (c_j, v_j)

    @classmethod
    def to(cls, s: Vertex | Chord) -> Chord:
        """The chord from x to a vertex; a chord stays as it is."""
        return s if isinstance(s, Chord) else cls(-1, ((1, s),))

    def image(self, x: np.ndarray, of: Callable[[Vertex], np.ndarray]) -> np.ndarray:
        """The image of d under a linear map, given the images of x and of each vertex."""
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


@dataclass(frozen=True)
class Blocks:
    """A vertex of a product of sets: the vertices of the parts, one after the other in the order of ``x.reshape(-1)``.

    Examples
    --------
    >>> import numpy as np
    >>> from extremal.points import Coordinate, DenseVertex
    >>> v = Blocks((Coordinate(1, 2.0, (3,)), DenseVertex(np.array([1.0, -1.0]))), (5,))
    >>> v.to_array(), v.norm2, v.dot(np.array([9.0, 1.0, 9.0, 3.0, 1.0]))
    (array([ 0.,  2.,  0.,  1., -1.]), 6.0, 4.0)
    """

    parts: tuple[Vertex, ...]  # the vertices of the parts; their sizes sum to the size of the whole
    shape: tuple[int, ...]  # shape of the vertex as an array
    low: float | None = None  # <g, s> >= low for all s in the set, if the oracle is not exact

    @property
    def norm2(self) -> float:
        """|v|^2, the sum over the parts."""
        return sum(v.norm2 for v in self.parts)

    @property
    def key(self) -> Hashable:
        """The keys of the parts."""
        return tuple(v.key for v in self.parts)

    def dot(self, g: np.ndarray) -> float:
        """<g, v>, the sum over the parts."""
        return sum(v.dot(block) for v, block in self._with_blocks(g))

    def add_to(self, x: np.ndarray, w: float) -> None:
        """x += w v in place."""
        if not x.flags.c_contiguous:  # its blocks would be copies
            x += w * self.to_array()
            return
        for v, block in self._with_blocks(x):
            v.add_to(block, w)

    def to_array(self) -> np.ndarray:
        """A dense copy."""
        out = np.zeros(self.shape)
        for v, block in self._with_blocks(out):
            v.add_to(block, 1.0)
        return out

    def _with_blocks(self, x: np.ndarray) -> Iterator[tuple[Vertex, np.ndarray]]:
        return zip(self.parts, blocks_of(x, [v.shape for v in self.parts]), strict=True)


def blocks_of(x: np.ndarray, shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
    """The consecutive blocks of x of the given shapes; views if x is contiguous."""
    flat, ends = x.reshape(-1), np.cumsum([math.prod(shape) for shape in shapes])
    return [flat[end - math.prod(shape) : end].reshape(shape) for end, shape in zip(ends, shapes, strict=True)]


def joined_blocks(parts: Sequence[Vertex], blocks: Sequence[np.ndarray], shape: tuple[int, ...]) -> Blocks | SparseVertex:
    """The vertex of a product, from the answers of the parts' oracles to the blocks of g; sparse if all answers are."""
    exact = all(v.low is None for v in parts)
    low = None if exact else sum(least(v, block) for v, block in zip(parts, blocks, strict=True))
    few = [v for v in parts if isinstance(v, (Coordinate, SparseVertex))]
    if len(few) == len(parts):
        return _one_sparse(few, shape, low)
    return Blocks(tuple(parts), shape, low)


def parted(v: Vertex, shapes: Sequence[tuple[int, ...]]) -> tuple[Vertex, ...]:
    """The parts of a vertex of a product, as given to `joined_blocks` if it made the vertex."""
    if isinstance(v, Blocks):
        return v.parts
    if not isinstance(v, SparseVertex):
        return tuple(DenseVertex(block) for block in blocks_of(v.to_array(), shapes))
    starts = np.cumsum([0, *(math.prod(shape) for shape in shapes)])
    cuts = np.searchsorted(v.indices, starts)
    places = zip(cuts, cuts[1:], starts, shapes, strict=False)
    return tuple(_sparse(v.indices[i:j] - start, v.values[i:j], shape) for i, j, start, shape in places)


def _one_sparse(parts: Sequence[Coordinate | SparseVertex], shape: tuple[int, ...], low: float | None) -> SparseVertex:
    starts = np.cumsum([0, *(math.prod(v.shape) for v in parts)])
    indices = [start + (v.j if isinstance(v, Coordinate) else v.indices) for start, v in zip(starts, parts, strict=False)]
    values = [v.value if isinstance(v, Coordinate) else v.values for v in parts]
    return SparseVertex(np.hstack(indices), np.hstack(values).astype(np.float64, copy=False), shape, low)


def _sparse(indices: np.ndarray, values: np.ndarray, shape: tuple[int, ...]) -> Coordinate | SparseVertex:
    one = len(indices) == 1
    return Coordinate(int(indices[0]), float(values[0]), shape) if one else SparseVertex(indices, values, shape)
