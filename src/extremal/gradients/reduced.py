"""Variance reduction by occasional full gradients: loopless SARAH, which tosses a coin, and SVRG and SPIDER, in epochs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from extremal import checks
from extremal.gradients import batches
from extremal.gradients.base import Batched, Facts, InEpochs, Phase, PlainEstimate, Steps
from extremal.gradients.batches import Batch, Epoch
from extremal.objectives.base import Objective, Sampler
from extremal.points.manifolds import Euclidean, Manifold


@dataclass(frozen=True)
class Sarah(Batched[PlainEstimate]):
    """A recursive estimate, refreshed by a full gradient with probability p (also known as PAGE).

        g = grad f(x)                                                  with probability p
        g = g_prev + (1/b) sum_{i in S} [grad f_i(x) - grad f_i(x_prev)]   otherwise

    Cost: n component gradients at the start, then n or 2b per step; memory O(d).

    Parameters
    ----------
    batch : int
        b, from 1 to n.
    p : float
        Probability in (0, 1]; 1 is the full gradient.
    replace : bool
        Whether to draw the rows of a batch with replacement.

    References
    ----------
    Li, Bao, Zhang, Richtarik (2021), PAGE, arXiv:2008.10898; Beznosikov, Dobre, Gidel (2024), arXiv:2304.11737.

    Examples
    --------
    >>> Sarah(batch=10, p=0.1)
    Sarah(batch=10, p=0.1, replace=False)
    """

    batch: int
    p: float
    replace: bool = False

    def __post_init__(self):
        super().__post_init__()
        checks.fix(self, p=checks.within("Sarah", "p", self.p, 0, 1))

    def facts(self, n: int) -> Facts:
        """p n + 2b (1 - p) component gradients per step; d = 2/p; c = (p b / (1 - p))^(1/4), at most 1."""
        b, p = checks.whole("Sarah", "batch", self.batch, 1, n), self.p
        c = min(1.0, (p * b / (1 - p)) ** 0.25) if p < 1 else 1.0
        return Facts(start=n, per_step=p * n + 2 * b * (1 - p), d=2 / p, c=c)

    def init(self, f: Objective, x: np.ndarray, sampler: Sampler) -> PlainEstimate:
        return PlainEstimate(f.grad(x), exact=True)

    def update(
        self, f: Objective, k: int, x_prev: np.ndarray, x: np.ndarray, steps: Steps, state: PlainEstimate, sampler: Sampler
    ) -> PlainEstimate:
        if sampler.coin(k) < self.p:
            return PlainEstimate(f.grad(x), exact=True)  # g^{k+1} = grad f(x^{k+1})
        idx = sampler.rows(k, self.batch, self.replace)  # S_k
        change = f.derivs(x, idx) - f.derivs(x_prev, idx)  # grad f_i(x^{k+1}) - grad f_i(x^k)
        return PlainEstimate(state.g + f.combine(change, idx), exact=False)


@dataclass(frozen=True)
class EpochEstimate(PlainEstimate, InEpochs):
    """The estimate; exact if a full gradient started the epoch at this point."""

    phase: Phase  # position of the coming iteration in the epoch
    w: Any = None  # the snapshot, if the estimator takes snapshots
    gw: Any = None  # grad f(w)


class Epochal(Batched[EpochEstimate]):
    """Shared part: epochs start with all rows, or many, and continue with grad f_S(x) + T_{w -> x}[gw - grad f_S(w)]."""

    epoch: Epoch
    manifold: Manifold
    restart: int | None = None  # number of rows at the start of an epoch; None for all
    snapshots: ClassVar[bool]  # whether (w, gw) are the start of the epoch and its gradient, or the last point and its estimate

    def __post_init__(self):
        super().__post_init__()
        checks.fix(self, epoch=batches.check_epoch(type(self).__name__, self.epoch))

    def _checked_batch(self, call: str) -> Batch:
        return batches.check_batch(call, self.batch)

    def facts(self, n: int) -> Facts:
        batches.check_fits(type(self).__name__, self.batch, n)
        start = n if self.restart is None else checks.whole(type(self).__name__, "restart", self.restart, 1, n)

        def cost(phase: Phase) -> float:
            return start if phase.k == 0 else 2 * batches.size(self.batch, n, 0, phase)

        return Facts(start=start, per_step=batches.epoch_costs(self.epoch, cost), epochs=True, manifold=self.manifold)

    def init(self, f: Objective, x: np.ndarray, sampler: Sampler) -> EpochEstimate:
        return self._begin(f, 0, x, Phase(0, 0, batches.length(self.epoch)(0)), sampler)

    def update(
        self, f: Objective, k: int, x_prev: np.ndarray, x: np.ndarray, steps: Steps, state: EpochEstimate, sampler: Sampler
    ) -> EpochEstimate:
        phase = state.phase.next(batches.length(self.epoch))
        if phase.k == 0:
            return self._begin(f, k + 1, x, phase, sampler)
        b = batches.size(self.batch, f.n, k, phase)
        idx = batches.draw(sampler, k if self.snapshots else k + 1, self.batch, b, self.replace)
        w, gw = (state.w, state.gw) if self.snapshots else (x_prev, state.g)
        back = gw - batches.mean(f, w, idx)
        g = batches.mean(f, x, idx) + self.manifold.transport(w, x, back)
        return EpochEstimate(g, False, phase, *((w, gw) if self.snapshots else ()))

    def _begin(self, f: Objective, j: int, x: np.ndarray, phase: Phase, sampler: Sampler) -> EpochEstimate:
        if self.restart is None or self.restart == f.n:
            g = f.grad(x)
            return EpochEstimate(g, True, phase, *((x, g) if self.snapshots else ()))
        return EpochEstimate(batches.mean(f, x, sampler.fresh(j, self.restart, self.replace)), False, phase)


@dataclass(frozen=True)
class Svrg(Epochal):
    """Unbiased, with a variance that vanishes as x and the snapshot w approach each other.

        g = (1/b) sum_{i in S} [grad f_i(x) - grad f_i(w)] + grad f(w),   w = x at the start of each epoch

    Cost: n component gradients at the start of an epoch, where g is exact, and 2b at other iterations; memory O(d).

    Parameters
    ----------
    batch : int, PowerLaw, Geometric or EpochLength
        b, or a law of the position in the epoch, of its number, or of its length; laws are capped at n.
    epoch : int or Doubling
        Number of iterations in an epoch.
    replace : bool
        Whether to draw the rows of a batch with replacement.
    manifold : Manifold
        Transports tangent vectors from w to x. Default: flat.

    References
    ----------
    Johnson, Zhang (2013), Accelerating stochastic gradient descent using predictive variance reduction.

    Examples
    --------
    >>> Svrg(batch=10, epoch=5)
    Svrg(batch=10, epoch=5, replace=False, manifold=Euclidean())
    """

    batch: Batch
    epoch: Epoch
    replace: bool = False
    manifold: Manifold = field(default_factory=Euclidean)

    snapshots: ClassVar[bool] = True


@dataclass(frozen=True)
class Spider(Epochal):
    """A recursive estimate that restarts at each epoch.

        g = grad f(x)                                                      at the start of an epoch
        g = g_prev + (1/b) sum_{i in S} [grad f_i(x) - grad f_i(x_prev)]   else

    Cost: n component gradients (or those of the ``restart`` batch) at the start of an epoch, 2b at other iterations.

    Parameters
    ----------
    batch : int, PowerLaw, Geometric or EpochLength
        b, or a law of the position in the epoch, of its number, or of its length; laws are capped at n.
    epoch : int or Doubling
        Number of iterations in an epoch.
    restart : int, optional
        Start an epoch with the mean over this many components instead of all n.
    replace : bool
        Whether to draw the rows of a batch with replacement.
    manifold : Manifold
        Transports tangent vectors from x_prev to x. Default: flat.

    References
    ----------
    Fang, Li, Lin, Zhang (2018), SPIDER, arXiv:1807.01695; Nguyen et al. (2017), SARAH, arXiv:1703.00102.

    Examples
    --------
    >>> Spider(batch=10, epoch=10)
    Spider(batch=10, epoch=10, restart=None, replace=False, manifold=Euclidean())
    """

    batch: Batch
    epoch: Epoch
    restart: int | None = None
    replace: bool = False
    manifold: Manifold = field(default_factory=Euclidean)

    snapshots: ClassVar[bool] = False

    def __post_init__(self):
        super().__post_init__()
        if self.restart is not None:
            checks.fix(self, restart=checks.whole("Spider", "restart", self.restart, 1))
