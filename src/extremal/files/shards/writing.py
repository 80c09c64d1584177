"""Write shards: rows come in batches, files are cut by size and get their checksums."""

from __future__ import annotations

import io
import math
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import numpy as np

from extremal.checks import InputError
from extremal.files.libsvm import BYTES_AT_ONCE
from extremal.files.outputs import WriteError
from extremal.files.shards.batches import RowBatch, joined_starts
from extremal.files.shards.manifest import INT, MOST_IN_SHARD, FileMark, Shard, TargetFacts, WeightFacts

NO_BYTES = FileMark(0, 0)
MOST_CLASSES = 1000  # most distinct whole numbers that the manifest lists as classes


@contextmanager
def written(path: Path | str) -> Iterator[None]:
    """Add the file's name to errors of the system in writing, such as a full disk."""
    try:
        yield
    except OSError as error:
        if isinstance(error, WriteError):
            raise
        raise WriteError(error.errno, error.strerror or str(error), str(path)) from error


class FactsSoFar:
    """The facts about all targets and weights for the manifest, collected shard by shard.

    Examples
    --------
    >>> facts = FactsSoFar()
    >>> facts.add(np.array([1.0, 0.0]))
    >>> facts.targets(None, None)
    TargetFacts(least=0.0, greatest=1.0, whole=True, classes=(0.0, 1.0), outputs=None)
    """

    def __init__(self) -> None:
        self.least, self.greatest, self.whole = math.inf, -math.inf, True
        self._known: np.ndarray | None = np.empty(0)
        self._weights: list[tuple[float, float, float]] = []

    def add(self, targets: np.ndarray) -> None:
        """Add the targets of some rows."""
        self.least, self.greatest = min(self.least, float(targets.min())), max(self.greatest, float(targets.max()))
        self.whole = self.whole and bool((targets == np.rint(targets)).all())
        if not self.whole:
            self._known = None
        if self._known is not None and not (len(self._known) <= 16 and np.isin(targets, self._known).all()):
            self._known = np.union1d(self._known, targets)
            if len(self._known) > MOST_CLASSES:
                self._known = None

    def look(self, array: str, numbers: np.ndarray) -> None:
        """Add an array of a shard; only targets and weights count."""
        if array == "targets":
            self.add(numbers)
        if array == "weights":
            self.weigh(numbers)

    def merge(self, other: FactsSoFar) -> None:
        """Add the targets and weights of shards that were written elsewhere."""
        self.least, self.greatest = min(self.least, other.least), max(self.greatest, other.greatest)
        self.whole = self.whole and other.whole
        known = None if self._known is None or other._known is None else np.union1d(self._known, other._known)
        self._known = None if known is None or len(known) > MOST_CLASSES else known
        self._weights += other._weights

    def weigh(self, weights: np.ndarray) -> None:
        """Add the weights of some rows."""
        with np.errstate(over="ignore"):  # an infinite sum is refused at the end
            self._weights.append((float(weights.min()), float(weights.max()), float(weights.sum())))

    def targets(self, outputs: int | None, classes: tuple[str, ...] | None) -> TargetFacts:
        """The facts about all targets; the caller gives the classes if the labels are text."""
        if classes is not None:
            return TargetFacts(0.0, len(classes) - 1.0, True, classes)
        found = None if self._known is None or outputs is not None else tuple(self._known.tolist())
        return TargetFacts(self.least, self.greatest, self.whole, found, outputs)

    def weights(self) -> WeightFacts | None:
        """The facts about all weights, if there are any; their mean must be a valid divisor."""
        if not self._weights:
            return None
        least, greatest, total = zip(*self._weights, strict=True)
        if not 0 < sum(total) < math.inf:
            raise InputError(f"the weights of all rows must have a sum that is finite and above 0, got {sum(total)}")
        return WeightFacts(min(least), max(greatest), math.fsum(total))


