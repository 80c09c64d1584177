"""Logistic regression over a family of l1 balls: the radii, and certified solutions for all classes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from extremal.objectives.margins import MarginModel
from extremal.points.matrix import wide
from extremal.run.front import minimize, path
from extremal.sets.norms.balls import L1Ball
from extremal.sklearn.answer import Answer, answer_at, worst_status
from extremal.sklearn.options import Options

RADIUS_DOUBLINGS = 40  # maximum number of doublings in the search for the largest radius
SPAN = 200.0  # ratio of the largest to the smallest radius of a grid
RUN_UP = 1.25  # a path starts at this multiple of the largest radius, so that solutions nearby lead to all its points
NO_GAP = 1e-4  # a gap is negligible below this share of tol times the loss without features
RADIUS_HALVINGS = 4  # number of bisections of the last interval of that search
SINGLE = 1e-5  # the smallest relative gap that float32 rows allow


@dataclass(frozen=True)
class Problem:
    """A weighted logistic problem: one class against the rest."""

    f: MarginModel
    constant: float | None  # the intercept if all rows are of one class, because no best one exists


@dataclass(frozen=True)
class BallPath:
    """Solutions over m balls for K rows of coefficients (K = 1 for two classes), and their cost."""

    coefs: np.ndarray  # (m, K, d)
    intercepts: np.ndarray  # (m, K)
    objectives: np.ndarray  # (m, K), f
    gaps: np.ndarray  # (m, K), certified
    status: str  # "tol", or the reason why the first other run ended
    n_iter: int  # iterations of all runs
    n_grads: int  # component gradients of all runs

    @classmethod
    def of(cls, classes: Sequence[Sequence[Answer]]) -> BallPath:
        """Collect the answers of each class, one for every ball."""
        every, balls = [a for answers in classes for a in answers], list(zip(*classes, strict=True))
        return cls(
            np.array([[a.x for a in ball] for ball in balls]),
            np.array([[a.intercept for a in ball] for ball in balls]),
            np.array([[a.value for a in ball] for ball in balls]),
            np.array([[a.gap for a in ball] for ball in balls]),
            status=worst_status([a.status for a in every]),
            n_iter=sum(a.n_iter for a in every),
            n_grads=sum(a.n_grads for a in every),
        )

    def worst_gap(self, radii: np.ndarray) -> str:
        """The largest relative gap, in words."""
        gaps = (self.gaps / np.maximum(self.objectives, 1e-300)).max(axis=1)
        i = int(gaps.argmax())
        return f"a certified gap of {gaps[i]:.2g} of the objective at radius {radii[i]:.4g}"


def largest_radius(f: MarginModel, eps: float, tol: float) -> float:
    """The radius r at which |grad f(x_r)|_inf = eps |grad f(0)|_inf: a larger radius hardly lowers f.

    The derivative of the minimum over the ball of radius r is -|grad f(x_r)|_inf. Radii are doubled until this derivative is
    small enough, then bisected. The result is finite for separable data, too. It is 1 if no feature helps.
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
    """The solution over a ball: its norm, and the decrease of f per unit of radius."""

    norm: float
    slope: float
    x: np.ndarray


def solution_at(f: MarginModel, radius: float, near: BallLook, tol: float) -> BallLook:
    """Solve over a ball, starting from a solution over a smaller one."""
    x = minimize(f, L1Ball(radius), x0=near.x, tol=allowed(f, tol)).x
    return BallLook(min(radius, float(np.abs(x).sum(dtype=np.float64))), float(np.abs(f.grad(wide(x))).max()), x)


def grid(ps: Sequence[Problem], n_radii: int, eps: float, tol: float) -> np.ndarray:
    """Radii from R / SPAN to R in equal ratios. R is the largest radius that helps any class, to three digits."""
    top = max((largest_radius(p.f, eps, tol) for p in ps if p.constant is None), default=1.0)
    top = float(f"{top:.2e}")
    return np.geomspace(top / SPAN, top, n_radii) if n_radii > 1 else np.array([top])


def allowed(f: MarginModel, tol: float) -> float:
    """The smallest relative gap that can be requested."""
    return max(tol, SINGLE) if f.data.dtype == np.float32 else tol


def solve_ball(ps: Sequence[Problem], radii: np.ndarray, options: Options) -> BallPath:
    """The path of each class; every point lies exactly in its ball and is certified there."""
    return BallPath.of([_constant(p, radii) if p.constant is not None else _solve_one(p.f, radii, options) for p in ps])


def _constant(p: Problem, radii: np.ndarray) -> list[Answer]:
    """Zero coefficients, for rows that are all of one class."""
    x, b = np.zeros(p.f.shape, p.f.data.dtype), p.constant or 0.0
    return [Answer(x, 0.0, 0.0, L1Ball(radius), 0.0, "tol", 0, 0, p.f.n, "no run", intercept=b) for radius in radii]


def _solve_one(f: MarginModel, radii: np.ndarray, options: Options) -> list[Answer]:
    """The answers of one problem. The answer of the largest ball includes the cost of the run-up."""
    balls = [L1Ball(radius).on(f.shape) for radius in radii]
    tol, above = allowed(f, options.tol), L1Ball(RUN_UP * radii[-1])
    atol = NO_GAP * tol * f.value(np.zeros(f.shape))
    *results, up = path(f, [*balls, above], seed=options.seed, tol=tol, atol=atol, max_iter=options.max_iter)
    *others, last = (answer_at(f, C, r.x, tol, atol, r) for C, r in zip(balls, results, strict=True))
    return [*others, replace(last, n_iter=last.n_iter + up.n_iter, n_grads=last.n_grads + up.calls.total_grads)]


def averaged(ps: Sequence[Problem], radii: np.ndarray, paths: Sequence[BallPath]) -> BallPath:
    """Average the coefficients of some paths, which stay in the balls; recompute the best intercepts and the gaps."""
    coefs = np.mean([path.coefs for path in paths], axis=0).astype(paths[0].coefs.dtype)
    balls = [L1Ball(radius).on(ps[0].f.shape) for radius in radii]
    return BallPath.of(
        [[answer_at(p.f, C, x, 0.0, math.inf) for C, x in zip(balls, coefs[:, k], strict=True)] for k, p in enumerate(ps)]
    )
