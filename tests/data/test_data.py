"""Data: every backend equals plain numpy on every call, answers in the wider float type and leaves the caller's arrays alone."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from cases import DATA, DIM, MATRIX, N

import extremal as ex
from extremal.data.accept import as_data

IDX = {
    "all": None,
    "empty": np.array([], np.int64),
    "one": np.array([5]),
    "repeated": np.array([2, 2, 7, 2]),
    "unsorted": np.array([40, 3, 59, 0, 11]),
    "every": np.arange(N)[::-1].copy(),
    "int32": np.array([4, 1], np.int32),
}


@pytest.fixture(params=DATA, ids=lambda A: f"{type(A).__name__}-{A.dtype}")
def data(request):
    return request.param


@pytest.fixture(params=IDX.values(), ids=IDX)
def idx(request):
    return request.param


def same(got: np.ndarray, wanted: np.ndarray, dtype) -> None:
    assert got.dtype == dtype
    assert got.shape == wanted.shape
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-13 if dtype == np.float64 else 1e-5)


def rows(data, idx):
    """The rows as they are stored, in float64: float32 rows are read as they are, and only what is asked of them is wider."""
    A = MATRIX.astype(data.dtype).astype(np.float64)
    return A if idx is None else A[idx]


def test_shape_and_dtype(data):
    assert data.shape == (N, DIM)
    assert data.dtype in (np.float32, np.float64)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("locked", [False, True])
def test_dot(data, idx, locked, dtype):
    x = np.linspace(-1, 2, DIM).astype(dtype)
    x.flags.writeable = not locked  # the iterates of a run are read-only
    same(data.dot(x, idx), rows(data, idx) @ x.astype(np.float64), np.result_type(data.dtype, dtype))


@pytest.mark.parametrize("j", range(DIM))
def test_dot_with_a_coordinate_vertex(data, idx, j):
    v = ex.points.Coordinate(j, -1.3, (DIM,))
    same(data.dot_vertex(v, idx), rows(data, idx) @ v.to_array(), np.float64)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dot_with_a_dense_vertex(data, idx, dtype):
    v = ex.points.DenseVertex(np.linspace(-1, 2, DIM).astype(dtype))
    same(data.dot_vertex(v, idx), rows(data, idx) @ v.values.astype(np.float64), np.float64)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_tdot(data, idx, dtype):
    A = rows(data, idx)
    c = np.random.default_rng(0).standard_normal(len(A)).astype(dtype)
    same(data.tdot(c, idx), A.T @ c.astype(np.float64), np.result_type(data.dtype, dtype))


def test_row_norms2(data):
    same(data.row_norms2(), (rows(data, None).astype(np.float64) ** 2).sum(axis=1), np.dtype(np.float64))


def test_pickling_before_and_after_use(data):
    x = np.ones(DIM, data.dtype)
    for _ in range(2):
        again = pickle.loads(pickle.dumps(data))
        np.testing.assert_array_equal(again.dot(x, np.array([1, 2])), data.dot(x, np.array([1, 2])))


@pytest.mark.parametrize("form", ["csr_matrix", "csr_array", "csc_matrix", "csc_array", "coo_array", "lil_array", "dok_array"])
def test_any_sparse_format(form):
    A = ex.data.CSR(getattr(sp, form)(MATRIX))
    assert A.dtype == np.float64
    same(A.dot(np.ones(DIM), np.arange(N)), MATRIX.sum(axis=1), np.float64)
    same(A.tdot(np.ones(N)), MATRIX.sum(axis=0), np.float64)


def messy() -> sp.csr_array:
    """Rows with unsorted and repeated columns: [[5, 0, 3], [0, 0, 0], [0, 4, 1]]."""
    parts = np.array([1.0, 3.0, 4.0, 1.0, 4.0]), np.array([0, 2, 0, 2, 1]), np.array([0, 3, 3, 5])
    return sp.csr_array(parts, shape=(3, 3))


def test_duplicates_and_unsorted_columns():
    plain = np.array([[5.0, 0, 3], [0, 0, 0], [0, 4, 1]])
    for A in (messy(), sp.csr_matrix(messy()), sp.csc_array(messy()), sp.coo_array(messy())):
        data = ex.data.CSR(A)
        for j in range(3):
            v = ex.points.Coordinate(j, 1.0, (3,))
            same(data.dot_vertex(v), plain[:, j], np.float64)
            same(data.dot_vertex(v, np.array([2, 0])), plain[[2, 0], j], np.float64)
        same(data.row_norms2(), (plain**2).sum(axis=1), np.float64)


def test_the_callers_sparse_matrix_stays_as_it_is():
    A = messy()
    before = A.data.copy(), A.indices.copy(), A.indptr.copy()
    f = ex.LinearModel(ex.Squared(), A, np.ones(3))
    ex.minimize(f, ex.L1Ball(1.0), method="saga-sarah-fw", max_iter=20)
    for old, new in zip(before, (A.data, A.indices, A.indptr), strict=True):
        np.testing.assert_array_equal(old, new)


def test_64_bit_indices():
    A = sp.csr_array(MATRIX)
    A.indices, A.indptr = A.indices.astype(np.int64), A.indptr.astype(np.int64)
    data, idx = ex.data.CSR(A), np.array([7, 1])
    same(data.dot(np.ones(DIM), idx), MATRIX[idx].sum(axis=1), np.float64)
    same(data.tdot(np.ones(2), idx), MATRIX[idx].sum(axis=0), np.float64)
    same(data.dot_vertex(ex.points.Coordinate(1, 2.0, (DIM,)), idx), 2 * MATRIX[idx, 1], np.float64)


@pytest.mark.parametrize(("given", "kept"), [("f4", "f4"), ("f8", "f8"), ("f2", "f4"), ("i4", "f8"), ("u1", "f8"), ("?", "f8")])
def test_float_types(given, kept):
    A = np.array([[1, 0], [1, 1]]).astype(given)
    assert ex.data.Dense(A).dtype == np.dtype(kept)
    if given != "f2":  # scipy has no sparse float16
        assert ex.data.CSR(sp.csr_array(A)).dtype == np.dtype(kept)


def test_dense_floats_are_not_copied_and_not_changed():
    A = MATRIX.copy()
    A.flags.writeable = False
    assert np.shares_memory(ex.data.Dense(A).array, A)


def test_what_may_be_given_for_the_matrix():
    import pandas as pd

    for A in (MATRIX.tolist(), np.asfortranarray(MATRIX), pd.DataFrame(MATRIX), MATRIX[::-1][::-1]):
        same(as_data(A).dot(np.ones(DIM)), MATRIX.sum(axis=1), np.float64)
    for A in DATA:
        assert as_data(A) is A


def test_large_finite_data_is_not_taken_for_infinite():
    A = np.full((2, 2), 1.5e308)
    assert ex.data.Dense(A).shape == (2, 2)
    assert ex.data.CSR(sp.csr_array(A)).shape == (2, 2)


def test_rows_in_another_order(data):
    order, A = np.random.default_rng(0).permutation(N), rows(data, None)
    moved = data.rows(order)
    assert moved.dtype == data.dtype
    same(moved.dot(np.ones(DIM)), A[order].sum(axis=1), np.float64)
    same(moved.tdot(np.ones(3), np.array([0, 5, 9])), A[order[[0, 5, 9]]].sum(axis=0), np.float64)
    same(moved.dot_vertex(ex.points.Coordinate(1, 2.0, (DIM,))), 2 * A[order, 1], np.float64)
    same(data.dot(np.ones(DIM)), A.sum(axis=1), np.float64)
    assert not np.shares_memory(moved.block.listed()[2], data.block.listed()[2])


def test_columns_of_many_rows():
    n = 2**16 + 5
    A = ex.data.CSR(sp.csr_array((np.arange(1.0, n + 1), (np.arange(n), np.arange(n) % 3)), shape=(n, 3)))
    wanted = np.where(np.arange(n) % 3 == 1, np.arange(1.0, n + 1), 0.0)
    np.testing.assert_array_equal(A.dot_vertex(ex.points.Coordinate(1, 1.0, (3,))), wanted)


@pytest.mark.parametrize("outputs", [1, 4])
def test_matrices_in_float64_times_float32_data(data, idx, outputs):
    """Iterates and gradients of runs on float32 rows are in float64, and the data are not copied for it."""
    A = rows(data, idx)
    x, c = np.random.default_rng(1).standard_normal((DIM, outputs)), np.random.default_rng(2).standard_normal((len(A), outputs))
    same(data.dot(x, idx), A @ x, np.float64)
    same(data.tdot(c, idx), A.T @ c, np.float64)


@pytest.mark.parametrize("kind", [ex.data.Dense, lambda A: ex.data.CSR(sp.csr_array(A))], ids=["dense", "csr"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_moments_and_one_column_more(kind, dtype):
    rng = np.random.default_rng(3)
    A = (rng.standard_normal((5000, 6)) * (rng.random((5000, 6)) < 0.5)).astype(dtype)
    data, w, columns = kind(A), rng.random(5000), np.array([4, 0, 1])
    np.testing.assert_array_equal(data.columns(columns).block.part(slice(10, 40)).array(), A[10:40][:, columns])
    means, squares = data.moments(w)
    np.testing.assert_allclose(means, w @ A.astype(float), rtol=1e-12)
    np.testing.assert_allclose(squares, w @ np.square(A.astype(float)), rtol=1e-12)
    more = data.with_column(2.5)
    assert (more.shape, more.dtype) == ((5000, 7), dtype)
    np.testing.assert_array_equal(more.block.part(slice(0, 9)).array(), np.column_stack([A[:9], np.full(9, 2.5, dtype)]))
