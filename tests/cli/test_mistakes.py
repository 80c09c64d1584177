"""Mistakes on the command line: each is one line, and the code says whose it is."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
from command_line import direct, problem, refused, run, solve

from extremal.cli import solving
from extremal.files import models


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
        (["--positive", "7"], ["--positive 7: no target has this label", "-1.0, 1.0"]),
        (["--positive", "cat"], ["--positive cat: no target has this label"]),
        (["--positive", "1", "--loss", "squared"], ["--positive 1 does not apply to Squared"]),
        (
            ["--loss", "nonlinear-least-squares"],
            ["the target has the labels -1, 1, and", "takes 0 and 1: add --positive 1"],
        ),
    ],
)
def test_a_wrong_option_is_one_line(data, args, words):
    refused(solve(*args), *words)


@pytest.mark.parametrize("out", ["gone/model.npz", ".", os.devnull])
def test_out_is_refused_before_the_run(data, monkeypatch, out):
    monkeypatch.setattr(solving, "minimize", lambda *_, **__: pytest.fail("the run was made"))
    monkeypatch.setattr(solving, "read_table", lambda *_: pytest.fail("the file was read"))
    refused(solve("--out", out), "cannot be written")
    assert os.listdir() == ["data"]


def test_out_replaces_models_only(data, monkeypatch):
    assert solve("--out", "model.npz", "--tol", 0.05).exit_code == 0
    Path("empty.npz").touch()
    for name in ("model.npz", "empty.npz"):
        assert solve("--out", name, "--tol", 0.05).exit_code == 0
    np.savez("rows.npz", A=np.eye(2), y=np.ones(2))
    Path("notes.npz").write_text("not an archive")
    monkeypatch.setattr(solving, "read_table", lambda *_: pytest.fail("the file was read"))
    for name in ("rows.npz", "notes.npz"):
        before = Path(name).read_bytes()
        refused(solve("--out", name), f"{name}: there is a file of this name that is no model of `extremal solve`")
        assert Path(name).read_bytes() == before
    for name in ("model.joblib", "model", "model.csv"):
        refused(solve("--out", name), f"{name}: a model is saved as .npz; write model.npz")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("gone", None, ["gone: cannot be read (No such file or directory)"]),
        (".", None, [".: not a directory of shards (it holds no file manifest.json)"]),
        ("empty", b"", ["empty: the file is empty"]),
        ("bad", b"1 1:1\n1 3;1\n", ["bad:2: expected index:value after the label, got '3;1'"]),
        ("bad", b"1 1:1\n1 1:nan\n", ["bad:2: expected finite numbers, got nan"]),
        ("bad.csv", b"a,b\n1,2\n1,x\n", ["bad.csv:3: column 'b' holds 'x', not a number; the target is the last column, 'b'"]),
        ("bad.gz", b"\x1f\x8b\x08\x00\x00", ["bad.gz: the file is truncated or damaged"]),
        ("bad.xz", b"1 1:1", ["bad.xz: the file is truncated or damaged"]),
        ("bad.npz", b"PK\x03\x04", ["bad.npz: the file is truncated or damaged"]),
        ("[red].npz", b"PK\x03\x04", ["[red].npz: the file is truncated or damaged"]),
        (
            "two.csv",
            b"1,cat\n2,dog\n",
            ["two.csv: the target (the last", "has the labels cat, dog: add --positive dog\n"],
        ),
        (
            "two.csv",
            b"a,paid\n1,not yet\n2,all paid\n",
            ["'paid' (", "labels all paid, not yet: add --positive 'not yet'"],
        ),
        ("one.csv", b"a,paid\n1,yes\n2,yes\n", ["target 'paid' (the last column", "has the label yes: add --positive yes"]),
        ("abc.csv", b"a,k\n1,a\n2,b\n3,c\n", ["has the labels a, b, c: add --loss multinomial, or --positive LABEL"]),
        (
            "three",
            b"1 1:1\n2 1:1\n3 1:2\n",
            ["three: the target has the labels 1, 2, 3, and --loss logistic takes -1 and 1: "],
        ),
        ("price.npy", None, ["price.npy: the target (the last column; ", "has 30 different numbers, and", "add --loss squared"]),
    ],
)
def test_a_bad_file_is_one_line(data, name, content, words):
    if content is not None:
        Path(name).write_bytes(content)
    np.save("price.npy", np.arange(60.0).reshape(30, 2))
    refused(run("solve", name, "--set", "l1:2"), *words)


def test_words_are_no_targets_of_a_loss_of_numbers(data):
    Path("t.csv").write_text("a,city\n1,Rome\n2,Paris\n")
    result = run("solve", "t.csv", "--set", "l1:2", "--loss", "squared", "--target", "city")
    refused(result, "t.csv: target 'city' has the labels Paris, Rome, and --loss squared takes numbers")
    assert "--positive" not in result.stderr


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
