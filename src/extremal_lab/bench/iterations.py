"""The cost of an iteration in many dimensions, in passes over a dense vector of that dimension: against d, and against b."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from extremal.methods import Recipe, SagaSarahFW, SarahFW
from extremal_lab.bench.problems import generated, per_iteration, run
from extremal_lab.bench.timing import Found, Measurement, against, enough, exponent, keeping, seconds

PART = "iterations"
PASS, PLAIN = "abs(g).max()", "g.sum()"  # one pass over a dense vector: with an intermediate vector, and without
BAR = 1 / 50  # for Sarah at the largest dimension, b = 1, in passes of the first kind
LARGEST = 1_000_000
METHODS: dict[str, Callable[[int], Recipe]] = {
    "SarahFW": lambda b: SarahFW(batch=b),
    "SagaSarahFW": lambda b: SagaSarahFW(batch=b),
}
Costs = dict[str, list[float]]


@dataclass(frozen=True)
class Sizes:
    """The sizes of a level of measurement."""

    dimensions: tuple[int, ...] = (1_000, 10_000, 100_000, LARGEST)
    batches: tuple[int, ...] = (1, 10, 100, 1000)  # in the largest dimension; b = 1 in the others
    rows: int = 20_000
    runs: int = 60_000  # approximate rows of a run: at b = 1 that many iterations share the fixed cost O(d)
    per_row: int = 50
    repeats: int = 5
    target: float = 0.02  # approximate CPU seconds of the dense passes


LEVELS = {
    "smoke": Sizes((100, 1_000), (1, 10), 300, 900, 20, 2, 0.001),
    "quick": Sizes((10_000, LARGEST), (1,), repeats=3),
    "default": Sizes(),
    "full": Sizes(repeats=9),
}


def measure(level: str) -> Found:
    """Measure the ratios for every dimension and batch, and their growth."""
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
    """All methods and batches in one dimension, in turns with dense passes; their CPU seconds are kept in ``costs``."""
    f = generated(sizes.rows, d, sizes.per_row).f
    batches = sizes.batches if d == sizes.dimensions[-1] else (1,)
    runs = {_key(m, d, b): _iteration(f, b, METHODS[m](b), sizes) for m in METHODS for b in batches}
    contenders = {name: keeping(costs, name, cost) for name, cost in runs.items()}
    for dense, found in against(_passes(d, sizes.target), contenders, sizes.repeats).items():
        for name, ratios in found.items():
            yield Measurement.of(PART, _said(name, dense), ratios, unit=unit(dense), bar=_bar(name, dense))


def _passes(d: int, target: float) -> dict[str, Callable[[], float]]:
    """CPU seconds of one pass over a dense vector, of each kind."""
    g = np.random.default_rng(0).standard_normal(d)
    kinds: dict[str, Callable[[], object]] = {PASS: lambda: np.abs(g).max(), PLAIN: lambda: g.sum()}
    counted = {name: (work, enough(work, target)) for name, work in kinds.items()}
    return {name: lambda work=work, times=times: seconds(work, times) for name, (work, times) in counted.items()}


def unit(dense: str) -> str:
    """The unit of an iteration."""
    return f"passes {dense} over a dense vector of d numbers, for an iteration"


def _said(name: str, dense: str) -> str:
    """The name of a measurement, which names the kind of pass.

    Examples
    --------
    >>> _said("SarahFW: d = 10^6, b = 1", PLAIN)
    'SarahFW by g.sum(): d = 10^6, b = 1'
    """
    return name.replace(": ", f" by {dense}: ", 1)


def _bar(name: str, dense: str) -> float | None:
    return BAR if (name, dense) == (_key("SarahFW", LARGEST, 1), PASS) else None


def _iteration(f: Any, b: int, recipe: Recipe, sizes: Sizes) -> Callable[[], float]:
    """CPU seconds of an iteration, as a callable with a new seed each time; compiled and warm."""
    run(f, recipe, max_iter=20)
    iterations, seeds = max(200, sizes.runs // b), count()
    return lambda: per_iteration(run(f, recipe, seed=next(seeds), max_iter=iterations))


def _growth(name: str, sizes: tuple[int, ...], costs: Costs, keys: list[str]) -> Measurement:
    """The exponent of the CPU time of an iteration: one for each repeat."""
    slopes = [exponent(sizes, at) for at in zip(*(costs[key] for key in keys), strict=True)]
    return Measurement.of(PART, name, slopes, unit="exponent of the CPU time of an iteration")


def _key(method: str, d: int, b: int) -> str:
    return f"{method}: d = {power(d)}, b = {b}"


def power(size: int) -> str:
    """A size in words.

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
