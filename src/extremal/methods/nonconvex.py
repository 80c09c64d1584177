"""Non-convex sums: sliding, by gradients or by function values only."""

from __future__ import annotations

import math
from dataclasses import dataclass

from extremal import checks
from extremal.gradients.base import SomeGradient
from extremal.gradients.batches import MiniBatch
from extremal.gradients.reduced import Spider, Svrg
from extremal.gradients.zeroth import ZerothOrder
from extremal.laws import PowerLaw
from extremal.methods.method import Budget, Checked, EpochAndStep, Method, SlidingInEpochs, long_batch, root_batch, root_epoch
from extremal.methods.sliding import smoothness
from extremal.moves.sliding.plain import DoubleSliding, Sliding
from extremal.objectives.base import Objective
from extremal.sets.base import ConvexSet
from extremal.steps.base import Step
from extremal.steps.schedules import Decay, FullStep, InverseSqrt


@dataclass(frozen=True)
class NCGS(Checked):
    """Non-convex conditional gradient sliding with fresh batches.

        z = (1 - alpha) y + alpha x,   g the mean over m components at z
        x <- prox of weight 1/lambda_k from x,   y <- prox of weight 2L from z,   both along g, to a gap of 1/K
        alpha_k = 2/(k+1),  lambda_k = k/(4L),  m = K (at most n),   k = 1, 2, ...

    An iteration takes m component gradients and two sub-problems of at most 1 + 6 beta D^2 K LMOs each; memory 2d.

    Parameters
    ----------
    L : float, optional
        Smoothness. Default: the objective's own.
    batch : int, optional
        m. Default: K, where the budget is K^2 component gradients; without a budget, k at iteration k.
    step : Step, optional
        alpha. Default: 2/(k+1).

    References
    ----------
    Qu, Li, Xu (2018), Non-convex conditional gradient sliding, arXiv:1708.04783, Algorithm 3.

    Notes
    -----
    alpha_k, lambda_k, m and the tolerance are from memory of the Ghadimi-Lan scheme that the algorithm follows. They may differ
    from the paper's, and so may the use of two sub-problems. ``Method(MiniBatch(m), FullStep(), Sliding(3 * L, 1 / K))`` is the
    plain and safe form.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.NCGS(batch=20)
    NCGS(L=None, batch=20, step=None)
    """

    L: float | None = None
    batch: int | None = None
    step: Step | None = None

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        L = smoothness(f, self.L)
        gradient = MiniBatch(long_batch("NCGS", self.batch, f.n, budget))
        move = DoubleSliding(beta=PowerLaw(4 * L, 1, -1), beta_y=2 * L, tol=sliding_tolerance(budget, gradient, f.n))
        return Method(gradient, self.step or Decay(2, 2), move).prepare(f, C, budget)


@dataclass(frozen=True)
class NCGSVR(SlidingInEpochs):
    """Non-convex sliding with the SVRG estimator: x <- prox of weight 3L from x along g, to a gap of 1/K.

    An epoch takes n component gradients at its start and 2b at its other iterations; epochs have n^(1/3) iterations, b = n^(2/3).
    A sub-problem takes at most 1 + 18 L D^2 K LMOs; memory 2d. The constants follow a third party's code.

    Parameters
    ----------
    L : float, optional
        Smoothness. Default: the objective's own.
    batch, epoch : int, optional
        b, and the iterations of an epoch. Default: ceil(n^(2/3)) and ceil(n^(1/3)).

    References
    ----------
    Qu, Li, Xu (2018), Non-convex conditional gradient sliding, arXiv:1708.04783, Algorithm 4.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.NCGSVR()
    NCGSVR(L=None, batch=None, epoch=None)
    """

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        gradient = Svrg(root_batch("NCGSVR", self.batch, f.n, 2 / 3), root_epoch("NCGSVR", self.epoch, f.n, 1 / 3))
        return plain_sliding(gradient, f, self.L, budget).prepare(f, C, budget)


