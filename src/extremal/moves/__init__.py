"""Moves: where the next gradient is wanted, and how the iterate moves given one."""

from extremal.moves.base import Move, Point
from extremal.moves.consensus import Consensus
from extremal.moves.geodesic import GeodesicMove
from extremal.moves.sliding import AcceleratedSliding, DoubleSliding, Sliding
from extremal.moves.vertex import VertexMove

__all__ = ["AcceleratedSliding", "Consensus", "DoubleSliding", "GeodesicMove", "Move", "Point", "Sliding", "VertexMove"]
