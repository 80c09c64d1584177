"""Both algorithms of the paper, step for step against tests/truths/naive.py, with the parameters and steps of its theorems."""

from functools import lru_cache

import naive
import numpy as np
import pytest
import scipy.sparse as sp

import extremal as ex

N, D, K, R, SEED = 30, 8, 1000, 4.0, 3
LOSS = {"logistic": ex.Logistic(), "nlls": ex.NonlinearLeastSquares()}
DATA = {"dense": np.array, "csr": sp.csr_array}


class Spy(ex.LinearModel):
    """A linear model that writes down which components it was asked for, and where; None is all of them."""

    def __init__(self, *args):
        super().__init__(*args)
        self.seen = []

    def derivs(self, x, idx=None):
        self.seen.append((None if idx is None else tuple(int(i) for i in idx), x))
        return super().derivs(x, idx)

    def grad(self, x):  # one pass, which does not ask for derivatives
        self.seen.append((None, x))
        return super().grad(x)


@lru_cache
def arrays(loss):
    rng = np.random.default_rng(7)
    A = rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.5) * np.linspace(0.5, 2.0, D)
    y = rng.integers(0, 2, N)
    return A, 2 * y - 1 if loss == "logistic" else y


def spy(loss, data="dense"):
    A, y = arrays(loss)
    return Spy(LOSS[loss], DATA[data](A), y)


def states(f, method, horizon=K):
    """The states 0, ..., K of a run."""
    for state in ex.iterate(f, ex.L1Ball(R), method=method, seed=SEED, horizon=horizon):
        yield state
        if state.k == horizon:
            return


def step_of_theory(loss, convex_step):
    return convex_step if loss == "logistic" else naive.nonconvex_step(K)


@lru_cache
def naive1(loss, b, replace):
    p, draw = naive.probability(N, b), ex.objectives.Sampler(N, SEED)
    eta = step_of_theory(loss, naive.theorem1_step(p, K))
    problem = naive.Problem(loss, *arrays(loss))
    return list(naive.algorithm1(problem, np.zeros(D), R, K, b, p, eta, lambda k: draw.rows(k, b, replace), draw.coin))


@lru_cache
def naive2(loss, b, replace, start):
    draw = ex.objectives.Sampler(N, SEED)
    eta = step_of_theory(loss, naive.theorem3_step(N, b, K))
    i0 = int(draw.start()[0]) if start == "cold" else None
    problem = naive.Problem(loss, *arrays(loss))
    lam = naive.momentum(N, b)
    return list(naive.algorithm2(problem, np.zeros(D), R, K, b, lam, eta, lambda k: draw.rows(k, b, replace), i0))


def largest(u, v):
    return float(np.abs(u - v).max())


every_case = [
    pytest.mark.parametrize("replace", [False, True], ids=["distinct", "replace"]),
    pytest.mark.parametrize("b", [1, 10, N]),
    pytest.mark.parametrize("data", DATA),
    pytest.mark.parametrize("loss", LOSS),
]


def over_every_case(test):
    for mark in every_case:
        test = mark(test)
    return test


@over_every_case
def test_algorithm_1_is_the_papers(loss, data, b, replace):
    runs = zip(states(spy(loss, data), ex.SarahFW(batch=b, replace=replace)), naive1(loss, b, replace), strict=True)
    for state, (x, g) in runs:
        assert largest(state.x, x) <= 1e-10, state.k
        assert largest(state.g, g) <= 1e-10, state.k


@pytest.mark.parametrize("start", ["full", "cold"])
@over_every_case
def test_algorithm_2_is_the_papers(loss, data, b, replace, start):
    A, _ = arrays(loss)
    method = ex.SagaSarahFW(batch=b, replace=replace, start=start)
    for state, (x, g, y) in zip(states(spy(loss, data), method), naive2(loss, b, replace, start), strict=True):
        assert largest(state.x, x) <= 1e-10, state.k
        assert largest(state.g, g) <= 1e-10, state.k
        assert largest(state.estimate.table.c[:, None] * A, y) <= 1e-10, state.k  # y_i = c_i a_i
        assert largest(state.estimate.table.mean, y.mean(axis=0)) <= 1e-10, state.k


def test_the_runs_compared_are_not_trivial():
    """They visit several vertices, both signs, both branches of the coin, both phases, and draw a row twice."""
    for loss in LOSS:
        for run in (naive1(loss, 10, True), naive2(loss, 10, True, "cold")):
            assert np.count_nonzero(np.abs(run[-1][0]) > 1e-3) >= 3
            assert len({(int(np.abs(g).argmax()), float(np.sign(g[np.abs(g).argmax()]))) for _, g, *_ in run}) >= 4
    coins = np.array([ex.objectives.Sampler(N, SEED).coin(k) for k in range(K)])
    draws = ex.objectives.Sampler(N, SEED)
    assert 0.3 * K < np.sum(coins < naive.probability(N, 10)) < 0.5 * K
    assert any(len(set(draws.rows(k, 10, True))) < 10 for k in range(K))
    assert all(len(set(draws.rows(k, 10, False))) == 10 for k in range(K))


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("b", [1, 10, N])
def test_algorithm_1_asks_for_the_rows_and_coins_of_its_sampler(b, replace):
    f, draw, p = spy("logistic", "csr"), ex.objectives.Sampler(N, SEED), naive.probability(N, b)
    run = list(states(f, ex.SarahFW(batch=b, replace=replace), horizon=300))
    expected = [(None, run[0].x)]
    for k in range(300):
        rows = tuple(int(i) for i in draw.rows(k, b, replace))
        full = draw.coin(k) < p
        expected += [(None, run[k + 1].x)] if full else [(rows, run[k + 1].x), (rows, run[k].x)]
    assert_same_questions(f.seen, expected)


