"""The estimators at other scales and in other orders of calls: units, margins, weights, batches, constants."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from estimators import CLASSIFIERS
from sklearn.base import clone
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning

import extremal as ex
from extremal.sklearn import (
    ConstrainedGLM,
    ConstrainedLinearRegression,
    ConstrainedLogisticRegression,
    ConstrainedMultinomialRegression,
)


@pytest.mark.parametrize(
    "constraint", ["nonneg", "monotone", (np.array([[1.0, -1.0, 0.0, 0.0]]), 0.0), {0: ">=0", 2: "<=0"}], ids=str
)
@pytest.mark.parametrize(("times", "shift"), [(1e-8, 0.0), (1e-3, 0.0), (1e6, 0.0), (1.0, 1e5)])
def test_cones_do_not_depend_on_units(constraint, times, shift):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 4))
    y = X @ [0.5, -0.2, 1.0, 2.0] + rng.standard_normal(400)
    plain = ConstrainedLinearRegression(constraint).fit(X, y)
    scaled = ConstrainedLinearRegression(constraint).fit(X, times * y + shift)
    assert plain.status_ == scaled.status_ == "tol"
    np.testing.assert_allclose(scaled.coef_ / times, plain.coef_, atol=1e-5)
    if constraint == "nonneg":
        other = ConstrainedLinearRegression(constraint).fit(X / times, y)
        np.testing.assert_allclose(other.coef_ / times, plain.coef_, atol=1e-5)


def test_columns_that_are_nearly_constant_keep_their_digits():
    rng = np.random.default_rng(0)
    u = rng.standard_normal((5000, 2))
    y = u @ [1.0, -1.0] + 0.1 * rng.standard_normal(5000)
    plain = ConstrainedLinearRegression("nonneg").fit(u, y)
    for shift in (1e4, 1e7):
        moved = ConstrainedLinearRegression("nonneg").fit(u + np.array([shift, 0.0]), y)
        assert moved.status_ == "tol"
        np.testing.assert_allclose(moved.coef_, plain.coef_, atol=1e-6)
        np.testing.assert_allclose(moved.predict(u + np.array([shift, 0.0])), plain.predict(u), atol=1e-5)


@pytest.mark.parametrize("mean", [1.0, 1e4])
@pytest.mark.parametrize("constraint", ["nonneg", "x0 <= x1", "monotone"])
def test_counts_of_any_size_under_cones(constraint, mean):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((2000, 5))
    y = rng.poisson(mean * np.exp(X @ [0.1, 0.2, 0.3, 0.4, 0.5]))
    model = ConstrainedGLM("poisson", constraint).fit(X, y)
    assert model.status_ == "tol"
    np.testing.assert_allclose(model.coef_, [0.1, 0.2, 0.3, 0.4, 0.5], atol=0.1)


def test_float32_cones_end_where_numbers_do():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20_000, 50)).astype(np.float32)
    y = X @ np.maximum(rng.standard_normal(50), 0) + rng.standard_normal(20_000)
    w = rng.integers(0, 3, 20_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = ConstrainedLinearRegression("nonneg").fit(X, y, w)
    assert model.n_iter_ < 60
    assert model.dual_gap_ < 1e-3 * model.objective_
    np.testing.assert_allclose(model.coef_, ConstrainedLinearRegression("nonneg").fit(X.astype(float), y, w).coef_, atol=1e-4)


@pytest.mark.parametrize("loss", ["squared", "huber", "quantile"])
def test_weights_of_rows_for_every_loss(diabetes, loss):
    X, y = diabetes
    w = np.random.default_rng(0).integers(0, 3, len(y))
    rows = np.repeat(np.arange(len(y)), w)
    a = ConstrainedLinearRegression("l1:5", loss=loss).fit(X, y, w)
    b = ConstrainedLinearRegression("l1:5", loss=loss).fit(X[rows], y[rows])
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-6)
    assert a.objective_ == pytest.approx(b.objective_, rel=1e-9)


def test_fits_and_batches_in_any_order(cancer):
    X, y = cancer
    model = ConstrainedLogisticRegression("l1:5").partial_fit(X, y, classes=[0, 1]).fit(X[:, :2], y)
    fitted = model.coef_.copy()
    model.partial_fit(X[:50, :2], y[:50])
    assert model.coef_.shape == (1, 2)
    assert np.abs(model.coef_ - fitted).max() < 1.0  # it goes on from there
    assert not hasattr(model, "certificate_")
    assert model.fit(X, y).status_ == "tol"
    light = clone(model).fit(X, y).partial_fit(X[:64], y[:64]).partial_fit(X, y, sample_weight=np.full(len(y), 1e-12))
    np.testing.assert_allclose(light.coef_, clone(model).fit(X, y).partial_fit(X[:64], y[:64]).coef_, atol=1e-9)


def test_certificates_claim_no_more_than_is_known(cancer):
    X, y = cancer
    model = ConstrainedGLM(ex.NonlinearLeastSquares(), "l1:5", fit_intercept=False).fit(X, 1.0 - y)
    assert "stationary" in repr(model.certificate_)
    with pytest.warns(ConvergenceWarning):
        model = ConstrainedLogisticRegression("nonneg").fit(np.array([[-1.0], [1.0]]), [0, 1])
    assert "no minimum" in repr(model.certificate_)


def test_all_gradients_are_counted(monkeypatch, diabetes):
    from extremal.sklearn import fitting

    X, y = diabetes
    spent, plain = [], fitting.minimize
    monkeypatch.setattr(fitting, "minimize", lambda *a, **k: spent.append(plain(*a, **k)) or spent[-1])
    model = ConstrainedLinearRegression("l1", radius="50%").fit(X, y)
    assert len(spent) > 2
    assert model.n_grads_ == sum(r.calls.total_grads for r in spent) + len(y)  # the certificate of the answer


@pytest.mark.parametrize("model", CLASSIFIERS)
def test_class_weights_of_zero_are_refused(model):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="class_weight"):
        model(class_weight={0: 1.0, 1: 1.0, 2: 0.0}).fit(X, y)


@pytest.mark.parametrize(("data", "constraint"), [(load_wine, "nuclear:10"), (load_digits, "groups:5"), (load_digits, "l2:5")])
def test_margins_that_are_far_out(data, constraint):
    """Features as they come: probabilities are 0 and 1 on the way, and Newton steps for the intercepts find no curvature."""
    X, y = (a[::3] for a in data(return_X_y=True))
    model = ConstrainedMultinomialRegression(constraint).fit(X, y)
    assert model.status_ == "tol"
    assert model.objective_ < 0.5 * np.log(len(model.classes_))
    assert model.score(X, y) > 0.9


@pytest.mark.parametrize("constraint", ["free", "nonneg"])
def test_columns_of_any_unit(diabetes, constraint):
    X, y = diabetes
    units = 10.0 ** np.arange(-5, 5)
    plain = ConstrainedLinearRegression(constraint).fit(X, y)
    scaled = ConstrainedLinearRegression(constraint).fit(X * units, y)
    assert scaled.status_ == "tol"
    np.testing.assert_allclose(scaled.coef_ * units, plain.coef_, atol=1e-4)


@pytest.mark.parametrize("constraint", ["monotone", "nonneg", "free", "x0 <= x1"])
@pytest.mark.parametrize("y", [0.0, 3.0])
def test_targets_that_are_constant(constraint, y):
    X = np.random.default_rng(0).standard_normal((50, 10))
    model = ConstrainedLinearRegression(constraint).fit(X, np.full(50, y))
    assert model.status_ == "tol"
    assert model.n_iter_ < 20
    np.testing.assert_allclose(model.predict(X), y, atol=1e-6)


def test_an_empty_string_is_no_constraint_that_was_meant(cancer):
    with pytest.raises(ValueError, match="empty"):
        ConstrainedLogisticRegression("").fit(*cancer)


def test_an_inexact_oracle_is_not_taken_at_its_word():
    """Max norm: the oracle's answer may not be the best one, and the gap rests on what is proven of it."""
    X, y = load_digits(n_class=3, return_X_y=True)
    X, y = X[:100] / 16, y[:100]
    solver = ex.FrankWolfe(step=ex.steps.LineSearch())
    model = ConstrainedMultinomialRegression(ex.MaxNormBall(1.0), solver=solver, tol=0.1).fit(X, y)
    x = model.coef_.T.astype(np.float64)
    g = ex.InterceptModel(ex.Multinomial(3), X, y).grad(x)
    s, here = model.constraint_.lmo(g), float((g * x).sum())
    assert s.low < s.dot(g)
    assert here - s.dot(g) < model.dual_gap_ == pytest.approx(here - s.low, rel=1e-9)
