"""Step rules: eta_k in [0, 1]."""

from extremal.steps.adaptive import LineSearch, ShortStep
from extremal.steps.base import Direction, Plan, Step, check_step
from extremal.steps.schedules import Anytime, InverseSqrt, OpenLoop, SmallBatch, TwoPhase

__all__ = [
    "Anytime", "Direction", "InverseSqrt", "LineSearch", "OpenLoop", "Plan", "ShortStep", "SmallBatch", "Step", "TwoPhase",
    "check_step",
]  # fmt: skip
