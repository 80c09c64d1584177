"""Moves: where the next gradient is wanted, and how the iterate moves given one."""

from extremal.moves.atoms import Away, BlendedPairwise, Pairwise
from extremal.moves.base import Move, Point
from extremal.moves.consensus import Consensus
from extremal.moves.corrective import FullyCorrective
from extremal.moves.geodesic import GeodesicMove
from extremal.moves.in_face import InFaceBlended, InFacePairwise
from extremal.moves.sliding import AcceleratedSliding, DoubleSliding, Sliding
from extremal.moves.vertex import VertexMove

__all__ = [
    "AcceleratedSliding", "Away", "BlendedPairwise", "Consensus", "DoubleSliding", "FullyCorrective", "GeodesicMove",
    "InFaceBlended", "InFacePairwise", "Move", "Pairwise", "Point", "Sliding", "VertexMove",
]  # fmt: skip
