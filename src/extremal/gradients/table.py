"""A table of one derivative per component, and the estimators that use one: SAG, SAGA, and SARAH with a SAGA table."""

from __future__ import annotations

import math
import shutil
import warnings
from dataclasses import dataclass
from typing import Literal

import numpy as np

from extremal import checks
from extremal.gradients.base import Batched, Facts, OnePoint, PlainEstimate, Steps
from extremal.gradients.momentum import check_rho, weight
from extremal.laws import PowerLaw
from extremal.objectives.base import SECOND, Objective, Sampler
from extremal.support.memory import free_memory, room, scratch_folder

_GIB = 2**30


class LargeTableWarning(UserWarning):
    """Warns before a table of component gradients above 1 GiB is allocated."""


class DerivativeTable:
    """y_i for every component, and their mean gradient, which is updated with them.

    The table holds n numbers for a linear model, n gradients for `Separable`. It is changed in place: each run has its own. A
    table that is large relative to the free memory is mapped from an unnamed file (`extremal.support.memory.room`).
    """

    def __init__(self, f: Objective, c: np.ndarray, mean: np.ndarray):
        self.n = f.n
        self.c = c  # c[i] represents y_i
        self.mean = mean  # (1/n) sum_j y_j

    @classmethod
    def at(cls, f: Objective, x: np.ndarray) -> DerivativeTable:
        """y_i = grad f_i(x): n component gradients."""
        check_memory(f)
        return cls.of(f, f.derivs(x))

    @classmethod
    def of(cls, f: Objective, c: np.ndarray) -> DerivativeTable:
        """The table with derivatives c; it takes over the array."""
        return cls(f, c, f.combine(c))

    @classmethod
    def zero(cls, f: Objective) -> DerivativeTable:
        """y_i = 0: no component gradient."""
        check_memory(f)
        c = room((f.n, *f.deriv_shape), f.dtype)
        c[...] = 0
        return cls.of(f, c)

    def draw(self, f: Objective, x: np.ndarray, idx: np.ndarray) -> np.ndarray:
        """The derivatives of the rows idx at x."""
        return f.derivs(x, idx)

    def estimate(self, g: np.ndarray, exact: bool = False) -> TableEstimate:
        """The state of an estimator with this table."""
        return TableEstimate(g, exact, self)

    def put(self, f: Objective, idx: np.ndarray, c: np.ndarray, distinct: bool) -> None:
        """y_i <- c for i in idx, once for each i, even if idx repeats it."""
        if not distinct:
            idx, first = np.unique(idx, return_index=True)
            c = c[first]
        self.mean = self.mean + f.combine(c - self.c[idx], idx) * (len(idx) / self.n)
        self.c[idx] = c


@dataclass(frozen=True)
class TableEstimate(PlainEstimate):
    """An estimate and its table; exact at a full start only."""

    table: DerivativeTable  # y_i, changed in place by the next update

    @classmethod
    def full(cls, f: Objective, x: np.ndarray) -> TableEstimate:
        """Start with all gradients at x."""
        table = DerivativeTable.at(f, x)
        return table.estimate(table.mean, exact=True)


def check_memory(f: Objective) -> None:
    """Warn before a table above 1 GiB is allocated, and refuse a table that fits neither in memory nor on disk."""
    need = f.n * int(np.prod(f.deriv_shape, dtype=np.int64)) * f.dtype.itemsize
    free, disk = free_memory(), shutil.disk_usage(scratch_folder()).free
    what = f"a table of {f.n} component gradients ({need / _GIB:.1f} GiB)"
    if need > _GIB and free is not None and need > max(free, disk):
        raise MemoryError(
            f"{what} does not fit in the {free / _GIB:.1f} GiB of free memory, nor in the {disk / _GIB:.1f} GiB of "
            f"{scratch_folder()}; SarahFW needs no table"
        )
    if need > _GIB:
        warnings.warn(f"allocating {what}; SarahFW needs no table", LargeTableWarning, stacklevel=2)


@dataclass(frozen=True)
class Sag(OnePoint[TableEstimate], Batched[TableEstimate]):
    """The mean of the table after the entries of the batch are refreshed at x: biased on purpose, with little variance.

        y_i <- grad f_i(x)  for i in S,   g = (1/n) sum_j y_j,   y = 0 at first

    Cost: b component gradients per step. The table holds n numbers for a linear model, n gradients otherwise.

    Parameters
    ----------
    batch : int
        b, from 1 to n.
    rho : PowerLaw, optional
        Refresh only partially: y_i <- (1 - rho_j) y_i + rho_j grad f_i(x) at estimate j = 0, 1, ...
    replace : bool
        Whether to draw the rows of a batch with replacement.

    References
    ----------
    Schmidt, Le Roux, Bach (2017), Minimizing finite sums with the stochastic average gradient, arXiv:1309.2388; Negiar et
    al. (2020), Stochastic Frank-Wolfe for constrained finite-sum minimization, arXiv:2002.11860.

    Examples
    --------
    >>> Sag(batch=10)
    Sag(batch=10, rho=None, replace=False)
    """

    batch: int
    rho: PowerLaw | None = None
    replace: bool = False

    def __post_init__(self):
        super().__post_init__()
        if self.rho is not None:
            check_rho("Sag", self.rho)

    def facts(self, n: int) -> Facts:
        b = checks.whole("Sag", "batch", self.batch, 1, n)
        return Facts(start=b, per_step=b)

    def _at(self, f: Objective, j: int, x: np.ndarray, state: TableEstimate | None, sampler: Sampler) -> TableEstimate:
        table = DerivativeTable.zero(f) if state is None else state.table
        idx = sampler.rows(j, self.batch, self.replace)
        c = f.derivs(x, idx)
        if self.rho is not None:
            rho = weight(self.rho, j)
            c = (1 - rho) * table.c[idx] + rho * c
        table.put(f, idx, c, distinct=not self.replace)
        return TableEstimate(table.mean, False, table)


