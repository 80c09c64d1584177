"""Reading and writing of files, and data sets by name."""

from extremal.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
