"""One tall least squares over the simplex within 4 GiB of address space: up to 2.4 million x 256 in float32.

Each solver is a process of its own, ``python -m extremal_lab.bench.simplex_tall SOLVER ROWS COLUMNS GIB SECONDS``, with a limit
on address space and on time. It gets twice the rows each time until it fails. Data are made by blocks. The clock starts after
that, and stops before the certificate is computed in float64. Imports of a solver count.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from extremal import LinearModel, Simplex, Squared, minimize
from extremal_lab.bench.children import ChildError, answer, asked, installed
from extremal_lab.bench.machine import peak_memory
from extremal_lab.bench.simplex_rivals import by_cvxpy, by_nnls, by_products, by_slsqp, certify, forecasts, off
from extremal_lab.bench.timing import Found, Measurement, Skipped

PART = "simplex_tall"
OURS = "minimize"
GIB = 2**30
UNITS = {
    "seconds": "CPU seconds",
    "ratio": f"times the CPU time of {OURS} on the same rows",
    "peak": "GiB at the peak, data included",
    "gap": "relative Frank-Wolfe gap of the point, made feasible",
    "off": "how far sum or least weight are off",
}


@dataclass(frozen=True)
class Sizes:
    """The sizes of a level of measurement."""

    rows: tuple[int, ...] = tuple(2_400_000 // 2**k for k in range(7, -1, -1))
    columns: int = 256
    gib: float = 4.0
    seconds: int = 120
    solvers: tuple[str, ...] = ()  # all if empty


LEVELS = {
    "smoke": Sizes((300,), 25, solvers=(OURS, "nnls, heavy row")),
    "quick": Sizes((75_000, 300_000), seconds=20),
    "default": Sizes(),
    "full": Sizes(seconds=600),
}


def by_minimize(A: np.ndarray, y: np.ndarray, method: str | None = None) -> np.ndarray:
    """Our solver, by its own choice of a method, or by a given one."""
    return minimize(LinearModel(Squared(), A, y), Simplex(), method).x


SOLVERS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    OURS: by_minimize,
    "fully-corrective-fw": partial(by_minimize, method="fully-corrective-fw"),
    "SLSQP": partial(by_slsqp, ftol=1e-8),
    "A'A by hand, then SLSQP": by_products,
    "nnls, heavy row": by_nnls,
    "cvxpy OSQP": partial(by_cvxpy, solver="OSQP"),
    "cvxpy CLARABEL": partial(by_cvxpy, solver="CLARABEL"),
}


def measure(level: str) -> Found:
    """Measure more and more rows, with the solvers that have not failed."""
    sizes = LEVELS[level]
    alive = list(sizes.solvers or SOLVERS)
    if not installed("cvxpy"):
        alive = [name for name in alive if "cvxpy" not in name]
        yield Skipped(PART, "cvxpy", "it is not installed")
    for n in sizes.rows:
        base = None
        for name in tuple(alive):
            try:
                said = asked(f"extremal_lab.bench.{PART}", name, n, sizes.columns, sizes.gib, sizes.seconds)
            except ChildError as error:
                alive.remove(name)
                yield Skipped(PART, f"{n} rows: {name}", f"it gives up: {error}")
                continue
            base = said["seconds"] if name == OURS else base
            yield from told(n, name, said, base)


def told(n: int, name: str, said: dict[str, Any], base: float | None) -> Iterator[Measurement]:
    """The numbers of a process, and its time over ours."""
    if base is not None and name != OURS:
        said = said | {"ratio": said["seconds"] / base}
    for what, unit in UNITS.items():
        if what in said:
            yield Measurement.of(PART, f"{what}, {n} rows: {name.replace(',', '')}", [said[what]], unit=unit)


def main(solver: str, n: str, d: str, gib: str, seconds: str) -> None:
    """Solve once within the limits, and write the costs."""
    import resource  # not on every system

    space = int(float(gib) * GIB)
    resource.setrlimit(resource.RLIMIT_AS, (space, space))
    A, y = forecasts(int(n), int(d))
    made = time.process_time()
    limit = int(made + float(seconds)) + 1
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))  # a signal first
    x = np.asarray(SOLVERS[solver](A, y), np.float64)
    spent, peak = time.process_time() - made, peak_memory() / GIB
    inside = np.maximum(x, 0) / np.maximum(x, 0).sum()
    value, gap = certify(A, y, inside)
    answer({"seconds": spent, "peak": peak, "gap": gap / value, "off": off(x)})


if __name__ == "__main__":
    main(*sys.argv[1:])
