"""Rows of numbers, wherever they are, and those in memory."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from operator import methodcaller
from typing import Any, cast

import numpy as np

from extremal.checks import InputError, NonFiniteError
from extremal.data.kept import Uniform
from extremal.data.parts import ChangedParts, HeadParts, KeptNumbers, Parts, PerRow, Threads, Work, count_rows
from extremal.data.vertices import vertex_product
from extremal.data.works import (
    Adjoint,
    Extent,
    Gram,
    GramProduct,
    GramRoot,
    Moments,
    Norms,
    Picked,
    PickedAdjoint,
    PickedNumbers,
    PickedProducts,
    RowProducts,
    WholeNumbers,
    WholePart,
)
from extremal.points.vertex import Vertex


class RowData(ABC):
    """Rows of numbers, wherever they are: all that models ask, from a pass over their parts.

    A kind of data of your own says ``shape``, ``dtype`` and ``parts``, an engine that brings its parts to works; each part
    holds a `RowBlock`, which `extremal.data.block_of` makes from an array or a scipy sparse matrix. docs/add-a-part.md has an
    example. Every method below costs one read of the rows, but for those that say otherwise. Batches (``idx``) copy their
    rows first, which takes a read: a kind that can do better overrides ``rows``.
    """

    few: int = 0  # how many columns cost less, one by one, than a product with all of A

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Rows, columns."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype:
        """float32 or float64."""

    @property
    @abstractmethod
    def parts(self) -> Parts:
        """The engine that brings parts of the rows to works."""

    @property
    def nnz(self) -> int:
        """Entries that are stored: all, unless a kind says otherwise."""
        return self.shape[0] * self.shape[1]

    @property
    def fill(self) -> float:
        """The share of all entries that is stored."""
        return self.nnz / (self.shape[0] * self.shape[1])

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
        """Some of the numbers that are kept for each row, or all of them, brought here."""
        if not isinstance(numbers, KeptNumbers):
            return numbers if idx is None else numbers[idx]
        if idx is None:
            out = np.empty(numbers.shape)
            for at, found in self.parts.answers(WholeNumbers(numbers))[1]:
                out[at] = found
            return out
        return self._gathered(PickedNumbers.of(idx, numbers), np.empty((len(idx), *numbers.shape[1:])))

    def _gathered(self, work: Picked, out: np.ndarray) -> np.ndarray:
        """What a work finds of some rows, in the order that was asked for."""
        for places, found in self.parts.answers(work)[1]:
            if found is not None:
                out[places] = found
        return out

    def _read(self, idx: np.ndarray, again: bool = False) -> None:
        """Count what a batch costs: a read of all rows, unless a kind can do better; ``again``: for its gradient."""
        count_rows(self.shape[0])

    def row_norms2(self) -> np.ndarray:
        """|a_i|^2 for every row."""
        out = np.empty(self.shape[0])
        return self._filled(Norms(None if self.parts.away else out), out)

    def _filled(self, work: Work, out: np.ndarray) -> np.ndarray:
        """What a work finds for each row: it has filled an array of this process, or answers part by part."""
        if not self.parts.away:
            self.parts.total(work)
            return out
        count_rows(self.shape[0] if work.reads else 0)
        for at, found in self.parts.answers(work)[1]:
            out[at] = found
        return out

    def gram(self, W: np.ndarray | None, h: np.ndarray, mean: np.ndarray | None = None) -> np.ndarray:
        """A_W' diag(h) A_W for h >= 0; W = None is all columns.

        With the ``mean`` of these columns by the weights h, A_W'h / sum h, it is that of the columns less their mean.
        """
        return self.parts.total(Gram(W, h, mean, (self.shape[1] if W is None else len(W)) ** 2))[0]

    def root(self, h: np.ndarray, mean: np.ndarray | None = None) -> np.ndarray:
        """R with R'R = A' diag(h) A, for h >= 0, which keeps digits that this matrix does not have."""
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

    def columns(self, W: np.ndarray) -> RowData:
        """The columns W, which increase, as data. Nothing is read before it is asked for."""
        return Changed(self, methodcaller("columns", W), len(W))

    def with_column(self, value: float) -> RowData:
        """The same rows with one column more, of one value."""
        return Changed(self, methodcaller("with_column", value), self.shape[1] + 1)

    def shifted(self, offset: np.ndarray) -> RowData | None:
        """A copy with an offset taken from each column; None unless rows are dense arrays."""
        return None

    def rows(self, order: np.ndarray) -> RowData:
        """A copy in memory of the rows ``order``, in that order; repeats are allowed."""
        self._read(order)
        _, found = self.parts.answers(Picked.of(order))
        places, blocks = zip(*((place, block) for place, block in found if block is not None), strict=True)
        at = np.empty(len(order), np.intp)
        at[np.concatenate(places)] = np.arange(len(order))
        return InMemory(blocks[0].joined(blocks).take(at))

    def head(self, size: int) -> RowData | None:
        """About so many rows, the first of each part, without a copy: of rows in random order a sample. None unless they are."""
        return None

    def arrays(self, size: int) -> Iterator[tuple[slice, np.ndarray]]:
        """All rows, so many at a time, as dense arrays."""
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
        """The largest eigenvalue of A' diag(weights) A, to a relative 1e-6 and never below it by more: some dozen reads."""
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

        from scipy.sparse.linalg import LinearOperator, eigsh  # imported when first needed: it takes long

        operator = LinearOperator((d, d), matvec=gram, dtype=np.float64)  # pyright: ignore
        v0 = np.random.default_rng(0).standard_normal(d)
        top = eigsh(operator, k=1, tol=1e-7, v0=v0, return_eigenvectors=False)  # pyright: ignore
        return max(0.0, float(top[0])) * (1.0 + 1e-6)

    @property
    def targets(self) -> PerRow | None:
        """The targets of the rows, if they come with them."""
        return None

    @property
    def weights(self) -> PerRow | None:
        """The weights of the rows, if they come with them: of mean 1."""
        return None

    @property
    def bounds(self) -> Sequence[int] | None:
        """Where the parts begin that share every batch, and n: of rows that batches should take consecutively."""
        return None

    @property
    def where(self) -> str:
        """Where the rows are, in words."""
        return "in memory"

    def listed(self) -> tuple[np.ndarray, ...] | None:
        """Where rows start, the columns of their entries and the entries, for compiled loops; None if rows are not at hand."""
        return None

    def ready(self, *outputs: int) -> None:
        """Compile what products need, or load it from a cache."""
        return

    def dot_vertex(self, v: Vertex, idx: np.ndarray | None = None) -> np.ndarray:
        """A[idx] v: a column of A for each row of v that is not zero, (A left) right' for matrices of low rank."""
        return vertex_product(self, v, idx)

    def column(self, j: int, idx: np.ndarray | None = None) -> np.ndarray:
        """Column j of A[idx]."""
        one = np.zeros(self.shape[1], self.dtype)
        one[j] = 1.0
        return self.dot(one, idx)


