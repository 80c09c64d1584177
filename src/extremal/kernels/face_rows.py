"""The rows of a batch for steps within faces: their margins and derivatives, and their parts of a table of second derivatives.

As in `extremal.kernels.passes`, rows are read in pieces that stay in the nearest cache: first all margins, then all derivatives in
vector loops, then the sums. ``room`` has a row for each of these numbers, with an entry for each row of the piece.

The sums of q_i a_i a_i' over sparse rows are kept below the diagonal only, as far as both columns are kept. `complete` fills in the
rest of one column before it is read, and `mirror` that of all columns.
"""

from __future__ import annotations

from numpy import uint64 as U

from extremal.kernels.arguments import SPARSE
from extremal.kernels.instructions import lowest_bit, prefetch
from extremal.kernels.jit import bare, inlined
from extremal.kernels.passes import announce_rows, later
from extremal.kernels.rows import row_with, rows_product, scatter_rows, times_common, times_value
from extremal.kernels.terms import bends

MARGIN, SLOPE, BEND, BOUND, TARGET, ERROR, TURN, LIFT = range(8)  # the rows of ``room``: z, phi', phi'', its majorant, y; see below
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
        work.room[TARGET, r] = model.y[U(work.order[U(first) + r])]
    for r in range(U(m)):
        work.room[MARGIN, r] = margin_of(model.rows, U(work.order[U(first) + r]), x)
    bends(model.loss, model.parameter, work.room, m)


@inlined
def announce_numbers(numbers, work, batch, first, m):
    """Prefetch the numbers of as many later rows."""
    for r in range(m):
        prefetch(numbers, later(work.order, batch, first + max(m, NEXT_PIECE) + r))


@inlined
def add_to(rows, i, c, out, k):
    """out[k], out[k + 1], ... += c a_i."""
    k = U(k)
    if len(rows) == SPARSE:
        c = times_common(rows.data, c)
        for e in range(U(rows.indptr[i]), U(rows.indptr[i + U(1)])):
            out[k + U(rows.indices[e])] += times_value(rows.data, e, c)
    else:
        for l in range(U(rows.data.shape[1])):
            out[k + l] += c * rows.data[i, l]


@inlined
def add_row(rows, i, c, out):
    """out += c a_i."""
    if len(rows) == SPARSE:
        scatter_rows(rows.indptr, rows.indices, rows.data, c, i, out)
    else:
        add_to(rows, i, c, out, U(0))


@inlined
def value_at(rows, i, j):
    """a_ij."""
    if len(rows) != SPARSE:
        return float(rows.data[i, U(j)])
    for e in range(U(rows.indptr[i]), U(rows.indptr[i + U(1)])):
        if rows.indices[e] == j:
            return times_common(rows.data, times_value(rows.data, e, 1.0))
    return 0.0


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
    if len(rows) == SPARSE and marks.size:
        bit = (marks[U(j), i >> U(6)] >> (i & U(63))) & U(1)
        if alike(rows.data):
            return times_common(rows.data, float(bit))
        return value_at(rows, i, j) if bit else 0.0
    return value_at(rows, i, j)


@inlined
def alike(data):
    """Whether one value stands for all."""
    return data.ndim == 0


@bare
def keep_column(model, table, work, j):
    """One more column of the sums of q_i a_i a_i' and m_i a_i a_i'."""
    k, rows, d = int(table.counts[0]), model.rows, table.G.size
    table.W[k], table.counts[0] = j, k + 1
    k *= d
    table.place[j] = k
    for l in range(k, k + d):
        table.H[l] = 0.0
        if table.bounded:
            table.M[l] = 0.0
    if len(rows) == SPARSE and work.marks.size:
        for block in range(U(work.marks.shape[1])):
            bits = work.marks[U(j), block]
            while bits:
                keep_row(rows, (block << U(6)) + lowest_bit(bits), table, j, k)
                bits &= bits - U(1)
    else:
        for i in range(U(model.y.size)):
            keep_row(rows, i, table, j, k)


@inlined
def keep_row(rows, i, table, j, k):
    """Add q_i a_ij a_i and m_i a_ij a_i to the column at k."""
    if table.q[i] != 0.0 or (table.bounded and table.m[i] != 0.0):
        v = value_at(rows, i, j)
        if v != 0.0:
            add_to(rows, i, table.q[i] * v, table.H, k)
            if table.bounded:
                add_to(rows, i, table.m[i] * v, table.M, k)


# sums of q_i a_i a_i'


@inlined
def turn(rows, i, table, work, dq, dm):
    """H += dq a_ij a_i for the columns j that are kept; and M += dm a_ij a_i, if M is not H."""
    if len(rows) == SPARSE:
        inside, outside = sort_out(rows, i, table.place, work)
        spread(rows, work, inside, outside, dq, table.H)
        if table.bounded:
            spread(rows, work, inside, outside, dm, table.M)
    else:
        for l in range(U(table.place.size)):
            if table.place[l] >= 0:
                add_to(rows, i, dq * rows.data[i, l], table.H, table.place[l])
                if table.bounded:
                    add_to(rows, i, dm * rows.data[i, l], table.M, table.place[l])


@inlined
def sort_out(rows, i, place, work):
    """List the entries of a row in columns that are kept, and the others; return the numbers of both."""
    lists, values = work.lists, work.values
    inside, outside = U(0), U(0)
    for e in range(U(rows.indptr[i]), U(rows.indptr[i + U(1)])):
        j = U(rows.indices[e])
        k = place[j]
        lists[0, inside], lists[1, inside], lists[2, outside] = k, j, j
        v = times_value(rows.data, e, 1.0)
        values[0, inside], values[1, outside] = v, v
        kept = U(k >= 0)
        inside += kept
        outside += U(1) - kept
    return inside, outside


@inlined
def spread(rows, work, inside, outside, c, H):
    """H[k + l] += c a_ij a_il for the places k of the columns j, and all l up to j or in columns that are not kept."""
    lists, values = work.lists, work.values
    c = times_common(rows.data, times_common(rows.data, c))
    for p in range(inside):
        k, v = U(lists[0, p]), times_value_of(rows.data, values, U(0), p, c)
        for q in range(p + U(1)):
            H[k + U(lists[1, q])] += times_value_of(rows.data, values, U(0), q, v)
        for q in range(outside):
            H[k + U(lists[2, q])] += times_value_of(rows.data, values, U(1), q, v)


@inlined
def times_value_of(data, values, kind, e, c):
    """c times an entry of ``values``; or c if one value stands for all."""
    if data.ndim == 0:
        return c
    return values[kind, e] * c


@inlined
def complete(rows, table, j):
    """Fill in what column j of H and M has from the rows of other columns."""
    if len(rows) == SPARSE:
        d, k = U(table.place.size), U(table.place[j])
        for p in range(U(table.counts[0])):
            l = U(table.W[p])
            of = p * d + U(j) if l > U(j) else k + l
            table.H[k + l] = table.H[of]
            if table.bounded:
                table.M[k + l] = table.M[of]


@bare
def mirror(rows, table):
    """Fill in all columns."""
    for p in range(table.counts[0]):
        complete(rows, table, table.W[p])
