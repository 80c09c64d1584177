"""Extreme and unusual input: a right answer or one clear sentence, never NaN, never a changed input."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import extremal as ex
from extremal.checks import NonFiniteError

RNG = np.random.default_rng(0)
ROWS = RNG.standard_normal((30, 6))
SPARSE = ROWS * (np.abs(ROWS) > 0.5)
LABELS = np.where(ROWS[:, 0] - ROWS[:, 1] + 0.5 * RNG.standard_normal(30) > 0, 1.0, -1.0)


def _reversed_entries() -> sp.csr_matrix:
    """Rows whose columns decrease."""
    A = sp.csr_matrix(SPARSE)
    for start, end in zip(A.indptr, A.indptr[1:], strict=False):
        A.indices[start:end], A.data[start:end] = A.indices[start:end][::-1].copy(), A.data[start:end][::-1].copy()
    A.has_sorted_indices = False
    return A


def _halves() -> sp.csr_matrix:
    """Each entry twice, as two halves."""
    A = sp.csr_matrix(SPARSE)
    return sp.csr_matrix((np.repeat(A.data, 2) / 2, np.repeat(A.indices, 2), 2 * A.indptr), shape=A.shape)


def _of_long_indices() -> sp.csr_matrix:
    A = sp.csr_matrix(SPARSE)
    A.indices, A.indptr = A.indices.astype(np.int64), A.indptr.astype(np.int64)
    return A


def _locked() -> np.ndarray:
    A = ROWS.copy()
    A.flags.writeable = False
    return A


SAME = {  # other forms of the same rows
    "Fortran order": (np.asfortranarray(ROWS), ROWS),
    "other bytes": (ROWS.astype(">f8"), ROWS),
    "read-only": (_locked(), ROWS),
    "negative strides": (ROWS[::-1, ::-1].copy()[::-1, ::-1], ROWS),
    "float16": (ROWS.astype(np.float16), ROWS.astype(np.float16).astype(np.float64)),
    "float16, other bytes": (ROWS.astype(">f2"), ROWS.astype(np.float16).astype(np.float64)),
    "int8": ((4 * ROWS).astype(np.int8), (4 * ROWS).astype(np.int8).astype(np.float64)),
    "uint8": (np.abs(4 * ROWS).astype(np.uint8), np.abs(4 * ROWS).astype(np.uint8).astype(np.float64)),
    "bools": (ROWS > 0, (ROWS > 0).astype(np.float64)),
    "CSR": (sp.csr_matrix(SPARSE), SPARSE),
    "CSC": (sp.csc_matrix(SPARSE), SPARSE),
    "COO": (sp.coo_matrix(SPARSE), SPARSE),
    "long indices": (_of_long_indices(), SPARSE),
    "columns that decrease": (_reversed_entries(), SPARSE),
    "entries that stand twice": (_halves(), SPARSE),
}
WIDE = np.ones(6)
EXTREME = {  # rows at the edge of what a problem can be
    "one row": ROWS[:1],
    "one column": ROWS[:, :1],
    "one number": ROWS[:1, :1],
    "a column of zeros": ROWS * np.array([1, 1, 0, 1, 1, 1]),
    "rows of zeros": ROWS * (np.arange(30) > 5)[:, None],
    "zeros": np.zeros((30, 6)),
    "columns that stand twice": ROWS[:, [0, 0, 1, 1, 2, 2]],
    "rows that stand thrice": ROWS[np.arange(30) // 3],
    "a column of 1e150": ROWS * np.array([1e150, 1, 1, 1, 1, 1]),
    "a column of 1e-150": ROWS * np.array([1e-150, 1, 1, 1, 1, 1]),
    "1e150": ROWS * 1e150,
    "1e-150": ROWS * 1e-150,
    "1e8": ROWS * 1e8,
    "subnormal": ROWS * 1e-310,
    "sparse, 1e150": sp.csr_matrix(SPARSE * 1e150),
    "sparse, subnormal": sp.csr_matrix(SPARSE * 1e-310),
    "no entry": sp.csr_matrix((30, 6)),
}
LOSSES = (ex.Logistic(), ex.Squared(), ex.Huber(), ex.Poisson(), ex.NonlinearLeastSquares(), ex.Quantile(0.5, 0.1))


def _targets(loss, n, constant):
    y = np.full(n, LABELS[0]) if constant else np.resize(LABELS, n)
    return (y > 0).astype(float) if isinstance(loss, (ex.Poisson, ex.NonlinearLeastSquares)) else y


def _dense(A):
    return np.array(A.todense() if sp.issparse(A) else A, dtype=np.float64)


def _solved(loss, A, y, C, method=None, **options):
    """The answer, or None if one clear sentence refuses the problem."""
    try:
        r = ex.minimize(ex.LinearModel(loss, A, y), C, method, **options)
    except (ex.InputError, NonFiniteError) as refusal:
        return None if "\n" not in str(refusal) else pytest.fail(f"more than a line: {refusal}")
    assert np.isfinite(r.x).all()
    assert np.isfinite(r.value)
    assert not np.isnan(r.gap)
    assert r.gap >= -1e-12 * abs(r.value)
    assert r.violation <= 1e-15 * C.on(r.x.shape).diameter * len(r.x)
    return r


@pytest.mark.parametrize("form", SAME)
def test_forms_of_the_same_rows_have_the_same_answer(form):
    A, plain = SAME[form]
    before, y, C = _dense(A), LABELS.astype(">f8"), ex.L1Ball(2.0)
    r = ex.minimize(ex.LinearModel(ex.Logistic(), A, y), C, tol=1e-10)
    wanted = ex.minimize(ex.LinearModel(ex.Logistic(), plain, LABELS), C, tol=1e-10)
    assert r.converged
    assert r.value == pytest.approx(wanted.value, rel=1e-9)
    np.testing.assert_array_equal(_dense(A), before)


@pytest.mark.parametrize("rows", EXTREME)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_extreme_rows_have_an_answer_or_a_sentence(loss, rows):
    A = EXTREME[rows]
    before = _dense(A)
    for constant in (False, True):
        y = _targets(loss, A.shape[0], constant)
        kept = y.copy()
        for radius in (1e-12, 1.0, 1e12):
            for C in (ex.L1Ball(radius), ex.Simplex(radius)):
                _solved(loss, A, y, C)
        np.testing.assert_array_equal(y, kept)
    np.testing.assert_array_equal(_dense(A), before)


METHODS = ("sarah-fw", "saga-sarah-fw", "saga-face-fw", "tracked-fw", "pairwise-fw", "fully-corrective-fw")


@pytest.mark.parametrize("method", METHODS)
def test_methods_meet_extreme_rows_and_sets(method):
    for rows in ("one row", "one column", "zeros", "a column of 1e150", "1e150", "1e-150", "sparse, 1e150"):
        for loss in (ex.Logistic(), ex.Squared()):
            for radius in (1e-12, 1.0, 1e12):
                A = EXTREME[rows]
                _solved(loss, A, _targets(loss, A.shape[0], False), ex.L1Ball(radius), method, max_iter=40)


def test_a_batch_larger_than_the_sum_is_refused():
    f = ex.LinearModel(ex.Logistic(), ROWS[:3], LABELS[:3])
    with pytest.raises(ex.InputError, match="batch"):
        ex.minimize(f, ex.L1Ball(1.0), ex.SarahFW(batch=4))


def test_atoms_far_from_their_mean_are_weighted_without_overflow():
    """The spectral step of the inner method grew until its point was infinite."""
    assert _solved(ex.Logistic(), sp.csr_matrix(SPARSE), LABELS, ex.L1Ball(1e12), "fully-corrective-fw", max_iter=12) is not None


@pytest.mark.parametrize("C", [ex.L1Ball(2.0), ex.Simplex(), ex.Box(-1.0, 1.0)], ids=repr)
@pytest.mark.parametrize("method", [ex.SagaSarahFW(batch=1), ex.NegiarSFW(1), ex.MomentumSFW(1)], ids=repr)
@pytest.mark.slow
def test_ten_million_iterations_stay_inside(method, C):
    A = RNG.standard_normal((20, 5))
    f = ex.LinearModel(ex.Logistic(), A, np.resize(LABELS, 20))
    r = ex.minimize(f, C, method, max_iter=10**7, tol=0, atol=0)
    assert r.violation <= 1e-12
    assert r.n_iter == 10**7 or r.gap == 0
