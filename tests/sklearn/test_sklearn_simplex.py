"""Weights on the simplex for scikit-learn: a regression, and the mean of several models."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import make_classification, make_regression
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks

import extremal as ex
from extremal.sklearn import SimplexRegression, StackingWeights
from extremal.sklearn.simplex import solving
from extremal.sklearn.simplex.mixtures import LEAST_PROBABILITY, MixtureLogLoss

SOLVERS = ("active_set", "newton")
MODELS = [("ridge", Ridge()), ("linear", LinearRegression())]
CLASSIFIERS = [("bayes", GaussianNB()), ("tree", DecisionTreeClassifier(random_state=0))]


@parametrize_with_checks(
    [
        SimplexRegression(),
        SimplexRegression(2.0, sum="at_most", fit_intercept=True),
        SimplexRegression(solver="newton", fit_intercept=True),
        StackingWeights(MODELS),
        StackingWeights(CLASSIFIERS, cv=3),
    ]
)
def test_scikit_learn_agrees(estimator, check):
    check(estimator)


def problem(n=300, d=8, targets=None, seed=0, level=0.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + level
    shape = (d,) if targets is None else (d, targets)
    w = rng.dirichlet(np.full(d, 0.3), targets).T.reshape(shape)
    return X, X @ w + 0.3 * rng.standard_normal((n, *shape[1:]))


def truth(X, y, s, total=1.0, at_most=False, intercept=False):
    """By SLSQP in float64, to its last digits."""
    s = s / s.sum()
    X, y = (X - s @ X, y - s @ y) if intercept else (X, y)
    sums = {"type": "ineq" if at_most else "eq", "fun": lambda w: total - w.sum(), "jac": lambda w: -np.ones(len(w))}
    r = minimize(
        lambda w: 0.5 * s @ (X @ w - y) ** 2,
        np.full(X.shape[1], total / X.shape[1]),
        jac=lambda w: (s * (X @ w - y)) @ X,
        bounds=[(0, None)] * X.shape[1],
        constraints=sums,
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    return r.fun


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize(("total", "kind"), [(1.0, "equal"), (0.4, "equal"), (3.0, "at_most"), (0.3, "at_most")])
def test_weights_are_those_of_the_problem(solver, intercept, total, kind):
    X, y = problem()
    s = np.random.default_rng(1).random(len(y))
    model = SimplexRegression(total, sum=kind, fit_intercept=intercept, solver=solver).fit(X, y + 2.0 * intercept, s)
    best = truth(X, y, s, total, kind == "at_most", intercept)
    assert abs(model.objective_ - best) <= 2e-6 * best
    assert 0 <= model.dual_gap_ <= 1e-6 * model.objective_
    assert model.status_ == "tol"
    assert model.constraint_violation_ == 0.0
    assert model.coef_.min() >= 0
    assert model.coef_.sum() == total if kind == "equal" else model.coef_.sum() <= total
    r = model.predict(X) - y - 2.0 * intercept
    assert 0.5 * s @ r**2 / s.sum() == pytest.approx(model.objective_, rel=1e-9)


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array, sp.csc_array, sp.csr_matrix])
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("intercept", [False, True])
def test_a_weight_counts_rows(convert, solver, intercept):
    X, y = problem()
    X[np.random.default_rng(2).random(X.shape) < 0.5] = 0
    times = np.random.default_rng(3).integers(0, 4, len(y))
    model = SimplexRegression(solver=solver, fit_intercept=intercept, tol=1e-13)
    a = clone(model).fit(convert(X), y, times)
    b = clone(model).fit(convert(np.repeat(X, times, axis=0)), np.repeat(y, times))
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-7)
    assert a.objective_ == pytest.approx(b.objective_, rel=1e-9)
    assert not np.allclose(a.coef_, clone(model).fit(convert(X), y).coef_, atol=1e-4)


@pytest.mark.parametrize("width", [np.int32, np.int64])
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("solver", SOLVERS)
def test_sparse_rows_of_either_index_width(width, kind, solver):
    X, y = problem()
    X[X < 0.2] = 0
    A = kind(X)
    A.indices, A.indptr = A.indices.astype(width), A.indptr.astype(width)
    model = SimplexRegression(solver=solver, tol=1e-12).fit(A, y)
    np.testing.assert_allclose(model.coef_, SimplexRegression(solver=solver, tol=1e-12).fit(X, y).coef_, atol=1e-9)
    np.testing.assert_allclose(model.predict(A), X @ model.coef_)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("total", [1.0, 0.1])
def test_float32_is_kept(solver, total):
    X, y = problem(3000, 40)
    model = SimplexRegression(total, solver=solver, tol=1e-5).fit(X.astype(np.float32), y)
    assert model.coef_.dtype == model.predict(X.astype(np.float32)).dtype == np.float32
    assert model.constraint_violation_ == 0.0
    assert model.dual_gap_ <= 1e-5 * model.objective_
    best = SimplexRegression(total).fit(X.astype(np.float32).astype(np.float64), y)
    assert abs(model.objective_ - best.objective_) <= 1e-5 * best.objective_


def test_many_targets_at_once():
    X, Y = problem(200, 6, targets=40)
    model = SimplexRegression(fit_intercept=True).fit(X, Y)
    assert model.coef_.shape == (40, 6)
    assert model.intercept_.shape == model.dual_gaps_.shape == (40,)
    for t in (0, 17, 39):
        one = SimplexRegression(fit_intercept=True).fit(X, Y[:, t])
        np.testing.assert_allclose(one.coef_, model.coef_[t], atol=1e-9)
        assert one.objective_ == pytest.approx(model.objectives_[t])
    assert model.predict(X).shape == Y.shape
    assert (model.coef_.sum(axis=1) == 1).all()


@pytest.mark.parametrize("level", [0.0, 300.0])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", ["equal", "at_most"])
@pytest.mark.parametrize("weighted", [False, True])
def test_products_of_columns_do_as_well_as_a_factorisation(monkeypatch, level, dtype, kind, weighted):
    X, Y = problem(2000, 30, targets=3, level=level)
    X, s = X.astype(dtype), np.arange(2000) % 3 if weighted else None
    exact = SimplexRegression(sum=kind, fit_intercept=True, tol=1e-5).fit(X.astype(np.float64), Y, s)
    monkeypatch.setattr(solving, "SMALL_QR", 0)
    model = SimplexRegression(sum=kind, fit_intercept=True, solver="active_set", tol=1e-5).fit(X, Y, s)
    np.testing.assert_allclose(model.objectives_, exact.objectives_, rtol=2e-5)
    assert model.status_ == "tol"
    assert model.constraint_violation_ == 0.0


def test_dependent_columns():
    X, y = problem(100, 5)
    X = np.hstack([X, X, np.zeros((100, 1))])
    for solver in ("auto", *SOLVERS):
        model = SimplexRegression(solver=solver).fit(X, y)
        assert model.dual_gap_ <= 1e-6 * model.objective_


def test_X_is_neither_changed_nor_copied(monkeypatch):
    X, y = problem(500, 10)
    X = np.ascontiguousarray(X, np.float32)
    X.flags.writeable = False
    seen = []
    old = solving.SimplexRows.model
    monkeypatch.setattr(solving.SimplexRows, "model", lambda self, t: seen.append(self.X) or old(self, t))
    SimplexRegression(solver="newton").fit(X, y.astype(np.float32))
    assert np.shares_memory(seen[0].array, X)
    assert np.shares_memory(ex.LinearModel(ex.Squared(), seen[0], y).data.array, X)


def test_a_warm_start_begins_at_the_last_weights():
    X, y = problem(4000, 60)
    model = SimplexRegression(solver="newton", warm_start=True, tol=1e-10).fit(X, y)
    first = model.n_grads_
    model.fit(X, y)
    assert model.n_grads_ < first
    model.fit(X[:, :5], y)  # of another size: from the start
    assert model.coef_.shape == (5,)


def test_it_says_when_the_tolerance_is_not_reached(capsys):
    X, y = problem(300, 600)
    with pytest.warns(ConvergenceWarning, match=r"certified gap.*max_iter"):
        model = SimplexRegression(solver="newton", max_iter=1, tol=1e-12, verbose=1).fit(X, y)
    assert model.status_ == "max_iter"
    assert model.dual_gap_ > 1e-12 * model.objective_
    assert " ".join(repr(model.certificate_).split()) in capsys.readouterr().err
    assert "above the minimum" in repr(model.certificate_)
    assert model.certificate_.relative_gap == pytest.approx(model.dual_gap_ / model.objective_)
    assert model.trace_["gap"][-1] >= 0


def test_data_frames(tmp_path):
    pd = pytest.importorskip("pandas")
    X, y = problem()
    frame = pd.DataFrame(X, columns=[f"model {j}" for j in range(8)])
    model = SimplexRegression().fit(frame, pd.Series(y))
    assert list(model.feature_names_in_) == list(frame.columns)
    np.testing.assert_array_equal(model.coef_, SimplexRegression().fit(X, y).coef_)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(model)).predict(frame), model.predict(frame))


def test_polars_frames():
    pl = pytest.importorskip("polars")
    X, y = problem()
    frame = pl.DataFrame(X, schema=[f"m{j}" for j in range(8)])
    model, other = SimplexRegression().fit(frame, pl.Series(y)), LinearRegression().fit(frame, y)
    if hasattr(other, "feature_names_in_"):  # scikit-learn 1.6 does not see the names of frames of polars 2
        assert model.feature_names_in_[0] == "m0"
    np.testing.assert_array_equal(model.coef_, SimplexRegression().fit(X, y).coef_)


def test_in_a_pipeline_and_a_search():
    X, y = problem()
    search = GridSearchCV(make_pipeline(StandardScaler(), SimplexRegression()), {"simplexregression__total": [0.5, 1.0]}, cv=3)
    assert search.fit(X, y).best_params_["simplexregression__total"] == 1.0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"total": -1}, "total"),
        ({"sum": "about"}, "sum"),
        ({"solver": "simplex"}, "solver"),
        ({"tol": 0}, "tol"),
        ({"max_iter": 0}, "max_iter"),
        ({"fit_intercept": "yes"}, "fit_intercept"),
    ],
)
def test_wrong_parameters_are_refused(options, message):
    with pytest.raises(ex.InputError, match=message):
        SimplexRegression(**options).fit(*problem())


@pytest.mark.parametrize("weights", [np.zeros(300), -np.ones(300)])
def test_wrong_weights_are_refused(weights):
    with pytest.raises(ValueError, match=r"zero|negative"):
        SimplexRegression().fit(*problem(), weights)


# stacking


def regression():
    X, y = make_regression(400, 6, noise=20.0, random_state=0)
    return X, y


def test_fitted_models_are_used_as_they_are():
    X, y = regression()
    models = [LinearRegression().fit(X[:200], y[:200]), DecisionTreeRegressor(random_state=0).fit(X[:200], y[:200])]
    stack = StackingWeights(models, cv="prefit").fit(X[200:], y[200:])
    assert stack.estimators_[0] is models[0]
    table = np.column_stack([m.predict(X[200:]) for m in models])
    np.testing.assert_allclose(stack.coef_, SimplexRegression().fit(table, y[200:]).coef_)
    np.testing.assert_allclose(stack.predict(X), np.column_stack([m.predict(X) for m in models]) @ stack.coef_)
    assert list(stack.weights_) == ["linearregression", "decisiontreeregressor"]
    assert sum(stack.weights_.values()) == 1.0
    assert stack.constraint_violation_ == 0.0
    assert is_regressor(stack)


def test_unfitted_models_are_cross_validated():
    X, y = regression()
    stack = StackingWeights([("good", LinearRegression()), ("deep", DecisionTreeRegressor(random_state=0))], cv=KFold(4)).fit(
        X, y
    )
    assert stack.weights_["good"] > 0.9  # in the sample the tree has no error at all
    assert not hasattr(stack.estimators[0][1], "coef_")
    assert cross_val_score(stack, X, y).mean() > 0.9


def test_models_that_know_the_rows_get_no_credit_for_it():
    """Fitted models are fitted anew on folds, however they come; as they are only if that is said."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 8))
    y = X[:, 0] + 0.5 * X[:, 1] + 1.8 * rng.standard_normal(300)
    models = [("ridge", Ridge()), ("tree", DecisionTreeRegressor(random_state=0))]
    for _, model in models:
        model.fit(X[:150], y[:150])
    stack = StackingWeights(models).fit(X[:150], y[:150])
    known = StackingWeights(models, cv="prefit").fit(X[:150], y[:150])
    assert known.weights_["tree"] > 0.999  # the tree has learned its rows by heart
    assert stack.weights_["ridge"] > 0.7
    assert stack.score(X[150:], y[150:]) > 0.1 > 0 > known.score(X[150:], y[150:])
    unfitted = StackingWeights([(name, clone(model)) for name, model in models]).fit(X[:150], y[:150])
    assert stack.weights_ == unfitted.weights_
    assert stack.estimators_[0] is not models[0][1]


