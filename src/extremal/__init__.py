"""extremal: projection-free learning.

Minimise a finite sum over a convex set that is known through its linear minimisation oracle:

    import extremal as ex
    f = ex.LinearModel(ex.Logistic(), A, y)
    r = ex.minimize(f, ex.L1Ball(20.0), method=ex.SarahFW(batch=227), max_grads=100 * f.n)
    r.x, r.value, r.gap        # exact: for convex f, f(x) - min f <= gap
"""

from extremal import datasets as datasets
from extremal.active import ActiveSet
from extremal.checks import InputError, NonFiniteError
from extremal.data import CSR, Dense
from extremal.driver import minimize
from extremal.gradients import (
    Full,
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
from extremal.gradients.table import LargeTableWarning
from extremal.laws import Doubling, EpochLength, EpochTolerance, PowerLaw, Telescoping
from extremal.losses import Huber, Logistic, NonlinearLeastSquares, Squared
from extremal.manifolds import SPD, Euclidean
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
    AwayFW,
    BlendedPairwiseFW,
    CoptMomentumSFW,
    FrankWolfe,
    FullyCorrectiveFW,
    InFaceFW,
    LuFreundSFW,
    Method,
    MomentumSFW,
    MostFW,
    NegiarSFW,
    OneSampleSFW,
    OnlineFW,
    PairwiseFW,
    RiemannianSFW,
    SagaFW,
    SagaSarahFW,
    SarahFW,
    SpiderFW,
    SpiderRFW,
)
from extremal.moves import (
    AcceleratedSliding,
    Away,
    BlendedPairwise,
    Consensus,
    DoubleSliding,
    FullyCorrective,
    GeodesicMove,
    InFaceBlended,
    InFacePairwise,
    Pairwise,
    Sliding,
    VertexMove,
)
from extremal.objective import LinearModel
from extremal.result import Calls, Certificate, Record, Result, Status, Trace
from extremal.sampling import Sampler
from extremal.separable import Separable
from extremal.sets import Box, ConvexSet, L1Ball, L2Ball, LinfBall, LoewnerInterval, Simplex
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

__version__ = "0.1.0"

__all__ = [
    "CGS", "CSR", "DMFW", "FCGS", "FZCGS", "FZFW", "NCGS", "NCGSVR", "SCGS", "SFW", "SPD", "STORC", "SVFW", "SVRF", "SVRFW",
    "AcceleratedSliding", "ActiveSet", "Anytime", "Away", "AwayFW", "BlendedPairwise", "BlendedPairwiseFW", "Box", "Calls",
    "Certificate", "Combination", "Consensus", "ConvexSet", "Coordinate", "CoptMomentumSFW", "Decay", "Dense", "DenseVertex",
    "DoubleSliding", "Doubling", "EpochHarmonic", "EpochLength", "EpochOpenLoop", "EpochTolerance", "Euclidean", "FrankWolfe",
    "Full", "FullStep", "FullyCorrective", "FullyCorrectiveFW", "GeodesicMove", "Huber", "InFaceBlended", "InFaceFW",
    "InFacePairwise", "InputError", "InverseSqrt", "KarcherMean", "L1Ball", "L2Ball", "LargeTableWarning", "LineSearch",
    "LinearModel", "LinfBall", "LoewnerInterval", "Logistic", "LowRank", "LuFreundSFW", "LuFreundStep", "Method", "MiniBatch",
    "Momentum", "MomentumSFW", "MostFW", "NegiarSFW", "NonFiniteError", "NonlinearLeastSquares", "OneSampleSFW", "OnlineFW",
    "OpenLoop", "Pairwise", "PairwiseFW", "Penalised", "Pool", "PowerLaw", "RankOne", "Record", "Result", "RiemannianSFW",
    "Sag", "Saga", "SagaFW", "SagaSarah", "SagaSarahFW", "Sampler", "Sarah", "SarahFW", "Scaled", "Separable", "ShortStep",
    "Simplex", "Sliding", "SmallBatch", "SparseVertex", "Spider", "SpiderFW", "SpiderRFW", "Squared", "State", "Status",
    "Storm", "Substitute", "Svrg", "Telescoping", "Trace", "Tracking", "TwoPhase", "VertexMove", "ZerothOrder", "complete",
    "iterate", "metropolis", "minimize", "ring",
]  # fmt: skip
