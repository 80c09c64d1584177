"""Bursts: the same iterations as the readable loop, for every pair of estimator and set, kind of data and loss."""

from __future__ import annotations

import dataclasses
import itertools
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import scipy.sparse as sp

import extremal as ex
from extremal import gradients, laws, moves, steps
from extremal.kernels import codes, oracles
from extremal.kernels.burst import rescale
from extremal.methods.base import Budget
from extremal.run import bursts
from extremal.run.loop import prepare
from extremal.steps import Scheduled

N, DIM = 120, 24
RNG = np.random.default_rng(5)
SPARSE = sp.random_array((N, DIM), density=0.25, rng=np.random.default_rng(1), format="csr", data_sampler=RNG.standard_normal)
DENSE = RNG.standard_normal((N, DIM))
ONES = sp.csr_array((SPARSE != 0).astype(np.float64))
LABELS = np.where(RNG.random(N) < 0.5, 1.0, -1.0)
TARGETS = RNG.standard_normal(N)  # no labels: with these, ones and squares there are ties between sums that rounding decides
LOWER, UPPER = -np.linspace(0.1, 0.9, DIM), np.linspace(0.2, 0.7, DIM)
DATA = {
    "csr": SPARSE,
    "csr, one value": ONES,
    "csr, wide indices": sp.csr_array(
        (SPARSE.data, *(a.astype(np.int64) for a in (SPARSE.indices, SPARSE.indptr))), SPARSE.shape
    ),
    "dense": DENSE,
}
SETS = {
    "l1": ex.L1Ball(3.0),
    "weighted": ex.WeightedL1Ball(3.0, np.linspace(0.5, 2.0, DIM)),
    "simplex": ex.Simplex(2.0),
    "unit": ex.UnitSimplex(2.0),
    "linf": ex.LinfBall(0.3),
    "linf, centre": ex.LinfBall(0.3, centre=LOWER),
    "box": ex.Box(LOWER, UPPER),
    "cube": ex.Box(-0.2, 0.3),
    "capped": ex.CappedSimplex(0.15),
    "caps": ex.CappedSimplex(UPPER / 3),
    "hyper": ex.Hypersimplex(5, 0.3),
    "budget": ex.BudgetBox(LOWER, UPPER, 0.5),
}
LAW = laws.PowerLaw(4.0, 9.0, -2 / 3)
ESTIMATORS = {
    "sarah": gradients.Sarah(5, 0.03),
    "sarah, repeats": gradients.Sarah(9, 0.03, replace=True),
    "storm": gradients.Storm(5),
    "storm, law": gradients.Storm(5, LAW, replace=True),
    "momentum": gradients.Momentum(5),
    "momentum, repeats": gradients.Momentum(9, replace=True),
    "sag": gradients.Sag(5),
    "sag, law": gradients.Sag(9, LAW, replace=True),
    "saga": gradients.Saga(5),
    "saga, two": gradients.Saga(5, two_batches=True),
    "saga, repeats": gradients.Saga(9, replace=True),
    "saga, two, repeats": gradients.Saga(9, two_batches=True, replace=True),
    "saga sarah": gradients.SagaSarah(5, 0.05),
    "saga sarah, cold": gradients.SagaSarah(9, 0.2, start="cold", replace=True),
    "svrg": gradients.Svrg(5, 37),
    "svrg, doubling": gradients.Svrg(9, laws.Doubling(), replace=True),
    "substitute": gradients.Substitute(5),
    "substitute, repeats": gradients.Substitute(9, replace=True, scale=0.5),
}
ONE_EACH = ["sarah", "storm", "momentum", "sag", "saga, two", "saga sarah", "svrg", "substitute"]
ONE_SET_EACH = ["l1", "weighted", "simplex", "unit", "box", "budget"]


def step_of(gradient):
    if isinstance(gradient, gradients.Svrg):
        return steps.EpochOpenLoop()
    return steps.LuFreundStep() if isinstance(gradient, gradients.Substitute) else steps.Decay(2.0, 8.0)


def model(data, loss=None, dtype=np.float64):
    loss = loss or ex.Logistic()
    y = TARGETS if loss.labels is None else np.where(LABELS > 0, *loss.labels[::-1])
    return ex.LinearModel(loss, data.astype(dtype), y)


