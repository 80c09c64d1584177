"""The driver: how runs stop, what they cost, what they record, what they answer."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest
from cases import DIM, METHODS, N, full, gap, model, slides

import extremal as ex
from extremal.gradients.base import Facts
from extremal.support.clock import Clock

EVERY_METHOD = pytest.mark.parametrize("method", METHODS, ids=repr)
C = ex.L1Ball(2.0)
UNTIL_BUDGET = {"tol": 0, "atol": 0}


def logistic():
    return model(ex.Logistic())


def nearest(spoil=lambda calls, x, rows: rows, value=lambda x: 0.0, n: int = 10, d: int = 3) -> ex.Separable:
    """Half the squared distance to some points; ``spoil(calls, x, rows)`` may change the gradients or raise."""
    P, calls = np.random.default_rng(0).standard_normal((n, d)), itertools.count(1)
    return ex.Separable(
        n,
        d,
        grad=lambda x, idx: spoil(next(calls), x, x - P[idx]),
        value=lambda x, idx: ((x - P[idx]) ** 2).sum(axis=1) / 2 + value(x),
        convex=True,
        smoothness=1.0,
    )


def certified(r, f) -> None:
    """The answer's value and gap are those of its point."""
    value, g = f.value_and_grad(r.x)
    assert r.value == pytest.approx(value, rel=1e-12)
    assert r.gap == pytest.approx(gap(C, r.x, g), rel=1e-9, abs=1e-12)


# how runs stop


@EVERY_METHOD
def test_gap(method):
    """At the first certificate that meets the tolerance, and not before."""
    budget = {"max_grads": 300 * N} if isinstance(method, ex.NCGS) else {}  # its batches are as large as the run is long
    r = ex.minimize(logistic(), C, method=method, tol=2e-2, atol=0, **budget)
    assert (r.status, r.converged) == ("gap", True)
    assert r.gap <= 2e-2 * r.value
    assert not any(g <= 2e-2 * v for v, g in zip(r.trace.value[:-1], r.trace.gap[:-1], strict=True))
    certified(r, logistic())


@pytest.mark.parametrize("offset", [0.0, -1.0, 5.0])
@pytest.mark.parametrize("radius", [0.05, 2.0])
def test_a_free_gap_stops_the_run_at_the_first_iterate_that_meets_the_tolerance(offset, radius):
    """Whatever the sign and size of f: 0 at the start, then negative; negative all along; positive."""
    ball, x0 = ex.L2Ball(radius), np.array([0.8 * radius, 0.0, 0.0])
    f = nearest(value=lambda x: offset - nearest().value(x0))
    r = ex.minimize(f, ball, method="frank-wolfe", x0=x0, tol=1e-3, atol=0, record=1, max_iter=10**5)
    met = r.trace.gap <= 1e-3 * np.abs(r.trace.value)
    assert met[-1]
    assert not met[:-1].any()


@EVERY_METHOD
@pytest.mark.parametrize("K", [0, 1, 17])
def test_max_iter_is_exactly_that_many(method, K):
    seen = []
    r = ex.minimize(logistic(), C, method=method, max_iter=K, callback=lambda s: seen.append(s.k), **UNTIL_BUDGET)
    if isinstance(method, ex.FullyCorrectiveFW) and r.status == ex.Status.GAP:  # it may be done before, to the last digit
        assert r.gap == 0
        return
    assert (r.status, r.converged, r.n_iter) == ("max_iter", False, K)
    assert r.calls.lmos >= K if slides(method) else r.calls.lmos == K
    assert seen == list(range(K))
    certified(r, logistic())


@EVERY_METHOD
@pytest.mark.parametrize("budget", [1, N, 10 * N + 1])
def test_max_grads_stops_at_the_first_iterate_that_has_spent_it(method, budget):
    spent = []
    r = ex.minimize(
        logistic(), C, method=method, max_grads=budget, callback=lambda s: spent.append(s.calls.grads), **UNTIL_BUDGET
    )
    assert (r.status, r.converged) == ("max_grads", False)
    assert r.calls.grads >= budget
    assert all(grads < budget for grads in spent)
    certified(r, logistic())


def test_max_seconds(hands):
    slow = nearest(spoil=lambda calls, x, rows: hands.forward(1 / 64) or rows)
    r = ex.minimize(slow, C, method="frank-wolfe", max_seconds=1.0, **UNTIL_BUDGET)
    assert (r.status, r.converged) == ("max_seconds", False)
    assert 1.0 <= r.seconds <= 1.0 + 2 / 64  # the last gradient, and one for the certificate
    assert 16 < r.n_iter <= 64
    certified(r, nearest())


def test_callback():
    r = ex.minimize(logistic(), C, method=ex.SarahFW(), callback=lambda s: s.k == 5, **UNTIL_BUDGET)
    assert (r.status, r.n_iter, r.converged) == ("callback", 5, False)
    certified(r, logistic())


