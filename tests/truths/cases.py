"""Every public part of the library as instances, and plain numpy truths to hold them against.

A new public class is one more instance in its list here; test_architecture.py fails as long as it is missing. A new loss or
set also gets its formula in `truth`, or in `minimum`, `project` and `corners`: written from the definition, not from the code.
"""

from __future__ import annotations

import atexit
import itertools
import math
import shutil
import tempfile
from dataclasses import replace

import numpy as np
import scipy.sparse as sp

import extremal as ex
from extremal.methods.method import Budget

N, DIM = 60, 8


def _matrix() -> np.ndarray:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((N, DIM)) * (rng.random((N, DIM)) < 0.6)
    A[3] = 0.0  # an empty row
    return A


MATRIX = _matrix()
LOWER, UPPER = np.linspace(-1.0, 0.0, DIM), np.linspace(0.5, 2.0, DIM)

DATA = (
    ex.data.Dense(MATRIX),
    ex.data.CSR(sp.csr_array(MATRIX)),
    ex.data.Dense(MATRIX.astype(np.float32)),
    ex.data.CSR(sp.csr_array(MATRIX.astype(np.float32))),
)


def _shards() -> ex.ShardDir:
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return ex.ShardDir.build((MATRIX, np.ones(N)), folder)


SPECIAL_DATA = (ex.Entries([0, 1], [1, 0], (2, 3)), _shards())  # see test_entries.py and test_directory.py
LOSSES = (ex.Logistic(), ex.NonlinearLeastSquares(), ex.Squared(), ex.Huber(), ex.Huber(0.3))
SPECIAL_LOSSES = (ex.Quantile(0.8, 0.5), ex.Quantile(0.5, 2.0), ex.Poisson(3.0))
MULTI_LOSSES = (ex.Multinomial(3), ex.MultiTask(ex.Squared(), 2))  # of several margins a row, see test_outputs.py
SETS = (
    ex.L1Ball(2.0),
    ex.L2Ball(1.5),
    ex.LinfBall(0.5),
    ex.Simplex(),
    ex.Simplex(3.0),
    ex.Box(-1.0, 2.0),
    ex.Box(LOWER, UPPER),
)
VERTICES = (
    ex.points.Coordinate(2, -1.5, (DIM,)),
    ex.points.DenseVertex(np.linspace(-1.0, 1.0, DIM)),
    ex.points.SparseVertex(np.array([1, 4]), np.array([2.0, -0.5]), (DIM,)),
    ex.points.Combination(
        ((2.0, ex.points.Coordinate(2, -1.5, (DIM,))), (-0.5, ex.points.DenseVertex(np.linspace(-1.0, 1.0, DIM))))
    ),
)
MATRIX_VERTICES = (
    ex.points.RankOne(np.linspace(-1.0, 1.0, 4), np.linspace(0.0, 2.0, 3)),
    ex.points.LowRank(np.arange(8.0).reshape(4, 2), np.arange(6.0).reshape(3, 2) - 2),
)
GRADIENTS = (
    ex.gradients.Full(),
    ex.gradients.Sarah(batch=5, p=0.2),
    ex.gradients.Sarah(batch=7, p=0.1, replace=True),
    ex.gradients.SagaSarah(batch=5, lam=0.1),
    ex.gradients.SagaSarah(batch=5, lam=0.1, start="cold"),
    ex.gradients.SagaSarah(batch=7, lam=0.3, replace=True),
    ex.gradients.MiniBatch(batch=5),
    ex.gradients.MiniBatch(batch=7, replace=True),
    ex.gradients.MiniBatch(batch=ex.laws.PowerLaw(1, 1, 1)),
    ex.gradients.Pool(batch=3),
    ex.gradients.Momentum(batch=5),
    ex.gradients.Momentum(batch=7, replace=True),
    ex.gradients.Storm(batch=5),
    ex.gradients.Storm(batch=7, replace=True),
    ex.gradients.Svrg(batch=5, epoch=6),
    ex.gradients.Svrg(batch=ex.laws.PowerLaw(2, 1, 1), epoch=ex.laws.Doubling(), replace=True),
    ex.gradients.Spider(batch=5, epoch=6),
    ex.gradients.Spider(batch=ex.laws.EpochLength(), epoch=ex.laws.Doubling()),
    ex.gradients.Spider(batch=7, epoch=4, restart=20, replace=True),
    ex.gradients.Sag(batch=5),
    ex.gradients.Sag(batch=7, replace=True),
    ex.gradients.Sag(batch=5, rho=ex.laws.PowerLaw(1.0, 2.0, -0.5)),
    ex.gradients.Saga(batch=5),
    ex.gradients.Saga(batch=7, two_batches=True, replace=True),
    ex.gradients.ShuffledSarah(batch=5),
    ex.gradients.Substitute(batch=5),
    ex.gradients.Substitute(batch=7, replace=True),
)
MOVES = (
    ex.moves.VertexMove(),
    ex.moves.Sliding(beta=2.0, tol=0.01),
    ex.moves.AcceleratedSliding(beta=ex.laws.PowerLaw(3.0, 2.0, -1.0), tol=ex.laws.Telescoping(4.0)),
    ex.moves.DoubleSliding(beta=ex.laws.PowerLaw(4.0, 1.0, -1.0), beta_y=2.0, tol=0.01),
    ex.moves.GeodesicMove(),
    ex.moves.Away(),
    ex.moves.Pairwise(),
    ex.moves.BlendedPairwise(),
    ex.moves.Boosted(),
    ex.moves.FullyCorrective(),
    ex.moves.WarmSliding(beta=2.0),
    ex.moves.AnchoredSliding(beta=2.0, lean=0.2, epoch=5),
)
COMPRESSORS = (ex.gradients.TopK(3), ex.gradients.RandomK(3), ex.gradients.Natural(), ex.gradients.NoCompression())
LAWS = (ex.laws.PowerLaw(), ex.laws.Telescoping(1.0), ex.laws.Doubling(), ex.laws.EpochLength(), ex.laws.EpochTolerance(1.0))
LAWS = (
    ex.laws.PowerLaw(),
    ex.laws.Telescoping(1.0),
    ex.laws.Doubling(),
    ex.laws.EpochLength(),
    ex.laws.EpochTolerance(1.0),
    ex.laws.Geometric(),
)
MANIFOLDS = (ex.points.Euclidean(), ex.points.SPD())
STEPS = (
    ex.steps.OpenLoop(),
    ex.steps.LogOpenLoop(),
    ex.steps.Decay(2, 8),
    ex.steps.FullStep(),
    ex.steps.EpochOpenLoop(),
    ex.steps.EpochHarmonic(),
    ex.steps.LuFreundStep(),
    ex.steps.TwoPhase(),
    ex.steps.Anytime(),
    ex.steps.InverseSqrt(),
    ex.steps.SmallBatch(),
    ex.steps.ShortStep(),
    ex.steps.LineSearch(),
    ex.steps.Secant(),
    ex.steps.Backtracking(),
    ex.steps.Scaled(ex.steps.OpenLoop(), 0.5),
)
SPECIAL_STEPS = (ex.steps.SelfConcordant(), ex.steps.BatchCurvature())
METHODS = (
    ex.FrankWolfe(),
    ex.FrankWolfe(step=ex.steps.ShortStep()),
    ex.FrankWolfe(step=ex.steps.LineSearch()),
    ex.SarahFW(),
    ex.SarahFW(batch=1, replace=True),
    ex.SarahFW(batch=20, step=ex.steps.Anytime()),
    ex.SagaSarahFW(),
    ex.SagaSarahFW(batch=20, start="cold"),
    ex.SagaSarahFW(batch=20, lam=0.5, replace=True),
    ex.OnlineFW(),
    ex.SCGS(),
    ex.SCGS(batch=2),
    ex.CGS(),
    ex.SFW(),
    ex.SVFW(),
    ex.SagaFW(),
    ex.SVRF(),
    ex.SVRF(batch=3),
    ex.STORC(),
    ex.STORC(batch=3),
    ex.NCGS(),
    ex.NCGSVR(),
    ex.SpiderFW(),
    ex.FCGS(),
    ex.MomentumSFW(batch=5),
    ex.CoptMomentumSFW(batch=5),
    ex.OneSampleSFW(batch=5),
    ex.NegiarSFW(batch=5),
    ex.LuFreundSFW(batch=5),
    ex.ShuffledSarahFW(batch=5),
    ex.MostFW(batch=5),
    ex.RiemannianSFW(),
    ex.SVRFW(),
    ex.SpiderRFW(),
    ex.AwayFW(),
    ex.PairwiseFW(),
    ex.BlendedPairwiseFW(),
    ex.BoostFW(),
    ex.FullyCorrectiveFW(),
    ex.AwaySFW(batch=5),
    ex.VRAwayFW(batch=5),
    ex.VRPairwiseFW(batch=5),
    ex.VRBlendedFW(batch=5),
    ex.Method(gradient=ex.gradients.Sarah(batch=5, p=0.3), step=ex.steps.LineSearch()),
)

