"""Whatever is written or shown: whole files or none, errors that name them, nothing left behind, and names that stay text."""

from __future__ import annotations

import ast
import csv
import io
import json
import math
import os
import re
import signal
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import extremal as ex
from extremal.cli import solving
from extremal.cli.commands import app
from extremal.files.models import load_model
from extremal.files.outputs import WriteError, cells, printable, terminal, to_json, whole_file
from extremal.support import whole
from extremal_lab.reproduction import markdown, report
from extremal_lab.reproduction.page import page
from extremal_lab.reproduction.progress import shown

SOURCE = Path(ex.__file__).parent
NAMES = [
    "[red]x[/red]", "[/no]", "<img src=x onerror=alert(1)>", "a|b", "`c`", "**d**", "[e](http://f)", ":smile:",
    "g\x1b[31mh", "i\nj", "{k}", "$l$",
]  # fmt: skip


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


# ---- files


def test_a_temporary_file_is_new_hidden_and_of_no_name_that_one_could_guess():
    seen = []
    for _ in range(2):
        with whole_file("x.txt") as temporary:
            assert temporary.parent == Path.cwd()
            assert stat.S_ISREG(temporary.lstat().st_mode)
            seen.append(temporary.name)
    assert seen[0] != seen[1]
    assert seen[0].rpartition("-")[0] == seen[1].rpartition("-")[0]  # the rest is drawn
    assert os.listdir() == ["x.txt"]


def test_a_link_of_the_temporary_name_is_never_followed(monkeypatch):
    Path("precious").write_text("kept")
    names = iter(["00" * 8, "11" * 8])
    monkeypatch.setattr(whole.secrets, "token_hex", lambda _: next(names))
    with whole_file("x.txt") as temporary:
        first = temporary
    first.symlink_to("precious")
    monkeypatch.setattr(whole.secrets, "token_hex", lambda _: "00" * 8)
    monkeypatch.setattr(whole, "_remove", lambda leftover: None)  # as if it came after the look for leftovers
    with pytest.raises(WriteError, match=r"x\.txt: cannot be written \(File exists\)"), whole_file("x.txt") as temporary:
        temporary.write_text("new")
    assert Path("precious").read_text() == "kept"


def test_what_a_killed_process_left_is_removed_by_the_next():
    code = "import os, signal, sys\nfrom extremal.files.outputs import whole_file\n"
    code += "with whole_file('[x]*.txt') as t:\n    t.write_text('half')\n    os.kill(os.getpid(), signal.SIGKILL)"
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", code], check=False, env=os.environ | {"PYTHONPATH": str(SOURCE.parent)})
        assert done.returncode == -signal.SIGKILL
        assert len(os.listdir()) == 1
    with whole_file("other.txt") as temporary:
        temporary.write_text("")
    assert len(os.listdir()) == 2  # that of another file is left alone
    with whole_file("[x]*.txt") as temporary:
        temporary.write_text("whole")
    assert sorted(os.listdir()) == ["[x]*.txt", "other.txt"]


def test_who_writes_at_the_same_time_is_left_alone():
    with whole_file("x.txt") as first:
        first.write_text("first")
        with whole_file("x.txt") as second:
            assert first.exists()
            second.write_text("second")
        assert Path("x.txt").read_text() == "second"
    assert Path("x.txt").read_text() == "first"
    assert os.listdir() == ["x.txt"]


def test_a_file_that_is_renamed_before_its_lock_is_left_alone(monkeypatch):
    fcntl = pytest.importorskip("fcntl")
    part, flock, calls = Path("x.part"), fcntl.flock, []
    part.write_text("of another")

    def late(handle, how):
        if not calls:
            part.rename("x")  # as whoever held it does in the end
            part.write_text("a new one")
        calls.append(handle)
        return flock(handle, how)

    monkeypatch.setattr(fcntl, "flock", late)
    handle = whole.lock_file(part)
    assert handle is not None
    assert whole.is_open(handle, part)
    assert not whole.is_open(handle, Path("x"))
    assert len(calls) == 2
    assert whole.lock_file(part) is None  # held
    os.close(handle)


