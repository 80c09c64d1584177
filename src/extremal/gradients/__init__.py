"""Gradient estimators: how the next g is made from component gradients."""

from typing import TYPE_CHECKING

from extremal.lazy import attach

if TYPE_CHECKING:
    from extremal.gradients.base import Estimate, Facts, Gradient
    from extremal.gradients.full import Full
    from extremal.gradients.growing import Growing
    from extremal.gradients.minibatch import MiniBatch, Pool
    from extremal.gradients.momentum import Momentum, Storm
    from extremal.gradients.penalty import Penalised
    from extremal.gradients.saga import Sag, Saga
    from extremal.gradients.saga_sarah import SagaSarah
    from extremal.gradients.sarah import Sarah
    from extremal.gradients.spider import Spider
    from extremal.gradients.substitute import Substitute
    from extremal.gradients.svrg import Svrg
    from extremal.gradients.table import LargeTableWarning
    from extremal.gradients.tracking import Tracking, complete, metropolis, ring
    from extremal.gradients.zeroth import ZerothOrder
else:
    __getattr__, __dir__ = attach(__name__, {
        "base": "Estimate Facts Gradient",
        "full": "Full",
        "growing": "Growing",
        "minibatch": "MiniBatch Pool",
        "momentum": "Momentum Storm",
        "penalty": "Penalised",
        "saga": "Sag Saga",
        "saga_sarah": "SagaSarah",
        "sarah": "Sarah",
        "spider": "Spider",
        "substitute": "Substitute",
        "svrg": "Svrg",
        "table": "LargeTableWarning",
        "tracking": "Tracking complete metropolis ring",
        "zeroth": "ZerothOrder",
    })  # fmt: skip

__all__ = [
    "Estimate", "Facts", "Full", "Gradient", "Growing", "LargeTableWarning", "MiniBatch", "Momentum", "Penalised", "Pool",
    "Sag", "Saga", "SagaSarah", "Sarah", "Spider", "Storm", "Substitute", "Svrg", "Tracking", "ZerothOrder", "complete",
    "metropolis", "ring",
]  # fmt: skip
