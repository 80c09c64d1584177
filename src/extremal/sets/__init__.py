"""Convex sets, each known by its linear minimisation oracle."""

from extremal.sets.base import ConvexSet, Faced, Projectable, Warm
from extremal.sets.norm_balls import L1Ball, L2Ball, LinfBall
from extremal.sets.parse import SETS, parse
from extremal.sets.simplices import Box, Simplex
from extremal.sets.spectral import LoewnerInterval

__all__ = [
    "SETS", "Box", "ConvexSet", "Faced", "L1Ball", "L2Ball", "LinfBall", "LoewnerInterval", "Projectable", "Simplex", "Warm", "parse",
]  # fmt: skip
