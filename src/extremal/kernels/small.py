"""Many small least squares over the simplex and its relatives, by an active-set method: one problem after another.

    min over u >= 0, sum u = total of  1/2 |V u - b|^2,   where the columns of V are those of A, A and 0, or A and -A

A round computes one gradient from the residual; the rest uses the Gram matrix. The vertex of the smallest gradient enters. u
goes to the minimiser over all combinations of its vertices that sum to ``total``, or as far as it stays non-negative. Zero
weights leave. The Gram matrix loses digits, and the next round recovers them from the residual at the point reached. On
the simplex only differences of columns count, and the shortest column is subtracted from all of them first. A problem
allocates nothing, and problems are independent.

Wolfe (1976), Finding the nearest point in a polytope, Mathematical Programming 11; Lawson, Hanson (1974), Solving least
squares problems, chapter 23.
"""

from __future__ import annotations

import numpy as np

from extremal.kernels.jit import jit
from extremal.kernels.rows import inner_product

SIMPLEX, UNIT_SIMPLEX, L1_BALL = 0, 1, 2  # the vertices are the columns of A; these and 0; these and their negatives
EPS = 2.0**-52
PIVOT_NOISE = 1e-14  # a squared pivot below this share of its diagonal entry is rounding
RESIDUAL_ROUNDS = 8  # largest number of gradients from residuals for a problem, after the first


@jit
def solve_all(A, B, kind, total, tol, atol, x, value, gap, rounding, n_iter, converged):
    """Solve min |A_p x - b_p|^2 / 2m for each p; a single A serves all. n_iter is -1 if numbers are not finite."""
    m, d = A.shape[1], A.shape[2]
    q = d if kind == SIMPLEX else (d + 1 if kind == UNIT_SIMPLEX else 2 * d)
    matrix = np.empty((d, m)), np.zeros((q, q)), np.empty(q), np.empty(m)
    factor = np.empty((q, q)), np.empty(q), np.empty(q, np.int64), np.empty(q, np.bool_)
    b, r, u, g, step, kept = np.empty(m), np.empty(m), np.empty(q), np.empty(q), np.empty(q), np.empty(q)
    origin = matrix[3]
    for p in range(B.shape[0]):
        if p == 0 or A.shape[0] > 1:
            load_columns(A[p], kind, matrix)
        for i in range(m):
            b[i] = B[p, i] - total * origin[i]
        value[p], gap[p], rounding[p], n_iter[p], converged[p] = solve_small(
            matrix, factor, kind, total, b, tol, atol, r, u, g, step, kept
        )
        for j in range(d):
            x[p, j] = u[j] - u[d + j] if kind == L1_BALL else u[j]


# the matrix


@jit
def load_columns(A, kind, matrix):
    """Fill V' (the columns of A minus the origin, in float64), the Gram matrix, the vertices' lengths and the origin."""
    V, G, lengths, origin = matrix
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            V[j, i] = A[i, j]
    origin[:] = 0.0
    if kind == SIMPLEX:
        take_off_shortest(V, origin)
    small_gram(V, kind, G)
    for j in range(lengths.size):
        lengths[j] = np.sqrt(G[j, j])


@jit
def take_off_shortest(V, origin):
    """Subtract the shortest column: the differences keep all their digits, unlike their products."""
    shortest, least = 0, np.inf
    for j in range(V.shape[0]):
        square = inner_product(V[j], V[j])
        if square < least:
            shortest, least = j, square
    origin[:] = V[shortest]
    for j in range(V.shape[0]):
        for i in range(origin.size):
            V[j, i] -= origin[i]


@jit
def small_gram(V, kind, G):
    """The products of all vertices with each other; those of the vertex 0 stay unchanged."""
    d = V.shape[0]
    for i in range(d):
        for j in range(i + 1):
            G[i, j] = G[j, i] = inner_product(V[i], V[j])
    if kind == L1_BALL:
        for i in range(d):
            for j in range(d):
                G[i, d + j] = G[d + i, j] = -G[i, j]
                G[d + i, d + j] = G[i, j]


# a problem


@jit
def solve_small(matrix, factor, kind, total, b, tol, atol, r, u, g, step, kept):
    """Solve one problem; u is the answer. Return value, gap, rounding, iterations, and whether the gap is small enough."""
    V, G, lengths, origin = matrix
    m, shift, far, longest = b.size, np.trace(G) / u.size, np.sqrt(inner_product(b, b)), lengths.max()
    if not np.isfinite(shift + total * longest * (far + total * longest)):
        return np.nan, np.nan, np.nan, -1, False
    unit, away = EPS * total * longest, far + total * np.sqrt(inner_product(origin, origin))
    shift = shift if shift > 0.0 else 1.0
    k = begin(V, G, kind, total, shift, b, r, u, g, factor)
    f, gap, blur, steps = np.inf, np.inf, 0.0, 0
    f_before, gap_before, blur_before = f, gap, blur
    for _ in range(1 + RESIDUAL_ROUNDS):
        f_before, gap_before, blur_before = f, gap, blur
        kept[:] = u
        k, more = descend_small(G, lengths, shift, unit, far, factor, u, g, step, k)
        steps += more
        balance(u, total)
        f, gap = certify(V, b, u, kind, r, g)
        mean = inner_product(u, lengths)
        blur = 4.0 * unit * (away + mean)
        if gap <= max(tol * f + m * atol, blur) or not gap <= 0.5 * gap_before:
            break
        shift = mean**2 / total**2 if mean > 0.0 else 1.0  # a shift of the size that matters here
        k = extend(G, shift, factor, 0, k)
    if gap > gap_before:  # rounding made the last round worse
        u[:] = kept
        f, gap, blur = f_before, gap_before, blur_before
    return f / m, gap / m, blur / m, steps, gap <= max(tol * f + m * atol, blur)


