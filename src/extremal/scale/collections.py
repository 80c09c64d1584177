"""Convert Dask arrays and frames to directories of shards: each worker writes its own partitions.

Workers write the rows of each partition in the order of their keys (see `extremal.files.shards.shuffle`). Each shard then
collects the rows with keys in some range from all partitions. So the order is that of `ShardDir.build` for the same rows.
"""

from __future__ import annotations

import shutil
import tempfile
import time
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from dask.delayed import delayed
from distributed import Client, get_client, get_worker

from extremal import checks
from extremal.checks import InputError
from extremal.files.shards.batches import RowBatch, joined_batches
from extremal.files.shards.build import SHARD_BYTES
from extremal.files.shards.directory import ShardDir
from extremal.files.shards.folder import publish, work_folder
from extremal.files.shards.intake import Intake
from extremal.files.shards.manifest import DTYPES, Manifest, Shard
from extremal.files.shards.shuffle import by_key, shuffle_keys
from extremal.files.shards.sources import source_chunks
from extremal.files.shards.writing import FactsSoFar, ShardWriter, write_array, written
from extremal.scale.cluster import ClusterError, Workers
from extremal.scale.local import closed, local_client

ALL_KEYS = 2**64  # the number of keys of a shuffle
SCHEDULER_WAIT = 5.0  # seconds that the scheduler may take to answer
SILENT = 30.0  # seconds that a worker may give no sign of life; a worker busy in Python gives few
STOP = "stop"  # the file that tells workers that a conversion has failed


@dataclass(frozen=True)
class Conversion:
    """The instructions for workers: the output, the columns to read, and the keys of rows."""

    folder: str
    target: str | int | None
    weights: str | int | None
    dtype: str | None
    seed: int
    shuffle: bool  # otherwise rows keep their order


@dataclass(frozen=True)
class Seen:
    """The facts about a partition, known after it was read."""

    n: int
    nnz: int
    bytes: int
    kind: tuple[Any, ...] = ()  # csr or dense, dtype, d, names, weighted, outputs, text: the same in all partitions
    labels: tuple[str, ...] | None = None  # in the order of their numbers, if they are text


def build_collection(
    source: Any,
    directory: str | Path,
    *,
    client: Client | None = None,
    shuffle: bool = True,
    seed: int = 0,
    dtype: str | None = None,
    target: str | int | None = None,
    weights: str | int | None = None,
    shard_bytes: int = SHARD_BYTES,
    overwrite: bool = False,
) -> ShardDir:
    """Convert a Dask collection, or a pair (X, y) or a triple (X, y, weights) of collections; the arguments are those of `build`.

    The workers must see the directory. Partitions of unknown size are counted first. Default client: the current one, or that
    of a new cluster of this machine, which is closed at the end.
    """
    call = "ShardDir.build"
    seed, shuffle = checks.whole(call, "seed", seed, 0, 2**63 - 1), checks.flag(call, "shuffle", shuffle)
    shard_bytes = checks.whole(call, "shard_bytes", shard_bytes, 1, 2**32)
    dtype = None if dtype is None else checks.one_of("dtype", str(dtype), DTYPES)
    blocks, counts = _partitions(source)
    client, cluster = _client(client, len(blocks))
    try:
        counts = _gathered(client, "count", _length, [(block[0],) for block in blocks]) if counts is None else counts
        directory = Path(directory).absolute()
        with work_folder(directory, checks.flag(call, "overwrite", overwrite)) as folder:
            told = Conversion(str(folder), target, weights, dtype, seed, shuffle)
            publish(directory, folder, _written(client, told, blocks, counts, shard_bytes))
    finally:
        if cluster is not None:
            closed(client, cluster)
    return ShardDir(directory)


def rows_of(X: Any, y: Any, weights: Any = None, client: Client | None = None, directory: str | Path | None = None) -> ShardDir:
    """The rows of Dask collections as data, on the same workers: a directory of shards that is removed with the data.

    The directory is a temporary one, which all workers must see. If they do not share the default place, give a ``directory``.
    """
    place = Path(tempfile.mkdtemp(prefix="extremal-rows-", dir=directory))
    blocks = _partitions((X, y))[0]
    client, cluster = _client(client, len(blocks))
    try:
        build_collection((X, y) if weights is None else (X, y, weights), place, client=client)
        data = ShardDir(place, engine="dask", client=client)
    except BaseException:
        _gone(place, client, cluster)
        raise
    weakref.finalize(data, _gone, place, client, cluster)
    return data


