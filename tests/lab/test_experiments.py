"""Figures, tuning, minima, reports and verdicts: that they say what was run, and nothing else."""

import csv
import json
import math
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import extremal as ex
from extremal.checks import InputError
from extremal.methods.base import Budget
from extremal.methods.names import METHODS
from extremal.methods.parse import Tuned, full_name, recipe
from extremal_lab.reproduction import (
    FIGURES,
    Figure,
    Problem,
    colours,
    ledger,
    pictures,
    plan,
    progress,
    rates,
    report,
    reproduce,
    sources,
    spec,
    studies,
    tasks,
)
from extremal_lab.reproduction.plan import Curve, Panel, Work
from extremal_lab.reproduction.store import Store
from extremal_lab.reproduction.studies import Finding


def libsvm(path, n=200, d=6, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)).round(3)
    y = np.sign(A[:, 0] - 0.5 * A[:, 1] + 0.7 * rng.standard_normal(n))
    path.write_text(
        "\n".join(f"{v:g} " + " ".join(f"{j + 1}:{a}" for j, a in enumerate(row)) for v, row in zip(y, A, strict=True))
    )
    return A, y


@pytest.fixture
def file(tmp_path):
    return written(tmp_path)


def written(folder):
    path = folder / "mine.svm"
    libsvm(path)
    return path


@pytest.fixture(scope="module")
def figure(tmp_path_factory):
    file = written(tmp_path_factory.mktemp("data"))
    problems = (Problem(str(file), set="l1:3"), Problem(str(file), "nonlinear-least-squares", "l1:3"))
    methods = ("sarah-fw", "saga-sarah-fw", "negiar-sfw")
    return Figure("mine", "my figure", problems, methods, passes=8, seeds=2, factors=(0.1, 1.0), rows=8)


@pytest.fixture(scope="module")
def panels(figure, tmp_path_factory):
    return plan.Comparison(figure, Work(Store(tmp_path_factory.mktemp("kept")))).panels()


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


# methods from texts


def test_methods_by_beginnings_and_parameters():
    assert full_name("negiar") == "negiar-sfw"
    assert full_name("auto") == "auto"
    assert recipe("auto", batch=3) == ex.Auto()
    assert recipe("sarah-fw", batch=7) == ex.SarahFW(batch=7)
    assert recipe("saga-sarah-fw:start=cold:batch=5", batch=7) == ex.SagaSarahFW(batch=5, start="cold")
    assert recipe("frank-wolfe", batch=7) == ex.FrankWolfe()  # which has no batches
    assert recipe("sarah-fw:replace=False") == ex.SarahFW() != recipe("sarah-fw:replace=true")
    assert recipe("sarah-fw:step=small-batch") == ex.SarahFW(step=ex.steps.SmallBatch())
    for text in ("sarah-fw:replace=perhaps", "sarah-fw:step=big"):
        with pytest.raises(InputError, match="Accepted"):
            recipe(text)


@pytest.mark.parametrize("text", ["sa", "nothing", "", "sarah-fw:bath=3", "sarah-fw:batch", "frank-wolfe:batch=3", "auto:bath=3"])
def test_methods_that_cannot_be_read(text):
    with pytest.raises(InputError, match="method"):
        recipe(text)


def test_a_tuned_method_is_the_method_with_its_step_scaled():
    A, y = np.eye(4), np.array([1.0, -1.0, 1.0, -1.0])
    f, C = ex.LinearModel(ex.Logistic(), A, y), ex.L1Ball(2.0)
    got = ex.minimize(f, C, Tuned(ex.FrankWolfe(), 0.1), max_iter=20, tol=0, atol=0)
    want = ex.minimize(f, C, ex.FrankWolfe(step=ex.steps.Scaled(ex.steps.OpenLoop(), 0.1)), max_iter=20, tol=0, atol=0)
    np.testing.assert_array_equal(got.x, want.x)
    assert not np.array_equal(got.x, ex.minimize(f, C, ex.FrankWolfe(), max_iter=20, tol=0, atol=0).x)


