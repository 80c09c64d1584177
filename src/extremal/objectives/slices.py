"""f on some of its coordinates: the contract, and Hessians that are not formed but known by products and diagonal."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from extremal.data.parts import PerRow
from extremal.support.kinds import Operator, Symmetric


@dataclass(frozen=True)
class Slice(ABC):
    """f on the coordinates W: margins of steps along them, and the second derivatives."""

    f: Any  # what it is a slice of
    W: np.ndarray  # the coordinates, increasing

    def of(self, f: Any) -> Slice:
        """The same coordinates of another objective, or of one that counts on."""
        return self if f is self.f else f.on_columns(self.W)

    @abstractmethod
    def dot(self, d: np.ndarray) -> PerRow:
        """A_W d, for one number per coordinate of W."""

    @abstractmethod
    def hessian(self, z: PerRow, far: bool = False, width: float = 0.0) -> Symmetric:
        """(1/n) A_W' diag phi''(z) A_W."""

    def root(self, z: PerRow, far: bool = False, width: float = 0.0) -> np.ndarray | None:
        """B with B'B = that; None if there is no factor."""
        return None

    def solve(self, place: np.ndarray, scale: np.ndarray, w: np.ndarray, x: np.ndarray, z: PerRow, tol: float) -> Any:
        """Newton steps over weights in compiled code, see `ColumnBlock`; None if there are none."""
        return None


@dataclass(frozen=True)
class HessianProducts:
    """A Hessian of some columns by its products: each reads the columns once."""

    columns: Any
    h: PerRow

    def __matmul__(self, u: np.ndarray) -> np.ndarray:
        return self.columns.gram_product(u, self.h) / len(self.h)

    def diagonal(self) -> np.ndarray:
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
