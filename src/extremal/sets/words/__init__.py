"""Constraints as users write them: words, bounds by feature, matrices and sets, read by one grammar.

Estimators, ``solve --set``, ``compare --set`` and the laboratory all read them here. `names` has the one table of words.
"""

from extremal.sets.words.read import Reading, read_constraint
from extremal.sets.words.words import check_words

__all__ = ["Reading", "check_words", "read_constraint"]
