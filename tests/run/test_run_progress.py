"""Progress in long runs: what is shown where, and that nothing else changes."""

from __future__ import annotations

import io
import math
import pickle
import sys
import types

import numpy as np
import pytest

import extremal as ex
from extremal.run import progress
from extremal.support import display

RNG = np.random.default_rng(0)
A = RNG.standard_normal((60, 6))
F = ex.LinearModel(ex.Squared(), A, A @ np.array([1.0, -2.0, 0, 0, 0, 0]) + RNG.standard_normal(60))
SETS = [ex.L1Ball(r) for r in (0.5, 1.0, 2.0)]


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still; ``clock.speed`` seconds go by each time somebody looks."""
    held = types.SimpleNamespace(now=0.0, speed=0.0)

    def monotonic():
        held.now += held.speed
        return held.now

    monkeypatch.setattr(progress, "time", types.SimpleNamespace(monotonic=monotonic))
    return held


class Terminal(io.StringIO):
    """A stream that says that it is one."""

    encoding = "utf-8"

    def isatty(self):
        return True


def lines(capsys):
    said = capsys.readouterr()
    assert said.out == ""
    return said.err.splitlines()


def test_nothing_is_shown_by_default(clock, capsys):
    clock.speed = 3600.0
    ex.minimize(F, SETS[1])
    ex.path(F, SETS)
    assert lines(capsys) == []


def test_a_short_run_writes_its_last_line_only(clock, capsys):
    result = ex.minimize(F, SETS[1], verbose=1)
    (line,) = lines(capsys)
    assert line.startswith("minimize: ")
    assert f"f {result.value:.8g}, gap {result.gap:.2e} = " in line
    assert line.endswith(result.status.sentence)


def test_lines_come_at_growing_intervals(clock, capsys):
    clock.speed = 0.2
    ex.minimize(F, SETS[1], "frank-wolfe", tol=0, atol=0, max_iter=400, verbose=1)
    *shown, last = lines(capsys)
    assert 4 <= len(shown) <= 12  # hundreds of states, a line each time the run is twice as old
    passes = [float(line.split()[1]) for line in shown]
    assert passes == sorted(passes)
    assert np.diff(passes)[-1] > 2 * np.diff(passes)[0]
    assert "x tolerance" not in last  # none was asked for


@pytest.mark.parametrize("method", [None, "frank-wolfe", "sarah-fw", "saga-sarah-fw", "pairwise-fw"])
def test_no_bit_and_no_count_changes(clock, capsys, method):
    kept = {"method": method, "seed": 3, "tol": 1e-12, "max_grads": 60 * F.n}
    quiet = ex.minimize(F, SETS[1], **kept)
    clock.speed = 1e6  # a line is always due
    shown = ex.minimize(F, SETS[1], **kept, verbose=1)
    assert len(lines(capsys)) > 2
    assert quiet.x.tobytes() == shown.x.tobytes()
    assert (quiet.value, quiet.gap, quiet.calls, quiet.n_iter) == (shown.value, shown.gap, shown.calls, shown.n_iter)
    assert (quiet.compiled, quiet.status) == (shown.compiled, shown.status)
    for column in ("iter", "grads", "value", "gap"):
        np.testing.assert_array_equal(quiet.trace[column], shown.trace[column])


def test_showing_is_off_the_clock(monkeypatch):
    """A screen that takes its time costs none of the run's."""
    now = [0.0]
    still = types.SimpleNamespace(perf_counter=lambda: now[0], process_time=lambda: 0.0)
    monkeypatch.setattr("extremal.support.clock.time", still)

    class Slow(display.PlainLines):
        shows = 0

        def pause(self, seconds):
            return 0.0

        def show(self, text):
            now[0] += 100.0
            Slow.shows += 1

    monkeypatch.setattr(progress, "screen", Slow)
    monkeypatch.setattr(progress, "QUIET", 0.0)
    result = ex.minimize(F, SETS[1], "sarah-fw", max_grads=50 * F.n, verbose=1)
    assert Slow.shows > 2
    assert result.seconds == 0.0


def test_a_path_says_which_set(clock, capsys):
    clock.speed = 1e6
    ex.path(F, SETS, verbose=True)
    *shown, last = lines(capsys)
    assert shown[0].startswith("path: set 1 of 3, ")
    assert shown[-1].startswith("path: set 3 of 3, ")
    assert last.endswith(" s: 3 of 3 sets are within the tolerance")


def test_runs_within_an_objective_are_not_shown(clock, capsys):
    clock.speed = 1e6

    def value(x, rows):
        ex.minimize(F, SETS[0], max_iter=1)
        return np.full(len(rows), 0.5 * x @ x)

    f = ex.Separable(1, 2, lambda x, rows: np.tile(x, (len(rows), 1)), value)
    ex.minimize(f, ex.Simplex(), "frank-wolfe", max_iter=2, verbose=1)
    passes = [float(line.split()[1]) for line in lines(capsys)]
    assert passes == sorted(passes)
    assert passes[-1] <= 5


def test_a_run_that_fails_leaves_no_last_line(clock, capsys):
    def broken(x, rows):
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        ex.minimize(ex.Separable(1, 2, broken, broken), ex.Simplex(), "frank-wolfe", verbose=1)
    assert lines(capsys) == []


