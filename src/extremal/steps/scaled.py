"""A step rule times a constant: how steps are tuned."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from extremal import checks
from extremal.steps.base import Direction, Plan, Step, check_step


@dataclass(frozen=True)
class Scaled:
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
    >>> ex.Scaled(ex.OpenLoop(), 0.1).eta(0, None), ex.Scaled(ex.OpenLoop(), 3).eta(0, None)
    (0.1, 1.0)
    """

    step: Step
    factor: float

    def __post_init__(self):
        check_step("Scaled", self.step)
        checks.fix(self, factor=checks.positive("Scaled", "factor", self.factor))

    def bind(self, plan: Plan) -> Self:
        """The rule bound."""
        return replace(self, step=self.step.bind(plan))

    def eta(self, k: int, direction: Direction) -> float:
        """factor * rule, at most 1."""
        return min(1.0, self.factor * self.step.eta(k, direction))
