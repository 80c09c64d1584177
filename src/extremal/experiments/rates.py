"""Exponents of the error in component gradients, in LMO calls and in n, against those of the theorems.

Each seed draws its own rows of the data and its own batches, and gives one exponent, by least squares on logarithms; the interval
is the t-interval of these exponents. A claimed exponent is an upper bound from worst-case theory: a smaller one is better.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from extremal.experiments.sources import Source, objective
from extremal.experiments.spec import batch_size
from extremal.experiments.tasks import Minimum, Run

LOGISTIC, NONCONVEX = "logistic", "nonlinear-least-squares"
SLACK = 0.1  # an exponent is as claimed if its interval ends at most this much above
SCALE = {LOGISTIC: 2500.0, NONCONVEX: 100.0}  # L D^2, so that the bounds say something at the budgets spent
FLOOR = 10.0  # errors below this multiple of the minimum's gap are left out
Some = Callable[[int, int], Source]  # (rows, draw): a random subset of the data


@dataclass(frozen=True)
class Point:
    """The run of a seed at one place of a sweep."""

    x: float
    seed: int
    run: Run
    minimum: Minimum | None  # of its rows; the gaps of non-convex f need none

    @property
    def tasks(self) -> tuple[Any, ...]:
        """All of them."""
        return (self.run,) if self.minimum is None else (self.run, self.minimum)


@dataclass(frozen=True)
class Fit:
    """A power law for each seed: error ~ x^slope."""

    slope: float  # mean over the seeds
    low: float  # 95 % interval
    high: float
    x: list[float]
    y: list[float]  # mean over the seeds
    least: list[float]  # smallest and largest of the seeds
    most: list[float]

    def verdict(self, claimed: float) -> bool | None:
        """Whether the exponent is as claimed or better; None if that is not decided, or not measured."""
        if not (math.isfinite(self.low) and math.isfinite(self.high)):
            return None
        return True if self.high <= claimed + SLACK else False if self.low > claimed else None


@dataclass(frozen=True)
class Sweep:
    """Runs over one quantity, everything else equal; what theory claims for the exponent of the error."""

    claim: str  # the same for the methods that it is about
    method: str
    loss: str
    over: str  # "gradients" or "n"
    equal: str  # what is equal over n: "gradients" or "LMO calls"; for a sweep over gradients, n
    batch: str
    claimed: float
    size: float  # n for a sweep over gradients, else component gradients or LMO calls

    @property
    def key(self) -> str:
        """Unique."""
        return f"{self.claim}, {self.method}"

    @property
    def quantity(self) -> str:
        """What falls. The proofs bound the average gap over the iterates, which is not below the smallest."""
        return "f - f_min" if self.loss == LOGISTIC else "average gap"

    @property
    def x_label(self) -> str:
        """What it falls in."""
        return "component gradients" if self.over == "gradients" else "n"

    def fit(self, points: list[Point], results: dict[Any, dict[str, np.ndarray]]) -> Fit:
        """An exponent for each seed, and their interval."""
        errors = [(point, self._error(point, results)) for point in points]
        by_seed: dict[int, list[tuple[float, float]]] = {}
        by_x: dict[float, list[float]] = {}
        for point, error in errors:
            if error > 0:
                by_seed.setdefault(point.seed, []).append((point.x, error))
                by_x.setdefault(point.x, []).append(error)
        slopes = [_slope(pairs) for pairs in by_seed.values()]
        mean, half = float(np.mean(slopes)) if slopes else math.nan, _half(slopes)
        sides = [[float(what(held)) for held in by_x.values()] for what in (np.mean, np.min, np.max)]
        return Fit(mean, mean - half, mean + half, list(by_x), *sides)

    def _error(self, point: Point, results: dict[Any, dict[str, np.ndarray]]) -> float:
        """0 where it is lost in the accuracy of the minimum."""
        run = results[point.run]
        if point.minimum is None:
            return float(np.nanmean(run["gap"][1:]))  # over an even grid of the run, the start left out
        least = results[point.minimum]
        error = float(run["value"][-1] - least["value"])
        return error if error > FLOOR * max(float(least["gap"]), 1e-15) else 0.0


def _slope(pairs: list[tuple[float, float]]) -> float:
    if len(pairs) < 3:
        return math.nan
    x, y = np.log(pairs).T
    return float(np.polyfit(x, y, 1)[0])


def _half(slopes: list[float]) -> float:
    """Half of the 95 % t-interval of a mean."""
    if len(slopes) < 2:
        return math.nan
    return float(stats.t.ppf(0.975, len(slopes) - 1)) * float(np.std(slopes, ddof=1)) / math.sqrt(len(slopes))


def points_of(sweep: Sweep, some: Some, quick: bool) -> list[Point]:
    """The runs of a sweep; quick ones spend an eighth and have fewer points and seeds."""
    seeds, less, count, start = (3, 8, 4, 32) if quick else (5, 1, 6, 64)
    made = []
    for seed in range(seeds):
        if sweep.over == "gradients":
            source = some(int(sweep.size), seed)
            made += [_point(sweep, source, seed, start * 2.0**j, start * 2.0**j * source.n, some) for j in range(count)]
        else:  # data with fewer rows have fewer points
            sources = dict.fromkeys(some(250 * 2**j, seed) for j in range(count))
            made += [_point(sweep, s, seed, _passes(sweep, s.n, sweep.size / less), s.n, some) for s in sources]
    return made


def radius(loss: str, source: Source) -> str:
    """The l1 ball with L D^2 as in ``SCALE``, its radius to two digits: theory's bounds are about L D^2."""
    return f"l1:{math.sqrt(SCALE[loss] / max(objective(source, loss).smoothness, 1e-300)) / 2:.2g}"


