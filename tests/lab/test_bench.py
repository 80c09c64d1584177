"""The benchmarks as a suite: its parts and its command, and that what is written is whole and has a history."""

import json
import os
import subprocess
import sys

import pytest
from test_cli import refused, run

from extremal.checks import InputError
from extremal_lab.bench import picture, report, suite, worker
from extremal_lab.bench.timing import Measurement, Skipped
from extremal_lab.threads import ONE_THREAD

UNIT = "scipy full gradients"


def measured(part="methods", name="w8a: SarahFW, b = n/100", ratios=(1.0, 1.1, 3.0), bar=1.2):
    return Measurement.of(part, name, ratios, unit=UNIT, bar=bar)


# the suite


def test_a_part_runs_on_one_thread_in_a_process_of_its_own(monkeypatch):
    for name in ONE_THREAD:
        monkeypatch.setenv(name, "2")
    seen, made = [], []
    popen = subprocess.Popen
    monkeypatch.setattr(suite.subprocess, "Popen", lambda *args, **more: made.append(more["env"]) or popen(*args, **more))
    items = suite.run(["variance"], "smoke", seen.append)
    assert items == seen
    assert len(items) == 2
    assert {name: made[0][name] for name in ONE_THREAD} == ONE_THREAD


def test_a_part_that_fails_is_told_and_the_others_go_on(monkeypatch):
    monkeypatch.setenv("EXTREMAL_DATA", "/no such folder")
    items = suite.run(["variance", "iterations"], "smoke", lambda item: None)
    assert suite.failed(items)
    assert isinstance(items[0], Skipped)
    assert "EXTREMAL_DATA" in items[0].reason
    assert any(isinstance(item, Measurement) for item in items)


def test_parts_are_chosen_by_name():
    assert suite.chosen(["memory", "methods"]) == ["methods", "memory"]
    assert suite.chosen(["methods"], peers=True) == ["methods", *worker.NETWORK]
    assert suite.chosen([]) == list(worker.USUAL)
    assert suite.chosen(["libsvm", "spectral"]) == ["spectral", "libsvm"]
    assert not {*worker.LONG, *worker.NETWORK} & set(suite.chosen([]))
    assert suite.complete(suite.chosen([]))
    assert not suite.complete(["methods"])
    with pytest.raises(InputError, match="did you mean 'memory'"):
        suite.chosen(["memroy"])


# what is written


@pytest.fixture
def canned(tmp_path, monkeypatch):
    """The command with results that are there already, in a folder of its own; add to the list what should be found."""
    monkeypatch.chdir(tmp_path)
    items = []
    monkeypatch.setattr(suite, "run", lambda parts, level, see: [item for item in items if item.part == parts[0]])
    items += [measured(), measured(name="w8a: SarahFW, b = 1", ratios=[5.0], bar=None), Skipped("sizes", "blocks", "none yet")]
    return items


def test_a_run_of_all_parts_is_kept(canned, tmp_path):
    result = run("bench", "--out", "out")
    assert result.exit_code == 0, result.output
    (path,) = (tmp_path / "out").glob("20*.json")
    assert (tmp_path / "out" / "latest.png").read_bytes().startswith(b"\x89PNG")
    said = json.loads(path.read_text())
    assert path.stem == report.stem(said)
    assert set(said) == {
        "schema", "date", "version", "commit", "changed", "level", "machine", "versions", "measurements", "skipped",
    }  # fmt: skip
    assert set(said["machine"]) == {"processor", "cores", "system"}
    assert set(said["versions"]) == {"python", "numpy", "scipy", "numba"}
    assert said["level"] == "default"
    assert said["measurements"][0] == {
        "part": "methods", "name": "w8a: SarahFW, b = n/100", "ratio": 1.1, "low": 1.0, "high": 3.0, "repeats": 3,
        "unit": UNIT, "bar": 1.2, "note": "",
    }  # fmt: skip
    assert said["measurements"][1]["bar"] is None
    assert said["skipped"] == [{"part": "sizes", "name": "blocks", "reason": "none yet"}]
    for word in ("SarahFW", "1.1", "1.2", "met", "not measured: none yet", "latest.png"):
        assert word in result.stdout


def test_nothing_that_names_the_machine_is_written(canned, tmp_path):
    import platform

    run("bench", "--out", "out")
    (path,) = (tmp_path / "out").glob("20*.json")
    assert str(tmp_path) not in path.read_text()
    assert os.sep + "src" not in path.read_text()
    assert json.dumps(platform.node()) not in path.read_text()


@pytest.mark.parametrize(("words", "name"), [(["--quick"], "quick"), (["methods"], "parts"), (["methods", "--quick"], "quick")])
def test_quick_runs_and_single_parts_are_not_history(canned, tmp_path, words, name):
    assert run("bench", *words, "--out", "out").exit_code == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {f"{name}.json", f"{name}.md", f"{name}.png"}


def test_a_run_that_failed_is_not_history(canned, tmp_path):
    canned.append(Skipped("memory", suite.FAILED, "MemoryError"))
    result = run("bench", "--out", "out")
    assert result.exit_code == 1
    assert "MemoryError" in result.stdout
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"parts.json", "parts.md", "parts.png"}


