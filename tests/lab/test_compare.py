"""`extremal_lab.compare`: anyone's problems and methods, measured alike; tables, tuning, merging, mistakes."""

import json
import math
import os
import sys
from dataclasses import dataclass

import numpy as np
import pytest

import extremal as ex
from extremal.checks import InputError
from extremal.files import datasets
from extremal_lab import METRICS, Comparison, Loop, Problem, compare
from extremal_lab.reproduction import own, pool, tasks
from extremal_lab.reproduction.spec import TUNING_SEED

rng = np.random.default_rng(0)
A = rng.standard_normal((200, 6))
Y = np.sign(A[:, 0] - 0.5 * A[:, 1] + 0.7 * rng.standard_normal(200))
MORE = rng.standard_normal((50, 6))
MORE_Y = np.sign(MORE[:, 0] - 0.5 * MORE[:, 1])
SMALL = {"passes": 6, "seeds": 2, "rows": 6}


def frank_wolfe(f, C, x, rng):
    """The plain loop."""
    k = 0
    while True:
        x = x + 2 / (k + 2) * (C.lmo(f.grad(x)).to_array() - x)
        yield x
        k += 1


@dataclass(frozen=True)
class Halves:
    """A method of the user's own: a recipe that halves the usual steps, with a parameter."""

    size: float = 0.5
    batch: int | None = None

    def prepare(self, f, C, budget):
        return ex.Method(ex.gradients.Sarah(self.batch or 10, 0.2), ex.steps.Scaled(ex.steps.OpenLoop(), self.size)).prepare(
            f, C, budget
        )


@pytest.fixture(scope="module")
def found():
    problems = {
        "mine": (A, Y, ex.Logistic(), ex.L1Ball(2.0)),
        "bent": (ex.LinearModel(ex.NonlinearLeastSquares(), A, (Y + 1) / 2), "l1:3"),
    }
    test = {"mine": (MORE, MORE_Y), "bent": ex.LinearModel(ex.NonlinearLeastSquares(), MORE, (MORE_Y + 1) / 2)}
    return compare(
        problems, {"plain": frank_wolfe, "fw": ex.FrankWolfe(ex.steps.OpenLoop()), "halves": Halves}, test=test, **SMALL
    )


# what is measured


def curve(found, problem, method, steps="own"):
    (panel,) = [panel for panel in found.panels if panel.problem.key == problem]
    (held,) = [c for c in panel.curves if (own.named(c.method), c.steps) == (method, steps)]
    return panel, held


def test_a_loop_is_measured_as_the_recipe_that_does_the_same(found):
    """Frank-Wolfe as a plain loop takes the steps of `FrankWolfe`, but asks for a gradient less: none at its last point."""
    for problem in ("mine", "bent"):
        (_, loop), (_, recipe) = (curve(found, problem, name) for name in ("plain", "fw"))
        assert loop.runs[0]["lmos"][-1] == loop.runs[0]["passes"][-1] == 6
        assert recipe.runs[0]["lmos"][-1] == recipe.runs[0]["passes"][-1] - 1 == 5
        np.testing.assert_allclose(loop.runs[0]["value"][:6], recipe.runs[0]["value"][1:], rtol=1e-12)


def test_metrics_are_those_of_the_points(found):
    f = ex.LinearModel(ex.Logistic(), A, Y)
    r = ex.minimize(f, ex.L1Ball(2.0), ex.FrankWolfe(), max_grads=6 * f.n, tol=0, atol=0)
    (row,) = [row for row in found.rows() if (row["problem"], row["method"]) == ("mine", "fw")]
    assert row["value"] == pytest.approx(r.value, rel=1e-12)
    assert row["gap"] == pytest.approx(r.gap, rel=1e-9)
    assert row["nonzeros"] == np.count_nonzero(r.x)
    assert row["test"] == pytest.approx(np.mean(np.log1p(np.exp(-MORE_Y * (MORE @ r.x)))), rel=1e-12)
    assert (row["passes"], row["lmos"], row["bytes"], row["seeds"]) == (6, 5, 0, 2)
    panel, _ = curve(found, "mine", "fw")
    assert row["excess"] == pytest.approx(r.value - panel.minimum, abs=1e-12)
    assert panel.minimum == pytest.approx(ex.minimize(f, ex.L1Ball(2.0), tol=1e-10).value, abs=1e-9)