# Parts that do not fit the contracts over the lists above, because they have many agents, estimate gradients from values, follow
# a second constraint, live on a manifold, want a set with faces or one made of blocks: each has a file of tests of its own.
SPECIAL_GRADIENTS = (
    ex.gradients.Growing(parts=2),
    ex.gradients.Streamed(parts=2),
    ex.gradients.Expanded(),
    ex.gradients.ZerothOrder(ex.gradients.Spider(5, 6), mu=1e-3),
    ex.gradients.Tracking(ex.gradients.Storm(5), ex.gradients.ring(4)),
    ex.gradients.EF21(ex.gradients.Full(), ex.gradients.TopK(3)),
    ex.gradients.Marina(ex.gradients.Sarah(5, 0.3), ex.gradients.Natural(), p=0.2),
    ex.gradients.Penalised(ex.gradients.Storm(5), G=np.ones((1, DIM)), upper=0.5),
    ex.gradients.Reshuffled(ex.gradients.Saga(batch=5)),
    ex.gradients.TrackedSag(batch=5),
    ex.gradients.TrackedSaga(batch=5),
    ex.gradients.Saga(batch=5, curved=True),
    ex.gradients.Partial(blocks=2),
)
SPECIAL_MOVES = (
    ex.moves.Consensus(ex.gradients.ring(4)),
    ex.moves.InFacePairwise(),
    ex.moves.InFaceBlended(),
    ex.moves.Returning(ex.moves.InFaceBlended()),
    ex.moves.FactorCorrective(),
    ex.moves.SpikeNewton(),
    ex.moves.AtomNewton(),
    ex.moves.BoxNewton(),
    ex.moves.ProjectedNewton(ex.L2Ball(1.0)),
    ex.moves.RowNewton(ex.Monotone(-1.0, 1.0)),
    ex.moves.Blockwise(),
)
SPECIAL_METHODS = (
    ex.DMFW(batch=5),
    ex.EF21FW(),
    ex.MarinaFW(),
    ex.FZFW(),
    ex.FZCGS(),
    ex.InFaceFW(),
    ex.TrackedFW(),
    ex.TrackedSagaFW(),
    ex.SagaFaceFW(),
    ex.VRSliding(),
    ex.LowRankFW(),
    ex.NewtonFW(),
    ex.BlockFW(),
    ex.Auto(),
)
SPECIAL_SETS = (ex.LoewnerInterval(np.eye(2), 3 * np.eye(2)), ex.AffineCut(ex.Simplex(), np.ones((1, 3)), upper=0.5))
SPECIAL_OBJECTIVES = (
    ex.KarcherMean([np.eye(2), 2 * np.eye(2)]),
    ex.InterceptModel(ex.Squared(), MATRIX, MATRIX[:, 0]),
    ex.QuadraticModel(MATRIX),
)


