"""Gradient estimators: how component gradients make the next g."""

from extremal.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
