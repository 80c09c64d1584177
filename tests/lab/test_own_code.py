"""The user's own code on the command line, `module:name`: its runs, its mistakes; and curves that are added to figures."""

import csv
import json
import sys

import numpy as np
import pytest
from command_line import refused, run
from panels_by_hand import libsvm, made_up

from extremal.checks import InputError
from extremal.files import datasets
from extremal_lab import Comparison
from extremal_lab.reproduction import Figure, Problem, contests, ledger, own, pictures

CODE = '''
import numpy as np
import extremal as ex

class Halves:
    """Steps half as long."""
    def __init__(self, size=0.5):
        self.size = size
    def prepare(self, f, C, budget):
        return ex.Method(ex.gradients.Full(), ex.steps.Scaled(ex.steps.OpenLoop(), self.size)).prepare(f, C, budget)

halves = Halves(0.25)

def loop(f, C, x, rng):
    for k in range(1000):
        x = x + 2 / (k + 2) * (C.lmo(f.grad(x)).to_array() - x)
        yield x

class LogCosh:
    """A smooth absolute value."""
    curvature, convex, labels = 1.0, True, None
    def value(self, z, y):
        return np.logaddexp(z - y, y - z) - np.log(2)
    def deriv(self, z, y):
        return np.tanh(z - y)
    def second(self, z, y):
        return 1 - np.tanh(z - y) ** 2

ball = ex.L1Ball(2.0)

def cube(half=1.0):
    return ex.LinfBall(half)

def rows(n=60):
    A = np.random.default_rng(3).standard_normal((n, 4))
    return A, np.sign(A[:, 0])

def broken(f, C, x, rng):
    raise ValueError("no luck today")
    yield
'''
BASE = ("--passes", 4, "--seeds", 2, "--cache", "kept", "--workers", 1, "--no-tune", "--offline")


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with data and code, without pictures."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # undone after the test, with what the command adds
    monkeypatch.delenv("EXTREMAL_DATA", raising=False)
    monkeypatch.setattr(datasets, "user_dir", lambda: tmp_path / "no data")
    monkeypatch.setattr(pictures, "draw", lambda *_: [])
    libsvm(tmp_path / "mine.svm")
    (tmp_path / "their_code.py").write_text(CODE)
    (tmp_path / "broken_code.py").write_text("1 / 0\n")
    own._digest.cache_clear()
    for name in ("their_code", "broken_code"):  # of other tests
        monkeypatch.delitem(sys.modules, name, raising=False)
    return tmp_path


def rows_of(folder):
    return list(csv.DictReader((folder / "compare.csv").read_text().splitlines()))


def test_methods_of_a_module(here):
    methods = "frank-wolfe,their_code:Halves,their_code:Halves:size=0.125,their_code:halves,their_code:loop"
    result = run("compare", "--data", "mine.svm", "--set", "l1:5", "--method", methods, *BASE)
    assert result.exit_code == 0, result.output
    last = {row["method"]: float(row["value"]) for row in rows_of(here / "comparison") if row["seed"] == "0"}
    assert list(last) == methods.split(",")
    assert len(set(last.values())) == 5
    assert "Halves, size=0.125" in result.stdout
    saved = Comparison.load(here / "comparison" / "comparison.json")
    assert [row["method"] for row in saved.rows()] == methods.split(",")
    assert str(here) not in (here / "comparison" / "comparison.json").read_text()


def test_losses_sets_and_data_of_a_module(here):
    result = run(
        "compare", "--data", "their_code:rows:n=80", "--set", "their_code:ball", "--set", "their_code:cube:half=0.5",
        "--loss", "their_code:LogCosh", "--methods", "frank-wolfe", "--test", 0.25, *BASE,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    saved = Comparison.load(here / "comparison" / "comparison.json")
    assert [panel.source.n for panel in saved.panels] == [60, 60]
    A = np.random.default_rng(3).standard_normal((80, 4))
    out = np.random.default_rng(0).permutation(80)[:20]
    start = np.log(np.cosh(np.sign(A[out, 0])))  # x = 0
    assert saved.panels[0].curves[0].runs[0]["test"][0] == pytest.approx(start.mean())
    text = (here / "comparison" / "ledger.md").read_text()
    assert text.count("\n\n### ") == 2 * 2  # each problem has two tables of metrics, under headings
    assert saved.panels[0].minimum < saved.panels[0].curves[0].start
    assert all(panel.gap < 1e-8 for panel in saved.panels)


def test_runs_of_a_module_are_kept_until_its_code_changes(here):
    words = ("compare", "--data", "mine.svm", "--set", "l1:5", "--method", "their_code:Halves", *BASE)
    for _ in range(2):
        assert run(*words).exit_code == 0
        assert len(list((here / "kept").rglob("*.npz"))) == 3
    (here / "their_code.py").write_text(CODE + "# changed\n")
    own._digest.cache_clear()  # as in another process
    assert run(*words).exit_code == 0
    assert len(list((here / "kept").rglob("*.npz"))) == 5  # two runs more; the minimum knows nothing of the method


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--method", "no_such_code:Halves"), ["method 'no_such_code:Halves'", "cannot be imported", "No module named"]),
        (("--method", "broken_code:Halves"), ["broken_code cannot be imported", "ZeroDivisionError"]),
        (("--method", "their_code:Doubles"), ["their_code has no 'Doubles'"]),
        (("--method", "their_code:Halves:bath=3"), ["cannot be made", "bath"]),
        (("--method", "their_code:ball"), ["must be a method with prepare"]),
        (("--loss", "their_code:Nothing"), ["the loss 'their_code:Nothing'", "has no 'Nothing'"]),
        (("--set", "their_code:halves"), ["--set module:name must be a set"]),
        (("--set", "their_code:cube:half=-1"), ["LinfBall(radius=...)", "positive"]),
        (("--data", "their_code:cube"), ["two items, rows A and targets y"]),
        (("--seconds", 0), ["seconds"]),
        (("--test", 2), ["test", "(0, 0.9]"]),
    ],
)
def test_mistakes_are_one_line(here, args, words):
    given = {"--data": "mine.svm", "--set": "l1:5", "--method": "frank-wolfe"} | {args[0]: args[1]}
    refused(run("compare", *(word for pair in given.items() for word in pair), *BASE), *words)
    assert not (here / "comparison" / "index.html").exists()


