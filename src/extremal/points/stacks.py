"""Many vertices at once: their products with a gradient, and their weighted sum, without a loop over them where kinds agree.

A stack is a value: `add` and `keep` make new ones. Dense rows and low-rank factors lie in a buffer with room to grow, which
versions share as long as they only add; so a vertex more costs its own length, not that of all.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from extremal.points.low_rank import RankOne
from extremal.points.plain import Coordinate, DenseVertex, SparseVertex
from extremal.points.vertex import Vertex

LOCK = threading.Lock()  # versions of a stack may be in the hands of several threads


class Stack(ABC):
    """Some vertices of one shape, at least one."""

    vertices: tuple[Vertex, ...]

    @abstractmethod
    def dots(self, g: np.ndarray) -> np.ndarray:
        """<g, v_i> for each."""

    @abstractmethod
    def sum(self, weights: np.ndarray) -> np.ndarray:
        """sum_i w_i v_i as an array, in float64."""

    @abstractmethod
    def add(self, v: Vertex) -> Stack:
        """The stack with one more at the end."""

    def keep(self, kept: np.ndarray) -> Stack:
        """Only those at the given places."""
        return stack(tuple(self.vertices[i] for i in kept))


def stack(vertices: tuple[Any, ...]) -> Stack:
    """The stack that suits the vertices' kinds."""
    kinds = {type(v) for v in vertices}
    if kinds <= {Coordinate, SparseVertex}:
        return FewVertices.of(vertices)
    if kinds == {DenseVertex}:
        return RowStack(vertices, _Buffer.of([v.values.reshape(-1) for v in vertices]))
    if kinds == {RankOne}:
        return Factors(vertices, _Buffer.of([v.left for v in vertices]), _Buffer.of([v.right for v in vertices]))
    return Mixed(vertices)


@dataclass(frozen=True)
class FewVertices(Stack):
    """Vertices with few non-zeros, as one list of places and values."""

    vertices: tuple[Vertex, ...]
    indices: np.ndarray  # flat indices of all, one vertex after the other
    values: np.ndarray  # the entries there
    starts: np.ndarray  # where each vertex begins

    @classmethod
    def of(cls, vertices: tuple[Any, ...]) -> FewVertices:
        """From vertices that are all `Coordinate` or `SparseVertex`."""
        parts = [_entries(v) for v in vertices]
        sizes = np.array([len(i) for i, _ in parts])
        indices, values = (np.concatenate(list(column)) for column in zip(*parts, strict=True))
        return cls(vertices, indices, values, np.cumsum(sizes) - sizes)

    def dots(self, g: np.ndarray) -> np.ndarray:
        return np.add.reduceat(g.flat[self.indices] * self.values, self.starts)

    def sum(self, weights: np.ndarray) -> np.ndarray:
        counts = np.diff(np.append(self.starts, len(self.indices)))
        shape = self.vertices[0].shape
        return np.bincount(self.indices, np.repeat(weights, counts) * self.values, int(np.prod(shape))).reshape(shape)

    def add(self, v: Vertex) -> Stack:
        vertices = (*self.vertices, v)
        if not isinstance(v, (Coordinate, SparseVertex)):
            return stack(vertices)
        i, x = _entries(v)
        starts = np.append(self.starts, len(self.indices))
        return FewVertices(vertices, np.append(self.indices, i), np.append(self.values, x), starts)


def _entries(v: Coordinate | SparseVertex) -> tuple[np.ndarray, np.ndarray]:
    """Places and values; a vertex of zeros keeps one place, so that none is empty."""
    if isinstance(v, Coordinate):
        return np.array([v.j]), np.array([v.value])
    return (v.indices, v.values) if len(v.indices) else (np.array([0]), np.array([0.0]))


class _Buffer:
    """Rows with room for more, shared by versions: the one that holds all rows in use may append in place."""

    def __init__(self, rows: np.ndarray, used: int):
        self.rows, self.used = rows, used

    @classmethod
    def of(cls, rows: list[np.ndarray]) -> _Buffer:
        return cls(np.array(rows), len(rows))

    def put(self, count: int, row: np.ndarray) -> _Buffer:
        """A buffer whose first count rows are these, and whose next is the new one."""
        with LOCK:
            fits = count == self.used < len(self.rows) and np.result_type(self.rows, row) == self.rows.dtype
            home = self if fits else self._copy(count, np.result_type(self.rows, row))
            home.rows[count] = row
            home.used = count + 1
            return home

    def _copy(self, count: int, dtype: np.dtype) -> _Buffer:
        rows = np.empty((2 * count + 2, self.rows.shape[1]), dtype)
        rows[:count] = self.rows[:count]
        return _Buffer(rows, count)


@dataclass(frozen=True)
class RowStack(Stack):
    """Dense vertices, as rows of a matrix."""

    vertices: tuple[Vertex, ...]
    buffer: _Buffer = field(repr=False)

    @property
    def rows(self) -> np.ndarray:
        return self.buffer.rows[: len(self.vertices)]

    def dots(self, g: np.ndarray) -> np.ndarray:
        return self.rows @ np.asarray(g).reshape(-1)

    def sum(self, weights: np.ndarray) -> np.ndarray:
        return (weights @ self.rows).reshape(self.vertices[0].shape)

    def add(self, v: Vertex) -> Stack:
        vertices = (*self.vertices, v)
        if type(v) is not DenseVertex:
            return stack(vertices)
        return RowStack(vertices, self.buffer.put(len(self.vertices), v.values.reshape(-1)))


@dataclass(frozen=True)
class Factors(Stack):
    """Rank-one vertices, as two stacks of factors."""

    vertices: tuple[Vertex, ...]
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
        vertices, k = (*self.vertices, v), len(self.vertices)
        if not isinstance(v, RankOne):
            return stack(vertices)
        return Factors(vertices, self.left.put(k, v.left), self.right.put(k, v.right))


@dataclass(frozen=True)
class Mixed(Stack):
    """Vertices of several kinds, one by one."""

    vertices: tuple[Vertex, ...]

    def dots(self, g: np.ndarray) -> np.ndarray:
        return np.array([v.dot(g) for v in self.vertices])

    def sum(self, weights: np.ndarray) -> np.ndarray:
        total = np.zeros(self.vertices[0].shape)
        for w, v in zip(weights, self.vertices, strict=True):
            v.add_to(total, float(w))
        return total

    def add(self, v: Vertex) -> Stack:
        return Mixed((*self.vertices, v))
