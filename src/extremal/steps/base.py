"""The contract of a step rule, the shared parts of rules, and `Scaled`, which multiplies a rule by a constant for tuning.

A rule may leave parameters open that only the run knows (a horizon, a smoothness constant, the estimator's constants).
``bind`` fills these in from the run's `Plan` before the first step.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Rational, Real
from typing import Any, Protocol, Self, TypeVar, cast

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.gradients.base import Counting, Estimate, Phase, phase_of
from extremal.objectives.base import Objective, Segment
from extremal.points.composed import Chord
from extremal.points.iterates import inner, length2
from extremal.points.vertex import Vertex
from extremal.support.kinds import Numbers
from extremal.support.rational import fraction

T = TypeVar("T")


@dataclass(frozen=True)
class Plan:
    """The facts about a run that a method knows beforehand, for rules with open parameters."""

    horizon: int | None = None  # K: the iterations that the budget allows; None without a budget
    d: float | None = None  # 1/d is the largest step that the estimator's recursion allows; None without such a limit
    c: float = 1.0  # the step of the non-convex theory relative to 1/sqrt K, see SmallBatch
    m: float | None = None  # n/b, if the estimator states it
    epochs: bool = False  # whether the estimator has epochs, for rules that follow them


class Direction:
    """The step from x to a vertex s, or along a chord, in the form that a rule sees; quantities are computed on demand."""

    def __init__(self, f: Objective, x: np.ndarray, estimate: Estimate, s: Vertex | Chord):
        self.f, self.x, self.estimate, self.s = f, x, estimate, s

    @cached_property
    def d(self) -> Chord:
        """The direction."""
        return Chord.to(self.s)

    @property
    def phase(self) -> Phase | None:
        """The estimator's place in its epoch, if it has epochs."""
        return phase_of(self.estimate)

    @cached_property
    def gap(self) -> float:
        """-<g, d>: for d = s - x the Frank-Wolfe gap if g is the gradient, otherwise an estimate of it."""
        g = self.estimate.g
        return -self.d.dot(g, inner(self.x, g) if self.d.own else 0.0)

    @cached_property
    def vector(self) -> np.ndarray:
        """d as an array."""
        return self.d.image(np.asarray(self.x), lambda v: v.to_array())

    @cached_property
    def norm2(self) -> float:
        """|d|^2."""
        return length2(self.x, self.d)

    def segment(self) -> Segment:
        """f between x and x + d."""
        return self.f.along(self.x, self.d)

    @property
    def notes(self) -> dict[Any, Any]:
        """What the rules of this run have learnt, by rule: rules themselves are values, and keep nothing."""
        return self.f.notes if isinstance(self.f, Counting) else {}

    def change(self, x: np.ndarray, g: np.ndarray) -> tuple[float, float]:
        """<new g - g, new x - x> and |new x - x|^2, since an earlier iterate x with estimate g."""
        moved = self.x - x
        return inner(moved, self.estimate.g) - inner(moved, g), inner(moved, moved)


class Step(Protocol):
    """The contract of a step rule."""

    def bind(self, plan: Plan) -> Step:
        """The rule with all open parameters filled in."""
        ...

    def eta(self, k: int, direction: Direction) -> float:
        """The step of iteration k = 0, 1, ..."""
        ...


class Scheduled(ABC):
    """A rule fixed in advance: eta depends on the iteration, and on the place in the epoch if there are epochs."""

    @abstractmethod
    def at(self, k: Numbers, phase: Phase | None = None) -> Numbers:
        """The step of iteration k, or the steps of an array of iterations; ``phase`` then holds arrays, too."""

    def bind(self, plan: Plan) -> Step:
        """The rule itself, unless it overrides this: no parameter is open."""
        return self

    def eta(self, k: int, direction: Direction) -> float:
        """The step of iteration k, for any direction."""
        if direction is None or direction.x.dtype.kind != "O":
            return float(self.at(k, None if direction is None else phase_of(direction.estimate)))
        return cast(Any, self.at(fraction(k), phase_of(direction.estimate)))


