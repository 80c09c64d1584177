"""SARAH with a SAGA table: Algorithm 2 of Beznosikov, Dobre, Gidel, *Sarah Frank-Wolfe* (ICML 2024), lines 5 and 6."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from extremal import checks
from extremal.gradients.base import Batched, Facts, Steps
from extremal.gradients.table import DerivativeTable, TableEstimate
from extremal.objectives.base import Objective
from extremal.objectives.sampling import Sampler


@dataclass(frozen=True)
class SagaSarah(Batched):
    """A recursive estimate that leans on a table instead of full gradients (also known as ZeroSARAH).

        g   = (1/b) sum_S [grad f_i(x) - grad f_i(x_prev)] + (1 - lam) g_prev
              + lam ( (1/b) sum_S [grad f_i(x_prev) - y_i] + (1/n) sum_j y_j )
        y_i = grad f_i(x)   for i in S

    2b component gradients a step. The table holds n numbers for a linear model, n gradients otherwise.

    Parameters
    ----------
    batch : int
        b, from 1 to n.
    lam : float
        lambda, in (0, 1].
    start : "full" or "cold"
        "full": g^0 = grad f(x^0), y_i = grad f_i(x^0), for n component gradients. "cold": g^0 = grad f_i(x^0) for one
        random i, y = 0, for one component gradient.
    replace : bool
        Draw the rows of a batch with replacement.

    References
    ----------
    Li, Hanzely, Richtarik (2021), ZeroSARAH, arXiv:2103.01447; Beznosikov, Dobre, Gidel (2024), arXiv:2304.11737.

    Examples
    --------
    >>> SagaSarah(batch=10, lam=0.05)
    SagaSarah(batch=10, lam=0.05, start='full', replace=False)
    """

    batch: int
    lam: float
    start: Literal["full", "cold"] = "full"
    replace: bool = False

    def __post_init__(self):
        batch, lam = checks.whole("SagaSarah", "batch", self.batch, 1), checks.within("SagaSarah", "lam", self.lam, 0, 1)
        checks.fix(self, batch=batch, lam=lam)
        checks.one_of("start", self.start, ("full", "cold"))

    def facts(self, n: int) -> Facts:
        """2b component gradients a step; d = 4n/b; c = min(1, b / sqrt n)^(1/2)."""
        b = checks.whole("SagaSarah", "batch", self.batch, 1, n)
        start = n if self.start == "full" else 1
        return Facts(start, per_step=2 * b, d=4 * n / b, c=min(1.0, b / math.sqrt(n)) ** 0.5)

    def init(self, f: Objective, x: np.ndarray, sampler: Sampler) -> TableEstimate:
        """Full or cold."""
        if self.start == "full":
            table = DerivativeTable.at(f, x)
            return TableEstimate(table.mean, True, table)
        i = sampler.start()
        return TableEstimate(f.combine(f.derivs(x, i), i), False, DerivativeTable.zero(f))

    def update(
        self, f: Objective, k: int, x_prev: np.ndarray, x: np.ndarray, steps: Steps, state: TableEstimate, sampler: Sampler
    ) -> TableEstimate:
        """g^{k+1} and y^{k+1}."""
        lam, table = self.lam, state.table
        idx = sampler.rows(k, self.batch, self.replace)  # S_k
        c, c_prev = f.derivs(x, idx), f.derivs(x_prev, idx)
        # the two sums over S_k in one: grad f_i(x) - grad f_i(x_prev) + lam (grad f_i(x_prev) - y_i)
        g = f.combine(c - c_prev + lam * (c_prev - table.c[idx]), idx) + (1 - lam) * state.g + lam * table.mean
        table.put(f, idx, c, distinct=not self.replace)
        return TableEstimate(g, False, table)
