"""Corrective moves over the nuclear ball: new directions join the iterate, then f is minimised over its factors."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.gradients.base import Estimate, SomeGradient
from extremal.moves.base import FlatMove, MoveOracle, Point
from extremal.moves.low_rank.factors import EPS, Decomposition, FactorPoint, FactorProblem, descend_factors, product_like
from extremal.objectives.base import Objective
from extremal.points.low_rank import RankOne
from extremal.points.matrix import wide
from extremal.sets.base import ConvexSet
from extremal.sets.simplices import bounds
from extremal.sets.spectral.lanczos import ritz
from extremal.sets.spectral.nuclear import NuclearBall
from extremal.steps.base import Step
from extremal.support import linalg

TRIALS = 20  # largest number of trials for the constant of a core step; each is at least four times the last
PATIENCE = 8  # the limit of inner steps doubles when it is reached, up to this multiple of the first
LEAST_CURVATURE = 1e-3  # least constant, in units in which 1 makes a step of g as long as the radius
RITZ_NOISE = 1e-6  # Ritz values of g below this share of the largest, and columns below this share of their length, are rounding


@dataclass(frozen=True)
class LowRankPoint(Point):
    """A point with its singular value decomposition."""

    parts: Decomposition | None = None  # the decomposition; None before the first step
    value: float = math.nan  # f at x, before x was rounded to the run's float type
    curvature: float = 0.0  # the curvature of f along the last core step; 0 before the first
    patience: int = 1  # the next limit of inner steps, as a multiple of ``limit``


@dataclass(frozen=True)
class Frame:
    """Widened bases of the iterate's columns and rows, in which the iterate and the gradient are small matrices."""

    left: np.ndarray  # m x p, orthonormal; the iterate's own basis comes first
    right: np.ndarray  # n x q
    x: np.ndarray  # p x q: left' X right
    g: np.ndarray  # p x q: left' G right
    sigma: float  # approximately the largest singular value of G