def check_step(call: str, step: object) -> None:
    """Refuse an object that is not a step rule."""
    checks.contract(call, "step", step, "step rule", "LineSearch()", ("bind", "eta"))


def take(step: Step, k: int, direction: Direction) -> float:
    """The rule's eta as a float; refuse a number outside [0, 1], which would leave the set."""
    eta = step.eta(k, direction)
    if direction.x.dtype.kind == "O":  # of fractions
        return _exact(step, k, eta)
    if not ((type(eta) is float or isinstance(eta, Real)) and 0 <= float(eta) <= 1):
        raise InputError(f"the step rule {step} gave eta = {eta!r} at iteration {k}; it must be a number in [0, 1]")
    return float(eta)


def _exact(step: Step, k: int, eta: Any) -> Any:
    """The rule's eta as a fraction; 0.0 and 1.0 are exact, too."""
    if not (eta in (0, 1) or (isinstance(eta, Rational) and 0 <= fraction(eta) <= 1)):
        raise InputError(
            f"an exact run needs a step rule that gives fractions in [0, 1], such as OpenLoop() or LineSearch(): {step} gave "
            f"{eta!r} at iteration {k}"
        )
    return fraction(eta)


def first(*options: T | None) -> T | None:
    """The first option that is not None."""
    return next((option for option in options if option is not None), None)


def once_bound(rule: Step, value: T | None) -> T:
    """The value; if it is None, an error explains how rules get theirs."""
    if value is None:
        raise InputError(f"{rule} is not bound: it needs the method's Plan, see `Step.bind`")
    return value


def wanted(rule: Step, name: str, own: float | None, plans: float | None, who: str = "Sarah, SagaSarah and Saga") -> float:
    """The rule's own constant, or the plan's; if both are open, an error names the estimators that state it."""
    found = first(own, plans)
    if found is None:
        call = type(rule).__name__
        raise InputError(f"`{call}({name}=...)` must be given: the gradient estimator states none ({who} do)")
    return found


@dataclass(frozen=True)
class Scaled(Step):
    """Another rule times a constant: eta_k = min(1, factor * rule_k).

    Theory fixes the shape of a step; in practice people tune the constant in front of it.

    Parameters
    ----------
    step : Step
        The rule to scale.
    factor : float
        A positive number.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.steps.Scaled(ex.steps.OpenLoop(), 0.1).eta(0, None), ex.steps.Scaled(ex.steps.OpenLoop(), 3).eta(0, None)
    (0.1, 1.0)
    """

    step: Step
    factor: float

    def __post_init__(self):
        check_step("Scaled", self.step)
        checks.fix(self, factor=checks.positive("Scaled", "factor", self.factor))

    def bind(self, plan: Plan) -> Self:
        return replace(self, step=self.step.bind(plan))

    def eta(self, k: int, direction: Direction) -> float:
        return min(1.0, self.factor * self.step.eta(k, direction))


def schedule(step: Step) -> Callable[[Numbers, Phase | None], Numbers] | None:
    """The steps of many iterations at once, for rules fixed in advance that accept arrays of iterations; otherwise None.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> schedule(ex.steps.Scaled(ex.steps.OpenLoop(), 0.5))(np.arange(3), None)
    array([0.5       , 0.33333333, 0.25      ])
    """
    if isinstance(step, Scaled):
        rule = schedule(step.step)
        return None if rule is None else lambda k, phase: np.minimum(1.0, step.factor * rule(k, phase))
    return step.at if isinstance(step, Scheduled) and type(step).eta is Scheduled.eta and _takes_arrays(step) else None


def _takes_arrays(step: Scheduled) -> bool:
    """Whether the rule accepts several iterations at once, with arrays in the phase."""
    k = np.arange(2)
    phase = Phase(np.zeros_like(k), k, np.full_like(k, 2))  # type: ignore[arg-type]
    try:
        return np.shape(step.at(k, phase)) in ((), k.shape)
    except (TypeError, ValueError, AttributeError):
        return False
