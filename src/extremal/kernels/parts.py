"""A pass over all rows in parts, on several threads if there are several parts.

How many parts there are depends on the data alone, and what they answer comes in their order: so a sum over them does not
depend on the number of threads. Small data are one part, and no thread is started for it. Threads live for one pass; they are
Python's, so that forks, pools and threads of the user's own do no harm. There are as many as numba was told
(NUMBA_NUM_THREADS), or as there are processors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

PART = 2**20  # entries of a part, at least
MOST_PARTS = 64  # parts, at most


def count(entries: int, d: int) -> int:
    """How many parts so many entries make, if each part has d sums of its own.

    The sums of all parts take 64 MiB or two arrays of d numbers, and their addition a twentieth of the pass, at most.
    """
    d = max(1, d)
    return max(1, min(MOST_PARTS, entries // PART, entries // (16 * d), max(2, 2**23 // d)))


T = TypeVar("T")


def each(work: Callable[[int, int], T], bounds: Sequence[int], alone: bool = False) -> Iterator[T]:
    """work(first, last) for the rows between neighbours in ``bounds``, in order; ``alone``: on this thread."""
    threads = 1 if alone or len(bounds) <= 2 else min(len(bounds) - 1, _threads())
    if threads == 1:
        yield from map(work, bounds[:-1], bounds[1:])
        return
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(work, bounds[:-1], bounds[1:])


def sums_of_parts(
    work: Callable[[int, int], tuple[float, np.ndarray]], bounds: Sequence[int], alone: bool = False
) -> tuple[float, np.ndarray]:
    """The sums of what ``work`` answers for each part, a number and an array; the arrays are added to the first of them."""
    if len(bounds) == 2:
        return work(*bounds)
    answers = each(work, bounds, alone)
    total, g = next(answers)
    for more, g_more in answers:
        total += more
        g += g_more
    return total, g


def _threads() -> int:
    import numba.core.config as config  # imported for large data only: it takes long

    return config.NUMBA_NUM_THREADS  # pyright: ignore[reportAttributeAccessIssue]
