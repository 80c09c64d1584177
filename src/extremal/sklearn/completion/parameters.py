"""Parameters of a completion: what is refused, what there is with them, and a radius chosen by entries that are held back."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.objectives.completion import MatrixCompletion
from extremal.run.front import minimize
from extremal.sets.spectral.nuclear import NuclearBall
from extremal.sklearn.completion.filling import mean_square
from extremal.sklearn.options import is_fitted

if TYPE_CHECKING:
    from extremal.sklearn.completion.estimator import LowRankCompletion

INPUTS = ("auto", "matrix", "pairs")
COMPLETION_LOSSES = ("squared", "huber")
FIRST_SHARE, FACTOR, WORSE = 1 / 256, 1.5, 2  # radii to try: from this share of the largest, times this, until so often worse
HELD_BACK, FEWEST = 0.1, 20  # share of the entries that choose a radius, and how many entries there have to be for that
ROUGH_TOL, RADIUS_TRIES = 1e-2, 30  # relative accuracy of these, and iterations
MET = 1e-6  # share of the mean square of the values, below which f has met them
DEFAULT = 0.25  # share of the largest radius where there are fewer entries


def on_pairs(self: LowRankCompletion) -> bool:
    """Whether there are pairs to predict at; not after a fit on a matrix."""
    if (self.input_ if is_fitted(self, "input_") else self.input) == "matrix":
        raise AttributeError(
            "predict and score take (row, col) pairs, and are there after a fit on pairs; use reconstruct(rows, cols)"
        )
    return True


def check_parameters(self: LowRankCompletion) -> None:
    """Refuse parameters that are none."""
    name = type(self).__name__
    checks.one_of(f"{name}(input=...)", self.input, INPUTS)
    checks.one_of(f"{name}(loss=...)", self.loss, COMPLETION_LOSSES)
    if self.offsets not in ("rows+cols", "mean", None):
        raise InputError(f"`{name}(offsets=...)` must be 'rows+cols', 'mean' or None, got {self.offsets!r}")
    checks.positive(name, "delta", self.delta)
    checks.flag(name, "clip", self.clip)
    if self.radius is not None:
        checks.positive(name, "radius", self.radius)
    if self.rank is not None:
        checks.whole(name, "rank", self.rank, 1)


def chosen_radius(problem: MatrixCompletion, values: np.ndarray, less: Callable[..., MatrixCompletion]) -> float:
    """The one with the smallest error on entries that are held back; ``less`` is the problem with a share of them held back."""
    largest = problem.largest_radius
    if not largest > 1e-12 * float(np.linalg.norm(values.astype(np.float64))):
        return 1.0  # the offsets say all there is
    if len(values) < FEWEST:
        return DEFAULT * largest
    part = less(validation=HELD_BACK)
    radius, x, tried, worse = FIRST_SHARE * largest, None, {}, 0
    while radius <= largest and worse < WORSE:
        x, error = _held_back_error(part, radius, x)
        if tried and error is None:
            break
        worse = worse + 1 if tried and (error or 0.0) >= min(tried.values()) else 0
        tried[radius], radius = error or 0.0, FACTOR * radius
    best = min(tried, key=tried.__getitem__)
    for near in (best / math.sqrt(FACTOR), best * math.sqrt(FACTOR)):
        error = _held_back_error(part, near, None)[1]
        tried |= {} if error is None else {near: error}
    return min(tried, key=tried.__getitem__)


def _held_back_error(part: MatrixCompletion, radius: float, start: np.ndarray | None) -> tuple[np.ndarray, float | None]:
    """A rough fit, and its error on what is held back; None if it meets all entries, which many matrices may do."""
    scale = mean_square(part)
    r = minimize(part.objective, NuclearBall(radius), x0=start, tol=ROUGH_TOL, atol=MET * scale, max_iter=RADIUS_TRIES)
    return r.x, part.rmse(r.x) if r.value > MET * scale else None
