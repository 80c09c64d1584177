"""Plain mini-batches, and a pool that grows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from extremal import checks
from extremal.gradients import batches
from extremal.gradients.base import Batched, Facts, OnePoint, PlainEstimate
from extremal.gradients.batches import Batch
from extremal.objectives.base import Objective
from extremal.objectives.sampling import Sampler


@dataclass(frozen=True)
class MiniBatch(OnePoint, Batched):
    """g = (1/b) sum_{i in S} grad f_i(x), a new batch at each step: unbiased, with a variance that stays.

    b component gradients a step, no memory. A batch that grows (a `PowerLaw`) is the whole sum once it reaches n.

    Parameters
    ----------
    batch : int or PowerLaw
        b, or b_k.
    replace : bool
        Draw the rows of a batch with replacement.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.gradients.MiniBatch(batch=ex.laws.PowerLaw(scale=1, shift=1, power=2))
    MiniBatch(batch=PowerLaw(scale=1, shift=1, power=2), replace=False)
    """

    batch: Batch
    replace: bool = False

    def __post_init__(self):
        checks.fix(self, batch=batches.check_batch("MiniBatch", self.batch))

    def facts(self, n: int) -> Facts:
        batches.check_fits("MiniBatch", self.batch, n)
        per_step = self.batch if isinstance(self.batch, int) else lambda k: batches.size(self.batch, n, k + 1)
        return Facts(start=batches.size(self.batch, n, 0), per_step=per_step, one_point=True)

    def _at(self, f: Objective, j: int, x: np.ndarray, state: PlainEstimate | None, sampler: Sampler) -> PlainEstimate:
        b = batches.size(self.batch, f.n, j)
        if b == f.n and not self.replace:
            return PlainEstimate(f.grad(x), exact=True)
        return PlainEstimate(batches.mean(f, x, batches.draw(sampler, j, self.batch, b, self.replace)), exact=False)


@dataclass(frozen=True)
class PoolEstimate(PlainEstimate):
    """The mean over the pool; exact once this is the whole sum."""

    order: np.ndarray  # all components in random order; the pool is a head of it
    size: int  # components in the pool


@dataclass(frozen=True)
class Pool(OnePoint):
    """The gradient over all components seen so far: g = (1/t) sum_{tau <= t} grad f_{i_tau}(x), at the current x.

    Each step adds ``batch`` new components and evaluates the whole pool again: b t component gradients at step t. Once
    all n are in, it is the full gradient. Memory: n indices.

    Parameters
    ----------
    batch : int
        Components added at each step.

    References
    ----------
    Hazan, Kale (2012), Projection-free online learning, arXiv:1206.4657.

    Examples
    --------
    >>> Pool(batch=10)
    Pool(batch=10)
    """

    batch: int = 1

    def __post_init__(self):
        checks.fix(self, batch=checks.whole("Pool", "batch", self.batch, 1))

    def facts(self, n: int) -> Facts:
        checks.whole("Pool", "batch", self.batch, 1, n)
        return Facts(start=self.batch, per_step=lambda k: min(n, self.batch * (k + 2)), one_point=True)

    def _at(self, f: Objective, j: int, x: np.ndarray, state: PoolEstimate | None, sampler: Sampler) -> PoolEstimate:
        order, size = (sampler.order(), self.batch) if state is None else (state.order, min(f.n, state.size + self.batch))
        whole = size == f.n
        g = f.grad(x) if whole else batches.mean(f, x, order[:size])
        return PoolEstimate(g, whole, order, size)