def test_gaps_along_a_run_are_for_problems_that_are_not_convex(found):
    panel, held = curve(found, "bent", "fw")
    (row,) = [row for row in found.rows() if (row["problem"], row["method"]) == ("bent", "fw")]
    gaps = np.array([run["gap"] for run in held.runs])
    assert not panel.convex
    assert row["best_gap"] == pytest.approx(gaps.min())
    assert row["average_gap"] == pytest.approx(gaps[:, 1:].mean())
    assert all(math.isnan(row["best_gap"]) for row in found.rows() if row["problem"] == "mine")


def test_the_table_has_chosen_columns_or_all():
    few = compare((A, Y, "logistic", "l1:2"), "frank-wolfe", metrics=["gap", "passes"], **SMALL)
    (row,) = few.rows()
    assert list(row) == ["problem", "method", "steps", "trials", "chosen", "seeds", "gap", "passes"]
    assert "nonzeros" not in few.panels[0].curves[0].runs[0]
    assert set(METRICS) > set(row) - {"problem", "method", "steps", "trials", "chosen", "seeds"}


def test_the_table_with_and_without_pandas(found, monkeypatch):
    frame = found.table()
    assert list(frame["method"]) == ["plain", "fw", "halves"] * 2
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert [row["method"] for row in found.table()] == ["plain", "fw", "halves"] * 2


def test_what_an_accuracy_costs(found):
    panel, held = curve(found, "mine", "fw")
    left = held.runs[0]["value"] - panel.minimum
    rows = {row["method"]: row for row in found.time_to(float(left[3]) * 1.0001, by="passes") if row["problem"] == "mine"}
    assert rows["fw"]["passes"] == held.runs[0]["passes"][np.flatnonzero(left <= left[3])[0]]
    assert rows["fw"]["reached"] == 2
    rows = found.time_to(1e-13, by="lmos")
    assert {row["reached"] for row in rows} == {0}
    assert all(math.isinf(row["lmos"]) for row in rows)
    by_gap = {row["method"]: row for row in found.time_to(1e9, by="passes", of="gap") if row["problem"] == "bent"}
    assert by_gap["fw"]["passes"] == curve(found, "bent", "fw")[1].runs[0]["passes"][0]
    with pytest.raises(InputError, match=r"unknown cost of `time_to\(by=...\)` 'hours'"):
        found.time_to(1e-3, by="hours")


def test_bytes_are_those_of_calls_that_count_them():
    calls = ex.run.Calls()
    assert tasks.sent(calls) == getattr(calls, "bytes", 0)
    calls.bytes = 12
    assert tasks.sent(calls) == 12


def test_a_share_of_the_rows_is_held_out():
    some = compare({"mine": (A, Y, "logistic", "l1:2")}, "frank-wolfe", test=0.25, **SMALL)
    panel, held = curve(some, "mine", "frank-wolfe")
    assert panel.source.n == 150
    order = np.random.default_rng(0).permutation(200)
    out, rest = order[:50], order[50:]
    f = ex.LinearModel(ex.Logistic(), A[rest], Y[rest])
    x = ex.minimize(f, ex.L1Ball(2.0), ex.FrankWolfe(), max_grads=6 * f.n, tol=0, atol=0).x
    assert held.runs[0]["test"][-1] == pytest.approx(np.mean(np.log1p(np.exp(-Y[out] * (A[out] @ x)))), rel=1e-10)
    assert "held out" in panel.source.text


def test_a_budget_of_seconds_ends_runs():
    timed = compare((A, Y, "logistic", "l1:2"), ["frank-wolfe", frank_wolfe], seconds=0.02, seeds=1, rows=5, verbose=1)
    for row in timed.rows():
        assert 1 < row["passes"] < 1e6
    assert timed.figure.budget == "0.02 seconds"
    for held in timed.panels[0].curves:
        assert (np.diff(held.runs[0]["passes"]) >= 0).all()
    both = compare((A, Y, "logistic", "l1:2"), "frank-wolfe", seconds=60, passes=3, seeds=1)
    assert both.rows()[0]["passes"] == 3


# tuning


