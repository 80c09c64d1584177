"""Dense rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.data.contract import PIECE, PIECE_ROWS, RowBlock, checked_shape
from extremal.data.rows import InMemory
from extremal.kernels.arguments import locked
from extremal.points.matrix import wide

COPIED = 2**24  # some columns are copied up to this many numbers
LISTED = 2**20  # dense rows are listed entry by entry up to this many numbers


class DenseBlock(RowBlock):
    """Dense rows."""

    def __init__(self, A: np.ndarray):
        self._A, self.shape, self.dtype = A, A.shape, A.dtype
        self.nnz, self.few = A.size, A.shape[1] // 16

    def part(self, at: slice) -> DenseBlock:
        return DenseBlock(self._A[at])

    def dot(self, x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Work piece by piece: BLAS starts no threads for a piece, and a float64 copy of it is small.

        If x has few non-zeros, only their columns are read.
        """
        if len(self.cuts) == 1:
            return self.array() @ x if out is None else np.matmul(self.array(), x, out=out)
        out, used = self.room(x) if out is None else out, self._used(x)
        if used is not None:
            rows = max(1, PIECE // max(1, len(used)))
            for start in range(0, len(out), rows):
                at = slice(start, start + rows)
                np.matmul(self._A[at, self._place(used)], x[used], out=out[at])
            return out
        for at, A in self._arrays():
            np.matmul(A, x, out=out[at])
        return out

    def pieces(self, x: np.ndarray | None = None) -> Iterator[tuple[slice, RowBlock]]:
        """Many rows at once if the product with x reads only few of their columns."""
        if len(self.cuts) == 1:
            return super().pieces()
        if x is None or self._used(x) is None:
            return self._checked(zip(self.cuts, self._views(), strict=True))
        n = self.shape[0]
        if n <= PIECE_ROWS:
            return iter(((slice(0, n), self),))  # which keeps its own pieces
        return self._parts(slice(start, min(start + PIECE_ROWS, n)) for start in range(0, n, PIECE_ROWS))

    def _used(self, x: np.ndarray) -> np.ndarray | None:
        """The non-zeros of x, if they are few."""
        used = (x != 0).nonzero()[0] if x.ndim == 1 and self.few > 0 and len(self.cuts) > 1 else None
        return used if used is not None and len(used) <= self.few else None

    def _place(self, columns: np.ndarray) -> np.ndarray:
        """The places of columns in the array."""
        return columns

    def tdot(self, c: np.ndarray) -> np.ndarray:
        """Work piece by piece; within a piece, sums are in its float type."""
        if len(self.cuts) == 1:
            total = _tdot(self.array(), c)
            return total if total.dtype == np.float64 else wide(total)
        total = np.zeros((self.shape[1], *c.shape[1:]))
        for at, A in self._arrays():
            total += _tdot(A, c[at])
        return total

    def dot_rows(self, x: np.ndarray, idx: np.ndarray) -> np.ndarray:
        return self._A.take(idx, axis=0) @ x  # `take` copies whole rows, several times as fast as an index

    def tdot_rows(self, c: np.ndarray, idx: np.ndarray) -> np.ndarray:
        return _tdot(self._A.take(idx, axis=0), c)

    def column(self, j: int, idx: np.ndarray | None) -> np.ndarray:
        return self._A[:, j] if idx is None else self._A[idx, j]

    def norms2(self, out: np.ndarray) -> None:
        for at, A in self._arrays():
            np.einsum("ij,ij->i", A, A, dtype=np.float64, out=out[at])

    def gram(self, W: np.ndarray | None, h: np.ndarray | None, mean: np.ndarray | None = None) -> np.ndarray:
        """Matrix products, n k^2 multiplications. The mean is subtracted first, so that differences do not cancel."""
        k, root = self.shape[1] if W is None else len(W), None if h is None else np.sqrt(h).astype(self.dtype, copy=False)
        total = np.zeros((k, k))
        for at, A in self._arrays():
            A = A if W is None else A[:, W]
            rows = A if mean is None else A - mean
            rows = wide(rows) if root is None else rows * root[at, None]
            total += rows.T @ rows
        return total

    @property
    def longest_sum(self) -> int:
        """Within a piece, or over the pieces: fewer than n if there are many."""
        return self.cuts[0].stop + len(self.cuts) if len(self.cuts) > 1 else self.shape[0]

    def moments(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Work piece by piece, in float64."""
        sums, squares = np.zeros(self.shape[1]), np.zeros(self.shape[1])
        for at, A in self._arrays():
            rows = wide(A)
            sums += w[at] @ rows
            squares += w[at] @ np.square(rows)
        return sums, squares

    def powers(self, w: np.ndarray, p: int) -> np.ndarray:
        return sum((w[at] @ wide(piece.array()) ** p for at, piece in self.pieces()), np.zeros(self.shape[1]))

    def peaks(self) -> np.ndarray:
        out = np.zeros(self.shape[1])
        for _, piece in self.pieces():
            np.maximum(out, np.abs(piece.array()).max(axis=0), out=out)
        return out

    def take(self, order: np.ndarray) -> DenseBlock:
        return DenseBlock(self._A.take(order, axis=0))

    def joined(self, blocks: Sequence[DenseBlock]) -> DenseBlock:
        return DenseBlock(np.concatenate([block._A for block in blocks]))

    def columns(self, W: np.ndarray) -> DenseBlock:
        """Copy the columns if they are small enough; otherwise copy them piece by piece at each use."""
        small = self.shape[0] * len(W) <= COPIED
        return DenseBlock(np.ascontiguousarray(self._A[:, W])) if small else _PickedBlock(self._A, W)

    def transposed(self) -> DenseBlock:
        """A copy of A', stored by rows."""
        return DenseBlock(np.ascontiguousarray(self.array().T))

    def with_column(self, value: float) -> DenseBlock:
        A = self.array()
        return DenseBlock(np.column_stack([A, np.full(len(A), value, A.dtype)]))

    def shifted(self, offset: np.ndarray) -> DenseBlock:
        return DenseBlock(self.array() - offset)

    def array(self) -> np.ndarray:
        return self._A

    def _arrays(self) -> Iterator[tuple[slice, np.ndarray]]:
        """The pieces as arrays."""
        return ((at, piece.array()) for at, piece in self._checked(zip(self.cuts, self._views(), strict=True)))

    def _views(self) -> Iterable[DenseBlock]:
        """The pieces as blocks."""
        return self._kept_views

    @cached_property
    def _kept_views(self) -> tuple[DenseBlock, ...]:
        """It takes longer to make a view than to multiply a few rows."""
        return tuple(self.part(at) for at in self.cuts)

    def listed(self) -> tuple[np.ndarray, ...] | None:
        """Every entry, for small blocks only: matrix products are faster for larger ones."""
        (n, k), A = self.shape, self.array() if self.nnz <= LISTED else None
        if A is None:
            return None
        return *_full_rows(n, k), locked(A.reshape(-1))


@lru_cache(maxsize=4)
def _full_rows(n: int, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Row starts and columns of n rows with k entries each."""
    starts, columns = np.arange(0, n * k + 1, k, dtype=np.int32), np.empty((n, k), np.int32)
    columns[:] = np.arange(k, dtype=np.int32)
    return locked(starts), locked(columns.reshape(-1))


class _PickedBlock(DenseBlock):
    """Some columns of dense rows that are too large for a copy."""

    def __init__(self, A: np.ndarray, W: np.ndarray):
        super().__init__(A)
        self._W, self.shape = W, (len(A), len(W))
        self.nnz, self.few = len(A) * len(W), len(W) // 16

    def part(self, at: slice) -> DenseBlock:
        """A copy if it is a piece, and a view of all columns otherwise."""
        A = self._A[at]
        return DenseBlock(A[:, self._W]) if len(A) * len(self._W) <= PIECE else _PickedBlock(A, self._W)

    def _place(self, columns: np.ndarray) -> np.ndarray:
        return self._W[columns]

    def take(self, order: np.ndarray) -> DenseBlock:
        return DenseBlock(self._A.take(order, axis=0)[:, self._W])

    def column(self, j: int, idx: np.ndarray | None) -> np.ndarray:
        return super().column(int(self._W[j]), idx)

    def columns(self, W: np.ndarray) -> DenseBlock:
        return DenseBlock(self._A).columns(self._W[W])

    def dot_rows(self, x: np.ndarray, idx: np.ndarray) -> np.ndarray:
        return self.take(idx).dot(x)

    def tdot_rows(self, c: np.ndarray, idx: np.ndarray) -> np.ndarray:
        return _tdot(self.take(idx).array(), c)

    def array(self) -> np.ndarray:
        return self._A[:, self._W]

    def _views(self) -> Iterable[DenseBlock]:
        """One copy at a time: the copies of all pieces together would be too large."""
        return (DenseBlock(self._A[at][:, self._W]) for at in self.cuts)


def _tdot(A: np.ndarray, c: np.ndarray) -> np.ndarray:
    """A' c; for a matrix c as (c' A)', which is faster for long A."""
    return c @ A if c.ndim == 1 else np.ascontiguousarray((c.T @ A).T)


class Dense(InMemory):
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
        A = checked_shape(checks.array("Dense", "A", A))
        super().__init__(DenseBlock(np.ascontiguousarray(A, dtype=checks.floating("Dense", "A", A.dtype))))
        checks.finite("Dense", "A", self.array)

    @property
    def array(self) -> np.ndarray:
        """A itself, without a copy."""
        return self.block.array()
