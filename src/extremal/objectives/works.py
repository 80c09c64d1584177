"""Works with a loss: what a model asks of the parts of its rows."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal.data.parts import Part, Parts, PerRow, Sums
from extremal.losses.base import Loss
from extremal.losses.margin import compiled
from extremal.losses.over_rows import EVALUATED, chunks, line_sum, slope_sum


@dataclass(frozen=True)
class Look:
    """The sum of phi(<a_i, x>, y_i) and its gradient, as asked for; keeps the margins z and the derivatives c, if given."""

    loss: Loss
    y: PerRow
    x: Any
    valued: bool = True
    graded: bool = True
    z: PerRow | None = None
    c: PerRow | None = None
    reads = True

    @property
    def alone(self) -> bool:
        """A loss of the user's own may not be made for threads."""
        return compiled(self.loss) is None

    @property
    def sums(self) -> int:
        """Those of a gradient, also if none is asked for: values are then the same to the last digit."""
        return math.prod(self.x.shape)

    def __call__(self, part: Part) -> Sums:
        code, y = compiled(self.loss), part.of(self.y)
        z, c = (None if a is None else part.of(a) for a in (self.z, self.c))
        # by a compiled loop, if there is one for these rows and this loss
        found = None if code is None else part.rows.sweep(code, y, self.x, self.valued, self.graded, z, c)
        return self._by_pieces(part.rows, y, z, c) if found is None else found

    def _by_pieces(self, rows: Any, y: np.ndarray, z: np.ndarray | None, c: np.ndarray | None) -> Sums:
        """Piece by piece, which is still in the cache for the second product."""
        total, g = 0.0, None
        for at, piece in rows.pieces():
            margins, targets = piece.dot(self.x), y[at]
            if z is not None:
                z[at] = margins
            total += float(self.loss.value(margins, targets).sum(dtype=np.float64)) if self.valued else 0.0
            if c is not None or self.graded:
                derivs = self.loss.deriv(margins, targets)
                if c is not None:
                    c[at] = derivs
                if self.graded:
                    g = piece.tdot(derivs) if g is None else g + piece.tdot(derivs)
        return total, g


@dataclass(frozen=True)
class Summed:
    """Sums of a function of the numbers that are kept for each row; no row is read. The function may fill some of them."""

    function: Callable[..., Any]
    numbers: tuple[PerRow, ...]
    rest: tuple[Any, ...] = ()  # what else it takes
    alone: bool = False
    reads: bool = False
    sums: int = 0

    def __call__(self, part: Part) -> Sums:
        return self.function(*map(part.of, self.numbers), *self.rest)


@dataclass(frozen=True)
class Filled(Summed):
    """The same for a function of each row, to be kept, piece by piece; numpy's own write to where it is kept."""

    out: Any = None

    def __call__(self, part: Part) -> Sums:
        numbers, out = [part.of(a) for a in self.numbers], part.of(self.out)
        if isinstance(self.function, np.ufunc):
            self.function(*numbers, *self.rest, out=out)
            return ()
        for rows in chunks(part.n, EVALUATED):
            out[rows] = self.function(*(a[rows] for a in numbers), *self.rest)
        return ()


@dataclass(frozen=True)
class Along:
    """f along a line of margins: t -> mean of phi(z + t dz, y). A probe reads what is kept for each row."""

    parts: Parts
    loss: Loss
    y: PerRow
    z: PerRow
    dz: PerRow
    grads_per_slope: int = 0  # a slope reads margins only

    def value(self, t: float) -> float:
        return self._mean(line_sum, t)

    def slope(self, t: float) -> float:
        return self._mean(slope_sum, t)

    def _mean(self, function: Callable[..., Sums], t: float) -> float:
        work = Summed(function, (self.z, self.dz, self.y), (self.loss, t), alone=compiled(self.loss) is None)
        return self.parts.total(work)[0] / self.parts.n
