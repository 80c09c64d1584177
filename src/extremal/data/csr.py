"""Sparse rows."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.data.contract import RowBlock, checked_shape
from extremal.data.rows import InMemory
from extremal.kernels.arguments import kernels, locked, writable
from extremal.support.lazy import imported

COMPARED = 2**16  # number of values compared with one at once
SORTED = 2**22  # rows with up to this many entries may be copied in the order of their lengths
COLUMN_ROWS = 2**16  # number of rows searched at once for their entries in a column


class CsrBlock(RowBlock):
    """Sparse rows: row starts, columns of the entries (increasing within a row), and values.

    Parts share the arrays of entries, so the starts of a part do not begin with 0. Each product is one loop over the entries.
    """

    def __init__(self, starts: np.ndarray, columns: np.ndarray, values: np.ndarray, d: int):
        self.entries = locked(starts), locked(columns), locked(values)
        self.shape, self.dtype = (len(starts) - 1, d), values.dtype
        self.nnz = int(starts[-1]) - int(starts[0])
        self.few = self.nnz // (8 * max(1, self.shape[0]))

    @cached_property
    def read(self) -> tuple[np.ndarray, ...]:
        """The arrays as products with a vector read them: if all values are one, as in 0/1 data, only one of them is read."""
        starts, columns, values = self.entries
        some = (values[i : i + COMPARED] for i in range(0, len(values), COMPARED))
        ones = len(values) > 0 and all(bool((part == 1).all()) for part in some)
        return starts, columns, locked(np.ones((), self.dtype)) if ones else values

    def __reduce__(self) -> Any:
        return CsrBlock, (*self._own(), self.shape[1])  # a part is pickled without the entries of other parts

    def _own(self) -> tuple[np.ndarray, ...]:
        """The arrays with starts that begin at 0."""
        starts, columns, values = self.entries
        first, last = int(starts[0]), int(starts[-1])
        return self.entries if first == 0 and last == len(values) else (starts - first, columns[first:last], values[first:last])

    def part(self, at: slice) -> CsrBlock:
        starts, columns, values = self.entries
        part = CsrBlock(starts[at.start : at.stop + 1], columns, values, self.shape[1])
        part.read = (*part.entries[:2], self.read[2])  # found once for all parts
        return part

    def bounds(self, many: int) -> list[int]:
        """Bounds with equal numbers of entries, because rows differ in length."""
        starts = self.entries[0]
        shares = np.arange(1, many, dtype=starts.dtype)  # in the type of starts, to avoid a copy
        wanted = starts[0] + shares * (self.nnz // many)
        return [0, *np.searchsorted(starts, wanted).tolist(), self.shape[0]]

    def dot(self, x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        out = self.room(x) if out is None else out
        if x.ndim == 1:
            kernels("rows").dot_range(*self.read, self._point(x), 0, out)
        else:
            kernels("rows").dot_matrix(*self.entries, locked(np.ascontiguousarray(x)), self._all, out)
        return out

    def tdot(self, c: np.ndarray) -> np.ndarray:
        out, c = np.zeros((self.shape[1], *c.shape[1:])), writable(c, np.result_type(c, np.float32))
        if c.ndim == 1:
            kernels("rows").tdot_range(*self.read, c, 0, out)
        else:
            kernels("rows").tdot_matrix(*self.entries, locked(c), self._all, out)
        return out

    def gram_product(self, v: np.ndarray, h: np.ndarray | None) -> np.ndarray:
        """Each row is read once, for both products."""
        out, h = np.zeros(self.shape[1]), np.empty(0) if h is None else np.ascontiguousarray(h, np.float64)
        kernels("full").gram_product(*self.entries, self._point(v), locked(h), out)
        return out

    def dot_rows(self, x: np.ndarray, idx: np.ndarray) -> np.ndarray:
        out = np.empty((len(idx), *x.shape[1:]), np.promote_types(self.dtype, x.dtype))
        if x.ndim == 1:
            kernels("rows").rows_dot(*self.read, locked(x), locked(idx), out)
        else:
            kernels("rows").dot_matrix(*self.entries, locked(np.ascontiguousarray(x)), idx, out)
        return out

    def tdot_rows(self, c: np.ndarray, idx: np.ndarray) -> np.ndarray:
        """The cost is the entries of these rows, and one array of the size of x."""
        out = np.zeros((self.shape[1], *c.shape[1:]), np.promote_types(self.dtype, c.dtype))
        if c.ndim == 1:
            kernels("rows").rows_tdot(*self.read, c, locked(idx), out)
        else:
            kernels("rows").tdot_matrix(*self.entries, locked(np.ascontiguousarray(c)), idx, out)
        return out

    def sweep(
        self, loss: tuple[int, float], y: np.ndarray, x: np.ndarray, valued: bool, graded: bool, z: Any, c: Any
    ) -> tuple[float, np.ndarray]:
        g, none = np.zeros(self.shape[1] if graded else 0), np.empty(0)
        z, c = (none if a is None else a for a in (z, c))
        block = kernels("full").cached_rows(*self.shape, self.nnz)
        return float(kernels("full").sweep(*self.read, locked(y), self._point(x), *loss, block, valued, z, c, g)), g

    def column(self, j: int, idx: np.ndarray | None) -> np.ndarray:
        """One entry per row, by bisection."""
        if idx is None:
            n = self.shape[0]
            some = (np.arange(i, min(n, i + COLUMN_ROWS)) for i in range(0, n, COLUMN_ROWS))
            return np.concatenate([self.column(j, rows) for rows in some])
        out = np.empty(len(idx), self.dtype)
        kernels("rows").column(*self.entries, j, locked(idx), out)
        return out

    def norms2(self, out: np.ndarray) -> None:
        kernels("rows").norms2(self.entries[0], self.entries[2], out)

    def gram(self, W: np.ndarray | None, h: np.ndarray | None, mean: np.ndarray | None = None) -> np.ndarray:
        """The cost is the sum over rows of their squared number of entries; entries of other columns are skipped."""
        h = np.ones(self.shape[0]) if h is None else h
        k, h = self.shape[1] if W is None else len(W), writable(h, np.float64)
        low = np.zeros((k, k))
        if W is None:
            kernels("full").gram(*self.entries, h, low)
        else:
            room = np.empty(k + 1, np.int32), np.empty(k + 1, self.dtype)
            kernels("full").gram_of_columns(*self.entries, self._place(W), h, *room, low)
        low += np.tril(low, -1).T
        return low if mean is None else low - float(h.sum(dtype=np.float64)) * np.outer(mean, mean)

    def moments(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        out = np.zeros((2, self.shape[1]))
        kernels("full").moments(*self.entries, locked(np.ascontiguousarray(w, np.float64)), out)
        return out[0], out[1]

    def powers(self, w: np.ndarray, p: int) -> np.ndarray:
        out = np.zeros(self.shape[1])
        kernels("full").powers(*self.entries, locked(np.ascontiguousarray(w, np.float64)), p // 2, out)
        return out

    def peaks(self) -> np.ndarray:
        out = np.zeros(self.shape[1])
        kernels("full").peaks(*self.entries, out)
        return out

    def take(self, order: np.ndarray) -> CsrBlock:
        starts, columns, values = kernels("full").rows_in_order(self.entries, order)
        return CsrBlock(starts, columns, values, self.shape[1])

    def by_length(self) -> np.ndarray | None:
        """Loops over rows of equal length end where the processor expects it."""
        lengths = np.diff(self.entries[0])
        most = int(lengths.max(initial=0))
        if self.nnz > SORTED or most >= 2**16 or most == int(lengths.min(initial=most)):
            return None
        return np.argsort(lengths.astype(np.uint16), kind="stable")  # two bytes are sorted in linear time

    def joined(self, blocks: Sequence[CsrBlock]) -> CsrBlock:
        own = [block._own() for block in blocks]
        ends = np.cumsum([0, *(len(values) for _, _, values in own)])
        starts = [ends[:1], *(end + starts[1:] for end, (starts, _, _) in zip(ends, own, strict=False))]
        columns, values = (np.concatenate([entries[j] for entries in own]) for j in (1, 2))
        return CsrBlock(np.concatenate(starts), columns, values, self.shape[1])

    def columns(self, W: np.ndarray) -> CsrBlock:
        starts = np.empty_like(self.entries[0])
        columns, values = (np.empty(self.nnz + 1, a.dtype) for a in self.entries[1:])
        used = kernels("full").compact(*self.entries, self._place(W), starts, columns, values)
        return CsrBlock(starts, columns[:used], values[:used], len(W))

    def _place(self, W: np.ndarray) -> np.ndarray:
        """The index of each column in W; -1 for the others."""
        place = np.full(self.shape[1], -1, np.int32)
        place[W] = np.arange(len(W), dtype=np.int32)
        return place

    def transposed(self) -> CsrBlock:
        """A copy of A', stored by rows."""
        starts, columns, values = self._own()
        A = imported("scipy.sparse").csr_array((values, columns, starts), shape=self.shape).tocsc()
        return CsrBlock(A.indptr, A.indices, A.data, self.shape[0])

    def with_column(self, value: float) -> CsrBlock:
        """A copy with one more entry at the end of every row."""
        (starts, columns, values), d = self._own(), self.shape[1]
        more = starts + np.arange(len(starts), dtype=starts.dtype)
        return CsrBlock(more, np.insert(columns, starts[1:], d), np.insert(values, starts[1:], value), d + 1)

    def array(self) -> np.ndarray:
        (starts, columns, values), out = self._own(), np.zeros(self.shape, self.dtype)
        out[np.repeat(np.arange(self.shape[0]), np.diff(starts)), columns] = values
        return out

    def listed(self) -> tuple[np.ndarray, ...]:
        return self._own()

    def ready(self, *outputs: int) -> None:
        """Import numba and compile the products, or load them from its cache."""
        x = locked(np.zeros((self.shape[1], *outputs)))  # the type of iterates
        none, row = self.part(slice(0, 0)), np.empty(0, np.int64)
        self.tdot_rows(self.dot_rows(x, row), row)
        self.column(0, row)
        none.tdot(none.dot(x))
        none.sweep((0, 0.0), np.empty(0), np.zeros(self.shape[1]), True, True, None, None)

    def ready_powers(self) -> None:
        none = self.part(slice(0, 0))
        _ = none.powers(np.empty(0), 2), none.peaks()

    @property
    def _all(self) -> np.ndarray:
        return locked(np.arange(self.shape[0]))

    def _point(self, x: np.ndarray) -> np.ndarray:
        """x in float64 for the compiled loops, which would not notice a wrong length."""
        if x.shape != self.shape[1:]:
            raise InputError(f"x must have shape {self.shape[1:]}, one entry per column of A, got {x.shape}")
        return locked(np.ascontiguousarray(x, np.float64))