def _gone(place: Path, client: Client, cluster: Any) -> None:
    shutil.rmtree(place, ignore_errors=True)
    if cluster is not None:
        closed(client, cluster)


def _client(client: Client | None, most: int) -> tuple[Client, Any]:
    """The given or current client, or that of a new cluster, together with the cluster."""
    if client is None:
        try:
            client = get_client(timeout=0)
        except ValueError:
            return local_client(most)
    Workers(client, SCHEDULER_WAIT, "ShardDir.build").alive()
    return client, None


def _partitions(source: Any) -> tuple[list[tuple[Any, ...]], list[int] | None]:
    """The blocks of each partition, and their numbers of rows if known."""
    items = source if isinstance(source, tuple) else (source,)
    if not all(hasattr(item, "__dask_graph__") for item in items):
        raise InputError("`ShardDir.build(source=...)`: features, targets and weights must all be Dask collections, or none")
    first = items[0]
    if getattr(first, "ndim", 0) == 2 and hasattr(first, "numblocks") and first.numblocks[1] > 1:
        raise InputError("`ShardDir.build(source=...)` must have its chunks by rows only: give X.rechunk({1: -1})")
    sizes = list(first.chunks[0]) if hasattr(first, "chunks") else [float("nan")]
    known = not np.isnan(sizes).any()
    columns = [_delayed(_aligned(item, first) if known else item) for item in items]
    if len({len(column) for column in columns}) > 1:
        words = ", ".join(str(len(column)) for column in columns)
        raise InputError(f"`ShardDir.build(source=...)`: features, targets and weights have different partitions ({words})")
    return list(zip(*columns, strict=True)), [int(size) for size in sizes] if known else None


def _aligned(item: Any, first: Any) -> Any:
    """An array with the chunks of the first."""
    if not hasattr(item, "chunks") or item.shape[0] != first.shape[0]:
        return item
    return item if item.chunks[0] == first.chunks[0] else item.rechunk({0: first.chunks[0]})


def _delayed(item: Any) -> list[Any]:
    return list(np.asarray(item.to_delayed(), object).reshape(-1))


def _gathered(client: Client, name: str, function: Any, given: Sequence[tuple[Any, ...]], stop: Path | None = None) -> list[Any]:
    """Have the workers compute function(*one) for each item, under a name for dashboards; the file ``stop`` signals an error."""
    tag, made = uuid4().hex[:8], delayed(function, pure=False)
    calls = [made(*one, dask_key_name=(f"extremal-{name}-{tag}", i)) for i, one in enumerate(given)]
    futures: Any = client.compute(calls)
    try:
        _awaited(client, futures)
        return client.gather(futures)  # type: ignore[return-value]
    except ClusterError:
        raise
    except BaseException:
        if stop is not None:
            stop.touch()
        client.gather(futures, errors="skip")  # no worker may still write when the folder is cleared
        raise


def _awaited(client: Client, futures: list[Any]) -> None:
    """Wait until all tasks are done or one has failed, but not forever: a worker may give no sign of life."""
    workers, looked = Workers(client, SCHEDULER_WAIT, "ShardDir.build"), time.monotonic()
    while not all(future.done() for future in futures) and not any(future.status == "error" for future in futures):
        time.sleep(0.02)
        if time.monotonic() - looked > 1.0:
            silent = [address for address, age in workers.ages().items() if age > SILENT]
            looked = time.monotonic()
            if silent:
                client.cancel(futures)
                raise ClusterError(f"the Dask worker {silent[0]} gives no sign of life for {SILENT:g} s: nothing is built")


def _length(block: Any) -> int:
    return block.shape[0] if hasattr(block, "shape") else len(block)


