"""A step rule times a constant: how steps are tuned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from extremal import checks
from extremal.gradients.base import Phase
from extremal.steps.base import Direction, Plan, Scheduled, Step, check_step
from extremal.support.kinds import Numbers


@dataclass(frozen=True)
class Scaled(Step):
    """Another rule times a constant: eta_k = min(1, factor * rule_k).

    Theory fixes the shape of a step; the constant before it is what people tune.

    Parameters
    ----------
    step : Step
        The rule.
    factor : float
        Positive.

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
    """The steps of many iterations at once, for rules that are fixed in advance and take arrays of iterations; None for others.

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
    """Whether the rule answers for several iterations at once, with arrays in the phase."""
    k = np.arange(2)
    phase = Phase(np.zeros_like(k), k, np.full_like(k, 2))  # type: ignore[arg-type]
    try:
        return np.shape(step.at(k, phase)) in ((), k.shape)
    except (TypeError, ValueError, AttributeError):
        return False
