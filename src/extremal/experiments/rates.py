"""Exponents of the error in the number of component gradients, of LMO calls, and in n, against those of the theorems."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from extremal.experiments.sources import Source
from extremal.experiments.spec import batch_size
from extremal.experiments.tasks import Minimum, Run

WIDEST = 0.7  # an interval wider than this decides nothing
LOGISTIC, NONCONVEX = "logistic", "nonlinear-least-squares"


@dataclass(frozen=True)
class Point:
    """Runs at one place of a sweep."""

    x: float
    runs: tuple[Run, ...]
    minimum: Minimum

    @property
    def tasks(self) -> tuple[Any, ...]:
        """All of them."""
        return (*self.runs, self.minimum)


@dataclass(frozen=True)
class Fit:
    """A power law through the points: error ~ x^slope."""

    slope: float
    low: float  # 95 % interval of the slope
    high: float
    x: list[float]
    y: list[float]  # mean over the seeds
    least: list[float]  # smallest and largest of the seeds
    most: list[float]

    def reaches(self, claimed: float) -> bool:
        """Whether the interval is narrow enough to say something, and reaches the claimed exponent or one that is better."""
        return self.low <= claimed and self.high - self.low <= WIDEST


@dataclass(frozen=True)
class Sweep:
    """Runs over one quantity, everything else equal; what theory claims for the exponent of the error."""

    claim: str  # the same for the methods that it is about
    title: str
    method: str
    loss: str
    over: str  # "gradients" or "n"
    equal: str  # what is equal over n: "gradients" or "LMO calls"; for a sweep over gradients, n
    batch: str
    claimed: float
    says: str  # the claimed exponent as text
    size: float  # n for a sweep over gradients, else component gradients or LMO calls

    @property
    def set(self) -> str:
        """A radius at which the bound says something: L D^2 is not too large for the budget."""
        return "l1:20" if self.loss == LOGISTIC else "l1:5"

    @property
    def key(self) -> str:
        """Unique."""
        return f"{self.claim}, {self.method}"

    @property
    def quantity(self) -> str:
        """What falls."""
        return "f - f_min" if self.loss == LOGISTIC else "smallest gap"

    @property
    def x_label(self) -> str:
        """What it falls in."""
        return "component gradients" if self.over == "gradients" else "n"

    def fit(self, points: list[Point], results: dict[Any, dict[str, np.ndarray]]) -> Fit:
        """The power law through all runs, with the interval of the regression."""
        errors = [[self._error(results[run], results[point.minimum]) for run in point.runs] for point in points]
        x = np.repeat([point.x for point in points], [len(held) for held in errors])
        line = stats.linregress(np.log(x), np.log(np.concatenate(errors)))
        half = float(stats.t.ppf(0.975, len(x) - 2)) * line.stderr  # type: ignore[attr-defined]
        slope = float(line.slope)  # type: ignore[attr-defined]
        mean, least, most = ([float(what(held)) for held in errors] for what in (np.mean, np.min, np.max))
        return Fit(slope, slope - half, slope + half, [point.x for point in points], mean, least, most)

    def _error(self, run: dict[str, np.ndarray], minimum: dict[str, np.ndarray]) -> float:
        if self.loss == NONCONVEX:
            return float(np.nanmin(run["gap"]))  # over an even grid of the run: not below that over all iterates
        return max(float(run["value"][-1] - minimum["value"]), float(minimum["gap"]), 1e-15)


def points_of(sweep: Sweep, some: Callable[[int], Source], quick: bool) -> list[Point]:
    """The runs of a sweep on ``some(n)`` rows of the data; quick ones spend an eighth and have fewer points."""
    seeds, less, count = (2, 8, 4) if quick else (5, 1, 6)
    if sweep.over == "gradients":
        source, start = some(int(sweep.size)), 32 if quick else 64
        return [_point(sweep, source, start * 2.0**j, start * 2.0**j * source.n, seeds) for j in range(count)]
    sources = dict.fromkeys(some(250 * 2**j) for j in range(count))  # data with fewer rows have fewer points
    return [_point(sweep, source, _passes(sweep, source.n, sweep.size / less), source.n, seeds) for source in sources]


def _point(sweep: Sweep, source: Source, passes: float, x: float, seeds: int) -> Point:
    b = batch_size(sweep.batch, source.n)
    rows = 40 if sweep.loss == NONCONVEX else 1
    runs = (Run(source, sweep.loss, sweep.set, sweep.method, b, 1.0, seed, passes, rows) for seed in range(seeds))
    return Point(x, tuple(runs), Minimum(source, LOGISTIC, sweep.set))  # the non-convex errors need no minimum


def _passes(sweep: Sweep, n: int, size: float) -> float:
    """The budget in full gradients that is ``size`` component gradients, or pays for ``size`` LMO calls."""
    if sweep.equal == "gradients":
        return size / n
    b = batch_size(sweep.batch, n)
    each = 4 * b * n / (n + 2 * b) if sweep.method == "sarah-fw" else 2 * b  # p n + 2 b (1 - p), or 2 b
    return (n + size * each) / n


def _pair(*shared: Any, size: float, methods: tuple[str, ...] = ("sarah-fw", "saga-sarah-fw")) -> list[Sweep]:
    claim, title, loss, over, equal, batch, claimed, says = shared
    return [Sweep(claim, title, m, loss, over, equal, batch, claimed, says, size) for m in methods]


_THREE = ("sarah-fw", "saga-sarah-fw", "frank-wolfe")
SWEEPS = [
    *_pair("convex, eps", "convex, over eps", LOGISTIC, "gradients", "n", "1", -1.0, "-1", size=500),
    *_pair("convex, n", "convex, over n", LOGISTIC, "n", "gradients", "1", 0.5, "1/2", size=2**19, methods=_THREE),
    *_pair("convex, LMO", "convex, LMO calls", LOGISTIC, "n", "LMO calls", "sqrt", 0.0, "0", size=2**14),
    *_pair("non-convex, eps", "non-convex, over eps", NONCONVEX, "gradients", "n", "sqrt", -0.5, "-1/2", size=2000),
    *_pair("non-convex, n, b = sqrt n", "non-convex, over n", NONCONVEX, "n", "gradients", "sqrt", 0.25, "1/4", size=2**19),
    *_pair("non-convex, n, b = 1", "non-convex, over n", NONCONVEX, "n", "gradients", "1", 0.5, "1/2", size=2**18),
    *_pair("non-convex, LMO", "non-convex, LMO calls", NONCONVEX, "n", "LMO calls", "sqrt", 0.0, "0", size=2**14),
]
