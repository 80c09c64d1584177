"""The rows of a batch for steps within faces: their margins and derivatives, and their parts of a table of second derivatives.

As in `extremal.kernels.passes`, rows are read in pieces that stay in the nearest cache: first all margins, then all derivatives
in vector loops, then the sums. ``room`` has a row for each of these numbers, with an entry for each row of the piece.

For `TrackedFW` the entries of sparse rows are in an order of their own: those in columns that are not kept come first, up to
``split``, and then those in kept columns, the latest column first. A row of the sums of q_i a_i a_i' is kept up to its own column
in this order. `complete_column` fills in the rest of one column from columns that were kept earlier, and `mirror` that of all.
"""

from __future__ import annotations

from numpy import uint64 as U

from extremal.kernels.arguments import SPARSE
from extremal.kernels.instructions import lowest_bit, prefetch
from extremal.kernels.jit import bare, inlined
from extremal.kernels.passes import announce_rows, later
from extremal.kernels.rows import row_with, rows_product, times_common, times_value
from extremal.kernels.terms import bends

AT_X, SLOPES, BENDS, MAJORANTS, TARGETS, ERRORS, TURNS, LIFTS = range(8)  # the rows of ``room``: margins, phi', phi'', ...
NEXT_PIECE = 8  # the least number of rows ahead at which numbers of rows are prefetched


@inlined
def margin_of(rows, i, x):
    """<a_i, x>."""
    if len(rows) == SPARSE:
        return rows_product(rows.indptr, rows.indices, rows.data, x, i)
    return row_with(rows.data, i, x)


@inlined
def look(model, work, batch, first, m, x):
    """Fill in the first five rows of ``room`` for m rows of a batch, and prefetch those after them."""
    announce_rows(model.rows, model.y, work.order, batch, first, m)
    for r in range(U(m)):
        work.room[TARGETS, r] = model.y[U(work.order[U(first) + r])]
    for r in range(U(m)):
        work.room[AT_X, r] = margin_of(model.rows, U(work.order[U(first) + r]), x)
    bends(model.loss, model.parameter, work.room, m)


@inlined
def announce_numbers(numbers, work, batch, first, m):
    """Prefetch the numbers of as many later rows."""
    for r in range(m):
        prefetch(numbers, later(work.order, batch, first + max(m, NEXT_PIECE) + r))


# columns of rows


@bare
def mark(rows, marks):
    """Set bit i of marks[j] for each entry a_ij; do nothing if there are no marks."""
    if len(rows) == SPARSE and marks.size:
        for i in range(U(rows.indptr.size - 1)):
            for e in range(U(rows.indptr[i]), U(rows.indptr[i + U(1)])):
                marks[U(rows.indices[e]), i >> U(6)] |= U(1) << (i & U(63))


@inlined
def entry_of(rows, marks, i, j):
    """a_ij, by its mark if there are marks."""
    if len(rows) != SPARSE:
        return float(rows.data[i, U(j)])
    if marks.size:
        bit = (marks[U(j), i >> U(6)] >> (i & U(63))) & U(1)
        if alike(rows.data):
            return times_common(rows.data, float(bit))
        if not bit:
            return 0.0
    for e in range(U(rows.indptr[i]), U(rows.indptr[i + U(1)])):
        if rows.indices[e] == j:
            return times_common(rows.data, times_value(rows.data, e, 1.0))
    return 0.0


@inlined
def alike(data):
    """Whether one value stands for all."""
    return data.ndim == 0


@bare
def keep_column(model, table, work, j):
    """One more column of the sums of q_i a_i a_i' and m_i a_i a_i'."""
    k, d = int(table.counts[0]), table.G.size
    table.W[k], table.counts[0], table.place[j] = j, k + 1, k * d
    for l in range(U(k * d), U(k * d + d)):
        table.H[l] = 0.0
        if table.bounded:
            table.M[l] = 0.0
    set_aside(model, table, work, j, True)


