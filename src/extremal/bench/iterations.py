"""What an iteration costs in many dimensions, in passes over a dense vector of that dimension: against d, and against b."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from extremal.bench.problems import generated, per_iteration, run
from extremal.bench.timing import Found, Measurement, enough, exponent, in_turns, seconds
from extremal.methods import Recipe, SagaSarahFW, SarahFW

PART = "iterations"
UNIT = "passes abs(g).max() over a dense vector, for an iteration"
PLAIN = "passes g.max() over a dense vector, for an iteration"
BAR = 1 / 50  # of Sarah at the largest dimension, b = 1
LARGEST = 1_000_000
METHODS: dict[str, Callable[[int], Recipe]] = {
    "SarahFW": lambda b: SarahFW(batch=b),
    "SagaSarahFW": lambda b: SagaSarahFW(batch=b),
}
Costs = dict[str, list[float]]


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    dimensions: tuple[int, ...] = (1_000, 10_000, 100_000, LARGEST)
    batches: tuple[int, ...] = (1, 10, 100, 1000)  # in the largest dimension; b = 1 in the others
    rows: int = 20_000
    per_row: int = 50
    repeats: int = 5
    target: float = 0.02  # CPU seconds of the dense passes, about


LEVELS = {
    "smoke": Sizes((100, 1_000), (1, 10), 300, 20, 2, 0.001),
    "quick": Sizes((10_000, LARGEST), (1,), repeats=3),
    "default": Sizes(),
    "full": Sizes(repeats=9),
}


def measure(level: str) -> Found:
    """The ratios for every dimension and batch, and how they grow."""
    sizes = LEVELS[level]
    costs: Costs = {}
    for d in sizes.dimensions:
        yield from _dimension(d, sizes, costs)
    for method in METHODS:
        yield _growth(
            f"exponents: {method}, of d at b = 1", sizes.dimensions, costs, [_key(method, d, 1) for d in sizes.dimensions]
        )
        if len(sizes.batches) > 1:
            keys = [_key(method, sizes.dimensions[-1], b) for b in sizes.batches]
            yield _growth(f"exponents: {method}, of b at d = {power(sizes.dimensions[-1])}", sizes.batches, costs, keys)


def _dimension(d: int, sizes: Sizes, costs: Costs) -> Iterator[Measurement]:
    """All methods and batches in one dimension, in turns with the dense pass; their CPU seconds are kept in ``costs``."""
    f = generated(sizes.rows, d, sizes.per_row).f
    g = np.random.default_rng(0).standard_normal(d)
    passes = {UNIT: lambda: np.abs(g).max()} | ({PLAIN: lambda: g.max()} if d == sizes.dimensions[-1] else {})
    batches = sizes.batches if d == sizes.dimensions[-1] else (1,)
    runs = {_key(m, d, b): _iteration(f, b, METHODS[m](b), sizes) for m in METHODS for b in batches}
    for unit, dense in passes.items():
        times = enough(dense, sizes.target)
        asked = runs if unit == UNIT else {name: cost for name, cost in runs.items() if name.endswith("b = 1")}
        kept: Costs = {}
        contenders = {name: _keeping(kept, name, cost) for name, cost in asked.items()}
        for name, ratios in in_turns(lambda dense=dense, times=times: seconds(dense, times), contenders, sizes.repeats).items():
            bar = BAR if (name, unit) == (_key("SarahFW", LARGEST, 1), UNIT) else None
            said = name if unit == UNIT else f"{name}, by g.max()"
            yield Measurement.of(PART, said, ratios, unit=unit, bar=bar)
        costs |= kept


def _iteration(f: Any, b: int, recipe: Recipe, sizes: Sizes) -> Callable[[], float]:
    """CPU seconds of an iteration, as a callable with a new seed each time; compiled and warm.

    As many iterations as take ``sizes.rows`` rows, so that what a run costs once, O(d), is shared by many at b = 1.
    """
    run(f, recipe, max_iter=20)
    iterations, seeds = max(20, sizes.rows // b), count()
    return lambda: per_iteration(run(f, recipe, seed=next(seeds), max_iter=iterations))


def _keeping(kept: Costs, key: str, cost: Callable[[], float]) -> Callable[[], float]:
    def measured() -> float:
        spent = cost()
        kept.setdefault(key, []).append(spent)
        return spent

    return measured


def _growth(name: str, sizes: tuple[int, ...], costs: Costs, keys: list[str]) -> Measurement:
    """The exponent of the CPU time of an iteration: one for each repeat."""
    slopes = [exponent(sizes, at) for at in zip(*(costs[key] for key in keys), strict=True)]
    return Measurement.of(PART, name, slopes, unit="exponent of the CPU time of an iteration")


def _key(method: str, d: int, b: int) -> str:
    return f"{method}: d = {power(d)}, b = {b}"


def power(size: int) -> str:
    """A size as it is said.

    Examples
    --------
    >>> power(1_000_000), power(300_000), power(1234)
    ('10^6', '3 10^5', '1234')
    """
    digits = len(str(size)) - 1
    lead = size // 10**digits
    if digits < 3 or size != lead * 10**digits:
        return str(size)
    return f"10^{digits}" if lead == 1 else f"{lead} 10^{digits}"