def test_names_of_any_length_and_the_rights_of_what_was_there():
    for name in ("n" * 255, "é" * 127):
        with whole_file(name) as temporary:
            temporary.write_text("")
        assert Path(name).exists()
    Path("private").write_text("")
    Path("private").chmod(0o600)
    with whole_file("private") as temporary:
        temporary.write_text("new")
    assert Path("private").stat().st_mode & 0o777 == 0o600


FULL = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))
from extremal.cli.app import main
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits of POSIX")
@pytest.mark.parametrize("command", ["solve", "predict"])
def test_a_disk_that_is_full_names_the_file_and_leaves_nothing(command):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((300, 400))
    np.savez("d.npz", A=A, y=np.sign(A[:, 0]))
    np.savez("m.npz", x=np.ones(400), loss="squared")
    args = ["solve", "d.npz", "--set", "l1:2", "--method", "frank-wolfe", "--max-iter", "1", "--json", "--out", "out.npz"]
    args = args if command == "solve" else ["predict", "m.npz", "d.npz", "--out", "out.csv"]
    env = os.environ | {"PYTHONPATH": str(SOURCE.parent), "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, "-c", FULL, *args], capture_output=True, text=True, timeout=300, env=env)
    assert done.returncode == 2
    assert done.stderr == f"error: {args[-1]}: cannot be written (File too large)\n"
    assert sorted(os.listdir()) == ["d.npz", "m.npz"]
    if command == "solve":
        assert len(json.loads(done.stdout)["x"]) == 400  # the answer is not lost


def test_no_space_is_an_error_that_names_the_file(monkeypatch):
    Path("x.txt").write_text("old")

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(whole.os, "fsync", full)
    with (
        pytest.raises(WriteError, match=r"^x\.txt: cannot be written \(No space left on device\)$") as caught,
        whole_file("x.txt") as t,
    ):
        t.write_text("new")
    assert caught.value.errno == 28
    assert Path("x.txt").read_text() == "old"
    assert os.listdir() == ["x.txt"]


def calls(path: Path):
    """(function, call) for every call in a file."""
    tree = ast.parse(path.read_text())
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            yield from ((function, node) for node in ast.walk(function) if isinstance(node, ast.Call))


WRITERS = {"write_text", "write_bytes", "savefig", "savez", "savez_compressed", "tofile", "to_csv"}
IN_WORK_FOLDER = {  # of a build of shards: what is there counts only after it was moved and the manifest, a whole file, names it
    ("files/shards/shuffle.py", "append"), ("files/shards/writing.py", "write_array"),
    ("files/shards/journal.py", "__init__"),
}  # fmt: skip


def writes(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name == "open" and len(call.args) > 1 and isinstance(call.args[1], ast.Constant):
        return any(letter in str(call.args[1].value) for letter in "wax")
    return name in WRITERS


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_all_files_are_written_by_one_function_and_all_text_shown_by_one_console(path):
    inside = str(path.relative_to(SOURCE))
    for function, call in calls(path):
        text, place = ast.unparse(function), f"{inside}:{call.lineno}"
        if writes(call) and (inside, function.name) not in IN_WORK_FOLDER:
            assert "whole_file(" in text or "written_whole(" in text or "BytesIO()" in text, (
                f"{place} writes without `outputs.whole_file`"
            )
        name = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
        assert name != "Console", f"{place} makes a console in which names are markup: use `outputs.terminal`"
        if name == "TextColumn":
            assert any(key.arg == "markup" for key in call.keywords), f"{place}: names would be markup"
        assert not (inside.startswith("cli/") and ast.unparse(call.func) == "json.dumps"), f"{place}: use `outputs.to_json`"


# ---- numbers and names


def strict(text):
    """JSON by the letter of the standard."""
    return json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))


def test_json_has_null_for_what_is_no_number():
    item = {"a": [math.inf, {"b": (-math.inf, math.nan)}], "c": 1.5, "d": None, "e": np.float64("nan")}
    assert strict(to_json(item)) == {"a": [None, {"b": [None, None]}], "c": 1.5, "d": None, "e": None}


