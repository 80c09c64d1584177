"""Read every byte of a directory of shards once: compare checksums and numbers with the manifest."""

from __future__ import annotations

import math
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from extremal.checks import InputError, all_finite
from extremal.files.libsvm import row_of_entry
from extremal.files.reading import damaged, reading
from extremal.files.shards.manifest import MANIFEST, Manifest, Shard, ShardProgress, TargetFacts, directory_path, read_manifest
from extremal.files.shards.mapped import open_shard
from extremal.files.shards.writing import FactsSoFar

NUMBERS_AT_ONCE = 2**18


def verify_shards(directory: str | Path, progress: ShardProgress | None = None) -> Manifest:
    """Read all of a directory, and return its manifest if everything agrees with it.

    ``progress`` is called after each shard, with "verified", the rows and bytes so far, and the number of all rows.

    Raises
    ------
    InputError
        The message names the file at fault, and the row.

    Examples
    --------
    >>> import tempfile
    >>> from extremal.files.shards.build import build
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = build((np.eye(3), [1, 2, 3]), Path(folder, "train"))
    ...     path = Path(folder, "train", "00000.rows.npy")
    ...     _ = path.write_bytes(path.read_bytes()[:-1] + b"!")
    ...     verify_shards(Path(folder, "train"))
    Traceback (most recent call last):
        ...
    extremal.checks.InputError: ...00000.rows.npy: the file is truncated or damaged (its checksum is not that of the manifest)
    """
    directory = directory_path(directory)
    manifest, facts, rows, size = read_manifest(directory), FactsSoFar(), 0, 0
    for i, shard in enumerate(manifest.shards):
        _check_shard(directory, manifest, i, facts)
        rows, size = rows + shard.n, size + shard.bytes
        if progress is not None:
            progress("verified", rows, size, manifest.n)
    _check_facts(directory / MANIFEST, manifest, facts)
    return manifest


def _check_shard(directory: Path, manifest: Manifest, i: int, facts: FactsSoFar) -> None:
    shard, arrays = manifest.shards[i], open_shard(directory, manifest, i)
    for name, a in arrays.items():
        path = shard.path(directory, name)
        crc = _head_crc(path, shard.files[name].bytes - a.nbytes)
        wrong = None
        for first, block in _blocks(a):
            crc = zlib.crc32(block.reshape(-1).view(np.uint8).data, crc)
            wrong = wrong or _fault(name, first, block, arrays, manifest)
        if crc != shard.files[name].crc32:
            raise damaged(path, "its checksum is not that of the manifest")
        if wrong is not None:
            raise InputError(f"{path}: {wrong}")
    facts.add(arrays["targets"])
    if "weights" in arrays:
        facts.weigh(arrays["weights"])
    _check_labels(directory, manifest, shard, arrays["targets"])


def refuse_faults(directory: Path, manifest: Manifest, i: int, arrays: Mapping[str, np.ndarray]) -> None:
    """Name the first fault of the arrays of shard i, if there is one."""
    for name, a in arrays.items():
        for first, block in _blocks(a):
            wrong = _fault(name, first, block, arrays, manifest)
            if wrong is not None:
                raise InputError(f"{manifest.shards[i].path(directory, name)}: {wrong}")


def _head_crc(path: Path, size: int) -> int:
    with reading(path), open(path, "rb") as file:
        return zlib.crc32(file.read(size))


def _blocks(a: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """The rows of an array block by block, with the number of the first row of each block."""
    step = max(1, NUMBERS_AT_ONCE // max(1, math.prod(a.shape[1:])))
    yield from ((first, a[first : first + step]) for first in range(0, len(a), step))


def _fault(name: str, first: int, block: np.ndarray, arrays: Mapping[str, np.ndarray], manifest: Manifest) -> str | None:
    """The fault of a block that begins with item ``first`` of an array, in words; None if there is none."""
    if name == "starts":
        return _of_starts(first, block, arrays)
    if name == "columns":
        return _of_columns(first, block, arrays, manifest.d)
    bad = None if all_finite(block) else ~np.isfinite(block)
    if name == "weights" and bad is None and (block < 0).any():
        bad = block < 0
    if bad is None:
        return None
    place = np.unravel_index(int(bad.argmax()), block.shape)
    row = row_of_entry(arrays["starts"], first + int(place[0])) if name == "values" else first + int(place[0])
    return f"row {row}: expected finite numbers{' from 0 on' if name == 'weights' else ''}, got {block[place]}"


def _of_starts(first: int, block: np.ndarray, arrays: Mapping[str, np.ndarray]) -> str | None:
    starts, nnz = arrays["starts"], len(arrays["columns"])
    before = 0 if first == 0 else int(starts[first - 1])
    falls = np.diff(block, prepend=np.int32(before)) < 0
    if falls.any():
        return f"row {first + int(falls.argmax()) - 1}: its entries begin before the end of the row before"
    if (first == 0 and block[0] != 0) or (first + len(block) == len(starts) and block[-1] != nnz):
        return f"its numbers must go from 0 to the number of entries, {nnz}"
    return None


def _of_columns(first: int, block: np.ndarray, arrays: Mapping[str, np.ndarray], d: int) -> str | None:
    starts, columns = arrays["starts"], arrays["columns"]
    outside = (block < 0) | (block >= d)
    if outside.any():
        e = int(outside.argmax())
        return f"row {row_of_entry(starts, first + e)}: expected columns from 0 to {d - 1}, got {block[e]}"
    falls = np.zeros(len(block) + 1, bool)
    falls[0] = first > 0 and block[0] <= columns[first - 1]  # compared with the block before
    falls[1:-1] = block[1:] <= block[:-1]
    begins = starts[np.searchsorted(starts, first) : np.searchsorted(starts, first + len(block), side="right")] - first
    falls[begins] = False
    if falls.any():
        return f"row {row_of_entry(starts, first + int(falls.argmax()))}: its columns do not increase"
    return None


def _check_labels(directory: Path, manifest: Manifest, shard: Shard, targets: np.ndarray) -> None:
    """Refuse a target outside of the classes, or a fraction if the manifest says that all are whole numbers."""
    facts = manifest.targets
    known = np.arange(len(facts.classes or ())) if facts.text else np.array(facts.classes or ())
    wrong = ~np.isin(targets, known) if facts.classes else (targets < facts.least) | (targets > facts.greatest)
    if facts.whole:
        wrong |= targets != np.rint(targets)
    if wrong.any():
        place = np.unravel_index(int(wrong.argmax()), targets.shape)
        said = "one of the classes" if facts.classes else f"a number from {facts.least} to {facts.greatest}"
        path = shard.path(directory, "targets")
        raise InputError(f"{path}: row {place[0]}: expected {said}, as the manifest says, got {targets[place]}")


def _check_facts(path: Path, manifest: Manifest, facts: FactsSoFar) -> None:
    """Refuse a manifest whose facts about targets or weights differ from those of the shards."""
    said = manifest.targets
    found = facts.targets(said.outputs, said.classes if said.text else None)  # type: ignore[arg-type]
    if said.text:
        found = TargetFacts(facts.least, facts.greatest, facts.whole, said.classes)
    if found != said:
        raise InputError(f"{path}: `targets` does not agree with the shards, which have {found.least} to {found.greatest}")
    weights, told = facts.weights(), manifest.weights
    if weights is not None and told is not None:
        same = (weights.least, weights.greatest) == (told.least, told.greatest)
        if not (same and math.isclose(weights.total, told.total, rel_tol=1e-9)):  # another machine may round a sum differently
            raise InputError(f"{path}: `weights` does not agree with the shards, where it is {weights}")
