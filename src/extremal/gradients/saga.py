"""Estimators with a table of component gradients: SAG and SAGA."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from extremal import checks
from extremal.gradients.base import Batched, Facts, Steps
from extremal.gradients.momentum import check_rho, weight
from extremal.gradients.table import DerivativeTable, TableEstimate
from extremal.laws import PowerLaw
from extremal.objectives.base import Objective
from extremal.objectives.sampling import SECOND, Sampler


@dataclass(frozen=True)
class Sag(Batched):
    """The mean of the table, after the batch's entries have been refreshed at x: biased on purpose, with little variance.

        y_i <- grad f_i(x)  for i in S,   g = (1/n) sum_j y_j,   y = 0 at first

    b component gradients a step. The table holds n numbers for a linear model, n gradients otherwise.

    Parameters
    ----------
    batch : int
        b, from 1 to n.
    rho : PowerLaw, optional
        Refresh only in part: y_i <- (1 - rho_j) y_i + rho_j grad f_i(x) at estimate j = 0, 1, ...
    replace : bool
        Draw the rows of a batch with replacement.

    References
    ----------
    Schmidt, Le Roux, Bach (2017), Minimizing finite sums with the stochastic average gradient, arXiv:1309.2388; Negiar et
    al. (2020), Stochastic Frank-Wolfe for constrained finite-sum minimization, arXiv:2002.11860.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.gradients.Sag(batch=10)
    Sag(batch=10, rho=None, replace=False)
    """

    batch: int
    rho: PowerLaw | None = None
    replace: bool = False

    def __post_init__(self):
        checks.fix(self, batch=checks.whole("Sag", "batch", self.batch, 1))
        if self.rho is not None:
            check_rho("Sag", self.rho)

    def facts(self, n: int) -> Facts:
        """b component gradients a step."""
        b = checks.whole("Sag", "batch", self.batch, 1, n)
        return Facts(start=b, per_step=b)

    def init(self, f: Objective, x: np.ndarray, sampler: Sampler) -> TableEstimate:
        """An empty table, refreshed by the first batch."""
        return self._refresh(f, 0, x, DerivativeTable.zero(f), sampler)

    def update(
        self, f: Objective, k: int, x_prev: np.ndarray, x: np.ndarray, steps: Steps, state: TableEstimate, sampler: Sampler
    ) -> TableEstimate:
        """The table refreshed at the new x."""
        return self._refresh(f, k + 1, x, state.table, sampler)

    def _refresh(self, f: Objective, j: int, x: np.ndarray, table: DerivativeTable, sampler: Sampler) -> TableEstimate:
        idx = sampler.rows(j, self.batch, self.replace)
        c = f.derivs(x, idx)
        if self.rho is not None:
            rho = weight(self.rho, j)
            c = (1 - rho) * table.c[idx] + rho * c
        table.put(f, idx, c, distinct=not self.replace)
        return TableEstimate(table.mean, False, table)


@dataclass(frozen=True)
class Saga(Batched):
    """Unbiased, with a variance that vanishes as the table becomes true.

        g = (1/b) sum_{i in I} [grad f_i(x) - y_i] + (1/n) sum_j y_j;   then y_j <- grad f_j(x) for j in J

    n component gradients at the start, then b a step (2b with two batches). The table holds n numbers for a linear model,
    n gradients otherwise.

    Parameters
    ----------
    batch : int
        b, from 1 to n.
    two_batches : bool
        Draw J apart from I, as in the proof of Reddi et al.; else J = I.
    replace : bool
        Draw the rows of a batch with replacement.

    References
    ----------
    Defazio, Bach, Lacoste-Julien (2014), SAGA, arXiv:1407.0202; Reddi et al. (2016), arXiv:1607.08254, Algorithm 4.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.gradients.Saga(batch=10)
    Saga(batch=10, two_batches=False, replace=False)
    """

    batch: int
    two_batches: bool = False
    replace: bool = False

    def __post_init__(self):
        checks.fix(self, batch=checks.whole("Saga", "batch", self.batch, 1))

    def facts(self, n: int) -> Facts:
        """b component gradients a step, or 2b."""
        b = checks.whole("Saga", "batch", self.batch, 1, n)
        return Facts(start=n, per_step=2 * b if self.two_batches else b, d=4 * n / b)

    def init(self, f: Objective, x: np.ndarray, sampler: Sampler) -> TableEstimate:
        """The table of gradients at x0."""
        table = DerivativeTable.at(f, x)
        return TableEstimate(table.mean, True, table)

    def update(
        self, f: Objective, k: int, x_prev: np.ndarray, x: np.ndarray, steps: Steps, state: TableEstimate, sampler: Sampler
    ) -> TableEstimate:
        """The estimate from the old table, then the table."""
        table = state.table
        idx = sampler.rows(k, self.batch, self.replace)  # I
        c = f.derivs(x, idx)
        g = f.combine(c - table.c[idx], idx) + table.mean
        if self.two_batches:
            idx = sampler.rows(k, self.batch, self.replace, SECOND)  # J
            c = f.derivs(x, idx)
        table.put(f, idx, c, distinct=not self.replace)
        return TableEstimate(g, False, table)
