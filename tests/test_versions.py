"""Versions, and what editors know of the library."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import extremal as ex
from extremal.support import versions


def test_versions_are_shown(capsys):
    ex.show_versions()
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines() if not line.startswith("not "))
    assert lines["extremal"] == ex.__version__
    assert lines["Python"] == sys.version.split()[0]
    assert {"platform", "numpy", "scipy", "numba"} <= set(lines)


def test_blas_is_told_where_threadpoolctl_is(capsys, monkeypatch):
    pytest.importorskip("threadpoolctl")
    found = [
        {"user_api": "blas", "internal_api": "openblas", "version": "0.3", "architecture": "Haswell", "num_threads": 2},
        {"user_api": "openmp", "internal_api": "openmp", "version": None, "num_threads": 4},
    ]
    monkeypatch.setattr("threadpoolctl.threadpool_info", lambda: found)
    ex.show_versions()
    said = capsys.readouterr().out
    assert "BLAS           openblas 0.3, kernel Haswell, threads 2\n" in said
    assert "OpenMP         openmp, threads 4\n" in said
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    ex.show_versions()
    assert "BLAS" not in capsys.readouterr().out


def test_packages_that_are_missing_are_named(capsys, monkeypatch):
    monkeypatch.setattr(versions, "OPTIONAL", ("no-such-package",))
    ex.show_versions()
    assert capsys.readouterr().out.endswith("not installed  no-such-package\n")


def test_an_editor_completes():
    """By the stub files, without running the library."""
    jedi = pytest.importorskip("jedi")
    assert "minimize" in {item.name for item in jedi.Script("import extremal as ex\nex.mini").complete(2, 7)}
    (call,) = jedi.Script("import extremal as ex\nex.minimize(").get_signatures(2, 12)
    assert {"f", "C", "method", "verbose"} <= {p.name for p in call.params}
    names = {item.name for item in jedi.Script("import extremal as ex\nex.minimize(1, 2).va").complete(2, 20)}
    assert "value" in names


def test_the_package_says_that_it_is_typed():
    assert (Path(ex.__file__).parent / "py.typed").exists()
