"""The Frank-Wolfe moves: one oracle call and one step toward its answer, straight or along a geodesic of a manifold."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from extremal import checks
from extremal.checks import InputError, OutsideError
from extremal.gradients.base import Estimate, SomeGradient
from extremal.moves.base import FlatMove, MoveOracle, Point, check_manifold
from extremal.objectives.base import Objective, Segment
from extremal.points.iterates import freeze, toward
from extremal.points.manifolds import Euclidean, Manifold
from extremal.points.vertex import Vertex
from extremal.sets.base import ConvexSet
from extremal.steps.base import Direction, Step, take


@dataclass(frozen=True)
class VertexMove(FlatMove):
    """x^{k+1} = x^k + eta_k (s^k - x^k), s^k = lmo(g^k): one LMO per step; the iterate stays a convex combination.

    References
    ----------
    Frank, Wolfe (1956), An algorithm for quadratic programming.

    Examples
    --------
    >>> VertexMove()
    VertexMove()
    """

    one_vertex: ClassVar[bool] = True

    def advance(self, k: int, f: Objective, C: MoveOracle, point: Point, estimate: Estimate, step: Step) -> Point:
        """One oracle call, one step."""
        s = C.lmo(estimate.g)  # s^k = argmin <g^k, s>
        eta = take(step, k, Direction(f, point.x, estimate, s))
        x = toward(point.x, s, eta)  # x^{k+1} = x^k + eta_k (s^k - x^k)
        return Point(x, x, ((eta, s),))


@dataclass(frozen=True)
class GeodesicMove(FlatMove):
    """x^{k+1} = geodesic(x^k, z^k)(eta_k), z^k = argmin over z of <g^k, log_{x^k}(z)>: one oracle call per step.

    Gradients are tangent vectors at x (Riemannian gradients), and inner products use the metric at x. The set must be
    geodesically convex and have ``lmo_at(g, x)``; the iterates then stay in the set. In flat space this move is `VertexMove`,
    with the set's ordinary oracle. Steps that look at f (`ShortStep`, `LineSearch`) do so along the geodesic.

    The gap is max over z of <-g, log_x(z)>_x, or the bound on it that the oracle proves; for geodesically convex f it
    bounds f(x) - f*.

    Parameters
    ----------
    manifold : Manifold
        Default: flat space.

    References
    ----------
    Weber, Sra (2022), Riemannian optimization via Frank-Wolfe methods, arXiv:1710.10770.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.KarcherMean([np.diag([1.0, 4.0]), np.diag([4.0, 1.0])])        # geometric mean: 2 I
    >>> method = ex.Method(ex.gradients.Full(), ex.steps.LineSearch(), ex.moves.GeodesicMove(ex.points.SPD()))
    >>> ex.minimize(f, f.interval(), method=method, x0=f.interval().lower).x.round(6)
    array([[2., 0.],
           [0., 2.]])
    """

    manifold: Manifold = field(default_factory=Euclidean)

    def check(self, gradient: SomeGradient, f: Objective, C: ConvexSet) -> None:
        """Refuse gradients of another manifold, a set without an oracle here, or an estimator without transport."""
        check_manifold(self.manifold, f)
        if self.flat:
            return
        if checks.lacks(C, "lmo_at"):
            raise InputError(
                f"{type(C).__name__} has no oracle on {self.manifold}: it needs lmo_at(g, x), such as LoewnerInterval's"
            )
        facts = gradient.facts(f.n)
        if not facts.one_point and facts.manifold != self.manifold:
            raise InputError(
                f"{type(gradient).__name__} adds gradients of several points: on {self.manifold} it must transport them, "
                f"as Svrg(..., manifold={self.manifold}) and Spider do"
            )

    def advance(self, k: int, f: Objective, C: MoveOracle, point: Point, estimate: Estimate, step: Step) -> Point:
        """One oracle call, one step."""
        if self.flat:
            return VertexMove().advance(k, f, C, point, estimate, step)
        z = C.lmo(estimate.g, point.x)  # z^k = argmin <g^k, log_{x^k}(z)>
        eta = take(step, k, GeodesicDirection(self.manifold, f, point.x, estimate, z))
        x = freeze(self.manifold.geodesic(point.x, z.to_array(), eta))  # x^{k+1} = geodesic(x^k, z^k)(eta_k)
        return Point(x, x)

    def gap(self, C: Any, x: np.ndarray, g: np.ndarray) -> float:
        """max over z of <-g, log_x(z)>_x."""
        if self.flat:
            return C.gap(x, g)
        z = C.lmo_at(g, x)
        low = z.low  # the oracle's bound, if it proves one
        gap = -(self.manifold.inner(x, g, self.manifold.log(x, z.to_array())) if low is None else low)
        if gap < -1e-6 * math.sqrt(self.manifold.inner(x, g, g)):
            raise OutsideError("the iterate has left the set: the gap is negative; a move or a step rule is at fault")
        return max(0.0, gap)

    @property
    def flat(self) -> bool:
        """Whether the manifold is Euclidean space."""
        return isinstance(self.manifold, Euclidean)


class GeodesicDirection(Direction):
    """The step from x to z along their geodesic, in the form that a rule sees."""

    def __init__(self, manifold: Manifold, f: Objective, x: np.ndarray, estimate: Estimate, s: Vertex):
        super().__init__(f, x, estimate, s)
        self.manifold, self.z = manifold, s.to_array()

    @cached_property
    def to(self) -> np.ndarray:
        """log_x(z)."""
        return self.manifold.log(self.x, self.z)

    @cached_property
    def gap(self) -> float:
        return -self.manifold.inner(self.x, self.estimate.g, self.to)

    @cached_property
    def norm2(self) -> float:
        return self.manifold.inner(self.x, self.to, self.to)

    def change(self, x: np.ndarray, g: np.ndarray) -> tuple[float, float]:
        raise InputError(f"on {self.manifold}, gradients of two iterates have no difference: use Backtracking() or LineSearch()")

    def segment(self) -> Segment:
        return _Geodesic(self.manifold, self.f, self.x, self.z)


@dataclass(frozen=True)
class _Geodesic:
    manifold: Manifold
    f: Objective  # the objective, which counts its calls
    x: np.ndarray
    z: np.ndarray

    @property
    def grads_per_slope(self) -> int:
        return self.f.n

    def value(self, t: float) -> float:
        return self.f.value(self.manifold.geodesic(self.x, self.z, t))

    def slope(self, t: float) -> float:
        """<grad f, velocity> at t; the velocity points from x to z, at constant speed."""
        here = self.manifold.geodesic(self.x, self.z, t)
        ahead = self.manifold.log(here, self.z) / (1 - t) if t < 0.5 else -self.manifold.log(here, self.x) / t
        return self.manifold.inner(here, self.f.grad(here), ahead)