@pytest.mark.parametrize("verbose", [-1, 1.5, "yes", None])
def test_what_verbose_may_be(verbose):
    for call in (lambda: ex.minimize(F, SETS[0], verbose=verbose), lambda: ex.path(F, SETS, verbose=verbose)):
        with pytest.raises(ex.InputError, match=r"verbose=\.\.\.\)` must be a whole number of at least 0"):
            call()


# where it is shown


def test_a_terminal_has_one_live_line(clock, monkeypatch):
    pytest.importorskip("rich")
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    for name, value in {"TERM": "xterm", "COLUMNS": "200"}.items():
        monkeypatch.setenv(name, value)
    clock.speed = 1.0
    ex.minimize(F, SETS[1], "frank-wolfe", tol=0, atol=0, max_iter=50, verbose=1)
    said = stream.getvalue()
    assert "\x1b[2K" in said  # the line is written over
    assert said.count("passes") > 10
    assert said.endswith("the budget of iterations is spent\n")


def test_without_rich_a_terminal_has_lines(clock, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == "rich"] + ["rich", "rich.console"]:
        monkeypatch.setitem(sys.modules, name, None)
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    ex.minimize(F, SETS[1], verbose=1)
    assert stream.getvalue().startswith("minimize: ")
    assert "\x1b" not in stream.getvalue()


def test_a_process_without_a_console_writes_nothing(clock, monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    clock.speed = 1e6
    assert ex.minimize(F, SETS[1], verbose=1).converged


def test_a_notebook_has_one_output(clock, monkeypatch, capsys):
    IPython = pytest.importorskip("IPython.display")
    seen = []

    def show(output, *, raw, display_id):
        assert raw
        assert display_id
        seen.append(output["text/plain"])
        return types.SimpleNamespace(update=lambda output, raw: seen.append(output["text/plain"]))

    monkeypatch.setattr(IPython, "display", show)
    monkeypatch.setattr(display, "_in_notebook", lambda: True)
    clock.speed = 1e6
    result = ex.minimize(F, SETS[1], verbose=1)
    assert len(seen) > 2
    assert seen[-1].endswith(result.status.sentence)
    assert lines(capsys) == []


def test_a_terminal_of_ipython_is_no_notebook():
    pytest.importorskip("IPython")
    assert not display._in_notebook()


# estimators


def estimators():
    from sklearn.linear_model import LinearRegression

    from extremal import sklearn as es

    X, y = A, F.y
    classes = y > 0
    models = [LinearRegression(), LinearRegression(fit_intercept=False)]
    return [
        (es.ConstrainedLinearRegression("l1:1"), y),
        (es.ConstrainedLinearRegression("nonneg"), y),
        (es.ConstrainedLogisticRegression("l1:1"), classes),
        (es.ConstrainedMultinomialRegression("l1:1"), np.digitize(y, (-1, 1))),
        (es.ConstrainedGLM(loss="huber", constraint="l1:1"), y),
        (es.SimplexRegression(), y),
        (es.SimplexRegression(solver="newton"), y),
        (es.StackingWeights(models), y),
        (es.LowRankCompletion(radius=3.0), None),
        (es.SparseLogisticPath(radii=[0.5, 1.0]), classes),
        (es.SparseLogisticPathCV(radii=[0.5, 1.0], cv=2), classes),
    ], X


def test_every_estimator_shows_its_fit_and_is_the_same(clock, capsys):
    pytest.importorskip("sklearn")
    from sklearn.base import clone

    for_each, X = estimators()
    for model, y in for_each:
        quiet = clone(model).fit(X, y)
        assert lines(capsys) == [], model
        loud = pickle.loads(pickle.dumps(clone(model).set_params(verbose=1))).fit(X, y)
        (line,) = lines(capsys)
        assert line.startswith(f"{type(model).__name__}: Certificate(f = "), line
        assert (quiet.objective_, quiet.dual_gap_, quiet.n_grads_) == (loud.objective_, loud.dual_gap_, loud.n_grads_)


def test_progress_of_several_runs_is_one(clock, capsys):
    pytest.importorskip("sklearn")
    from extremal.sklearn import SparseLogisticPath

    clock.speed = 1e6
    SparseLogisticPath(n_radii=3, verbose=1).fit(A, F.y > 0)
    passes = [float(line.partition(" passes")[0].split()[-1]) for line in lines(capsys)[:-1]]
    assert len(passes) > 5
    assert passes == sorted(passes)


def test_it_works_through_cross_validation(clock, capsys):
    pytest.importorskip("sklearn")
    from sklearn.model_selection import cross_val_score

    from extremal.sklearn import ConstrainedLinearRegression

    loud, quiet = (cross_val_score(ConstrainedLinearRegression("l1:1", verbose=v), A, F.y, cv=3) for v in (1, 0))
    assert len(lines(capsys)) == 3
    np.testing.assert_array_equal(loud, quiet)


def test_an_stderr_that_nobody_reads_ends_no_run(monkeypatch):
    class Closed(io.StringIO):
        def write(self, text):
            raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr(sys, "stderr", Closed())
    display.PlainLines().show("a line")


def test_rows_without_numbers_leave_those_that_are_known():
    seen = progress.RunProgress("minimize", now=lambda: 0.0)
    seen.begin(tol=1e-3, atol=0.0)
    seen.see({"passes": 1.0, "seconds": 0.5, "value": 0.5, "gap": 0.002})
    seen.see({"passes": 2.0, "seconds": 0.6, "value": math.nan, "gap": math.nan})
    assert seen.text().startswith("minimize: 2.0 passes, f 0.5, gap 2.00e-03")
