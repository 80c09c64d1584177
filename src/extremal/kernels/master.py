"""The restricted master problem of a linear model over the vertices at some coordinates: Newton steps in one compiled loop.

extremal.moves.newton and extremal.quadratic explain the methods. These are their compiled forms for few coordinates, where a
step takes less time than a call from Python.
"""

from __future__ import annotations

import numpy as np

from extremal.kernels.active_set import STOPPED_SINGULAR, descend, least_ratio
from extremal.kernels.bounded import QuadraticProblem
from extremal.kernels.factors import eliminate, new_factor
from extremal.kernels.full import gram
from extremal.kernels.jit import vectors
from extremal.kernels.rows import dot_range, tdot_range
from extremal.kernels.terms import terms

SUFFICIENT, UNSEEN, INNER, EARLY, TAIL, OUTWARD = 1e-4, 1e-10, 0.01, 10, 1.5, 0.5  # as in extremal.moves.newton
ROUNDS = 50  # as in extremal.quadratic.solver


@vectors
def master(indptr, indices, data, y, loss, parameter, convex, place, scale, w, x, z, tol, limit):
    """Make Newton steps from the weights w, the point x and the margins z, changed in place, until the gap is ``tol``.

    Return the number of steps, of gradients and Hessians computed, and of values.
    """
    n, k = y.size, x.size
    start, valued = n - n, n >= 0  # constants would compile further versions of the kernels below
    c, h, dz, d, step = np.empty(n), np.empty(n), np.empty(n), np.empty(k), np.empty(w.size)
    nothing, most_of_all, no_root, none = np.zeros(w.size), np.empty(w.size), np.empty((0, 0)), np.empty(0)
    for a in range(w.size):
        most_of_all[a] = np.inf
    steps, grads, values = 0, 0, 0
    while True:
        value = terms(loss, parameter, z, y, valued, c, h) / n
        g = np.zeros(k)
        tdot_range(indptr, indices, data, c, start, g)
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
        H = master_hessian(indptr, indices, data, h, k, convex)
        grads += 1
        if convex:
            tail = 0.0
            for i in range(n):
                tail += c[i] * c[i] / h[i] if h[i] > 0.0 else np.inf if c[i] != 0.0 else 0.0
            if 0.0 < tail / n <= TAIL * value and here < -OUTWARD * value:
                for j in range(k):
                    for t in range(k):
                        H[j, t] -= 0.9 * g[j] * g[t] * n / tail
        model = QuadraticProblem(H, no_root, g, x, place, scale, nothing, most_of_all, True)
        new, state = descend(model, new_factor(w.size, start), w, INNER * gap, ROUNDS if gap < value else EARLY)
        if state == STOPPED_SINGULAR:
            break  # the caller's own steps have the kernels for this
        for j in range(k):
            d[j] = -x[j]
        for a in range(w.size):
            d[place[a]] += new[a] * scale[a]
        slope, bend = 0.0, 0.0
        for j in range(k):
            slope += g[j] * d[j]
            for t in range(k):
                bend += 0.5 * d[j] * H[j, t] * d[t]
        if not slope < 0.0:
            break
        if -slope <= UNSEEN * abs(value):
            break  # values decide no more: the caller's slopes do
        dot_range(indptr, indices, data, d, start, dz)
        for a in range(w.size):
            step[a] = new[a] - w[a]
        most, t, then, further = least_ratio(w, step, nothing, most_of_all), 0.0, value, 1.0
        while further > 1e-12 and t < most:
            for i in range(n):
                h[i] = z[i] + further * dz[i]
            now = terms(loss, parameter, h, y, valued, none, none) / n
            values += 1
            if t > 0.0 and not now < then:
                break
            if t > 0.0 or now <= value + SUFFICIENT * further * slope + 1e-15 * abs(value):
                t, then = further, now
                if t < 1.0 or not value - now > -1.1 * (slope + bend):
                    break
                further = min(2.0 * t, most)
            else:
                further /= 2.0
        if t == 0.0:
            break
        for i in range(n):
            z[i] += t * dz[i]
        total = 0.0
        for a in range(w.size):
            w[a] = max(w[a] + t * (new[a] - w[a]), 0.0)
            total += w[a]
        for a in range(w.size):
            w[a] /= total
        for j in range(k):
            x[j] = 0.0
        for a in range(w.size):
            x[place[a]] += scale[a] * w[a]
        steps += 1
    return steps, grads, values


@vectors
def master_hessian(indptr, indices, data, h, k, convex):
    """(1/n) A' diag h A, or with |h| if this is not positive definite."""
    n, H, start = h.size, np.zeros((k, k)), k - k
    gram(indptr, indices, data, h, H)
    if not convex and not eliminate(H.copy(), start, k) > 0.0:
        for i in range(n):
            h[i] = abs(h[i])
        H = np.zeros((k, k))
        gram(indptr, indices, data, h, H)
    for j in range(k):
        for t in range(j + 1):
            H[j, t] /= n
            H[t, j] = H[j, t]
    return H
