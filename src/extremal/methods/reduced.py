"""Frank-Wolfe with variance-reduced gradients: the two methods of *Sarah Frank-Wolfe* (ICML 2024), and two in epochs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from extremal import checks
from extremal.gradients.reduced import Sarah, Spider, Svrg
from extremal.gradients.shuffled import ShuffledSarah
from extremal.gradients.table import SagaSarah
from extremal.laws import Doubling, EpochLength, PowerLaw
from extremal.methods.method import BatchAndStep, Budget, Checked, EpochAndStep, Method, root_batch, theory_step
from extremal.objectives.base import Objective
from extremal.sets.base import ConvexSet
from extremal.steps.base import Step
from extremal.steps.epochs import EpochHarmonic, EpochOpenLoop
from extremal.steps.schedules import InverseSqrt, OpenLoop


@dataclass(frozen=True)
class SarahFW(Checked):
    """Sarah Frank-Wolfe: Algorithm 1 of the paper, a recursive estimator with occasional full gradients.

        s^k = lmo(g^k),   x^{k+1} = x^k + eta_k (s^k - x^k)
        g^{k+1} = grad f(x^{k+1})                                                     with probability p
        g^{k+1} = g^k + (1/b) sum_{i in S_k} [grad f_i(x^{k+1}) - grad f_i(x^k)]      otherwise

    The start takes n component gradients; an iteration takes p n + 2b (1 - p) on average (at most 4b) and one LMO; memory O(d).
    Convex f: O~(n + sqrt n Lt D^2 / eps) component gradients for any b <= sqrt n. The method needs neither L nor D.

    Parameters
    ----------
    batch : int, optional
        b. Default: ceil(sqrt n). For convex f, the bound on component gradients is the same for all b <= sqrt n (Corollary 1),
        and the bound on LMOs is smallest at sqrt n. For non-convex f both are smallest there. The paper's experiments take n/100.
    p : float, optional
        Default: 2b / (n + 2b), so that full gradients and differences cost the same on average.
    step : Step, optional
        Default: for convex f Theorem 1's two-phase step (`TwoPhase`, or `Anytime` if the budget sets no horizon), for others
        Theorem 2's 1/sqrt K (`InverseSqrt`; see also `SmallBatch`).
    replace : bool
        Draw the rows of a batch with replacement. The default, distinct rows, has the smaller variance.

    References
    ----------
    Beznosikov, Dobre, Gidel (2024), Sarah Frank-Wolfe, ICML, Algorithm 1, Theorems 1 and 2. arXiv:2304.11737.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((200, 20))
    >>> f = ex.LinearModel(ex.Logistic(), A, np.sign(A[:, 0]))
    >>> r = ex.minimize(f, ex.L1Ball(5.0), method=ex.SarahFW(), max_grads=100 * f.n, tol=0)
    >>> r.gap < 0.02, r.calls.grads >= 100 * f.n
    (True, True)
    """

    batch: int | None = None
    p: float | None = None
    step: Step | None = None
    replace: bool = False

    def __post_init__(self):
        super().__post_init__()
        checks.fix_flags(self, "replace")
        if self.p is not None:
            checks.within("SarahFW", "p", self.p, 0, 1)

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        b = root_batch("SarahFW", self.batch, f.n)
        p = 2 * b / (f.n + 2 * b) if self.p is None else self.p
        return Method(Sarah(b, p, self.replace), self.step or theory_step(f)).prepare(f, C, budget)


@dataclass(frozen=True)
class SagaSarahFW(Checked):
    """Saga Sarah Frank-Wolfe: Algorithm 2 of the paper, which needs no full gradient.

        s^k = lmo(g^k),   x^{k+1} = x^k + eta_k (s^k - x^k)
        g^{k+1} = (1/b) sum_{S_k} [grad f_i(x^{k+1}) - grad f_i(x^k)] + (1 - lam) g^k
                  + lam ( (1/b) sum_{S_k} [grad f_i(x^k) - y_i^k] + (1/n) sum_j y_j^k )
        y_i^{k+1} = grad f_i(x^{k+1}) for i in S_k

    An iteration takes 2b component gradients and one LMO. The table y holds n numbers for a linear model, n gradients for
    `Separable`. The library warns of a table above 1 GiB, and refuses one beyond memory. The bounds are those of `SarahFW`.

    Parameters
    ----------
    batch : int, optional
        b. Default: ceil(sqrt n), for the reasons given at `SarahFW`.
    lam : float, optional
        lambda. Default: b / (2n), as in Theorems 3 and 4.
    step : Step, optional
        Default: Theorem 3's two-phase step for convex f, Theorem 4's 1/sqrt K for others.
    start : "full" or "cold"
        "full" starts from the gradient and its table, for n component gradients, as the theorems' bounds assume. "cold" starts
        from one random component and y = 0; after K iterations the resulting error is damped by exp(-b K / 8n).
    replace : bool
        Draw the rows of a batch with replacement. The default, distinct rows, also refreshes the table faster.

    References
    ----------
    Beznosikov, Dobre, Gidel (2024), Sarah Frank-Wolfe, ICML, Algorithm 2, Theorems 3 and 4. arXiv:2304.11737.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((200, 20))
    >>> f = ex.LinearModel(ex.Logistic(), A, np.sign(A[:, 0]))
    >>> r = ex.minimize(f, ex.L1Ball(5.0), method=ex.SagaSarahFW(start="cold"), max_iter=1000, tol=0)
    >>> r.calls.grads == 1 + 1000 * 2 * 15, r.calls.lmos
    (True, 1000)
    """

    batch: int | None = None
    lam: float | None = None
    step: Step | None = None
    start: Literal["full", "cold"] = "full"
    replace: bool = False

    def __post_init__(self):
        super().__post_init__()
        checks.fix_flags(self, "replace")
        if self.lam is not None:
            checks.within("SagaSarahFW", "lam", self.lam, 0, 1)
        checks.one_of("start", self.start, ("full", "cold"))

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        b = root_batch("SagaSarahFW", self.batch, f.n)
        lam = b / (2 * f.n) if self.lam is None else self.lam
        return Method(SagaSarah(b, lam, self.start, self.replace), self.step or theory_step(f)).prepare(f, C, budget)


@dataclass(frozen=True)
class ShuffledSarahFW(BatchAndStep):
    """Shuffled Sarah Frank-Wolfe: passes over the rows in random order, no full gradient, no table.

        s^k = lmo(g^k),   x^{k+1} = x^k + eta_k (s^k - x^k),   g as for `ShuffledSarah`

    The start takes b component gradients. An iteration takes b in the first pass, 2b later, and one LMO; memory O(d). The method
    needs no constant and no horizon.

    Parameters
    ----------
    batch : int, optional
        b. Default: ceil(sqrt n).
    step : Step, optional
        Default: `OpenLoop`; over curved sets `LogOpenLoop` is often faster.

    References
    ----------
    Beznosikov, Takac (2021), Random-reshuffled SARAH does not need full gradient computations, arXiv:2111.13322.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((400, 20))
    >>> f = ex.LinearModel(ex.Logistic(), A, np.sign(A[:, 0] + rng.standard_normal(400)))
    >>> r = ex.minimize(f, ex.L1Ball(2.0), method=ex.ShuffledSarahFW(), max_grads=100 * f.n, tol=0)
    >>> r.gap < 0.02, r.calls.lmos
    (True, 1035)
    """

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        b = root_batch("ShuffledSarahFW", self.batch, f.n)
        return Method(ShuffledSarah(b), self.step or OpenLoop()).prepare(f, C, budget)


@dataclass(frozen=True)
class SVRF(BatchAndStep):
    """Variance-reduced Frank-Wolfe: the SVRG estimator, epochs that double, batches that grow within each.

        epoch 0 is one step x = lmo(grad f(x0)); epoch t = 1, 2, ... has N_t = 2^(t+3) - 2 iterations k = 1, 2, ...
        g = (1/m_k) sum_{i in S} [grad f_i(x) - grad f_i(w)] + grad f(w),   x <- x + 2/(k+1) (lmo(g) - x)

    An epoch takes n component gradients at its start and 2 m_k at its other iterations; an iteration takes one LMO. Memory is
    O(d). The constants 96, 8 and 2 are from memory.

    Parameters
    ----------
    batch : int, optional
        Default: m_k = 96 (k + 1) as in the theorem, at most n; for a few thousand components that is the whole sum at once. A
        number b gives the practical m_k = b + k.
    step : Step, optional
        Default: 2/(k+1) within each epoch.

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

    An epoch takes n component gradients at its start and 2b at its other iterations; an iteration takes one LMO. Memory is O(d).

    Parameters
    ----------
    batch, epoch : int, optional
        b, and the iterations of an epoch. Default: as above.
    step : Step, optional
        Default: as above, but `OpenLoop` for convex f if ``epoch`` is given.

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
