"""Sparse logistic regression over many l1 balls, and the ball that cross-validation chooses."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import get_scorer, log_loss
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import extremal as ex
from extremal.sklearn import SparseLogisticPath, SparseLogisticPathCV
from extremal.sklearn.paths import balls, estimators

RADII = [0.3, 1.0, 3.0]
BOTH = [SparseLogisticPath, SparseLogisticPathCV]


def binary(n=120, d=12, seed=0):
    return make_classification(n_samples=n, n_features=d, n_informative=4, flip_y=0.1, random_state=seed)


def three(n=120, d=10):
    return make_classification(n_samples=n, n_features=d, n_informative=5, n_classes=3, random_state=1)


@parametrize_with_checks([SparseLogisticPath(), SparseLogisticPathCV(n_radii=3)])
def test_keeps_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


# the path


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_solutions_are_optimal_feasible_and_certified(fit_intercept):
    X, y = binary()
    model = SparseLogisticPath(n_radii=10, fit_intercept=fit_intercept).fit(X, y)
    assert model.coefs_.shape == (10, 12)
    assert (np.abs(model.coefs_).sum(axis=1) <= model.radii_).all()
    assert model.constraint_violation_ == 0
    s = 2.0 * y - 1
    for x, b, value, gap in zip(model.coefs_, model.intercepts_, model.objectives_, model.dual_gaps_, strict=True):
        p = 1 / (1 + np.exp(s * (X @ x + b)))
        g = -(X.T @ (s * p)) / len(y)
        assert value == pytest.approx(np.log1p(np.exp(-s * (X @ x + b))).mean(), rel=1e-10)
        if fit_intercept:
            assert abs((s * p).mean()) <= 1e-12  # the best intercept
        else:
            assert b == 0
        i = list(model.objectives_).index(value)
        assert gap == pytest.approx(g @ x + model.radii_[i] * np.abs(g).max(), abs=1e-12)
        assert gap <= 1e-6 * value


def test_agrees_with_the_penalised_problem():
    """The multiplier of the ball is the largest slope: a penalty of that size has the same solution."""
    X, y = binary()
    model = SparseLogisticPath([1.0], tol=1e-10).fit(X, y)
    s = 2.0 * y - 1
    p = 1 / (1 + np.exp(s * model.decision_function(X)))
    slope = np.abs(X.T @ (s * p)).max()
    other = LogisticRegression(l1_ratio=1.0, C=1 / slope, solver="saga", tol=1e-10, max_iter=100000)
    if sklearn.__version__ < "1.8":
        other.set_params(penalty="l1", l1_ratio=None)
    other.fit(X, y)
    np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-4)
    np.testing.assert_allclose(model.intercept_, other.intercept_, atol=1e-4)


def test_the_grid_ends_where_more_radius_is_worth_little():
    X, y = binary(300)
    for scale in (1.0, 1e3):
        model = SparseLogisticPath(eps=0.05).fit(scale * X, y)
        s = 2.0 * y - 1
        level = np.full(300, np.log(y.mean() / (1 - y.mean())))
        first, last = (np.abs(X.T @ (s / (1 + np.exp(s * z)))).max() for z in (level, model.decision_function(scale * X)))
        assert 0.04 < last / first < 0.06
        np.testing.assert_allclose(model.radii_[0] * balls.SPAN, model.radii_[-1])
        np.testing.assert_allclose(np.diff(np.log(model.radii_)), np.log(balls.SPAN) / 29)
        assert (np.diff(model.objectives_) < 0).all()


def test_the_grid_is_finite_for_separable_classes_and_for_useless_features():
    X = np.arange(20.0)[:, None] - 9.5
    assert np.isfinite(SparseLogisticPath().fit(X, X[:, 0] > 0).radii_).all()
    flat = SparseLogisticPath().fit(np.ones((20, 2)), np.arange(20) % 2)
    assert flat.radii_[-1] == 1
    assert not flat.coefs_.any()


def test_radii_are_sorted_and_each_is_kept_once():
    X, y = binary()
    model = SparseLogisticPath([3, 1, 3, 0.3]).fit(X, y)
    assert model.radii_.tolist() == [0.3, 1, 3]
    assert model.radius_ == 3
    assert (np.diff(model.n_nonzero_) >= 0).all()


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("data", [binary, three])
def test_predicts_at_any_radius_of_the_grid(kind, data):
    X, y = data()
    model = kind(RADII).fit(X, y)
    for i, radius in enumerate(model.radii_):
        scores = X @ np.atleast_2d(model.coefs_[i]).T + model.intercepts_[i]
        np.testing.assert_allclose(model.decision_function(X, radius=radius).reshape(len(X), -1), scores, atol=1e-12)
        proba = model.predict_proba(X, radius=radius)
        np.testing.assert_allclose(proba.sum(axis=1), 1)
        assert (model.classes_[proba.argmax(axis=1)] == model.predict(X, radius=radius)).all()
    np.testing.assert_array_equal(model.predict_proba(X), model.predict_proba(X, radius=model.radius_))
    with pytest.raises(ex.InputError, match=r"the nearest are 1, 0.3, 3; got 1.5"):
        model.predict(X, radius=1.5)


def test_each_class_against_the_rest():
    X, y = three()
    model = SparseLogisticPath(RADII).fit(X, y)
    assert model.coefs_.shape == (3, 3, 10)
    for k in range(3):
        one = SparseLogisticPath(RADII).fit(X, y == k)
        np.testing.assert_allclose(model.coefs_[:, k], one.coefs_, atol=1e-10)
        np.testing.assert_allclose(model.intercepts_[:, k], one.intercepts_, atol=1e-10)
    np.testing.assert_array_equal(model.n_nonzero_, (model.coefs_ != 0).any(axis=1).sum(axis=1))
    assert model.dual_gap_ == pytest.approx(model.dual_gaps_[-1].sum())


@pytest.mark.parametrize("kind", BOTH)
def test_probabilities_far_out_are_finite(kind):
    X, y = three()
    model = kind(RADII).fit(X, y)
    assert np.isfinite(model.predict_proba(1e6 * X)).all()
    assert np.isfinite(model.predict_log_proba(1e3 * X)).all()


# weights


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array, sparse.csc_matrix])
@pytest.mark.parametrize("data", [binary, three])
def test_a_weight_of_two_is_a_row_twice(form, data):
    X, y = data()
    w = np.random.default_rng(0).integers(0, 4, len(y))
    a = SparseLogisticPath().fit(form(X), y, sample_weight=w)
    b = SparseLogisticPath().fit(form(np.repeat(X, w, axis=0)), np.repeat(y, w))
    np.testing.assert_array_equal(a.radii_, b.radii_)
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), rtol=1e-7, atol=1e-9)


def test_weights_count_in_scores():
    X, y = binary()
    w = np.random.default_rng(0).integers(0, 4, len(y))
    fold = np.arange(len(y)) % 3
    splits = [(np.flatnonzero(fold != i), np.flatnonzero(fold == i)) for i in range(3)]
    rows = np.repeat(np.arange(len(y)), w)
    repeated = [(np.flatnonzero(fold[rows] != i), np.flatnonzero(fold[rows] == i)) for i in range(3)]
    for scoring in (None, "neg_log_loss", "accuracy"):
        a = SparseLogisticPathCV(RADII, cv=splits, scoring=scoring).fit(X, y, sample_weight=w)
        b = SparseLogisticPathCV(RADII, cv=repeated, scoring=scoring).fit(X[rows], y[rows])
        np.testing.assert_allclose(a.scores_, b.scores_, rtol=1e-7)
        assert a.radius_ == b.radius_


@pytest.mark.parametrize("kind", BOTH)
def test_class_weights_are_weights_of_rows(kind):
    X, y = three()
    labels = np.array(["a", "b", "c"])[y]
    given = {"a": 1.0, "b": 5.0, "c": 2.0}
    a = kind(RADII, class_weight=given).fit(X, labels)
    one = SparseLogisticPath(RADII).fit(X, labels, sample_weight=[given[label] for label in labels])
    np.testing.assert_allclose(a.coefs_, one.coefs_, atol=1e-10)
    balanced = kind(RADII, class_weight="balanced").fit(X[20:], labels[20:])
    counts = np.bincount(y[20:])
    same = kind(RADII, class_weight=dict(zip("abc", 100 / (3 * counts), strict=True))).fit(X[20:], labels[20:])
    np.testing.assert_allclose(balanced.coefs_, same.coefs_, atol=1e-10)


# kinds of data


@pytest.mark.parametrize("kind", BOTH)
def test_float32_is_kept(kind):
    X, y = binary()
    a, b = kind(RADII).fit(X.astype(np.float32), y), kind(RADII).fit(X, y)
    assert (a.dual_gaps_ <= 1.1e-5 * a.objectives_).all()
    assert a.coefs_.dtype == a.coef_.dtype == np.float32
    assert (np.abs(a.coefs_).sum(axis=1, dtype=np.float64) <= a.radii_).all()
    np.testing.assert_allclose(a.objectives_, b.objectives_, rtol=1.1e-5)
    np.testing.assert_allclose(a.predict_proba(X), b.predict_proba(X), atol=2e-2)


@pytest.mark.parametrize("kind", BOTH)
def test_sparse_rows_of_either_index_width(kind):
    X, y = binary()
    X = np.where(np.abs(X) > 0.5, X, 0.0)
    dense = kind(RADII).fit(X, y)
    for form in (sparse.csr_array(X), sparse.csc_matrix(X), sparse.csr_matrix(X)):
        np.testing.assert_allclose(kind(RADII).fit(form, y).coefs_, dense.coefs_, atol=1e-9)
    wide = sparse.csr_matrix(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    np.testing.assert_allclose(kind(RADII).fit(wide, y).coefs_, dense.coefs_, atol=1e-9)


@pytest.mark.parametrize("kind", BOTH)
def test_names_of_features_are_kept(kind):
    X, y = binary(d=8)
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    model = kind(RADII).fit(frame, pd.Series(y))
    assert model.feature_names_in_.tolist() == list("abcdefgh")
    model.predict(frame)


@pytest.mark.parametrize("kind", BOTH)
def test_polars_frames_are_taken(kind):
    polars = pytest.importorskip("polars")
    X, y = binary(d=8)
    frame = polars.DataFrame(X, schema=list("abcdefgh"))
    model = kind(RADII).fit(frame, polars.Series(y))
    if hasattr(StandardScaler().fit(frame), "feature_names_in_"):  # an old scikit-learn does not know new polars
        assert model.feature_names_in_.tolist() == list("abcdefgh")
    np.testing.assert_array_equal(model.coefs_, kind(RADII).fit(X, y).coefs_)


# cross-validation


def test_scores_are_those_of_the_folds():
    X, y = three()
    model = SparseLogisticPathCV(RADII, cv=4).fit(X, y)
    for scores, (train, test) in zip(model.scores_, StratifiedKFold(4).split(X, y), strict=True):
        path = SparseLogisticPath(RADII).fit(X[train], y[train])
        np.testing.assert_allclose(scores, [-log_loss(y[test], path.predict_proba(X[test], radius=r)) for r in RADII], rtol=1e-6)
    named = SparseLogisticPathCV(RADII, cv=4, scoring="neg_log_loss").fit(X, y)
    np.testing.assert_allclose(named.scores_, model.scores_)
    f1 = SparseLogisticPathCV(RADII, cv=4, scoring=get_scorer("f1_macro")).fit(X, y)
    assert not np.allclose(f1.scores_, model.scores_)


def test_the_radius_is_the_best_or_the_smallest_that_is_as_good():
    scores = np.array([[0.1, 0.5, 0.8, 0.8], [0.3, 0.7, 0.8, 0.8], [0.2, 0.78, 0.7, 0.7]])
    assert estimators.chosen(scores, "best") == 2
    mean, error = scores.mean(axis=0), scores[:, 2].std(ddof=1) / np.sqrt(3)
    assert mean[1] < mean[2] - error
    assert estimators.chosen(scores, "one-std") == 2
    scores[0, 1] = 0.75
    assert estimators.chosen(scores, "one-std") == 1
    assert estimators.chosen(scores[:1], "one-std") == 2
    with pytest.raises(ex.InputError, match="finite scores"):
        estimators.chosen(np.array([[0.0, np.nan]]), "best")


def test_one_std_is_sparser():
    X, y = binary(150, 40)
    best, sparse_ = (SparseLogisticPathCV(rule=rule).fit(X, y) for rule in ("best", "one-std"))
    np.testing.assert_array_equal(best.scores_, sparse_.scores_)
    assert sparse_.radius_ < best.radius_
    assert np.count_nonzero(sparse_.coef_) < np.count_nonzero(best.coef_)
    assert best.radius_ == best.radii_[best.scores_.mean(axis=0).argmax()]


def test_refit_takes_all_rows_or_the_mean_of_the_folds():
    X, y = binary()
    again = SparseLogisticPathCV(RADII).fit(X, y)
    whole = SparseLogisticPath(RADII).fit(X, y)
    np.testing.assert_array_equal(again.coefs_, whole.coefs_)
    mean = SparseLogisticPathCV(RADII, refit=False).fit(X, y)
    folds = [SparseLogisticPath(RADII).fit(X[train], y[train]).coefs_ for train, _ in StratifiedKFold(5).split(X, y)]
    np.testing.assert_allclose(mean.coefs_, np.mean(folds, axis=0), atol=1e-12)
    assert (np.abs(mean.coefs_).sum(axis=1) <= mean.radii_).all()
    assert (mean.objectives_ >= whole.objectives_).all()
    assert (mean.objectives_ - mean.dual_gaps_ <= whole.objectives_).all()


def test_folds_may_lack_a_class():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ex.InputError, match="finite scores"):  # a class that was never seen has no chance, but for half a row
        SparseLogisticPathCV(RADII, cv=KFold(3), scoring=lambda model, X, y: np.nan).fit(X, y)
    model = SparseLogisticPathCV(RADII, cv=KFold(3)).fit(X, y)
    assert np.isfinite(model.scores_).all()
    assert (model.scores_ < -2).all()


def test_jobs_do_not_change_the_answer():
    X, y = binary()
    one, two = (SparseLogisticPathCV(RADII, cv=2, n_jobs=n).fit(X, y) for n in (None, 2))
    np.testing.assert_allclose(one.scores_, two.scores_, rtol=1e-7)
    assert one.radius_ == two.radius_
    np.testing.assert_allclose(one.coefs_, two.coefs_, atol=1e-7)


def test_groups_come_by_metadata_routing():
    X, y = binary()
    groups = np.arange(len(y)) // 10
    with pytest.raises(ex.InputError, match="enable_metadata_routing"):
        SparseLogisticPathCV(RADII, cv=GroupKFold(3)).fit(X, y, groups=groups)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = SparseLogisticPathCV(RADII, cv=GroupKFold(3)).fit(X, y, groups=groups, sample_weight=np.ones(len(y)))
        scorer = get_scorer("accuracy").set_score_request(sample_weight=True)
        SparseLogisticPathCV(RADII, cv=GroupKFold(3), scoring=scorer).fit(X, y, groups=groups, sample_weight=np.ones(len(y)))
    split = SparseLogisticPathCV(RADII, cv=list(GroupKFold(3).split(X, y, groups))).fit(X, y)
    np.testing.assert_allclose(routed.scores_, split.scores_, rtol=1e-10)


# the rest


@pytest.mark.parametrize("kind", BOTH)
def test_works_in_pipelines_searches_and_files(kind):
    X, y = binary()
    pipe = make_pipeline(StandardScaler(), kind(RADII)).fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(pipe)).predict(X), pipe.predict(X))
    search = GridSearchCV(kind(RADII), {"fit_intercept": [True, False]}, cv=2).fit(X, y)
    assert clone(search.best_estimator_).get_params() == search.best_estimator_.get_params()
    assert "Certificate(f = " in repr(pipe[-1].certificate_)


@pytest.mark.parametrize("kind", BOTH)
def test_says_what_is_wrong(kind):
    X, y = binary()
    with pytest.raises(NotFittedError):
        kind().predict(X)
    for wrong, words in (
        ({"radii": [1.0, -1.0]}, r"radii=...\)` must hold positive"),
        ({"radii": []}, r"radii=...\)` must hold positive"),
        ({"n_radii": 0}, "n_radii"),
        ({"eps": 1.5}, r"\(0, 1\)"),
        ({"tol": 0}, "tol"),
        ({"max_iter": 0}, "max_iter"),
        ({"fit_intercept": "yes"}, "fit_intercept"),
        ({"class_weight": {0: 0.0}}, "class_weight"),
    ):
        with pytest.raises(ex.InputError, match=words):
            kind(**wrong).fit(X, y)
    with pytest.raises(ValueError, match="one class"):
        kind().fit(X, np.ones(len(y)))
    with pytest.raises(ValueError, match="one class"):
        kind().fit(X, y, sample_weight=y)
    with pytest.raises(ex.InputError, match="sample_weight"):
        kind().fit(X, y, sample_weight=-np.ones(len(y)))


def test_says_what_is_wrong_with_the_folds():
    X, y = binary()
    for wrong, words in (({"rule": "worst"}, "rule"), ({"refit": "no"}, "refit")):
        with pytest.raises(ex.InputError, match=words):
            SparseLogisticPathCV(**wrong).fit(X, y)
    with pytest.raises(ex.InputError, match="in every fold"):
        SparseLogisticPathCV(RADII, cv=[(np.arange(60), np.array([], int))]).fit(X, y)


@pytest.mark.parametrize("kind", BOTH)
def test_warns_if_the_tolerance_is_not_reached(kind):
    X, y = binary()
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model = kind(RADII, max_iter=1, tol=1e-12).fit(X, y)
    assert model.status_ == "max_iter"
    assert (np.abs(model.coefs_).sum(axis=1) <= model.radii_).all()
