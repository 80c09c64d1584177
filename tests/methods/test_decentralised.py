"""Agents on a graph (DMFW), and a second, affine constraint (MOST-FW): against their formulas, and in the limit."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from cases import DIM, MATRIX, SETS, N, model, separable, targets
from scipy.optimize import minimize as slsqp

import extremal as ex

LAW = ex.laws.PowerLaw(2, 1, -1)  # min(1, 2 / (k + 1))
BALL = ex.L1Ball(2.0)
PATH = ex.gradients.metropolis([[0, 1, 0], [1, 0, 1], [0, 1, 0]])
DOUBLING = ex.gradients.Spider(ex.laws.EpochLength(), ex.laws.Doubling())
MISFIT = ex.Method(
    ex.gradients.Tracking(ex.gradients.Full(), PATH), ex.steps.OpenLoop(), ex.moves.Consensus(ex.gradients.ring(4))
)
EQUAL = {"G": [[1.0, -1.0] + [0.0] * (DIM - 2)], "lower": 0.0, "upper": 0.0}  # x_1 = x_2


def states(f, method, count: int, C=BALL, seed: int = 0) -> list:
    return list(itertools.islice(ex.iterate(f, C, method=method, seed=seed), count))


def agents(gradient, mixing, step=None) -> ex.Method:
    return ex.Method(ex.gradients.Tracking(gradient, mixing), step or ex.steps.OpenLoop(), ex.moves.Consensus(mixing))


def sorted_problem() -> ex.LinearModel:
    """Logistic regression whose rows are sorted by label: the agents' shards are as unlike as they can be."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((600, 12))
    y = np.where(A[:, :3] @ [1.0, -0.7, 0.5] + 0.7 * rng.standard_normal(600) > 0, 1.0, -1.0)
    return ex.LinearModel(ex.Logistic(), A[np.argsort(y, kind="stable")], np.sort(y))


@pytest.mark.parametrize(
    "C", [ex.gradients.ring(m) for m in (1, 2, 3, 9)] + [ex.gradients.complete(m) for m in (1, 5)] + [PATH], ids=len
)
def test_mixing_keeps_the_mean_and_brings_agents_together(C):
    assert (C >= 0).all()
    np.testing.assert_allclose([C.sum(axis=0), C.sum(axis=1)], np.ones((2, len(C))))
    v = np.random.default_rng(0).standard_normal((len(C), 4))
    np.testing.assert_allclose((C @ v).mean(axis=0), v.mean(axis=0))
    np.testing.assert_allclose(np.linalg.matrix_power(C, 400) @ v, np.tile(v.mean(axis=0), (len(C), 1)), atol=1e-9)


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: ex.DMFW(mixing=np.ones((2, 3)) / 3), r"`DMFW\(mixing=...\)` must be a square matrix"),
        (lambda: ex.moves.Consensus([[0.5, 0.5], [0.6, 0.4]]), "columns sum to 1 up to 1.0e-01 only"),
        (lambda: ex.moves.Consensus([[1.5, -0.5], [-0.5, 1.5]]), "no negative weight, got -0.5"),
        (lambda: ex.moves.Consensus([[np.nan, 1], [1, 0]]), "must be finite"),
        (lambda: ex.gradients.Tracking(ex.gradients.Full(), [[0, 1], [1, 0]]), "swap places"),
        (lambda: ex.gradients.Tracking(ex.gradients.Full, ex.gradients.ring(2)), r"`Tracking\(gradient=...\)`"),
        (lambda: ex.gradients.metropolis(np.eye(3)), "not connected"),
        (lambda: ex.gradients.metropolis([[0, 1], [0, 0]]), "symmetric"),
        (lambda: ex.gradients.ring(0), "of at least 1, got 0"),
        (lambda: ex.DMFW(batch=0), r"`DMFW\(batch=...\)`"),
        (
            lambda: states(model(ex.Squared()), ex.DMFW(batch=16, mixing=ex.gradients.ring(4)), 1),
            r"DMFW\(batch=...\)` .* between 1 and 15",
        ),
        (lambda: states(model(ex.Squared()), ex.DMFW(mixing=ex.gradients.ring(N + 1)), 1), "at most one agent per component"),
        (
            lambda: ex.gradients.Tracking(ex.gradients.Full(), ex.gradients.ring(5)).facts(4),
            "at most one agent per component, got 5 for 4",
        ),
        (lambda: states(model(ex.Squared()), agents(ex.gradients.Substitute(5), PATH), 1), "Tracking cannot run Substitute"),
        (lambda: states(model(ex.Squared()), MISFIT, 1), "wants an estimate for each agent"),
        (lambda: ex.MostFW(lower=0.0), "give G too"),
        (lambda: ex.MostFW(step=ex.steps.LineSearch(), **EQUAL), "ignores the penalty"),
        (lambda: states(model(ex.Squared()), ex.MostFW(batch=N + 1), 1), rf"between 1 and {N}"),
        (lambda: ex.gradients.Penalised(ex.gradients.Storm, **EQUAL), r"`Penalised\(gradient=...\)`"),
    ],
)
def test_what_cannot_be_is_refused(make, word):
    with pytest.raises(ex.InputError, match=word):
        make()