@bare
def set_aside(model, table, work, j, summed):
    """Move the entries of column j behind those of columns that are not kept; add up the column if ``summed``."""
    if len(model.rows) == SPARSE and work.marks.size:
        for block in range(U(work.marks.shape[1])):
            bits = work.marks[U(j), block]
            while bits:
                set_aside_entry(model.rows, (block << U(6)) + lowest_bit(bits), table, work, j, summed)
                bits &= bits - U(1)
    else:
        for i in range(U(model.y.size)):
            set_aside_entry(model.rows, i, table, work, j, summed)
    work.split[-1] += 1  # columns whose entries stand in this order


@inlined
def set_aside_entry(rows, i, table, work, j, summed):
    """The same for one row."""
    k = U(table.place[j])
    if len(rows) == SPARSE:
        start, stop = U(rows.indptr[i]), U(work.split[i])
        e = start
        while e < stop and rows.indices[e] != j:
            e += U(1)
        if e == stop:
            return
        last = stop - U(1)
        rows.indices[e], rows.indices[last] = rows.indices[last], j
        v = exchanged(rows.data, e, last)
        if summed and table.q[i] != 0.0:
            add_entries(rows, start, stop, table.q[i] * v, table.H, k)
        if summed and table.bounded:
            add_entries(rows, start, stop, table.m[i] * v, table.M, k)
        work.split[i] = last
    elif summed and rows.data[i, U(j)] != 0.0:
        add_row(rows, i, table.q[i] * rows.data[i, U(j)], table.H, k)
        if table.bounded:
            add_row(rows, i, table.m[i] * rows.data[i, U(j)], table.M, k)


@inlined
def exchanged(data, e, last):
    """Exchange two values; return the first one."""
    if data.ndim == 0:
        return times_common(data, 1.0)
    v = data[e]
    data[e], data[last] = data[last], v
    return float(v)


# sums over rows


@inlined
def add_row(rows, i, c, out, k):
    """out[k], out[k + 1], ... += c a_i."""
    if len(rows) == SPARSE:
        add_entries(rows, U(rows.indptr[i]), U(rows.indptr[i + U(1)]), c, out, k)
    else:
        for l in range(U(rows.data.shape[1])):
            out[k + l] += c * rows.data[i, l]


@inlined
def add_entries(rows, start, stop, c, out, k):
    """The same for the entries of a sparse row from ``start`` to ``stop``."""
    c = times_common(rows.data, c)
    for e in range(start, stop):
        out[k + U(rows.indices[e])] += times_value(rows.data, e, c)


@inlined
def turn(rows, i, place, split, c, H):
    """H += c a_ij a_i for the columns j that are kept, each at its place; for sparse rows up to entry j only, or one more."""
    if len(rows) == SPARSE:
        start, e, stop = U(rows.indptr[i]), U(split[i]), U(rows.indptr[i + U(1)])
        c = times_common(rows.data, c)
        if (stop - e) & U(1):
            add_entries(rows, start, e + U(1), times_value(rows.data, e, c), H, U(place[U(rows.indices[e])]))
            e += U(1)
        while e < stop:
            add_entries_twice(rows, start, e + U(2), c, H, place)
            e += U(2)
    else:
        for l in range(U(place.size)):
            if place[l] >= 0:
                add_row(rows, i, c * rows.data[i, l], H, U(place[l]))


@inlined
def add_entries_twice(rows, start, stop, c, H, place):
    """Add the entries of a sparse row from ``start`` to ``stop`` to the columns of the last two of them."""
    k, l = U(place[U(rows.indices[stop - U(2)])]), U(place[U(rows.indices[stop - U(1)])])
    v, w = times_value(rows.data, stop - U(2), c), times_value(rows.data, stop - U(1), c)
    v, w = times_common(rows.data, v), times_common(rows.data, w)
    for e in range(start, stop):
        j = U(rows.indices[e])
        H[k + j] += times_value(rows.data, e, v)
        H[l + j] += times_value(rows.data, e, w)


@inlined
def complete_column(rows, table, j):
    """Fill in what column j of H and M has from columns that were kept earlier."""
    if len(rows) == SPARSE:
        d, k = U(table.place.size), U(table.place[j])
        for p in range(k // d):
            l = U(table.W[p])
            table.H[k + l] = table.H[p * d + U(j)]
            if table.bounded:
                table.M[k + l] = table.M[p * d + U(j)]


@bare
def mirror(rows, table):
    """Fill in all columns."""
    for p in range(table.counts[0]):
        complete_column(rows, table, table.W[p])
