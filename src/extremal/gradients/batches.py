"""Batches for every estimator: their size, their rows, and their mean gradient; plain batches, and a growing pool."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.gradients.base import Batched, Facts, OnePoint, Phase, PlainEstimate
from extremal.laws import Doubling, EpochLength, Geometric, PowerLaw
from extremal.objectives.base import Objective, Sampler

Batch = int | PowerLaw | Geometric | EpochLength
Epoch = int | Doubling
SUMMED = 2**12  # long epochs are sampled at this many iterations; shorter ones are summed exactly


def check_batch(call: str, batch: Batch) -> Batch:
    """Refuse a batch that is neither a positive integer nor a law."""
    return batch if isinstance(batch, (PowerLaw, Geometric, EpochLength)) else checks.whole(call, "batch", batch, 1)


def check_fits(call: str, batch: Batch, n: int) -> None:
    """Refuse a fixed batch above n; laws are capped at n."""
    if isinstance(batch, int):
        checks.whole(call, "batch", batch, 1, n)


def size(batch: Batch, n: int, k: int, phase: Phase | None = None) -> int:
    """The batch size: fixed, by iteration (within the epoch, if there are epochs), or by the epoch or its length; at most n."""
    if isinstance(batch, int):
        return batch
    if isinstance(batch, (PowerLaw, Geometric)):
        place = k if phase is None else phase.epoch if isinstance(batch, Geometric) else phase.k
        return max(1, min(n, math.ceil(batch(place) - 1e-9)))
    if phase is None:
        raise InputError(f"{batch} needs an estimator with epochs")
    return max(1, min(n, math.ceil(batch.scale * phase.length)))


def draw(sampler: Sampler, k: int, batch: Batch, b: int, replace: bool) -> np.ndarray:
    """b rows for step k."""
    return sampler.rows(k, b, replace) if isinstance(batch, int) else sampler.fresh(k, b, replace)


def mean(f: Objective, x: np.ndarray, idx: np.ndarray) -> np.ndarray:
    """(1/b) sum over idx of grad f_i(x)."""
    return f.combine(f.derivs(x, idx), idx)


def length(epoch: Epoch) -> Callable[[int], int]:
    """The length of epoch t, as a function of t."""
    return epoch if isinstance(epoch, Doubling) else lambda t: epoch


def check_epoch(call: str, epoch: Epoch) -> Epoch:
    """Refuse an epoch that is neither a positive integer nor a law."""
    return epoch if isinstance(epoch, Doubling) else checks.whole(call, "epoch", epoch, 1)


def _total(m: int, cost: Callable[[int], float]) -> float:
    """The sum of cost(k) over k < m. Long epochs use trapezoids between geometrically spaced points, exact for lines.

    Examples
    --------
    >>> _total(3, lambda k: k), _total(10**9, lambda k: 7 if k == 0 else 2)
    (3, 2000000005)
    """
    if m <= SUMMED:
        return sum(cost(k) for k in range(m))
    places = np.unique(np.geomspace(1, m - 1, SUMMED).round().astype(np.int64)).tolist()
    twice = sum((b - a) * (cost(a) + cost(b)) + cost(b) - cost(a) for a, b in pairwise(places))  # of cost(a + 1) + ... + cost(b)
    return cost(0) + cost(1) + (twice // 2 if isinstance(twice, int) else twice / 2)


def epoch_costs(epoch: Epoch, cost: Callable[[Phase], float]) -> float | Callable[[int], float]:
    """The cost of update k, given the cost of an update that ends in a phase; the mean, if all epochs are alike."""
    if isinstance(epoch, int):
        return _total(epoch, lambda k: cost(Phase(0, k, epoch))) / epoch
    known = [Phase(0, 0, epoch(0))]

    def at(k: int) -> float:
        while len(known) < k + 2:
            known.append(known[-1].next(epoch))
        return cost(known[k + 1])

    return at


@dataclass(frozen=True)
class MiniBatch(OnePoint[PlainEstimate], Batched[PlainEstimate]):
    """g = (1/b) sum_{i in S} grad f_i(x), with a new batch at each step: unbiased, with a variance that does not vanish.

    Cost: b component gradients per step, no memory. A growing batch becomes the whole sum once it reaches n.

    Parameters
    ----------
    batch : int, PowerLaw or Geometric
        b, or b_k.
    replace : bool
        Whether to draw the rows of a batch with replacement.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.gradients.MiniBatch(batch=ex.laws.PowerLaw(scale=1, shift=1, power=2))
    MiniBatch(batch=PowerLaw(scale=1, shift=1, power=2), replace=False)
    """

    batch: Batch
    replace: bool = False

    def _checked_batch(self, call: str) -> Batch:
        return check_batch(call, self.batch)

    def facts(self, n: int) -> Facts:
        check_fits("MiniBatch", self.batch, n)
        per_step = self.batch if isinstance(self.batch, int) else lambda k: size(self.batch, n, k + 1)
        return Facts(start=size(self.batch, n, 0), per_step=per_step, one_point=True)

    def _at(self, f: Objective, j: int, x: np.ndarray, state: PlainEstimate | None, sampler: Sampler) -> PlainEstimate:
        b = size(self.batch, f.n, j)
        if b == f.n and not self.replace:
            return PlainEstimate(f.grad(x), exact=True)
        return PlainEstimate(mean(f, x, draw(sampler, j, self.batch, b, self.replace)), exact=False)


@dataclass(frozen=True)
class PoolEstimate(PlainEstimate):
    """The mean over the pool; exact once the pool is the whole sum."""

    order: np.ndarray  # all components in random order; the pool is its head
    size: int  # number of components in the pool


@dataclass(frozen=True)
class Pool(OnePoint[PoolEstimate]):
    """The gradient over all components seen so far: g = (1/t) sum_{tau <= t} grad f_{i_tau}(x), at the current x.

    Each step adds ``batch`` new components and evaluates the whole pool again: b t component gradients at step t. With all n
    components in the pool, g is the full gradient. Memory: n indices.

    Parameters
    ----------
    batch : int
        Number of components added at each step.

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
        order, many = (sampler.order(), self.batch) if state is None else (state.order, min(f.n, state.size + self.batch))
        whole = many == f.n
        g = f.grad(x) if whole else mean(f, x, order[:many])
        return PoolEstimate(g, whole, order, many)