@jit
def begin(V, G, kind, total, shift, b, r, u, g, factor):
    """The vertex of least value, and the gradient there."""
    _, _, used, inside = factor
    for i in range(r.size):
        r[i] = -b[i]
    slopes(V, r, kind, g)
    best = 0
    for j in range(u.size):
        u[j], inside[j] = 0.0, False
        if 0.5 * total * G[j, j] + g[j] < 0.5 * total * G[best, best] + g[best]:
            best = j
    u[best], inside[best], used[0] = total, True, best
    for j in range(u.size):
        g[j] += total * G[best, j]
    return extend(G, shift, factor, 0, 1)


@jit
def slopes(V, r, kind, g):
    """The products of all vertices with r."""
    d = V.shape[0]
    for j in range(d):
        g[j] = inner_product(V[j], r)
    if kind == UNIT_SIMPLEX:
        g[d] = 0.0
    elif kind == L1_BALL:
        for j in range(d):
            g[d + j] = -g[j]


@jit
def balance(u, total):
    """Make the sum of u the total, up to a few units in the last place: by a factor, then at the largest entry."""
    c = total / u.sum()
    for j in range(u.size):
        u[j] *= c
    u[np.argmax(u)] += total - u.sum()


@jit
def certify(V, b, u, kind, r, g):
    """r = V u - b and g = V' r; return |r|^2 / 2 and the gap sum_j u_j (g_j - min g), which is never negative."""
    d = V.shape[0]
    for i in range(r.size):
        r[i] = -b[i]
    for j in range(d):
        c = u[j] - u[d + j] if kind == L1_BALL else u[j]
        if c != 0.0:
            for i in range(r.size):
                r[i] += c * V[j, i]
    slopes(V, r, kind, g)
    low, gap = g.min(), 0.0
    for j in range(u.size):
        gap += u[j] * (g[j] - low)
    return 0.5 * inner_product(r, r), gap


# the active-set method


@jit
def descend_small(G, lengths, shift, unit, far, factor, u, g, step, k):
    """Iterate from u with its gradient g, both updated in place, until no vertex promises more than rounding.

    In exact arithmetic f falls in each iteration, so no set of vertices repeats; the number of iterations is bounded anyway.
    Return the number of vertices used, and of iterations.
    """
    _, _, used, inside = factor
    newest, limit = -1, 20 * u.size + 20
    for steps in range(1, limit + 1):
        leaving, t = small_direction(factor, u, g, step, k)
        if leaving >= 0 and t == 0.0 and used[leaving] == newest:  # it had entered by rounding only
            return drop(G, shift, factor, u, k, leaving), steps
        small_move(G, used, u, g, step, k, t)
        if leaving >= 0:
            k = drop(G, shift, factor, u, k, leaving)
            continue
        newest, promise, reach = np.argmin(g), 0.0, far
        for i in range(k):
            promise += u[used[i]] * (g[used[i]] - g[newest])
            reach += u[used[i]] * lengths[used[i]]
        if promise <= unit * reach or inside[newest]:
            return k, steps
        used[k], inside[newest] = newest, True
        k = extend(G, shift, factor, k, k + 1)
    return k, limit


@jit
def small_direction(factor, u, g, step, k):
    """The step to the minimiser over the vertices used; and how far it stays non-negative: the leaving one (-1: none), t <= 1.

    step = -M^-1 (g + c 1) for M = L L', with the c that makes its sum 0.
    """
    L, ones, used, _ = factor
    along, length = 0.0, 0.0
    for i in range(k):
        c = -g[used[i]]
        for j in range(i):
            c -= L[i, j] * step[j]
        step[i] = c * L[i, i]
        along += step[i] * ones[i]
        length += ones[i] * ones[i]
    for i in range(k):
        step[i] -= along / length * ones[i]
    leaving, t = -1, 1.0
    for i in range(k - 1, -1, -1):
        c = step[i] * L[i, i]
        step[i] = c
        for j in range(i):
            step[j] -= c * L[i, j]
        if u[used[i]] < -t * c:
            leaving, t = i, u[used[i]] / -c
    return leaving, t


@jit
def small_move(G, used, u, g, step, k, t):
    """u += t step, g += t G step."""
    for i in range(k):
        c, a = t * step[i], used[i]
        u[a] = max(0.0, u[a] + c)
        for j in range(g.size):
            g[j] += c * G[a, j]


@jit
def drop(G, shift, factor, u, k, leaving):
    """Remove a vertex; return how many remain."""
    _, _, used, inside = factor
    u[used[leaving]], inside[used[leaving]] = 0.0, False
    for i in range(leaving, k - 1):
        used[i] = used[i + 1]
    return extend(G, shift, factor, leaving, k - 1)


@jit
def extend(G, shift, factor, first, k):
    """Rows from ``first`` to k of L with L L' = M = G + shift 1 1' on the vertices used, and of L^-1 1.

    The shift has no effect if sums are fixed, and M is positive definite if no vertex is an affine combination of the others. If
    rounding breaks this, a pivot is raised: the step is then shorter, and still descends. The diagonal of L holds reciprocals,
    because multiplying is faster than dividing.
    """
    L, ones, used, _ = factor
    for i in range(first, k):
        a = used[i]
        pivot, one = G[a, a] + shift, 1.0
        least = PIVOT_NOISE * pivot
        for j in range(i):
            c = G[a, used[j]] + shift
            for s in range(j):
                c -= L[i, s] * L[j, s]
            c *= L[j, j]
            L[i, j] = c
            pivot -= c * c
            one -= c * ones[j]
        L[i, i] = 1.0 / np.sqrt(max(pivot, least))
        ones[i] = one * L[i, i]
    return k
