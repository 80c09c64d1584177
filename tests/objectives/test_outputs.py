"""Linear models with several outputs: x is a matrix, a margin is a row, and everything else is as it was.

The truth is plain numpy: softmax and its logarithm from scipy, and `Separable` sums that know nothing of the losses and data.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from output_models import EACH, MATRIX, SPARSE, WIDE, D, K, N, X, formulas, model, separable, targets

import extremal as ex
from extremal.losses.base import MultiLoss
from extremal.losses.multi import Multinomial, MultiTask
from extremal.points.composed import Combination
from extremal.points.low_rank import LowRank, RankOne
from extremal.points.vertex import SparseVertex


def vertices(d: int, k: int):
    """One matrix vertex of each kind, and sparse ones of each size."""
    rng, u = np.random.default_rng(3), np.linspace(-1.0, 1.0, d)
    some = rng.permutation(d * k)
    rank_one, low_rank = RankOne(u, np.linspace(0.5, 1.0, k)), LowRank(rng.standard_normal((d, 2)), rng.standard_normal((k, 2)))
    row = SparseVertex(np.arange(k, 2 * k), np.linspace(1.0, 2.0, k), (d, k))
    few = [SparseVertex(np.sort(some[:m]), rng.standard_normal(m), (d, k)) for m in (0, 1, 4, d * k)]
    coordinates = [ex.points.Coordinate(int(j), -1.75, (d, k)) for j in (0, d * k - 1, k + 1)]
    both = Combination(((2.0, coordinates[2]), (np.float64(-0.5), rank_one)))
    dense = ex.points.DenseVertex(rng.standard_normal((d, k)))
    return [*coordinates, row, *few, rank_one, low_rank, both, dense, Combination(((1.0, dense), (3.0, row)))]


# losses


@EACH
def test_value_and_deriv_equal_their_formulas(loss):
    z = 3 * np.random.default_rng(0).standard_normal((N, loss.outputs))
    (value, deriv), y = formulas(loss), targets(loss)
    np.testing.assert_allclose(loss.value(z, y), value(z, y), rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(loss.deriv(z, y), deriv(z, y), rtol=1e-11, atol=1e-14)
    assert isinstance(loss, MultiLoss)


def hessians(loss, z: np.ndarray, y: np.ndarray, h: float = 1e-5) -> np.ndarray:
    """d^2 phi / dz dz for each row, by central differences."""
    eye = h * np.eye(loss.outputs)
    return np.stack([(loss.deriv(z + e, y) - loss.deriv(z - e, y)) / (2 * h) for e in eye], axis=2)


@EACH
def test_curvature_bounds_the_second_derivative_and_is_nearly_attained(loss):
    k, rng = loss.outputs, np.random.default_rng(0)
    spread = rng.standard_normal((4000, k)) * rng.choice([0.1, 1.0, 3.0, 30.0], size=(4000, 1))
    tied = np.where(np.arange(k) < 2, 0.0, -40.0)  # two classes of probability 1/2
    z = np.vstack([spread, tied])
    y = np.resize(targets(loss), (len(z), *loss.target_shape))
    norms = np.linalg.norm(hessians(loss, z, y), 2, axis=(1, 2))
    assert norms.max() <= loss.curvature * (1 + 1e-5)
    assert norms.max() >= loss.curvature * (1 - 1e-2)
    lowest = min(np.linalg.eigvalsh(H).min() for H in hessians(loss, z, y))
    assert (lowest >= -1e-6) == loss.convex


@EACH
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1.0, 1e4, 1e8])
def test_finite_at_any_margin_and_float_type_kept(loss, size, dtype):
    z = size * np.array(list(itertools.product([-1.0, 0.0, 1.0], repeat=loss.outputs)), dtype)
    y = np.resize(targets(loss), (len(z), *loss.target_shape)).astype(dtype)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        value, deriv = loss.value(z, y), loss.deriv(z, y)
    assert value.dtype == deriv.dtype == dtype
    assert value.shape == (len(z),)
    assert deriv.shape == z.shape
    assert np.isfinite(value).all()
    assert np.isfinite(deriv).all()
    assert (value >= 0).all()


def test_multinomial_far_out_and_small_tails():
    z, zero = np.array([[0.0, 40.0, 0.0], [1e4, 0.0, -1e4]]), np.array([1, 2])
    np.testing.assert_allclose(Multinomial(3).value(z, zero), [2 * np.exp(-40.0), 2e4], rtol=1e-12)
    np.testing.assert_allclose(Multinomial(3).deriv(z, zero)[0], np.exp(-40.0) * np.array([1.0, -2.0, 1.0]), rtol=1e-12)
    np.testing.assert_allclose(Multinomial(3).deriv(z, zero)[1], [1.0, 0.0, -1.0], atol=1e-300)


def test_two_classes_are_the_logistic_loss_of_the_difference():
    z, y = 5 * np.random.default_rng(0).standard_normal((50, 2)), np.arange(50) % 2
    sign, between = 2.0 * y - 1, z[:, 1] - z[:, 0]
    np.testing.assert_allclose(Multinomial(2).value(z, y), ex.Logistic().value(between, sign), rtol=1e-12)
    slope = ex.Logistic().deriv(between, sign)
    np.testing.assert_allclose(Multinomial(2).deriv(z, y), np.column_stack([-slope, slope]), rtol=1e-10)


@pytest.mark.parametrize("wrong", [1, 0, -3, 2.5, "3", True, None], ids=repr)
def test_numbers_of_outputs(wrong):
    with pytest.raises(ex.InputError, match=r"`Multinomial\(classes=\.\.\.\)` must be a whole number of at least 2, got"):
        Multinomial(wrong)
    if wrong is not True and wrong != 1:
        with pytest.raises(ex.InputError, match=r"`MultiTask\(outputs=\.\.\.\)` must be a whole number of at least 1, got"):
            MultiTask(ex.Squared(), wrong)


@pytest.mark.parametrize("wrong", [ex.Squared, "squared", None, Multinomial(3), MultiTask(ex.Squared(), 2)], ids=repr)
def test_a_task_needs_a_loss_of_one_margin(wrong):
    with pytest.raises(ex.InputError, match=r"`MultiTask\(loss=\.\.\.\)` must be a loss of one margin such as Squared"):
        MultiTask(wrong, 2)


# targets

EYE = np.eye(3)


@pytest.mark.parametrize(
    ("loss", "y", "words"),
    [
        (Multinomial(3), [0, 1, 3], r"with Multinomial\(classes=3\) takes labels \{0, 1, 2\}, got \{3\}; map them.*np.unique"),
        (Multinomial(3), [0, 1, -1], r"takes labels \{0, 1, 2\}, got \{-1\}"),
        (Multinomial(3), [0.5, 1, 1.5], r"takes labels \{0, 1, 2\}, got \{0.5, 1.5\}"),
        (Multinomial(9), [0, 9, 1], r"takes labels \{0, 1, 2, ..., 8\}, got \{9\}"),
        (Multinomial(3), [0, 1, np.nan], r"must be finite, got nan at index 2"),
        (Multinomial(3), ["a", "b", "c"], r"must hold numbers, got dtype <U1; map them, .*classes, y = np.unique"),
        (Multinomial(3), [0, 1], r"must have shape \(3,\), one per row of A, got \(2,\)$"),
        (Multinomial(3), EYE, r"must have shape \(3,\), one per row of A, got \(3, 3\); .*y.argmax\(axis=1\)"),
        (MultiTask(ex.Squared(), 2), [1.0, 2.0, 3.0], r"must have shape \(3, 2\), one row of targets per row of A, got \(3,\)"),
        (MultiTask(ex.Squared(), 2), EYE, r"must have shape \(3, 2\), .*, got \(3, 3\)"),
        (MultiTask(ex.Squared(), 1), [1.0, 2.0, 3.0], r"must have shape \(3, 1\)"),
        (MultiTask(ex.Logistic(), 3), EYE, r"MultiTask\(loss=Logistic\(\), outputs=3\) takes labels \{-1, 1\}, got \{0, 1\}"),
        (MultiTask(ex.Squared(), 3), EYE + np.inf, r"must be finite, got inf at index \(0, 0\)"),
    ],
)
def test_targets_that_are_refused(loss, y, words):
    with pytest.raises(ex.InputError, match=r"`LinearModel\(y=\.\.\.\)` .*" + words):
        ex.LinearModel(loss, EYE, y)


def test_classes_of_any_kind_of_number():
    for y in ([0, 1, 2], [0.0, 1.0, 2.0], np.array([0, 1, 2], np.uint8), np.array([2, 1, 0], np.float32)):
        assert ex.LinearModel(Multinomial(3), EYE, y).value(EYE) > 0
    names, y = np.unique(np.array(["b", "a", "b"]), return_inverse=True)
    assert ex.LinearModel(Multinomial(len(names)), EYE, y).shape == (3, 2)


# data

DATA = [
    make(A.astype(dtype)) for A in (SPARSE, WIDE) for dtype in (np.float64, np.float32) for make in (ex.data.Dense, ex.data.CSR)
]
IDX = {
    "all": None, "empty": np.array([], np.int64), "repeated": np.array([2, 2, 7, 2]), "unsorted": np.array([40, 3, 59, 0]),
    "int32": np.array([4, 1], np.int32),
}  # fmt: skip


@pytest.fixture(params=DATA, ids=lambda A: f"{type(A).__name__}-{A.shape[1]}-{A.dtype}")
def data(request):
    return request.param


@pytest.fixture(params=IDX.values(), ids=IDX)
def idx(request):
    return request.param


def rows(data, idx) -> np.ndarray:
    """The rows as they are stored, in float64."""
    A = (SPARSE if data.shape[1] == D else WIDE).astype(data.dtype).astype(np.float64)
    return A if idx is None else A[idx]


def same(got: np.ndarray, wanted: np.ndarray, dtype) -> None:
    assert got.dtype == dtype
    assert got.shape == wanted.shape
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-12 if dtype == np.float64 else 1e-4)


@pytest.mark.parametrize("k", [1, K])
def test_products_with_matrices(data, idx, k):
    rng = np.random.default_rng(0)
    x, c = rng.standard_normal((data.shape[1], k)), rng.standard_normal((len(rows(data, idx)), k))
    for order in ("C", "F"):
        for dtype in (np.float32, np.float64):
            given, wide = x.astype(dtype, order=order), np.result_type(data.dtype, dtype)
            given.flags.writeable = False  # the iterates of a run are read-only
            same(data.dot(given, idx), rows(data, idx) @ given.astype(np.float64), wide)
            given = c.astype(dtype, order=order)
            same(data.tdot(given, idx), rows(data, idx).T @ given.astype(np.float64), wide)


@pytest.mark.parametrize("k", [1, K])
def test_products_with_matrix_vertices(data, idx, k):
    for v in vertices(data.shape[1], k):
        same(data.dot_vertex(v, idx), rows(data, idx) @ v.to_array(), np.float64)


@pytest.mark.parametrize("size", [0, 1, 3, 50])
def test_products_with_sparse_vectors(data, idx, size):
    d = data.shape[1]
    where = np.sort(np.random.default_rng(size).permutation(d)[:size])
    v = SparseVertex(where, np.linspace(1.0, 2.0, len(where)), (d,))
    same(data.dot_vertex(v, idx), rows(data, idx) @ v.to_array(), np.float64)


def test_structured_vertices_need_no_dense_array(data, monkeypatch):
    """One column for a coordinate and for a row, thin products for low rank; a few columns of wide data."""
    shapes, dot, (_, d) = [], type(data).dot, data.shape
    monkeypatch.setattr(type(data), "dot", lambda self, x, idx=None: shapes.append(x.shape) or dot(self, x, idx))
    some = [SparseVertex(np.arange(K * m), np.ones(K * m), (d, K)) for m in (1, 2, 3) if d == 96]
    for v in (ex.points.Coordinate(7, 1.0, (d, K)), *some):
        data.dot_vertex(v)
        data.dot_vertex(v, np.array([3]))
    assert not shapes
    data.dot_vertex(RankOne(np.ones(d), np.ones(K)))
    data.dot_vertex(LowRank(np.ones((d, 2)), np.ones((K, 2))), np.array([3]))
    assert shapes == [(d,), (d, 2)]


def run(code: str, **env: str) -> None:
    start = "import numpy as np, scipy.sparse as sp, extremal as ex\nA = np.arange(12.0).reshape(4, 3)\n"
    subprocess.run([sys.executable, "-c", start + code], check=True, env=os.environ | env)


def test_without_compilation():
    code = """
