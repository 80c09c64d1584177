"""The data matrix A (n rows, d columns), in parts: the contracts between models, all rows, and a part of the rows.

x is a vector of d entries, or a matrix of d rows with one column for each of k outputs; c has n entries, or n rows of k.
Only this package handles sparsity.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from extremal.checks import InputError
from extremal.data.parts import Parts
from extremal.points.vertex import Vertex
from extremal.support import clock

PIECE = 2**17  # numbers in a piece of dense rows: 1 MiB stays in the cache, and is too small for threads of BLAS
PIECE_ROWS = 8192  # maximum number of rows in a piece
THIN_PIECE = 16  # a piece of fewer rows may be four times as large, because every piece adds a whole gradient to a sum


class Data(Protocol):
    """The data of a model; ``idx`` selects rows, in any order and with repeats, and None selects all.

    Products have the wider of the two float types: iterates are in float64, and float32 rows are not converted. `RowData`
    implements the contract, except for ``shape``, ``dtype`` and ``parts``.
    """

    @property
    def shape(self) -> tuple[int, ...]: ...  # (n, d)
    @property
    def dtype(self) -> np.dtype: ...  # float32 or float64
    @property
    def parts(self) -> Parts: ...  # the engine that reads the rows
    def dot(self, x: np.ndarray, idx: np.ndarray | None = None) -> np.ndarray: ...  # A[idx] x
    def dot_vertex(self, v: Vertex, idx: np.ndarray | None = None) -> np.ndarray: ...  # A[idx] v
    def tdot(self, c: np.ndarray, idx: np.ndarray | None = None) -> np.ndarray: ...  # A[idx]' c
    def row_norms2(self) -> np.ndarray: ...  # |a_i|^2 for every row
    def columns(self, W: np.ndarray) -> Any: ...  # the columns W, as data; W increases
    def lambda_max(self, weights: np.ndarray | None = None) -> float: ...  # the largest eigenvalue of A' diag(weights) A
    def ready(self, *outputs: int) -> None: ...  # compile products with some rows, so that the clock of a run does not pay for it


class RowBlock(ABC):
    """Consecutive rows in memory, processed at once: no threads, sums in float64.

    Products have the wider of the two float types. The sums ``tdot``, ``gram`` and ``moments`` are in float64.
    """

    shape: tuple[int, int]  # rows, columns
    dtype: np.dtype
    nnz: int  # number of stored entries
    few: int  # up to this many columns, single columns cost less than a product with all

    @abstractmethod
    def part(self, at: slice) -> RowBlock: ...  # some of the rows, without a copy
    @abstractmethod
    def dot(self, x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray: ...  # A x; written to ``out``, if given
    @abstractmethod
    def tdot(self, c: np.ndarray) -> np.ndarray: ...  # A' c
    @abstractmethod
    def dot_rows(self, x: np.ndarray, idx: np.ndarray) -> np.ndarray: ...  # A[idx] x
    @abstractmethod
    def tdot_rows(self, c: np.ndarray, idx: np.ndarray) -> np.ndarray: ...  # A[idx]' c, in the wider float type
    @abstractmethod
    def column(self, j: int, idx: np.ndarray | None) -> np.ndarray: ...  # column j of A[idx]
    @abstractmethod
    def norms2(self, out: np.ndarray) -> None: ...  # |a_i|^2 for every row, written to ``out``
    @abstractmethod
    def moments(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]: ...  # sum_i w_i a_i, and the same for squares
    @abstractmethod
    def powers(self, w: np.ndarray, p: int) -> np.ndarray: ...  # sum_i w_i a_ij^p of every column, for an even p
    @abstractmethod
    def peaks(self) -> np.ndarray: ...  # the largest |a_ij| of every column
    @abstractmethod
    def take(self, order: np.ndarray) -> RowBlock: ...  # a copy with the rows in the order given
    @abstractmethod
    def joined(self, blocks: Sequence[Any]) -> RowBlock: ...  # stack blocks of this kind into one
    @abstractmethod
    def columns(self, W: np.ndarray) -> RowBlock: ...  # the columns W, which must increase
    @abstractmethod
    def with_column(self, value: float) -> RowBlock: ...  # a copy with one more column of a constant value
    @abstractmethod
    def array(self) -> np.ndarray: ...  # the rows as a dense array; dense rows are not copied

    @abstractmethod
    def gram(self, W: np.ndarray | None, h: np.ndarray | None, mean: np.ndarray | None = None) -> np.ndarray:
        """A_W' diag(h) A_W, with the ``mean`` of the columns by the weights h subtracted if given; W = None is all columns.

        Without h, all weights are 1.
        """

    @abstractmethod
    def listed(self) -> tuple[np.ndarray, ...] | None:
        """Row starts, columns and values of the entries, for compiled loops; None if these would be too large."""

    @property
    def longest_sum(self) -> int:
        """The largest number of terms that a sum over these rows adds one after another."""
        return self.shape[0]

    def bounds(self, many: int) -> list[int]:
        """Bounds of parts with about equally many entries."""
        return [self.shape[0] * i // many for i in range(many + 1)]

    @cached_property
    def cuts(self) -> tuple[slice, ...]:
        """The places of pieces small enough to stay in the cache until they are read again."""
        n = self.shape[0]
        size = min(PIECE_ROWS, PIECE * n // max(1, self.nnz))
        size = max(1, size, min(THIN_PIECE, 4 * PIECE * n // max(1, self.nnz)))
        return tuple(slice(start, min(start + size, n)) for start in range(0, n, size)) or (slice(0, 0),)

    def pieces(self, x: np.ndarray | None = None) -> Iterator[tuple[slice, RowBlock]]:
        """These pieces, for a product with x and another one."""
        return iter(((self.cuts[0], self),)) if len(self.cuts) == 1 else self._parts(self.cuts)

    def _parts(self, places: Iterable[slice]) -> Iterator[tuple[slice, RowBlock]]:
        return self._checked((at, self.part(at)) for at in places)

    @staticmethod
    def _checked(pieces: Iterable[Any]) -> Iterator[Any]:
        """A run out of time or told to stop ends between two pieces."""
        for piece in pieces:
            clock.check()
            yield piece

    def room(self, x: np.ndarray) -> np.ndarray:
        """An empty array for A x, in the wider float type."""
        return np.empty((self.shape[0], *x.shape[1:]), np.promote_types(self.dtype, x.dtype))

    def gram_product(self, v: np.ndarray, h: np.ndarray | None) -> np.ndarray:
        """A' diag(h) A v, or A' A v without h."""
        z = self.dot(v)
        return self.tdot(z if h is None else h.astype(z.dtype, copy=False) * z)

    def root(self, h: np.ndarray, mean: np.ndarray | float = 0.0) -> np.ndarray:
        """R with R'R = the gram of h, by QR factorisations of (A - 1 mean') instead of A."""
        R, k = np.zeros((0, self.shape[1])), self.shape[1]
        for at, piece in self.pieces():
            R = np.vstack([R, (piece.array() - mean) * np.sqrt(h[at, None])])
            R = np.asarray(np.linalg.qr(R, mode="r")) if len(R) > 2 * k else R
        return R

    def shifted(self, offset: np.ndarray) -> RowBlock | None:
        """A copy with an offset subtracted from each column; dense rows only."""
        return None

    def sweep(
        self, loss: tuple[int, float], y: np.ndarray, x: np.ndarray, valued: bool, graded: bool, z: Any, c: Any
    ) -> tuple[float, np.ndarray] | None:
        """The sum of a compiled loss and its gradient, in one pass; fills z = A x and c = phi', unless they are None.

        Returns None if there is no such loop for these rows.
        """
        return None

    def by_length(self) -> np.ndarray | None:
        """The rows in the order of their numbers of entries, in which sums over all rows are faster; None if it is not."""
        return None

    def ready(self, *outputs: int) -> None:
        """Compile the products, or load them from a cache."""
        return

    def ready_powers(self) -> None:  # noqa: B027 - nothing to compile
        """The same for powers and peaks of columns."""


def checked_shape(A: Any) -> Any:
    """Refuse anything but a matrix with at least one row and one column."""
    if A.ndim != 2:
        raise InputError(f"`LinearModel(A=...)` must have two dimensions (rows, features), got shape {A.shape}")
    if 0 in A.shape:
        raise InputError(f"`LinearModel(A=...)` is empty: shape {A.shape}")
    return A
