"""The named methods: each a gradient estimator, a move and a step rule."""

from extremal.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