def _written(client: Client, told: Conversion, blocks: list[Any], counts: list[int], shard_bytes: int) -> Manifest:
    firsts = [0, *accumulate(counts)]
    given = [(i, told, firsts[i], *block) for i, block in enumerate(blocks)]
    seen = _gathered(client, "sort-rows", write_partition, given, Path(told.folder, STOP))
    full = [i for i, one in enumerate(seen) if one.n]
    if not full:
        raise InputError("`ShardDir.build(source=...)` holds no rows")
    kind = seen[full[0]].kind
    for i in full:
        if seen[i].kind != kind:
            raise InputError(f"partition {i}: expected {kind} as in partition {full[0]}, got {seen[i].kind}")
    classes = tuple(sorted({label for i in full for label in seen[i].labels or ()})) if kind[-1] else None
    places = {i: _places(seen[i].labels, classes) for i in full}
    n, size = sum(one.n for one in seen), sum(one.bytes for one in seen)
    many = max(1, -(-size // shard_bytes))
    ranges = [(told, places, n, j, many) for j in range(many)]
    found = _gathered(client, "write-shard", write_range, ranges, Path(told.folder, STOP))
    facts, shards = FactsSoFar(), list[Shard]()
    for own, some in found:
        shards += some
        if some:
            facts.merge(own)
    rows, dtype, d, names, _, outputs, _ = kind
    nnz, k = sum(one.nnz for one in seen), None if outputs is None else int(outputs[0])
    targets, weights = facts.targets(k, classes), facts.weights()
    return Manifest(rows, n, d, nnz, dtype, targets, weights, names, told.shuffle, told.seed, tuple(shards))


def _places(labels: tuple[str, ...] | None, classes: tuple[str, ...] | None) -> np.ndarray | None:
    """The final numbers of a partition's labels."""
    return None if classes is None else np.searchsorted(np.array(classes), np.array(labels or ())).astype(np.float64)


def write_partition(i: int, told: Conversion, first: int, *blocks: Any) -> Seen:
    """Write the rows of a partition in the order of their keys, on the worker that has the partition."""
    folder = Path(told.folder)
    if not folder.is_dir():
        raise InputError(f"the Dask worker {get_worker().address} does not see the directory {folder.parent}")
    if Path(folder, STOP).exists():
        return Seen(0, 0, 0)
    intake = Intake(None, None if told.dtype is None else DTYPES[told.dtype])
    blocks = tuple(block.reset_index(drop=True) if hasattr(block, "reset_index") else block for block in blocks)
    source = blocks[0] if len(blocks) == 1 else blocks
    try:
        chunks = source_chunks(source, told.target, told.weights)
        batches = [intake.batch(chunk) for chunk in chunks if len(chunk.targets)]
    except InputError as error:
        raise InputError(f"partition {i}: {error}") from None
    if not batches:
        return Seen(0, 0, 0)
    batch = joined_batches(batches)
    last = first + batch.n
    keys = shuffle_keys(told.seed, first, last) if told.shuffle else np.arange(first, last, dtype=np.uint64)
    batch = by_key([RowBatch({**batch.arrays, "keys": keys})])
    with written(folder):
        for name, a in batch.arrays.items():
            write_array(_piece(folder, i, name), [a])
    assert intake.dtype is not None
    text = intake.classes is not None
    kind = intake.kind, intake.dtype.name, intake.d, intake.names, intake.weighted, intake.outputs, text
    labels = tuple(intake._labels) if text else None
    return Seen(batch.n, intake.nnz, batch.bytes, kind, labels)


def _piece(folder: Path, i: int, name: str) -> Path:
    return folder / f"partition-{i}.{name}.npy"


def write_range(
    told: Conversion, places: dict[int, np.ndarray | None], n: int, j: int, many: int
) -> tuple[FactsSoFar, list[Shard]]:
    """Write shard j: the rows of all partitions with keys in its range."""
    folder, top = Path(told.folder), ALL_KEYS if told.shuffle else n
    bounds = [top * k // many for k in (j, j + 1)]
    found = [_some_rows(folder, i, bounds, place) for i, place in places.items()]
    writer, some = ShardWriter(folder, 2**62, first=j), [batch for batch in found if batch is not None]
    if some:
        writer.add(by_key(some).without("keys"))
    return writer.facts, writer.finish()


def _some_rows(folder: Path, i: int, bounds: Sequence[int], place: np.ndarray | None) -> RowBatch | None:
    """The rows of a partition with keys in a range, with the final numbers of their labels."""
    keys = np.load(_piece(folder, i, "keys"), mmap_mode="r")
    lo, hi = (int(np.searchsorted(keys, np.uint64(b))) if b < ALL_KEYS else len(keys) for b in bounds)
    if lo == hi:
        return None
    names = ("starts", "columns", "values", "rows", "targets", "weights")
    paths = {name: _piece(folder, i, name) for name in names}
    arrays = {name: np.load(path, mmap_mode="r") for name, path in paths.items() if path.exists()}
    part = RowBatch({**arrays, "keys": keys}).part(lo, hi).arrays
    if place is not None:
        part["targets"] = place[part["targets"].astype(np.intp)]
    return RowBatch({name: np.asarray(a) for name, a in part.items()})