def test_models_that_are_to_be_used_as_they_are_must_be_fitted():
    X, y = regression()
    mixed = [("a", LinearRegression().fit(X, y)), ("b", Ridge())]
    with pytest.raises(NotFittedError, match=r"`StackingWeights\(cv='prefit'\)`: b must be fitted"):
        StackingWeights(mixed, cv="prefit").fit(X, y)
    assert StackingWeights(mixed).fit(X, y).estimators_[0] is not mixed[0][1]
    model = LinearRegression().fit(X, y)
    frozen = clone(StackingWeights([FrozenEstimator(model)])).fit(X, y)
    assert frozen.estimators_[0].estimator is model


def test_names():
    X, y = regression()
    stack = StackingWeights([Ridge(1.0), Ridge(10.0), LinearRegression()], cv=3).fit(X, y)
    assert list(stack.weights_) == ["ridge-1", "ridge-2", "linearregression"]
    assert stack.named_estimators_["ridge-2"] is stack.estimators_[1]
    with pytest.raises(ex.InputError, match="names of their own"):
        StackingWeights([("a", Ridge()), ("a", Ridge())]).fit(X, y)


def test_several_outputs_share_their_weights():
    X, y = regression()
    Y = np.column_stack([y, -2 * y, y**2 / 100])
    stack = StackingWeights([LinearRegression(), DecisionTreeRegressor(max_depth=3, random_state=0)], cv=3).fit(X, Y)
    assert stack.coef_.shape == (2,)
    assert stack.predict(X).shape == Y.shape