def _point(sweep: Sweep, source: Source, seed: int, passes: float, x: float, some: Some) -> Point:
    rows = 100 if sweep.loss == NONCONVEX else 1
    set_ = radius(sweep.loss, some(2000, 0))  # the same for all points
    run = Run(source, sweep.loss, set_, sweep.method, batch_size(sweep.batch, source.n), 1.0, seed, passes, rows)
    return Point(x, seed, run, Minimum(source, LOGISTIC, set_) if sweep.loss == LOGISTIC else None)


def _passes(sweep: Sweep, n: int, size: float) -> float:
    """The budget in full gradients that is ``size`` component gradients, or pays for ``size`` LMO calls."""
    if sweep.equal == "gradients":
        return size / n
    b = batch_size(sweep.batch, n)
    each = 4 * b * n / (n + 2 * b) if sweep.method == "sarah-fw" else 2 * b  # p n + 2 b (1 - p), or 2 b
    return (n + size * each) / n


_OURS = ("sarah-fw", "saga-sarah-fw")
_SHORT = ("sarah-fw:step=small-batch", "saga-sarah-fw:step=small-batch")
_CLAIMS = (  # claim, loss, over, equal, batch, claimed exponent, size, methods
    ("convex, eps", LOGISTIC, "gradients", "n", "1", -1.0, 500, _OURS),
    ("convex, n", LOGISTIC, "n", "gradients", "1", 0.5, 2**19, (*_OURS, "frank-wolfe")),
    ("convex, LMO calls", LOGISTIC, "n", "LMO calls", "sqrt", 0.0, 2**14, _OURS),
    ("non-convex, eps", NONCONVEX, "gradients", "n", "sqrt", -0.5, 2000, _OURS),
    ("non-convex, n, b = sqrt n", NONCONVEX, "n", "gradients", "sqrt", 0.25, 2**19, _OURS),
    ("non-convex, n, b = 1", NONCONVEX, "n", "gradients", "1", 0.5, 2**18, _OURS),
    ("non-convex, n, b = 1, shorter step", NONCONVEX, "n", "gradients", "1", 0.25, 2**18, _SHORT),
    ("non-convex, LMO calls", NONCONVEX, "n", "LMO calls", "sqrt", 0.0, 2**14, _OURS),
)
SWEEPS = [Sweep(claim, method, *held) for claim, *held, methods in _CLAIMS for method in methods]  # type: ignore[misc]
