"""Convert rows of any source to a directory of shards: read once, shuffled on disk, in bounded memory."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from extremal import checks
from extremal.checks import InputError
from extremal.files.shards.folder import publish, work_folder
from extremal.files.shards.intake import Intake
from extremal.files.shards.journal import Journal, build_record
from extremal.files.shards.manifest import DTYPES, Manifest, Shard, ShardProgress, directory_path
from extremal.files.shards.passes import FirstPass, Passes
from extremal.files.shards.shuffle import Shuffler
from extremal.files.shards.sources import source_chunks
from extremal.files.shards.writing import ShardWriter

SHARD_BYTES = 2**26
BUILD_MEMORY = 2**28


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

    The shuffle is a uniform permutation, a function of the seed and the rows' positions. The same source and seed give the same
    bytes, for any ``max_memory`` and any division of the source into chunks.

    Parameters
    ----------
    source : paths, arrays or streams
        LIBSVM text, CSV (both may be compressed), .npz, .npy, Parquet: a path, a pattern or a list of these. A pair (X, y) or a
        triple (X, y, weights) of objects with a shape and row slices, including scipy's sparse matrices; an iterator of these;
        any object with ``__arrow_c_stream__``. There, two columns of lists ``indices`` and ``values`` are sparse rows.
    directory : str or Path
        The output, created if it does not exist. An interrupted build of the same files and options is resumed: runs and shards
        with the right checksums are kept. Remains of other builds, and of builds whose source is not files, are discarded.
        The log says which of the two happened (logger ``extremal``).
    shuffle : bool
        False keeps the order of the rows, and the manifest says so.
    seed : int
        Seed of the shuffle.
    dtype : "float32" or "float64", optional
        Type of the features. Default: float32 if the source has float32 features, otherwise float64.
    target, weights : str or int, optional
        Columns of a table, by name or number. Default: the target is the last column, and there are no weights.
    d : int, optional
        The number of columns of sparse rows. Default: the greatest index in the source, plus one.
    shard_bytes : int
        The approximate size of a shard, which stays in memory until it is written.
    max_memory : int
        The approximate number of bytes to hold in memory.
    max_bytes : int, optional
        The limit on the content of a compressed file, see `load_table`.
    progress : callable, optional
        Called with a word ("read", later "written"), the numbers of rows and bytes so far, and the number of all rows, if it
        is known. Rows that keep their order are written as they are read.
    overwrite : bool
        Whether to replace an earlier build, which stays until the new build is complete.

    Examples
    --------
    >>> import tempfile, numpy as np
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
    if not (progress is None or callable(progress)):
        raise InputError(f"`{call}(progress=...)` must be a function, got {progress!r}")
    intake = Intake(
        None if d is None else checks.whole(call, "d", d, 1, 2**31 - 1),
        None if dtype is None else DTYPES[checks.one_of("dtype", str(dtype), DTYPES)],
    )
    told = {"shuffle": shuffle, "seed": seed, "dtype": dtype, "target": target, "weights": weights, "d": d}
    told |= {"shard_bytes": shard_bytes, "max_memory": max_memory, "max_bytes": max_bytes}
    record, directory = build_record(source, told), directory_path(directory)
    with ExitStack() as stack:
        folder = stack.enter_context(work_folder(directory, overwrite, record))
        journal = stack.enter_context(Journal(folder, record))
        rows = stack.enter_context(Shuffler(folder, seed, max(1, max_memory // 8))) if shuffle else None
        writer, reading = ShardWriter(folder, shard_bytes), FirstPass(intake, progress)
        passes = Passes(journal, reading, writer, rows)
        passes.resume(directory)
        chunks = stack.enter_context(closing(source_chunks(source, target, weights, max_bytes, reading.at)))
        passes.read(chunks)
        manifest = _manifest(intake, writer, passes.write(), shuffle, seed)
        publish(directory, folder, manifest)
    return manifest


def _manifest(intake: Intake, writer: ShardWriter, shards: list[Shard], shuffle: bool, seed: int) -> Manifest:
    assert intake.kind is not None
    assert intake.dtype is not None
    k = None if intake.outputs is None else int(intake.outputs[0])
    targets, weights = writer.facts.targets(k, intake.classes), writer.facts.weights()
    return Manifest(
        intake.kind, intake.n, intake.d, intake.nnz, intake.dtype.name, targets, weights, intake.names, shuffle, seed,
        tuple(shards),
    )  # fmt: skip
