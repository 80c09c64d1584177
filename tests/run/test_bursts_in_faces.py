"""Bursts of steps within faces: the same iterates and counts as the readable loop."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from burst_problems import DATA, DENSE, SETS, SPARSE, agree, model

import extremal as ex
from extremal.run.bursts.faces import FaceBurst

METHODS = {
    "tracked": ex.TrackedFW(5),
    "tracked, one": ex.TrackedFW(1),
    "tracked, full start": ex.TrackedFW(9, start="full"),
    "saga": ex.SagaFaceFW(5),
    "saga, one": ex.SagaFaceFW(1),
}
EVERY_METHOD = pytest.mark.parametrize("method", METHODS)
TWO = pytest.mark.parametrize("method", ["tracked", "saga"])
ANEW = 200  # iterations in which one refresh is due
LOSSES = [ex.Logistic(), ex.Squared(), ex.Huber(0.5), ex.NonlinearLeastSquares()]


def both(f, C, method, **options):
    options = {"tol": 0, "atol": 0, "max_iter": 70} | options
    return (ex.minimize(f, C, METHODS.get(method, method), bursts=fast, **options) for fast in (True, False))


def same(f, C, method, tol=1e-9, **options):
    fast, slow = both(f, C, method, **options)
    assert fast.compiled > 0
    assert slow.compiled == 0
    agree(fast, slow, tol)
    return fast


@EVERY_METHOD
@pytest.mark.parametrize("region", ["l1", "weighted", "simplex", "unit"])
@pytest.mark.parametrize("data", ["csr", "dense"])
def test_a_burst_is_the_readable_loop(method, region, data):
    same(model(DATA[data]), SETS[region], method)


@TWO
@pytest.mark.parametrize("C", [ex.BoundedL1Ball(3.0), ex.BoundedL1Ball(2.0, lower=0.0)], ids=repr)
def test_bounds_that_only_fix_signs(method, C):
    same(model(SPARSE), C, method)


@TWO
@pytest.mark.parametrize("lower", [-0.5, np.r_[0.0, np.full(DENSE.shape[1] - 1, -np.inf)]], ids=["room", "one sign"])
def test_other_bounds_have_no_burst(method, lower):
    f, C = model(DENSE), ex.BoundedL1Ball(2.0, lower, 1.0 if np.ndim(lower) == 0 else np.inf)
    r = ex.minimize(f, C, METHODS[method], tol=0, atol=0, max_iter=60)
    assert r.compiled == 0
    assert C.contains(r.x)
    assert r.value < f.value(np.zeros(f.shape))


@TWO
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("data", [SPARSE, DENSE], ids=["csr", "dense"])
def test_every_loss_with_a_compiled_form(method, loss, data):
    """Of least squares, while rows are new: later, exact steps leave equal slopes, and rounding decides between them."""
    same(model(data, loss), SETS["l1"], method, max_iter=24 if isinstance(loss, ex.Squared) else 70)


@TWO
@pytest.mark.parametrize("data", [SPARSE, DENSE], ids=["csr", "dense"])
def test_rows_of_float32(method, data):
    same(model(data, dtype=np.float32), SETS["l1"], method, tol=1e-4)


@TWO
@pytest.mark.parametrize("data", ["csr, one value", "csr, wide indices"])
def test_other_sparse_rows(method, data):
    same(model(DATA[data]), SETS["weighted"], method)


@TWO
def test_weights_are_left_to_the_readable_loop_or_agree(method):
    f = ex.LinearModel(ex.Logistic(), DENSE, model(DENSE).y, weights=np.linspace(0.5, 2.0, len(DENSE)))
    fast, slow = both(f, SETS["l1"], method)
    agree(fast, slow)


@TWO
def test_more_columns_than_there_is_room_for_at_first(method):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((300, 150))
    f = ex.LinearModel(ex.Logistic(), A, np.where(rng.random(300) < 0.5, 1.0, -1.0))
    r = same(f, ex.L1Ball(40.0), method, max_iter=500)
    assert np.count_nonzero(r.x) > 64


def test_a_table_that_is_drawn_anew():
    """Until rounding decides when the next refresh is due: the first one comes within these iterations."""
    fast, slow = both(model(DENSE), ex.L1Ball(5.0), "tracked", max_iter=ANEW)
    assert fast.calls == slow.calls
    np.testing.assert_allclose(fast.x, slow.x, rtol=0, atol=1e-9)
    assert fast.calls.grads == 10 * (ANEW + 1) + 2 * len(DENSE)


@TWO
def test_looking_changes_nothing(method):
    a, b = (ex.minimize(model(SPARSE), SETS["l1"], METHODS[method], max_iter=60, record=k, tol=0, atol=0) for k in (0.5, 10.0))
    np.testing.assert_array_equal(a.x, b.x)
    assert a.calls.grads == b.calls.grads


@TWO
def test_a_callback_sees_every_iteration(method):
    seen = []
    r = ex.minimize(
        model(SPARSE), SETS["l1"], METHODS[method], max_iter=20, tol=0, atol=0, callback=lambda s: seen.append(s.k) and None
    )
    assert len(seen) >= r.n_iter == 20


@TWO
def test_an_interrupt_shows_the_last_state(method, monkeypatch):
    calls, kind = [], FaceBurst.__subclasses__()[0 if method == "tracked" else 1]
    some = kind.some

    def interrupted(self, *args):
        if len(calls) == 2:
            raise KeyboardInterrupt
        calls.append(1)
        return some(self, *args)

    monkeypatch.setattr(kind, "some", interrupted)
    r = ex.minimize(model(SPARSE), SETS["l1"], METHODS[method], tol=0, atol=0, max_iter=10**6)
    assert r.status == ex.Status.INTERRUPTED
    assert r.calls.lmos == 2 * r.n_iter > 0


@TWO
def test_time_limits_end_a_burst(method):
    options = {"tol": 0, "atol": 0, "max_iter": 10**9, "max_grads": 10**12}
    for seconds in (0.2, 2.0, 20.0):  # on a busy machine the first estimate may take a short limit whole
        r = ex.minimize(model(SPARSE), SETS["l1"], METHODS[method], max_seconds=seconds, **options)
        assert r.status == ex.Status.MAX_SECONDS
        if r.compiled:
            break
    assert r.compiled > 0


@TWO
def test_other_sets_run_without_bursts(method):
    for C in (ex.LinfBall(0.3), ex.L2Ball(1.0), ex.L1Ball(2.0, centre=np.full(DENSE.shape[1], 0.1))):
        r = ex.minimize(model(DENSE), C, METHODS[method], max_iter=40, tol=0, atol=0)
        assert r.compiled == 0
        assert r.value < model(DENSE).value(np.zeros(DENSE.shape[1]))


@TWO
def test_empty_rows_and_columns(method):
    A = sp.csr_array(np.where(np.arange(DENSE.shape[1]) % 3, SPARSE.toarray(), 0.0) * (np.arange(len(DENSE)) % 4 > 0)[:, None])
    same(model(A), SETS["l1"], method)
