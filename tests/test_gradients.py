"""Estimators: right with a full batch, at a frozen point and in the mean; honest about exactness, cost and memory."""

from __future__ import annotations

import itertools
import math
from types import SimpleNamespace

import numpy as np
import pytest
from cases import DIM, GRADIENTS, LOSSES, MATRIX, N, model, separable

import extremal as ex
from extremal.gradients import table as tables

EVERY_GRADIENT = pytest.mark.parametrize("gradient", GRADIENTS, ids=repr)
STOCHASTIC = [g for g in GRADIENTS if not isinstance(g, ex.Full)]
A, B = np.linspace(-0.4, 0.3, DIM), np.linspace(0.2, -0.3, DIM)  # two points


@pytest.fixture(params=["dense", "csr", "separable"])
def f(request):
    return separable(ex.Logistic()) if request.param == "separable" else model(ex.Logistic(), request.param)


def states(f, gradient, count: int, seed: int = 0, step=None):
    method = ex.Method(gradient=gradient, step=step or ex.OpenLoop())
    return itertools.islice(ex.iterate(f, ex.L1Ball(2.0), method=method, seed=seed), count)


def wide(f, x) -> np.ndarray:
    """All component gradients as rows."""
    return np.array([f.combine(f.derivs(x, np.array([i])), np.array([i])) for i in range(f.n)])


@pytest.mark.parametrize(
    "gradient", [ex.Full(), ex.Sarah(N, p=0.1), ex.SagaSarah(N, lam=0.3), ex.SagaSarah(N, lam=1.0)], ids=repr
)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_a_full_batch_is_the_full_gradient_at_every_step(gradient, loss):
    for f in (model(loss), model(loss, "csr"), separable(loss)):
        for state in states(f, gradient, 60):
            np.testing.assert_allclose(state.g, f.grad(state.x), atol=1e-12)


@EVERY_GRADIENT
def test_at_a_frozen_point_the_estimate_tends_to_the_gradient(f, gradient):
    sampler = ex.Sampler(N, seed=0)
    state = gradient.init(f, A, sampler)
    state = gradient.update(f, 0, A, B, (), state, sampler)
    start = np.abs(state.g - f.grad(B)).max()
    for k in range(1, 500):
        state = gradient.update(f, k, B, B, (), state, sampler)
    assert np.abs(state.g - f.grad(B)).max() < 1e-12
    assert isinstance(gradient, ex.Full) or start > 1e-4  # there was something to do


@EVERY_GRADIENT
def test_exact_is_said_only_of_the_gradient_itself(f, gradient):
    exact = 0
    for state in states(f, gradient, 400, seed=1):
        error = np.abs(state.g - f.grad(state.x)).max()
        exact += state.exact
        assert error <= 1e-15 if state.exact else not isinstance(gradient, ex.Full)
    if isinstance(gradient, ex.Sarah):
        assert exact / 400 == pytest.approx(gradient.p, abs=5 * math.sqrt(gradient.p / 400))
    elif isinstance(gradient, ex.SagaSarah):
        assert exact == (gradient.start == "full")


@EVERY_GRADIENT
def test_oracle_counts_are_those_of_the_facts(f, gradient):
    steps, facts = 1500, gradient.facts(N)
    run = iter(states(f, gradient, steps + 1))
    first = next(run)
    assert first.calls.grads == facts.start
    for last in run:
        assert last.calls.lmos == last.k
    spent = last.calls.grads - facts.start
    assert last.calls.values == last.calls.certificate == 0
    if isinstance(gradient, ex.Sarah):  # n with probability p, otherwise 2b
        noise = math.sqrt(gradient.p * (1 - gradient.p) * steps) * (N - 2 * gradient.batch)
        assert abs(spent - steps * facts.per_step) <= 4 * noise
        assert (spent - 2 * gradient.batch * steps) % (N - 2 * gradient.batch) == 0
    else:
        assert spent == steps * facts.per_step


def test_facts_are_those_of_the_paper():
    for n, b in ((100, 1), (100, 10), (100, 100), (49_749, 223)):
        for p in (0.01, 2 * b / (n + 2 * b), 1.0):
            facts = ex.Sarah(b, p).facts(n)
            assert (facts.start, facts.d) == (n, 2 / p)
            assert facts.per_step == pytest.approx(p * n + (1 - p) * 2 * b)
            assert facts.c == pytest.approx(min(1.0, (p * b / (1 - p)) ** 0.25) if p < 1 else 1.0)
        for start, cost in (("full", n), ("cold", 1)):
            facts = ex.SagaSarah(b, 0.1, start=start).facts(n)
            assert (facts.start, facts.per_step, facts.d) == (cost, 2 * b, 4 * n / b)
            assert facts.c == pytest.approx(min(1.0, b / math.sqrt(n)) ** 0.5)
    assert ex.Full().facts(100).start == ex.Full().facts(100).per_step == 100


