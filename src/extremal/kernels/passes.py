"""The effect of a batch of rows on the gradient estimate, one function per estimator; `extremal.kernels.burst` has the formulas.

`extremal.kernels.arguments` names the arguments. G has the columns V and M, and g = M + sigma V. Each function returns a sum
that is not finite if a derivative is not.
"""

from __future__ import annotations

from extremal.kernels.arguments import SPARSE
from extremal.kernels.jit import inlined
from extremal.kernels.rows import FAR, U, add, add_two, dot_and_entry, look_ahead, prefetch, row_dot, row_entry, two_dots
from extremal.kernels.terms import deriv

NEXT = 2  # how many rows ahead the entries that a row touches are prefetched
LONG = 8192  # longer vectors do not stay in the fastest caches


@inlined
def recurse(model, state, batch, xi, sigma, toward, alpha):
    """sigma V += (1/b) sum (c_i - alpha c_i') a_i."""
    total, scale = 0.0, 1.0 / (batch.b * sigma)
    for r in range(batch.q, batch.q + batch.b):
        i = drawn(model.rows, model.y, state, batch, r)
        z_prev, z = two_margins(model, state, i, xi, toward)
        change = (deriv_of(model, i, z) - alpha * deriv_of(model, i, z_prev)) * scale
        add(model.rows, i, change, state.G)
        total += change
    return total


@inlined
def average(model, state, batch, xi, sigma, beta):
    """sigma V += (beta/b) sum c_i a_i."""
    total, scale = 0.0, beta / (batch.b * sigma)
    for r in range(batch.q, batch.q + batch.b):
        i = drawn(model.rows, model.y, state, batch, r)
        change = deriv_of(model, i, xi * row_dot(model.rows, i, state.v)) * scale
        add(model.rows, i, change, state.G)
        total += change
    return total


@inlined
def refresh(model, state, batch, xi, beta):
    """V += (1/n) sum (y_i^new - y_i) a_i,  y_i^new = (1 - beta) y_i + beta c_i; once for each i, even if drawn repeatedly."""
    remember(state.table, batch, state.old)
    total, scale = 0.0, 1.0 / model.y.size
    for r in range(batch.q, batch.q + batch.b):
        i = drawn(model.rows, model.y, state, batch, r)
        c = deriv_of(model, i, xi * row_dot(model.rows, i, state.v))
        new = (1.0 - beta) * state.old[r - batch.q] + beta * c
        change = (new - state.table[i]) * scale
        state.table[i] = new
        add(model.rows, i, change, state.G)
        total += change
    return total


@inlined
def follow(model, state, batch, toward, beta):
    """sigma_i += beta (<a_i, s> - sigma_i), then V += (1/n) sum (phi'(sigma_i) - y_i) a_i; once for each i."""
    remember(state.margins, batch, state.old)
    total, scale = 0.0, 1.0 / model.y.size
    for r in range(batch.q, batch.q + batch.b):
        i = drawn(model.rows, model.y, state, batch, r)
        step = toward.length * row_entry(model.rows, i, toward.j) if toward.single else row_dot(model.rows, i, state.s)
        state.margins[i] = state.old[r - batch.q] + beta * (step - state.old[r - batch.q])
        c = deriv_of(model, i, state.margins[i])
        change = (c - state.table[i]) * scale
        state.table[i] = c
        add(model.rows, i, change, state.G)
        total += change
    return total


@inlined
def correct(model, state, batch, xi, put):
    """g += (1/b) sum (c_i - y_i) a_i; with ``put`` also M += (1/n) sum (c_i - y_i) a_i, and the batch enters the table."""
    remember(state.table, batch, state.old)
    total, scale, share = 0.0, 1.0 / batch.b, 1.0 / model.y.size
    for r in range(batch.q, batch.q + batch.b):
        i = drawn(model.rows, model.y, state, batch, r)
        c = deriv_of(model, i, xi * row_dot(model.rows, i, state.v))
        change, mean = (c - state.old[r - batch.q]) * scale, 0.0
        if put:
            mean = (c - state.table[i]) * share
            state.table[i] = c
        add_two(model.rows, i, change - mean, mean, state.G)
        total += change
    return total


@inlined
def renew(model, state, batch, xi):
    """M += (1/n) sum (c_i - y_i) a_i; g stays."""
    total, share = 0.0, 1.0 / model.y.size
    for r in range(batch.q, batch.q + batch.b):
        i = drawn(model.rows, model.y, state, batch, r)
        c = deriv_of(model, i, xi * row_dot(model.rows, i, state.v))
        mean = (c - state.table[i]) * share
        state.table[i] = c
        add_two(model.rows, i, -mean, mean, state.G)
        total += mean
    return total


@inlined
def both(model, state, batch, xi, sigma, toward, beta):
    """g += (1/b) sum (c_i - c_i' + beta (c_i' - y_i)) a_i, then M += (1/n) sum (c_i - y_i) a_i."""
    remember(state.table, batch, state.old)
    total, scale, share, rest = 0.0, 1.0 / batch.b, 1.0 / model.y.size, 1.0 / sigma
    for r in range(batch.q, batch.q + batch.b):
        i = drawn(model.rows, model.y, state, batch, r)
        z_prev, z = two_margins(model, state, i, xi, toward)
        c_prev, c = deriv_of(model, i, z_prev), deriv_of(model, i, z)
        mean = (c - state.table[i]) * share
        state.table[i] = c
        change = (c - c_prev + beta * (c_prev - state.old[r - batch.q])) * scale
        add_two(model.rows, i, (change - mean) * rest, mean, state.G)
        total += change
    return total


@inlined
def snapshot(model, state, batch, xi):
    """V += (1/b) sum (c_i - phi'(<a_i, w>)) a_i."""
    total, scale = 0.0, 1.0 / batch.b
    for r in range(batch.q, batch.q + batch.b):
        i = drawn(model.rows, model.y, state, batch, r)
        z, there = two_dots(model.rows, i, state.v, state.w)
        change = (deriv_of(model, i, xi * z) - deriv_of(model, i, there)) * scale
        add(model.rows, i, change, state.G)
        total += change
    return total


@inlined
def deriv_of(model, i, z):
    """phi'(z, y_i)."""
    return deriv(model.loss, model.parameter, z, model.y[i])


@inlined
def two_margins(model, state, i, xi, toward):
    """<a_i, x> before and after the step: the second is (1 - eta) <a_i, x> + eta <a_i, s>."""
    e = toward.eta
    if toward.single:
        z, a = dot_and_entry(model.rows, i, state.v, toward.j)
        return xi * z, (1.0 - e) * xi * z + e * toward.length * a
    z, step = two_dots(model.rows, i, state.v, state.s)
    return z, (1.0 - e) * z + e * step


@inlined
def remember(table, batch, old):
    """Copy the table entries of a batch before the batch changes them."""
    for r in range(old.size):
        old[r] = table[U(batch.flat[batch.q + r])]


@inlined
def drawn(rows, y, state, batch, r):
    """The row of draw r; prefetch for later draws the row starts, the rows, and the entries of long vectors they touch."""
    flat = batch.flat
    if len(rows) == SPARSE and r + FAR < flat.size:
        look_ahead(rows.indptr, rows.indices, rows.data, flat, r)
        prefetch(y, U(flat[r + FAR]))
        if state.v.size > LONG:
            i = U(flat[r + NEXT])
            for e in range(U(rows.indptr[i]), U(rows.indptr[i + U(1)])):
                prefetch(state.v, U(rows.indices[e]))
                prefetch(state.G, U(2) * U(rows.indices[e]))
    return U(flat[r])
