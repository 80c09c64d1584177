"""Rows that bring their targets and weights, a directory of shards above all, as estimators read them.

Targets are mapped where the rows are, part by part; what is predicted is put together from the parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import _check_n_features

from extremal.checks import InputError
from extremal.data.kept import Derived
from extremal.data.parts import KeptNumbers, Part, PerRow, Sums, count_rows
from extremal.data.rows import RowData
from extremal.data.works import RowProducts
from extremal.objectives.works import Summed
from extremal.support.lazy import imported


def brings_targets(X: object) -> bool:
    """Whether targets come with some rows."""
    return isinstance(X, RowData) and X.targets is not None


def is_distributed(X: object) -> bool:
    """Whether it is an array or a frame of Dask."""
    return hasattr(X, "__dask_graph__")


@contextmanager
def rows_near(X: Any, y: Any, sample_weight: Any) -> Iterator[tuple[Any, Any, Any]]:
    """What to fit to: collections of Dask become shards for as long as this lasts; all else is left as it is."""
    if not is_distributed(X):
        yield X, y, sample_weight
        return
    data = imported("extremal.scale.collections").rows_of(X, y, sample_weight)
    try:
        yield data, None, None
    finally:
        data.close()


def check_alone(call: str, **given: object) -> None:
    """Refuse targets and weights beside rows that bring their own."""
    for name, item in given.items():
        if item is not None:
            raise InputError(f"`{call}({name}=...)` must be left out: the targets and weights of these rows come with them")


def check_batches(call: str, X: object) -> None:
    """Refuse rows that are elsewhere where batches are to come one by one."""
    if brings_targets(X) or is_distributed(X):
        raise InputError(f"`{call}(X=...)` takes a batch of rows in memory, and no {type(X).__name__}: use fit for all of them")


def check_columns(model: Any, data: RowData, reset: bool) -> None:
    """Note the number and the names of the columns; or refuse others than those of the fit."""
    _check_n_features(model, data, reset=reset)
    names, known = getattr(data, "names", None), getattr(model, "feature_names_in_", None)
    if reset:
        vars(model).pop("feature_names_in_", None)
        if names is not None:
            model.feature_names_in_ = np.array(names, object)
    elif names is not None and known is not None and list(names) != list(known):
        i = next(i for i, pair in enumerate(zip(names, known, strict=True)) if pair[0] != pair[1])
        name = type(model).__name__
        raise InputError(f"{name} was fitted to other columns: column {i} was {known[i]!r}, and {_said(data)} has {names[i]!r}")


def _said(data: RowData) -> str:
    """What to call some rows in a message."""
    return str(getattr(data, "directory", "the data"))


def each_row(data: RowData, x: np.ndarray, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """A function of the products of all rows with x, made part by part.

    Examples
    --------
    >>> from extremal.data import Dense
    >>> each_row(Dense(np.eye(2)), np.array([3.0, -1.0]), np.sign)
    array([ 1., -1.])
    """
    count_rows(data.shape[0])
    out = None
    for at, z in data.parts.answers(RowProducts(np.ascontiguousarray(x)))[1]:
        found = function(z)
        out = np.empty((data.shape[0], *found.shape[1:]), found.dtype) if out is None else out
        out[at] = found
    assert out is not None
    return out


class OwnScore:
    """Scores by the targets and the weights that come with the rows, unless others are given."""

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The score of scikit-learn; rows that bring their targets are scored by these, and by their weights."""
        if brings_targets(X) and y is None:
            check_alone(f"{type(self).__name__}.score", sample_weight=sample_weight)
            y = X.numbers_of(X.targets)
            y = X.classes[y.astype(np.intp)] if _is_text(X) else y
            sample_weight = None if X.weights is None else X.numbers_of(X.weights)
        return super().score(X, y, sample_weight)  # type: ignore[misc]


# ---- regression


def check_numbers(call: str, data: RowData) -> None:
    """Refuse targets that are no numbers, or several of them a row."""
    _check_no_text(call, data)
    _check_single(call, data)


def _check_no_text(call: str, data: RowData) -> None:
    if _is_text(data):
        raise InputError(f"`{call}` takes targets that are numbers, and those of {_said(data)} are labels of text")


def _check_single(call: str, data: RowData) -> None:
    if data.targets.shape[1:]:  # type: ignore[union-attr]
        raise InputError(f"`{call}` takes one target a row, and the rows of {_said(data)} have {data.targets.shape[1]}")  # type: ignore[union-attr]


