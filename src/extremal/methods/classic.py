"""Full gradients, and the online method with a growing pool of components."""

from __future__ import annotations

from dataclasses import dataclass

from extremal.gradients.batches import Pool
from extremal.gradients.full import Full
from extremal.methods.method import BatchAndStep, Budget, Checked, Method, root_batch
from extremal.objectives.base import Objective
from extremal.sets.base import ConvexSet
from extremal.steps.adaptive import short_step
from extremal.steps.base import Step
from extremal.steps.schedules import Decay, InverseSqrt, OpenLoop


@dataclass(frozen=True)
class FrankWolfe(Checked):
    """Frank-Wolfe with full gradients.

        s = lmo(grad f(x)),   x <- x + eta_k (s - x)

    An iteration takes n component gradients and one LMO; there is no memory. A run of P n component gradients makes P - 1
    iterations: the last gradient certifies the returned point. For convex f, f(x_k) - f* <= 2 L D^2 / (k + 2) with the default
    step; for non-convex f, the smallest gap falls like 1/sqrt k.

    Parameters
    ----------
    step : Step, optional
        Default: `OpenLoop` for convex f; for non-convex f `ShortStep`, or `InverseSqrt` if L is not known. `LineSearch` and
        all other rules work, too.

    References
    ----------
    Frank, Wolfe (1956); Jaggi (2013); Lacoste-Julien (2016), arXiv:1607.00345.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.eye(2), np.array([1.0, 3.0]))
    >>> r = ex.minimize(f, ex.L1Ball(2.0), method=ex.FrankWolfe(step=ex.steps.LineSearch()))
    >>> r.x, r.gap <= 1e-4 * r.value
    (array([0., 2.]), True)
    """

    step: Step | None = None

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        step = self.step or (OpenLoop() if f.convex else short_step(f, InverseSqrt()))
        return Method(Full(), step).prepare(f, C, budget)


@dataclass(frozen=True)
class OnlineFW(BatchAndStep):
    """Online Frank-Wolfe on a finite sum: components arrive one by one, and each round uses all components seen so far.

        F_t = mean of the components seen,   s = lmo(grad F_t(x)),   x <- x + t^(-a) (s - x)

    At round t the pool has b t components, and all are evaluated at the new x: b t component gradients and one LMO. Once
    all n components are in the pool, the method is Frank-Wolfe. Memory: n indices.

    Parameters
    ----------
    batch : int, optional
        Components added in each round. Default: 1, as published.
    step : Step, optional
        Default: t^(-1/2). The exponent of the published smooth stochastic case is from memory and may differ; 1 works in
        practice (``Decay(1, 1)``).

    References
    ----------
    Hazan, Kale (2012), Projection-free online learning, arXiv:1206.4657.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.OnlineFW(batch=5)
    OnlineFW(batch=5, step=None)
    """

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        b = root_batch("OnlineFW", self.batch, f.n, 0)
        return Method(Pool(b), self.step or Decay(1, 1, 0.5)).prepare(f, C, budget)
