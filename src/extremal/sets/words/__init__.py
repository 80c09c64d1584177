"""Constraints as users write them: words, bounds by feature, matrices and sets, read by one grammar.

Estimators, ``solve --set``, ``compare --set`` and the laboratory all read them here. `names` has the one table of words.
"""

from extremal.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
