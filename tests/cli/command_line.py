"""How tests call the command line, and what they give it."""

import json
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from typer.testing import CliRunner

import extremal as ex
from extremal.cli.commands import app
from extremal.kernels.jit import KEPT

PLAIN = {"FORCE_COLOR": None, "TTY_COMPATIBLE": None, "GITHUB_ACTIONS": None}  # not a terminal, whatever the surroundings say
# a shell's background jobs start with Ctrl-C switched off, so the child switches it on
CHILD = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from extremal.cli.app import main; main()"


def problem(n=60, d=8, seed=0):
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)).round(3)
    return A, np.sign(A[:, 0] + 0.5 * rng.standard_normal(n))


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


def predicted(*args):
    result = run("predict", *args)
    assert result.exit_code == 0, result.output
    rows = [line.split(",") for line in result.stdout.splitlines()]
    columns = {name: column for name, *column in zip(*rows, strict=True)}
    return {name: column if name == "class" else [float(v) for v in column] for name, column in columns.items()}
