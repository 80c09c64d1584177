"""Points whose constraints hold exactly, in floating point and without a tolerance: the last step of a fit."""

from extremal.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
