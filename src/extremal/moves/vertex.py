"""The plain Frank-Wolfe move: one oracle call, one step toward its answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from extremal.gradients.base import Estimate
from extremal.moves.base import FlatMove, MoveOracle, Point
from extremal.objectives.base import Objective
from extremal.points.iterates import toward
from extremal.steps.base import Direction, Step, take


@dataclass(frozen=True)
class VertexMove(FlatMove):
    """x^{k+1} = x^k + eta_k (s^k - x^k), s^k = lmo(g^k): one LMO a step, the iterate stays a convex combination.

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
