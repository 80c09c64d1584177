"""Hessians of linear models that are not formed: known by their products and their diagonal."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from extremal.data.parts import PerRow
from extremal.support.kinds import Operator, Symmetric


@dataclass(frozen=True)
class HessianProducts:
    """A Hessian of some columns by its products: these read the columns twice."""

    columns: Any
    h: PerRow

    def __matmul__(self, u: np.ndarray) -> np.ndarray:
        return self.columns.tdot(self.h * self.columns.dot(u)) / len(self.h)

    def diagonal(self) -> np.ndarray:
        """Its diagonal."""
        return self.columns.moments(self.h)[1] / len(self.h)


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
    return a + b if isinstance(a, np.ndarray) else replace(a, h=a.h + b.h)
