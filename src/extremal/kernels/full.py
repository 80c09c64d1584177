"""Passes over all rows of a CSR matrix: a linear model and its gradient in one pass, some columns, and their Gram matrix.

All sums and x are in float64, so that float32 data need no copy.
"""

from __future__ import annotations

import numpy as np

from extremal.kernels.arguments import locked
from extremal.kernels.draw import LENGTHS, sort_by_length
from extremal.kernels.jit import bare, inlined, jit
from extremal.kernels.rows import (
    ENTRIES_AHEAD,
    U,
    announce_entries,
    dot_range,
    rows_dot,
    rows_product,
    rows_tdot,
    scatter_rows,
    take_rows,
    tdot_range,
)
from extremal.kernels.terms import terms

CsrArrays = tuple[np.ndarray, ...]  # indptr, indices, data

SORTED_ROWS = 1024  # rows that are sorted by length together
CACHED_ROWS = 8192  # rows whose entries are still in the cache when read again
CACHED_FEATURES = 2**18  # largest number of features for which x and the gradient stay in the cache together


@jit
def sweep(indptr, indices, data, y, x, loss, parameter, block, valued, z, c, g):
    """Return sum phi(<a_i, x>, y_i) if ``valued``; fill z_i = <a_i, x> and c_i = phi'; g += sum c_i a_i.

    Empty ``z``, ``c`` and ``g`` are skipped. A block of rows is read from memory once. Rows that differ in length are read in
    the order of their lengths.
    """
    n, some = indptr.size - 1, uneven(indptr)
    block = max(1, min(n, SORTED_ROWS if some else block))
    total, room, none, order = 0.0, np.empty((3, block)), np.empty(0), np.empty(block + LENGTHS if some else 0, np.int64)
    for start in range(0, n, block):
        size = min(block, n - start)
        rows, at, ys = order[:size], room[0, :size], y[start : start + size]
        if some:
            sort_by_length(indptr, np.arange(start, start + size), 0, size, order)
            rows_dot(indptr, indices, data, x, rows, at)
            ys = room[2, :size]
            pick_rows(y, rows, ys)
        else:
            dot_range(indptr, indices, data, x, start, at)
        put(at, start, rows, z)
        derivs = room[1, : size if c.size > 0 or g.size > 0 else 0]
        total += terms(loss, parameter, at, ys, valued, derivs, none)
        put(derivs, start, rows, c)
        if g.size > 0:
            if some:
                rows_tdot(indptr, indices, data, derivs, rows, g)
            else:
                tdot_range(indptr, indices, data, derivs, start, g)
    return total


@bare
def uneven(indptr):
    """Whether rows differ in length by more than one entry from their predecessor, on average."""
    n, differences = indptr.size - 1, 0
    for i in range(1, n):
        differences += abs(indptr[i + 1] - 2 * indptr[i] + indptr[i - 1])
    return differences > n


@inlined
def pick_rows(values, rows, out):
    """out[t] = values[i] with i = rows[t]."""
    for t in range(U(out.size)):
        out[t] = values[U(rows[t])]


@inlined
def put(values, start, rows, out):
    """out[i] = values[t] with i = rows[t], or i = start + t without ``rows``; nothing if ``out`` is empty.

    numba compiles an assignment of slices in two seconds, with the sentence of its error.
    """
    for t in range(U(values.size if out.size > 0 else 0)):
        out[U(rows[t]) if rows.size > 0 else U(start) + t] = values[t]


def rows_in_order(entries: CsrArrays, order: np.ndarray) -> CsrArrays:
    """Copy the arrays with row order[t] as row t."""
    indptr, indices, data = entries
    starts = np.zeros(len(order) + 1, indptr.dtype)
    np.cumsum(np.diff(indptr)[order], out=starts[1:])
    new = starts, np.empty(starts[-1], indices.dtype), np.empty(starts[-1], data.dtype)
    take_rows(*entries, locked(order), *new)
    return new


