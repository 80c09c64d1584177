"""Sliding moves: linear minimisations alone solve a proximal step for each gradient."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from extremal import checks
from extremal.checks import UnsolvedError
from extremal.gradients.base import Estimate, Phase, Steps, phase_of
from extremal.laws import EpochTolerance, PowerLaw, Telescoping
from extremal.moves.base import FlatMove, MoveOracle, Point
from extremal.moves.sliding.prox import Solver
from extremal.objectives.base import Objective
from extremal.points.iterates import blend, distance2, inner, toward
from extremal.points.vertex import DenseVertex
from extremal.steps.base import Direction, Step, take

PLAIN_LMOS = 100  # largest number of LMOs of one sub-problem by CndG
Law = float | PowerLaw | Telescoping | EpochTolerance


@dataclass(frozen=True)
class ProxPoint(Point):
    """A point with the second sequence of accelerated sliding."""

    prox: np.ndarray = field(default_factory=lambda: np.empty(0))  # the centre of the proximal steps


def proximal(C: MoveOracle, g: np.ndarray, centre: np.ndarray, beta: float, tol: float, limit: int) -> tuple[np.ndarray, Steps]:
    """Minimise <g, u> + beta/2 |u - centre|^2 over the set to a gap of ``tol``, by at most ``limit`` LMOs.

    CndG starts. If it has not solved the problem after some LMOs, the best weights of all vertices do, with far fewer LMOs.
    """
    u, path = centre, []
    for _ in range(min(limit, PLAIN_LMOS)):
        slope = g + beta * (u - centre) if path else g
        v = C.lmo(slope)
        gap = inner(u, slope) - v.dot(slope)
        if gap <= tol:
            break
        bend = beta * distance2(u, v)
        alpha = min(1.0, gap / bend) if bend > 0 else 1.0  # exact line search on the quadratic
        u = toward(u, v, alpha)
        path.append((alpha, v))
    else:
        if limit <= PLAIN_LMOS:
            raise UnsolvedError(f"a proximal sub-problem took {limit} LMOs without reaching its tolerance {tol:.1e}")
        return Solver(0.0, None, limit - PLAIN_LMOS, tol)(C, g, centre, None, beta)[0], ()
    return u, tuple(path)


def at(law: Law, k: int, phase: Phase | None) -> float:
    """The value of the law at k, or at the phase for laws of the phase."""
    if isinstance(law, EpochTolerance):
        return law(phase or Phase(0, k, k + 1))
    return law if isinstance(law, (int, float)) else law(k)


@dataclass(frozen=True)
class Sliding(FlatMove):
    """A proximal step from x, without extrapolation.

        u = argmin over the set of <g, u> + beta/2 |u - x|^2  (to a gap of tol),   x <- x + eta (u - x)

    A step takes the LMOs of the sub-problem, at most 1 + 6 beta D^2 / tol. A sub-problem that takes more than 100 continues with
    the best weights of all vertices, which reach the accuracy of rounding.

    Parameters
    ----------
    beta : float or PowerLaw
        Weight of the proximal term, of the order of L.
    tol : float or PowerLaw
        Gap to which the sub-problem is solved.
    limit : int
        Largest number of LMOs of one sub-problem; a sub-problem that takes more ends the run, with the status ``unsolved``.

    References
    ----------
    Lan, Zhou (2016), Conditional gradient sliding for convex optimization; Qu, Li, Xu (2018), arXiv:1708.04783.

    Examples
    --------
    >>> Sliding(beta=3.0, tol=0.01)
    Sliding(beta=3.0, tol=0.01, limit=2000)
    """

    beta: Law
    tol: Law
    limit: int = 2000

    def __post_init__(self):
        _check("Sliding", self)

    def advance(self, k: int, f: Objective, C: MoveOracle, point: Point, estimate: Estimate, step: Step) -> Point:
        """One proximal step."""
        phase = phase_of(estimate)
        u, path = proximal(C, estimate.g, point.x, at(self.beta, k, phase), at(self.tol, k, phase), self.limit)
        eta = take(step, k, Direction(f, point.x, estimate, DenseVertex(u)))
        x = u if eta == 1 else blend(point.x, u, eta)
        return Point(x, x, path if eta == 1 else ())


@dataclass(frozen=True)
class AcceleratedSliding(FlatMove):
    """Proximal steps inside Nesterov's three sequences.

        z_k = (1 - gamma_k) y_{k-1} + gamma_k x_{k-1},   g_k an estimate of grad f(z_k)
        x_k = argmin over the set of <g_k, u> + beta_k/2 |u - x_{k-1}|^2  (to a gap of tol_k)
        y_k = (1 - gamma_k) y_{k-1} + gamma_k x_k

    y is the iterate, and z is the point of the gradient; gamma is the step rule. If the estimator has epochs, all three
    sequences restart from y at the end of each epoch.

    Parameters
    ----------
    beta, tol : float or law
        As for `Sliding`.
    limit : int
        Largest number of LMOs of one sub-problem; a sub-problem that takes more ends the run, with the status ``unsolved``.
    from_vertex : bool
        Take the oracle's answer to the first gradient as the first x, without a proximal term.

    References
    ----------
    Lan, Zhou (2016), Conditional gradient sliding for convex optimization; Hazan, Luo (2016), arXiv:1602.02101.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.moves.AcceleratedSliding(beta=ex.laws.PowerLaw(3.0, 2.0, -1.0), tol=0.01).limit
    2000
    """

    beta: Law
    tol: Law
    limit: int = 2000
    from_vertex: bool = False

    def __post_init__(self):
        _check("AcceleratedSliding", self)
        checks.flag("AcceleratedSliding", "from_vertex", self.from_vertex)

    def start(self, x0: np.ndarray) -> ProxPoint:
        return ProxPoint(x0, x0, prox=x0)

    def advance(self, k: int, f: Objective, C: MoveOracle, point: ProxPoint, estimate: Estimate, step: Step) -> ProxPoint:
        """Compute x_k, y_k and z_{k+1}."""
        phase = phase_of(estimate)
        j = k if phase is None else phase.k
        if self.from_vertex and k == 0:
            x = toward(point.prox, C.lmo(estimate.g), 1.0)
        else:
            x, _ = proximal(C, estimate.g, point.prox, at(self.beta, j, phase), at(self.tol, k, phase), self.limit)
        y = blend(point.x, x, _gamma(step, j, f, point.x, x, estimate))  # y_k
        if phase is not None and phase.k + 1 == phase.length:
            return ProxPoint(y, y, prox=y)
        z = blend(y, x, _gamma(step, j + 1, f, y, x, _ahead(estimate)))  # z_{k+1}
        return ProxPoint(y, z, prox=x)


@dataclass(frozen=True)
class DoubleSliding(FlatMove):
    """Accelerated sliding for non-convex f: the output takes its own proximal step.

        z_k = (1 - alpha_k) y_{k-1} + alpha_k x_{k-1},   g_k an estimate of grad f(z_k)
        x_k = prox of weight beta_k from x_{k-1},   y_k = prox of weight ``beta_y`` from z_k,   both along g_k

    An iteration solves two sub-problems; alpha is the step rule.

    Parameters
    ----------
    beta, beta_y, tol : float or PowerLaw
        Weights of the two proximal terms, and the gap to which both sub-problems are solved.
    limit : int
        Largest number of LMOs of one sub-problem; a sub-problem that takes more ends the run, with the status ``unsolved``.

    References
    ----------
    Qu, Li, Xu (2018), Non-convex conditional gradient sliding, arXiv:1708.04783, Algorithm 3.

    Examples
    --------
    >>> DoubleSliding(beta=4.0, beta_y=2.0, tol=0.1).beta_y
    2.0
    """

    beta: Law
    beta_y: Law
    tol: Law
    limit: int = 2000

    def __post_init__(self):
        _check("DoubleSliding", self)

    def start(self, x0: np.ndarray) -> ProxPoint:
        return ProxPoint(x0, x0, prox=x0)

    def advance(self, k: int, f: Objective, C: MoveOracle, point: ProxPoint, estimate: Estimate, step: Step) -> ProxPoint:
        """Compute x_k, y_k and z_{k+1}."""
        phase, tol = phase_of(estimate), at(self.tol, k, phase_of(estimate))
        x, _ = proximal(C, estimate.g, point.prox, at(self.beta, k, phase), tol, self.limit)
        y, _ = proximal(C, estimate.g, point.query, at(self.beta_y, k, phase), tol, self.limit)
        z = blend(y, x, _gamma(step, k + 1, f, y, x, _ahead(estimate)))
        return ProxPoint(y, z, prox=x)


def _ahead(estimate: Estimate) -> Estimate:
    """The estimate with the phase that the next iteration's step rule will see."""
    phase = phase_of(estimate)
    ahead = None if phase is None else Phase(phase.epoch, phase.k + 1, phase.length)
    return estimate if ahead is None else replace(estimate, phase=ahead)  # type: ignore[type-var]


def _gamma(step: Step, k: int, f: Objective, y: np.ndarray, x: np.ndarray, estimate: Estimate) -> float:
    return take(step, k, Direction(f, y, estimate, DenseVertex(x)))


def _check(call: str, move: Sliding | AcceleratedSliding | DoubleSliding) -> None:
    of_y = (("beta_y", move.beta_y),) if isinstance(move, DoubleSliding) else ()
    for name, law in (("beta", move.beta), *of_y, ("tol", move.tol)):
        if not isinstance(law, (PowerLaw, Telescoping, EpochTolerance)):
            checks.positive(call, name, law)
    checks.whole(call, "limit", move.limit, 1)
