"""Logistic regression over a family of l1 balls: the problems of all classes, their radii, their certified solutions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.losses.margin import Logistic
from extremal.objectives.intercept import InterceptModel
from extremal.objectives.linear import LinearModel
from extremal.points.iterates import wide
from extremal.rounding.exact import settle
from extremal.run.front import minimize
from extremal.run.paths import path
from extremal.run.result import Result
from extremal.sets.norms.balls import L1Ball
from extremal.sklearn.certified import ended, gap_bound
from extremal.sklearn.hints import FeatureMatrix

RADIUS_DOUBLINGS = 40  # of the radius, at most, in the search for the largest one
SPAN = 200.0  # the largest radius of a grid, over the smallest
RUN_UP = 1.25  # times the largest radius: where a path begins, so that all its points have come from solutions nearby
NO_GAP = 1e-4  # share of the tolerance, relative to the loss without features, below which a gap is nothing
RADIUS_HALVINGS = 4  # of the last interval of that search
SINGLE = 1e-5  # the least relative gap that float32 rows allow


@dataclass(frozen=True)
class PathOptions:
    """What all the runs share."""

    fit_intercept: bool
    tol: float
    max_iter: int
    seed: int


@dataclass(frozen=True)
class Problem:
    """A weighted logistic problem: one class against the rest."""

    f: LinearModel
    constant: float | None  # the intercept of rows that are all of one kind, for which there is no best one


@dataclass(frozen=True)
class BallPath:
    """Solutions over m balls of a problem with K rows of coefficients (one for two classes), and what they cost."""

    coefs: np.ndarray  # (m, K, d)
    intercepts: np.ndarray  # (m, K)
    objectives: np.ndarray  # (m, K), f
    gaps: np.ndarray  # (m, K), certified
    converged: bool  # whether all gaps are within the tolerance
    status: str  # "tol", or what ended the first run that was not
    n_iter: int  # iterations of all runs
    n_grads: int  # component gradients of all runs


def problems(X: FeatureMatrix, codes: np.ndarray, classes: int, weights: np.ndarray | None, fit_intercept: bool) -> list[Problem]:
    """The problem of two classes, or one for each class against the rest; rows of weight 0 are left out by the caller."""
    total = len(codes) if weights is None else float(weights.sum())
    return [_problem(X, np.where(codes == k, 1.0, -1.0), weights, fit_intercept, total) for k in positives(classes)]


def _problem(X: FeatureMatrix, y: np.ndarray, weights: np.ndarray | None, fit_intercept: bool, total: float) -> Problem:
    """Rows of one kind, as there may be in a fold, have half a row of the other kind assumed beside them."""
    alone = fit_intercept and abs(y.sum()) == len(y)
    kind = InterceptModel if fit_intercept else LinearModel
    return Problem(kind(Logistic(), X, y, weights), y[0] * math.log(2 * total + 1) if alone else None)


def positives(classes: int) -> Sequence[int]:
    """The classes that have coefficients of their own."""
    return (1,) if classes == 2 else range(classes)


def largest_radius(f: LinearModel, eps: float, tol: float) -> float:
    """The radius at which more radius is worth eps of what it is worth at 0: where |grad f(x_r)|_inf = eps |grad f(0)|_inf.

    The derivative of the least value over the ball of radius r is -|grad f(x_r)|_inf. Balls are doubled until it is small
    enough, and then halved in between. Finite for separable data as well. 1 if no feature is of use.
    """
    value, g = f.value_and_grad(np.zeros(f.shape))
    first = float(np.abs(g).max())
    if first == 0:
        return 1.0
    target, low = eps * first, BallLook(0.0, first, np.zeros(f.shape, f.dtype))
    high = solution_at(f, value / first, low, tol)  # no smaller ball can have a value of 0
    for _ in range(RADIUS_DOUBLINGS):
        if high.slope <= target:
            break
        low, high = high, solution_at(f, 2 * high.norm, high, tol)
    for _ in range(RADIUS_HALVINGS):
        middle = solution_at(f, (low.norm + high.norm) / 2, low, tol)
        low, high = (low, middle) if middle.slope <= target else (middle, high)
    share = (low.slope - target) / (low.slope - high.slope) if low.slope > high.slope else 1.0
    return low.norm + min(1.0, share) * (high.norm - low.norm)


@dataclass(frozen=True)
class BallLook:
    """The solution over a ball: its norm, and what more radius is worth."""

    norm: float
    slope: float
    x: np.ndarray


def solution_at(f: LinearModel, radius: float, near: BallLook, tol: float) -> BallLook:
    """Solve over a ball, from a solution over a smaller one."""
    x = minimize(f, L1Ball(radius), x0=near.x, tol=allowed(f, tol)).x
    return BallLook(min(radius, float(np.abs(x).sum(dtype=np.float64))), float(np.abs(f.grad(wide(x))).max()), x)


def grid(ps: Sequence[Problem], n_radii: int, eps: float, tol: float) -> np.ndarray:
    """Radii from R / SPAN to R in equal ratios, R the largest that a class has use for, to three digits."""
    top = max((largest_radius(p.f, eps, tol) for p in ps if p.constant is None), default=1.0)
    top = float(f"{top:.2e}")
    return np.geomspace(top / SPAN, top, n_radii) if n_radii > 1 else np.array([top])


def allowed(f: LinearModel, tol: float) -> float:
    """The relative gap that can be asked for."""
    return max(tol, SINGLE) if f.data.dtype == np.float32 else tol


def read_radii(call: str, radii: object) -> np.ndarray:
    """Given radii in increasing order, each once."""
    found = np.unique(checks.finite(call, "radii", checks.array(call, "radii", radii).astype(float).reshape(-1)))
    if not found.size or found[0] <= 0:
        raise InputError(f"`{call}(radii=...)` must hold positive numbers, got {radii!r}")
    return found


def solve_ball(ps: Sequence[Problem], radii: np.ndarray, options: PathOptions) -> BallPath:
    """The path of each class, every point certified where it lies exactly in its ball."""
    runs = [_solve_one(p.f, p.constant, radii, options) for p in ps]
    ends = [status for run in runs for status in run[4]]
    return BallPath(
        *(np.stack([run[i] for run in runs], axis=1) for i in range(4)),
        converged=all(end == "tol" for end in ends),
        status=next((end for end in ends if end != "tol"), "tol"),
        n_iter=sum(run[5] for run in runs),
        n_grads=sum(run[6] for run in runs),
    )


def _solve_one(f: LinearModel, constant: float | None, radii: np.ndarray, options: PathOptions) -> tuple[Any, ...]:
    """Coefficients, intercepts, values, gaps and ends of one problem, and what they cost."""
    if constant is not None:
        m = len(radii)
        return np.zeros((m, *f.shape), f.data.dtype), np.full(m, constant), np.zeros(m), np.zeros(m), ["tol"] * m, 0, 0
    balls = [L1Ball(radius) for radius in radii]
    tol, above = allowed(f, options.tol), L1Ball(RUN_UP * radii[-1])
    atol = NO_GAP * tol * f.value(np.zeros(f.shape))
    results = path(f, [*balls, above], seed=options.seed, tol=tol, atol=atol, max_iter=options.max_iter)
    points = [certified(f, C, result) for C, result in zip(balls, results, strict=False)]
    xs, values, gaps = (np.array([point[i] for point in points]) for i in range(3))
    b = np.array([f.intercept(x) if isinstance(f, InterceptModel) else 0.0 for x in xs])
    ends = [ended(gap, value, tol, atol, result.status) for gap, value, result in zip(gaps, values, results, strict=False)]
    cost = sum(result.calls.total_grads for result in results) + len(balls) * f.n
    return xs, b, values, gaps, ends, sum(result.n_iter for result in results), cost


def averaged(ps: Sequence[Problem], radii: np.ndarray, paths: Sequence[BallPath]) -> BallPath:
    """The means of the coefficients of some paths, which are in the balls too, with their best intercepts and their gaps."""
    coefs = np.mean([path.coefs for path in paths], axis=0).astype(paths[0].coefs.dtype)
    b, values, gaps = (np.zeros(coefs.shape[:2]) for _ in range(3))
    for i, radius in enumerate(radii):
        C = L1Ball(radius)
        for k, p in enumerate(ps):
            coefs[i, k] = settle(C.on(p.f.shape), coefs[i, k])
            values[i, k], gaps[i, k] = measured(p.f, C, coefs[i, k])
            b[i, k] = p.f.intercept(coefs[i, k]) if isinstance(p.f, InterceptModel) else 0.0
    return BallPath(coefs, b, values, gaps, True, "tol", 0, len(radii) * sum(p.f.n for p in ps))


def certified(f: LinearModel, C: L1Ball, result: Result) -> tuple[np.ndarray, float, float]:
    """The point moved by rounding so that it is exactly in the ball, its value and its gap."""
    x = settle(C.on(f.shape), np.asarray(result.x, f.data.dtype))
    return x, *measured(f, C, x)


def measured(f: LinearModel, C: L1Ball, x: np.ndarray) -> tuple[float, float]:
    """f(x), and the gap."""
    value, g = f.value_and_grad(wide(x))
    return value, gap_bound(C, wide(x), g, value, f.loss)
