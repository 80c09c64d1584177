"""The restricted master problem of a linear model over the vertices at some coordinates: Newton steps in one compiled loop.

What it does is said in extremal.moves.newton and extremal.weights, whose methods these are the compiled forms of, for few
coordinates: there a step takes less time than Python takes to ask for it.
"""

from __future__ import annotations

import math

import numpy as np

from extremal.kernels.jit import sums, vectors
from extremal.kernels.newton import gram
from extremal.kernels.rows import dot_range, tdot_range
from extremal.kernels.terms import line, terms

RIDGE, FLAT, TRIES, NOTHING, ROUNDS = 1e-13, 1e-10, 30, 1e-25, 50  # as in extremal.weights
SUFFICIENT, UNSEEN, INNER, EARLY, TAIL, OUTWARD = 1e-4, 1e-10, 0.01, 10, 1.5, 0.5  # as in extremal.moves.newton and newton_model


@sums
def product(M, i, j, m):
    """The product of the first m entries of two rows of M."""
    total = 0.0
    for t in range(m):
        total += M[i, t] * M[j, t]
    return total


@vectors
def cholesky(M, m):
    """The lower Cholesky factor of the leading m x m part of M, in its place; False if there is none."""
    for j in range(m):
        s = M[j, j] - product(M, j, j, j)
        if not s > 0.0:
            return False
        root = math.sqrt(s)
        M[j, j] = root
        for i in range(j + 1, m):
            M[i, j] = (M[i, j] - product(M, i, j, j)) / root
    return True


@vectors
def solve(M, m, b):
    """b <- (L L')^-1 b for a factor L in M."""
    for i in range(m):
        s = b[i]
        for t in range(i):
            s -= M[i, t] * b[t]
        b[i] = s / M[i, i]
    for i in range(m - 1, -1, -1):
        s = b[i]
        for t in range(i + 1, m):
            s -= M[t, i] * b[t]
        b[i] = s / M[i, i]


@vectors
def look(H, g, x, place, scale, w, d, slopes):
    """d = u - x, the slopes in w, and the value of the quadratic function."""
    k = x.size
    for j in range(k):
        d[j] = -x[j]
    for a in range(w.size):
        d[place[a]] += w[a] * scale[a]
    value = 0.0
    bent = np.empty(k)
    for j in range(k):
        s = 0.0
        for t in range(k):
            s += H[j, t] * d[t]
        value += d[j] * (0.5 * s + g[j])
        bent[j] = s + g[j]
    for a in range(w.size):
        slopes[a] = scale[a] * bent[place[a]]
    return value


@vectors
def direction(H, place, scale, slopes, w, idx, m, M, step):
    """The change of the weights idx[:m], of sum 0, that minimises the quadratic function if their signs are left aside."""
    base = 0
    for t in range(1, m):
        if w[idx[t]] > w[idx[base]]:
            base = t
    b = idx[base]
    others = np.empty(m, np.int64)
    size = 0
    for t in range(m):
        if t != base:
            others[size] = t
            size += 1
    mean = 0.0
    corner = H[place[b], place[b]] * scale[b] * scale[b]
    for r in range(size):
        p = idx[others[r]]
        mean += H[place[p], place[p]] * scale[p] * scale[p] - 2.0 * H[place[p], place[b]] * scale[p] * scale[b] + corner
    right = np.empty(size)
    most = 0.0
    for r in range(size):
        right[r] = slopes[b] - slopes[idx[others[r]]]
        most = max(most, abs(right[r]))
    ridge = max(RIDGE * mean / max(size, 1), FLAT * most, 1e-300)
    found = False
    for _ in range(TRIES):
        for r in range(size):
            p = idx[others[r]]
            across = H[place[p], place[b]] * scale[p] * scale[b]
            for q in range(r + 1):
                o = idx[others[q]]
                M[r, q] = (
                    H[place[p], place[o]] * scale[p] * scale[o] - across - H[place[o], place[b]] * scale[o] * scale[b] + corner
                )
            M[r, r] += ridge
        if cholesky(M, size):
            found = True
            break
        ridge *= 100.0
    if not found:
        step[:m] = 0.0
        return
    solve(M, size, right)
    total = 0.0
    for r in range(size):
        step[others[r]] = right[r]
        total += right[r]
    step[base] = -total


@vectors
def settle(w, idx, m, values, out):
    """w with other values in some places: none negative, of sum 1."""
    out[:] = w
    for t in range(m):
        out[idx[t]] = max(values[t], 0.0)
    total = out.sum()
    for a in range(out.size):
        out[a] /= total