def copied_targets(call: str, data: Any, y: object, sample_weight: object) -> tuple[np.ndarray, np.ndarray | None]:
    """Targets and weights that come with rows, copied to memory, for solvers that know arrays only."""
    check_alone(call, y=y, sample_weight=sample_weight)
    if data.parts.away:
        raise InputError(f"`{call}(X=...)` needs rows of this machine: open them with engine='disk' or engine='memory'")
    _check_no_text(call, data)
    return data.numbers_of(data.targets), None if data.weights is None else data.numbers_of(data.weights)


def _is_text(data: RowData) -> bool:
    classes = getattr(data, "classes", None)
    return classes is not None and classes.dtype.kind == "U"


def two_alike(data: Any) -> np.ndarray:
    """Two numbers with the mean and the deviation of the targets: all that losses want to know which are scaled by these."""
    total, mean, square = data.parts.total(Summed(_target_sums, _with_weights(data)))
    mean, square = mean / total, square / total
    spread = math.sqrt(max(0.0, square - mean * mean))
    return np.array([mean - spread, mean + spread])


def _with_weights(data: Any) -> tuple[Any, ...]:
    return (data.targets,) if data.weights is None else (data.targets, data.weights)


def _target_sums(y: np.ndarray, w: np.ndarray | None = None) -> tuple[float, float, float]:
    w = np.ones(len(y)) if w is None else w
    return float(w.sum()), float(w @ y), float(w @ np.square(y))


def signs_of(y: np.ndarray) -> np.ndarray:
    """-1 for 0; all else is left to those who check labels."""
    return np.where(y == 0, -1.0, y)


# ---- classes


@dataclass(frozen=True)
class ClassTotals:
    """The weight of the rows of each class, and the largest of a row; answers are not to be summed."""

    y: PerRow
    w: PerRow | None
    known: np.ndarray  # the numbers that stand for the classes, increasing
    reads, alone, sums = False, False, 0

    def __call__(self, part: Part) -> Sums:
        """Both, of a part; a target that is no class is refused, and the part is named."""
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
    """Weights that know the largest of them."""

    heaviest: float = 1.0


@dataclass(frozen=True)
class HeldClasses:
    """The classes of rows with a weight: their labels, their numbers, and what the rows of each weigh together and at most."""

    labels: np.ndarray
    numbers: np.ndarray
    totals: np.ndarray
    heaviest: np.ndarray

    @classmethod
    def of(cls, call: str, data: Any) -> HeldClasses:
        """From one look at the targets."""
        _check_single(call, data)
        labels = getattr(data, "classes", None)
        if labels is None:
            raise InputError(f"`{call}` takes classes, and the targets of {_said(data)} are no labels: the manifest lists none")
        numbers = np.arange(len(labels), dtype=np.float64) if _is_text(data) else labels
        totals, heaviest = np.zeros(len(labels)), np.zeros(len(labels))
        for total, most in data.parts.answers(ClassTotals(data.targets, data.weights, numbers))[1]:
            totals, heaviest = totals + total, np.maximum(heaviest, most)
        kept = totals > 0
        return cls(labels[kept], numbers[kept], totals[kept], heaviest[kept])

    def codes(self, data: Any) -> Derived:
        """The number of its class for each row, from 0 on."""
        return Derived(codes_of, (data.targets,), data.shape[:1], (self.numbers,))

    def weights(self, data: Any, each: np.ndarray | None) -> KeptNumbers | None:
        """Those of the rows times those of their classes, of mean 1."""
        if each is None:
            return data.weights
        mean = float(each @ self.totals) / data.shape[0]
        rows = (self.codes(data), *_with_weights(data)[1:])
        return HeavyNumbers(_by_class, rows, data.shape[:1], (each / mean,), float((each * self.heaviest).max()) / mean)


def codes_of(y: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Which of the known numbers each target is; what is none of them has no weight, and any number will do."""
    return np.minimum(np.searchsorted(known, y), len(known) - 1).astype(np.float64)


def _by_class(codes: np.ndarray, *more: np.ndarray) -> np.ndarray:
    *weights, each = more
    found = each[codes.astype(np.intp)]
    return found * weights[0] if weights else found


def against_rest(codes: Any, k: int) -> Any:
    """1 for the rows of class k, -1 for all others.

    Examples
    --------
    >>> against_rest(np.array([0, 2, 1]), 2)
    array([-1.,  1., -1.])
    """
    return Derived(_against, (codes,), codes.shape, (k,)) if isinstance(codes, KeptNumbers) else _against(codes, k)


def _against(codes: np.ndarray, k: int) -> np.ndarray:
    return np.where(codes == k, 1.0, -1.0)
