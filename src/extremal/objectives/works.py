"""Works with a loss: the requests of a model to the parts of its rows."""

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
    """The sum of phi(<a_i, x>, y_i) and its gradient, as requested; stores the margins z and the derivatives c, if given."""

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
        """Whether to avoid threads: a user's own loss may not be thread-safe."""
        return compiled(self.loss) is None

    @property
    def sums(self) -> int:
        """The size of a gradient, even if none is requested, so that values are equal to the last digit."""
        return math.prod(self.x.shape)

    def __call__(self, part: Part) -> Sums:
        code, y = compiled(self.loss), part.of(self.y)
        z, c = (None if a is None else part.of(a) for a in (self.z, self.c))
        # use a compiled loop, if there is one for these rows and this loss
        found = None if code is None else part.rows.sweep(code, y, self.x, self.valued, self.graded, z, c)
        return self._by_pieces(part.rows, y, z, c) if found is None else found

    def _by_pieces(self, rows: Any, y: np.ndarray, z: np.ndarray | None, c: np.ndarray | None) -> Sums:
        """Work piece by piece, so that a piece is still in the cache for the second product."""
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
    """Sum a function of stored numbers over the rows; no row is read. The function may fill some of the numbers."""

    function: Callable[..., Any]
    numbers: tuple[PerRow, ...]
    rest: tuple[Any, ...] = ()  # its further arguments
    alone: bool = False
    reads: bool = False
    sums: int = 0

    def __call__(self, part: Part) -> Sums:
        return self.function(*map(part.of, self.numbers), *self.rest)


@dataclass(frozen=True)
class Filled(Summed):
    """Store a function of each row, piece by piece; ufuncs write directly to the output."""

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
    """f along a line of margins, t -> mean of phi(z + t dz, y). A probe reads stored numbers of each row."""

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
