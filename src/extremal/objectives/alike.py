"""Check that the parts of the rows look alike, as parts of randomly ordered rows do, during the first passes over the data."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from extremal.checks import InputError
from extremal.data.parts import Part, PerRow, Sums, Work
from extremal.data.rows import Known, RowData
from extremal.losses.base import Loss, check_targets

DIRECTIONS = 4  # number of random directions along which rows are compared
COMPARED_ROWS = 2**13  # at most this many first rows of a part are compared
FEWEST_ROWS, FEWEST_BEYOND = 16, 50  # smallest number of rows of a part, and of rows minus parts, for a comparison
SURE = 5.0  # deviations of the ratio beyond which it is not due to chance
CONSTANT_LINE = 1e-8  # numbers are constant if their variance is below this share of their mean square
MARGIN = 4.0  # safety factor for rows that are far from normal

UNLIKE = (
    "the {} of its shards differ %.3g times as much as those of random rows would, so batches and samples do not represent the "
    "whole: build it again with shuffle=True"
)
TARGETS_DIFFER, ROWS_DIFFER = UNLIKE.format("targets"), UNLIKE.format("rows")


@dataclass(frozen=True)
class TargetCheck:
    """Refuse targets that the loss does not take, naming the part; sum 1, n, y, y^2 and (sum of y)^2 / n over the parts."""

    loss: Loss
    y: PerRow
    reads, alone, sums = False, False, 0

    def __call__(self, part: Part) -> Sums:
        try:
            y = check_targets(self.loss, part.of(self.y), part.n)
        except InputError as error:
            raise InputError(f"{part.name}: {error}") from None
        return between_sums(y.reshape(1, -1))


@dataclass(frozen=True)
class Compared:
    """A work, plus the sums of `between_sums` for products of the first rows of each part with random vectors."""

    work: Work
    alone: bool
    sums: int
    reads = True

    def __call__(self, part: Part) -> Sums:
        found = self.work(part)
        head = part.rows.part(slice(0, min(part.n, COMPARED_ROWS)))
        return *found, *between_sums(np.array([head.dot(r) for r in random_directions(part.rows.shape[1])]))


@lru_cache(maxsize=1)
def random_directions(d: int) -> np.ndarray:
    """Random vectors, the same in every call."""
    return np.random.default_rng(0).standard_normal((DIRECTIONS, d))


def between_sums(t: np.ndarray) -> Sums:
    """1, n, and for each line of n numbers: their sum, the sum of their squares, and their squared sum over n.

    All are 0 if the numbers are few: the mean of a few rows may be far from that of others, even of rows in random order.
    """
    if t.shape[1] < FEWEST_ROWS:
        return 0, 0, *np.zeros((3, len(t)))
    totals, n = t.sum(axis=1, dtype=np.float64), t.shape[1]
    return 1, n, totals, np.square(t, dtype=np.float64).sum(axis=1), np.square(totals) / n


def between_ratio(many: int, n: int, total: np.ndarray, squares: np.ndarray, apart: np.ndarray) -> float:
    """The variance between parts over the variance within, the largest over all lines: about 1 for rows in random order.

    Examples
    --------
    >>> t = np.random.default_rng(0).standard_normal((1, 10_000))
    >>> for rows in t, np.sort(t):
    ...     one, two = between_sums(rows[:, :5000]), between_sums(rows[:, 5000:])
    ...     print(between_ratio(*(a + b for a, b in zip(one, two, strict=True))) > most_likely(2))
    False
    True
    """
    if many < 2 or n - many < FEWEST_BEYOND:
        return 1.0
    between, within = apart - np.square(total) / n, squares - apart
    told = within > CONSTANT_LINE * squares  # otherwise each part holds a single number: n, if these differ
    ratio = between / (many - 1) / np.where(told, within / (n - many), 1.0)
    return float(np.where(told, ratio, np.where(between > CONSTANT_LINE * squares, n, 1.0)).max())


def most_likely(many: int) -> float:
    """A bound on the ratio for ``many`` parts of random rows, exceeded once in millions (Wilson, Hilferty 1931)."""
    spread = 2.0 / (9.0 * (many - 1))
    return MARGIN * (1.0 - spread + SURE * math.sqrt(spread)) ** 3


def check_held(data: RowData, loss: Loss, y: PerRow) -> float:
    """Check targets that come with the rows, part by part, once per loss; return the ratio of variance between parts to within.

    A ratio too large for random rows gives a warning, because batches and samples would not represent the whole.
    """
    known, check = data.known, TargetCheck(loss, y)
    if known is not None and _is_hashable(check) and check in known.checks:
        return 1.0
    many, n, *sums = data.parts.total(check)
    if known is not None and _is_hashable(check):
        known.checks.add(check)
    return _told(known, TARGETS_DIFFER, many, n, *sums)


def first_total(data: Any, work: Work) -> Sums:
    """The sums of a work that reads all rows. The first such work on a directory also compares the rows of its parts."""
    known = data.known if isinstance(data, RowData) else None
    if known is None or Compared in known.checks:
        return data.parts.total(work)
    *found, many, n, total, squares, apart = data.parts.total(Compared(work, work.alone, work.sums))
    known.checks.add(Compared)
    _told(known, ROWS_DIFFER, many, n, total, squares, apart)
    return tuple(found)


def _told(known: Known | None, what: str, many: int, *sums: Any) -> float:
    """Return the ratio, and warn if it is large."""
    ratio = between_ratio(many, *sums)
    if many > 1 and ratio > most_likely(many):
        (known or Known("the data")).warn(what, ratio)
    return ratio


def _is_hashable(item: Hashable) -> bool:
    try:
        hash(item)
    except TypeError:
        return False
    return True
