"""The cost of oracles that select coordinates, in numpy's sorts of the same gradient; `rows` has that of the l1 ball."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from extremal.sets import BudgetBox, CappedSimplex, ConvexSet, Hypersimplex
from extremal_lab.bench.iterations import power
from extremal_lab.bench.timing import Found, Pair, compared

PART = "oracles"
SORT = "times the CPU time of np.argsort(g)"


@dataclass(frozen=True)
class Sizes:
    """The sizes of a level of measurement."""

    dimensions: tuple[int, ...] = (10_000, 100_000, 1_000_000)
    repeats: int = 9
    target: float = 0.05  # approximate CPU seconds of a series of calls


LEVELS = {
    "smoke": Sizes((1_000,), 2, 0.001),
    "quick": Sizes((10_000, 100_000), 3, 0.02),
    "default": Sizes(),
    "full": Sizes(repeats=15),
}


def measure(level: str) -> Found:
    """Measure few coordinates and half of them, in every dimension."""
    sizes = LEVELS[level]
    for d in sizes.dimensions:
        g = np.random.default_rng(0).standard_normal(d)
        for k in (d // 100, d // 2):
            for what, C in selections(d, k).items():
                pair = Pair(f"d = {power(d)}: {what}, k = {k}", lambda C=C, g=g: C.lmo(g), lambda g=g: np.argsort(g), SORT)
                yield compared(PART, pair, sizes.repeats, sizes.target)


def selections(d: int, k: int) -> dict[str, ConvexSet]:
    """Sets whose vertices have about k coordinates at their upper bounds.

    Examples
    --------
    >>> g = np.full(200, -1.0)
    >>> [round(float(C.lmo(g).dot(g)), 6) for C in selections(200, 2).values()][:3]
    [-2.0, -1.5, -1.5]
    """
    caps = np.random.default_rng(1).uniform(0.5, 1.5, d)
    return {
        "Hypersimplex": Hypersimplex(k).on(d),
        "CappedSimplex of one cap": CappedSimplex(1.0, k - 0.5).on(d),
        "CappedSimplex of d caps": CappedSimplex(caps, k - 0.5),
        "BudgetBox of d bounds": BudgetBox(-caps, caps, 2 * k - caps.sum()),
    }
