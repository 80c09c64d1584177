"""Second-order corrective steps: the quadratic programs, the Hessians, and the method on every kind of set."""

import itertools

import cases
import numpy as np
import pytest
import scipy.sparse as sp

import extremal as ex
from extremal.kernels.terms import exp_negative, line, log1p_unit, terms
from extremal.losses.margin import compiled
from extremal.moves.newton.spikes import coordinates, least_products
from extremal.objectives import column_blocks
from extremal.objectives.margins import has_slices
from extremal.quadratic.search import armijo
from extremal.sets.base import Spikes

LOSSES = (ex.Logistic(), ex.NonlinearLeastSquares(), ex.Squared(), ex.Huber(0.7))


def problem(loss, n=400, d=12, seed=0, sparse=False, dtype=np.float64):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) * (rng.random((n, d)) < (0.3 if sparse else 1.0))
    z = A @ rng.standard_normal(d) + 0.5 * rng.standard_normal(n)
    y = z if loss.labels is None else np.where(z > 0, loss.labels[1], loss.labels[0])
    A = A.astype(dtype)
    return ex.LinearModel(loss, sp.csr_array(A) if sparse else A, y)


# elementary functions and terms


def test_exp_and_log_to_the_last_digits():
    a = np.concatenate([np.geomspace(1e-300, 700, 2000), [0.0, 1e-17, 1.0, 800.0, np.inf]])
    out = np.empty_like(a)
    exp_negative(a, out)
    exact = np.exp(-np.minimum(a, 708.0).astype(np.longdouble))
    assert np.abs(out / exact - 1).max() < 3e-16
    e, logs = np.concatenate([np.geomspace(1e-300, 1, 3000), [0.0]]), np.empty(3001)
    log1p_unit(e, logs)
    assert np.abs(logs - np.log1p(e.astype(np.longdouble))).max() <= 3e-16
    assert np.abs(logs[:-1] / np.log1p(e[:-1].astype(np.longdouble)) - 1).max() < 5e-16


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("size", [0, 1, 7, 1024, 2500])
def test_terms_are_the_losses(loss, size):
    rng = np.random.default_rng(0)
    z = rng.standard_normal(size) * np.geomspace(1, 300, max(size, 1))[:size]
    y = rng.choice(loss.labels, size) if loss.labels else rng.standard_normal(size)
    c, h = np.empty(size), np.empty(size)
    total = terms(*compiled(loss), z, y, True, c, h)
    np.testing.assert_allclose(total, loss.value(z, y).sum(), rtol=1e-13)
    np.testing.assert_allclose(c, loss.deriv(z, y), rtol=1e-12, atol=1e-300)
    np.testing.assert_allclose(h, loss.second(z, y), rtol=1e-9, atol=1e-16)
    np.testing.assert_allclose(
        line(*compiled(loss), z, c, 0.3, y, True, c[:0], c[:0]), loss.value(z + 0.3 * c, y).sum(), rtol=1e-13
    )


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_second_derivatives_are_those_of_the_first(loss):
    z = np.linspace(-3, 3, 101) + 1e-3
    for y in loss.labels or (-0.4, 0.0):
        y, step = np.full_like(z, y), 1e-6
        numeric = (loss.deriv(z + step, y) - loss.deriv(z - step, y)) / (2 * step)
        away = np.abs(np.abs(z - y) - getattr(loss, "delta", np.inf)) > 1e-3  # from where it jumps
        np.testing.assert_allclose(loss.second(z, y)[away], numeric[away], atol=1e-8)


# slices


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_hessians_of_some_columns(loss, sparse, dtype):
    f = problem(loss, sparse=sparse, dtype=dtype)
    A = f.data.block.array()
    x, tol = 0.3 * np.linspace(-1, 1, 12), 1e-12
    z = f.margins(x)
    for W in (np.array([3]), np.array([0, 5, 11]), np.arange(12)):
        part = f.on_columns(W)
        B, h = A[:, W].astype(np.float64), loss.second(z, f.y)
        H = B.T @ (h[:, None] * B) / f.n
        if np.linalg.eigvalsh(H)[0] <= 0:
            H = B.T @ (np.abs(h)[:, None] * B) / f.n
        coarse = dtype == np.float32 and not sparse  # blocks of dense float32 rows are multiplied as they are
        np.testing.assert_allclose(part.hessian(z), H, atol=1e-6 if coarse else tol)
        d = np.ones(len(W))
        np.testing.assert_allclose(part.dot(d), B @ d, atol=10 * tol)


