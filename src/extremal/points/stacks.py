"""Many vertices at once: their products with a gradient and their weighted sum, without a loop if they are of one kind.

A stack is a value: `add` and `keep` make new ones. Dense rows and low-rank factors lie in a buffer with room to grow, which
versions share as long as they only add. So one more vertex costs its own length, not the length of all.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from extremal.points.low_rank import RankOne
from extremal.points.vertex import Coordinate, DenseVertex, SparseVertex, Vertex

LOCK = threading.Lock()  # several threads may hold versions of a stack


@dataclass(frozen=True)
class Stack(ABC):
    """One or more vertices of one shape."""

    vertices: tuple[Any, ...]

    @abstractmethod
    def dots(self, g: np.ndarray) -> np.ndarray:
        """<g, v_i> for each vertex."""

    @abstractmethod
    def sum(self, weights: np.ndarray) -> np.ndarray:
        """sum_i w_i v_i as an array, in float64."""

    def add(self, v: Vertex) -> Stack:
        """The stack with one more vertex at the end."""
        return stack((*self.vertices, v))

    def keep(self, kept: np.ndarray) -> Stack:
        """The vertices at the given positions."""
        return stack(tuple(self.vertices[i] for i in kept))


def stack(vertices: tuple[Any, ...]) -> Stack:
    """The type of stack that suits the vertices."""
    kinds = {type(v) for v in vertices}
    if kinds <= {Coordinate, SparseVertex}:
        parts = [_entries(v) for v in vertices]
        sizes = np.array([len(i) for i, _ in parts])
        indices, values = (np.concatenate(list(column)) for column in zip(*parts, strict=True))
        return FewVertices(vertices, indices, values, np.cumsum(sizes) - sizes)
    if kinds == {DenseVertex}:
        return RowStack(vertices, _Buffer(np.array([v.values.reshape(-1) for v in vertices])))
    if kinds == {RankOne}:
        return Factors(vertices, _Buffer(np.array([v.left for v in vertices])), _Buffer(np.array([v.right for v in vertices])))
    return Mixed(vertices)


@dataclass(frozen=True)
class FewVertices(Stack):
    """Vertices with few non-zeros, as one list of indices and values."""

    indices: np.ndarray  # flat indices of all vertices, one after the other
    values: np.ndarray  # the entries at these indices
    starts: np.ndarray  # where each vertex begins

    def dots(self, g: np.ndarray) -> np.ndarray:
        return np.add.reduceat(g.flat[self.indices] * self.values, self.starts)

    def sum(self, weights: np.ndarray) -> np.ndarray:
        counts = np.diff(np.append(self.starts, len(self.indices)))
        shape = self.vertices[0].shape
        return np.bincount(self.indices, np.repeat(weights, counts) * self.values, int(np.prod(shape))).reshape(shape)

    def add(self, v: Vertex) -> Stack:
        if not isinstance(v, (Coordinate, SparseVertex)):
            return super().add(v)
        i, x = _entries(v)
        starts = np.append(self.starts, len(self.indices))
        return FewVertices((*self.vertices, v), np.append(self.indices, i), np.append(self.values, x), starts)


def _entries(v: Coordinate | SparseVertex) -> tuple[np.ndarray, np.ndarray]:
    """Indices and values; a vertex of zeros keeps one index, so that no vertex is empty."""
    if isinstance(v, Coordinate):
        return np.array([v.j]), np.array([v.value])
    return (v.indices, v.values) if len(v.indices) else (np.array([0]), np.array([0.0]))


class _Buffer:
    """Rows with room for more, shared by versions: the version that holds all rows in use may append in place."""

    def __init__(self, rows: np.ndarray):
        self.rows, self.used = rows, len(rows)

    def put(self, count: int, row: np.ndarray) -> _Buffer:
        """A buffer with the first ``count`` rows of this one, followed by the new row."""
        with LOCK:
            home, dtype = self, np.result_type(self.rows, row)
            if not (count == self.used < len(self.rows) and dtype == self.rows.dtype):
                home = _Buffer(np.empty((2 * count + 2, self.rows.shape[1]), dtype))
                home.rows[:count] = self.rows[:count]
            home.rows[count], home.used = row, count + 1
            return home


@dataclass(frozen=True)
class RowStack(Stack):
    """Dense vertices, as rows of a matrix."""

    buffer: _Buffer = field(repr=False)

    @property
    def rows(self) -> np.ndarray:
        return self.buffer.rows[: len(self.vertices)]

    def dots(self, g: np.ndarray) -> np.ndarray:
        return self.rows @ np.asarray(g).reshape(-1)

    def sum(self, weights: np.ndarray) -> np.ndarray:
        return (weights @ self.rows).reshape(self.vertices[0].shape)

    def add(self, v: Vertex) -> Stack:
        if type(v) is not DenseVertex:
            return super().add(v)
        return RowStack((*self.vertices, v), self.buffer.put(len(self.vertices), v.values.reshape(-1)))


@dataclass(frozen=True)
class Factors(Stack):
    """Rank-one vertices, as two stacks of factors."""

    left: _Buffer = field(repr=False)
    right: _Buffer = field(repr=False)

    @property
    def factors(self) -> tuple[np.ndarray, np.ndarray]:
        """k x m and k x n."""
        k = len(self.vertices)
        return self.left.rows[:k], self.right.rows[:k]

    def dots(self, g: np.ndarray) -> np.ndarray:
        left, right = self.factors
        return np.einsum("ij,ji->i", left, g @ right.T)

    def sum(self, weights: np.ndarray) -> np.ndarray:
        left, right = self.factors
        return (weights[:, None] * left).T @ right

    def add(self, v: Vertex) -> Stack:
        if not isinstance(v, RankOne):
            return super().add(v)
        k = len(self.vertices)
        return Factors((*self.vertices, v), self.left.put(k, v.left), self.right.put(k, v.right))


class Mixed(Stack):
    """Vertices of several kinds, one by one."""

    def dots(self, g: np.ndarray) -> np.ndarray:
        return np.array([v.dot(g) for v in self.vertices])

    def sum(self, weights: np.ndarray) -> np.ndarray:
        total = np.zeros(self.vertices[0].shape)
        for w, v in zip(weights, self.vertices, strict=True):
            v.add_to(total, float(w))
        return total
