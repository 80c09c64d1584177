"""Computations from numbers stored for each row, mainly margins; no row is read."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from extremal.data.contract import Data
from extremal.data.kept import Uniform
from extremal.data.parts import Part, PerRow, Sums
from extremal.data.rows import RowData
from extremal.losses.base import Loss
from extremal.losses.margin import compiled
from extremal.losses.multi import CurvatureRows
from extremal.losses.over_rows import curvature_of, derivs_of, mean_second_of, tail_sum, value_sum
from extremal.losses.weighted import weights_of
from extremal.objectives.works import Along, Filled, Summed


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
        """`CurvatureRows` of the loss at the margins z; means within ``width``, if the outputs do not mix."""
        z, y, loss = self.here(self.lifted(z)), self.here(self.y), cast(Any, self.loss)
        found = CurvatureRows(*loss.curvature_rows(z, y))
        if width > 0 and found.P is None:
            return CurvatureRows(mean_second_of(loss, z, width, y, found.D), None)
        return found

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


def _square_sum(dz: np.ndarray, y: np.ndarray, loss: Loss) -> tuple[float]:
    squares, w = np.square(dz).reshape(len(dz), -1).mean(axis=1), weights_of(loss, y)
    return (float(squares.sum() if w is None else w @ squares),)
