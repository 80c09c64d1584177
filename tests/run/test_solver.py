"""The loop: every set x method x loss x data stays feasible and ends certified; states, seeds, types and special cases."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from cases import DIM, LOSSES, MATRIX, METHODS, SETS, N, for_separable, full, gap, linear_only, model, separable, slides, targets

import extremal as ex
from extremal.methods.cards import METHODS as NAMED

DETERMINISTIC = (ex.FrankWolfe, ex.CGS, ex.AwayFW, ex.PairwiseFW, ex.BlendedPairwiseFW, ex.BoostFW, ex.FullyCorrectiveFW)
EVERY_METHOD = pytest.mark.parametrize("method", METHODS, ids=repr)
EVERY_SET = pytest.mark.parametrize("C", SETS, ids=repr)
CONVEX = [loss for loss in LOSSES if loss.convex]


def path(f, C, method, count: int, **options) -> list:
    return list(itertools.islice(ex.iterate(f, C, method=method, **options), count))


@EVERY_METHOD
@EVERY_SET
@pytest.mark.parametrize("loss", LOSSES[:-1], ids=repr)  # the last one differs by a number only
def test_every_combination_reaches_a_certified_gap(method, C, loss, f_star):
    start = C.on(DIM).start()
    atol = 0.2 * gap(C, start, full(loss, start)[1])

    def feasible(state):
        assert C.contains(state.x, 1e-12)

    passes = 2400 if isinstance(method, (ex.OneSampleSFW, ex.SpiderRFW, ex.LuFreundSFW, ex.MostFW)) else 400  # the noisiest
    even = (METHODS.index(method) + SETS.index(C) + LOSSES.index(loss)) % 2 == 0
    kind = "dense" if even and not slides(method) else "csr"  # both go the same way, see below
    r = ex.minimize(model(loss, kind), C, method=method, tol=0, atol=atol, max_grads=passes * N, callback=feasible)
    value, g = full(loss, r.x)
    assert r.status == ex.Status.GAP
    assert r.converged
    assert r.gap <= atol
    assert r.gap == pytest.approx(gap(C, r.x, g), rel=1e-9, abs=1e-12)
    assert r.value == pytest.approx(value, rel=1e-12)
    assert C.contains(r.x, 1e-12)
    if loss.convex:
        assert -1e-8 <= value - f_star(loss, C) <= r.gap


@EVERY_SET
@pytest.mark.parametrize("loss", CONVEX, ids=repr)
def test_the_open_loop_bound(C, loss, f_star):
    L = loss.curvature * float(np.linalg.eigvalsh(MATRIX.T @ MATRIX)[-1]) / N
    for state in path(model(loss), C, ex.FrankWolfe(), 200)[1:]:
        bound = 2 * L * C.on(DIM).diameter ** 2 / (state.k + 2)
        assert full(loss, state.x)[0] - f_star(loss, C) <= bound + 1e-9


@EVERY_METHOD
def test_same_seed_same_result_bit_for_bit(method):
    for kind in ("dense", "csr"):
        f = model(ex.Logistic(), kind)
        one, two, *others = (ex.minimize(f, ex.L1Ball(2.0), method=method, seed=s, max_iter=50, tol=0) for s in (3, 3, 4, 5, 6))
        np.testing.assert_array_equal(one.x, two.x)
        assert (one.value, one.gap, one.calls, one.status) == (two.value, two.gap, two.calls, two.status)
        whole = isinstance(method, (ex.SCGS, ex.SVRF, ex.STORC)) and method.batch is None  # theory's batches: all n at once
        assert all((one.x == r.x).all() for r in others) == (whole or isinstance(method, DETERMINISTIC))


@EVERY_METHOD
@pytest.mark.parametrize("C", SETS[:4], ids=repr)
def test_dense_sparse_and_separable_go_the_same_way(method, C):
    run, *others = (path(model(ex.Logistic(), kind), C, method, 40) for kind in ("dense", "csr"))
    if not linear_only(method):
        others.append(path(separable(ex.Logistic()), C, for_separable(method, ex.Logistic(), C), 40))
    for other in others:
        if run[0].point.active is not None:  # after a line search two atoms promise the same, and a last bit decides
            assert full(ex.Logistic(), other[-1].x)[0] == pytest.approx(full(ex.Logistic(), run[-1].x)[0], abs=1e-3)
        together = 41 if run[0].point.active is None else 2
        if isinstance(method, ex.FullyCorrectiveFW):  # its inner steps are Newton's where f knows its second derivatives
            together = 1
        for a, b in zip(run[:together], other[:together], strict=True):
            np.testing.assert_allclose(a.x, b.x, atol=1e-8)


def test_a_method_for_linear_models_says_so():
    for method in (ex.LuFreundSFW(), ex.Method(ex.gradients.Substitute(5), ex.steps.OpenLoop())):
        for call in (ex.minimize, ex.iterate):
            with pytest.raises(ex.InputError, match=r"Substitute needs an objective with margins, .*LinearModel has them, Sep"):
                call(separable(ex.Logistic()), ex.L1Ball(1.0), method=method)


@EVERY_METHOD
def test_the_starting_point_is_used_and_left_alone(method):
    x0 = np.full(DIM, 0.125)
    before = x0.copy()
    r = ex.minimize(model(ex.Squared()), ex.Simplex(), method=method, x0=x0, max_iter=20)
    np.testing.assert_array_equal(x0, before)
    x0.flags.writeable = False
    first = next(ex.iterate(model(ex.Squared()), ex.Simplex(), method=method, x0=x0))
    np.testing.assert_array_equal(first.x, before)
    assert not np.shares_memory(first.x, x0)
    assert not np.shares_memory(r.x, x0)


@EVERY_METHOD
@EVERY_SET
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_float32_rows_make_the_steps_of_the_same_rows_in_float64(method, C, kind):
    f = model(ex.Logistic(), kind, np.float32)
    exact = ex.LinearModel(ex.Logistic(), f.data.dot(np.eye(DIM)), f.y)
    for state in path(f, C, method, 12):
        assert state.x.dtype == state.g.dtype == np.float64
        assert C.contains(state.x)
    r = ex.minimize(f, C, method=method, max_iter=12, x0=C.on(DIM).start().astype(np.float32))
    assert r.x.dtype == np.float64
    assert r.gap == pytest.approx(gap(C, r.x, exact.grad(r.x)), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    "method",
    [
        ex.SarahFW(batch=np.int64(5), p=np.float64(0.2)),
        ex.SagaSarahFW(batch=np.int32(5), lam=np.float64(0.2)),
        ex.FrankWolfe(step=ex.steps.TwoPhase(d=np.float64(4.0))),
        ex.FrankWolfe(step=ex.steps.Anytime(d=np.float64(4.0))),
        ex.FrankWolfe(step=ex.steps.InverseSqrt(c=np.float64(0.5))),
        ex.FrankWolfe(step=ex.steps.ShortStep(L=np.float64(3.0))),
    ],
    ids=repr,
)
def test_parameters_that_are_numpy_numbers_keep_float32(method):
    rows = separable(ex.Logistic())
    f = ex.Separable(N, DIM, grad=rows.derivs, value=rows.values, convex=True, smoothness=rows.smoothness, dtype=np.float32)
    for state in path(f, ex.L1Ball(2.0), method, 10, horizon=20):
        assert state.x.dtype == state.g.dtype == np.float32


@EVERY_METHOD
def test_states_that_were_kept_stay_true(method):
    seen, kept = [], []
    for state in path(model(ex.Logistic()), ex.L1Ball(2.0), method, 60):
        kept.append(state)
        seen.append((state.k, state.x.copy(), state.g.copy(), state.exact))
    for k, (state, (number, x, g, exact)) in enumerate(zip(kept, seen, strict=True)):
        assert state.k == number == k
        assert state.exact == exact
        np.testing.assert_array_equal(state.x, x)
        np.testing.assert_array_equal(state.g, g)


def test_states_cannot_be_spoilt():
    for state in path(model(ex.Logistic()), ex.L1Ball(2.0), ex.SarahFW(), 3):
        with pytest.raises(ValueError, match="read-only"):
            state.x[0] = 1.0


def test_the_loop_is_the_one_that_minimize_drives():
    for method in METHODS:
        f, C = model(ex.Squared(), "csr"), ex.L2Ball(1.5)
        r = ex.minimize(f, C, method=method, max_iter=30, tol=0, atol=0, seed=5)
        last = path(f, C, method, 31, seed=5, horizon=30)[-1]
        np.testing.assert_array_equal(r.x, last.x)
        assert (r.calls.grads, r.calls.lmos, r.n_iter) == (last.calls.grads, last.calls.lmos, last.k)


def test_certify_a_state_by_hand():
    f, C = model(ex.Logistic()), ex.L1Ball(2.0)
    state = path(f, C, ex.SagaSarahFW(batch=5), 8)[-1]
    spent = state.calls.grads
    certificate = state.certify()
    assert (state.calls.certificate, state.calls.grads) == (N, spent)
    assert certificate.k == 7
    assert certificate.gap == pytest.approx(gap(C, state.x, full(ex.Logistic(), state.x)[1]))
    assert certificate.value == pytest.approx(full(ex.Logistic(), state.x)[0])


def test_special_cases_coincide():
    """Sarah with p = 1, and both methods with a full batch, are Frank-Wolfe."""
    step = ex.steps.OpenLoop()
    for loss, C in itertools.product(LOSSES, SETS):
        f = model(loss)
        plain = path(f, C, ex.FrankWolfe(step=step), 40)
        for method in (ex.SarahFW(batch=3, p=1.0, step=step), ex.SarahFW(batch=N, step=step), ex.SagaSarahFW(batch=N, step=step)):
            for a, b in zip(plain, path(f, C, method, 40), strict=True):
                np.testing.assert_allclose(a.x, b.x, atol=1e-9)


def test_methods_by_name_are_their_defaults():
    f, C = model(ex.Logistic()), ex.Simplex(2.0)
    for name, kind in NAMED.items():
        if name in ("low-rank-fw", "block-fw"):  # for matrices, and for products of sets
            continue
        a, b = (ex.minimize(f, C, method=m, max_iter=15, tol=0) for m in (name, kind()))
        np.testing.assert_array_equal(a.x, b.x)
        assert repr(a.method) == repr(b.method)
    default = ex.minimize(f, C, max_iter=15, tol=0)
    assert default.method == ex.minimize(f, C, method=ex.Auto(), max_iter=15, tol=0).method


@pytest.mark.parametrize("C", [ex.L1Ball(2.0), ex.L2Ball(1.0), ex.LinfBall(0.5), ex.Simplex(), ex.Box(-1.0, 0.5)], ids=repr)
@pytest.mark.parametrize(
    "method", [ex.FrankWolfe(step=ex.steps.LineSearch()), ex.SarahFW(batch=4), ex.SagaSarahFW(batch=4)], ids=repr
)
def test_points_that_are_matrices(C, method):
    """The nearest point to the mean of some matrices, whatever the memory layout of the starting point."""
    P = np.random.default_rng(0).standard_normal((12, 3, 2))

    def value(x, idx):
        return ((x - P[idx]) ** 2).sum(axis=(1, 2)) / 2

    f = ex.Separable(12, (3, 2), grad=lambda x, idx: x - P[idx], value=value, convex=True, smoothness=1.0)
    x0 = C.on((3, 2)).start()
    plain = ex.minimize(f, C, method=method, x0=x0, max_iter=200, tol=0.05)
    fortran = ex.minimize(f, C, method=method, x0=np.asfortranarray(x0), max_iter=200, tol=0.05)
    assert plain.x.shape == (3, 2)
    assert plain.gap == pytest.approx(gap(C, plain.x, f.grad(plain.x)), abs=1e-12)
    np.testing.assert_allclose(fortran.x, plain.x, atol=1e-12)


def test_one_row_and_one_column():
    for method in METHODS:
        if any(getattr(part, "batch", None) not in (None, 1) for part in (method, getattr(method, "gradient", None))):
            continue
        f = ex.LinearModel(ex.Squared(), [[2.0]], [1.0])
        r = ex.minimize(f, ex.L1Ball(1.0), method=method, max_iter=300, tol=0, atol=1e-2)
        assert r.x == pytest.approx([0.5], abs=0.1)
        assert ex.minimize(f, ex.Simplex(), method=method, max_iter=3).x == [1.0]


def test_labels_of_one_kind_only():
    f = ex.LinearModel(ex.Logistic(), MATRIX, np.ones(N))
    assert ex.minimize(f, ex.L1Ball(1.0), method="frank-wolfe", max_iter=30).value < math.log(2)
    assert targets(ex.Logistic()).min() == -1
