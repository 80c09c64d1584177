"""Step rules: in [0, 1], as their formulas say, and monotone where they promise it."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
from cases import DIM, LOSSES, MATRIX, SETS, STEPS, VERTICES, N, full, model, separable, targets

import extremal as ex
from extremal.gradients.base import InEpochs, Phase
from extremal.methods.method import Budget
from extremal.steps.base import Direction, Plan

EVERY_STEP = pytest.mark.parametrize("step", STEPS, ids=repr)
X = np.linspace(-0.5, 1.0, DIM)


@dataclass(frozen=True)
class Estimated(InEpochs):
    g: np.ndarray
    exact: bool
    phase: Phase | None


def direction(f, s=VERTICES[0], g=None, phase=Phase(2, 1, 4)) -> Direction:  # noqa: B008
    return Direction(f, X, Estimated(f.grad(X) if g is None else g, g is None, phase), s)


def values(f, C, method, count: int = 60) -> np.ndarray:
    return np.array([f.value(state.x) for state in itertools.islice(ex.iterate(f, C, method=method), count)])


@EVERY_STEP
@pytest.mark.parametrize("horizon", [None, 0, 1, 2, 7, 1000])
@pytest.mark.parametrize(("d", "c"), [(1.0, 1.0), (2.0, 0.1), (40.5, 0.5)])
def test_steps_are_in_the_unit_interval(step, horizon, d, c):
    rule, f = step.bind(Plan(horizon, d, c, m=d, epochs=True)), model(ex.Logistic())
    uphill = -f.grad(X)  # a noisy estimate may point the wrong way
    for k in (0, 1, 2, 3, 10, 499, 500, 501, 2000, 10**9):
        phase = Phase(k // 3, k // 2, k // 2 + 1 + k % 5)
        for s, g in ((VERTICES[0], None), (VERTICES[1], None), (VERTICES[0], uphill), (ex.points.DenseVertex(X), None)):
            assert 0.0 <= rule.eta(k, direction(f, s, g, phase)) <= 1.0


@EVERY_STEP
def test_binding_twice_changes_nothing(step):
    once = step.bind(Plan(100, 7.0, 0.5, 7.0, epochs=True))
    assert once.bind(Plan(3, 2.0, 0.1, 2.0, epochs=True)) == once


@pytest.mark.parametrize("K", [1, 2, 5, 9, 10, 11, 100, 101])
@pytest.mark.parametrize("d", [1.0, 2.5, 10.0])
def test_two_phase_formula(K, d):
    rule, k0 = ex.steps.TwoPhase(d=d, horizon=K), math.ceil(K / 2)
    for k in range(K + 3):
        wanted = 1 / d if K <= d or k < k0 else 2 / (2 * d + k - k0)
        assert rule.eta(k, None) == pytest.approx(wanted, rel=1e-15)
    assert rule.eta(k0, None) == rule.eta(0, None)  # the second phase takes up where the first one ends


def test_two_phase_takes_what_is_open_from_the_plan():
    plan = Plan(horizon=100, d=7.0)
    assert ex.steps.TwoPhase().bind(plan) == ex.steps.TwoPhase(7.0, 100)
    assert ex.steps.TwoPhase(d=3.0).bind(plan) == ex.steps.TwoPhase(3.0, 100)
    assert ex.steps.TwoPhase(horizon=9).bind(plan) == ex.steps.TwoPhase(7.0, 9)
    assert ex.steps.TwoPhase().bind(Plan(d=7.0)) == ex.steps.Anytime(7.0)


@pytest.mark.parametrize("d", [1.0, 9.5])
def test_anytime_and_open_loop_formulas(d):
    for k in (0, 1, 17, 1000):
        assert ex.steps.Anytime().bind(Plan(d=d)).eta(k, None) == pytest.approx(2 / (2 * d + k), rel=1e-15)
        assert ex.steps.OpenLoop().bind(Plan()).eta(k, None) == pytest.approx(2 / (k + 2), rel=1e-15)
    assert ex.steps.Anytime(1.0).eta(5, None) == ex.steps.OpenLoop().eta(5, None)


@pytest.mark.parametrize(("scale", "shift", "power"), [(2, 8, 1), (1, 1, 0.5), (3, 3, 1), (5, 2, 1)])
def test_decay_formula(scale, shift, power):
    for k in (0, 1, 17, 1000):
        assert ex.steps.Decay(scale, shift, power).eta(k, None) == pytest.approx(
            min(1.0, scale / (k + shift) ** power), rel=1e-15
        )
    assert ex.steps.FullStep().eta(3, None) == 1.0


@pytest.mark.parametrize("step", [ex.steps.EpochOpenLoop(), ex.steps.EpochHarmonic()], ids=repr)
def test_steps_that_go_by_epochs(step):
    """2/(k + 1) and 2/(K_t + k) at k = 1, 2, ... of an epoch of K_t, whatever the iteration; refused without epochs."""
    f = model(ex.Logistic())
    for k, length in ((1, 1), (1, 4), (3, 4), (9, 16)):
        wanted = 2 / (k + 1) if isinstance(step, ex.steps.EpochOpenLoop) else 2 / (length + k)
        where = direction(f, phase=Phase(5, k - 1, length))
        assert step.bind(Plan(epochs=True)).eta(777, where) == pytest.approx(wanted, rel=1e-15)
    with pytest.raises(ex.InputError, match=rf"{type(step).__name__}\(\) goes by epochs.* none; Svrg and Spider have"):
        step.bind(Plan(100, 7.0, 0.5))
    for gradient in (ex.gradients.Full(), ex.gradients.MiniBatch(5), ex.gradients.Sarah(5, 0.1)):
        with pytest.raises(ex.InputError, match="goes by epochs"):
            ex.minimize(f, ex.L1Ball(1.0), method=ex.Method(gradient, step), max_iter=1)


@pytest.mark.parametrize("m", [1.0, 12.0, 7.5])
def test_lu_freund_formula(m):
    for t in (0, 1, 9, 5000):
        wanted = 2 * (2 * m + t) / ((t + 1) * (4 * m + t))
        assert ex.steps.LuFreundStep().bind(Plan(m=m)).eta(t, None) == pytest.approx(wanted, rel=1e-14)
        assert ex.steps.LuFreundStep(m=m).bind(Plan(m=99.0)).eta(t, None) == pytest.approx(wanted, rel=1e-14)


def test_inverse_square_root_formula():
    assert ex.steps.InverseSqrt().bind(Plan(horizon=400)).eta(3, None) == pytest.approx(1 / 20)
    assert ex.steps.InverseSqrt(c=0.5, horizon=100).bind(Plan(horizon=400)).eta(3, None) == pytest.approx(1 / 20)
    assert ex.steps.InverseSqrt().bind(Plan()).eta(15, None) == pytest.approx(1 / 4)
    assert ex.steps.InverseSqrt(power=2 / 3).bind(Plan(horizon=1000)).eta(3, None) == pytest.approx(1 / 100)
    assert ex.steps.InverseSqrt(power=2 / 3).bind(Plan()).eta(26, None) == pytest.approx(1 / 9)


@pytest.mark.parametrize("b", [1, 5, 8, N])
def test_small_batch_takes_c_from_the_estimator(b):
    """Methods.md 5.1: (p b / (1 - p))^(1/4) for Sarah, min(1, b / sqrt n)^(1/2) for Saga Sarah."""
    f, budget, p = model(ex.NonlinearLeastSquares()), Budget(max_iter=100), 2 * b / (N + 2 * b)
    for method, c in (
        (ex.SarahFW(batch=b, step=ex.steps.SmallBatch()), min(1.0, (p * b / (1 - p)) ** 0.25)),
        (ex.SagaSarahFW(batch=b, step=ex.steps.SmallBatch()), min(1.0, b / math.sqrt(N)) ** 0.5),
    ):
        assert method.prepare(f, ex.L1Ball(1.0), budget).step.eta(0, None) == pytest.approx(c / 10)


@pytest.mark.parametrize(
    "rule",
    [
        ex.steps.TwoPhase(),
        ex.steps.TwoPhase(d=3.0),
        ex.steps.TwoPhase(horizon=5),
        ex.steps.Anytime(),
        ex.steps.SmallBatch(),
        ex.steps.LuFreundStep(),
    ],
    ids=repr,
)
def test_a_rule_that_is_not_bound_says_so(rule):
    with pytest.raises(ex.InputError, match=rf"{type(rule).__name__}.* is not bound"):
        rule.eta(0, None)


@pytest.mark.parametrize("d", [0.5, 0, -1.0, math.nan, math.inf, "a", True])
def test_rules_refuse_steps_outside_the_unit_interval(d):
    for rule in (ex.steps.TwoPhase, ex.steps.Anytime):
        with pytest.raises(ex.InputError, match=rf"`{rule.__name__}\(d=\.\.\.\)`"):
            rule(d=d)


@pytest.mark.parametrize("rule", [ex.steps.TwoPhase, ex.steps.InverseSqrt, ex.steps.SmallBatch])
@pytest.mark.parametrize("horizon", [-1, 2.5, "a", True])
def test_rules_refuse_a_horizon_that_is_no_number_of_steps(rule, horizon):
    with pytest.raises(ex.InputError, match=rf"`{rule.__name__}\(horizon=\.\.\.\)`"):
        rule(horizon=horizon)


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda v: ex.steps.InverseSqrt(c=v), "c"),
        (lambda v: ex.steps.ShortStep(L=v), "L"),
        (lambda v: ex.steps.LineSearch(tol=v), "tol"),
        (lambda v: ex.steps.Decay(v, 2), "scale"),
        (lambda v: ex.steps.Decay(2, v), "shift"),
        (lambda v: ex.steps.Decay(2, 2, v), "power"),
        (lambda v: ex.steps.InverseSqrt(power=v), "power"),
        (lambda v: ex.steps.LuFreundStep(m=v), "m"),
    ],
)
@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, "a", True])
def test_rules_refuse_bad_constants(make, name, value):
    with pytest.raises(ex.InputError, match=rf"\({name}=\.\.\.\)`"):
        make(value)


@pytest.mark.parametrize("s", VERTICES, ids=lambda v: type(v).__name__)
@pytest.mark.parametrize("kind", ["dense", "csr", "separable"])
def test_line_search_is_exact_on_a_quadratic(kind, s):
    f = separable(ex.Squared()) if kind == "separable" else model(ex.Squared(), kind)
    for scale in (1.0, 0.05, 30.0):  # a step inside, one cut at 1, a short one
        v = ex.points.DenseVertex(X + scale * (s.to_array() - X))
        to = v.to_array() - X
        curve = float(((MATRIX @ to) ** 2).mean())
        best = -float((MATRIX @ to) @ (MATRIX @ X - targets(ex.Squared()))) / N / curve
        assert ex.steps.LineSearch().eta(0, direction(f, v)) == pytest.approx(min(1.0, max(0.0, best)), abs=1e-9)


def test_line_search_tolerance_is_that_of_the_step():
    f, v = model(ex.Logistic()), VERTICES[1]
    fine, coarse = ex.steps.LineSearch().eta(0, direction(f, v)), ex.steps.LineSearch(tol=1e-2).eta(0, direction(f, v))
    assert 0 < abs(fine - coarse) <= 1e-2


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("C", SETS, ids=repr)
def test_f_never_rises_with_line_search_or_short_step(loss, C):
    f = model(loss)
    noisy = ex.gradients.Sarah(batch=1, p=0.1)  # the line search asks f itself, so that noise does no harm
    for method in (
        ex.FrankWolfe(step=ex.steps.LineSearch()),
        ex.FrankWolfe(step=ex.steps.ShortStep()),
        ex.Method(gradient=noisy, step=ex.steps.LineSearch()),
    ):
        path = values(f, C, method)
        assert (np.diff(path) <= 1e-12).all()
        assert path[-1] < path[0]


@pytest.mark.parametrize("step", [ex.steps.LineSearch(), ex.steps.ShortStep()], ids=repr)
def test_monotone_steps_on_a_separable_sum(step):
    for loss in LOSSES:
        path = values(separable(loss), ex.L2Ball(1.5), ex.FrankWolfe(step=step), 30)
        assert (np.diff(path) <= 1e-12).all()


def test_line_search_passes_over_a_stationary_point_that_is_worse():
    """The slope (t - 0.1) (t - 0.6) (t - 0.95) vanishes thrice; a root finder comes upon the last, where f is above f(0)."""
    slope = np.polynomial.Polynomial.fromroots([0.1, 0.6, 0.95])
    f = ex.Separable(1, 1, grad=lambda x, idx: slope(x)[None], value=lambda x, idx: slope.integ()(x))
    where = Direction(f, np.zeros(1), Estimated(f.grad(np.zeros(1)), True, None), ex.points.DenseVertex(np.ones(1)))
    eta, line = ex.steps.LineSearch().eta(0, where), where.segment()
    assert line.value(0.95) > line.value(0.0)
    assert 0 < eta < 1
    assert line.value(eta) < line.value(0.0)


def test_short_step_formula():
    f, L = model(ex.Squared()), 3.0
    for s in VERTICES:
        to, g = s.to_array() - X, full(ex.Squared(), X)[1]
        wanted = min(1.0, max(0.0, -float(g @ to) / (L * float(to @ to))))
        assert ex.steps.ShortStep(L=L).eta(0, direction(f, s)) == pytest.approx(wanted, rel=1e-12)
        wanted = min(1.0, max(0.0, -float(g @ to) / (f.smoothness * float(to @ to))))
        assert ex.steps.ShortStep().eta(0, direction(f, s)) == pytest.approx(wanted, rel=1e-12)


def test_steps_at_a_vertex_that_is_the_point_itself():
    where = direction(model(ex.Logistic()), ex.points.DenseVertex(X))
    for step in STEPS:
        assert np.isfinite(step.bind(Plan(10, 2.0, 0.5, 2.0, epochs=True)).eta(0, where))


@pytest.mark.parametrize("b", [None, 1, 13, N])
def test_the_papers_parameters_are_the_defaults(b):
    f, budget, batch = model(ex.Logistic()), Budget(max_grads=100 * N), b or math.ceil(math.sqrt(N))
    p, lam = 2 * batch / (N + 2 * batch), batch / (2 * N)
    sarah, saga = (
        ex.SarahFW(batch=b).prepare(f, ex.L1Ball(1.0), budget),
        ex.SagaSarahFW(batch=b).prepare(f, ex.L1Ball(1.0), budget),
    )
    assert sarah.gradient == ex.gradients.Sarah(batch, p)
    assert saga.gradient == ex.gradients.SagaSarah(batch, lam, "full")
    K = round(99 * N / (p * N + 2 * batch * (1 - p)))  # iterations that the budget pays for in the mean
    assert sarah.step == ex.steps.TwoPhase(2 / p, K)
    assert saga.step == ex.steps.TwoPhase(4 * N / batch, round(99 * N / (2 * batch)))
    assert ex.SarahFW(batch=b).prepare(f, ex.L1Ball(1.0), Budget()).step == ex.steps.Anytime(2 / p)
    other = model(ex.NonlinearLeastSquares())
    assert ex.SarahFW(batch=b).prepare(other, ex.L1Ball(1.0), budget).step == ex.steps.InverseSqrt(1.0, K)
    assert ex.SagaSarahFW(batch=b).prepare(other, ex.L1Ball(1.0), Budget(max_iter=50)).step == ex.steps.InverseSqrt(1.0, 50)


def test_the_default_steps_of_frank_wolfe():
    assert ex.FrankWolfe().prepare(model(ex.Logistic()), ex.L1Ball(1.0), Budget()).step == ex.steps.OpenLoop()
    f = model(ex.NonlinearLeastSquares())
    assert ex.FrankWolfe().prepare(f, ex.L1Ball(1.0), Budget()).step == ex.steps.ShortStep(f.smoothness)
    unknown = ex.Separable(2, 2, grad=lambda x, i: np.ones((len(i), 2)), value=lambda x, i: np.ones(len(i)))
    assert ex.FrankWolfe().prepare(unknown, ex.L1Ball(1.0), Budget(max_iter=9)).step == ex.steps.InverseSqrt(1.0, 9)


@pytest.mark.parametrize("step", ["anytime", ex.steps.LineSearch, 0.1, ex.Simplex()], ids=repr)
def test_what_is_no_step_is_refused(step):
    for make in (ex.FrankWolfe, ex.SarahFW, ex.SagaSarahFW):
        with pytest.raises(ex.InputError, match=r"step=\.\.\."):
            ex.minimize(model(ex.Squared()), ex.L1Ball(1.0), method=make(step=step), max_iter=1)
