"""Variance-reduced sliding: what it counts and costs, what it hands back, and how it starts and ends."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from cases import DIM, N, model, separable
from sliding_problems import BOTH_FORMS, ESTIMATORS, EVERY_ESTIMATOR, POLYTOPE, completion, outputs, rng, run, strong

import extremal as ex
from extremal.methods.method import Budget


@dataclass(frozen=True)
class Ball(ex.L1Ball):
    """An l1 ball that counts."""

    def lmo(self, g):
        SEEN.append("lmo")
        return super().lmo(g)


SEEN: list[str] = []


@EVERY_ESTIMATOR
@BOTH_FORMS
@pytest.mark.parametrize("known", [True, False])
def test_counts_are_what_reached_the_objective_and_the_set(gradient, accelerated, known):
    inner, grads = separable(ex.Logistic()), []

    def grad(x, idx):
        grads.append(len(idx))
        return inner._grad(x, idx)

    f = ex.Separable(N, DIM, grad=grad, value=inner._value, convex=True, smoothness=inner.smoothness if known else None)
    SEEN.clear()
    r = run(f, Ball(2.0), ex.VRSliding(gradient, batch=5, accelerated=accelerated, oracle="lmo"), 30)
    assert r.calls.total_grads == sum(grads)
    assert r.calls.lmos + r.calls.certificate_lmos == len(SEEN)
    assert r.calls.lmos >= r.n_iter


COSTS = {"saga": lambda k, b: b, "saga-sarah": lambda k, b: 2 * b, "svrg": lambda k, b: N if k % (N // b + 1) == 0 else 2 * b}


@pytest.mark.parametrize("gradient", COSTS)
@BOTH_FORMS
def test_costs_are_those_of_the_docstring(gradient, accelerated):
    due, b = 0, 5
    method = ex.VRSliding(gradient, batch=b, accelerated=accelerated)
    for state in itertools.islice(ex.iterate(model(ex.Logistic()), ex.L1Ball(2.0), method=method), 50):
        due += COSTS[gradient](state.k, b) if state.k else N
        assert (state.calls.grads, state.calls.lmos) == (due, 0)
        if gradient == "svrg":
            assert state.exact == (state.k % (N // b + 1) == 0)  # the snapshot is the iterate, also if accelerated


def test_tests_of_the_curvature_cost_what_they_say():
    """Two gradients of each of its rows, at the steps that are due."""
    f, b = separable(ex.Logistic()), 5
    probe = ex.VRSliding("saga", batch=b).prepare(f, ex.L1Ball(2.0).on(DIM), Budget()).move.beta
    assert (probe.batch, probe.every) == (b, N // (4 * b))
    rows = 10  # of a test, at least
    extra = []
    for state in itertools.islice(ex.iterate(f, ex.L1Ball(2.0), method=ex.VRSliding("saga", batch=b, oracle="project")), 40):
        extra.append(state.calls.grads - N - b * state.k)
    made = np.diff(extra) / (2 * rows)
    assert (made == np.round(made)).all()
    assert all((made[k] >= 1) == probe.due(k) for k in range(len(made)))


def test_atoms_are_handed_back_and_taken_up_again():
    f, C = strong(), ex.Simplex()
    method = ex.VRSliding(accelerated=False, oracle="lmo")
    r = run(f, C, method, 20)
    np.testing.assert_allclose(r.atoms.x, r.x, atol=1e-14)
    again = run(f, C, method, 3, x0=r.atoms)
    assert again.value <= r.value + 1e-9
    np.testing.assert_allclose(again.atoms.x, again.x, atol=1e-14)
    assert (
        run(f, C, ex.VRSliding(accelerated=True, oracle="lmo"), 3, x0=r.atoms).atoms is None
    )  # those of z are not the iterate's
    assert run(f, C, ex.VRSliding(accelerated=False), 3, x0=r.atoms).atoms is None  # a projection keeps none


@pytest.mark.parametrize("step", [ex.steps.LineSearch(), ex.steps.OpenLoop()], ids=repr)
def test_other_steps_keep_atoms_and_iterate_together(step):
    f, C = strong(), ex.L1Ball(1.5)
    for state in itertools.islice(
        ex.iterate(f, C, method=ex.Method(ex.gradients.Saga(14), step, ex.moves.WarmSliding(beta=8.0))), 1, 30
    ):
        np.testing.assert_allclose(state.point.active.x, state.x, atol=1e-13)
        assert C.contains(state.x, 1e-12)


def test_the_estimator_follows_the_memory():
    small, C = strong(), ex.L1Ball(1.0)
    assert isinstance(ex.VRSliding().prepare(small, C.on(DIM), Budget()).gradient, ex.gradients.Saga)
    call = lambda x, idx: np.zeros((len(idx), 2**14))  # noqa: E731
    large = ex.Separable(2**14, 2**14, grad=call, value=call, convex=True, smoothness=1.0)
    method = ex.VRSliding().prepare(large, C.on(2**14), Budget())
    assert isinstance(method.gradient, ex.gradients.Svrg)
    assert method.gradient.batch == math.ceil(math.sqrt(2**14))


def test_the_oracle_follows_the_set():
    f, wide = strong(), outputs()
    onto = lambda f, C, oracle="auto": ex.VRSliding(oracle=oracle).prepare(f, C.on(f.shape), Budget()).move.onto  # noqa: E731
    assert onto(f, ex.L1Ball(1.0)) == ex.L1Ball(1.0, shape=DIM)
    assert onto(f, ex.L1Ball(1.0), "lmo") is None
    assert onto(f, POLYTOPE) is None
    assert onto(wide, ex.NuclearBall(1.0)) is not None  # 5 x 3
    A = sp.random_array((4, 200), density=0.1, rng=rng())
    tall = ex.LinearModel(ex.MultiTask(ex.Squared(), 60), A, np.zeros((4, 60)))
    assert onto(tall, ex.NuclearBall(1.0)) is None
    assert onto(tall, ex.NuclearBall(1.0), "project") is not None
    assert onto(completion(), ex.NuclearBall(1.0)) is None


def test_degenerate_problems():
    """Data that are all zero, and a set that is a point."""
    flat = ex.LinearModel(ex.Squared(), np.zeros((5, 2)), np.arange(5.0))
    point = ex.LinearModel(ex.Squared(), [[2.0], [1.0], [0.5]], [1.0, 3.0, -1.0])
    one = ex.LinearModel(ex.Squared(), [[2.0, 1.0]], [1.0])
    line = ex.Separable(4, 2, grad=lambda x, i: np.ones((len(i), 2)), value=lambda x, i: np.full(len(i), x.sum()), convex=True)
    for gradient, accelerated, oracle in itertools.product(ESTIMATORS, (False, True), ("lmo", "project")):
        method = ex.VRSliding(gradient, batch=1, accelerated=accelerated, oracle=oracle)
        for f, C in (
            (flat, ex.L1Ball(2.0)),
            (flat, ex.L2Ball(1e-200)),
            (point, ex.Simplex()),
            (one, ex.Simplex()),
            (line, ex.L1Ball(2.0)),
        ):
            *_, state = itertools.islice(ex.iterate(f, C, method=method), 12)
            assert C.contains(state.x, 1e-12)
        assert f.value(state.x) <= -1.5


def test_a_gradient_that_is_not_finite_ends_the_run():
    calls = itertools.count()

    def grad(x, idx):
        return np.full((len(idx), 3), np.nan if next(calls) > 20 else 1.0)

    f = ex.Separable(50, 3, grad=grad, value=lambda x, idx: np.full(len(idx), x.sum()), convex=True, smoothness=1.0)
    for oracle in ("lmo", "project"):
        calls = itertools.count()
        r = ex.minimize(f, ex.L1Ball(1.0), ex.VRSliding(oracle=oracle), tol=0, atol=0, max_iter=50)
        assert r.status is ex.Status.NON_FINITE
        assert np.isfinite(r.x).all()
