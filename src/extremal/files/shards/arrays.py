"""Chunks of arrays: of anything with a shape and row slices, and of scipy's sparse matrices, read by their arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.files.shards.chunks import Chunk, SparseChunk, pieces
from extremal.files.tables import column_number


def pair_chunks(X: Any, y: Any, weights: Any = None, *, first: int = 0, place: str = "row") -> Iterator[Chunk]:
    """The rows of features X with targets y; ``first`` is the number of the first row in messages.

    Examples
    --------
    >>> [chunk.rows.tolist() for chunk in pair_chunks([[1, 2], [3, 4]], [0, 1])]
    [[[1, 2], [3, 4]]]
    """
    X, names = _sliceable(X), _column_names(X)
    y, weights = _sliceable(y), None if weights is None else _sliceable(weights)
    n, row_bytes, step = _sizes(X, f"{place} {first}")
    check_lengths(f"{place} {first}", n, y, weights)
    for lo, hi in pieces(n, row_bytes, step):
        rows = _sparse_rows(X, lo, hi) if checks.is_sparse(X) else _rows(X, lo, hi)
        w = None if weights is None else _rows(weights, lo, hi)
        yield Chunk(rows, _rows(y, lo, hi), w, lambda i, lo=lo: f"{place} {first + lo + i}", int((hi - lo) * row_bytes), names)


def check_lengths(place: str, n: int, y: Any, weights: Any) -> None:
    """Refuse targets and weights whose number is not that of the rows."""
    for what, given in (("target", y), ("weight", weights)):
        if given is not None and tuple(given.shape[:1]) != (n,):
            raise InputError(f"{place}: expected one {what} for each of the {n} rows, got {what}s of shape {tuple(given.shape)}")


def array_chunks(A: Any, place: str, target: str | int | None, weights: str | int | None) -> Iterator[Chunk]:
    """The rows of a matrix with the target, and perhaps the weights, in its columns.

    Examples
    --------
    >>> [chunk.targets.tolist() for chunk in array_chunks(np.array([[1, 2], [3, 4]]), "row", 0, None)]
    [[1, 3]]
    """
    if target is None or checks.is_sparse(A):
        raise InputError(
            "`ShardDir.build(source=...)`: an array has no targets; give (X, y), or target= the column of a dense one"
        )
    n, row_bytes, step = _sizes(A, place)
    columns, y, w = table_columns("`ShardDir.build(source=...)`", target, weights, A.shape[1], [])
    for lo, hi in pieces(n, row_bytes, step):
        rows = _rows(A, lo, hi)
        own = None if w is None else rows[:, w]
        yield Chunk(rows[:, columns], rows[:, y], own, lambda i, lo=lo: f"{place} {lo + i}", int((hi - lo) * row_bytes))


def table_columns(place: str, target: Any, weights: Any, width: int, header: list[str]) -> tuple[list[int], int, int | None]:
    """The feature columns of a table, the target's column (the last one if none is named) and the weights' column.

    Examples
    --------
    >>> table_columns("t.csv", None, "w", 4, ["a", "b", "y", "w"])
    ([0, 1], 2, 3)
    """
    w = None if weights is None else column_number(place, weights, width, header, "weights")
    if target is None and w == width - 1 and width > 2:
        target = width - 2
    y = column_number(place, target, width, header)
    if y == w:
        raise InputError(f"{place}: column {y} cannot be both the target and the weights")
    columns = [j for j in range(width) if j not in (y, w)]
    if not columns:
        raise InputError(f"{place}: expected a column beside the target and the weights")
    return columns, y, w


def _sliceable(A: Any) -> Any:
    """The data in a form with a shape and row slices; lists become arrays, and sparse matrices CSR."""
    if checks.is_sparse(A):
        return A if A.format == "csr" else A.tocsr()
    if np.ma.isMaskedArray(A) or not (hasattr(A, "shape") and hasattr(A, "__getitem__")):
        return checks.array("ShardDir.build", "source", A)
    return A


def _rows(A: Any, lo: int, hi: int) -> np.ndarray:
    return np.asarray(A.iloc[lo:hi] if hasattr(A, "iloc") else A[lo:hi])


def _column_names(X: Any) -> tuple[str, ...] | None:
    """The column names of a frame."""
    names = list(getattr(X, "columns", [])) if hasattr(X, "iloc") else []
    return tuple(names) if names and all(isinstance(name, str) for name in names) else None


def _sizes(X: Any, place: str) -> tuple[int, float, int]:
    """The number of rows, the bytes of a row, and the number of rows that are stored together."""
    if len(X.shape) != 2 or not all(isinstance(side, (int, np.integer)) for side in X.shape):
        raise InputError(f"{place}: expected a matrix of rows, got shape {tuple(X.shape)}")
    n, d = map(int, X.shape)
    if checks.is_sparse(X):
        return n, 4 + (4 + X.data.itemsize) * len(X.data) / max(1, n), 1
    chunks = getattr(X, "chunks", None)  # of zarr and h5py
    step = chunks[0] if isinstance(chunks, tuple) and chunks and isinstance(chunks[0], int) else 1
    return n, d * float(getattr(getattr(X, "dtype", None), "itemsize", 8)), step


def _sparse_rows(A: Any, lo: int, hi: int) -> SparseChunk:
    """Rows of a CSR matrix, by its arrays."""
    starts = np.asarray(A.indptr[lo : hi + 1], np.int64)
    first, last = int(starts[0]), int(starts[-1])
    if not 0 <= first <= last <= len(A.indices):
        raise InputError(f"row {lo}: these are not sparse rows (their starts are not within the entries)")
    return SparseChunk(starts - first, np.asarray(A.indices[first:last]), np.asarray(A.data[first:last]), A.shape[1])
