"""Entries of a matrix as data: margins are X[rows[i], cols[i]], and gradients are non-zero only at these positions."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from extremal import checks
from extremal.checks import InputError
from extremal.data.parts import OnePart, count_rows
from extremal.kernels.arguments import kernels
from extremal.points.composed import Combination
from extremal.points.entries_gradient import Observed, Positions, read_entries
from extremal.points.factored import FactoredMatrix
from extremal.points.low_rank import LowRank, RankOne
from extremal.points.matrix import Iterate, check_positions
from extremal.points.vertex import Coordinate, DenseVertex, Vertex


class Entries:
    """The observed entries of an m x n matrix X, as data of a `LinearModel`.

        <a_i, X> = X[rows[i], cols[i]],   grad f(X) = (1/n) sum_i c_i e_{rows[i]} e_{cols[i]}'

    So f(X) = (1/n) sum_i phi(X[rows_i, cols_i], y_i), and its gradients are `Observed`: n numbers, never an m x n array. Over
    a ``matrix_free`` set such as `NuclearBall`, X is a `FactoredMatrix`. Its entries follow the steps at O(n) per step, for any
    rank. Over other sets, X and the gradients for their oracles are dense. A batch of b costs b r for rank r.

    Memory: 16 bytes per position, and 8 bytes for each number that a method stores for it.

    Parameters
    ----------
    rows, cols : array of int of shape (n,)
        The positions, in any order; a repeated position counts each time.
    shape : (int, int)
        The sides m and n of the matrix.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), Entries([0, 1, 1], [2, 0, 1], (2, 3)), np.array([1.0, 2.0, -1.0]))
    >>> f.n, f.shape, f.value(np.zeros((2, 3)))
    (3, (2, 3), 1.0)
    >>> np.asarray(3 * f.grad(np.zeros((2, 3))))
    array([[ 0.,  0., -1.],
           [-2.,  1.,  0.]])
    """

    dtype = np.dtype(np.float64)
    _counted: bool = True  # whether it counts the entries read
    factored: bool = True  # X may be in factors, and gradients are operators

    def __init__(self, rows: ArrayLike, cols: ArrayLike, shape: tuple[int, int]):
        if not isinstance(shape, (tuple, list)) or len(shape) != 2:
            raise InputError(f"`Entries(shape=...)` must be two whole numbers, rows and columns, got {shape!r}")
        m, n = (checks.whole("Entries", "shape", side, 1) for side in shape)
        rows, cols = check_positions("Entries", rows, cols, (m, n))
        if rows.ndim != 1 or len(rows) == 0:
            raise InputError(f"`Entries(rows=...)` must be a list of at least one row, got shape {rows.shape}")
        kind = np.int32 if max(m, n) < 2**31 else np.int64
        self.positions = Positions(rows.astype(kind), cols.astype(kind), (m, n))

    @property
    def shape(self) -> tuple[int, int, int]:
        """(number of entries, m, n)."""
        return len(self.positions), *self.positions.shape

    def __repr__(self) -> str:
        n, *shape = self.shape
        return f"Entries(<{n} positions>, shape={tuple(shape)})"

    def dot(self, x: Any, idx: np.ndarray | None = None) -> np.ndarray:
        """X at the positions idx."""
        self._read(idx)
        return read_entries(x, self.positions, idx)

    def dot_vertex(self, v: Vertex, idx: np.ndarray | None = None) -> np.ndarray:
        """v at the positions idx: r products per position for a vertex of rank r."""
        self._read(idx)
        return self._vertex(v, idx).astype(self.dtype, copy=False)

    def tdot(self, c: np.ndarray, idx: np.ndarray | None = None) -> Iterate:
        """The matrix with c at the positions idx; c is not copied."""
        g = Observed(self.positions, c, idx)
        return g if self.factored else np.asarray(g)

    def dense(self) -> Entries:
        """The same entries with gradients as arrays, for sets that need all of their entries."""
        new = copy.copy(self)
        new.factored = False
        return new

    def row_norms2(self) -> np.ndarray:
        """A vector of ones: every row has norm 1."""
        return np.ones(len(self.positions), self.dtype)

    def lambda_max(self, weights: np.ndarray | None = None) -> float:
        """The largest eigenvalue of A'A: the count, or the total weight, of the most frequent position."""
        return float(self.positions.most) if weights is None else float(self.columns(np.arange(0)).counts(weights).max())

    @property
    def parts(self) -> OnePart:
        """All entries at once."""
        part = copy.copy(self)
        part._counted = False  # the engine counts the entries that it reads
        return OnePart(part)

    def _read(self, idx: np.ndarray | None) -> None:
        if self._counted:
            count_rows(len(self.positions) if idx is None else len(idx))

    def pieces(self, x: Any = None) -> Iterator[tuple[slice, Entries]]:
        """All entries at once."""
        yield slice(0, len(self.positions)), self

    def sweep(self, *asked: object) -> None:
        """Return None, because there is no compiled pass."""
        return

    def columns(self, W: np.ndarray) -> EntryColumns:
        """Some positions of X, flat: coordinate i n + j is X_ij."""
        return EntryColumns(self, W)

    def ready(self, *outputs: int) -> None:
        """Import numba and compile its loops, or load them from the cache, and sort the positions by row."""
        one = np.zeros(1, np.int64)
        for rank in (1, 2):  # loops for one column, and for several
            x = FactoredMatrix(*(np.zeros((side, rank), self.dtype) for side in self.positions.shape))
            _ = read_entries(x, self.positions.take(one)), Observed(self.positions, self.dot(x, one), one).full
        self.positions.by_rows(np.zeros(len(self.positions), self.dtype))

    def _vertex(self, v: Vertex, idx: np.ndarray | None) -> np.ndarray:
        if isinstance(v, DenseVertex):
            return read_entries(v.values, self.positions, idx)
        if isinstance(v, Combination):
            return np.sum([c * self._vertex(u, idx) for c, u in v.terms], axis=0)
        at = self.positions if idx is None else self.positions.take(idx)
        if isinstance(v, RankOne):
            out = np.zeros(len(at), self.dtype)
            left, right = (a.astype(self.dtype, copy=False) for a in (v.left, v.right))
            kernels("positions").add_at(left, right, at.rows, at.cols, out)
            return out
        if isinstance(v, Coordinate):
            i, k = divmod(v.j, v.shape[1])
            return np.where((at.rows == i) & (at.cols == k), v.value, 0.0)
        x = FactoredMatrix(v.left, v.right) if isinstance(v, LowRank) else v.to_array()
        return read_entries(x, at)


