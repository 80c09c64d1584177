"""`extremal solve` and `extremal predict` on a directory of shards: as on the file that it was made from."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.sparse as sp
from command_line import predicted, refused, run, table

import extremal as ex

MODELS = [
    (["--loss", "squared", "--set", "l1:2 & income >= 0"], "price"),
    (["--loss", "squared", "--set", "nonneg", "--intercept"], "price"),
    (["--loss", "quantile:0.7", "--set", "l2:2", "--intercept"], "price"),
    (["--loss", "huber:1", "--set", "l1:50%"], "price"),
    (["--positive", "yes", "--set", "l1:3", "--intercept"], "two"),
    (["--positive", "may", "--set", "box:-1,1"], "three"),
    (["--loss", "multinomial", "--set", "l1:3", "--intercept"], "three"),
    (["--set", "l1:3"], "signs"),
    (["--loss", "nonlinear-least-squares", "--positive", "1", "--set", "l1:3"], "signs"),
]
SPARE = ("seconds", "why", "target", "rows")  # what is not the same


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A file and a directory for each kind of target."""
    monkeypatch.chdir(tmp_path)
    _, price = table()
    head, *rows = (tmp_path / "t.csv").read_text().splitlines()
    labels = {
        "price": price,
        "two": np.where(price > 3, "yes", "no"),
        "three": np.array(["no", "may", "yes"])[np.digitize(price, [2, 4])],
        "signs": np.where(price > 3, 1, -1),
    }
    for name, y in labels.items():
        lines = [row.rpartition(",")[0] + f",{label}" for row, label in zip(rows, y.tolist(), strict=True)]
        (tmp_path / f"{name}.csv").write_text("\n".join([head, *lines]))
        assert run("shards", "build", f"{name}.csv", name).exit_code == 0
    return tmp_path


def answer(*args):
    result = run("solve", *args, "--json", "--tol", "1e-9")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.mark.parametrize(("options", "kind"), MODELS, ids=lambda item: item if isinstance(item, str) else " ".join(item))
def test_as_the_file_it_was_made_from(options, kind, files):
    near, memory, disk = (
        answer(*which, *options) for which in ((f"{kind}.csv",), (kind, "--engine", "memory"), (kind, "--engine", "disk"))
    )
    assert {k: v for k, v in memory.items() if k not in SPARE} == {k: v for k, v in disk.items() if k not in SPARE}
    np.testing.assert_allclose(memory["x"], near["x"], rtol=1e-5, atol=1e-6)
    assert memory["value"] == pytest.approx(near["value"], rel=1e-8)
    assert [memory[k] for k in ("features", "classes", "set")] == [near[k] for k in ("features", "classes", "set")]
    assert "on disk" in disk["why"]
    assert memory["rows"] == disk["rows"] >= near["n"]


def test_what_is_printed(files):
    result = run("solve", "signs", "--set", "l1:3")
    assert result.exit_code == 0
    for word in ("80 rows x 3 features", "rows read", "in 1 shard in memory", "certified gap"):
        assert word in result.stdout


@pytest.mark.parametrize("options", [["--positive", "yes"], ["--loss", "multinomial", "--intercept"]])
def test_predictions(options, files):
    """Columns go by name, whatever their order; rows in the order of the shards."""
    assert run("solve", "three", "--set", "l1:3", "--out", "m.npz", *options).exit_code == 0
    header = "age,income,id,debt,y"
    lines = [row.split(",") for row in (files / "three.csv").read_text().splitlines()[1:]]
    mixed = [",".join([age, income, "7", debt, y]) for income, debt, age, y in lines]
    (files / "mixed.csv").write_text("\n".join([header, *mixed]))
    assert run("shards", "build", "--no-shuffle", "mixed.csv", "mixed").exit_code == 0
    a, b = predicted("m.npz", "mixed"), predicted("m.npz", "three.csv", "--target", "price")
    assert list(a) == list(b)
    assert a["class"] == b["class"]
    for name in list(a)[1:]:
        np.testing.assert_allclose(a[name], b[name], rtol=1e-9)


def test_rows_without_names(files):
    rng = np.random.default_rng(0)
    X = sp.random_array((100, 3), density=0.5, format="csr", rng=rng)
    ex.ShardDir.build((X, np.where(rng.random(100) > 0.5, 1.0, -1.0)), "plain", shuffle=False)
    assert run("solve", "plain", "--set", "l1:3", "--out", "m.npz").exit_code == 0
    assert len(predicted("m.npz", "plain")["class"]) == 100
    assert len(predicted("m.npz", "signs")["class"]) == 80  # by their order, where one side has no names
    ex.ShardDir.build((X[:, :2], np.ones(100)), "narrow")
    refused(run("predict", "m.npz", "narrow"), "narrow: expected 3 features as in the model, got 2")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["solve", "three", "--set", "l1:3"], ["three: the target has the labels may, no, yes: add", "--positive"]),
        (["solve", "three", "--set", "l1:3", "--positive", "perhaps"], ["no target has this label", "may, no, yes"]),
        (["solve", "signs", "--set", "l1:3", "--loss", "squared", "--positive", "1"], ["does not apply to Squared"]),
        (["solve", "price", "--set", "l1:3"], ["price, shard 00000", "takes labels", "--positive LABEL"]),
        (["solve", "price", "--set", "l1:3", "--positive", "1"], ["are no labels"]),
        (["solve", "price", "--set", "l1:3", "--loss", "multinomial"], ["are no labels"]),
        (["solve", "signs", "--set", "l1:3", "--target", "y"], ["--target y does not apply to signs"]),
        (["solve", "signs", "--set", "l1:3", "--engine", "tape"], ["--engine must be one of", "'tape'"]),
        (["solve", "signs.csv", "--set", "l1:3", "--engine", "disk"], ["--engine disk is for a directory", "csv is not one"]),
        (["solve", ".", "--set", "l1:3"], ["not a directory of shards", "manifest.json"]),
        (["solve", "signs", "--set", "l1:3", "--intercept", "--method", "sarah-fw"], ["has no batches"]),
        (["solve", "signs", "--set", "l1:3 & rooms >= 0"], ["rooms"]),
        (["solve", "signs", "--set", "l1:3", "--method", "low-rank-fw"], ["is for nuclear balls"]),
    ],
)
def test_mistakes_are_one_line(arguments, words, files):
    refused(run(*arguments), *words)


def test_a_damaged_shard_is_named(files):
    path = files / "signs" / "00000.rows.npy"
    path.write_bytes(path.read_bytes()[:-8])
    refused(run("solve", "signs", "--set", "l1:3"), "signs/00000.rows.npy", "truncated or damaged")
    path.unlink()
    refused(run("solve", "signs", "--set", "l1:3"), "signs/00000.rows.npy", "cannot be read")


def test_a_model_of_other_columns_is_refused(files):
    assert run("solve", "price", "--set", "l1:3", "--loss", "squared", "--out", "m.npz").exit_code == 0
    (files / "u.csv").write_text("income,age,y\n1,2,3\n2,3,5\n")
    assert run("shards", "build", "u.csv", "u").exit_code == 0
    refused(run("predict", "m.npz", "u"), "u: has no column 'debt'")
    refused(run("predict", "m.npz", "price", "--target", "y"), "--target y does not apply")
