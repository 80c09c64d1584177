"""What `make test-fast` runs beside the examples of the docstrings and some quick tests: a little of every module."""

from __future__ import annotations

import ast
from importlib import import_module

import cases
import fast
import numpy as np
import pytest
from command_line import refused, run

import extremal as ex


@pytest.mark.parametrize("name", [name for name in fast.modules() if not name.endswith("__main__")])
def test_every_module_is_imported(name):
    assert import_module(name).__doc__


@pytest.mark.parametrize("chosen", [chosen for chosen in fast.SELECTION if not chosen.startswith("--")])
def test_what_is_selected_is_there(chosen):
    """A file or folder that is gone, or a test that has another name, would stop the run before it begins."""
    path, _, name = chosen.partition("::")
    path = fast.HERE.parent / path
    assert path.exists()
    assert not name or name in {node.name for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}


def test_a_module_that_is_not_run_is_told():
    everything = {str(path) for path in fast.modules().values()}
    assert fast.left(everything) == []
    assert fast.left(everything - {str(fast.SOURCE / "extremal" / "laws.py")}) == ["extremal.laws"]
    assert "extremal.kernels.burst" not in fast.left(set())  # compiled
    assert len(fast.left(set())) > 200


@pytest.mark.parametrize("C", [ex.L1Ball(2.0), ex.Box(-0.5, 1.0)], ids=repr)
@pytest.mark.parametrize("method", [ex.FrankWolfe(), ex.SarahFW(batch=5), ex.BlendedPairwiseFW()], ids=repr)
def test_answers_are_feasible_certified_and_near_the_minimum(C, method, f_star):
    f, least = cases.model(ex.Squared()), f_star(ex.Squared(), C)
    result = ex.minimize(f, C, method, tol=0.05, max_grads=1000 * f.n)
    assert result.converged
    assert C.contains(result.x, tol=1e-12)
    assert result.gap >= cases.gap(C, result.x, f.grad(result.x)) * (1 - 1e-9)
    assert least - 1e-9 <= result.value <= least + result.gap * (1 + 1e-9)


@pytest.mark.parametrize("method", ["momentum-sfw", "svrf", "spider-fw", "saga-fw", "cgs", "fcgs", "fzfw"])
def test_stochastic_methods_stay_inside_and_are_certified(method):
    f, C = cases.model(ex.Squared()), ex.L1Ball(2.0)
    result = ex.minimize(f, C, method, max_grads=3 * f.n)
    assert C.contains(result.x, tol=1e-12)
    assert result.gap >= cases.gap(C, result.x, f.grad(result.x)) * (1 - 1e-9)


def test_the_benchmark_refuses_parts_that_it_does_not_have():
    refused(run("bench", "nonsense"), "nonsense", "startup")


def test_peers_and_startup_are_measured_by_what_their_processes_say(monkeypatch):
    """No process is started: it says that it took two CPU seconds."""
    from extremal_lab.bench import copt, peer_copt, startup

    monkeypatch.setattr(startup, "output", lambda command, environment: "2.0")
    found = list(startup.measure("smoke"))
    assert [m.ratio for m in found if m.name.startswith("CPU")] == [2.0, 2.0]
    folder = fast.HERE / "no such folder"
    monkeypatch.setattr(copt, "_folder", lambda: folder)
    monkeypatch.setattr(copt, "environment", lambda folder, packages: (_ for _ in ()).throw(copt.ChildError("no network")))
    (skipped,) = copt.measure("smoke")
    assert "no network" in skipped.reason
    assert peer_copt.scipy_pass(np.eye(3), np.ones(3)) >= 0


@pytest.mark.parametrize("part", ["estimators", "spectral"])
def test_long_benchmarks_have_a_smallest_size(part):
    from extremal_lab.bench import worker

    assert all(item.part == part for item in worker.found(part, "smoke"))


def test_the_largest_completion_is_made_of_entries():
    from extremal_lab.bench.completion_large import model

    assert model((30, 40), 100).shape == (30, 40)


def test_the_command_has_a_version(monkeypatch, capsys):
    from extremal.cli.app import main

    monkeypatch.setattr("sys.argv", ["extremal", "--version"])
    with pytest.raises(SystemExit, match="0"):
        main()
    assert "extremal" in capsys.readouterr().out
