"""Gradient estimators: how the next g is made from component gradients."""

from extremal.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