@dataclass(frozen=True)
class FCGS(SlidingInEpochs):
    """Non-convex sliding with the SPIDER estimator: x <- prox of weight 3L from x along g, to a gap of 1/K.

    An epoch takes n component gradients at its start and 2b at its other iterations; epochs have sqrt n iterations, b = sqrt n. A
    sub-problem takes at most 1 + 18 L D^2 K LMOs; memory d. This is the first-order form of `FZCGS`. The constants follow a
    third party's code, which rounds sqrt n down; we round it up.

    Parameters
    ----------
    L : float, optional
        Smoothness. Default: the objective's own.
    batch, epoch : int, optional
        b, and the iterations of an epoch. Default: ceil(sqrt n) for both.

    References
    ----------
    Gao, Huang (2020), Can stochastic zeroth-order Frank-Wolfe method converge faster for non-convex problems?, ICML, FCGS.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.FCGS()
    FCGS(L=None, batch=None, epoch=None)
    """

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        gradient = Spider(root_batch("FCGS", self.batch, f.n), root_epoch("FCGS", self.epoch, f.n))
        return plain_sliding(gradient, f, self.L, budget).prepare(f, C, budget)


def plain_sliding(gradient: SomeGradient, f: Objective, L: float | None, budget: Budget) -> Method:
    """A proximal step of weight 3L to a gap of 1/K, without extrapolation."""
    return Method(gradient, FullStep(), Sliding(beta=3 * smoothness(f, L), tol=sliding_tolerance(budget, gradient, f.n)))


def sliding_tolerance(budget: Budget, gradient: SomeGradient, n: int) -> float | PowerLaw:
    """1/K, or 1/(k + 1) if there is no horizon."""
    K = budget.horizon(gradient.facts(n))
    return PowerLaw(1, 1, -1) if K is None else 1 / max(1, K)


@dataclass(frozen=True)
class FZFW(EpochAndStep):
    """Faster zeroth-order Frank-Wolfe: the SPIDER estimator from differences of function values.

        g as in `SpiderFW` for non-convex f, epochs of sqrt n, b = sqrt n, each component gradient from 2d values
        x <- x + eta (lmo(g) - x),   eta = 1/sqrt K,   mu = 1/sqrt(d K)

    Each component gradient of `SpiderFW` becomes 2d values. An iteration takes one LMO; memory O(d).

    Parameters
    ----------
    batch, epoch : int, optional
        b, and the iterations of an epoch. Default: ceil(sqrt n) for both.
    step : Step, optional
        Default: 1/sqrt K.
    mu : float, optional
        Half the width of the differences. Default: 1/sqrt(d K), or 1e-3 if the budget sets no horizon.

    References
    ----------
    Gao, Huang (2020), Can stochastic zeroth-order Frank-Wolfe method converge faster for non-convex problems?, ICML,
    Algorithm 1.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.FZFW()
    FZFW(batch=None, epoch=None, step=None, mu=None)
    """

    mu: float | None = None

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        spider = Spider(root_batch("FZFW", self.batch, f.n), root_epoch("FZFW", self.epoch, f.n))
        return Method(_zeroth("FZFW", spider, f, budget, self.mu), self.step or InverseSqrt()).prepare(f, C, budget)


@dataclass(frozen=True)
class FZCGS(SlidingInEpochs):
    """Faster zeroth-order conditional gradient sliding: `FCGS` from differences of function values.

        x <- argmin over C of <g, u> + (3L/2) |u - x|^2, to a gap of 1/K;   g as in `FZFW`

    Each component gradient of `FCGS` (n at the start of an epoch, 2b at other iterations) becomes 2d values. A sub-problem
    takes at most 1 + 18 L D^2 K LMOs; memory d.

    Parameters
    ----------
    L : float, optional
        Smoothness. Default: the objective's own.
    batch, epoch : int, optional
        b, and the iterations of an epoch. Default: ceil(sqrt n) for both.
    mu : float, optional
        Half the width of the differences. Default: 1/sqrt(d K), or 1e-3 if the budget sets no horizon.

    References
    ----------
    Gao, Huang (2020), Can stochastic zeroth-order Frank-Wolfe method converge faster for non-convex problems?, ICML,
    Algorithm 2.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.FZCGS()
    FZCGS(L=None, batch=None, epoch=None, mu=None)
    """

    mu: float | None = None

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        spider = Spider(root_batch("FZCGS", self.batch, f.n), root_epoch("FZCGS", self.epoch, f.n))
        return plain_sliding(_zeroth("FZCGS", spider, f, budget, self.mu), f, self.L, budget).prepare(f, C, budget)


def _zeroth(call: str, gradient: SomeGradient, f: Objective, budget: Budget, mu: float | None) -> ZerothOrder:
    K = budget.horizon(gradient.facts(f.n))
    width = 1e-3 if K is None else 1 / math.sqrt(math.prod(f.shape) * max(1, K))
    return ZerothOrder(gradient, width if mu is None else checks.positive(call, "mu", mu))
