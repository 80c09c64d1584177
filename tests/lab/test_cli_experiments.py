"""``extremal compare`` and ``extremal reproduce``: what they write, how they end, that each mistake is one line."""

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from command_line import CHILD, refused, run
from panels_by_hand import libsvm

from extremal.files import datasets
from extremal_lab.commands import experiments
from extremal_lab.reproduction import FIGURES, pictures


@pytest.fixture
def drawing(tmp_path, monkeypatch):
    """A folder with a data file, and neither real data nor a network."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("EXTREMAL_DATA", raising=False)
    monkeypatch.setattr(datasets, "user_dir", lambda: tmp_path / "no data")
    libsvm(tmp_path / "mine.svm")
    return tmp_path


@pytest.fixture
def here(drawing, monkeypatch):
    """The same without pictures, which take longer than all the runs."""
    monkeypatch.setattr(pictures, "draw", lambda *_: [])
    return drawing


SMALL = ("--passes", 4, "--seeds", 2, "--cache", "kept", "--workers", 1, "--no-tune", "--offline")


def report_of(page):
    """The data inside a page."""
    text = page.read_text()
    return json.loads(re.search(r"<script[^>]*application/json[^>]*>(.*?)</script>", text, re.S)[1].replace("\\u003c", "<"))


def test_compare_as_in_the_readme(drawing):
    here = drawing
    result = run("compare", "--data", "mine.svm", "--set", "l1:5", "--methods", "sarah-fw,negiar,auto", *SMALL)
    assert result.exit_code == 0, result.output
    made = {path.name for path in (here / "comparison").iterdir()}
    assert made == {"index.html", "compare.csv", "settings.json", "ledger.md", "comparison.json"} | {
        f"compare-{x}.{end}" for x in ("passes", "lmos", "cpu") for end in ("png", "pdf")
    }
    rows = list(csv.DictReader((here / "comparison" / "compare.csv").read_text().splitlines()))
    assert {row["method"] for row in rows} == {"sarah-fw", "negiar-sfw", "auto"}
    assert {row["seed"] for row in rows} == {"0", "1"}
    said = report_of(here / "comparison" / "index.html")
    assert said["figures"][0]["problems"][0]["n"] == 200
    last = {row["method"]: float(row["value"]) for row in rows}  # of each method: rows come in the order of passes
    assert last["auto"] <= min(last.values())
    for word in ("mine.svm", "f_min", "Negiar et al.", "Algorithm 1", "comparison/index.html"):
        assert word in result.stdout


def test_compare_by_default(here):
    """`auto` beside the paper's methods, each with its own batch; a thing that is named twice is shown once."""
    twice = ("--data", "mine.svm", "--set", "l1:5", "--set", "l1:5")
    result = run("compare", *twice, *SMALL)
    assert result.exit_code == 0, result.output
    (problem,) = report_of(here / "comparison" / "index.html")["figures"][0]["problems"]
    assert {c["method"]: c["batch"] for c in problem["curves"]} == {
        "auto": None, "sarah-fw": 15, "saga-sarah-fw": 15, "negiar-sfw": 1
    }  # fmt: skip
    lines = (here / "comparison" / "compare.csv").read_text().splitlines()
    assert len(set(lines)) == len(lines)  # also where auto ends before its budget
    assert len([line for line in lines if ",auto,own," in line]) < 2 * 51
    assert "each method's own batch" in (here / "comparison" / "ledger.md").read_text()


def test_compare_with_one_batch_for_all(here):
    methods = "svrf,negiar,negiar-sfw,frank-wolfe,vr-sliding"
    result = run("compare", "--data", "mine.svm", "--set", "l1:5", "--methods", methods, "--batch", "n/20", *SMALL)
    assert result.exit_code == 0, result.output
    said = report_of(here / "comparison" / "index.html")
    (problem,) = said["figures"][0]["problems"]
    assert [(c["method"], c["batch"]) for c in problem["curves"]] == [
        ("svrf", None), ("negiar-sfw", 10), ("frank-wolfe", None), ("vr-sliding", 10)
    ]  # fmt: skip
    assert "vr-sliding (projects)" in result.stdout
    assert [item["label"] for item in said["methods"]][-1] == "vr-sliding (projects)"
    assert "theory" not in {c["steps"] for c in problem["curves"]}


