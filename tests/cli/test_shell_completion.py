"""Completion by shells: the script that is installed, and the words that are proposed."""

import pytest
from command_line import run
from typer.testing import CliRunner

from extremal.cli.commands import app


def proposed(shell, words):
    """What the shell is told after these words of a line."""
    line = f"extremal {words}"
    known = {
        "bash": {"COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)},
        "zsh": {"_TYPER_COMPLETE_ARGS": line},
    }
    environment = known[shell] | {"_EXTREMAL_COMPLETE": f"complete_{shell}"}
    return CliRunner(env=environment).invoke(app, [], prog_name="extremal").output


@pytest.mark.parametrize("shell", ["bash", "zsh"])
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("so", ["solve"]),
        ("shards ", ["build", "info", "verify"]),
        ("solve data --method sar", ["sarah-fw"]),
        ("solve data --set simp", ["simplex"]),
        ("solve data --loss po", ["poisson"]),
        ("solve --max-s", ["--max-seconds"]),
    ],
)
def test_words(shell, words, expected):
    said = proposed(shell, words)
    for word in expected:
        assert word in said


def test_nothing_else_is_proposed():
    assert proposed("bash", "solve data --method sar").split() == ["sarah-fw"]


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_the_script(shell, monkeypatch):
    monkeypatch.setattr("shellingham.detect_shell", lambda: (shell, f"/bin/{shell}"))
    shown = CliRunner().invoke(app, ["--show-completion"], prog_name="extremal")
    assert shown.exit_code == 0
    assert f"_EXTREMAL_COMPLETE=complete_{shell}" in shown.output


def test_it_is_installed_in_the_home_directory(monkeypatch, tmp_path):
    monkeypatch.setattr("shellingham.detect_shell", lambda: ("bash", "/bin/bash"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert CliRunner().invoke(app, ["--install-completion"], prog_name="extremal").exit_code == 0
    assert "extremal" in (tmp_path / ".bashrc").read_text()
    assert list(tmp_path.rglob("extremal.sh"))


def test_help_tells_of_it():
    assert "--install-completion" in run("--help").stdout
