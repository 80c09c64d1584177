"""DMFW with compressed messages: against its formulas with all replicas kept, its invariants, its counts, and in the limit."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from cases import DIM, MATRIX, SETS, N, model, targets

import extremal as ex
from extremal.objectives.base import GRADIENT_NOISE, POINT_NOISE

G = ex.gradients
BALL, RING = ex.L1Ball(2.0), G.ring(5)
PATH = G.metropolis([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
ONE_WAY = np.eye(3) / 2 + np.roll(np.eye(3), 1, axis=1) / 2  # agent i hears agent i + 1 only
LAZY = {"tol": 0, "atol": 0}


def states(method, count, f=None, C=BALL, seed=0):
    return list(itertools.islice(ex.iterate(f or model(ex.Logistic()), C, method=method, seed=seed), count))


def top(v, rng):
    at = np.argsort(-np.abs(v), kind="stable")[:2]
    return np.where(np.isin(np.arange(DIM), at), v, 0.0)


def some(v, rng):
    """RandomK(2) over 1 + omega: the entries themselves."""
    return np.where(np.isin(np.arange(DIM), rng.choice(DIM, 2, replace=False)), v, 0.0)


def choco_dmfw(C, b, K, seed, send, rate):
    """DMFW on logistic regression over the l1 ball of radius 2; agent i keeps a replica of each agent that it hears."""
    m, A, y = len(C), MATRIX, targets(ex.Logistic())
    cuts = [N * i // m for i in range(m + 1)]
    draws = [ex.objectives.Sampler(cuts[i + 1] - cuts[i], seed, shard=i) for i in range(m)]

    def grad(i, x, k):
        rows = cuts[i] + draws[i].rows(k, b)
        return m * (cuts[i + 1] - cuts[i]) / N * A[rows].T @ (-y[rows] / (1 + np.exp(y[rows] * (A[rows] @ x)))) / b

    def exchange(v, replicas, k, stream):
        """q_i = C(v_i - vh_i), vh_j <- vh_j + q_j at every agent that hears j, v_i + rate sum_j c_ij (vh_j - vh_i)."""
        q = [send(v[i] - replicas[i][i], np.random.default_rng((seed, i, stream, k))) for i in range(m)]
        for i, j in itertools.product(range(m), range(m)):
            if i == j or C[i, j]:
                replicas[i][j] = replicas[i][j] + q[j]
        moved = [sum(C[i, j] * (replicas[i][j] - replicas[i][i]) for j in range(m) if C[i, j]) for i in range(m)]
        return v + rate * np.array(moved)

    x = xh = np.zeros((m, DIM))
    of_x, of_s = ([[np.zeros(DIM) for _ in range(m)] for _ in range(m)] for _ in range(2))
    out, Y = [], np.array([grad(i, xh[i], 0) for i in range(m)])
    S = Y
    for k in range(K):
        p = exchange(S, of_s, k, GRADIENT_NOISE)
        out.append((x.mean(axis=0), x, xh, p))
        theta = np.array([-2.0 * np.sign(v[j]) * np.eye(DIM)[j] for v in p for j in [np.abs(v).argmax()]])
        x = xh + 2 / (k + 2) * (theta - xh)
        old, xh, gamma = xh, exchange(x, of_x, k, POINT_NOISE), min(1.0, 2 / (k + 2))
        new = np.array([(1 - gamma) * Y[i] + grad(i, xh[i], k + 1) - (1 - gamma) * grad(i, old[i], k + 1) for i in range(m)])
        S, Y = p + new - Y, new
    return out


@pytest.mark.parametrize("mixing", [RING, PATH, ONE_WAY, G.ring(7)], ids=["ring", "path", "one way", "seven"])
@pytest.mark.parametrize(("compressor", "send", "rate"), [("top-2", top, 0.3), ("random-2", some, None)], ids=["top", "random"])
def test_compressed_exchanges_are_their_formulas(mixing, compressor, send, rate):
    wanted = choco_dmfw(mixing, 3, 40, 4, send, 0.25 if rate is None else rate)  # left out: k/d
    for state, (x, agents, xh, p) in zip(states(ex.DMFW(3, mixing, None, compressor, rate), 40, seed=4), wanted, strict=True):
        for found, right in zip((state.x, state.point.agents, state.point.query, state.g), (x, agents, xh, p), strict=True):
            np.testing.assert_allclose(found, right, atol=1e-9)


def test_whole_vectors_and_rate_one_are_plain_dmfw():
    for mixing in (RING, PATH, ONE_WAY, G.complete(4), G.ring(1)):
        for a, b in zip(states(ex.DMFW(3, mixing, None, "none", 1.0), 60), states(ex.DMFW(3, mixing), 60), strict=True):
            np.testing.assert_allclose(a.point.agents, b.point.agents, atol=1e-10)
            np.testing.assert_allclose(a.g, b.g, atol=1e-10)


@pytest.mark.parametrize("C", SETS, ids=repr)
@pytest.mark.parametrize("compressor", ["natural", "top-2", "random-2"])
def test_the_mean_is_feasible_and_exchanges_keep_means(C, compressor):
    for state in states(ex.DMFW(4, RING, None, compressor), 120, model(ex.NonlinearLeastSquares()), C):
        point, estimate = state.point, state.estimate
        assert C.contains(point.x, 1e-11)
        np.testing.assert_allclose(point.agents.mean(axis=0), point.x, atol=1e-12)
        np.testing.assert_allclose(point.query.mean(axis=0), point.x, atol=1e-11)
        np.testing.assert_allclose(estimate.p.mean(axis=0), estimate.y.mean(axis=0), atol=1e-11)
        assert not any(a.flags.writeable for a in (point.x, point.query, point.agents, state.g))


@pytest.mark.parametrize(
    ("compressor", "numbers", "size"), [(None, 8, 64), ("natural", 8, 12), ("top-3", 3, 36), ("random-3", 3, 36)]
)
@pytest.mark.parametrize(
    ("mixing", "heard"),
    [(RING, 10), (PATH, 4), (ONE_WAY, 3), (G.complete(4), 12), (G.ring(1), 0)],
    ids=["5", "3", "1 way", "4", "1"],
)
def test_every_message_counts_once_for_each_receiver(compressor, numbers, size, mixing, heard):
    """s at the start, then x and s in each iteration."""
    run = ex.iterate(model(ex.Logistic()), BALL, method=ex.DMFW(2, mixing, None, compressor))
    for state in itertools.islice(run, 12):
        messages = heard * (2 * state.k + 1)
        assert (state.calls.numbers, state.calls.bytes) == (messages * numbers, messages * size)
    plain = ex.Method(G.Tracking(G.Full(), mixing, compressor), ex.steps.OpenLoop())  # all agents at one point: s only
    calls = ex.minimize(model(ex.Logistic()), BALL, plain, max_iter=5, **LAZY).calls
    assert calls.bytes == 6 * heard * size


def test_agents_agree_in_the_limit_and_values_fall_with_a_fraction_of_the_bytes():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((600, 20))
    y = np.where(A[:, :3] @ [1.0, -0.7, 0.5] + 0.7 * rng.standard_normal(600) > 0, 1.0, -1.0)
    f = ex.LinearModel(ex.Logistic(), A[np.argsort(y, kind="stable")], np.sort(y))  # parts as unlike as they can be
    best, first = ex.minimize(f, BALL, tol=1e-8).value, f.value(np.zeros(20))
    for compressor, share in ((None, 1.0), ("natural", 0.19), ("top-4", 0.31), ("random-4", 0.31)):
        exchange = G.ring(4), compressor
        method = ex.Method(G.Tracking(G.Full(), *exchange), ex.steps.OpenLoop(), ex.moves.Consensus(*exchange))
        run = states(method, 1200, f)
        apart = np.array([state.point.disagreement for state in run])
        assert apart[-45:].mean() < apart[5:50].mean() / 8, compressor
        assert f.value(run[-1].x) - best < 2e-3 * (first - best), compressor
        assert run[-1].calls.bytes <= share * 2399 * 8 * 8 * 20


@pytest.mark.parametrize("compressor", ["natural", "random-2"])
def test_same_seed_same_result(compressor):
    one, two, other = (
        ex.minimize(model(ex.Logistic()), BALL, ex.DMFW(3, RING, None, compressor), seed=s, max_iter=40, **LAZY)
        for s in (3, 3, 4)
    )
    np.testing.assert_array_equal(one.x, two.x)
    assert (one.x != other.x).any()


def test_the_repr_shows_what_was_given():
    assert repr(ex.DMFW(3, RING, None, "top-2")).endswith("step=None, compressor=TopK(k=2))")
    assert repr(ex.moves.Consensus(RING, "natural", 0.5)) == "Consensus(mixing=<5 x 5>, compressor=Natural(), rate=0.5)"
    assert repr(G.Tracking(G.Full(), RING)) == "Tracking(gradient=Full(), mixing=<5 x 5>)"


PENALISED = G.Penalised(G.Tracking(G.Full(), RING, "top-2"), G=np.ones((1, DIM)), upper=9.0)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: ex.DMFW(compressor="top-2", rate=0.0), r"`DMFW\(rate=...\)` must be a number in \(0, 1\], got 0"),
        (lambda: ex.DMFW(compressor=3), r"`DMFW\(compressor=...\)` must be a compressor"),
        (lambda: G.Tracking(G.Full(), RING, 3), r"`Tracking\(compressor=...\)`"),
        (lambda: ex.moves.Consensus(RING, "top-2", 2.0), r"`Consensus\(rate=...\)`"),
        (lambda: ex.DMFW(step=ex.steps.LineSearch(), compressor="top-2"), r"`DMFW\(compressor=...\)` needs a step that is fixed"),
        (
            lambda: ex.Method(G.Tracking(G.Full(), RING), ex.steps.ShortStep(), ex.moves.Consensus(RING, "top-2")),
            r"`Consensus\(compressor=...\)` needs a step that is fixed",
        ),
        (lambda: ex.Method(PENALISED, ex.steps.OpenLoop(), ex.moves.Consensus(RING, "top-2")), "goes with Tracking itself"),
        (lambda: ex.DMFW(mixing=G.ring(N + 1), compressor="top-2"), "at most one agent per component"),
    ],
)
def test_what_cannot_be_is_refused(make, match):
    with pytest.raises(ex.InputError, match=match):
        ex.minimize(model(ex.Logistic()), BALL, make(), max_iter=2)


def test_a_penalty_goes_with_whole_points_and_compressed_gradients():
    r = ex.minimize(
        model(ex.Logistic()), BALL, ex.Method(PENALISED, ex.steps.OpenLoop(), ex.moves.Consensus(RING)), max_iter=9, **LAZY
    )
    assert r.calls.bytes == 10 * (10 * 24 + 9 * 64)
    assert BALL.contains(r.x)
