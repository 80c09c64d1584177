"""Weighted rows, intercepts that are projected out, and Newton steps between bounds."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize as so
import scipy.sparse as sp

import extremal as ex

N, DIM = 240, 6
RNG = np.random.default_rng(5)
A = RNG.standard_normal((N, DIM)) * (RNG.random((N, DIM)) < 0.7)
SCORE = 1.5 * A[:, 0] - A[:, 1] + 0.8 + RNG.standard_normal(N)
WEIGHTS = RNG.integers(0, 4, N).astype(float)
TWICE = np.repeat(np.arange(N), WEIGHTS.astype(int))
LABELS = np.where(SCORE > 0, 1.0, -1.0)
COUNTS = np.floor(np.exp(np.clip(0.5 * SCORE, -3, 3)))
CLASSES = np.digitize(SCORE, [-0.5, 1.5]).astype(float)
TASKS = np.column_stack([SCORE, -0.5 * SCORE + 3])
ONE = [
    (ex.Logistic(), LABELS),
    (ex.Squared(), SCORE),
    (ex.Huber(0.5), SCORE),
    (ex.Quantile(0.8, 0.3), SCORE),
    (ex.Poisson(), COUNTS),
]
MANY = [(ex.Multinomial(3), CLASSES), (ex.MultiTask(ex.Squared(), 2), TASKS), (ex.MultiTask(ex.Huber(0.7), 2), TASKS)]
KINDS = [np.asarray, sp.csr_array]


def point(f: ex.LinearModel) -> np.ndarray:
    return 0.4 * np.random.default_rng(1).standard_normal(f.shape)


@pytest.mark.parametrize("model", [ex.LinearModel, ex.InterceptModel])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("loss", "y"), ONE + MANY, ids=lambda v: repr(v) if not isinstance(v, np.ndarray) else "")
def test_a_weight_of_two_is_a_row_twice(loss, y, kind, model):
    f, g = model(loss, kind(A), y, WEIGHTS), model(loss, kind(A[TWICE]), y[TWICE])
    x = point(f)
    np.testing.assert_allclose(f.value(x), g.value(x), rtol=1e-12)
    np.testing.assert_allclose(f.grad(x), g.grad(x), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("loss", "y"), ONE, ids=lambda v: repr(v) if not isinstance(v, np.ndarray) else "")
def test_weighted_components_average_to_the_gradient_and_batches_read_their_own_weights(loss, y):
    f = ex.LinearModel(loss, A, y, WEIGHTS)
    x, idx = point(f), np.array([3, 7, 7, 100])
    np.testing.assert_allclose(f.combine(f.derivs(x)), f.grad(x), rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(f.derivs(x, idx), f.derivs(x)[idx], rtol=1e-12)
    np.testing.assert_allclose(f.values(x).mean(), f.value(x), rtol=1e-12)


def test_weights_go_through_compiled_steps_and_through_the_readable_loop_alike():
    f = ex.LinearModel(ex.Logistic(), sp.csr_array(A), LABELS, WEIGHTS)
    fast, slow = (
        ex.minimize(f, ex.L1Ball(2.0), ex.SarahFW(batch=5), max_iter=200, seed=3, bursts=b, tol=0, atol=0) for b in (True, False)
    )
    np.testing.assert_allclose(fast.x, slow.x, rtol=1e-9, atol=1e-12)
    best = ex.minimize(f, ex.L1Ball(2.0), tol=1e-10)
    assert best.value <= fast.value <= best.value + fast.gap


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(3), "must have shape"),
        (-np.ones(N), "non-negative"),
        (np.zeros(N), "not all zero"),
        (np.full(N, np.nan), "must be finite"),
    ],
)
def test_weights_that_are_none_are_refused(weights, message):
    with pytest.raises(ex.InputError, match=rf"`LinearModel\(weights=\.\.\.\)`.*{message}"):
        ex.LinearModel(ex.Squared(), A, SCORE, weights)


def test_poisson_refuses_negative_counts():
    with pytest.raises(ex.InputError, match="takes targets of at least 0, got -1"):
        ex.LinearModel(ex.Poisson(), np.eye(2), [1.0, -1.0])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("loss", "y"), ONE + MANY, ids=lambda v: repr(v) if not isinstance(v, np.ndarray) else "")
def test_the_intercept_is_the_best_one_and_the_gradient_is_that_of_the_minimum(loss, y, kind):
    f, plain = ex.InterceptModel(loss, kind(A), y, WEIGHTS), ex.LinearModel(loss, np.column_stack([A, np.ones(N)]), y, WEIGHTS)
    x = point(f)
    b = np.asarray(f.intercept(x))

    def at(b):
        return plain.value(np.concatenate([x, np.reshape(b, (1, *f.shape[1:]))]))

    found = so.minimize(at, np.zeros(b.shape).reshape(-1), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-14})
    assert f.value(x) == pytest.approx(at(b), rel=1e-12)
    assert f.value(x) <= found.fun * (1 + 1e-9)
    h, e = 1e-6, np.random.default_rng(2).standard_normal(f.shape)
    slope = (f.value(x + h * e) - f.value(x - h * e)) / (2 * h)
    assert np.vdot(f.grad(x), e) == pytest.approx(slope, rel=1e-4, abs=1e-7)


@pytest.mark.parametrize("C", [ex.L1Ball(1.0), ex.Simplex(), ex.Box(-0.3, 0.2), ex.L2Ball(0.7), ex.Monotone(-0.5, 0.5)], ids=repr)
@pytest.mark.parametrize(("loss", "y"), ONE, ids=lambda v: repr(v) if not isinstance(v, np.ndarray) else "")
def test_the_gap_certifies_coefficients_and_intercept_together(loss, y, C):
    f = ex.InterceptModel(loss, A, y)
    r = ex.minimize(f, C, tol=1e-7)
    assert r.converged
    joint = ex.LinearModel(loss, np.column_stack([A, np.ones(N)]), y)
    wide = ex.minimize(
        joint, ex.Product(C.on(DIM), ex.Box(-20.0, 20.0, shape=1)), ex.FullyCorrectiveFW(), tol=1e-5, max_iter=3000
    )
    assert r.value - r.gap <= wide.value + 1e-12
    assert r.value <= wide.value + 1e-12


@pytest.mark.parametrize("C", [ex.L1Ball(2.0), ex.NuclearBall(1.0), ex.L2Ball(0.7)], ids=repr)
@pytest.mark.parametrize(("loss", "y"), MANY[:2], ids=lambda v: repr(v) if not isinstance(v, np.ndarray) else "")
def test_several_intercepts(loss, y, C):
    f = ex.InterceptModel(loss, A, y)
    r = ex.minimize(f, C, tol=1e-5)
    assert r.converged
    shift = f.derivs_at(f.margins(r.x)).mean(axis=0)  # an intercept cannot help any more
    np.testing.assert_allclose(shift, 0, atol=1e-12)


def test_float32_rows_find_the_intercept_of_the_same_rows_in_float64():
    narrow = A.astype(np.float32)
    f, g = (ex.InterceptModel(ex.Logistic(), narrow.astype(t), LABELS) for t in (np.float32, np.float64))
    x = point(g)
    assert (f.data.dtype, f.grad(x).dtype) == (np.float32, np.float64)
    np.testing.assert_allclose(f.grad(x), g.grad(x), rtol=0, atol=1e-12)
    assert f.intercept(x) == pytest.approx(g.intercept(x), abs=1e-12)


def test_one_class_has_an_intercept_that_stays_finite():
    f = ex.InterceptModel(ex.Logistic(), A, np.ones(N))
    value, g = f.value_and_grad(np.zeros(DIM))
    assert value < 1e-9
    assert np.isfinite(f.intercept(np.zeros(DIM)))
    assert np.abs(g).max() < 1e-8


def test_what_an_intercept_model_refuses():
    f = ex.InterceptModel(ex.Logistic(), A, LABELS)
    with pytest.raises(ex.InputError, match="has no batches"):
        ex.minimize(f, ex.L1Ball(1.0), ex.SarahFW(), max_iter=5)
    with pytest.raises(ex.InputError, match=r"`InterceptModel\(loss=\.\.\.\)` must be convex"):
        ex.InterceptModel(ex.NonlinearLeastSquares(), A, (LABELS + 1) / 2)


def test_a_path_with_an_intercept():
    f = ex.InterceptModel(ex.Logistic(), sp.csr_array(A), LABELS)
    results = ex.path(f, [ex.L1Ball(r) for r in (0.3, 1.0, 3.0)], tol=1e-8)
    for r, radius in zip(results, (0.3, 1.0, 3.0), strict=True):
        alone = ex.minimize(f, ex.L1Ball(radius), tol=1e-10)
        np.testing.assert_allclose(r.x, alone.x, atol=1e-4)


# bounds


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reach", [1.0, 1e4])
def test_non_negative_least_squares(kind, reach):
    y = A @ np.array([1.0, -1.0, 0.5, 0.2, -0.3, 0.9]) / 2 + 0.1 * RNG.standard_normal(N)
    f = ex.LinearModel(ex.Squared(), kind(A), y)
    r = ex.minimize(f, ex.Box(0.0, reach), tol=1e-9)
    assert r.converged
    assert "bounds" in r.why
    np.testing.assert_allclose(r.x, so.nnls(A, y)[0], atol=1e-7)


@pytest.mark.parametrize(
    "C", [ex.Box(-0.2, [0.1, 0.2, 0.3, 0.1, 0.2, 0.3]), ex.LinfBall(0.3), ex.LinfBall(0.2, centre=np.full(DIM, 0.1))]
)
@pytest.mark.parametrize(("loss", "y"), ONE, ids=lambda v: repr(v) if not isinstance(v, np.ndarray) else "")
def test_newton_steps_between_bounds_certify_every_loss(loss, y, C):
    f = ex.LinearModel(loss, A, y)
    r, other = ex.minimize(f, C, tol=1e-8), ex.minimize(f, C, ex.AwayFW(), tol=1e-5, max_iter=20_000)
    assert r.converged
    assert C.contains(r.x, 0.0)
    assert r.value <= other.value + 1e-12
    assert other.value - r.value <= other.gap


def test_many_sparse_columns_go_by_products():
    rng = np.random.default_rng(0)
    M = sp.csr_array(rng.standard_normal((600, 900)) * (rng.random((600, 900)) < 0.02))
    y = np.where(M @ np.maximum(rng.standard_normal(900), 0) + 0.1 * rng.standard_normal(600) > 0.1, 1.0, -1.0)
    f = ex.InterceptModel(ex.Logistic(), M, y)
    r = ex.minimize(f, ex.Box(0.0, 2.0), tol=1e-6)
    assert r.converged
    assert r.n_iter < 60


def test_a_non_convex_loss_never_goes_up():
    f = ex.LinearModel(ex.NonlinearLeastSquares(), A, (LABELS + 1) / 2)
    r = ex.minimize(f, ex.LinfBall(3.0), max_iter=30, tol=1e-9, record=0.5)
    values = r.trace.value
    assert (np.diff(values) <= 1e-12).all()
    assert r.value < f.value(np.zeros(DIM))


def test_box_newton_refuses_other_sets():
    f = ex.LinearModel(ex.Squared(), A, SCORE)
    with pytest.raises(ex.InputError, match="BoxNewton needs a set of bounds"):
        ex.minimize(f, ex.L2Ball(1.0), ex.Method(ex.gradients.Growing(), ex.steps.FullStep(), ex.moves.BoxNewton()))
