"""The command line: what it prints and saves, how it ends, and that each mistake is one line."""

import inspect
import itertools
import json
import os
import signal
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from typer.testing import CliRunner

import extremal as ex
from extremal.cli import progress, solving
from extremal.cli.commands import app
from extremal.files import models
from extremal.kernels.jit import KEPT
from extremal.losses.named import FORMS
from extremal.methods.names import METHODS
from extremal.sets.parse import SETS

PLAIN = {"FORCE_COLOR": None, "TTY_COMPATIBLE": None, "GITHUB_ACTIONS": None}  # not a terminal, whatever the surroundings say
# a shell's background jobs start with Ctrl-C switched off, so the child switches it on
CHILD = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from extremal.cli.app import main; main()"


def problem(n=60, d=8, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)).round(3)
    return A, np.sign(A[:, 0] + 0.5 * rng.standard_normal(n))


@pytest.fixture
def data(tmp_path, monkeypatch):
    """A small LIBSVM file in a directory of its own."""
    monkeypatch.chdir(tmp_path)
    A, y = problem()
    rows = [f"{label:g} " + " ".join(f"{j + 1}:{v}" for j, v in enumerate(row)) for label, row in zip(y, A, strict=True)]
    path = tmp_path / "data"
    path.write_text("\n".join(rows))
    return path


def run(*args):
    return CliRunner(env=PLAIN).invoke(app, [str(a) for a in args])


def solve(*args):
    """By the method of `direct`, unless another is named."""
    return run("solve", "data", "--set", "l1:2", *([] if "--method" in args else ["--method", "sarah-fw"]), *args)


def refused(result, *words):
    """Exit code 2, one line on stderr, nothing on stdout."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    for word in words:
        assert word in result.stderr


def heard(stderr):
    """What a process says on stderr, but for the notice that kernels are being compiled."""
    return stderr.replace(KEPT + "\n", "")


def direct(method="sarah-fw", **options):
    A, y = problem()
    f = ex.LinearModel(ex.Logistic(), sp.csr_array(A), y)
    return f, ex.minimize(f, ex.L1Ball(2.0), method, **{"max_grads": 100 * f.n} | options)


# ---- what it answers


@pytest.mark.parametrize("method", [m for m in METHODS if m not in ("in-face-fw", "low-rank-fw")])  # not for the l1 ball
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


def table(path="t.csv", n=80, seed=0, header=True, order=(0, 1, 2)):
    """Rows with names and a price; the columns in some order."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, 3)).round(3)
    y = (A @ [2.0, -1.0, 0.5] + 3 + 0.1 * rng.standard_normal(n)).round(3)
    names = np.array(["income", "debt", "age"])
    head = ",".join([*names[list(order)], "price"]) + "\n" if header else ""
    rows = np.column_stack([A[:, list(order)], y])
    Path(path).write_text(head + "".join(",".join(map(str, row)) + "\n" for row in rows.tolist()))
    return A, y


def solved(*args):
    result = run("solve", "t.csv", "--json", *args)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_auto_is_the_default_and_says_what_it_chose(data):
    said = json.loads(run("solve", "data", "--set", "l1:2", "--json").stdout)
    _, r = direct("auto")
    assert (said["value"], said["method"], said["why"]) == (r.value, "auto", r.why)
    assert said["x"] == r.x.tolist()
    text = run("solve", "data", "--set", "l1:2").stdout
    assert "Logistic() of 60 rows x 8 features, no intercept" in text
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
    assert "goes on falling" in said["sentence"]
    refused(run("solve", "c.npz", "--set", "l1:30%"), "--set l1:30%", "goes on falling")


# ---- predictions


def predicted(*args):
    result = run("predict", *args)
    assert result.exit_code == 0, result.output
    rows = [line.split(",") for line in result.stdout.splitlines()]
    columns = {name: column for name, *column in zip(*rows, strict=True)}
    return {name: column if name == "class" else [float(v) for v in column] for name, column in columns.items()}


