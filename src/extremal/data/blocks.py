"""What a part of the rows can do: the contract, and dense rows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from extremal.checks import InputError
from extremal.data.vertices import widened
from extremal.kernels.views import locked
from extremal.support import clock

PIECE = 2**17  # numbers of a piece of dense rows: 1 MiB, which stays in the cache, and for which BLAS starts no threads
PIECE_ROWS = 8192  # rows of a piece, at most
COPIED = 2**24  # numbers of some columns up to which these are copied
LISTED = 2**20  # numbers up to which dense rows are listed entry by entry


class RowBlock(ABC):
    """Consecutive rows in memory, worked on at once: no threads, sums in float64.

    Products keep the wider of the two float types, but for ``tdot``, ``gram`` and ``moments``, which are sums, in float64.
    """

    shape: tuple[int, int]  # rows, columns
    dtype: np.dtype
    nnz: int  # entries that are stored
    few: int  # how many columns cost less, one by one, than a product with all

    @abstractmethod
    def part(self, at: slice) -> RowBlock:
        """Some of the rows, not copied."""

    def bounds(self, many: int) -> list[int]:
        """Where parts begin and end that have about as many entries."""
        return [self.shape[0] * i // many for i in range(many + 1)]

    def pieces(self) -> Iterator[tuple[slice, RowBlock]]:
        """Pieces that are still in the cache when they are read again."""
        n, size = self.shape[0], max(1, min(PIECE_ROWS, PIECE * self.shape[0] // max(1, self.nnz)))
        if n <= size:
            yield slice(0, n), self
            return
        for start in range(0, n, size):
            clock.check()
            at = slice(start, min(start + size, n))
            yield at, self.part(at)

    def room(self, x: np.ndarray) -> np.ndarray:
        """For A x, in the wider float type."""
        return np.empty((self.shape[0], *x.shape[1:]), np.result_type(self.dtype, x.dtype))

    @abstractmethod
    def dot(self, x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """A x; written to ``out``, if given."""

    @abstractmethod
    def tdot(self, c: np.ndarray) -> np.ndarray:
        """A' c."""

    @abstractmethod
    def dot_rows(self, x: np.ndarray, idx: np.ndarray) -> np.ndarray:
        """A[idx] x."""

    @abstractmethod
    def tdot_rows(self, c: np.ndarray, idx: np.ndarray) -> np.ndarray:
        """A[idx]' c, in the wider float type."""

    @abstractmethod
    def column(self, j: int, idx: np.ndarray | None) -> np.ndarray:
        """Column j of A[idx]."""

    @abstractmethod
    def norms2(self, out: np.ndarray) -> None:
        """|a_i|^2 for every row, written to ``out``."""

    @abstractmethod
    def gram(self, W: np.ndarray | None, h: np.ndarray, mean: np.ndarray | None = None) -> np.ndarray:
        """A_W' diag(h) A_W, or that of the columns less their mean by the weights h; W = None is all columns."""

    def root(self, h: np.ndarray, mean: np.ndarray | float = 0.0) -> np.ndarray:
        """R with R'R = the gram of h, by QR factorisations; (A - 1 mean') in the place of A."""
        R, k = np.zeros((0, self.shape[1])), self.shape[1]
        for at, piece in self.pieces():
            R = np.vstack([R, (piece.array() - mean) * np.sqrt(h[at, None])])
            R = np.asarray(np.linalg.qr(R, mode="r")) if len(R) > 2 * k else R
        return R

    @abstractmethod
    def moments(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """sum_i w_i a_i, and the same of squares."""

    @abstractmethod
    def take(self, order: np.ndarray) -> RowBlock:
        """A copy with the rows in the order given."""

    @abstractmethod
    def joined(self, blocks: Sequence[Any]) -> RowBlock:
        """Blocks of this kind, one below the other, as one."""

    @abstractmethod
    def columns(self, W: np.ndarray) -> RowBlock:
        """The columns W, which increase."""

    @abstractmethod
    def with_column(self, value: float) -> RowBlock:
        """A copy with one column more, of one value."""

    def shifted(self, offset: np.ndarray) -> RowBlock | None:
        """A copy with an offset taken from each column, of dense rows."""
        return None

    @abstractmethod
    def array(self) -> np.ndarray:
        """The rows as a dense array; dense ones are not copied."""

    @abstractmethod
    def listed(self) -> tuple[np.ndarray, ...] | None:
        """Where rows start, the columns of their entries and the entries, for compiled loops; None if that takes too much."""

    def sweep(
        self, loss: tuple[int, float], y: np.ndarray, x: np.ndarray, valued: bool, graded: bool, z: Any, c: Any
    ) -> tuple[float, np.ndarray] | None:
        """The sum of a compiled loss and its gradient, rows read once; fills z = A x and c = phi', unless these are None.

        None if there is no such loop for these rows.
        """
        return None

    def ready(self, *outputs: int) -> None:
        """Compile the products, or load them from a cache."""
        return


class DenseBlock(RowBlock):
    """Dense rows."""

    def __init__(self, A: np.ndarray):
        self._A, self.shape, self.dtype = A, A.shape, A.dtype
        self.nnz, self.few = A.size, A.shape[1] // 16

    def part(self, at: slice) -> DenseBlock:
        """A view."""
        return DenseBlock(self._A[at])

    def dot(self, x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        """Piece by piece: BLAS starts no threads for one, and a copy in float64 is small."""
        out = self.room(x) if out is None else out
        for at, piece in self.pieces():
            np.matmul(piece.array(), x, out=out[at])
        return out

    def tdot(self, c: np.ndarray) -> np.ndarray:
        """Piece by piece; within one, sums are in its float type."""
        total = np.zeros((self.shape[1], *c.shape[1:]))
        for at, piece in self.pieces():
            total += _tdot(piece.array(), c[at])
        return total

    def dot_rows(self, x: np.ndarray, idx: np.ndarray) -> np.ndarray:
        """The rows are gathered first."""
        return self._A[idx] @ x

    def tdot_rows(self, c: np.ndarray, idx: np.ndarray) -> np.ndarray:
        """The rows are gathered first."""
        return _tdot(self._A[idx], c)

    def column(self, j: int, idx: np.ndarray | None) -> np.ndarray:
        """A view, or the entries of some rows."""
        return self._A[:, j] if idx is None else self._A[idx, j]

    def norms2(self, out: np.ndarray) -> None:
        """Piece by piece."""
        for at, piece in self.pieces():
            np.einsum("ij,ij->i", *2 * (piece.array(),), dtype=np.float64, out=out[at])

    def gram(self, W: np.ndarray | None, h: np.ndarray, mean: np.ndarray | None = None) -> np.ndarray:
        """Products of matrices: n k^2 multiplications. Columns lose their mean first, so that differences do not cancel."""
        k, root = self.shape[1] if W is None else len(W), np.sqrt(h).astype(self.dtype, copy=False)
        total = np.zeros((k, k))
        for at, piece in self.pieces():
            A = piece.array() if W is None else piece.array()[:, W]
            rows = (A if mean is None else A - mean) * root[at, None]
            total += rows.T @ rows
        return total

    def moments(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Piece by piece, in float64."""
        sums, squares = np.zeros(self.shape[1]), np.zeros(self.shape[1])
        for at, piece in self.pieces():
            rows = widened(piece.array())
            sums += w[at] @ rows
            squares += w[at] @ np.square(rows)
        return sums, squares

    def take(self, order: np.ndarray) -> DenseBlock:
        """By numpy."""
        return DenseBlock(self._A[order])

    def joined(self, blocks: Sequence[DenseBlock]) -> DenseBlock:
        """By numpy."""
        return DenseBlock(np.concatenate([block._A for block in blocks]))

    def columns(self, W: np.ndarray) -> DenseBlock:
        """Copied, if that is not too large; else the copy is made piece by piece whenever it is needed."""
        small = self.shape[0] * len(W) <= COPIED
        return DenseBlock(np.ascontiguousarray(self._A[:, W])) if small else _PickedBlock(self._A, W)

    def with_column(self, value: float) -> DenseBlock:
        """By numpy."""
        A = self.array()
        return DenseBlock(np.column_stack([A, np.full(len(A), value, A.dtype)]))

    def shifted(self, offset: np.ndarray) -> DenseBlock:
        """By numpy."""
        return DenseBlock(self.array() - offset)

    def array(self) -> np.ndarray:
        """The array itself."""
        return self._A

    def listed(self) -> tuple[np.ndarray, ...] | None:
        """Every entry; of small blocks only, since matrix products are faster from there on."""
        (n, k), A = self.shape, self.array() if self.nnz <= LISTED else None
        if A is None:
            return None
        starts, columns = np.arange(0, n * k + 1, k, dtype=np.int32), np.tile(np.arange(k, dtype=np.int32), n)
        return locked(starts), locked(columns), locked(A.reshape(-1))


class _PickedBlock(DenseBlock):
    """Some columns of dense rows, too many to be copied at once."""

    def __init__(self, A: np.ndarray, W: np.ndarray):
        super().__init__(A)
        self._W, self.shape = W, (len(A), len(W))
        self.nnz, self.few = len(A) * len(W), len(W) // 16

    def part(self, at: slice) -> DenseBlock:
        """Copied where it is a piece, and a view of all columns otherwise."""
        A = self._A[at]
        return DenseBlock(A[:, self._W]) if len(A) * len(self._W) <= PIECE else _PickedBlock(A, self._W)

    def take(self, order: np.ndarray) -> DenseBlock:
        """A copy."""
        return DenseBlock(self._A[order][:, self._W])

    def column(self, j: int, idx: np.ndarray | None) -> np.ndarray:
        """Of the columns W."""
        return super().column(int(self._W[j]), idx)

    def columns(self, W: np.ndarray) -> DenseBlock:
        """Some of those."""
        return DenseBlock(self._A).columns(self._W[W])

    def dot_rows(self, x: np.ndarray, idx: np.ndarray) -> np.ndarray:
        """The rows are gathered first."""
        return self.take(idx).dot(x)

    def tdot_rows(self, c: np.ndarray, idx: np.ndarray) -> np.ndarray:
        """The rows are gathered first."""
        return _tdot(self.take(idx).array(), c)

    def array(self) -> np.ndarray:
        """A copy."""
        return self._A[:, self._W]


def _tdot(A: np.ndarray, c: np.ndarray) -> np.ndarray:
    """A' c; for a matrix c as (c' A)', which is the faster order for long A."""
    return c @ A if c.ndim == 1 else np.ascontiguousarray((c.T @ A).T)


def checked_shape(A: Any) -> Any:
    """Refuse what is not a matrix with at least one row and one column."""
    if A.ndim != 2:
        raise InputError(f"`LinearModel(A=...)` must have two dimensions (rows, features), got shape {A.shape}")
    if 0 in A.shape:
        raise InputError(f"`LinearModel(A=...)` is empty: shape {A.shape}")
    return A
