"""Chunks of Arrow: Parquet files, and anything with ``__arrow_c_stream__``. This module needs pyarrow, the extra `shards`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from extremal.checks import InputError
from extremal.files.libsvm import row_of_entry, short
from extremal.files.reading import decoding, opened_file
from extremal.files.shards.arrays import table_columns
from extremal.files.shards.chunks import CHUNK_BYTES, Chunk, SparseChunk
from extremal.support.lazy import imported

SPARSE_COLUMNS = "indices", "values"  # two columns of lists: the entries of each row


def _pyarrow(module: str, what: str) -> ModuleType:
    try:
        return imported(module)
    except ImportError:
        raise InputError(f"{what} is read by pyarrow, which is not installed: pip install 'extremal[shards]'") from None


def parquet_chunks(path: Path, target: str | int | None, weights: str | int | None) -> Iterator[Chunk]:
    """The rows of a Parquet file.

    Examples
    --------
    >>> import tempfile
    >>> import pyarrow, pyarrow.parquet
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pyarrow.parquet.write_table(pyarrow.table({"a": [1, 2], "y": [3, 4]}), Path(folder, "t.parquet"))
    ...     [chunk.targets.tolist() for chunk in parquet_chunks(Path(folder, "t.parquet"), "y", None)]
    [[3, 4]]
    """
    parquet = _pyarrow("pyarrow.parquet", str(path))
    with opened_file(path):  # a missing or empty file has the same message as all files
        pass
    with decoding(path):
        file = parquet.ParquetFile(path)
    with file:
        width = max(1, len(file.schema_arrow.names))
        batches = file.iter_batches(batch_size=min(2**16, max(1, CHUNK_BYTES // (8 * width))))
        yield from _chunks(_decoded(path, batches), f"{path}: row", target, weights)


def _decoded(path: Path, batches: Iterator[Any]) -> Iterator[Any]:
    while True:
        with decoding(path):
            batch = next(batches, None)
        if batch is None:
            return
        yield batch


def stream_chunks(source: Any, place: str, target: str | int | None, weights: str | int | None) -> Iterator[Chunk]:
    """The rows of any stream of Arrow, tables and frames included.

    Examples
    --------
    >>> import pyarrow
    >>> table = pyarrow.table({"indices": [[0, 2], []], "values": [[1.5, 2.5], []], "y": [3, 4]})
    >>> [chunk.rows.values for chunk in stream_chunks(table, "row", "y", None)]
    [array([1.5, 2.5])]
    """
    reader = _pyarrow("pyarrow", "a stream of Arrow").RecordBatchReader.from_stream(source)
    yield from _chunks(iter(reader), place, target, weights)


def _chunks(batches: Iterator[Any], place: str, target: Any, weights: Any) -> Iterator[Chunk]:
    """The batches as chunks of bounded size."""
    first = 0
    for found in batches:
        whole = _without_index(found)
        step = max(1, int(CHUNK_BYTES * max(1, whole.num_rows) / max(1, whole.nbytes)))
        for lo in range(0, whole.num_rows, step):
            batch = whole.slice(lo, step)
            yield _chunk(batch, lambda i, at=first + lo: f"{place} {at + i}", place, target, weights)
        first += whole.num_rows


def _without_index(batch: Any) -> Any:
    """The columns without the index of a pandas frame."""
    known = json.loads((batch.schema.metadata or {}).get(b"pandas", b"{}")).get("index_columns", [])
    index = [name for name in known if isinstance(name, str) and re.fullmatch(r"__index_level_\d+__", name)]
    return batch.drop_columns(index) if index else batch


def _chunk(batch: Any, where: Any, place: str, target: Any, weights: Any) -> Chunk:
    names = list(batch.schema.names)
    sparse = [names.index(name) for name in SPARSE_COLUMNS if names.count(name) == 1 and _is_list(batch.column(name).type)]
    if len(sparse) < 2:
        columns, y, w = table_columns(place, target, weights, len(names), names)
        rows: np.ndarray | SparseChunk = _matrix(batch, columns, names, where)
        known = tuple(names[j] for j in columns)
    else:
        left = [j for j in range(len(names)) if j not in sparse]
        y, w = _beside(place, target, weights, [names[j] for j in left])
        y, w = left[y], None if w is None else left[w]
        rows, known = _sparse(batch, where), None
    own = None if w is None else _numbers(batch.column(w), names[w], where)
    return Chunk(rows, _labels(batch.column(y), names[y], where), own, where, batch.nbytes, known)


def _beside(place: str, target: Any, weights: Any, names: list[str]) -> tuple[int, int | None]:
    """The columns of the target and the weights beside those of entries; others are refused."""
    kept = [names.index(name) for name in (target, weights) if name in names]
    w = names.index(weights) if weights in names else None
    rest = [j for j in range(len(names)) if j not in kept]
    y = names.index(target) if target in names else rest.pop() if target is None and len(rest) == 1 else None
    if y is None or rest or (weights is not None and w is None):
        told = short(", ".join(names), 200)
        raise InputError(f"{place}s: beside indices and values expected columns for the target and for weights=, got {told}")
    return y, w


def _is_list(kind: Any) -> bool:
    types = imported("pyarrow").types
    return types.is_list(kind) or types.is_large_list(kind)


def _matrix(batch: Any, columns: list[int], names: list[str], where: Any) -> np.ndarray:
    found = [_numbers(batch.column(j), names[j], where) for j in columns]
    small = all(a.dtype in (np.float32, np.float16) for a in found)
    out = np.empty((batch.num_rows, len(found)), np.float32 if small else np.float64)
    for j, a in enumerate(found):
        out[:, j] = a
    return out


def _whole(column: Any, name: str, where: Any) -> Any:
    """Return the column, or refuse it if a value is missing."""
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise InputError(f"{where(row)}: column {name!r} has no value")
    return column


def _numbers(column: Any, name: str, where: Any) -> np.ndarray:
    types, kind = imported("pyarrow").types, column.type
    if types.is_decimal(kind):
        column = column.cast("float64")
    elif not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
        raise InputError(f"{where(0)}: column {name!r}: expected numbers, got {kind}")
    return _whole(column, name, where).to_numpy(zero_copy_only=False)


def _labels(column: Any, name: str, where: Any) -> np.ndarray:
    """Numbers, or text."""
    types = imported("pyarrow").types
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    kind = column.type
    if types.is_string(kind) or types.is_large_string(kind) or str(kind) == "string_view":
        return np.array(_whole(column, name, where).to_pylist(), object)
    return _numbers(column, name, where)


def _sparse(batch: Any, where: Any) -> SparseChunk:
    lists = [_whole(batch.column(name), name, where) for name in SPARSE_COLUMNS]
    offsets = [column.offsets.to_numpy().astype(np.int64) for column in lists]
    starts, others = (a - a[0] for a in offsets)
    if not np.array_equal(starts, others):
        row = int(np.argmax(np.diff(starts) != np.diff(others)))
        raise InputError(f"{where(row)}: expected as many indices as values")
    columns, values = (
        _numbers(column.flatten(), name, lambda e: where(row_of_entry(starts, e)))
        for column, name in zip(lists, SPARSE_COLUMNS, strict=True)
    )
    return SparseChunk(starts, columns, values)
