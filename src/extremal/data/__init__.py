"""Rows: dense, sparse, or entries of a matrix; sparsity lives here and nowhere else."""

from extremal.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