def test_what_goes_with_the_step_is_scaled_with_it():
    f = ex.LinearModel(ex.Logistic(), np.eye(4), np.array([1.0, -1.0, 1.0, -1.0]))
    method = Tuned(ex.LuFreundSFW(batch=2), 0.1).prepare(f, ex.L1Ball(2.0), Budget(max_iter=5))
    assert (method.step.factor, method.gradient.scale) == (0.1, 0.1)
    assert Tuned(ex.LuFreundSFW(batch=2), 1.0).prepare(f, ex.L1Ball(2.0), Budget()).gradient.scale == 1.0


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
    comparison = plan.Comparison(figure, Work(Store(tmp_path / "kept")))
    problem, method = figure.problems[0], "sarah-fw"
    low, high = comparison.trials(problem, method)
    for values, best in (((0.5, 0.4), 1.0), ((0.3, 0.4), 0.1), ((np.nan, 0.4), 1.0), ((0.4, 0.4), 1.0), ((0.4, np.inf), 0.1)):
        results = {run: {"value": np.array([9.0, v])} for run, v in zip((low, high), values, strict=True)}
        assert comparison.best_factor(problem, method, results) == best
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
    (panel,) = plan.Comparison(alone, Work(Store(tmp_path / "kept"))).panels()
    assert {curve.steps for curve in panel.curves} == {"own"}


# what is said of them


def made_up(excesses, minimum=0.25, gap=1e-12, convex=True):
    """A panel whose curves end at given distances from the minimum: {(method, steps): excess}."""
    source = sources.Source("made up", "file", "the file made up", 10, 2, 20, "0")
    curves = []
    for (method, steps), excess in excesses.items():
        value = np.array([1.0, minimum + excess])
        run = {"passes": np.arange(2.0), "lmos": np.arange(2.0), "cpu": np.arange(2.0), "value": value, "gap": value}
        curves.append(Curve(method, steps, 1.0, False, 1, False, (run,)))
    return Panel(Problem("made up"), source, convex, minimum, gap, "by hand", tuple(curves))


def test_ranks():
    panels = [
        made_up({("a", "own"): 0.1, ("b", "own"): 0.2, ("c", "own"): 0.3}),
        made_up({("a", "own"): 1e-14, ("b", "own"): 1e-13, ("c", "own"): 0.3}),  # both below what is certified
    ]
    assert report.ranks(panels, "own") == {"a": [1, 1.5], "b": [2, 1.5], "c": [3, 3]}
    assert report.ranks(panels, "tuned") == {}
    rows = report.overview(panels, "own")
    assert [row["method"] for row in rows] == ["a", "b", "c"]
    assert (rows[0]["median"], rows[0]["first"], rows[0]["problems"]) == (1.25, 2, 2)
    same = [made_up({(m, "own"): 0.1 for m in "abc"})]
    assert [row["first"] for row in report.overview(same, "own")] == [1, 1, 1]  # all of them, and not none


def test_nothing_is_below_the_floor(panels):
    below = made_up({("sarah-fw", "own"): -1e-13})
    assert below.excess(below.curves[0]) == below.floor == 1e-12
    for panel in (*panels, below):
        for curve in panel.curves:
            assert (pictures._heights(panel, curve, "relative") > 0).all()
            assert (pictures._heights(panel, curve, "relative") * (panel.maximum - panel.minimum) >= panel.floor * 0.999).all()


def test_the_csv_has_every_number(figure, panels, tmp_path):
    path = tmp_path / "mine.csv"
    report.write_csv(path, figure, panels)
    with open(path, newline="") as lines:
        rows = list(csv.DictReader(lines))
    assert len({tuple(row.values()) for row in rows}) == len(rows)  # no row twice, where a run stays at a point
    runs = [run for panel in panels for curve in panel.curves for run in curve.runs]
    assert len(rows) == sum(len(set(zip(*(run[name] for name in tasks.COLUMNS), strict=True))) for run in runs)
    panel, curve = panels[1], panels[1].curves[3]
    want = [v for run in curve.runs for v in dict.fromkeys(run["value"].tolist())]
    mine = [r for r in rows if (r["loss"], r["method"], r["steps"]) == (panel.problem.loss, curve.method, curve.steps)]
    assert [float(r["value"]) for r in mine] == want  # to the last bit
    assert {float(r["f_min"]) for r in mine} == {panel.minimum}


