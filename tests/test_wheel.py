"""The files that users install: wheel and sdist are built, and the wheel works in an environment of its own."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import numpy as np
import pytest

import extremal as ex

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
CODE = """
import extremal as ex, numpy as np, sys
A = np.array({A})
r = ex.minimize(ex.LinearModel(ex.Squared(), A, A @ np.ones(3)), ex.Simplex(), "frank-wolfe", tol=1e-3, max_iter=1000)
assert r.converged and ex.Simplex().contains(r.x), r
print(ex.__file__)
"""


def run(*command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300, check=True, **options)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The wheel and the sdist."""
    pytest.importorskip("build", reason="needs the package build")
    pytest.importorskip("hatchling", reason="needs the package hatchling")
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--sdist", "--outdir", folder, ROOT)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """An empty environment with the wheel; the packages that it needs are those of this environment."""
    pytest.importorskip("pip", reason="needs pip")
    place = tmp_path_factory.mktemp("empty")
    run(sys.executable, "-m", "venv", "--without-pip", place)
    python = place / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index", built[0])
    (packages,) = {Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").stdout.strip())}
    (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


def test_the_wheel_has_the_packages_and_nothing_else(built):
    with zipfile.ZipFile(built[0]) as archive:
        names = set(archive.namelist())
    info = f"extremal-{ex.__version__}.dist-info"
    assert {name.split("/")[0] for name in names} == {"extremal", "extremal_lab", info}
    known = {p for p in SOURCE.rglob("*") if (p.is_file() and p.suffix in (".py", ".pyi")) or p.name == "py.typed"}
    assert {p.relative_to(SOURCE).as_posix() for p in known} <= names
    assert "extremal/py.typed" in names
    assert "extremal/__init__.pyi" in names
    assert not [name for name in names if name.endswith((".nbi", ".nbc", ".pyc", ".md"))]
    assert f"{info}/licenses/LICENSE" in names


def test_what_the_index_is_told(built):
    with zipfile.ZipFile(built[0]) as archive:
        told = Parser().parsestr(archive.read(f"extremal-{ex.__version__}.dist-info/METADATA").decode())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert (told["Name"], told["Version"], told["License-Expression"]) == ("extremal", ex.__version__, "BSD-3-Clause")
    assert set(told.get_all("Classifier")) == set(project["classifiers"])
    assert told.get_all("Project-URL")
    assert "extremal" in told.get_payload()


def test_the_sdist_has_what_a_packager_needs(built):
    with tarfile.open(built[1]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "SECURITY.md", "CITATION.cff", "tests/conftest.py"}
    assert needed <= names
    junk = ".venv", "docs/_build", "docs/reference", "docs/auto_examples"
    assert not [name for name in names if "__pycache__" in name or name.startswith(junk)]


def test_the_wheel_solves(installed, tmp_path):
    A = np.random.default_rng(0).standard_normal((20, 3)).tolist()
    said = run(installed, "-I", "-c", CODE.format(A=A), cwd=tmp_path).stdout.strip()
    assert Path(said).is_relative_to(installed.parents[1])  # the wheel's own, and not this tree's


def test_the_wheel_brings_its_command(installed, tmp_path):
    pytest.importorskip("typer")
    command = installed.parent / "extremal"
    lines = run(command, "--version", cwd=tmp_path, env={"PATH": ""}).stdout.splitlines()
    assert lines[0] == f"extremal {ex.__version__}"
    assert any(line.startswith("numpy ") for line in lines)


def test_release_files_agree():
    """One version everywhere, and notes for it."""
    assert f"version: {ex.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    notes = (ROOT / "CHANGELOG.md").read_text()
    assert notes.index("## Unreleased") < notes.index(f"## {ex.__version__}")


@pytest.mark.parametrize("name", ["CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_links_of_release_files_lead_somewhere(name):
    """On a forge they are relative to the file; the site includes the file, and takes links that begin with docs/ as its own."""
    links = re.findall(r"\]\((?!https?:)([^)#]+)", (ROOT / name).read_text())
    assert all(link.startswith("docs/") and (ROOT / link).is_file() for link in links), links
    assert links or name != "CONTRIBUTING.md"