def both(f, C, gradient, step=None, **options):
    method = ex.Method(gradient, step or step_of(gradient))
    options = {"tol": 0, "atol": 0} | options
    return (ex.minimize(f, C, method, bursts=fast, **options) for fast in (True, False))


def agree(fast, slow, tol=1e-9):
    assert fast.calls == slow.calls
    assert (fast.n_iter, fast.status) == (slow.n_iter, slow.status)
    np.testing.assert_array_equal(fast.trace.iter, slow.trace.iter)
    np.testing.assert_array_equal(fast.trace.grads, slow.trace.grads)
    np.testing.assert_allclose(fast.x, slow.x, rtol=0, atol=tol)
    np.testing.assert_allclose(fast.trace.value, slow.trace.value, rtol=0, atol=tol)


@pytest.fixture
def count(monkeypatch):
    """How many iterations were made in bursts."""
    made = []
    run = bursts.Burst.run

    def counted(self, *args):
        answer = run(self, *args)
        made.append(answer[0])
        return answer

    monkeypatch.setattr(bursts.Burst, "run", counted)
    return made


# the same iterations


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("where", SETS)
def test_every_pair_makes_the_iterations_of_the_loop(name, where, count, monkeypatch):
    """Ten thousand of them for one estimator and one set of each kind, some hundreds for the others."""
    many = 10_000 if name in ONE_EACH and where in ONE_SET_EACH else 500
    monkeypatch.setattr("extremal.objectives.sampling._STEPS", 97)  # many draws, and calls, and no round number
    f = model(SPARSE)
    record = ex.Record(every=many / 20, what=("value", "x"))
    fast, slow = both(f, SETS[where], ESTIMATORS[name], max_iter=many, record=record)
    agree(fast, slow)
    np.testing.assert_allclose(fast.trace.x, slow.trace.x, rtol=0, atol=1e-9)
    assert sum(count) > 0.8 * many  # all but those with a full gradient
    assert SETS[where].on(DIM).contains(fast.x, 1e-9)


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize("loss", [ex.Logistic(), ex.NonlinearLeastSquares(), ex.Squared(), ex.Huber(0.3)], ids=repr)
def test_every_kind_of_data_and_loss(name, kind, loss, count):
    if kind == "csr, one value" and isinstance(loss, ex.Huber):
        loss = ex.Huber(5.0)  # where many derivatives are cut off at the same number, rounding decides between equal sums
    f = model(DATA[kind], loss)
    for where in ("l1", "box"):
        agree(*both(f, SETS[where], ESTIMATORS[name], max_iter=200))
    assert sum(count) > 200


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("kind", ["csr", "dense"])
@pytest.mark.parametrize("where", ["l1", "simplex", "box"])
def test_float32_rows_agree_with_the_same_rows_in_float64(name, kind, where):
    f = model(DATA[kind], dtype=np.float32)
    fast, slow = both(f, SETS[where], ESTIMATORS[name], max_iter=150)
    assert (f.data.dtype, fast.x.dtype) == (np.float32, np.float64)
    assert fast.calls == slow.calls
    np.testing.assert_allclose(fast.x, slow.x, rtol=0, atol=1e-9)
    wide, _ = both(model(DATA[kind].astype(np.float32), dtype=np.float64), SETS[where], ESTIMATORS[name], max_iter=150)
    np.testing.assert_allclose(fast.x, wide.x, rtol=0, atol=1e-9)


RULES = [
    steps.OpenLoop(), steps.Decay(1, 3, 0.5), steps.TwoPhase(d=20), steps.TwoPhase(d=1000), steps.Anytime(d=20),
    steps.InverseSqrt(), steps.SmallBatch(), steps.FullStep(), steps.Scaled(steps.OpenLoop(), 0.3),
    steps.Scaled(steps.Scaled(steps.Decay(2, 8), 2.0), 3.0),
]  # fmt: skip


@pytest.mark.parametrize("step", RULES, ids=repr)
@pytest.mark.parametrize("budget", [{"max_iter": 90}, {"max_grads": 3000}], ids=repr)
def test_every_step_that_is_fixed_in_advance(step, budget, count):
    agree(*both(model(SPARSE), SETS["l1"], ESTIMATORS["saga sarah"], step, **budget))
    assert sum(count) > 80


