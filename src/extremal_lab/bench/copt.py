"""The cost of copt's stochastic Frank-Wolfe, in an environment of its own that is made once and kept."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from extremal_lab.bench.children import ChildError, output
from extremal_lab.bench.problems import Problem, named
from extremal_lab.bench.timing import Found, Measurement, Skipped

PART = "copt"
UNIT = "scipy full gradients for n component gradients"
PACKAGES = ("copt==0.9.2", "numba")  # without numba, copt's products with rows are Python loops
SCRIPT = Path(__file__).with_name("peer_copt.py")


@dataclass(frozen=True)
class Sizes:
    """The sizes of a level of measurement."""

    data: tuple[str, ...] = ("a8a", "w8a", "mushrooms")
    repeats: int = 5
    epochs: int = 3


LEVELS = {
    "smoke": Sizes(("mushrooms",), 2, 1),
    "quick": Sizes(("w8a",), 3, 1),
    "default": Sizes(),
    "full": Sizes(repeats=9),
}


def measure(level: str) -> Found:
    """Measure one epoch of copt's variants at b = n/100, over scipy's gradient in the same process."""
    sizes = LEVELS[level]
    try:
        python = environment(_folder(), PACKAGES)
        for name in sizes.data:
            yield from _on(named(name), python, sizes)
    except ChildError as error:
        yield Skipped(PART, "copt", f"it does not install or run here: {error}")


def environment(folder: Path, packages: tuple[str, ...]) -> Path:
    """The interpreter of a virtual environment with these packages, which pip makes on the first call."""
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    stamp = folder / "installed.txt"
    if stamp.is_file() and stamp.read_text() == "\n".join(packages):
        return python
    _do([sys.executable, "-m", "venv", "--clear", str(folder)])
    _do([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages])
    stamp.write_text("\n".join(packages))
    return python


def _on(problem: Problem, python: Path, sizes: Sizes) -> Found:
    A, y = problem.A, problem.y
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder, "data.npz")
        np.savez(data, data=A.data, indices=A.indices, indptr=A.indptr, shape=A.shape, y=y)
        said = _do([str(python), str(SCRIPT), str(data), str(sizes.repeats), str(sizes.epochs)])
    for line in said.splitlines():
        if line.startswith("{"):
            found = json.loads(line)
            name = f"{problem.name}: copt {found['variant']}, b = n/100"
            yield Measurement.of(PART, name, found["ratios"], unit=UNIT, note=f"copt {found['version']}")


def _do(command: list[str]) -> str:
    """The output of a command, run without variables that lead to the packages of this environment."""
    led = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    return output(command, {name: value for name, value in os.environ.items() if name not in led})


def _folder() -> Path:
    """The folder of the environment: in the user's cache, one for each version of Python."""
    try:
        from platformdirs import user_cache_path
    except ImportError:
        raise ChildError("it needs platformdirs: pip install 'extremal[data]'") from None
    return user_cache_path("extremal") / "peers" / f"copt-{sys.version_info.major}.{sys.version_info.minor}"
