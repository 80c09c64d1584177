"""Rows that bring their own targets and weights, such as a directory of shards, as estimators read them.

Predictions are assembled from the parts. objectives/held_targets.py maps the targets.
"""

from __future__ import annotations

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import _check_n_features

from extremal.checks import InputError
from extremal.data.parts import count_rows
from extremal.data.rows import RowData
from extremal.data.works import ProductsBeside
from extremal.objectives.held_targets import check_no_text, check_single, has_text, rows_called
from extremal.support.lazy import imported
from extremal.support.memory import room


def brings_targets(X: object) -> bool:
    """Whether the rows bring their own targets."""
    return isinstance(X, RowData) and X.targets is not None


def is_distributed(X: object) -> bool:
    """Whether X is a Dask array or a Dask data frame."""
    return hasattr(X, "__dask_graph__")


@contextmanager
def rows_near(X: Any, y: Any, sample_weight: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Yield the data of a fit: Dask collections become shards while the context is open; other data pass unchanged."""
    if not is_distributed(X):
        yield X, y, sample_weight
        return
    data = imported("extremal.scale.collections").rows_of(X, y, sample_weight)
    try:
        yield data, None, None
    finally:
        data.close()


def check_alone(call: str, **given: object) -> None:
    """Refuse targets and weights for rows that bring their own."""
    for name, item in given.items():
        if item is not None:
            raise InputError(f"`{call}({name}=...)` must be left out: the targets and weights of these rows come with them")


def check_in_memory(call: str, X: object, does: str, instead: str) -> None:
    """Refuse rows outside of memory. The message says what the call does with rows in memory, and what to do instead."""
    if brings_targets(X) or is_distributed(X):
        raise InputError(f"`{call}(X=...)` {does} no {type(X).__name__}: {instead}")


def check_columns(model: Any, data: RowData, reset: bool) -> None:
    """Store the number and the names of the columns, or refuse columns that differ from those of the fit."""
    _check_n_features(model, data, reset=reset)
    names, known = data.names, vars(model).get("feature_names_in_")
    if reset:
        vars(model).pop("feature_names_in_", None)
        if names is not None:
            model.feature_names_in_ = np.array(names, object)
    elif names is not None and known is not None and list(names) != list(known):
        i = next(i for i, pair in enumerate(zip(names, known, strict=True)) if pair[0] != pair[1])
        name, where = type(model).__name__, rows_called(data)
        raise InputError(f"{name} was fitted to other columns: column {i} was {known[i]!r}, but {where} has {names[i]!r}")


def each_row(data: RowData, x: np.ndarray, function: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Apply a function to the products of all rows with x, part by part.

    Examples
    --------
    >>> from extremal.data import Dense
    >>> each_row(Dense(np.eye(2)), np.array([3.0, -1.0]), np.sign)
    array([ 1., -1.])
    """
    count_rows(data.shape[0])
    out = None
    for at, z in data.parts.answers(ProductsBeside(np.ascontiguousarray(x)))[1]:
        found = function(z)
        out = room((data.shape[0], *found.shape[1:]), found.dtype) if out is None else out
        out[at] = found
    assert out is not None
    return out


class OwnScore(metaclass=ABCMeta):
    """Score with the targets and weights that come with the rows, unless others are given."""

    @abstractmethod
    def _predictor(self) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
        """The coefficients, and the prediction as a function of the products with them."""

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The scikit-learn score. Rows that bring their own targets are scored with these and with their weights."""
        if not brings_targets(X) or y is not None:
            return super().score(X, y, sample_weight)  # type: ignore[misc]
        call, rows = f"{type(self).__name__}.score", self._rows(X)  # type: ignore[attr-defined]
        check_alone(call, sample_weight=sample_weight)
        check_scored(call, rows, vars(self).get("classes_"))
        pieces = scored_pieces(rows, *self._predictor())
        return accuracy(pieces) if is_classifier(self) else explained(pieces)


ScoredRows = tuple[np.ndarray, np.ndarray, np.ndarray]  # predictions for some rows, their targets and weights


def check_scored(call: str, data: RowData, classes: np.ndarray | None) -> None:
    """Refuse targets of another kind than those of the fit: numbers, or one class per row."""
    if classes is None:
        check_no_text(call, data)
        return
    check_single(call, data)
    if has_text(data) != (classes.dtype.kind in "OU"):
        kind = "labels of text" if has_text(data) else "numbers"
        raise InputError(f"`{call}` takes rows of the classes {classes}, but the targets of {rows_called(data)} are {kind}")


def scored_pieces(data: RowData, x: np.ndarray, function: Callable[[np.ndarray], np.ndarray]) -> Iterator[ScoredRows]:
    """Yield predictions, targets and weights part by part, with only a few parts in memory at once."""
    count_rows(data.shape[0])
    numbers, labels = (data.targets, *([] if data.weights is None else [data.weights])), data.classes if has_text(data) else None
    for at, z, y, *w in data.parts.answers(ProductsBeside(np.ascontiguousarray(x), cast(Any, numbers)))[1]:
        known = y if labels is None else labels[y.astype(np.intp)]
        yield function(z), known, w[0] if w else np.ones(at.stop - at.start)


def accuracy(pieces: Iterable[ScoredRows]) -> float:
    """The share of the rows, by weight, whose class is predicted correctly."""
    hits, total = np.sum([(w @ (found == y), w.sum()) for found, y, w in pieces], axis=0)
    return float(hits / total)


def explained(pieces: Iterable[ScoredRows]) -> float:
    """R^2, averaged over the outputs: 1 - sum w (y - found)^2 / sum w (y - mean of y)^2, from sums about the first target.

    Examples
    --------
    >>> y = np.array([1.0, 2.0, 4.0])
    >>> round(explained([(np.array([1.0, 2.0]), y[:2], np.ones(2)), (np.array([3.0]), y[2:], np.ones(1))]), 12)
    0.785714285714
    """
    about, sums = None, []
    for found, y, w in pieces:
        about = y[0] if about is None else about
        off, away = w @ np.square(y - found), y - about
        sums.append((np.broadcast_to(w.sum(), off.shape), off, w @ away, w @ np.square(away)))
    total, off, first, second = np.sum(sums, axis=0)
    spread = np.maximum(second - np.square(first) / total, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.mean(np.where(spread > 0, 1.0 - off / spread, np.where(off > 0, 0.0, 1.0))))


def copied_targets(call: str, data: Any, y: object, sample_weight: object) -> tuple[np.ndarray, np.ndarray | None]:
    """Copy the targets and weights that come with rows to memory, for solvers that only take arrays."""
    check_alone(call, y=y, sample_weight=sample_weight)
    if data.parts.away:
        raise InputError(f"`{call}(X=...)` needs rows of this machine: open them with engine='disk' or engine='memory'")
    check_no_text(call, data)
    return data.numbers_of(data.targets), None if data.weights is None else data.numbers_of(data.weights)
