"""What an oracle answers: extreme points, kept as small as their structure allows."""

from extremal.vertices.base import Vertex, dot64, least
from extremal.vertices.composed import Chord, Combination
from extremal.vertices.low_rank import LowRank, RankOne
from extremal.vertices.plain import Coordinate, DenseVertex, SparseVertex
from extremal.vertices.stacks import Stack, stack

__all__ = [
    "Chord", "Combination", "Coordinate", "DenseVertex", "LowRank", "RankOne", "SparseVertex", "Stack", "Vertex", "dot64",
    "least", "stack",
]  # fmt: skip
