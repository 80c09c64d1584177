"""Shards as parts: each is one part for every work, so neither threads nor the place of the rows change a bit of a sum."""

from __future__ import annotations

import mmap
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from weakref import WeakKeyDictionary

import numpy as np

from extremal.data.around import innermost, rows_seen
from extremal.data.csr import CsrBlock
from extremal.data.dense import DenseBlock
from extremal.data.parts import Part, Parts, PerRow, Sums, Work, each_part
from extremal.data.works import Picked
from extremal.files.shards.inspection import Inspection, rows_are_sound
from extremal.files.shards.manifest import Manifest
from extremal.files.shards.mapped import check_size, open_shard
from extremal.support.linalg import on_one_thread
from extremal.support.memory import mapping_of, room

PICKS = 16  # number of batches after which the pages of a shard are given back
PAGE = mmap.PAGESIZE


class ShardParts(Parts):
    """An engine for the shards of a directory: each shard is one part."""

    @property
    @abstractmethod
    def where(self) -> str:
        """Where rows are read, in words."""

    manifest: Manifest

    def in_problem(self) -> dict[str, object]:
        """What a checkpoint compares: the rows, by their checksums, and not the place where they are read."""
        return {"manifest": self.manifest}


class LocalShards(ShardParts):
    """The shards of a directory, read by threads of this process.

    With ``keep``, the arrays are copied to memory. Otherwise they are mapped, and the system takes back the pages of a shard
    after each work. Numbers of rows are then mapped as well, from unnamed files, if they would take much of the memory.
    ``threads`` is the largest number of threads; 0 is the number of processors.
    """

    def __init__(self, directory: Path, manifest: Manifest, keep: bool, threads: int = 0):
        self.threads = threads
        self.directory, self.manifest, self.keep, self.n = directory, manifest, keep, manifest.n
        self._arrays: dict[int, Mapping[str, np.ndarray]] = {}
        self._inspection = Inspection(directory, manifest)
        self._picks: dict[int, int] = {}  # batches since the pages of a shard were given back
        self._scratch: WeakKeyDictionary[mmap.mmap, int] = WeakKeyDictionary()  # bytes of a row

    @property
    def where(self) -> str:
        """The words "in memory" or "on disk"."""
        return "in memory" if self.keep else "on disk"

    def answers(self, work: Work) -> tuple[int, Iterator[Sums]]:
        """One answer for each shard, on all cores; only a few are computed ahead of the caller."""
        places = [(work, i) for i in range(len(self.manifest.shards))]
        return len(places), on_one_thread(each_part(self.answer, places, work.alone, self.threads))

    def answer(self, work: Work, i: int) -> Sums:
        """The answer of shard i."""
        try:
            arrays = self._opened(i)
            part = part_of(self.directory, self.manifest, i, arrays)
            self._inspection.look(i, arrays, rows_seen(work, part))
            return work(part)
        finally:
            self._picks[i] = self._picks.get(i, 0) + 1 if isinstance(innermost(work), Picked) else PICKS  # a batch reads little
            if self._picks[i] >= PICKS:
                self._picks[i] = 0
                self._forget(i)

    def ready(self, *outputs: int) -> None:
        """Compile the kernels of products, and of the inspection, by the first shard without rows."""
        arrays = self._opened(0)
        part_of(self.directory, self.manifest, 0, arrays).rows.part(slice(0, 0)).ready(*outputs)
        rows_are_sound(arrays, self.manifest.d, 0, 0)

    def _opened(self, i: int) -> Mapping[str, np.ndarray]:
        """The arrays of shard i, opened once if not too many are open; mapped files must still have their sizes."""
        arrays = self._arrays.get(i)
        if arrays is None:
            arrays = self._arrays[i] = open_shard(self.directory, self.manifest, i, self.keep)
            for other in [] if self.keep else list(self._arrays)[: -most_mapped() // len(arrays)]:
                self._arrays.pop(other, None)
        elif not self.keep:
            self._check_sizes(i, arrays)
        return arrays

    def _check_sizes(self, i: int, arrays: Mapping[str, np.ndarray]) -> None:
        """Refuse files that were cut after they were mapped: reading beyond their end would end the process."""
        shard = self.manifest.shards[i]
        for name, a in arrays.items():
            mapping = mapping_of(a)
            if mapping is not None:
                check_size(shard.path(self.directory, name), shard.files[name], mapping.size())

    def _forget(self, i: int) -> None:
        """Give back the pages of a shard, and of the numbers of its rows; the files keep their contents."""
        if self.keep:
            return
        for a in self._arrays.get(i, {}).values():
            mapping = mapping_of(a)
            if mapping is not None:
                mapping.madvise(mmap.MADV_DONTNEED)
        first, last = self.manifest.first_rows[i : i + 2]
        for mapping, size in list(self._scratch.items()):
            start, stop = first * size // PAGE * PAGE, min(last * size, len(mapping))
            if start < stop:
                mapping.madvise(mmap.MADV_DONTNEED, start, stop - start)

    def room(self, n: int, *shape: int) -> PerRow:
        """Room in memory, or mapped from an unnamed file if it would take much of the memory."""
        numbers = np.empty((n, *shape)) if self.keep else room((n, *shape))
        mapping = mapping_of(numbers)
        if mapping is not None:
            self._scratch[mapping] = numbers.nbytes // n
        return numbers


def most_mapped() -> int:
    """The most files to hold open at a time: a quarter of this process's limit (ulimit -n)."""
    try:
        import resource  # not on every system

        return max(32, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 4)
    except ImportError:
        return 2**8


def part_of(directory: Path, manifest: Manifest, i: int, arrays: Mapping[str, np.ndarray]) -> Part:
    """Shard i as a part, with its targets and weights."""
    if manifest.kind == "csr":
        rows = CsrBlock(arrays["starts"], arrays["columns"], arrays["values"], manifest.d)
    else:
        rows = DenseBlock(arrays["rows"])
    at, kept = slice(*manifest.first_rows[i : i + 2]), {name: arrays[name] for name in ("targets", "weights") if name in arrays}
    return Part(rows, at, i, kept, f"{directory}, shard {manifest.shards[i].name}")