def test_columns_go_by_name_whatever_their_order(data):
    A, _ = table()
    said = solved("--set", "nonneg", "--loss", "squared", "--intercept", "--out", "m.npz")
    expected = A @ said["x"] + said["intercept"]
    table("other.csv", order=(2, 0, 1))
    assert predicted("m.npz", "other.csv")["value"] == pytest.approx(expected, rel=1e-12)
    np.save("A.npy", A)
    np.savez("A.npz", A=A)
    for name in ("A.npy", "A.npz"):
        assert predicted("m.npz", name)["value"] == pytest.approx(expected, rel=1e-12)
    table("bare.csv", header=False)
    refused(run("predict", "m.npz", "bare.csv"), "bare.csv: expected 3 columns", "got 4; name the column that is no feature by")
    assert predicted("m.npz", "bare.csv", "--target", "3")["value"] == pytest.approx(expected, rel=1e-12)
    assert run("predict", "m.npz", "A.npy", "--out", "p.csv").stdout == ""
    assert len(Path("p.csv").read_text().splitlines()) == 81
    assert json.loads(run("predict", "m.npz", "A.npy", "--json").stdout)["value"] == pytest.approx(expected, rel=1e-12)


def test_classes_and_probabilities_are_those_of_the_estimators(data):
    from extremal.sklearn import ConstrainedMultinomialRegression

    A, _ = table(n=120)
    y = np.array(["c", "a", "b"])[np.where(A[:, 0] > 0.5, 0, np.where(A[:, 1] > 0, 1, 2))]
    rows = [["u", "v", "w", "kind"], *([*a, k] for a, k in zip(A.tolist(), y, strict=True))]
    Path("k.csv").write_text("".join(",".join(map(str, row)) + "\n" for row in rows))
    args = ("--loss", "multinomial", "--intercept", "--tol", 1e-5, "--passes", 1000, "--out", "m.npz")
    result = run("solve", "k.csv", "--set", "groups:5", *args, "--json")
    assert result.exit_code == 0, result.output
    said = predicted("m.npz", "k.csv")
    model = ConstrainedMultinomialRegression("groups:5", tol=1e-5).fit(A, y)
    assert list(said) == ["class", "probability of a", "probability of b", "probability of c"]
    shares = np.column_stack([said[f"probability of {k}"] for k in "abc"])
    np.testing.assert_allclose(shares, model.predict_proba(A), atol=2e-2)
    assert np.mean(said["class"] == model.predict(A)) > 0.97


def test_two_classes_keep_their_labels(data):
    for positive, expected in ((["--positive", "-1"], {"-1", "1.0"}), ([], {"-1.0", "1.0"})):
        assert run("solve", "data", "--set", "l1:2", "--out", "m.npz", *positive).exit_code == 0
        result = run("predict", "m.npz", "data")
        head, *rows = result.stdout.splitlines()
        assert {row.split(",")[0] for row in rows} == expected
        assert set(head.split(",")[1:]) == {f"probability of {label}" for label in expected}
    _, y = problem()
    right = [row.split(",")[0] for row in rows] == np.array([str(v) for v in y])
    assert right.mean() > 0.7


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["m.npz", "other.csv"], ["other.csv: has no column 'income' (2 more", "its columns are 'a, b, c, d'"]),
        (["m.npz", "wide"], ["wide: expected 3 features as in the model, got 8"]),
        (["m.npz", "m.npz"], ["m.npz: expected an array A or X"]),
        (["other.csv", "t.csv"], ["other.csv: the file is truncated or damaged"]),
        (["no.npz", "t.csv"], ["no.npz: this is no model"]),
        (["odd.npz", "t.csv"], ["odd.npz: this is no model that can be used"]),
        (["gone.npz", "t.csv"], ["gone.npz: cannot be read"]),
        (["m.npz", "gone.csv"], ["gone.csv: cannot be read"]),
        (["m.npz", "t.csv", "--out", "gone/p.csv"], ["there is no directory gone"]),
    ],
)
def test_what_does_not_fit_is_one_line(data, args, words):
    table()
    solved("--set", "nonneg", "--loss", "squared", "--out", "m.npz")
    Path("other.csv").write_text("a,b,c,d\n1,2,3,4\n")
    data.rename("wide")
    np.savez("no.npz", A=np.eye(3))
    np.savez("odd.npz", x=np.array([1.0, np.nan]), loss="squared")
    refused(run("predict", *args), *words)


