"""Rows in the arrays that make up shards: cut, joined and reordered."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class RowBatch:
    """Rows in the form of shards: arrays by name. These are ``starts`` from 0 on, arrays of entries, and arrays of rows.

    Examples
    --------
    >>> batch = RowBatch({"rows": np.eye(3), "targets": np.arange(3.0)})
    >>> batch.n, batch.part(1, 3).arrays["targets"], batch.bytes
    (3, array([1., 2.]), 96)
    """

    arrays: dict[str, np.ndarray]

    @property
    def n(self) -> int:
        """The number of rows."""
        return len(self.arrays["targets"])

    @property
    def bytes(self) -> int:
        """The bytes of all arrays, with the starts as int32."""
        return int(self.ends[-1]) if self.n else 0

    @property
    def ends(self) -> np.ndarray:
        """The bytes up to the end of each row."""
        arrays = self.arrays
        one = sum(a[:1].nbytes for name, a in arrays.items() if name not in ("starts", "columns", "values", "keys"))
        if "starts" not in arrays:
            return one * np.arange(1, self.n + 1)
        entry = arrays["columns"].itemsize + arrays["values"].itemsize
        return (one + 4) * np.arange(1, self.n + 1) + entry * arrays["starts"][1:].astype(np.int64)

    def part(self, first: int, last: int) -> RowBatch:
        """Some consecutive rows, without a copy of the entries."""
        cut = {name: a[first:last] for name, a in self.arrays.items() if name not in ("starts", "columns", "values")}
        if "starts" in self.arrays:
            starts = self.arrays["starts"][first : last + 1]
            lo, hi = int(starts[0]), int(starts[-1])
            cut |= {"starts": starts - lo, "columns": self.arrays["columns"][lo:hi], "values": self.arrays["values"][lo:hi]}
        return RowBatch(cut)

    def without(self, array: str) -> RowBatch:
        """The same rows without one array."""
        return RowBatch({name: a for name, a in self.arrays.items() if name != array})

    def take(self, order: np.ndarray) -> RowBatch:
        """The rows in another order, copied."""
        taken = {name: a[order] for name, a in self.arrays.items() if name not in ("starts", "columns", "values")}
        if "starts" in self.arrays:
            from extremal.kernels.arguments import locked
            from extremal.kernels.full import rows_in_order  # numba

            entries = tuple(locked(self.arrays[name]) for name in ("starts", "columns", "values"))
            taken |= dict(zip(("starts", "columns", "values"), rows_in_order(entries, order), strict=True))
        return RowBatch(taken)


def joined_batches(batches: list[RowBatch]) -> RowBatch:
    """All rows of some batches, copied.

    Examples
    --------
    >>> joined_batches([RowBatch({"targets": np.ones(2)}), RowBatch({"targets": np.zeros(1)})]).arrays["targets"]
    array([1., 1., 0.])
    """
    if len(batches) == 1:
        return batches[0]
    arrays = {name: np.concatenate([b.arrays[name] for b in batches]) for name in batches[0].arrays if name != "starts"}
    return RowBatch(arrays | ({"starts": joined_starts(batches)} if "starts" in batches[0].arrays else {}))


def joined_starts(batches: list[RowBatch]) -> np.ndarray:
    """The starts of the rows of some batches after their entries are joined."""
    lengths = [np.diff(batch.arrays["starts"]) for batch in batches]
    starts = np.zeros(1 + sum(map(len, lengths)), np.int64)
    np.cumsum(np.concatenate(lengths), out=starts[1:])
    return starts
