"""The interior-point method, part by part: derivatives, lifts, their steps, and the descent."""

from __future__ import annotations

import cases
import numpy as np
import pytest
import scipy.sparse as sp
from reference_problems import EXACT, Cauchy, PseudoHuber, offset, random_problem

import extremal as ex
from extremal_lab.reproduction import reference as module
from extremal_lab.reproduction.interior import Curved, descend, polish, secant, second
from extremal_lab.reproduction.lifts import lift, to_boundary
from extremal_lab.reproduction.reference import reference


@pytest.mark.parametrize("loss", [*cases.LOSSES, PseudoHuber(), Cauchy()], ids=str)
def test_second_derivatives(loss):
    z = np.linspace(-4.1, 4.1, 38)
    y = np.full(38, loss.labels[1] if loss.labels else 0.3)
    h = 1e-6
    slopes = (loss.deriv(z + h, y) - loss.deriv(z - h, y)) / (2 * h)
    np.testing.assert_allclose(second(loss, z, y), slopes, atol=1e-8)
    assert (secant(loss, z, y) >= second(loss, z, y)).all()
    assert np.isfinite(second(loss, np.array([-1e5, 1e5]), y[:2])).all()


def test_second_derivatives_by_differences_keep_to_what_the_loss_says():
    class Liar(Cauchy):
        convex, curvature = True, 0.5

    z, y = np.linspace(-4, 4, 33), np.zeros(33)
    assert second(Cauchy(), z, y).min() < -0.1
    assert (second(Liar(), z, y).min(), second(Liar(), z, y).max()) == (0.0, 0.5)


def test_secant_weights_of_huber_stay_above_it():
    loss, y = ex.Huber(0.5), np.zeros(1)
    for z in (0.2, -0.4, 3.0, -20.0):
        at = np.array([z])
        model = lambda t, at=at: loss.value(at, y) + loss.deriv(at, y) * (t - at) + 0.5 * secant(loss, at, y) * (t - at) ** 2  # noqa: E731
        t = np.linspace(-40, 40, 801)
        assert (model(t) >= loss.value(t, y) - 1e-12).all()


@pytest.mark.parametrize("A", cases.DATA, ids=lambda A: f"{type(A).__name__}-{A.dtype}")
@pytest.mark.parametrize("loss", [ex.Logistic(), ex.NonlinearLeastSquares()], ids=str)
def test_hessian_is_the_derivative_of_the_gradient(A, loss):
    f = Curved(ex.LinearModel(loss, A, cases.targets(loss)))
    x, h = np.linspace(-1, 1, cases.DIM), 1e-6
    columns = [(f.grad(f.margins(x + h * e)) - f.grad(f.margins(x - h * e))) / (2 * h) for e in np.eye(cases.DIM)]
    H = f.hessian(f.margins(x))
    assert H.dtype == np.float64
    np.testing.assert_allclose(H, columns, atol=1e-8)


def test_few_entries_stay_sparse_and_many_do_not():
    few, many = sp.random_array((50, 30), density=0.1, rng=np.random.default_rng(0)), np.ones((50, 30))
    assert sp.issparse(Curved(ex.LinearModel(ex.Squared(), sp.csr_array(few), np.zeros(50)))._A)
    assert not sp.issparse(Curved(ex.LinearModel(ex.Squared(), sp.csr_array(many), np.zeros(50)))._A)


LIFTS = [lift(C, cases.DIM) for C in cases.SETS]


def interior(lifted, seed=0):
    rng = np.random.default_rng(seed)
    C = cases.SETS[LIFTS.index(lifted)]
    return 0.6 * lifted.raised(cases.project(C, rng.standard_normal(cases.DIM))) + 0.4 * lifted.centre()


def tangent(lifted, w):
    """A basis of the steps that keep the lift's equations."""
    d, m = cases.DIM, len(w)
    if type(lifted).__name__ == "_Box":
        return np.vstack([np.eye(d), -np.eye(d)])
    return np.eye(m) if type(lifted).__name__ == "_Ball" else np.linalg.svd(np.ones((1, m)))[2][1:].T


@pytest.mark.parametrize("lifted", LIFTS, ids=str)
def test_lifts_are_the_set(lifted):
    C, x = cases.SETS[LIFTS.index(lifted)], cases.project(cases.SETS[LIFTS.index(lifted)], np.linspace(-0.5, 0.4, cases.DIM))
    np.testing.assert_allclose(lifted.lowered(lifted.raised(x)), x, atol=1e-15)
    assert C.contains(lifted.lowered(lifted.centre()), tol=EXACT)
    assert lifted.slacks(lifted.centre()).shape == (lifted.m,)
    assert (lifted.slacks(interior(lifted)) > 0).all()
    for corner in cases.corners(C, cases.DIM)[:20]:
        assert lifted.slacks(lifted.raised(corner)).min() == pytest.approx(0, abs=1e-12)
        assert C.contains(lifted.feasible((1 + 1e-10) * corner), tol=EXACT)
        np.testing.assert_allclose(lifted.feasible((1 + 1e-10) * corner), corner, atol=1e-8)


