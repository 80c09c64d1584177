"""Rows on their way into shards, as sources have them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

CHUNK_BYTES = 2**22  # of a chunk that a source cuts from something large


@dataclass(frozen=True)
class SparseChunk:
    """Row i has the entries from starts[i] to starts[i + 1] - 1; d is None if nobody knows it before the end."""

    starts: np.ndarray
    columns: np.ndarray
    values: np.ndarray
    d: int | None = None
    canonical: bool = False  # whether columns are known to be in range and to increase in each row


@dataclass(frozen=True)
class Chunk:
    """Some rows of a source with their targets, and how to name row i of them."""

    rows: np.ndarray | SparseChunk
    targets: np.ndarray
    weights: np.ndarray | None
    place: Callable[[int], str]
    size: int = 0  # bytes that were read for it
    names: tuple[str, ...] | None = None
    at: tuple[int, int] = (0, 0)  # which file of the source, and which chunk of that


def pieces(total: int, row_bytes: float, multiple: int = 1) -> Iterator[tuple[int, int]]:
    """The rows 0, ..., total - 1 in chunks of bounded size, of a multiple of the rows that are stored together.

    Examples
    --------
    >>> list(pieces(5, CHUNK_BYTES / 2))
    [(0, 2), (2, 4), (4, 5)]
    """
    step = max(1, int(CHUNK_BYTES / max(1.0, row_bytes)) // multiple) * multiple
    yield from ((first, min(first + step, total)) for first in range(0, total, step))
