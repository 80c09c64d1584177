"""The cost of the first call in a process: CPU and wall seconds of fresh processes, Python's own start included.

Compiled code is kept from one process to the next. Only in the last case, a process finds none, and compiles.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from dataclasses import dataclass

from extremal_lab.bench.children import output
from extremal_lab.bench.timing import Found, Measurement

PART = "startup"
PROBLEM = """
import numpy as np, extremal as ex
rng = np.random.default_rng(0)
A, y = rng.standard_normal((200, 20)), np.sign(rng.standard_normal(200))
"""
SPARSE = "import scipy.sparse as sp\nA = sp.csr_array(A)\n"
RUN = "ex.minimize(ex.LinearModel(ex.Logistic(), A, y), ex.L1Ball(5.0), max_iter=100)\n"
CPU = "\nimport time\nprint(time.process_time())"
CASES = {
    "python alone": "",
    "import numpy": "import numpy",
    "import numba": "import numba",
    "import extremal": "import extremal",
    "first run, dense": PROBLEM + RUN,
    "first run, CSR": PROBLEM + SPARSE + RUN,
}
COLD = "first run, CSR, compiling"
BARS = {"import extremal": 0.3, "first run, dense": 1.5, "first run, CSR": 1.5}


@dataclass(frozen=True)
class Sizes:
    """The sizes of a level of measurement."""

    cases: tuple[str, ...] = tuple(CASES)
    repeats: int = 7
    cold: bool = True


LEVELS = {
    "smoke": Sizes(("python alone", "import extremal"), 1, False),
    "quick": Sizes(repeats=3, cold=False),
    "default": Sizes(),
    "full": Sizes(repeats=15),
}


def measure(level: str) -> Found:
    """Measure CPU seconds of each case, with bars, and wall seconds; the cases take turns."""
    sizes = LEVELS[level]
    cases = {name: CASES[name] for name in sizes.cases}
    for code in cases.values():
        seconds(code)  # files are read, and kernels compiled
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in cases}
    for _ in range(sizes.repeats):
        for name, code in cases.items():
            found[name].append(seconds(code))
    if sizes.cold:
        found[COLD] = [cold()]
    for name, pairs in found.items():
        cpu, wall = zip(*pairs, strict=True)
        yield Measurement.of(PART, f"CPU: {name}", cpu, unit="CPU seconds of a fresh process", bar=BARS.get(name))
        yield Measurement.of(PART, f"wall: {name}", wall, unit="wall seconds of a fresh process")


def seconds(code: str, **environment: str) -> tuple[float, float]:
    """CPU and wall seconds of a process that runs the code."""
    start = time.perf_counter()
    said = output([sys.executable, "-c", code + CPU], os.environ | environment)
    return float(said.split()[-1]), time.perf_counter() - start


def cold() -> tuple[float, float]:
    """The same for a run that finds no compiled code."""
    with tempfile.TemporaryDirectory() as folder:
        return seconds(CASES["first run, CSR"], NUMBA_CACHE_DIR=folder)
