"""Moves: where the next gradient is wanted, and how the iterate moves given one."""

from extremal.moves.base import Move, Point
from extremal.moves.vertex import VertexMove

__all__ = ["Move", "Point", "VertexMove"]
