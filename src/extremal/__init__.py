"""extremal: projection-free learning.

Minimise a finite sum over a convex set that is known through its linear minimisation oracle:

    import extremal as ex
    f = ex.LinearModel(ex.Logistic(), A, y)
    r = ex.minimize(f, ex.L1Ball(20.0), method=ex.SarahFW(batch=227), max_grads=100 * f.n)
    r.x, r.value, r.gap        # exact: for convex f, f(x) - min f <= gap
"""

from typing import TYPE_CHECKING

from extremal.lazy import attach

if TYPE_CHECKING:
    from extremal import datasets as datasets
    from extremal.active import ActiveSet
    from extremal.checks import InputError, NonFiniteError
    from extremal.completion import MatrixCompletion
    from extremal.data import CSR, Dense
    from extremal.driver import minimize
    from extremal.entries import Entries
    from extremal.factored import FactoredMatrix
    from extremal.glm_losses import Poisson, Quantile
    from extremal.gradients import (
        Full,
        Growing,
        LargeTableWarning,
        MiniBatch,
        Momentum,
        Penalised,
        Pool,
        Sag,
        Saga,
        SagaSarah,
        Sarah,
        Spider,
        Storm,
        Substitute,
        Svrg,
        Tracking,
        ZerothOrder,
        complete,
        metropolis,
        ring,
    )
    from extremal.intercepts import InterceptModel
    from extremal.laws import Doubling, EpochLength, EpochTolerance, PowerLaw, Telescoping
    from extremal.losses import Huber, Logistic, NonlinearLeastSquares, Squared
    from extremal.manifolds import SPD, Euclidean
    from extremal.many import ManyResult, least_squares_many
    from extremal.methods import (
        CGS,
        DMFW,
        FCGS,
        FZCGS,
        FZFW,
        NCGS,
        NCGSVR,
        SCGS,
        SFW,
        STORC,
        SVFW,
        SVRF,
        SVRFW,
        Auto,
        AwayFW,
        BlendedPairwiseFW,
        CoptMomentumSFW,
        FrankWolfe,
        FullyCorrectiveFW,
        InFaceFW,
        LowRankFW,
        LuFreundSFW,
        Method,
        MomentumSFW,
        MostFW,
        NegiarSFW,
        NewtonFW,
        OneSampleSFW,
        OnlineFW,
        PairwiseFW,
        RiemannianSFW,
        SagaFW,
        SagaSarahFW,
        SarahFW,
        SpiderFW,
        SpiderRFW,
        VRSliding,
    )
    from extremal.moves import (
        AcceleratedSliding,
        AnchoredSliding,
        AtomNewton,
        Away,
        BlendedPairwise,
        BoxNewton,
        Consensus,
        DoubleSliding,
        FactorCorrective,
        FullyCorrective,
        GeodesicMove,
        InFaceBlended,
        InFacePairwise,
        Pairwise,
        Sliding,
        SpikeNewton,
        VertexMove,
        WarmSliding,
    )
    from extremal.multi_losses import Multinomial, MultiTask
    from extremal.objective import LinearModel
    from extremal.paths import path
    from extremal.result import Calls, Certificate, Record, Result, Status, Trace
    from extremal.sampling import Sampler
    from extremal.separable import Separable
    from extremal.sets import (
        AffineCut,
        Birkhoff,
        BoundedL1Ball,
        Box,
        BudgetBox,
        CappedSimplex,
        Columns,
        ConvexHull,
        ConvexSet,
        ElasticBall,
        FacedProduct,
        FacedRows,
        Fantope,
        GroupBall,
        Hypersimplex,
        IntegerHull,
        KNormBall,
        KSparseBall,
        KSupportBall,
        L1Ball,
        L2Ball,
        LatentGroupBall,
        LinearImage,
        LinfBall,
        LoewnerInterval,
        LpBall,
        Matchings,
        MaxNormBall,
        MinkowskiSum,
        Monotone,
        NuclearBall,
        Oracle,
        OwlBall,
        PathPolytope,
        Polytope,
        Product,
        Rows,
        ScaledSet,
        ShiftedSet,
        Simplex,
        SpanningTrees,
        Spectrahedron,
        SpectralBall,
        Symmetrised,
        TransportPolytope,
        UnitSimplex,
        WeightedL1Ball,
    )
    from extremal.solver import State, iterate
    from extremal.spd import KarcherMean
    from extremal.steps import (
        Anytime,
        Decay,
        EpochHarmonic,
        EpochOpenLoop,
        FullStep,
        InverseSqrt,
        LineSearch,
        LuFreundStep,
        OpenLoop,
        Scaled,
        ShortStep,
        SmallBatch,
        TwoPhase,
    )
    from extremal.vertices import Combination, Coordinate, DenseVertex, LowRank, RankOne, SparseVertex
