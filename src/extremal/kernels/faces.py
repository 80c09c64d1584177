"""Many iterations of `TrackedFW` and `SagaFaceFW` in one call, for linear models over sets with one-entry vertices.

A step goes from the worst vertex of the face that holds x to the best vertex of the set; both have one entry. The estimators are
those of `extremal.gradients.tracked` and `extremal.gradients.curved`, where the formulas are, and the step is `SelfConcordant`.
The readable loop explains all of it, and the tests compare these loops with it.
"""

from __future__ import annotations

import math

from numpy import uint64 as U

from extremal.kernels.arguments import ANEW, ENDED, FULL_ROOM, HUBER, LOGISTIC, NONLINEAR, SPARSE
from extremal.kernels.face_steps import gap_of, length_of, move, step_in_face
from extremal.kernels.instructions import prefetch
from extremal.kernels.jit import bare, inlined
from extremal.kernels.rows import NEAR, look_ahead, row_with, rows_product


@inlined
def derivs_of_row(loss, parameter, z, y):
    """phi', phi'' and its majorant."""
    if loss == LOGISTIC:
        e = math.exp(-abs(z))
        part = 1.0 / (1.0 + e)  # one division
        q = abs(y) * e * part * part
        return -y * (e if y * z > 0.0 else 1.0) * part, q, q
    if loss == NONLINEAR:
        e = math.exp(-abs(z))
        low, high = e / (1.0 + e), 1.0 / (1.0 + e)
        q, rest = (low, high) if z > 0.0 else (high, low)
        r = y - q
        p, other = (rest, q) if y > 0.5 else (q, rest)
        return 2.0 * r * q * rest, 2.0 * q * rest * (q * rest - r * (rest - q)), 2.0 * p * p * other * (1.0 + other)
    r = z - y
    if loss == HUBER:
        return min(max(r, -parameter), parameter), 1.0 if abs(r) <= parameter else 0.0, 1.0
    return r, 1.0, 1.0


@inlined
def margin_of(rows, i, x):
    """<a_i, x>."""
    if len(rows) == SPARSE:
        return rows_product(rows.indptr, rows.indices, rows.data, x, i)
    return row_with(rows.data, i, x)


@inlined
def announce_drawn(rows, flat, r):
    """Prefetch sparse rows that are drawn some places after r."""
    if len(rows) == SPARSE:
        look_ahead(rows.indptr, rows.indices, rows.data, flat, r)


@inlined
def entry_of(rows, i, j):
    """a_ij."""
    if len(rows) != SPARSE:
        return rows.data[i, U(j)]
    for e in range(U(rows.indptr[i]), U(rows.indptr[i + U(1)])):
        if rows.indices[e] == j:
            return rows.data[e]
    return 0.0


@bare
def keep_column(model, table, j):
    """One more column of the sums of q_i a_i a_i' and m_i a_i a_i'."""
    k, rows, d = int(table.counts[0]), model.rows, table.G.size
    table.W[k], table.counts[0] = j, k + 1
    k *= d
    table.place[j] = k
    for l in range(k, k + d):
        table.H[l] = 0.0
        if table.bounded:
            table.M[l] = 0.0
    for i in range(model.y.size):
        v = entry_of(rows, U(i), j)
        if v != 0.0:
            add_to(rows, U(i), table.q[i] * v, table.H, k)
            if table.bounded:
                add_to(rows, U(i), table.m[i] * v, table.M, k)


@inlined
def add_to(rows, i, c, out, k):
    """out[k], out[k + 1], ... += c a_i."""
    k = U(k)
    if len(rows) == SPARSE:
        for e in range(U(rows.indptr[i]), U(rows.indptr[i + U(1)])):
            out[k + U(rows.indices[e])] += c * rows.data[e]
    else:
        for l in range(U(rows.data.shape[1])):
            out[k + l] += c * rows.data[i, l]


