"""Moves: where to evaluate the next gradient, and how the iterate moves given one."""

from extremal.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
