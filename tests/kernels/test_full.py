"""Full passes: the compiled ones equal plain numpy, in parts and on threads as on one, and take little memory."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba.core.config
import numpy as np
import pytest
import scipy.sparse as sp
from cases import LOSSES, truth

import extremal as ex
from extremal.data import contract, parts
from extremal.kernels import full
from extremal.losses import over_rows

N, D = 400, 30


def matrix(n: int = N, d: int = D, dtype=np.float64, index=np.int32) -> sp.csr_array:
    """Rows of unequal length, some empty, and columns that are empty."""
    rng = np.random.default_rng(n + d)
    A = rng.standard_normal((n, d)) * (rng.random((n, d)) < rng.random((n, 1)) ** 2)
    A[:, d // 2] = A[n // 3] = A[n - 1] = 0.0
    A = sp.csr_array(A.astype(dtype))
    A.indices, A.indptr = A.indices.astype(index), A.indptr.astype(index)
    return A


def targets(loss, n: int = N) -> np.ndarray:
    rng = np.random.default_rng(1)
    return rng.choice(loss.labels, n) if loss.labels else rng.standard_normal(n)


@pytest.fixture
def threads(monkeypatch):
    """A function that sets their number; parts are small, so that there are many."""
    monkeypatch.setattr(parts, "PART", 50)
    return lambda number: monkeypatch.setattr(numba.core.config, "NUMBA_NUM_THREADS", number)


def plain(loss, A, y, x):
    """Value, gradient and derivatives by numpy, in float64."""
    A, value, deriv = A.toarray().astype(np.float64), *truth(loss)[:2]
    z = A @ x.astype(np.float64)
    return value(z, y).mean(), A.T @ deriv(z, y) / len(y), deriv(z, y)


# the same numbers


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("of_x", [np.float64, np.float32])
def test_a_pass_is_what_numpy_says(loss, dtype, index, of_x, threads):
    A, x = matrix(dtype=dtype, index=index), np.random.default_rng(2).standard_normal(D).astype(of_x)
    f = ex.LinearModel(loss, A, targets(loss))
    tol = 1e-13 if np.result_type(dtype, of_x) == np.float64 else 1e-6
    value, g, c = plain(loss, A, f.y, x)
    for number in (1, 2):
        threads(number)
        both = f.value_and_grad(x)
        assert f.value(x) == both[0] == pytest.approx(value, rel=1e-13 if of_x == np.float64 else 1e-6)
        assert f.grad(x).dtype == both[1].dtype == f.derivs(x).dtype == np.float64
        np.testing.assert_array_equal(f.grad(x), both[1])
        np.testing.assert_allclose(both[1], g, atol=tol)
        np.testing.assert_allclose(f.derivs(x), c, atol=10 * tol)
        np.testing.assert_allclose(f.data.dot(x), A.toarray() @ x, atol=30 * tol)
        np.testing.assert_allclose(f.data.tdot(f.derivs(x)) / N, g, atol=tol)


@pytest.mark.parametrize("kind", ["csr", "dense"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_number_of_threads_changes_no_bit(kind, dtype, threads, monkeypatch):
    monkeypatch.setattr(contract, "PIECE", 200)
    A = matrix(dtype=dtype)
    f, x = ex.LinearModel(ex.Logistic(), A if kind == "csr" else A.toarray(), targets(ex.Logistic())), np.linspace(-1, 1, D)
    found = []
    for number in (1, 2, 3, 7):
        threads(number)
        found.append((f.value_and_grad(x), f.derivs(x), f.data.dot(x), f.data.tdot(f.y)))
    for again in found[1:]:
        assert again[0][0] == found[0][0][0]
        for a, b in zip((again[0][1], *again[1:]), (found[0][0][1], *found[0][1:]), strict=True):
            np.testing.assert_array_equal(a, b)


def test_there_are_threads_for_large_data_and_none_for_small(threads, monkeypatch):
    started = []

    class Pool(ThreadPoolExecutor):
        def __init__(self, number):
            started.append(number)
            super().__init__(number)

    monkeypatch.setattr(parts, "ThreadPoolExecutor", Pool)
    threads(2)
    loss, idx = ex.Logistic(), np.arange(N)
    f, x = ex.LinearModel(loss, matrix(), targets(loss)), np.ones(D)
    f.grad(x)
    assert started == [2]
    f.combine(f.derivs(x, idx), idx)  # batches never do, however large
    threads(1)
    f.grad(x)
    assert started == [2]
    threads(2)
    monkeypatch.setattr(parts, "PART", 2**20)
    f.value_and_grad(x)
    ex.minimize(f, ex.L1Ball(1.0), max_iter=20)
    assert started == [2]


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (3, 2), (7, 1)])
def test_tiny_data(shape, threads):
    threads(4)
    A = sp.csr_array(np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape))
    f, x = ex.LinearModel(ex.Squared(), A, np.ones(shape[0])), np.full(shape[1], 0.5)
    r = A.toarray() @ x - 1.0
    assert f.value(x) == pytest.approx((r @ r) / 2 / shape[0], rel=1e-14)
    np.testing.assert_allclose(f.grad(x), A.toarray().T @ r / shape[0], rtol=1e-14)


def test_data_without_an_entry():
    f = ex.LinearModel(ex.Logistic(), sp.csr_array((5, 3)), np.ones(5))
    assert f.value(np.ones(3)) == pytest.approx(np.log(2.0))
    np.testing.assert_array_equal(f.grad(np.ones(3)), np.zeros(3))
    np.testing.assert_array_equal(f.data.row_norms2(), np.zeros(5))


def test_many_features_are_read_in_long_blocks(monkeypatch):
    """The same sums, whatever the blocks."""
    f, x = ex.LinearModel(ex.Logistic(), matrix(), targets(ex.Logistic())), np.linspace(-1, 1, D)
    one = f.value_and_grad(x)
    for near, block in ((D, 7), (D - 1, 7), (D, 1)):
        monkeypatch.setattr(full, "CACHED_FEATURES", near)
        monkeypatch.setattr(full, "CACHED_ROWS", block)
        value, g = f.value_and_grad(x)
        assert value == pytest.approx(one[0], rel=1e-14)
        np.testing.assert_allclose(g, one[1], atol=1e-15)


class Mine:
    """The squared error, as a user may write it."""

    curvature, convex, labels = 1.0, True, None

    def value(self, z, y):
        return (z - y) ** 2 / 2

    def deriv(self, z, y):
        return z - y


@pytest.mark.parametrize("kind", ["csr", "dense"])
@pytest.mark.parametrize("chunk", [7, N, 10**6])
def test_a_loss_of_the_users_own(kind, chunk, monkeypatch):
    monkeypatch.setattr(contract, "PIECE_ROWS", chunk)
    monkeypatch.setattr(over_rows, "ROWS_AT_ONCE", chunk)
    A, y = matrix(), targets(ex.Squared())
    mine, ours = (ex.LinearModel(loss, A if kind == "csr" else A.toarray(), y) for loss in (Mine(), ex.Squared()))
    x = np.linspace(-1, 1, D)
    assert mine.value(x) == pytest.approx(ours.value(x), rel=1e-13)
    for a, b in zip((mine.grad(x), mine.derivs(x)), (ours.grad(x), ours.derivs(x)), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-13)
    line = ex.points.Coordinate(2, 1.0, (D,))
    assert mine.along(x, line).slope(0.3) == pytest.approx(ours.along(x, line).slope(0.3), rel=1e-12)


def test_a_users_loss_is_not_called_from_threads(threads, monkeypatch):
    monkeypatch.setattr(contract, "PIECE", 200)
    monkeypatch.setattr(parts, "ThreadPoolExecutor", None)
    threads(2)
    f = ex.LinearModel(Mine(), matrix().toarray(), targets(ex.Squared()))
    np.testing.assert_allclose(f.grad(np.ones(D)), matrix().T @ f.derivs(np.ones(D)) / N, atol=1e-14)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_what_is_not_finite_is_not_hidden(loss, bad):
    A, x = matrix(), np.ones(D)
    x[0] = bad
    f = ex.LinearModel(loss, A, targets(loss))
    z = A @ x
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(f.derivs(x), loss.deriv(z, f.y), atol=1e-14)
        assert f.value(x) == pytest.approx(loss.value(z, f.y).mean(), nan_ok=True)


@pytest.mark.parametrize("wrong", [np.ones(D + 1), np.ones(D - 1), np.ones((D, 1))[:, 0][:-2], np.ones(1)])
def test_points_of_a_wrong_length_are_refused(wrong):
    f = ex.LinearModel(ex.Squared(), matrix(), np.ones(N))
    for call in (f.value, f.grad, f.value_and_grad, f.derivs, f.data.dot):
        with pytest.raises(ex.InputError, match="one entry per column"):
            call(wrong)
    with pytest.raises(ex.InputError, match="one entry per row"):
        f.data.tdot(np.ones(N + 1))


# many digits


@pytest.mark.parametrize(("kind", "tol"), [(sp.csr_array, 1e-7), (np.asarray, 1e-4)])
def test_sums_of_many_float32_numbers(kind, tol):
    """In float32, one after the other, 0.1 * 10^6 is wrong in the third digit; BLAS sums blocks in float32, if x is, too."""
    n = 10**6
    f = ex.LinearModel(ex.Squared(), kind(np.ones((n, 1), np.float32)), np.full(n, 0.1, np.float32))
    exact = -float(np.float32(0.1))
    for dtype, accuracy in ((np.float32, tol), (np.float64, 1e-12)):
        x = np.zeros(1, dtype)
        assert f.grad(x)[0] == pytest.approx(exact, rel=accuracy)
        assert f.combine(f.derivs(x))[0] == pytest.approx(exact, rel=accuracy)


def test_sums_of_many_values():
    n = 3 * 10**6
    f = ex.LinearModel(ex.Squared(), sp.csr_array((n, 1)), np.full(n, 0.1))
    assert f.value(np.zeros(1)) == pytest.approx(0.1**2 / 2, rel=1e-13)


# company


def _gradient(seed: int) -> np.ndarray:
    numba.core.config.NUMBA_NUM_THREADS, parts.PART = 2, 50
    return ex.LinearModel(ex.Logistic(), matrix(), targets(ex.Logistic())).grad(np.full(D, float(seed)))


def test_threads_of_the_user(threads):
    threads(2)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(_gradient, [1, 2, 1, 2, 1, 2]))
    for i, g in enumerate(found):
        np.testing.assert_array_equal(g, found[i % 2])


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork on this system")
def test_children_of_a_process_that_has_used_threads(threads):
    """In a process of its own, which has no other threads: a fork beside them is a risk that Python warns of."""
    code = (
        "import multiprocessing, test_full as t\n"
        "here = t._gradient(1)\n"
        "with multiprocessing.get_context('fork').Pool(2) as pool:\n"
        "    assert all((g == here).all() for g in pool.map(t._gradient, [1, 1, 1]))\n"
    )
    run(code)


def run(code: str, **environment: str) -> str:
    """What Python says to the code, in a fresh process; warnings are errors."""
    folder, here = Path(__file__).parents[1] / "truths", str(Path(__file__).parent)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True, text=True, cwd=folder, timeout=1800, env={**os.environ, "PYTHONPATH": here, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_without_compilation():
    code = (
        "import numpy as np, test_full as t, extremal as ex\n"
        "for loss in t.LOSSES:\n"
        "    A, y, x = t.matrix(50), t.targets(loss, 50), np.linspace(-20, 20, t.D)\n"
        "    f, (value, g, c) = ex.LinearModel(loss, A, y), t.plain(loss, A, y, x)\n"
        "    assert type(f.value(x)) is float and abs(f.value(x) - value) < 1e-12 * value\n"
        "    assert np.allclose(f.grad(x), g, atol=1e-13)\n"
        "    assert np.allclose(f.derivs(x), c, atol=1e-13) and np.allclose(f.shuffled().grad(x), g, atol=1e-13)\n"
        "    assert np.allclose(f.data.row_norms2(), A.power(2).sum(axis=1))\n"
        "    r = ex.minimize(f, ex.L1Ball(1.0), 'sarah-fw', max_iter=3)\n"
        "    print(r.n_iter)\n"
    )
    assert run(code, NUMBA_DISABLE_JIT="1").split() == ["3"] * len(LOSSES)


# memory


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_passes_make_no_copy_of_the_data(index):
    """Nor one of float32 data for a point in float64; float64 certificates of float32 runs are such passes."""
    n, k, x = 600_000, 12, np.linspace(-1, 1, 50)
    starts = np.arange(0, n * k + 1, k, dtype=index)
    A = sp.csr_array((np.ones(n * k, np.float32), np.tile(np.arange(k, dtype=index), n), starts), shape=(n, 50))

    def calls(f):
        return (f.value, 2), (f.grad, 2), (f.value_and_grad, 2), (f.derivs, 11), (lambda x: f.data.row_norms2(), 9)

    for call, _ in calls(ex.LinearModel(ex.Logistic(), A[:10], np.ones(10))):  # compiled
        call(x)
    tracemalloc.start()
    try:
        f = ex.LinearModel(ex.Logistic(), A, np.ones(n, np.float32))
        kept, peak = tracemalloc.get_traced_memory()
        assert kept < 9 * n  # the targets, given and kept
        assert peak < 24 * n  # the data have 100 bytes a row, or 152
        for call, row in calls(f):
            tracemalloc.reset_peak()
            call(x)
            assert tracemalloc.get_traced_memory()[1] - kept < row * n
    finally:
        tracemalloc.stop()


MEMORY = """
import numpy as np, scipy.sparse as sp
import extremal as ex