@dataclass(frozen=True)
class Saga(Batched[TableEstimate]):
    """Unbiased, with a variance that vanishes as the table approaches the current gradients.

        g = (1/b) sum_{i in I} [grad f_i(x) - y_i] + (1/n) sum_j y_j;   then y_j <- grad f_j(x) for j in J

    Cost: n component gradients at the start, then b per step (2b with two batches). The table holds n numbers for a linear model,
    n gradients otherwise.

    Parameters
    ----------
    batch : int
        b, from 1 to n.
    two_batches : bool
        Whether to draw J independently of I, as in the proof of Reddi et al.; otherwise J = I.
    replace : bool
        Whether to draw the rows of a batch with replacement.
    curved : bool
        Whether to keep second derivatives too, n numbers, for steps that ask for curvature (`SelfConcordant`). They are computed
        for a third of each batch and for at most 64 rows at the start; each counts as a component gradient.

    References
    ----------
    Defazio, Bach, Lacoste-Julien (2014), SAGA, arXiv:1407.0202; Reddi et al. (2016), arXiv:1607.08254, Algorithm 4.

    Examples
    --------
    >>> Saga(batch=10)
    Saga(batch=10, two_batches=False, replace=False, curved=False)
    """

    batch: int
    two_batches: bool = False
    replace: bool = False
    curved: bool = False

    def __post_init__(self):
        super().__post_init__()
        checks.fix_flags(self, "two_batches", "curved")

    def facts(self, n: int) -> Facts:
        b = checks.whole("Saga", "batch", self.batch, 1, n)
        if not self.curved:
            return Facts(n, per_step=2 * b if self.two_batches else b, d=4 * n / b)
        from extremal.gradients.curved import FIRST_BENT, bent_rows  # only for steps that ask for curvature

        return Facts(n + min(n, FIRST_BENT), per_step=(b + bent_rows(b)) * (1 + self.two_batches), d=4 * n / b, bends=True)

    def init(self, f: Objective, x: np.ndarray, sampler: Sampler) -> TableEstimate:
        if not self.curved:
            return TableEstimate.full(f, x)
        from extremal.gradients.curved import CurvedTable  # only for steps that ask for curvature

        table = CurvedTable.at(f, x)
        return table.estimate(table.mean, exact=True)

    def update(
        self, f: Objective, k: int, x_prev: np.ndarray, x: np.ndarray, steps: Steps, state: TableEstimate, sampler: Sampler
    ) -> TableEstimate:
        table = state.table
        idx = sampler.rows(k, self.batch, self.replace)  # I
        c = table.draw(f, x, idx)
        g = f.combine(c - table.c[idx], idx) + table.mean
        if self.two_batches:
            idx = sampler.rows(k, self.batch, self.replace, SECOND)  # J
            c = table.draw(f, x, idx)
        table.put(f, idx, c, distinct=not self.replace)
        return table.estimate(g)


@dataclass(frozen=True)
class SagaSarah(Batched[TableEstimate]):
    """Algorithm 2 of *Sarah Frank-Wolfe*: a recursive estimate that uses a table instead of full gradients (ZeroSARAH).

        g   = (1/b) sum_S [grad f_i(x) - grad f_i(x_prev)] + (1 - lam) g_prev
              + lam ( (1/b) sum_S [grad f_i(x_prev) - y_i] + (1/n) sum_j y_j )
        y_i = grad f_i(x)   for i in S

    Cost: 2b component gradients per step. The table holds n numbers for a linear model, n gradients otherwise.

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
        Whether to draw the rows of a batch with replacement.

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
        super().__post_init__()
        checks.fix(self, lam=checks.within("SagaSarah", "lam", self.lam, 0, 1))
        checks.one_of("start", self.start, ("full", "cold"))

    def facts(self, n: int) -> Facts:
        """2b component gradients per step; d = 4n/b; c = min(1, b / sqrt n)^(1/2)."""
        b = checks.whole("SagaSarah", "batch", self.batch, 1, n)
        start = n if self.start == "full" else 1
        return Facts(start, per_step=2 * b, d=4 * n / b, c=min(1.0, b / math.sqrt(n)) ** 0.5)

    def init(self, f: Objective, x: np.ndarray, sampler: Sampler) -> TableEstimate:
        if self.start == "full":
            return TableEstimate.full(f, x)
        i = sampler.start()
        return TableEstimate(f.combine(f.derivs(x, i), i), False, DerivativeTable.zero(f))

    def update(
        self, f: Objective, k: int, x_prev: np.ndarray, x: np.ndarray, steps: Steps, state: TableEstimate, sampler: Sampler
    ) -> TableEstimate:
        lam, table = self.lam, state.table
        idx = sampler.rows(k, self.batch, self.replace)  # S_k
        c, c_prev = f.derivs(x, idx), f.derivs(x_prev, idx)
        # both sums over S_k in one: grad f_i(x) - grad f_i(x_prev) + lam (grad f_i(x_prev) - y_i)
        g = f.combine(c - c_prev + lam * (c_prev - table.c[idx]), idx) + (1 - lam) * state.g + lam * table.mean
        table.put(f, idx, c, distinct=not self.replace)
        return TableEstimate(g, False, table)