def targets(loss) -> np.ndarray:
    """Targets for MATRIX that the loss accepts."""
    rng = np.random.default_rng(1)
    y = MATRIX @ rng.standard_normal(DIM) + 0.5 * rng.standard_normal(N)
    return y if loss.labels is None else np.where(y > 0, loss.labels[1], loss.labels[0])


def model(loss, kind: str = "dense", dtype=np.float64) -> ex.LinearModel:
    """A linear model on MATRIX, kept dense or sparse."""
    A = MATRIX.astype(dtype)
    return ex.LinearModel(loss, sp.csr_array(A) if kind == "csr" else A, targets(loss))


def separable(loss, A: np.ndarray = MATRIX, y: np.ndarray | None = None) -> ex.Separable:
    """The same sum, by callables that know nothing of the library's loss and data."""
    (value, deriv), y = truth(loss), targets(loss) if y is None else y
    return ex.Separable(
        len(A),
        A.shape[1],
        grad=lambda x, idx: deriv(A[idx] @ x, y[idx])[:, None] * A[idx],
        value=lambda x, idx: value(A[idx] @ x, y[idx]),
        convex=loss.convex,
        smoothness=loss.curvature * float(np.linalg.eigvalsh(A.T @ A)[-1]) / len(A),
    )


def slides(method) -> bool:
    """Whether an iteration may take more than one LMO."""
    move = method.prepare(model(ex.Squared()), ex.L1Ball(2.0).on(DIM), Budget(max_iter=10)).move
    return not isinstance(move, (ex.moves.VertexMove, ex.moves.GeodesicMove))


