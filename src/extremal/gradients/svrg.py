"""The SVRG estimator: differences to a snapshot that is taken at the start of each epoch."""

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
class SvrgEstimate(InEpochs):
    """The estimate, and the snapshot it leans on."""

    g: np.ndarray  # estimate of grad f(x)
    exact: bool  # x is the snapshot
    w: np.ndarray  # the snapshot
    gw: np.ndarray  # grad f(w)
    phase: Phase  # where in the epoch the coming iteration is


@dataclass(frozen=True)
class Svrg(Batched):
    """Unbiased, with a variance that vanishes as x and the snapshot w meet.

        g = (1/b) sum_{i in S} [grad f_i(x) - grad f_i(w)] + grad f(w),   w = x at the start of each epoch

    n component gradients at the start of an epoch (g is exact there), 2b at its other iterations; memory O(d).

    Parameters
    ----------
    batch : int, PowerLaw or EpochLength
        b, or a law of the position in the epoch, or of the epoch's length; laws are capped at n.
    epoch : int or Doubling
        Iterations of an epoch.
    replace : bool
        Draw the rows of a batch with replacement.
    manifold : Manifold
        Transports tangent vectors from w to x; flat by default.

    References
    ----------
    Johnson, Zhang (2013), Accelerating stochastic gradient descent using predictive variance reduction.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.gradients.Svrg(batch=10, epoch=5)
    Svrg(batch=10, epoch=5, replace=False, manifold=Euclidean())
    """

    batch: Batch
    epoch: Epoch
    replace: bool = False
    manifold: Manifold = field(default_factory=Euclidean)

    def __post_init__(self):
        checks.fix(self, batch=batches.check_batch("Svrg", self.batch), epoch=batches.check_epoch("Svrg", self.epoch))

    def facts(self, n: int) -> Facts:
        """n at the start of an epoch, 2b else."""
        batches.check_fits("Svrg", self.batch, n)

        def cost(phase: Phase) -> float:
            return n if phase.k == 0 else 2 * batches.size(self.batch, n, 0, phase)

        return Facts(start=n, per_step=batches.epoch_costs(self.epoch, cost), epochs=True, manifold=self.manifold)

    def init(self, f: Objective, x: np.ndarray, sampler: Sampler) -> SvrgEstimate:
        """The first snapshot."""
        return self._snapshot(f, x, Phase(0, 0, batches.length(self.epoch)(0)))

    def update(
        self, f: Objective, k: int, x_prev: np.ndarray, x: np.ndarray, steps: Steps, state: SvrgEstimate, sampler: Sampler
    ) -> SvrgEstimate:
        """A difference to the snapshot, or a new one."""
        phase = state.phase.next(batches.length(self.epoch))
        if phase.k == 0:
            return self._snapshot(f, x, phase)
        b = batches.size(self.batch, f.n, k, phase)
        idx = batches.draw(sampler, k, self.batch, b, self.replace)
        back = state.gw - batches.mean(f, state.w, idx)  # grad f(w) - grad f_S(w), at w
        g = batches.mean(f, x, idx) + self.manifold.transport(state.w, x, back)
        return SvrgEstimate(g, False, state.w, state.gw, phase)

    def _snapshot(self, f: Objective, x: np.ndarray, phase: Phase) -> SvrgEstimate:
        g = f.grad(x)
        return SvrgEstimate(g, True, x, g, phase)
