"""A move that goes back: with estimates, f may rise, and full gradients are the places to notice it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from extremal import checks
from extremal.gradients.base import Estimate, Renewing, SomeGradient
from extremal.moves.base import Flat, MoveOracle, Point, SomeMove, check_move
from extremal.objectives.base import Objective
from extremal.points.active import ActiveSet
from extremal.quadratic.search import UNSEEN
from extremal.sets.base import ConvexSet
from extremal.steps.base import Direction, Plan, Step

RISE = 10 * UNSEEN[0]  # share of f below which a rise is rounding


@dataclass(frozen=True)
class _Landing:
    """The point behind the step along the last full gradient, and a value of f that this step went below."""

    point: Point
    goal: float
    cut: bool  # whether the step was as long as the set allows


@dataclass
class _Heard(Step):
    """A step rule, and what it last said: eta, and the gap along the direction."""

    step: Step
    said: float = 0.0
    gap: float = 0.0

    def __str__(self) -> str:
        return str(self.step)

    def bind(self, plan: Plan) -> Step:
        return self

    def eta(self, k: int, direction: Direction) -> float:
        self.said, self.gap = self.step.eta(k, direction), direction.gap
        return self.said


@dataclass(frozen=True)
class Returning(Flat):
    """Another move, which goes back to its last safe point if a full gradient finds that f has not fallen enough.

        at a full gradient at X:  F = f(X);   x <- X + eta d,   goal = F - eta gap / 2
        at the next one at X':    if f(X') > goal,  x <- X + eta d, and a full gradient there

    The step along a full gradient is safe: the step rule `SelfConcordant` lowers f by eta gap / 2 or more. So each two full
    gradients lower f by at least that, whatever the iterations between them do. If two steps along full gradients in a row end at
    the boundary of a face (eta = 1), another full gradient follows at once. The guarantee needs an estimator that gives full
    gradients on request: `TrackedSaga`. Cost: that of the move, and a value of f at each full gradient.

    Parameters
    ----------
    move : Move
        The move; its step at full gradients should lower f.

    References
    ----------
    The safeguard is this library's; see docs/frontier-proofs.md.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.moves.Returning(ex.moves.InFaceBlended())
    Returning(move=InFaceBlended())
    """

    move: SomeMove

    atomic: ClassVar[bool] = False  # of the class; an instance has that of its move

    def __post_init__(self):
        check_move("Returning", self.move)
        checks.fix(self, atomic=self.move.atomic)

    def check(self, gradient: SomeGradient, f: Objective, C: ConvexSet) -> None:
        """Refuse what the move refuses."""
        self.move.check(gradient, f, C)

    def first(self, C: MoveOracle) -> np.ndarray | ActiveSet:
        """The start of the move."""
        return self.move.first(C)

    def start(self, x0: np.ndarray) -> Point:
        """The first point of the move."""
        return self.move.start(x0)

    def promise(self, point: Point) -> float | None:
        """None: full gradients certify."""
        return None

    def advance(self, k: int, f: Objective, C: MoveOracle, point: Point, estimate: Estimate, step: Step) -> Point:
        """A step of the move; or the way back, at a full gradient where f is too high."""
        if not estimate.exact:
            return replace(self.move.advance(k, f, C, point, estimate, step), memory=point.memory)
        last, value = point.memory, f.value(point.x)
        if last is not None and value > last.goal + RISE * abs(value):
            _ask(estimate)
            return replace(last.point, memory=replace(last, goal=math.inf))
        heard = _Heard(step)
        new = self.move.advance(k, f, C, point, estimate, heard)
        cut = heard.said == 1.0
        if cut and last is not None and last.cut:
            _ask(estimate)
        return replace(new, memory=_Landing(new, value - heard.said * heard.gap / 2, cut))


def _ask(estimate: Estimate) -> None:
    """Ask for a full gradient, if the estimator gives one on request."""
    if isinstance(estimate, Renewing):
        estimate.renew()
