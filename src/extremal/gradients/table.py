"""A table of one derivative per component, with the mean of the gradients it stands for."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from extremal.objectives.base import Objective
from extremal.support.memory import free_memory

_GIB = 2**30


class LargeTableWarning(UserWarning):
    """A table of component gradients above 1 GiB is about to be allocated."""


class DerivativeTable:
    """y_i for every component, and their mean gradient, kept up to date.

    n numbers for a linear model, n gradients for `Separable`. Changed in place: one table per run.
    """

    def __init__(self, f: Objective, c: np.ndarray, mean: np.ndarray):
        self.n = f.n
        self.c = c  # c[i] stands for y_i
        self.mean = mean  # (1/n) sum_j y_j

    @classmethod
    def at(cls, f: Objective, x: np.ndarray) -> DerivativeTable:
        """y_i = grad f_i(x): n component gradients."""
        check_memory(f)
        return cls.of(f, f.derivs(x))

    @classmethod
    def of(cls, f: Objective, c: np.ndarray) -> DerivativeTable:
        """y_i as c says; the array is the table's own from now on."""
        return cls(f, c, f.combine(c))

    @classmethod
    def zero(cls, f: Objective) -> DerivativeTable:
        """y_i = 0: no component gradient."""
        check_memory(f)
        return cls.of(f, np.zeros((f.n, *f.deriv_shape), f.dtype))

    def put(self, f: Objective, idx: np.ndarray, c: np.ndarray, distinct: bool) -> None:
        """y_i <- c for i in idx, once for each i, however often idx names it."""
        if not distinct:
            idx, first = np.unique(idx, return_index=True)
            c = c[first]
        self.mean = self.mean + f.combine(c - self.c[idx], idx) * (len(idx) / self.n)
        self.c[idx] = c


@dataclass(frozen=True)
class TableEstimate:
    """An estimate and its table."""

    g: np.ndarray  # estimate of grad f(x)
    exact: bool  # true at a full start only
    table: DerivativeTable  # y_i, changed in place by the next update


def check_memory(f: Objective) -> None:
    """Say so before a table above 1 GiB is made, and refuse one that does not fit in memory."""
    need = f.n * int(np.prod(f.deriv_shape, dtype=np.int64)) * f.dtype.itemsize
    free = free_memory()
    what = f"a table of {f.n} component gradients ({need / _GIB:.1f} GiB)"
    if need > _GIB and free is not None and need > free:
        raise MemoryError(f"{what} does not fit in the {free / _GIB:.1f} GiB of free memory; SarahFW needs no table")
    if need > _GIB:
        warnings.warn(f"allocating {what}; SarahFW needs no table", LargeTableWarning, stacklevel=2)
