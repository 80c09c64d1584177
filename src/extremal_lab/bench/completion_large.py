"""Matrix completion where no dense matrix fits: peak memory, and CPU seconds of an iteration.

The problem is 100 000 x 50 000 with 10 million ratings. Each method is a process of its own,
``python -m extremal_lab.bench.completion_large METHOD ROWS COLUMNS COUNT RADIUS ITERATIONS``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

import numpy as np

from extremal import Entries, FrankWolfe, LinearModel, LowRankFW, NuclearBall, SarahFW, Squared, iterate
from extremal.methods import Recipe
from extremal.steps import LineSearch
from extremal.support.memory import free_memory
from extremal_lab.bench.children import answer, asked
from extremal_lab.bench.machine import peak_memory
from extremal_lab.bench.timing import Found, Measurement, Skipped, watched

PART = "completion_large"
METHODS: dict[str, tuple[Callable[[int], Recipe], float]] = {  # by the number of ratings; and the share of the iterations
    "FrankWolfe": (lambda count: FrankWolfe(step=LineSearch()), 1.0),
    "SarahFW": (lambda count: SarahFW(batch=count // 100), 1.0),
    "LowRankFW": (lambda count: LowRankFW(width=10), 0.15),
}
PER_RATING = 300  # approximate bytes that a run needs


@dataclass(frozen=True)
class Sizes:
    """The sizes of a level of measurement."""

    rows: int = 100_000
    columns: int = 50_000
    count: int = 10_000_000
    radius: float = 200_000.0
    iterations: int = 20
    methods: tuple[str, ...] = tuple(METHODS)


LEVELS = {
    "smoke": Sizes(200, 100, 2_000, 400.0, 10, ("LowRankFW",)),
    "quick": Sizes(10_000, 5_000, 1_000_000, 20_000.0),
    "default": Sizes(),
    "full": Sizes(iterations=60),
}


def measure(level: str) -> Found:
    """Measure every method, if there is enough memory."""
    sizes, free = LEVELS[level], free_memory()
    if free is not None and sizes.count * PER_RATING > free:
        yield Skipped(PART, f"{sizes.count} ratings", f"they need {sizes.count * PER_RATING / 1e9:.1f} GB of free memory")
        return
    for name in sizes.methods:
        iterations = max(1, round(METHODS[name][1] * sizes.iterations))
        said = asked(f"extremal_lab.bench.{PART}", name, sizes.rows, sizes.columns, sizes.count, sizes.radius, iterations)
        yield Measurement.of(PART, f"seconds: {name}", said["seconds"], unit="CPU seconds of an iteration", note=said["note"])
        dense = 8 * sizes.rows * sizes.columns
        yield Measurement.of(PART, f"peak: {name}", [said["peak"] / dense], unit="peak memory over that of a dense matrix")
        for what in ("before", "peak"):
            unit = "GiB at the peak, before the run and with it"
            yield Measurement.of(PART, f"GiB: {name}, {what}", [said[what] / 2**30], unit=unit)


def main(name: str, rows: str, columns: str, count: str, radius: str, iterations: str) -> None:
    """Run once, and write the costs."""
    f, recipe = model((int(rows), int(columns)), int(count)), METHODS[name][0](int(count))
    before, states = peak_memory(), iterate(f, NuclearBall(float(radius), tol=1e-2), recipe)
    seen = list(watched(islice(states, int(iterations) + 1), lambda state: f.value(state.x)))
    spent, values = zip(*seen, strict=True)
    note = f"f {values[0]:.3f} -> {values[-1]:.3f}"
    answer({"seconds": np.diff(spent).tolist(), "before": before, "peak": peak_memory(), "note": note})


def model(shape: tuple[int, int], count: int) -> LinearModel:
    """Ratings of a matrix of rank 5 with noise, ready to run."""
    rng = np.random.default_rng(0)
    rows, cols = (rng.integers(0, side, count, dtype=np.int32) for side in shape)
    u, v = (rng.standard_normal((side, 5)) for side in shape)
    y = np.einsum("ij,ij->i", u[rows], v[cols]) + rng.standard_normal(count)
    f = LinearModel(Squared(), Entries(rows, cols, shape), y)
    f.ready()
    return f


if __name__ == "__main__":
    main(*sys.argv[1:])
