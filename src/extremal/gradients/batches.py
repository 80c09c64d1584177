"""Batches for every estimator: how large, which rows, the mean gradient over them."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.gradients.base import Phase
from extremal.laws import Doubling, EpochLength, PowerLaw
from extremal.objectives.base import Objective
from extremal.objectives.sampling import Sampler

Batch = int | PowerLaw | EpochLength
Epoch = int | Doubling


def check_batch(call: str, batch: Batch) -> Batch:
    """Refuse a batch that is neither a whole number from 1 on nor a law."""
    return batch if isinstance(batch, (PowerLaw, EpochLength)) else checks.whole(call, "batch", batch, 1)


def check_fits(call: str, batch: Batch, n: int) -> None:
    """Refuse a fixed batch above n; laws are capped there."""
    if isinstance(batch, int):
        checks.whole(call, "batch", batch, 1, n)


def size(batch: Batch, n: int, k: int, phase: Phase | None = None) -> int:
    """Rows of the batch: fixed, by iteration (within the epoch, if there are epochs), or by the epoch's length; at most n."""
    if isinstance(batch, int):
        return batch
    if isinstance(batch, PowerLaw):
        return max(1, min(n, math.ceil(batch(k if phase is None else phase.k) - 1e-9)))
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
    """How long epoch t is."""
    return epoch if isinstance(epoch, Doubling) else lambda t: epoch


def check_epoch(call: str, epoch: Epoch) -> Epoch:
    """Refuse an epoch that is neither a whole number from 1 on nor a law."""
    return epoch if isinstance(epoch, Doubling) else checks.whole(call, "epoch", epoch, 1)


def epoch_costs(epoch: Epoch, cost: Callable[[Phase], float]) -> float | Callable[[int], float]:
    """Cost of update k, given what an update that ends in a phase costs; the mean, if all epochs are alike."""
    if isinstance(epoch, int):
        return sum(cost(Phase(0, k, epoch)) for k in range(epoch)) / epoch
    known = [Phase(0, 0, epoch(0))]

    def at(k: int) -> float:
        while len(known) < k + 2:
            known.append(known[-1].next(epoch))
        return cost(known[k + 1])

    return at
