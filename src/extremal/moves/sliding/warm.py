"""Sliding moves for stochastic gradients with vanishing variance: each proximal step starts from the atoms of the last."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.gradients.base import Estimate, SomeGradient, phase_of
from extremal.moves.base import FlatMove, MoveOracle, Point, check_onto, check_projectable
from extremal.moves.sliding.prox import Probe, Solver, first_hull, hull_of
from extremal.objectives.base import Objective, is_factored
from extremal.points.iterates import blend, inner
from extremal.points.matrix import Iterate
from extremal.points.vertex import DenseVertex
from extremal.quadratic.solver import Hull
from extremal.sets.base import ConvexSet
from extremal.steps.base import Direction, Step, take

BETA_DOUBLINGS = 100  # largest number of doublings of an estimate of beta in one step


@dataclass(frozen=True)
class WarmPoint(Point):
    """A point of a proximal method."""

    hull: Hull | None = None  # the atoms from which the next proximal step starts, with their inner products
    L: float = 0.0  # the curvature measured by a `Probe`; 0 before the first measurement


@dataclass(frozen=True)
class AnchoredPoint(WarmPoint):
    """A point with the second sequence and the anchor of accelerated sliding."""

    prox: np.ndarray = field(default_factory=lambda: np.empty(0))  # the centre of the proximal steps
    anchor: np.ndarray = field(default_factory=lambda: np.empty(0))  # the iterate at the start of the epoch
    slow: int = 0  # t: the number of epochs so far that required shorter steps
    pace: float = 0.0  # how far the iterate moved in the last epoch
    k: int = 0  # position in the epoch


class _Proximal(FlatMove):
    """The base of the two moves."""

    beta: float | Probe
    accuracy: float
    onto: ConvexSet | None
    limit: int
    least: float = 0.0

    def __post_init__(self):
        call, onto = type(self).__name__, self.onto
        if not isinstance(self.beta, Probe):
            checks.positive(call, "beta", self.beta)
        if onto is not None:
            check_projectable(call, onto, ", or None")
        checks.within(call, "accuracy", self.accuracy, 0, 1)
        checks.whole(call, "limit", self.limit, 1)

    @property
    def projects(self) -> bool:
        return self.onto is not None

    def check(self, gradient: SomeGradient, f: Objective, C: ConvexSet) -> None:
        super().check(gradient, f, C)
        if self.onto is None:
            return
        call = type(self).__name__
        check_onto(call, self.onto, f, C)
        if C.matrix_free and is_factored(f):
            raise InputError(f"`{call}(onto=...)`: matrices in factors are not projected; omit it for steps by the oracle alone")

    def _step(
        self,
        k: int,
        f: Objective,
        C: MoveOracle,
        point: WarmPoint,
        g: np.ndarray,
        centre: np.ndarray,
        tau: float,
        to: Callable[[np.ndarray], np.ndarray],
    ) -> tuple[np.ndarray, Hull | None, float]:
        """The proximal step of weight tau beta, its atoms, and L; ``to`` maps the step to the iterate, for tests of L."""
        prox, hull = Solver(self.accuracy, self.onto, self.limit), hull_of(point.hull, point.active)
        if not isinstance(self.beta, Probe):
            return *prox(C, g, centre, hull, max(tau * self.beta, self.least)), 0.0
        probe, x, L, due = self.beta, point.query, point.L, self.beta.due(k)
        if L == 0:
            hull = first_hull(C, g, centre) if hull is None and self.onto is None else hull
            L = probe.first(f, x, C.lmo(g) if hull is None else hull.atoms.vertices[-1])
        L = probe.lowered(L, f.n) if due and k else L
        u, new = prox(C, g, centre, hull, tau * probe.factor * L)
        for _ in range(BETA_DOUBLINGS if due else 0):
            seen = probe.seen(k, f, x, to(u))
            if seen <= L:
                break
            L = max(2 * L, seen)
            u, new = prox(C, g, centre, hull, tau * probe.factor * L)
        return u, new, L


@dataclass(frozen=True)
class WarmSliding(_Proximal):
    """A proximal step from x, solved by oracle calls that start from the atoms of the last step, or by a projection.

        u = argmin over the set of <g, u> + beta/2 |u - x|^2  (to a gap of accuracy beta |u - x|^2),   x <- x + eta (u - x)

    A step takes one LMO, and one per new atom; memory: the k atoms, and their k^2 inner products. With a variance-reduced
    estimator f(x) - f* falls geometrically for strongly convex f, over any set.

    Parameters
    ----------
    beta : float or Probe
        Weight of the proximal term, of the order of L; a `Probe` measures it on some rows.
    accuracy : float
        Gap to which the sub-problem is solved, relative to beta |u - x|^2, in (0, 1].
    onto : ConvexSet, optional
        The set of the run, if its projection is to replace the oracle.
    limit : int
        Largest number of LMOs of one sub-problem; the move then takes the point reached so far.

    References
    ----------
    Lan, Zhou (2016), Conditional gradient sliding for convex optimization; Defazio, Bach, Lacoste-Julien (2014),
    arXiv:1407.0202; Wolfe (1976), Finding the nearest point in a polytope.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.eye(3), np.array([0.6, 0.4, -1.0]))
    >>> method = ex.Method(ex.gradients.Saga(2), ex.steps.FullStep(), ex.moves.WarmSliding(beta=1.0))
    >>> r = ex.minimize(f, ex.Simplex(), method, tol=1e-9)
    >>> r.x.round(6), len(r.atoms)
    (array([0.6, 0.4, 0. ]), 2)
    """

    atomic: ClassVar[bool] = True

    beta: float | Probe
    accuracy: float = 0.1
    onto: ConvexSet | None = None
    limit: int = 1000

    def start(self, x0: np.ndarray) -> WarmPoint:
        return WarmPoint(x0, x0)

    def advance(self, k: int, f: Objective, C: MoveOracle, point: WarmPoint, estimate: Estimate, step: Step) -> WarmPoint:
        """One proximal step."""
        x = point.x
        u, hull, L = self._step(k, f, C, point, estimate.g, x, 1.0, lambda u: u)
        eta = take(step, k, Direction(f, x, estimate, DenseVertex(u)))
        if eta < 1:
            u = blend(x, u, eta)
            hull = None if hull is None else _between(hull_of(point.hull, point.active), x, hull, eta)
        return WarmPoint(u, u, active=None if hull is None else hull.atoms, hull=hull, L=L)


@dataclass(frozen=True)
class AnchoredSliding(_Proximal):
    """Proximal steps inside Nesterov's sequences, with some weight on an anchor, which limits the noise of estimates.

        q = tau z + lean w + (1 - tau - lean) y,   g an estimate of grad f(q),   tau = 2 / (t + 4)
        z <- argmin over the set of <g, u> + tau beta/2 |u - z|^2  (as for `WarmSliding`)
        y <- tau z + lean w + (1 - tau - lean) y;   w <- y at the end of each epoch

    t starts at 0. It grows by 1 after an epoch in which the iterate moved more than 1 - tau times as far as in the one before. So
    tau falls as 1/t on ill-conditioned problems, and stays if a larger tau does better. y is the iterate, q the point of the
    gradient, w the anchor. If the estimator has its own epochs, these count, and the first gradient of each is taken at w. Oracle
    calls, memory and projections are as for `WarmSliding`. The step rule is not used. f must be convex.

    Parameters
    ----------
    beta, accuracy, onto, limit
        As for `WarmSliding`.
    lean : float
        Weight of the anchor, from 0 (exact gradients) to 1/2 (batches of one row).
    epoch : int
        Iterations per epoch: about as many as a pass has batches.
    least : float
        A lower bound on tau beta, if beta is a number. A table of gradients needs this if rows have little in common.

    References
    ----------
    Allen-Zhu (2017), Katyusha: the first direct acceleration of stochastic gradient methods, arXiv:1603.05953; Lan, Zhou (2016),
    Conditional gradient sliding for convex optimization.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.eye(3), np.array([0.6, 0.4, -1.0]))
    >>> move = ex.moves.AnchoredSliding(beta=1.0, lean=0.25, epoch=2)
    >>> ex.minimize(f, ex.Simplex(), ex.Method(ex.gradients.Saga(2), ex.steps.FullStep(), move), tol=1e-6).x.round(3)
    array([0.6, 0.4, 0. ])
    """

    atomic: ClassVar[bool] = False  # the atoms are those of z, not of the iterate

    beta: float | Probe
    lean: float
    epoch: int
    accuracy: float = 0.1
    onto: ConvexSet | None = None
    limit: int = 1000
    least: float = 0.0

    def __post_init__(self):
        super().__post_init__()
        if checks.at_least("AnchoredSliding", "lean", self.lean, 0) > 0.5:
            checks.within("AnchoredSliding", "lean", self.lean, 0, 0.5)
        checks.whole("AnchoredSliding", "epoch", self.epoch, 1)
        checks.at_least("AnchoredSliding", "least", self.least, 0)

    def start(self, x0: np.ndarray) -> AnchoredPoint:
        return AnchoredPoint(x0, x0, prox=x0, anchor=x0)

    def advance(self, k: int, f: Objective, C: MoveOracle, point: AnchoredPoint, estimate: Estimate, step: Step) -> AnchoredPoint:
        """Compute z, y, w and the next q."""
        tau = 2 / (point.slow + 4)
        z, hull, L = self._step(k, f, C, point, estimate.g, point.prox, tau, lambda z: self._mix(tau, z, point.anchor, point.x))
        y = self._mix(tau, z, point.anchor, point.x)
        phase = phase_of(estimate)
        last = point.k + 1 == self.epoch if phase is None else phase.k + 1 == phase.length
        if not last:
            q = self._mix(tau, z, point.anchor, y)
            return replace(point, x=y, query=q, hull=hull, L=L, prox=z, k=point.k + 1)
        change = y - point.anchor
        pace = math.sqrt(max(0.0, inner(change, change)))
        slow = point.slow + (pace > (1 - tau) * point.pace)
        q = y if phase is not None else self._mix(2 / (slow + 4), z, y, y)
        return AnchoredPoint(y, q, hull=hull, L=L, prox=z, anchor=y, slow=slow, pace=pace)

    def _mix(self, tau: float, z: np.ndarray, w: np.ndarray, y: np.ndarray) -> np.ndarray:
        """tau z + lean w + (1 - tau - lean) y."""
        return blend(y if self.lean == 0 else blend(y, w, self.lean / (1 - tau)), z, tau)


def _between(start: Hull | None, x: Iterate, end: Hull, eta: float) -> Hull | None:
    """The atoms of (1 - eta) x + eta u, where ``end`` holds the atoms of u."""
    hull = start if start is not None else Hull.at(x, end.atoms.vertices[-1])
    for v in end.atoms.vertices:
        hull = hull if hull.atoms.find(v) is not None else hull.with_atom(v)
    weights = (1 - eta) * hull.atoms.weights
    for v, w in zip(end.atoms.vertices, end.atoms.weights, strict=True):
        weights[hull.atoms.find(v)] += eta * w
    return hull.with_weights(weights)
