"""An external shuffle: row i has the key mix(seed, i), and the rows in the order of their keys are the shuffled rows.

The keys have 64 bits and are all different, by the finalizer of splitmix64 (Steele, Lea and Flood 2014), which is a bijection.
The order is a function of the seed and the positions alone: neither chunks nor memory matter. Rows are collected in runs; a run
is sorted by the first 16 bits of its keys and written to disk. Then the rows with keys in a range are read from all runs, range
by range.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np

from extremal.files.shards.batches import RowBatch, joined_batches
from extremal.files.shards.writing import as_bytes, written

_GOLDEN, _FIRST, _SECOND = (np.uint64(c) for c in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))
RANGES = 2**16  # of keys, at most


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
    """Where a run lies in the files, and how far it has been read."""

    row: int  # the number of rows before it, in the files
    n: int
    entry: int
    done: int = 0


class Shuffler:
    """Collects batches in memory, writes runs when there are too many, and gives all rows back in the order of their keys.

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
        self.n, self.bytes = 0, 0
        self._held: list[RowBatch] = []
        self._held_bytes, self._runs = 0, list[_Run]()
        self._files: dict[str, BinaryIO] = {}
        self._shapes: dict[str, tuple[np.dtype, tuple[int, ...]]] = {}

    def __enter__(self) -> Shuffler:
        return self

    def __exit__(self, *error: object) -> None:
        for file in self._files.values():
            file.close()

    def add(self, batch: RowBatch) -> None:
        """Take rows in."""
        size = batch.bytes
        self._held.append(RowBatch(batch.arrays | {"keys": shuffle_keys(self.seed, self.n, self.n + batch.n)}))
        self.n, self.bytes = self.n + batch.n, self.bytes + size
        self._held_bytes += size + 8 * batch.n
        if self._held_bytes >= self.room:
            self._spill()

    def _spill(self) -> None:
        """Write what is held as a run."""
        batch = joined_batches(self._held)
        self._held, self._held_bytes = [], 0
        last = self._runs[-1] if self._runs else _Run(0, 0, 0)
        entry = self._size("columns") if self._runs and "columns" in batch.arrays else 0
        batch = batch.take((batch.arrays["keys"] >> np.uint64(48)).astype(np.uint16).argsort(kind="stable"))
        for name, a in batch.arrays.items():
            self._append(name, a[:-1] + entry if name == "starts" else a)
        if "starts" in batch.arrays:
            self._append("stops", batch.arrays["starts"][1:] + entry)
        self._runs.append(_Run(last.row + last.n, batch.n, entry))

    def _append(self, name: str, a: np.ndarray) -> None:
        path = self.folder / f"{name}.run"
        with written(path):
            if name not in self._files:
                self._files[name] = open(path, "xb+", buffering=0)  # noqa: SIM115
                self._shapes[name] = a.dtype, a.shape[1:]
            left = as_bytes(a, a.dtype)
            while len(left):
                left = left[self._files[name].write(left) :]

    def _size(self, name: str) -> int:
        """Items in a file so far."""
        dtype, shape = self._shapes[name]
        return self._files[name].tell() // (dtype.itemsize * int(np.prod(shape)))

    def batches(self) -> Iterator[RowBatch]:
        """All rows in the order of their keys; called once."""
        if not self._runs:
            if self._held:
                yield _by_key(self._held)
            self._held = []
            return
        if self._held:
            self._spill()
        count = min(RANGES, max(1, -(-2 * self.bytes // self.room)))
        for i in range(1, count + 1):
            bound = np.uint64(min((i * RANGES // count) << 48, 2**64 - 1))
            found = [self._read(run, bound, 1 / (count - i + 1), i == count) for run in self._runs]
            if some := [batch for batch in found if batch is not None]:
                yield _by_key(some)

    def _read(self, run: _Run, bound: np.uint64, share: float, rest: bool) -> RowBatch | None:
        """The next rows of a run, up to a bound of the keys."""
        first, left = run.row + run.done, run.n - run.done
        keys = self._get("keys", first, left if rest else min(left, int(share * left + 4 * (share * left) ** 0.5) + 8))
        while not rest and len(keys) < left and keys[-1] < bound:
            keys = np.concatenate([keys, self._get("keys", first + len(keys), min(left - len(keys), len(keys)))])
        n = len(keys) if rest else int(np.searchsorted(keys, bound))
        run.done += n
        if not n:
            return None
        arrays = {"keys": keys[:n]}
        per_row = [name for name in self._files if name not in ("keys", "starts", "stops", "columns", "values")]
        arrays |= {name: self._get(name, first, n) for name in per_row}
        if "starts" in self._files:
            starts, stop = self._get("starts", first, n), int(self._get("stops", first + n - 1, 1)[0])
            entry = int(starts[0])
            arrays |= {name: self._get(name, entry, stop - entry) for name in ("columns", "values")}
            arrays["starts"] = np.append(starts, stop) - entry
        return RowBatch(arrays)

    def _get(self, name: str, first: int, count: int) -> np.ndarray:
        """Some items of a file."""
        dtype, shape = self._shapes[name]
        out = np.empty((count, *shape), dtype)
        file, left = self._files[name], out.reshape(-1).view(np.uint8).data
        file.seek(first * dtype.itemsize * int(np.prod(shape)))
        while len(left):
            done = file.readinto(left)  # type: ignore[attr-defined]
            if not done:
                raise OSError(f"{self.folder / name}.run: it is shorter than what was written")
            left = left[done:]
        return out


def _by_key(batches: list[RowBatch]) -> RowBatch:
    """Rows in the order of their keys, without these."""
    batch = joined_batches(batches)
    keys = batch.arrays.pop("keys") if len(batches) > 1 else batch.arrays["keys"]
    batch = RowBatch({name: a for name, a in batch.arrays.items() if name != "keys"})
    return batch.take(keys.argsort())