def test_the_report_is_plain_data(figure, panels):
    said = json.loads(json.dumps(report.report("title", [(figure, panels)], quick=False), allow_nan=False))
    first = said["figures"][0]["problems"][0]
    assert first["f_min"] == panels[0].minimum
    assert first["curves"][0]["runs"][1]["value"] == panels[0].curves[0].runs[1]["value"].tolist()
    assert first["data"] == "mine.svm"
    assert figure.problems[0].data not in json.dumps(said)  # no path of the machine
    assert first["curves"][0]["runs"][0]["lmos"] == panels[0].curves[0].runs[0]["lmos"].tolist()
    assert said["versions"]["extremal"].startswith(ex.__version__)
    assert said["settings"]["trials of the tuning"] == [0.1, 1.0]
    assert {row["method"] for row in said["overview"]["tuned"]} == set(figure.methods)


def test_the_pictures(figure, panels, tmp_path):
    alone = [made_up({("sarah-fw", "own"): 0.1})]  # one small plot in each file
    made = pictures.draw(figure, alone, tmp_path)
    assert sorted(path.name for path in made) == sorted(
        f"mine-{x}.{s}" for x in ("passes", "lmos", "cpu") for s in ("png", "pdf")
    )
    assert all(path.stat().st_size > 5000 for path in made)
    drawn = pictures.picture_of(figure, panels, "lmos")
    axes = drawn.get_axes()
    assert len(axes) == 2 * 2 * 2  # steps x (suboptimality, gap) x problems
    assert axes[0].get_lines()[0].get_xdata()[-1] == np.median([run["lmos"][-1] for run in panels[0].curves[0].runs])


def test_a_method_has_one_colour_in_pictures_and_page():
    """Also where figures have other methods, in another order."""
    lists = ("svrf", "sarah-fw", "auto"), ("auto", "saga-sarah-fw", "sarah-fw", "svrf", "momentum-sfw")
    made = [[made_up({(m, s): 0.1 for m in methods for s in ("own", "tuned")})] for methods in lists]
    shown = [(Figure(m[0], "t", (Problem("x"),), m), panels) for m, panels in zip(lists, made, strict=True)]
    page = {item["name"]: item["colour"][0] for item in report.report("title", shown, quick=False)["methods"]}
    assert len(set(page.values())) == len(page) == 5
    looks = colours.colours(m for methods in lists for m in methods)
    for figure, panels in shown:
        for axes in pictures.picture_of(figure, panels, "passes", looks).get_axes():
            drawn = {line.get_label(): line.get_color() for line in axes.get_lines()}
            assert drawn == {report.label(m): page[m] for m in figure.methods}


def test_methods_that_project_are_marked():
    """In the table, in the legend and on the page, and no others."""
    panel = made_up({("vr-sliding", "own"): 0.1, ("svrf", "own"): 0.2})
    panel = replace(panel, curves=(replace(panel.curves[0], projects=True), panel.curves[1]))
    figure = Figure("mine", "t", (panel.problem,), ("vr-sliding", "svrf"), factors=())
    names = ["vr-sliding (projects)", "svrf"]
    assert [row[0] for row in reproduce.ends([panel])[1]][:2] == names
    assert [text.get_text() for text in pictures.picture_of(figure, [panel], "passes").legends[0].get_texts()] == names
    said = report.report("title", [(figure, [panel])], quick=False)
    assert [item["label"] for item in said["methods"]] == names
    assert any("projections" in sentence for sentence in said["summary"])


# verdicts


def verdict(rows, word):
    (row,) = [row for row in rows if word in row["claim"]]
    return row["verdict"], row["measured"]