@inlined
def turn(rows, i, dq, place, out):
    """out += dq a_ij a_i for the columns j that are kept, each at its place."""
    if len(rows) == SPARSE:
        for e in range(U(rows.indptr[i]), U(rows.indptr[i + U(1)])):
            k = place[U(rows.indices[e])]
            if k >= 0:
                add_to(rows, i, dq * rows.data[e], out, k)
    else:
        for l in range(U(place.size)):
            if place[l] >= 0:
                add_to(rows, i, dq * rows.data[i, l], out, place[l])


@bare
def tracked(model, faces, table, x, flat, b, top, refresh):
    """Make one iteration per batch of ``flat``; return the number made, and why the loop ended."""
    G, H, M, n, d = table.G, table.H, table.M, model.y.size, table.G.size
    for t in range(flat.size // b):
        seen = table.counts[1]
        p = step_in_face(faces, G, x)
        gap, ds, da = gap_of(G, p) / seen, p.t * p.up, -p.t * p.down
        if gap > 0.0:
            if (table.counts[0] + 2) * d > H.size:
                return t, FULL_ROOM
            if ds != 0.0 and table.place[p.s] < 0:
                keep_column(model, table, p.s)
            if da != 0.0 and table.place[p.a] < 0:
                keep_column(model, table, p.a)
            ks, ka = max(table.place[p.s], 0), max(table.place[p.a], 0)
            h = (ds * ds * M[ks + p.s] + 2.0 * ds * da * M[ks + p.a] + da * da * M[ka + p.a]) / seen
            eta = min(1.0, length_of(model, faces, gap, h, p))
            xs, xa = x[p.s], x[p.a]
            move(x, p, eta)
            ds, da = x[p.s] - xs, 0.0 if p.a == p.s else x[p.a] - xa
            for l in range(G.size):
                G[l] += ds * H[ks + l] + da * H[ka + l]
        total = 0.0
        for r in range(t * b, t * b + b):
            announce_drawn(model.rows, flat, r)
            i = U(flat[r])
            z = margin_of(model.rows, i, x)
            c, q, m = derivs_of_row(model.loss, model.parameter, z, model.y[i])
            w = c
            if table.fresh[i]:
                table.fresh[i] = False
                table.counts[1] += 1
            else:
                w -= table.c[i] + table.q[i] * (z - table.z[i])
            add_to(model.rows, i, w, G, 0)
            turn(model.rows, i, q - table.q[i], table.place, H)
            if table.bounded:
                turn(model.rows, i, m - table.m[i], table.place, M)
                table.m[i] = m
            table.c[i], table.q[i], table.z[i] = c, q, z
            total += w
        if not math.isfinite(total):
            return t, ENDED
        if table.counts[1] == n:
            peak = 0.0
            for l in range(G.size):
                peak = max(peak, abs(G[l]))
            if peak < refresh * top * n:
                return t + 1, ANEW
    return flat.size // b, 0


@bare
def saga(model, faces, table, x, flat, b, bent, shares):
    """The same for the SAGA estimator with curvature by columns, of the first ``bent`` rows of a batch."""
    g, S, last, weights, changes, n = table.g, table.S, table.last, table.weights, table.changes, model.y.size
    share, one = 1.0 / b, 1.0 / n
    for t in range(flat.size // b):
        p = step_in_face(faces, g, x)
        gap = gap_of(g, p)
        if gap > 0.0:
            ds, da, drawn = p.t * p.up, -p.t * p.down, table.drawn[0]
            if p.s == p.a:
                ds, da = ds + da, 0.0
            us, ua = ds * ds * max(S[p.s, 2], 0.0) / n, da * da * max(S[p.a, 2], 0.0) / n
            cross, loud = 0.0, 0.0
            for r in range(drawn):
                announce_drawn(model.rows, last, r)
                at_s, at_a = two_entries(model.rows, U(last[r]), p.s, p.a)
                cross += weights[r] * at_s * at_a
                loud += (changes[r] * (ds * at_s + da * at_a)) ** 2
            most = math.sqrt(us * ua)
            h = us + ua + 2.0 * min(max(cross / drawn * ds * da, -most), most)
            noise = 0.0
            if h > 0.0:
                root = ds * ds * math.sqrt(max(S[p.s, 3], 0.0) / n) + da * da * math.sqrt(max(S[p.a, 3], 0.0) / n)
                noise = root * root / (drawn * h * h)
            rho = loud / (drawn * gap) / (drawn * gap)
            table.noise[0] += drawn * one * (min(rho, shares.loudest) - table.noise[0])
            heard = shares.trust * (1.0 + shares.few / drawn) * max(rho, table.noise[0])
            part = min(1.0 / (1.0 + heard * heard), 1.0 / (1.0 + math.sqrt(noise)))
            part = max(part, shares.least / (1.0 + 2.0 * noise))
            move(x, p, min(1.0, part * length_of(model, faces, gap, h, p)))
        for l in range(g.size):
            S[l, 0] = S[l, 1]
        total = 0.0
        for r in range(b):
            announce_drawn(model.rows, flat, t * b + r)
            prefetch(table.c, U(flat[min(t * b + r + NEAR, flat.size - 1)]))
            prefetch(table.m, U(flat[min(t * b + r + NEAR, flat.size - 1)]))
            i = U(flat[t * b + r])
            c, _, m = derivs_of_row(model.loss, model.parameter, margin_of(model.rows, i, x), model.y[i])
            w, old = c - table.c[i], table.m[i]
            if r < bent:
                add_four(model.rows, i, w * share, w * one, m - old, m * m - old * old, S)
                table.m[i] = m
            else:
                add_to_both(model.rows, i, w * share, w * one, S)
            table.c[i] = c
            last[r], weights[r], changes[r] = flat[t * b + r], table.m[i], w
            total += w
        table.drawn[0] = b
        for l in range(g.size):
            g[l] = S[l, 0]
        if not math.isfinite(total):
            return t, ENDED
    return flat.size // b, 0


@inlined
def add_to_both(rows, i, c, mean, S):
    """S[:, 0] += c a_i and S[:, 1] += mean a_i."""
    if len(rows) == SPARSE:
        for e in range(U(rows.indptr[i]), U(rows.indptr[i + U(1)])):
            j, v = U(rows.indices[e]), rows.data[e]
            S[j, 0] += c * v
            S[j, 1] += mean * v
    else:
        for j in range(U(S.shape[0])):
            S[j, 0] += c * rows.data[i, j]
            S[j, 1] += mean * rows.data[i, j]


@inlined
def add_four(rows, i, c, mean, first, second, S):
    """S[:, 0] += c a_i, S[:, 1] += mean a_i, S[:, 2] += first a_i^2 and S[:, 3] += second a_i^4, entry by entry."""
    if len(rows) == SPARSE:
        for e in range(U(rows.indptr[i]), U(rows.indptr[i + U(1)])):
            j, v = U(rows.indices[e]), rows.data[e]
            S[j, 0] += c * v
            S[j, 1] += mean * v
            v *= v
            S[j, 2] += first * v
            S[j, 3] += second * v * v
    else:
        for j in range(U(S.shape[0])):
            v = rows.data[i, j]
            S[j, 0] += c * v
            S[j, 1] += mean * v
            v *= v
            S[j, 2] += first * v
            S[j, 3] += second * v * v


@inlined
def two_entries(rows, i, s, a):
    """a_is and a_ia."""
    if len(rows) != SPARSE:
        return float(rows.data[i, U(s)]), float(rows.data[i, U(a)])
    at_s, at_a = 0.0, 0.0
    for e in range(U(rows.indptr[i]), U(rows.indptr[i + U(1)])):
        j = rows.indices[e]
        at_s = rows.data[e] if j == s else at_s
        at_a = rows.data[e] if j == a else at_a
    return at_s, at_a
