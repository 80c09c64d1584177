"""Fit batch by batch to data that are seen once: Frank-Wolfe steps along averaged gradients."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import DTypeLike

from extremal.checks import InputError
from extremal.data.rows import RowData
from extremal.losses.base import Loss
from extremal.objectives.intercept import InterceptModel
from extremal.objectives.linear import LinearModel
from extremal.rounding.exact import settle, violation
from extremal.run.starts import moved_inside
from extremal.sets.base import ConvexSet
from extremal.sets.words.read import Reading
from extremal.support.kinds import Numbers

STREAM_BATCH = 64  # approximate number of rows per step
FITTED = 50  # number of steps that a fit in memory counts as


@dataclass(frozen=True)
class Stream:
    """The state of a fit to a stream of rows.

        d <- (1 - rho_k) d + rho_k grad f_k(x),   x <- x + eta_k (lmo(d) - x),   rho_k = 4 / (k + 8)^(2/3), eta_k = 2 / (k + 8)

    f_k is the mean over about 64 rows. The intercept moves towards the best one for these rows at the rate rho_k. x is feasible
    after every step. There is no certificate, because a gap needs a pass over all rows.

    References
    ----------
    Mokhtari, Hassani, Karbasi (2020), Stochastic conditional gradient methods, JMLR 21.
    """

    C: ConvexSet
    loss: Loss  # for all batches, made from the first one
    x: np.ndarray
    d: np.ndarray
    level: Numbers
    k: int = 0  # steps
    seen: int = 0  # number of rows
    weight: float = 0.0  # mean weight of these rows

    @classmethod
    def new(cls, plan: Reading, shape: tuple[int, ...], dtype: DTypeLike, loss: Loss, name: str) -> Stream:
        """The state before the first batch."""
        if not plan.bounded or plan.fraction is not None:
            raise InputError(f"`{name}.partial_fit` needs a bounded set with a radius that is a number, got constraint {plan}")
        C = plan.set().on(shape)
        x = np.ascontiguousarray(C.start(), dtype)
        return cls(C, loss, x, np.zeros(shape), np.zeros(shape[1:])[()])

    def at(self, x: np.ndarray, level: Numbers) -> Stream:
        """The same stream, started at the coefficients and intercept of a fit, as if some steps had been made."""
        x = moved_inside(self.C, np.ascontiguousarray(x, self.x.dtype))
        return replace(self, x=x, level=np.asarray(level, np.float64)[()], k=FITTED)

    @property
    def coef(self) -> np.ndarray:
        """x, rounded so that the constraint holds exactly."""
        return settle(self.C, self.x)

    @property
    def violation(self) -> float:
        """The violation of the constraint by the coefficients."""
        return violation(self.C, self.coef)

    def after(self, data: RowData, y: np.ndarray, weights: np.ndarray | None, intercept: bool) -> Stream:
        """The state after a batch, which takes several steps."""
        now, n = self, data.shape[0]
        for rows in np.array_split(np.arange(n), max(1, n // STREAM_BATCH)):
            part = data.rows(rows)
            now = now._step(part, y[rows], None if weights is None else weights[rows], intercept)
        return now

    def _step(self, data: RowData, y: np.ndarray, weights: np.ndarray | None, intercept: bool) -> Stream:
        f = LinearModel(self.loss, data, y, weights)
        here = 1.0 if weights is None else float(weights.mean())
        mean = (self.weight * self.seen + here * f.n) / (self.seen + f.n)
        share = min(1.0, here / mean)  # rows of little weight move little
        rho, eta = share * min(1.0, 4.0 / (self.k + 8) ** (2 / 3)), share * 2.0 / (self.k + 8)
        z, level = f.margins(self.x), self.level
        if intercept:
            level = level + rho * np.clip(InterceptModel(self.loss, data, y, weights).level(z) - level, -3.0, 3.0)
        c = f.derivs_at((z + level).astype(z.dtype, copy=False))
        d = (1 - rho) * self.d + rho * f.combine(c)
        x = self.x + eta * (self.C.lmo(d).to_array().astype(self.x.dtype) - self.x)
        return replace(self, x=x, d=d, level=level, k=self.k + 1, seen=self.seen + f.n, weight=mean)
