"""Newton steps whose Hessian is known by its products: many columns of sparse rows, and data that are nearly separable."""

import numpy as np
import pytest
import scipy.sparse as sp

import extremal as ex
from extremal.moves.newton.spikes import spread_over
from extremal.objectives import column_blocks
from extremal.quadratic.solver import Quadratic
from extremal.run.headway import Headway
from extremal.sets.base import Spikes


def nearly_separable(n=1000, d=2000, draws=30, positives=300, seed=0):
    """Short documents by Zipf's law, with the largest of noisy margins as positives."""
    rng = np.random.default_rng(seed)
    p = (np.arange(d) + 10.0) ** -0.9
    rows, words = np.repeat(np.arange(n), draws), rng.choice(d, n * draws, p=p / p.sum())
    A = sp.csr_array((np.ones(n * draws), (rows, words)), shape=(n, d))
    A.sum_duplicates()
    A = sp.csr_array(sp.diags_array(1 / np.sqrt(A.multiply(A).sum(axis=1))) @ A)
    z = A @ rng.standard_normal(d)
    y = np.full(n, -1.0)
    y[np.argsort(z + 0.1 * rng.logistic(size=n))[-positives:]] = 1.0
    return ex.LinearModel(ex.Logistic(), A, y)


@pytest.mark.parametrize("radius", [3000.0, 10_000.0])
def test_nearly_separable_data_are_certified_to_ten_digits(radius, monkeypatch):
    f, products = nearly_separable(), []
    matmul = column_blocks.HessianProducts.__matmul__
    monkeypatch.setattr(column_blocks.HessianProducts, "__matmul__", lambda self, u: products.append(1) or matmul(self, u))
    r = ex.minimize(f, ex.L1Ball(radius), tol=1e-10, atol=0)
    assert r.converged, r
    assert np.count_nonzero(r.x) > column_blocks.FORMED_COLUMNS
    assert products
    g = f.grad(r.x)
    assert g @ r.x + radius * np.abs(g).max() <= 2e-10 * r.value


def test_a_weight_of_the_origin_that_is_rounding_is_none():
    """The origin has no curvature: a weight of 1e-17 would take over conjugate gradients."""
    ball, W = Spikes(-3.0, 3.0, True), np.arange(30)
    x = np.random.default_rng(0).standard_normal(30)
    for share in np.linspace(1.0, 1.0 - 1e-14, 7):
        place, scale, w = spread_over(x * (3.0 * share / np.abs(x).sum()), ball, W)
        assert w[-1] == 0.0
        assert (place[-1], scale[-1]) == (0, 0.0)
    assert spread_over(0.5 * x * (3.0 / np.abs(x).sum()), ball, W)[2][-1] == pytest.approx(0.5)


def test_products_reach_the_solution_of_an_array_far_below_its_level():
    """Slopes near a level of 1e6 differ by little: conjugate gradients subtract the level first."""
    rng = np.random.default_rng(0)
    k = 40
    B = rng.standard_normal((k, k))
    H, g = B @ B.T, rng.standard_normal(k) + 1e6
    w = Quadratic.over_weights(H, g, np.zeros(k)).minimise(np.full(k, 1 / k), 1e-11)

    class Products:
        def __matmul__(self, d):
            return H @ d

        def diagonal(self):
            return np.diag(H).copy()

    found = Quadratic.over_weights(Products(), g, np.zeros(k)).minimise(np.full(k, 1 / k), 1e-11)
    slopes = g + H @ found
    assert slopes[found > 0].max() - slopes.min() <= 1e-8
    np.testing.assert_allclose(found, w, atol=1e-8)


def test_one_pass_of_a_product_has_the_bits_of_two():
    f, rng = nearly_separable(), np.random.default_rng(0)
    v, h = rng.standard_normal(f.shape), rng.random(f.n)
    np.testing.assert_array_equal(f.data.gram_product(v, h), f.data.tdot(h * f.data.dot(v)))
    np.testing.assert_array_equal(f.data.gram_product(v), f.data.tdot(f.data.dot(v)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense_rows_are_read_at_the_columns_in_use(dtype):
    rng = np.random.default_rng(0)
    A, x = rng.standard_normal((300, 640)).astype(dtype), np.zeros(640)
    x[[3, 50, 600]] = rng.standard_normal(3)
    f = ex.LinearModel(ex.Logistic(), A, np.sign(A[:, 3]))
    z = A[:, x != 0].astype(np.float64) @ x[x != 0]
    A[:, x == 0] = np.nan  # the model has no copy
    np.testing.assert_allclose(f.margins(x), z, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(f.value(x), np.logaddexp(0, -f.y * z).mean(), rtol=1e-13)


# budgets


def test_a_default_budget_does_not_end_a_run_that_converges(monkeypatch):
    f = nearly_separable()
    whole = ex.minimize(f, ex.L1Ball(10_000.0), tol=1e-10, atol=0)
    short = whole.calls.grads // 2
    monkeypatch.setattr("extremal.run.driver.usual_grads", lambda f: short)
    monkeypatch.setattr("extremal.run.driver.extended_grads", lambda f, lmos: short)
    again = ex.minimize(f, ex.L1Ball(10_000.0), tol=1e-10, atol=0)
    assert again.converged
    np.testing.assert_array_equal(again.x, whole.x)
    assert ex.minimize(f, ex.L1Ball(10_000.0), tol=1e-10, atol=0, max_grads=short).status == "max_grads"  # a limit is a limit


@pytest.mark.parametrize(
    ("gap", "value", "converging"), [(0.09, 1.0, True), (0.2, 1.0, False), (1.0, 0.09, True), (1.0, -9.0, False)], ids=repr
)
def test_a_run_converges_if_the_last_third_of_its_work_gains_a_digit(gap, value, converging):
    headway = Headway()
    headway.marks = [(100, 50.0, 50.0), (600, 1.0, 1.0), (700, 0.5, 0.5)]
    headway.gap, headway.value = gap, value
    assert headway.converging(900) is converging
    assert not Headway().converging(900)


def test_a_run_that_float64_ends_says_which_gap_it_can_certify():
    f = nearly_separable()
    r = ex.minimize(f, ex.L1Ball(3000.0), tol=1e-17, atol=0)
    assert r.status == "precision"
    floor = float(r.why.split("certifies no gap below ")[1].split(",")[0])
    assert 1e-17 * r.value < floor < 1e-9 * r.value
    assert r.gap <= 100 * floor
    assert "certifies" not in ex.minimize(f, ex.L1Ball(3000.0), tol=1e-6).why
