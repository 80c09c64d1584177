"""The command line: what it prints and saves, models in words, lists and help."""

import dataclasses
import inspect
import json
import os
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from command_line import CHILD, direct, heard, predicted, problem, refused, run, solve, solved, table
from typer.main import get_command

import extremal as ex
from extremal.cli import solving
from extremal.cli.commands import app
from extremal.losses.named import LOSS_FORMS
from extremal.methods.cards import METHODS
from extremal.run import wide
from extremal.sets.words.names import SETS

# ---- what it answers


@pytest.mark.parametrize(
    "method", [m for m in METHODS if m not in ("in-face-fw", "low-rank-fw", "block-fw")]
)  # not for the l1 ball
def test_json_agrees_with_minimize(data, method):
    result = solve("--method", method, "--json", "--seed", 3)
    said = json.loads(result.stdout)
    f, r = direct(method, seed=3)
    assert (said["value"], said["gap"]) == (r.value, r.gap)
    assert said["relative_gap"] == r.gap / r.value
    assert (said["status"], said["converged"], said["sentence"]) == (r.status.value, r.converged, r.status.sentence)
    assert (said["n_iter"], said["grads"], said["lmos"]) == (r.n_iter, r.calls.grads, r.calls.lmos)
    assert (said["certificate_grads"], said["passes"]) == (r.calls.certificate, r.calls.grads / f.n)
    assert (said["nonzeros"], said["n"], said["dim"]) == (np.count_nonzero(r.x), f.n, f.shape[0])
    assert (said["loss"], said["set"], said["method"]) == ("logistic", "l1:2", method)
    assert said["parameters"] == str(r.method)
    assert said["seconds"] > 0
    assert result.stdout.count("\n") == 1
    assert result.exit_code == (0 if r.converged else 3)


@pytest.mark.parametrize(
    ("options", "keywords"),
    [
        (["--tol", "0.05"], {"tol": 0.05}),
        (["--tol", "0", "--atol", "0.01"], {"tol": 0, "atol": 0.01}),
        (["--passes", "2.5", "--tol", "0"], {"max_grads": 150, "tol": 0}),
        (["--max-iter", "7", "--tol", "0"], {"max_iter": 7, "tol": 0}),
        (["--batch", "5", "--tol", "0"], {"method": ex.SarahFW(batch=5), "tol": 0}),
        (["--seed", "4", "--tol", "0"], {"seed": 4, "tol": 0}),
    ],
)
def test_options_reach_the_run(data, options, keywords):
    said = json.loads(solve("--json", *options).stdout)
    _, r = direct(**keywords)
    assert (said["value"], said["gap"], said["n_iter"]) == (r.value, r.gap, r.n_iter)
    assert said["value"] != direct()[1].value  # or the option could have been ignored


def test_max_seconds(data):
    options = ("--method", "frank-wolfe", "--passes", 1e5, "--tol", 0, "--atol", 0)  # some seconds, if nothing stops it
    result = solve(*options, "--max-seconds", 0.2, "--json")
    assert json.loads(result.stdout)["status"] == "max_seconds"
    assert result.exit_code == 3


def test_text_is_plain_and_complete(data):
    result = solve("--tol", "0.05")
    _, r = direct(tol=0.05)
    lines = dict(line.split("  ", 1) for line in result.stdout.splitlines())
    lines = {label: text.strip() for label, text in lines.items()}
    assert lines["value"] == f"{r.value:.10g}"
    assert lines["certified gap"].startswith(f"{r.gap:.3e}")
    assert lines["relative gap"] == f"{r.gap / r.value:.3e}"
    assert lines["status"] == "the certified gap is within the tolerance"
    assert lines["iterations"] == str(r.n_iter)
    assert lines["component gradients"].startswith(f"{r.calls.grads}  (")
    assert f"{r.calls.certificate} more for certificates" in lines["component gradients"]
    assert lines["LMOs"] == str(r.calls.lmos)
    assert float(lines["seconds"]) > 0
    assert lines["non-zeros of x"] == f"{np.count_nonzero(r.x)} of 8"
    assert "\x1b" not in result.stdout
    assert result.exit_code == 0


def test_the_gap_is_explained_by_convexity(data):
    assert "no point of the set is better by more" in solve("--max-iter", 3).stdout
    other = solve("--max-iter", 3, "--loss", "nonlinear-least-squares", "--positive", 1)
    assert "zero at stationary points" in other.stdout


