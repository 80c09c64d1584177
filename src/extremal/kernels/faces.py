"""Many iterations of `TrackedFW` and `SagaFaceFW` in one call, for linear models over sets with one-entry vertices.

A step goes from the worst vertex of the face that holds x to the best vertex of the set; both have one entry. The estimators are
those of `extremal.gradients.tracked` and `extremal.gradients.curved`, where the formulas are, and the step is `SelfConcordant`.
The readable loop explains all of it, and the tests compare these loops with it. `extremal.kernels.face_rows` reads the rows.
"""

from __future__ import annotations

import math

from numpy import uint64 as U

from extremal.kernels.arguments import ANEW, ENDED, FULL_ROOM, SPARSE, DrawnBatch
from extremal.kernels.face_rows import (
    AT_X,
    BENDS,
    ERRORS,
    LIFTS,
    MAJORANTS,
    SLOPES,
    TURNS,
    add_row,
    announce_numbers,
    complete_column,
    entry_of,
    keep_column,
    look,
    mirror,
    set_aside,
    turn,
)  # fmt: skip
from extremal.kernels.face_steps import all_below, gap_of, length_of, list_support, move, step_in_face
from extremal.kernels.instructions import add_fours
from extremal.kernels.jit import bare, inlined
from extremal.kernels.passes import lay_out
from extremal.kernels.rows import times_common


@bare
def tracked(model, faces, table, work, x, flat, b, top, refresh):
    """Make one iteration per batch of ``flat``; return the number made, and why the loop ended."""
    arrange_rows(model, table, work)
    list_support(x, work.support)
    made, why = 0, 0
    while made < flat.size // b and why == 0:
        p = step_in_face(faces, table.G, x, work.support)
        gap = gap_of(table.G, p) / table.counts[1]
        if gap > 0.0:
            if (table.counts[0] + 2) * x.size > table.H.size:
                why = FULL_ROOM
                break
            step_tracked(model, faces, table, work, x, p, gap)
        if not math.isfinite(draw_tracked(model, table, work, x, DrawnBatch(flat, made * b, b))):
            why = ENDED
            break
        made += 1
        if table.counts[1] == model.y.size and all_below(table.G, refresh * top * model.y.size):
            why = ANEW
    mirror(model.rows, table)
    return made, why


@bare
def renew(model, table, work, x, flat, b):
    """Draw all rows at x, listed in ``flat``, and add up all sums anew."""
    arrange_rows(model, table, work)
    for i in range(flat.size):
        table.c[i], table.q[i], table.z[i] = 0.0, 0.0, 0.0
        if table.bounded:
            table.m[i] = 0.0
    for l in range(x.size):
        table.G[l] = 0.0
    for l in range(table.counts[0] * x.size):
        table.H[l] = 0.0
        if table.bounded:
            table.M[l] = 0.0
    for q in range(0, flat.size, b):
        draw_tracked(model, table, work, x, DrawnBatch(flat, q, min(b, flat.size - q)))
    mirror(model.rows, table)


@inlined
def arrange_rows(model, table, work):
    """Give columns that the readable loop has kept their place in the rows."""
    while work.split[-1] < table.counts[0]:
        set_aside(model, table, work, table.W[work.split[-1]], False)


@inlined
def step_tracked(model, faces, table, work, x, p, gap):
    """Move x by one step, and G = sum_i y_i(x) a_i by two columns of H."""
    G, H, M, seen = table.G, table.H, table.M, table.counts[1]
    ds, da = p.t * p.up, -p.t * p.down
    ks, ka = column_at(model, table, work, p.s, ds), column_at(model, table, work, p.a, da)
    h = (ds * ds * M[ks + U(p.s)] + 2.0 * ds * da * M[ks + U(p.a)] + da * da * M[ka + U(p.a)]) / seen
    eta = min(1.0, length_of(model, faces, gap, h, p))
    xs, xa = x[p.s], x[p.a]
    move(x, work.support, p, eta)
    ds, da = x[p.s] - xs, 0.0 if p.a == p.s else x[p.a] - xa
    for l in range(U(G.size)):
        G[l] += ds * H[ks + l] + da * H[ka + l]


@inlined
def column_at(model, table, work, j, dj):
    """Where column j begins in H, complete; 0 if x does not move in it and it is not kept."""
    if dj != 0.0 and table.place[j] < 0:
        keep_column(model, table, work, j)
    if table.place[j] < 0:
        return U(0)
    complete_column(model.rows, table, j)
    return U(table.place[j])


@inlined
def draw_tracked(model, table, work, x, batch):
    """Draw the rows of a batch at x; return a sum that is not finite if a derivative is not."""
    lay_out(model.rows, model.uneven, batch, work.order)
    total, piece = 0.0, work.room.shape[1]
    for first in range(0, batch.b, piece):
        m = min(piece, batch.b - first)
        look(model, work, batch, first, m, x)
        announce_numbers(table.c, work, batch, first, m)
        announce_numbers(table.q, work, batch, first, m)
        announce_numbers(table.z, work, batch, first, m)
        renew_rows(table, work, first, m)
        for r in range(U(m)):
            i = U(work.order[U(first) + r])
            total += work.room[ERRORS, r]
            add_row(model.rows, i, work.room[ERRORS, r], table.G, U(0))
            turn(model.rows, i, table.place, work.split, work.room[TURNS, r], table.H)
            if table.bounded:
                turn(model.rows, i, table.place, work.split, work.room[LIFTS, r], table.M)
    return total