@pytest.mark.parametrize(
    ("ours", "want", "counts"),
    [
        ((0.1, 0.05, 0.1, 0.19), "holds", "comparable in 4 and superior in 3 of 4"),
        ((0.1, 0.3, 0.1, 0.3), "holds in part", "comparable in 2 and superior in 2 of 4"),
        ((0.3, 0.3, 0.3, 0.1), "does not hold here", "comparable in 1 and superior in 1 of 4"),
    ],
)
def test_superior_or_comparable(figure, ours, want, counts):
    """Two problems, both algorithms, a best baseline that ends at 0.1."""
    panels = [
        made_up({("sarah-fw", "own"): a, ("saga-sarah-fw", "own"): b, ("negiar-sfw", "own"): 0.1, ("svrf", "own"): 5.0})
        for a, b in (ours[:2], ours[2:])
    ]
    row = ledger.judge([(replace(figure, factors=()), panels)], [], options=" --quick")[0]
    assert row["verdict"] == want
    assert counts in row["measured"]
    assert "svrf 4 of 4" in row["measured"]
    assert (row["on"], row["command"]) == ("the file made up", "extremal reproduce mine --quick")


def test_without_baselines_nothing_is_compared(figure):
    alone = made_up({("sarah-fw", "own"): 0.1})
    others = made_up({("negiar-sfw", "own"): 0.1})
    assert [row["claim"][:15] for row in ledger.judge([(figure, [alone])], [])] == ["The algorithms "]
    assert ledger.judge([(figure, [others])], []) == []


def exponent(mean, claimed, width=0.1):
    return rates.Exponent(mean, mean - width / 2, mean + width / 2, claimed)


def finding(changes=()):
    """Every exponent as claimed, but for those given: {(index, method): (n, eps)}, each a mean or a (mean, width)."""
    numbers = {}
    for index, rate in enumerate(rates.RATES):
        claimed = rate.claimed_n, rate.claimed_eps
        for method in rates.GRIDS[rate.grid].methods:
            given = [v if isinstance(v, tuple) else (v, 0.1) for v in dict(changes).get((index, method), claimed)]
            pair = [exponent(mean, c, width) for (mean, width), c in zip(given, claimed, strict=True)]
            numbers[rate, method] = rates.Fit(*pair, {})
    return Finding("rates", "data", numbers, {})


def test_rates_are_judged_by_their_intervals():
    def said(one, two):
        found = finding({(0, "sarah-fw"): one, (0, "saga-sarah-fw"): two})
        return verdict(ledger.judge([], [found]), "Convex, b = 1: O(sqrt(n)/eps component")[0]

    assert said((0.5, 1.0), (0.3, 0.7)) == "holds"
    assert said((0.5, (1.0, 0.3)), (0.5, (1.0, 0.3))) == "holds in part; 2 of 4 undecided"  # from 0.85 to 1.15
    assert said((0.58, (1.0, 0.3)), (0.58, (1.0, 0.3))) == "undecided"  # a little above, within the slack or not
    assert said(((-2.0, 0.9), 1.0), (0.5, (-9.0, 3.0))) == "holds"  # wide, but better for certain
    assert said((0.5, 1.0), (0.7, 1.0)) == "holds in part"
    assert said((0.7, 1.3), (0.8, 1.5)) == "does not hold here"
    assert said((0.7, 1.3), (0.58, (1.0, 0.9))) == "does not hold here; 2 of 4 undecided"
    assert said((0.7, 1.0), (0.58, (1.0, 0.9))) == "holds in part; 2 of 4 undecided"
    assert said((math.nan, math.nan), (math.nan, math.nan)) == "undecided"


def test_large_batches_are_refuted_by_a_short_step_that_does_without():
    """Slow runs do not prove that nothing faster exists, and the card has a proof that something does."""
    for one, two, want in (
        (0.4, 0.4, "does not hold here"),
        (0.4, 1.0, "does not hold here"),
        (1.0, 1.0, "refuted by proof; not seen here"),
        ((0.6, 0.3), 1.0, "refuted by proof; undecided here"),
    ):
        found = finding({(8, f"{m}:step=small-batch"): (n, 2.0) for m, n in zip(spec.OURS, (one, two), strict=True)})
        said, measured = verdict(ledger.judge([], [found]), "large batches are required")
        assert said == want
        assert "n + sqrt(n)/eps^2 SFO for non-convex f with the step SmallBatch" in measured


def printed(title):
    """The rows of the table under a heading of docs/reproduction.md, as lists of cells."""
    text = (
        (Path(__file__).parents[2] / "docs" / "reproduction.md").read_text().partition(f"## {title}\n")[2].partition("\n## ")[0]
    )
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[1:]]


