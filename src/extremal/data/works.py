"""Works that need no loss: products with all rows, and sums over them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from extremal.data.parts import Part, PerRow, Sums


@dataclass(frozen=True)
class RowWork:
    """A work that looks at rows; compiled, and fit for threads."""

    @property
    def reads(self) -> bool:
        """It does."""
        return True

    @property
    def alone(self) -> bool:
        """It needs not be."""
        return False

    @property
    def sums(self) -> int:
        """None, unless it says how many."""
        return 0


@dataclass(frozen=True)
class RowProducts(RowWork):
    """z_i = <a_i, x>, or the row a_i' x."""

    x: np.ndarray
    z: PerRow  # to be filled

    def __call__(self, part: Part) -> Sums:
        """Kept."""
        part.rows.dot(self.x, part.of(self.z))
        return ()


@dataclass(frozen=True)
class Adjoint(RowWork):
    """A' c."""

    c: PerRow
    d: int

    @property
    def sums(self) -> int:
        """d for each output."""
        return self.d * math.prod(self.c.shape[1:])

    def __call__(self, part: Part) -> Sums:
        """One array."""
        return (part.rows.tdot(part.of(self.c)),)


@dataclass(frozen=True)
class Norms(RowWork):
    """|a_i|^2."""

    out: PerRow  # to be filled

    def __call__(self, part: Part) -> Sums:
        """Kept."""
        part.rows.norms2(part.of(self.out))
        return ()


@dataclass(frozen=True)
class Gram(RowWork):
    """(A_W - 1 m')' diag(h) (A_W - 1 m') for k columns, which are all if W is None; without m, A_W' diag(h) A_W."""

    W: np.ndarray | None
    h: PerRow
    mean: np.ndarray | None
    k: int

    @property
    def sums(self) -> int:
        """All entries."""
        return self.k**2

    def __call__(self, part: Part) -> Sums:
        """One array."""
        return (part.rows.gram(self.W, part.of(self.h), self.mean),)


@dataclass(frozen=True)
class GramRoot(Gram):
    """R with R'R = that; answers are not to be summed, but factored once more."""

    def __call__(self, part: Part) -> Sums:
        """One array."""
        return (part.rows.root(part.of(self.h), 0.0 if self.mean is None else self.mean),)


@dataclass(frozen=True)
class Moments(RowWork):
    """sum_i w_i a_i, and the same of squares."""

    w: PerRow
    d: int

    @property
    def sums(self) -> int:
        """Two for each column."""
        return 2 * self.d

    def __call__(self, part: Part) -> Sums:
        """Two arrays."""
        return part.rows.moments(part.of(self.w))


@dataclass(frozen=True)
class WholePart(RowWork):
    """A part itself, and where it is; answers are not to be summed."""

    def __call__(self, part: Part) -> Sums:
        """Its place and its rows."""
        return part.at, part.rows


@dataclass(frozen=True)
class TakenRows(RowWork):
    """Those of the rows ``order`` that are in a part; answers are not to be summed."""

    order: np.ndarray

    def __call__(self, part: Part) -> Sums:
        """Their places in ``order``, and a copy of them."""
        there = np.flatnonzero((self.order >= part.at.start) & (self.order < part.at.stop))
        return there, part.rows.take(self.order[there] - part.at.start)
