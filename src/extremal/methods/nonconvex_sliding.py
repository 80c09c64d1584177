"""Sliding for non-convex sums."""

from __future__ import annotations

from dataclasses import dataclass

from extremal.gradients.base import Gradient
from extremal.gradients.epochs import Spider, Svrg
from extremal.gradients.minibatch import MiniBatch
from extremal.laws import PowerLaw
from extremal.methods.base import Budget, Method, long_batch, root_batch, root_epoch
from extremal.methods.shared import WithCard
from extremal.methods.sliding import smoothness
from extremal.moves.sliding.plain import DoubleSliding, Sliding
from extremal.objectives.base import Objective
from extremal.sets.base import ConvexSet
from extremal.steps.base import Step
from extremal.steps.schedules import Decay, FullStep


@dataclass(frozen=True)
class NCGS(WithCard):
    """Non-convex conditional gradient sliding with fresh batches.

        z = (1 - alpha) y + alpha x,   g the mean over m components at z
        x <- prox of weight 1/lambda_k from x,   y <- prox of weight 2L from z,   both along g, to a gap of 1/K
        alpha_k = 2/(k+1),  lambda_k = k/(4L),  m = K (at most n),   k = 1, 2, ...

    m component gradients and two sub-problems an iteration, each of at most 1 + 6 beta D^2 K LMOs; memory 2d.

    Parameters
    ----------
    L : float, optional
        Smoothness; the objective's own if left out.
    batch : int, optional
        m; left out, K with K^2 component gradients as the budget; k at iteration k if there is none.
    step : Step, optional
        alpha; left out, 2/(k+1).

    References
    ----------
    Qu, Li, Xu (2018), Non-convex conditional gradient sliding, arXiv:1708.04783, Algorithm 3.

    Notes
    -----
    alpha_k, lambda_k, m and the tolerance are from memory of the Ghadimi-Lan scheme that the algorithm follows, and may differ
    from the paper's, as may the use of two sub-problems. ``Method(MiniBatch(m), FullStep(), Sliding(3 * L, 1 / K))`` is the
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
        """alpha_k, lambda_k, m, 1/K."""
        L = smoothness(f, self.L)
        gradient = MiniBatch(long_batch("NCGS", self.batch, f.n, budget))
        move = DoubleSliding(beta=PowerLaw(4 * L, 1, -1), beta_y=2 * L, tol=sliding_tolerance(budget, gradient, f.n))
        return Method(gradient, self.step or Decay(2, 2), move).prepare(f, C, budget)


@dataclass(frozen=True)
class NCGSVR(WithCard):
    """Non-convex sliding with the SVRG estimator: x <- prox of weight 3L from x along g, to a gap of 1/K.

    n component gradients at the start of an epoch, 2b at its other iterations; epochs of n^(1/3), b = n^(2/3). A sub-problem
    takes at most 1 + 18 L D^2 K LMOs; memory 2d. Constants as in a third party's code.

    Parameters
    ----------
    L : float, optional
        Smoothness; the objective's own if left out.
    batch : int, optional
        b; left out, ceil(n^(2/3)).
    epoch : int, optional
        Left out, ceil(n^(1/3)).

    References
    ----------
    Qu, Li, Xu (2018), Non-convex conditional gradient sliding, arXiv:1708.04783, Algorithm 4.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.NCGSVR()
    NCGSVR(L=None, batch=None, epoch=None)
    """

    L: float | None = None
    batch: int | None = None
    epoch: int | None = None

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        """Weight 3L, gap 1/K."""
        gradient = Svrg(root_batch("NCGSVR", self.batch, f.n, 2 / 3), root_epoch("NCGSVR", self.epoch, f.n, 1 / 3))
        return plain_sliding(gradient, f, self.L, budget).prepare(f, C, budget)


@dataclass(frozen=True)
class FCGS(WithCard):
    """Non-convex sliding with the SPIDER estimator: x <- prox of weight 3L from x along g, to a gap of 1/K.

    n component gradients at the start of an epoch, 2b at its other iterations; epochs of sqrt n, b = sqrt n. A sub-problem takes
    at most 1 + 18 L D^2 K LMOs; memory d. The first-order form of `FZCGS`; constants as in a third party's code, which rounds
    sqrt n down where we round it up.

    Parameters
    ----------
    L : float, optional
        Smoothness; the objective's own if left out.
    batch : int, optional
        b; left out, ceil(sqrt n).
    epoch : int, optional
        Left out, ceil(sqrt n).

    References
    ----------
    Gao, Huang (2020), Can stochastic zeroth-order Frank-Wolfe method converge faster for non-convex problems?, ICML, FCGS.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.FCGS()
    FCGS(L=None, batch=None, epoch=None)
    """

    L: float | None = None
    batch: int | None = None
    epoch: int | None = None

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        """Weight 3L, gap 1/K."""
        gradient = Spider(root_batch("FCGS", self.batch, f.n), root_epoch("FCGS", self.epoch, f.n))
        return plain_sliding(gradient, f, self.L, budget).prepare(f, C, budget)


def plain_sliding(gradient: Gradient, f: Objective, L: float | None, budget: Budget) -> Method:
    """A proximal step of weight 3L to a gap of 1/K, without extrapolation."""
    return Method(gradient, FullStep(), Sliding(beta=3 * smoothness(f, L), tol=sliding_tolerance(budget, gradient, f.n)))


def sliding_tolerance(budget: Budget, gradient: Gradient, n: int) -> float | PowerLaw:
    """1/K, or 1/(k + 1) if there is no horizon."""
    K = budget.horizon(gradient.facts(n))
    return PowerLaw(1, 1, -1) if K is None else 1 / max(1, K)