@dataclass(frozen=True)
class FactorCorrective(FlatMove):
    """Corrective steps over a nuclear ball: the oracle adds directions, then f is minimised over the factors of x.

        x = U diag(s) V',   widen U and V by leading singular vectors of g, the oracle's first,
        S <- argmin over |S|_* <= radius of <U'gV, S> + L/2 |S - S_x|^2,   x <- U S V'
        x <- left right' that minimises f over |left|^2 + |right|^2 <= 2 radius, from there

    The second line is a proximal step on a matrix of about 100 x 100, with an L found by trial. It decreases f at least as much
    as a Frank-Wolfe step with this L, uses all new directions at once, and drops those that are not needed. The third line is a
    smooth problem of (m + n) r numbers, solved by L-BFGS. It is not convex, but its points are in the ball, and f does not rise,
    except by rounding.

    A step takes one LMO, and ``width`` products with g and with g' for the other directions. An inner value or gradient counts
    as n. Memory: some 20 (m + n) r numbers. The step rule is not used. With a stochastic estimator g chooses only the new
    directions; all else uses the full gradient, n more component gradients per step. Matrices that the objective and the set
    accept in factors (`Entries`) are never formed. The inner problem is solved in float64 for any type of the data.

    Parameters
    ----------
    width : int
        New directions per step.
    tol : float
        A step ends when the slope over the factors has fallen to this share of its first value, in (0, 1].
    limit : int
        Largest number of inner steps over the factors. It doubles after a step that reached it, up to eight times.

    References
    ----------
    Laue (2012), A hybrid algorithm for convex semidefinite optimization, ICML. Zhang, Yu, Schuurmans (2012), Accelerated
    training for matrix-norm regularization: a boosting approach, NIPS. Srebro, Rennie, Jaakkola (2005), Maximum-margin matrix
    factorization, NIPS.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.MultiTask(ex.Squared(), 3), np.eye(3), np.diag([3.0, 2.0, 0.1]))
    >>> r = ex.minimize(f, ex.NuclearBall(3.0), ex.Method(ex.gradients.Full(), ex.steps.FullStep(), FactorCorrective()), tol=1e-9)
    >>> abs(r.x).round(6)
    array([[2., 0., 0.],
           [0., 1., 0.],
           [0., 0., 0.]])
    """

    width: int = 60
    tol: float = 0.2
    limit: int = 15

    def __post_init__(self):
        checks.fix(
            self,
            width=checks.whole("FactorCorrective", "width", self.width, 1),
            tol=checks.within("FactorCorrective", "tol", self.tol, 0, 1),
            limit=checks.whole("FactorCorrective", "limit", self.limit, 0),
        )

    def check(self, gradient: SomeGradient, f: Objective, C: ConvexSet) -> None:
        super().check(gradient, f, C)
        if not isinstance(C, NuclearBall):
            raise InputError(f"FactorCorrective needs a NuclearBall, whose points have factors, got {C}")

    def start(self, x0: np.ndarray) -> LowRankPoint:
        return LowRankPoint(x0, x0)

    def advance(self, k: int, f: Objective, C: MoveOracle, point: LowRankPoint, estimate: Estimate, step: Step) -> LowRankPoint:
        """Add directions, take a core step, then inner steps over the factors."""
        radius = cast(NuclearBall, C).diameter / 2 * (1 - 4 * float(np.finfo(f.dtype).eps))  # a margin for rounding
        x = Decomposition.of(point.x).within(radius) if point.parts is None else point.parts
        s = cast(RankOne, C.lmo(estimate.g))
        exact = estimate.g if estimate.exact else f.grad(point.x)
        frame = _widened(x, estimate.g, exact, s, self.width, k)
        if not frame.g.any():
            return point  # a stationary point
        problem = FactorProblem(f, radius, wide(point.x))
        value = f.value(problem.like) if math.isnan(point.value) else point.value
        place, curvature, top = _core_step(problem, frame, x, value, point.curvature or frame.sigma / radius)
        limit = self.limit * point.patience
        place, ended = descend_factors(problem, place, 1.0 / (curvature * top + frame.sigma), self.tol, limit)
        patience = min(PATIENCE, 2 * point.patience) if ended else max(1, point.patience // 2)
        x = Decomposition.of_pair(*problem.split(place.pair)).within(radius)
        new = product_like(x.left * x.values, x.right, point.x)
        return LowRankPoint(new, new, parts=x, value=place.value, curvature=curvature, patience=patience)


def _widened(x: Decomposition, g: np.ndarray, exact: np.ndarray, s: RankOne, width: int, k: int) -> Frame:
    """Bases of x and the leading singular vectors of g orthogonal to them, with the exact gradient in these bases."""
    turned = g.shape[0] > g.shape[1]
    G, exact, U, V = (g.T, exact.T, x.right, x.left) if turned else (g, exact, x.left, x.right)
    first = (s.right, s.left) if turned else (s.left, s.right)
    size = math.sqrt(float(np.vdot(first[0], first[0]))) * math.sqrt(float(np.vdot(first[1], first[1])))
    sigma = abs(s.dot(g)) / size or 1.0  # roughly the largest singular value: squares of g / sigma neither overflow nor vanish

    def gram(W: np.ndarray) -> np.ndarray:
        return _apart(U, G @ _apart(V, np.asarray(G.T @ W, np.float64) / sigma)) / sigma

    start = _apart(U, np.random.default_rng(k).standard_normal((len(U), 1)))
    values, Q = ritz(gram, start, width)
    Q = Q[:, values > RITZ_NOISE**2 * max(float(values[0]), 0.0)][:, :width]
    left = np.hstack([U, _orthonormal(U, np.column_stack([first[0], Q]))])
    right = np.hstack([V, _orthonormal(V, np.column_stack([first[1], np.asarray(G.T @ Q, np.float64)]))])
    core, r = np.zeros((left.shape[1], right.shape[1])), len(x.values)
    core[range(r), range(r)] = x.values
    image = np.asarray(exact.T @ left, np.float64).T @ right
    return Frame(right, left, core.T, image.T, sigma) if turned else Frame(left, right, core, image, sigma)


def _apart(U: np.ndarray, W: np.ndarray) -> np.ndarray:
    """W minus its part in the span of U's orthonormal columns."""
    return W - U @ (U.T @ W)


def _orthonormal(U: np.ndarray, W: np.ndarray) -> np.ndarray:
    """An orthonormal basis of the part of W's columns outside the span of U, without columns that are only rounding."""
    W = W / np.maximum(np.linalg.norm(W, axis=0), np.finfo(np.float64).tiny)
    W = _apart(U, _apart(U, W))
    q, r = np.linalg.qr(W)
    q = q[:, np.abs(np.diag(r)) > RITZ_NOISE]
    return np.linalg.qr(_apart(U, q))[0]


def _core_step(
    problem: FactorProblem, frame: Frame, x: Decomposition, value: float, L: float
) -> tuple[FactorPoint, float, float]:
    """A proximal step inside the frame with at least L, such that f is not above its model; x if only rounding is left.

        f(X + D) <= f(X) + <G, D> + L/2 |D|^2

    It returns also the curvature of f along the step, and the largest singular value.
    """
    noise, first = float(np.finfo(problem.f.dtype).eps) * float(np.linalg.norm(frame.g)), L
    for _ in range(TRIALS):
        u, s, vt = linalg.svd(frame.x - frame.g / L, full_matrices=False)
        s = bounds.nearest(s, 0.0, problem.radius, problem.radius) if float(s.sum()) > problem.radius else s
        u, s, vt = u[:, s > 0], s[s > 0], vt[s > 0]
        D = (u * s) @ vt - frame.x
        length, slope = float(np.linalg.norm(D)), float(np.vdot(frame.g, D))
        if slope >= -EPS * abs(value) or length**2 == 0:
            break
        place = problem.at(problem.balanced(Decomposition(frame.left @ u, s, frame.right @ vt.T)))
        bend = 2 * (place.value - value - slope) / length**2
        if place.value <= value and (bend - L) * length**2 <= 2 * EPS * abs(value) + 2 * noise * length:
            return place, min(L, max(bend, L / 4, LEAST_CURVATURE * frame.sigma / problem.radius)), float(s[0])
        L = max(4 * L, bend) if math.isfinite(bend) else 16 * L
    return problem.at(problem.balanced(x)), first, float(x.values.max(initial=0.0))
