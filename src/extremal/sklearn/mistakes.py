"""Clear sentences about rows and targets that scikit-learn refuses with an error of numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import is_regressor

from extremal.checks import InputError
from extremal.support.kinds import DataFrame


def told(model: object, X: Any, y: Any, validate: Callable[[], Any]) -> Any:
    """The result of a validation; if it fails for words in X or y, or for gaps in y, the error says so."""
    name = type(model).__name__
    if isinstance(y, (list, tuple)) and (said := _gap(name, y)):  # an array of words would spell its gaps out
        raise InputError(said)
    try:
        found = validate()
    except (TypeError, ValueError) as error:
        said = _gap(name, y) or _words(name, X) or (_classes(name, y) if is_regressor(model) else "")
        if said:
            raise InputError(said) from error
        raise
    if y is not None and is_regressor(model) and (said := _classes(name, found[1] if isinstance(found, tuple) else found)):
        raise InputError(said)
    return found


def check_gaps(model: object, y: Any) -> None:
    """Refuse classes with missing values, which have no order."""
    if np.asarray(y).dtype.kind == "O" and (said := _gap(type(model).__name__, y)):
        raise InputError(said)


def _gap(name: str, y: Any) -> str:
    """A sentence about the first missing target, or nothing."""
    values = _flat(y)
    row = next((i for i, value in enumerate(values) if is_missing(value)), None)
    return "" if row is None else f"`{name}.fit(y=...)`: y has missing values, first in row {row}; drop the rows without a target"


def is_missing(value: object) -> bool:
    """Whether a target is None, NaN, or the missing value of pandas.

    Examples
    --------
    >>> is_missing(None), is_missing(float("nan")), is_missing("a"), is_missing(0)
    (True, True, False, False)
    """
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (float, np.floating)) and bool(np.isnan(value))


def _flat(y: Any) -> list[Any]:
    """The targets as a list, if they may have gaps."""
    if isinstance(y, (list, tuple)):
        return list(y)
    values = np.asarray(y)
    return values.tolist() if values.ndim == 1 and values.dtype.kind in "Of" else []


def _words(name: str, X: Any) -> str:
    """A sentence about the first column of words, or nothing."""
    if isinstance(X, DataFrame):
        columns = zip(map(repr, X.columns), X.to_numpy().T, strict=True)
    else:
        values = X if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "OU" else np.empty((0, 0))
        columns = ((str(j), column) for j, column in enumerate(values.T))
    for column, values in columns:
        if (word := first_word(values)) is not None:
            dummies = "pandas.get_dummies(X, drop_first=True)"
            return f"`{name}`: column {column} of X holds words such as {word!r}; use {dummies} to make numbers of them"
    return ""


def first_word(values: np.ndarray) -> str | None:
    """The first entry that is text and no number.

    Examples
    --------
    >>> first_word(np.array(["1.5", "Rome"]))
    'Rome'
    """
    return next((str(v) for v in values if isinstance(v, str) and not _is_number(v)), None) if values.dtype.kind in "OU" else None


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _classes(name: str, y: Any) -> str:
    """A sentence about classes as the targets of a regression, or nothing."""
    word = first_word(np.asarray(y)) if np.ndim(y) == 1 else None
    wanted = "must be numbers; for classes use ConstrainedLogisticRegression"
    return "" if word is None else f"`{name}.fit(y=...)` {wanted}, got {word!r}"