def test_features_that_no_memory_can_hold(data, monkeypatch):
    Path("wide").write_text("1 1:1\n-1 2147483647:1\n")
    monkeypatch.setattr(solving, "free_memory", lambda: 10**9)
    refused(run("solve", "wide", "--set", "l1:1"), "wide: 2147483647 features are more than the memory can hold")
    monkeypatch.setattr(solving, "free_memory", lambda: None)  # where the system does not say
    assert run("solve", "data", "--set", "l1:2").exit_code == 0


def test_methods_that_draw_batches_take_no_intercept(data):
    refused(solve("--intercept"), "batch")


# ---- mistakes


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--method", "sara-fw"], ["unknown method 'sara-fw'", "did you mean 'sarah-fw'?"]),
        (["--loss", "logistik"], ["unknown loss 'logistik'", "did you mean 'logistic'?"]),
        (["--set", "l11:2"], ["unknown set 'l11'", "did you mean 'l1'?"]),
        (["--set", "lp:2"], ["cannot read the set 'lp:2': write lp:RADIUS,P"]),
        (["--set", "l1:x"], ["cannot read the set 'l1:x'"]),
        (["--set", "l1:0"], ["radius", "positive", "got 0"]),
        (["--set", "l1:-1"], ["radius", "positive", "got -1"]),
        (["--set", "l1:nan"], ["radius", "positive", "got nan"]),
        (["--batch", "0"], ["batch", "at least 1, got 0"]),
        (["--batch", "61"], ["batch", "between 1 and 60, got 61"]),
        (["--method", "frank-wolfe", "--batch", "5"], ["--batch does not apply to frank-wolfe"]),
        (["--passes", "0"], ["passes", "got 0.0"]),
        (["--passes", "-1"], ["passes", "got -1.0"]),
        (["--passes", "nan"], ["passes", "got nan"]),
        (["--passes", "inf"], ["passes", "got inf"]),
        (["--tol", "-1"], ["tol", "got -1.0"]),
        (["--atol", "nan"], ["atol", "got nan"]),
        (["--seed", "-1"], ["seed", "got -1"]),
        (["--max-iter", "-1"], ["--max-iter must be", "got -1"]),
        (["--max-seconds", "0"], ["--max-seconds must be", "got 0.0"]),
        (["--target", "3"], ["data: ", "leave out target"]),
        (["--positive", "7"], ["--positive 7: no target is that", "-1.0, 1.0"]),
        (["--positive", "cat"], ["--positive cat: no target is that"]),
        (["--positive", "1", "--loss", "squared"], ["--positive 1 does not apply to Squared"]),
        (["--loss", "nonlinear-least-squares"], ["data: ", "takes labels {0, 1}, got {-1, 1}", "--positive LABEL"]),
    ],
)
def test_a_wrong_option_is_one_line(data, args, words):
    refused(solve(*args), *words)


@pytest.mark.parametrize("out", ["gone/model.npz", ".", os.devnull])
def test_out_is_refused_before_the_run(data, monkeypatch, out):
    monkeypatch.setattr(solving, "minimize", lambda *_, **__: pytest.fail("the run was made"))
    monkeypatch.setattr(solving, "read", lambda *_: pytest.fail("the file was read"))
    refused(solve("--out", out), "cannot be written")
    assert os.listdir() == ["data"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("gone", None, ["gone: cannot be read (No such file or directory)"]),
        (".", None, [".: cannot be read (Is a directory)"]),
        ("empty", b"", ["empty: the file is empty"]),
        ("bad", b"1 1:1\n1 3;1\n", ["bad:2: expected index:value after the label, got '3;1'"]),
        ("bad", b"1 1:1\n1 1:nan\n", ["bad:2: expected finite numbers, got nan"]),
        ("bad.csv", b"a,b\n1,2\n1,x\n", ["bad.csv:3: expected a number, got 'x'"]),
        ("bad.gz", b"\x1f\x8b\x08\x00\x00", ["bad.gz: the file is truncated or damaged"]),
        ("bad.xz", b"1 1:1", ["bad.xz: the file is truncated or damaged"]),
        ("bad.npz", b"PK\x03\x04", ["bad.npz: the file is truncated or damaged"]),
        ("[red].npz", b"PK\x03\x04", ["[red].npz: the file is truncated or damaged"]),
        ("two.csv", b"1,cat\n2,dog\n", ["two.csv: ", "must hold numbers", "--positive LABEL"]),
        ("three", b"1 1:1\n2 1:1\n3 1:2\n", ["three: ", "takes labels {-1, 1}, got {1, 2, 3}", "--positive LABEL"]),
    ],
)
def test_a_bad_file_is_one_line(data, name, content, words):
    if content is not None:
        Path(name).write_bytes(content)
    refused(run("solve", name, "--set", "l1:2"), *words)


