"""One pass: a work runs on each part of the rows, and its answers are summed over a fixed binary tree of the parts.

    total(lo, hi) = total(lo, mid) + total(mid, hi),   mid = (lo + hi) // 2

The bounds of the parts depend only on the data and the size of the answers. So neither the number of threads nor the place where
rows are read changes a bit of a sum. Small data are one part, without any thread. Threads live for one pass, and their number is
numba's setting NUMBA_NUM_THREADS. They are Python threads, so that forks and the user's own threads do no harm.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from itertools import pairwise, starmap
from typing import Any, Protocol, TypeVar

import numpy as np

PART = 2**20  # minimum number of entries in a part
MOST_PARTS = 64  # maximum number of parts

Sums = tuple[Any, ...]  # numbers and arrays, added one by one; None and empty arrays for results that were not requested
PerRow = np.ndarray  # one number, or one line of numbers, for every row: stored with the parts, and only works look inside
T = TypeVar("T")


class Reader(Protocol):
    """A counter of the rows that are read."""

    rows: int


_READER: ContextVar[Reader | None] = ContextVar("extremal_reader", default=None)


def counting_rows(reader: Reader | None, question: Callable[..., T], *given: object) -> T:
    """Answer a question, and count the rows read for it for a reader, or for no one if it is None."""
    token = _READER.set(reader)
    try:
        return question(*given)
    finally:
        _READER.reset(token)


def count_rows(number: int) -> None:
    """Record that ``number`` rows are about to be read."""
    reader = _READER.get()
    if reader is not None:
        reader.rows += number


class KeptNumbers:
    """The base of numbers of every row, or lines of numbers, that are stored with the parts instead of in a local array."""

    shape: tuple[int, ...]
    dtype = np.dtype(np.float64)

    def __len__(self) -> int:
        return self.shape[0]

    @abstractmethod  # without `ABC`, whose tests of types would cost more than a small part
    def of(self, part: Part) -> np.ndarray:
        """The numbers of a part, at the place of its rows."""


@dataclass(frozen=True)
class Part:
    """Consecutive rows, and their position among all rows."""

    rows: Any  # a `RowBlock`: `Dense` and `CSR` data come in these
    at: slice
    index: int = 0  # index of the part
    kept: Mapping[str, np.ndarray] = field(default_factory=dict)  # numbers stored with its rows
    name: str = ""  # its name in messages
    skipped: int = 0  # rows of its whole part before these

    @property
    def n(self) -> int:
        """The number of rows."""
        return self.at.stop - self.at.start

    def of(self, numbers: PerRow) -> np.ndarray:
        """The numbers of these rows, without a copy, so that a work can also write them."""
        return numbers.of(self) if isinstance(numbers, KeptNumbers) else numbers[self.at]


class Work(Protocol):
    """A task for each part: plain data (a loss, x, the numbers to store), and a function of the part."""

    @property
    def reads(self) -> bool: ...  # whether it reads the rows, and not only numbers stored for each row
    @property
    def alone(self) -> bool: ...  # whether it has to run on this thread, because it calls user code
    @property
    def sums(self) -> int: ...  # size of an answer: large answers make fewer parts
    def __call__(self, part: Part) -> Sums: ...


class RowWork:
    """Base of thread-safe works that read rows; a work with sums sets ``sums``."""

    reads, alone, sums = True, False, 0


class Parts(ABC):
    """An engine: it brings the parts of some rows to works. `Threads` is the engine for rows in memory."""

    n: int  # number of rows in all parts
    away: bool = False  # whether works run elsewhere, and cannot write local arrays

    @abstractmethod
    def answers(self, work: Work) -> tuple[int, Iterator[Sums]]:
        """The number of parts for a work, and its answers on them, in order."""

    def total(self, work: Work) -> Sums:
        """The sum of the answers of a work over all parts.

        Examples
        --------
        >>> from extremal.data.dense import Dense
        >>> from extremal.data.works import Adjoint
        >>> Dense([[1.0, 2.0], [3.0, 4.0]]).parts.total(Adjoint(np.ones(2), 2))
        (array([4., 6.]),)
        """
        if work.reads:
            count_rows(self.n)
        return self.reduced(work)

    def reduced(self, work: Work) -> Sums:
        """The same without counting rows. An engine elsewhere sums branches of the tree where the parts are."""
        many, answers = self.answers(work)
        return tree_sum(answers, 0, many)

    def close(self) -> None:  # noqa: B027
        """Release resources held elsewhere; most engines hold none."""

    def numbers(self, *shape: int) -> PerRow:
        """Space for one number, or an array of numbers, for every row, which works fill."""
        return self.room(self.n, *shape)

    def room(self, n: int, *shape: int) -> PerRow:
        """The same for the first rows of each part, n in total."""
        return np.empty((n, *shape))


def tree_sum(answers: Iterator[Sums], lo: int, hi: int, known: Mapping[tuple[int, int], Sums] | None = None) -> Sums:
    """The sum of the next hi - lo answers, or of known branches; arrays are added in place to the first."""
    if known and (lo, hi) in known:
        return known[lo, hi]
    if hi - lo == 1:
        return next(answers)
    mid = (lo + hi) // 2
    left, right = tree_sum(answers, lo, mid, known), tree_sum(answers, mid, hi, known)
    return tuple(_added(a, b) for a, b in zip(left, right, strict=True))


def _added(a: Any, b: Any) -> Any:
    if a is None or b is None:
        return b if a is None else a
    if isinstance(a, np.ndarray):
        a += b
        return a
    return a + b


class OnePart(Parts):
    """All rows at once."""

    one = True  # whether the data are one part for every work

    def __init__(self, rows: Any):
        self.rows, self.n = rows, rows.shape[0]
        self.whole = Part(rows, slice(0, self.n))

    def answers(self, work: Work) -> tuple[int, Iterator[Sums]]:
        return 1, iter((work(self.whole),))

    def reduced(self, work: Work) -> Sums:
        """The answer on the one part, or the sum."""
        return work(self.whole) if self.one else super().reduced(work)


class Threads(OnePart):
    """Rows in memory. Parts are ranges with about equally many entries, and run on all cores if there are several."""

    def __init__(self, rows: Any):
        super().__init__(rows)
        self.one = rows.nnz < 2 * PART
        self._cut: dict[int, list[Part]] = {}  # the parts by their number: making them takes as long as reading some rows

    def __reduce__(self) -> Any:
        return type(self), (self.rows,)

    def answers(self, work: Work) -> tuple[int, Iterator[Sums]]:
        many = 1 if self.one else parts_count(self.rows.nnz, work.sums)
        if many == 1:
            return super().answers(work)

        parts = self._cut.get(many)
        if parts is None:
            places = (slice(*ends) for ends in pairwise(self.rows.bounds(many)))
            parts = self._cut[many] = [Part(self.rows.part(at), at) for at in places]
        return len(parts), each_part(work, [(part,) for part in parts], work.alone)


def parts_count(entries: int, sums: int) -> int:
    """The number of parts for given numbers of entries and of sums in an answer.

    The answers of all parts take at most 64 MiB or two arrays of their size, and adding them takes at most 1/20 of the pass.
    """
    sums = max(1, sums)
    return max(1, min(MOST_PARTS, entries // PART, entries // (16 * sums), max(2, 2**23 // sums)))


def each_part(answer: Callable[..., T], places: Sequence[tuple[Any, ...]], alone: bool = False, most: int = 0) -> Iterator[T]:
    """Yield answer(*place) for every place, in order; ``alone``: on this thread. Few answers are computed ahead."""
    threads = 1 if alone or len(places) <= 1 else min(len(places), most or _threads())
    if threads == 1:
        yield from starmap(answer, places)
        return
    here, ahead = copy_context(), deque[Future[T]]()  # with the context, a part notices the end of the run's time
    with ThreadPoolExecutor(threads) as pool:
        try:
            for place in places:
                ahead.append(pool.submit(here.copy().run, answer, *place))
                if len(ahead) > threads:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            for one in ahead:
                one.cancel()


def _threads() -> int:
    import numba.core.config as config  # imported for large data only, because it is slow

    return config.NUMBA_NUM_THREADS  # pyright: ignore[reportAttributeAccessIssue]