@pytest.mark.parametrize("step", [steps.EpochOpenLoop(), steps.EpochHarmonic(), steps.InverseSqrt()], ids=repr)
@pytest.mark.parametrize("name", ["svrg", "svrg, doubling"])
def test_steps_that_go_by_epochs(step, name, count):
    agree(*both(model(SPARSE), SETS["simplex"], ESTIMATORS[name], step, max_iter=300))
    assert sum(count) > 200


@pytest.mark.parametrize("recipe", ["sarah-fw", "saga-sarah-fw", "negiar-sfw", "saga-fw", "momentum-sfw", "one-sample-sfw",
                                    "lu-freund-sfw", "svfw"])  # fmt: skip
@pytest.mark.parametrize("loss", [ex.Logistic(), ex.NonlinearLeastSquares()], ids=repr)
def test_the_named_methods_run_in_bursts_with_their_own_steps(recipe, loss, count):
    f = model(SPARSE, loss)
    fast, slow = (ex.minimize(f, ex.L1Ball(3.0), recipe, max_grads=20 * N, tol=0, bursts=fast) for fast in (True, False))
    agree(fast, slow)
    assert sum(count) > 0


@pytest.mark.parametrize("batch", [1, N - 1, N])
@pytest.mark.parametrize("name", ONE_EACH)
def test_smallest_and_largest_batches(name, batch, count):
    gradient = dataclasses.replace(ESTIMATORS[name], batch=batch)
    agree(*both(model(SPARSE), SETS["l1"], gradient, max_iter=60))
    assert sum(count) > 40


# large dimensions: the index


def wide_model(seed=0, n=80, d=3000, density=0.004):
    rng = np.random.default_rng(seed)
    A = sp.random_array((n, d), density=density, rng=rng, format="csr", data_sampler=rng.standard_normal)
    return ex.LinearModel(ex.Logistic(), A, np.where(rng.random(n) < 0.5, 1.0, -1.0))


WIDE = {
    "l1": ex.L1Ball(30.0),
    "weighted": ex.WeightedL1Ball(30.0, 1.0 + np.arange(3000) % 7),
    "simplex": ex.Simplex(30.0),
    "unit": ex.UnitSimplex(30.0),
}


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("where", WIDE)
def test_the_index_finds_what_a_look_at_each_coordinate_finds(name, where, monkeypatch):
    monkeypatch.setattr("extremal.run.bursts.run._worth_it", lambda *args: True)  # it would pay later only for some
    f, gradient = wide_model(), dataclasses.replace(ESTIMATORS[name], batch=2)
    method = ex.Method(gradient, step_of(gradient))
    setup = prepare("minimize", f, WIDE[where], method, None, 0, Budget(max_iter=800), in_bursts=True)
    assert setup.burst._blocks.size == 47  # 3000 / 64
    agree(*both(f, WIDE[where], gradient, max_iter=800, record=1.0))


def test_the_index_is_there_for_large_dimensions():
    sarah, saga = (ex.Method(g, steps.OpenLoop()) for g in (gradients.Sarah(1, 0.1), gradients.Saga(1)))
    many = ex.Method(gradients.Sarah(79, 0.1), steps.OpenLoop())  # batches that touch more than a third of all
    for d, method, blocks in ((400, sarah, 0), (3000, sarah, 47), (3000, saga, 0), (9000, saga, 141), (600, many, 0)):
        f = wide_model(d=d, density=12 / d)
        assert prepare("minimize", f, ex.L1Ball(1.0), method, None, 0, Budget(), in_bursts=True).burst._blocks.size == blocks


def test_ties_between_blocks_go_to_the_smallest_coordinate():
    """Columns in pairs that are equal, in other blocks and groups: the oracle has to take the first of each pair."""
    rng = np.random.default_rng(0)
    A = np.zeros((40, 9000))
    A[:, :8] = rng.standard_normal((40, 8))
    A[:, 5000:5008] = A[:, :8]
    f = ex.LinearModel(ex.Squared(), sp.csr_array(A), rng.standard_normal(40))
    for name in ("sarah", "saga", "storm", "saga sarah"):
        gradient = dataclasses.replace(ESTIMATORS[name], batch=1)
        fast, slow = both(f, ex.L1Ball(2.0), gradient, max_iter=500)
        agree(fast, slow)
        assert np.abs(fast.x[:8]).max() > 0
        assert not fast.x[8:].any()