def test_the_default_budget_is_a_thousand_passes():
    r = ex.minimize(model(ex.Squared()), C, method="saga-sarah-fw", **UNTIL_BUDGET)
    assert r.status == "max_grads"
    assert 1000 * N <= r.calls.grads < 1001 * N


def interrupt(*_):
    raise KeyboardInterrupt


@pytest.mark.parametrize("method", ["frank-wolfe", "sarah-fw", "saga-sarah-fw"])
def test_interrupted_in_a_callback_or_in_the_objective(method):
    for f, callback in (
        (nearest(), lambda s: interrupt() if s.k == 200 else None),
        (nearest(spoil=lambda calls, x, rows: interrupt() if calls == 200 else rows), None),
    ):
        r = ex.minimize(f, C, method=method, callback=callback, max_iter=10**6, **UNTIL_BUDGET)
        assert r.status == "interrupted"
        assert 50 <= r.n_iter <= 200
        assert r.value <= np.nanmin(r.trace.value)  # the best one that was certified
        certified(r, nearest())


def test_interrupted_before_there_is_a_point():
    with pytest.raises(KeyboardInterrupt):
        ex.minimize(nearest(spoil=interrupt), C, method="frank-wolfe")


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # numpy's, of inf - inf
@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("step", [None, ex.steps.LineSearch(), ex.steps.ShortStep()], ids=repr)
@pytest.mark.parametrize("kind", [ex.FrankWolfe, ex.SarahFW, ex.SagaSarahFW])
def test_a_gradient_that_turns_non_finite(kind, step, bad):
    f = nearest(spoil=lambda calls, x, rows: rows if calls < 60 else rows * bad)
    r = ex.minimize(f, C, method=kind(step=step), max_iter=10**5, **UNTIL_BUDGET)
    assert (r.status, r.converged) == ("non_finite", False)
    assert np.isfinite(r.x).all()
    assert 1 <= r.n_iter < 60
    assert r.value <= nearest().value(np.zeros(3))
    certified(r, nearest())


def test_a_value_that_turns_non_finite():
    x = ex.minimize(nearest(), C, method="frank-wolfe", max_iter=3, **UNTIL_BUDGET).x
    f = nearest(value=lambda at: np.nan if np.abs(at - x).max() < 1e-12 else 0.0)
    r = ex.minimize(f, C, method="frank-wolfe", max_iter=3, **UNTIL_BUDGET)
    assert r.status == "non_finite"
    assert np.isfinite(r.value)
    certified(r, nearest())


@pytest.mark.parametrize("method", ["frank-wolfe", "sarah-fw", "saga-sarah-fw", ex.SagaSarahFW(start="cold")])
def test_a_gradient_that_is_non_finite_from_the_start_is_an_error(method):
    f = nearest(spoil=lambda calls, x, rows: rows * np.nan)
    with pytest.raises(ex.NonFiniteError, match="NaN or an infinite"):
        ex.minimize(f, C, method=method, max_iter=5)
    with pytest.raises(ex.NonFiniteError, match=r"value .* is nan"):
        ex.minimize(nearest(value=lambda x: np.nan), C, method=method, max_iter=5)


@dataclass(frozen=True)
class Zero:
    """An estimator that claims nothing and costs nothing: its own gap is always 0."""

    def facts(self, n):
        return Facts(start=0, per_step=1)

    def init(self, f, x, sampler):
        return SimpleNamespace(g=np.zeros(f.shape), exact=False)

    def update(self, f, k, x_prev, x, steps, state, sampler):
        f.derivs(x, np.array([k % f.n]))  # some cost, so that certificates fall due
        return SimpleNamespace(g=np.zeros(f.shape), exact=False)


def test_an_estimated_gap_never_stops_a_run():
    x0 = C.lmo(np.zeros(DIM)).to_array()  # where the zero gradient leads: its gap is 0 there
    r = ex.minimize(logistic(), C, method=ex.Method(gradient=Zero(), step=ex.steps.OpenLoop()), x0=x0, max_iter=2000, tol=1e-3)
    assert (r.status, r.converged, r.n_iter) == ("max_iter", False, 2000)
    assert r.gap > 0.1
    certified(r, logistic())


# what runs record and answer


@EVERY_METHOD
def test_without_recording_the_trace_holds_the_certificates(method):
    r = ex.minimize(logistic(), C, method=method, max_grads=100 * N, **UNTIL_BUDGET)
    assert 1 <= len(r.trace) <= 30
    assert (r.trace.value[-1], r.trace.gap[-1], r.trace.iter[-1]) == (r.value, r.gap, r.n_iter)
    assert not np.isnan(r.trace.gap).any()


