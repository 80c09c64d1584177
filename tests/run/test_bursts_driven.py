"""Bursts and the driver: where they have no place, who looks on, records, certificates, clocks and Ctrl-C."""

from __future__ import annotations

import itertools
import os
import signal
import threading

import numpy as np
import pytest
from burst_problems import (
    DENSE,
    DIM,
    ESTIMATORS,
    LABELS,
    LOWER,
    ONE_EACH,
    SETS,
    SPARSE,
    N,
    agree,
    both,
    model,
    step_of,
    wide_model,
)

import extremal as ex
from extremal import gradients, laws, moves, steps
from extremal.methods.method import Budget
from extremal.run import bursts
from extremal.run.loop import prepare
from extremal.steps import Scheduled

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
    free = next(both(f, SETS["l1"], ESTIMATORS["saga sarah"], max_grads=100 * N))
    np.testing.assert_array_equal(free.x, fast.x)  # whoever looks changes nothing


def test_a_tolerance_stops_both_at_the_same_iterate():
    fast, slow = both(model(SPARSE), SETS["l1"], ESTIMATORS["sag"], tol=1e-2)
    agree(fast, slow)
    assert fast.status == ex.Status.GAP
    assert fast.gap <= 1e-2 * fast.value + 1e-10


@pytest.mark.parametrize("name", ONE_EACH)
def test_results_are_certified_at_the_returned_point(name):
    f, C = model(SPARSE), SETS["l1"].on(DIM)
    r = next(both(f, C, ESTIMATORS[name], max_grads=30 * N))
    g = f.grad(r.x)
    assert r.value == pytest.approx(f.value(r.x), abs=1e-14)
    assert r.gap == pytest.approx(g @ r.x + 3.0 * np.abs(g).max(), abs=1e-12)


def test_the_caller_s_arrays_stay_as_they_are():
    f, x0 = model(SPARSE), np.full(DIM, 0.1)
    before = [a.copy() for a in (f.data.entries[2], f.y, x0)]
    states = {}
    for name in ONE_EACH:
        fast, slow = both(f, SETS["l1"], ESTIMATORS[name], max_iter=100, x0=x0)
        agree(fast, slow)
        states[name] = fast.x
    for a, b in zip(before, (f.data.entries[2], f.y, x0), strict=True):
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
