"""Products of the rows with vertices, from products with arrays and from single columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from extremal.points.composed import Combination
from extremal.points.low_rank import LowRank, RankOne
from extremal.points.matrix import wide
from extremal.points.vertex import Coordinate, SparseVertex, Vertex

_STRUCTURED = Coordinate, SparseVertex, RankOne, LowRank  # these need no product with a dense array of their size


def vertex_product(A: Any, v: Vertex, idx: np.ndarray | None) -> np.ndarray:
    """A[idx] v, for data with ``dot``, ``column`` and ``few``."""
    if isinstance(v, Coordinate):
        one = len(v.shape) == 1
        return np.multiply(A.column(v.j, idx), v.value, dtype=np.float64) if one else _coordinate(A, v, idx)
    if isinstance(v, SparseVertex):
        return _sparse(A, v, idx)
    if isinstance(v, RankOne):
        return np.multiply.outer(A.dot(wide(v.left), idx), wide(v.right))
    if isinstance(v, LowRank):
        return A.dot(wide(v.left), idx) @ wide(v.right).T
    if isinstance(v, Combination) and all(isinstance(term, _STRUCTURED) for _, term in v.terms):
        return np.sum([c * vertex_product(A, term, idx) for c, term in v.terms], axis=0)
    return A.dot(wide(v.to_array()), idx)


def _coordinate(A: Any, v: Coordinate, idx: np.ndarray | None) -> np.ndarray:
    """value times a column of A, in the column of v's output."""
    row, output = divmod(v.j, v.shape[1])
    column = A.column(row, idx)
    out = np.zeros((len(column), v.shape[1]))
    out[:, output] = np.multiply(column, v.value, dtype=np.float64)
    return out


def _sparse(A: Any, v: SparseVertex, idx: np.ndarray | None) -> np.ndarray:
    """The columns for the non-zero rows of v, if there are few, times those rows."""
    k = v.shape[1] if len(v.shape) == 2 else 1
    rows, outputs = np.divmod(v.indices, k)
    used, place = np.unique(rows, return_inverse=True)
    if not 0 < len(used) <= A.few:
        return A.dot(wide(v.to_array()), idx)
    values = np.zeros((len(used), k))
    values[place, outputs] = v.values
    return np.stack([A.column(int(j), idx) for j in used]).T @ values.reshape(len(used), *v.shape[1:])
