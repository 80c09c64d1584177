"""The data matrix A (n rows, d columns) behind its four products. Sparsity lives here and nowhere else.

x is a vector of d entries, or a matrix of d rows with a column for each of k outputs; c has n entries, or n rows of k.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.kernels.views import locked
from extremal.lazy import imported
from extremal.vertices import Combination, Coordinate, LowRank, RankOne, SparseVertex, Vertex

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


class _Products(ABC):
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
            return np.multiply.outer(self.dot(_wide(v.left), idx), _wide(v.right))
        if isinstance(v, LowRank):
            return self.dot(_wide(v.left), idx) @ _wide(v.right).T
        if isinstance(v, Combination) and all(isinstance(term, _STRUCTURED) for _, term in v.terms):
            return np.sum([c * self.dot_vertex(term, idx) for c, term in v.terms], axis=0)
        return self.dot(_wide(v.to_array()), idx)

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
            return self.dot(_wide(v.to_array()), idx)
        values = np.zeros((len(used), k))
        values[place, outputs] = v.values
        return np.stack([self._column(int(j), idx) for j in used]).T @ values.reshape(len(used), *v.shape[1:])


def _wide(a: np.ndarray) -> np.ndarray:
    return a.astype(np.float64, copy=False)


class Dense(_Products):
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
        A = _check(checks.array("Dense", "A", A))
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


class CSR(_Products):
    """Rows in a scipy sparse matrix (any sparse format is converted to CSR once, valid CSR is not copied).

    Products are compiled loops: over all rows, on all cores if the data are large and with sums in float64, or over the
    non-zeros of some rows, so that a batch costs its own non-zeros (and, for ``tdot``, one array of the size of x).

    Parameters
    ----------
    A : scipy sparse matrix or array of shape (n, d)

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> A = CSR(sp.csr_array(np.array([[1.0, 0.0], [3.0, 4.0]])))
    >>> A.tdot(np.array([2.0]), idx=np.array([1]))
    array([6., 8.])
    """

    def __init__(self, A: Any):
        csr_array = imported("scipy.sparse").csr_array  # when first needed: it takes long
        A = _check(A if checks.is_sparse(A) else checks.array("CSR", "A", A))
        dtype = checks.floating("CSR", "A", A.dtype)
        try:
            if checks.is_sparse(A) and A.format in ("csr", "csc", "bsr"):
                A.check_format(full_check=True)  # indices out of bounds would be read by compiled loops
            A = csr_array(A)
        except ValueError as error:
            raise InputError(f"`CSR(A=...)` is not a valid sparse matrix: {error}") from None
        if A.dtype != dtype:
            A = A.astype(dtype)
        if not A.has_canonical_format:
            A = A.copy()  # the caller's matrix stays as it is
            A.sum_duplicates()
        self._A = A
        if not checks.all_finite(A.data):
            e = int(np.argmin(np.isfinite(A.data)))
            place = int(np.searchsorted(A.indptr, e, side="right")) - 1, int(A.indices[e])
            raise InputError(f"`CSR(A=...)` must be finite, got {A.data[e]} at index {place}")

    @property
    def shape(self) -> tuple[int, int]:
        """Rows, columns."""
        return self._A.shape  # pyright: ignore[reportReturnType]

    @property
    def dtype(self) -> np.dtype:
        """float32 or float64."""
        return self._A.dtype

    @property
    def nnz(self) -> int:
        """Entries that are stored."""
        return int(self._A.nnz)

    def dot(self, x: np.ndarray, idx: np.ndarray | None = None) -> np.ndarray:
        """A[idx] x."""
        if idx is None and x.ndim == 1:
            return self._full.dot(self._entries, x, self.shape[1])
        if idx is None:
            return self._A @ x if x.dtype == self.dtype else np.stack([self.dot(column) for column in x.T], axis=1)
        out = np.empty((len(idx), *x.shape[1:]), np.result_type(self.dtype, x.dtype))
        if x.ndim == 1:
            self._rows.dot(*self._entries, x, idx, out)
        else:
            self._rows.dot_matrix(*self._entries, np.ascontiguousarray(x), idx, out)
        return out

    def tdot(self, c: np.ndarray, idx: np.ndarray | None = None) -> np.ndarray:
        """A[idx]' c."""
        if idx is None and c.ndim == 1:
            return self._full.tdot(self._entries, c, self.shape[1])
        if idx is None:
            return self._A.T @ c if c.dtype == self.dtype else np.stack([self.tdot(column) for column in c.T], axis=1)
        out = np.zeros((self.shape[1], *c.shape[1:]), np.result_type(self.dtype, c.dtype))
        if c.ndim == 1:
            self._rows.tdot(*self._entries, c, idx, out)
        else:
            self._rows.tdot_matrix(*self._entries, np.ascontiguousarray(c), idx, out)
        return out

    def model(
        self, loss: tuple[int, float], y: np.ndarray, x: np.ndarray, value: bool, grad: bool, c: Any = None, z: Any = None
    ) -> tuple[float, np.ndarray]:
        """sum_i phi(<a_i, x>, y_i), if asked for, and A' phi', in one pass; fills c = phi' and z = A x, if given.

        For losses that `extremal.losses.compiled` knows. In float64, also for float32 data, which are not copied.
        """
        return self._full.model(self._entries, y, x, self.shape[1], loss, value, grad, c, z)

    def row_norms2(self) -> np.ndarray:
        """|a_i|^2 for every row."""
        out = np.empty(self.shape[0])
        self._rows.norms2(self._entries[0], self._entries[2], out)
        return out

    def take(self, order: np.ndarray) -> CSR:
        """A copy with the rows in the order given."""
        new, (indptr, indices, data) = copy.copy(self), self._full.take(self._entries, order)
        new._A = type(self._A)((data, indices, indptr), shape=(len(order), self.shape[1]))
        return new

    def ready(self, *outputs: int) -> None:
        """Import numba and compile the products, or load them from its cache."""
        x = locked(np.zeros((self.shape[1], *outputs)))  # as iterates are
        for none in (np.empty(0, np.int64), locked(np.empty(0, np.int64))):
            self.tdot(self.dot(x, none), none)
            self._column(0, none)
        self._full.ready(self._entries)

    @cached_property
    def _entries(self) -> tuple[np.ndarray, ...]:
        return locked(self._A.indptr), locked(self._A.indices), locked(self._A.data)

    @cached_property
    def _full(self) -> Any:
        from extremal.kernels import full  # numba: imported by the first product

        return full

    @cached_property
    def _rows(self) -> Any:
        from extremal.kernels import rows

        return rows

    def _column(self, j: int, idx: np.ndarray | None) -> np.ndarray:
        """One entry per row, found by bisection."""
        if idx is None:
            n, size = self.shape[0], 2**16
            return np.concatenate([self._column(j, np.arange(i, min(n, i + size))) for i in range(0, n, size)])
        out = np.empty(len(idx), self.dtype)
        self._rows.column(*self._entries, j, idx, out)
        return out

    @property
    def _few(self) -> int:
        return self._A.nnz // (8 * self.shape[0])

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in ("_rows", "_full", "_entries")}  # modules, and views of _A


def as_data(A: Any) -> Data:
    """Wrap an array or a scipy sparse matrix; anything that already keeps the contract passes as it is."""
    if checks.is_sparse(A):
        return CSR(A)
    if all(hasattr(A, name) for name in ("dot_vertex", "tdot", "row_norms2")):
        return A
    return Dense(A)


def _check(A: Any) -> Any:
    """Refuse what is not a matrix with at least one row and one column."""
    if A.ndim != 2:
        raise InputError(f"`LinearModel(A=...)` must have two dimensions (rows, features), got shape {A.shape}")
    if 0 in A.shape:
        raise InputError(f"`LinearModel(A=...)` is empty: shape {A.shape}")
    return A
