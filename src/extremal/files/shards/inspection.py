"""The numbers of a shard are inspected before their first use: compiled loops would follow wrong indices out of the arrays."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from extremal.checks import all_finite
from extremal.files.shards.manifest import Manifest
from extremal.files.shards.verify import refuse_faults
from extremal.kernels.arguments import kernels, locked

INSPECTED = 2**10  # rows that are inspected at once


class Inspection:
    """The shards of a directory, and the blocks of their rows that were found sound; each block is inspected once, in memory.

    Row starts and columns must increase within their ranges, and values and weights must be finite. Only `verify` compares
    checksums.

    Examples
    --------
    >>> import tempfile
    >>> from extremal.files.shards.build import build
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     manifest = build((np.eye(3), [1, 2, 3]), Path(folder, "train"))
    ...     arrays = {"rows": np.array([[1.0, 0.0, 0.0], [0.0, np.nan, 0.0]])}
    ...     Inspection(Path(folder, "train"), manifest).look(0, arrays, slice(0, 2))
    Traceback (most recent call last):
        ...
    extremal.checks.InputError: ...00000.rows.npy: row 1: expected finite numbers, got nan
    """

    def __init__(self, directory: Path, manifest: Manifest):
        self.directory, self.manifest = directory, manifest
        self._left: dict[int, np.ndarray] = {}  # whether each block of a shard is still to be inspected

    def look(self, i: int, arrays: Mapping[str, np.ndarray], rows: slice | np.ndarray) -> None:
        """Inspect some rows of shard i, consecutive ones or those of these numbers, except where that was done before."""
        left = self._left.get(i)
        if left is None:
            left = self._left[i] = self._begun(i, arrays)
        if not left.any():
            return
        if isinstance(rows, slice):
            blocks = np.arange(rows.start // INSPECTED, -(-rows.stop // INSPECTED))
        else:
            blocks = np.unique(rows // INSPECTED)
        for block in blocks[left[blocks]].tolist():
            first = block * INSPECTED
            if not rows_are_sound(arrays, self.manifest.d, first, min(first + INSPECTED, self.manifest.shards[i].n)):
                refuse_faults(self.directory, self.manifest, i, arrays)
            left[block] = False

    def _begun(self, i: int, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
        """All blocks of a shard, after a look at its weights and at both ends of its starts."""
        starts, weights = arrays.get("starts"), arrays.get("weights")
        bounded = starts is None or (starts[0], starts[-1]) == (0, len(arrays["columns"]))
        if not bounded or not (weights is None or (all_finite(weights) and weights.min() >= 0)):
            refuse_faults(self.directory, self.manifest, i, arrays)
        return np.ones(-(-self.manifest.shards[i].n // INSPECTED), bool)


def rows_are_sound(arrays: Mapping[str, np.ndarray], d: int, first: int, last: int) -> bool:
    """Whether the rows first, ..., last - 1 have finite values, in columns that increase and are below d.

    Examples
    --------
    >>> rows_are_sound({"rows": np.array([[1.0], [np.inf]])}, 1, 0, 1)
    True
    """
    if "rows" in arrays:
        return all_finite(arrays["rows"][first:last])
    entries = (locked(arrays[name]) for name in ("starts", "columns", "values"))
    return kernels("full").sound_rows(*entries, d, first, last)
