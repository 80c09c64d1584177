"""Works without a loss: products with all rows, and sums over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from extremal.data.parts import Part, PerRow, RowWork, Sums


@dataclass(frozen=True)
class RowProducts(RowWork):
    """z_i = <a_i, x>, or the row a_i' x; without z, answers are (place, products), which are not summed."""

    x: np.ndarray
    z: PerRow | None = None  # to be filled

    def __call__(self, part: Part) -> Sums:
        if self.z is None:
            return part.at, part.rows.dot(self.x)
        part.rows.dot(self.x, part.of(self.z))
        return ()


@dataclass(frozen=True)
class ProductsBeside(RowWork):
    """The place of a part, <a_i, x> or a_i' x for its rows, and numbers stored for them; answers are not summed."""

    x: np.ndarray
    numbers: tuple[PerRow, ...] = ()

    def __call__(self, part: Part) -> Sums:
        return part.at, part.rows.dot(self.x), *(part.of(a).copy() for a in self.numbers)  # mapped pages may disappear later


@dataclass(frozen=True)
class Adjoint(RowWork):
    """A' c."""

    c: PerRow
    sums: int  # the size of A' c

    def __call__(self, part: Part) -> Sums:
        return (part.rows.tdot(part.of(self.c)),)


@dataclass(frozen=True)
class GramProduct(RowWork):
    """A' diag(w) A v in one read of the rows; without w, A' A v."""

    v: np.ndarray
    w: PerRow | None
    sums: int  # the size of the product

    def __call__(self, part: Part) -> Sums:
        return (part.rows.gram_product(self.v, None if self.w is None else part.of(self.w)),)


@dataclass(frozen=True)
class Norms(RowWork):
    """|a_i|^2; without ``out``, answers are (place, norms), which are not summed."""

    out: PerRow | None = None  # to be filled

    def __call__(self, part: Part) -> Sums:
        out = np.empty(part.n) if self.out is None else part.of(self.out)
        part.rows.norms2(out)
        return (part.at, out) if self.out is None else ()


@dataclass(frozen=True)
class Gram(RowWork):
    """(A_W - 1 m')' diag(h) (A_W - 1 m'), for all columns if W is None; without m, A_W' diag(h) A_W."""

    W: np.ndarray | None
    h: PerRow
    mean: np.ndarray | None
    sums: int  # the size of the matrix

    def __call__(self, part: Part) -> Sums:
        return (part.rows.gram(self.W, part.of(self.h), self.mean),)


@dataclass(frozen=True)
class GramRoot(Gram):
    """R with R'R = the Gram matrix; answers are not summed, but factored once more."""

    def __call__(self, part: Part) -> Sums:
        return (part.rows.root(part.of(self.h), 0.0 if self.mean is None else self.mean),)


@dataclass(frozen=True)
class Moments(RowWork):
    """sum_i w_i a_i, and the same for squares."""

    w: PerRow
    sums: int  # the size of both

    def __call__(self, part: Part) -> Sums:
        return part.rows.moments(part.of(self.w))


@dataclass(frozen=True)
class Extent(RowWork):
    """The largest |<a_i, x>| and the largest |a_i|^2; answers are not summed."""

    x: np.ndarray

    def __call__(self, part: Part) -> Sums:
        norms = np.empty(part.n)
        part.rows.norms2(norms)
        return float(np.abs(part.rows.dot(self.x)).max()), float(norms.max())


@dataclass(frozen=True)
class Powers(RowWork):
    """sum_i w_i a_ij^p of every column."""

    w: PerRow
    p: int
    sums: int

    def __call__(self, part: Part) -> Sums:
        return (part.rows.powers(part.of(self.w), self.p),)


class Peaks(RowWork):
    """The largest |a_ij| of every column; answers are not summed."""

    def __call__(self, part: Part) -> Sums:
        return (part.rows.peaks(),)


class WholePart(RowWork):
    """The place of a part, and the part itself; answers are not summed."""

    def __call__(self, part: Part) -> Sums:
        return part.at, part.rows


@dataclass(frozen=True)
class WholeNumbers:
    """The place of a part, and numbers stored for its rows; answers are not summed."""

    numbers: PerRow
    reads, alone, sums = False, False, 0

    def __call__(self, part: Part) -> Sums:
        return part.at, part.of(self.numbers).copy()  # mapped pages may disappear later


@dataclass(frozen=True)
class Picked(RowWork):
    """Copy some rows in any order. Each part has the rows between two places of the sorted order.

    Answers are (places in the order, rows), which are not summed. Subclasses compute something else than a copy.
    """

    order: np.ndarray  # increasing
    places: np.ndarray  # the requested position of each

    @classmethod
    def of(cls, idx: np.ndarray, *rest: Any) -> Self:
        """The work for rows in any order."""
        places = np.argsort(idx, kind="stable")
        return cls(idx[places], places, *rest)

    def among(self, spans: Sequence[slice]) -> Self | None:
        """The same for the rows in some increasing ranges only; None if there are none."""
        places = np.searchsorted(self.order, [(span.start, span.stop) for span in spans])
        at = np.concatenate([np.arange(lo, hi) for lo, hi in places])
        return self._only(at) if len(at) else None

    def _only(self, at: np.ndarray) -> Self:
        return replace(self, order=self.order[at], places=self.places[at])

    def within(self, part: Part) -> tuple[np.ndarray, np.ndarray]:
        """The places of the rows of a part, and their indices within the part."""
        lo, hi = np.searchsorted(self.order, (part.at.start, part.at.stop))
        return self.places[lo:hi], self.order[lo:hi] - part.at.start

    def __call__(self, part: Part) -> Sums:
        places, rows = self.within(part)
        return places, part.rows.take(rows) if len(rows) else None


@dataclass(frozen=True)
class PickedProducts(Picked):
    """<a_i, x> for these rows."""

    x: np.ndarray

    def __call__(self, part: Part) -> Sums:
        places, rows = self.within(part)
        return places, part.rows.dot_rows(self.x, rows) if len(rows) else None


@dataclass(frozen=True)
class PickedAdjoint(Picked):
    """The sum of c_i a_i over these rows; answers are summed."""

    c: np.ndarray
    sums: int  # the size of the sum

    def _only(self, at: np.ndarray) -> Self:
        return replace(self, order=self.order[at], places=np.arange(len(at)), c=self.c[self.places[at]])

    def __call__(self, part: Part) -> Sums:
        places, rows = self.within(part)
        return (part.rows.tdot_rows(self.c[places], rows) if len(rows) else None,)


@dataclass(frozen=True)
class PickedNumbers(Picked):
    """Numbers stored for these rows."""

    numbers: PerRow
    reads = False

    def __call__(self, part: Part) -> Sums:
        places, rows = self.within(part)
        return places, part.of(self.numbers)[rows] if len(rows) else None
