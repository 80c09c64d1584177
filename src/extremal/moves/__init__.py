"""Moves: where the next gradient is wanted, and how the iterate moves given one."""

from typing import TYPE_CHECKING

from extremal.lazy import attach

if TYPE_CHECKING:
    from extremal.moves.atoms import Away, BlendedPairwise, Pairwise
    from extremal.moves.base import Move, Point
    from extremal.moves.consensus import Consensus
    from extremal.moves.corrective import FullyCorrective
    from extremal.moves.geodesic import GeodesicMove
    from extremal.moves.in_face import InFaceBlended, InFacePairwise
    from extremal.moves.low_rank import FactorCorrective
    from extremal.moves.newton import SpikeNewton
    from extremal.moves.newton_atoms import AtomNewton
    from extremal.moves.newton_box import BoxNewton
    from extremal.moves.sliding import AcceleratedSliding, DoubleSliding, Sliding
    from extremal.moves.vertex import VertexMove
    from extremal.moves.warm import AnchoredSliding, WarmSliding
else:
    __getattr__, __dir__ = attach(__name__, {
        "atoms": "Away BlendedPairwise Pairwise",
        "base": "Move Point",
        "consensus": "Consensus",
        "corrective": "FullyCorrective",
        "geodesic": "GeodesicMove",
        "in_face": "InFaceBlended InFacePairwise",
        "low_rank": "FactorCorrective",
        "newton": "SpikeNewton",
        "newton_atoms": "AtomNewton",
        "newton_box": "BoxNewton",
        "sliding": "AcceleratedSliding DoubleSliding Sliding",
        "vertex": "VertexMove",
        "warm": "AnchoredSliding WarmSliding",
    })  # fmt: skip

__all__ = [
    "AcceleratedSliding", "AnchoredSliding", "AtomNewton", "Away", "BlendedPairwise", "BoxNewton", "Consensus", "DoubleSliding",
    "FactorCorrective", "FullyCorrective", "GeodesicMove", "InFaceBlended", "InFacePairwise", "Move", "Pairwise", "Point",
    "Sliding", "SpikeNewton", "VertexMove", "WarmSliding",
]  # fmt: skip
