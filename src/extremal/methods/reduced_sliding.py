"""Variance-reduced sliding: the practical first-order method for large sums."""

from __future__ import annotations

import math
from dataclasses import dataclass

from extremal import checks
from extremal.checks import InputError
from extremal.gradients.base import SomeGradient
from extremal.gradients.reduced import Sarah, Svrg
from extremal.gradients.table import Saga, SagaSarah
from extremal.methods.method import Budget, Checked, Method
from extremal.moves.sliding.prox import Probe, smoothness_shares
from extremal.moves.sliding.warm import AnchoredSliding, WarmSliding
from extremal.objectives.base import Objective, is_factored
from extremal.objectives.margins import MarginModel
from extremal.sets.base import ConvexSet, Projectable
from extremal.steps.schedules import FullStep

ESTIMATORS = ("auto", "saga", "saga-sarah", "sarah", "svrg")
ORACLE_CHOICES = ("auto", "lmo", "project")
TABLE_NUMBERS = 2**27  # largest table that "auto" makes, in numbers: 1 GiB
SMALL_SVD = 10_000  # entries of the largest matrix for which a singular value decomposition in each step is cheap


@dataclass(frozen=True)
class VRSliding(Checked):
    """Sliding with variance-reduced gradients: each gradient serves a proximal step, and steps are as long as 1/L.

        g an estimate of grad f(x) by SAGA, Sarah, Saga Sarah or SVRG;   x <- argmin over C of <g, u> + beta/2 |u - x|^2

    For a linear model beta = L_b + V, the smoothness of a batch plus its noise, between 2 max_i L_i for b = 1 and L for b = n:

        L_b = n(b - 1)/(b(n - 1)) L + V,   V = (n - b)/(b(n - 1)) max_i L_i

    For other objectives `Probe` estimates beta a few times a pass, from differences of gradients of some rows. The accelerated
    move is `AnchoredSliding` with lean = min(1/2, V/(4L)). Sarah and Saga Sarah add differences up: accelerated or for
    non-convex f, their beta is 1 + sqrt(n)/b times as large.

    The set's projection solves the sub-problem if it is cheap. Otherwise the oracle solves it over kept atoms, to a tenth of
    beta |u - x|^2: one LMO per step, and one per new atom. The start takes n component gradients. A step takes b for SAGA and 2b
    for Saga Sarah. It takes 2b or n for Sarah (n with probability b/(n + b)) and for SVRG (n after every n/b steps). Memory: n
    derivatives for the two estimators with tables, and the atoms.

    Parameters
    ----------
    gradient : "auto", "saga", "sarah", "saga-sarah" or "svrg"
        The estimator. "auto" is SAGA, or SVRG if the table would exceed 1 GiB. It is also SVRG if acceleration is requested and
        V is above L/2 or not known: rows with little in common make a table stale.
    batch : int, optional
        b. Default: ceil(sqrt(n)).
    accelerated : bool, optional
        Default: True for convex linear models with V <= L/2, where rows share directions.
    oracle : "auto", "lmo" or "project"
        "lmo" uses linear minimisations only. "auto" projects if that is cheap, and not if it takes a large decomposition.
    L : float, optional
        beta, if you know a better value.

    References
    ----------
    Defazio, Bach, Lacoste-Julien (2014), arXiv:1407.0202; Allen-Zhu (2017), arXiv:1603.05953; Lan, Zhou (2016), Conditional
    gradient sliding for convex optimization; Gazagnadou, Gower, Salmon (2019), Optimal mini-batch and step sizes for SAGA,
    arXiv:1902.00071.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((400, 10))
    >>> f = ex.LinearModel(ex.Squared(), A, A @ np.array([0.7, 0.3] + [0] * 8) + 0.1 * rng.standard_normal(400))
    >>> r = ex.minimize(f, ex.Simplex(), method=ex.VRSliding(), tol=1e-8)
    >>> r.converged, r.x.round(1)[:3]
    (True, array([0.7, 0.3, 0. ]))
    """

    gradient: str = "auto"
    batch: int | None = None
    accelerated: bool | None = None
    oracle: str = "auto"
    L: float | None = None

    def __post_init__(self):
        super().__post_init__()
        checks.one_of("gradient", self.gradient, ESTIMATORS)
        checks.one_of("oracle", self.oracle, ORACLE_CHOICES)
        if self.accelerated is not None:
            checks.flag("VRSliding", "accelerated", self.accelerated)

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        b = math.ceil(math.sqrt(f.n)) if self.batch is None else checks.whole("VRSliding", "batch", self.batch, 1, f.n)
        known = Smoothness.of(f, b) if isinstance(f, MarginModel) and self.L is None else None
        calm = known is not None and known.noise <= known.L / 2
        fast = f.convex and calm if self.accelerated is None else self.accelerated
        name, onto, epoch = self._estimator(f, calm or not fast), self._onto(f, C), max(1, f.n // b)
        recursive = name in ("sarah", "saga-sarah")
        factor = 1.0 + math.sqrt(f.n) / b if recursive and (fast or not f.convex) and b < f.n else 1.0
        beta = self._beta(f, b, known, factor)
        if fast:
            lean = (0.25 if b < f.n else 0.0) if known is None else min(0.5, known.noise / max(4 * known.L, 1e-300))
            least = 0.0 if known is None else known.noise * (factor if recursive else 0.5)
            move = AnchoredSliding(beta, lean, epoch, onto=onto, least=least)
        else:
            move = WarmSliding(beta, onto=onto)
        return Method(_gradient(name, f.n, b, epoch), FullStep(), move).prepare(f, C, budget)

    def _estimator(self, f: Objective, safe: bool) -> str:
        if self.gradient != "auto":
            return self.gradient
        return "saga" if safe and f.n * math.prod(f.deriv_shape) <= TABLE_NUMBERS else "svrg"

    def _beta(self, f: Objective, b: int, known: Smoothness | None, factor: float) -> float | Probe:
        if self.L is not None:
            return factor * self.L
        if known is not None:
            return max(factor * (known.batch + known.noise), known.L, 1e-300)
        return Probe(b, max(1, f.n // (4 * b)), least=_known(f), factor=factor)

    def _onto(self, f: Objective, C: ConvexSet) -> ConvexSet | None:
        """The set, if its projection is to solve the sub-problems."""
        if self.oracle == "project" and not isinstance(C, Projectable):
            raise InputError(f'`VRSliding(oracle="project")`: {C} has no projection; use "lmo", which needs none')
        if self.oracle == "lmo" or not isinstance(C, Projectable):
            return None
        cheap = not C.matrix_free or (math.prod(f.shape) <= SMALL_SVD and not is_factored(f))
        return C if cheap or self.oracle == "project" else None


@dataclass(frozen=True)
class Smoothness:
    """Bounds on the curvature of a linear model, which limit its steps."""

    L: float  # smoothness of f
    batch: float  # L_b, the mean over batches of b rows
    noise: float  # V, the part of L_b that single rows add

    @classmethod
    def of(cls, f: MarginModel, b: int) -> Smoothness:
        """Compute the bounds from L and the largest smoothness of a row."""
        shared, single = smoothness_shares(f.n, b)
        L, noise = f.smoothness, single * float(f.row_smoothness.max())
        return cls(L, shared * L + noise, noise)


def _known(f: Objective) -> float:
    """The objective's L, or 0 if it is not known."""
    try:
        return float(f.smoothness)
    except InputError:
        return 0.0


def _gradient(name: str, n: int, b: int, epoch: int) -> SomeGradient:
    """The estimator, with the parameters that its theory suggests."""
    match name:
        case "saga":
            return Saga(b)
        case "sarah":
            return Sarah(b, p=b / (n + b))
        case "saga-sarah":
            return SagaSarah(b, lam=b / (2 * n))
        case _:
            return Svrg(b, epoch + 1)
