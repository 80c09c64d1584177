"""The l1 ball between bounds, beyond the contract of all sets: its kin, its refusals, and how it is solved over."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize

import extremal as ex
from extremal.points.vertex import SparseVertex

INF = math.inf


def test_without_bounds_it_is_the_l1_ball_and_with_signs_the_simplex():
    rng = np.random.default_rng(0)
    for other, C in ((ex.L1Ball(1.5), ex.BoundedL1Ball(1.5)), (ex.UnitSimplex(1.5), ex.BoundedL1Ball(1.5, 0.0))):
        assert C.on(5).diameter == pytest.approx(other.on(5).diameter)
        for g in rng.standard_normal((50, 5)):
            np.testing.assert_array_equal(C.lmo(g).to_array(), other.lmo(g).to_array())
            np.testing.assert_allclose(C.project(3 * g), other.project(3 * g), atol=1e-12)
    for g in rng.standard_normal((50, 5)):
        capped = ex.KSparseBall(0.5, 3)  # entries of at most 0.5, magnitudes of 1.5 in all
        np.testing.assert_allclose(ex.BoundedL1Ball(1.5, -0.5, 0.5).lmo(g).to_array(), capped.lmo(g).to_array(), atol=1e-15)


def test_vertices_are_sparse_where_they_can_be():
    g = np.random.default_rng(0).standard_normal(1000)
    v = ex.BoundedL1Ball(1.0, -0.25, INF).lmo(g)
    assert isinstance(v, SparseVertex)
    assert len(v.indices) <= 4
    x = ex.BoundedL1Ball(30.0, -0.25, 0.5).lmo(np.zeros(1000)).to_array()  # of no use, but a corner
    assert np.abs(x).sum() == pytest.approx(30.0)


@pytest.mark.parametrize(
    ("lower", "upper", "spikes"),
    [
        (-INF, INF, True),
        (0.0, INF, True),
        (-INF, 0.0, True),
        (np.array([0.0, -INF, 0.0, -2.0]), np.array([2.0, 0.0, 0.0, INF]), True),
        (-2.0, 2.0, True),
        (-1.0, INF, False),
        (0.1, INF, False),
        (0.0, 0.0, False),
    ],
)
def test_signs_make_spikes(lower, upper, spikes):
    C = ex.BoundedL1Ball(2.0, lower, upper, shape=4)
    found = C.spikes()
    assert (found is not None) == spikes
    if found is None:
        return
    assert found.origin
    low, high = (np.broadcast_to(end, 4) for end in (found.low, found.high))
    for j in range(4):
        for sign, end in ((1.0, low[j]), (-1.0, high[j])):
            g = np.zeros(4)
            g[j] = sign
            assert C.lmo(g).to_array()[j] == end


def split(z: np.ndarray) -> np.ndarray:
    return z[:6] - z[6:]


def test_the_default_method_solves_over_it():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((300, 6))
    y = np.sign(A @ np.array([2.0, -1.0, 0.5, 0.0, 1.0, -3.0]) + 0.5 * rng.standard_normal(300))
    f = ex.LinearModel(ex.Logistic(), A, y)
    for lower, upper in (  # signs, and bounds of all kinds
        (np.array([0.0, 0.0, -INF, -INF, 0.0, -INF]), np.array([INF, INF, INF, INF, INF, 0.0])),
        (np.array([0.0, -0.25, -INF, 0.1, -INF, -0.5]), np.array([0.75, 0.25, INF, 1.0, INF, 0.5])),
    ):
        C = ex.BoundedL1Ball(2.0, lower, upper)
        r = ex.minimize(f, C, tol=1e-9)
        assert r.converged
        assert C.contains(r.x)
        ends = [(max(lo, 0.0), max(up, 0.0)) for lo, up in zip(lower, upper, strict=True)]
        ends += [(max(-up, 0.0), max(-lo, 0.0)) for lo, up in zip(lower, upper, strict=True)]
        other = minimize(
            lambda z: f.value(split(z)),
            np.tile(C.start(), 2).clip(*np.array(ends).T),
            jac=lambda z: np.concatenate([f.grad(split(z)), -f.grad(split(z))]),
            bounds=[(lo, up if up < INF else None) for lo, up in ends],
            constraints={"type": "ineq", "fun": lambda z: 2.0 - z.sum(), "jac": lambda z: -np.ones(12)},
            method="SLSQP",
            options={"ftol": 1e-12, "maxiter": 500},
        )
        assert r.value <= other.fun + 1e-8


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ex.BoundedL1Ball(1.0, 0.4, 1.0, shape=3), "must be at least 1.2, the least sum .* got 1.0"),
        (lambda: ex.BoundedL1Ball(1.0, 0.4, 1.0).on(3), "must be at least 1.2"),
        (lambda: ex.BoundedL1Ball(0.0), "positive finite"),
        (lambda: ex.BoundedL1Ball(1.0, 1.0, 0.0), "lower <= upper everywhere"),
        (lambda: ex.BoundedL1Ball(1.0, INF, INF), "lower < inf"),
        (lambda: ex.BoundedL1Ball(1.0, np.nan), "without NaN"),
        (lambda: ex.BoundedL1Ball(1.0, np.zeros(3), np.ones(4)), "must fit one shape"),
    ],
)
def test_what_cannot_be_is_refused(make, message):
    with pytest.raises(ex.InputError, match=message):
        make()
