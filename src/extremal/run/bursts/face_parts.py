"""What compiled steps within faces need: rows, a workspace, and vertices of one form."""

from __future__ import annotations

from typing import Any

import numpy as np

from extremal.data.csr import CSR
from extremal.kernels import arguments
from extremal.kernels.arguments import locked
from extremal.losses.margin import compiled
from extremal.run.bursts.run import COUNTED_LENGTHS, burst_rows, has_loops, piece_of, uneven_rows
from extremal.run.counting import CountedSet
from extremal.sets.base import Spikes

NUMBERS = 8  # numbers of each row of a piece, see `extremal.kernels.face_rows`
BITS_PER_VALUE = 64  # an index of columns has one bit for each row in each column, and may take as many bytes as the values


def face_model(f: Any) -> arguments.BurstModel | None:
    """The rows and the loss for compiled loops."""
    if not has_loops(f):
        return None
    data: Any = f.data
    uneven = type(data) is CSR and uneven_rows(data)
    return arguments.BurstModel(burst_rows(data), locked(f.y), *compiled(f.loss), uneven)  # type: ignore[misc]


def workspace(data: Any, b: int) -> arguments.FaceRoom:
    """The workspace, with an index of columns that is not yet filled in."""
    (n, d), sparse = data.shape, type(data) is CSR
    marked = sparse and n * d <= BITS_PER_VALUE * data.nnz
    marks = np.zeros((d, -(-n // 64)) if marked else (0, 0), np.uint64)
    split = np.append(data.entries[0][1:] if sparse else np.zeros(0, np.int64), 0)
    order, support = np.empty(b + COUNTED_LENGTHS, np.int64), np.empty(d + 1, np.int64)
    return arguments.FaceRoom(order, np.empty((NUMBERS, piece_of(data))), support, marks, split)


def vertices_of(C: CountedSet) -> Spikes | None:
    """The vertices of the set, if they have both signs, at equal distances, or are positive and of one size."""
    spikes = C.spikes()
    if spikes is None:
        return None
    low, high = np.asarray(spikes.low), np.asarray(spikes.high)
    both = spikes.origin and np.array_equal(low, -high)
    return spikes if (high > 0).all() and (both or (high.ndim == 0 and not low.any())) else None
