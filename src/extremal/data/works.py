"""Works that need no loss: products with all rows, and sums over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from extremal.data.parts import Part, PerRow, RowWork, Sums


@dataclass(frozen=True)
class RowProducts(RowWork):
    """z_i = <a_i, x>, or the row a_i' x; without z, answers are (where, these), and not to be summed."""

    x: np.ndarray
    z: PerRow | None = None  # to be filled

    def __call__(self, part: Part) -> Sums:
        if self.z is None:
            return part.at, part.rows.dot(self.x)
        part.rows.dot(self.x, part.of(self.z))
        return ()


@dataclass(frozen=True)
class ProductsBeside(RowWork):
    """Where a part is, <a_i, x> or a_i' x of its rows, and numbers that are kept for them; answers are not to be summed."""

    x: np.ndarray
    numbers: tuple[PerRow, ...] = ()

    def __call__(self, part: Part) -> Sums:
        return part.at, part.rows.dot(self.x), *(part.of(a).copy() for a in self.numbers)  # mapped pages may go after the work


@dataclass(frozen=True)
class Adjoint(RowWork):
    """A' c."""

    c: PerRow
    sums: int  # its entries

    def __call__(self, part: Part) -> Sums:
        return (part.rows.tdot(part.of(self.c)),)


@dataclass(frozen=True)
class GramProduct(RowWork):
    """A' diag(w) A v, of rows that are read once; without w, A' A v."""

    v: np.ndarray
    w: PerRow | None
    sums: int  # its entries

    def __call__(self, part: Part) -> Sums:
        z = part.rows.dot(self.v)
        return (part.rows.tdot(z if self.w is None else part.of(self.w).astype(z.dtype, copy=False) * z),)


@dataclass(frozen=True)
class Norms(RowWork):
    """|a_i|^2; without room for them, answers are (where, these), and not to be summed."""

    out: PerRow | None = None  # to be filled

    def __call__(self, part: Part) -> Sums:
        out = np.empty(part.n) if self.out is None else part.of(self.out)
        part.rows.norms2(out)
        return (part.at, out) if self.out is None else ()


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


@dataclass(frozen=True)
class Extent(RowWork):
    """The largest |<a_i, x>| and the largest |a_i|^2; answers are not to be summed."""

    x: np.ndarray

    def __call__(self, part: Part) -> Sums:
        norms = np.empty(part.n)
        part.rows.norms2(norms)
        return float(np.abs(part.rows.dot(self.x)).max()), float(norms.max())


class WholePart(RowWork):
    """Where a part is, and the part itself; answers are not to be summed."""

    def __call__(self, part: Part) -> Sums:
        return part.at, part.rows


@dataclass(frozen=True)
class WholeNumbers:
    """Where a part is, and numbers that are kept for its rows; answers are not to be summed."""

    numbers: PerRow
    reads, alone, sums = False, False, 0

    def __call__(self, part: Part) -> Sums:
        return part.at, part.of(self.numbers).copy()  # mapped pages may go after the work


@dataclass(frozen=True)
class Picked(RowWork):
    """What is done with some rows in any order, of which each part has those between two places of the sorted order.

    Answers are (places in the order, what was found), and not to be summed. What is found here is a copy of the rows.
    """

    order: np.ndarray  # increasing
    places: np.ndarray  # where each of these was asked for

    @classmethod
    def of(cls, idx: np.ndarray, *rest: Any) -> Self:
        """For rows in any order."""
        places = np.argsort(idx, kind="stable")
        return cls(idx[places], places, *rest)

    def among(self, spans: Sequence[slice]) -> Self | None:
        """The same for those rows alone that are in some ranges, which increase; None if there are none."""
        places = np.searchsorted(self.order, [(span.start, span.stop) for span in spans])
        at = np.concatenate([np.arange(lo, hi) for lo, hi in places])
        return self._only(at) if len(at) else None

    def _only(self, at: np.ndarray) -> Self:
        return replace(self, order=self.order[at], places=self.places[at])

    def within(self, part: Part) -> tuple[np.ndarray, np.ndarray]:
        """The places of the rows of a part, and these rows as it counts them."""
        lo, hi = np.searchsorted(self.order, (part.at.start, part.at.stop))
        return self.places[lo:hi], self.order[lo:hi] - part.at.start

    def __call__(self, part: Part) -> Sums:
        places, rows = self.within(part)
        return places, part.rows.take(rows) if len(rows) else None


@dataclass(frozen=True)
class PickedProducts(Picked):
    """<a_i, x> of these rows."""

    x: np.ndarray

    def __call__(self, part: Part) -> Sums:
        places, rows = self.within(part)
        return places, part.rows.dot_rows(self.x, rows) if len(rows) else None


@dataclass(frozen=True)
class PickedAdjoint(Picked):
    """The sum of c_i a_i over these rows; answers are to be summed."""

    c: np.ndarray
    sums: int  # its entries

    def _only(self, at: np.ndarray) -> Self:
        return replace(self, order=self.order[at], places=np.arange(len(at)), c=self.c[self.places[at]])

    def __call__(self, part: Part) -> Sums:
        places, rows = self.within(part)
        return (part.rows.tdot_rows(self.c[places], rows) if len(rows) else None,)


@dataclass(frozen=True)
class PickedNumbers(Picked):
    """Numbers that are kept for these rows."""

    numbers: PerRow
    reads = False

    def __call__(self, part: Part) -> Sums:
        places, rows = self.within(part)
        return places, part.of(self.numbers)[rows] if len(rows) else None