def test_many_columns_go_by_products(monkeypatch):
    f = problem(ex.Logistic(), sparse=True)
    part, z = f.on_columns(np.arange(1, 12)), f.margins(np.full(12, 0.1))
    H = part.hessian(z)
    monkeypatch.setattr("extremal.objectives.column_blocks.ColumnBlock.formed", False)
    products = part.hessian(z)
    assert not isinstance(products, np.ndarray)
    np.testing.assert_allclose(products.diagonal(), H.diagonal(), atol=1e-14)
    np.testing.assert_allclose(products @ np.arange(11.0), H @ np.arange(11.0), atol=1e-13)


def test_sparse_rows_that_are_full_have_a_formed_hessian():
    """Conjugate gradients lead nowhere on columns that are far from 0 and nearly the same (as in madelon)."""
    rng = np.random.default_rng(0)
    rows = sp.csr_array(480 + 20 * rng.standard_normal((700, 450)))
    f = ex.LinearModel(ex.Logistic(), rows, np.where(rng.random(700) < 0.5, 1.0, -1.0))
    assert ex.minimize(f, ex.L1Ball(2000.0)).converged


def test_which_objectives_have_slices():
    assert has_slices(problem(ex.Huber()))
    assert not has_slices(cases.separable(ex.Squared()))
    assert has_slices(ex.LinearModel(ex.Multinomial(3), np.eye(3), np.array([0, 1, 2])))
    assert not has_slices(ex.LinearModel(ex.Squared(), ex.Entries([0, 1], [1, 0], (2, 2)), np.array([1.0, 2.0])))


def test_look_is_one_pass_of_three():
    for sparse in (False, True):
        f = problem(ex.Logistic(), sparse=sparse)
        x = np.linspace(-1, 1, 12)
        value, g, z = f.value_grad_margins(x)
        assert value == pytest.approx(f.value(x), rel=1e-14)
        np.testing.assert_allclose(g, f.grad(x), atol=1e-15)
        np.testing.assert_allclose(z, f.margins(x), atol=1e-14)


def test_a_sample_is_the_mean_of_its_rows():
    f = problem(ex.Logistic(), sparse=True)
    rows, x = np.array([3, 7, 100]), np.linspace(-1, 1, 12)
    part = f.sample(rows)
    assert part.n == 3
    assert part.value(x) == pytest.approx(f.values(x, rows).mean())
    assert part.smoothness != f.smoothness


# parts of the moves


def test_coordinates_are_those_in_use_and_the_best_others():
    promise = np.array([0.1, 5.0, -1.0, 3.0, 4.0, 0.0])
    np.testing.assert_array_equal(coordinates(promise, np.array([2]), 0.05, 2), [1, 2, 4])
    np.testing.assert_array_equal(coordinates(promise, np.array([2, 4]), 3.5, 9), [1, 2, 4])


def test_least_is_the_best_vertex_at_each_coordinate():
    g = np.array([1.0, -2.0, 0.0])
    np.testing.assert_array_equal(least_products(Spikes(-3.0, 3.0, True), g), [-3.0, -6.0, 0.0])
    np.testing.assert_array_equal(least_products(Spikes(0.0, 3.0, False), g), [3.0, -6.0, 0.0])


@pytest.mark.parametrize(
    "C", [ex.L1Ball(2.0), ex.Simplex(3.0), ex.UnitSimplex(2.0), ex.WeightedL1Ball(2.0, weights=np.arange(1.0, 13.0))], ids=repr
)
def test_spikes_are_the_vertices(C):
    rng, spikes = np.random.default_rng(0), C.spikes()
    for _ in range(20):
        g = rng.standard_normal(12)
        found = min(least_products(spikes, g).min(), 0.0 if isinstance(C, ex.UnitSimplex) else np.inf)
        assert C.lmo(g).dot(g) == pytest.approx(found, rel=1e-14)
    assert C.on(12).contains(np.zeros(12)) == spikes.origin
    assert ex.L1Ball(1.0, centre=np.ones(3)).spikes() is None


class _Line:
    grads_per_slope = 0

    def __init__(self, f):
        self.f, self.asked = f, []

    def value(self, t):
        self.asked.append(t)
        return self.f(t)


