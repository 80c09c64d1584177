"""Works with a loss: the requests of a model to the parts of its rows, and its computations at given margins, without a row."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from extremal.data.contract import Data
from extremal.data.kept import Uniform
from extremal.data.parts import Part, Parts, PerRow, RowWork, Sums
from extremal.data.rows import RowData
from extremal.losses.base import Loss
from extremal.losses.margin import compiled
from extremal.losses.multi import CurvatureRows
from extremal.losses.over_rows import (
    EVALUATED,
    chunks,
    curvature_of,
    curvature_rows_of,
    derivs_of,
    line_sum,
    second_of,
    slope_sum,
    tail_sum,
    value_sum,
)
from extremal.losses.weighted import weights_of


class Look(NamedTuple):  # twice as quick to make as a frozen dataclass: gradients of small data are many
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
        z, c = None if self.z is None else part.of(self.z), None if self.c is None else part.of(self.c)
        # use a compiled loop, if there is one for these rows and this loss
        found = None if code is None else part.rows.sweep(code, y, self.x, self.valued, self.graded, z, c)
        return self._by_pieces(part.rows, y, z, c) if found is None else found

    def _by_pieces(self, rows: Any, y: np.ndarray, z: np.ndarray | None, c: np.ndarray | None) -> Sums:
        """Work piece by piece, so that a piece is still in the cache for the second product."""
        total, g = 0.0, None
        for at, piece in rows.pieces(self.x):
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


class LossWork(RowWork):
    """Base of works that read rows and evaluate a loss."""

    loss: Loss

    @property
    def alone(self) -> bool:  # type: ignore[override]
        """Whether to avoid threads: a user's own loss may not be thread-safe."""
        return compiled(self.loss) is None


@dataclass(frozen=True)
class QuadraticSums(LossWork):
    """Sums for the expansion of a quadratic loss around x = 0, in one read of the rows.

    The sums of phi'' a a', of phi' a, of phi and of phi'^2 / phi''. Without weights, phi'' is the ``curvature``.
    """

    loss: Loss
    y: PerRow
    curvature: float | None
    sums: int  # the size of the first

    def __call__(self, part: Part) -> Sums:
        y, z = part.of(self.y), np.zeros(part.n)
        c, value = derivs_of(z, y, self.loss), value_sum(z, y, self.loss)[0]
        if self.curvature is None:
            return part.rows.gram(None, second_of(z, y, self.loss)), part.rows.tdot(c), value, tail_sum(z, y, self.loss)[0]
        H = part.rows.gram(None, None)
        if self.curvature != 1.0:
            H *= self.curvature
        return H, part.rows.tdot(c), value, float(c @ c) / self.curvature


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


class AtMargins:
    """A loss at given margins of all rows, which need not belong to any x: values, derivatives, lines."""

    loss: Loss
    data: Data
    deriv_shape: tuple[int, ...]
    y: PerRow

    @property
    def n(self) -> int:
        """Number of components (rows)."""
        return self.data.shape[0]

    @property
    def convex(self) -> bool:
        """Whether the loss is convex."""
        return self.loss.convex

    @property
    def weights(self) -> PerRow | None:
        """The weights of the rows, with mean 1; None without weights."""
        return weights_of(self.loss, self.y)

    @property
    def zero(self) -> PerRow:
        """The margins of x = 0."""
        return cast(Any, Uniform((self.n, *self.deriv_shape)))

    def lifted(self, z: PerRow) -> PerRow:
        """The margins, plus the intercept if there is one."""
        return z

    def summed(self, function: Callable[..., Sums], *numbers: PerRow, rest: tuple[Any, ...] = ()) -> Sums:
        """Sum a function of stored numbers over all rows."""
        return self.data.parts.total(Summed(function, numbers, rest, alone=compiled(self.loss) is None))

    def filled(self, function: Callable[..., np.ndarray], *numbers: PerRow, rest: tuple[Any, ...] = ()) -> PerRow:
        """Apply a function to stored numbers of each row; the result has the shape of the first numbers, and is stored."""
        out = self.data.parts.numbers(*numbers[0].shape[1:])
        self.data.parts.total(Filled(function, numbers, rest, alone=compiled(self.loss) is None, out=out))
        return out

    def here(self, numbers: PerRow) -> np.ndarray:
        """Numbers of all rows as a local array, for models of several outputs and for laws of single rows."""
        return self.data.numbers_of(numbers) if isinstance(self.data, RowData) else Part(None, slice(0, self.n)).of(numbers)

    def value_at(self, z: PerRow) -> float:
        """The value at given margins, which need not belong to any x."""
        return self.mean_at(self.lifted(z))

    def mean_at(self, z: PerRow) -> float:
        """The mean of phi(z_i, y_i), without an intercept."""
        return self.summed(value_sum, z, self.y, rest=(self.loss,))[0] / self.n

    def derivs_at(self, z: PerRow) -> PerRow:
        """phi'(z_i, y_i): derivatives at given margins."""
        return self.filled(derivs_of, self.lifted(z), self.y, rest=(self.loss,))

    def second_at(self, z: PerRow, width: float = 0.0, far: bool = False) -> PerRow:
        """phi''(z_i, y_i), if the loss defines it: its mean within ``width``. ``far`` adds curvature to rows that are far out."""
        return self.filled(curvature_of, self.lifted(z), self.y, rest=(self.loss, width, far))

    def curvature_rows_at(self, z: PerRow, width: float = 0.0) -> CurvatureRows:
        """`CurvatureRows` of the loss at the margins z of rows in memory; means within ``width``, if the outputs do not mix."""
        return curvature_rows_of(self.here(self.lifted(z)), self.here(self.y), self.loss, width)

    def curvature_sums_at(self, z: PerRow, dz: PerRow) -> Sums:
        """The sum of the second derivatives of all rows at the margins z, k x k, and of their products with dz."""
        return self.summed(_bent_rows, self.lifted(z), self.y, dz, rest=(self.loss,))

    def tail_ratio(self, z: PerRow) -> float:
        """The mean of phi'^2 / phi'' at given margins; infinite if phi'' vanishes and phi' does not."""
        return self.summed(tail_sum, self.lifted(z), self.y, rest=(self.loss,))[0] / self.n

    def change(self, z: PerRow, new: PerRow) -> PerRow:
        """new - z, the change of the margins between two points."""
        return self.filled(np.subtract, new, z)

    def length(self, dz: PerRow) -> float:
        """The root mean square of a change of the margins, with rows weighted."""
        return math.sqrt(self.summed(_square_sum, dz, self.y, rest=(self.loss,))[0] / self.n)

    def between(self, z: PerRow, dz: PerRow) -> Along:
        """f along a line of margins, t -> mean of phi(z + t dz)."""
        return Along(self.data.parts, self.loss, self.y, z, dz)


def _bent_rows(z: np.ndarray, y: np.ndarray, dz: np.ndarray, loss: Loss) -> Sums:
    bend = curvature_rows_of(z, y, loss)
    return bend.total, bend.dot(dz).sum(axis=0, dtype=np.float64)


def _square_sum(dz: np.ndarray, y: np.ndarray, loss: Loss) -> tuple[float]:
    squares, w = np.square(dz).reshape(len(dz), -1).mean(axis=1), weights_of(loss, y)
    return (float(squares.sum() if w is None else w @ squares),)
