"""Gradient estimators: how the next g is made from component gradients."""

from extremal.gradients.base import Estimate, Facts, Gradient
from extremal.gradients.full import Full
from extremal.gradients.saga_sarah import SagaSarah
from extremal.gradients.sarah import Sarah

__all__ = ["Estimate", "Facts", "Full", "Gradient", "SagaSarah", "Sarah"]
