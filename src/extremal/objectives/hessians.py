"""Hessians of linear models that are not formed: known by their products and their diagonal."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

import numpy as np

from extremal.kernels.views import locked
from extremal.support.kinds import Operator, Symmetric


@dataclass(frozen=True)
class HessianProducts:
    """A Hessian of sparse columns by its products: twice the entries each."""

    entries: Any
    h: np.ndarray
    k: int

    def __matmul__(self, u: np.ndarray) -> np.ndarray:
        from extremal.kernels import full

        return full.tdot(self.entries, self.h * full.dot(self.entries, u, self.k), self.k) / len(self.h)

    def diagonal(self) -> np.ndarray:
        """Its diagonal."""
        out = np.zeros(self.k)
        _kernels().diagonal(*self.entries, self.h, out)
        return out / len(self.h)


@dataclass(frozen=True)
class WholeProducts:
    """A Hessian of dense columns by its products: two products with all of A each."""

    part: Any
    h: np.ndarray

    def __matmul__(self, u: np.ndarray) -> np.ndarray:
        f = self.part.f
        c = self.h * self.part.dot(u.astype(f.dtype, copy=False))
        return f.data.tdot(c)[self.part.W].astype(np.float64) / f.n

    def diagonal(self) -> np.ndarray:
        """Its diagonal, by blocks."""
        data, n, total = self.part.f.data, self.part.f.n, np.zeros(len(self.part.W))
        for start in range(0, n, 1024):
            rows = slice(start, min(start + 1024, n))
            total += self.h[rows] @ np.square(data.block(rows, self.part.W))
        return total / n


@dataclass(frozen=True)
class Less:
    """A Hessian by its products, less v v'."""

    whole: Operator
    v: np.ndarray

    def __matmul__(self, u: np.ndarray) -> np.ndarray:
        return self.whole @ u - self.v * float(self.v @ u)

    def diagonal(self) -> np.ndarray:
        """Its diagonal, which rounding may not make negative."""
        whole = self.whole.diagonal()
        return np.maximum(whole - np.square(self.v), 1e-12 * whole)


def plus(a: Any, b: Any) -> Symmetric:
    """The sum of two Hessians of one kind."""
    return a + b if isinstance(a, np.ndarray) else replace(a, h=locked(a.h + b.h))


def _kernels() -> ModuleType:
    from extremal.kernels import newton  # numba: imported when first needed

    return newton