@pytest.mark.parametrize("lifted", LIFTS, ids=str)
def test_steps_solve_the_system_that_they_stand_for(lifted):
    """Against the full system, assembled from differences: P = dx/dw, J = ds/dw, on the steps that keep the equations."""
    rng = np.random.default_rng(1)
    w, g, d = interior(lifted), rng.standard_normal(cases.DIM), cases.DIM
    B, s = rng.standard_normal((d, d)), lifted.slacks(w)
    H, lam, t = B @ B.T, rng.random(lifted.m) + 0.1, 1e-6
    P = np.array([(lifted.lowered(w + t * e) - lifted.lowered(w - t * e)) / (2 * t) for e in np.eye(len(w))]).T
    J = np.array([(lifted.slacks(w + t * e) - lifted.slacks(w - t * e)) / (2 * t) for e in np.eye(len(w))]).T
    curved = 2 * lam[0] * np.eye(d) if type(lifted).__name__ == "_Ball" else 0.0
    N = tangent(lifted, w)
    K = P.T @ H @ P + J.T @ np.diag(lam / s) @ J + curved
    expected = N @ np.linalg.solve(N.T @ K @ N, N.T @ (J.T @ lam - P.T @ g))
    r = lifted.pull(w, g, lam)
    dw, dx = lifted.solve((np.linalg.cholesky(lifted.matrix(H, s, lam)), True), w, lam, r)
    np.testing.assert_allclose(dw, expected, atol=1e-7)
    np.testing.assert_allclose(dx, P @ dw, atol=1e-7)
    np.testing.assert_allclose(lifted.change(w, dw), J @ dw, atol=1e-7)
    assert r @ dw == pytest.approx((J.T @ lam - P.T @ g) @ dw)
    for length in (1.0, 100.0):
        reach = lifted.reach(w, length * dw)
        assert (lifted.slacks(w + reach * length * dw) >= 0.0049 * s).all()
        assert reach == 1.0 or (lifted.slacks(w + 1.3 * reach * length * dw) < 0.005 * s).any()


def test_no_digits_are_lost_where_u_and_v_nearly_cancel():
    """x is followed apart from u and v; but it is led back to u - v where the two part."""
    ball = lift(ex.L1Ball(2.0), 2)
    w, x = np.array([0.25, 0.25, 0.25, 0.25, 0.0]), np.array([1e-17, 0.5])
    new, settled = ball.settled(2 * w, 2 * x)
    np.testing.assert_array_equal(new, w)
    np.testing.assert_array_equal(settled, [1e-17, 0.0])


def test_to_boundary():
    assert to_boundary(np.array([2.0, 1.0]), np.array([1.0, 0.0])) == 1.0
    assert to_boundary(np.array([2.0, 1.0]), np.array([-8.0, -1.0])) == pytest.approx(0.995 / 4)


def test_polish_takes_a_minimum_inside_to_its_last_digits():
    f, C = random_problem(loss=ex.Squared(), change=offset), ex.L1Ball(2000.0)
    gap = lambda x, g: cases.gap(C, x, g)  # noqa: E731
    curved, inside = Curved(f), lambda x: C.contains(x, tol=0.0)
    x = reference(f, C).x + 1e-7 * np.random.default_rng(0).standard_normal(6)
    new = polish(curved, x, gap, inside)
    assert gap(new, f.grad(new)) < 1e-4 * gap(x, f.grad(x))
    assert inside(new)
    assert polish(curved, x, gap, lambda x: False) is x  # nowhere to go


@pytest.mark.parametrize(("enough", "polished"), [(1.0, False), (-1.0, True)])
def test_only_a_gap_that_is_too_large_is_polished(monkeypatch, enough, polished):
    monkeypatch.setattr(module, "polish", lambda f, x, gap, inside: np.zeros(8))
    monkeypatch.setattr(module, "_enough", lambda value: enough)
    monkeypatch.setattr(module, "descend", lambda f, lifted, gap, _, *start: descend(f, lifted, gap, lambda value: 1e-3, *start))
    A = np.random.default_rng(0).standard_normal((4, 8))
    found = reference(ex.LinearModel(ex.Squared(), A, A.sum(axis=1)), ex.LinfBall(10.0))
    assert found.x.any() != polished


@pytest.mark.parametrize("loss", [ex.Logistic(), ex.NonlinearLeastSquares()], ids=str)
def test_descent_that_is_never_good_enough_ends_with_the_best_of_its_points(loss):
    """The smallest gap for convex f; the smallest value otherwise, since a saddle has a small gap too."""
    f, C, seen = cases.model(loss), ex.L1Ball(2.0), {}

    def gap(x, g):
        seen[f.value(x), x.tobytes()] = abs(cases.gap(C, x, g)) + 1e-20  # never zero
        return seen[f.value(x), x.tobytes()]

    found = descend(Curved(f), lift(C, cases.DIM), gap, lambda value: 1e-25)
    assert 20 < found.steps <= 300
    value = f.value(found.x)
    assert seen[value, found.x.tobytes()] == min(seen.values()) if loss.convex else value == min(seen)[0]


def test_descent_from_a_start_of_ones_own():
    f, C = cases.model(ex.Logistic()), ex.L1Ball(2.0)
    lifted = lift(C, cases.DIM)
    found = descend(Curved(f), lifted, lambda x, g: cases.gap(C, x, g), lambda value: 1e-9, interior(LIFTS[0]), 0.01)
    assert f.value(found.x) == pytest.approx(reference(f, C).value, abs=2e-9)
    assert 0 < found.steps < 40
