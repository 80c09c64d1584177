"""The weights of a small quadratic problem over the vertices of a simplex, compiled."""

from __future__ import annotations

import math

import numpy as np

from extremal.kernels.jit import summing, vectors

RIDGE, FLAT, TRIES, NOTHING, ROUNDS = 1e-13, 1e-10, 30, 1e-25, 50  # as in extremal.quadratic.simplex


@summing
def weights_product(M, i, j, m):
    """The product of the first m entries of two rows of M."""
    total = 0.0
    for t in range(m):
        total += M[i, t] * M[j, t]
    return total


@vectors
def cholesky(M, m):
    """The lower Cholesky factor of the leading m x m part of M, in its place; False if there is none."""
    for j in range(m):
        s = M[j, j] - weights_product(M, j, j, j)
        if not s > 0.0:
            return False
        root = math.sqrt(s)
        M[j, j] = root
        for i in range(j + 1, m):
            M[i, j] = (M[i, j] - weights_product(M, i, j, j)) / root
    return True


@vectors
def solve_system(M, m, b):
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
def look_at_weights(H, g, x, place, scale, w, d, slopes):
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
def weights_direction(H, place, scale, slopes, w, idx, m, M, step):
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
    solve_system(M, size, right)
    total = 0.0
    for r in range(size):
        step[others[r]] = right[r]
        total += right[r]
    step[base] = -total


@vectors
def settle_weights(w, idx, m, values, out):
    """w with other values in some places: none negative, of sum 1."""
    out[:] = w
    for t in range(m):
        out[idx[t]] = max(values[t], 0.0)
    total = out.sum()
    for a in range(out.size):
        out[a] /= total


@vectors
def weights(H, g, x, place, scale, start, tol, rounds):
    """The best weights of a quadratic function, by the active-set method of extremal.quadratic.simplex."""
    size, k = start.size, x.size
    w, new = np.empty(size), np.empty(size)
    for a in range(size):
        w[a] = start[a] if start[a] > NOTHING else 0.0
    slopes, more, d = np.empty(size), np.empty(size), np.empty(k)
    M, idx, step, values = np.empty((size, size)), np.empty(size, np.int64), np.empty(size), np.empty(size)
    free = np.empty(size, np.bool_)
    value = look_at_weights(H, g, x, place, scale, w, d, slopes)
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
            weights_direction(H, place, scale, slopes, w, idx, m, M, step)
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
        settle_weights(w, idx, m, values, new)
        then = look_at_weights(H, g, x, place, scale, new, d, more)
        if stop < 1.0 and not then < value + (stop - 0.5 * stop * stop) * fall:
            for t in range(m):
                edge = step[t] < 0.0 and w[idx[t]] / -step[t] <= stop
                values[t] = 0.0 if edge else w[idx[t]] + stop * step[t]
            settle_weights(w, idx, m, values, new)
            then = look_at_weights(H, g, x, place, scale, new, d, more)
        left = 0
        for a in range(size):
            left += new[a] > 0.0
        if not (then < value or (left < used and then <= value + 1e-14 * abs(value))):
            break
        value = then
        w[:] = new
        slopes[:] = more
    return w
