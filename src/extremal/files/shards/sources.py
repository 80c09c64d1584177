"""Sources of rows: files of several kinds, arrays, streams of Arrow, pairs and iterators of pairs, chunk by chunk."""

from __future__ import annotations

import glob
from collections.abc import Generator, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from extremal.checks import InputError
from extremal.files.libsvm import BYTES_AT_ONCE, read_blocks
from extremal.files.reading import OPENERS, opened_file
from extremal.files.shards.arrays import array_chunks, pair_chunks, table_columns
from extremal.files.shards.arrow import parquet_chunks, stream_chunks
from extremal.files.shards.chunks import Chunk, SparseChunk
from extremal.files.shards.npz import npy_chunks, npz_chunks
from extremal.files.tables import Chosen, csv_blocks, file_kind

TEXT_AT_ONCE, FIELDS_AT_ONCE = BYTES_AT_ONCE, 2**17  # bytes of LIBSVM text, fields of a CSV file
SHARD_SOURCES = (
    "files of LIBSVM text, CSV, .npz, .npy or Parquet (a path, a pattern, a list of paths), a pair (X, y), an iterator of pairs, "
    "an array with target=, or anything with __arrow_c_stream__"
)


def source_chunks(
    source: Any,
    target: str | int | None = None,
    weights: str | int | None = None,
    max_bytes: int | None = None,
    start: tuple[int, int] = (0, 0),
) -> Generator[Chunk, None, None]:
    """The rows of any source, chunk by chunk, from chunk start[1] of file start[0] on.

    Examples
    --------
    >>> import numpy as np
    >>> [len(chunk.targets) for chunk in source_chunks([(np.eye(2), [0, 1]), (np.eye(3)[:, :2], [1, 1, 0])])]
    [2, 3]
    """
    files = source_files(source)
    for i, item in enumerate([source] if files is None else files):
        if i < start[0]:
            continue
        found = _given_chunks(item, target, weights) if files is None else _file_chunks(item, target, weights, max_bytes)
        yield from (replace(chunk, at=(i, j)) for j, chunk in enumerate(found) if (i, j) >= start)


def source_files(source: Any) -> list[Path] | None:
    """The files of a source that is given by paths and patterns; None for any other source.

    Examples
    --------
    >>> [path.name for path in source_files(["a.csv", "b.csv"])], source_files(([[1.0]], [1]))
    (['a.csv', 'b.csv'], None)
    """
    if isinstance(source, (str, Path)):
        return matching_paths([source])
    return matching_paths(source) if _are_paths(source) else None


def _given_chunks(source: Any, target: str | int | None, weights: str | int | None) -> Iterator[Chunk]:
    """The rows of a source that is not files."""
    if hasattr(source, "__arrow_c_stream__"):
        yield from stream_chunks(source, "row", target, weights)
    elif hasattr(source, "shape") and hasattr(source, "__getitem__"):
        yield from array_chunks(source, "row", target, weights)
    else:
        if target is not None or weights is not None:
            raise InputError("`ShardDir.build(target=..., weights=...)` are columns of a table; give (X, y) or (X, y, weights)")
        yield from _all_pairs(source)


def _are_paths(source: Any) -> bool:
    return isinstance(source, (list, tuple)) and bool(source) and all(isinstance(item, (str, Path)) for item in source)


def _all_pairs(source: Any) -> Iterator[Chunk]:
    """The rows of a pair, or of an iterable of pairs."""
    if not isinstance(source, Iterable):
        raise InputError(f"`ShardDir.build(source=...)` must be {SHARD_SOURCES}; got {type(source).__name__}")
    first = 0
    for pair in [source] if isinstance(source, tuple) else source:
        if not isinstance(pair, tuple) or len(pair) not in (2, 3):
            raise InputError(f"`ShardDir.build(source=...)` must be {SHARD_SOURCES}; got {type(pair).__name__} instead of a pair")
        for chunk in pair_chunks(*pair, first=first):
            yield chunk
            first += len(chunk.targets)


def matching_paths(given: Iterable[str | Path]) -> list[Path]:
    """The files of some paths and patterns, those of a pattern in sorted order.

    Examples
    --------
    >>> matching_paths(["no such file", "no such folder/*.csv"])
    Traceback (most recent call last):
        ...
    extremal.checks.InputError: no such folder/*.csv: no file has such a name
    """
    found: list[Path] = []
    for name in given:
        if glob.has_magic(str(name)) and not Path(name).exists():
            some = sorted(path for path in map(Path, glob.glob(str(name), recursive=True)) if not path.is_dir())
            if not some:
                raise InputError(f"{name}: no file has such a name")
            found += some
        else:
            found.append(Path(name))
    return found


def _file_chunks(path: Path, target: Any, weights: Any, max_bytes: int | None) -> Iterator[Chunk]:
    kind = file_kind(path)
    if path.suffix.lower() in OPENERS and kind in (".parquet", ".pq"):
        raise InputError(f"{path}: a compressed {kind} file is not read; decompress it first")
    if kind in (".parquet", ".pq"):
        yield from parquet_chunks(path, target, weights)
    elif kind == ".csv":
        yield from _csv_chunks(path, target, weights, max_bytes)
    elif kind == ".npz":
        yield from npz_chunks(path, target, weights, max_bytes)
    elif kind == ".npy":
        yield from npy_chunks(path, target, weights)
    else:
        for name, given in (("target", target), ("weights", weights)):
            if given is not None:
                words = f"LIBSVM text has its targets at the start of each line and no weights; leave out {name}={given!r}"
                raise InputError(f"{path}: {words}")
        yield from _libsvm_chunks(path, max_bytes)


def _libsvm_chunks(path: Path, max_bytes: int | None) -> Iterator[Chunk]:
    with opened_file(path, max_bytes) as file:
        empty = True
        for rows in read_blocks(path, file, TEXT_AT_ONCE):
            empty = empty and not len(rows.where)
            sparse = SparseChunk(rows.starts, rows.columns, rows.values, canonical=True)
            yield Chunk(sparse, rows.targets, None, lambda i, where=rows.where: f"{path}:{where[i]}", rows.size)
        if empty:
            raise InputError(f"{path}: the file holds no rows")


def _csv_chunks(path: Path, target: Any, weights: Any, max_bytes: int | None) -> Iterator[Chunk]:
    weighted = weights is not None

    def choose(width: int, header: list[str]) -> Chosen:
        columns, y, w = table_columns(str(path), target, weights, width, header)
        return [*columns, *([] if w is None else [w])], y

    with opened_file(path, max_bytes) as file:
        for table, where in csv_blocks(path, file, choose, FIELDS_AT_ONCE, target is None and not weighted):
            X, w = (table.A[:, :-1], table.A[:, -1]) if weighted else (table.A, None)
            names = table.names if table.names is None or not weighted else table.names[:-1]
            assert table.y is not None
            yield Chunk(X, table.y, w, lambda i, where=where: f"{path}:{where[i]}", 8 * table.A.size, names)
