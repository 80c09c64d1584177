"""Dense rows."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.data.base import DataProducts, checked


class Dense(DataProducts):
    """Rows in a dense array.

    Products with some rows gather those rows first: O(b d) time and memory for b rows.

    Parameters
    ----------
    A : array of shape (n, d)
        float32 and float64 are kept and not copied; integers and bools become float64.

    Examples
    --------
    >>> import numpy as np
    >>> A = Dense(np.array([[1.0, 2.0], [3.0, 4.0]]))
    >>> A.dot(np.array([1.0, 1.0]), idx=np.array([1]))
    array([7.])
    """

    def __init__(self, A: Any):
        if checks.is_sparse(A):
            raise InputError("`Dense(A=...)` must be a dense array; CSR takes sparse matrices")
        A = checked(checks.array("Dense", "A", A))
        self._A = np.ascontiguousarray(A, dtype=checks.floating("Dense", "A", A.dtype))
        checks.finite("Dense", "A", self._A)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows, columns."""
        return self._A.shape  # pyright: ignore[reportReturnType]

    @property
    def dtype(self) -> np.dtype:
        """float32 or float64."""
        return self._A.dtype

    def dot(self, x: np.ndarray, idx: np.ndarray | None = None) -> np.ndarray:
        """A[idx] x."""
        if idx is not None or x.dtype == self.dtype:
            return self._rows(idx) @ x
        out = np.empty((self.shape[0], *x.shape[1:]), np.result_type(self.dtype, x.dtype))
        for rows in self._blocks():
            np.matmul(self._A[rows], x, out=out[rows])
        return out

    def tdot(self, c: np.ndarray, idx: np.ndarray | None = None) -> np.ndarray:
        """A[idx]' c."""
        if idx is not None or self.dtype == c.dtype == np.float64:
            return _tdot(self._rows(idx), c)
        total = np.zeros((self.shape[1], *c.shape[1:]))  # in float64: sums over all rows in float32 lose digits
        for rows in self._blocks():
            total += _tdot(self._A[rows], c[rows])
        return total.astype(np.result_type(self.dtype, c.dtype), copy=False)

    def row_norms2(self) -> np.ndarray:
        """|a_i|^2 for every row."""
        return np.einsum("ij,ij->i", self._A, self._A, dtype=np.float64)

    def take(self, order: np.ndarray) -> Dense:
        """A copy with the rows in the order given."""
        return Dense(self._A[order])

    @property
    def array(self) -> np.ndarray:
        """A itself, not copied."""
        return self._A

    def block(self, rows: slice, columns: np.ndarray) -> np.ndarray:
        """Some rows of some columns, as an array."""
        return self._A[rows][:, columns]

    def moments(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The sums of all columns and of their squares, in float64, row i times weights_i."""
        means, squares = np.zeros(self.shape[1]), np.zeros(self.shape[1])
        for start in range(0, self.shape[0], 4096):
            rows = slice(start, min(start + 4096, self.shape[0]))
            block = self._A[rows].astype(np.float64)
            means += weights[rows] @ block
            squares += weights[rows] @ np.square(block)
        return means, squares

    def with_column(self, value: float) -> Dense:
        """A copy with one column more, of one value."""
        return Dense(np.column_stack([self._A, np.full(self.shape[0], value, self.dtype)]))

    def ready(self, *outputs: int) -> None:
        """Nothing is to be compiled."""

    def _rows(self, idx: np.ndarray | None) -> np.ndarray:
        return self._A if idx is None else self._A[idx]

    def part(self, rows: slice) -> Dense:
        """Some consecutive rows, not copied."""
        part = copy.copy(self)
        part._A = self._A[rows]
        return part

    def _column(self, j: int, idx: np.ndarray | None) -> np.ndarray:
        return self._A[:, j] if idx is None else self._A[idx, j]

    @property
    def _few(self) -> int:
        return self.shape[1] // 16

    def _blocks(self) -> list[slice]:
        """Blocks of rows whose copy in float64 takes 2 MiB at most, and whose sums in float32 keep their digits."""
        size = max(1, min(2**14, 2**18 // self.shape[1]))
        return [slice(i, i + size) for i in range(0, self.shape[0], size)]


def _tdot(A: np.ndarray, c: np.ndarray) -> np.ndarray:
    """A' c; for a matrix c as (c' A)', which is the faster order for long A."""
    return c @ A if c.ndim == 1 else np.ascontiguousarray((c.T @ A).T)
