"""Progress on a terminal, and Ctrl-C: the best certified point, or one line."""

import itertools
import json
import os
import signal
import subprocess
import sys
import types

import numpy as np
import pytest
from command_line import CHILD, PLAIN, direct, heard, solve

import extremal as ex
from extremal.cli.app import main
from extremal.run import progress

# ---- progress


def test_progress_is_for_terminals_however_long_a_run_takes(data, monkeypatch):
    hours = itertools.count(0, 3600)
    monkeypatch.setattr(progress, "time", types.SimpleNamespace(monotonic=lambda: next(hours)))
    for quiet in ((), ("--quiet",)):
        shown = solve("--json", "--tol", 0, *quiet)
        assert shown.stderr == ""
        assert json.loads(shown.stdout)["passes"] >= 100


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


def test_a_terminal_gets_a_live_line_and_stdout_stays_clean(data, on_a_terminal):
    start, seen = on_a_terminal
    words = ["solve", "data", "--set", "l1:2", "--json", "--passes", "1e9", "--tol", "0"]
    child = start(*words, "--method", "frank-wolfe", "--max-seconds", "2")  # the first second shows nothing
    read = seen()
    stdout, _ = child.communicate(timeout=60)
    assert child.returncode == 3
    assert json.loads(stdout)["status"] == "max_seconds"
    assert b"\x1b[" in read
    assert b"solve: " in read
    assert b" passes, f 0." in read
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
    assert b"solve: " in seen(b"passes, f ")  # it is running
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


def test_ctrl_c_while_the_commands_are_imported(monkeypatch, capsys):
    class Interrupted(types.ModuleType):
        def __getattr__(self, name):
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "extremal.cli.commands", Interrupted("extremal.cli.commands"))
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert capsys.readouterr().err == "interrupted before the command began\n"
