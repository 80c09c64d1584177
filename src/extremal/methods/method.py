"""The parts of a method: budget, card, and the parameters that many methods share.

A user gives only a method's own parameters. ``prepare`` fits the method to a problem and a budget: open parameters get
the values that the method's theory suggests, and the step rule learns the horizon.
"""

from __future__ import annotations

import inspect
import math
import textwrap
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

from extremal import checks
from extremal.checks import InputError
from extremal.gradients.base import Facts, SomeGradient, batched, check_gradient
from extremal.laws import PowerLaw
from extremal.methods.card import Card
from extremal.methods.cards import CARDS
from extremal.moves.base import PartMove, SomeMove, check_move
from extremal.moves.vertex import VertexMove
from extremal.objectives.base import Objective, check_batches
from extremal.sets.base import ConvexSet
from extremal.steps.base import Plan, Step, check_step
from extremal.steps.schedules import InverseSqrt, TwoPhase
from extremal.support.values import changed


@dataclass(frozen=True)
class Budget:
    """The budget of a run; None means no limit."""

    max_grads: int | None = None  # component gradients of the method
    max_iter: int | None = None  # iterations
    max_seconds: float | None = None  # seconds on the run's clock
    warm: bool = field(default=False, compare=False)  # whether the run starts from a given point
    sets: int = field(default=1, compare=False)  # sets over which f will be minimised, one after another

    def horizon(self, facts: Facts) -> int | None:
        """K: the iterations that fit in max_iter and, on average, in max_grads."""
        return self.length(facts.iterations)

    def length(self, paid: Callable[[int], int]) -> int | None:
        """The same, if ``paid`` converts max_grads into iterations; None without either limit."""
        limits = [] if self.max_iter is None else [self.max_iter]
        if self.max_grads is not None:
            limits.append(paid(self.max_grads))
        return min(limits, default=None)


class Recipe(Protocol):
    """An object that can be made into a method for a problem and a budget."""

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        """The method for a problem and a budget; open parameters get the values that its theory suggests."""
        ...


@dataclass(frozen=True)
class Method:
    """A method from its parts: any gradient estimator x any move x any step rule.

    Parameters
    ----------
    gradient : Gradient
        How to estimate g.
    step : Step
        How far to go; the budget and the estimator fill in its open parameters.
    move : Move
        How the iterate moves, given g.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.eye(2), np.array([1.0, 1.0]))
    >>> method = ex.Method(gradient=ex.gradients.Sarah(batch=1, p=0.5), step=ex.steps.LineSearch())
    >>> ex.minimize(f, ex.Simplex(), method=method, max_iter=50).x.round(6)
    array([0.5, 0.5])
    """

    gradient: SomeGradient
    step: Step
    move: SomeMove = field(default_factory=VertexMove)
    why: str = field(default="", compare=False, repr=False)  # the reason for the choice, if the library chose the method
    guarded: bool = field(default=False, compare=False, repr=False)  # for answers: the run never ends above its start
    columns: bool | None = field(default=None, compare=False, repr=False)  # whether f has Hessians by columns, if it was asked
    spent: int = field(default=0, compare=False, repr=False)  # component gradients spent on computing its parameters

    def __post_init__(self):
        check_step("Method", self.step)
        check_gradient("Method", self.gradient)
        check_move("Method", self.move)

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        """The same method with its step rule bound; refuse parts that do not go together."""
        facts = self.gradient.facts(f.n)
        if not isinstance(facts, Facts):
            raise InputError(f"{type(self.gradient).__name__}.facts(n) must return gradients.Facts, got {facts!r}")
        self._check(facts, f, C)
        return replace(self, step=self.step.bind(Plan(budget.horizon(facts), facts.d, facts.c, facts.m, facts.epochs)))

    @classmethod
    def of(cls, gradient: SomeGradient, step: Step, move: SomeMove) -> Method:
        """Parts of the library, which need no check, for an f with Hessians by columns."""
        new = object.__new__(cls)
        vars(new).update(gradient=gradient, step=step, move=move, why="", guarded=False, columns=True, spent=0)
        return new

    def chosen(self, why: str, guarded: bool) -> Method:
        """The same parts, which need no second check, as a choice of the library."""
        return changed(self, why=why, guarded=guarded)

    def _check(self, facts: Facts, f: Objective, C: ConvexSet) -> None:
        """Refuse a part that needs a feature another part lacks."""
        missing = [name for name in facts.needs if checks.lacks(f, name)]
        if missing:
            raise InputError(
                f"{type(self.gradient).__name__} needs an objective with {', '.join(missing)}: LinearModel has them, "
                f"{type(f).__name__} does not"
            )
        if batched(self.gradient) is not None:
            check_batches(f)
        if facts.one_vertex and not self.move.one_vertex:
            raise InputError(f"{type(self.gradient).__name__} follows the vertex of each step: it needs the move VertexMove()")
        if facts.parts and not isinstance(self.move, PartMove):
            raise InputError(f"{type(self.gradient).__name__} gives one part of the gradient: it needs the move Blockwise()")
        if C.relaxed is not C and not facts.penalty:
            raise InputError(
                "an AffineCut has no oracle of its own, and only MostFW() adds a penalty for its bounds; for a polytope with all "
                "its constraints see Polytope"
            )
        self.move.check(self.gradient, f, C)