def test_compare_over_sets_and_with_parameters(here):
    result = run(
        "compare", "--data", "mine.svm", "--set", "l1:1", "--set", "l1:2 & nonneg", "--loss", "squared",
        "--methods", "sarah-fw:batch=10,frank-wolfe", "--out", "out", *SMALL,
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    problems = report_of(here / "out" / "index.html")["figures"][0]["problems"]
    assert [p["set"] for p in problems] == ["l1:1", "l1:2 & nonneg"]
    assert "mine.svm, l1:1" in result.stdout
    assert "mine.svm, l1:2 & nonneg" in result.stdout
    assert all(p["f_min_gap"] < 1e-8 for p in problems)
    assert {c["method"] for c in problems[0]["curves"]} == {"sarah-fw:batch=10", "frank-wolfe"}


def test_the_same_command_makes_the_same_numbers_from_kept_runs(here):
    command = ("compare", "--data", "mine.svm", "--set", "l1:5", *SMALL)
    assert run(*command).exit_code == 0
    first = (here / "comparison" / "compare.csv").read_text()
    kept = sorted((here / "kept").rglob("*.npz"))
    times = [path.stat().st_mtime_ns for path in kept]
    assert run(*command).exit_code == 0
    assert (here / "comparison" / "compare.csv").read_text() == first  # CPU seconds too: nothing was run again
    assert [path.stat().st_mtime_ns for path in sorted((here / "kept").rglob("*.npz"))] == times


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--data", "mine.svm", "--set", "l1:5", "--methods", "sara,nothing"], ["nothing"]),
        (["--data", "mine.svm", "--set", "l1:5", "--methods", "sarah-fw:bath=3"], ["bath=3", "batch"]),
        (["--data", "mine.svm", "--set", "l1:5", "--methods", ","], ["at least one", "method"]),
        (["--data", "mine.svm", "--set", "l9:5"], ["unknown set 'l9'"]),
        (["--data", "mine.svm", "--set", "nonneg"], ["--set nonneg", "bounded sets"]),
        (["--data", "mine.svm", "--set", "l1:30%"], ["--set l1:30%", "radii that are numbers"]),
        (["--data", "mine.svm", "--set", "l1:5", "--loss", "hinge"], ["unknown loss 'hinge'"]),
        (["--data", "gone.svm", "--set", "l1:5"], ["gone.svm", "neither a file nor"]),
        (["--data", "mine.svm", "--set", "l1:5", "--batch", "half"], ["batch size 'half'"]),
        (["--data", "mine.svm", "--set", "l1:5", "--passes", "0"], ["passes"]),
        (["--data", "mine.svm", "--set", "l1:5", "--seeds", "0"], ["seeds"]),
        (["--data", "mine.svm", "--set", "l1:5", "--workers", "0"], ["workers"]),
        (["--data", "mine.svm", "--set", "l1:5", "--out", "mine.svm"], ["mine.svm", "cannot be written"]),
        (["--data", "mine.svm", "--set", "l1:5", "--cache", "mine.svm/kept"], ["cannot be kept"]),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(here, args, words):
    before = sorted(here.iterdir())
    refused(run("compare", *args, *(() if "--cache" in args else ("--cache", "kept")), "--offline"), *words)
    after = [path for path in sorted(here.iterdir()) if path.name != "kept"]
    assert after == before


def test_unknown_targets(here):
    refused(run("reproduce", "fig9", "--cache", "kept"), "unknown target 'fig9'", "fig1", "table2", "rates")


def test_options_that_do_not_apply(here):
    refused(run("reproduce", "memory", "--passes", 3, "--cache", "kept"), "--seeds and --passes are for figures", "memory")


def test_a_figure_of_the_paper_on_other_data(here):
    result = run(
        "reproduce", "fig4", "--data", "mine.svm", "--quick", "--passes", 3, "--cache", "kept", "--workers", 1, "--offline"
    )
    assert result.exit_code == 0, result.output
    said = report_of(here / "reproduction" / "index.html")
    assert [(p["data"], p["set"]) for p in said["figures"][0]["problems"]] == [("mine.svm", "l1:20")]
    assert {row["command"] for row in said["ledger"]} == {"extremal reproduce fig4 --quick --data mine.svm --passes 3.0"}
    assert "mine.svm" in (here / "reproduction" / "ledger.md").read_text()


def test_targets_in_their_order():
    known = ["fig1", "fig2", "table2"]
    assert experiments._targets(["table2", "fig1"], known) == ["fig1", "table2"]
    assert experiments._targets(["all"], known) == known


def test_a_figure_on_stand_ins_says_so(here, monkeypatch):
    small = replace(FIGURES["fig5"], problems=FIGURES["fig5"].problems[1:3])  # the smaller two sets
    monkeypatch.setitem(FIGURES, "fig5", small)
    result = run("reproduce", "fig5", "--quick", "--passes", 2, "--cache", "kept", "--workers", 1, "--offline")
    assert result.exit_code == 0, result.output
    assert "stand-in" in result.stdout
    said = report_of(here / "reproduction" / "index.html")
    assert {p["origin"] for p in said["figures"][0]["problems"]} == {"stand-in"}
    assert "Not the real data" in said["caution"][0]
    assert said["quick"] is True
    row, well = said["ledger"]
    assert row["verdict"] in ("holds", "holds in part", "does not hold here")
    assert row["command"] == well["command"] == "extremal reproduce fig5 --quick --passes 2.0"
    assert "not mushrooms" in row["on"]
    rows = list(csv.DictReader((here / "reproduction" / "fig5.csv").read_text().splitlines()))
    assert {row["origin"] for row in rows} == {"stand-in"}
    least = {row["data"]: float(row["f_min"]) for row in rows}
    assert all(float(row["value"]) >= least[row["data"]] for row in rows)
    curves = {tuple(row[key] for key in ("data", "method", "steps", "seed")) for row in rows}
    assert len(curves) == 2 * 8 * 2 * 2  # problems x methods x steps x seeds
    assert len(curves) * 20 < len(rows) == len({tuple(row.values()) for row in rows}) <= len(curves) * 26  # points, each once


def test_table2_without_data(here):
    result = run("reproduce", "table2", "--cache", "kept", "--offline")
    assert result.exit_code == 0, result.output
    assert "22696" in result.stdout
    assert report_of(here / "reproduction" / "index.html")["table2"]["rows"][0][:3] == ["a9a", "123", "22696"]


def test_ctrl_c_keeps_what_is_done_and_the_same_command_goes_on(here):
    words = ["compare", "--data", "mine.svm", "--set", "l1:5", "--cache", "kept", "--no-tune", "--offline", "--workers", "2"]
    words += ["--methods", "sarah-fw,negiar,saga-sarah", "--seeds", "40", "--passes", "60"]
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    until = time.monotonic() + 60
    while len(list((here / "kept").rglob("*.npz"))) < 3 and time.monotonic() < until and child.poll() is None:
        time.sleep(0.02)
    child.send_signal(signal.SIGINT)
    _, stderr = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "the same command continues" in stderr
    assert "Traceback" not in stderr
    kept = {path: path.stat().st_mtime_ns for path in (here / "kept").rglob("*.npz")}
    assert 3 <= len(kept) < 121
    assert not (here / "comparison" / "index.html").exists()
    result = run(*words, "--workers", "1")
    assert result.exit_code == 0, result.output
    assert len(list((here / "kept").rglob("*.npz"))) == 121  # 3 methods x 40 seeds, and the minimum
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    assert np.isfinite(report_of(here / "comparison" / "index.html")["figures"][0]["problems"][0]["f_min"])