def test_the_verdicts_that_are_printed_are_those_of_the_rules():
    """The numbers in docs/reproduction.md, judged again."""
    names = {report.label(m): m for grid in rates.GRIDS.values() for m in grid.methods}
    claimed = {(rate.grid, rate.text): rate for rate in rates.RATES}
    numbers, ends, cost = {}, {}, {}
    for grid, text, method, *exponents in printed("Rates over n and eps"):
        rate = claimed[grid, text]
        found = [[float(v) for v in re.findall(r"-?\d+\.\d+", cell)] for cell in exponents]
        pair = [rates.Exponent(*three, c) for three, c in zip(found, (rate.claimed_n, rate.claimed_eps), strict=True)]
        numbers[rate, names[method]] = rates.Fit(*pair, {})
    for problem, one, two, _, ratio, *per_step in printed("No full gradient"):
        key = Problem(*problem.split(", "))
        ends[key], cost[key] = [float(one), float(two), float(one) * float(ratio)], [*map(float, per_step), 2.0]
    found = [Finding("rates", "", numbers, {}), Finding("starts", "", {"ends": ends, "cost": cost, "passes": 100.0}, {})]
    said = {row[0]: (row[1].strip("*"), row[3]) for row in printed("Verdicts")}
    judged = ledger.judge([], found)
    assert len(judged) == 11
    for row in judged:
        assert said[f"{row['claim']} ({row['where']})"] == (row["verdict"], row["rule"])


def test_batches_are_judged():
    cases = [("logistic", m, b) for m in spec.OURS for b in ("1", "sqrt", "n/1")]
    for late, want, same in (([0.1] * 6, "holds", "holds"), ([0.1, 0.1, 0.9, 0.1, 0.1, 0.1], "holds in part", "holds"),
                             ([0.4, 0.1, 0.9, 0.4, 0.1, 0.9], "holds in part", "does not hold here"),
                             ([0.9] * 6, "does not hold here", "holds")):  # fmt: skip
        errors = {(*case, 8.0): 1.0 for case in cases} | {(*case, 64.0): e for case, e in zip(cases, late, strict=True)}
        rows = ledger.judge([], [Finding("batches", "data", {"errors": errors, "budgets": [8.0, 64.0]}, {})])
        assert verdict(rows, "all sizes of batches")[0] == want
        assert verdict(rows, "every b up to sqrt n")[0] == same


def test_starts_are_judged():
    problems = [Problem(name) for name in "abc"]
    for third, want in (([0.1, 0.19, 0.2], "holds"), ([0.1, 0.1, 0.3], "holds in part"), ([0.3, 0.3, 0.1], "does not hold here")):
        ends = {p: [0.1, 0.1, end] for p, end in zip(problems, third, strict=True)}
        cost = {p: [3.9, 2.0, 2.0] for p in problems}
        rows = ledger.judge([], [Finding("starts", "data", {"ends": ends, "cost": cost, "passes": 100.0}, {})])
        said, measured = verdict(rows, "matches Algorithm 1")
        assert said == want
        assert ("c, logistic, l1:2000: 3" in measured) == (want == "holds in part")
        assert ("exp(-N/16n)" in measured) == (want != "holds")
        assert verdict(rows, "fewer component gradients")[0] == "holds"
    cost = {p: [1.9, 2.0, 2.0] for p in problems}
    rows = ledger.judge([], [Finding("starts", "data", {"ends": ends, "cost": cost, "passes": 100.0}, {})])
    assert verdict(rows, "fewer component gradients")[0] == "does not hold here"


def test_the_study_of_starts_reads_every_convex_problem_of_the_figures(monkeypatch):
    look = studies.Look(Work(None))
    monkeypatch.setattr(Work, "find", lambda self, data: sources.Source(data, "real", data, 100, 3, 300, "0"))
    wanted = {p for figure in FIGURES.values() for p in figure.problems if p.loss == "logistic"}
    assert set(look.convex()) == wanted
    assert {p.set for p in wanted} == {"l1:2000", "l1:200", "l1:20", "l1:2"}
    shown = plan.Comparison(FIGURES["fig5"], look.work).first_tasks()
    runs = [
        run for (p, m), held in studies._start_runs(look, False).items() for run in held if (p.set, m) == ("l1:2", "sarah-fw")
    ]
    assert set(runs) <= set(shown)  # no run is made twice