def linear_only(part) -> bool:
    """Whether a method or an estimator follows the margins of a linear model."""
    return isinstance(part, (ex.LuFreundSFW, ex.gradients.Substitute))


def deviation(loss, C) -> float:
    """sigma: the root mean square distance of a component gradient at the start from the gradient there."""
    x = C.on(DIM).start()
    rows = truth(loss)[1](MATRIX @ x, targets(loss))[:, None] * MATRIX
    return float(np.sqrt(((rows - rows.mean(axis=0)) ** 2).sum(axis=1).mean()))


def for_separable(method, loss, C):
    """The same method for an objective without data: with the constants that it would have taken from the data."""
    if isinstance(method, (ex.AwayFW, ex.PairwiseFW, ex.BlendedPairwiseFW, ex.BoostFW)):
        return replace(method, step=ex.steps.LineSearch())
    open_sigma = isinstance(method, ex.SCGS) and method.sigma is None and method.batch is None
    return replace(method, sigma=deviation(loss, C)) if open_sigma else method


def truth(loss):
    """Value and derivative of a loss as its docstring writes them; unsafe at large margins."""
    match loss:
        case ex.Logistic():
            return lambda z, y: np.log(1 + np.exp(-y * z)), lambda z, y: -y / (1 + np.exp(y * z))
        case ex.NonlinearLeastSquares():
            q = lambda z: 1 / (1 + np.exp(z))  # noqa: E731
            return lambda z, y: (y - q(z)) ** 2, lambda z, y: 2 * (y - q(z)) * q(z) * (1 - q(z))
        case ex.Squared():
            return lambda z, y: (z - y) ** 2 / 2, lambda z, y: z - y
        case ex.Huber(delta=t):
            line = lambda r: np.where(np.abs(r) <= t, r**2 / 2, t * (np.abs(r) - t / 2))  # noqa: E731
            return lambda z, y: line(z - y), lambda z, y: np.clip(z - y, -t, t)
        case ex.Quantile(q=q, width=w):
            slope = lambda z, y: np.where(y - z > q * w, q, np.where(y - z < (q - 1) * w, q - 1, (y - z) / w))  # noqa: E731
            height = lambda s, r: np.maximum(q * (r - w * s), (q - 1) * (r - w * s)) + w * s**2 / 2  # noqa: E731
            return lambda z, y: height(slope(z, y), y - z), lambda z, y: -slope(z, y)
        case ex.Poisson(cap=c):
            e, t = math.exp(c), lambda z: np.maximum(z - c, 0)
            mean = lambda z: np.where(z <= c, np.exp(z), e * (1 + t(z) + t(z) ** 2 / 2))  # noqa: E731
            rest = lambda y: y * np.log(np.where(y > 0, y, 1.0)) - y  # noqa: E731
            return lambda z, y: mean(z) - y * z + rest(y), lambda z, y: np.where(z <= c, np.exp(z), e * (1 + t(z))) - y
    raise KeyError(loss)


