"""Step rules: eta_k in [0, 1]."""

from extremal.steps.adaptive import LineSearch, ShortStep
from extremal.steps.base import Direction, Plan, Step, check_step, take
from extremal.steps.estimators import EpochHarmonic, EpochOpenLoop, LuFreundStep
from extremal.steps.scaled import Scaled, schedule
from extremal.steps.schedules import (
    Anytime,
    Decay,
    FullStep,
    InverseSqrt,
    OpenLoop,
    SmallBatch,
    TwoPhase,
)

__all__ = [
    "Anytime",
    "Decay",
    "Direction",
    "EpochHarmonic",
    "EpochOpenLoop",
    "FullStep",
    "InverseSqrt",
    "LineSearch",
    "LuFreundStep",
    "OpenLoop",
    "Plan",
    "Scaled",
    "ShortStep",
    "SmallBatch",
    "Step",
    "TwoPhase",
    "check_step",
    "schedule",
    "take",
]  # fmt: skip