x, i, data = np.arange(6.0).reshape(3, 2), np.array([2, 0, 2]), ex.data.CSR(sp.csr_array(A))
assert (data.dot(x, i) == A[i] @ x).all() and (data.tdot(A[i, :2], i) == A[i].T @ A[i, :2]).all()
"""
    run(code, NUMBA_DISABLE_JIT="1")


@pytest.mark.parametrize("loss", ["Multinomial(3), A, [0, 1, 2, 1]", "ex.Squared(), A, np.ones(4)"])
def test_nothing_is_compiled_once_a_model_is_ready(loss):
    code = f"""
from extremal.kernels import rows
from extremal.losses import Multinomial
A = sp.csr_array(np.vander(np.arange(1.0, 5.0), 4))
f = ex.LinearModel({loss})
f.ready()
names = ("rows_dot", "rows_tdot", "column", "dot_matrix", "tdot_matrix")
known = [list(getattr(rows, name).signatures) for name in names]
line = ex.FrankWolfe(step=ex.steps.LineSearch())
for method in (line, ex.SarahFW(batch=2, replace=True), ex.SagaSarahFW(batch=2), ex.LuFreundSFW(batch=2), ex.SVRF()):
    ex.minimize(f, ex.L1Ball(3.0), method=method, max_iter=20)
