"""Zeroth-order methods: Gao, Huang (2020), Algorithms 1 and 2."""

from __future__ import annotations

import math
from dataclasses import dataclass

from extremal import checks
from extremal.gradients.base import SomeGradient
from extremal.gradients.epochs import Spider
from extremal.gradients.zeroth import ZerothOrder
from extremal.methods.base import Budget, Method, root_batch, root_epoch
from extremal.methods.nonconvex_sliding import plain_sliding
from extremal.methods.shared import WithCard
from extremal.objectives.base import Objective
from extremal.sets.base import ConvexSet
from extremal.steps.base import Step
from extremal.steps.schedules import InverseSqrt


@dataclass(frozen=True)
class FZFW(WithCard):
    """Faster zeroth-order Frank-Wolfe: the SPIDER estimator fed by differences of function values.

        g as in `SpiderFW` for non-convex f, epochs of sqrt n, b = sqrt n, each component gradient from 2d values
        x <- x + eta (lmo(g) - x),   eta = 1/sqrt K,   mu = 1/sqrt(d K)

    2d values for each component gradient that `SpiderFW` would take; one LMO an iteration; memory O(d).

    Parameters
    ----------
    batch : int, optional
        b; left out, ceil(sqrt n).
    epoch : int, optional
        Left out, ceil(sqrt n).
    step : Step, optional
        Left out, 1/sqrt K.
    mu : float, optional
        Half the width of the differences. Left out, 1/sqrt(d K), or 1e-3 if the budget sets no horizon.

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

    batch: int | None = None
    epoch: int | None = None
    step: Step | None = None
    mu: float | None = None

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        """q = b = sqrt n, eta = 1/sqrt K."""
        spider = Spider(root_batch("FZFW", self.batch, f.n), root_epoch("FZFW", self.epoch, f.n))
        return Method(_zeroth("FZFW", spider, f, budget, self.mu), self.step or InverseSqrt()).prepare(f, C, budget)


@dataclass(frozen=True)
class FZCGS(WithCard):
    """Faster zeroth-order conditional gradient sliding: `FCGS` fed by differences of function values.

        x <- argmin over C of <g, u> + (3L/2) |u - x|^2, to a gap of 1/K;   g as in `FZFW`

    2d values for each component gradient that `FCGS` would take (n at the start of an epoch, 2b else); as many LMOs as the
    sub-problems need, at most 1 + 18 L D^2 K each; memory d.

    Parameters
    ----------
    L : float, optional
        Smoothness; the objective's own if left out.
    batch : int, optional
        b; left out, ceil(sqrt n).
    epoch : int, optional
        Left out, ceil(sqrt n).
    mu : float, optional
        Half the width of the differences. Left out, 1/sqrt(d K), or 1e-3 if the budget sets no horizon.

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

    L: float | None = None
    batch: int | None = None
    epoch: int | None = None
    mu: float | None = None

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        """Weight 3L, gap 1/K."""
        spider = Spider(root_batch("FZCGS", self.batch, f.n), root_epoch("FZCGS", self.epoch, f.n))
        return plain_sliding(_zeroth("FZCGS", spider, f, budget, self.mu), f, self.L, budget).prepare(f, C, budget)


def _zeroth(call: str, gradient: SomeGradient, f: Objective, budget: Budget, mu: float | None) -> ZerothOrder:
    K = budget.horizon(gradient.facts(f.n))
    width = 1e-3 if K is None else 1 / math.sqrt(math.prod(f.shape) * max(1, K))
    return ZerothOrder(gradient, width if mu is None else checks.positive(call, "mu", mu))