def test_a_value_of_zero_has_no_relative_gap(data):
    np.savez("zero.npz", A=np.eye(2), y=np.zeros(2))
    args = ("solve", "zero.npz", "--set", "l1:1", "--loss", "squared", "--method", "frank-wolfe", "--max-iter", 0)
    assert json.loads(run(*args, "--json").stdout)["relative_gap"] is None
    assert "none, the value is 0" in run(*args).stdout


@pytest.mark.parametrize("form", ["csv", "npz", "npy"])
def test_every_format(data, form):
    A, y = problem()
    if form == "csv":
        np.savetxt("d.csv", np.column_stack([y, A]), delimiter=",", header="label," + ",".join("abcdefgh"), comments="")
    elif form == "npz":
        np.savez("d.npz", X=A)
        np.save("y.npy", y)
    else:
        np.save("d.npy", np.column_stack([A, y]))
    target = {"csv": ["--target", "label"], "npz": ["--target", "y.npy"], "npy": []}[form]
    said = json.loads(run("solve", f"d.{form}", "--set", "l1:2", "--method", "sarah-fw", "--json", *target).stdout)
    assert said["value"] == pytest.approx(direct()[1].value, rel=1e-9)


def test_positive_maps_numbers_and_text(data):
    A, y = problem()
    expected = json.loads(solve("--json").stdout)["value"]
    for labels, positive in ((np.where(y > 0, 2, 1), "2"), (np.where(y > 0, 2.0, 5.0), "2"), (y, "+1")):
        np.savez("d.npz", A=sp.csr_array(A).toarray(), y=labels)
        said = json.loads(run("solve", "d.npz", "--set", "l1:2", "--method", "sarah-fw", "--json", "--positive", positive).stdout)
        assert said["value"] == pytest.approx(expected, rel=1e-9)
    names = np.where(y > 0, "yes", "no")
    text = "".join(",".join(map(str, row)) + f",{name}\n" for row, name in zip(A.tolist(), names, strict=True))
    Path("d.csv").write_text(text)
    said = json.loads(run("solve", "d.csv", "--set", "l1:2", "--method", "sarah-fw", "--json", "--positive", "yes").stdout)
    assert said["value"] == pytest.approx(expected, rel=1e-9)


def test_out_round_trips(data):
    result = solve("--out", "model.npz", "--json", "--tol", 0.05)
    _, r = direct(tol=0.05)
    assert result.exit_code == 0
    assert sorted(os.listdir()) == ["data", "model.npz"]
    with np.load("model.npz", allow_pickle=False) as held:
        assert np.array_equal(held["x"], r.x)
        assert (float(held["value"]), float(held["gap"]), bool(held["converged"])) == (r.value, r.gap, True)
        assert [str(held[k]) for k in ("status", "loss", "set", "method")] == ["gap", "logistic", "l1:2", "sarah-fw"]


def test_a_spent_budget_is_printed_and_saved_with_code_3(data):
    result = solve("--max-iter", 2, "--tol", 0, "--out", "model.npz")
    assert result.exit_code == 3
    assert "the budget of iterations is spent" in result.stdout
    with np.load("model.npz") as held:
        assert not held["converged"]


# ---- models in words


def test_auto_is_the_default_and_says_what_it_chose(data):
    said = json.loads(run("solve", "data", "--set", "l1:2", "--json").stdout)
    _, r = direct("auto")
    assert (said["value"], said["method"], said["why"]) == (r.value, "auto", r.why)
    assert said["x"] == r.x.tolist()
    text = run("solve", "data", "--set", "l1:2").stdout
    assert "Logistic() of 60 rows x 8 features\n" in text
    assert "none (--intercept fits one)" in text
    assert "l1:2: L1Ball(radius=2.0, shape=(8,))" in text
    assert r.why in text