class Changed(RowData):
    """Other rows with each part changed when it is read: some of its columns, or one more."""

    def __init__(self, inner: RowData, change: Callable[[Any], Any], d: int):
        self.inner, self.change, self.d = inner, change, d

    @property
    def shape(self) -> tuple[int, int]:
        return self.inner.shape[0], self.d

    @property
    def dtype(self) -> np.dtype:
        return self.inner.dtype

    @property
    def parts(self) -> Parts:
        return ChangedParts(self.inner.parts, self.change)

    @property
    def bounds(self) -> Sequence[int] | None:
        return self.inner.bounds

    def head(self, size: int) -> RowData | None:
        head = self.inner.head(size)
        return None if head is None else Changed(head, self.change, self.d)

    def _read(self, idx: np.ndarray, again: bool = False) -> None:
        self.inner._read(idx, again)


class Head(RowData):
    """The first rows of each part of other rows: a sample of rows that are in random order."""

    def __init__(self, inner: RowData, counts: Sequence[int]):
        self.inner, self.counts = inner, counts

    @property
    def shape(self) -> tuple[int, int]:
        return sum(self.counts), self.inner.shape[1]

    @property
    def parts(self) -> Parts:
        return HeadParts(self.inner.parts, self.counts)

    @property
    def dtype(self) -> np.dtype:
        return self.inner.dtype

    @property
    def nnz(self) -> int:
        return round(self.inner.nnz * self.shape[0] / self.inner.shape[0])

    def _read(self, idx: np.ndarray, again: bool = False) -> None:
        self.inner._read(idx, again)


class InMemory(RowData):
    """Rows in one block, which is in memory."""

    def __init__(self, block: Any):
        self.block, self.few = block, block.few

    def _of(self, block: Any) -> InMemory:
        """Another block of the same kind."""
        new = copy.copy(self)
        InMemory.__init__(new, block)
        return new

    @property
    def shape(self) -> tuple[int, int]:
        return self.block.shape

    @property
    def dtype(self) -> np.dtype:
        return self.block.dtype

    @property
    def parts(self) -> Threads:
        return Threads(self.block)

    @property
    def nnz(self) -> int:
        return self.block.nnz

    def dot(self, x: np.ndarray, idx: np.ndarray | None = None) -> np.ndarray:
        """A[idx] x; a batch costs its own entries."""
        if idx is None:
            return super().dot(x)
        count_rows(len(idx))
        return self.block.dot_rows(x, idx)

    def tdot(self, c: np.ndarray, idx: np.ndarray | None = None) -> np.ndarray:
        """A[idx]' c; a batch costs its own entries, and an array of the size of x."""
        return super().tdot(c) if idx is None else self.block.tdot_rows(c, idx)

    def columns(self, W: np.ndarray) -> RowData:
        """The columns W, as data: copied, unless these are all or too many."""
        return self if len(W) == self.shape[1] else self._of(self.block.columns(W))

    def with_column(self, value: float) -> RowData:
        return self._of(self.block.with_column(value))

    def shifted(self, offset: np.ndarray) -> RowData | None:
        block = self.block.shifted(offset)
        return None if block is None else self._of(block)

    def rows(self, order: np.ndarray) -> RowData:
        count_rows(len(order))
        return self._of(self.block.take(order))

    def listed(self) -> tuple[np.ndarray, ...] | None:
        return self.block.listed()

    def ready(self, *outputs: int) -> None:
        self.block.ready(*outputs)

    def column(self, j: int, idx: np.ndarray | None = None) -> np.ndarray:
        count_rows(self.shape[0] if idx is None else len(idx))
        return self.block.column(j, idx)


def rows_elsewhere(data: object) -> bool:
    """Whether rows are read anew for each question, and numbers of rows are where these are."""
    return isinstance(data, RowData) and not isinstance(data, InMemory)