def test_any_parameter_is_tuned_by_trials_of_their_own_seed():
    tune = {"halves": {"size": [0.5, 1.0], "batch": [5]}, "sarah": {"batch": [5, 40]}, "fw": {"factor": [0.1, 1.0]}}
    methods = {"halves": Halves(), "sarah": ex.SarahFW(), "fw": ex.FrankWolfe()}
    held = compare({"mine": (A, Y, "logistic", "l1:2")}, methods, tune=tune, **SMALL)
    f, chosen = ex.LinearModel(ex.Logistic(), A, Y), {row["method"]: row for row in held.rows() if row["steps"] == "tuned"}
    trials = {batch: ex.SarahFW(batch=batch) for batch in (5, 40)}
    ends = {b: ex.minimize(f, ex.L1Ball(2.0), m, seed=TUNING_SEED, max_grads=6 * f.n, tol=0).value for b, m in trials.items()}
    best = min(ends, key=ends.get)
    assert chosen["sarah"]["chosen"] == f"batch={best}"
    again = ex.minimize(f, ex.L1Ball(2.0), trials[best], seed=0, max_grads=6 * f.n, tol=0)
    assert curve(held, "mine", "sarah", "tuned")[1].runs[0]["value"][-1] == pytest.approx(again.value, rel=1e-12)
    assert chosen["halves"]["chosen"] in ("size=0.5, batch=5", "size=1, batch=5")
    assert {row["trials"] for row in chosen.values()} == {2}
    assert held.study()["caution"] == []


def test_different_numbers_of_trials_are_refused_or_stated():
    tune = {"frank-wolfe": {"factor": [0.1, 1.0]}}
    problem, methods = (A, Y, "logistic", "l1:2"), ["frank-wolfe", ex.TrackedFW()]
    with pytest.raises(InputError, match=r"same number of trials for each method, got frank-wolfe 2, TrackedFW 0; unequal=True"):
        compare(problem, methods, tune=tune, **SMALL)
    stated = compare(problem, methods, tune=tune, unequal=True, **SMALL)
    assert stated.study()["caution"] == ["Methods had different numbers of trials: frank-wolfe 2, TrackedFW 0."]


def test_the_papers_constants_leave_methods_without_a_parameter_alone():
    methods, figures = ["sarah-fw", "tracked-fw", frank_wolfe], []
    compare((A, Y, "logistic", "l1:2"), methods, tune=True, run=lambda figure: figures.append(figure) or [])
    assert [len(figures[0].trials(method)) for method in figures[0].methods] == [14, 0, 0]


# saving and merging


def test_what_is_saved_is_read_again_to_the_last_bit(found, tmp_path):
    path = found.save(tmp_path / "mine.json")
    again = Comparison.load(path)
    assert repr(again.rows()) == repr(found.rows())
    assert again.figure == found.figure
    assert json.loads(path.read_text())["format"] == "extremal comparison 1"
    for one, two in zip(found.panels, again.panels, strict=True):
        for c, d in zip(one.curves, two.curves, strict=True):
            for first, second in zip(c.runs, d.runs, strict=True):
                for name in first:
                    np.testing.assert_array_equal(first[name], second[name])


@pytest.mark.parametrize("text", ["{}", "[1]", "no json", '{"format": "extremal comparison 0"}'])
def test_files_that_are_no_comparisons(tmp_path, text):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(InputError, match="not a saved comparison"):
        Comparison.load(tmp_path / "x.json")


def test_machines_share_methods_and_seeds(tmp_path):
    problem = {"mine": (A, Y, "logistic", "l1:2")}
    one = compare(problem, ["frank-wolfe", "sarah-fw"], **SMALL)
    two = compare(problem, ["sarah-fw", "negiar-sfw"], first_seed=2, **SMALL)
    both = Comparison.merge(one.save(tmp_path / "one.json"), two)
    runs = {own.named(c.method): (c.seeds, len(c.runs)) for c in both.panels[0].curves}
    assert runs == {"frank-wolfe": ((0, 1), 2), "sarah-fw": ((0, 1, 2, 3), 4), "negiar-sfw": ((2, 3), 2)}
    whole = compare(problem, "sarah-fw", **(SMALL | {"seeds": 4}))
    np.testing.assert_array_equal(curve(both, "mine", "sarah-fw")[1].runs[3]["value"], whole.panels[0].curves[0].runs[3]["value"])
    assert Comparison.merge(both, both).rows() == both.rows() or repr(Comparison.merge(both, both).rows()) == repr(both.rows())
    assert len(both.machines) == 1


