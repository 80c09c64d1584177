"""Many iterations of a stochastic Frank-Wolfe method in one call, for linear models over sets with simple vertices.

The iterate is x = xi v, and the gradient estimate g = M + sigma V, so that an iteration changes what its rows touch and two
numbers. An estimator enters as a small integer; with c_i = phi'(<a_i, x>) after the step, c_i' before it, y_i the table:

    RECURSE      V <- alpha V + (1/b) sum (c_i - alpha c_i') a_i                                   Sarah (alpha = 1), STORM
    AVERAGE      V <- alpha V + (beta/b) sum c_i a_i                                               momentum
    REFRESH      V <- V + (1/n) sum (y_i^new - y_i) a_i,  y_i^new = (1 - beta) y_i + beta c_i      SAG
    FOLLOW       the same with c_i = phi'(sigma_i), sigma_i <- sigma_i + beta (<a_i, s> - sigma_i) Lu and Freund's substitute
    TABLE        M <- M + (1/n) sum (c_i - y_i) a_i,  g <- (1/b) sum (c_i - y_i) a_i + M^old       SAGA (alpha = 0)
    BOTH         the same, g <- (1 - beta) g + beta M^old + (1/b) sum (c_i - c_i' + beta (c_i' - y_i)) a_i    Saga Sarah
    SNAPSHOT     g <- M + (1/b) sum (c_i - phi'(<a_i, w>)) a_i                                     SVRG

V = g - M for the last three, so it falls by alpha like the others. The readable loop says what all this means and is
what these loops are tested against.
"""

from __future__ import annotations

import math

from extremal.kernels import oracles, passes
from extremal.kernels.codes import AVERAGE, BOTH, CORNER, FILL, FOLLOW, RECURSE, REFRESH, TABLE
from extremal.kernels.jit import bare, inlined
from extremal.kernels.row import U

TINY_SCALE = 1e-16  # scales below this are multiplied into their vector


@bare
def burst(
    indptr, indices, data, y, loss, delta, kind, shape, size, lower, upper,
    b, flat, second, eta, alpha, beta, scales, v, G, w, table, margins, s, order, old, last, blocks, groups,
):  # fmt: skip
    """Make an iteration for each step in ``eta``; fewer if a number is not finite.

    ``flat`` holds the batches of b rows, one after the other; ``second`` second batches, whose table entries are refreshed
    instead, if there are any. G has the columns V and M; ``scales`` holds xi, sigma and the number of iterations made;
    ``last`` is the batch that V stands on if V is cleared in each step (-1 if it is not known), and ``old`` room for its table
    entries.
    """
    single, two, twice = shape < CORNER, kind >= TABLE, second.size > 0
    before = kind == RECURSE or kind == BOTH or kind == FOLLOW  # these read the rows before x has moved
    xi, sigma = scales[0], scales[1]
    for t in range(eta.size):
        # the vertex s: one coordinate j, or an array; without M the scale of V does not matter
        e, j, length, scale = eta[t], 0, 0.0, sigma if two else 1.0
        if single:
            j, top = oracles.best(shape, G, two, scale, lower, blocks, groups)
            if not math.isfinite(top):
                return
            length = oracles.coordinate(shape, size, lower, G, scale, j, top)
        elif shape == FILL:
            oracles.fill_budget(G, scale, lower, upper, size, order, s)
        else:
            oracles.corner(G, scale, lower, upper, s)
        if not before:
            xi = move_to_vertex(single, v, s, xi, e, j, length)

        # what is left of V
        a = alpha[t]
        if a == 0.0:
            clear(indptr, indices, data, G, last, blocks.size > 0)
            sigma = 1.0
        else:
            sigma *= a
            if sigma < TINY_SCALE:
                rescale(G, two, sigma, blocks, groups)
                sigma = 1.0

        # the rows
        q = t * b
        if kind == RECURSE:
            total = passes.recurse(indptr, indices, data, y, loss, delta, flat, q, b, v, xi, e, single, j, length, s, G, sigma, a)
        elif kind == AVERAGE:
            total = passes.average(indptr, indices, data, y, loss, delta, flat, q, b, v, xi, G, sigma, beta[t])
        elif kind == REFRESH:
            total = passes.refresh(indptr, indices, data, y, loss, delta, flat, q, b, v, xi, G, table, beta[t], old)
        elif kind == FOLLOW:
            total = passes.follow(
                indptr, indices, data, y, loss, delta, flat, q, b, v, single, j, length, s, G, table, margins, beta[t], old
            )
        elif kind == TABLE:
            total = passes.correct(indptr, indices, data, y, loss, delta, flat, q, b, v, xi, G, table, old, not twice)
            if twice:
                total += passes.renew(indptr, indices, data, y, loss, delta, second, q, b, v, xi, G, table)
        elif kind == BOTH:
            total = passes.both(
                indptr, indices, data, y, loss, delta, flat, q, b, v, xi, e, single, j, length, s, G, sigma, table, beta[t], old
            )
        else:
            total = passes.snapshot(indptr, indices, data, y, loss, delta, flat, q, b, v, xi, w, G)
        if not math.isfinite(total):
            return

        if blocks.size:
            scale = sigma if two else 1.0
            raise_bounds(indptr, indices, data, flat, q, b, shape, G, two, scale, lower, blocks, groups)
            if twice:
                raise_bounds(indptr, indices, data, second, q, b, shape, G, two, scale, lower, blocks, groups)
        if a == 0.0:
            for r in range(b):
                last[r] = flat[q + r]
                if twice:
                    last[b + r] = second[q + r]
        else:
            last[0] = -1
        if before:
            xi = move_to_vertex(single, v, s, xi, e, j, length)
        scales[0], scales[1] = xi, sigma
        scales[2] += 1


@inlined
def move_to_vertex(single, v, s, xi, e, j, length):
    """x <- (1 - e) x + e s for x = xi v; return xi."""
    if not single:
        for k in range(v.size):
            v[k] = (1.0 - e) * v[k] + e * s[k]
        return xi
    xi *= 1.0 - e
    if xi < TINY_SCALE:
        for k in range(v.size):
            v[k] *= xi
        xi = 1.0
    v[j] += e * length / xi
    return xi


@bare
def rescale(G, two, sigma, blocks, groups):
    """V <- sigma V; without M, bounds are those of V."""
    for j in range(G.shape[0]):
        G[j, 0] *= sigma
    if not two:
        for B in range(blocks.size):
            blocks[B] *= sigma
        for A in range(groups.size):
            groups[A] *= sigma


@bare
def clear(indptr, indices, data, G, last, by_rows):
    """V <- 0, knowing on which rows it stands."""
    if data.ndim == 1 and by_rows and last[0] >= 0:
        for i in last:
            for e in range(U(indptr[i]), U(indptr[i + 1])):
                G[U(indices[e]), 0] = 0.0
    else:
        for j in range(G.shape[0]):
            G[j, 0] = 0.0


@bare
def raise_bounds(indptr, indices, data, flat, q, b, shape, G, two, sigma, weights, blocks, groups):
    """Raise the index's bounds above all that some rows have changed."""
    if data.ndim == 1:
        for r in range(q, q + b):
            i = U(flat[r])
            for e in range(U(indptr[i]), U(indptr[i + U(1)])):
                oracles.lift(shape, G, two, sigma, weights, blocks, groups, indices[e])
