"""Many iterations of a stochastic Frank-Wolfe method in one call, for linear models over sets with simple vertices.

The iterate is x = xi v, and the gradient estimate g = M + sigma V. An iteration thus changes only the entries of its rows and
two numbers. An estimator is a small integer; with c_i = phi'(<a_i, x>) after the step, c_i' before it, y_i the table:

    RECURSE      V <- alpha V + (1/b) sum (c_i - alpha c_i') a_i                                   Sarah (alpha = 1), STORM
    AVERAGE      V <- alpha V + (beta/b) sum c_i a_i                                               momentum
    REFRESH      V <- V + (1/n) sum (y_i^new - y_i) a_i,  y_i^new = (1 - beta) y_i + beta c_i      SAG
    FOLLOW       the same with c_i = phi'(sigma_i), sigma_i <- sigma_i + beta (<a_i, s> - sigma_i) Lu and Freund's substitute
    TABLE        M <- M + (1/n) sum (c_i - y_i) a_i,  g <- (1/b) sum (c_i - y_i) a_i + M^old       SAGA (alpha = 0)
    BOTH         the same, g <- (1 - beta) g + beta M^old + (1/b) sum (c_i - c_i' + beta (c_i' - y_i)) a_i    Saga Sarah
    SNAPSHOT     g <- M + (1/b) sum (c_i - phi'(<a_i, w>)) a_i                                     SVRG

V = g - M for the last three, so it is scaled by alpha like the others. The readable loop explains these updates, and the
tests compare these loops with it.
"""

from __future__ import annotations

import math

from extremal.kernels import arguments as codes
from extremal.kernels import oracles, passes
from extremal.kernels.arguments import SPARSE, DrawnBatch, RowStep, ScaledPair, TowardVertex
from extremal.kernels.jit import bare, inlined
from extremal.kernels.rows import U

TINY_SCALE = 1e-16  # scales below this are multiplied into their vector


@bare
def burst(model, oracle, steps, state):
    """Make one iteration per step; stop early if a number is not finite."""
    kind, b, scales, G = steps.kind, steps.b, state.scales, state.G
    single, two, twice = oracle.kind < codes.CORNER, kind >= codes.TABLE, steps.second.size > 0
    before = kind == codes.RECURSE or kind == codes.BOTH or kind == codes.FOLLOW  # these read the rows before x moves
    xi, sigma = scales[0], scales[1]
    for t in range(steps.eta.size):
        # the vertex s: one coordinate j, or an array; without M the scale of V does not matter
        g, j, length = ScaledPair(G, two, sigma if two else 1.0), 0, 0.0
        if single:
            j, top = oracles.best(oracle, g)
            if not math.isfinite(top):
                return
            length = oracles.coordinate(oracle, g, j, top)
        elif oracle.kind == codes.FILL:
            oracles.fill_budget(oracle, g, state.s)
        else:
            oracles.corner(oracle, g, state.s)
        toward = TowardVertex(steps.eta[t], single, j, length)
        if before:
            show_vertex(state, toward)
        else:
            xi = move_to_vertex(state, toward, xi)

        # the remainder of V
        a = steps.alpha[t]
        if a == 0.0:
            clear(model.rows, state, oracle.blocks.size > 0)
            sigma = 1.0
        else:
            sigma *= a
            if sigma < TINY_SCALE:
                rescale(oracle, ScaledPair(G, two, sigma))
                sigma = 1.0

        # the rows, and those of a second batch, which enters the table instead
        batch, other, total = DrawnBatch(steps.flat, t * b, b), DrawnBatch(steps.second, t * b, b), 0.0
        for turn in range(2 if twice else 1):
            which = RowStep(codes.RENEW if turn else kind, xi, sigma, toward.eta, a, steps.beta[t], turn > 0 or not twice)
            total += passes.over_batch(model, state, other if turn else batch, which)
        if not math.isfinite(total):
            return

        if oracle.blocks.size:
            g = ScaledPair(G, two, sigma if two else 1.0)
            raise_bounds(model.rows, oracle, g, batch)
            if twice:
                raise_bounds(model.rows, oracle, g, other)
        if a == 0.0:
            for r in range(b):
                state.last[r] = batch.flat[batch.q + r]
                if twice:
                    state.last[b + r] = other.flat[other.q + r]
        else:
            state.last[0] = -1
        if before:
            if single:
                state.X[U(j), 1] = 0.0
            xi = move_to_vertex(state, toward, xi)
        scales[0], scales[1] = xi, sigma
        scales[2] += 1


@inlined
def show_vertex(state, toward):
    """w = s; w was zero if s has a single entry."""
    if toward.single:
        state.X[U(toward.j), 1] = toward.length
    else:
        for k in range(U(state.s.size)):
            state.X[k, 1] = state.s[k]


@inlined
def move_to_vertex(state, toward, xi):
    """x <- (1 - e) x + e s for x = xi v; return the new xi."""
    X, e = state.X, toward.eta
    if not toward.single:
        for k in range(U(state.s.size)):
            X[k, 0] = (1.0 - e) * X[k, 0] + e * state.s[k]
        return xi
    xi *= 1.0 - e
    if xi < TINY_SCALE:
        for k in range(U(X.shape[0])):
            X[k, 0] *= xi
        xi = 1.0
    X[U(toward.j), 0] += e * toward.length / xi
    return xi


@bare
def rescale(oracle, g):
    """V <- sigma V; without M, the bounds are those of V."""
    for j in range(g.G.shape[0]):
        g.G[j, 0] *= g.sigma
    if not g.two:
        for B in range(oracle.blocks.size):
            oracle.blocks[B] *= g.sigma
        for A in range(oracle.groups.size):
            oracle.groups[A] *= g.sigma


@bare
def clear(rows, state, by_rows):
    """V <- 0, only on the entries of its rows if these are known."""
    G, last = state.G, state.last
    if len(rows) == SPARSE and by_rows and last[0] >= 0:
        for i in last:
            for e in range(U(rows.indptr[i]), U(rows.indptr[i + 1])):
                G[U(rows.indices[e]), 0] = 0.0
    else:
        for j in range(G.shape[0]):
            G[j, 0] = 0.0


@bare
def raise_bounds(rows, oracle, g, batch):
    """Raise the bounds of the index above all scores that the batch has changed."""
    if len(rows) == SPARSE:
        for r in range(batch.q, batch.q + batch.b):
            i = U(batch.flat[r])
            for e in range(U(rows.indptr[i]), U(rows.indptr[i + U(1)])):
                oracles.lift(oracle, g, rows.indices[e])