class EntryColumns:
    """The positions W of X, flat, as columns: their Gram matrix is diagonal."""

    fill = 1.0  # a Hessian of a few hundred positions is formed

    def __init__(self, entries: Entries, W: np.ndarray):
        self.inner, self.W, self.shape = entries, W, (entries.shape[0], len(W))

    def counts(self, h: np.ndarray) -> np.ndarray:
        """The sum of h at each position of X."""
        at, (_, m, n) = self.inner.positions, self.inner.shape
        return np.bincount(at.rows.astype(np.intp) * n + at.cols, h, m * n)

    def dot(self, d: np.ndarray) -> np.ndarray:
        """d at the positions of the entries."""
        x = np.zeros(self.inner.shape[1:])
        x.reshape(-1)[self.W] = d
        return self.inner.dot(x)

    def tdot(self, c: np.ndarray) -> np.ndarray:
        """The sum of c at each position in W."""
        return self.counts(c)[self.W]

    def moments(self, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same sums twice, because the entries of these columns are 1."""
        sums = self.tdot(h)
        return sums, sums

    def gram(self, W: None, h: np.ndarray, mean: np.ndarray | None = None) -> np.ndarray:
        """A diagonal matrix, unless a mean is subtracted."""
        whole = np.diag(self.tdot(h))
        return whole if mean is None else whole - float(h.sum()) * np.outer(mean, mean)

    def root(self, h: np.ndarray, mean: np.ndarray | None = None) -> np.ndarray | None:
        """The square roots of the diagonal."""
        return np.diag(np.sqrt(self.tdot(h))) if mean is None else None

    def listed(self) -> None:
        """Return None, because there are no rows for compiled loops."""
        return
