"""Without packages that are extras: the library works, and each command says in one line what to install."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

LIBRARY = """
import pkgutil
from importlib import import_module
import numpy as np
import extremal as ex
import extremal.sklearn as estimators

for module in pkgutil.walk_packages(ex.__path__, "extremal."):
    if not module.name.startswith(("extremal.cli", "extremal.scale")):  # the latter has an extra of its own
        import_module(module.name)
for room in (ex, estimators):
    [getattr(room, name) for name in room.__all__]
rng = np.random.default_rng(0)
A, y = rng.standard_normal((40, 5)), np.sign(rng.standard_normal(40))
result = ex.minimize(ex.LinearModel(ex.Logistic(), A, y), ex.L1Ball(2.0))
assert result.converged
assert estimators.ConstrainedLogisticRegression("l1:2").fit(A, y).status_ == "tol"
"""
COMMANDS = """
from extremal.cli.app import main
for line in sys.argv[1:]:
    sys.argv = ["extremal", *line.split()]
    try:
        main()
    except SystemExit as ended:
        assert ended.code == 2, line
    else:
        raise AssertionError(line)
"""
LABORATORY = {
    "bench rows --quick": "figures",
    "compare --set l1:5": "figures",
    "demo --help": "demo",
    "reproduce fig1": "figures",
}
FIGURES = ["reproduce fig1 --quick --offline", "reproduce", "compare --data w8a --set l1:5 --offline"]
NEEDED = {  # a module, its package, and the commands that do not begin without it
    "matplotlib": ("matplotlib", [*FIGURES, "demo"]),
    "plotly": ("plotly", FIGURES),
    "pooch": ("pooch", [*FIGURES, "data fetch w8a"]),
    "platformdirs": ("platformdirs", [*FIGURES, "data fetch w8a"]),
    "sklearn": ("scikit-learn", ["demo"]),
    "pandas": ("pandas", ["demo"]),
}


@pytest.fixture
def lines(tmp_path):
    """What commands say without some modules, one line for each; they write nothing, neither here nor in the user's folders."""

    def said(without, *commands, first=""):
        code = f"import sys; sys.modules.update(dict.fromkeys({without}))\n{first}\n{COMMANDS}"
        here = {name: str(tmp_path) for name in ("XDG_DATA_HOME", "XDG_CACHE_HOME")}
        kept = {name: value for name, value in os.environ.items() if name != "EXTREMAL_DATA"} | here
        call = [sys.executable, "-c", code, *commands]
        done = subprocess.run(call, capture_output=True, text=True, timeout=600, cwd=tmp_path, env=kept)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        found = done.stderr.splitlines()
        assert len(found) == len(commands), done.stderr
        assert not list(tmp_path.iterdir())
        return found

    return said


# ---- the command line's own


@pytest.mark.parametrize("without", [["typer"], ["rich"], ["typer", "rich"]], ids=" ".join)
def test_without_typer_or_rich_one_line_says_what_to_install(lines, without):
    line = f"error: the command line needs {' and '.join(without)}: pip install 'extremal[cli]'"
    assert lines(without, "", "solve data --set l1:2", "--help", "demo") == [line] * 4


def test_the_library_needs_neither_typer_nor_rich():
    code = "import sys; sys.modules.update(dict.fromkeys(['typer', 'rich', 'click']))\n" + LIBRARY
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


# ---- the laboratory's


def test_without_the_laboratory_its_commands_say_what_to_install(lines):
    found = lines(["extremal_lab"], *LABORATORY)
    for line, (command, extra) in zip(found, LABORATORY.items(), strict=True):
        assert line.startswith(f"error: `extremal {command.split()[0]}` cannot be run (No module named 'extremal_lab")
        assert line.endswith(f": pip install 'extremal[{extra}]'")


def test_without_entry_points_the_same(lines):
    none = "import importlib.metadata; importlib.metadata.entry_points = lambda **_: ()"
    assert lines([], *LABORATORY, first=none) == [
        f"error: `extremal {command.split()[0]}` cannot be run (it is not installed): pip install 'extremal[{extra}]'"
        for command, extra in LABORATORY.items()
    ]


OTHER = """
import importlib.metadata as metadata
points = [metadata.EntryPoint("theirs", value, "extremal.commands") for value in ["{value}"]]
metadata.entry_points = lambda **_: points
"""


@pytest.mark.parametrize(("value", "reason"), [("gone:run", "No module named 'gone'"), ("json:run", "has no attribute 'run'")])
def test_a_command_of_another_package_that_does_not_load(lines, value, reason):
    first = OTHER.replace("{value}", value)
    broken, unknown = lines([], "theirs --all", "solve gone --set l1:2", first=first)
    assert broken.startswith("error: `extremal theirs` cannot be run (")
    assert reason in broken
    assert broken.endswith("): install its package again")
    assert unknown.startswith("error: gone")  # other commands are what they were


@pytest.mark.parametrize("module", NEEDED)
def test_without_the_packages_of_an_extra_one_line_names_it(lines, module):
    package, commands = NEEDED[module]
    for command, line in zip(commands, lines([module], *commands), strict=True):
        extra = "demo" if command == "demo" else "data" if command.startswith("data") else "figures"
        assert line == f"error: {'downloading' if extra == 'data' else 'this'} needs {package}: pip install 'extremal[{extra}]'"
