"""Matrix completion: CPU time until the error on held back ratings is right, against proximal gradients with exact SVDs.

The problem is 943 x 1682 with 100 000 ratings. The reference is the solution of min 0.5 sum (X - ratings)^2 + 10 |X|_*, to a
relative gap of 2e-4, and the ball has its nuclear norm. A method is done at the first iterate after which its error stays at
most 0.5 % above the reference's. The clock stops while errors are computed. Medians are over seeds, and each seed is a problem
of its own. The error is right long before f is at its minimum, which `completion` measures.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from extremal import FrankWolfe, Method, NuclearBall, minimize
from extremal.gradients import Full, Sarah
from extremal.methods import Recipe
from extremal.moves import BlendedPairwise, Pairwise
from extremal.steps import LineSearch
from extremal_lab.bench.completion_problem import Ratings, by_gram, by_svd, fista, iterates
from extremal_lab.bench.timing import Found, Measurement, Skipped, watched

PART = "completion_error"
SLOW = "FISTA by dense SVD"
FISTA = {SLOW: by_svd, "FISTA by eigenvalues of the Gram matrix": by_gram}
WITHIN = 1.005  # times the error of the reference
METHODS: dict[str, Recipe] = {
    "FrankWolfe(LineSearch)": FrankWolfe(step=LineSearch()),
    "Pairwise": Method(Full(), LineSearch(), Pairwise()),
    "BlendedPairwise(lazy)": Method(Full(), LineSearch(), BlendedPairwise(lazy=True)),
    "Sarah(p=0.1) and LineSearch": Method(Sarah(2000, p=0.1), LineSearch()),
}


@dataclass(frozen=True)
class Sizes:
    """The sizes of a level of measurement."""

    ratings: Ratings = field(default_factory=Ratings)
    weight: float = 10.0  # weight of the nuclear norm in the penalised problem
    seeds: int = 5
    reference: int = 120  # iterations
    fista: int = 26
    most: int = 250  # iterations of the other methods


LEVELS = {
    "smoke": Sizes(Ratings(60, 80, 2600, 3), 8.0, 1, 20, 12, 8),
    "quick": Sizes(Ratings(300, 500, 20_000), seeds=3),
    "default": Sizes(),
    "full": Sizes(seeds=9),
}


def measure(level: str) -> Found:
    """Run all methods from all seeds; then report the seconds, and their share of those with dense SVDs."""
    sizes, found = LEVELS[level], dict[str, list[float | None]]()
    for method in METHODS.values():
        minimize(sizes.ratings.made(99).objective, NuclearBall(100.0), method, max_iter=2)  # compiled and warm
    for seed in range(sizes.seeds):
        problem = sizes.ratings.made(seed)
        *_, (X, s) = fista(problem, partial(by_gram, weight=sizes.weight), sizes.reference)
        C = NuclearBall(float(s.sum()), tol=1e-2)
        yield reference(problem, X, C.radius, seed)
        for name, points in contest(problem, C, sizes, seed):
            spent = for_good(list(watched(points, problem.rmse)), WITHIN * problem.rmse(X))
            found.setdefault(name, []).append(spent)
    yield from told(found, sizes.most)


def reference(problem: Any, X: np.ndarray, radius: float, seed: int) -> Measurement:
    """The distance of the reference from the minimum of f over the ball, as a gap."""
    value, g = problem.objective.value_and_grad(X)
    gap = (g.inner(X) - NuclearBall(radius).lmo(g).low) / value
    note = f"radius {radius:.0f}, error {problem.rmse(X):.4f}"
    return Measurement.of(PART, f"reference: seed {seed}", [gap], unit="relative gap", note=note)


def contest(problem: Any, C: NuclearBall, sizes: Sizes, seed: int) -> Iterator[tuple[str, Iterator[Any]]]:
    """The iterates of every method."""
    for name, threshold in FISTA.items():
        yield name, (X for X, _ in fista(problem, partial(threshold, weight=sizes.weight), sizes.fista))
    for name, method in METHODS.items():
        yield name, iterates(problem, C, method, sizes.most, seed)


def for_good(seen: Sequence[tuple[float, float]], target: float) -> float | None:
    """CPU seconds until the error stays below the target.

    Examples
    --------
    >>> seen = [(1.0, 0.5), (2.0, 0.9), (3.0, 0.6), (4.0, 0.4)]
    >>> for_good(seen, 0.7), for_good(seen, 1.0), for_good(seen, 0.1)
    (3.0, 1.0, None)
    """
    last = max((i for i, (_, error) in enumerate(seen) if error > target), default=-1)
    return seen[last + 1][0] if last + 1 < len(seen) else None


def told(found: dict[str, list[float | None]], most: int) -> Found:
    """Seconds, and their share of those with dense SVDs on the same problem."""
    slow = found[SLOW]
    for name, each in found.items():
        known = [(spent, base) for spent, base in zip(each, slow, strict=True) if spent is not None and base is not None]
        if len(known) < len(each):
            yield Skipped(PART, f"seconds: {name}", f"within {most} iterations on {len(known)} problems of {len(each)}")
            continue
        yield Measurement.of(PART, f"seconds: {name}", [spent for spent, _ in known], unit="CPU seconds")
        if name != SLOW:
            ratios = [spent / base for spent, base in known]
            yield Measurement.of(PART, f"ratio: {name}", ratios, unit=f"times the CPU time of {SLOW}")
