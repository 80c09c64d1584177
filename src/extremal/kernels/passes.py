"""What a batch of rows does to the gradient estimate, one estimator each: see `extremal.kernels.burst` for the formulas.

The batch is flat[q : q + b]; the draws behind it are there for looking ahead. G has the columns V and M, and g = M + sigma V.
Each answers a sum that is not finite if a derivative is not.
"""

from __future__ import annotations

from extremal.kernels.jit import inlined
from extremal.kernels.losses import deriv
from extremal.kernels.prefetch import prefetch
from extremal.kernels.row import U, add, add_two, announce_row, dot_and_entry, row_dot, row_entry, two_dots

FAR, NEAR, NEXT = 16, 8, 2  # so many rows ahead a row is announced: where it starts, itself, what it touches
LONG = 8192  # vectors of more entries do not stay in the fastest caches


@inlined
def recurse(indptr, indices, data, y, loss, delta, flat, q, b, v, xi, e, single, j, length, s, G, sigma, alpha):
    """sigma V += (1/b) sum (c_i - alpha c_i') a_i."""
    total, scale = 0.0, 1.0 / (b * sigma)
    for r in range(q, q + b):
        i = U(flat[r])
        announce_batch(indptr, indices, data, y, flat, r, v, G)
        z_prev, z = two_margins(indptr, indices, data, i, v, xi, e, single, j, length, s)
        change = (deriv(loss, delta, z, y[i]) - alpha * deriv(loss, delta, z_prev, y[i])) * scale
        add(indptr, indices, data, i, change, G)
        total += change
    return total


@inlined
def average(indptr, indices, data, y, loss, delta, flat, q, b, v, xi, G, sigma, beta):
    """sigma V += (beta/b) sum c_i a_i."""
    total, scale = 0.0, beta / (b * sigma)
    for r in range(q, q + b):
        i = U(flat[r])
        announce_batch(indptr, indices, data, y, flat, r, v, G)
        change = deriv(loss, delta, xi * row_dot(indptr, indices, data, i, v), y[i]) * scale
        add(indptr, indices, data, i, change, G)
        total += change
    return total


@inlined
def refresh(indptr, indices, data, y, loss, delta, flat, q, b, v, xi, G, table, beta, old):
    """V += (1/n) sum (y_i^new - y_i) a_i,  y_i^new = (1 - beta) y_i + beta c_i; once for each i, however often it is named."""
    remember(table, flat, q, old)
    total, scale = 0.0, 1.0 / y.size
    for r in range(q, q + b):
        i = U(flat[r])
        announce_batch(indptr, indices, data, y, flat, r, v, G)
        c = deriv(loss, delta, xi * row_dot(indptr, indices, data, i, v), y[i])
        new = (1.0 - beta) * old[r - q] + beta * c
        change = (new - table[i]) * scale
        table[i] = new
        add(indptr, indices, data, i, change, G)
        total += change
    return total


@inlined
def follow(indptr, indices, data, y, loss, delta, flat, q, b, v, single, j, length, s, G, table, margins, beta, old):
    """sigma_i += beta (<a_i, s> - sigma_i), then V += (1/n) sum (phi'(sigma_i) - y_i) a_i; once for each i."""
    remember(margins, flat, q, old)
    total, scale = 0.0, 1.0 / y.size
    for r in range(q, q + b):
        i = U(flat[r])
        announce_batch(indptr, indices, data, y, flat, r, v, G)
        step = length * row_entry(indptr, indices, data, i, j) if single else row_dot(indptr, indices, data, i, s)
        margins[i] = old[r - q] + beta * (step - old[r - q])
        c = deriv(loss, delta, margins[i], y[i])
        change = (c - table[i]) * scale
        table[i] = c
        add(indptr, indices, data, i, change, G)
        total += change
    return total


