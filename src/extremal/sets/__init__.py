"""Convex sets, each known by its linear minimisation oracle."""

from extremal.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
