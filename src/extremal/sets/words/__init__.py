"""Constraints as users write them: words, bounds by feature, matrices and sets, all read by one grammar.

Estimators, ``solve --set``, ``compare --set`` and the laboratory all read constraints here. `names` has the only table of
words.
"""

from extremal.support.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
