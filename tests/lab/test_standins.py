"""The stand-ins: their shapes and statistics, and how near they are to the real sets."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

import extremal as ex
from extremal.files import datasets
from extremal.files.datasets import CATALOGUE
from extremal_lab.reproduction import standins

pytestmark = pytest.mark.usefixtures("user", "waits")


@pytest.mark.parametrize("name", datasets.NAMES)
def test_stand_ins_have_the_shape_of_the_sets(name):
    A, y = standins.stand_in(name)
    entry = CATALOGUE[name]
    assert (A.format, A.dtype, A.shape, y.shape) == ("csr", np.float64, (entry.n, entry.d), (entry.n,))
    assert set(np.unique(y)) == {-1.0, 1.0}
    assert (y > 0).sum() == pytest.approx(entry.positives, rel=0.02 if name.startswith("a8a") else 0)
    assert A.nnz == pytest.approx(entry.nonzeros, rel=1e-3)
    text = standins.describe(name)
    assert text.startswith(f"generated: {entry.n} x {entry.d}, ")
    assert text.endswith(f"; not {name}")
    if "0/1" in text:
        assert set(A.data) == {1.0}
        assert f"{round(A.nnz / entry.n, 2):g} a row" in text
    B, z = standins.stand_in(name)
    assert np.array_equal(A.indices, B.indices)
    assert np.array_equal(A.indptr, B.indptr)
    assert np.array_equal(A.data, B.data)
    assert np.array_equal(y, z)


def blocks(text):
    return [len(part.split()) for part in text.split("/")]


@pytest.mark.parametrize(
    ("name", "table", "ones"), [("a9a", standins.CENSUS, (12, 14)), ("mushrooms", standins.MUSHROOMS, (21, 21))]
)
def test_stand_ins_of_attributes(name, table, ones):
    A, _ = standins.stand_in(name)
    counts = np.diff(A.indptr)
    assert (counts.min(), counts.max()) == ones
    wanted = np.array(table.replace("/", " ").split(), dtype=float) / 1e4
    assert np.abs(A.mean(axis=0) - wanted).max() < 3e-4
    starts = np.concatenate([[0], np.cumsum(blocks(table))])
    for first, last in itertools.pairwise(starts):  # of each attribute a row has one category at most
        assert A[:, first:last].sum(axis=1).max() == 1


def test_stand_ins_of_a9a_are_one_family():
    A, y = standins.stand_in("a9a")
    (B, s), (C, t) = standins.stand_in("a8a"), standins.stand_in("a8a.t")
    assert (A[: len(s)] != B).nnz == (A[len(s) :] != C).nnz == 0
    assert np.array_equal(y, np.concatenate([s, t]))
    T, z = standins.stand_in("a9a.t")
    assert (A[: len(z)] != T).nnz > 0
    model = ex.LinearModel(ex.Logistic(), A, y)
    r = ex.minimize(model, ex.L1Ball(20.0), max_grads=20 * model.n, tol=0)
    assert np.mean(np.sign(T @ r.x) == z) > 0.8  # the rule of the one holds in the other; always saying -1 gives 0.76


def test_the_stand_in_of_mushrooms_is_separable():
    A, y = standins.stand_in("mushrooms")
    assert separable(A, y)
    assert not separable(type(A)([[0.0, 1, 1], [1, 0, 1], [0, 0, 1], [1, 1, 1]]), np.array([1.0, 1, -1, -1]))  # the test can fail


def separable(A, y):
    M = np.unique(A.toarray() * y[:, None], axis=0)
    return linprog(np.zeros(A.shape[1]), A_ub=-M, b_ub=-np.ones(len(M)), bounds=(None, None)).status == 0


def test_the_stand_in_of_w8a():
    A, _ = standins.stand_in("w8a")
    counts, frequency = np.diff(A.indptr), np.sort(A.mean(axis=0))[::-1]
    assert counts.var() == pytest.approx(128.7, rel=0.1)
    assert (counts == 0).mean() == pytest.approx(0.084, rel=0.33)
    assert frequency[[0, 50, 100, 200]] == pytest.approx([0.3515, 0.0741, 0.0418, 0.0029], rel=0.1)


def test_the_stand_in_of_madelon():
    A, y = standins.stand_in("madelon")
    X = A.toarray()
    assert np.array_equal(X, np.rint(X))
    assert X.mean() == pytest.approx(488, abs=2)
    assert X.mean(axis=0).min() > 472
    assert X.mean(axis=0).max() < 521
    correlation = np.abs(np.corrcoef(X.T, y)[-1, :-1])
    assert 0.15 < correlation.max() < 0.27
    assert 8 <= (correlation > 0.08).sum() <= 20  # of 500; by chance alone hardly one
    T, t = standins.stand_in("madelon.t")
    again = np.abs(np.corrcoef(T.toarray().T, t)[-1, :-1])
    assert again[correlation > 0.12].min() > 0.05  # the same columns carry the label


def test_the_stand_ins_of_breast_cancer():
    A, y = standins.stand_in("breast-cancer")
    B, z = standins.stand_in("breast-cancer_scale")
    X, S = A.toarray(), B.toarray()
    assert np.array_equal(y, z)
    assert (X[:, 0].min(), X[:, 0].max()) == (63375, 13454352)
    assert np.array_equal(X, np.rint(X))
    assert np.allclose(S, 2 * (X - X.min(axis=0)) / np.ptp(X, axis=0) - 1)
    assert np.array_equal(np.ptp(S, axis=0), np.full(10, 2.0))
    for label, text in ((-1, standins.BENIGN), (1, standins.MALIGNANT)):
        for j, part in enumerate(text.split("/"), 1):
            assert np.bincount(X[y == label, j].astype(int), minlength=11)[1:].tolist() == [int(k) for k in part.split()]


# ---- beside the real files


@pytest.mark.parametrize(("name", "count"), [("a9a", 4), ("w8a", 3), ("mushrooms", 4), ("breast-cancer_scale", 2)])
def test_stand_ins_resemble_the_real_sets(real, name, count):
    """What their docstrings say: eigenvalues, and the value that Frank-Wolfe reaches, within a fifth."""
    eigenvalues, values = [], []
    for A, y in (datasets.load(name, download=False), standins.stand_in(name)):
        eigenvalues.append(np.linalg.eigvalsh((A.T @ A).toarray() / A.shape[0])[: -count - 1 : -1])
        model = ex.LinearModel(ex.Logistic(), A, y)
        values.append(ex.minimize(model, ex.L1Ball(20.0), "frank-wolfe", max_grads=200 * model.n, tol=1e-3).value)
    assert eigenvalues[1] == pytest.approx(eigenvalues[0], rel=0.2)
    assert values[1] == pytest.approx(values[0], rel=0.2)


def test_real_mushrooms_are_separable(real):
    assert separable(*datasets.load("mushrooms", download=False))
