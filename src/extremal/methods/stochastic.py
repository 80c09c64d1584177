"""Stochastic Frank-Wolfe with steps of 1/sqrt T: Reddi et al. (2016), Algorithms 2 to 4; Weber, Sra (2022), on manifolds."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from extremal import checks
from extremal.gradients.base import SomeGradient
from extremal.gradients.batches import MiniBatch
from extremal.gradients.reduced import Spider, Svrg
from extremal.gradients.table import Saga
from extremal.methods.method import BatchAndStep, Budget, Checked, EpochAndStep, Method, long_batch, root_batch, root_epoch
from extremal.moves.vertex import GeodesicMove
from extremal.objectives.base import Objective
from extremal.points.manifolds import Euclidean, Manifold
from extremal.sets.base import ConvexSet
from extremal.steps.base import Step
from extremal.steps.schedules import InverseSqrt


@dataclass(frozen=True)
class SFW(BatchAndStep):
    """Stochastic Frank-Wolfe: fresh batches of T rows for T iterations.

        s = lmo((1/b) sum_{i in S} grad f_i(x)),   x <- x + eta (s - x),   b = T,  eta = 1/sqrt T

    An iteration takes b component gradients and one LMO; there is no memory. The theorem bounds the gap of a random iterate;
    with a fixed small batch the error does not vanish.

    Parameters
    ----------
    batch : int, optional
        Default: T (at most n), where the budget is T^2 component gradients; without a budget, t at iteration t.
    step : Step, optional
        Default: 1/sqrt T. (The theorem's constant sqrt(2 h0 / (L D^2 beta)) has a free beta; 1 is the simplest choice.)

    References
    ----------
    Reddi, Sra, Poczos, Smola (2016), arXiv:1607.08254, Algorithm 2.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.SFW(batch=20)
    SFW(batch=20, step=None)
    """

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        return Method(MiniBatch(long_batch("SFW", self.batch, f.n, budget)), self.step or InverseSqrt()).prepare(f, C, budget)


@dataclass(frozen=True)
class SVFW(EpochAndStep):
    """Frank-Wolfe with the SVRG estimator.

        g = (1/b) sum_{i in S} [grad f_i(x) - grad f_i(w)] + grad f(w),   w <- x every m iterations,   eta = 1/sqrt T

    An epoch takes n component gradients at its start and 2b at its other iterations; an iteration takes one LMO. Memory is O(d).

    Parameters
    ----------
    batch, epoch : int, optional
        b and m. Default: ceil(n^(2/3)) and ceil(n^(1/3)), so that b = m^2.
    step : Step, optional
        Default: 1/sqrt T.

    References
    ----------
    Reddi, Sra, Poczos, Smola (2016), arXiv:1607.08254, Algorithm 3.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.SVFW()
    SVFW(batch=None, epoch=None, step=None)
    """

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        b = root_batch("SVFW", self.batch, f.n, 2 / 3)
        m = root_epoch("SVFW", self.epoch, f.n, 1 / 3)
        return Method(Svrg(b, m), self.step or InverseSqrt()).prepare(f, C, budget)


@dataclass(frozen=True)
class SagaFW(BatchAndStep):
    """Frank-Wolfe with the SAGA estimator and two independent batches.

        g = (1/b) sum_{i in I} [grad f_i(x) - y_i] + (1/n) sum_j y_j,   y_j <- grad f_j(x) for j in J,   eta = 1/sqrt T

    The start takes n component gradients; an iteration takes 2b and one LMO. The table has n numbers (gradients if `Separable`).

    Parameters
    ----------
    batch : int, optional
        b. Default: ceil(n^(1/3)), the authors' choice; the bound of our correction is best at n^(2/3).
    step : Step, optional
        Default: 1/sqrt T.
    two_batches : bool
        Draw I and J independently, as in the proof; one batch for both costs half as much.

    References
    ----------
    Reddi, Sra, Poczos, Smola (2016), arXiv:1607.08254, Algorithm 4. Beznosikov et al. (2024), Appendix C, dispute its complexity.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.SagaFW()
    SagaFW(batch=None, step=None, two_batches=True)
    """

    two_batches: bool = True

    def __post_init__(self):
        super().__post_init__()
        checks.fix_flags(self, "two_batches")

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        b = root_batch("SagaFW", self.batch, f.n, 1 / 3)
        return Method(Saga(b, self.two_batches), self.step or InverseSqrt()).prepare(f, C, budget)


@dataclass(frozen=True)
class RiemannianSFW(BatchAndStep):
    """Stochastic Frank-Wolfe on a manifold: fresh batches of K rows for K iterations. `SFW` in flat space.

        z = argmin over z in C of <g, log_x(z)>_x,   g = (1/b) sum_{i in S} grad f_i(x),   x <- geodesic(x, z)(eta)
        b = K,  eta = 1/sqrt K

    An iteration takes b component gradients and one LMO; there is no memory.

    Parameters
    ----------
    batch, step
        As for `SFW`, with K instead of T.
    manifold : Manifold
        Default: flat space.

    References
    ----------
    Weber, Sra (2022), Projection-free nonconvex stochastic optimization on Riemannian manifolds, arXiv:1910.04194, Alg. 2.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.RiemannianSFW(manifold=ex.points.SPD())
    RiemannianSFW(batch=None, step=None, manifold=SPD())
    """

    manifold: Manifold = field(default_factory=Euclidean)

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        batch = long_batch("RiemannianSFW", self.batch, f.n, budget)
        return _prepare(MiniBatch(batch), self.step, self.manifold, f, C, budget)


@dataclass(frozen=True)
class SVRFW(EpochAndStep):
    """Frank-Wolfe on a manifold with the SVRG estimator. `SVFW` in flat space.

        g = (1/b) sum_{i in S} grad f_i(x) + T_{w -> x}[grad f(w) - (1/b) sum_{i in S} grad f_i(w)],   w <- x every m iterations
        z = argmin over z in C of <g, log_x(z)>_x,   x <- geodesic(x, z)(eta),   eta = 1/sqrt K

    T is parallel transport. An epoch takes n component gradients at its start and 2b at its other iterations, each with one LMO.

    Parameters
    ----------
    batch, epoch, step
        As for `SVFW`.
    manifold : Manifold
        Default: flat space.

    References
    ----------
    Weber, Sra (2022), Projection-free nonconvex stochastic optimization on Riemannian manifolds, arXiv:1910.04194, Alg. 3.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.SVRFW(manifold=ex.points.SPD())
    SVRFW(batch=None, epoch=None, step=None, manifold=SPD())
    """

    manifold: Manifold = field(default_factory=Euclidean)

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        b = root_batch("SVRFW", self.batch, f.n, 2 / 3)
        m = root_epoch("SVRFW", self.epoch, f.n, 1 / 3)
        return _prepare(Svrg(b, m, manifold=self.manifold), self.step, self.manifold, f, C, budget)


@dataclass(frozen=True)
class SpiderRFW(Checked):
    """Frank-Wolfe on a manifold with the SPIDER estimator and no full gradients.

        g = (1/s) sum_{i in S} grad f_i(x), |S| = s, every q iterations, else
        g = (1/b) sum_{i in S} grad f_i(x) + T_{x_prev -> x}[g - (1/b) sum_{i in S} grad f_i(x_prev)],   |S| = b
        z = argmin over z in C of <g, log_x(z)>_x,   x <- geodesic(x, z)(eta),   eta = 1/sqrt K

    T is parallel transport. The theorem has restart batch 1/eps^2, inner batch 1/eps, epoch 1/eps and K = 1/eps^2; here

        s1 = min(n, K),  b = sqrt(s1),  q = ceil(s1 / b),  s = min(n, b q)

    An epoch takes s component gradients at its start and 2b at its other iterations; an iteration takes one LMO. Memory is O(d).
    If n <= K, s is all of n, and in flat space this is `SpiderFW` for non-convex f.

    Parameters
    ----------
    batch : int, optional
        b. Default: ceil(sqrt(s1)) (at most n).
    restart : int, optional
        s1. Default: min(n, K), where K is max_iter or solves 3 K^(3/2) = max_grads; n without such a budget.
    step : Step, optional
        Default: 1/sqrt K.
    manifold : Manifold
        Default: flat space.

    References
    ----------
    Weber, Sra (2022), Projection-free nonconvex stochastic optimization on Riemannian manifolds, arXiv:1910.04194, Alg. 4.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.SpiderRFW(batch=10, restart=200)
    SpiderRFW(batch=10, restart=200, step=None, manifold=Euclidean())
    """

    batch: int | None = None
    restart: int | None = None
    step: Step | None = None
    manifold: Manifold = field(default_factory=Euclidean)

    def __post_init__(self):
        super().__post_init__()
        if self.restart is not None:
            checks.whole("SpiderRFW", "restart", self.restart, 1)

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        K = budget.length(lambda grads: max(1, int((grads / 3) ** (2 / 3)))) or f.n  # an iteration costs about 3 sqrt K
        s1 = self.restart or min(f.n, K)
        b = root_batch("SpiderRFW", self.batch or min(f.n, math.ceil(math.sqrt(s1))), f.n)
        q = math.ceil(s1 / b)
        spider = Spider(b, q, restart=min(f.n, b * q), manifold=self.manifold)
        return _prepare(spider, self.step, self.manifold, f, C, budget)


def _prepare(gradient: SomeGradient, step: Step | None, manifold: Manifold, f: Objective, C: ConvexSet, budget: Budget) -> Method:
    return Method(gradient, step or InverseSqrt(), GeodesicMove(manifold)).prepare(f, C, budget)