class CSR(InMemory):
    """Rows in a scipy sparse matrix. Any sparse format is converted to CSR once; valid CSR is not copied.

    Products are compiled loops. Products with all rows use all cores if the data are large, with sums in float64. A batch costs
    its own non-zeros and, for ``tdot``, one array of the size of x.

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
        csr_array = imported("scipy.sparse").csr_array  # imported when first needed, because it is slow
        A = checked_shape(A if checks.is_sparse(A) else checks.array("CSR", "A", A))
        dtype = checks.floating("CSR", "A", A.dtype)
        try:
            if checks.is_sparse(A) and A.format in ("csr", "csc", "bsr"):
                A.check_format(full_check=True)  # compiled loops would read indices out of bounds
            A = csr_array(A)
        except ValueError as error:
            raise InputError(f"`CSR(A=...)` is not a valid sparse matrix: {error}") from None
        if A.dtype != dtype:
            A = A.astype(dtype)
        if not A.has_canonical_format:
            A = A.copy()  # the caller's matrix stays unchanged
            A.sum_duplicates()
        super().__init__(CsrBlock(A.indptr, A.indices, A.data, A.shape[1]))
        if not checks.all_finite(A.data):
            e = int(np.argmin(np.isfinite(A.data)))
            place = int(np.searchsorted(A.indptr, e, side="right")) - 1, int(A.indices[e])
            raise InputError(f"`CSR(A=...)` must be finite, got {A.data[e]} at index {place}")

    @property
    def entries(self) -> tuple[np.ndarray, ...]:
        """Row starts, columns and values of the entries for compiled loops; not copied."""
        return self.block.entries
