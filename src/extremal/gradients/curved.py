"""A table of derivatives that also keeps second derivatives, by column: curvature for step rules."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from extremal.gradients.base import Bending
from extremal.gradients.table import DerivativeTable, TableEstimate
from extremal.support.memory import room

SHARE = 0.5  # the share of a step along an estimate without noise
ENTRIES = 2  # a direction with more entries has its curvature from the batch


class CurvedTable(DerivativeTable):
    """A table of y_i, a majorant m_i of |phi''| for every row, and the column sums of m_i a_ij^2 and of their squares."""

    m: np.ndarray
    sums: np.ndarray  # 2 x d
    last: tuple[np.ndarray, np.ndarray]  # the last batch, and its majorants

    @classmethod
    def at(cls, f: Any, x: np.ndarray) -> Self:
        """All rows at x: n component gradients, and n rows of second derivatives."""
        idx = np.arange(f.n)
        bend = f.bends.at(x, idx)
        table = cls(f, bend.c, f.combine(bend.c))
        table.m = room((f.n,))
        table.m[...] = bend.m
        table.sums, table.last = f.bends.powers(table.m), (idx[:1], table.m[:1])
        return table

    def draw(self, f: Any, x: np.ndarray, idx: np.ndarray) -> np.ndarray:
        """The derivatives of the rows idx at x; keeps the second derivatives for `put`."""
        bend = f.bends.at(x, idx)
        self.last = idx, bend.m
        return bend.c

    def put(self, f: Any, idx: np.ndarray, c: np.ndarray, distinct: bool) -> None:
        """Put c and the second derivatives of the same rows in the place of the old ones."""
        m = self.last[1]
        super().put(f, idx, c, distinct)
        if not distinct:
            idx, first = np.unique(idx, return_index=True)
            m = m[first]
        self.sums += f.bends.powers(m, idx) - f.bends.powers(self.m[idx], idx)
        self.m[idx] = m

    def estimate(self, g: np.ndarray, exact: bool = False) -> CurvedEstimate:
        """The state of an estimator with this table."""
        return CurvedEstimate(g, exact, self, self.last)


@dataclass(frozen=True)
class CurvedEstimate(TableEstimate, Bending):
    """An estimate that knows curvature: by column from its table, and between columns from its last batch."""

    table: CurvedTable
    last: tuple[np.ndarray, np.ndarray]

    def curvature(self, f: Any, d: np.ndarray) -> float:
        """sum_j d_j^2 D_j from the table plus the batch's products of columns; for many entries the batch, two errors up."""
        used = np.flatnonzero(d)
        idx, m = self.last
        if len(used) > ENTRIES:
            mean, noise = self._of_batch(f, d)
            return mean + 2.0 * noise
        own = np.square(d[used]) * self._sums(used)[0]
        if len(used) < ENTRIES:
            return float(own.sum())
        cross = float(m @ np.prod(f.bends.entries(idx, used), axis=1)) / len(idx)
        most = math.sqrt(float(own[0] * own[1]))  # by Cauchy and Schwarz
        return float(own.sum()) + 2.0 * min(max(cross * float(d[used[0]] * d[used[1]]), -most), most)

    def share(self, f: Any, d: np.ndarray) -> float:
        """1/2 / (1 + 2 E u^2 / (b h^2)) for u_i = m_i sum_j d_j^2 a_ij^2 and h = d' H d: noisy batches get short steps."""
        used = np.flatnonzero(d)
        if len(used) > ENTRIES:
            mean, noise = self._of_batch(f, d)
            return SHARE / (1.0 + 2.0 * (noise / mean) ** 2) if mean > 0.0 else SHARE
        h, u2 = self.curvature(f, d), float(np.square(d[used]) @ np.sqrt(self._sums(used)[1])) ** 2
        return SHARE / (1.0 + 2.0 * u2 / (len(self.last[0]) * h * h)) if h > 0.0 else SHARE

    def _sums(self, used: np.ndarray) -> np.ndarray:
        """The means of m_i a_ij^2 and of their squares in some columns; rounding leaves none below 0."""
        return np.maximum(self.table.sums[:, used], 0.0) / self.table.n

    def _of_batch(self, f: Any, d: np.ndarray) -> tuple[float, float]:
        """The mean of m_i <a_i, d>^2 over the last batch, and its standard error."""
        idx, m = self.last
        u = m * np.square(f.margins(d, idx))
        return float(u.mean()), float(u.std()) / math.sqrt(len(u))