else:
    __getattr__, __dir__ = attach(__name__, {
        "active": "ActiveSet",
        "checks": "InputError NonFiniteError",
        "completion": "MatrixCompletion",
        "data": "CSR Dense",
        "datasets": "",
        "driver": "minimize",
        "entries": "Entries",
        "factored": "FactoredMatrix",
        "gradients": (
            "Full Growing LargeTableWarning MiniBatch Momentum Penalised Pool Sag Saga SagaSarah Sarah Spider Storm "
            "Substitute Svrg Tracking ZerothOrder complete metropolis ring"
        ),
        "laws": "Doubling EpochLength EpochTolerance PowerLaw Telescoping",
        "glm_losses": "Poisson Quantile",
        "intercepts": "InterceptModel",
        "losses": "Huber Logistic NonlinearLeastSquares Squared",
        "manifolds": "SPD Euclidean",
        "many": "ManyResult least_squares_many",
        "methods": (
            "CGS DMFW FCGS FZCGS FZFW NCGS NCGSVR SCGS SFW STORC SVFW SVRF SVRFW Auto AwayFW BlendedPairwiseFW "
            "CoptMomentumSFW FrankWolfe FullyCorrectiveFW InFaceFW LowRankFW LuFreundSFW Method MomentumSFW MostFW NegiarSFW "
            "NewtonFW OneSampleSFW OnlineFW PairwiseFW RiemannianSFW SagaFW SagaSarahFW SarahFW SpiderFW SpiderRFW VRSliding"
        ),
        "moves": (
            "AcceleratedSliding AnchoredSliding AtomNewton Away BlendedPairwise BoxNewton Consensus DoubleSliding "
            "FactorCorrective FullyCorrective GeodesicMove InFaceBlended InFacePairwise Pairwise Sliding SpikeNewton "
            "VertexMove WarmSliding"
        ),
        "multi_losses": "Multinomial MultiTask",
        "objective": "LinearModel",
        "paths": "path",
        "result": "Calls Certificate Record Result Status Trace",
        "sampling": "Sampler",
        "separable": "Separable",
        "sets": (
            "AffineCut Birkhoff BoundedL1Ball Box BudgetBox CappedSimplex Columns ConvexHull ConvexSet ElasticBall "
            "FacedProduct FacedRows Fantope GroupBall Hypersimplex IntegerHull KNormBall KSparseBall KSupportBall L1Ball "
            "L2Ball LatentGroupBall LinearImage LinfBall LoewnerInterval LpBall Matchings MaxNormBall MinkowskiSum Monotone "
            "NuclearBall Oracle OwlBall PathPolytope Polytope Product Rows ScaledSet ShiftedSet Simplex SpanningTrees "
            "Spectrahedron SpectralBall Symmetrised TransportPolytope UnitSimplex WeightedL1Ball"
        ),
        "solver": "State iterate",
        "spd": "KarcherMean",
        "steps": (
            "Anytime Decay EpochHarmonic EpochOpenLoop FullStep InverseSqrt LineSearch LuFreundStep OpenLoop Scaled "
            "ShortStep SmallBatch TwoPhase"
        ),
        "vertices": "Combination Coordinate DenseVertex LowRank RankOne SparseVertex",
    })  # fmt: skip

__version__ = "0.1.0"

__all__ = [
    "CGS", "CSR", "DMFW", "FCGS", "FZCGS", "FZFW", "NCGS", "NCGSVR", "SCGS", "SFW", "SPD", "STORC", "SVFW", "SVRF", "SVRFW",
    "AcceleratedSliding", "ActiveSet", "AffineCut", "AnchoredSliding", "Anytime", "AtomNewton", "Auto", "Away", "AwayFW",
    "Birkhoff", "BlendedPairwise", "BlendedPairwiseFW", "BoundedL1Ball", "Box", "BoxNewton", "BudgetBox", "Calls",
    "CappedSimplex", "Certificate", "Columns", "Combination", "Consensus", "ConvexHull", "ConvexSet", "Coordinate",
    "CoptMomentumSFW", "Decay", "Dense", "DenseVertex", "DoubleSliding", "Doubling", "ElasticBall", "Entries", "EpochHarmonic",
    "EpochLength", "EpochOpenLoop", "EpochTolerance", "Euclidean", "FacedProduct", "FacedRows", "FactorCorrective",
    "FactoredMatrix", "Fantope", "FrankWolfe", "Full", "FullStep", "FullyCorrective", "FullyCorrectiveFW", "GeodesicMove",
    "GroupBall", "Growing", "Huber", "Hypersimplex", "InFaceBlended", "InFaceFW", "InFacePairwise", "InputError", "IntegerHull",
    "InterceptModel", "InverseSqrt", "KNormBall", "KSparseBall", "KSupportBall", "KarcherMean", "L1Ball", "L2Ball",
    "LargeTableWarning", "LatentGroupBall", "LineSearch", "LinearImage", "LinearModel", "LinfBall", "LoewnerInterval",
    "Logistic", "LowRank", "LowRankFW", "LpBall", "LuFreundSFW", "LuFreundStep", "ManyResult", "Matchings", "MatrixCompletion",
    "MaxNormBall", "Method", "MiniBatch", "MinkowskiSum", "Momentum", "MomentumSFW", "Monotone", "MostFW", "MultiTask",
    "Multinomial", "NegiarSFW", "NewtonFW", "NonFiniteError", "NonlinearLeastSquares", "NuclearBall", "OneSampleSFW",
    "OnlineFW", "OpenLoop", "Oracle", "OwlBall", "Pairwise", "PairwiseFW", "PathPolytope", "Penalised", "Poisson", "Polytope",
    "Pool", "PowerLaw", "Product", "Quantile", "RankOne", "Record", "Result", "RiemannianSFW", "Rows", "Sag", "Saga", "SagaFW",
    "SagaSarah", "SagaSarahFW", "Sampler", "Sarah", "SarahFW", "Scaled", "ScaledSet", "Separable", "ShiftedSet", "ShortStep",
    "Simplex", "Sliding", "SmallBatch", "SpanningTrees", "SparseVertex", "Spectrahedron", "SpectralBall", "Spider", "SpiderFW",
    "SpiderRFW", "SpikeNewton", "Squared", "State", "Status", "Storm", "Substitute", "Svrg", "Symmetrised", "Telescoping",
    "Trace", "Tracking", "TransportPolytope", "TwoPhase", "UnitSimplex", "VRSliding", "VertexMove", "WarmSliding",
    "WeightedL1Ball", "ZerothOrder", "complete", "iterate", "least_squares_many", "metropolis", "minimize", "path", "ring",
]  # fmt: skip