@pytest.mark.parametrize("method", spec.OURS)
@pytest.mark.parametrize("batch", [1, 10])
def test_the_transient_is_what_the_steps_leave(method, batch):
    """The product of the factors 1 - eta of the constant steps, for the iterations that the budget pays for."""
    f = ex.LinearModel(ex.Logistic(), np.eye(1000)[:, :3], np.sign(np.arange(1000) % 2 - 0.5))
    K_d = recipe(method, batch).prepare(f, ex.L1Ball(1.0), Budget(max_grads=101 * f.n)).step  # one pass for the first gradient
    assert np.log(spec.transient(method, 100)) == pytest.approx(-K_d.horizon / 2 / K_d.d, rel=0.02)


def test_short_runs_say_that_they_lie_inside_the_transient(figure, panels):
    (said,) = report.inside(20)
    assert "20 passes lie inside the transient" in said
    assert "8 % for Algorithm 1" in said
    assert "29 % for Algorithm 2" in said
    assert report.inside(100) == []
    assert report.inside(8)[0] in report.report("title", [(figure, panels)], quick=True)["caution"]  # of eight passes
    assert not any("transient" in said for said in report.cautions([made_up({("negiar-sfw", "own"): 0.1})], 8))
    study = {"caution": report.inside(20)}
    assert report.report("title", [], quick=True, studies=[study, study])["caution"] == report.inside(20)


def test_memory_is_judged():
    def said(linear, general, n=1000):
        extra = {("linear", m): linear for m in ("saga-sarah-fw", "negiar-sfw", "lu-freund-sfw")}
        extra["separable", "saga-sarah-fw"] = general
        return verdict(ledger.judge([], [Finding("memory", "data", {"extra": extra, "n": n, "d": 100}, {})]), "O(nd)")[0]

    assert said(2e3, 1.1e5) == "holds in part"
    assert said(1e5, 1.1e5) == "holds"
    assert said(2e3, 2e3) == "does not hold here"
    assert said(2e3, 1.1e5, n=200) == "undecided"


def test_a_claim_that_nothing_bears_on_is_not_judged():
    assert ledger.judge([], []) == []


def made_runs(monkeypatch, error):
    """A grid of runs, and results for them: error(n, component gradients, seed)."""
    monkeypatch.setattr(rates, "radius", lambda loss, scale, source: "l1:1")
    grid, results = rates.GRIDS["convex, b = sqrt n"], {}
    for seed, runs in grid.runs("sarah-fw", some, quick=False).items():
        for run in runs:
            n, passes = run.source.n, run.passes
            value = np.array([1.0, 0.3 + error(n, passes * n, seed)])
            results[run] = {"value": value, "passes": np.array([0, passes]), "lmos": np.array([0, passes * n / math.sqrt(n)])}
            results[rates.minimum_of(run)] = {"value": np.array(0.3), "gap": np.array(1e-13)}
    return results


def some(n, draw):
    return sources.Source("", "file", "", n, 3, 3 * n, "0", n, draw)


def test_complexities_are_found_again(monkeypatch):
    """error = (7 n^0.4 / N)^1.6 means N ~ n^0.4 eps^(-1/1.6) gradients, and n^(0.4 - 0.5) LMO calls at b = sqrt n."""
    rng = np.random.default_rng(0)
    results = made_runs(
        monkeypatch, lambda n, N, seed: (1 + seed) * (7 * n**0.4 / N) ** 1.6 * np.exp(0.02 * rng.standard_normal())
    )
    for index, n in ((2, 0.4), (3, -0.1)):
        fit = rates.RATES[index].fit("sarah-fw", some, False, results)
        assert fit.n.mean == pytest.approx(n, abs=0.03)
        assert fit.eps.mean == pytest.approx(1 / 1.6, abs=0.03)
        assert 0 < fit.n.high - fit.n.low < 0.1  # the level of a seed does not matter
        assert fit.n.holds is fit.eps.holds is True
    assert rates.Exponent(0.7, 0.65, 0.75, claimed=0.5).holds is False
    assert len(fit.errors) == len({(n, N) for n, N in fit.errors})