def test_armijo_shortens_and_lengthens():
    assert armijo(_Line(lambda t: (t - 1) ** 2), 1.0, -2.0, 1.0, np.inf) == 1.0
    assert armijo(_Line(lambda t: (4 * t - 1) ** 2), 1.0, -8.0, 4.0, np.inf) == 0.25
    assert armijo(_Line(lambda t: (t / 5 - 1) ** 2), 1.0, -0.4, 0.2, np.inf) > 2  # f falls more than the model has said
    assert armijo(_Line(lambda t: (t / 5 - 1) ** 2), 1.0, -0.4, 0.2, 1.5) == 1.5
    assert armijo(_Line(lambda t: 1.0 + t), 1.0, -1.0, 0.0, np.inf) == 0.0


# the method


SETS = (
    ex.L1Ball(1.5), ex.L1Ball(100.0), ex.L1Ball(0.01), ex.Simplex(2.0), ex.UnitSimplex(0.5), ex.UnitSimplex(50.0),
    ex.WeightedL1Ball(2.0, weights=np.linspace(0.5, 3, 12)), ex.L2Ball(0.7), ex.LinfBall(0.3), ex.Box(-0.1, 0.4),
    ex.GroupBall(1.0, np.arange(12) // 3), ex.KSupportBall(1.0, 3), ex.OwlBall(1.0, np.linspace(2, 1, 12)),
    ex.L1Ball(1.0, centre=np.ones(12)), ex.CappedSimplex(3.0), ex.LpBall(1.0, 3.0),
    ex.Polytope(np.vstack([np.eye(12), -np.eye(12), np.ones((1, 12))]), np.full(25, 0.4)),
)  # fmt: skip


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("C", SETS, ids=lambda C: type(C).__name__)
def test_every_set_to_a_certified_optimum(loss, C):
    f = problem(loss)
    r = ex.minimize(f, C, ex.NewtonFW(), tol=1e-7, atol=1e-9, max_iter=150)
    assert r.converged, r
    assert C.on(12).contains(r.x)
    x = r.x.astype(np.longdouble)  # the certificate in extended precision
    A, y = f.data.array.astype(np.longdouble), f.y.astype(np.longdouble)
    if isinstance(loss, ex.Logistic):
        z = A @ x
        value, c = np.logaddexp(0, -y * z).mean(), -y / (1 + np.exp(y * z))
        g = A.T @ c / f.n
        gap = g @ x - float(C.on(12).lmo(g.astype(np.float64)).dot(g.astype(np.float64)))
        assert r.value == pytest.approx(float(value), rel=1e-13)
        assert r.gap == pytest.approx(float(gap), abs=1e-14)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_kinds_of_data(sparse, dtype):
    f = problem(ex.Logistic(), n=3000, sparse=sparse, dtype=dtype)
    for C in (ex.L1Ball(1.0), ex.GroupBall(1.0, np.arange(12) // 3)):
        r = ex.minimize(f, C, "newton-fw", tol=1e-8, max_iter=100)
        assert r.converged
        assert r.x.dtype == np.float64


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("C", [ex.L1Ball(5.0), ex.L2Ball(3.0)], ids=repr)
def test_f_never_increases_once_all_rows_are_in(loss, C):
    f = problem(loss, n=5000, sparse=True, seed=2)
    values = []
    ex.minimize(
        f,
        C,
        ex.NewtonFW(parts=4),
        tol=0,
        atol=0,
        max_iter=25,
        callback=lambda s: values.append(s.estimate.value) if s.exact else None,
    )
    assert len(values) > 2
    assert all(b <= a * (1 + 1e-14) for a, b in itertools.pairwise(values))


def test_quadratic_convergence():
    f, gaps = problem(ex.Logistic(), n=5000, seed=1), []
    r = ex.minimize(f, ex.L1Ball(2.0), ex.NewtonFW(parts=1), tol=1e-12, max_iter=30, callback=lambda s: gaps.append(s.gap(s.g)))
    assert r.converged
    assert len(gaps) < 12
    assert any(b < 0.1 * a for a, b in itertools.pairwise(gaps[-3:]))


def test_every_gradient_and_row_of_a_hessian_counts():
    for n, passes in ((12_000, 3), (300, 5)):  # a gradient, a Hessian, a gradient; one more of each by compiled steps
        f = problem(ex.Squared(), n=n)
        method = ex.Method(ex.gradients.Growing(parts=1), ex.steps.FullStep(), ex.moves.SpikeNewton())
        r = ex.minimize(f, ex.L1Ball(1.0), method, tol=1e-10)
        assert r.n_iter == 1
        assert r.calls.grads == passes * n
        assert r.calls.certificate == 0
        assert r.calls.lmos == 1


def test_a_sample_counts_its_rows():
    f = problem(ex.Logistic(), n=8000)
    r = ex.minimize(f, ex.L1Ball(1.0), ex.NewtonFW(parts=4), max_iter=1, tol=0, atol=0)
    assert r.calls.grads in (3 * 2000, 3 * 2000 + 8000)  # and all rows, if the sample had no more to say
    assert r.calls.certificate in (0, 8000)


def test_every_product_with_a_hessian_counts(monkeypatch):
    f, asked = problem(ex.Logistic(), n=12_000, sparse=True), []
    monkeypatch.setattr("extremal.objectives.column_blocks.ColumnBlock.formed", False)
    matmul = column_blocks.HessianProducts.__matmul__
    monkeypatch.setattr(column_blocks.HessianProducts, "__matmul__", lambda self, u: asked.append(1) or matmul(self, u))
    r = ex.minimize(f, ex.L1Ball(1.0), ex.NewtonFW(parts=1), tol=1e-8)
    assert r.converged
    assert len(asked) > 5
    gradients, formed = r.n_iter + 1, r.calls.grads // f.n - (r.n_iter + 1) - len(asked)
    assert 1 <= formed <= r.n_iter
    assert r.calls.grads == (gradients + formed + len(asked)) * f.n


def test_separable_data_go_to_the_boundary():
    """Margins grow without end: steps longer than Newton's, or many of them."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((500, 5))
    f = ex.LinearModel(ex.Logistic(), A, np.sign(A[:, 0]))
    r = ex.minimize(f, ex.L1Ball(1e4), "newton-fw", tol=1e-4, atol=1e-10, max_iter=60)
    assert r.converged
    assert r.value < 1e-8


@pytest.mark.parametrize("C", [ex.L1Ball(0.7), ex.Box(-0.2, 0.1), ex.L2Ball(0.5), ex.CappedSimplex(0.3)], ids=repr)
def test_sums_without_second_derivatives_learn_them(C):
    """A `Separable` ends where the linear model does, over spikes, bounds and atoms; its counts are gradients alone."""
    f, known = problem(ex.Logistic(), n=300), problem(ex.Logistic(), n=300)
    A, y = known.data.array, known.y
    f = ex.Separable(
        300, 12, grad=lambda x, i: known.loss.deriv(A[i] @ x, y[i])[:, None] * A[i],
        value=lambda x, i: known.loss.value(A[i] @ x, y[i]), convex=True,
    )  # fmt: skip
    r, exact = ex.minimize(f, C, tol=1e-6), ex.minimize(known, C, tol=1e-9)
    assert r.converged
    assert r.value <= exact.value + r.gap
    assert "learnt from gradients" in r.why


def test_what_it_refuses():
    entries = ex.LinearModel(ex.Squared(), ex.Entries([0, 1, 1], [2, 0, 1], (2, 3)), np.array([1.0, 2.0, -1.0]))
    with pytest.raises(ex.InputError, match="LowRankFW"):
        ex.minimize(entries, ex.NuclearBall(1.0), "newton-fw")
    with pytest.raises(ex.InputError, match="one entry each"):
        ex.minimize(
            problem(ex.Squared()), ex.L2Ball(1.0), ex.Method(ex.gradients.Growing(), ex.steps.FullStep(), ex.moves.SpikeNewton())
        )
    for bad in (0, 1.5, "x"):
        with pytest.raises(ex.InputError, match="parts"):
            ex.NewtonFW(parts=bad)
    with pytest.raises(ex.InputError, match="factor"):
        ex.gradients.Growing(factor=1)
    with pytest.raises(ex.InputError, match="tol"):
        ex.moves.AtomNewton(tol=2.0)


def test_full_gradients_will_do_as_well():
    f = problem(ex.Logistic())
    for move, C in ((ex.moves.SpikeNewton(), ex.L1Ball(1.0)), (ex.moves.AtomNewton(), ex.L2Ball(1.0))):
        r = ex.minimize(f, C, ex.Method(ex.gradients.Full(), ex.steps.FullStep(), move), tol=1e-8)
        assert r.converged


def test_warm_starts_read_all_rows_at_once():
    f = problem(ex.Logistic(), n=20_000, d=12)
    r = ex.minimize(f, ex.L1Ball(1.0), "newton-fw", tol=1e-8)
    again = ex.minimize(f, ex.L1Ball(1.0), "newton-fw", x0=r.x, tol=1e-6)
    assert again.n_iter == 0
    assert again.calls.grads == f.n
