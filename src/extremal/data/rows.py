"""Rows of numbers, in memory or elsewhere."""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from operator import methodcaller
from typing import Any

import numpy as np

from extremal.data.algebra import RowAlgebra
from extremal.data.around import ChangedParts, HeadParts
from extremal.data.parts import KeptNumbers, Parts, PerRow, Threads, count_rows
from extremal.data.works import Picked
from extremal.support.linalg import one_thread

_WARNED: set[tuple[str, str]] = set()  # warnings already given in this process: the name of the rows, and the text


@dataclass
class Known:
    """Facts about rows that do not change: checks that need not be repeated."""

    name: str  # the name of the rows in messages
    checks: set[Hashable] = field(default_factory=set)

    def warn(self, what: str, *numbers: float) -> None:
        """Warn about the rows, once per process for each text."""
        if (self.name, what) not in _WARNED:
            _WARNED.add((self.name, what))
            logging.getLogger("extremal").warning(f"%s: {what}", self.name, *numbers)


class RowData(RowAlgebra):
    """Rows of numbers, in memory or elsewhere, with all operations of models as passes over their parts.

    Your own kind of data defines ``shape``, ``dtype`` and ``parts``, an engine that brings parts to works. Each part holds a
    `RowBlock`, which `extremal.data.block_of` makes from an array or a scipy sparse matrix. docs/add-a-part.md has an example.
    Every method below costs one read of the rows, unless it says otherwise. Batches (``idx``) first copy their rows, which takes
    a read. A kind that can do better overrides ``rows``.
    """

    @property
    def nnz(self) -> int:
        """The number of stored entries; by default, all."""
        return self.shape[0] * self.shape[1]

    @property
    def fill(self) -> float:
        """The share of all entries that is stored."""
        return self.nnz / (self.shape[0] * self.shape[1])

    def columns(self, W: np.ndarray) -> RowData:
        """The columns W, which must increase, as data. Rows are read only when needed."""
        return Changed(self, methodcaller("columns", W), len(W))

    def with_column(self, value: float) -> RowData:
        """The same rows with one more column of a constant value."""
        return Changed(self, methodcaller("with_column", value), self.shape[1] + 1)

    def shifted(self, offset: np.ndarray) -> RowData | None:
        """Subtract an offset from each column, in a copy or at every read; None unless the rows are dense arrays."""
        return None

    def rows(self, order: np.ndarray) -> RowData:
        """A copy in memory of the rows ``order``, in that order; repeats are allowed."""
        self._read(order)
        _, found = self.parts.answers(Picked.of(order))
        places, blocks = zip(*((place, block) for place, block in found if block is not None), strict=True)
        at = np.empty(len(order), np.intp)
        at[np.concatenate(places)] = np.arange(len(order))
        return InMemory(blocks[0].joined(blocks).take(at))

    def by_length(self) -> tuple[RowData, np.ndarray] | None:
        """A copy of the rows in the order of their lengths, and that order, if sums over all rows are faster with it."""
        return None

    def head(self, size: int, after: int = 0) -> RowData | None:
        """About ``size`` rows, the first of each part, without a copy: a sample if rows are in random order, otherwise None.

        Without the about ``after`` rows that a smaller head has.
        """
        return None

    @property
    def targets(self) -> PerRow | None:
        """The targets of the rows, if they come with the rows."""
        return None

    @property
    def weights(self) -> PerRow | None:
        """The weights of the rows, with mean 1, if they come with the rows."""
        return None

    @property
    def names(self) -> Sequence[str] | None:
        """The names of the columns, if there are any."""
        return None

    @property
    def classes(self) -> np.ndarray | None:
        """The labels that the targets represent, in increasing order, if the targets are labels."""
        return None

    @property
    def bounds(self) -> Sequence[int] | None:
        """The first row of each part that shares every batch, and n, for rows that batches should take consecutively."""
        return None

    @property
    def known(self) -> Known | None:
        """Known facts about the rows, which may be extended; None for rows that may change or whose parts need not be alike."""
        return None

    @property
    def where(self) -> str:
        """The location of the rows, in words."""
        return "in memory"

    def listed(self) -> tuple[np.ndarray, ...] | None:
        """Row starts, columns and values of the entries, for compiled loops; None if rows are not at hand."""
        return None

    def ready(self, *outputs: int) -> None:
        """Compile the products, or load them from a cache."""


class Changed(RowData):
    """Other rows with a change applied to each part when it is read: some columns, one more, or an offset."""

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

    @property
    def known(self) -> Known | None:
        return self.inner.known

    @property
    def where(self) -> str:
        return self.inner.where

    def head(self, size: int, after: int = 0) -> RowData | None:
        head = self.inner.head(size, after)
        return None if head is None else Changed(head, self.change, self.d)

    def _read(self, idx: np.ndarray, again: bool = False) -> None:
        self.inner._read(idx, again)


