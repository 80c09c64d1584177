"""What every method shares: parts, budgets, cards.

A method is given by its own parameters only. ``prepare`` fits it to a problem and a budget: open parameters get the
values that the method's theory suggests, and the step rule learns the horizon.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from extremal import checks
from extremal.checks import InputError
from extremal.gradients.base import Facts, SomeGradient, check_gradient, draws_batches
from extremal.laws import PowerLaw
from extremal.moves.base import SomeMove, check_move
from extremal.moves.vertex import VertexMove
from extremal.objectives.base import Objective, check_batches
from extremal.sets.base import ConvexSet
from extremal.steps.base import Plan, Step, check_step
from extremal.steps.schedules import InverseSqrt, TwoPhase


@dataclass(frozen=True)
class Budget:
    """What a run may spend; None is no limit."""

    max_grads: int | None = None  # component gradients of the method
    max_iter: int | None = None  # iterations
    max_seconds: float | None = None  # on the run's clock
    warm: bool = field(default=False, compare=False)  # whether the run starts from a point that was given

    def horizon(self, facts: Facts) -> int | None:
        """K: the iterations that fit in max_iter and, in the mean, in max_grads."""
        return self.length(facts.iterations)

    def length(self, paid: Callable[[int], int]) -> int | None:
        """The same where ``paid`` says how many iterations max_grads pays for; None without either limit."""
        limits = [] if self.max_iter is None else [self.max_iter]
        if self.max_grads is not None:
            limits.append(paid(self.max_grads))
        return min(limits, default=None)


@dataclass(frozen=True)
class Card:
    """What is known of a method: a row of the paper's Table 1."""

    name: str  # on the command line
    summary: str  # one line
    source: str  # authors, year, algorithm
    memory: str  # numbers beyond a few vectors of length d
    convex: tuple[str, str] | None = None  # SFO and LMO complexity for convex f, O(...); None: no guarantee
    nonconvex: tuple[str, str] | None = None  # the same for the gap of non-convex f
    no_rate: bool = False  # non-convex f: convergence, but without a rate
    full_gradients: bool = False  # whether it needs them
    big_batches: bool = False  # whether theory needs batches that grow with the accuracy or with n
    needs: tuple[str, ...] = ()  # constants it has to know: L, D, sigma
    note: str = ""  # remarks, and doubts about constants; without rates, what is known instead
    correction: str = ""  # where we differ from the paper's table, and why
    smallest: Card | None = None  # the row of the same method at b = 1, if the table has one

    @property
    def guarantee(self) -> str:
        """The row as a paragraph."""
        if not (self.convex or self.nonconvex or self.no_rate):
            return f"Guarantee: {self.note}."
        whose = "" if self.correction else ", as the paper's Table 1 has it"
        said = [f"Guarantee{whose}: {self._rates}", self.note, self.correction]
        if self.smallest is not None:
            said += [f"at b = 1: {self.smallest._rates}", self.smallest.correction]
        return " ".join(f"{_capital(text)}." for text in said if text)

    @property
    def _rates(self) -> str:
        other = "convergence without a rate" if self.no_rate else _calls(self.nonconvex)
        return f"convex f: {_calls(self.convex)}; non-convex f: {other}"


class Recipe(Protocol):
    """Anything that can be made into a method for a problem and a budget."""

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        """The method for a problem and a budget: what was left open has the values that its theory suggests."""
        ...


@dataclass(frozen=True)
class Method:
    """A method from its parts: any gradient estimator x any move x any step rule.

    Parameters
    ----------
    gradient : Gradient
        How g is made.
    step : Step
        How far to go; what it leaves open is filled in from the budget and the estimator.
    move : Move
        How the iterate moves given g.

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
    why: str = field(default="", compare=False, repr=False)  # the reasons, of a method that was chosen for the user
    guarded: bool = field(default=False, compare=False, repr=False)  # for an answer: no end above the start
    spent: int = field(default=0, compare=False, repr=False)  # component gradients that its parameters were computed from

    def __post_init__(self):
        check_step("Method", self.step)
        check_gradient("Method", self.gradient)
        check_move("Method", self.move)

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        """The same method with its step rule bound; refuses parts that do not go together."""
        facts = self.gradient.facts(f.n)
        if not isinstance(facts, Facts):
            raise InputError(f"{type(self.gradient).__name__}.facts(n) must return gradients.Facts, got {facts!r}")
        self._check(facts, f, C)
        return replace(self, step=self.step.bind(Plan(budget.horizon(facts), facts.d, facts.c, facts.m, facts.epochs)))

    def _check(self, facts: Facts, f: Objective, C: ConvexSet) -> None:
        """Refuse parts of which one needs what another does not have."""
        missing = [name for name in facts.needs if checks.lacks(f, name)]
        if missing:
            raise InputError(
                f"{type(self.gradient).__name__} needs an objective with {', '.join(missing)}: LinearModel has them, "
                f"{type(f).__name__} does not"
            )
        if draws_batches(self.gradient):
            check_batches(f)
        if facts.one_vertex and not self.move.one_vertex:
            raise InputError(f"{type(self.gradient).__name__} follows the vertex of each step: it needs the move VertexMove()")
        if C.relaxed is not C and not facts.penalty:
            raise InputError(
                "an AffineCut has no oracle of its own, and only MostFW() adds a penalty for its bounds; for a polytope with all "
                "its constraints see Polytope"
            )
        self.move.check(self.gradient, f, C)


def theory_step(f: Objective) -> Step:
    """The steps of Theorems 1 and 3 for convex f, of Theorems 2 and 4 for others."""
    return TwoPhase() if f.convex else InverseSqrt()


def long_batch(call: str, batch: int | None, n: int, budget: Budget) -> int | PowerLaw:
    """The batch that was given, or as many rows as the run has iterations (at most n); k at iteration k without a budget."""
    if batch is not None:
        return checks.whole(call, "batch", batch, 1, n)
    K = budget.length(math.isqrt)  # K iterations of K gradients each
    return PowerLaw() if K is None else max(1, min(n, K))


def root_epoch(call: str, epoch: int | None, n: int, power: float = 0.5) -> int:
    """The length of an epoch that was given, or ceil(n^power)."""
    return math.ceil(n**power - 1e-9) if epoch is None else checks.whole(call, "epoch", epoch, 1)


def root_batch(call: str, batch: int | None, n: int, power: float = 0.5) -> int:
    """The batch that was given, or ceil(n^power): 1 for power 0."""
    return math.ceil(n**power - 1e-9) if batch is None else checks.whole(call, "batch", batch, 1, n)


def _calls(cells: tuple[str, str] | None) -> str:
    return "none" if cells is None else f"{cells[0]} component gradients, {cells[1]} LMOs"


def _capital(text: str) -> str:
    """With a capital letter, unless a formula comes first."""
    return text[0].upper() + text[1:] if text[1].isalpha() else text
