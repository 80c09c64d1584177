"""Estimators: right with a full batch, at a frozen point and in the mean; honest about exactness, cost and memory."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from cases import DIM, GRADIENTS, LOSSES, MATRIX, N, linear_only, model, separable

import extremal as ex
from extremal.gradients import table as tables

STOCHASTIC = [g for g in GRADIENTS if not isinstance(g, ex.gradients.Full)]
KINDS = ["dense", "csr", "separable"]
PAIRS = [(kind, g) for g in GRADIENTS for kind in KINDS if kind != "separable" or not linear_only(g)]
EVERY_PAIR = pytest.mark.parametrize(("f", "gradient"), PAIRS, indirect=["f"], ids=lambda v: v if isinstance(v, str) else repr(v))
A, B = np.linspace(-0.4, 0.3, DIM), np.linspace(0.2, -0.3, DIM)  # two points
WHOLE = (  # estimators whose batch is the whole sum
    ex.gradients.Full(),
    ex.gradients.Sarah(N, p=0.1),
    ex.gradients.SagaSarah(N, lam=0.3),
    ex.gradients.SagaSarah(N, lam=1.0),
    ex.gradients.MiniBatch(N),
    ex.gradients.Pool(N),
    ex.gradients.Storm(N),
    ex.gradients.Svrg(N, epoch=7),
    ex.gradients.Svrg(ex.laws.PowerLaw(N, 1, 0), epoch=ex.laws.Doubling()),
    ex.gradients.Spider(N, epoch=7),
    ex.gradients.Spider(N, epoch=7, restart=N),
    ex.gradients.Sag(N),
    ex.gradients.Saga(N),
    ex.gradients.Saga(N, two_batches=True),
)


@pytest.fixture(params=KINDS)
def f(request):
    return separable(ex.Logistic()) if request.param == "separable" else model(ex.Logistic(), request.param)


def states(f, gradient, count: int, seed: int = 0, step=None):
    method = ex.Method(gradient=gradient, step=step or ex.steps.OpenLoop())
    return itertools.islice(ex.iterate(f, ex.L1Ball(2.0), method=method, seed=seed), count)


def wide(f, x) -> np.ndarray:
    """All component gradients as rows."""
    return np.array([f.combine(f.derivs(x, np.array([i])), np.array([i])) for i in range(f.n)])


@pytest.mark.parametrize("gradient", WHOLE, ids=repr)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_a_full_batch_is_the_full_gradient_at_every_step(gradient, loss):
    for f in (model(loss), model(loss, "csr"), separable(loss)):
        for state in states(f, gradient, 60):
            np.testing.assert_allclose(state.g, f.grad(state.x), atol=1e-12)


def frozen(f, gradient, count: int, seed: int = 0):
    """Estimates at B, after one at A; the first is the one made on the way from A to B."""
    sampler = ex.objectives.Sampler(N, seed)
    state = gradient.init(f, A, sampler)
    for k in range(count):
        state = gradient.update(f, k, A if k == 0 else B, B, (), state, sampler)
        yield state.g


SETTLES = (
    ex.gradients.Full,
    ex.gradients.Sarah,
    ex.gradients.SagaSarah,
    ex.gradients.Pool,
    ex.gradients.Svrg,
    ex.gradients.Spider,
    ex.gradients.Sag,
    ex.gradients.Saga,
)  # exactly, at a frozen point
AVERAGES = (ex.gradients.Momentum, ex.gradients.Storm)  # as an average over time does
MEETS = [p for p in PAIRS if isinstance(p[1], SETTLES) and not getattr(p[1], "restart", None) and not getattr(p[1], "rho", None)]


@pytest.mark.parametrize(("f", "gradient"), MEETS, indirect=["f"], ids=lambda v: v if isinstance(v, str) else repr(v))
def test_at_a_frozen_point_the_estimate_tends_to_the_gradient(f, gradient):
    start, *_, last = (np.abs(g - f.grad(B)).max() for g in frozen(f, gradient, 500))
    assert last < 1e-12
    at_once = isinstance(gradient, ex.gradients.Full) or isinstance(getattr(gradient, "epoch", None), ex.laws.Doubling)
    assert at_once or start > 1e-4  # there was something to do


@pytest.mark.parametrize("gradient", [g for g in GRADIENTS if isinstance(g, AVERAGES)], ids=repr)
def test_an_average_over_time_tends_to_the_gradient(f, gradient):
    """At a frozen point g = sum_j w_j mean_j, with weights that its rho gives; its distance to the gradient is of that order."""
    weights, sigma = np.ones(1), np.sqrt(((wide(f, B) - f.grad(B)) ** 2).sum(axis=1).mean() / gradient.batch)
    for k, g in enumerate(frozen(f, gradient, 1500)):
        rho = min(1.0, gradient.rho(k + 1))
        weights = np.append(weights * (1 - rho), rho)
        if k in (60, 300, 1499):
            assert np.linalg.norm(g - f.grad(B)) <= 4 * sigma * np.linalg.norm(weights[1:]) + 2 * weights[0]
    assert np.linalg.norm(weights[1:]) < 0.2
    assert weights[0] < 1e-3


@pytest.mark.parametrize(
    "gradient",
    [ex.gradients.MiniBatch(5), ex.gradients.MiniBatch(7, replace=True), ex.gradients.Spider(7, 4, restart=20)],
    ids=repr,
)
def test_fresh_batches_are_right_in_the_mean(f, gradient):
    count, every = 4000, 4 if isinstance(gradient, ex.gradients.Spider) else 1  # estimates are apart from epoch to epoch only
    means = np.array(list(frozen(f, gradient, count)))[3::every]
    error = np.linalg.norm(means.mean(axis=0) - f.grad(B))
    assert error <= 4 * np.sqrt(((means - f.grad(B)) ** 2).sum(axis=1).mean() / len(means))
    assert error < 0.1 * np.abs(means[-1] - f.grad(B)).max()


def test_partial_refreshes_of_a_table_tend_to_the_gradient(f):
    errors = [np.abs(g - f.grad(B)).max() for g in frozen(f, ex.gradients.Sag(5, rho=ex.laws.PowerLaw(1.0, 2.0, -0.5)), 5000)]
    assert errors[-1] < 1e-4 < 1e-2 < errors[0]


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_the_substitute_gradient_settles_at_a_vertex_that_is_kept(kind, replace):
    """It never looks at x: if all steps go to the same s, it tends to grad f(s)."""
    f, s = model(ex.Logistic(), kind), ex.points.Coordinate(2, -1.5, (DIM,))
    gradient, sampler = ex.gradients.Substitute(5, replace), ex.objectives.Sampler(N, seed=0)
    state = gradient.init(f, A, sampler)
    np.testing.assert_allclose(state.g, f.grad(A), atol=1e-15)
    for k in range(4000):
        state = gradient.update(f, k, None, None, ((0.5, s),), state, sampler)
    assert np.abs(state.g - f.grad(s.to_array())).max() < 1e-4 < np.abs(f.grad(A) - f.grad(s.to_array())).max()


@EVERY_PAIR
def test_exact_is_said_only_of_the_gradient_itself(f, gradient):
    exact = []
    for state in states(f, gradient, 400, seed=1):
        error = np.abs(state.g - f.grad(state.x)).max()
        exact.append(state.exact)
        assert not state.exact or error <= 1e-15
    match gradient:
        case ex.gradients.Full():
            assert all(exact)
        case ex.gradients.Sarah(p=p):
            assert np.mean(exact) == pytest.approx(p, abs=5 * math.sqrt(p / 400))
        case ex.gradients.Saga() | ex.gradients.SagaSarah(start="full") | ex.gradients.Substitute():
            assert exact == [True] + [False] * 399
        case ex.gradients.Svrg(epoch=int(m)) | ex.gradients.Spider(epoch=int(m), restart=None):
            assert exact == [k % m == 0 for k in range(400)]
        case ex.gradients.Svrg() | ex.gradients.Spider(restart=None):  # epochs of 1, 2, 4, ...
            assert exact == [(k + 1).bit_count() == 1 for k in range(400)]
        case ex.gradients.MiniBatch(batch=ex.laws.PowerLaw()):  # 1, 2, ..., n
            assert exact == [k + 1 >= N for k in range(400)]
        case ex.gradients.Pool(batch=b):
            assert exact == [b * (k + 1) >= N for k in range(400)]
        case _:
            assert not any(exact)


@EVERY_PAIR
def test_oracle_counts_are_those_of_the_facts(f, gradient):
    steps, facts = 1500, gradient.facts(N)
    run = iter(states(f, gradient, steps + 1))
    first = next(run)
    assert first.calls.grads == facts.start
    due = facts.start
    for last in run:
        assert last.calls.lmos == last.k
        due += facts.per_step(last.k - 1) if callable(facts.per_step) else facts.per_step
        assert not callable(facts.per_step) or last.calls.grads == due
    spent = last.calls.grads - facts.start
    assert last.calls.values == last.calls.certificate == 0
    if isinstance(gradient, ex.gradients.Sarah):  # n with probability p, otherwise 2b
        noise = math.sqrt(gradient.p * (1 - gradient.p) * steps) * (N - 2 * gradient.batch)
        assert abs(spent - steps * facts.per_step) <= 4 * noise
        assert (spent - 2 * gradient.batch * steps) % (N - 2 * gradient.batch) == 0
    else:
        assert last.calls.grads == pytest.approx(due, rel=1e-12)


@pytest.mark.parametrize("gradient", GRADIENTS, ids=repr)
def test_a_budget_buys_as_many_iterations_as_it_pays_for(gradient):
    """Facts.iterations against a sum."""
    facts = gradient.facts(N)
    for grads in (facts.start, facts.start + 1, 7 * N, 100 * N):
        K = facts.iterations(grads)
        cost = [facts.per_step(k) if callable(facts.per_step) else facts.per_step for k in range(K + 1)]
        assert K >= 1
        slack = 0 if callable(facts.per_step) else facts.per_step / 2  # rounded to the nearest
        assert K == 1 or facts.start + sum(cost[:K]) <= grads + slack + 1e-9
        assert facts.start + sum(cost) > grads - slack - 1e-9


def test_facts_are_those_of_the_paper():
    for n, b in ((100, 1), (100, 10), (100, 100), (49_749, 223)):
        for p in (0.01, 2 * b / (n + 2 * b), 1.0):
            facts = ex.gradients.Sarah(b, p).facts(n)
            assert (facts.start, facts.d) == (n, 2 / p)
            assert facts.per_step == pytest.approx(p * n + (1 - p) * 2 * b)
            assert facts.c == pytest.approx(min(1.0, (p * b / (1 - p)) ** 0.25) if p < 1 else 1.0)
        for start, cost in (("full", n), ("cold", 1)):
            facts = ex.gradients.SagaSarah(b, 0.1, start=start).facts(n)
            assert (facts.start, facts.per_step, facts.d) == (cost, 2 * b, 4 * n / b)
            assert facts.c == pytest.approx(min(1.0, b / math.sqrt(n)) ** 0.5)
    assert ex.gradients.Full().facts(100).start == ex.gradients.Full().facts(100).per_step == 100


@pytest.mark.parametrize("gradient", [g for g in STOCHASTIC if isinstance(g.batch, int)], ids=repr)
def test_a_batch_above_n_is_refused(gradient):
    n = gradient.batch - 1
    with pytest.raises(ex.InputError, match=rf"`{type(gradient).__name__}\(batch=\.\.\.\)` .* between 1 and {n}, got"):
        gradient.facts(n)
    with pytest.raises(ex.InputError, match=r"`Spider\(restart=\.\.\.\)` .* between 1 and 4, got 5"):
        ex.gradients.Spider(2, 3, restart=5).facts(4)


@pytest.mark.parametrize("gradient", [g for g in STOCHASTIC if not isinstance(g.batch, int)], ids=repr)
def test_batches_that_grow_stop_at_n(gradient):
    facts = gradient.facts(4)
    costs = [facts.per_step(k) for k in range(200)]
    assert max(costs) == (4 if isinstance(gradient, ex.gradients.MiniBatch) else 8)
    assert min(costs) >= 1


class Fixed:
    """A sampler that always draws the same rows, and a coin that never asks for a full gradient."""

    def __init__(self, idx):
        self.idx = np.array(idx)

    def rows(self, k, batch, replace=False):
        return self.idx

    def coin(self, k):
        return 1.0 - 1e-16


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("kind", ["dense", "separable"])
@pytest.mark.parametrize("b", [1, 2, 3])
def test_the_mean_over_every_batch(replace, kind, b):
    """Sarah: g + grad f(x) - grad f(x_prev). Saga Sarah: grad f(x) + (1 - lam) (g - grad f(x_prev)). For b > 1 too."""
    few, y = MATRIX[:5], np.array([1.0, -1, 1, 1, -1])
    f = ex.LinearModel(ex.Logistic(), few, y) if kind == "dense" else separable(ex.Logistic(), few, y)
    batches = itertools.product(range(5), repeat=b) if replace else itertools.combinations(range(5), b)
    sarah, saga, lam = ex.gradients.Sarah(b, 0.5, replace), ex.gradients.SagaSarah(b, 0.3, replace=replace), 0.3
    sums, wrong = [], np.linspace(1, 2, DIM)  # an estimate that is off, and a table from another point
    for idx in batches:
        s = sarah.update(f, 0, A, B, (), SimpleNamespace(g=wrong, exact=False), Fixed(idx)).g
        state = SimpleNamespace(g=wrong, exact=False, table=tables.DerivativeTable.at(f, A + B))
        sums.append((s, saga.update(f, 0, A, B, (), state, Fixed(idx)).g))
    means = np.mean(sums, axis=0)
    np.testing.assert_allclose(means[0], wrong + f.grad(B) - f.grad(A), atol=1e-13)
    np.testing.assert_allclose(means[1], f.grad(B) + (1 - lam) * (wrong - f.grad(A)), atol=1e-13)
