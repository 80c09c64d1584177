"""Targets that come with rows: their kinds, and their mapping for a loss, done where the rows are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal.checks import InputError
from extremal.data.kept import Derived
from extremal.data.parts import KeptNumbers, Part, PerRow, Sums
from extremal.data.rows import RowData
from extremal.objectives.works import Summed


def rows_called(data: RowData) -> str:
    """The name of some rows in messages."""
    return str(vars(data).get("directory", "the data"))


def check_numbers(call: str, data: RowData) -> None:
    """Refuse targets that are not numbers, and several targets per row."""
    check_no_text(call, data)
    check_single(call, data)


def check_no_text(call: str, data: RowData) -> None:
    """Refuse text labels."""
    if has_text(data):
        raise InputError(f"`{call}` takes targets that are numbers, but those of {rows_called(data)} are labels of text")


def check_single(call: str, data: Any) -> None:
    """Refuse several targets per row."""
    many = data.targets.shape[1:]
    if many:
        raise InputError(f"`{call}` takes one target a row, but the rows of {rows_called(data)} have {many[0]}")


def has_text(data: RowData) -> bool:
    """Whether the targets represent text labels."""
    return data.classes is not None and data.classes.dtype.kind == "U"


def two_alike(data: RowData) -> np.ndarray:
    """Two numbers with the mean and the standard deviation of the targets, for losses that are scaled by these."""
    total, mean, _ = data.parts.total(Summed(_target_sums, _with_weights(data), (0.0,)))
    mean /= total
    spread = math.sqrt(data.parts.total(Summed(_target_sums, _with_weights(data), (mean,)))[2] / total)
    return np.array([mean - spread, mean + spread])


def _with_weights(data: RowData) -> tuple[Any, ...]:
    return (data.targets,) if data.weights is None else (data.targets, data.weights)


def _target_sums(y: np.ndarray, *more: Any) -> tuple[float, float, float]:
    *weights, about = more
    y, w = y - about, weights[0] if weights else np.ones(len(y))
    return float(w.sum()), float(w @ y), float(w @ np.square(y))


def signs_of(y: np.ndarray) -> np.ndarray:
    """Map 0 to -1; other values are left to the check of labels."""
    return np.where(y == 0, -1.0, y)


@dataclass(frozen=True)
class ClassTotals:
    """The total and the largest weight of the rows of each class; the results of parts are not summed."""

    y: PerRow
    w: PerRow | None
    known: np.ndarray  # the numbers that represent the classes, increasing
    reads, alone, sums = False, False, 0

    def __call__(self, part: Part) -> Sums:
        """Both for one part. A target outside of the classes is refused, with the name of the part."""
        y = part.of(self.y)
        codes = codes_of(y, self.known).astype(np.intp)
        strange = self.known[codes] != y
        if strange.any():
            raise InputError(f"{part.name}: expected one of the classes of the manifest as target, got {y[strange][0]:g}")
        w, heaviest = np.ones(part.n) if self.w is None else part.of(self.w), np.zeros(len(self.known))
        np.maximum.at(heaviest, codes, w)
        return np.bincount(codes, w, len(self.known)), heaviest


@dataclass(frozen=True)
class HeavyNumbers(Derived):
    """Weights that store their maximum."""

    heaviest: float = 1.0


@dataclass(frozen=True)
class HeldClasses:
    """The classes of rows with positive weight: labels, numbers, and the total and largest weight of their rows."""

    labels: np.ndarray
    numbers: np.ndarray
    totals: np.ndarray
    heaviest: np.ndarray

    @classmethod
    def of(cls, call: str, data: Any) -> HeldClasses:
        """Collect the classes in one pass over the targets."""
        check_single(call, data)
        labels = data.classes
        if labels is None:
            raise InputError(
                f"`{call}` takes classes, but the targets of {rows_called(data)} are no labels: the manifest lists none"
            )
        numbers = np.arange(len(labels), dtype=np.float64) if has_text(data) else labels
        totals, heaviest = np.zeros(len(labels)), np.zeros(len(labels))
        for total, most in data.parts.answers(ClassTotals(data.targets, data.weights, numbers))[1]:
            totals, heaviest = totals + total, np.maximum(heaviest, most)
        kept = totals > 0
        return cls(labels[kept], numbers[kept], totals[kept], heaviest[kept])

    def codes(self, data: Any) -> Derived:
        """The class number of each row, from 0."""
        return Derived(codes_of, (data.targets,), data.shape[:1], (self.numbers,))

    def weights(self, data: Any, each: np.ndarray | None) -> KeptNumbers | None:
        """The weights of the rows times those of their classes, with mean 1."""
        if each is None:
            return data.weights
        mean = float(each @ self.totals) / data.shape[0]
        rows = (self.codes(data), *_with_weights(data)[1:])
        return HeavyNumbers(_by_class, rows, data.shape[:1], (each / mean,), float((each * self.heaviest).max()) / mean)


def codes_of(y: np.ndarray, known: np.ndarray) -> np.ndarray:
    """The index of each target among the known numbers. A target outside of them has no weight, so any index will do."""
    return np.minimum(np.searchsorted(known, y), len(known) - 1).astype(np.float64)


def _by_class(codes: np.ndarray, *more: np.ndarray) -> np.ndarray:
    *weights, each = more
    found = each[codes.astype(np.intp)]
    return found * weights[0] if weights else found


def against_rest(codes: Any, k: float, high: float = 1.0, low: float = -1.0) -> Any:
    """1 for the rows of class k, -1 for all others; or two other numbers.

    Examples
    --------
    >>> against_rest(np.array([0, 2, 1]), 2)
    array([-1.,  1., -1.])
    """
    how = k, high, low
    return Derived(_against, (codes,), codes.shape, how) if isinstance(codes, KeptNumbers) else _against(codes, *how)


def _against(codes: np.ndarray, k: float, high: float, low: float) -> np.ndarray:
    return np.where(codes == k, high, low)