assert known == [list(getattr(rows, name).signatures) for name in names]
"""
    run(code, NUMBA_DISABLE_JIT="0")


# models


@pytest.fixture(params=["dense", "csr", "separable"])
def make(request):
    return separable if request.param == "separable" else lambda loss: model(loss, request.param)


def point(loss) -> np.ndarray:
    return X[:, : loss.outputs] / 2


def full(loss, x: np.ndarray) -> tuple[float, np.ndarray]:
    (value, deriv), y, z = formulas(loss), targets(loss), MATRIX @ x
    return float(value(z, y).mean()), MATRIX.T @ deriv(z, y) / N


@EACH
def test_the_sum_and_its_gradient(make, loss):
    f, x = make(loss), point(loss)
    value, g = full(loss, x)
    assert (f.n, f.shape, f.dtype, f.convex) == (N, (D, loss.outputs), np.float64, loss.convex)
    assert f.deriv_shape == ((loss.outputs,) if isinstance(f, ex.LinearModel) else f.shape)
    assert f.value(x) == f.value_and_grad(x)[0] == pytest.approx(value, rel=1e-12)
    assert f.values(x, np.array([5, 5, 2])).shape == (3,)
    assert f.values(x).mean() == pytest.approx(value, rel=1e-12)
    for got in (f.grad(x), f.value_and_grad(x)[1]):
        np.testing.assert_allclose(got, g, atol=1e-14)
        assert got.flags.c_contiguous
    h, E = 1e-6, np.eye(x.size).reshape(-1, *x.shape)
    slopes = [(f.value(x + h * e) - f.value(x - h * e)) / (2 * h) for e in E]
    np.testing.assert_allclose(g.reshape(-1), slopes, atol=1e-6)


@EACH
@pytest.mark.parametrize("idx", [np.array([9, 0, 31]), np.array([4, 4, 1]), None], ids=["some", "repeated", "all"])
def test_combined_derivatives_are_the_mean_of_component_gradients(make, loss, idx):
    f, x, at = make(loss), point(loss), np.arange(N) if idx is None else idx
    c = f.derivs(x, idx)
    assert c.shape == (len(at), *f.deriv_shape)
    wanted = np.einsum("ti,tj->ij", MATRIX[at], formulas(loss)[1](MATRIX[at] @ x, targets(loss)[at])) / len(at)
    np.testing.assert_allclose(f.combine(c, idx), wanted, atol=1e-14)
    np.testing.assert_allclose(f.combine(-2 * c, idx), -2 * wanted, atol=1e-14)


@EACH
def test_along_a_segment(make, loss):
    f, x = make(loss), point(loss)
    for s in vertices(D, loss.outputs):
        line, to = f.along(x, s), s.to_array() - x
        for t in (0.0, 0.3, 1.0):
            value, g = full(loss, x + t * to)
            assert line.value(t) == pytest.approx(value, rel=1e-12)
            assert line.slope(t) == pytest.approx(np.vdot(g, to), rel=1e-10, abs=1e-13)
        assert line.grads_per_slope == (0 if isinstance(f, ex.LinearModel) else N)


@EACH
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_margins_and_smoothness(loss, kind):
    f, x, idx = model(loss, kind), point(loss), np.array([3, 3, 8])
    np.testing.assert_allclose(f.margins(x, idx), MATRIX[idx] @ x, atol=1e-13)
    np.testing.assert_allclose(f.derivs_at(f.margins(x)), f.derivs(x), atol=0)
    for s in vertices(D, loss.outputs):
        np.testing.assert_allclose(f.vertex_margins(s, idx), MATRIX[idx] @ s.to_array(), atol=1e-13)
    top = float(np.linalg.eigvalsh(MATRIX.T @ MATRIX)[-1])
    assert f.smoothness == pytest.approx(loss.curvature * top / N, rel=1e-6)
    np.testing.assert_allclose(f.row_smoothness, loss.curvature * (MATRIX**2).sum(axis=1), rtol=1e-12)
    rng = np.random.default_rng(0)
    for _ in range(50):
        a, b = rng.standard_normal((2, *f.shape))
        assert np.linalg.norm(f.grad(a) - f.grad(b)) <= f.smoothness * np.linalg.norm(a - b) * (1 + 1e-9)


@EACH
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_float32_rows_are_read_as_they_are_and_everything_else_is_in_float64(loss, kind):
    f, x, some = model(loss, kind, dtype=np.float32), point(loss), np.array([1, 2])
    assert f.data.dtype == np.float32
    assert f.dtype == f.y.dtype == f.grad(x).dtype == f.values(x).dtype == np.float64
    assert f.derivs(x, some).dtype == f.combine(f.derivs(x, some), some).dtype == np.float64
    assert all(f.vertex_margins(s).dtype == np.float64 for s in vertices(D, loss.outputs))
    exact = ex.LinearModel(loss, f.data.dot(np.eye(D)), f.y)  # the same rows in float64
    np.testing.assert_allclose(f.grad(x), exact.grad(x), rtol=0, atol=1e-13)
    assert f.value(x) == pytest.approx(exact.value(x), rel=1e-13)
    r = ex.minimize(f, ex.L1Ball(2.0), method=ex.SagaSarahFW(batch=5), max_iter=20)
    assert r.x.dtype == np.float64


def test_data_that_are_no_rows_of_features():
    positions = SimpleNamespace(shape=(4, 3, 3), dtype=np.dtype(float), dot_vertex=None, tdot=None, parts=None)
    with pytest.raises(ex.InputError, match=r"`LinearModel\(loss=\.\.\.\)`: Multinomial\(classes=3\) has several outputs"):
        ex.LinearModel(Multinomial(3), positions, [0, 1, 2, 0])
