"""One pass: a work is done on each part of the rows, and its answers are summed over a fixed binary tree of the parts.

    total(lo, hi) = total(lo, mid) + total(mid, hi),   mid = (lo + hi) // 2

Where parts begin depends on the data and on the size of the answers alone. So neither the number of threads nor the place
where rows are read changes a bit of a sum. Small data are one part, and no thread is started for it. Threads live for one
pass, as many as numba was told (NUMBA_NUM_THREADS); they are Python's, so that forks and threads of the user's own do no harm.
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

PART = 2**20  # entries of a part, at least
MOST_PARTS = 64  # parts, at most

Sums = tuple[Any, ...]  # numbers and arrays, added one by one; None and empty arrays where nothing was asked for
PerRow = np.ndarray  # one number, or one line of numbers, for every row: it stays with the parts, and only works look inside
T = TypeVar("T")


class Reader(Protocol):
    """Whoever counts the rows that are read."""

    rows: int


READER: ContextVar[Reader | None] = ContextVar("extremal_reader", default=None)


class counting_rows:
    """Inside, rows that are read are counted for a reader; for nobody, if there is none."""

    def __init__(self, reader: Reader | None):
        self._reader = reader

    def __enter__(self) -> None:
        self._token = READER.set(self._reader)

    def __exit__(self, *error: object) -> None:
        READER.reset(self._token)


def count_rows(number: int) -> None:
    """Note that so many rows are about to be read."""
    reader = READER.get()
    if reader is not None:
        reader.rows += number


class KeptNumbers(ABC):
    """One number, or one line of numbers, for every row, which no array here holds: they are with the parts."""

    shape: tuple[int, ...]
    dtype = np.dtype(np.float64)

    def __len__(self) -> int:
        return self.shape[0]

    @abstractmethod
    def of(self, part: Part) -> np.ndarray:
        """Those of a part, where its rows are."""


@dataclass(frozen=True)
class Part:
    """Consecutive rows, and where they are among all of them."""

    rows: Any  # a `RowBlock`: `Dense` and `CSR` data come in these
    at: slice
    index: int = 0  # which of the parts it is
    kept: Mapping[str, np.ndarray] = field(default_factory=dict)  # numbers of its rows that are kept where these are
    name: str = ""  # how messages call it

    @property
    def n(self) -> int:
        """How many rows it has."""
        return self.at.stop - self.at.start

    def of(self, numbers: PerRow) -> np.ndarray:
        """The numbers of these rows; not copied, so that a work may write them, too."""
        return numbers.of(self) if isinstance(numbers, KeptNumbers) else numbers[self.at]


class Work(Protocol):
    """What is done on each part: plain data (a loss, x, which numbers to keep), and a function of the part."""

    @property
    def reads(self) -> bool: ...  # whether it looks at the rows themselves, and not only at numbers that are kept for each
    @property
    def alone(self) -> bool: ...  # whether it has to be done on this thread: it calls what a user wrote
    @property
    def sums(self) -> int: ...  # numbers of an answer: answers that are large make fewer parts
    def __call__(self, part: Part) -> Sums: ...


class RowWork:
    """What works are made from that look at rows, fit for threads; they say how many numbers they sum, if any."""

    reads, alone, sums = True, False, 0


class Parts(ABC):
    """An engine: it brings the parts of some rows to works. `Threads` is the one for rows in memory."""

    n: int  # rows of all parts
    away: bool = False  # whether works are done elsewhere, where they cannot write the arrays of this process

    @abstractmethod
    def answers(self, work: Work) -> tuple[int, Iterator[Sums]]:
        """How many parts there are for such a work, and its answers on them, in their order."""

    def total(self, work: Work) -> Sums:
        """The sum of a work's answers over all parts.

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
        """The same, without counting: an engine elsewhere sums branches of the tree where the parts are."""
        many, answers = self.answers(work)
        return tree_sum(answers, 0, many)

    def close(self) -> None:  # noqa: B027
        """Give back what the engine holds elsewhere: nothing, in most."""

    def numbers(self, *shape: int) -> PerRow:
        """Room for one number for every row, or for an array of them, which works fill."""
        return self.room(self.n, *shape)

    def room(self, n: int, *shape: int) -> PerRow:
        """The same for the first rows of each part, n in all."""
        return np.empty((n, *shape))


def tree_sum(answers: Iterator[Sums], lo: int, hi: int, known: Mapping[tuple[int, int], Sums] | None = None) -> Sums:
    """The sum of the next hi - lo answers, or of branches that are known; arrays are added to the first of them."""
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

    def __init__(self, rows: Any):
        self.rows, self.n = rows, rows.shape[0]

    def answers(self, work: Work) -> tuple[int, Iterator[Sums]]:
        return 1, iter((work(Part(self.rows, slice(0, self.n))),))


class Threads(OnePart):
    """Rows in memory: parts are ranges of them, of about as many entries each; on all cores, if there are several."""

    def answers(self, work: Work) -> tuple[int, Iterator[Sums]]:
        many = parts_count(self.rows.nnz, work.sums)
        if many == 1:
            return super().answers(work)

        def answer(first: int, last: int) -> Sums:
            at = slice(first, last)
            return work(Part(self.rows.part(at), at))

        bounds = self.rows.bounds(many)
        return len(bounds) - 1, each_part(answer, list(pairwise(bounds)), work.alone)


def parts_count(entries: int, sums: int) -> int:
    """How many parts so many entries make, if an answer has so many numbers.

    The answers of all parts take 64 MiB or two arrays of their size, and their addition a twentieth of the pass, at most.
    """
    sums = max(1, sums)
    return max(1, min(MOST_PARTS, entries // PART, entries // (16 * sums), max(2, 2**23 // sums)))


def each_part(answer: Callable[..., T], places: Sequence[tuple[Any, ...]], alone: bool = False, most: int = 0) -> Iterator[T]:
    """answer(*place) for every place, in order; ``alone``: on this thread. Few more than are asked for are made ahead."""
    threads = 1 if alone or len(places) <= 1 else min(len(places), most or _threads())
    if threads == 1:
        yield from starmap(answer, places)
        return
    here, ahead = copy_context(), deque[Future[T]]()  # the context, so that a part notices if the time of the run is over
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
    import numba.core.config as config  # imported for large data only: it takes long

    return config.NUMBA_NUM_THREADS  # pyright: ignore[reportAttributeAccessIssue]
