"""SAGA with a table that is read at the current point by its own Taylor terms: unbiased, with noise of fourth order."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal import checks
from extremal.gradients.base import Batched, Facts, Renewing, Steps
from extremal.gradients.tracked import TrackedEstimate, TrackedTable, renewed
from extremal.objectives.base import Sampler

BETWEEN = 4  # passes of batches between two full passes, if the epoch is left out


@dataclass
class _Wishes:
    """What a run asks of its estimator; it belongs to the run, and changes in place."""

    full: bool = False  # the next estimate is to be the full gradient


@dataclass(frozen=True)
class TrackedSagaEstimate(TrackedEstimate, Renewing):
    """An estimate, its table, the fresh errors of its batch, and how many iterations ago all rows were drawn."""

    idx: np.ndarray  # the batch; empty after a full pass
    w: np.ndarray  # phi'_i - y_i(x) of its rows, before the table took them
    age: int
    wishes: _Wishes

    def renew(self) -> None:
        """Let the next estimate be the full gradient."""
        self.wishes.full = True

    def doubt(self, f: Any, d: np.ndarray) -> float:
        """|(1/b) sum_{i in S} w_i <a_i, d>|: by how much the fresh errors change the slope along d."""
        return abs(float(self.w @ f.margins(d, self.idx))) / len(self.idx) if len(self.idx) else 0.0

    def share(self, f: Any, d: np.ndarray, gap: float) -> float:
        """1 - u, if the fresh errors make up the share u of the gap; 0 for u >= 1, and the next estimate is the full gradient."""
        doubt = self.doubt(f, d)
        if 0.0 < doubt >= gap:
            self.renew()
            return 0.0
        return 1.0 - doubt / gap if doubt > 0.0 else 1.0


@dataclass(frozen=True)
class TrackedSaga(Batched[TrackedSagaEstimate]):
    """The table of `TrackedSag`, corrected by the mean of its fresh errors: unbiased, with noise of fourth order.

        y_i(x) = phi'_i + phi''_i (<a_i, x> - z_i),   phi'_i, phi''_i, z_i from the last draw of row i
        g = (1/n) sum_i y_i(x) a_i + (1/b) sum_{i in S} w_i a_i,   w_i = phi'(<a_i, x>) - y_i(x);   then rows of S are drawn at x

    Batches are independent, so the mean of g is grad f(x). w_i is of second order in the way since the last draw of row i, and
    the variance of g of fourth order. A test shortens steps, and costs no gradient: if |(1/b) sum_S w_i <a_i, d>| is the share u
    of the gap, the step is 1 - u times as long. For u >= 1, x stays, and a full pass follows. A full pass also comes after an
    epoch of iterations. Cost: 2n component gradients at the start and for a full pass, half of them rows of second derivatives,
    and 2b in other iterations. Memory: 3n numbers, and d for each column in which x has moved.

    Parameters
    ----------
    batch : int
        b, from 1 to n.
    epoch : int, optional
        Iterations from one full pass to the next, at most. Default: ceil(4 n / b).
    replace : bool
        Whether to draw the rows of a batch with replacement.

    References
    ----------
    Defazio, Bach, Lacoste-Julien (2014), arXiv:1407.0202; Gower, Le Roux, Bach (2018), Tracking the gradients using the Hessian,
    arXiv:1710.07462.

    Examples
    --------
    >>> TrackedSaga(batch=10)
    TrackedSaga(batch=10, epoch=None, replace=False)
    """

    batch: int
    epoch: int | None = None
    replace: bool = False

    def __post_init__(self):
        super().__post_init__()
        if self.epoch is not None:
            checks.fix(self, epoch=checks.whole("TrackedSaga", "epoch", self.epoch, 1))

    def facts(self, n: int) -> Facts:
        """2n component gradients once an epoch, and 2b in its other iterations."""
        b = checks.whole("TrackedSaga", "batch", self.batch, 1, n)
        m = self._length(n)
        return Facts(2 * n, per_step=2 * (n + b * (m - 1)) / m, bends=True)

    def init(self, f: Any, x: np.ndarray, sampler: Sampler) -> TrackedSagaEstimate:
        return _exact(f, TrackedTable(f), x)

    def update(
        self, f: Any, k: int, x_prev: np.ndarray, x: np.ndarray, steps: Steps, state: TrackedSagaEstimate, sampler: Sampler
    ) -> TrackedSagaEstimate:
        table = state.table
        if state.wishes.full or state.age + 1 >= self._length(f.n):
            return _exact(f, table, x)
        table.move(f, x - x_prev)
        old, idx = table.G / f.n, sampler.rows(k + 1, self.batch, self.replace)
        rows, place = np.unique(idx, return_inverse=True) if self.replace else (idx, np.arange(len(idx)))
        w = table.look(f, x, rows)[place]
        return TrackedSagaEstimate(old + f.combine(w, idx), False, table, state.top, idx, w, state.age + 1, _Wishes())

    def _length(self, n: int) -> int:
        return math.ceil(BETWEEN * n / self.batch) if self.epoch is None else self.epoch


def _exact(f: Any, table: TrackedTable, x: np.ndarray) -> TrackedSagaEstimate:
    """The full gradient at x, and the table of all rows there."""
    table.renew(f, x)
    full = renewed(table)
    none = np.empty(0, np.int64)
    return TrackedSagaEstimate(full.g, True, table, full.top, none, np.empty(0), 0, _Wishes())