def naive_dmfw(A, y, C, b: int, K: int, seed: int) -> list[tuple]:
    """The update as its docstring has it, on logistic regression over the l1 ball of radius 2, line by line."""
    n, m, d = len(A), len(C), A.shape[1]
    cuts = [n * i // m for i in range(m + 1)]
    draws = [ex.objectives.Sampler(cuts[i + 1] - cuts[i], seed, shard=i) for i in range(m)]

    def grad(i, x, k):
        rows = cuts[i] + draws[i].rows(k, b)
        c = -y[rows] / (1 + np.exp(y[rows] * (A[rows] @ x)))
        return m * (cuts[i + 1] - cuts[i]) / n * A[rows].T @ c / b

    x, xh, out = np.zeros((m, d)), np.zeros((m, d)), []
    Y = np.array([grad(i, xh[i], 0) for i in range(m)])
    S = Y.copy()
    for k in range(K):
        p = C @ S
        out.append((x.mean(axis=0), x, p, Y, S))
        theta = np.array([-2.0 * np.sign(v[j]) * np.eye(d)[j] for v in p for j in [np.abs(v).argmax()]])
        x = xh + 2 / (k + 2) * (theta - xh)
        old, xh, gamma = xh, C @ x, min(1.0, 2 / (k + 2))  # gamma of iteration k + 1
        new = np.array([(1 - gamma) * Y[i] + grad(i, xh[i], k + 1) - (1 - gamma) * grad(i, old[i], k + 1) for i in range(m)])
        S, Y = C @ S + new - Y, new
    return out


@pytest.mark.parametrize(
    "mixing", [ex.gradients.ring(5), PATH, ex.gradients.ring(7), ex.gradients.complete(2), ex.gradients.ring(1)], ids=len
)
def test_dmfw_is_its_formulas(mixing):
    """Also with shards of unequal size: 60 rows, 7 agents."""
    expected = naive_dmfw(MATRIX, targets(ex.Logistic()), mixing, b=3, K=60, seed=4)
    for f in (model(ex.Logistic()), model(ex.Logistic(), "csr"), separable(ex.Logistic())):
        for state, wanted in zip(states(f, ex.DMFW(3, mixing), 60, seed=4), expected, strict=True):
            e = state.estimate
            for a, c in zip((state.x, state.point.agents, e.g, e.y, e.s), wanted, strict=True):
                np.testing.assert_allclose(a, c, atol=1e-10)


@pytest.mark.parametrize("b", [1, 7, N])
def test_one_agent_is_frank_wolfe_on_storm(b):
    for f in (model(ex.Logistic()), model(ex.NonlinearLeastSquares(), "csr")):
        one = states(f, ex.DMFW(b, ex.gradients.ring(1)), 200, seed=2)
        for a, c in zip(one, states(f, ex.Method(ex.gradients.Storm(b, LAW), ex.steps.OpenLoop()), 200, seed=2), strict=True):
            np.testing.assert_array_equal(a.x, c.x)
            np.testing.assert_array_equal(a.g[0], c.g)


def test_agents_that_all_hear_each_other_are_one_that_draws_from_every_shard():
    class EveryShard:
        parts = [ex.objectives.Sampler(15, seed=3, shard=i) for i in range(4)]  # noqa: RUF012

        def rows(self, k, batch, replace):
            return np.concatenate([15 * i + part.rows(k, 5, replace) for i, part in enumerate(self.parts)])

    f, C, move, gradient, draws = (
        model(ex.Logistic()),
        BALL.on(DIM),
        ex.moves.VertexMove(),
        ex.gradients.Storm(20, LAW),
        EveryShard(),
    )
    point = move.start(C.start())
    estimate = gradient.init(f, point.x, draws)
    for state in states(f, ex.DMFW(5, ex.gradients.complete(4)), 100, seed=3):
        np.testing.assert_allclose(state.point.agents, np.tile(point.x, (4, 1)), atol=1e-12)
        np.testing.assert_allclose(state.g, np.tile(estimate.g, (4, 1)), atol=1e-12)
        new = move.advance(state.k, f, C, point, estimate, ex.steps.OpenLoop())
        estimate = gradient.update(f, state.k, point.x, new.x, new.steps, estimate, draws)
        point = new


def test_whole_shards_that_all_hear_each_other_are_frank_wolfe():
    for f in (model(ex.Logistic(), "csr"), separable(ex.Logistic())):
        plain = states(f, ex.FrankWolfe(step=ex.steps.OpenLoop()), 40)
        for method in (
            ex.DMFW(15, ex.gradients.complete(4)),
            agents(ex.gradients.Full(), ex.gradients.complete(7)),
        ):  # 7 shards of unequal size
            for a, c in zip(states(f, method, 40), plain, strict=True):
                np.testing.assert_allclose(a.x, c.x, atol=1e-12)


@pytest.mark.parametrize("C", SETS, ids=repr)
def test_agents_stay_feasible_their_mean_is_the_iterate_and_tracking_keeps_the_mean(C):
    for state in states(model(ex.NonlinearLeastSquares()), ex.DMFW(4, ex.gradients.ring(5)), 150, C):
        point, estimate = state.point, state.estimate
        assert all(C.contains(x, 1e-12) for x in (*point.agents, *point.query, point.x))
        np.testing.assert_allclose(point.agents.mean(axis=0), point.x, atol=1e-13)
        np.testing.assert_allclose(point.query.mean(axis=0), point.x, atol=1e-13)
        np.testing.assert_allclose(estimate.s.mean(axis=0), estimate.y.mean(axis=0), atol=1e-12)
        assert not state.exact
        assert not any(a.flags.writeable for a in (point.x, point.query, point.agents, state.g))


def test_agents_agree_in_the_limit_and_come_as_near_as_one_does():
    f, K = sorted_problem(), 1500
    best = ex.minimize(f, BALL, method=ex.CGS(), tol=1e-8, max_grads=3000 * f.n).value
    storm = [
        f.value(states(f, ex.Method(ex.gradients.Storm(32, LAW), ex.steps.OpenLoop()), K, seed=s)[-1].x) - best for s in range(3)
    ]
    assert np.mean(storm) < 1e-3 * (f.value(np.zeros(12)) - best)
    for mixing in (ex.gradients.ring(4), ex.gradients.ring(8), PATH):
        runs = [states(f, ex.DMFW(32 // len(mixing), mixing), K, seed=s) for s in range(3)]
        apart = np.mean([[s.point.disagreement for s in run] for run in runs], axis=0)
        assert apart[-45:].mean() < apart[5:50].mean() / 8
        assert np.mean([f.value(run[-1].x) - best for run in runs]) < 3 * np.mean(storm)


def test_on_a_non_convex_sum_the_smallest_gap_falls():
    gaps = [s.measure()[1] for s in states(model(ex.NonlinearLeastSquares()), ex.DMFW(5, ex.gradients.ring(4)), 1200)[::10]]
    assert min(gaps) < 0.05 * gaps[0]


@pytest.mark.parametrize(
    ("b", "mixing"), [(1, ex.gradients.ring(4)), (5, PATH), (8, ex.gradients.ring(7)), (30, ex.gradients.complete(2))]
)
def test_m_oracle_calls_and_2bm_gradients_an_iteration(b, mixing):
    m = len(mixing)
    for state in itertools.islice(ex.iterate(model(ex.Logistic()), BALL, method=ex.DMFW(b, mixing)), 40):
        assert (state.calls.grads, state.calls.lmos) == (m * b + 2 * m * b * state.k, m * state.k)
    r = ex.minimize(model(ex.Logistic()), BALL, method=ex.DMFW(b, mixing), max_grads=m * b * 21, tol=0, atol=0)
    assert (r.n_iter, r.calls.grads) == (10, m * b * 21)
    assert r.gap == pytest.approx(ex.minimize(model(ex.Logistic()), BALL, x0=r.x, max_iter=0).gap)


@pytest.mark.parametrize(
    "gradient",
    [
        ex.gradients.Full(),
        ex.gradients.SagaSarah(4, 0.1),
        ex.gradients.Momentum(4),
        ex.gradients.Svrg(4, 5),
        DOUBLING,
        ex.gradients.Saga(4),
    ],
)
def test_agents_may_run_any_estimator(gradient):
    f, facts = model(ex.Logistic()), ex.gradients.Tracking(gradient, PATH).facts(N)
    step = ex.steps.EpochHarmonic() if isinstance(gradient, ex.gradients.Spider) else ex.steps.OpenLoop()
    run = states(f, agents(gradient, PATH, step), 401)
    cost = facts.per_step if callable(facts.per_step) else lambda k: facts.per_step
    assert run[-1].calls.grads == pytest.approx(facts.start + sum(cost(k) for k in range(400)))
    assert run[-1].measure()[1] < 0.15 * run[0].measure()[1]


def test_with_a_plain_move_agents_share_its_point():
    f, x = model(ex.Logistic(), "csr"), np.linspace(-0.4, 0.3, DIM)
    gradient, sampler = ex.gradients.Tracking(ex.gradients.Storm(5), ex.gradients.ring(7)), ex.objectives.Sampler(N, seed=0)
    state = gradient.init(f, x, sampler)
    for k in range(400):
        state = gradient.update(f, k, x, x, (), state, sampler)
    np.testing.assert_allclose(state.g, np.mean(state.y, axis=0), atol=1e-12)
    np.testing.assert_allclose(state.g, f.grad(x), atol=0.02)
    assert ex.minimize(f, BALL, method=ex.Method(gradient, ex.steps.OpenLoop()), tol=1e-2).converged


@pytest.mark.parametrize("method", [ex.DMFW(3, ex.gradients.ring(4)), ex.DMFW(), ex.MostFW(3, **EQUAL), ex.MostFW()], ids=repr)
def test_same_seed_same_result_and_float64_on_float32_rows(method):
    f = model(ex.Logistic(), "csr")
    one, two, other = (ex.minimize(f, BALL, method=method, seed=s, max_iter=50, tol=0) for s in (3, 3, 4))
    np.testing.assert_array_equal(one.x, two.x)
    assert (one.x != other.x).any()
    for C in (BALL, ex.Simplex(), ex.L2Ball(1.5)):
        for state in states(model(ex.Logistic(), dtype=np.float32), method, 500, C):
            assert state.x.dtype == state.g.dtype == np.float64
        assert C.contains(state.x, 1e-12)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
def test_the_pull_is_the_gradient_of_the_penalty(kind):
    rng = np.random.default_rng(0)
    G, x, mu = rng.standard_normal((4, 6)), rng.standard_normal((2, 3)), 0.3
    lower, upper = np.array([-0.1, 0.2, -np.inf, -50]), np.array([-0.1, np.inf, 0.1, 50])  # equation, two half-spaces, inactive
    g = ex.gradients.Penalised(ex.gradients.Full(), kind(G), lower, upper)
    penalty = lambda x: np.sum((G @ x.ravel() - np.clip(G @ x.ravel(), lower, upper)) ** 2) / (2 * mu)  # noqa: E731
    numeric = [(penalty(x + 1e-6 * e) - penalty(x - 1e-6 * e)) / 2e-6 for e in np.eye(6).reshape(6, 2, 3)]
    np.testing.assert_allclose(g.pull(x, mu).ravel(), numeric, rtol=1e-6)
    assert g.violation(x) == pytest.approx(np.sqrt(2 * mu * penalty(x)))
    np.testing.assert_allclose(g.pull(np.stack([x, -x]), mu), [g.pull(x, mu), g.pull(-x, mu)], atol=1e-12)


def doubly_constrained():
    """Squared loss on the simplex with x_1 = x_2 and x_3 + x_4 + x_5 >= 0.4, and SLSQP's answer."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((200, 6))
    f = ex.LinearModel(ex.Squared(), A, A @ [0.6, 0.3, 0.1, 0, 0, 0] + 0.1 * rng.standard_normal(200))
    G, lower, upper = np.array([[1.0, -1, 0, 0, 0, 0], [0, 0, 1, 1, 1, 0]]), [0.0, 0.4], [0.0, np.inf]
    rows = [("eq", lambda x: G[0] @ x), ("ineq", lambda x: G[1] @ x - 0.4), ("eq", lambda x: x.sum() - 1)]
    rows = [{"type": kind, "fun": fun} for kind, fun in rows]
    best = slsqp(f.value, np.full(6, 1 / 6), jac=f.grad, bounds=[(0, None)] * 6, constraints=rows, options={"ftol": 1e-14})
    return f, {"G": G, "lower": lower, "upper": upper}, best


@pytest.mark.parametrize(("mu", "power", "off"), [(1.0, 0.25, 0.04), (ex.laws.PowerLaw(1, 2, -0.5), 0.5, 0.005)])
def test_the_violation_tends_to_zero_and_the_value_to_the_optimum_of_both(mu, power, off):
    f, constraint, best = doubly_constrained()
    options = {"max_iter": 8000, "tol": 0, "atol": 0, "record": ex.Record(20, what=("x",))}
    r = ex.minimize(f, ex.Simplex(), method=ex.MostFW(10, **constraint, mu=mu), **options)
    violation = np.array([r.method.gradient.violation(x) for x in r.trace.x])
    assert violation[-1] < off
    assert abs(r.value - best.fun) < off / 3
    assert best.fun > 5 * ex.minimize(f, ex.Simplex()).value  # the constraint matters
    assert r.gap > 0.01  # a certificate for f over the set alone
    at = np.searchsorted(r.trace.iter, [400, 6400])
    fell = np.log(violation[at[0]] / violation[at[1]]) / np.log(16)  # violation ~ t^(-power), as mu_t
    assert fell == pytest.approx(power, abs=0.12)


def test_without_a_constraint_it_is_frank_wolfe_on_storm():
    loose, storm = (
        ex.MostFW(4, G=np.eye(DIM), lower=-9.0),
        ex.Method(ex.gradients.Storm(4, ex.laws.PowerLaw(2, 2, -1)), ex.steps.OpenLoop()),
    )
    for f in (model(ex.Logistic()), model(ex.NonlinearLeastSquares(), "csr"), separable(ex.Squared())):
        for a, b, c in zip(*(states(f, m, 150, seed=1) for m in (ex.MostFW(4), loose, storm)), strict=True):
            np.testing.assert_array_equal(a.x, c.x)
            np.testing.assert_array_equal(b.x, c.x)


def test_2b_gradients_and_one_oracle_call_an_iteration_feasible_and_never_exact():
    for gradient in (
        ex.gradients.Full(),
        ex.gradients.Sarah(5, 0.5),
        ex.gradients.Spider(5, 4),
        ex.gradients.Substitute(5),
        ex.gradients.Tracking(ex.gradients.Storm(5), PATH),
    ):
        plain = states(model(ex.Logistic()), ex.Method(gradient, ex.steps.OpenLoop()), 60)
        run = states(model(ex.Logistic()), ex.Method(ex.gradients.Penalised(gradient, **EQUAL), ex.steps.OpenLoop()), 60)
        assert run[-1].calls.grads == plain[-1].calls.grads
        assert not any(s.exact for s in run)
        assert all(BALL.contains(s.x, 1e-12) for s in run)
    for state in itertools.islice(ex.iterate(model(ex.Logistic()), BALL, method=ex.MostFW(5, **EQUAL)), 40):
        assert (state.calls.grads, state.calls.lmos, state.calls.values) == (5 + 10 * state.k, state.k, 0)
    together = ex.Method(
        ex.gradients.Penalised(ex.gradients.Tracking(ex.gradients.Storm(5), PATH), **EQUAL, mu=0.01),
        ex.steps.OpenLoop(),
        ex.moves.Consensus(PATH),
    )
    end = states(model(ex.Logistic()), together, 1500)[-1]
    assert together.gradient.violation(end.point.agents) < 0.02


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"G": np.ones(3)}, "must be a matrix"),
        ({"G": sp.csr_array([[np.inf] * DIM])}, r"G=...\)` must be finite"),
        ({"G": np.ones((1, DIM + 1))}, rf"must have {DIM} columns"),
        ({"lower": 1.0}, "lower <= upper"),
        ({"lower": np.inf, "upper": None}, "a number between"),
        ({"lower": np.nan}, r"lower=...\)` must be without NaN"),
        ({"upper": [0.0, 0.0]}, "one for each of the 1 rows"),
        ({"lower": None, "upper": None}, "at least one"),
        ({"mu": ex.laws.PowerLaw(-1.0)}, r"mu=...\)` must be a positive"),
    ],
)
def test_what_is_no_constraint_is_refused(change, word):
    for make in (
        lambda **c: ex.MostFW(5, **c),
        lambda **c: ex.Method(ex.gradients.Penalised(ex.gradients.Storm(5), **c), ex.steps.OpenLoop()),
    ):
        with pytest.raises(ex.InputError, match=word):
            states(model(ex.Squared()), make(**EQUAL | change), 1)
