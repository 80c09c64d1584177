"""The memory of a run: its peak over a bound, and the bytes that each row and feature add.

Each run is a process of its own, ``python -m extremal_lab.bench.memory METHOD ROWS FEATURES PER_ROW BATCH``. Another process has
compiled its kernels before.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from extremal_lab.bench.children import answer, asked
from extremal_lab.bench.iterations import METHODS, power
from extremal_lab.bench.machine import peak_memory
from extremal_lab.bench.problems import generated, hundredth, run
from extremal_lab.bench.timing import Found, Measurement

PART = "memory"
PER_ROW, PER_FEATURE, ALLOWANCE = 24, 64, 200e6  # bytes that a run may take beside the data
BOUND = "data + 24 B/row + 64 B/feature + 200 MB"
PASSES, ITERATIONS = 4, 300  # whichever comes first


@dataclass(frozen=True)
class Case:
    """The shape of generated data, and the batch."""

    n: int
    d: int
    per_row: int
    batch: int

    def twice(self, what: str) -> Case:
        """The case with twice the rows or features; the number of entries in a row stays the same."""
        if what == "row":
            return Case(2 * self.n, self.d, self.per_row, 2 * self.batch)
        return Case(self.n, 2 * self.d, self.per_row, self.batch)


def _many_rows(n: int) -> Case:
    return Case(n, 1000, 12, hundredth(n))


def _many_features(d: int) -> Case:
    return Case(20_000, d, 50, 1)


@dataclass(frozen=True)
class Sizes:
    """The sizes of a level of measurement."""

    rows: int = 1_000_000
    features: int = 1_000_000
    methods: tuple[str, ...] = tuple(METHODS)
    what: tuple[str, ...] = ("row", "feature")


LEVELS = {
    "smoke": Sizes(20_000, 20_000, ("SarahFW",), ("row",)),
    "quick": Sizes(500_000, 500_000, ("SarahFW",)),
    "default": Sizes(),
    "full": Sizes(5_000_000, 5_000_000),
}


def measure(level: str) -> Found:
    """Measure the peak of each method with many rows and with many features."""
    sizes = LEVELS[level]
    for method in sizes.methods:
        for what in sizes.what:
            case = _many_rows(sizes.rows) if what == "row" else _many_features(sizes.features)
            peak_of(method, Case(2_000, 1000, case.per_row, min(case.batch, 20)))  # compiles the kernels
            yield from _pair(method, what, case)


def _pair(method: str, what: str, case: Case) -> Found:
    """Two sizes: the peak of the larger one over its bound, and the bytes that the second half adds beside its data."""
    small, large = (peak_of(method, size) for size in (case, case.twice(what)))
    size = power(case.twice(what).n if what == "row" else case.twice(what).d)
    ratio = large["peak"] / bound(large)
    yield Measurement.of(PART, f"peak: {method}, {size} {what}s", [ratio], unit=f"peak memory over ({BOUND})", bar=1.0)
    per_size = case.n if what == "row" else case.d
    more = (large["peak"] - small["peak"] - (large["data"] - small["data"])) / per_size
    unit = f"bytes beside the data, of which {PER_ROW} a row and {PER_FEATURE} a feature are allowed"
    yield Measurement.of(PART, f"bytes: {method}, per {what}", [more], unit=unit)


def bound(found: dict[str, Any]) -> float:
    """The most bytes that a run may hold.

    Examples
    --------
    >>> bound({"data": 1e9, "n": 10**6, "d": 1000}) / 1e6
    1224.064
    """
    return found["data"] + PER_ROW * found["n"] + PER_FEATURE * found["d"] + ALLOWANCE


def peak_of(method: str, case: Case) -> dict[str, Any]:
    """Bytes of the data and of the peak of a run on them, in a process of its own."""
    return asked("extremal_lab.bench.memory", method, case.n, case.d, case.per_row, case.batch)


def main(method: str, *numbers: str) -> None:
    """Run once, and write the costs."""
    n, d, per_row, batch = map(int, numbers)
    problem = generated(n, d, per_row)
    A, y = problem.A, problem.y
    run(problem.f, METHODS[method](batch), max_grads=PASSES * n, max_iter=ITERATIONS)
    data = A.data.nbytes + A.indices.nbytes + A.indptr.nbytes + y.nbytes
    answer({"n": n, "d": d, "data": data, "peak": peak_memory()})


if __name__ == "__main__":
    main(*sys.argv[1:])