@vectors
def weights(H, g, x, place, scale, start, tol, rounds):
    """The best weights of a quadratic function, by the active-set method of extremal.weights."""
    size, k = start.size, x.size
    w, new = np.empty(size), np.empty(size)
    for a in range(size):
        w[a] = start[a] if start[a] > NOTHING else 0.0
    slopes, more, d = np.empty(size), np.empty(size), np.empty(k)
    M, idx, step, values = np.empty((size, size)), np.empty(size, np.int64), np.empty(size), np.empty(size)
    free = np.empty(size, np.bool_)
    value = look(H, g, x, place, scale, w, d, slopes)
    for _ in range(rounds):
        top, low, level, used = -np.inf, np.inf, 0.0, 0
        for a in range(size):
            low = min(low, slopes[a])
            if w[a] > 0.0:
                used += 1
                top = max(top, slopes[a])
                level += w[a] * slopes[a]
        if top - low <= tol:
            break
        best = 0.0
        for a in range(size):
            if w[a] <= 0.0:
                best = max(best, level - slopes[a])
        for a in range(size):
            free[a] = w[a] > 0.0 or (best > 0.0 and level - slopes[a] > 0.1 * best)
        while True:
            m = 0
            for a in range(size):
                if free[a]:
                    idx[m] = a
                    m += 1
            direction(H, place, scale, slopes, w, idx, m, M, step)
            wrong = False
            for t in range(m):
                if step[t] < 0.0 and w[idx[t]] <= 0.0:
                    free[idx[t]] = False
                    wrong = True
            if not wrong:
                break
        stop, fall = np.inf, 0.0
        for t in range(m):
            fall += slopes[idx[t]] * step[t]
            values[t] = w[idx[t]] + step[t]
            if step[t] < 0.0:
                stop = min(stop, w[idx[t]] / -step[t])
        settle(w, idx, m, values, new)
        then = look(H, g, x, place, scale, new, d, more)
        if stop < 1.0 and not then < value + (stop - 0.5 * stop * stop) * fall:
            for t in range(m):
                edge = step[t] < 0.0 and w[idx[t]] / -step[t] <= stop
                values[t] = 0.0 if edge else w[idx[t]] + stop * step[t]
            settle(w, idx, m, values, new)
            then = look(H, g, x, place, scale, new, d, more)
        left = 0
        for a in range(size):
            left += new[a] > 0.0
        if not (then < value or (left < used and then <= value + 1e-14 * abs(value))):
            break
        value = then
        w[:] = new
        slopes[:] = more
    return w


@vectors
def master(indptr, indices, data, y, loss, parameter, convex, place, scale, w, x, z, tol, limit):
    """Newton steps from the weights w, the point x and the margins z, which are changed in place, until the gap is ``tol``.

    Returns how many steps were made, how many gradients and Hessians were computed, and how many times the value.
    """
    n, k = y.size, x.size
    c, h, dz = np.empty(n), np.empty(n), np.empty(n)
    steps, grads, values = 0, 0, 0
    while True:
        value = terms(loss, parameter, z, y, True, c, h) / n
        g = np.zeros(k)
        tdot_range(indptr, indices, data, c, 0, g)
        for j in range(k):
            g[j] /= n
        grads += 1
        here, low = 0.0, np.inf
        for a in range(w.size):
            slope = scale[a] * g[place[a]]
            here += w[a] * slope
            low = min(low, slope)
        gap = here - low
        if steps >= limit or (steps > 0 and gap <= tol):
            break
        H = hessian(indptr, indices, data, h, k, convex)
        grads += 1
        if convex:
            tail = 0.0
            for i in range(n):
                tail += c[i] * c[i] / h[i] if h[i] > 0.0 else np.inf if c[i] != 0.0 else 0.0
            if 0.0 < tail / n <= TAIL * value and here < -OUTWARD * value:
                for j in range(k):
                    for t in range(k):
                        H[j, t] -= 0.9 * g[j] * g[t] * n / tail
        new = weights(H, g, x, place, scale, w, INNER * gap, ROUNDS if gap < value else EARLY)
        d = -x
        for a in range(w.size):
            d[place[a]] += new[a] * scale[a]
        slope, bend = 0.0, 0.0
        for j in range(k):
            slope += g[j] * d[j]
            for t in range(k):
                bend += 0.5 * d[j] * H[j, t] * d[t]
        if not slope < 0.0:
            break
        dot_range(indptr, indices, data, d, 0, dz)
        most = np.inf
        for a in range(w.size):
            if new[a] < w[a]:
                most = min(most, w[a] / (w[a] - new[a]))
        t = 1.0
        now = line(loss, parameter, z, dz, t, y) / n
        values += 1
        if -slope <= UNSEEN * abs(value):
            break  # values say no more: the caller's slopes do
        while not now <= value + SUFFICIENT * t * slope + 1e-15 * abs(value):
            t /= 2.0
            if t < 1e-12:
                t = 0.0
                break
            now = line(loss, parameter, z, dz, t, y) / n
            values += 1
        if t == 0.0:
            break
        if t == 1.0 and value - now > -1.1 * (slope + bend):
            while t < most:
                further = min(2.0 * t, most)
                then = line(loss, parameter, z, dz, further, y) / n
                values += 1
                if not then < now:
                    break
                t, now = further, then
        for i in range(n):
            z[i] += t * dz[i]
        total = 0.0
        for a in range(w.size):
            w[a] = max(w[a] + t * (new[a] - w[a]), 0.0)
            total += w[a]
        x[:] = 0.0
        for a in range(w.size):
            w[a] /= total
            x[place[a]] += w[a] * scale[a]
        steps += 1
    return steps, grads, values


@vectors
def hessian(indptr, indices, data, h, k, convex):
    """(1/n) A' diag h A, or with |h| if that is not positive definite."""
    n, H = h.size, np.zeros((k, k))
    gram(indptr, indices, data, h, 0, n, H)
    if not convex:
        L = H.copy()
        if not cholesky(L, k):
            for i in range(n):
                h[i] = abs(h[i])
            H[:] = 0.0
            gram(indptr, indices, data, h, 0, n, H)
    for j in range(k):
        for t in range(j + 1):
            H[j, t] /= n
            H[t, j] = H[j, t]
    return H