@EVERY_METHOD
@pytest.mark.parametrize("every", [0.5, 3, 1e6])
def test_rows_come_every_so_many_passes(method, every):
    spent, f = [], logistic()
    r = ex.minimize(
        f, C, method=method, max_grads=40 * N, record=every, callback=lambda s: spent.append(s.calls.grads), **UNTIL_BUDGET
    )
    t, spent = r.trace, np.array([*spent, r.calls.grads])
    np.testing.assert_array_equal(np.unique(t.grads // (every * N)), np.unique(spent // (every * N)))  # no stretch is left out
    assert (np.diff(t.iter) > 0).all()
    assert (np.diff(t.seconds) >= 0).all()
    np.testing.assert_array_equal(t.grads, spent[t.iter])
    np.testing.assert_allclose(t.passes, t.grads / N)
    assert ((t.lmos >= t.iter) if slides(method) else (t.lmos == t.iter)).all()
    assert (np.diff(t.lmos) >= np.diff(t.iter)).all()
    assert (t.iter[0], t.iter[-1], t.grads[-1]) == (0, r.n_iter, r.calls.grads)


@EVERY_METHOD
def test_recorded_rows_are_exact(method):
    r = ex.minimize(logistic(), C, method=method, max_iter=60, record=ex.Record(0.5, what=("value", "gap", "x")), **UNTIL_BUDGET)
    assert r.trace.x.shape == (len(r.trace), DIM)
    for x, value, g in zip(r.trace.x, r.trace.value, r.trace.gap, strict=True):
        exact = full(ex.Logistic(), x)
        assert value == pytest.approx(exact[0], rel=1e-12)
        assert g == pytest.approx(gap(C, x, exact[1]), rel=1e-9, abs=1e-12)
    np.testing.assert_array_equal(r.trace.x[-1], r.x)


def test_what_a_trace_holds_is_chosen():
    for what in ((), ("value",), ("x",), ("value", "x")):
        r = ex.minimize(logistic(), C, method="saga-sarah-fw", max_iter=60, record=ex.Record(1, what), **UNTIL_BUDGET)
        between = slice(1, -1)  # the first and the last row are certificates
        assert np.isnan(r.trace.gap[between]).all()
        assert np.isnan(r.trace.value[between]).all() == ("value" not in what)
        if "x" in what:
            assert len(r.trace.x) == len(r.trace)
        else:
            with pytest.raises(ex.InputError, match="holds no iterates"):
                r.trace.x


def test_columns_and_pandas():
    r = ex.minimize(logistic(), C, method=ex.FrankWolfe(), max_iter=5, record=1)
    columns = ["iter", "grads", "passes", "lmos", "seconds", "cpu", "value", "gap"]
    frame = r.trace.to_pandas()
    assert list(frame.columns) == columns
    for name in columns:
        np.testing.assert_array_equal(frame[name], getattr(r.trace, name))
        assert getattr(r.trace, name).shape == (len(r.trace),)
    np.testing.assert_array_equal(r.trace.passes, np.arange(1.0, 7.0))
    assert repr(r.trace).startswith("Trace(6 rows: iter, grads")


def test_each_row_is_watched_once():
    for method in ("frank-wolfe", "sarah-fw", "saga-sarah-fw"):
        rows = []
        r = ex.minimize(logistic(), C, method=method, max_iter=40, record=ex.Record(1, watch=rows.append), **UNTIL_BUDGET)
        assert [row["iter"] for row in rows] == list(r.trace.iter)
        assert all(row["value"] == value for row, value in zip(rows, r.trace.value, strict=True))


def test_recording_and_callbacks_are_off_the_clock(hands):
    watching = ex.Record(1, watch=lambda row: hands.forward(8.0))
    r = ex.minimize(nearest(), C, method="frank-wolfe", max_iter=3, record=watching, callback=lambda s: hands.forward(8.0))
    assert (r.seconds, hands.now > 32) == (0.0, True)
    clock = Clock()
    with clock.paused():  # it stands still, so that seconds never fall from row to row
        before = clock.seconds
        hands.forward(8.0)
        assert clock.seconds == before


def test_the_answer_is_the_callers_own():
    r = ex.minimize(logistic(), C, method="frank-wolfe", max_iter=5, record=ex.Record(what=("x",)))
    assert r.x.flags.writeable
    assert r.x.flags.owndata
    r.x[:] = 7.0
    assert not (r.trace.x[-1] == 7.0).any()


def test_an_answer_shows_itself():
    r = ex.minimize(logistic(), C, method=ex.SagaSarahFW(batch=5), max_iter=50, **UNTIL_BUDGET)
    for part in (
        "max_iter: the budget of iterations",
        "value 0.",
        "gap ",
        "converged False",
        "50 iterations",
        "560 component",
        "50 LMOs",
    ):
        assert part in repr(r)
    assert "SagaSarah(batch=5, lam=0.0416" in repr(r)
    assert r.method.gradient == ex.gradients.SagaSarah(5, 5 / (2 * N))
