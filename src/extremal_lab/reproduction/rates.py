"""Measured complexities: the growth of the calls for an accuracy eps with n and with 1/eps, against the theorems.

Runs over a grid of n and of budgets N, each with its own horizon, give the error. Each seed draws its own rows of the data and
its own batches. For each seed a plane is fitted by least squares,

    log error = a + alpha log n + beta log N,     so that     N ~ n^(-alpha / beta) eps^(1 / beta)

and the intervals are t-intervals over the seeds. N counts component gradients or LMO calls. A claimed exponent is an upper bound
from worst-case theory: a smaller exponent is better.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from extremal_lab.reproduction.sources import Source, objective
from extremal_lab.reproduction.spec import batch_size
from extremal_lab.reproduction.tasks import Minimum, Run

LOGISTIC, NONCONVEX = "logistic", "nonlinear-least-squares"
SLACK = 0.1  # an exponent may exceed the claimed one by this: runs are finite, and bounds have lower terms
FLOOR = 10.0  # errors below this multiple of the minimum's gap do not count
PASSES = 64  # fewest passes of a run: below, the terms n log(1/eps) and n dominate
Some = Callable[[int, int], Source]  # (rows, draw): a random subset of the data


@dataclass(frozen=True)
class Exponent:
    """The exponent of n or of 1/eps in the number of calls for an accuracy eps."""

    mean: float  # over the seeds
    low: float  # 95 % interval
    high: float
    claimed: float

    @property
    def holds(self) -> bool | None:
        """Whether the exponent is as claimed or better; None if that is undecided."""
        if not (math.isfinite(self.low) and math.isfinite(self.high)):
            return None
        most = self.claimed + SLACK
        return True if self.high <= most else False if self.low > most else None

    def __str__(self) -> str:
        return f"{self.mean:.2f} ({self.low:.2f} to {self.high:.2f})"


@dataclass(frozen=True)
class Fit:
    """The exponents of a claim for a method, and the mean errors behind them."""

    n: Exponent
    eps: Exponent
    errors: dict[tuple[int, float], float]  # (n, calls): mean over the seeds


@dataclass(frozen=True)
class Grid:
    """Runs of methods at one batch size, over n and over budgets of component gradients."""

    loss: str
    batch: str
    methods: tuple[str, ...]
    scale: float  # L D^2: small enough for the bounds to be informative at these budgets
    sizes: tuple[int, ...]  # n
    budgets: tuple[int, ...]  # component gradients

    def runs(self, method: str, some: Some, quick: bool) -> dict[int, list[Run]]:
        """The runs of each seed; quick runs spend half, on fewer sizes, from fewer seeds."""
        seeds, less, sizes = (3, 2, self.sizes[:3]) if quick else (5, 1, self.sizes)
        set_ = self.set(some)
        made = {}
        for seed in range(seeds):
            sources = dict.fromkeys(some(n, seed) for n in sizes)  # data with fewer rows have fewer sizes
            made[seed] = [
                Run(s, self.loss, set_, method, batch_size(self.batch, s.n), 1.0, seed, G / less / s.n, self._rows)
                for s in sources
                for G in self.budgets
                if G >= less * PASSES * s.n
            ]
        return made

    def set(self, some: Some) -> str:
        """The set, the same for all runs."""
        return radius(self.loss, self.scale, some(2000, 0))

    def tasks(self, some: Some, quick: bool) -> list[Any]:
        """All runs, and the minima of their rows if errors need them."""
        runs = [run for method in self.methods for held in self.runs(method, some, quick).values() for run in held]
        return [*runs, *(minimum_of(run) for run in runs if self.loss == LOGISTIC)]

    @property
    def _rows(self) -> int:
        return 100 if self.loss == NONCONVEX else 1


@dataclass(frozen=True)
class Rate:
    """A claim: the number of calls is n^claimed_n / eps^claimed_eps, up to constants."""

    text: str
    grid: str  # the name of its runs
    count: str  # "gradients" or "LMO calls"
    claimed_n: float
    claimed_eps: float

    def fit(self, method: str, some: Some, quick: bool, results: dict[Any, dict[str, np.ndarray]]) -> Fit:
        """A plane for each seed, and the intervals of their exponents."""
        grid = GRIDS[self.grid]
        planes, errors = [], {}
        for runs in grid.runs(method, some, quick).values():
            points = [(run.source.n, self._calls(run, results[run]), error_of(run, results)) for run in runs]
            planes.append(_exponents([point for point in points if point[2] > 0]))
            for run, (n, _, error) in zip(runs, points, strict=True):
                errors.setdefault((n, round((run.passes or 0.0) * n)), []).append(error)
        n, eps = np.array(planes).T
        means = {key: float(np.mean(held)) for key, held in errors.items()}
        return Fit(_exponent(n, self.claimed_n), _exponent(eps, self.claimed_eps), means)

    def _calls(self, run: Run, made: dict[str, np.ndarray]) -> float:
        return float(made["passes"][-1]) * run.source.n if self.count == "gradients" else float(made["lmos"][-1])


def minimum_of(run: Run) -> Minimum:
    """The minimum that belongs to a run."""
    return Minimum(run.source, run.loss, run.set)


def error_of(run: Run, results: dict[Any, dict[str, np.ndarray]]) -> float:
    """f - f_min at the end, 0 if it is below the accuracy of f_min; for non-convex f the average gap.

    The proofs bound the average gap over the iterates, which is not below the smallest gap. Here it is the average over an even
    grid of the run, without the start.
    """
    made = results[run]
    if run.loss == NONCONVEX:
        return float(np.nanmean(made["gap"][1:]))
    least = results[minimum_of(run)]
    error = float(made["value"][-1] - least["value"])
    return error if error > FLOOR * max(float(least["gap"]), 1e-15) else 0.0


def _exponents(points: list[tuple[int, float, float]]) -> tuple[float, float]:
    """The exponents of n and of 1/eps, by least squares on logarithms; NaN if the points do not determine a plane."""
    if len(points) < 4 or len({n for n, _, _ in points}) < 2:
        return math.nan, math.nan
    n, calls, error = np.log(np.array(points, dtype=np.float64)).T
    (_, alpha, beta), _, rank, _ = np.linalg.lstsq(np.stack([np.ones_like(n), n, calls], axis=1), error, rcond=None)
    return (-alpha / beta, -1 / beta) if rank == 3 and beta < 0 else (math.nan, math.nan)


def _exponent(found: np.ndarray, claimed: float) -> Exponent:
    """Mean and 95 % t-interval over the seeds."""
    if len(found) < 2 or not np.isfinite(found).all():
        return Exponent(math.nan, math.nan, math.nan, claimed)
    half = float(stats.t.ppf(0.975, len(found) - 1)) * float(np.std(found, ddof=1)) / math.sqrt(len(found))
    return Exponent(float(found.mean()), float(found.mean()) - half, float(found.mean()) + half, claimed)


def radius(loss: str, scale: float, source: Source) -> str:
    """The l1 ball with L D^2 = scale, its radius to two digits: the bounds of theory depend on L D^2."""
    return f"l1:{math.sqrt(scale / max(objective(source, loss).smoothness, 1e-300)) / 2:.2g}"


_OURS = ("sarah-fw", "saga-sarah-fw")
_SHORT = ("sarah-fw:step=small-batch", "saga-sarah-fw:step=small-batch")
_SMALL, _LARGE = (250, 500, 1000, 2000), (250, 500, 1000, 2000, 4000)
GRIDS = {
    "convex, b = 1": Grid(LOGISTIC, "1", (*_OURS, "frank-wolfe"), 2500.0, _SMALL, (2**15, 2**16, 2**17, 2**18)),
    "convex, b = sqrt n": Grid(LOGISTIC, "sqrt", _OURS, 2500.0, _LARGE, (2**17, 2**18, 2**19, 2**20)),
    "non-convex, b = sqrt n": Grid(NONCONVEX, "sqrt", _OURS, 100.0, _LARGE, (2**17, 2**18, 2**19, 2**20)),
    "non-convex, b = 1": Grid(NONCONVEX, "1", _OURS, 10.0, _SMALL, (2**15, 2**16, 2**17)),
    "non-convex, b = 1, shorter step": Grid(NONCONVEX, "1", _SHORT, 10.0, _SMALL, (2**15, 2**16, 2**17)),
}
RATES = (
    Rate("sqrt(n)/eps component gradients", "convex, b = 1", "gradients", 0.5, 1.0),
    Rate("sqrt(n)/eps LMO calls", "convex, b = 1", "LMO calls", 0.5, 1.0),
    Rate("sqrt(n)/eps component gradients", "convex, b = sqrt n", "gradients", 0.5, 1.0),
    Rate("1/eps LMO calls", "convex, b = sqrt n", "LMO calls", 0.0, 1.0),
    Rate("sqrt(n)/eps^2 component gradients", "non-convex, b = sqrt n", "gradients", 0.5, 2.0),
    Rate("1/eps^2 LMO calls", "non-convex, b = sqrt n", "LMO calls", 0.0, 2.0),
    Rate("n/eps^2 component gradients", "non-convex, b = 1", "gradients", 1.0, 2.0),
    Rate("n/eps^2 LMO calls", "non-convex, b = 1", "LMO calls", 1.0, 2.0),
    Rate("sqrt(n)/eps^2 component gradients", "non-convex, b = 1, shorter step", "gradients", 0.5, 2.0),
)
