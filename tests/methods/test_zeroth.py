"""Zeroth-order methods: differences of values against gradients, the count of values, the same path as first order."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from cases import DIM, LOSSES, N, model, separable

import extremal as ex
from extremal.gradients.zeroth import FiniteDifferences
from extremal.run.counting import CountedObjective
from extremal.run.result import Calls

X = np.linspace(-0.4, 0.3, DIM)
C = ex.L1Ball(2.0)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("make", [model, separable])
def test_differences_are_the_gradients(loss, make):
    f = make(loss)
    rough, idx = FiniteDifferences(f, 1e-5), np.array([3, 0, 7, 7])
    one = [f.combine(f.derivs(X, idx[t : t + 1]), idx[t : t + 1]) for t in range(4)]
    np.testing.assert_allclose(rough.derivs(X, idx), one, atol=1e-9)
    np.testing.assert_allclose(rough.combine(rough.derivs(X, idx), idx), np.mean(one, axis=0), atol=1e-9)
    np.testing.assert_allclose(rough.grad(X), f.grad(X), atol=1e-9)
    assert rough.derivs(X).shape == (N, DIM)


def test_central_differences_are_exact_on_quadratics_whatever_their_width():
    f = model(ex.Squared())
    np.testing.assert_allclose(FiniteDifferences(f, 10.0).grad(X), f.grad(X), atol=1e-10)


def test_points_that_are_matrices():
    P = np.random.default_rng(0).standard_normal((5, 3, 2))
    f = ex.Separable(5, (3, 2), grad=lambda x, i: x - P[i], value=lambda x, i: ((x - P[i]) ** 2).sum(axis=(1, 2)) / 2)
    x = np.arange(6.0).reshape(3, 2)
    np.testing.assert_allclose(FiniteDifferences(f, 1e-4).derivs(x, np.array([1, 4])), x - P[[1, 4]], atol=1e-8)


def test_a_gradient_is_two_values_a_coordinate():
    calls = Calls()
    rough = FiniteDifferences(CountedObjective(model(ex.Logistic()), calls), 1e-4)
    rough.derivs(X, np.arange(7))
    assert (calls.grads, calls.values) == (7, 7 * 2 * DIM)
    rough.grad(X)
    assert (calls.grads, calls.values) == (7 + N, (7 + N) * 2 * DIM)


@pytest.mark.parametrize("method", [ex.FZFW(mu=1e-4), ex.FZCGS(mu=1e-4)], ids=repr)
def test_no_gradient_is_asked_for(method):
    def never(x, idx):
        raise AssertionError("a gradient was computed")

    base = separable(ex.NonlinearLeastSquares())
    f = ex.Separable(N, DIM, grad=never, value=base.values, smoothness=base.smoothness)
    for state in itertools.islice(ex.iterate(f, C, method=method, horizon=30), 30):
        assert not state.exact
        assert state.calls.values == 2 * DIM * state.calls.grads
        assert C.contains(state.x)


@pytest.mark.parametrize(
    ("zeroth", "first"),
    [
        (ex.FZFW(mu=1e-5), ex.Method(gradient=ex.gradients.Spider(8, 8), step=ex.steps.InverseSqrt())),
        (ex.FZCGS(mu=1e-5), ex.FCGS()),
    ],
    ids=["fzfw", "fzcgs"],
)
def test_they_go_the_way_of_their_first_order_equivalents(zeroth, first):
    f = model(ex.NonlinearLeastSquares())
    pair = zip(ex.iterate(f, C, method=zeroth, horizon=50), ex.iterate(f, C, method=first, horizon=50), strict=False)
    for a, b in itertools.islice(pair, 50):
        np.testing.assert_allclose(a.x, b.x, atol=1e-6)
        np.testing.assert_allclose(a.g, b.g, atol=1e-7)
        assert a.calls.grads == b.calls.grads


@pytest.mark.parametrize(
    "gradient",
    [ex.gradients.Saga(5), ex.gradients.Sag(5), ex.gradients.Storm(5), ex.gradients.Sarah(5, 0.2), ex.gradients.MiniBatch(5)],
    ids=repr,
)
def test_any_estimator_can_be_fed(gradient):
    f = model(ex.Logistic())
    method = ex.Method(gradient=ex.gradients.ZerothOrder(gradient, mu=1e-5), step=ex.steps.OpenLoop())
    plain = ex.Method(gradient=gradient, step=ex.steps.OpenLoop())
    a = ex.minimize(f, C, method=method, max_iter=60, tol=0)
    b = ex.minimize(f, C, method=plain, max_iter=60, tol=0)
    np.testing.assert_allclose(a.x, b.x, atol=1e-6)
    assert a.calls.certificate >= N  # none of its gradients is a certificate
    assert a.value < f.value(np.zeros(DIM))


def test_what_needs_margins_is_refused_and_so_is_a_width_of_zero():
    method = ex.Method(gradient=ex.gradients.ZerothOrder(ex.gradients.Substitute(5), mu=1e-3), step=ex.steps.LuFreundStep())
    for f in (separable(ex.Logistic()), model(ex.Logistic())):
        with pytest.raises(ex.InputError, match=r"ZerothOrder cannot feed Substitute.*margins"):
            ex.minimize(f, C, method=method, max_iter=2)
    for mu in (0, -1.0, np.nan, "a"):
        with pytest.raises(ex.InputError, match=r"mu=\.\.\."):
            ex.gradients.ZerothOrder(ex.gradients.Full(), mu=mu)
    with pytest.raises(ex.InputError, match=r"`FZFW\(batch"):
        ex.minimize(model(ex.Logistic()), C, method=ex.FZFW(batch=N + 1), max_iter=2)


def test_the_width_follows_the_horizon():
    f = model(ex.NonlinearLeastSquares())
    r = ex.minimize(f, C, method="fzfw", max_iter=25)
    assert r.method.gradient.mu == pytest.approx(1 / np.sqrt(DIM * 25))
    assert r.value < f.value(np.zeros(DIM))