@inlined
def renew_rows(table, work, first, m):
    """Put new numbers of some rows into the table; ``room`` gets phi' - y_i(x) and the changes of phi'' and its majorant.

    Rows that were never drawn have zeros in the table.
    """
    room = work.room
    for r in range(U(m)):
        i = U(work.order[U(first) + r])
        room[ERRORS, r] = room[SLOPES, r] - (table.c[i] + table.q[i] * (room[AT_X, r] - table.z[i]))
        room[TURNS, r] = room[BENDS, r] - table.q[i]
        table.c[i], table.q[i], table.z[i] = room[SLOPES, r], room[BENDS, r], room[AT_X, r]
        table.counts[1] += table.fresh[i]
        table.fresh[i] = False
    if table.bounded:
        for r in range(U(m)):
            i = U(work.order[U(first) + r])
            room[LIFTS, r] = room[MAJORANTS, r] - table.m[i]
            table.m[i] = room[MAJORANTS, r]


@bare
def saga(model, faces, table, work, x, flat, b, bent, shares):
    """The same for the SAGA estimator with curvature by columns, of the first ``bent`` rows of a batch."""
    g, S = table.g, table.S
    list_support(x, work.support)
    for t in range(flat.size // b):
        p = step_in_face(faces, g, x, work.support)
        gap = gap_of(g, p)
        if gap > 0.0:
            step_saga(model, faces, table, work, x, p, gap, shares)
        table.drawn[0] = b
        total = draw_saga(model, table, work, x, DrawnBatch(flat, t * b, bent), 0)
        if bent < b:
            total += draw_saga(model, table, work, x, DrawnBatch(flat, t * b + bent, b - bent), bent)
        for l in range(U(g.size)):
            g[l] = S[l, 0]
            S[l, 0] = S[l, 1]
        if not math.isfinite(total):
            return t, ENDED
    return flat.size // b, 0


@inlined
def step_saga(model, faces, table, work, x, p, gap, shares):
    """Move x by one step: see `extremal.gradients.curved`."""
    S, n, drawn = table.S, model.y.size, table.drawn[0]
    ds, da = p.t * p.up, -p.t * p.down
    if p.s == p.a:
        ds, da = ds + da, 0.0
    us, ua = ds * ds * max(S[p.s, 2], 0.0) / n, da * da * max(S[p.a, 2], 0.0) / n
    cross, loud = 0.0, 0.0
    for r in range(U(drawn)):
        i = U(table.last[r])
        at_s, at_a = entry_of(model.rows, work.marks, i, p.s), entry_of(model.rows, work.marks, i, p.a)
        cross += table.weights[r] * at_s * at_a
        loud += (table.changes[r] * (ds * at_s + da * at_a)) ** 2
    most = math.sqrt(us * ua)
    h = us + ua + 2.0 * min(max(cross / drawn * ds * da, -most), most)
    noise = 0.0
    if h > 0.0:
        root = ds * ds * math.sqrt(max(S[p.s, 3], 0.0) / n) + da * da * math.sqrt(max(S[p.a, 3], 0.0) / n)
        noise = root * root / (drawn * h * h)
    rho = loud / (drawn * gap) / (drawn * gap)
    table.noise[0] += drawn * (1.0 / n) * (min(rho, shares.loudest) - table.noise[0])
    heard = shares.trust * (1.0 + shares.few / drawn) * max(rho, table.noise[0])
    part = min(1.0 / (1.0 + heard * heard), 1.0 / (1.0 + math.sqrt(noise)))
    part = max(part, shares.least / (1.0 + 2.0 * noise))
    move(x, work.support, p, min(1.0, part * length_of(model, faces, gap, h, p)))


@inlined
def draw_saga(model, table, work, x, batch, bent):
    """Draw some rows of a batch at x, those before row ``bent`` of it with second derivatives if ``bent`` is 0."""
    lay_out(model.rows, model.uneven, batch, work.order)
    total, piece, b, n = 0.0, work.room.shape[1], table.drawn[0], model.y.size
    for first in range(0, batch.b, piece):
        m = min(piece, batch.b - first)
        look(model, work, batch, first, m, x)
        announce_numbers(table.c, work, batch, first, m)
        announce_numbers(table.m, work, batch, first, m)
        put_rows(table, work, first, m, bent)
        for r in range(U(m)):
            i, w = U(work.order[U(first) + r]), work.room[ERRORS, r]
            total += w
            add_powers(model.rows, i, w / b, w / n, work.room[TURNS, r], work.room[LIFTS, r], table.S)
    return total


@inlined
def put_rows(table, work, first, m, bent):
    """Put new numbers of some rows into the table; ``room`` gets the changes of phi', of the majorant and of its square."""
    room = work.room
    for r in range(U(m)):
        i, q = U(work.order[U(first) + r]), U(bent + first) + r
        old = table.m[i]
        new = room[MAJORANTS, r] if bent == 0 else old
        room[ERRORS, r] = room[SLOPES, r] - table.c[i]
        room[TURNS, r], room[LIFTS, r] = new - old, new * new - old * old
        table.c[i], table.m[i] = room[SLOPES, r], new
        table.last[q], table.weights[q], table.changes[q] = i, new, room[ERRORS, r]


@inlined
def add_powers(rows, i, c, mean, first, second, S):
    """S[:, 0] += c a_i, S[:, 1] += mean a_i, S[:, 2] += first a_i^2 and S[:, 3] += second a_i^4, entry by entry."""
    if len(rows) == SPARSE:
        start, stop = U(rows.indptr[i]), U(rows.indptr[i + U(1)])
        c, mean, v = times_common(rows.data, c), times_common(rows.data, mean), times_common(rows.data, 1.0)
        v *= v
        add_fours(rows.indices, rows.data, start, stop, c, mean, first * v, second * v * v, S)
    else:
        for j in range(U(S.shape[0])):
            v = rows.data[i, j]
            S[j, 0] += c * v
            S[j, 1] += mean * v
            v *= v
            S[j, 2] += first * v
            S[j, 3] += second * v * v
