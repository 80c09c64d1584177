"""Stochastic Frank-Wolfe for non-convex sums: Reddi, Sra, Poczos, Smola (2016), arXiv:1607.08254, Algorithms 2 to 4."""

from __future__ import annotations

from dataclasses import dataclass

from extremal.gradients.epochs import Svrg
from extremal.gradients.minibatch import MiniBatch
from extremal.gradients.table import Saga
from extremal.methods.base import Budget, Method, long_batch, root_batch, root_epoch
from extremal.methods.shared import BatchAndStep, WithCard
from extremal.objectives.base import Objective
from extremal.sets.base import ConvexSet
from extremal.steps.base import Step
from extremal.steps.schedules import InverseSqrt


@dataclass(frozen=True)
class SFW(BatchAndStep):
    """Stochastic Frank-Wolfe: a fresh batch as large as the run is long.

        s = lmo((1/b) sum_{i in S} grad f_i(x)),   x <- x + eta (s - x),   b = T,  eta = 1/sqrt T

    b component gradients and one LMO an iteration, no memory. The theorem bounds the gap of a random iterate; with a fixed
    small batch the error does not vanish.

    Parameters
    ----------
    batch : int, optional
        Left out, T (at most n), where T^2 component gradients are the budget; t at iteration t if there is none.
    step : Step, optional
        Left out, 1/sqrt T. (The theorem's constant sqrt(2 h0 / (L D^2 beta)) has a free beta; 1 is the simplest.)

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
        """b = T, eta = 1/sqrt T."""
        return Method(MiniBatch(long_batch("SFW", self.batch, f.n, budget)), self.step or InverseSqrt()).prepare(f, C, budget)


@dataclass(frozen=True)
class SVFW(WithCard):
    """Frank-Wolfe with the SVRG estimator.

        g = (1/b) sum_{i in S} [grad f_i(x) - grad f_i(w)] + grad f(w),   w <- x every m iterations,   eta = 1/sqrt T

    n component gradients at the start of an epoch, 2b at its other iterations; one LMO an iteration; memory O(d).

    Parameters
    ----------
    batch : int, optional
        b. Left out, ceil(n^(2/3)).
    epoch : int, optional
        m. Left out, ceil(n^(1/3)), so that b = m^2.
    step : Step, optional
        Left out, 1/sqrt T.

    References
    ----------
    Reddi, Sra, Poczos, Smola (2016), arXiv:1607.08254, Algorithm 3.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.SVFW()
    SVFW(batch=None, epoch=None, step=None)
    """

    batch: int | None = None
    epoch: int | None = None
    step: Step | None = None

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        """m = n^(1/3), b = n^(2/3), eta = 1/sqrt T."""
        b = root_batch("SVFW", self.batch, f.n, 2 / 3)
        m = root_epoch("SVFW", self.epoch, f.n, 1 / 3)
        return Method(Svrg(b, m), self.step or InverseSqrt()).prepare(f, C, budget)


@dataclass(frozen=True)
class SagaFW(BatchAndStep):
    """Frank-Wolfe with the SAGA estimator and two independent batches.

        g = (1/b) sum_{i in I} [grad f_i(x) - y_i] + (1/n) sum_j y_j,   y_j <- grad f_j(x) for j in J,   eta = 1/sqrt T

    n component gradients at the start, 2b and one LMO an iteration; a table of n numbers (n gradients for `Separable`).

    Parameters
    ----------
    batch : int, optional
        b. Left out, ceil(n^(1/3)), the authors' choice; n^(2/3) is where the bound of our correction is best.
    step : Step, optional
        Left out, 1/sqrt T.
    two_batches : bool
        Draw I and J apart, as the proof does; one batch for both costs half as much.

    References
    ----------
    Reddi, Sra, Poczos, Smola (2016), arXiv:1607.08254, Algorithm 4; its complexity is disputed by Beznosikov et al. (2024),
    Appendix C.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.SagaFW()
    SagaFW(batch=None, step=None, two_batches=True)
    """

    two_batches: bool = True

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        """b = n^(1/3), eta = 1/sqrt T."""
        b = root_batch("SagaFW", self.batch, f.n, 1 / 3)
        return Method(Saga(b, self.two_batches), self.step or InverseSqrt()).prepare(f, C, budget)
