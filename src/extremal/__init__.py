"""extremal: projection-free learning.

Minimise a finite sum over a convex set that is known through its linear minimisation oracle:

    import extremal as ex
    f = ex.LinearModel(ex.Logistic(), A, y)
    r = ex.minimize(f, ex.L1Ball(20.0), method=ex.SarahFW(batch=227), max_grads=100 * f.n)
    r.x, r.value, r.gap        # exact: for convex f, f(x) - min f <= gap
"""

from extremal.checks import InputError, NonFiniteError
from extremal.data import CSR, Dense
from extremal.driver import minimize
from extremal.gradients import Full, SagaSarah, Sarah
from extremal.gradients.table import LargeTableWarning
from extremal.losses import Huber, Logistic, NonlinearLeastSquares, Squared
from extremal.methods import FrankWolfe, Method, SagaSarahFW, SarahFW
from extremal.moves import VertexMove
from extremal.objective import LinearModel, Separable
from extremal.result import Calls, Certificate, Record, Result, Status, Trace
from extremal.sampling import Sampler
from extremal.sets import Box, ConvexSet, L1Ball, L2Ball, LinfBall, Simplex
from extremal.solver import State, iterate
from extremal.steps import Anytime, InverseSqrt, LineSearch, OpenLoop, ShortStep, SmallBatch, TwoPhase
from extremal.vertices import Coordinate, DenseVertex

__version__ = "0.1.0"

__all__ = [
    "CSR", "Anytime", "Box", "Calls", "Certificate", "ConvexSet", "Coordinate", "Dense", "DenseVertex", "FrankWolfe",
    "Full", "Huber", "InputError", "InverseSqrt", "L1Ball", "L2Ball", "LargeTableWarning", "LineSearch", "LinearModel",
    "LinfBall", "Logistic", "Method", "NonFiniteError", "NonlinearLeastSquares", "OpenLoop", "Record", "Result",
    "SagaSarah", "SagaSarahFW", "Sampler", "Sarah", "SarahFW", "Separable", "ShortStep", "Simplex", "SmallBatch",
    "Squared", "State", "Status", "Trace", "TwoPhase", "VertexMove", "iterate", "minimize",
]  # fmt: skip