def test_other_problems_under_one_name_are_refused():
    one = compare({"mine": (A, Y, "logistic", "l1:2")}, "frank-wolfe", **SMALL)
    changed = A.copy()
    changed[3, 2] += 0.01
    two = compare({"mine": (changed, Y, "logistic", "l1:2")}, "sarah-fw", **SMALL)
    with pytest.raises(InputError, match="the problem 'mine' is not the same"):
        Comparison.merge(one, two)
    noise = compare({"mine": (A * (1 + 1e-13), Y, "logistic", "l1:2")}, "sarah-fw", **SMALL)  # rounding of another machine
    assert len(Comparison.merge(one, noise).rows()) == 2
    other = compare({"mine": (A, Y, "logistic", "l1:2")}, "sarah-fw", **(SMALL | {"passes": 7}))
    with pytest.raises(InputError, match="different passes cannot be merged"):
        Comparison.merge(one, other)


def test_a_page_of_two_machines_says_so(found, tmp_path):
    other = Comparison(found.figure, found.panels, ({"machine": {"processor": "another"}, "versions": {}},), found.names)
    text = Comparison.merge(found, other).page(tmp_path / "page.html").read_text()
    assert "come from 2 machines" in text
    assert "another" in text
    assert "All metrics" in text


def test_stand_ins_are_warned_of(monkeypatch):
    monkeypatch.setattr(datasets, "find", lambda name: None)
    with pytest.warns(UserWarning, match="not the real data: breast-cancer_scale"):
        compare(("breast-cancer_scale", "l1:2"), "frank-wolfe", passes=2, seeds=1)


# workers, and what is kept


