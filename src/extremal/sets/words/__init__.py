"""Constraints as users write them, in words, by feature, as matrices or as sets: read alike for estimators and commands."""

from extremal.sets.words.read import Reading, read_constraint
from extremal.sets.words.words import check_words

__all__ = ["Reading", "check_words", "read_constraint"]
