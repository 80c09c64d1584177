"""Losses: elementwise on margins, or on rows of margins."""

from extremal.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
