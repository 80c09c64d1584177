"""Products with rows and sums over rows, computed by works on parts; no row is needed locally."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, cast

import numpy as np

from extremal.checks import InputError, NonFiniteError
from extremal.data.kept import Uniform
from extremal.data.parts import KeptNumbers, Parts, PerRow, Work, count_rows
from extremal.data.works import (
    Adjoint,
    Extent,
    Gram,
    GramProduct,
    GramRoot,
    Moments,
    Norms,
    Peaks,
    Picked,
    PickedAdjoint,
    PickedNumbers,
    PickedProducts,
    Powers,
    RowProducts,
    WholeNumbers,
    WholePart,
)
from extremal.points.composed import Combination
from extremal.points.low_rank import LowRank, RankOne
from extremal.points.matrix import wide
from extremal.points.vertex import Coordinate, SparseVertex, Vertex
from extremal.support.linalg import one_thread
from extremal.support.memory import room

_STRUCTURED = Coordinate, SparseVertex, RankOne, LowRank  # these need no product with a dense array of their size


class RowAlgebra(ABC):
    """Rows of a shape and a float type, with an engine for works; each method reads the rows at most once."""

    few: int = 0  # up to this many columns, single columns cost less than a product with all of A

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype:
        """float32 or float64."""

    @property
    @abstractmethod
    def parts(self) -> Parts:
        """The engine that brings parts of the rows to works."""

    def dot(self, x: np.ndarray, idx: np.ndarray | None = None) -> np.ndarray:
        """A[idx] x."""
        if idx is not None:
            self._read(idx)
            kind = np.result_type(self.dtype, x.dtype)
            return self._gathered(PickedProducts.of(idx, np.ascontiguousarray(x)), np.empty((len(idx), *x.shape[1:]), kind))
        out = np.empty((self.shape[0], *x.shape[1:]), np.result_type(self.dtype, x.dtype))
        return self._filled(RowProducts(np.ascontiguousarray(x), None if self.parts.away else out), out)

    def tdot(self, c: np.ndarray, idx: np.ndarray | None = None) -> np.ndarray:
        """A[idx]' c; sums are in float64."""
        n, d = self.shape
        if idx is not None:
            self._read(idx, again=True)
            (total,) = self.parts.reduced(PickedAdjoint.of(idx, c, d * math.prod(c.shape[1:])))
            return np.zeros((d, *c.shape[1:]), np.result_type(self.dtype, c.dtype)) if total is None else total
        if len(c) != n:
            raise InputError(f"c must have one entry per row of A, {n}, got {len(c)}")
        return self.parts.total(Adjoint(c, d * math.prod(c.shape[1:])))[0].astype(np.result_type(self.dtype, c.dtype), copy=False)

    def numbers_of(self, numbers: PerRow, idx: np.ndarray | None = None) -> np.ndarray:
        """Fetch the numbers stored for some rows, or for all."""
        if not isinstance(numbers, KeptNumbers):
            return numbers if idx is None else numbers[idx]
        if idx is None:
            out = room((self.shape[0], *numbers.shape[1:]))  # a head has the numbers of all rows
            for at, found in self.parts.answers(WholeNumbers(numbers))[1]:
                out[at] = found
            return out
        return self._gathered(PickedNumbers.of(idx, numbers), np.empty((len(idx), *numbers.shape[1:])))

    def _gathered(self, work: Picked, out: np.ndarray) -> np.ndarray:
        """The results of a work for some rows, in the requested order."""
        for places, found in self.parts.answers(work)[1]:
            if found is not None:
                out[places] = found
        return out

    def _read(self, idx: np.ndarray, again: bool = False) -> None:
        """Count the cost of a batch: by default, a read of all rows. ``again`` is set for its gradient."""
        count_rows(self.shape[0])

    def row_norms2(self) -> np.ndarray:
        """|a_i|^2 for every row."""
        out = np.empty(self.shape[0])
        return self._filled(Norms(None if self.parts.away else out), out)

    def _filled(self, work: Work, out: np.ndarray) -> np.ndarray:
        """The results of a work for each row: it has filled a local array, or it answers part by part."""
        if not self.parts.away:
            self.parts.total(work)
            return out
        count_rows(self.shape[0] if work.reads else 0)
        for at, found in self.parts.answers(work)[1]:
            out[at] = found
        return out

    def gram(self, W: np.ndarray | None, h: np.ndarray, mean: np.ndarray | None = None) -> np.ndarray:
        """A_W' diag(h) A_W for h >= 0; W = None is all columns.

        With the ``mean`` of these columns by the weights h, A_W'h / sum h, the mean is subtracted from the columns first.
        """
        return self.parts.total(Gram(W, h, mean, (self.shape[1] if W is None else len(W)) ** 2))[0]

    @property
    def longest_sum(self) -> int:
        """The largest number of terms that a sum over all rows adds one after another, in any order: n, or fewer by blocks."""
        return self.shape[0]

    def root(self, h: np.ndarray, mean: np.ndarray | None = None) -> np.ndarray:
        """R with R'R = A' diag(h) A, for h >= 0. R keeps digits that the product loses."""
        count_rows(self.shape[0])
        d = self.shape[1]
        R = np.vstack([R for (R,) in self.parts.answers(GramRoot(None, h, mean, d**2))[1]])
        return np.asarray(np.linalg.qr(R, mode="r")) if len(R) > d else R

    def extent(self, x: np.ndarray) -> tuple[float, float]:
        """The largest |<a_i, x>| and the largest |a_i|^2."""
        count_rows(self.shape[0])
        products, norms = zip(*self.parts.answers(Extent(np.ascontiguousarray(x)))[1], strict=True)
        return max(products), max(norms)

    def moments(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The sums of all columns and of their squares, in float64, row i times weights_i."""
        sums, squares = self.parts.total(Moments(weights, 2 * self.shape[1]))
        return sums, squares

    def powers(self, w: PerRow, p: int) -> np.ndarray:
        """sum_i w_i a_ij^p of every column, for an even p, in float64."""
        return self.parts.total(Powers(w, p, self.shape[1]))[0]

    def peaks(self) -> np.ndarray:
        """max_i |a_ij| of every column, exactly: one read, d numbers.

        They bound the margins of any direction, max_i |<a_i, d>| <= sum_j |d_j| max_i |a_ij|, without a look at the rows.
        """
        count_rows(self.shape[0])
        return np.max([peaks for (peaks,) in self.parts.answers(Peaks())[1]], axis=0)

    def arrays(self, size: int) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield all rows as dense arrays, ``size`` rows at a time."""
        count_rows(self.shape[0])
        for at, block in self.parts.answers(WholePart())[1]:
            for start in range(0, block.shape[0], size):
                some = slice(start, min(start + size, block.shape[0]))
                yield slice(at.start + some.start, at.start + some.stop), block.part(some).array()

    def gram_product(self, v: np.ndarray, h: PerRow | None = None) -> np.ndarray:
        """A' diag(h) A v, in the wider float type."""
        kind = np.result_type(self.dtype, v.dtype)
        return self.parts.total(GramProduct(np.ascontiguousarray(v), h, self.shape[1]))[0].astype(kind, copy=False)

    def lambda_max(self, weights: PerRow | None = None) -> float:
        """The largest eigenvalue of A' diag(weights) A, to a relative 1e-6, from above up to rounding: about a dozen reads."""
        d = self.shape[1]
        if not self.moments(cast(Any, Uniform(self.shape[:1], 1.0)))[1].any():
            return 0.0

        def gram(v: np.ndarray) -> np.ndarray:
            found = self.gram_product(v.reshape(-1).astype(self.dtype), weights).astype(np.float64)
            if not np.isfinite(found).all():
                raise NonFiniteError("the squares of the rows' entries are too large to work with")
            return found

        if d <= 64:
            columns = np.array([gram(e) for e in np.eye(d, dtype=self.dtype)])
            return max(0.0, float(np.linalg.eigvalsh(columns)[-1]))

        from scipy.sparse.linalg import LinearOperator, eigsh  # imported when first needed, because it is slow

        operator = LinearOperator((d, d), matvec=gram, dtype=np.float64)  # pyright: ignore
        v0 = np.random.default_rng(0).standard_normal(d)
        with one_thread():  # of scipy's BLAS, too
            top = eigsh(operator, k=1, tol=1e-7, v0=v0, return_eigenvectors=False)  # pyright: ignore
        return max(0.0, float(top[0])) * (1.0 + 1e-6)

    def dot_vertex(self, v: Vertex, idx: np.ndarray | None = None) -> np.ndarray:
        """A[idx] v: one column of A for each non-zero row of v; (A left) right' for matrices of low rank."""
        return vertex_product(self, v, idx)

    def column(self, j: int, idx: np.ndarray | None = None) -> np.ndarray:
        """Column j of A[idx]."""
        one = np.zeros(self.shape[1], self.dtype)
        one[j] = 1.0
        return self.dot(one, idx)


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
