"""Gradients of rows that are read slab by slab: after one read of all rows, x is nearly as good as after Newton steps on them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from extremal.gradients.base import Facts, Looked, Steps
from extremal.gradients.full import Growing, GrowingEstimate
from extremal.objectives.base import Objective, Sampler
from extremal.objectives.slabs import Slab, SlabModel
from extremal.sets.base import Spikes
from extremal.sets.shared import least_products

DEVIATIONS = 3.0  # a column may enter if its gradient would be the best at this many standard deviations of its noise,
COMING = 1, 20  # at most this multiple of those in use, and at least this number
SOLVED = 0.01  # a model is solved when a step gains less than this share of its error
TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class SlabEstimate(Looked):
    """The gradient of the model of all slabs, as if there were no columns without a Hessian."""

    slabs: tuple[Slab, ...] = ()
    size: int = 0  # rows in all slabs
    noise: np.ndarray = field(default_factory=lambda: np.zeros(0))  # of one row in the gradient, for each column


@dataclass(frozen=True)
class Streamed(Growing):
    """g from slabs of rows, each read once, at the best point known by then; after the last slab, the full gradient.

        g(x) = sum_b w_b [g_b + H (x - x_b)],   g_b the mean gradient of slab b at x_b, w_b its share of the rows read so far

    H is the Hessian of the last slab. It has the columns in use, and those that may come in: column j, if |g_j| + 3 s_j / sqrt(m)
    reaches the best. s_j is the root mean square of the entries of one row's gradient, and m the number of rows read. The first
    n / ``parts`` rows are a sample, for steps as by `Growing`; then each slab makes the rows read more by ``factor``. The error
    of a slab is of second order in x - x_b. So with k columns in use, x is about k / n from the solution after the last slab,
    while x_b is sqrt(k / m) from it. Full gradients follow, and steps from the first of them use H.

    Rows have to be in shuffled shards (`ShardDir`), and the loss needs a ``self_concordance``; otherwise this is `Growing`. The
    move is `SpikeNewton`. Cost: one read of all rows for the slabs, some reads of n / ``parts`` for the sample, and one read for
    each full gradient. A row of a slab counts as two component gradients, one of them for its row of H. Memory: k^2, and d for
    each slab.

    Parameters
    ----------
    parts : int
        The sample has n / parts rows, but at least 1000.
    factor : int
        Growth factor of the rows read, at least 2.

    References
    ----------
    Rodomanov, Kropotov (2016), A superlinearly-convergent proximal Newton-type method for the optimization of finite sums, ICML;
    Byrd, Chin, Nocedal, Wu (2012), Sample size selection in optimization methods for machine learning, Math. Program. 134.

    Examples
    --------
    >>> Streamed()
    Streamed(parts=64, factor=4)
    """

    parts: int = 64
    rows_each: ClassVar[int] = 25  # slabs improve what a small sample says
    spikes: Spikes = field(default=Spikes(-1.0, 1.0, True), repr=False, compare=False)  # those of the set

    def facts(self, n: int) -> Facts:
        facts = super().facts(n)
        return replace(facts, needs=(*facts.needs, "slab"))

    def update(self, f: Objective, k: int, x_prev: np.ndarray, x: np.ndarray, steps: Steps, state: Any, sampler: Sampler) -> Any:
        if isinstance(state, SlabEstimate):
            return self._onward(f, x, state)
        return _whole(f, x) if state.exact else super().update(f, k, x_prev, x, steps, state, sampler)

    def _solved(self, f: Any, x: np.ndarray, new: GrowingEstimate, sampler: Sampler) -> Looked:
        """The first slab, which includes the sample."""
        if not f.in_slabs:
            return super()._solved(f, x, new, sampler)
        noise = new.model.noise(new.z)
        return self._next(f, x, new.g, new.model.n, SlabEstimate(new.g, False, new.value, x, new.model, noise=noise))

    def _onward(self, f: Any, x: np.ndarray, state: SlabEstimate) -> Looked:
        """The same model at a new point, until it is solved; then the next slab, or all rows."""
        value, g = state.model.look(x)
        if state.value - value > SOLVED * np.count_nonzero(x) / state.size:
            return self._at_model(x, state)
        if state.size < f.n:
            return self._next(f, x, g, state.size, state)
        return _whole(f, x, state.model)

    def _next(self, f: Any, x: np.ndarray, g: np.ndarray, m: int, state: SlabEstimate) -> Looked:
        """Read the next slab at x, after m rows with the gradient g."""
        size = f.n if 2 * self.factor * m > f.n else self.factor * m
        W = self._columns(x, g, state.noise / math.sqrt(m), state.slabs)
        slabs = (*state.slabs, f.slab(size, state.size, x, W))
        if not np.isfinite(slabs[-1].H).all():  # line searches on all rows know what to do
            return _whole(f, x)
        return self._at_model(x, replace(state, model=SlabModel.of(slabs, W), slabs=slabs, size=size))

    def _columns(self, x: np.ndarray, g: np.ndarray, noise: np.ndarray, slabs: tuple[Slab, ...]) -> np.ndarray:
        """The columns in use now or in a slab, and those that might be the best within the noise of their gradients."""
        used = np.flatnonzero(np.any([x != 0, *(slab.x != 0 for slab in slabs)], axis=0))
        now, reach = least_products(self.spikes, g), np.maximum(self.spikes.high, np.negative(self.spikes.low))
        low = now - DEVIATIONS * reach * noise
        best = now[used].min() if len(used) else now.min()  # a slope without a Hessian may be far off
        low[used] = np.inf
        some = np.flatnonzero(low < best)
        most = max(COMING[0] * len(used), COMING[1])
        return np.union1d(used, some[np.argsort(low[some], kind="stable")[:most]])

    def _at_model(self, x: np.ndarray, state: SlabEstimate) -> SlabEstimate:
        """The model at x; no vertex is promising at a column without a Hessian."""
        value, g = state.model.look(x)
        return replace(state, g=shut(g, state.model.columns, self.spikes), value=value, z=x)


def shut(g: np.ndarray, known: np.ndarray, spikes: Spikes) -> np.ndarray:
    """g with other unknown entries, at which no vertex is better than the best one at the known entries.

    Examples
    --------
    >>> g = np.array([1.0, -3.0, 2.0])
    >>> shut(g, np.array([0, 2]), Spikes(-1.0, 1.0, True)), shut(g, np.array([0, 2]), Spikes(0.0, 1.0, False))
    (array([1., 0., 2.]), array([1., 2., 2.]))
    """
    low, high = spikes.low, spikes.high
    worst = np.abs(g[known]).max(initial=0.0) * np.max(np.maximum(high, np.negative(low)))
    side = np.equal(low, 0).astype(float) - np.equal(high, 0)  # with vertices on both sides, no entry is worse than 0
    out = np.array(np.broadcast_to(side * worst / np.maximum(np.subtract(high, low), TINY), g.shape))
    out[known] = g[known]
    return out


def _whole(f: Any, x: np.ndarray, near: SlabModel | None = None) -> Looked:
    """The full gradient; the Hessian of a model near x may serve the next step."""
    value, g, z = f.value_grad_margins(x)
    f.near = near
    return Looked(g, True, value, z, f)
