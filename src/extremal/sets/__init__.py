"""Convex sets, each known by its linear minimisation oracle."""

from typing import TYPE_CHECKING

from extremal.lazy import attach
from extremal.sets.parse import SETS, named, parse

if TYPE_CHECKING:
    from extremal.sets.base import ConvexSet, Faced, Projectable, Warm
    from extremal.sets.bounded_l1 import BoundedL1Ball
    from extremal.sets.boxes import BudgetBox, CappedSimplex, Hypersimplex
    from extremal.sets.chains import Monotone
    from extremal.sets.columns import Columns
    from extremal.sets.composed import MinkowskiSum, ScaledSet, ShiftedSet
    from extremal.sets.cuts import AffineCut
    from extremal.sets.graphs import Matchings, SpanningTrees
    from extremal.sets.group_balls import GroupBall, LatentGroupBall
    from extremal.sets.images import LinearImage, Symmetrised
    from extremal.sets.loewner import LoewnerInterval
    from extremal.sets.max_norm import MaxNormBall
    from extremal.sets.norm_balls import L1Ball, L2Ball, LinfBall, LpBall, WeightedL1Ball
    from extremal.sets.nuclear import NuclearBall, SpectralBall
    from extremal.sets.oracle import Oracle
    from extremal.sets.paths import PathPolytope
    from extremal.sets.polytopes import ConvexHull, IntegerHull, Polytope
    from extremal.sets.products import FacedProduct, FacedRows, Product, Rows
    from extremal.sets.simplices import Box, Simplex, UnitSimplex
    from extremal.sets.sorted_balls import ElasticBall, OwlBall
    from extremal.sets.sparse_balls import KNormBall, KSparseBall, KSupportBall
    from extremal.sets.symmetric import Fantope, Spectrahedron
    from extremal.sets.transport import Birkhoff, TransportPolytope
else:
    __getattr__, __dir__ = attach(__name__, {
        "base": "ConvexSet Faced Projectable Warm",
        "bounded_l1": "BoundedL1Ball",
        "boxes": "BudgetBox CappedSimplex Hypersimplex",
        "chains": "Monotone",
        "columns": "Columns",
        "composed": "MinkowskiSum ScaledSet ShiftedSet",
        "cuts": "AffineCut",
        "graphs": "Matchings SpanningTrees",
        "group_balls": "GroupBall LatentGroupBall",
        "images": "LinearImage Symmetrised",
        "loewner": "LoewnerInterval",
        "max_norm": "MaxNormBall",
        "norm_balls": "L1Ball L2Ball LinfBall LpBall WeightedL1Ball",
        "nuclear": "NuclearBall SpectralBall",
        "oracle": "Oracle",
        "paths": "PathPolytope",
        "polytopes": "ConvexHull IntegerHull Polytope",
        "products": "FacedProduct FacedRows Product Rows",
        "simplices": "Box Simplex UnitSimplex",
        "sorted_balls": "ElasticBall OwlBall",
        "sparse_balls": "KNormBall KSparseBall KSupportBall",
        "symmetric": "Fantope Spectrahedron",
        "transport": "Birkhoff TransportPolytope",
    })  # fmt: skip

__all__ = [
    "SETS", "AffineCut", "Birkhoff", "BoundedL1Ball", "Box", "BudgetBox", "CappedSimplex", "Columns", "ConvexHull", "ConvexSet",
    "ElasticBall", "Faced", "FacedProduct", "FacedRows", "Fantope", "GroupBall", "Hypersimplex", "IntegerHull", "KNormBall",
    "KSparseBall", "KSupportBall", "L1Ball", "L2Ball", "LatentGroupBall", "LinearImage", "LinfBall", "LoewnerInterval",
    "LpBall", "Matchings", "MaxNormBall", "MinkowskiSum", "Monotone", "NuclearBall", "Oracle", "OwlBall", "PathPolytope",
    "Polytope", "Product", "Projectable", "Rows", "ScaledSet", "ShiftedSet", "Simplex", "SpanningTrees", "Spectrahedron",
    "SpectralBall", "Symmetrised", "TransportPolytope", "UnitSimplex", "Warm", "WeightedL1Ball", "named", "parse",
]  # fmt: skip
