"""Variance reduction without full gradients and without a table: each pass over the rows gathers the start of the next one."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from extremal import checks
from extremal.gradients.base import Batched, Facts, PlainEstimate, Steps
from extremal.gradients.batches import mean
from extremal.objectives.base import Objective, Sampler


@dataclass(frozen=True)
class ShuffledEstimate(PlainEstimate):
    """The estimate, with what the pass has gathered so far."""

    w: np.ndarray  # the point at the start of the pass
    gathered: np.ndarray  # the mean of the batch gradients of this pass


@dataclass(frozen=True)
class ShuffledSarah(Batched[PlainEstimate]):
    """A recursive estimate over passes in random order; it takes no full gradient and keeps no table.

        g = mean of the batch gradients so far                        in the first pass
        g = mean of the batch gradients of the last pass              at the start w of a later pass
        g = g_prev + (1/m) [grad f_S(x) - grad f_S(w)]                within it,   m = ceil(n/b)

    grad f_S is the mean over the batch S. Batches are consecutive pieces of a random order of the rows, as for `Reshuffled`.
    Cost: b component gradients per step in the first pass and at the start of a pass, 2b otherwise; memory O(d). A batch of n
    takes full gradients, which are exact.

    Parameters
    ----------
    batch : int
        b, from 1 to n.

    References
    ----------
    Beznosikov, Takac (2021), Random-reshuffled SARAH does not need full gradient computations, arXiv:2111.13322. The first pass
    is this library's: there, the first estimate is given.

    Examples
    --------
    >>> ShuffledSarah(batch=10).facts(100).start
    10
    """

    batch: int
    replace: bool = field(default=False, init=False, repr=False)  # the order decides

    def facts(self, n: int) -> Facts:
        b = checks.whole("ShuffledSarah", "batch", self.batch, 1, n)
        m = -(-n // b)
        return Facts(start=b, per_step=lambda k: b if k + 1 < m or (k + 1) % m == 0 else 2 * b, passes=True)

    def init(self, f: Objective, x: np.ndarray, sampler: Sampler) -> PlainEstimate:
        if self.batch == f.n:
            return PlainEstimate(f.grad(x), exact=True)
        g = mean(f, x, sampler.rows(0, self.batch))
        return ShuffledEstimate(g, False, x, g)

    def update(
        self, f: Objective, k: int, x_prev: np.ndarray, x: np.ndarray, steps: Steps, state: PlainEstimate, sampler: Sampler
    ) -> PlainEstimate:
        if not isinstance(state, ShuffledEstimate):
            return PlainEstimate(f.grad(x), exact=True)
        m = -(-f.n // self.batch)
        idx, (passes, i) = sampler.rows(k + 1, self.batch), divmod(k + 1, m)
        derivs = f.derivs(x, idx)
        here = f.combine(derivs, idx)
        if i == 0:
            return ShuffledEstimate(1.0 * state.gathered, False, x, here)  # a new vector: each step asks the oracle
        gathered = state.gathered + (here - state.gathered) / (i + 1)
        if passes == 0:
            return ShuffledEstimate(gathered, False, state.w, gathered)
        g = state.g + f.combine(derivs - f.derivs(state.w, idx), idx) / m
        return ShuffledEstimate(g, False, state.w, gathered)
