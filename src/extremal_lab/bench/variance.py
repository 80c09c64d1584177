"""How far batch gradients are from the gradient: consecutive rows of shuffled data, against rows drawn at random."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal.losses import Logistic
from extremal.methods import FrankWolfe
from extremal.objectives import LinearModel
from extremal_lab.bench.problems import hundredth, named, run
from extremal_lab.bench.timing import Found, Measurement

PART = "variance"
UNIT = "times the mean |g_S - g|^2 of as many random rows"
Draw = Callable[[np.random.Generator, int, int], np.ndarray]


@dataclass(frozen=True)
class Sizes:
    """The sizes of a level of measurement."""

    data: tuple[str, ...] = ("a8a", "w8a")
    batches: int = 1000  # number of batches in a mean
    repeats: int = 5  # number of shuffles


LEVELS = {
    "smoke": Sizes(("mushrooms",), 20, 2),
    "quick": Sizes(("a8a",), 300, 3),
    "default": Sizes(),
    "full": Sizes(("a8a", "w8a", "mushrooms"), 4000, 9),
}


def measure(level: str) -> Found:
    """Measure blocks of shuffled rows, and of rows sorted by their target as a warning, over random rows."""
    sizes = LEVELS[level]
    for name in sizes.data:
        problem = named(name)
        order = np.argsort(problem.y, kind="stable")
        f, b = LinearModel(Logistic(), problem.A[order], problem.y[order]), hundredth(problem.n)
        x = run(problem.f, FrankWolfe(), max_iter=20).x
        kept: dict[str, list[float]] = {"shuffled": [], "sorted by target": []}
        for seed in range(sizes.repeats):
            rng = np.random.default_rng([seed, 17])
            usual = mean_error(f, x, random_rows, b, sizes.batches, rng)
            mixed = mean_error(f.shuffled(seed), x, block, b, sizes.batches, rng)
            kept["shuffled"].append(mixed / usual)
            kept["sorted by target"].append(mean_error(f, x, block, b, sizes.batches, rng) / usual)
        for how, ratios in kept.items():
            yield Measurement.of(PART, f"{problem.name}: blocks of n/100 rows, {how}", ratios, unit=UNIT)


def mean_error(f: Any, x: np.ndarray, draw: Draw, b: int, batches: int, rng: np.random.Generator) -> float:
    """The mean of |g_S - g|^2 over batches S of b rows: g_S is the mean of their gradients at x, g that of all.

    Examples
    --------
    >>> f = LinearModel(Logistic(), np.eye(4), np.ones(4))
    >>> mean_error(f, np.zeros(4), random_rows, b=4, batches=3, rng=np.random.default_rng(0))
    0.0
    """
    g = f.grad(x)
    errors = []
    for _ in range(batches):
        idx = draw(rng, f.n, b)
        errors.append(float(((f.combine(f.derivs(x, idx), idx) - g) ** 2).sum()))
    return float(np.mean(errors))


def random_rows(rng: np.random.Generator, n: int, b: int) -> np.ndarray:
    """b distinct rows."""
    return rng.choice(n, b, replace=False)


def block(rng: np.random.Generator, n: int, b: int) -> np.ndarray:
    """b consecutive rows from a random row on, with the first after the last, like the sampler of shuffled models."""
    return (rng.integers(n) + np.arange(b)) % n
