"""Figures, runs, tuning, minima and studies: that they are what was asked for, to the last bit."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from panels_by_hand import libsvm

import extremal as ex
from extremal.checks import InputError
from extremal.methods.cards import METHODS
from extremal_lab.reproduction import FIGURES, ledger, plan, progress, report, sources, spec, studies, tasks
from extremal_lab.reproduction.plan import Work
from extremal_lab.reproduction.store import Store

# what the figures are


def test_the_figures_are_the_papers():
    five = ["a9a", "breast-cancer_scale", "madelon", "mushrooms", "w8a"]
    four = [name for name in five if name != "madelon"]
    want = {
        "fig1": (five, "logistic", "l1:2000"), "fig2": (four, "nonlinear-least-squares", "l1:2000"),
        "fig3": (four, "logistic", "l1:200"), "fig4": (four, "logistic", "l1:20"), "fig5": (four, "logistic", "l1:2"),
    }  # fmt: skip
    assert list(FIGURES) == list(want)
    for name, (data, loss, set_) in want.items():
        assert [(p.data, p.loss, p.set) for p in FIGURES[name].problems] == [(d, loss, set_) for d in data]
        assert FIGURES[name].seeds >= 5
        assert FIGURES[name].batch_size(22696) == 227 == math.ceil(22696 / 100)
    seven = {"momentum-sfw", "negiar-sfw", "lu-freund-sfw", "most-fw", "spider-rfw", "sarah-fw", "saga-sarah-fw"}
    assert set(FIGURES["fig1"].methods) == seven | {"copt-momentum-sfw"}
    assert set(FIGURES["fig1"].methods) <= set(METHODS)
    assert 1.0 in spec.FACTORS
    assert len({figure.factors for figure in FIGURES.values()}) == 1


def test_quick_is_smaller():
    quick = spec.quick(FIGURES["fig1"])
    assert quick.passes < 100
    assert quick.seeds == 2
    assert len(quick.factors) == 3
    assert set(quick.factors) <= set(spec.FACTORS)


@pytest.mark.parametrize("text", ["n/0", "m/10", "n/", "-5", "0", "1.5", "many", ""])
def test_batch_sizes_that_cannot_be_read(text):
    with pytest.raises(InputError, match="batch size"):
        spec.batch_size(text, 100)


@pytest.mark.parametrize(
    ("change", "word"),
    [({"passes": 0}, "passes"), ({"seeds": 0}, "seeds"), ({"rows": 0}, "rows"), ({"methods": ()}, "one method")],
)
def test_figures_that_cannot_be(figure, change, word):
    with pytest.raises(InputError, match=word):
        replace(figure, **change)


# runs


def run_of(file, **changes):
    held = {
        "loss": "logistic",
        "set": "l1:3",
        "method": "sarah-fw",
        "batch": 2,
        "factor": 1.0,
        "seed": 1,
        "passes": 10.0,
        "rows": 20,
    }
    return tasks.Run(sources.resolve(str(file)), **(held | changes))


def test_a_run_is_what_minimize_does(file):
    run = run_of(file)
    got = run.execute()
    A, y = libsvm(file)
    f = ex.LinearModel(ex.Logistic(), A, y)
    xs = ex.minimize(
        f, ex.L1Ball(3.0), ex.SarahFW(batch=2), seed=1, max_grads=10 * f.n, tol=0, atol=0,
        record=ex.Record(every=1e-9, what=("value", "gap", "x")),
    ).trace  # fmt: skip
    assert len(got["value"]) == 21
    assert got["value"][0] == pytest.approx(math.log(2), rel=1e-12)
    for j, passes in enumerate(np.linspace(0, 10, 21)):  # at each place of the grid, the first iterate that has spent as much
        at = np.flatnonzero(xs.passes >= passes - 1e-9)[0]
        assert (got["passes"][j], got["lmos"][j]) == (xs.passes[at], xs.lmos[at])
        x = xs.x[at]
        g = A.T @ (-y / (1 + np.exp(y * (A @ x)))) / len(y)
        assert got["value"][j] == pytest.approx(np.mean(np.log1p(np.exp(-y * (A @ x)))), rel=1e-10)
        assert got["gap"][j] == pytest.approx(g @ x + 3 * np.abs(g).max(), rel=1e-8, abs=1e-12)


def test_a_run_says_its_batch_and_whether_it_projects(file):
    n = 200
    for method, batch, want, projects in (
        ("sarah-fw", None, math.ceil(math.sqrt(n)), False),
        ("sarah-fw", 7, 7, False),
        ("frank-wolfe", 7, 0, False),  # which has no batches
        ("svrf", None, 0, False),  # theory's grow
        ("most-fw", 7, 7, False),  # an estimator inside another one
        ("vr-sliding:oracle=project", 7, 7, True),
        ("vr-sliding:oracle=lmo", 7, 7, False),
    ):
        got = run_of(file, method=method, batch=batch, passes=2.0, rows=2).execute()
        assert (int(got["batch"]), bool(got["projects"])) == (want, projects), method


def test_p_passes_are_p_minus_1_steps_of_frank_wolfe_and_the_settings_say_so(file, figure, panels):
    got = run_of(file, method="frank-wolfe", passes=5.0, rows=5).execute()
    assert (got["passes"][-1], got["lmos"][-1]) == (5, 4)
    assert "P passes are P - 1 steps of Frank-Wolfe" in report.settings([(figure, panels)])["passes"]


def test_runs_are_the_same_to_the_last_bit(file, tmp_path):
    from extremal_lab.reproduction.pool import run_all

    runs = [run_of(file, method=m, seed=s) for m in ("sarah-fw", "negiar-sfw") for s in (0, 1)]
    here = {run: run.execute() for run in runs}
    there = run_all(runs, Store(tmp_path / "kept"), 2)
    for run in runs:
        for column in ("passes", "lmos", "value", "gap"):
            np.testing.assert_array_equal(here[run][column], there[run][column])
    assert not np.array_equal(here[runs[0]]["value"], here[runs[1]]["value"])


def test_a_changed_file_is_another_source(file):
    before = sources.resolve(str(file))
    sources.objective.cache_clear()
    assert sources.resolve(str(file)) == before
    file.write_text(file.read_text().replace("1:", "1:1", 1))
    assert sources.resolve(str(file)).digest != before.digest
    with pytest.raises(InputError, match="changed while they were used"):
        sources.objective(before, "logistic")


def test_some_rows_of_a_source(file):
    some = sources.resolve(str(file), rows=50)
    assert (some.n, some.d) == (50, 6)
    A, _ = libsvm(file)
    margins = sources.objective(some, "logistic").margins(np.eye(6)[0])
    assert set(margins.round(3)) <= set(A[:, 0])
    assert "50 random rows" in some.text
    with pytest.raises(InputError, match="rows"):
        sources.resolve(str(file), rows=201)


def test_sources_that_are_not_there():
    with pytest.raises(InputError, match="neither a file nor one of a8a"):
        sources.resolve("no-such-data")


def test_a_stand_in_says_so(monkeypatch):
    monkeypatch.setattr(sources.datasets, "find", lambda name: None)
    tried = []

    def unreachable(name):
        tried.append(name)
        raise sources.datasets.DownloadError("no network")

    work = Work(None, fetch=unreachable)
    source = work.find("breast-cancer_scale")
    assert work.find("mushrooms").origin == source.origin == "stand-in"
    assert (tried, work.troubles) == (["breast-cancer_scale"], ["no network"])  # the next one would fail as well
    assert "not breast-cancer_scale" in source.text
    assert (source.n, source.d) == (683, 10)


def test_labels_that_a_loss_does_not_take(tmp_path):
    path = tmp_path / "three.svm"
    path.write_text("1 1:1\n2 1:2\n3 1:3\n")
    with pytest.raises(InputError, match="takes two classes, and there are 3"):
        sources.objective(sources.resolve(str(path)), "logistic")


# tuning, minima, panels


def test_the_best_trial_is_taken(figure, tmp_path):
    comparison = plan.Contest(figure, Work(Store(tmp_path / "kept")))
    problem, method = figure.problems[0], "sarah-fw"
    low, high = comparison.trials(problem, method)
    for values, best in (((0.5, 0.4), 1.0), ((0.3, 0.4), 0.1), ((np.nan, 0.4), 1.0), ((0.4, 0.4), 1.0), ((0.4, np.inf), 0.1)):
        results = {run: {"value": np.array([9.0, v])} for run, v in zip((low, high), values, strict=True)}
        assert comparison.best(problem, method, results).factor == best
    assert low.seed == high.seed == spec.TUNING_SEED not in range(figure.seeds)


def test_panels_hold_what_was_run(figure, panels):
    for panel, problem in zip(panels, figure.problems, strict=True):
        assert panel.problem == problem
        assert [(c.method, c.steps) for c in panel.curves] == [(m, s) for m in figure.methods for s in ("own", "tuned")]
        for curve in panel.curves:
            assert curve.factor == 1.0 if curve.steps == "own" else curve.factor in figure.factors
            assert len(curve.runs) == 2
            assert curve.batch == 2
            assert curve.edge == (curve.steps == "tuned")  # of two trials, each is at an end
        lowest = min(run["value"].min() for curve in panel.curves for run in curve.runs)
        assert panel.minimum <= lowest
        assert panel.maximum == max(run["value"].max() for curve in panel.curves for run in curve.runs)
        assert panel.gap < 1e-8
    assert [panel.convex for panel in panels] == [True, False]


def test_the_minimum_is_the_minimum(panels, file):
    """Against projected gradient, which knows nothing of barriers."""
    from test_real_data import accelerated_projected_gradient

    A, y = libsvm(file)
    f = ex.LinearModel(ex.Logistic(), A, y)
    assert panels[0].minimum == pytest.approx(accelerated_projected_gradient(f, 3.0), abs=1e-7)


def test_without_trials_there_is_no_tuned_curve(figure, tmp_path):
    alone = replace(figure, factors=(), problems=figure.problems[:1])
    (panel,) = plan.Contest(alone, Work(Store(tmp_path / "kept"))).panels()
    assert {curve.steps for curve in panel.curves} == {"own"}


def test_the_study_of_starts_reads_every_convex_problem_of_the_figures(monkeypatch):
    look = studies.Look(Work(None))
    monkeypatch.setattr(Work, "find", lambda self, data: sources.Source(data, "real", data, 100, 3, 300, "0"))
    wanted = {p for figure in FIGURES.values() for p in figure.problems if p.loss == "logistic"}
    assert set(look.convex()) == wanted
    assert {p.set for p in wanted} == {"l1:2000", "l1:200", "l1:20", "l1:2"}
    shown = plan.Contest(FIGURES["fig5"], look.work).first_tasks()
    runs = [
        run for (p, m), held in studies._start_runs(look, False).items() for run in held if (p.set, m) == ("l1:2", "sarah-fw")
    ]
    assert set(runs) <= set(shown)  # no run is made twice


@pytest.mark.parametrize("name", ["batches", "starts", "memory"])
def test_studies_on_data_of_ones_own(name, file, tmp_path):
    """Fewer rows than the study asks for: it takes what there is."""
    from rich.console import Console

    from extremal_lab.reproduction.studies import run_studies

    with open(tmp_path / "said", "w") as said:
        (found,) = run_studies([name], Work(Store(tmp_path / "kept")), Console(file=said), quick=True, data=str(file))
    rows = ledger.judge([], [found])
    assert rows
    assert all(row["verdict"] in ("holds", "holds in part", "does not hold here", "undecided") for row in rows)
    assert all("mine.svm" in row["on"] for row in rows)


def test_the_study_of_compression_counts_the_bytes_of_its_runs(file, tmp_path):
    from rich.console import Console

    from extremal_lab.reproduction.studies import run_studies

    with open(tmp_path / "said", "w") as said:
        work = Work(Store(tmp_path / "kept"))
        (found,) = run_studies(["compression"], work, Console(file=said), quick=True, data=str(file))
    (table,), d = found.page["tables"], work.find(str(file)).d
    rows = {row[0]: row[1:] for row in table["rows"]}
    assert {"ef21-fw, compressor=none, workers=10", "ef21-fw, compressor=natural, workers=10"} <= set(rows)
    assert rows["ef21-fw, compressor=none, workers=10"][0] == str(10 * 8 * d)
    assert rows["ef21-fw, compressor=natural, workers=10"][0] == str(10 * -(-3 * d // 2))
    assert {len(row) for row in table["rows"]} == {len(table["columns"])}
    assert [plot["title"] for plot in found.page["plots"]] == [
        "Error against bytes, to a server",
        "Error against bytes, on a ring",
    ]
    least = {key[1]: many for key, many in found.numbers.items() if key[2] == 1e-1}
    assert least["ef21-fw:compressor=natural:workers=10"] < least["ef21-fw:compressor=none:workers=10"] < np.inf


def test_progress_without_a_terminal_stays_off_stdout(monkeypatch, capsys):
    from rich.console import Console

    monkeypatch.setattr(progress, "LINE_EVERY", 0.0)
    with progress.shown(Console(force_terminal=False), "fig1", total=2.0) as seen:
        seen(SimpleNamespace(cost=1.0), fresh=True)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("fig1: 1 runs, 50 %")


def test_the_memory_of_a_table_is_seen(tmp_path):
    from extremal_lab.reproduction.memory import Memory

    libsvm(tmp_path / "wide.svm", n=500, d=60)
    source = sources.resolve(str(tmp_path / "wide.svm"))
    pairs = [(m, kind) for m in ("sarah-fw", "saga-sarah-fw") for kind in ("linear", "separable")]
    held = {pair: float(Memory(source, *pair).execute()["bytes"]) for pair in pairs}
    more = (held["saga-sarah-fw", "separable"] - held["sarah-fw", "separable"]) / 8
    assert more == pytest.approx(500 * 60, rel=0.1)
    assert (held["saga-sarah-fw", "linear"] - held["sarah-fw", "linear"]) / 8 < 3 * 500
