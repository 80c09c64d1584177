"""The effect of a batch of rows on the gradient estimate; `extremal.kernels.burst` has the formulas.

`extremal.kernels.arguments` names the arguments. X has the columns v and w, G has the columns V and M, and g = M + sigma V.
The rows of a batch are read in pieces that stay in the nearest cache: first their margins, then all derivatives in vector
loops, then the sums. Rows that differ in length are sorted by it: the processor then predicts where each loop over a row ends.
"""

from __future__ import annotations

from extremal.kernels.arguments import AVERAGE, BOTH, FOLLOW, RECURSE, REFRESH, RENEW, SNAPSHOT, SPARSE, TABLE
from extremal.kernels.draw import sort_by_length
from extremal.kernels.instructions import prefetch
from extremal.kernels.jit import inlined, summing
from extremal.kernels.rows import FAR, NEAR, U, add, add_two, announce_entries, row_dot, two_dots
from extremal.kernels.terms import derivatives

NEXT = 2  # how many rows ahead the entries that a row touches are prefetched
LONG = 8192  # longer vectors do not stay in the fastest caches
FEW = 16  # smaller batches are not sorted
TWO_POINTS = RECURSE, BOTH, SNAPSHOT
TABLES = TABLE, BOTH, RENEW  # those with M
TARGET, INTO_V, INTO_M = (
    2,
    3,
    4,
)  # places in the workspace: targets, and the multiples of rows in V and M; the first two are for margins
PLACES = 5


@inlined
def over_batch(model, state, batch, step):
    """Add the multiples of the rows of a batch to G; return a sum that is not finite if a derivative is not."""
    lay_out(model.rows, model.uneven, batch, state.order)
    if step.kind == FOLLOW:
        remember(state.margins, batch, state)
    elif step.kind in (REFRESH, TABLE, BOTH):
        remember(state.table, batch, state)
    if batch.b == 1:
        return over_piece(model, state, batch, step, 0, 1)  # the compiler knows the last number, and makes no loops
    total, piece = 0.0, state.room.shape[1]
    for first in range(0, batch.b, piece):
        total += over_piece(model, state, batch, step, first, min(piece, batch.b - first))
    return total


@inlined
def over_piece(model, state, batch, step, first, m):
    """The same for m rows of the batch."""
    points = 2 if step.kind in TWO_POINTS else 1
    announce(model.rows, model.y, state, batch, first, m)
    margins(model.rows, model.y, state, first, m, points, U(1) if step.kind == FOLLOW else U(0))
    at_points(state, first, m, step)
    derivatives(model.loss, model.parameter, state.room, points, m)
    multiples(state, batch.b, first, m, step, model.y.size)
    total = total_of(state.room, INTO_V, m)
    add_piece(model.rows, state, first, m, step.kind in TABLES)
    return total


@inlined
def lay_out(rows, uneven, batch, order):
    """Copy the rows of a batch; if they are ``uneven``, sorted by length."""
    if uneven and batch.b >= FEW:
        by_length(rows, batch, order)
    else:
        for r in range(U(batch.b)):
            order[r] = batch.flat[U(batch.q) + r]


@inlined
def by_length(rows, batch, order):
    """Sort the rows of a batch by their number of entries."""
    if len(rows) == SPARSE:
        sort_by_length(rows.indptr, batch.flat, batch.q, batch.b, order)


@inlined
def remember(table, batch, state):
    """Copy the table entries of a batch before the batch changes them."""
    for r in range(U(batch.b)):
        state.old[r] = table[U(state.order[r])]


@inlined
def margins(rows, y, state, first, m, points, column):
    """<a_i, x> for one column of X, or for both if there are two ``points``; and the targets."""
    X, room, order = state.X, state.room, state.order
    if X.shape[1] != 2:
        return  # this never happens, and tells the compiler the distance of two rows of X
    for r in range(U(m)):
        room[TARGET, r] = y[U(order[U(first) + r])]
    if points == 2:
        for r in range(U(m)):
            room[0, r], room[1, r] = two_dots(rows, U(order[U(first) + r]), X)
    else:
        for r in range(U(m)):
            room[0, r] = row_dot(rows, U(order[U(first) + r]), X, column)


@summing
def total_of(M, i, m):
    """The sum of the first m entries of row i."""
    total = 0.0
    for j in range(U(m)):
        total += M[i, j]
    return total


