"""Matrix completion for scikit-learn: matrices with gaps, and pairs of positions."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import extremal as ex
from extremal.sklearn import LowRankCompletion


@parametrize_with_checks(
    [
        LowRankCompletion(),
        LowRankCompletion(5.0, input="matrix", loss="huber", offsets="mean"),
        LowRankCompletion(offsets=None, rank=2),
    ]
)
def test_scikit_learn_agrees(estimator, check):
    check(estimator)


def ratings(m=60, n=40, rank=2, share=0.5, noise=0.05, seed=0):
    """A matrix of low rank with offsets, and the same with gaps."""
    rng = np.random.default_rng(seed)
    M = 3 + rng.standard_normal((m, 1)) + 0.5 * rng.standard_normal(n)
    M += rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n))
    X = np.where(rng.random((m, n)) < share, M + noise * rng.standard_normal((m, n)), np.nan)
    return M, X


def rmse(a, b):
    return float(np.sqrt(np.mean((a - b) ** 2)))


def test_gaps_are_filled_and_known_entries_stay():
    M, X = ratings()
    before = X.copy()
    filled = LowRankCompletion().fit_transform(X)
    gaps = np.isnan(X)
    np.testing.assert_array_equal(X, before)
    np.testing.assert_array_equal(filled[~gaps], X[~gaps])
    assert rmse(filled[gaps], M[gaps]) < 0.3 * M[gaps].std()
    constant = np.nanmean(X) + (np.nanmean(X, axis=1) - np.nanmean(X))[:, None] + np.nanmean(X, axis=0) - np.nanmean(X)
    assert rmse(filled[gaps], M[gaps]) < 0.4 * rmse(constant[gaps], M[gaps])


@pytest.mark.parametrize("loss", ["squared", "huber"])
@pytest.mark.parametrize("offsets", ["rows+cols", "mean", None])
def test_rows_of_the_fit_get_their_own_row_back(loss, offsets):
    """Folding a row in is the ridge regression that the solution satisfies, so both ways agree."""
    _, X = ratings(noise=0.5)
    model = LowRankCompletion(60.0, loss=loss, offsets=offsets, tol=1e-9).fit(X)
    gaps = np.isnan(X)
    ours = model.reconstruct(np.arange(60)[:, None], np.arange(40))
    np.testing.assert_allclose(model.transform(X)[gaps], ours[gaps], atol=2e-3 * np.abs(ours).max())


def test_rows_that_the_fit_has_not_seen():
    M, X = ratings(200)
    model = LowRankCompletion().fit(X[:150])
    filled, gaps = model.transform(X[150:]), np.isnan(X[150:])
    assert rmse(filled[gaps], M[150:][gaps]) < 0.4 * M.std()
    nothing = model.transform(np.full((1, 40), np.nan))[0]
    np.testing.assert_allclose(nothing, model.mean_ + model.col_offsets_)


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix])
def test_sparse_matrices_know_what_they_store(kind):
    _, X = ratings()
    X[0, 0] = 0.0  # a zero that is known
    rows, cols = np.nonzero(~np.isnan(X))
    A = kind(sp.coo_array((X[rows, cols], (rows, cols)), shape=X.shape))
    a, b = (LowRankCompletion(50.0).fit(data) for data in (A, X))
    assert a.certificate_.value == pytest.approx(b.certificate_.value, rel=1e-4)
    at = np.arange(60)[:, None], np.arange(40)
    np.testing.assert_allclose(a.reconstruct(*at), b.reconstruct(*at), atol=0.02)
    filled = a.transform(A)
    assert filled.shape == X.shape
    assert filled[0, 0] == 0.0


def test_pairs_are_the_same_problem():
    _, X = ratings()
    pairs = np.argwhere(~np.isnan(X))
    order = np.random.default_rng(0).permutation(len(pairs))
    values = X[tuple(pairs[order].T)]
    model = LowRankCompletion(50.0, tol=1e-8).fit(pairs[order], values)
    matrix = LowRankCompletion(50.0, tol=1e-8).fit(X)
    assert (model.input_, matrix.input_) == ("pairs", "matrix")
    np.testing.assert_allclose(model.predict(pairs), matrix.reconstruct(*pairs.T), atol=1e-3)
    assert model.score(pairs[order], values) > 0.8
    with pytest.raises(ex.InputError, match="predict"):
        model.transform(pairs)
    assert not hasattr(matrix, "predict")
    with pytest.raises(AttributeError):
        matrix.predict(pairs)


def test_what_is_read_as_pairs():
    floats, y = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 1.0]]), np.array([1.0, 2.0, 3.0])
    for pairs in (floats, floats.astype(int), floats.astype(np.float32), floats.astype(object), floats.tolist()):
        model = LowRankCompletion(1.0).fit(pairs, y)
        assert (model.input_, model.shape_, model.row_labels_) == ("pairs", (3, 2), None)
    assert LowRankCompletion(1.0).fit(floats.astype(int)).input_ == "matrix"
    assert LowRankCompletion(1.0, input="matrix").fit(floats.astype(int), y).shape_ == (3, 2)
    for change in (0.5, np.nan):
        matrix = floats.copy()
        matrix[0, 0] = change
        assert LowRankCompletion(1.0).fit(matrix, y).input_ == "matrix"
    assert LowRankCompletion(1.0).fit(np.hstack([floats, floats]), y).input_ == "matrix"
    with pytest.raises(ValueError, match="requires y"):
        LowRankCompletion(input="pairs").fit(floats)


def _strings(pairs):
    return np.array([[f"u{i}", f"item {j}"] for i, j in pairs])


def _mixed_frame(pairs):
    pd = pytest.importorskip("pandas")
    return pd.DataFrame({"user": [f"u{i}" for i, _ in pairs], "item": pairs[:, 1]})


def _categories(pairs):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"user": -10 * pairs[:, 0] - 5, "item": [f"item {j}" for j in pairs[:, 1]]})
    return frame.astype("category")


def _polars(pairs):
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"user": [f"u{i}" for i, _ in pairs], "item": [f"item {j}" for j in pairs[:, 1]]})
    return frame.with_columns(pl.col("item").cast(pl.Categorical))


@pytest.mark.parametrize("name", [_strings, lambda p: _strings(p).astype(object), _mixed_frame, _categories, _polars])
def test_pairs_of_labels_are_the_same_problem(name):
    _, X = ratings()
    pairs = np.argwhere(~np.isnan(X))
    values = X[tuple(pairs.T)]
    numbers, labels = (LowRankCompletion(50.0, tol=1e-8).fit(p, values) for p in (pairs, name(pairs)))
    assert (labels.input_, labels.shape_) == ("pairs", (60, 40))
    assert len(labels.row_labels_) == 60
    every = np.argwhere(np.ones_like(X))
    np.testing.assert_allclose(labels.predict(name(every)), numbers.predict(every), atol=1e-3)
    assert labels.score(name(pairs), values) == pytest.approx(numbers.score(pairs, values), abs=1e-4)
    again = pickle.loads(pickle.dumps(labels))
    np.testing.assert_array_equal(again.predict(name(every[:9])), labels.predict(name(every[:9])))


def test_labels_that_are_new_or_of_another_kind():
    pairs = [["ann", "tea"], ["ann", "rum"], ["bob", "tea"]]
    model = LowRankCompletion(5.0).fit(pairs, [5.0, 1.0, 4.0])
    assert (list(model.row_labels_), list(model.col_labels_)) == (["ann", "bob"], ["tea", "rum"])
    mean, cols = model.mean_, model.col_offsets_
    np.testing.assert_allclose(model.predict([["eve", "tea"], ["eve", "gin"]]), [mean + cols[0], mean])
    np.testing.assert_allclose(model.reconstruct("eve", ["tea", "rum"]), mean + cols)
    assert model.reconstruct("ann", "tea") == model.predict([["ann", "tea"]])[0]
    with pytest.raises(ex.InputError, match=r"labels of the kind of the fit's, such as 'ann', got 0"):
        model.predict([[0, 1]])
    for bad, message in (([["ann", None], ["bob", "tea"]], "missing one"), ([["a", []], ["b", ()]], "unhashable")):
        with pytest.raises(ex.InputError, match=message):
            LowRankCompletion(5.0).fit(np.array([*bad, ["", ""]], object)[:-1], [1.0, 2.0])
    with pytest.raises(ValueError, match="NaN"):
        LowRankCompletion(5.0).fit(np.array([["ann", np.nan], ["bob", "tea"]], object), [1.0, 2.0])


def test_numbers_that_are_names_are_refused_as_positions():
    ids = np.array([[76561198000000001, 3], [76561198000000002, 4]])
    with pytest.raises(ex.InputError, match=r"span 1e\+08 rows and columns at most, .* X.astype\(str\)"):
        LowRankCompletion(5.0).fit(ids, [1.0, 2.0])
    assert LowRankCompletion(5.0).fit(ids.astype(str), [1.0, 2.0]).shape_ == (2, 2)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_predictions_can_be_kept_in_the_range_of_what_is_known(dtype):
    _, X = ratings(noise=0.5)
    X = np.clip(np.round(X), 1, 5).astype(dtype)
    free, kept = (LowRankCompletion(100.0, clip=clip).fit(X) for clip in (False, True))
    assert kept.range_ == (1.0, 5.0)
    assert (kept.objective_, kept.dual_gap_) == (free.objective_, free.dual_gap_)
    at = np.arange(60)[:, None], np.arange(40)
    assert free.reconstruct(*at).max() > 5
    np.testing.assert_array_equal(kept.reconstruct(*at), np.clip(free.reconstruct(*at), 1, 5))
    np.testing.assert_array_equal(kept.transform(X), np.clip(free.transform(X), 1, 5))
    pairs = np.argwhere(~np.isnan(X))
    by_pairs = LowRankCompletion(100.0, clip=True).fit(pairs, X[tuple(pairs.T)])
    assert 1 <= by_pairs.predict(pairs).min() <= by_pairs.predict(pairs).max() <= 5


def test_rows_and_columns_that_were_not_seen():
    pairs, y = np.array([[0, 0], [0, 1], [1, 0], [3, 2]]), np.array([1.0, 2.0, 3.0, 4.0])
    model = LowRankCompletion(2.0).fit(pairs, y)
    mean, rows, cols = model.mean_, model.row_offsets_, model.col_offsets_
    np.testing.assert_allclose(model.predict([[99, 1], [0, 99], [99, 99]]), [mean + cols[1], mean + rows[0], mean])
    assert model.reconstruct(2, 1) == pytest.approx(mean + cols[1])  # a row between the others, without an entry
    assert LowRankCompletion(2.0, shape=(10, 5)).fit(pairs, y).shape_ == (10, 5)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([[0, -1], [1, 0]], "from 0, got -1"),
        ([[0.5, 1], [1, 0]], r"whole numbers .* got 0.5"),
        ([[0, 1, 2], [1, 0, 2]], "two columns"),
    ],
)
def test_bad_positions_are_refused(pairs, message):
    with pytest.raises(ValueError, match=message):
        LowRankCompletion(input="pairs").fit(pairs, [1.0, 2.0])
    if len(pairs[0]) == 2:
        model = LowRankCompletion(input="pairs").fit([[0, 0], [1, 1]], [1.0, 2.0])
        with pytest.raises(ValueError, match=message):
            model.predict(pairs)
    with pytest.raises(ex.InputError, match="hold all positions"):
        LowRankCompletion(shape=(1, 1)).fit([[0, 0], [1, 1]], [1.0, 2.0])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("radius", [None, 20.0, 400.0])
def test_the_answer_is_certified_and_feasible(dtype, radius):
    _, X = ratings(noise=0.3)
    model = LowRankCompletion(radius, tol=1e-3).fit(X.astype(dtype))
    U, s, Vt = model.row_factors_, model.singular_values_, model.components_
    assert U.dtype == s.dtype == Vt.dtype == model.transform(X.astype(dtype)).dtype == dtype
    assert model.constraint_violation_ == 0.0
    assert s.sum() <= model.radius_
    assert np.linalg.svd((U * s) @ Vt, compute_uv=False).sum() <= model.radius_ * (1 + 1e-5)
    np.testing.assert_allclose(U.T @ U, np.eye(model.rank_), atol=1e-5)
    rows, cols = np.nonzero(~np.isnan(X))
    r = model.reconstruct(rows, cols).astype(np.float64) - X[rows, cols]
    assert 0.5 * np.mean(r**2) == pytest.approx(model.objective_, rel=1e-3, abs=1e-9)
    assert 0 <= model.dual_gap_ <= 1e-3 * model.objective_ + 1e-6
    longer = LowRankCompletion(model.radius_, tol=1e-8).fit(X)
    assert model.objective_ - longer.objective_ <= model.dual_gap_ + 1e-6


@pytest.mark.parametrize("radius", [150.0, 2000.0])
@pytest.mark.parametrize("times", [1.0, 1e4, 1e-4])
def test_what_float32_cannot_tell_is_no_failure(radius, times):
    """All entries are met, or nearly: what is left of f and its gap is rounding, in any units, and no warning is given."""
    for seed in (2, 3):
        _, X = ratings(noise=0.3, seed=seed)
        model = LowRankCompletion(radius * times).fit((times * X).astype(np.float32))
        assert model.status_ == "tol"
        assert model.dual_gap_ <= model.objective_  # no sum of squares is below 0
        assert model.certificate_.relative_gap <= 1
        assert model.singular_values_.sum() <= model.radius_


def test_the_default_radius_is_near_the_best_one():
    M, X = ratings(80, 60, rank=3, noise=0.5, seed=3)
    gaps = np.isnan(X)
    found = LowRankCompletion().fit(X)
    errors = [
        rmse(LowRankCompletion(k * found.radius_, tol=1e-3).fit_transform(X)[gaps], M[gaps])
        for k in (0.1, 0.3, 0.6, 1, 1.7, 3, 9)
    ]
    assert errors[3] <= 1.15 * min(errors)
    assert errors[3] < 0.8 * max(errors)


def test_a_rank_is_an_upper_bound():
    _, X = ratings(rank=4)
    model = LowRankCompletion(60.0, rank=2).fit(X)
    free = LowRankCompletion(60.0).fit(X)
    assert model.rank_ == 2 < free.rank_
    assert model.dual_gap_ > free.dual_gap_
    assert model.constraint_violation_ == 0.0


def test_outliers_pull_less_with_huber():
    M, X = ratings(noise=0.05)
    rng = np.random.default_rng(0)
    wild = (rng.random(X.shape) < 0.05) & ~np.isnan(X)
    X[wild] += 10
    gaps = np.isnan(X)
    fitted = [LowRankCompletion(100.0, loss=loss, delta=0.3).fit_transform(X) for loss in ("squared", "huber")]
    squared, huber = (rmse(f[gaps], M[gaps]) for f in fitted)
    assert huber < 0.8 * squared


def test_search_over_the_radius_by_pairs():
    _, X = ratings(noise=0.3)
    pairs = np.argwhere(~np.isnan(X))
    search = GridSearchCV(LowRankCompletion(input="pairs", tol=1e-2), {"radius": [1.0, 60.0]}, cv=3)
    search.fit(pairs, X[tuple(pairs.T)])
    assert search.best_params_["radius"] == 60.0


def test_names_pipelines_and_pickles():
    pd = pytest.importorskip("pandas")
    _, X = ratings()
    frame = pd.DataFrame(X, columns=[f"item {j}" for j in range(40)])
    model = LowRankCompletion(50.0).set_output(transform="pandas").fit(frame)
    filled = model.transform(frame)
    assert list(filled.columns) == list(frame.columns) == list(model.get_feature_names_out())
    assert not filled.isna().any().any()
    again = pickle.loads(pickle.dumps(model))
    pd.testing.assert_frame_equal(again.transform(frame), filled)
    assert make_pipeline(StandardScaler(), LowRankCompletion(50.0)).fit_transform(X).shape == X.shape
    with pytest.raises(NotFittedError):
        clone(model).reconstruct(0, 0)


def test_warm_starts():
    _, X = ratings(noise=0.3)
    model = LowRankCompletion(50.0, warm_start=True, tol=1e-6).fit(X)
    first = model.n_grads_
    assert model.fit(X).n_grads_ < first
    assert model.set_params(radius=20.0).fit(X).singular_values_.sum() <= 20.0  # the last answer is outside


def test_it_says_when_the_tolerance_is_not_reached():
    _, X = ratings(noise=0.3)
    with pytest.warns(ConvergenceWarning, match="certified gap"):
        model = LowRankCompletion(50.0, tol=1e-12, max_iter=1).fit(X)
    assert model.status_ == "max_iter"


@pytest.mark.parametrize("X", [np.full((4, 3), 2.0), np.array([[1.0, np.nan], [np.nan, np.nan]]), np.zeros((5, 4))])
def test_matrices_with_nothing_to_learn(X):
    filled = LowRankCompletion().fit_transform(X)
    np.testing.assert_allclose(filled, np.nanmean(X))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"radius": -1.0}, "radius"),
        ({"input": "table"}, "input"),
        ({"rank": 0}, "rank"),
        ({"loss": "absolute"}, "loss"),
        ({"delta": 0}, "delta"),
        ({"offsets": "rows"}, "offsets"),
        ({"clip": "yes"}, "clip"),
        ({"tol": 0}, "tol"),
    ],
)
def test_wrong_parameters_are_refused(options, message):
    with pytest.raises(ex.InputError, match=message):
        LowRankCompletion(**options).fit(ratings()[1])


def test_a_matrix_without_entries_is_refused():
    with pytest.raises(ValueError, match="at least one known entry"):
        LowRankCompletion().fit(np.full((3, 3), np.nan))


def test_a_pair_that_is_there_twice():
    """Gradients of equal places cancel: what is left of them is rounding, and no sign of a bad step."""
    model = LowRankCompletion(90.0, offsets=None).fit(np.array([[0, 0], [0, 0], [1, 1]]), [1.0, 2.0, 3.0])
    assert model.status_ == "tol"
    np.testing.assert_allclose(model.predict(np.array([[0, 0], [1, 1]])), [1.5, 3.0], atol=0.05)