class Head(RowData):
    """The first rows of each part of other rows, after those skipped: a sample, if the rows are in random order."""

    def __init__(self, inner: RowData, counts: Sequence[int], skipped: Sequence[int]):
        self.inner, self.counts, self.skipped = inner, counts, skipped

    @property
    def shape(self) -> tuple[int, int]:
        return sum(self.counts), self.inner.shape[1]

    @property
    def parts(self) -> Parts:
        return HeadParts(self.inner.parts, self.counts, self.skipped)

    @property
    def dtype(self) -> np.dtype:
        return self.inner.dtype

    @property
    def known(self) -> Known | None:
        return self.inner.known

    @property
    def nnz(self) -> int:
        return round(self.inner.nnz * self.shape[0] / self.inner.shape[0])

    def _read(self, idx: np.ndarray, again: bool = False) -> None:
        self.inner._read(idx, again)


class InMemory(RowData):
    """Rows in one block in memory."""

    def __init__(self, block: Any):
        self.block, self.few = block, block.few

    def _of(self, block: Any) -> InMemory:
        """Another block of the same kind."""
        new = object.__new__(type(self))
        InMemory.__init__(new, block)
        return new

    @property
    def shape(self) -> tuple[int, int]:
        return self.block.shape

    @property
    def dtype(self) -> np.dtype:
        return self.block.dtype

    @cached_property
    def parts(self) -> Threads:  # pyright: ignore[reportIncompatibleMethodOverride]
        return Threads(self.block)

    @property
    def nnz(self) -> int:
        return self.block.nnz

    @property
    def longest_sum(self) -> int:
        return self.block.longest_sum

    def dot(self, x: np.ndarray, idx: np.ndarray | None = None) -> np.ndarray:
        """A[idx] x; a batch costs its own entries."""
        if idx is not None:
            count_rows(len(idx))
            return self.block.dot_rows(x, idx)
        if self.parts.one:
            count_rows(self.parts.n)
            return self.block.dot(np.ascontiguousarray(x))
        return super().dot(x)

    def tdot(self, c: np.ndarray, idx: np.ndarray | None = None) -> np.ndarray:
        """A[idx]' c; a batch costs its own entries, and an array of the size of x."""
        if idx is not None:
            return self.block.tdot_rows(c, idx)
        if self.parts.one and len(c) == self.parts.n:
            count_rows(len(c))
            g = self.block.tdot(c)
            return g if g.dtype == self.block.dtype else g.astype(np.promote_types(self.block.dtype, c.dtype), copy=False)
        return super().tdot(c)

    def gram_product(self, v: np.ndarray, h: PerRow | None = None) -> np.ndarray:
        if not self.parts.one or isinstance(h, KeptNumbers):
            return super().gram_product(v, h)
        count_rows(self.parts.n)
        return self.block.gram_product(np.ascontiguousarray(v), h).astype(np.result_type(self.dtype, v.dtype), copy=False)

    def columns(self, W: np.ndarray) -> RowData:
        """The columns W as data: a copy, unless W has all columns or too many."""
        return self if len(W) == self.shape[1] else self._of(self.block.columns(W))

    @cached_property
    def by_columns(self) -> InMemory:
        """A copy of A', whose rows are the columns of A."""
        return self._of(self.block.transposed())

    def with_column(self, value: float) -> RowData:
        return self._of(self.block.with_column(value))

    def shifted(self, offset: np.ndarray) -> RowData | None:
        block = self.block.shifted(offset)
        return None if block is None else self._of(block)

    def rows(self, order: np.ndarray) -> RowData:
        count_rows(len(order))
        return self._of(self.block.take(order))

    def by_length(self) -> tuple[RowData, np.ndarray] | None:
        order = self.block.by_length()
        return None if order is None else (self._of(self.block.take(order)), order)

    def listed(self) -> tuple[np.ndarray, ...] | None:
        return self.block.listed()

    def ready(self, *outputs: int) -> None:
        self.block.ready(*outputs)

    def column(self, j: int, idx: np.ndarray | None = None) -> np.ndarray:
        count_rows(self.shape[0] if idx is None else len(idx))
        return self.block.column(j, idx)


def rows_elsewhere(data: object) -> bool:
    """Whether every request reads the rows anew, and numbers of rows are stored where the rows are."""
    return isinstance(data, RowData) and not isinstance(data, InMemory)


def steady(f: object) -> AbstractContextManager[object]:
    """A context for runs on rows elsewhere: BLAS has one thread, so that sums over x do not depend on the number of threads."""
    return one_thread() if rows_elsewhere(getattr(f, "data", None)) else nullcontext()
