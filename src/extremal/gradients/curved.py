"""A table of derivatives that also keeps second derivatives, by column: curvature for step rules."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from extremal.gradients.base import Bending
from extremal.gradients.table import DerivativeTable, TableEstimate
from extremal.support.memory import room

ENTRIES = 2  # a direction with more entries has its curvature from the batch
BENT = 3  # one row in so many of a batch has its second derivative computed,
FIRST_BENT = 64  # and so many rows at the start
NOISY_SHARE = 0.5  # the share of a step for any noise: NOISY_SHARE / (1 + 2 r),
TRUST, FEW_DRAWN = 6.0, 8.0  # and for measured noise: 1 / (1 + (TRUST (1 + FEW_DRAWN / b) rho)^2)
LOUDEST = 100.0  # in means, more noise than this counts as this much


def bent_rows(b: int) -> int:
    """The number of rows of a batch whose second derivatives are computed."""
    return max(1, b // BENT)


class CurvedTable(DerivativeTable):
    """A table of y_i, a majorant m_i of |phi''| for every row, and the column sums of m_i a_ij^2 and of their squares.

    A row keeps its m_i until it is among the first third of a batch.
    """

    m: np.ndarray
    sums: np.ndarray  # 2 x d
    last: tuple[np.ndarray, np.ndarray, np.ndarray]  # the last batch, its majorants, and its changes of phi'
    noise = 0.0  # the mean of the measured noise, over about one pass

    @classmethod
    def at(cls, f: Any, x: np.ndarray) -> Self:
        """All rows at x, for n component gradients; the second derivatives of a few rows stand for those of all."""
        idx = np.arange(f.n)
        bend = f.bends.at(x, idx, min(f.n, FIRST_BENT))
        table = cls(f, bend.c, f.combine(bend.c))
        table.m = room((f.n,))
        table.m[...] = bend.m.mean()
        table.sums, table.last = f.bends.powers(table.m), (idx[:1], table.m[:1].copy(), np.zeros(1))
        return table

    def draw(self, f: Any, x: np.ndarray, idx: np.ndarray) -> np.ndarray:
        """The derivatives of the rows idx at x; keeps second derivatives for `put`."""
        bend, m = f.bends.at(x, idx, bent_rows(len(idx))), self.m[idx]
        m[: len(bend.m)] = bend.m
        self.last = idx, m, bend.c - self.c[idx]
        return bend.c

    def put(self, f: Any, idx: np.ndarray, c: np.ndarray, distinct: bool) -> None:
        """Put c and the second derivatives of the same rows in the place of the old ones."""
        m = self.last[1]
        super().put(f, idx, c, distinct)
        idx, m = idx[: bent_rows(len(idx))], m[: bent_rows(len(idx))]
        if not distinct:
            idx, first = np.unique(idx, return_index=True)
            m = m[first]
        self.sums += f.bends.powers(m, idx) - f.bends.powers(self.m[idx], idx)
        self.m[idx] = m

    def estimate(self, g: np.ndarray, exact: bool = False) -> CurvedEstimate:
        """The state of an estimator with this table."""
        return CurvedEstimate(g, exact, self, self.last)

    def heard(self, rho: float, b: int) -> float:
        """Add the noise of a step to the mean; return the larger of the two."""
        self.noise += b / self.n * (min(rho, LOUDEST) - self.noise)
        return max(self.noise, rho)


@dataclass(frozen=True)
class CurvedEstimate(TableEstimate, Bending):
    """An estimate that knows curvature: by column from its table, and between columns from its last batch."""

    table: CurvedTable
    last: tuple[np.ndarray, np.ndarray, np.ndarray]

    def curvature(self, f: Any, d: np.ndarray) -> float:
        """sum_j d_j^2 D_j from the table plus the batch's products of columns; for many entries the batch, two errors up."""
        used = np.flatnonzero(d)
        idx, m, _ = self.last
        if len(used) > ENTRIES:
            mean, noise = self._of_batch(f, d)
            return mean + 2.0 * noise
        own = np.square(d[used]) * self._sums(used)[0]
        if len(used) < ENTRIES:
            return float(own.sum())
        cross = float(m @ np.prod(f.bends.entries(idx, used), axis=1)) / len(idx)
        most = math.sqrt(float(own[0] * own[1]))  # by Cauchy and Schwarz
        return float(own.sum()) + 2.0 * min(max(cross * float(d[used[0]] * d[used[1]]), -most), most)

    def share(self, f: Any, d: np.ndarray, gap: float) -> float:
        """max(1/2 / (1 + 2r), min(1 / (1 + (6 (1 + 8/b) rho)^2), 1 / (1 + sqrt r))).

        With u_i = m_i sum_j d_j^2 a_ij^2 and h = d' H d, r = E u^2 / (b h^2) is the noise that a whole step makes. rho is the
        noise that g has: the mean square of <a_i, d> (phi'_i - y_i) over the last batch, divided by b gap^2, or the mean of rho
        over about one pass, if that is larger.
        """
        idx, _, w = self.last
        b, used = len(idx), np.flatnonzero(d)
        if len(used) > ENTRIES:
            (mean, noise), along = self._of_batch(f, d), f.margins(d, idx)
            r = (noise / mean) ** 2 if mean > 0.0 else 0.0
        else:
            h, u2 = self.curvature(f, d), float(np.square(d[used]) @ np.sqrt(self._sums(used)[1])) ** 2
            r, along = u2 / (b * h * h) if h > 0.0 else 0.0, f.bends.entries(idx, used) @ d[used]
        heard = TRUST * (1.0 + FEW_DRAWN / b) * self.table.heard(float(np.square(w * along / (b * gap)).sum()), b)
        return max(NOISY_SHARE / (1.0 + 2.0 * r), min(1.0 / (1.0 + heard * heard), 1.0 / (1.0 + math.sqrt(r))))

    def _sums(self, used: np.ndarray) -> np.ndarray:
        """The means of m_i a_ij^2 and of their squares in some columns; rounding leaves none below 0."""
        return np.maximum(self.table.sums[:, used], 0.0) / self.table.n

    def _of_batch(self, f: Any, d: np.ndarray) -> tuple[float, float]:
        """The mean of m_i <a_i, d>^2 over the last batch, and its standard error."""
        idx, m, _ = self.last
        u = m * np.square(f.margins(d, idx))
        return float(u.mean()), float(u.std()) / math.sqrt(len(u))
