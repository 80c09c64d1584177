"""Tables of component gradients: true to where each row was last drawn, no larger than needed, announced when large."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from cases import DIM, GRADIENTS, MATRIX, N, model, separable

import extremal as ex
from extremal.gradients import table as tables
from extremal.objectives.base import ROWS, SECOND
from extremal.support import memory

A = np.linspace(-0.4, 0.3, DIM)


@pytest.fixture(params=["dense", "csr", "separable"])
def f(request):
    return separable(ex.Logistic()) if request.param == "separable" else model(ex.Logistic(), request.param)


def wide(f, x) -> np.ndarray:
    """All component gradients as rows."""
    return np.array([f.combine(f.derivs(x, np.array([i])), np.array([i])) for i in range(f.n)])


WITH_TABLE = [
    g
    for g in GRADIENTS
    if isinstance(g, (ex.gradients.SagaSarah, ex.gradients.Sag, ex.gradients.Saga)) and not getattr(g, "rho", None)
]


@pytest.mark.parametrize("gradient", WITH_TABLE, ids=repr)
def test_the_table_and_its_mean_stay_together(f, gradient):
    """After many updates: the mean is that of the rows, and each row is the gradient where it was last drawn."""
    sampler, x_prev = ex.objectives.Sampler(N, seed=2), A
    state, rng = gradient.init(f, A, sampler), np.random.default_rng(0)
    rows, first = np.zeros((N, DIM)), sampler.rows(0, gradient.batch, gradient.replace)
    if isinstance(gradient, ex.gradients.Sag):  # empty, and refreshed from the first estimate on
        rows[first] = wide(f, A)[first]
    elif getattr(gradient, "start", "full") == "full":
        rows = wide(f, A)
    for k in range(400):
        x = 0.3 * rng.standard_normal(DIM)
        state = gradient.update(f, k, x_prev, x, (), state, sampler)
        j, stream = k + isinstance(gradient, ex.gradients.Sag), SECOND if getattr(gradient, "two_batches", False) else ROWS
        idx = np.unique(sampler.rows(j, gradient.batch, gradient.replace, stream))
        rows[idx] = wide(f, x)[idx]
        x_prev = x
    kept = np.array([f.combine(state.table.c[[i]], np.array([i])) for i in range(N)])
    np.testing.assert_allclose(kept, rows, atol=1e-13)
    np.testing.assert_allclose(state.table.mean, rows.mean(axis=0), atol=1e-13)


def test_the_table_holds_one_number_per_row_of_a_linear_model():
    assert tables.DerivativeTable.at(model(ex.Squared()), A).c.shape == (N,)
    assert tables.DerivativeTable.zero(model(ex.Squared(), "csr")).c.shape == (N,)
    assert tables.DerivativeTable.at(separable(ex.Squared()), A).c.shape == (N, DIM)
    assert tables.DerivativeTable.zero(model(ex.Squared(), dtype=np.float32)).c.dtype == np.float64


def test_a_cold_start_asks_for_one_gradient_and_has_an_empty_table():
    f = model(ex.Squared())
    state = ex.gradients.SagaSarah(3, 0.1, start="cold").init(f, A, ex.objectives.Sampler(N, seed=0))
    i = ex.objectives.Sampler(N, seed=0).start()
    np.testing.assert_allclose(state.g, f.combine(f.derivs(A, i), i))
    assert not state.table.c.any()
    assert not state.table.mean.any()


def test_the_table_is_its_own_memory():
    """A user's callable may answer an array that it keeps, or one that cannot be written to (as automatic derivatives do)."""
    kept = MATRIX.copy()
    kept.flags.writeable = False

    def grad(x, idx):
        return kept if len(idx) == N else kept[idx] * x.sum()

    f = ex.Separable(N, DIM, grad=grad, value=lambda x, idx: kept[idx] @ x, convex=True)
    ex.minimize(f, ex.L1Ball(1.0), method=ex.SagaSarahFW(batch=5), max_iter=20)
    np.testing.assert_array_equal(kept, MATRIX)


def stub(gib: float, per_row: int = 2**10):
    return SimpleNamespace(n=int(gib * 2**30) // (4 * per_row), deriv_shape=(per_row,), dtype=np.dtype(np.float32))


def test_a_large_table_is_announced(monkeypatch, recwarn):
    monkeypatch.setattr(tables, "free_memory", lambda: 100 * 2**30)
    with pytest.warns(ex.gradients.LargeTableWarning, match=r"1\.5 GiB.*SarahFW needs no table"):
        tables.check_memory(stub(1.5))
    tables.check_memory(stub(0.9))
    assert not recwarn


def test_a_table_that_does_not_fit_is_refused(monkeypatch):
    monkeypatch.setattr(tables, "free_memory", lambda: 2**30)
    monkeypatch.setattr(tables.shutil, "disk_usage", lambda path: SimpleNamespace(free=2**31))
    with pytest.raises(MemoryError, match=r"3\.0 GiB.*1\.0 GiB of free memory, nor in the 2\.0 GiB of .*SarahFW needs"):
        tables.check_memory(stub(3.0))
    with pytest.warns(ex.gradients.LargeTableWarning):  # there is room on the disk
        tables.check_memory(stub(1.5))
    monkeypatch.undo()
    f = ex.Separable(10**9, 10**6, grad=lambda x, idx: np.ones((len(idx), 10**6)), value=lambda x, idx: np.ones(len(idx)))
    for start in ("full", "cold"):  # nothing is allocated, and no gradient is asked for
        with pytest.raises(MemoryError, match="does not fit"):
            next(ex.iterate(f, ex.L1Ball(1.0), method=ex.SagaSarahFW(batch=1, start=start)))


def test_memory_that_the_system_does_not_tell(monkeypatch):
    monkeypatch.setattr(tables, "free_memory", lambda: None)
    with pytest.warns(ex.gradients.LargeTableWarning):
        tables.check_memory(stub(5.0))


METHODS = [
    ex.SagaSarahFW(batch=5),
    ex.SagaSarahFW(batch=5, start="cold"),
    ex.SagaFW(batch=5),
    ex.NegiarSFW(batch=5),
    ex.LuFreundSFW(batch=5),
]


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_a_table_that_would_take_much_memory_is_mapped(f, method, monkeypatch):
    """With the same bits, in the readable loop and in bursts."""
    if isinstance(f, ex.Separable) and isinstance(method, ex.LuFreundSFW):
        return  # it needs margins
    near = ex.minimize(f, ex.L1Ball(1.0), method, max_iter=30, seed=1)
    monkeypatch.setattr(memory, "SCRATCH", 1)
    monkeypatch.setattr(memory, "free_memory", lambda: 1)
    far = ex.minimize(f, ex.L1Ball(1.0), method, max_iter=30, seed=1)
    assert near.x.tobytes() == far.x.tobytes()
    last = next(ex.iterate(f, ex.L1Ball(1.0), method, seed=1))
    assert memory.mapping_of(last.estimate.table.c) is not None


def test_a_disk_without_room_is_named(monkeypatch):
    def full(file, size):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(memory, "_reserve", full)
    monkeypatch.setattr(memory, "free_memory", lambda: 2**30)
    with pytest.raises(MemoryError, match=r"no room for 0\.1 GiB .*No space left on device.*TMPDIR"):
        memory.room((2**23, 2))
    assert memory.room((2**10,)).flags.owndata
    assert memory.room((2**23,), object).dtype == object
    monkeypatch.setattr(memory, "free_memory", lambda: None)  # where the system does not say
    assert memory.room((2**20,)).flags.owndata
    with pytest.raises(MemoryError):
        memory.room((2**22,))
