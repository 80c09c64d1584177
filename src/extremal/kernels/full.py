"""A pass over rows of a CSR matrix: the sum, the derivatives and the gradient of a linear model at once.

All sums are in float64, and x is taken in float64, so that float32 data need not be copied for it.
"""

from __future__ import annotations

import numpy as np

from extremal.kernels.jit import jit
from extremal.kernels.rows import dot_range, take_rows, tdot_range
from extremal.kernels.terms import terms
from extremal.kernels.views import locked

CsrArrays = tuple[np.ndarray, ...]  # indptr, indices, data

CACHED_ROWS = 8192  # rows whose entries are still in the cache when they are read again
CACHED_FEATURES = 2**18  # features up to which x and the gradient stay in the cache together


@jit
def sweep(indptr, indices, data, y, x, loss, parameter, block, valued, z, c, g):
    """Return sum phi(<a_i, x>, y_i) if ``valued``; fill z_i = <a_i, x> and c_i = phi'; g += sum c_i a_i.

    ``z``, ``c`` and ``g`` may be empty, which leaves them out. A block of rows is read from memory once.
    """
    n = indptr.size - 1
    total, room, none = 0.0, np.empty((2, min(block, n))), np.empty(0)
    for start in range(0, n, block):
        size = min(block, n - start)
        at, ys = room[0, :size], y[start : start + size]
        dot_range(indptr, indices, data, x, start, at)
        if z.size > 0:
            z[start : start + size] = at
        if c.size == 0 and g.size == 0:
            total += terms(loss, parameter, at, ys, valued, none, none)
            continue
        derivs = room[1, :size]
        total += terms(loss, parameter, at, ys, valued, derivs, none)
        if c.size > 0:
            c[start : start + size] = derivs
        if g.size > 0:
            tdot_range(indptr, indices, data, derivs, start, g)
    return total


def rows_in_order(entries: CsrArrays, order: np.ndarray) -> CsrArrays:
    """Copies with row order[t] as row t."""
    indptr, indices, data = entries
    starts = np.zeros(len(order) + 1, indptr.dtype)
    np.cumsum(np.diff(indptr)[order], out=starts[1:])
    new = starts, np.empty(starts[-1], indices.dtype), np.empty(starts[-1], data.dtype)
    take_rows(*entries, locked(order), *new)
    return new


def cached_rows(n: int, d: int, entries: int) -> int:
    """Rows of a block: as many as stay in the cache, unless x and d sums do not; then so many that these are seldom read anew."""
    return CACHED_ROWS if d <= CACHED_FEATURES else max(CACHED_ROWS, 8 * d * n // max(1, entries))
