"""Estimators on directories of shards: as on the same rows in memory, with equal bits in memory and on disk."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

import extremal as ex
from extremal.data.parts import counting_rows
from extremal.run.result import Calls
from extremal.sklearn import (
    ConstrainedGLM,
    ConstrainedLinearRegression,
    ConstrainedLogisticRegression,
    ConstrainedMultinomialRegression,
    SimplexRegression,
    SparseLogisticPath,
    SparseLogisticPathCV,
    StackingWeights,
)
from extremal.support import memory

N, D = 500, 6
NAMES = ("income", "debt", "age", "rooms", "pets", "tax")


def _data():
    rng = np.random.default_rng(0)
    A = np.where(rng.random((N, D)) < 0.6, rng.standard_normal((N, D)), 0.0)
    margin = A @ np.array([1.0, -1.0, 0.5, 0.0, 0.0, 2.0]) + 0.5 * rng.standard_normal(N) + 0.3
    return A, margin, rng.integers(0, 3, N).astype(float)


A, MARGIN, WEIGHTS = _data()
TARGETS = {
    "numbers": MARGIN,
    "two": np.where(MARGIN > 0, 1.0, 0.0),
    "three": np.digitize(MARGIN, [-1.0, 1.0]).astype(float) + 4,
    "text": np.array(["low", "middle", "high"])[np.digitize(MARGIN, [-1.0, 1.0])],
    "counts": np.random.default_rng(1).poisson(np.exp(0.5 * MARGIN)).astype(float),
}


def build(folder, kind, sparse=True, weights=False, names=False):
    import pyarrow as pa

    y, X = TARGETS[kind], sp.csr_array(A) if sparse else A
    if names:
        columns = dict(zip(NAMES, A.T, strict=True)) | {"y": y}
        source = pa.table(columns | ({"w": WEIGHTS} if weights else {}))
        options = {"target": "y"} | ({"weights": "w"} if weights else {})
    else:
        source, options = (X, y) if not weights else iter([(X, y, WEIGHTS)]), {}
    ex.ShardDir.build(source, folder, seed=0, shard_bytes=2**13, **options)
    return folder


def both(folder):
    return [ex.ShardDir(folder, engine=engine) for engine in ("memory", "disk")]


CASES = [
    (ConstrainedLinearRegression("nonneg"), "numbers"),
    (ConstrainedLinearRegression("l1:2", loss="huber", fit_intercept=False), "numbers"),
    (ConstrainedLinearRegression("l1", radius="50%", loss="quantile", quantile=0.3), "numbers"),
    (ConstrainedLogisticRegression("l1:3"), "two"),
    (ConstrainedLogisticRegression("box:-1,1", class_weight="balanced"), "three"),
    (ConstrainedLogisticRegression("l1:3", class_weight={"low": 1.0, "middle": 3.0, "high": 2.0}), "text"),
    (ConstrainedLogisticRegression("l1:3", solver="frank-wolfe", tol=0.05, class_weight="balanced"), "two"),
    (ConstrainedGLM("poisson", "l1:2"), "counts"),
    (ConstrainedGLM("logistic", "nonneg"), "two"),
    (ConstrainedGLM(ex.Huber(0.5), "simplex"), "numbers"),
    (ConstrainedGLM("quantile:0.7", "l2:1"), "numbers"),
    (ConstrainedMultinomialRegression("nuclear:4"), "text"),
    (ConstrainedMultinomialRegression("l1:4", class_weight="balanced", fit_intercept=False), "three"),
    (SimplexRegression(fit_intercept=True), "numbers"),
    (SimplexRegression(solver="newton", total=2.0), "numbers"),
]


def named(case):
    return case if isinstance(case, str) else type(case).__name__


@pytest.mark.parametrize("weights", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize(("model", "kind"), CASES, ids=named)
def test_as_the_same_rows_in_memory(model, kind, weights, tmp_path):
    """Up to the order of sums; rows of weight 0 are among them, and count for nothing."""
    build(tmp_path, kind, sparse=kind != "three", weights=weights)
    y, w = TARGETS[kind], WEIGHTS if weights else None
    near = clone(model).fit(A, y, w)
    score, found = near.score(A, y, w), []
    for data in both(tmp_path):
        assert model.fit(data) is model
        np.testing.assert_allclose(model.coef_, near.coef_, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(model.intercept_, near.intercept_, rtol=1e-6, atol=1e-6)
        assert model.objective_ == pytest.approx(near.objective_, rel=1e-6)
        assert (model.status_, model.constraint_violation_) == ("tol", 0)
        assert model.score(data) == pytest.approx(score, abs=1e-6)
        found.append((model.coef_.tobytes(), np.asarray(model.intercept_).tobytes()))
    assert found[0] == found[1]
    assert np.array_equal(getattr(model, "classes_", ()), getattr(near, "classes_", ()))
    check_predictions(model, data, kind == "text")


def check_predictions(model, data, text):
    """Those of the rows, given as an array."""
    rows = np.vstack([block for _, block in data.arrays(1000)])
    for name in ("decision_function", "predict_log_proba", "predict_proba", "predict"):
        if hasattr(model, name):
            a, b = (getattr(model, name)(X) for X in (data, rows))
            assert a.dtype == b.dtype
            assert np.array_equal(a, b) if a.dtype.kind == "U" else np.allclose(a, b, rtol=1e-12, atol=1e-12)
    y = data.numbers_of(data.targets)
    w = None if data.weights is None else data.numbers_of(data.weights)
    assert model.score(data) == pytest.approx(model.score(rows, data.classes[y.astype(int)] if text else y, w), abs=1e-12)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kind", ["two", "text"])
def test_a_path(kind, intercept, tmp_path):
    build(tmp_path, kind, weights=True)
    near = SparseLogisticPath(n_radii=3, fit_intercept=intercept, class_weight="balanced").fit(A, TARGETS[kind], WEIGHTS)
    found = []
    for data in both(tmp_path):
        model = SparseLogisticPath(near.radii_, fit_intercept=intercept, class_weight="balanced").fit(data)
        np.testing.assert_allclose(model.objectives_, near.objectives_, rtol=2e-6)
        assert (model.dual_gaps_ <= 1e-6 * model.objectives_).all()
        assert model.predict(data, radius=near.radii_[1]).shape == (N,)
        assert model.score(data) == pytest.approx(near.score(A, TARGETS[kind], WEIGHTS), abs=0.01)
        found.append(model.coefs_.tobytes())
    assert found[0] == found[1]
    left = SparseLogisticPath(n_radii=3, fit_intercept=intercept, class_weight="balanced").fit(data)
    np.testing.assert_allclose(left.radii_, near.radii_, rtol=1e-3)


def test_names_of_columns(tmp_path):
    """They come with the directory, so that constraints may name them; other names are refused."""
    data = ex.ShardDir(build(tmp_path / "train", "numbers", names=True, weights=True))
    model = ConstrainedLinearRegression({"debt": ">=0", "tax": "<=1"}).fit(data)
    assert model.feature_names_in_.tolist() == list(NAMES)
    assert model.coef_[1] >= 0
    assert model.coef_[5] <= 1
    ex.ShardDir.build((A[:, ::-1], MARGIN), tmp_path / "plain")
    assert model.predict(ex.ShardDir(tmp_path / "plain")).shape == (N,)  # without names it is the order that counts
    import pyarrow as pa

    table = pa.table(dict(zip(NAMES[::-1], A.T, strict=True)) | {"y": MARGIN})
    other = ex.ShardDir.build(table, tmp_path / "other", target="y")
    with pytest.raises(ex.InputError, match=r"column 0 was 'income'.*other has 'tax'"):
        model.predict(other)
    model.set_params(constraint="l1:1").fit(ex.ShardDir(tmp_path / "plain"))
    assert not hasattr(model, "feature_names_in_")


@pytest.mark.parametrize(("intercept", "reads"), [(False, 1), (True, 2)])
def test_the_certificate_is_one_look(intercept, reads, tmp_path):
    from extremal.sklearn.answer import answer_at

    data = ex.ShardDir(build(tmp_path, "numbers"), engine="disk")
    f = (ex.InterceptModel if intercept else ex.LinearModel)(ex.Squared(), data)
    counting_rows(calls := Calls(), answer_at, f, ex.L1Ball(1.0).on(D), np.eye(D)[0], 1e-4, 0.0)
    assert calls.rows == reads * N


def test_a_class_without_weight_is_none(tmp_path):
    y = TARGETS["three"]
    ex.ShardDir.build(iter([(A, y, (y != 5).astype(float))]), tmp_path, shard_bytes=2**13)
    model = ConstrainedMultinomialRegression("l1:3").fit(ex.ShardDir(tmp_path))
    near = ConstrainedMultinomialRegression("l1:3").fit(A, y, (y != 5).astype(float))
    assert model.classes_.tolist() == near.classes_.tolist() == [4.0, 6.0]
    np.testing.assert_allclose(model.coef_, near.coef_, rtol=1e-6, atol=1e-6)


def test_methods_that_draw_take_batches_of_the_shards(tmp_path):
    build(tmp_path, "two")
    found = []
    for data in both(tmp_path):
        for intercept in (False, True):
            model = ConstrainedLogisticRegression(
                "l1:3", solver=ex.SarahFW(batch=30), tol=0.5, fit_intercept=intercept, random_state=1
            )
            found.append(model.fit(data).coef_.tobytes())
    assert found[:2] == found[2:]


REFUSED = [
    (
        ConstrainedLogisticRegression(),
        "two",
        {"y": TARGETS["two"]},
        r"`ConstrainedLogisticRegression.fit\(y=...\)` must be left out",
    ),
    (ConstrainedLinearRegression(), "numbers", {"sample_weight": WEIGHTS}, "sample_weight=.*must be left out"),
    (SparseLogisticPath(), "two", {"y": TARGETS["two"]}, "must be left out"),
    (SimplexRegression(), "numbers", {"y": MARGIN}, "must be left out"),
    (SparseLogisticPathCV(), "two", {}, "makes folds of rows in memory"),
    (ConstrainedLogisticRegression(), "numbers", {}, "are no labels"),
    (ConstrainedLinearRegression(), "text", {}, "are labels of text"),
    (SimplexRegression(), "text", {}, "are labels of text"),
    (ConstrainedGLM("poisson"), "numbers", {}, "shard 0000.*takes targets of at least 0"),
    (ConstrainedGLM("logistic"), "three", {}, "shard 0000.*takes labels"),
]


@pytest.mark.parametrize(("model", "kind", "given", "words"), REFUSED, ids=named)
def test_what_is_refused(model, kind, given, words, tmp_path):
    data = ex.ShardDir(build(tmp_path, kind))
    with pytest.raises(ex.InputError, match=words) as error:
        model.fit(data, **given)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("model", [ConstrainedLogisticRegression("l1:3"), ConstrainedLinearRegression("l1:3")], ids=named)
def test_batches_are_no_directories(model, tmp_path):
    data = ex.ShardDir(build(tmp_path, "two"))
    with pytest.raises(ex.InputError, match="takes a batch of rows in memory"):
        model.partial_fit(data)
    with pytest.raises(ex.InputError, match=r"sample_weight=.*must be left out"):
        model.fit(data).score(data, sample_weight=WEIGHTS)


def test_several_targets_a_row(tmp_path):
    Y = np.column_stack([MARGIN, A[:, 0]])
    data = ex.ShardDir.build((A, Y), tmp_path, shard_bytes=2**13)
    near, model = SimplexRegression().fit(A, Y), SimplexRegression().fit(data)
    np.testing.assert_allclose(model.coef_, near.coef_, rtol=1e-6, atol=1e-8)
    assert model.score(data) == pytest.approx(near.score(A, Y))
    for one in (ConstrainedLinearRegression(), ConstrainedLogisticRegression()):
        with pytest.raises(ex.InputError, match="takes one target a row"):
            one.fit(data)


def test_a_label_of_no_class_in_one_shard_is_named(tmp_path):
    data = ex.ShardDir(build(tmp_path, "three"), engine="disk")
    name = data.manifest.shards[2].name
    path = tmp_path / f"{name}.targets.npy"
    y = np.load(path)
    y[1] = 7.0
    np.save(path, y)
    with pytest.raises(ex.InputError, match=f"shard {name}: expected one of the classes.*got 7"):
        ConstrainedLogisticRegression().fit(data)


def test_no_numbers_of_all_rows_are_in_memory(tmp_path, monkeypatch):
    """Opening, fit, predict and score of 60 000 rows together need less memory than two numbers for each row."""
    rng, n = np.random.default_rng(0), 60_000
    X = rng.standard_normal((n, 3))
    ex.ShardDir.build((X, np.where(X[:, 0] + rng.logistic(size=n) > 0, 1.0, 0.0)), tmp_path, seed=0, shard_bytes=2**16)
    monkeypatch.setattr(memory, "SCRATCH", 2**16)
    monkeypatch.setattr(memory, "free_memory", lambda: 2**21)

    def work(model):
        data = ex.ShardDir(tmp_path, engine="disk")
        return model.fit(data).predict(data), model.score(data)

    model = ConstrainedLogisticRegression("l1:1", class_weight="balanced", tol=1e-4)
    work(model)  # kernels are loaded
    tracemalloc.start()
    found, score = work(model)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert memory.mapping_of(found) is not None
    assert 0.6 < score < 0.8
    assert peak < 16 * n


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_columns_that_are_nearly_constant_are_centred(dtype, tmp_path):
    """As in memory: products with them would lose the digits that count."""
    far = np.array([0.0, 1e6, 0.0, -3e5, 0.0, 0.0]) * (1.0 if dtype == "float64" else 1e-2)
    X = (A + 0.1 * np.random.default_rng(5).standard_normal(A.shape) + far).astype(dtype)
    ex.ShardDir.build((X, MARGIN), tmp_path, seed=0, shard_bytes=2**13, dtype=dtype)
    near = ConstrainedLinearRegression("l1:2").fit(X, MARGIN)
    for data in both(tmp_path):
        model = ConstrainedLinearRegression("l1:2").fit(data)
        assert (model.status_, near.status_) == ("tol", "tol")
        np.testing.assert_allclose(model.coef_, near.coef_, rtol=1e-6, atol=1e-6)
        assert model.objective_ == pytest.approx(near.objective_, rel=1e-6)
        np.testing.assert_allclose(model.intercept_, near.intercept_, rtol=1e-6)


def test_stacking_says_that_it_takes_rows_in_memory(tmp_path):
    data = ex.ShardDir(build(tmp_path, "numbers"))
    models = [("a", ConstrainedLinearRegression()), ("b", ConstrainedLinearRegression("l1:1"))]
    with pytest.raises(ex.InputError, match=r"`StackingWeights.fit\(X=...\)` hands rows in memory to its models.*no ShardDir"):
        StackingWeights(models).fit(data)


def test_a_score_takes_targets_of_the_kind_of_the_fit(tmp_path):
    text, numbers = (ex.ShardDir(build(tmp_path / kind, kind)) for kind in ("text", "numbers"))
    with pytest.raises(ex.InputError, match=r"`ConstrainedLogisticRegression.score` takes rows of the classes .*are numbers"):
        ConstrainedLogisticRegression("l1:1").fit(text).score(numbers)
    with pytest.raises(ex.InputError, match=r"`ConstrainedLinearRegression.score` takes targets that are numbers.*of text"):
        ConstrainedLinearRegression("l1:1").fit(numbers).score(text)