def classification(classes=3):
    return make_classification(600, 8, n_informative=5, n_classes=classes, flip_y=0.2, random_state=0)


@pytest.mark.parametrize("weighted", [False, True])
def test_classifiers_mix_their_probabilities(weighted):
    X, y = classification()
    labels = np.array(["no", "perhaps", "yes"])[y]
    models = [GaussianNB(), DecisionTreeClassifier(max_depth=3, random_state=0), DummyClassifier()]
    models = [m.fit(X[:300], labels[:300]) for m in models]
    s = np.random.default_rng(0).random(300) if weighted else None
    stack = StackingWeights(models, cv="prefit").fit(X[300:], labels[300:], s)
    assert is_classifier(stack)
    assert stack.dual_gap_ <= 1e-6 * stack.objective_
    p = [m.predict_proba(X[300:]) for m in models]
    mine = log_loss(labels[300:], stack.predict_proba(X[300:]), sample_weight=s)
    assert mine == pytest.approx(stack.objective_, rel=1e-9)
    rng = np.random.default_rng(1)
    for w in [*np.eye(3), *rng.dirichlet(np.ones(3), 50)]:
        mix = np.tensordot(w, p, 1)
        assert log_loss(labels[300:], mix, sample_weight=s) >= mine - 1e-6 * mine
    assert stack.score(X[300:], labels[300:]) > 0.4
    np.testing.assert_allclose(stack.predict_proba(X).sum(axis=1), 1.0)


