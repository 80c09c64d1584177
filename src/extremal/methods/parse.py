"""Methods from short texts, as on the command line, and methods with scaled steps."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from extremal import checks
from extremal.checks import InputError
from extremal.gradients.substitute import Substitute
from extremal.methods.cards import METHODS
from extremal.methods.method import Budget, Method, Recipe
from extremal.objectives.base import Objective
from extremal.sets.base import ConvexSet
from extremal.steps.adaptive import LineSearch, ShortStep
from extremal.steps.base import Scaled, Step
from extremal.steps.curved import BatchCurvature
from extremal.steps.learning import Backtracking, Secant
from extremal.steps.schedules import Anytime, InverseSqrt, LogOpenLoop, OpenLoop, SmallBatch, TwoPhase

STEPS: dict[str, Callable[[], Step]] = {  # rules without parameters
    "open-loop": OpenLoop, "short": ShortStep, "line-search": LineSearch, "two-phase": TwoPhase, "anytime": Anytime,
    "inverse-sqrt": InverseSqrt, "small-batch": SmallBatch, "log-open-loop": LogOpenLoop, "backtracking": Backtracking,
    "secant": Secant, "batch-curvature": BatchCurvature,
}  # fmt: skip


def full_name(text: str) -> str:
    """The text with the method's full name: ``negiar`` becomes ``negiar-sfw``; any unique beginning is accepted.

    Examples
    --------
    >>> full_name("negiar"), full_name("sarah:batch=10")
    ('negiar-sfw', 'sarah-fw:batch=10')
    """
    name, colon, rest = text.strip().partition(":")
    known = tuple(METHODS)
    begun = [full for full in known if full.startswith(name)] if name else []
    full = name if name in known else begun[0] if len(begun) == 1 else checks.one_of("method", name, known)
    return full + colon + rest


def recipe(text: str, batch: int | None = None) -> Recipe:
    """A method by its name, with parameters after colons; ``batch`` is the default if the method has a batch.

    Examples
    --------
    >>> recipe("sarah-fw:p=0.1", batch=5).p, recipe("sarah-fw:batch=10", batch=5).batch
    (0.1, 10)
    >>> recipe("frank-wolfe:step=line-search")
    FrankWolfe(step=LineSearch(tol=1e-10))
    """
    name, *settings = full_name(text).split(":")
    make: Any = METHODS[name]
    fields = {field.name: field.default for field in dataclasses.fields(make)}
    given = dict(_setting(text, setting, fields) for setting in settings)
    if batch is not None and "batch" in fields:
        given = {"batch": batch} | given
    return make(**given)


def _setting(text: str, setting: str, fields: Mapping[str, object]) -> tuple[str, object]:
    key, equals, value = setting.partition("=")
    if not equals or key not in fields:
        has = ", ".join(sorted(fields)) or "no parameters"
        raise InputError(f"cannot read {setting!r} in the method {text!r}: write name:parameter=value; it has {has}")
    if key == "step":
        return key, STEPS[checks.one_of("step", value, STEPS)]()
    if isinstance(fields[key], bool):
        return key, checks.one_of("value of " + key, value.lower(), ("true", "false")) == "true"
    for kind in (int, float):
        try:
            return key, kind(value)
        except ValueError:
            continue
    return key, value


@dataclass(frozen=True)
class Tuned:
    """A method with its own step times a constant; parameters that depend on the step are scaled with it."""

    method: Recipe
    factor: float

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        """Prepare the method, then scale it."""
        method = self.method.prepare(f, C, budget)
        if self.factor == 1:
            return method
        scaled = replace(method, step=Scaled(method.step, self.factor))
        if isinstance(method.gradient, Substitute):
            return replace(scaled, gradient=replace(method.gradient, scale=self.factor))
        return scaled
