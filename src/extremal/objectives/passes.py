"""Batches that go through all rows in random order, pass by pass."""

from __future__ import annotations

import numpy as np

from extremal.kernels.arguments import kernels
from extremal.objectives.base import IN_PASSES, Sampler


class PassSampler(Sampler):
    """Draw each row once per pass: every pass has a random order of its own, and batches follow it.

    A batch at the end of a pass goes on with the next one. Rows that it already has move behind it there, so that its rows are
    distinct. Between two draws of a row lie fewer than two passes. Rows that are read as blocks of consecutive rows, which are
    in random order, are read round by round from a random row on. Batches of more than half of the rows, and batches with
    replacement, are drawn as by `Sampler`.

    Examples
    --------
    >>> sampler = PassSampler(6, seed=0)
    >>> np.sort(np.concatenate([sampler.rows(k, 2) for k in range(3)]))
    array([0, 1, 2, 3, 4, 5])
    """

    def __init__(self, *given: object, **named: object):
        super().__init__(*given, **named)  # type: ignore[arg-type]
        self._orders: dict[tuple[int, int, int], np.ndarray] = {}  # of the last passes, by stream, pass and batch

    def _drawn_at(self, stream: int, block: int, steps: int, batch: int, replace: bool) -> np.ndarray:
        if replace or 2 * batch > self.n or len(self.bounds) > 2:
            return super()._drawn_at(stream, block, steps, batch, replace)
        first = block * steps * batch
        if self.blocks:
            start = int(self._rng(IN_PASSES, stream).integers(0, self.n))
            return (start + first + np.arange(steps * batch).reshape(steps, batch)) % self.n
        last = first + steps * batch
        passes = range(first // self.n, -(-last // self.n))
        found = [self._order(stream, p, batch)[max(first - p * self.n, 0) : last - p * self.n] for p in passes]
        return np.concatenate(found).reshape(steps, batch)

    def _order(self, stream: int, p: int, batch: int) -> np.ndarray:
        """The order of pass p; a batch that began in the pass before meets no row twice."""
        key = stream, p, batch
        if key not in self._orders:
            order, begun = self._shuffled(stream, p), p * self.n % batch
            if begun:
                before = self._orders.get((stream, p - 1, batch))  # it ends as it was drawn: a batch is at most half of the rows
                met = np.zeros(self.n, bool)
                met[(self._shuffled(stream, p - 1) if before is None else before)[self.n - begun :]] = True
                met = met[order[:batch]]
                order[:batch] = np.concatenate([order[:batch][~met], order[:batch][met]])
            self._orders = {old: kept for old, kept in self._orders.items() if old[1] == p - 1} | {key: order}
        return self._orders[key]

    def _shuffled(self, stream: int, p: int) -> np.ndarray:
        out = np.empty(self.n, np.int64)
        kernels("draw").in_random_order(np.random.default_rng((self.seed, self.shard, IN_PASSES, stream, p)).random(self.n), out)
        return out

    def ready(self) -> None:
        """Compile the drawing of orders, so that the clock of a run does not pay for it."""
        kernels("draw").in_random_order(np.zeros(1), np.empty(1, np.int64))
