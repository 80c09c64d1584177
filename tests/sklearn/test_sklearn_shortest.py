"""The shortest of many solutions: columns whose common level the data do not determine."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import extremal as ex
import extremal.run.shortest as shortest
from extremal.sklearn import ConstrainedGLM, ConstrainedLinearRegression, ConstrainedLogisticRegression

LOSSES = ("poisson", "logistic", "squared")


def dummies(loss: str, seed: int, n: int = 300, drop: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A numeric column and one column for each of three cities; the second city differs."""
    rng = np.random.default_rng(seed)
    city, age = rng.integers(0, 3, n), rng.standard_normal(n)
    y = rng.poisson(np.exp(0.3 * age + 0.7 * (city == 1) - 0.2)).astype(float)
    return np.column_stack([age, np.eye(3)[city][:, drop:]]), (y > 0).astype(float) if loss == "logistic" else y


def bands(n: int = 800) -> tuple[np.ndarray, np.ndarray]:
    band = np.random.default_rng(1).integers(0, 5, n)
    return np.eye(5)[band], band


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(4))
def test_all_dummies_and_a_relation_give_the_fit_without_the_first_dummy(loss, seed):
    model = ConstrainedGLM(loss, "x2 >= x3").fit(*dummies(loss, seed))
    fewer = ConstrainedGLM(loss, "x1 >= x2").fit(*dummies(loss, seed, drop=1))
    assert model.status_ == "tol"
    assert model.constraint_violation_ == 0
    assert abs(model.coef_).max() < 5
    assert abs(model.intercept_) < 5
    assert model.objective_ == pytest.approx(fewer.objective_, rel=2e-6)
    np.testing.assert_allclose(model.coef_[2:] - model.coef_[1], fewer.coef_[1:], atol=5e-3)


@pytest.mark.parametrize("rows", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("constraint", ["monotone", "x0 <= x1 <= x2 <= x3 <= x4"])
def test_ordered_bands_need_no_band_at_zero(constraint, rows):
    X, band = bands()
    rng = np.random.default_rng(2)
    models = (
        ConstrainedLinearRegression(constraint).fit(rows(X), band + rng.standard_normal(len(band))),
        ConstrainedLogisticRegression(constraint).fit(rows(X), band + rng.standard_normal(len(band)) > 2),
        ConstrainedGLM("poisson", constraint).fit(rows(X), rng.poisson(np.exp(band / 5))),
    )
    for model in models:
        assert model.status_ == "tol"
        assert abs(model.coef_).max() < 6
        assert (np.diff(model.coef_) >= 0).all()
        assert model.constraint_violation_ == 0


def test_a_blocked_level_stops_at_the_constraint_and_another_level_goes_on():
    X = np.hstack([bands()[0], np.eye(3)[np.random.default_rng(3).integers(0, 3, 800)]])
    free = shortest.undetermined(ex.InterceptModel(ex.Squared(), X, np.zeros(800)))
    assert free.shape == (8, 2)
    C = ex.Box(np.r_[np.full(7, -1e3), 50.0], 1e3)
    x = shortest.toward_zero(C, np.r_[np.arange(5.0) + 700, np.arange(3.0) + 400], free)
    np.testing.assert_allclose(x, np.r_[np.arange(5.0) - 2, 48, 49, 50], atol=1e-9)
    two = np.stack([x, 2 * x], axis=1)  # two outputs
    C = ex.Box(np.r_[np.full((7, 2), -1e3), [[50.0, 10.0]]], 1e3)
    np.testing.assert_allclose(shortest.toward_zero(C, two, free)[5:], [[48, 6], [49, 8], [50, 10]], atol=1e-9)


def test_without_an_intercept_only_repeated_columns_are_undetermined():
    X, y = bands()
    assert shortest.undetermined(ex.LinearModel(ex.Squared(), X, y)).shape == (5, 0)
    assert shortest.undetermined(ex.LinearModel(ex.Squared(), X[:, [0, 0, 1]], y)).shape == (3, 1)
    assert shortest.undetermined(ex.InterceptModel(ex.Huber(), sp.csr_array(X, dtype=np.float32), y)).shape == (5, 1)


def test_answers_that_the_data_determine_are_unchanged_in_bits(monkeypatch):
    X, y = dummies("poisson", 0, drop=1)
    kept = ConstrainedGLM("poisson", "x1 >= x2").fit(X, y)
    monkeypatch.setattr(shortest, "FAR", 0.0)
    looked = ConstrainedGLM("poisson", "x1 >= x2").fit(X, y)
    assert kept.coef_.tobytes() == looked.coef_.tobytes()
    assert kept.intercept_ == looked.intercept_


@pytest.mark.parametrize("engine", ["memory", "disk"])
def test_rows_in_a_directory_are_shortened_too(engine, tmp_path):
    X, band = bands()
    y = np.random.default_rng(2).poisson(np.exp(band / 5)).astype(float)
    ex.ShardDir.build((X, y), tmp_path / "rows", seed=0, shard_bytes=2**13)
    model = ConstrainedGLM("poisson", "monotone").fit(ex.ShardDir(tmp_path / "rows", engine=engine))
    assert model.status_ == "tol"
    assert abs(model.coef_).max() < 6
    assert model.objective_ == pytest.approx(ConstrainedGLM("poisson", "monotone").fit(X, y).objective_, rel=1e-6)


@pytest.mark.parametrize("seed", [12, 23, 57])
def test_a_direction_that_counts_is_no_reason_to_leave_the_tolerance(seed, monkeypatch):
    """Two columns that hardly differ: their difference says little, and the certificate needs it."""
    rng, n = np.random.default_rng(seed), 100
    x, z = rng.standard_normal(n), rng.standard_normal(n)
    e = 10.0 ** rng.uniform(-7, -5)
    c = 10.0 ** rng.uniform(-7, -3)
    y = 3 * x + c * z + 10.0 ** rng.uniform(-9, -1) * rng.standard_normal(n)
    X = np.c_[x, x + e * z]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = ConstrainedLinearRegression(None, tol=1e-6).fit(X, y)
        monkeypatch.setattr(shortest, "undetermined", lambda f: np.zeros((2, 0)))
        plain = ConstrainedLinearRegression(None, tol=1e-6).fit(X, y)
    assert model.dual_gap_ <= max(1e-3 * model.objective_, plain.dual_gap_)