def test_models_that_are_sure_and_wrong():
    """Trees give probabilities of 0 and 1; every row may be impossible for one of them, and some for all."""
    X, y = classification(2)
    trees = [DecisionTreeClassifier(random_state=k, max_features=1).fit(X[:300], y[:300]) for k in range(4)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stack = StackingWeights(trees, cv="prefit").fit(X[300:], y[300:])
        calm = StackingWeights([*trees, GaussianNB().fit(X[:300], y[:300])], cv="prefit").fit(X[300:], y[300:])
    assert stack.status_ == calm.status_ == "tol"
    assert np.isfinite(stack.objective_)
    assert calm.objective_ < stack.objective_


def test_a_class_that_a_model_has_not_seen():
    X, y = classification(3)
    few = GaussianNB().fit(X[:300][y[:300] < 2], y[:300][y[:300] < 2])
    all_of_them = GaussianNB().fit(X[:300], y[:300])
    stack = StackingWeights([few, all_of_them], cv="prefit").fit(X[300:], y[300:])
    assert stack.predict_proba(X).shape == (600, 3)
    assert stack.weights_["gaussiannb-2"] > 0.5


def test_the_log_loss_of_a_mixture_is_smooth():
    loss, y = MixtureLogLoss(1e-2), np.zeros(7)
    z, h = np.array([-0.01, 0.0, 5e-3, 1e-2, 2e-2, 0.5, 1.0]), 1e-7
    np.testing.assert_allclose(loss.deriv(z, y), (loss.value(z + h, y) - loss.value(z - h, y)) / (2 * h), rtol=1e-5)
    second = (loss.deriv(z + h, y) - loss.deriv(z - h, y)) / (2 * h)
    away = z != 1e-2  # there the third derivative jumps
    np.testing.assert_allclose(loss.second(z, y)[away], second[away], rtol=1e-4)
    np.testing.assert_allclose(MixtureLogLoss().value(np.array([LEAST_PROBABILITY, 0.3]), y), -np.log([LEAST_PROBABILITY, 0.3]))


@pytest.mark.parametrize(
    ("models", "options", "message"),
    [
        ([], {}, "list of models"),
        ([GaussianNB(), Ridge()], {}, "must be a classifier"),
        ([Ridge(), GaussianNB()], {}, "must be a regressor"),
        ([Ridge()], {"loss": "log_loss"}, "'squared' for a regressor"),
        ([Ridge()], {"cv": "five"}, r"`StackingWeights\(cv=...\)` must be a number of folds"),
        ([Ridge()], {"cv": "auto"}, "got 'auto'"),
        ([Ridge()], {"tol": -1}, "tol"),
    ],
)
def test_wrong_stacks_are_refused(models, options, message):
    with pytest.raises(ex.InputError, match=message):
        StackingWeights(models, **options).fit(*regression())