@inlined
def correct(indptr, indices, data, y, loss, delta, flat, q, b, v, xi, G, table, old, put):
    """g += (1/b) sum (c_i - y_i) a_i, and if the batch is to be put into the table, M += (1/n) sum (c_i - y_i) a_i."""
    remember(table, flat, q, old)
    total, scale, share = 0.0, 1.0 / b, 1.0 / y.size
    for r in range(q, q + b):
        i = U(flat[r])
        announce_batch(indptr, indices, data, y, flat, r, v, G)
        c = deriv(loss, delta, xi * row_dot(indptr, indices, data, i, v), y[i])
        change, mean = (c - old[r - q]) * scale, 0.0
        if put:
            mean = (c - table[i]) * share
            table[i] = c
        add_two(indptr, indices, data, i, change - mean, mean, G)
        total += change
    return total


@inlined
def renew(indptr, indices, data, y, loss, delta, flat, q, b, v, xi, G, table):
    """M += (1/n) sum (c_i - y_i) a_i, and g stays."""
    total, share = 0.0, 1.0 / y.size
    for r in range(q, q + b):
        i = U(flat[r])
        announce_batch(indptr, indices, data, y, flat, r, v, G)
        c = deriv(loss, delta, xi * row_dot(indptr, indices, data, i, v), y[i])
        mean = (c - table[i]) * share
        table[i] = c
        add_two(indptr, indices, data, i, -mean, mean, G)
        total += mean
    return total


@inlined
def both(indptr, indices, data, y, loss, delta, flat, q, b, v, xi, e, single, j, length, s, G, sigma, table, beta, old):
    """g += (1/b) sum (c_i - c_i' + beta (c_i' - y_i)) a_i, then M += (1/n) sum (c_i - y_i) a_i."""
    remember(table, flat, q, old)
    total, scale, share, rest = 0.0, 1.0 / b, 1.0 / y.size, 1.0 / sigma
    for r in range(q, q + b):
        i = U(flat[r])
        announce_batch(indptr, indices, data, y, flat, r, v, G)
        z_prev, z = two_margins(indptr, indices, data, i, v, xi, e, single, j, length, s)
        c_prev, c = deriv(loss, delta, z_prev, y[i]), deriv(loss, delta, z, y[i])
        mean = (c - table[i]) * share
        table[i] = c
        change = (c - c_prev + beta * (c_prev - old[r - q])) * scale
        add_two(indptr, indices, data, i, (change - mean) * rest, mean, G)
        total += change
    return total


@inlined
def snapshot(indptr, indices, data, y, loss, delta, flat, q, b, v, xi, w, G):
    """V += (1/b) sum (c_i - phi'(<a_i, w>)) a_i."""
    total, scale = 0.0, 1.0 / b
    for r in range(q, q + b):
        i = U(flat[r])
        announce_batch(indptr, indices, data, y, flat, r, v, G)
        z, there = two_dots(indptr, indices, data, i, v, w)
        change = (deriv(loss, delta, xi * z, y[i]) - deriv(loss, delta, there, y[i])) * scale
        add(indptr, indices, data, i, change, G)
        total += change
    return total


@inlined
def two_margins(indptr, indices, data, i, v, xi, e, single, j, length, s):
    """<a_i, x> before and after the step: the second is (1 - eta) <a_i, x> + eta <a_i, s>."""
    if single:
        z, a = dot_and_entry(indptr, indices, data, i, v, j)
        return xi * z, (1.0 - e) * xi * z + e * length * a
    z, step = two_dots(indptr, indices, data, i, v, s)
    return z, (1.0 - e) * z + e * step


@inlined
def remember(table, flat, q, old):
    """The entries of a batch as they are before the batch changes them."""
    for r in range(old.size):
        old[r] = table[U(flat[q + r])]


@inlined
def announce_batch(indptr, indices, data, y, flat, r, v, G):
    """Announce what later draws will need: where their rows start, then the rows, then what these touch of long vectors."""
    if data.ndim == 1 and r + FAR < flat.size:
        i = U(flat[r + FAR])
        prefetch(indptr, i)
        prefetch(y, i)
        announce_row(indptr, indices, data, U(flat[r + NEAR]))
        if G.shape[0] > LONG:
            i = U(flat[r + NEXT])
            for e in range(U(indptr[i]), U(indptr[i + U(1)])):
                prefetch(v, U(indices[e]))
                prefetch(G, U(2) * U(indices[e]))
