"""Objectives: linear models on dense and sparse data, and `Separable` of the same functions, are one and the same sum."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from cases import DIM, LOSSES, MATRIX, VERTICES, N, full, model, separable, targets, truth

import extremal as ex

X = np.linspace(-1.0, 1.5, DIM)
ROWS = {"some": np.array([9, 0, 31]), "repeated": np.array([4, 4, 1]), "all": None}


@pytest.fixture(params=LOSSES, ids=repr)
def loss(request):
    return request.param


def kinds(loss):
    return model(loss), model(loss, "csr"), separable(loss)


@pytest.fixture(params=["dense", "csr", "separable"])
def f(request, loss):
    return separable(loss) if request.param == "separable" else model(loss, request.param)


def test_facts_of_the_sum(f, loss):
    assert f.n == N
    assert f.shape == (DIM,)
    assert f.dtype == np.float64
    assert f.convex == loss.convex
    assert f.deriv_shape == (() if isinstance(f, ex.LinearModel) else (DIM,))


def test_value_and_gradient(f, loss):
    value, g = full(loss, X)
    assert f.value(X) == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(f.grad(X), g, atol=1e-13)
    both = f.value_and_grad(X)
    assert both[0] == f.value(X)
    np.testing.assert_allclose(both[1], g, atol=1e-13)


def test_gradient_against_finite_differences(f):
    h = 1e-6
    slopes = [(f.value(X + h * e) - f.value(X - h * e)) / (2 * h) for e in np.eye(DIM)]
    np.testing.assert_allclose(f.grad(X), slopes, atol=1e-6)


@pytest.mark.parametrize("idx", ROWS.values(), ids=ROWS)
def test_combined_derivatives_are_the_mean_of_component_gradients(f, loss, idx):
    rows = np.arange(N) if idx is None else idx
    c = f.derivs(X, idx)
    assert c.shape == (len(rows), *f.deriv_shape)
    wanted = truth(loss)[1](MATRIX[rows] @ X, targets(loss)[rows])[:, None] * MATRIX[rows]
    np.testing.assert_allclose(f.combine(c, idx), wanted.mean(axis=0), atol=1e-13)
    np.testing.assert_allclose(f.combine(3.0 * c, idx), 3.0 * wanted.mean(axis=0), atol=1e-13)  # linear in c


@pytest.mark.parametrize("s", VERTICES, ids=lambda v: type(v).__name__)
def test_along_a_segment(f, loss, s):
    line, to = f.along(X, s), s.to_array() - X
    for t in (0.0, 0.3, 1.0):
        value, g = full(loss, X + t * to)
        assert line.value(t) == pytest.approx(value, rel=1e-12)
        assert line.slope(t) == pytest.approx(g @ to, rel=1e-10, abs=1e-13)
    assert line.grads_per_slope == (0 if isinstance(f, ex.LinearModel) else N)


def test_float32_rows_are_read_as_they_are_and_everything_else_is_in_float64(loss):
    exact = separable(loss, MATRIX.astype(np.float32).astype(np.float64))
    for kind in ("dense", "csr"):
        f = model(loss, kind, np.float32)
        assert f.data.dtype == np.float32
        assert f.dtype == f.y.dtype == f.grad(X).dtype == np.float64
        assert f.derivs(X, np.array([1, 2])).dtype == f.combine(f.derivs(X)).dtype == np.float64
        np.testing.assert_allclose(f.grad(X), exact.grad(X), rtol=0, atol=1e-13)
        assert f.value(X) == pytest.approx(exact.value(X), rel=1e-13)


@pytest.mark.parametrize(("n", "d"), [(200, 5), (200, 64), (50, 65), (300, 100), (20, 400), (1, 3), (1, 90), (7, 1)])
@pytest.mark.parametrize("sparse", [False, True])
def test_smoothness_is_the_largest_eigenvalue(n, d, sparse):
    rng = np.random.default_rng(n + d)
    A = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.5) * np.linspace(0.1, 3, d)
    exact = float(np.linalg.norm(A, 2)) ** 2 / n
    for loss, scale in ((ex.Squared(), 1.0), (ex.Logistic(), 0.25)):
        f = ex.LinearModel(loss, sp.csr_array(A) if sparse else A, np.ones(n))
        assert f.smoothness >= scale * exact * (1 - 1e-6)
        assert f.smoothness <= scale * exact * (1 + 1e-5)


@pytest.mark.parametrize("d", [20, 90])
def test_smoothness_with_clustered_eigenvalues(d):
    A = np.vstack([np.eye(d), 0.999 * np.eye(d), np.ones((1, d)) / np.sqrt(d)])
    exact = float(np.linalg.eigvalsh(A.T @ A)[-1]) / len(A)
    assert ex.LinearModel(ex.Squared(), A, np.ones(len(A))).smoothness == pytest.approx(exact, rel=2e-6)


@pytest.mark.parametrize("d", [30, 90])
def test_smoothness_in_float32(d):
    A = (np.random.default_rng(0).standard_normal((3000, d)) + 1.0).astype(np.float32)
    exact = float(np.linalg.norm(A.astype(np.float64), 2)) ** 2 / len(A)
    smoothness = ex.LinearModel(ex.Squared(), A, np.ones(len(A))).smoothness
    assert exact * (1 - 1e-6) <= smoothness <= exact * (1 + 1e-5)


@pytest.mark.parametrize("d", [3, 90])
def test_smoothness_of_zero_data(d):
    assert ex.LinearModel(ex.Squared(), np.zeros((4, d)), np.ones(4)).smoothness == pytest.approx(0.0, abs=1e-12)


def test_smoothness_bounds_the_change_of_the_gradient(loss):
    rng = np.random.default_rng(0)
    for f in kinds(loss):
        for _ in range(50):
            a, b = rng.standard_normal((2, DIM))
            assert np.linalg.norm(f.grad(a) - f.grad(b)) <= f.smoothness * np.linalg.norm(a - b) * (1 + 1e-5)


def test_row_smoothness(loss):
    for kind in ("dense", "csr"):
        f = model(loss, kind)
        np.testing.assert_allclose(f.row_smoothness, loss.curvature * (MATRIX**2).sum(axis=1), rtol=1e-12)
        assert f.row_smoothness.mean() >= f.smoothness * (1 - 1e-5)


@pytest.mark.parametrize("chunk", [1, 7, N - 1, N, 1000])
def test_separable_sums_in_chunks(monkeypatch, loss, chunk):
    f, sizes = separable(loss), []
    monkeypatch.setattr(f, "_chunk", chunk)
    grad = f._grad
    monkeypatch.setattr(f, "_grad", lambda x, idx: sizes.append(len(idx)) or grad(x, idx))
    value, g = f.value_and_grad(X)
    np.testing.assert_allclose(g, full(loss, X)[1], atol=1e-13)
    assert value == pytest.approx(full(loss, X)[0], rel=1e-12)
    assert sum(sizes) == N
    assert max(sizes) == min(chunk, N)


def test_separable_chunks_fit_64_mib():
    f = ex.Separable(10**6, (1000, 1000), grad=abs, value=abs, dtype=np.float32)
    assert f._chunk * 4 * 10**6 <= 2**26
    assert ex.Separable(5, 10**9, grad=abs, value=abs)._chunk == 1


def test_separable_of_a_matrix():
    P = np.random.default_rng(0).standard_normal((6, 2, 3))
    f = ex.Separable(6, (2, 3), lambda x, i: x - P[i], lambda x, i: ((x - P[i]) ** 2).sum(axis=(1, 2)) / 2)
    x = np.ones((2, 3))
    np.testing.assert_allclose(f.grad(x), x - P.mean(axis=0))
    np.testing.assert_allclose(f.combine(f.derivs(x, np.array([2, 5])), np.array([2, 5])), x - P[[2, 5]].mean(axis=0))
    s = ex.points.Coordinate(4, 2.0, (2, 3))
    assert f.along(x, s).slope(0.5) == pytest.approx(float(np.vdot(f.grad((x + s.to_array()) / 2), s.to_array() - x)))


def test_separable_float32():
    f = ex.Separable(3, 2, lambda x, i: np.ones((len(i), 2)), lambda x, i: np.ones(len(i)), dtype=np.float32)
    assert f.grad(np.zeros(2, np.float32)).dtype == f.derivs(np.zeros(2, np.float32), np.array([0])).dtype == np.float32


@pytest.mark.parametrize("wrong", [lambda x, i: x, lambda x, i: np.ones((len(i), 3)), lambda x, i: 1.0, lambda x, i: x[None]])
def test_separable_refuses_gradients_of_a_wrong_shape(wrong):
    f = ex.Separable(4, 2, grad=wrong, value=lambda x, i: np.ones(len(i)))
    with pytest.raises(ex.InputError, match=r"`Separable\(grad=\.\.\.\)` must answer one gradient per index"):
        f.grad(np.zeros(2))


@pytest.mark.parametrize("wrong", [lambda x, i: 1.0, lambda x, i: np.ones(len(i) + 1), lambda x, i: np.ones((len(i), 1))])
def test_separable_refuses_values_of_a_wrong_shape(wrong):
    f = ex.Separable(4, 2, grad=lambda x, i: np.ones((len(i), 2)), value=wrong)
    with pytest.raises(ex.InputError, match=r"`Separable\(value=\.\.\.\)` must answer one value per index"):
        f.value(np.zeros(2))


def test_separable_without_smoothness_says_what_is_missing():
    f = ex.Separable(4, 2, grad=lambda x, i: np.ones((len(i), 2)), value=lambda x, i: np.ones(len(i)))
    with pytest.raises(ex.InputError, match="smoothness=L"):
        f.smoothness


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("n", {"n": 0}),
        ("n", {"n": 2.0}),
        ("shape", {"shape": 0}),
        ("shape", {"shape": (2, -1)}),
        ("shape", {"shape": 2.5}),
        ("grad", {"grad": None}),
        ("value", {"value": 3}),
        ("smoothness", {"smoothness": -1}),
        ("smoothness", {"smoothness": np.nan}),
        ("dtype", {"dtype": complex}),
        ("dtype", {"dtype": int}),
    ],
)
def test_separable_refuses(name, wrong):
    good = {"n": 2, "shape": 2, "grad": lambda x, i: np.eye(2)[i], "value": lambda x, i: np.ones(len(i))}
    with pytest.raises(ex.InputError, match=rf"`Separable\({name}=\.\.\.\)`"):
        ex.Separable(**(good | wrong))


# rows in random order


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_shuffled_is_the_same_sum_in_another_order(loss, kind, dtype):
    f, x = model(loss, kind, dtype), X
    h = f.shuffled(seed=3)
    assert h.blocks
    assert not f.blocks
    assert f.order is None
    np.testing.assert_array_equal(np.sort(h.order), np.arange(N))
    assert (h.order != np.arange(N)).any()
    assert (h.dtype, h.data.dtype) == (np.float64, dtype)
    np.testing.assert_array_equal(h.y, f.y[h.order])
    np.testing.assert_array_equal(h.derivs(x, np.arange(N)), f.derivs(x, h.order))
    np.testing.assert_allclose(h.grad(x), f.grad(x), atol=1e-14)
    assert h.value(x) == pytest.approx(f.value(x), rel=1e-14)
    np.testing.assert_array_equal(h.row_smoothness, f.row_smoothness[h.order])
    assert h.smoothness == pytest.approx(f.smoothness, rel=1e-6)


def test_orders_follow_the_seed_and_can_be_undone(loss):
    f = model(loss, "csr")
    _ = f.row_smoothness, f.derivs(X)  # what has been computed is not taken over
    once, again, other = f.shuffled(1), f.shuffled(1), f.shuffled(2)
    np.testing.assert_array_equal(once.order, again.order)
    assert (once.order != other.order).any()
    twice = once.shuffled(5)  # order says which row of f it is
    np.testing.assert_array_equal(twice.derivs(X), f.derivs(X)[twice.order])
    back = np.empty(N)
    back[once.order] = once.derivs(X)
    np.testing.assert_array_equal(back, f.derivs(X))
    np.testing.assert_array_equal(f.derivs(X), model(loss, "csr").derivs(X))


def test_shuffled_keeps_its_flag():
    h = pickle.loads(pickle.dumps(model(ex.Squared(), "csr").shuffled()))
    assert h.blocks
    assert h.dense().blocks
    assert len(h.dense().order) == N
    result = ex.minimize(h, ex.L1Ball(1.0), method="sarah-fw", max_grads=30 * N)
    whole = ex.minimize(model(ex.Squared(), "csr"), ex.L1Ball(1.0), method="frank-wolfe", max_iter=500)
    assert result.value <= whole.value + result.gap + whole.gap


def test_shuffled_refuses():
    with pytest.raises(ex.InputError, match=r"`shuffled\(seed=\.\.\.\)`"):
        model(ex.Squared()).shuffled(seed=-1)
    with pytest.raises(ex.InputError, match="dense and sparse rows"):
        ex.LinearModel(ex.Squared(), ex.Entries([0, 1], [1, 0], (2, 3)), np.ones(2)).shuffled()