@pytest.mark.parametrize("gradient", STOCHASTIC, ids=repr)
def test_a_batch_above_n_is_refused(gradient):
    with pytest.raises(ex.InputError, match=rf"`{type(gradient).__name__}\(batch=\.\.\.\)` .* between 1 and 4, got"):
        gradient.facts(4)


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
    sarah, saga, lam = ex.Sarah(b, 0.5, replace), ex.SagaSarah(b, 0.3, replace=replace), 0.3
    sums, wrong = [], np.linspace(1, 2, DIM)  # an estimate that is off, and a table from another point
    for idx in batches:
        s = sarah.update(f, 0, A, B, (), SimpleNamespace(g=wrong, exact=False), Fixed(idx)).g
        state = SimpleNamespace(g=wrong, exact=False, table=tables.Table.at(f, A + B))
        sums.append((s, saga.update(f, 0, A, B, (), state, Fixed(idx)).g))
    means = np.mean(sums, axis=0)
    np.testing.assert_allclose(means[0], wrong + f.grad(B) - f.grad(A), atol=1e-13)
    np.testing.assert_allclose(means[1], f.grad(B) + (1 - lam) * (wrong - f.grad(A)), atol=1e-13)


@pytest.mark.parametrize("gradient", [g for g in GRADIENTS if isinstance(g, ex.SagaSarah)], ids=repr)
def test_the_table_and_its_mean_stay_together(f, gradient):
    """After many updates: the mean is that of the rows, and each row is the gradient where it was last drawn."""
    sampler, x_prev = ex.Sampler(N, seed=2), A
    state, rng = gradient.init(f, A, sampler), np.random.default_rng(0)
    rows = wide(f, A) if gradient.start == "full" else np.zeros((N, DIM))
    for k in range(400):
        x = 0.3 * rng.standard_normal(DIM)
        state = gradient.update(f, k, x_prev, x, (), state, sampler)
        idx = np.unique(sampler.rows(k, gradient.batch, gradient.replace))
        rows[idx] = wide(f, x)[idx]
        x_prev = x
    kept = np.array([f.combine(state.table.c[[i]], np.array([i])) for i in range(N)])
    np.testing.assert_allclose(kept, rows, atol=1e-13)
    np.testing.assert_allclose(state.table.mean, rows.mean(axis=0), atol=1e-13)


def test_the_table_holds_one_number_per_row_of_a_linear_model():
    assert tables.Table.at(model(ex.Squared()), A).c.shape == (N,)
    assert tables.Table.zero(model(ex.Squared(), "csr")).c.shape == (N,)
    assert tables.Table.at(separable(ex.Squared()), A).c.shape == (N, DIM)
    assert tables.Table.zero(model(ex.Squared(), dtype=np.float32)).c.dtype == np.float32


def test_a_cold_start_asks_for_one_gradient_and_has_an_empty_table():
    f = model(ex.Squared())
    state = ex.SagaSarah(3, 0.1, start="cold").init(f, A, ex.Sampler(N, seed=0))
    i = ex.Sampler(N, seed=0).start()
    np.testing.assert_allclose(state.g, f.combine(f.derivs(A, i), i))
    assert not state.table.c.any()
    assert not state.table.mean.any()


def test_the_table_is_its_own_memory():
    """A user's callable may answer an array that it keeps, or one that cannot be written to (as automatic derivatives do)."""
    kept = MATRIX.copy()
    kept.flags.writeable = False

    def grad(x, idx):
        return kept if len(idx) == N else kept[idx] * x.sum()

    f = ex.Separable(N, DIM, grad=grad, value=lambda x, idx: kept[idx] @ x, convex=True)
    ex.minimize(f, ex.L1Ball(1.0), method=ex.SagaSarahFW(batch=5), max_iter=20)
    np.testing.assert_array_equal(kept, MATRIX)


def stub(gib: float, per_row: int = 2**10):
    return SimpleNamespace(n=int(gib * 2**30) // (4 * per_row), deriv_shape=(per_row,), dtype=np.dtype(np.float32))


def test_a_large_table_is_announced(monkeypatch, recwarn):
    monkeypatch.setattr(tables, "available_memory", lambda: 100 * 2**30)
    with pytest.warns(ex.LargeTableWarning, match=r"1\.5 GiB.*SarahFW needs no table"):
        tables.check_memory(stub(1.5))
    tables.check_memory(stub(0.9))
    assert not recwarn


def test_a_table_that_does_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr(tables, "available_memory", lambda: 2**30)
    with pytest.raises(MemoryError, match=r"3\.0 GiB.*1\.0 GiB of free memory; SarahFW needs no table"):
        tables.check_memory(stub(3.0))
    monkeypatch.undo()
    f = ex.Separable(10**9, 10**6, grad=lambda x, idx: np.ones((len(idx), 10**6)), value=lambda x, idx: np.ones(len(idx)))
    for start in ("full", "cold"):  # nothing is allocated, and no gradient is asked for
        with pytest.raises(MemoryError, match="does not fit"):
            next(ex.iterate(f, ex.L1Ball(1.0), method=ex.SagaSarahFW(batch=1, start=start)))


def test_memory_that_the_system_does_not_tell(monkeypatch):
    monkeypatch.setattr(tables, "available_memory", lambda: None)
    with pytest.warns(ex.LargeTableWarning):
        tables.check_memory(stub(5.0))
    monkeypatch.undo()
    assert tables.available_memory() is None or tables.available_memory() > 0
