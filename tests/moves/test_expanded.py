"""Quadratic objectives: one Hessian serves the whole run, and its rounding never makes a certificate too small."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import extremal as ex
from extremal.objectives.column_blocks import is_quadratic
from extremal.objectives.expansion import Aim, worth_expanding
from extremal.run.counting import CountedObjective
from extremal.run.result import Calls

N, D = 3000, 12
SETS = (ex.UnitSimplex(), ex.L1Ball(1.0), ex.Box(-0.3, 0.3), ex.L2Ball(0.7), ex.GroupBall(0.8, groups=np.repeat(np.arange(4), 3)))


def data(n: int = N, d: int = D, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) + rng.standard_normal((n, 1))
    return A, A[:, : min(d, 8)] @ rng.standard_normal(min(d, 8)) + 0.5 * rng.standard_normal(n)


def by_rows(result: ex.run.Result) -> ex.Method:
    """The same steps with gradients from the rows."""
    return ex.Method(ex.gradients.Growing(parts=1), ex.steps.FullStep(), result.method.move)


def wide_gap(C, A, y, x: np.ndarray, w: np.ndarray | None = None) -> float:
    """The gap with products in extended precision."""
    A, r = A.astype(np.longdouble), A.astype(np.longdouble) @ x.astype(np.longdouble) - y
    g = A.T @ (r if w is None else r * (w / w.mean())) / len(y)
    return float(g @ (x - C.on(len(x)).lmo(g.astype(float)).to_array()))


@pytest.mark.parametrize("C", SETS, ids=lambda C: type(C).__name__)
@pytest.mark.parametrize("tol", [1e-4, 1e-9])
def test_a_run_reads_its_rows_once(C, tol):
    A, y = data()
    f = ex.LinearModel(ex.Squared(), A, y)
    r = ex.minimize(f, C, tol=tol, atol=0.0)
    rooted = isinstance(r.method.move, ex.moves.AtomNewton)  # such steps factor the rows, once more
    assert r.converged
    assert r.calls.grads == (3 if rooted else 2) * N
    assert r.calls.certificate == 0
    assert r.calls.rows == (2 if rooted else 1) * N
    assert wide_gap(C, A, y, r.x) <= r.gap
    assert r.value == pytest.approx(f.value(r.x), rel=1e-10)


@pytest.mark.parametrize("C", [ex.L1Ball(1.0), ex.UnitSimplex(), ex.Box(-0.5, 0.5)], ids=lambda C: type(C).__name__)
@pytest.mark.parametrize("tol", [1e-4, 1e-11])
def test_the_first_step_minimises_a_known_function(C, tol):
    r = ex.minimize(ex.LinearModel(ex.Squared(), *data(300, 40)), C, tol=tol, atol=0.0)
    assert r.converged
    assert r.n_iter == 1


def test_rows_are_read_where_rounding_matters():
    A, y = data()
    f, C = ex.LinearModel(ex.Squared(), A, y), ex.L1Ball(1.0)
    r = ex.minimize(f, C, tol=1e-13, atol=0.0)
    assert r.converged
    assert r.calls.rows > N
    assert r.gap == C.gap(r.x, f.grad(r.x))
    assert r.value == f.value(r.x)


def test_rounding_is_bounded():
    """The values and gradients of an expansion differ from exact ones, in rational numbers, by less than the bounds."""
    rng = np.random.default_rng(0)
    for scale, offset in ((1.0, 0.0), (1e-8, 0.0), (1.0, 300.0), (1e6, 0.0)):
        A, y = scale * (offset + rng.standard_normal((40, 4))), scale * rng.standard_normal(40)
        form = ex.LinearModel(ex.Squared(), A, y).expansion()
        assert form is not None
        exact = [[Fraction(float(a)) for a in row] for row in A]
        for x in rng.standard_normal((20, 4)):
            r = [
                sum(a * Fraction(float(b)) for a, b in zip(row, x, strict=True)) - Fraction(float(t))
                for row, t in zip(exact, y, strict=False)
            ]
            value, g = form.look(x)
            wrong = [abs(Fraction(float(g[j])) - sum(row[j] * e for row, e in zip(exact, r, strict=True)) / 40) for j in range(4)]
            of_value, of_gap = replace(form, aim=Aim(diameter=1.0)).rounding(x)
            assert abs(Fraction(value) - sum(e * e for e in r) / 80) <= of_value
            assert sum(float(e) ** 2 for e in wrong) ** 0.5 <= of_gap


@pytest.mark.parametrize("kind", ["weighted", "intercept", "sparse", "float32", "shifted"])
def test_every_kind_of_rows(kind):
    """Weights, an intercept, sparse rows, float32 rows and large means give the solutions of steps that read all rows."""
    A, y = data(800)
    w = np.random.default_rng(1).uniform(0, 3, len(y)) if kind == "weighted" else None
    rows = {"sparse": sp.csr_array(np.where(np.abs(A) > 1, A, 0)), "float32": A.astype(np.float32), "shifted": A + 1e3}.get(
        kind, A
    )
    model = ex.InterceptModel if kind == "intercept" else ex.LinearModel
    f = model(ex.Squared(), rows, y, weights=w)
    for C in SETS:
        r = ex.minimize(f, C, tol=1e-8, atol=0.0)
        other = ex.minimize(f, C, by_rows(r), tol=1e-8, atol=0.0)
        assert isinstance(r.method.gradient, ex.gradients.Expanded)
        assert r.converged
        assert abs(r.value - other.value) <= 2e-8 * other.value
        if kind != "intercept":
            dense = rows.toarray() if kind == "sparse" else rows
            assert (
                wide_gap(C, dense, y, r.x, w) <= r.gap + 1e-10 * r.value
            )  # a hundredth of the tolerance, for the rows' own rounding


def test_other_losses_have_no_expansion():
    A, y = data()
    for f in (ex.LinearModel(ex.Huber(1.0), A, y), ex.LinearModel(ex.MultiTask(ex.Squared(), 2), A, np.stack([y, y], 1))):
        assert not (is_quadratic(f) and worth_expanding(f))
        with pytest.raises(ex.InputError, match="constant second derivative"):
            f.expansion()


def test_a_loss_of_ones_own_may_be_quadratic():
    class Tilted(ex.Squared):
        """(z - y)^2 + z."""

        curvature = 2.0
        value = lambda self, z, y: np.square(z - y) + z  # noqa: E731
        deriv = lambda self, z, y: 2 * (z - y) + 1  # noqa: E731
        second = lambda self, z, y: np.full_like(z, 2.0)  # noqa: E731

    A, y = data()
    f = ex.LinearModel(Tilted(), A, y)
    r = ex.minimize(f, ex.L1Ball(1.0), tol=1e-8, atol=0.0)
    assert r.converged
    assert r.calls.rows == N
    assert r.value == pytest.approx(f.value(r.x), rel=1e-10)


@pytest.mark.parametrize("offset", [1e6, 1e8])
def test_columns_that_nearly_depend_on_others_leave_no_expansion(offset):
    A, y = data(600)
    f = ex.LinearModel(ex.Squared(), offset + A, y)
    assert f.expansion() is None
    r = ex.minimize(f, ex.UnitSimplex(), tol=1e-4)
    assert r.converged
    assert r.value <= ex.minimize(f, ex.UnitSimplex(), by_rows(r), tol=1e-4).value * 1.0001


def test_a_path_reads_its_rows_once():
    A, y = data(2000, 200)
    f = ex.LinearModel(ex.Squared(), A, y)
    results = ex.path(f, [ex.L1Ball(R) for R in np.geomspace(0.05, 8, 30)], tol=1e-6, atol=0.0)
    assert all(r.converged for r in results)
    assert sum(r.calls.rows for r in results) == 2000
    for r in results:
        assert wide_gap(r.set, A, y, r.x) <= r.gap <= 1e-6 * r.value


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_a_path_over_many_columns_takes_one_gradient_for_most_sets(kind):
    """The minimiser of the known quadratic function is the solution, unless columns enter that were not near."""
    A, y = data(150, 4000)
    rows = A if kind == "dense" else sp.csr_array(np.where(np.abs(A) > 1.5, A, 0))
    f = ex.LinearModel(ex.Squared(), rows, y)
    results = ex.path(f, [ex.L1Ball(R) for R in np.geomspace(0.2, 6, 40)], tol=1e-5, atol=0.0)
    assert all(r.converged for r in results)
    assert sum(r.n_iter for r in results) <= 20
    for r in results:
        assert r.gap == r.set.gap(r.x, f.grad(r.x))


def test_new_columns_extend_a_hessian():
    A, y = data(300, 30)
    weights = np.random.default_rng(1).uniform(0, 3, 300)
    for rows, w in ((A, None), (sp.csr_array(A), None), (A, weights)):
        f: Any = CountedObjective(ex.LinearModel(ex.Squared(), rows, y, weights=w), Calls())
        part = f.on_columns(np.arange(2, 20))
        whole = part.hessian(f.inner.zero)
        np.testing.assert_allclose(part.cross(np.array([0, 5])), whole[:, [0, 5]], rtol=1e-10, atol=1e-12)
        assert f.calls.grads == 2 * 300
