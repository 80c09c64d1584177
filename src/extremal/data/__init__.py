"""Rows: dense, sparse, or entries of a matrix. Only this package handles sparsity."""

from extremal.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