def full(loss, x: np.ndarray) -> tuple[float, np.ndarray]:
    """f(x) and grad f(x) on MATRIX, in float64."""
    (value, deriv), z = truth(loss), MATRIX @ np.asarray(x, np.float64)
    return float(value(z, targets(loss)).mean()), MATRIX.T @ deriv(z, targets(loss)) / N


def minimum(C, g: np.ndarray) -> float:
    """min over s in C of <g, s>."""
    g = np.asarray(g, np.float64).reshape(-1)
    match C:
        case ex.L1Ball(radius=r):
            return -r * np.abs(g).max()
        case ex.L2Ball(radius=r):
            return -r * float(np.linalg.norm(g))
        case ex.LinfBall(radius=r):
            return -r * np.abs(g).sum()
        case ex.Simplex(total=t):
            return t * g.min()
        case ex.Box(lower=lo, upper=up):
            return float(np.minimum(np.ravel(lo) * g, np.ravel(up) * g).sum())
    raise KeyError(C)


def gap(C, x: np.ndarray, g: np.ndarray) -> float:
    """The Frank-Wolfe gap <g, x> - min over s of <g, s>."""
    return float(np.asarray(x, np.float64).reshape(-1) @ g.reshape(-1)) - minimum(C, g)


def project(C, v: np.ndarray) -> np.ndarray:
    """The point of C nearest to the vector v."""
    match C:
        case ex.L1Ball(radius=r):
            return v if np.abs(v).sum() <= r else np.sign(v) * _on_simplex(np.abs(v), r)
        case ex.L2Ball(radius=r):
            return v * min(1.0, r / max(np.linalg.norm(v), 1e-300))
        case ex.LinfBall(radius=r):
            return np.clip(v, -r, r)
        case ex.Simplex(total=t):
            return _on_simplex(v, t)
        case ex.Box(lower=lo, upper=up):
            return np.clip(v, lo, up)
    raise KeyError(C)


def _on_simplex(v: np.ndarray, total: float) -> np.ndarray:
    u = np.sort(v)[::-1]
    thresholds = (np.cumsum(u) - total) / np.arange(1, len(u) + 1)
    return np.maximum(v - thresholds[np.flatnonzero(u > thresholds)[-1]], 0.0)


def corners(C, d: int) -> np.ndarray:
    """The extreme points of C in d dimensions, one per row; a sample of them for the Euclidean ball."""
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=d)))
    match C:
        case ex.L1Ball(radius=r):
            return r * np.vstack([np.eye(d), -np.eye(d)])
        case ex.L2Ball(radius=r):
            return r * np.vstack([np.eye(d), -np.eye(d), signs / np.sqrt(d)])
        case ex.LinfBall(radius=r):
            return r * signs
        case ex.Simplex(total=t):
            return t * np.eye(d)
        case ex.Box(lower=lo, upper=up):
            return np.where(signs > 0, np.ravel(up), np.ravel(lo))
    raise KeyError(C)


def optimum(loss, C) -> float:
    """f* on MATRIX by projected gradients with momentum, certified to 1e-9 by its own gap."""
    L = loss.curvature * float(np.linalg.eigvalsh(MATRIX.T @ MATRIX)[-1]) / N
    x = v = project(C, np.zeros(DIM))
    best, t = full(loss, x)[0], 1.0
    for _ in range(20_000):
        new = project(C, v - full(loss, v)[1] / L)
        value, g = full(loss, new)
        if gap(C, new, g) <= 1e-9:
            return value
        t_new = 1.0 if value > best else (1 + np.sqrt(1 + 4 * t * t)) / 2  # restart when f rises
        v, x, t, best = new + (t - 1) / t_new * (new - x), new, t_new, value
    raise AssertionError(f"no reference for {loss} on {C}")