def test_objects_that_cannot_travel_run_here(tmp_path, monkeypatch):
    (tmp_path / "for_workers.py").write_text(
        "import os, extremal as ex\n"
        "class Marked:\n"
        "    def prepare(self, f, C, budget):\n"
        f"        with open(r'{tmp_path}/' + str(os.getpid()), 'a') as marks: marks.write('x')\n"
        "        return ex.FrankWolfe().prepare(f, C, budget)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    from for_workers import Marked

    def local(f, C, x, rng):
        yield from frank_wolfe(f, C, x, rng)

    problem = {"mine": (A, Y, "logistic", "l1:2")}
    there = compare(problem, {"marked": Marked(), "local": local}, workers=2, **SMALL)
    marks = {path.name: len(path.read_text()) for path in tmp_path.iterdir() if path.name.isdecimal()}
    assert marks.pop(str(os.getpid())) == 1  # the check before all runs
    assert sum(marks.values()) == 2  # one for each seed
    here = compare(problem, {"marked": Marked(), "local": local}, **SMALL)
    assert len((tmp_path / str(os.getpid())).read_text()) == 4
    for one, two in zip(there.panels[0].curves, here.panels[0].curves, strict=True):
        np.testing.assert_array_equal(one.runs[1]["value"], two.runs[1]["value"])
    assert own.HELD == {}


def test_named_things_are_kept_and_objects_are_not(file, tmp_path):
    problem = Problem(str(file), set="l1:2")
    for _ in range(2):
        compare(problem, ["frank-wolfe", {"mine": ex.FrankWolfe()}["mine"]], cache=tmp_path / "kept", **SMALL)
        assert len(list((tmp_path / "kept").rglob("*.npz"))) == 3  # two seeds of the named method, and the minimum


def test_code_that_changed_is_another_key(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "changing_code.py").write_text("x = 1\n")
    own._digest.cache_clear()
    before = own.code_of({"method": "changing_code:x", "set": "l1:2"})
    assert list(before) == ["changing_code:x"]
    (tmp_path / "changing_code.py").write_text("x = 2\n")
    own._digest.cache_clear()
    assert own.code_of({"method": "changing_code:x"}) != before


def test_results_do_not_need_the_objects_that_made_them(found):
    assert own.HELD == {}
    assert found.study()["tables"]
    assert repr(found) == "Comparison(methods=3, problems=2, budget='6 full gradients')"
    assert pool.run_all([], None, 1) == {}


# mistakes


def ended(f, C, x, rng):
    yield C.lmo(f.grad(x)).to_array()


def outside(f, C, x, rng):
    yield x + 100.0


SUM = ex.Separable(5, 6, lambda x, i: np.tile(x, (len(i), 1)), lambda x, i: np.full(len(i), 0.5 * x @ x), convex=True)


@pytest.mark.parametrize(
    ("problems", "options", "words"),
    [
        ((A, Y), {}, "`compare(problems=...)` must have problems of the form"),
        ((A, Y[:3], "logistic", "l1:2"), {}, "one target for each of its rows, got shapes (200, 6) and (3,)"),
        ((A, Y, "logstic", "l1:2"), {}, "did you mean 'logistic'"),
        ((A, Y, "logistic", "l9:2"), {}, "unknown set 'l9'"),
        ((A, Y, "logistic", 3), {}, "must have sets such as"),
        ((A, Y, 3, "l1:2"), {}, "must have losses such as"),
        ((A, Y, "logistic", "l1:2"), {"methods": "nothing"}, "nothing"),
        ((A, Y, "logistic", "l1:2"), {"methods": 3}, "must be a method with prepare"),
        ((A, Y, "logistic", "l1:2"), {"methods": {"sarah-fw": ex.FrankWolfe()}}, "must not call another method 'sarah-fw'"),
        ((A, Y, "logistic", "l1:2"), {"methods": {"mine": outside}}, "the loop outside must yield points of the set"),
        ((A, Y, "logistic", "l1:2"), {"methods": []}, "at least one problem and one method"),
        ((A, Y, "logistic", "l1:2"), {"test": 1.5}, "`compare(test=...)` must be a number in (0, 0.9]"),
        ((A, Y, "logistic", "l1:2"), {"test": {"his": 0.1}}, "unknown problem"),
        ((A, Y, "logistic", "l1:2"), {"metrics": ["speed"]}, "unknown metric 'speed'"),
        ((A, Y, "logistic", "l1:2"), {"metrics": "gap"}, "must be a sequence such as"),
        ((A, Y, "logistic", "l1:2"), {"passes": -1}, "passes"),
        ((A, Y, "logistic", "l1:2"), {"seconds": 0}, "seconds"),
        ((A, Y, "logistic", "l1:2"), {"workers": 0}, "workers"),
        ((A, Y, "logistic", "l1:2"), {"tune": {"frank-wolfe": {"bath": [1]}}}, "bath"),
        ((A, Y, "logistic", "l1:2"), {"tune": {"frank-wolfe": {"factor": 1}}}, "lists of values"),
        ((A, Y, "logistic", "l1:2"), {"tune": {"svrf": {"factor": [1.0]}}}, "unknown method of `compare(tune=...)`"),
        (
            (A, Y, "logistic", "l1:2"),
            {"methods": {"m": Halves()}, "tune": {"m": {"bath": [1]}}},
            "Halves has no parameter 'bath'",
        ),
        ((A, Y, "logistic", "l1:2"), {"methods": {"m": ended}, "tune": {"m": {"factor": [1.0]}}}, "which no factor can scale"),
        ([(A, Y, "logistic", "l1:2")] * 0, {}, "at least one problem"),
        ((A, Y, ex.Logistic(), ex.L1Ball(2.0, shape=3)), {}, "shape"),
        ((SUM, ex.L1Ball(2.0)), {"methods": ["frank-wolfe", ex.TrackedFW()]}, "TrackedFW on problem 1: "),
    ],
)
def test_mistakes_are_one_sentence(problems, options, words):
    with pytest.raises(InputError) as raised:
        compare(problems, options.pop("methods", "frank-wolfe"), **({"passes": 2, "seeds": 1} | options))
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


def test_an_objective_that_is_no_linear_model():
    (row,) = compare((SUM, ex.Simplex()), "frank-wolfe", **SMALL).rows()
    assert row["value"] == pytest.approx(0.5 / 6 + row["excess"], rel=1e-6)  # the least norm on the simplex is that of its centre
    assert row["excess"] < 0.1


def test_a_loop_that_ends_ends_its_run():
    f = ex.LinearModel(ex.Logistic(), A, Y)
    r = ex.minimize(f, ex.L1Ball(2.0), Loop(ended), max_iter=10, tol=0)
    assert (r.n_iter, r.calls.lmos) == (1, 1)
    (row,) = compare((f, ex.L1Ball(2.0)), {"ended": ended}, **SMALL).rows()
    assert row["passes"] == 1
