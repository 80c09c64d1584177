"""Rows of any source to a directory of shards: read once, shuffled on disk, in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.files.shards.batches import RowBatch
from extremal.files.shards.folder import publish, work_folder
from extremal.files.shards.intake import Intake
from extremal.files.shards.manifest import DTYPES, Manifest, Shard
from extremal.files.shards.shuffle import Shuffler
from extremal.files.shards.sources import source_chunks
from extremal.files.shards.writing import ShardWriter, write_array

SHARD_BYTES = 2**26
BUILD_MEMORY = 2**28
ShardProgress = Callable[[int, int], object]  # of the rows and bytes so far


def build(
    source: Any,
    directory: str | Path,
    *,
    shuffle: bool = True,
    seed: int = 0,
    dtype: str | None = None,
    target: str | int | None = None,
    weights: str | int | None = None,
    d: int | None = None,
    shard_bytes: int = SHARD_BYTES,
    max_memory: int = BUILD_MEMORY,
    max_bytes: int | None = None,
    progress: ShardProgress | None = None,
    overwrite: bool = False,
) -> Manifest:
    """Convert rows to a directory of shards, once; a directory is whole or has no manifest.

    The shuffle is a uniform permutation, a function of the seed and the rows' positions: the same source and seed give the same
    bytes, whatever the memory and however the source is cut.

    Parameters
    ----------
    source : paths, arrays or streams
        LIBSVM text, CSV (both may be compressed), .npz, .npy, Parquet: a path, a pattern or a list of these. A pair (X, y) or a
        triple (X, y, weights) of anything with a shape and row slices, scipy's sparse matrices too; an iterator of such; anything
        with ``__arrow_c_stream__``, in which two columns of lists ``indices`` and ``values`` are sparse rows.
    directory : str or Path
        Where to; it is made if it is not there. What an interrupted build has left in it is discarded.
    shuffle : bool
        False keeps the order of the rows, and the manifest says so.
    seed : int
        Of the shuffle.
    dtype : "float32" or "float64", optional
        Of the features; left out, float32 if the source has them so, otherwise float64.
    target, weights : str or int, optional
        Columns of a table, by name or number. Left out, the target is the last column.
    d : int, optional
        The number of columns of sparse rows; left out, it is the greatest that turns up, plus one.
    shard_bytes : int
        About how large a shard is; it is held in memory until it is written.
    max_memory : int
        About how many bytes to hold.
    max_bytes : int, optional
        How much a compressed file may hold, see `load_table`.
    progress : callable, optional
        Called with the numbers of rows and bytes read so far.
    overwrite : bool
        Whether to replace an earlier build; it stays until the new one is complete.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     held = build((np.eye(3), ["no", "yes", "no"]), Path(folder, "train"))
    >>> held.n, held.d, held.kind, held.targets.classes, len(held.shards)
    (3, 3, 'dense', ('no', 'yes'), 1)
    """
    call = "ShardDir.build"
    shuffle, overwrite = checks.flag(call, "shuffle", shuffle), checks.flag(call, "overwrite", overwrite)
    seed = checks.whole(call, "seed", seed, 0, 2**63 - 1)
    shard_bytes = checks.whole(call, "shard_bytes", shard_bytes, 1, 2**32)
    max_memory = checks.whole(call, "max_memory", max_memory, 1)
    intake = Intake(
        None if d is None else checks.whole(call, "d", d, 1, 2**31 - 1),
        None if dtype is None else DTYPES[checks.one_of("dtype", str(dtype), DTYPES)],
    )
    directory = Path(directory)
    with work_folder(directory, overwrite) as folder, closing(source_chunks(source, target, weights, max_bytes)) as chunks:
        batches = _looked_at(intake, chunks, progress)
        if shuffle:
            writer = _shuffled(folder, batches, intake, seed, shard_bytes, max_memory)
        else:
            writer = _in_order(folder, batches, intake, shard_bytes)
        manifest = _manifest(intake, writer, shuffle, seed)
        publish(directory, folder, manifest)
    return manifest


def _looked_at(intake: Intake, chunks: Iterator[Any], progress: ShardProgress | None) -> Iterator[RowBatch]:
    """The rows as shards keep them; there must be some, with columns."""
    size = 0
    for chunk in chunks:
        size += chunk.size
        if len(chunk.targets):
            yield intake.batch(chunk)
        if progress is not None:
            progress(intake.n, size)
    if not intake.n or not intake.d:
        raise InputError(f"`ShardDir.build(source=...)` holds {'targets, but no features' if intake.n else 'no rows'}")


def _shuffled(
    folder: Path, batches: Iterator[RowBatch], intake: Intake, seed: int, shard_bytes: int, max_memory: int
) -> ShardWriter:
    with Shuffler(folder, seed, max(1, max_memory // 8)) as rows:
        for batch in batches:
            rows.add(batch)
        many = -(-rows.bytes // shard_bytes)
        writer, order = ShardWriter(folder, -(-rows.bytes // many)), intake.order
        for batch in rows.batches():
            writer.add(batch if order is None else _relabelled(batch, order))
        writer.finish()
    return writer


def _in_order(folder: Path, batches: Iterator[RowBatch], intake: Intake, shard_bytes: int) -> ShardWriter:
    writer = ShardWriter(folder, shard_bytes)
    for batch in batches:
        writer.add(batch)
    writer.finish()
    if (order := intake.order) is not None:  # known only now
        writer.shards = [_renumbered(folder, shard, order) for shard in writer.shards]
    return writer


def _relabelled(batch: RowBatch, order: np.ndarray) -> RowBatch:
    """With the final numbers of labels that are text."""
    return RowBatch(batch.arrays | {"targets": order[batch.arrays["targets"].astype(np.intp)]})


def _renumbered(folder: Path, shard: Shard, order: np.ndarray) -> Shard:
    """The same in a shard that is written."""
    path = shard.path(folder, "targets")
    numbers = np.load(path, allow_pickle=False).astype(np.intp)
    os.unlink(path)
    return replace(shard, files={**shard.files, "targets": write_array(path, [order[numbers]])})


def _manifest(intake: Intake, writer: ShardWriter, shuffle: bool, seed: int) -> Manifest:
    assert intake.kind is not None
    assert intake.dtype is not None
    k = None if intake.outputs is None else int(intake.outputs[0])
    targets, weights = writer.facts.targets(k, intake.classes), writer.facts.weights()
    return Manifest(
        intake.kind, intake.n, intake.d, intake.nnz, intake.dtype.name, targets, weights, intake.names, shuffle, seed,
        tuple(writer.shards),
    )  # fmt: skip