def cached_rows(n: int, d: int, entries: int) -> int:
    """Rows per block: as many as stay in the cache; if x and d sums do not, enough that these are seldom read again."""
    return CACHED_ROWS if d <= CACHED_FEATURES else max(CACHED_ROWS, 8 * d * n // max(1, entries))


@bare
def compact(indptr, indices, data, place, starts, columns, values):
    """Copy the entries of the columns j with place[j] >= 0, which become columns place[j]; return their number.

    ``columns`` and ``values`` need room for one entry more. There is no branch, because the processor could not predict it.
    """
    used = 0
    for i in range(indptr.size - 1):
        starts[i] = used
        used = keep_columns(indices, data, indptr[i], indptr[i + 1], place, columns, values, used)
    starts[indptr.size - 1] = used
    return used


@inlined
def keep_columns(indices, data, first, last, place, columns, values, used):
    """Copy those of one row, after the first ``used`` entries."""
    for e in range(first, last):
        p = place[indices[e]]
        columns[used] = p
        values[used] = data[e]
        used += p >= 0
    return used


@bare
def moments(indptr, indices, data, w, out):
    """out[0] += sum_i w_i a_i, out[1] += the same with squared entries."""
    for i in range(indptr.size - 1):
        for e in range(indptr[i], indptr[i + 1]):
            out[0, indices[e]] += w[i] * data[e]
            out[1, indices[e]] += w[i] * data[e] * data[e]


@bare
def gram_product(indptr, indices, data, v, h, out):
    """out += sum over all rows of h_i <a_i, v> a_i; of <a_i, v> a_i if h is empty."""
    for i in range(U(indptr.size - 1)):
        announce_entries(indices, data, U(indptr[i]) + U(ENTRIES_AHEAD))
        z = rows_product(indptr, indices, data, v, i)
        scatter_rows(indptr, indices, data, z if h.size == 0 else h[i] * z, i, out)


@bare
def gram(indptr, indices, data, h, out):
    """out += sum over all rows of h_i a_i a_i', its lower triangle (columns increase within a row)."""
    for i in range(indptr.size - 1):
        if h[i] != 0.0:
            add_square(indices, data, indptr[i], indptr[i + 1], h[i], out)


@inlined
def add_square(columns, values, first, last, c, out):
    """out += c a a', its lower triangle."""
    for e in range(first, last):
        w = c * values[e]
        row = columns[e]
        for other in range(first, e + 1):
            out[row, columns[other]] += w * values[other]


@bare
def gram_of_columns(indptr, indices, data, place, h, columns, values, out):
    """The same for the columns j with place[j] >= 0, which become columns place[j], without a copy of these.

    ``columns`` and ``values`` have room for the entries of one row in these columns, plus one.
    """
    for i in range(indptr.size - 1):
        if h[i] != 0.0:
            used = keep_columns(indices, data, indptr[i], indptr[i + 1], place, columns, values, 0)
            add_square(columns, values, 0, used, h[i], out)


@bare
def powers(indptr, indices, data, w, half, out):
    """out_j += sum_i w_i a_ij^p for p = 2 ``half``."""
    for i in range(U(indptr.size - 1)):
        for e in range(U(indptr[i]), U(indptr[i + U(1)])):
            square = np.float64(data[e]) * np.float64(data[e])
            power = square
            for _ in range(1, half):
                power *= square
            out[U(indices[e])] += w[i] * power


@bare
def peaks(indptr, indices, data, out):
    """out_j = max(out_j, |a_ij|) over all rows."""
    for e in range(U(indptr[0]), U(indptr[-1])):
        j, size = U(indices[e]), abs(data[e])
        out[j] = size if size > out[j] else out[j]


@bare
def sound_rows(indptr, indices, data, d, first, last):
    """Whether rows first, ..., last - 1 have their entries within the arrays, increasing columns below d, and finite values.

    The loop over entries has no branch, and takes several at once. It counts all falls of the columns; those between two rows
    are right, and are taken away again.
    """
    for i in range(U(first), U(last)):
        if not 0 <= indptr[i] <= indptr[i + U(1)] <= indices.size:
            return False
    begin, end, wrong = U(indptr[first]), U(indptr[last]), 0
    if begin < end:
        wrong += _is_wrong(indices, data, d, begin)
    for e in range(begin + U(1), end):
        wrong += _is_wrong(indices, data, d, e) + (indices[e] <= indices[e - U(1)])
    for i in range(U(first + 1), U(last)):
        start = U(indptr[i])
        if begin < start < U(indptr[i + U(1)]):
            wrong -= indices[start] <= indices[start - U(1)]
    return wrong == 0


@inlined
def _is_wrong(indices, data, d, e):
    """The number of faults of one entry: a column out of range, and a value that is NaN or infinite."""
    return (indices[e] < 0) + (indices[e] >= d) + (data[e] - data[e] != 0)