def by_hand(kind, G, sigma, w):
    g = G[:, 1] + sigma * G[:, 0]
    scores = np.abs(g) if kind == codes.PEAK else np.abs(g) / w if kind == codes.WEIGHTED else -g
    return int(scores.argmax()), scores.max()


@pytest.mark.parametrize("kind", [codes.PEAK, codes.WEIGHTED, codes.LEAST])
@pytest.mark.parametrize("d", [64, 130, 9000])
def test_loose_bounds_and_ties_still_give_the_first_of_the_largest(kind, d):
    w = np.ones(d)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        two, at = bool(seed % 3), rng.choice(d, size=12, replace=False)
        G = np.zeros((d, 2))
        G[at, 0] = rng.choice([-2.0, -1.0, 1.0, 2.0], size=12)
        G[at, 1] = rng.choice([-1.0, 0.0, 1.0], size=12) if two else 0.0
        blocks = np.empty(-(-d // 64))
        groups = np.empty(-(-len(blocks) // 64))
        oracles.rebuild(kind, G, two, 1.0, w, blocks, groups)
        blocks += rng.choice([0.0, 1.0, 5.0], size=len(blocks), p=[0.98, 0.01, 0.01] if seed % 2 else [0.5, 0.25, 0.25])
        for Q in range(len(groups)):
            groups[Q] = blocks[64 * Q : 64 * Q + 64].max() + rng.choice([0.0, 3.0])
        assert oracles.best(kind, G, two, 1.0, w, blocks, groups) == by_hand(kind, G, 1.0, w)
        true = [by_hand(kind, G[64 * B : 64 * B + 64], 1.0, w[64 * B : 64 * B + 64])[1] for B in range(len(blocks))]
        assert (blocks >= true).all()
        assert all(groups[B // 64] >= blocks[B] for B in range(len(blocks)))


def test_bounds_stay_above_negative_scores_when_v_is_rescaled():
    G = np.zeros((200, 2))
    G[:, 0] = 1.0 + np.arange(200) % 7
    blocks, groups = np.empty(4), np.empty(1)
    oracles.rebuild(codes.LEAST, G, False, 1.0, np.zeros(1), blocks, groups)
    rescale(G, False, 1e-17, blocks, groups)
    assert (blocks >= -1e-17).all()
    assert (groups >= -1e-17).all()
    np.testing.assert_allclose(G[:, 0], 1e-17 * (1.0 + np.arange(200) % 7))


HALF, ALL = laws.PowerLaw(0.5, 1.0, 0.0), laws.PowerLaw(1.0, 1.0, 0.0)


@pytest.mark.parametrize("gradient", [gradients.Momentum(2, HALF), gradients.Storm(2, HALF),
    gradients.SagaSarah(2, 0.5), gradients.Sag(2),
                                      gradients.Momentum(2, ALL), gradients.SagaSarah(2, 1.0)], ids=repr)  # fmt: skip
def test_scales_that_would_underflow(gradient):
    """alpha and 1 - eta of one half: after some thousand steps nothing would be left of V and x but for rescaling."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((1500, 8))
    f = ex.LinearModel(ex.Logistic(), A, np.where(rng.random(1500) < 0.5, 1.0, -1.0))
    fast, slow = both(f, ex.L1Ball(3.0), gradient, steps.InverseSqrt(horizon=4), max_iter=2500, max_grads=10**9)
    agree(fast, slow)


def test_large_gradients_do_not_overflow_by_the_scale_of_v():
    rng = np.random.default_rng(0)
    f = ex.LinearModel(ex.Squared(), 1e140 * rng.standard_normal((60, 8)), 1e140 * rng.standard_normal(60))
    agree(*both(f, ex.L1Ball(1.0), gradients.Momentum(2, HALF), max_iter=300, record=None), tol=1e270)
    fast, slow = both(f, ex.L1Ball(1.0), gradients.Momentum(2, HALF), max_iter=300)
    np.testing.assert_allclose(fast.x, slow.x, rtol=0, atol=1e-9)


def test_the_simplex_with_0_stays_there_if_no_gradient_is_negative():
    A = np.abs(DENSE)
    A[:, 3] = 0.0  # a gradient of exactly 0 is not negative
    f = ex.LinearModel(ex.Squared(), A, -np.ones(N))
    fast, slow = both(f, ex.UnitSimplex(2.0), gradients.Sag(5), max_iter=40, x0=np.full(DIM, 0.01))
    agree(fast, slow)
    assert fast.x.max() < 0.01


def test_a_budget_that_fills_the_box_keeps_the_bounds():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        lower = rng.standard_normal(DIM)
        upper = lower + rng.random(DIM)
        C = ex.BudgetBox(lower, upper, float(upper.sum()))
        fast, slow = both(model(SPARSE), C, gradients.Sag(5), max_iter=20)
        agree(fast, slow)
        assert (fast.x <= upper + 1e-14).all()


# where bursts have no place


class MyLoss(ex.Squared):
    """A loss of the user's own."""


class MyBall(ex.L1Ball):
    """A set of the user's own."""


class MySchedule(steps.OpenLoop):
    """One that changes what bursts would ask."""

    def at(self, k, phase=None):
        return 0.5 if k < 10 else 2.0 / (k + 2)


class MyStep(steps.OpenLoop):
    """A rule of the user's own, on top of one that bursts know."""

    def eta(self, k, direction):
        return 0.5 / (k + 1)


class MyHarmonic(Scheduled):
    """A rule of the user's own that takes arrays of iterations."""

    def bind(self, plan):
        return self

    def at(self, k, phase=None):
        return 3.0 / (k + 3.0)


def made_in_bursts(f, C, method):
    return prepare("minimize", f, C, method, None, 0, Budget(max_iter=5), in_bursts=True).burst is not None


def test_other_parts_are_left_to_the_loop():
    f, C, sarah = model(SPARSE), ex.L1Ball(3.0), gradients.Sarah(5, 0.1)
    assert made_in_bursts(f, C, ex.Method(sarah, steps.OpenLoop()))
    assert not made_in_bursts(model(SPARSE, MyLoss()), C, ex.Method(sarah, steps.OpenLoop()))
    assert not made_in_bursts(f, MyBall(3.0), ex.Method(sarah, steps.OpenLoop()))
    assert not made_in_bursts(f, ex.L1Ball(3.0, centre=LOWER), ex.Method(sarah, steps.OpenLoop()))
    assert not made_in_bursts(f, ex.L2Ball(3.0), ex.Method(sarah, steps.OpenLoop()))
    assert not made_in_bursts(f, C, ex.Method(sarah, MyStep()))
    assert not made_in_bursts(f, C, ex.Method(sarah, MySchedule()))
    assert not made_in_bursts(f, C, ex.Method(sarah, steps.Scaled(steps.LineSearch(), 0.5)))
    assert not made_in_bursts(f, C, ex.Method(gradients.Full(), steps.OpenLoop()))
    assert not made_in_bursts(f, C, ex.Method(gradients.Svrg(laws.PowerLaw(), 10), steps.OpenLoop()))
    assert not made_in_bursts(f, C, ex.Method(sarah, steps.OpenLoop(), moves.Pairwise()))
    several = ex.LinearModel(ex.MultiTask(ex.Squared(), 2), DENSE, np.ones((N, 2)))
    assert not made_in_bursts(several, ex.L1Ball(3.0), ex.Method(sarah, steps.OpenLoop()))


def test_a_schedule_of_ones_own_runs_in_bursts(count):
    f, C, gradient = model(SPARSE), ex.L1Ball(3.0), gradients.Sarah(5, 0.1)
    assert made_in_bursts(f, C, ex.Method(gradient, MyHarmonic()))
    agree(*both(f, C, gradient, MyHarmonic(), max_iter=500))
    assert sum(count) > 400


@pytest.mark.parametrize("rule", [MyStep(), MySchedule()], ids=repr)
def test_a_rule_of_ones_own_is_obeyed(rule):
    fast, slow = both(model(SPARSE), ex.L1Ball(3.0), gradients.Sarah(5, 0.1), rule, max_iter=50)
    np.testing.assert_array_equal(fast.x, slow.x)


def test_steps_outside_of_0_1_are_refused(monkeypatch):
    monkeypatch.setattr(steps.OpenLoop, "at", lambda self, k, phase=None: 3.0 / (k + 2.0))
    with pytest.raises(ex.InputError, match=r"eta = .*1\.5.* at iteration 0; it must be a number in \[0, 1\]"):
        ex.minimize(model(SPARSE), ex.L1Ball(1.0), ex.Method(gradients.Sag(5), steps.OpenLoop()), max_iter=1)


def test_iterate_and_callbacks_see_every_iteration():
    f, C, seen = model(SPARSE), ex.L1Ball(3.0), []
    method = ex.Method(gradients.SagaSarah(5, 0.05), steps.OpenLoop())
    ex.minimize(f, C, method, max_iter=30, tol=0, callback=lambda state: seen.append(state.k))
    assert seen == [*range(30)]
    stopped = ex.minimize(f, C, method, max_iter=300, callback=lambda state: state.k == 17)
    assert (stopped.status, stopped.n_iter) == (ex.Status.CALLBACK, 17)


def test_a_callback_may_be_content_with_what_is_between_bursts(count):
    f, seen = model(SPARSE), []
    method = ex.Method(gradients.Sag(1), steps.OpenLoop())
    options = {"max_iter": 20_000, "tol": 0, "atol": 0, "bursts": True}
    r = ex.minimize(f, ex.L1Ball(3.0), method, callback=lambda state: seen.append(state.k), **options)
    assert seen[:3] == [0, 1199, 2399]  # a certificate is due after 10 passes, and 10 passes later
    assert 1000 < max(np.diff(seen)) <= 16384  # so many batches are drawn at once
    free = ex.minimize(f, ex.L1Ball(3.0), method, **options)
    np.testing.assert_array_equal(r.x, free.x)
    stopped = ex.minimize(f, ex.L1Ball(3.0), method, callback=lambda state: state.k > 5000, **options)
    assert (stopped.status, stopped.n_iter) == (ex.Status.CALLBACK, min(k for k in seen if k > 5000))


@pytest.mark.parametrize("bursts", [1, "yes", 0.0])
def test_bursts_are_wanted_or_not(bursts):
    with pytest.raises(ex.InputError, match=r"minimize\(bursts="):
        ex.minimize(model(SPARSE), ex.L1Ball(3.0), bursts=bursts)


# the driver


@pytest.mark.parametrize("name", ESTIMATORS)
def test_who_looks_changes_no_bit(name):
    f, method = model(SPARSE), ex.Method(ESTIMATORS[name], step_of(ESTIMATORS[name]))
    options = {"max_iter": 400, "tol": 0, "atol": 0}
    free = ex.minimize(f, SETS["l1"], method, **options)
    for record in (0.04, 0.5, 3.0):
        np.testing.assert_array_equal(ex.minimize(f, SETS["l1"], method, record=record, **options).x, free.x)


def test_recording_and_certificates_come_at_the_same_iterations(count):
    f = model(SPARSE)
    fast, slow = both(f, SETS["l1"], ESTIMATORS["saga sarah"], max_grads=100 * N, record=0.7, tol=1e-12)
    agree(fast, slow)
    np.testing.assert_allclose(fast.trace.gap, slow.trace.gap, rtol=0, atol=1e-9)
    assert len(fast.trace) > 100
    free, _ = both(f, SETS["l1"], ESTIMATORS["saga sarah"], max_grads=100 * N)
    np.testing.assert_array_equal(free.x, fast.x)  # whoever looks changes nothing


def test_a_tolerance_stops_both_at_the_same_iterate():
    fast, slow = both(model(SPARSE), SETS["l1"], ESTIMATORS["sag"], tol=1e-2)
    agree(fast, slow)
    assert fast.status == ex.Status.GAP
    assert fast.gap <= 1e-2 * fast.value + 1e-10


@pytest.mark.parametrize("name", ONE_EACH)
def test_results_are_certified_at_the_returned_point(name):
    f, C = model(SPARSE), SETS["l1"].on(DIM)
    r, _ = both(f, C, ESTIMATORS[name], max_grads=30 * N)
    g = f.grad(r.x)
    assert r.value == pytest.approx(f.value(r.x), abs=1e-14)
    assert r.gap == pytest.approx(g @ r.x + 3.0 * np.abs(g).max(), abs=1e-12)


def test_the_caller_s_arrays_stay_as_they_are():
    f, x0 = model(SPARSE), np.full(DIM, 0.1)
    before = [a.copy() for a in (f.data._A.data, f.y, x0)]
    states = {}
    for name in ONE_EACH:
        fast, slow = both(f, SETS["l1"], ESTIMATORS[name], max_iter=100, x0=x0)
        agree(fast, slow)
        states[name] = fast.x
    for a, b in zip(before, (f.data._A.data, f.y, x0), strict=True):
        np.testing.assert_array_equal(a, b)
    assert len({tuple(x) for x in states.values()}) == len(ONE_EACH)


def test_time_is_asked_for_between_calls():
    method = ex.Method(gradients.Sag(1), steps.OpenLoop())
    setup = prepare("minimize", model(SPARSE), SETS["l1"], method, None, 0, Budget(max_iter=10**6), in_bursts=True)
    estimate = setup.method.gradient.init(setup.f, setup.point.x, setup.sampler)
    asked = []
    made, _, _ = setup.burst.run(0, setup.point, estimate, bursts.Reach(over=lambda: asked.append(1) or len(asked) == 2))
    assert asked == [1, 1]
    assert made == 2 * 16384 - 1  # the first batch was drawn for the start


def test_a_compiled_call_does_not_take_long():
    """Where an iteration costs O(d), a call is shorter."""
    f = wide_model(d=200_000, density=5e-5)
    for C, least, most in ((ex.L1Ball(1.0), 10**5, 10**7), (ex.Box(-1, 1), 49, 50), (ex.CappedSimplex(0.1), 49, 50)):
        burst = prepare("minimize", f, C, ex.Method(gradients.Sag(1), steps.OpenLoop()), None, 0, Budget(), in_bursts=True).burst
        assert least <= burst._longest <= most
    dense = ex.LinearModel(ex.Squared(), np.ones((10, 5000)), np.ones(10))
    burst = prepare(
        "minimize", dense, ex.L1Ball(1.0), ex.Method(gradients.Sag(5), steps.OpenLoop()), None, 0, Budget(), in_bursts=True
    ).burst
    assert burst._longest == 10**7 // 55_000


def test_ctrl_c_counts_what_was_made(monkeypatch):
    f, calls = model(SPARSE), []
    call = bursts.Burst._call

    def interrupted(self, *args):
        if len(calls) == 3:
            raise KeyboardInterrupt
        calls.append(1)
        call(self, *args)

    monkeypatch.setattr(bursts.Burst, "_call", interrupted)
    r = ex.minimize(f, SETS["l1"], ex.Method(gradients.Sag(5), steps.OpenLoop()), tol=0, atol=0, max_iter=10**9)
    assert r.status == ex.Status.INTERRUPTED
    assert r.calls.lmos == r.n_iter > 0
    assert r.calls.grads == 5 * (r.n_iter + 1)


def test_time_limits_stop_a_burst(hands):
    f, hands.tick = model(SPARSE), 1 / 64
    r = ex.minimize(f, SETS["l1"], ex.Method(gradients.Sag(1), steps.OpenLoop()), tol=0, atol=0, max_seconds=1.0)
    assert r.status == ex.Status.MAX_SECONDS
    assert r.n_iter > hands.looks  # many iterations for each look at the clock
    assert hands.looks < 3 * 64  # some while it is paused


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("name", ["sag", "sarah"])
def test_ctrl_c_gives_the_best_certified_point(name, monkeypatch):
    f, method = model(SPARSE), ex.Method(ESTIMATORS[name], steps.OpenLoop())
    ex.minimize(f, SETS["l1"], method, max_iter=100)  # compiled: a signal that meets the compiler may be lost there
    call, calls = bursts.Burst._call, itertools.count(1)

    def counted(self, *args):
        if next(calls) == 3:  # while this one runs, or soon after
            threading.Timer(0.01, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        return call(self, *args)

    monkeypatch.setattr(bursts.Burst, "_call", counted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background may ignore it
    try:
        r = ex.minimize(f, SETS["l1"], method, tol=0, atol=0, max_iter=10**9)
    finally:
        signal.signal(signal.SIGINT, before)
    assert r.status == ex.Status.INTERRUPTED
    assert r.n_iter > 100
    assert r.gap == pytest.approx(f.grad(r.x) @ r.x + 3.0 * np.abs(f.grad(r.x)).max(), abs=1e-12)
    assert r.calls.lmos == pytest.approx(r.n_iter, rel=0.5)


def test_numbers_that_are_not_finite_end_a_burst_with_the_last_good_point():
    A = np.vstack([SPARSE.toarray(), np.full((1, DIM), 1e200)])
    f = ex.LinearModel(ex.Squared(), A, np.append(LABELS, 1e250))
    for fast in (True, False):
        with np.errstate(all="ignore"), pytest.raises(ex.NonFiniteError):
            ex.minimize(f, ex.L1Ball(1e100), ex.Method(gradients.Sag(5), steps.FullStep()), max_iter=5000, tol=0, bursts=fast)


# contiguous blocks of shuffled rows


@pytest.mark.parametrize("name", ONE_EACH)
@pytest.mark.parametrize("kind", DATA)
def test_blocks_of_consecutive_rows(name, kind, count):
    f = model(DATA[kind]).shuffled(seed=3)
    agree(*both(f, SETS["l1"], ESTIMATORS[name], max_iter=400))
    assert sum(count) > 300


def test_a_block_goes_around_the_end_and_every_row_comes_as_often():
    sampler = ex.objectives.Sampler(10, seed=0, blocks=True)
    draws = np.array([sampler.rows(k, 4) for k in range(4000)])
    assert all(((row - row[0]) % 10 == np.arange(4)).all() for row in draws)
    assert any(row[0] > row[-1] for row in draws)
    often = np.bincount(draws.ravel(), minlength=10)
    assert np.abs(often / often.mean() - 1).max() < 0.1


# without compilation, and in several threads


def test_plain_python_does_the_same():
    """NUMBA_DISABLE_JIT=1: the kernels as Python functions."""
    code = (
        "import numpy as np, scipy.sparse as sp, extremal as ex\n"
        "rng = np.random.default_rng(0)\n"
        "A = sp.random_array((30, 600), density=0.02, rng=rng, format='csr')\n"
        "f = ex.LinearModel(ex.Logistic(), A, np.where(rng.random(30) < 0.5, 1.0, -1.0))\n"
        "import extremal.gradients as gr\n"
        "for g in (gr.Sarah(2, 0.1), gr.Saga(2), gr.SagaSarah(2, 0.1), gr.Sag(2), gr.Momentum(2), gr.Svrg(2, 9)):\n"
        "    for C in (ex.L1Ball(3.0), ex.Box(-1, 1), ex.CappedSimplex(0.1)):\n"
        "        m = ex.Method(g, ex.steps.OpenLoop())\n"
        "        x, y = (ex.minimize(f, C, m, max_iter=40, tol=0, bursts=b).x for b in (True, False))\n"
        "        assert abs(x - y).max() < 1e-9, (g, C)\n"
        "import numba; assert numba.config.DISABLE_JIT\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"NUMBA_DISABLE_JIT": "1"}, timeout=1800)


def test_runs_in_several_threads_do_not_meet():
    f, method, answers = model(SPARSE), ex.Method(gradients.SagaSarah(5, 0.05), steps.OpenLoop()), {}

    def solve(seed):
        answers[seed] = ex.minimize(f, SETS["l1"], method, max_iter=3000, tol=0, seed=seed).x

    threads = [threading.Thread(target=solve, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    together = dict(answers)
    for seed in range(4):
        solve(seed)
        np.testing.assert_array_equal(answers[seed], together[seed])
    assert all((a != b).any() for a, b in itertools.combinations(together.values(), 2))
