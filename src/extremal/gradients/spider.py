"""The SPIDER estimator: SARAH in epochs, each begun by a full gradient or by a large batch."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from extremal import checks
from extremal.gradients import batches
from extremal.gradients.base import Batched, Facts, InEpochs, Phase, Steps
from extremal.gradients.batches import Batch, Epoch
from extremal.objectives.base import Objective
from extremal.objectives.sampling import Sampler
from extremal.points.manifolds import Euclidean, Manifold


@dataclass(frozen=True)
class SpiderEstimate(InEpochs):
    """The running estimate."""

    g: np.ndarray  # estimate of grad f(x)
    exact: bool  # the epoch has just begun, by a full gradient
    phase: Phase  # where in the epoch the coming iteration is


@dataclass(frozen=True)
class Spider(Batched):
    """A recursive estimate, begun anew at each epoch.

        g = grad f(x)                                                      at the start of an epoch
        g = g_prev + (1/b) sum_{i in S} [grad f_i(x) - grad f_i(x_prev)]   else

    n component gradients (or those of the ``restart`` batch) at the start of an epoch, 2b at its other iterations.

    Parameters
    ----------
    batch : int, PowerLaw or EpochLength
        b, or a law of the position in the epoch, or of the epoch's length; laws are capped at n.
    epoch : int or Doubling
        Iterations of an epoch.
    restart : int, optional
        Begin an epoch by the mean over this many components instead of all n.
    replace : bool
        Draw the rows of a batch with replacement.
    manifold : Manifold
        Transports tangent vectors from x_prev to x; flat by default.

    References
    ----------
    Fang, Li, Lin, Zhang (2018), SPIDER, arXiv:1807.01695; Nguyen et al. (2017), SARAH, arXiv:1703.00102.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.gradients.Spider(batch=10, epoch=10)
    Spider(batch=10, epoch=10, restart=None, replace=False, manifold=Euclidean())
    """

    batch: Batch
    epoch: Epoch
    restart: int | None = None
    replace: bool = False
    manifold: Manifold = field(default_factory=Euclidean)

    def __post_init__(self):
        checks.fix(self, batch=batches.check_batch("Spider", self.batch), epoch=batches.check_epoch("Spider", self.epoch))
        if self.restart is not None:
            checks.fix(self, restart=checks.whole("Spider", "restart", self.restart, 1))

    def facts(self, n: int) -> Facts:
        """n or the restart batch at the start of an epoch, 2b else."""
        batches.check_fits("Spider", self.batch, n)
        restart = n if self.restart is None else checks.whole("Spider", "restart", self.restart, 1, n)

        def cost(phase: Phase) -> float:
            return restart if phase.k == 0 else 2 * batches.size(self.batch, n, 0, phase)

        return Facts(start=restart, per_step=batches.epoch_costs(self.epoch, cost), epochs=True, manifold=self.manifold)

    def init(self, f: Objective, x: np.ndarray, sampler: Sampler) -> SpiderEstimate:
        """The start of the first epoch."""
        return self._begin(f, 0, x, Phase(0, 0, batches.length(self.epoch)(0)), sampler)

    def update(
        self, f: Objective, k: int, x_prev: np.ndarray, x: np.ndarray, steps: Steps, state: SpiderEstimate, sampler: Sampler
    ) -> SpiderEstimate:
        """A difference, or a new start."""
        phase = state.phase.next(batches.length(self.epoch))
        if phase.k == 0:
            return self._begin(f, k + 1, x, phase, sampler)
        b = batches.size(self.batch, f.n, k, phase)
        idx = batches.draw(sampler, k + 1, self.batch, b, self.replace)
        back = state.g - batches.mean(f, x_prev, idx)  # g_prev - grad f_S(x_prev), at x_prev
        return SpiderEstimate(batches.mean(f, x, idx) + self.manifold.transport(x_prev, x, back), False, phase)

    def _begin(self, f: Objective, k: int, x: np.ndarray, phase: Phase, sampler: Sampler) -> SpiderEstimate:
        if self.restart is None or self.restart == f.n:
            return SpiderEstimate(f.grad(x), True, phase)
        return SpiderEstimate(batches.mean(f, x, sampler.fresh(k, self.restart, self.replace)), False, phase)