def memory(name):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(name))


def data(n, d, k=12):
    rng, wide = np.random.default_rng(0), d // k
    columns = rng.integers(0, wide, (n, k), dtype=np.int32) + wide * np.arange(k, dtype=np.int32)
    A = sp.csr_array((np.ones(n * k), columns.reshape(-1), np.arange(0, n * k + 1, k, dtype=np.int32)), shape=(n, d))
    return A, np.where(rng.random(n) < 0.5, 1.0, -1.0)


def run(A, y):
    return ex.minimize(ex.LinearModel(ex.Logistic(), A, y), ex.L1Ball(10.0), METHOD, max_iter=5, tol=0.0).calls


n, d = 2_000_000, 200_000
run(*data(100, 24))  # what is compiled or loaded once is no matter of the data's size
A, y = data(n, d)
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # the peak starts anew
before = memory("VmRSS")
calls = run(A, y)
assert calls.grads >= n and calls.certificate >= n
print(memory("VmHWM") - before - 24 * n - 64 * d)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/clear_refs"), reason="the system does not tell peaks of memory")
@pytest.mark.parametrize("method", ["sarah-fw", "saga-sarah-fw"])
def test_a_run_takes_little_more_memory_than_its_data(method):
    """24 bytes a row and 64 bytes a feature over the data, which are 160 bytes a row; 20 MB for batches and the like."""
    assert int(run(f"METHOD = {method!r}" + MEMORY)) <= 20 * 10**6
