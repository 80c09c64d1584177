"""Matrix completion: CPU time until f is near its minimum, against proximal gradients with exact decompositions.

The problem is 943 x 1682 with 100 000 ratings, in the ball of radius 1190. A dense decomposition of the gradient certifies the
minimum. FISTA has the constrained form: the eigenvectors of a Gram matrix of 943 x 943 project each iterate. It runs with the
known constant L, and with a constant found by trial, which may fall. A method is done at its first iterate with f - f* <= 1e-2,
1e-3, 1e-4, 1e-6 of f*, and certified at the first with a gap below 1e-2, 1e-3, 1e-4 of f. The clock stops while these are
computed, unless the method itself computes them. Medians are over seeds, and each seed is a problem of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from extremal import FrankWolfe, LowRankFW, Method, NuclearBall, minimize
from extremal.gradients import Full
from extremal.methods import Recipe
from extremal.moves import BlendedPairwise, Pairwise
from extremal.steps import LineSearch
from extremal_lab.bench.completion_problem import Ratings, constrained_fista, iterates
from extremal_lab.bench.timing import Found, Measurement, Skipped, watched

PART = "completion"
OURS = "LowRankFW"
GOALS = {  # index of the observed number, and its limit
    **{f"f - f* <= {part:g} f*": (0, part) for part in (1e-2, 1e-3, 1e-4, 1e-6)},
    **{f"gap <= {part:g} f": (1, part) for part in (1e-2, 1e-3, 1e-4)},
}
METHODS: dict[str, tuple[Recipe, int]] = {  # with a limit on the iterations of each
    OURS: (LowRankFW(), 12),
    "BlendedPairwise(lazy)": (Method(Full(), LineSearch(), BlendedPairwise(lazy=True)), 400),
    "Pairwise": (Method(Full(), LineSearch(), Pairwise()), 200),
    "FrankWolfe(LineSearch)": (FrankWolfe(step=LineSearch()), 200),
}
FISTA = {"FISTA of known L": 1.0, "FISTA of L by trial": 0.8}  # factor of L before each step
Seen = list[tuple[float, tuple[float, float]]]  # CPU seconds, (f/f* - 1, gap/f)


@dataclass(frozen=True)
class Sizes:
    """The sizes of a level of measurement."""

    ratings: Ratings = field(default_factory=Ratings)
    radius: float = 1190.0
    seeds: int = 5
    fista: int = 45  # iterations
    share: float = 1.0  # share of the iterations of the other methods


LEVELS = {
    "smoke": Sizes(Ratings(30, 40, 600, 3), 40.0, 1, 6, 0.1),
    "quick": Sizes(Ratings(300, 500, 20_000), 300.0, 3),
    "default": Sizes(),
    "full": Sizes(seeds=9),
}


def measure(level: str) -> Found:
    """Run all methods from all seeds; then report the seconds to each goal, and their ratio to ours."""
    sizes, found = LEVELS[level], dict[str, list[Seen]]()
    for method, _ in METHODS.values():
        minimize(sizes.ratings.made(99).objective, NuclearBall(sizes.radius), method, max_iter=2)  # compiled and warm
    for seed in range(sizes.seeds):
        problem = sizes.ratings.made(seed)
        best = minimize(problem.objective, NuclearBall(sizes.radius), LowRankFW(), tol=1e-8)
        yield certified(problem.objective, best, sizes.radius, seed)
        for name, seen in contest(problem, best.value, sizes):
            found.setdefault(name, []).append(seen)
    for goal, (which, part) in GOALS.items():
        yield from told(goal, {name: [first(seen, which, part) for seen in each] for name, each in found.items()})


def certified(f: Any, best: Any, radius: float, seed: int) -> Measurement:
    """The accuracy of the known minimum, by a dense decomposition."""
    g = np.asarray(f.grad(best.x))
    gap = np.vdot(g, np.asarray(best.x)) + radius * np.linalg.norm(g, 2)
    note = f"f* = {best.value:.9f}, rank {best.x.rank}"
    return Measurement.of(PART, f"minimum: seed {seed}", [gap / best.value], unit="relative gap of f*", note=note)


def contest(problem: Any, best: float, sizes: Sizes) -> Iterator[tuple[str, Seen]]:
    """The observations of every method on one problem."""
    look, rough = _look(problem.objective, best, sizes.radius), NuclearBall(sizes.radius, tol=1e-5)
    for name, shrink in FISTA.items():
        yield name, list(watched(constrained_fista(problem, sizes.radius, sizes.fista, shrink), look))
    for name, (method, most) in METHODS.items():
        yield name, list(watched(iterates(problem, rough, method, max(3, round(sizes.share * most))), look))


def _look(f: Any, best: float, radius: float) -> Callable[[Any], tuple[float, float]]:
    C = NuclearBall(radius, tol=1e-5)

    def look(x: Any) -> tuple[float, float]:
        value, g = f.value_and_grad(x)
        return value / best - 1, (g.inner(x) - C.lmo(g).low) / value

    return look


def first(seen: Seen, which: int, part: float) -> float | None:
    """CPU seconds until one of the observed numbers was first small enough.

    Examples
    --------
    >>> seen = [(1.0, (0.5, 0.9)), (2.0, (0.01, 0.2))]
    >>> first(seen, 0, 0.01), first(seen, 1, 0.01)
    (2.0, None)
    """
    return next((spent for spent, found in seen if found[which] <= part), None)


def told(goal: str, spent: dict[str, list[float | None]]) -> Found:
    """Seconds to a goal, and their ratio to ours on the same problem.

    Examples
    --------
    >>> [item.name for item in told("near", {"LowRankFW": [1.0, 2.0], "slow": [3.0, 4.0], "stuck": [1.0, None]})]
    ['near, seconds: LowRankFW', 'near, seconds: slow', 'near: slow', 'near, seconds: stuck']
    """
    ours = spent[OURS]
    for name, each in spent.items():
        reached = _all(each)
        if reached is None:
            yield Skipped(PART, f"{goal}, seconds: {name}", f"reached on {len(each) - each.count(None)} problems of {len(each)}")
            continue
        yield Measurement.of(PART, f"{goal}, seconds: {name}", reached, unit="CPU seconds")
        base = _all(ours)
        if base is not None and name != OURS:
            ratios = [a / b for a, b in zip(reached, base, strict=True)]
            yield Measurement.of(PART, f"{goal}: {name}", ratios, unit=f"times the CPU time of {OURS}")


def _all(each: Sequence[float | None]) -> list[float] | None:
    known = [spent for spent in each if spent is not None]
    return known if len(known) == len(each) else None
