"""A table that also keeps second derivatives, and is read at the current point by its own Taylor terms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from extremal import checks
from extremal.gradients.base import Batched, Bending, Facts, Steps
from extremal.objectives.base import Sampler
from extremal.support.memory import room

FALLEN = 1e-4  # share of its value at the last refresh at which max |g| asks for the next one: below, rounding adds up
COLUMNS = 64  # room for this many columns at first
MANY_ENTRIES = 64  # entries of a direction above which its product with the Hessian is a pass over the rows


class TrackedTable:
    """phi', phi'' and the margin of every row where the row was last drawn, and sums over the rows that follow x.

        G = sum_i y_i(x) a_i,   y_i(x) = phi'_i + phi''_i (<a_i, x> - z_i),   H = sum_i phi''_i a_i a_i'

    Only columns of H are kept in which x has moved, d numbers each. The table belongs to the run, and changes in place.
    """

    def __init__(self, f: Any):
        n, d = f.n, f.shape[0]
        self.bounded = f.bends.majorant is not None  # whether majorants differ from phi''
        self.c, self.q, self.z = (room((n,)) for _ in range(3))
        self.m = room((n,)) if self.bounded else self.q  # the majorants of |phi''|
        for a in (self.c, self.q, self.z, self.m):
            a[...] = 0.0
        self.fresh = np.ones(n, bool)  # rows that were never drawn
        self.G, self.counts = np.zeros(d), np.zeros(2, np.int64)  # how many columns are kept, and how many rows were drawn
        self.W, self.place = np.zeros(COLUMNS, np.int64), np.full(d, -1, np.int64)  # the columns, and where each begins in H
        self.H = np.zeros((COLUMNS, d))  # a row for each column that is kept, and room for more
        self.M = np.zeros((COLUMNS, d)) if self.bounded else self.H

    def restore_state(self, state: dict[str, Any]) -> None:
        """Take the state of a checkpoint; compiled code does not look whether places are inside."""
        vars(self).update(state)
        n, d, room = len(self.c), len(self.G), len(self.W)
        sizes = all(len(a) == n for a in (self.q, self.z, self.m, self.fresh)) and len(self.place) == d
        inside = 0 <= self.kept <= room and ((self.W >= 0) & (self.W < d)).all() and (self.place >= -1).all()
        if not (sizes and inside and self.H.shape == self.M.shape == (room, d) and (self.place <= (room - 1) * d).all()):
            raise ValueError("a table whose places are outside")

    @property
    def kept(self) -> int:
        """How many columns are kept."""
        return int(self.counts[0])

    @property
    def seen(self) -> int:
        """How many rows were drawn."""
        return int(self.counts[1])

    def grow(self) -> None:
        """Make room for twice as many columns."""
        self.W = np.append(self.W, np.zeros_like(self.W))
        self.H = np.vstack([self.H, np.zeros_like(self.H)])
        self.M = np.vstack([self.M, np.zeros_like(self.M)]) if self.bounded else self.H

    def look(self, f: Any, x: np.ndarray, idx: np.ndarray) -> np.ndarray:
        """Draw the rows idx at x: their entries replace the old ones in all sums. Return w_i = phi'_i - y_i(x), their errors."""
        at, k = f.bends.at(x, idx), self.kept
        first = self.fresh[idx]
        w = at.c - np.where(first, 0.0, self.c[idx] + self.q[idx] * (at.z - self.z[idx]))
        self.G += len(idx) * f.combine(w, idx)
        if k:
            entries = f.bends.entries(idx, self.W[:k])
            for sums, old, new in ((self.H, self.q, at.q), (self.M, self.m, at.m))[: 1 + self.bounded]:
                sums[:k] += len(idx) * f.combine((new - old[idx])[:, None] * entries, idx).T
        self.counts[1] += first.sum()
        self.fresh[idx] = False
        self.c[idx], self.z[idx], self.m[idx], self.q[idx] = at.c, at.z, at.m, at.q
        return w

    def renew(self, f: Any, x: np.ndarray) -> None:
        """Draw all rows at x, and add up the sums anew: n component gradients, and n rows of second derivatives."""
        at, k = f.bends.at(x, np.arange(f.n)), self.kept
        self.c[...], self.z[...], self.m[...], self.q[...] = at.c, at.z, at.m, at.q
        self.fresh[...], self.counts[1] = False, f.n
        self.G[...] = f.n * f.combine(at.c)
        if k:
            self.H[:k], *bounds = f.bends.products(self.W[:k], *(self.q, self.m)[: 1 + self.bounded])
            if bounds:
                self.M[:k] = bounds[0]

    def move(self, f: Any, d: np.ndarray) -> None:
        """Read the whole table at a new x: G += H d."""
        self.G += self.product(f, d, self.q)

    def product(self, f: Any, d: np.ndarray, h: np.ndarray) -> np.ndarray:
        """sum_i h_i a_i <a_i, d> for h = phi'' or its majorant, from the columns if d has few entries."""
        moved = np.flatnonzero(d)
        if len(moved) > MANY_ENTRIES and (self.place[moved] < 0).any():
            return f.bends.product(d, h)
        for j in moved[self.place[moved] < 0]:
            self._keep(f, int(j))
        return d[moved] @ (self.H if h is self.q else self.M)[self.place[moved] // len(self.G)]

    def _keep(self, f: Any, j: int) -> None:
        """Add column j: one read."""
        k, unit = self.kept, np.zeros(f.shape)
        if k == len(self.W):
            self.grow()
        unit[j], self.place[j], self.W[k], self.counts[0] = 1.0, k * len(self.G), j, k + 1
        self.H[k] = f.bends.product(unit, self.q)
        if self.bounded:
            self.M[k] = f.bends.product(unit, self.m)

    def estimate(self, top: float, exact: bool = False) -> TrackedEstimate:
        """The state of an estimator with this table."""
        return TrackedEstimate(self.G / self.seen, exact, self, top)


@dataclass(frozen=True)
class TrackedEstimate(Bending):
    """An estimate, its table, and max |g| at the last refresh."""

    g: np.ndarray
    exact: bool
    table: TrackedTable  # changed in place by the next update
    top: float

    def curvature(self, f: Any, d: np.ndarray) -> float:
        """d' M d for the mean M of the majorants, from the table."""
        return float(d @ self.table.product(f, d, self.table.m)) / self.table.seen

    def share(self, f: Any, d: np.ndarray, gap: float) -> float:
        """1: the whole step."""
        return 1.0


@dataclass(frozen=True)
class TrackedSag(Batched[TrackedEstimate]):
    """The mean of a table that is read at the current point by its own Taylor terms.

        y_i(x) = phi'_i + phi''_i (<a_i, x> - z_i),   phi'_i, phi''_i, z_i from the last draw of row i;   rows of S are drawn at x
        g = (1/N) sum_i y_i(x) a_i over the N rows that were drawn so far

    The error of row i is at most sup |phi'''| (<a_i, x> - z_i)^2 / 2, second order in the way since its last draw; the error of
    `Sag` is first order. Cost: b component gradients and b rows of second derivatives per step, which count as b component
    gradients more. A column in which x moves for the first time takes one read of the rows. When max |g| has fallen by 1e4, the
    table is drawn anew (2n), so that rounding does not add up. Memory: 3n numbers, and d for each column in which x has moved.

    Parameters
    ----------
    batch : int
        b, from 1 to n.
    start : "cold" or "full"
        "cold" starts from the rows of the first batch, "full" from all rows, for 2n component gradients.
    replace : bool
        Whether to draw the rows of a batch with replacement.

    References
    ----------
    Rodomanov, Kropotov (2016), A superlinearly-convergent proximal Newton-type method for the optimization of finite sums, ICML;
    Gower, Le Roux, Bach (2018), Tracking the gradients using the Hessian, arXiv:1710.07462.

    Examples
    --------
    >>> TrackedSag(batch=10)
    TrackedSag(batch=10, start='cold', replace=False)
    """

    batch: int
    start: Literal["cold", "full"] = "cold"
    replace: bool = False

    def __post_init__(self):
        super().__post_init__()
        checks.one_of("start", self.start, ("cold", "full"))

    def facts(self, n: int) -> Facts:
        """2b component gradients per step, half of them rows of second derivatives."""
        b = checks.whole("TrackedSag", "batch", self.batch, 1, n)
        return Facts(2 * n if self.start == "full" else 2 * b, per_step=2 * b, bends=True)

    def init(self, f: Any, x: np.ndarray, sampler: Sampler) -> TrackedEstimate:
        table = TrackedTable(f)
        if self.start == "full":
            table.renew(f, x)
            return renewed(table)
        self._look(f, 0, x, table, sampler)
        return table.estimate(float(np.abs(table.G).max()) / table.seen)

    def update(
        self, f: Any, k: int, x_prev: np.ndarray, x: np.ndarray, steps: Steps, state: TrackedEstimate, sampler: Sampler
    ) -> TrackedEstimate:
        table = state.table
        table.move(f, x - x_prev)
        self._look(f, k + 1, x, table, sampler)
        if table.seen == f.n and np.abs(table.G).max() < FALLEN * state.top * f.n:
            table.renew(f, x)
            return renewed(table)
        return table.estimate(state.top)

    def _look(self, f: Any, j: int, x: np.ndarray, table: TrackedTable, sampler: Sampler) -> None:
        idx = sampler.rows(j, self.batch, self.replace)
        table.look(f, x, np.unique(idx) if self.replace else idx)


def renewed(table: TrackedTable) -> TrackedEstimate:
    """The estimate after all rows were drawn: the full gradient."""
    return table.estimate(float(np.abs(table.G).max()) / table.seen, exact=True)