def test_strict_ends_with_3_where_a_bar_is_missed(canned):
    assert run("bench", "--strict").exit_code == 0
    canned.append(measured(name="a8a: SarahFW, b = n/100", ratios=[1.21]))
    assert run("bench").exit_code == 0
    result = run("bench", "--strict")
    assert result.exit_code == 3
    assert "Bars met: 1 of 2\nmissed: methods, a8a: SarahFW, b = n/100: 1.21, bar 1.2\n" in result.stdout


def test_brackets_are_shown_as_they_are(canned):
    canned.append(measured("rows", "9 x 9: A[idx] x, all rows", ratios=[9.0]))
    assert run("bench").stdout.count("A[idx] x") == 2  # in its table, and as missed


def test_mistakes_are_one_line(canned, tmp_path):
    refused(run("bench", "memroy"), "memroy", "memory")
    refused(run("bench", "--quick", "--full"), "--quick", "--full")
    (tmp_path / "file").write_text("")
    refused(run("bench", "--out", "file"), "file")


def test_ctrl_c_writes_nothing(canned, tmp_path, monkeypatch):
    def interrupted(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(suite, "run", interrupted)
    result = run("bench", "--out", "out")
    assert result.exit_code == 130
    assert result.stderr.count("\n") == 1
    assert not list((tmp_path / "out").iterdir())


def test_without_matplotlib_the_numbers_are_written_all_the_same(canned, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = run("bench", "--out", "out")
    assert result.exit_code == 0, result.output
    assert "pip install 'extremal[figures]'" in result.stdout
    assert [path.suffix for path in (tmp_path / "out").iterdir()] == [".json"]


def test_the_command_needs_no_extras():
    """Everything it imports is there without matplotlib, plotly, scikit-learn and the like."""
    modules = ", ".join(f"extremal_lab.bench.{name}" for name in (*worker.PARTS, "report", "picture", "suite", "worker"))
    absent = "('matplotlib', 'plotly', 'sklearn', 'platformdirs', 'pooch', 'requests', 'pandas', 'highspy', 'networkx')"
    code = f"import sys; sys.modules.update(dict.fromkeys({absent})); import {modules}, extremal_lab.commands.bench"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_it_is_listed_in_the_help():
    result = run("bench", "--help")
    assert result.exit_code == 0
    assert all(part in " ".join(result.stdout.replace("│", "").split()) for part in worker.PARTS)
    assert "Exit codes: 0 measured" in result.stdout


def test_the_list_says_what_each_part_is_about(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("bench", "--list")
    assert result.exit_code == 0
    assert [line.split()[0] for line in result.stdout.splitlines()] == list(worker.PARTS)
    assert all(len(line.split()) > 5 for line in result.stdout.splitlines())
    assert not list(tmp_path.iterdir())


# history


def document(date, commit, ratio):
    said = report.document([measured(ratios=[ratio])], "default")
    return said | {"date": f"{date}T00:00:00Z", "commit": commit, "changed": False}


def test_the_history_is_in_order_and_leaves_other_files_alone(tmp_path):
    for date, commit in (("2026-03-02", "aaaaaaa"), ("2026-03-01", "bbbbbbb"), ("2026-03-01", "0000000")):
        said = document(date, commit, 1.0)
        report.write(tmp_path / f"{report.stem(said)}.json", said)
    (tmp_path / "quick.json").write_text("{}")
    assert [said["date"][:10] for said in report.history(tmp_path)] == ["2026-03-01", "2026-03-01", "2026-03-02"]
    (tmp_path / "2026-03-03-ccccccc.json").write_text('{"schema": 1}')
    with pytest.raises(InputError, match="not a file of this suite"):
        report.history(tmp_path)


def test_the_name_of_a_file_tells_commit_or_version():
    said = document("2026-03-01", "0a1b2c3", 1.0)
    assert report.stem(said) == "2026-03-01-0a1b2c3"
    assert report.stem(said | {"changed": True}) == "2026-03-01-0a1b2c3+"
    assert report.stem(said | {"commit": None, "changed": True, "version": "1.2"}) == "2026-03-01-1.2"


def test_the_picture_shows_the_history_where_there_is_one(tmp_path, monkeypatch):
    past = [document("2026-03-01", "aaaaaaa", 2.4), document("2026-03-02", "bbbbbbb", 1.2)]
    seen = []
    monkeypatch.setattr(picture, "_history", lambda axes, kept: seen.append(len(kept)))
    picture.draw(tmp_path / "one.png", past[0], past[:1])
    assert not seen
    picture.draw(tmp_path / "two.png", past[1], past)
    assert seen == [2]


def test_the_history_is_drawn_in_units_of_the_bar():
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    picture._history(axes, [document("2026-03-01", "aaaaaaa", 2.4), document("2026-03-02", "bbbbbbb", 0.6)])
    (line,) = [line for line in axes.lines if line.get_label() == "methods, w8a: SarahFW, b = n/100"]
    assert line.get_xydata().tolist() == [[0, 2.0], [1, 0.5]]


def test_a_panel_shows_ratio_spread_and_bar():
    from matplotlib.figure import Figure

    axes = Figure().add_subplot()
    ((title, rows),) = picture.panels_of([measured(ratios=[1.0, 1.5, 3.0]).as_dict()]).items()
    picture._panel(axes, title, rows)
    spread, ratio, bar = axes.lines[:3]
    assert (title, list(spread.get_xdata()), list(ratio.get_xdata())) == ("methods, w8a", [1.0, 3.0], [1.5])
    assert (ratio.get_marker(), list(bar.get_xdata())) == ("X", [1.2])  # a cross: missed
