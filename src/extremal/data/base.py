"""The data matrix A (n rows, d columns) behind its four products. Sparsity lives here and nowhere else.

x is a vector of d entries, or a matrix of d rows with a column for each of k outputs; c has n entries, or n rows of k.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

import numpy as np

from extremal.checks import InputError
from extremal.points.composed import Combination
from extremal.points.low_rank import LowRank, RankOne
from extremal.points.plain import Coordinate, SparseVertex
from extremal.points.vertex import Vertex

_STRUCTURED = Coordinate, SparseVertex, RankOne, LowRank  # their products need no product with a dense array of their size


class Data(Protocol):
    """The contract of a data matrix; ``idx`` picks rows, in any order and with repeats, None all of them.

    Products keep the wider of the two float types: iterates are in float64, and float32 rows are read as they are.
    """

    @property
    def shape(self) -> tuple[int, int]: ...  # (n, d)
    @property
    def dtype(self) -> np.dtype: ...  # float32 or float64
    def dot(self, x: np.ndarray, idx: np.ndarray | None = None) -> np.ndarray: ...  # A[idx] x
    def dot_vertex(self, v: Vertex, idx: np.ndarray | None = None) -> np.ndarray: ...  # A[idx] v
    def tdot(self, c: np.ndarray, idx: np.ndarray | None = None) -> np.ndarray: ...  # A[idx]' c
    def row_norms2(self) -> np.ndarray: ...  # |a_i|^2 for every row
    def ready(self, *outputs: int) -> None: ...  # compile what products with some rows need, so that no run's clock pays for it


class DataProducts(ABC):
    """Products with vertices, from products with arrays and from single columns."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype: ...

    @abstractmethod
    def dot(self, x: np.ndarray, idx: np.ndarray | None = None) -> np.ndarray: ...

    @abstractmethod
    def _column(self, j: int, idx: np.ndarray | None) -> np.ndarray:
        """Column j of A[idx]."""

    @property
    @abstractmethod
    def _few(self) -> int:
        """How many columns cost less, one by one, than a product with all of A."""

    def dot_vertex(self, v: Vertex, idx: np.ndarray | None = None) -> np.ndarray:
        """A[idx] v: a column of A for each row of v that is not zero, (A left) right' for matrices of low rank."""
        if isinstance(v, Coordinate):
            one = len(v.shape) == 1
            return np.multiply(self._column(v.j, idx), v.value, dtype=np.float64) if one else self._coordinate(v, idx)
        if isinstance(v, SparseVertex):
            return self._sparse(v, idx)
        if isinstance(v, RankOne):
            return np.multiply.outer(self.dot(widened(v.left), idx), widened(v.right))
        if isinstance(v, LowRank):
            return self.dot(widened(v.left), idx) @ widened(v.right).T
        if isinstance(v, Combination) and all(isinstance(term, _STRUCTURED) for _, term in v.terms):
            return np.sum([c * self.dot_vertex(term, idx) for c, term in v.terms], axis=0)
        return self.dot(widened(v.to_array()), idx)

    def _coordinate(self, v: Coordinate, idx: np.ndarray | None) -> np.ndarray:
        """value times a column of A, in the column of the output that v is for."""
        row, output = divmod(v.j, v.shape[1])
        column = self._column(row, idx)
        out = np.zeros((len(column), v.shape[1]))
        out[:, output] = np.multiply(column, v.value, dtype=np.float64)
        return out

    def _sparse(self, v: SparseVertex, idx: np.ndarray | None) -> np.ndarray:
        """The columns for the rows of v that are not zero, if they are few, times those rows."""
        k = v.shape[1] if len(v.shape) == 2 else 1
        rows, outputs = np.divmod(v.indices, k)
        used, place = np.unique(rows, return_inverse=True)
        if not 0 < len(used) <= self._few:
            return self.dot(widened(v.to_array()), idx)
        values = np.zeros((len(used), k))
        values[place, outputs] = v.values
        return np.stack([self._column(int(j), idx) for j in used]).T @ values.reshape(len(used), *v.shape[1:])


def widened(a: np.ndarray) -> np.ndarray:
    """In float64."""
    return a.astype(np.float64, copy=False)


def checked(A: Any) -> Any:
    """Refuse what is not a matrix with at least one row and one column."""
    if A.ndim != 2:
        raise InputError(f"`LinearModel(A=...)` must have two dimensions (rows, features), got shape {A.shape}")
    if 0 in A.shape:
        raise InputError(f"`LinearModel(A=...)` is empty: shape {A.shape}")
    return A
