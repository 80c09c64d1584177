"""Variance-reduced sliding: trajectories against plain numpy, convergence, and refusals."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
from cases import DIM, MATRIX, N, full, gap, model, project, separable
from sliding_problems import (
    BOTH_FORMS,
    ESTIMATORS,
    EVERY_ESTIMATOR,
    POLYTOPE,
    ROWS,
    VECTOR_SETS,
    completion,
    outputs,
    rng,
    run,
    strong,
)

import extremal as ex
from extremal.methods.method import Budget
from extremal.moves.sliding.prox import Probe
from extremal.points.factored import FactoredMatrix

MATRIX_SETS = (ex.NuclearBall(0.6), ex.L1Ball(1.0), ex.Simplex())


# trajectories, against plain numpy


def constants(f, b):
    A = np.asarray(MATRIX)
    L, rows = 0.25 * float(np.linalg.eigvalsh(A.T @ A)[-1]) / N, 0.25 * (A**2).sum(axis=1)
    noise = (N - b) / (b * (N - 1)) * rows.max()
    return L, N * (b - 1) / (b * (N - 1)) * L + noise, noise


def rows_of(f):
    y, A = f.y, np.asarray(MATRIX)
    return lambda x, idx: (-y[idx] / (1 + np.exp(y[idx] * (A[idx] @ x))))[:, None] * A[idx]


def test_plain_saga_by_hand():
    """x <- project(x - g / (L_b + V)), g = mean over the batch of (new - old) + mean of the table."""
    f, C, b = model(ex.Logistic()), ex.L1Ball(2.0), 6
    beta, sampler, grads = sum(constants(f, b)[1:]), ex.objectives.Sampler(N, 3), rows_of(f)
    x, every = np.zeros(DIM), np.arange(N)
    table = grads(x, every)
    g = table.mean(axis=0)
    method = ex.VRSliding("saga", batch=b, accelerated=False)
    for state in itertools.islice(ex.iterate(f, C, method=method, seed=3), 60):
        np.testing.assert_allclose(state.x, x, atol=1e-11)
        x, idx = project(C, x - g / beta), sampler.rows(state.k, b)
        new = grads(x, idx)
        g = (new - table[idx]).mean(axis=0) + table.mean(axis=0)
        table[idx] = new
    assert np.abs(x).sum() > 1


def test_accelerated_saga_by_hand():
    """The three sequences, the anchor, and the rule for tau, from the docstring of AnchoredSliding."""
    f, C, b = model(ex.Logistic()), ex.L1Ball(2.0), 6
    L, smooth, noise = constants(f, b)
    beta, lean, m = smooth + noise, min(0.5, noise / (4 * L)), N // b
    sampler, grads = ex.objectives.Sampler(N, 3), rows_of(f)
    z = y = w = q = np.zeros(DIM)
    table = grads(q, np.arange(N))
    g, t, before = table.mean(axis=0), 0, 0.0
    taus = set()
    for state in itertools.islice(ex.iterate(f, C, method=ex.VRSliding("saga", batch=b, accelerated=True), seed=3), 100):
        np.testing.assert_allclose(state.x, y, atol=1e-11)
        np.testing.assert_allclose(state.point.query, q, atol=1e-11)
        tau = 2 / (t + 4)
        taus.add(tau)
        z = project(C, z - g / max(tau * beta, noise / 2))
        y = tau * z + lean * w + (1 - tau - lean) * y
        if (state.k + 1) % m == 0:
            far = float(np.linalg.norm(y - w))
            t, before, w = t + (far > (1 - tau) * before), far, y
        tau = 2 / (t + 4)
        q = tau * z + lean * w + (1 - tau - lean) * y
        idx = sampler.rows(state.k, b)
        new = grads(q, idx)
        g = (new - table[idx]).mean(axis=0) + table.mean(axis=0)
        table[idx] = new
    assert len(taus) > 1


@pytest.mark.parametrize("b", [1, 7, N])
@BOTH_FORMS
def test_beta_is_the_smoothness_of_a_batch(b, accelerated):
    f = model(ex.Logistic())
    L, smooth, noise = constants(f, b)
    move = ex.VRSliding("svrg", batch=b, accelerated=accelerated).prepare(f, ex.L1Ball(2.0).on(DIM), Budget()).move
    assert move.beta == pytest.approx(smooth + noise, rel=1e-6)
    assert move.beta == pytest.approx({1: 2 * f.row_smoothness.max(), N: L}.get(b, move.beta), rel=1e-6)
    if accelerated:
        assert move.lean == pytest.approx(min(0.5, noise / (4 * L)), rel=1e-6)
        assert move.least == pytest.approx(noise / 2, rel=1e-6)


def test_what_is_left_open_follows_the_rows():
    """Acceleration where a batch tells of the other rows; no table where it was asked for and they have little in common."""
    alike = ex.LinearModel(ex.Squared(), 1 + 0.1 * rng().standard_normal((100, 5)), np.ones(100))
    apart = ex.LinearModel(ex.Squared(), np.eye(100), np.ones(100))
    free = separable(ex.Logistic())
    parts = lambda f, **o: ex.VRSliding(**o).prepare(f, ex.L1Ball(1.0).on(f.shape), Budget())  # noqa: E731
    for f, options, move, gradient in (
        (alike, {}, ex.moves.AnchoredSliding, ex.gradients.Saga),
        (apart, {}, ex.moves.WarmSliding, ex.gradients.Saga),
        (free, {}, ex.moves.WarmSliding, ex.gradients.Saga),
        (alike, {"accelerated": True}, ex.moves.AnchoredSliding, ex.gradients.Saga),
        (apart, {"accelerated": True}, ex.moves.AnchoredSliding, ex.gradients.Svrg),
        (free, {"accelerated": True}, ex.moves.AnchoredSliding, ex.gradients.Svrg),
    ):
        method = parts(f, **options)
        assert (type(method.move), type(method.gradient)) == (move, gradient)


@EVERY_ESTIMATOR
@BOTH_FORMS
def test_rows_that_have_nothing_in_common(gradient, accelerated):
    """Orthogonal rows, where steps of 1/L_b are too long for a table: it must not diverge."""
    y = rng().standard_normal(64)
    f, C = ex.LinearModel(ex.Squared(), np.eye(64), y), ex.L2Ball(100.0)
    r = run(f, C, ex.VRSliding(gradient, batch=8, accelerated=accelerated), 100)
    assert r.value <= (1e-2 if accelerated else 1e-5) * f.value(np.zeros(64))


def test_non_convex_sums_get_no_longer_steps_than_1_over_L():
    f, C = model(ex.NonlinearLeastSquares()), ex.L1Ball(2.0).on(DIM)
    for gradient, b in itertools.product(ESTIMATORS, (1, 8, N)):
        move = ex.VRSliding(gradient, batch=b).prepare(f, C, Budget()).move
        assert isinstance(move, ex.moves.WarmSliding)  # acceleration is for convex f, unless asked for
        assert move.beta >= f.smoothness
    assert isinstance(ex.VRSliding(accelerated=True).prepare(f, C, Budget()).move, ex.moves.AnchoredSliding)


# convergence


@functools.cache
def least_value(C) -> float:
    """f* of `strong`, by projected gradients where there is a projection."""
    f = strong()
    if C == POLYTOPE:
        return ex.minimize(f, C, ex.AwayFW(), tol=1e-11).value
    x, C = C.on(DIM).start(), C.on(DIM)
    for _ in range(2000):
        x = C.project(x - f.grad(x) / f.smoothness)
    return f.value(x)


@EVERY_ESTIMATOR
@BOTH_FORMS
@pytest.mark.parametrize("C", VECTOR_SETS, ids=repr)
def test_every_estimator_over_every_set(gradient, accelerated, C):
    f, best = strong(), least_value(C)
    scale = f.value(np.zeros(DIM))
    r = run(f, C, ex.VRSliding(gradient, accelerated=accelerated, oracle="lmo"))
    assert -1e-12 <= r.value - best <= (1e-4 if accelerated else 1e-5) * scale
    assert C.contains(r.x, 1e-12)
    assert r.calls.lmos >= r.n_iter
    if hasattr(C, "project"):
        exact = run(f, C, ex.VRSliding(gradient, accelerated=accelerated, oracle="project"))
        assert exact.calls.lmos == 0
        assert exact.calls.grads == r.calls.grads or exact.gap == 0 or r.gap == 0
        assert exact.value == pytest.approx(r.value, abs=(1e-5 if accelerated else 1e-6) * scale)


@EVERY_ESTIMATOR
@BOTH_FORMS
@pytest.mark.parametrize("C", MATRIX_SETS, ids=repr)
def test_several_outputs(gradient, accelerated, C):
    f, C = outputs(), C.on((5, 3))
    by_atoms, by_projection = (
        run(f, C, ex.VRSliding(gradient, accelerated=accelerated, oracle=oracle)) for oracle in ("lmo", "project")
    )
    assert C.contains(by_atoms.x, 1e-9)
    assert by_projection.gap <= 1e-3
    np.testing.assert_allclose(by_atoms.x, by_projection.x, atol=2e-3)
    assert by_atoms.value == pytest.approx(by_projection.value, rel=1e-5)


@EVERY_ESTIMATOR
@pytest.mark.parametrize("oracle", ["lmo", "project"])
@pytest.mark.parametrize("C", [ex.Simplex(), ex.L2Ball(0.7)], ids=repr)
def test_strongly_convex_sums_converge_geometrically(gradient, oracle, C):
    """Plain: the same number of passes more takes the gap down by the same factor, to rounding."""
    f = strong()
    gaps = [run(f, C, ex.VRSliding(gradient, accelerated=False, oracle=oracle), passes, seed=1).gap for passes in (15, 30, 45)]
    assert gaps[1] <= max(gaps[0] / 10, 1e-12)
    assert gaps[2] <= max(gaps[1] / 10, 1e-12)


def test_acceleration_helps_where_the_problem_is_ill_conditioned():
    A = (1 + rng(1).standard_normal((400, 10))) * np.geomspace(1.0, 0.1, 10)
    f = ex.LinearModel(ex.Squared(), A, A @ np.geomspace(1.0, 10.0, 10))  # f* = 0
    plain, fast = (run(f, ex.L2Ball(1000.0), ex.VRSliding("saga", accelerated=a), 60).value for a in (False, True))
    assert fast <= 1e-6 * plain


@EVERY_ESTIMATOR
@BOTH_FORMS
def test_any_sum_without_constants(gradient, accelerated):
    """beta is found on the way, whatever the units of f are: the answers are those of the linear model."""
    f, C = strong(), ex.L1Ball(1.5)
    best = ex.minimize(f, C, ex.PairwiseFW(), tol=1e-12).value
    for unit, oracle in ((1e-6, "lmo"), (1e6, "project")):
        h = ex.Separable(
            f.n,
            DIM,
            grad=lambda x, idx, unit=unit: unit * f.derivs(x, idx)[:, None] * ROWS[idx],
            value=lambda x, idx, unit=unit: unit * f.values(x, idx),
            convex=True,
        )
        r = run(h, C, ex.VRSliding(gradient, accelerated=accelerated, oracle=oracle))
        assert isinstance(r.method.move.beta, Probe)
        assert -1e-12 <= r.value / unit - best <= 1e-4 * best


def test_a_known_smoothness_is_a_lower_bound_of_what_is_found():
    f, C = separable(ex.NonlinearLeastSquares()), ex.L1Ball(5.0)
    assert ex.VRSliding().prepare(f, C.on(DIM), Budget()).move.beta.least == f.smoothness
    for state in itertools.islice(ex.iterate(f, C, method=ex.VRSliding("sarah")), 2, 60):
        assert state.point.L >= f.smoothness


@EVERY_ESTIMATOR
@pytest.mark.parametrize("make", [model, separable])
def test_non_convex_sums(gradient, make):
    """The value falls and the gap becomes small, by oracle and by projection."""
    loss, C = ex.NonlinearLeastSquares(), ex.L1Ball(5.0)
    f = make(loss)
    for oracle in ("lmo", "project"):
        r = run(f, C, ex.VRSliding(gradient, oracle=oracle), 150)
        first = gap(C, np.zeros(DIM), full(loss, np.zeros(DIM))[1])
        assert r.value < full(loss, np.zeros(DIM))[0]
        assert r.gap <= 0.05 * first


@EVERY_ESTIMATOR
@BOTH_FORMS
@pytest.mark.parametrize("oracle", ["lmo", "project"])
def test_float32_rows(gradient, accelerated, oracle):
    C, method, f = ex.Simplex(), ex.VRSliding(gradient, accelerated=accelerated, oracle=oracle), strong(np.float32)
    wide, r = run(ex.LinearModel(f.loss, f.data.dot(np.eye(f.shape[0])), f.y), C, method), run(f, C, method)
    assert (f.data.dtype, r.x.dtype) == (np.float32, np.float64)
    assert r.value == pytest.approx(wide.value, rel=1e-6)  # products with some float32 rows are summed in another order
    np.testing.assert_allclose(r.x, wide.x, atol=1e-5)


def test_sparse_rows_and_shuffled_ones():
    dense = model(ex.Logistic())
    C, method = ex.L1Ball(2.0), ex.VRSliding(batch=8)
    found = [run(f, C, method, 100).value for f in (dense, model(ex.Logistic(), "csr"), dense.shuffled())]
    assert found[1] == pytest.approx(found[0], abs=1e-12)
    assert found[2] == pytest.approx(found[0], abs=1e-7)


# matrices in factors


@BOTH_FORMS
def test_matrices_in_factors(accelerated):
    """The same steps as on arrays, without ever forming the matrix."""
    f, C, zero = completion(), ex.NuclearBall(4.0), np.zeros((8, 6))
    method = ex.VRSliding("saga", accelerated=accelerated, oracle="lmo")
    assert ex.VRSliding().prepare(f, C.on((8, 6)), Budget()).move.onto is None
    one, two = (itertools.islice(ex.iterate(f, C, method=method, x0=x0), 15) for x0 in (None, zero))
    for a, b in zip(one, two, strict=True):
        assert isinstance(a.x, FactoredMatrix)
        assert isinstance(b.x, np.ndarray)
        assert C.contains(a.x)
        np.testing.assert_allclose(np.asarray(a.x), b.x, atol=0.05)  # sub-problems are solved to a tenth
    assert f.value(a.x) < 0.8 * f.value(zero)


# refusals


def test_bad_arguments_are_refused_by_name():
    f = model(ex.Logistic())
    for options, said in (
        ({"gradient": "sagaa"}, "unknown gradient 'sagaa'; did you mean 'saga'"),
        ({"oracle": "lm"}, "unknown oracle 'lm'; did you mean 'lmo'"),
        ({"accelerated": 1}, r"`VRSliding\(accelerated=...\)` must be True or False"),
        ({"batch": 0}, r"`VRSliding\(batch=...\)` must be a whole number of at least 1, got 0"),
        ({"L": -1.0}, r"`VRSliding\(L=...\)` must be a positive finite number"),
    ):
        with pytest.raises(ex.InputError, match=said):
            ex.VRSliding(**options)
    with pytest.raises(ex.InputError, match=rf"`VRSliding\(batch=...\)` must be a whole number between 1 and {N}"):
        ex.minimize(f, ex.L1Ball(2.0), ex.VRSliding(batch=N + 1))
    with pytest.raises(ex.InputError, match=r'oracle="project".*Polytope.*has no projection; use "lmo"'):
        ex.minimize(f, POLYTOPE, ex.VRSliding(oracle="project"))
    with pytest.raises(ex.InputError, match=r"`WarmSliding\(onto=...\)`: matrices in factors are not projected"):
        ex.minimize(completion(), ex.NuclearBall(1.0), ex.VRSliding(accelerated=False, oracle="project"))


@pytest.mark.parametrize("make", [ex.moves.WarmSliding, lambda **o: ex.moves.AnchoredSliding(**{"lean": 0.1, "epoch": 3} | o)])
def test_bad_moves_are_refused_by_name(make):
    for options, said in (
        ({"beta": 0.0}, r"Sliding\(beta=...\)` must be a positive finite number"),
        ({"beta": "L"}, r"Sliding\(beta=...\)` must be a positive finite number"),
        ({"accuracy": 2.0}, r"Sliding\(accuracy=...\)` must be a number in \(0, 1\]"),
        ({"limit": 0}, r"Sliding\(limit=...\)` must be a whole number of at least 1"),
        ({"onto": 3}, r"Sliding\(onto=...\)` must be a set with a projection"),
        ({"onto": POLYTOPE}, r"Sliding\(onto=...\)` must be a set with a projection"),
    ):
        with pytest.raises(ex.InputError, match=said):
            make(**{"beta": 1.0} | options)
    with pytest.raises(ex.InputError, match=r"onto=...\)` must be the set of the run, L1Ball"):
        ex.minimize(
            model(ex.Logistic()),
            ex.L1Ball(2.0),
            ex.Method(ex.gradients.Full(), ex.steps.FullStep(), make(beta=1.0, onto=ex.L1Ball(3.0))),
        )


def test_bad_anchors_are_refused_by_name():
    for options, said in (
        ({"lean": 0.6}, r"`AnchoredSliding\(lean=...\)` must be a number in \(0, 0.5\]"),
        ({"lean": -0.1}, r"`AnchoredSliding\(lean=...\)` must be a finite number of at least 0"),
        ({"least": -1.0}, r"`AnchoredSliding\(least=...\)` must be a finite number of at least 0"),
        ({"epoch": 0}, r"`AnchoredSliding\(epoch=...\)` must be a whole number of at least 1"),
    ):
        with pytest.raises(ex.InputError, match=said):
            ex.moves.AnchoredSliding(**{"beta": 1.0, "lean": 0.1, "epoch": 3} | options)