def test_seeds_that_differ_make_wide_intervals(monkeypatch):
    results = made_runs(monkeypatch, lambda n, N, seed: (7 * n**0.4 / N) ** (0.8 + 0.4 * seed))
    fit = rates.RATES[2].fit("sarah-fw", some, False, results)
    assert fit.eps.high - fit.eps.low > 0.3
    assert fit.eps.holds is None  # from 0.3 to 1.1
    assert fit.n.mean == pytest.approx(0.4)


@pytest.mark.parametrize("error", [lambda n, N, seed: 1e-13, lambda n, N, seed: N / 1e9])
def test_errors_that_say_nothing_are_not_fitted(monkeypatch, error):
    """Below the accuracy of the minimum, or growing."""
    fit = rates.RATES[2].fit("sarah-fw", some, False, made_runs(monkeypatch, error))
    assert fit.n.holds is fit.eps.holds is None


def test_grids_are_what_they_claim(monkeypatch):
    monkeypatch.setattr(rates, "radius", lambda loss, scale, source: "l1:1")
    for grid in rates.GRIDS.values():
        made = grid.runs(grid.methods[0], some, quick=True)
        assert len(made) == 3
        assert all(run.passes >= 64 for runs in made.values() for run in runs)
        assert all(len(runs) >= 5 for runs in made.values())
        made = grid.runs(grid.methods[0], some, quick=False)
        assert len(made) == 5
        for seed, runs in made.items():
            assert len({run.source.n for run in runs}) >= 4
            for run in runs:
                n = run.source.n
                assert (run.seed, run.source.draw) == (seed, seed)
                assert run.passes >= 64
                assert run.passes * n in grid.budgets
                assert run.batch == {"1": 1, "sqrt": math.ceil(math.sqrt(n))}[grid.batch]
    assert {rate.grid for rate in rates.RATES} == set(rates.GRIDS)


def test_the_radius_makes_the_bound_say_something(file):
    source = sources.resolve(str(file))
    A, _ = libsvm(file)
    L = 0.25 * np.linalg.eigvalsh(A.T @ A / len(A))[-1]
    R = float(rates.radius("logistic", 2500.0, source).removeprefix("l1:"))
    assert L * (2 * R) ** 2 == pytest.approx(2500, rel=0.1)


def test_a_convergence_claim_needs_every_start_to_be_left_below(figure):
    good = made_up({("sarah-fw", "own"): 0.1, ("saga-sarah-fw", "own"): 0.1, ("negiar-sfw", "own"): 0.1})
    bad = made_up({("sarah-fw", "own"): 5.0, ("saga-sarah-fw", "own"): 0.1, ("negiar-sfw", "own"): 0.1})  # started at 1
    alone = replace(figure, factors=())
    assert verdict(ledger.judge([(alone, [good])], []), "perform well")[0] == "holds"
    said, measured = verdict(ledger.judge([(alone, [good, bad])], []), "perform well")
    assert said == "holds in part"
    assert "3 of 4" in measured
    assert "Algorithm 1" in measured


def test_the_sizes_of_table_2_are_judged():
    rows = [
        ["a9a", "123", "22696", "a9a", "123", "32561"],
        ["w8a", "300", "49749", "w8a", "300", "49749"],
        ["x", "1", "1", "x", "-", "-"],
    ]
    said, measured = verdict(ledger.judge([], [], {"rows": rows}), "Table 2")
    assert said == "holds in part"
    assert "1 of 2" in measured
    assert "32561" in measured


def test_the_ledger_in_markdown(figure, panels, tmp_path):
    from extremal_lab.reproduction import reproduce
    from extremal_lab.reproduction.markdown import write_ledger

    done = [(figure, panels)]
    said = report.report("title", done, quick=False, ledger=ledger.judge(done, []))
    write_ledger(tmp_path / "ledger.md", said, [(figure, *reproduce.ends(panels))])
    text = (tmp_path / "ledger.md").read_text()
    assert f"{panels[0].minimum:.9g}" in text
    assert f"{panels[0].excess(panels[0].curves[0]):.1e}" in text
    assert said["ledger"][0]["verdict"] in text
    for line in text.splitlines():
        if line.startswith("|"):
            assert line.endswith("|")


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