class ShardWriter:
    """Writes rows as shards: a shard ends after the row with which it reaches the limit, whatever the batches are.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     writer = ShardWriter(Path(folder), limit=64)
    ...     writer.add(RowBatch({"rows": np.eye(5), "targets": np.arange(5.0)}))
    ...     [shard.n for shard in writer.finish()]
    [2, 2, 1]
    """

    def __init__(self, folder: Path, limit: int, first: int = 0):
        self.folder, self.limit, self.facts = folder, limit, FactsSoFar()
        self.first = first  # the number of the first shard
        self.finished: Callable[[Shard], object] | None = None  # called with each shard
        self.shards: list[Shard] = []
        self._held: list[RowBatch] = []
        self._bytes = self._rows = 0

    def add(self, batch: RowBatch) -> None:
        """Add rows, and write the shards that are full."""
        first, ends, before = 0, batch.ends, 0
        while self._bytes + int(ends[-1]) - before >= self.limit or self._rows + batch.n - first > MOST_IN_SHARD:
            last = 1 + int(np.searchsorted(ends, before + self.limit - self._bytes))
            last = min(last, first + MOST_IN_SHARD - self._rows)
            self._held.append(batch.part(first, last))
            self._write()
            first, before = last, int(ends[last - 1])
            if first == batch.n:
                return
        self._held.append(batch.part(first, batch.n) if first else batch)
        self._bytes, self._rows = self._bytes + int(ends[-1]) - before, self._rows + batch.n - first

    def finish(self) -> list[Shard]:
        """Write the remaining rows."""
        if self._held:
            self._write()
        return self.shards

    def _write(self) -> None:
        name, held, files = f"{self.first + len(self.shards):05d}", self._held, {}
        n, nnz = sum(batch.n for batch in held), 0
        for array in held[0].arrays:
            parts = [batch.arrays[array] for batch in held]
            if array == "starts":
                parts = [joined_starts(held).astype(INT)]
            elif array in ("targets", "weights"):
                parts = [np.concatenate(parts)]
            files[array] = write_array(self.folder / f"{name}.{array}.npy", parts)
            if array in ("rows", "values"):
                nnz = sum(part.size for part in parts)
            self.facts.look(array, parts[0])
        self.shards.append(Shard(name, n, nnz, files))
        self._held, self._bytes, self._rows = [], 0, 0
        if self.finished is not None:
            self.finished(self.shards[-1])

    def take_back(self, shard: Shard) -> bool:
        """Reuse a shard that another writer has written, if its files are whole."""
        if any(mark_of(shard.path(self.folder, array), 0, mark.bytes) != mark for array, mark in shard.files.items()):
            return False
        for array in ("targets", *(["weights"] if "weights" in shard.files else [])):
            self.facts.look(array, np.load(shard.path(self.folder, array), allow_pickle=False))
        self.shards.append(shard)
        return True


def write_array(path: Path, parts: list[np.ndarray]) -> FileMark:
    """Write a .npy file of stacked arrays and flush it to the disk; return its size and checksum.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_array(Path(folder, "a.npy"), [np.zeros(2), np.ones(1)]).bytes, np.load(Path(folder, "a.npy"))
    (152, array([0., 0., 1.]))
    """
    shape, head = (sum(map(len, parts)), *parts[0].shape[1:]), io.BytesIO()
    dtype = parts[0].dtype.newbyteorder("<")
    np.lib.format.write_array_header_1_0(head, {"descr": dtype.str, "fortran_order": False, "shape": shape})
    mark = NO_BYTES
    with written(path), open(path, "wb", buffering=0) as file:
        for left in (memoryview(head.getvalue()), *(as_bytes(part, dtype) for part in parts)):
            mark = write_bytes(file, left, mark)
        os.fsync(file.fileno())
    return mark


def as_bytes(a: np.ndarray, dtype: np.dtype) -> memoryview:
    """The bytes of an array, which is copied if it has another type or gaps."""
    return np.ascontiguousarray(a, dtype).reshape(-1).view(np.uint8).data


def write_bytes(file: BinaryIO, left: memoryview, before: FileMark = NO_BYTES) -> FileMark:
    """Write to an unbuffered file; return the size and the checksum of these bytes together with those before."""
    mark = FileMark(before.bytes + len(left), zlib.crc32(left, before.crc32))
    while len(left):
        left = left[file.write(left) :]
    return mark


def mark_of(path: Path, first: int, size: int) -> FileMark | None:
    """The size and the checksum of ``size`` bytes of a file from ``first`` on; None if there are fewer.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     mark = write_array(Path(folder, "a.npy"), [np.zeros(2)])
    ...     mark == mark_of(Path(folder, "a.npy"), 0, mark.bytes), mark_of(Path(folder, "a.npy"), 0, mark.bytes + 1)
    (True, None)
    """
    crc, left = 0, size
    try:
        with open(path, "rb", buffering=0) as file:
            file.seek(first)
            while left and (block := file.read(min(left, BYTES_AT_ONCE))):
                crc, left = zlib.crc32(block, crc), left - len(block)
    except OSError:
        return None
    return None if left else FileMark(size, crc)
