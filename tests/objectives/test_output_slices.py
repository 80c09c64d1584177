"""Second derivatives of linear models with several outputs, and Newton steps over matrices."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import extremal as ex
from extremal.objectives import on_columns_multi
from extremal.objectives.margins import has_slices

N, D, K = 150, 5, 3
RNG = np.random.default_rng(3)
A = RNG.standard_normal((N, D)) * (RNG.random((N, D)) < 0.8)
SCORES = A @ RNG.standard_normal((D, K)) + RNG.gumbel(size=(N, K))
CLASSES = SCORES.argmax(axis=1).astype(float)
WEIGHTS = RNG.integers(0, 3, N).astype(float)
LOSSES = [
    (ex.Multinomial(K), CLASSES),
    (ex.MultiTask(ex.Squared(), K), SCORES),
    (ex.MultiTask(ex.Logistic(), K), np.sign(SCORES)),
]
MODELS = [ex.LinearModel, ex.InterceptModel]
W = np.array([0, 1, 4, 7, 8, 13])


def name(value) -> str:
    return repr(value) if not isinstance(value, np.ndarray) else ""


@pytest.fixture(params=MODELS)
def model(request):
    return request.param


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["", "weighted"])
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array])
@pytest.mark.parametrize(("loss", "y"), LOSSES, ids=name)
def test_hessians_are_derivatives_of_gradients_formed_or_not(loss, y, kind, weights, model, monkeypatch):
    f = model(loss, kind(A), y, weights)
    x = 0.3 * np.random.default_rng(0).standard_normal((D, K))
    z, h = f.margins(x), 1e-5
    H = f.on_columns(W).hessian(z)
    columns = []
    for w in W:
        e = np.zeros(D * K)
        e[w] = h
        e = e.reshape(D, K)
        columns.append(((f.grad(x + e) - f.grad(x - e)) / (2 * h)).reshape(-1)[W])
    np.testing.assert_allclose(H, np.stack(columns), atol=1e-7)
    for full in (0.0, 2.0) if kind is sp.csr_array else ():  # by dense arrays; by stored entries for each pair of outputs
        monkeypatch.setattr(on_columns_multi, "FULL", full)
        np.testing.assert_allclose(f.on_columns(W).hessian(z), H, atol=1e-12)
    monkeypatch.setattr(on_columns_multi, "WIDE", 2)
    products = f.on_columns(W).hessian(z)
    np.testing.assert_allclose(np.stack([products @ e for e in np.eye(len(W))]), H, atol=1e-12)
    if model is ex.LinearModel:
        np.testing.assert_allclose(products.diagonal(), H.diagonal(), atol=1e-12)


@pytest.mark.parametrize("full", [0.0, 2.0], ids=["arrays", "entries"])
@pytest.mark.parametrize("elsewhere", [True, False], ids=["on disk", "in memory"])
def test_curvature_that_is_negative_counts_as_positive(full, elsewhere, tmp_path, monkeypatch):
    monkeypatch.setattr(on_columns_multi, "FULL", full)
    loss, y = ex.MultiTask(ex.NonlinearLeastSquares(), K), (np.sign(SCORES) + 1) / 2
    ex.ShardDir.build((sp.csr_array(A), y), tmp_path, shuffle=False, shard_bytes=2**12)
    f = ex.LinearModel(loss, ex.ShardDir(tmp_path, engine="disk")) if elsewhere else ex.LinearModel(loss, sp.csr_array(A), y)
    x = 6.0 * np.random.default_rng(0).standard_normal((D, K))
    bent = loss.curvature_rows(A @ x, y)[0]
    assert (bent < 0).any()
    blocks = [A.T @ (np.abs(bent[:, c, None]) * A) / N for c in range(K)]
    whole = np.zeros((D, K, D, K))
    for c, block in enumerate(blocks):
        whole[:, c, :, c] = block
    expected = whole.reshape(D * K, D * K)[np.ix_(W, W)]
    z = f.margins(x)
    np.testing.assert_allclose(f.on_columns(W).hessian(z), expected, atol=1e-12)
    for name in ("WIDE", "LONG_COLUMNS"):
        monkeypatch.setattr(on_columns_multi, name, 2)
    products = f.on_columns(W).hessian(z)
    np.testing.assert_allclose(np.stack([products @ e for e in np.eye(len(W))]), expected, atol=1e-12)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["", "weighted"])
@pytest.mark.parametrize(("loss", "y"), LOSSES, ids=name)
def test_rows_on_disk_have_equal_hessians_and_bring_no_numbers_here(loss, y, weights, model, tmp_path, monkeypatch):
    w = np.ones(N) if weights is None else weights
    ex.ShardDir.build(iter([(sp.csr_array(A), y, w)]), tmp_path, shuffle=False, shard_bytes=2**12)
    data = ex.ShardDir(tmp_path, engine="disk")
    assert len(data.manifest.shards) > 2
    near, f = model(loss, A, y, weights), model(loss, data)
    x = 0.3 * np.random.default_rng(0).standard_normal((D, K))
    wanted = near.on_columns(W).hessian(near.margins(x))
    best = ex.minimize(near, ex.L1Ball(2.0), tol=1e-8)

    def refused(self, numbers):
        raise AssertionError("numbers of all rows came here")

    monkeypatch.setattr(ex.LinearModel, "here", refused)
    monkeypatch.setattr(ex.InterceptModel, "here", refused)
    z = f.margins(x)
    np.testing.assert_allclose(f.on_columns(W).hessian(z), wanted, atol=1e-12)
    monkeypatch.setattr(on_columns_multi, "LONG_COLUMNS", 2)
    products = f.on_columns(W).hessian(z)
    np.testing.assert_allclose(np.stack([products @ e for e in np.eye(len(W))]), wanted, atol=1e-12)
    r = ex.minimize(f, ex.L1Ball(2.0), tol=1e-8)
    assert r.converged
    assert r.value == pytest.approx(best.value, abs=2e-8 * abs(best.value) + 1e-10)


@pytest.mark.parametrize("C", [ex.L1Ball(2.0), ex.Box(-0.3, 0.4), ex.L2Ball(1.0), ex.LinfBall(0.2)], ids=repr)
@pytest.mark.parametrize(("loss", "y"), LOSSES, ids=name)
def test_newton_steps_over_matrices_agree_with_first_order_methods(loss, y, C, model):
    f = model(loss, A, y, WEIGHTS)
    r = ex.minimize(f, C, tol=1e-8)
    assert r.converged
    assert r.why is not None
    assert r.why.startswith("NewtonFW")
    other = ex.minimize(f, C, ex.FullyCorrectiveFW(), tol=1e-5, max_iter=2000)
    assert r.value <= other.value + 1e-12
    assert other.value - r.value <= other.gap + 1e-12


def test_many_coordinates_go_by_products_and_converge(monkeypatch, model):
    monkeypatch.setattr(on_columns_multi, "WIDE", 4)
    f = model(ex.Multinomial(K), sp.csr_array(A), CLASSES)
    for C in (ex.L1Ball(3.0), ex.Box(-0.5, 0.5)):
        r = ex.minimize(f, C, tol=1e-7)
        assert r.converged
        assert r.n_iter < 60


def test_line_searches_count_on_intercepts_that_move():
    f = ex.InterceptModel(ex.Multinomial(K), A, CLASSES)
    x, u = np.zeros((D, K)), 0.2 * np.random.default_rng(1).standard_normal((D, K))
    line = f.between(f.margins(x), f.margins(u))
    h = 1e-3
    bend = (line.value(h) - 2 * line.value(0) + line.value(-h)) / h**2
    exact = (f.value(x + h * u) - 2 * f.value(x) + f.value(x - h * u)) / h**2
    assert line.value(0.0) == pytest.approx(f.value(x), rel=1e-14)
    assert bend == pytest.approx(exact, rel=1e-3)
    assert all(line.value(t) >= f.value(x + t * u) - 1e-14 for t in (0.1, 1.0, 3.0))


def test_a_loss_without_second_derivatives_has_no_slices():
    class Plain:
        curvature, convex, labels = 1.0, True, None

        def value(self, z, y):
            return 0.5 * (z - y) ** 2

        def deriv(self, z, y):
            return z - y

    assert not has_slices(ex.LinearModel(ex.MultiTask(Plain(), K), A, SCORES))
    assert not has_slices(ex.LinearModel(ex.MultiTask(Plain(), K), A, SCORES, WEIGHTS))
    r = ex.minimize(ex.LinearModel(ex.MultiTask(Plain(), K), A, SCORES), ex.L1Ball(1.0), tol=1e-4)
    assert r.converged


def test_float32_rows_reach_the_tolerance_of_float64_rows():
    f = ex.InterceptModel(ex.Multinomial(K), A.astype(np.float32), CLASSES)
    r = ex.minimize(f, ex.L1Ball(2.0), tol=1e-8)
    assert r.converged
    assert r.x.dtype == np.float64