@pytest.mark.parametrize("where", ["A", "y"])
@pytest.mark.parametrize("positive", [[], ["--positive", "1"]])
def test_nan_in_arrays_is_one_line(data, where, positive):
    A, y = problem()
    (A if where == "A" else y)[3] = np.nan
    np.savez("d.npz", A=A, y=y)
    result = run("solve", "d.npz", "--set", "l1:2", *positive)
    refused(result, "d.npz: ", "must be finite, got nan at index")
    assert "--positive" not in result.stderr


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(28, "No space left on device"), "model.npz: cannot be written (No space left"),
        (MemoryError(), "not enough memory"),
    ],
)
def test_trouble_while_saving_does_not_cost_the_answer(data, monkeypatch, error, words):
    def fails(*_, **__):
        raise error

    monkeypatch.setattr(models.Path, "write_bytes", fails)
    result = solve("--out", "model.npz", "--json", "--quiet")
    assert result.exit_code == 2
    assert json.loads(result.stdout)["value"] == direct()[1].value
    assert result.stderr.startswith("error: ")
    assert words in result.stderr
    assert os.listdir() == ["data"]


def test_values_that_overflow_at_the_start_are_one_line(data):
    np.savez("d.npz", A=np.full((3, 2), 1e200), y=np.full(3, 1e200))
    with np.errstate(all="ignore"):
        refused(run("solve", "d.npz", "--set", "l1:1", "--loss", "squared"))


def test_a_bug_is_a_traceback(data, monkeypatch):
    def bug(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr(solving, "minimize", bug)
    assert isinstance(solve().exception, ZeroDivisionError)


@pytest.mark.parametrize("args", [["solve"], ["solve", "data"], ["solve", "data", "--set"], ["solv"], ["sets", "--jso"]])
def test_usage_errors_end_with_code_2(data, args):
    result = run(*args)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr


@pytest.mark.parametrize("value", ["--seed=x", "--batch=1.5", "--passes=many"])
def test_options_of_the_wrong_type_end_with_code_2(data, value):
    assert solve(value).exit_code == 2


# ---- progress


def test_progress_is_for_terminals_however_long_a_run_takes(data, monkeypatch):
    hours = itertools.count(0, 3600)
    monkeypatch.setattr(progress, "time", types.SimpleNamespace(monotonic=lambda: next(hours)))
    for quiet in ((), ("--quiet",)):
        shown = solve("--json", "--tol", 0, *quiet)
        assert shown.stderr == ""
        assert json.loads(shown.stdout)["passes"] >= 100


def test_measuring_for_progress_is_rare(monkeypatch):
    now, measured = [0.0], []
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])

    def slow(state):
        measured.append(now[0])
        now[0] += 1.0
        return ""

    monkeypatch.setattr(progress, "_measure", slow)
    watch = progress._Watch(0.1, lambda passes, text: None)
    state = types.SimpleNamespace(calls=types.SimpleNamespace(grads=1), f=types.SimpleNamespace(n=1))
    while now[0] < 100:
        watch(state)
        now[0] += 0.05
    assert 4 <= len(measured) <= 5  # a second each, so at most one in twenty


@pytest.fixture
def child():
    """Starts ``extremal`` in a process of its own; ends it if the test has not."""
    started = []

    def start(*args, stderr=subprocess.PIPE, env=None):
        command = [sys.executable, "-c", CHILD, *map(str, args)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True, env=env)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def on_a_terminal(child):
    """Starts ``extremal`` with its stderr on a terminal: the process, and how to read there until some bytes have come."""
    pty = pytest.importorskip("pty", reason="needs a pseudo-terminal")
    ours, theirs = pty.openpty()
    environment = {k: v for k, v in os.environ.items() if k not in PLAIN} | {"TERM": "xterm", "COLUMNS": "120"}

    def start(*args):
        process = child(*args, stderr=theirs, env=environment)
        os.close(theirs)
        return process

    def seen(until=None):
        read = b""
        try:
            while (until is None or until not in read) and (piece := os.read(ours, 65536)):
                read += piece
        except OSError:
            pass  # Linux's way to say that the other end is closed
        return read

    yield start, seen
    os.close(ours)