def test_a_module_has_its_own_folder_first(here):
    with pytest.raises(InputError, match=r"the thing 'their_code:nothing\.more': the module their_code has no 'nothing\.more'"):
        own.imported("thing", "their_code:nothing.more", own.made)
    assert own.imported("thing", "their_code:np.pi", own.made) == np.pi


# curves added to the figures of the paper


def test_curves_are_added_to_a_figure(here):
    words = ("reproduce", "fig4", "--data", "mine.svm", "--quick", "--passes", 3, "--cache", "kept", "--workers", 1, "--offline")
    assert run(*words, "--out", "plain").exit_code == 0
    result = run(*words, "--out", "more", "--methods", "tracked-fw,saga-face,their_code:loop,sarah-fw")
    assert result.exit_code == 0, result.output
    plain, more = (list(csv.DictReader((here / name / "fig4.csv").read_text().splitlines())) for name in ("plain", "more"))
    added = {"tracked-fw", "saga-face-fw", "their_code:loop"}
    assert {row["method"] for row in more} - {row["method"] for row in plain} == added
    assert [row for row in more if row["method"] not in added] == plain  # kept runs, and the same minimum
    assert {row["factor"] for row in more if row["method"] == "tracked-fw"} == {"1.0"}  # nothing to tune
    before, after = ((here / name / "ledger.md").read_text() for name in ("plain", "more"))
    assert "TrackedFW (no parameter)" not in before
    assert "a method without parameters against tuned baselines" in after
    assert "--methods tracked-fw,saga-face-fw,their\\_code:loop" in after or "their_code:loop" in after


def test_added_curves_are_for_figures(here):
    refused(run("reproduce", "memory", "--methods", "tracked-fw", "--cache", "kept"), "--methods is for figures", "memory")
    refused(run("reproduce", "fig1", "--methods", "nothing", "--cache", "kept"), "nothing")


FREE = ("tracked-fw", "saga-face-fw")


def panel(tracked, face, own_steps, tuned):
    """A panel whose curves end at given distances from the minimum."""
    ends = {"tracked-fw": (tracked, tracked), "saga-face-fw": (face, face), "sarah-fw": (9.0, 9.0), "svrf": (own_steps, tuned)}
    return made_up({(m, s): end for m, both in ends.items() for s, end in zip(("own", "tuned"), both, strict=True)})


def judged(*panels, added=FREE):
    figure = Figure("mine", "Mine: a figure", (Problem("x"),), ("sarah-fw", "svrf"), factors=(0.1, 1.0), added=added)
    rows = [row for row in ledger.judge([(figure, panels)], []) if "without parameters" in row["claim"]]
    return [(row["verdict"], row["number"]) for row in rows], rows


def test_the_claim_is_that_one_method_is_comparable_everywhere():
    good, other, bad = panel(0.19, 9.0, 0.1, 0.1), panel(9.0, 0.05, 0.1, 0.1), panel(9.0, 9.0, 0.1, 0.1)
    said, rows = judged(good, good)
    assert said == [("holds", "2 of 2 cases, TrackedFW (no parameter)")] * 2
    assert rows[0]["command"] == "extremal reproduce mine --methods tracked-fw,saga-face-fw"
    assert judged(good, other)[0][0][0] == "holds in part"  # another method on each problem is not one method
    assert judged(good, good, other)[0][0] == ("holds in part", "2 of 3 cases, TrackedFW (no parameter)")
    assert judged(bad, bad)[0][0][0] == "does not hold here"


def test_the_claim_is_judged_against_tuned_baselines_too():
    said, rows = judged(panel(0.1, 0.1, 0.1, 0.01))
    assert [verdict for verdict, _ in said] == ["holds", "does not hold here"]
    assert "svrf 1 of 1" in rows[0]["measured"]
    assert "svrf 0 of 1, " not in rows[0]["measured"]
    assert "svrf 0 of 1" in rows[1]["measured"]
    assert "made up: 10" in rows[1]["measured"]


def test_the_papers_claims_do_not_see_added_curves():
    figure = Figure("mine", "Mine: a figure", (Problem("x"),), ("sarah-fw", "svrf"), factors=(0.1,), added=FREE)
    held = panel(1e-9, 1e-9, 8.0, 8.0)
    few = made_up({(c.method, c.steps): c.final - 0.25 for c in held.curves if c.method in ("sarah-fw", "svrf")})
    with_more, without = (contests.figure_rows(figure, [p], "command")[0] for p in (held, few))
    assert (with_more["verdict"], with_more["number"]) == (without["verdict"], without["number"]) == ("holds", "1 of 1 cases")


def test_no_claim_without_baselines_or_without_such_a_method():
    assert judged(made_up({("tracked-fw", "own"): 0.1}))[1] == []
    assert judged(made_up({("svrf", "own"): 0.1}))[1] == []


def test_saved_numbers_have_no_objects(here):
    run("compare", "--data", "mine.svm", "--set", "l1:5", "--method", "their_code:Halves", *BASE)
    held = json.loads((here / "comparison" / "comparison.json").read_text())
    assert held["figure"]["methods"] == ["their_code:Halves"]
    assert held["panels"][0]["problem"]["data"] == "mine.svm"
