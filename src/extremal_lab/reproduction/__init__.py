"""Runs over data sets: the paper's experiments, comparisons by users, the demonstration."""

from extremal_lab.reproduction.spec import FIGURES, Figure, Problem

__all__ = ["FIGURES", "Figure", "Problem"]
