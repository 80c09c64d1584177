"""Objectives: finite sums, and their restrictions to some coordinates or atoms."""

from extremal.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