@pytest.mark.parametrize(
    ("words", "constraint"),
    [
        ("nonneg", "nonneg"), ("positive", "nonneg"), ("l1:3 & nonneg", "l1:3 & nonneg"), ("income <= 1 & age >= 0", None),
        ("l1:50%", "l1:50%"), ("l1", "l1:10"), ("groups:1;income,debt;age", None), ("monotone", None), ("free", None),
        ("[0, 1]", None), ("simplex", None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("loss", ["squared", "huber", "quantile:0.9"])
def test_words_mean_what_they_mean_to_estimators(data, words, constraint, loss):
    from extremal.sklearn import ConstrainedGLM

    A, y = table()
    said = solved("--set", words, "--loss", loss, "--intercept", "--tol", 1e-7)
    pandas = pytest.importorskip("pandas")
    model = ConstrainedGLM(loss, constraint or words, tol=1e-7).fit(pandas.DataFrame(A, columns=["income", "debt", "age"]), y)
    assert said["value"] == pytest.approx(model.objective_, rel=1e-5)
    np.testing.assert_allclose(said["x"], model.coef_, atol=2e-2)
    if loss != "quantile:0.9":  # of which several are best
        assert said["intercept"] == pytest.approx(model.intercept_, abs=2e-2)
    assert (said["features"], said["target"]) == (["income", "debt", "age"], "price")


def test_true_and_false_are_numbers_to_losses_of_numbers(data):
    for name, words in (("w", ("True", "False")), ("t", ("1", "0"))):
        Path(f"{name}.csv").write_text("a,b\n" + f"{words[0]},{words[1]}\n{words[1]},{words[0]}\n" * 3)
    words = json.loads(run("solve", "w.csv", "--set", "l1:1", "--loss", "squared", "--json").stdout)
    assert words["value"] == solved("--set", "l1:1", "--loss", "squared")["value"]


def test_counts(data):
    A, _ = table()
    y = np.random.default_rng(1).poisson(np.exp(0.3 * A[:, 0]))
    np.savez("c.npz", X=A, y=y)
    result = run("solve", "c.npz", "--set", "box:-1,1", "--loss", "poisson", "--intercept", "--out", "m.npz", "--json")
    assert result.exit_code == 0
    said = json.loads(result.stdout)
    mean = np.exp(A @ said["x"] + said["intercept"])
    assert mean.mean() == pytest.approx(y.mean(), rel=1e-3)
    assert predicted("m.npz", "c.npz")["mean"] == pytest.approx(mean, rel=1e-12)


def test_a_loss_without_a_minimum_says_so(data):
    np.savez("c.npz", X=np.array([[-1.0], [1.0]]), y=np.array([-1.0, 1.0]))
    result = run("solve", "c.npz", "--set", "nonneg", "--json")
    assert result.exit_code == 3
    said = json.loads(result.stdout)
    assert (said["status"], said["converged"]) == ("unbounded", False)
    assert "keeps falling" in said["sentence"]
    refused(run("solve", "c.npz", "--set", "l1:30%"), "--set l1:30%", "keeps falling")


# ---- lists, the demonstration, help


WORDS = [*SETS, "groups", "nonneg", "bounds", "relations", "&"]


@pytest.mark.parametrize(("command", "names"), [("sets", WORDS), ("losses", LOSS_FORMS)])
def test_lists(command, names):
    rows = json.loads(run(command, "--json").stdout)
    assert [row["name"] for row in rows] == list(names)
    assert all(text for row in rows for text in row.values())
    lines = run(command).stdout.splitlines()
    assert len(lines) == len(rows)
    for line, row in zip(lines, rows, strict=True):
        assert [line.index(text) for text in row.values()] == sorted(line.index(text) for text in row.values())


def test_methods_are_the_table():
    rows = json.loads(run("methods", "--json").stdout)
    assert [row["method"] for row in rows] == list(METHODS)
    shown = run("methods").stdout.splitlines()
    for row in rows:
        card = METHODS[row["method"]].card
        assert (row["class"], row["summary"]) == (METHODS[row["method"]].__name__, card.summary)
        (line,) = [line for line in shown if line.split("  ")[0].removesuffix(" *") == row["method"]]
        assert all(text in line for text in (*(card.convex or "-"), *(card.nonconvex or "-"), card.memory, card.source))
        assert (f"* {row['method']}: {card.correction}" in shown) == bool(card.correction)
    assert json.loads(run("methods", "sarah-fw", "--json").stdout) in rows


@pytest.mark.parametrize("name", METHODS)
def test_the_card_of_a_method(name):
    kind, shown = METHODS[name], run("methods", name).stdout
    assert shown.startswith(f"{name}: {kind.__name__}\n{inspect.cleandoc(kind.__doc__).splitlines()[0]}")
    assert kind.card.guarantee in " ".join(shown.split())
    assert all(text in shown for text in (kind.card.memory, kind.card.source, f"ex.{kind.__name__}("))
    assert " object at 0x" not in shown


def test_the_card_of_no_method():
    refused(run("methods", "sara-fw"), "unknown method 'sara-fw'", "did you mean 'sarah-fw'?")


def test_what_lists_say():
    by_name = {row["name"]: row for row in json.loads(run("sets", "--json").stdout)}
    assert by_name["box"]["written"] == "box:LOWER,UPPER"
    assert by_name["l2"]["summary"] == "The Euclidean ball."


def test_demo_passes_on_where_the_picture_goes(data, monkeypatch):
    called = []
    fake = types.ModuleType("extremal_lab.reproduction.demo")
    fake.run = lambda out, console: called.append((out, console))
    monkeypatch.setitem(sys.modules, "extremal_lab.reproduction.demo", fake)
    assert run("demo", "--out", "p.png").exit_code == 0
    assert run("demo").exit_code == 0
    assert [out for out, _ in called] == [Path("p.png"), Path("extremal-demo.png")]
    assert all(hasattr(console, "print") for _, console in called)
    refused(run("demo", "--out", "gone/p.png"), "there is no directory gone")
    assert len(called) == 2


def test_version_and_help():
    first, second, *others = run("--version").stdout.splitlines()
    assert first == f"extremal {ex.__version__}"
    assert second.startswith("Python 3.")
    assert {"numpy", "scipy", "numba", "typer"} <= {line.split(" ")[0] for line in others}
    assert all(len(line.split(" ")) == 2 for line in others)  # a line for each package
    assert run("--help").exit_code == 0
    for args in (["--help"], ["solve", "--help"]):
        text = " ".join(run(*args).stdout.split())
        for words in ("0 the certified gap meets", "2 a mistake in the input", "3 the run ended before", "130 Ctrl-C"):
            assert words in text


def test_help_says_where_defaults_differ_from_those_of_estimators():
    from extremal.sklearn import ConstrainedLogisticRegression

    model = ConstrainedLogisticRegression()
    assert (model.fit_intercept, model.tol) == (True, 1e-6)
    options = {p.name: p for p in get_command(app).commands["solve"].params}
    assert (options["intercept"].default, options["tol"].default) == (False, 1e-4)
    assert "Most estimators in Python fit one by default, and their tol is 1e-6, not 1e-4" in options["intercept"].help


def test_the_installed_command(data):
    """As users run it: a process of its own, the exit code seen from outside, no traceback."""
    command = [sys.executable, "-c", CHILD, "solve", "data", "--set"]
    good = subprocess.run([*command, "l1:2", "--tol", "0.05", "--json", "--quiet"], capture_output=True, text=True, timeout=60)
    assert (good.returncode, heard(good.stderr)) == (0, "")
    assert json.loads(good.stdout)["converged"] is True
    bad = subprocess.run([*command, "l3:2"], capture_output=True, text=True, timeout=60)
    assert (bad.returncode, bad.stdout) == (2, "")
    assert bad.stderr.startswith("error: unknown set 'l3'; did you mean 'l")
    assert bad.stderr.count("\n") == 1


def test_one_limit_of_time_holds_for_all_runs_of_a_command():
    """Bounds that grow, and the run before a percentage, had the whole time each."""
    spent = types.SimpleNamespace(seconds=0.75)
    assert wide.budget_left({"max_seconds": 1.0, "tol": 0}, spent) == {"max_seconds": 0.25, "tol": 0}
    assert wide.budget_left({"max_seconds": 0.5}, spent)["max_seconds"] == 1e-3
    assert wide.budget_left({"max_seconds": None}, spent) == {"max_seconds": None}


@pytest.mark.parametrize("loss", ["squared", "poisson"])
def test_an_answer_far_out_along_an_undetermined_direction_is_shortened(loss, tmp_path, monkeypatch):
    """The level of all dummies belongs to the intercept: a run that ends 200 units out along it is moved back."""

    def drifting(f, C, *args, **kept):
        r = minimize(f, C, *args, **kept)
        x = np.asarray(r.x) + np.array([0, 200, 200, 200])
        return dataclasses.replace(r, x=x, value=f.value(x))

    minimize = solving.minimize
    monkeypatch.setattr(solving, "minimize", drifting)
    rng = np.random.default_rng(0)
    city, age = rng.integers(0, 3, 300), rng.standard_normal(300)
    y = rng.poisson(np.exp(0.3 * age + 0.7 * (city == 1) - 0.2))
    rows = np.column_stack([age, np.eye(3)[city], y])
    np.savetxt(tmp_path / "city.csv", rows, delimiter=",", header="age,a,b,c,y", comments="")
    words = [str(tmp_path / "city.csv"), "--set", "b >= c", "--loss", loss, "--intercept", "--json", "--quiet"]
    said = json.loads(run("solve", *words).stdout)
    assert said["converged"]
    assert said["relative_gap"] <= 1e-4
    assert said["x"][2] >= said["x"][3]
    assert max(map(abs, said["x"])) < 5
    assert abs(said["intercept"]) < 5