class WithCard(Recipe):
    """A named method: its card is the row under its name, and its docstring states the row's guarantee."""

    card: ClassVar[Card]

    def __init_subclass__(cls, **options: object):
        super().__init_subclass__(**options)
        if cls.__name__ not in CARDS:  # a user's class has its own card, or the card of the method it derives from
            return
        cls.card = CARDS[cls.__name__]
        if cls.__doc__ is not None:  # python -OO strips docstrings
            text, said = inspect.cleandoc(cls.__doc__), textwrap.fill(cls.card.guarantee, 120, break_on_hyphens=False)
            places = (text.find(f"\n{section}\n---") for section in ("Parameters", "Examples"))
            place = min((place for place in places if place >= 0), default=len(text))
            cls.__doc__ = f"{text[:place].rstrip()}\n\n{said}\n{text[place:]}"


class Checked(WithCard):
    """A named method that checks the usual parameters: a step rule, a batch size, a smoothness constant, flags."""

    def __post_init__(self):
        """Refuse a bad step rule, batch size, smoothness constant or flag, if the method has one."""
        call, given = type(self).__name__, {name: item for name, item in vars(self).items() if item is not None}
        if "L" in given:
            checks.positive(call, "L", given["L"])
        if "step" in given:
            check_step(call, given["step"])
        if "batch" in given:
            checks.whole(call, "batch", given["batch"], 1)
        for name in vars(self).keys() & {"blended", "lazy"}:
            checks.flag(call, name, vars(self)[name])


@dataclass(frozen=True)
class BatchAndStep(Checked):
    """A method whose first parameters are the batch and the step."""

    batch: int | None = None
    step: Step | None = None


@dataclass(frozen=True)
class EpochAndStep(Checked):
    """A method whose first parameters are the batch, the epoch and the step."""

    batch: int | None = None
    epoch: int | None = None
    step: Step | None = None


@dataclass(frozen=True)
class SlidingInEpochs(Checked):
    """A sliding method whose first parameters are L, the batch and the epoch."""

    L: float | None = None
    batch: int | None = None
    epoch: int | None = None


def theory_step(f: Objective) -> Step:
    """The steps of Theorems 1 and 3 for convex f, of Theorems 2 and 4 for others."""
    return TwoPhase() if f.convex else InverseSqrt()


def long_batch(call: str, batch: int | None, n: int, budget: Budget) -> int | PowerLaw:
    """The given batch, or as many rows as the run has iterations (at most n); k at iteration k without a budget."""
    if batch is not None:
        return checks.whole(call, "batch", batch, 1, n)
    K = budget.length(math.isqrt)  # K iterations of K gradients each
    return PowerLaw() if K is None else max(1, min(n, K))


def root_epoch(call: str, epoch: int | None, n: int, power: float = 0.5) -> int:
    """The given length of an epoch, or ceil(n^power)."""
    return math.ceil(n**power - 1e-9) if epoch is None else checks.whole(call, "epoch", epoch, 1)


def root_batch(call: str, batch: int | None, n: int, power: float = 0.5) -> int:
    """The given batch, or ceil(n^power): 1 for power 0."""
    return math.ceil(n**power - 1e-9) if batch is None else checks.whole(call, "batch", batch, 1, n)