@pytest.mark.parametrize("start", ["full", "cold"])
@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("b", [1, 10, N])
def test_algorithm_2_asks_for_the_rows_of_its_sampler(b, replace, start):
    f, draw = spy("nlls"), ex.objectives.Sampler(N, SEED)
    run = list(states(f, ex.SagaSarahFW(batch=b, replace=replace, start=start), horizon=300))
    expected = [(None if start == "full" else (int(draw.start()[0]),), run[0].x)]
    for k in range(300):
        rows = tuple(int(i) for i in draw.rows(k, b, replace))
        expected += [(rows, run[k + 1].x), (rows, run[k].x)]
    assert_same_questions(f.seen, expected)


def assert_same_questions(seen, expected):
    assert [idx for idx, _ in seen] == [idx for idx, _ in expected]
    assert all(np.array_equal(x, x_expected) for (_, x), (_, x_expected) in zip(seen, expected, strict=True))


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("b", [1, 10, N])
def test_algorithm_1_costs_what_its_coins_say(b, replace):
    f, draw, p = spy("logistic"), ex.objectives.Sampler(N, SEED), naive.probability(N, b)
    grads = N
    for state in states(f, ex.SarahFW(batch=b, replace=replace)):
        assert (state.calls.grads, state.calls.lmos, state.calls.values) == (grads, state.k, 0)
        assert state.exact == (state.k == 0 or draw.coin(state.k - 1) < p)
        grads += N if draw.coin(state.k) < p else 2 * b
    assert state.calls.grads == sum(N if idx is None else len(idx) for idx, _ in f.seen)


@pytest.mark.parametrize(("start", "first"), [("full", N), ("cold", 1)])
@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("b", [1, 10, N])
def test_algorithm_2_costs_2b_an_iteration(b, replace, start, first):
    f = spy("nlls", "csr")
    for state in states(f, ex.SagaSarahFW(batch=b, replace=replace, start=start)):
        assert (state.calls.grads, state.calls.lmos, state.calls.values) == (first + 2 * b * state.k, state.k, 0)
        assert state.exact == (state.k == 0 and start == "full")
    assert state.calls.grads == sum(N if idx is None else len(idx) for idx, _ in f.seen)


def steps_taken(f, method, horizon):
    return np.array([state.point.steps[0][0] for state in states(f, method, horizon) if state.k > 0])


HORIZONS = [1, 2, 5, 6, 31, 32, 33, 120, 121, 1000]  # d = 2/p is 5, 32 or 3 and d = 4n/b is 12, 120 or 4: at, below, above d


@pytest.mark.parametrize("horizon", HORIZONS)
@pytest.mark.parametrize("b", [1, 10, N])
def test_convex_steps_are_those_of_theorems_1_and_3(b, horizon):
    f, p = spy("logistic"), naive.probability(N, b)
    eta1, eta3 = naive.theorem1_step(p, horizon), naive.theorem3_step(N, b, horizon)
    expected1, expected3 = ([eta(k) for k in range(horizon)] for eta in (eta1, eta3))
    np.testing.assert_allclose(steps_taken(f, ex.SarahFW(batch=b), horizon), expected1, rtol=1e-14)
    np.testing.assert_allclose(steps_taken(f, ex.SagaSarahFW(batch=b), horizon), expected3, rtol=1e-14)
    assert max(expected1) <= p / 2 * (1 + 1e-15)
    assert max(expected3) <= b / (4 * N) * (1 + 1e-15)


@pytest.mark.parametrize("horizon", [1, 33, 1000])
@pytest.mark.parametrize("method", [ex.SarahFW(batch=10), ex.SagaSarahFW(batch=10)])
def test_nonconvex_steps_are_those_of_theorems_2_and_4(method, horizon):
    np.testing.assert_allclose(steps_taken(spy("nlls"), method, horizon), horizon**-0.5, rtol=1e-14)


@pytest.mark.parametrize("b", [1, 7, 10, N])
def test_open_parameters_are_the_papers(b):
    result1 = ex.minimize(spy("logistic"), ex.L1Ball(R), method=ex.SarahFW(batch=b), max_iter=2)
    result2 = ex.minimize(spy("logistic"), ex.L1Ball(R), method=ex.SagaSarahFW(batch=b), max_iter=2)
    p, lam = result1.method.gradient.p, result2.method.gradient.lam
    assert p * N == pytest.approx(2 * (1 - p) * b, rel=1e-14)  # full gradients and differences cost the same
    assert p == naive.probability(N, b)
    assert lam == naive.momentum(N, b)


@pytest.mark.parametrize("g", [[0, 0, 0], [0, 2, -2], [0, -2, 2], [-0.0, 0.0, -0.0], [3, -3, 3], [-1, 0.5, 1]])
def test_ties_of_the_oracle_go_to_the_smallest_index(g):
    g = np.array(g, dtype=float)
    np.testing.assert_array_equal(ex.L1Ball(R).lmo(g).to_array(), naive.lmo(g, R))


@pytest.mark.parametrize("loss", LOSS)
def test_the_losses_are_the_papers(loss):
    """Value and gradient agree with the naive ones, and the naive gradient with differences of the naive value."""
    f, problem, x = spy(loss), naive.Problem(loss, *arrays(loss)), np.linspace(-1.0, 1.0, D)
    assert f.value(x) == pytest.approx(problem.value(x), rel=1e-13)
    np.testing.assert_allclose(f.grad(x), problem.gradient(x), atol=1e-14)
    h = 1e-6
    slopes = [(problem.value(x + h * e) - problem.value(x - h * e)) / (2 * h) for e in np.eye(D)]
    np.testing.assert_allclose(problem.gradient(x), slopes, atol=1e-8)