def test_an_infinite_gap_is_valid_json_and_said_in_words(monkeypatch):
    np.savez("d.npz", A=np.eye(3), y=np.ones(3))
    r = ex.minimize(ex.LinearModel(ex.Squared(), np.eye(3), np.ones(3)), ex.L1Ball(1.0), method="frank-wolfe", max_iter=1)
    bad = ex.Result(r.x, r.value, math.inf, ex.Status.NON_FINITE, False, 1, r.calls, 0.1, method=r.method)
    monkeypatch.setattr(solving, "minimize", lambda *_, **__: bad)
    said = CliRunner().invoke(app, ["solve", "d.npz", "--set", "l1:1", "--loss", "squared", "--json"])
    found = strict(said.stdout)
    assert (found["gap"], found["relative_gap"], found["status"], found["converged"]) == (None, None, "non_finite", False)
    assert said.exit_code == 3
    text = CliRunner().invoke(app, ["solve", "d.npz", "--set", "l1:1", "--loss", "squared"]).stdout
    assert "inf  (nothing is certified)" in text


@pytest.mark.parametrize("name", NAMES)
def test_names_are_text_on_a_console(name):
    for how in ({}, {"force_terminal": True, "color_system": None}):
        console = terminal(file=io.StringIO(), width=200, **how)
        console.print(f"data: {name}", soft_wrap=True)
        report.print_table(console, name, ["what", name], [[name, 1]])
        with shown(console, name, 1.0) as seen:
            seen(type("Task", (), {"cost": 1.0}), True)
        text = console.file.getvalue()
        assert printable(name).splitlines()[0] in text
        assert "\x1b[31m" not in text


@pytest.mark.parametrize("name", NAMES)
def test_names_are_text_in_the_ledger(name):
    row = dict.fromkeys(("short", "claim", "where", "verdict", "number", "measured", "rule", "on", "command"), name)
    said = {
        "title": name, "quick": False, "generated": "now", "versions": {"extremal": "1"}, "caution": [name], "ledger": [row],
        "studies": [{"title": name, "text": name, "tables": [{"columns": [name], "rows": [[name]]}]}], "settings": {name: name},
        "machine": {},
    }  # fmt: skip
    markdown.write_ledger(Path("ledger.md"), said, [])
    lines = Path("ledger.md").read_text().splitlines()
    for line in lines:
        text = line.partition("*Shown by* `")[0]  # a command is code
        assert "<img" not in text
        assert "\x1b" not in line
        assert re.search(r"(?<!\\)\[", text) is None  # no link
        if line.startswith("| "):
            cells_in = line.replace("\\|", "").count("|")
            assert cells_in in (2, 3, 4)  # one, two or three columns


@pytest.mark.parametrize("name", NAMES)
def test_names_are_text_on_the_page(name):
    pytest.importorskip("plotly")
    text = page({"title": name, "caution": [name], "settings": {name: name}})
    assert "<img" not in text.partition("<script>")[0]
    assert f"\x3c{name[1:]}" not in text or not name.startswith("<")


def test_cells_that_a_spreadsheet_would_compute():
    row = ["=1+1", "+1", "-1.5e3", "@SUM(A1)", "\t=1", "plain", "-x", 3, -2.5, None]
    assert cells(row) == ["'=1+1", "+1", "-1.5e3", "'@SUM(A1)", "'\t=1", "plain", "'-x", 3, -2.5, None]


@pytest.mark.parametrize("label", ["=cmd()", "[red]a", "<img src=x>", "a,b", 'say "hi"', "line\nbreak", "\x1b[2J"])
def test_labels_of_users_in_predictions(label):
    rng = np.random.default_rng(0)
    A = rng.standard_normal((40, 2)).round(2)
    with open("d.csv", "w", newline="") as file:
        rows = [["[red]u", "<img>", "label"], *([*a, label if a[0] > 0 else "no"] for a in A.tolist())]
        csv.writer(file).writerows(rows)
    run = CliRunner().invoke
    args = ["solve", "d.csv", "--set", "l1:2", "--positive", label.strip(), "--out", "m.npz"]
    done = run(app, args)
    assert done.exit_code == 0, done.stderr
    assert "\x1b" not in done.stdout
    assert load_model("m.npz").features == ("[red]u", "<img>")
    done = run(app, ["predict", "m.npz", "d.csv"])
    found = list(csv.reader(io.StringIO(done.stdout)))
    assert len(found) == 41
    assert {row[0] for row in found[1:]} <= {"no", cells([label])[0]}
