"""Works that need no loss: products with all rows, and sums over them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from extremal.data.parts import Part, PerRow, RowWork, Sums


@dataclass(frozen=True)
class RowProducts(RowWork):
    """z_i = <a_i, x>, or the row a_i' x."""

    x: np.ndarray
    z: PerRow  # to be filled

    def __call__(self, part: Part) -> Sums:
        part.rows.dot(self.x, part.of(self.z))
        return ()


@dataclass(frozen=True)
class Adjoint(RowWork):
    """A' c."""

    c: PerRow
    sums: int  # its entries

    def __call__(self, part: Part) -> Sums:
        return (part.rows.tdot(part.of(self.c)),)


@dataclass(frozen=True)
class Norms(RowWork):
    """|a_i|^2."""

    out: PerRow  # to be filled

    def __call__(self, part: Part) -> Sums:
        part.rows.norms2(part.of(self.out))
        return ()


@dataclass(frozen=True)
class Gram(RowWork):
    """(A_W - 1 m')' diag(h) (A_W - 1 m'), of all columns if W is None; without m, A_W' diag(h) A_W."""

    W: np.ndarray | None
    h: PerRow
    mean: np.ndarray | None
    sums: int  # its entries

    def __call__(self, part: Part) -> Sums:
        return (part.rows.gram(self.W, part.of(self.h), self.mean),)


@dataclass(frozen=True)
class GramRoot(Gram):
    """R with R'R = that; answers are not to be summed, but factored once more."""

    def __call__(self, part: Part) -> Sums:
        return (part.rows.root(part.of(self.h), 0.0 if self.mean is None else self.mean),)


@dataclass(frozen=True)
class Moments(RowWork):
    """sum_i w_i a_i, and the same of squares."""

    w: PerRow
    sums: int  # entries of both

    def __call__(self, part: Part) -> Sums:
        return part.rows.moments(part.of(self.w))


class WholePart(RowWork):
    """Where a part is, and the part itself; answers are not to be summed."""

    def __call__(self, part: Part) -> Sums:
        return part.at, part.rows


@dataclass(frozen=True)
class TakenRows(RowWork):
    """Those of the rows ``order`` that are in a part: their places in it, and a copy; answers are not to be summed."""

    order: np.ndarray

    def __call__(self, part: Part) -> Sums:
        there = np.flatnonzero((self.order >= part.at.start) & (self.order < part.at.stop))
        return there, part.rows.take(self.order[there] - part.at.start)
