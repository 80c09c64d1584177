"""Weights of ensembles by SimplexRegression at sizes where memory counts, against hand-written code.

- tall: 2.4 million rows x 256 members, float32; with and without sample weights;
- wide: a million rows x 1000 members, float32;
- small: 20 000 rows x 100 members, where SLSQP and nnls take part;
- targets: a thousand targets on 5000 rows x 60 members.

Every fit is a process of its own, ``python -m extremal_lab.bench.ensembles SOLVER ROWS MEMBERS TARGETS``. It makes the data in
place by blocks, compiles loops by a first fit of some rows, and then starts the clock. "Beyond the data" is the peak of resident
memory minus the resident memory at that moment. Errors are (f - f_1) / f_1 in float64; f_1 is certified, by the first solver.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from extremal.support.memory import free_memory
from extremal_lab.bench.children import ChildError, answer, asked, installed
from extremal_lab.bench.machine import peak_memory, resident_memory
from extremal_lab.bench.simplex_rivals import by_nnls, by_products, by_slsqp, certify, forecasts, off
from extremal_lab.bench.timing import Found, Measurement, Skipped, seconds

PART = "ensembles"
GIB = 2**30
FIRST = "estimator"
SOLVERS = {
    "tall": (FIRST, "estimator weighted", "estimator intercept", "products"),
    "wide": (FIRST, "estimator weighted", "estimator newton", "products"),
    "small": (FIRST, "estimator newton", "slsqp", "products", "nnls"),
    "targets": (FIRST, "nnls one by one"),
}
SHOWN = 20  # targets whose answers are judged
UNITS = {
    "seconds": "CPU seconds of a fit",
    "ratio": "times the CPU time of SimplexRegression",
    "beyond": "GiB beyond the data",
    "gap": "relative Frank-Wolfe gap",
    "error": "(f - f_1) / f_1",
    "off": "how far sum or least weight are off",
}


@dataclass(frozen=True)
class Shape:
    """Rows, members and targets."""

    rows: int
    members: int
    targets: int = 1

    @property
    def bytes(self) -> int:
        """The bytes of the data, and of a small child process."""
        return 4 * self.rows * (self.members + self.targets) + GIB // 2


@dataclass(frozen=True)
class Sizes:
    """The sizes of a level of measurement."""

    cases: Mapping[str, Shape] = field(
        default_factory=lambda: {
            "tall": Shape(2_400_000, 256),
            "wide": Shape(1_000_000, 1000),
            "small": Shape(20_000, 100),
            "targets": Shape(5000, 60, 1000),
        }
    )


LEVELS = {
    "smoke": Sizes({"targets": Shape(300, 25, 3)}),
    "quick": Sizes({"small": Shape(20_000, 100), "targets": Shape(5000, 60, 100)}),
    "default": Sizes(),
    "full": Sizes(),
}


def measure(level: str) -> Found:
    """Measure all cases of a level that fit into the memory."""
    if not installed("sklearn"):
        yield Skipped(PART, "SimplexRegression", "scikit-learn is not installed")
        return
    for name, shape in LEVELS[level].cases.items():
        free = free_memory()
        if free is not None and shape.bytes > free:
            yield Skipped(PART, name, f"it needs {shape.bytes / 1e9:.1f} GB of free memory")
        else:
            yield from _case(name, shape)


def _case(name: str, shape: Shape) -> Found:
    """Measure every solver of a case; ratios and errors are relative to the first."""
    first: dict[str, Any] | None = None
    for solver in SOLVERS[name]:
        try:
            said = asked(f"extremal_lab.bench.{PART}", solver, shape.rows, shape.members, shape.targets, minutes=120)
        except ChildError as error:
            yield Skipped(PART, f"{name}: {solver}", f"it failed: {error}")
            continue
        first = said if solver == FIRST else first
        yield from told(name, solver, said, first)


def told(name: str, solver: str, said: dict[str, Any], first: dict[str, Any] | None) -> Iterator[Measurement]:
    """The numbers of a process, each with its unit."""
    found = {"seconds": [said["seconds"]], "beyond": [said["beyond"] / GIB], "gap": np.divide(said["gap"], said["f"])}
    if "off" in said:
        found["off"] = said["off"]
    if first is not None and said is not first:
        found["ratio"] = [said["seconds"] / first["seconds"]]
        if "off" in said:
            found["error"] = np.divide(said["f"], first["f"]) - 1
    for what, numbers in found.items():
        yield Measurement.of(PART, f"{what}, {name}: {solver}", list(numbers), unit=UNITS[what])


def main(solver: str, *numbers: str) -> None:
    """Fit once, and write the costs."""
    A, y = forecasts(*map(int, numbers))
    solve(solver, A[:300], y[:300])  # compiled, and imported
    if solver.startswith(FIRST):
        solve("estimator newton", A[:300], y[:300])
    before, found = resident_memory(), []
    spent = seconds(lambda: found.append(solve(solver, A, y)))
    beyond, (fitted,) = peak_memory() - before, found
    answer({"seconds": spent, "beyond": beyond, **judged(fitted, A, y, solver)})


def judged(fitted: Any, A: np.ndarray, y: np.ndarray, solver: str) -> dict[str, list[float]]:
    """f and its gap: from the estimator for its own problems, otherwise in float64 for the weights as they are."""
    if solver.endswith(("weighted", "intercept")):
        return {"f": [float(fitted.objective_)], "gap": [float(fitted.dual_gap_)]}
    weights = np.atleast_2d(np.asarray(getattr(fitted, "coef_", fitted), np.float64))[:SHOWN]
    pairs = [certify(A, y if y.ndim == 1 else y[:, t], w) for t, w in enumerate(weights)]
    return {"f": [f for f, _ in pairs], "gap": [gap for _, gap in pairs], "off": [off(w) for w in weights]}


def solve(solver: str, A: np.ndarray, y: np.ndarray) -> Any:
    """The weights, or an estimator that has them."""
    name, _, kind = solver.partition(" ")
    if name == FIRST:
        return by_estimator(A, y, kind)
    if kind == "one by one":
        return np.array([by_nnls(A, y[:, t]) for t in range(y.shape[1])])
    if name == "slsqp":
        return by_slsqp(A.astype(np.float64), y.astype(np.float64), ftol=1e-12)
    return {"products": by_products, "nnls": by_nnls}[name](A, y)


def by_estimator(A: np.ndarray, y: np.ndarray, kind: str = "") -> Any:
    """SimplexRegression: with weights, with an intercept, or by a given solver."""
    from extremal.sklearn import SimplexRegression

    options: dict[str, Any] = {"solver": kind} if kind == "newton" else {"fit_intercept": kind == "intercept"}
    weights = np.random.default_rng(1).random(len(y), np.float32) + np.float32(0.5) if kind == "weighted" else None
    return SimplexRegression(**options).fit(A, y, sample_weight=weights)


if __name__ == "__main__":
    main(*sys.argv[1:])
