"""One end of a fit: every estimator stores the same answer, by the same rule, and warnings show who has called."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression

import extremal as ex
from extremal.sklearn import (
    ConstrainedGLM,
    ConstrainedLinearRegression,
    ConstrainedLogisticRegression,
    ConstrainedMultinomialRegression,
    LowRankCompletion,
    SimplexRegression,
    SparseLogisticPath,
    SparseLogisticPathCV,
    StackingWeights,
)
from extremal.sklearn.answer import Answer, FitCertificate, answer_at, ended, together
from extremal.sklearn.options import read_options
from extremal.sklearn.simplex.stacking import weigh_log

RNG = np.random.default_rng(0)
X = RNG.standard_normal((120, 5))
NUMBERS = X @ RNG.standard_normal(5) + 0.5 * RNG.standard_normal(120)
CLASSES = np.digitize(NUMBERS, [-1.0, 1.0])
MODELS = [
    (ConstrainedLinearRegression("l1:1"), NUMBERS),
    (ConstrainedGLM("huber", "l1:1"), NUMBERS),
    (ConstrainedLogisticRegression("l1:1"), CLASSES),
    (ConstrainedMultinomialRegression("l1:1"), CLASSES),
    (SimplexRegression(), NUMBERS),
    (SimplexRegression(solver="newton"), np.column_stack([NUMBERS, -NUMBERS])),
    (StackingWeights([LinearRegression(), LinearRegression(fit_intercept=False)]), NUMBERS),
    (StackingWeights([LogisticRegression(), LogisticRegression(C=0.01)]), CLASSES),
    (LowRankCompletion(radius=5.0), None),
    (SparseLogisticPath([0.5, 1.0]), CLASSES),
    (SparseLogisticPathCV([0.5, 1.0], cv=2), CLASSES),
]
IDS = [f"{type(model).__name__}-{i}" for i, (model, _) in enumerate(MODELS)]


@pytest.mark.parametrize(("model", "y"), MODELS, ids=IDS)
def test_every_estimator_stores_the_same_answer(model, y):
    model = clone(model).fit(X, y)
    found = model.certificate_
    assert (found.value, found.gap, found.violation) == (model.objective_, model.dual_gap_, model.constraint_violation_)
    assert found.passes == model.n_grads_ / len(X) or isinstance(model, (LowRankCompletion, StackingWeights))
    assert found.set == model.get_params().get("constraint", str(model.constraint_))
    assert model.status_ == "tol"
    assert model.n_iter_ >= 1
    assert model.constraint_violation_ == 0.0
    assert model.dual_gap_ >= 0
    assert [type(model.dual_gap_), type(model.objective_)] == [float, float]


def restless(model):
    """The same with a tolerance that no number of iterations reaches."""
    return clone(model).set_params(tol=1e-30, max_iter=1)


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (ConstrainedLinearRegression("l1:1", loss="huber"), NUMBERS),
        (ConstrainedLogisticRegression("l1:1"), CLASSES),
        (SimplexRegression(solver="newton"), NUMBERS),
        (LowRankCompletion(radius=5.0), None),
        (SparseLogisticPath([0.5, 1.0]), CLASSES),
    ],
    ids=lambda item: type(item).__name__,
)
def test_a_warning_shows_the_line_that_has_called_fit(model, y):
    wide = 1e3 * X  # gaps are not 0 by chance
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        fitted = restless(model).fit(wide, y)
    said = [w for w in seen if issubclass(w.category, ConvergenceWarning)]
    assert fitted.status_ != "tol"
    assert [w.filename for w in said] == [__file__]
    assert f"ended ({fitted.status_}) with a certified gap of" in str(said[0].message)


def test_one_rule_says_whether_the_tolerance_is_met():
    assert ended(1.005, 100.0, 1e-2, 0.0, ex.Status.MAX_ITER) == "tol"
    assert ended(1.02, 100.0, 1e-2, 0.0, ex.Status.MAX_ITER) == "max_iter"
    assert ended(1.02, -100.0, 1e-2, 0.1, ex.Status.MAX_ITER) == "tol"
    for status in (ex.Status.GAP, ex.Status.PRECISION, ex.Status.STALLED):
        assert ended(2.0, 1.0, 1e-2, 0.0, status) == "stalled"


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_an_answer_is_rounded_into_its_set_and_certified_there(dtype):
    f, C = ex.InterceptModel(ex.Squared(), X.astype(dtype), NUMBERS), ex.Simplex().on(5)
    run = ex.minimize(f, C, tol=1e-6)
    x = run.x + 1e-9 * np.array([1.0, 0, 0, 0, 0])
    found = answer_at(f, C, x, 1e-5, 0.0, run, "it: by hand")
    assert found.x.dtype == dtype
    assert ex.rounding.violation(C, found.x) == found.violation == 0.0
    exact = found.x.astype(np.float64)
    value, g = f.value_and_grad(exact)
    assert (found.value, found.gap) == (value, min(value, C.gap(exact, g)))
    assert (found.n_iter, found.n_grads, found.n) == (run.n_iter, run.calls.total_grads + 120, 120)
    assert (found.status, found.method, found.trace) == ("tol", "it", run.trace)
    assert found.intercept == pytest.approx(f.intercept(exact), rel=1e-5)
    without = answer_at(f, C, x, 1e-5, 0.0)
    assert (without.n_iter, without.n_grads, without.trace) == (0, 120, None)


def test_answers_of_several_problems_are_one():
    C = ex.L1Ball(1.0)
    a = Answer(np.zeros(1), 1.0, 0.1, C, 0.0, "tol", 3, 30, 10, "a")
    b = Answer(np.zeros(1), 2.0, 0.2, C, 1e-17, "stalled", 5, 50, 10, "b")
    both = together([a, b])
    assert (both.value, both.n_iter, both.n_grads, both.status, both.method) == (3.0, 5, 80, "stalled", "b")
    assert (both.gap, both.violation) == (pytest.approx(0.3), 1e-17)
    assert together([b, a]).status == "stalled"


@pytest.mark.parametrize("far", [1.0, 1e3])
def test_probabilities_are_one_softmax(far):
    """Scores that are far out have logarithms that are finite, and probabilities that sum to one."""
    models = [
        ConstrainedLogisticRegression("l1:5").fit(X, CLASSES),
        ConstrainedMultinomialRegression("l1:5").fit(X, CLASSES),
        SparseLogisticPath([5.0]).fit(X, CLASSES),
        ConstrainedLogisticRegression("l1:5").fit(X, CLASSES > 0),
        ConstrainedMultinomialRegression("l1:5").fit(X, CLASSES > 0),
    ]
    for model in models:
        scores, p, logs = model.decision_function(far * X), model.predict_proba(far * X), model.predict_log_proba(far * X)
        assert np.isfinite(logs).all()
        np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
        np.testing.assert_allclose(p, np.exp(logs), rtol=1e-12)
        if scores.ndim == 1:
            np.testing.assert_allclose(p, np.column_stack([expit(-scores), expit(scores)]), rtol=1e-9, atol=1e-300)
        elif isinstance(model, ConstrainedMultinomialRegression):
            np.testing.assert_allclose(p, softmax(scores, axis=1), rtol=1e-9, atol=1e-300)
        elif far == 1:
            np.testing.assert_allclose(p, expit(scores) / expit(scores).sum(axis=1, keepdims=True), rtol=1e-9)


def test_the_first_batch_makes_the_loss_of_all():
    """A batch of equal targets has no spread, and is not asked for one."""
    model = ConstrainedLinearRegression("l1:1", loss="quantile").partial_fit(X, NUMBERS)
    model.partial_fit(X[:70], np.full(70, 2.0))
    assert model.status_ == "partial"
    assert np.isfinite(model.coef_).all()


def test_options_are_those_that_an_estimator_has():
    options = read_options(SparseLogisticPath(fit_intercept=False, random_state=3))
    assert (options.intercept, options.seed, options.verbose, options.solver) == (False, 3, 0, "auto")
    for wrong in ({"tol": 0.0}, {"max_iter": 0}, {"verbose": -1}):
        for model in (StackingWeights([]), SimplexRegression(), ConstrainedGLM(), LowRankCompletion()):
            with pytest.raises(ex.InputError, match=rf"`{type(model).__name__}\({next(iter(wrong))}=\.\.\.\)`"):
                read_options(model.set_params(**wrong))


def test_weights_of_the_log_loss_end_the_same_way():
    table = np.array([[0.9, 0.5], [0.8, 0.5], [0.1, 0.5]])
    found = weigh_log(table, np.zeros(3, int), None, read_options(StackingWeights([])))
    assert found.status == "tol"
    assert found.x.sum() == 1.0
    assert found.violation == 0.0


def test_a_model_on_other_rows_has_the_same_targets():
    weights = RNG.random(120)
    f = ex.InterceptModel(ex.Logistic(), X, np.sign(NUMBERS), weights)
    more = ex.data.Dense(X).with_column(2.0)
    for kind in (ex.LinearModel, ex.InterceptModel):
        new, anew = f.on_rows(more, kind), kind(ex.Logistic(), more, np.sign(NUMBERS), weights)
        assert type(new) is kind
        assert new.shape == (6,)
        assert new.value(np.ones(6)) == anew.value(np.ones(6))
    assert f.shape == (5,)


def test_the_certificate_shows_the_constraint_as_it_was_written():
    X = np.random.default_rng(0).standard_normal((30, 3))
    y = X @ [1.0, 2.0, 3.0] + X[:, 0] ** 2
    wide = " (within the wide bounds of constraint_), violated by 0"
    for constraint, words in (
        ("l1:3", "over l1:3, violated by 0"),
        ({"x0": ">=0", "x1": "<=1"}, "over {x0: >=0, x1: <=1}" + wide),
        (["x0 <= x1", "nonneg"], "over x0 <= x1 & nonneg" + wide),
        (" & ".join(["x0 <= x1"] * 40), " ..." + wide),
    ):
        assert words in repr(ConstrainedLinearRegression(constraint).fit(X, y).certificate_)


def test_a_gap_below_rounding_is_shown_as_rounding():
    for value, gap, words in (
        (0.5, 0.0, "5e-16 above the minimum (rounding, 1e-15 of f)"),
        (0.5, 1.6e-16, "5e-16 above the minimum (rounding, 1e-15 of f)"),
        (0.5, 1e-14, "1e-14 above the minimum (2e-14 of f)"),
        (0.0, 0.0, "0 above the minimum (0 of f)"),
    ):
        assert f"at most {words}" in repr(FitCertificate(value, gap, "l1:3", 0.0, 4.0, "newton"))