def test_a_terminal_gets_a_bar_and_stdout_stays_clean(data, on_a_terminal):
    start, seen = on_a_terminal
    words = ["solve", "data", "--set", "l1:2", "--json", "--passes", "1e5", "--tol", "0"]
    child = start(*words, "--method", "frank-wolfe", "--max-seconds", "1")  # this method compiles nothing, so a second will do
    read = seen()
    stdout, _ = child.communicate(timeout=60)
    assert child.returncode == 3
    assert json.loads(stdout)["status"] == "max_seconds"
    assert b"\x1b[" in read
    assert b"of 100000 passes, value 0." in read
    assert b"gap " in read


# ---- Ctrl-C


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT")
def test_ctrl_c_in_mid_run_gives_the_best_certified_point(data, on_a_terminal):
    start, seen = on_a_terminal
    process = start(
        "solve",
        "data",
        "--set",
        "l1:2",
        "--method",
        "sarah-fw",
        "--passes",
        1e8,
        "--tol",
        0,
        "--atol",
        0,
        "--json",
        "--out",
        "model.npz",
    )
    assert b"of 1e+08 passes, value" in seen(b"passes, value")  # it is running
    process.send_signal(signal.SIGINT)
    stdout, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Traceback" not in seen()
    said = json.loads(stdout)
    assert (said["status"], said["converged"]) == ("interrupted", False)
    f, _ = direct()
    with np.load("model.npz", allow_pickle=False) as held:
        x, value, gap = held["x"], float(held["value"]), float(held["gap"])
        assert str(held["status"]) == "interrupted"
    assert (said["value"], said["gap"]) == (value, gap)
    g = f.grad(x)
    assert ex.L1Ball(2.0).contains(x)
    assert f.value(x) == pytest.approx(value, rel=1e-12)
    assert x @ g + 2.0 * np.abs(g).max() == pytest.approx(gap, rel=1e-6, abs=1e-12)
    assert value <= f.value(np.zeros(8))  # on a slow machine the start is all that there was time for
    assert sorted(os.listdir()) == ["data", "model.npz"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a named pipe")
def test_ctrl_c_while_reading_is_one_line(data, child):
    os.mkfifo("pipe")
    process = child("solve", "pipe", "--set", "l1:2", "--out", "model.npz")
    with open("pipe", "w") as pipe:  # waits until the other side reads
        pipe.write("1 1:1\n")
        pipe.flush()
        process.send_signal(signal.SIGINT)
        try:
            stdout, stderr = process.communicate(timeout=20)
        except subprocess.TimeoutExpired:  # on a busy machine the first one may come before the reader can raise it
            process.send_signal(signal.SIGINT)
            stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert stdout == ""
    assert heard(stderr) == "interrupted before an answer was certified and saved\n"
    assert sorted(os.listdir()) == ["data", "pipe"]


def test_ctrl_c_before_the_first_state_is_one_line(data, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(ex.LinearModel, "derivs", interrupted)  # in the first gradient
    monkeypatch.setattr(ex.LinearModel, "grad", interrupted)
    result = solve("--json")
    assert result.exit_code == 130
    assert result.stdout == ""
    assert result.stderr == "interrupted before an answer was certified and saved\n"


# ---- lists, the demonstration, help


WORDS = [*SETS, "groups", "nonneg", "bounds", "relations", "&"]


@pytest.mark.parametrize(("command", "names"), [("sets", WORDS), ("losses", FORMS)])
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
    assert all(text in shown for text in (kind.card.note, kind.card.correction, kind.card.source, f"ex.{kind.__name__}("))


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
    assert run("--version").stdout == f"extremal {ex.__version__}\n"
    assert run("--help").exit_code == 0
    for args in (["--help"], ["solve", "--help"]):
        text = " ".join(run(*args).stdout.split())
        for words in ("0 the certified gap meets", "2 a mistake in the input", "3 the run ended before", "130 Ctrl-C"):
            assert words in text


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
