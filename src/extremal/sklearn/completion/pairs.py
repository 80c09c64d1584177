"""Positions of known entries: pairs of positions or labels, and matrices with gaps."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_array

from extremal import checks
from extremal.checks import InputError
from extremal.support.kinds import MatrixLike

MOST_SIDE = 10**8  # maximum number of rows plus columns that pairs of numbers may span
EntryArrays = tuple[np.ndarray, np.ndarray, np.ndarray, tuple[int, int]]  # rows, columns, values, and the shape


def kind_of(X: Any, y: Any) -> str:
    """Return "pairs" if X has two columns, y is given, and X holds no fractions; otherwise "matrix".

    Examples
    --------
    >>> kind_of([["ann", "tea"], ["bob", "rum"]], [5, 3]), kind_of([[0.0, 3.0]], [1.0]), kind_of([[0.5, 3.0]], [1.0])
    ('pairs', 'pairs', 'matrix')
    """
    if y is None or sp.issparse(X):
        return "matrix"
    anything: Any = {"dtype": None, "ensure_2d": False, "allow_nd": True, "ensure_all_finite": False}
    X = check_array(X, **anything, ensure_min_samples=0, ensure_min_features=0)
    if X.ndim != 2 or X.shape[1] != 2:
        return "matrix"
    numbers = _numbers(X)
    return "pairs" if numbers is None or numbers.dtype.kind != "f" or (numbers == np.floor(numbers)).all() else "matrix"


def _numbers(column: np.ndarray) -> np.ndarray | None:
    """The column as an array of numbers, or None. Data frames of several types have columns of objects."""
    if column.dtype.kind == "O":
        try:
            numbers = np.array(column.tolist())
        except ValueError:  # lists of unequal length
            return None
        column = numbers if numbers.shape == column.shape else column
    return column if column.dtype.kind in "iuf" else None


def labels_of(X: np.ndarray, frame: object) -> list[np.ndarray | None]:
    """The labels of rows and of columns, each once and in order of appearance; None for positions.

    Labels are all entries other than numbers, and the categories of a data frame.

    Examples
    --------
    >>> labels_of(np.array([["ann", 0], ["bob", 3], ["ann", 7]], object), None)
    [array(['ann', 'bob'], dtype=object), None]
    """
    if X.shape[1] != 2:
        raise InputError(f"`LowRankCompletion(input='pairs').fit(X)` must have two columns, (row, col), got {X.shape[1]}")
    kinds = [str(kind) for kind in getattr(frame, "dtypes", ("", ""))]
    named = [kind == "category" or _numbers(column) is None for kind, column in zip(kinds, X.T, strict=True)]
    return [_each_once(column) if labels else None for labels, column in zip(named, X.T, strict=True)]


def _each_once(column: np.ndarray) -> np.ndarray:
    found = list(_hashed("LowRankCompletion.fit", "X", column))
    labels = np.empty(len(found), object)
    labels[:] = found
    return labels


def places_of(call: str, name: str, given: object, labels: np.ndarray | None) -> np.ndarray:
    """Positions as integers. Unknown labels get a position beyond all others.

    Examples
    --------
    >>> places_of("predict", "X", ["rum", "gin"], np.array(["tea", "rum"], object))
    array([1, 2])
    >>> places_of("reconstruct", "rows", [0.0, 3.0], None)
    array([0, 3])
    """
    if labels is None:
        return _positions(call, name, given)
    given = np.asarray(given, object) if not isinstance(given, np.ndarray) else given
    known = {label: place for place, label in enumerate(labels.tolist())}
    new = _hashed(call, name, given)
    if new and len({isinstance(label, str) for label in (*known, *new)}) > 1 and not new.keys() & known.keys():
        pair = repr(next(iter(known))), repr(next(iter(new)))
        raise InputError(f"`{call}({name}=...)` must hold labels of the kind of the fit's, such as {pair[0]}, got {pair[1]}")
    return np.array([known.get(label, len(known)) for label in given.reshape(-1).tolist()], np.int64).reshape(given.shape)


def _hashed(call: str, name: str, column: np.ndarray) -> dict[object, None]:
    """The labels as the keys of a dict."""
    try:
        found = dict.fromkeys(column.reshape(-1).tolist())
    except TypeError as error:
        raise InputError(f"`{call}({name}=...)` must hold labels that can be keys of a dict, got an {error}") from None
    if any(label is None or label != label for label in found):
        raise InputError(f"`{call}({name}=...)` must hold a label in every place, got a missing one")
    return found


def _positions(call: str, name: str, a: object) -> np.ndarray:
    """Positions as integers. Negative or fractional positions are refused."""
    given = checks.array(call, name, a)
    a, wanted = _numbers(given), f"`{call}({name}=...)` must hold whole numbers of rows and columns, from 0,"
    if a is None:
        raise InputError(f"{wanted} got dtype {given.dtype}")
    bad = ~(a >= 0) | (a != np.floor(a)) | (a > 2**53) if a.dtype.kind == "f" else a < 0
    if bad.any():
        t = int(np.argmax(bad))
        raise InputError(f"{wanted} got {a.flat[t]} at index {t}")
    return a.astype(np.int64, copy=False)


def sides_of(rows: np.ndarray, cols: np.ndarray, shape: Any) -> tuple[int, int]:
    """The shape of the matrix: ``shape`` if it holds all positions, or the smallest that does."""
    sides = int(rows.max()) + 1, int(cols.max()) + 1
    if shape is not None:
        m, n = (checks.whole("LowRankCompletion", "shape", side, 1) for side in shape)
        if m < sides[0] or n < sides[1]:
            raise InputError(f"`LowRankCompletion(shape=...)` must hold all positions, from {sides} on, got {(m, n)}")
        return m, n
    if sum(sides) > MOST_SIDE:
        raise InputError(
            f"`LowRankCompletion.fit(X)` must hold positions that span {MOST_SIDE:.0e} rows and columns at most, got {sides}; "
            "numbers that are names become labels as strings: X.astype(str)"
        )
    return sides


def known_entries(X: Any) -> EntryArrays:
    """The known entries of a checked matrix: stored entries if it is sparse, without NaN."""
    if not sp.issparse(X):
        rows, cols = np.nonzero(~np.isnan(X))
        return rows, cols, X[rows, cols], X.shape
    X = _once(X)
    known = ~np.isnan(X.data)
    return X.row[known], X.col[known], X.data[known], X.shape


def with_gaps(X: Any) -> np.ndarray:
    """A sparse matrix as an array, with NaN for entries that are not stored."""
    X = _once(X)
    out = np.full(X.shape, np.nan, X.dtype)
    out[X.row, X.col] = X.data
    return out


def _once(X: MatrixLike) -> Any:
    """The entries of a sparse matrix, with duplicates summed."""
    X = sp.coo_array(X)
    X.sum_duplicates()
    return X
