"""Rows on their way into shards, in the form of their source."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

CHUNK_BYTES = 2**22  # size of a chunk that is cut from a large source


@dataclass(frozen=True)
class SparseChunk:
    """Sparse rows: row i has the entries from starts[i] to starts[i + 1] - 1; d is None if it is known only at the end."""

    starts: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    d: int | None = None
    canonical: bool = False  # whether columns are known to be in range and to increase in each row


@dataclass(frozen=True)
class Chunk:
    """Some rows of a source with their targets, and a function that names row i in messages."""

    rows: np.ndarray | SparseChunk
    targets: np.ndarray
    weights: np.ndarray | None
    place: Callable[[int], str]
    size: int = 0  # bytes of the source that the chunk took
    names: tuple[str, ...] | None = None
    at: tuple[int, int] = (0, 0)  # the file of the source, and the chunk in that file


def pieces(total: int, row_bytes: float, multiple: int = 1) -> Iterator[tuple[int, int]]:
    """Divide the rows 0, ..., total - 1 into chunks of bounded size, each of a multiple of ``multiple`` rows.

    Examples
    --------
    >>> list(pieces(5, CHUNK_BYTES / 2))
    [(0, 2), (2, 4), (4, 5)]
    """
    step = max(1, int(CHUNK_BYTES / max(1.0, row_bytes)) // multiple) * multiple
    yield from ((first, min(first + step, total)) for first in range(0, total, step))
