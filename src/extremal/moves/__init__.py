"""Moves: where the next gradient is wanted, and how the iterate moves given one."""

from extremal.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
