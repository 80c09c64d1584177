"""An external shuffle: row i has the key mix(seed, i), and the rows in the order of their keys are the shuffled rows.

The keys have 64 bits and are all different, because the finalizer of splitmix64 (Steele, Lea and Flood 2014) is a bijection.
The order is a function of the seed and the positions alone: neither chunks nor memory matter. The shuffler collects rows in
runs, sorts each run by the first 16 bits of its keys, and writes it to disk. Then it reads the rows with keys in a range from
all runs, range by range.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np

from extremal.files.reading import damaged
from extremal.files.shards.batches import RowBatch, joined_batches
from extremal.files.shards.manifest import FileMark
from extremal.files.shards.writing import as_bytes, mark_of, write_bytes, written

_GOLDEN, _FIRST, _SECOND = (np.uint64(c) for c in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
RANGES = 2**16  # largest number of ranges of keys


def shuffle_keys(seed: int, first: int, last: int) -> np.ndarray:
    """The keys of rows first, ..., last - 1.

    Examples
    --------
    >>> shuffle_keys(0, 0, 3).argsort(), shuffle_keys(1, 0, 3).argsort()
    (array([2, 1, 0]), array([1, 2, 0]))
    >>> bool((shuffle_keys(0, 0, 9)[5:7] == shuffle_keys(0, 5, 7)).all())
    True
    """
    offset, mask = _mixed(np.array([2 * seed, 2 * seed + 1], np.uint64) * _GOLDEN + _SECOND)
    return _mixed(_mixed(np.arange(first, last, dtype=np.uint64) * _GOLDEN + offset) ^ mask)


def _mixed(z: np.ndarray) -> np.ndarray:
    """The finalizer of splitmix64."""
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return z ^ (z >> np.uint64(31))


@dataclass
class _Run:
    """The place of a run in the files, and the part that has been read."""

    row: int  # the number of rows before it, in the files
    n: int
    done: int = 0


@dataclass
class _Column:
    """A file with the items of one array, run after run."""

    path: Path
    file: BinaryIO
    dtype: np.dtype
    shape: tuple[int, ...]  # of an item
    bytes: int = 0

    @property
    def item(self) -> int:
        """The bytes of an item."""
        return self.dtype.itemsize * math.prod(self.shape)

    def append(self, a: np.ndarray) -> FileMark:
        """Write items at the end."""
        with written(self.path):
            self.file.seek(self.bytes)
            mark = write_bytes(self.file, as_bytes(a, self.dtype))
        self.bytes += mark.bytes
        return mark

    def get(self, first: int, count: int) -> np.ndarray:
        """Some items."""
        out = np.empty((count, *self.shape), self.dtype)
        left = out.reshape(-1).view(np.uint8).data
        self.file.seek(first * self.item)
        while len(left):
            done = self.file.readinto(left)  # type: ignore[attr-defined]
            if not done:
                raise damaged(self.path, "it is shorter than it was written")
            left = left[done:]
        return out


class Shuffler:
    """Collects batches in memory, writes runs when memory is full, and returns all rows in the order of their keys.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Shuffler(Path(folder), seed=0, room=100) as rows:
    ...     for i in range(3):
    ...         rows.add(RowBatch({"rows": np.eye(3), "targets": np.arange(3 * i, 3 * i + 3.0)}))
    ...     batches = list(rows.batches())
    >>> joined_batches(batches).arrays["targets"].astype(int)
    array([6, 2, 8, 1, 3, 5, 0, 4, 7])
    >>> shuffle_keys(0, 0, 9).argsort()
    array([6, 2, 8, 1, 3, 5, 0, 4, 7])
    """

    def __init__(self, folder: Path, seed: int, room: int):
        self.folder, self.seed, self.room = folder, seed, room
        self.finished: Callable[[dict[str, Any]], object] | None = None  # called with each run
        self.n, self.bytes = 0, 0
        self._held: list[RowBatch] = []
        self._held_bytes, self._runs = 0, list[_Run]()
        self._columns: dict[str, _Column] = {}

    def __enter__(self) -> Shuffler:
        return self

    def __exit__(self, *error: object) -> None:
        for column in self._columns.values():
            column.file.close()

    def add(self, batch: RowBatch) -> None:
        """Add rows."""
        size = batch.bytes
        self._held.append(RowBatch(batch.arrays | {"keys": shuffle_keys(self.seed, self.n, self.n + batch.n)}))
        self.n, self.bytes = self.n + batch.n, self.bytes + size
        self._held_bytes += size + 8 * batch.n
        if self._held_bytes >= self.room:
            self._spill()

    def _spill(self) -> None:
        """Write the rows in memory as a run."""
        batch = joined_batches(self._held)
        self._held, self._held_bytes = [], 0
        entry = self._columns["columns"].bytes // self._columns["columns"].item if "columns" in self._columns else 0
        batch = batch.take((batch.arrays["keys"] >> np.uint64(48)).astype(np.uint16).argsort(kind="stable"))
        arrays = batch.arrays
        if "starts" in arrays:
            arrays = arrays | {"starts": arrays["starts"][:-1] + entry, "stops": arrays["starts"][1:] + entry}
        files = {name: self._append(name, a) for name, a in arrays.items()}
        self._runs.append(_Run(self.n - batch.n, batch.n))
        if self.finished is not None:
            self.finished({"n": batch.n, "bytes": batch.bytes, "files": files})

    def _append(self, name: str, a: np.ndarray) -> dict[str, Any]:
        """Write items of one array; return how to find them again."""
        column = self._columns.get(name) or self._column(name, a.dtype, a.shape[1:], "wb+")
        mark = column.append(a)
        return {"dtype": a.dtype.str, "shape": list(a.shape[1:]), "bytes": mark.bytes, "crc32": mark.crc32}

    def _column(self, name: str, dtype: np.dtype, shape: tuple[int, ...], mode: Literal["wb+", "rb+"]) -> _Column:
        path = self.folder / f"{name}.run"
        with written(path):
            file = open(path, mode, buffering=0)  # noqa: SIM115
        self._columns[name] = _Column(path, file, dtype, shape)
        return self._columns[name]

    def take_back(self, run: dict[str, Any]) -> bool:
        """Reuse a run that another shuffler has written, if its bytes are there."""
        for name, told in run["files"].items():
            column = self._columns.get(name)
            first = 0 if column is None else column.bytes
            if mark_of(self.folder / f"{name}.run", first, told["bytes"]) != FileMark(told["bytes"], told["crc32"]):
                return False
        for name, told in run["files"].items():
            column = self._columns.get(name) or self._column(name, np.dtype(told["dtype"]), tuple(told["shape"]), "rb+")
            column.bytes += told["bytes"]
        self._runs.append(_Run(self.n, run["n"]))
        self.n, self.bytes = self.n + run["n"], self.bytes + run["bytes"]
        return True

    def end(self) -> bool:
        """Write the remaining rows, unless all rows fit in memory; return whether the rows are on disk."""
        if self._runs and self._held:
            self._spill()
        return bool(self._runs)

    def batches(self, skip: int = 0) -> Iterator[RowBatch]:
        """All rows in the order of their keys, without the first ``skip``; call it once, after `end`."""
        if self._held:
            yield by_key(self._held).without("keys")
            self._held = []
        count = min(RANGES, max(1, -(-2 * self.bytes // self.room))) if self._runs else 0
        for i in range(1, count + 1):
            bound = np.uint64(min((i * RANGES // count) << 48, 2**64 - 1))
            found = [(run, self._keys(run, bound, 1 / (count - i + 1), i == count)) for run in self._runs]
            n = sum(len(keys) for _, keys in found)
            some = [self._rows(run, keys) for run, keys in found if len(keys) and n > skip]
            for run, keys in found:
                run.done += len(keys)
            if some:
                batch = by_key(some).without("keys")
                yield batch.part(skip, n) if skip else batch
            skip -= min(skip, n)

    def _keys(self, run: _Run, bound: np.uint64, share: float, rest: bool) -> np.ndarray:
        """The keys of the next rows of a run, up to a bound."""
        file, first, left = self._columns["keys"], run.row + run.done, run.n - run.done
        keys = file.get(first, left if rest else min(left, int(share * left + 4 * (share * left) ** 0.5) + 8))
        while not rest and len(keys) < left and keys[-1] < bound:
            keys = np.concatenate([keys, file.get(first + len(keys), min(left - len(keys), len(keys)))])
        return keys if rest else keys[: int(np.searchsorted(keys, bound))]

    def _rows(self, run: _Run, keys: np.ndarray) -> RowBatch:
        """The next rows of a run, which have these keys."""
        files, first, n = self._columns, run.row + run.done, len(keys)
        per_row = [name for name in files if name not in ("keys", "starts", "stops", "columns", "values")]
        arrays = {"keys": keys} | {name: files[name].get(first, n) for name in per_row}
        if "starts" in files:
            starts, stop = files["starts"].get(first, n), int(files["stops"].get(first + n - 1, 1)[0])
            entry = int(starts[0])
            arrays |= {name: files[name].get(entry, stop - entry) for name in ("columns", "values")}
            arrays["starts"] = np.append(starts, stop) - entry
        return RowBatch(arrays)


def by_key(batches: list[RowBatch]) -> RowBatch:
    """All rows of some batches in the order of their ``keys``.

    Examples
    --------
    >>> by_key([RowBatch({"targets": np.arange(3.0), "keys": np.array([7, 2, 5])})]).arrays
    {'targets': array([1., 2., 0.]), 'keys': array([2, 5, 7])}
    """
    batch = joined_batches(batches)
    return batch.take(batch.arrays["keys"].argsort())
