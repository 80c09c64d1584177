"""Parts of another engine in another form, and the works that wrap works to give them that form."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from extremal.data.parts import Part, Parts, PerRow, Sums, Work
from extremal.data.works import Picked


@dataclass(frozen=True)
class Around:
    """Base of works that change a part before another work sees it; their properties are those of the other work."""

    work: Work

    @property
    def reads(self) -> bool:
        """Whether the inner work reads rows."""
        return self.work.reads

    @property
    def alone(self) -> bool:
        """Whether the inner work has to run on this thread."""
        return self.work.alone

    @property
    def sums(self) -> int:
        """The size of an answer."""
        return self.work.sums

    def __call__(self, part: Part) -> Sums:
        return self.work(self.changed(part))

    @abstractmethod
    def changed(self, part: Part) -> Part:
        """The part as the inner work sees it."""

    def placed(self, part: Part) -> Part:
        """The part with the place that the inner work sees, and with its rows as they are."""
        return part


def rows_seen(work: Work, part: Part) -> slice | np.ndarray:
    """The rows of a part that a work reads: consecutive ones, or those of increasing numbers.

    Examples
    --------
    >>> from extremal.data.works import Picked, RowProducts
    >>> part = Part(None, slice(10, 20))
    >>> rows_seen(RowProducts(np.ones(2)), part), rows_seen(Picked.of(np.array([13, 3, 11])), part)
    (slice(0, 10, None), array([1, 3]))
    """
    while isinstance(work, Around):
        part, work = work.placed(part), work.work
    if isinstance(work, Picked):
        return work.within(part)[1] + part.skipped
    return slice(part.skipped, part.skipped + (part.n if work.reads else 0))


def innermost(work: Work) -> Work:
    """The innermost of nested works."""
    while isinstance(work, Around):
        work = work.work
    return work


class OtherParts(Parts):
    """The parts of another engine; works see each part in another form."""

    inner: Parts

    @abstractmethod
    def seen(self, work: Work) -> Work:
        """The work for the other engine."""

    def answers(self, work: Work) -> tuple[int, Iterator[Sums]]:
        return self.inner.answers(self.seen(work))

    def reduced(self, work: Work) -> Sums:
        return self.inner.reduced(self.seen(work))

    def room(self, n: int, *shape: int) -> PerRow:
        return self.inner.room(n, *shape)


class ChangedParts(OtherParts):
    """The parts of another engine, with a change applied before a work reads the rows."""

    def __init__(self, inner: Parts, change: Callable[[Any], Any]):
        self.inner, self.change, self.n, self.away = inner, change, inner.n, inner.away

    def seen(self, work: Work) -> Work:
        return _Changing(work, self.change) if work.reads else work


class HeadParts(OtherParts):
    """The first rows of each part of another engine after those skipped; the engine must make the same parts for every work."""

    def __init__(self, inner: Parts, counts: Sequence[int], skipped: Sequence[int]):
        self.inner, self.ends, self.skipped = inner, tuple(np.cumsum([0, *counts]).tolist()), tuple(skipped)
        self.n, self.away = self.ends[-1], inner.away

    def seen(self, work: Work) -> Work:
        return _OfHead(work, self.ends, self.skipped)


@dataclass(frozen=True)
class _Changing(Around):
    """A work on changed rows."""

    change: Callable[[Any], Any]  # from a block of rows to another

    def changed(self, part: Part) -> Part:
        return replace(part, rows=self.change(part.rows))


@dataclass(frozen=True)
class _OfHead(Around):
    """A work on the first rows of each part after those skipped."""

    ends: tuple[int, ...]
    skipped: tuple[int, ...]

    def changed(self, part: Part) -> Part:
        part = self.placed(part)
        rows = slice(part.skipped, part.skipped + part.n)
        return replace(part, rows=part.rows.part(rows) if self.reads else None)

    def placed(self, part: Part) -> Part:
        at = slice(self.ends[part.index], self.ends[part.index + 1])
        return replace(part, at=at, skipped=self.skipped[part.index])
