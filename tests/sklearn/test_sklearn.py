"""The estimators of constrained linear models: scikit-learn's own checks, certificates, weights, data of every kind."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
import scipy.optimize as so
import scipy.sparse as sp
import sklearn
from estimators import CLASSIFIERS, MODELS
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression, QuantileRegressor
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.fixes import parse_version

import extremal as ex
from extremal.sklearn import (
    ConstrainedGLM,
    ConstrainedLinearRegression,
    ConstrainedLogisticRegression,
    ConstrainedMultinomialRegression,
)


@parametrize_with_checks([
    *(model() for model in MODELS),
    ConstrainedLinearRegression("l1:10", loss="huber"),
    ConstrainedLinearRegression("l1:1", loss="quantile"),
    ConstrainedLogisticRegression("box:-1,1"),
    ConstrainedLogisticRegression("l2:3", class_weight="balanced"),
    ConstrainedMultinomialRegression("l1:20"),
])  # fmt: skip
def test_scikit_learns_own_checks(estimator, check):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # of data that are separable under a cone, made by the checks
        check(estimator)


# what is certified


@pytest.mark.parametrize("constraint", ["l1:3", "l2:1", "box:-0.5,0.5", "simplex", "linf:0.3", "unit-simplex:2", "elastic:2,0.5"])
def test_the_certificate_bounds_what_a_long_run_of_another_method_finds(cancer, constraint):
    X, y = cancer
    model = ConstrainedLogisticRegression(constraint).fit(X, y)
    assert model.status_ == "tol"
    assert model.constraint_violation_ == 0.0
    assert model.dual_gap_ <= 1.01e-6 * model.objective_
    f = ex.InterceptModel(ex.Logistic(), X, np.where(y == 1, 1.0, -1.0))
    assert f.value(model.coef_[0]) == pytest.approx(model.objective_, rel=1e-12)
    assert model.intercept_[0] == pytest.approx(f.intercept(model.coef_[0]), abs=1e-9)
    other = ex.minimize(f, model.constraint_, ex.FullyCorrectiveFW(), tol=1e-6, max_iter=2000)
    assert other.value >= model.objective_ - model.dual_gap_


def test_the_answer_is_that_of_slsqp(diabetes):
    X, y = diabetes
    model = ConstrainedLinearRegression(["l1:5", "nonneg"]).fit(X, y)

    def f(v):
        return 0.5 * np.square(X @ v[:-1] + v[-1] - y).mean()

    wanted = so.minimize(
        f, np.full(11, 0.1), bounds=[(0, None)] * 10 + [(None, None)], method="SLSQP",
        constraints={"type": "ineq", "fun": lambda v: 5 - v[:-1].sum()}, options={"maxiter": 2000, "ftol": 1e-13},
    )  # fmt: skip
    assert model.objective_ == pytest.approx(wanted.fun, rel=1e-6)
    np.testing.assert_allclose(model.coef_, wanted.x[:-1], atol=2e-3)
    assert (model.coef_ >= 0).all()
    assert model.coef_.sum() <= 5


def test_without_a_constraint_it_is_ordinary_least_squares(diabetes):
    X, y = diabetes
    model, wanted = ConstrainedLinearRegression(None).fit(X, y), LinearRegression().fit(X, y)
    np.testing.assert_allclose(model.coef_, wanted.coef_, atol=1e-6)
    assert model.intercept_ == pytest.approx(wanted.intercept_, abs=1e-6)


def test_without_a_constraint_it_is_plain_logistic_regression():
    X, y = load_iris(return_X_y=True)
    X, y = X[y > 0], y[y > 0]
    model = ConstrainedLogisticRegression(None).fit(X, y)
    wanted = LogisticRegression(C=np.inf, tol=1e-10, max_iter=100_000).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), wanted.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("q", [0.1, 0.5, 0.9])
def test_quantiles(diabetes, q):
    X, y = diabetes
    model = ConstrainedLinearRegression(None, loss="quantile", quantile=q, width=1e-3).fit(X, y)
    wanted = QuantileRegressor(quantile=q, alpha=0, solver="highs").fit(X, y)

    def pinball(prediction):
        r = y - prediction
        return np.maximum(q * r, (q - 1) * r).mean()

    assert model.status_ == "tol"
    assert pinball(model.predict(X)) <= pinball(wanted.predict(X)) + 1e-3 * y.std()
    assert np.mean(y <= model.predict(X)) == pytest.approx(q, abs=0.03)


def test_huber_is_not_moved_by_outliers(diabetes):
    X, y = diabetes
    spoilt = y.copy()
    spoilt[:20] += 1000
    clean = ConstrainedLinearRegression("nonneg", loss="huber", delta=1.0).fit(X, y)
    model = ConstrainedLinearRegression("nonneg", loss="huber", delta=1.0).fit(X, spoilt)
    squared = ConstrainedLinearRegression("nonneg").fit(X, spoilt)
    assert np.abs(model.coef_ - clean.coef_).max() < 0.3 * np.abs(squared.coef_ - clean.coef_).max()


def test_counts_are_those_of_poisson_regression():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 4))
    y = rng.poisson(np.exp(X @ [0.5, -0.3, 0.2, 0.0] + 1))
    from sklearn.linear_model import PoissonRegressor

    model = ConstrainedGLM("poisson", None).fit(X, y)
    wanted = PoissonRegressor(alpha=0, tol=1e-10, max_iter=10_000).fit(X, y)
    np.testing.assert_allclose(model.coef_, wanted.coef_, atol=1e-5)
    np.testing.assert_allclose(model.predict(X), wanted.predict(X), rtol=1e-4)
    signed = ConstrainedGLM("poisson", "nonneg").fit(X, y)
    assert signed.coef_[1] == 0.0
    assert signed.objective_ >= model.objective_


def test_a_glm_takes_losses_and_solvers_of_the_library(cancer):
    X, y = cancer
    model = ConstrainedGLM("logistic", "l1:3").fit(X, y)
    other = ConstrainedLogisticRegression("l1:3").fit(X, y)
    np.testing.assert_allclose(model.predict(X), other.predict_proba(X)[:, 1], atol=1e-6)
    stated = ConstrainedGLM(ex.Logistic(), ex.L1Ball(3.0), ex.PairwiseFW()).fit(X, np.where(y == 1, 1, -1))
    assert stated.objective_ == pytest.approx(model.objective_, rel=1e-5)


@pytest.mark.parametrize("solver", ["sarah-fw", ex.SagaSarahFW(batch=20)])
def test_methods_that_draw_batches_have_an_intercept_too(cancer, solver):
    X, y = cancer
    model = ConstrainedLogisticRegression("l1:3", solver=solver, tol=1e-1, max_iter=20_000, random_state=0).fit(X, y)
    best = ConstrainedLogisticRegression("l1:3").fit(X, y)
    assert best.objective_ <= model.objective_ <= best.objective_ + model.dual_gap_
    assert model.dual_gap_ < 0.11 * model.objective_
    same = clone(model).fit(X, y)
    np.testing.assert_array_equal(same.coef_, model.coef_)


# constraints


def test_signs_and_bounds_by_feature_name():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.standard_normal((300, 3)), columns=["income", "debt", "age"])
    y = X["income"] + X["debt"] - 2 * X["age"] + rng.standard_normal(300) > 0
    model = ConstrainedLogisticRegression({"income": ">=0", "debt": "<=0", "age": (-1, 1)}).fit(X, y)
    assert model.coef_[0, 0] > 0
    assert model.coef_[0, 1] == 0
    assert model.coef_[0, 2] == -1
    assert list(model.feature_names_in_) == ["income", "debt", "age"]
    with pytest.raises(ValueError, match="incom"):
        ConstrainedLogisticRegression({"incom": ">=0"}).fit(X, y)


def test_linear_inequalities_hold(diabetes):
    X, y = diabetes
    A = np.diff(np.eye(10), axis=0)  # w_{j+1} <= w_j
    model = ConstrainedLinearRegression((A, 0.0)).fit(X, y)
    assert model.status_ == "tol"
    assert (A @ model.coef_ <= 0).all()
    ordered = ConstrainedLinearRegression("monotone-decreasing").fit(X, y)
    assert model.objective_ == pytest.approx(ordered.objective_, rel=1e-4)


def test_radius_as_a_share_of_the_unconstrained_norm(diabetes):
    X, y = diabetes
    free = np.abs(LinearRegression().fit(X, y).coef_).sum()
    for radius, constraint in (("30%", "l1"), (None, "l1:30%")):
        model = ConstrainedLinearRegression(constraint, radius=radius).fit(X, y)
        assert np.abs(model.coef_).sum() == pytest.approx(0.3 * free, rel=1e-4)


def test_no_share_of_a_norm_that_is_infinite():
    X, y = np.array([[-1.0], [1.0]]), np.array([0, 1])
    with pytest.raises(ValueError, match="separable classes"):
        ConstrainedLogisticRegression("l1", radius="50%").fit(X, y)


def test_what_has_no_best_fit_is_said():
    X, y = np.array([[-1.0], [1.0]]), np.array([0, 1])
    with pytest.warns(ConvergenceWarning, match="add a bound"):
        model = ConstrainedLogisticRegression("nonneg").fit(X, y)
    assert model.status_ == "unbounded"


def test_a_tolerance_that_is_not_reached_is_said_with_advice(cancer):
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = ConstrainedLogisticRegression("l1:20", max_iter=1).fit(*cancer)
    assert model.status_ == "max_iter"
    assert model.dual_gap_ > 0


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (ConstrainedLogisticRegression("l1:-1"), "radius"),
        (ConstrainedLogisticRegression(tol=-1), "tol"),
        (ConstrainedLogisticRegression(max_iter=0), "max_iter"),
        (ConstrainedLogisticRegression(fit_intercept="yes"), "fit_intercept"),
        (ConstrainedLogisticRegression(solver="newtonn"), "newton"),
        (ConstrainedLogisticRegression(class_weight="even"), "class_weight"),
        (ConstrainedGLM("poison"), "poisson"),
        (ConstrainedGLM(ex.Logistic), "loss"),
        (ConstrainedLinearRegression(loss="absolute"), "quantile"),
        (ConstrainedLinearRegression(loss="huber", delta=0), "delta"),
        (ConstrainedLinearRegression(loss="quantile", quantile=1.5), "quantile"),
        (ConstrainedLinearRegression(ex.L1Ball(1.0), radius=3), "radius"),
    ],
    ids=lambda v: str(v)[:60],
)
def test_parameters_that_make_no_sense_are_named(cancer, model, message):
    X, y = cancer
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)


# weights


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, sp.csc_matrix])
@pytest.mark.parametrize("model", MODELS)
def test_a_row_of_weight_two_is_a_row_twice_and_of_weight_zero_none(model, kind):
    rng = np.random.default_rng(1)
    X, w = rng.standard_normal((60, 4)) * (rng.random((60, 4)) < 0.7), rng.integers(0, 4, 60)
    y = (X @ [1.0, -1.0, 0.5, 0.0] + rng.standard_normal(60) > 0).astype(int)
    rows = np.repeat(np.arange(60), w)
    a, b = model().fit(kind(X), y, sample_weight=w), model().fit(kind(X[rows]), y[rows])
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(a.intercept_, b.intercept_, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("model", CLASSIFIERS)
def test_class_weights_are_weights_of_rows(model):
    X, y = load_wine(return_X_y=True)
    X = scale(X)
    given = model(class_weight={0: 1.0, 1: 3.0, 2: 0.5}).fit(X, y)
    np.testing.assert_allclose(given.coef_, model().fit(X, y, np.array([1.0, 3.0, 0.5])[y]).coef_, atol=1e-6)
    count = np.bincount(y)
    even = model(class_weight="balanced").fit(X, y)
    np.testing.assert_allclose(even.coef_, model().fit(X, y, (len(y) / (3 * count))[y]).coef_, atol=1e-6)


@pytest.mark.parametrize("weight", [-1.0, 0.0, np.nan])
def test_weights_that_are_none_are_refused(cancer, weight):
    X, y = cancer
    with pytest.raises(ValueError):
        ConstrainedLogisticRegression().fit(X, y, np.full(len(y), weight))


# data


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_array, sp.coo_array])
def test_sparse_rows_of_either_index_and_float_type(kind, index, dtype):
    rng = np.random.default_rng(0)
    A = sp.csr_array(rng.standard_normal((300, 20)) * (rng.random((300, 20)) < 0.3)).astype(dtype)
    y = np.asarray(A @ np.linspace(-2, 2, 20)) + 0.3 * rng.standard_normal(300) > 0
    X = kind(A)
    for part in ("indices", "indptr"):
        if hasattr(X, part):
            setattr(X, part, getattr(X, part).astype(index))
    model = ConstrainedLogisticRegression("l1:10").fit(X, y)
    dense = ConstrainedLogisticRegression("l1:10").fit(A.toarray(), y)
    assert model.coef_.dtype == dtype
    assert model.predict_proba(X).dtype == dtype
    assert model.constraint_violation_ == 0.0
    assert np.abs(model.coef_).sum() <= 10
    np.testing.assert_allclose(model.coef_, dense.coef_, atol=1e-2 if dtype == np.float32 else 1e-4)


@pytest.mark.parametrize("model", MODELS)
def test_float32_is_kept_and_x_is_not_changed(model, cancer):
    X, y = cancer[0].astype(np.float32), cancer[1]
    before = X.copy()
    fitted = model().fit(X, y)
    assert fitted.coef_.dtype == np.float32
    np.testing.assert_array_equal(X, before)
    assert fitted.predict(X).dtype in (np.float32, y.dtype)


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("model", MODELS)
def test_data_frames(library, model, cancer):
    frames = pytest.importorskip(library)
    X, y = cancer
    names = [f"c{j}" for j in range(30)]
    frame = frames.DataFrame({name: X[:, j] for j, name in enumerate(names)})
    fitted, plain = model().fit(frame, y), model().fit(X, y)
    if library == "pandas" or parse_version(sklearn.__version__) >= parse_version("1.7"):  # older ones do not read all polars
        assert list(fitted.feature_names_in_) == names
    np.testing.assert_array_equal(fitted.coef_, plain.coef_)
    np.testing.assert_array_equal(fitted.predict(frame), plain.predict(X))


def test_classes_of_any_kind():
    X, y = load_iris(return_X_y=True)
    names = np.array(["setosa", "versicolor", "virginica"])[y]
    for model in CLASSIFIERS:
        fitted = model(radius=30.0).fit(scale(X), names)
        assert fitted.coef_.shape == (3, 4)
        assert fitted.score(scale(X), names) > 0.9
        p = fitted.predict_proba(scale(X))
        np.testing.assert_allclose(p.sum(axis=1), 1)
        np.testing.assert_array_equal(fitted.classes_[p.argmax(axis=1)], fitted.predict(scale(X)))
        np.testing.assert_allclose(fitted.predict_log_proba(scale(X)), np.log(p), atol=1e-12)


@pytest.mark.parametrize("model", CLASSIFIERS)
def test_one_class_and_numbers_that_are_no_classes_are_refused(model):
    X = np.random.default_rng(0).standard_normal((20, 3))
    with pytest.raises(ValueError, match="one class"):
        model().fit(X, np.ones(20))
    with pytest.raises(ValueError, match="Unknown label type"):
        model().fit(X, X[:, 0])
    with pytest.raises(ValueError, match="one class"):
        model().fit(X, np.arange(20) % 2, sample_weight=np.arange(20) % 2)


def test_a_trace_norm_ties_classes_together():
    X, y = load_digits(return_X_y=True)
    model = ConstrainedMultinomialRegression("nuclear:15").fit(X / 16, y)
    assert model.status_ == "tol"
    assert np.linalg.svd(model.coef_, compute_uv=False).sum() <= 15
    assert np.linalg.matrix_rank(model.coef_, tol=1e-6) < 10
    rows = ConstrainedMultinomialRegression("groups:15").fit(X / 16, y)
    unused = ~rows.coef_.any(axis=0)
    assert unused.sum() > 10
    assert np.linalg.norm(rows.coef_, axis=0).sum() <= 15


# living with scikit-learn


def test_grid_search_over_the_radius_and_pipelines(cancer):
    search = GridSearchCV(
        make_pipeline(StandardScaler(), ConstrainedLogisticRegression("l1")),
        {"constrainedlogisticregression__radius": [0.01, 1.0, 10.0]}, cv=3,
    )  # fmt: skip
    search.fit(*load_breast_cancer(return_X_y=True))
    assert search.best_params_["constrainedlogisticregression__radius"] > 0.01
    parallel = cross_val_score(ConstrainedLogisticRegression("l1:3"), *cancer, cv=3, n_jobs=2)
    np.testing.assert_array_equal(parallel, cross_val_score(ConstrainedLogisticRegression("l1:3"), *cancer, cv=3))


@pytest.mark.parametrize("model", MODELS)
def test_clone_pickle_and_html(model, cancer):
    X, y = cancer
    fitted = model().fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    assert repr(again.certificate_) == repr(fitted.certificate_)
    assert not hasattr(clone(fitted), "coef_")
    assert type(fitted).__name__ in fitted._repr_html_()


def test_sample_weights_are_routed(cancer):
    X, y = cancer
    w = np.random.default_rng(0).random(len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        model = ConstrainedLogisticRegression("l1").set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        search = GridSearchCV(model, {"radius": [3.0]}, cv=3).fit(X, y, sample_weight=w)
    alone = ConstrainedLogisticRegression("l1", radius=3.0).fit(X, y, w)
    np.testing.assert_allclose(search.best_estimator_.coef_, alone.coef_, atol=1e-9)


def test_a_warm_start_begins_at_the_last_fit(cancer):
    X, y = cancer
    model = ConstrainedLogisticRegression("l1", radius=5.0, warm_start=True).fit(X, y)
    first, coef = model.n_grads_, model.coef_
    model.fit(X, y)
    assert model.n_grads_ < first
    np.testing.assert_allclose(model.coef_, coef, atol=1e-6)
    model.set_params(radius=2.0).fit(X, y)
    assert np.abs(model.coef_).sum() <= 2.0
    assert model.status_ == "tol"


def test_progress_is_written_if_asked_for(cancer, capsys):
    ConstrainedLogisticRegression("l1:5", verbose=1).fit(*cancer)
    assert "above the minimum" in capsys.readouterr().err
    ConstrainedLogisticRegression("l1:5").fit(*cancer)
    assert "".join(capsys.readouterr()) == ""


# streams


@pytest.mark.parametrize(
    "model", [ConstrainedLogisticRegression("l1:5"), ConstrainedMultinomialRegression("nuclear:8")], ids=repr
)
def test_batches_seen_once(model, cancer):
    X, y = cancer
    for _ in range(10):
        for rows in np.array_split(np.random.default_rng(0).permutation(len(y)), 8):
            model.partial_fit(X[rows], y[rows], classes=[0, 1])
            assert model.constraint_violation_ == 0.0
    assert model.score(X, y) > 0.93
    assert model.status_ == "partial"
    assert np.isnan(model.dual_gap_)
    with pytest.raises(ValueError, match="none of"):
        model.partial_fit(X[:9], np.full(9, 7))
    with pytest.raises(ValueError, match="classes"):
        clone(model).partial_fit(X, y)


def test_a_stream_of_numbers(diabetes):
    X, y = diabetes
    model = ConstrainedLinearRegression("l1:5")
    for _ in range(60):
        model.partial_fit(X, y)
    best = ConstrainedLinearRegression("l1:5").fit(X, y)
    assert model.score(X, y) > best.score(X, y) - 0.05
    assert not hasattr(ConstrainedLinearRegression("nonneg"), "partial_fit")
    assert not hasattr(ConstrainedLinearRegression("l1", radius="30%"), "partial_fit")
