"""Epochs that double: SVRF of Hazan and Luo, SPIDER Frank-Wolfe of Yurtsever, Sra and Cevher."""

from __future__ import annotations

import math
from dataclasses import dataclass

from extremal import checks
from extremal.gradients.epochs import Spider, Svrg
from extremal.laws import Doubling, EpochLength, PowerLaw
from extremal.methods.method import BatchAndStep, Budget, EpochAndStep, Method, root_batch
from extremal.objectives.base import Objective
from extremal.sets.base import ConvexSet
from extremal.steps.schedules import EpochHarmonic, EpochOpenLoop, InverseSqrt, OpenLoop


@dataclass(frozen=True)
class SVRF(BatchAndStep):
    """Variance-reduced Frank-Wolfe: the SVRG estimator, epochs that double, batches that grow within each.

        epoch 0 is one step x = lmo(grad f(x0)); epoch t = 1, 2, ... has N_t = 2^(t+3) - 2 iterations k = 1, 2, ...
        g = (1/m_k) sum_{i in S} [grad f_i(x) - grad f_i(w)] + grad f(w),   x <- x + 2/(k+1) (lmo(g) - x)

    n component gradients at the start of an epoch, 2 m_k at its other iterations; one LMO an iteration; memory O(d). The
    constants 96, 8 and 2 are from memory.

    Parameters
    ----------
    batch : int, optional
        Left out, m_k = 96 (k + 1), the theorem's, at most n: for a few thousand components that is the whole sum at once. A
        number b gives the practical m_k = b + k.
    step : Step, optional
        Left out, 2/(k+1) within each epoch.

    References
    ----------
    Hazan, Luo (2016), Variance-reduced and projection-free stochastic optimization, arXiv:1602.02101, Algorithm 1.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.SVRF(batch=20)
    SVRF(batch=20, step=None)
    """

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        law = PowerLaw(96, 2, 1)
        if self.batch is not None:
            law = PowerLaw(1, checks.whole("SVRF", "batch", self.batch, 1, f.n) + 1, 1)  # b + k, k from 1
        return Method(Svrg(law, Doubling(8, 2, 2)), self.step or EpochOpenLoop()).prepare(f, C, budget)


@dataclass(frozen=True)
class SpiderFW(EpochAndStep):
    """Frank-Wolfe with the SPIDER estimator: a recursive estimate that a full gradient renews at each epoch.

        g = grad f(x) at the start of an epoch, else g + (1/b) sum_{i in S} [grad f_i(x) - grad f_i(x_prev)]
        convex f: epochs of K_t = 1, 2, 4, ..., b = K_t (at most n), eta = 2 / (K_t + k) at k = 1, 2, ... of the epoch
        non-convex f: epochs of sqrt n, b = sqrt n, eta = 1/sqrt K

    n component gradients at the start of an epoch, 2b at its other iterations; one LMO an iteration; memory O(d).

    Parameters
    ----------
    batch, epoch : int, optional
        b, and the iterations of an epoch; left out, as above.
    step : Step, optional
        Left out, as above; `OpenLoop` for convex f if the epochs are of a given length.

    References
    ----------
    Yurtsever, Sra, Cevher (2019), Conditional gradient methods via stochastic path-integrated differential estimator, ICML.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.SpiderFW()
    SpiderFW(batch=None, epoch=None, step=None)
    """

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        if f.convex:
            batch, epoch, step = EpochLength(), Doubling(), EpochHarmonic() if self.epoch is None else OpenLoop()
        else:
            batch, epoch, step = root_batch("SpiderFW", None, f.n), math.ceil(math.sqrt(f.n)), InverseSqrt()
        if self.batch is not None:
            batch = checks.whole("SpiderFW", "batch", self.batch, 1, f.n)
        if self.epoch is not None:
            epoch = checks.whole("SpiderFW", "epoch", self.epoch, 1)
        spider = Spider(batch, epoch)
        return Method(spider, self.step or step).prepare(f, C, budget)