@inlined
def add_piece(rows, state, first, m, two):
    """V += sum room[INTO_V, r] a_i; and M += sum room[INTO_M, r] a_i if ``two``."""
    G, room, order = state.G, state.room, state.order
    if G.shape[1] != 2:
        return  # as above
    if two:
        for r in range(U(m)):
            add_two(rows, U(order[U(first) + r]), room[INTO_V, r], room[INTO_M, r], G)
    else:
        for r in range(U(m)):
            add(rows, U(order[U(first) + r]), room[INTO_V, r], G)


@inlined
def announce(rows, y, state, batch, first, m):
    """Prefetch for as many later rows their starts, for nearer ones the rows, for the next the entries of long vectors."""
    announce_rows(rows, y, state.order, batch, first, m)
    if len(rows) == SPARSE and state.X.shape[0] > LONG:
        for r in range(m):
            i = later(state.order, batch, first + NEXT + r)
            for e in range(U(rows.indptr[i]), U(rows.indptr[i + U(1)])):
                prefetch(state.X, U(2) * U(rows.indices[e]))
                prefetch(state.G, U(2) * U(rows.indices[e]))


@inlined
def announce_rows(rows, y, order, batch, first, m):
    """Prefetch for as many later rows their starts and targets, and for nearer ones the rows."""
    if len(rows) == SPARSE:
        far, near = first + max(2 * m, FAR), first + max(m, NEAR)
        for r in range(m):
            i = later(order, batch, far + r)
            prefetch(rows.indptr, i)
            prefetch(y, i)
        for r in range(m):
            i = later(order, batch, near + r)
            announce_entries(rows.indices, rows.data, U(rows.indptr[i]))
            announce_entries(rows.indices, rows.data, U(rows.indptr[i + U(1)]))


@inlined
def later(order, batch, r):
    """Row r of the batch; beyond its end, of the draws that follow."""
    return U(order[r] if r < batch.b else batch.flat[min(batch.q + r, batch.flat.size - 1)])


@inlined
def at_points(state, first, m, step):
    """Margins of v and w become those of the two points whose derivatives the estimator reads."""
    room, e, kind = state.room, step.eta, step.kind
    if kind == FOLLOW:
        for r in range(m):
            old = state.old[first + r]
            room[0, r] = old + step.beta * (room[0, r] - old)
            state.margins[U(state.order[first + r])] = room[0, r]
        return
    for r in range(m):
        room[0, r] *= step.xi
    if kind in (RECURSE, BOTH):
        for r in range(m):
            room[1, r] = (1.0 - e) * room[0, r] + e * room[1, r]


@inlined
def multiples(state, b, first, m, step, n):
    """From the derivatives at the two points: the multiples of the rows in V and M, and the new entries of the table.

    The multiples of M are 1/n (c_i - y_i), once for each row even if it is drawn repeatedly.
    """
    room, kind, beta, scale, share, rest = state.room, step.kind, step.beta, 1.0 / b, 1.0 / n, 1.0 / step.sigma
    if kind == RECURSE:
        for r in range(m):
            room[INTO_V, r] = (room[1, r] - step.alpha * room[0, r]) * (scale * rest)
    elif kind == AVERAGE:
        for r in range(m):
            room[INTO_V, r] = room[0, r] * (beta * scale * rest)
    elif kind == SNAPSHOT:
        for r in range(m):
            room[INTO_V, r] = (room[0, r] - room[1, r]) * scale
    elif kind == REFRESH:
        for r in range(m):
            room[0, r] = (1.0 - beta) * state.old[first + r] + beta * room[0, r]
        enter(state, first, m, 0, share, INTO_V)
    elif kind == FOLLOW:
        enter(state, first, m, 0, share, INTO_V)
    elif kind == BOTH:
        enter(state, first, m, 1, share, INTO_M)
        for r in range(m):
            change = room[1, r] - room[0, r] + beta * (room[0, r] - state.old[first + r])
            room[INTO_V, r] = (change * scale - room[INTO_M, r]) * rest
    else:
        for r in range(m):
            room[INTO_M, r] = 0.0
        if step.put:
            enter(state, first, m, 0, share, INTO_M)
        for r in range(m):
            change = room[0, r] - state.old[first + r] if kind == TABLE else 0.0
            room[INTO_V, r] = change * scale - room[INTO_M, r]


@inlined
def enter(state, first, m, point, share, place):
    """room[place] = share (c_i - y_i), y_i = c_i."""
    for r in range(m):
        i, c = U(state.order[first + r]), state.room[point, r]
        state.room[place, r] = (c - state.table[i]) * share
        state.table[i] = c
