"""Sparse rows."""

from __future__ import annotations

import copy
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.data.base import DataProducts, checked
from extremal.kernels.views import locked
from extremal.support.lazy import imported


class CSR(DataProducts):
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
        A = checked(A if checks.is_sparse(A) else checks.array("CSR", "A", A))
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
            return self._full.dot(self.entries, x, self.shape[1])
        if idx is None:
            return self._A @ x if x.dtype == self.dtype else np.stack([self.dot(column) for column in x.T], axis=1)
        out = np.empty((len(idx), *x.shape[1:]), np.result_type(self.dtype, x.dtype))
        if x.ndim == 1:
            self._rows.rows_dot(*self.entries, x, idx, out)
        else:
            self._rows.dot_matrix(*self.entries, np.ascontiguousarray(x), idx, out)
        return out

    def tdot(self, c: np.ndarray, idx: np.ndarray | None = None) -> np.ndarray:
        """A[idx]' c."""
        if idx is None and c.ndim == 1:
            return self._full.tdot(self.entries, c, self.shape[1])
        if idx is None:
            return self._A.T @ c if c.dtype == self.dtype else np.stack([self.tdot(column) for column in c.T], axis=1)
        out = np.zeros((self.shape[1], *c.shape[1:]), np.result_type(self.dtype, c.dtype))
        if c.ndim == 1:
            self._rows.rows_tdot(*self.entries, c, idx, out)
        else:
            self._rows.tdot_matrix(*self.entries, np.ascontiguousarray(c), idx, out)
        return out

    def model(
        self,
        loss: tuple[int, float],
        y: np.ndarray,
        x: np.ndarray,
        value: bool,
        grad: bool,
        c: np.ndarray | None = None,
        z: np.ndarray | None = None,
    ) -> tuple[float, np.ndarray]:
        """sum_i phi(<a_i, x>, y_i), if asked for, and A' phi', in one pass; fills c = phi' and z = A x, if given.

        For losses that `extremal.losses.margin.compiled` knows. In float64, also for float32 data, which are not copied.
        """
        return self._full.model(self.entries, y, x, self.shape[1], loss, value, grad, c, z)

    def row_norms2(self) -> np.ndarray:
        """|a_i|^2 for every row."""
        out = np.empty(self.shape[0])
        self._rows.norms2(self.entries[0], self.entries[2], out)
        return out

    def take(self, order: np.ndarray) -> CSR:
        """A copy with the rows in the order given."""
        new, (indptr, indices, data) = copy.copy(self), self._full.rows_in_order(self.entries, order)
        new._A = type(self._A)((data, indices, indptr), shape=(len(order), self.shape[1]))
        return new

    def block(self, rows: slice, columns: np.ndarray) -> np.ndarray:
        """Some rows of some columns, as an array."""
        return self._A[rows][:, columns].toarray()

    def moments(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The sums of all columns and of their squares, in float64, row i times weights_i."""
        (starts, columns, values), d = self.entries, self.shape[1]
        values, each = values.astype(np.float64), np.repeat(weights, np.diff(starts))
        return np.bincount(columns, values * each, d), np.bincount(columns, np.square(values) * each, d)

    def with_column(self, value: float) -> CSR:
        """A copy with one column more, of one value."""
        from scipy import sparse

        return CSR(sparse.hstack([self._A, np.full((self.shape[0], 1), value, self.dtype)], format="csr"))

    def ready(self, *outputs: int) -> None:
        """Import numba and compile the products, or load them from its cache."""
        x = locked(np.zeros((self.shape[1], *outputs)))  # as iterates are
        for none in (np.empty(0, np.int64), locked(np.empty(0, np.int64))):
            self.tdot(self.dot(x, none), none)
            self._column(0, none)
        self._full.compile_full(self.entries)

    @cached_property
    def entries(self) -> tuple[np.ndarray, ...]:
        """Where rows start, the columns of their entries and the entries, as compiled loops take them; not copied."""
        return locked(self._A.indptr), locked(self._A.indices), locked(self._A.data)

    @cached_property
    def _full(self) -> ModuleType:
        from extremal.kernels import full  # numba: imported by the first product

        return full

    @cached_property
    def _rows(self) -> ModuleType:
        from extremal.kernels import rows

        return rows

    def _column(self, j: int, idx: np.ndarray | None) -> np.ndarray:
        """One entry per row, found by bisection."""
        if idx is None:
            n, size = self.shape[0], 2**16
            return np.concatenate([self._column(j, np.arange(i, min(n, i + size))) for i in range(0, n, size)])
        out = np.empty(len(idx), self.dtype)
        self._rows.column(*self.entries, j, idx, out)
        return out

    @property
    def _few(self) -> int:
        return self._A.nnz // (8 * self.shape[0])

    def __getstate__(self) -> dict[str, object]:
        return {k: v for k, v in self.__dict__.items() if k not in ("_rows", "_full", "entries")}  # modules, and views of _A
