"""Constraints as users write them, in words, by feature, as matrices or as sets: read alike for estimators and commands."""

from extremal.constraints.read import Plan, read_constraint
from extremal.constraints.words import check_words

__all__ = ["Plan", "check_words", "read_constraint"]
