"""Linear models with an unconstrained intercept, which is projected out."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from extremal.checks import InputError
from extremal.data.contract import Data
from extremal.data.parts import PerRow, Sums
from extremal.data.works import RowProducts
from extremal.losses.base import Loss, MultiLoss
from extremal.losses.multi import CurvatureRows, Multinomial, MultiTask
from extremal.losses.over_rows import bend_sums, second_of, value_and_derivs
from extremal.losses.weighted import unweighted, weights_of
from extremal.objectives.alike import first_total
from extremal.objectives.levels import LevelSums, level_of, levels_of
from extremal.objectives.margins import MarginModel
from extremal.objectives.works import Along
from extremal.points.iterates import freeze
from extremal.support.kinds import Numbers


class InterceptModel(MarginModel):
    """A linear model with an intercept outside of the constraint.

        f(x) = min over b of (1/n) sum_i phi(<a_i, x> + b, y_i),   grad f(x) = (1/n) A' c,   c_i = phi'(<a_i, x> + b(x), y_i)

    Newton steps on the margins find b(x) to rounding in O(n), without reading the data. Since f is the minimum over b, its
    gradient needs no derivative of b. f is convex if phi is. A Frank-Wolfe gap of f bounds the possible decrease over x and b
    together. The intercept removes a part of the second derivatives:

        H = (1/n) (A' D A - A'D1 1'DA / 1'D1),   D = diag phi''

    f is not a finite sum, because b depends on all rows: methods that draw batches refuse it. Only convex losses are allowed.

    Parameters
    ----------
    loss, A, y, weights
        As for `LinearModel`. With several outputs there is one intercept for each.

    References
    ----------
    Golub, Pereyra (1973), The differentiation of pseudo-inverses and nonlinear least squares problems whose variables
    separate, SIAM J. Numer. Anal. 10 (variable projection).

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> A, y = np.array([[0.0], [1.0], [2.0]]), np.array([5.0, 6.0, 7.0])
    >>> f = ex.InterceptModel(ex.Squared(), A, y)
    >>> r = ex.minimize(f, ex.Box(0.0, 0.5))
    >>> r.x, f.intercept(r.x)
    (array([0.5]), 5.5)
    """

    is_finite_sum = False
    _last: tuple[np.ndarray | None, Any] | None = None  # margins and their intercept, which a step needs several times

    def __init__(self, loss: Loss, A: Any, y: Any = None, weights: ArrayLike | None = None):
        super().__init__(loss, A, y, weights)
        if not self.loss.convex:
            raise InputError(f"`InterceptModel(loss=...)` must be convex, got {loss!r}; append a column of ones to A instead")
        inner = unweighted(self.loss)
        if isinstance(inner, MultiLoss) and not isinstance(inner, (Multinomial, MultiTask)):
            raise InputError(f"`InterceptModel(loss=...)` of several outputs must be Multinomial or MultiTask, got {loss!r}")

    def intercept(self, x: np.ndarray) -> Any:
        """b(x), the best intercept for x: a float, or one number for each output."""
        return self.level(self.margins(x))

    def level(self, z: PerRow) -> Numbers:
        """The best intercept for given margins."""
        last = self._last
        if last is not None and last[0] is z:
            return last[1]
        total = self.summed(_margin_sum, z, self.y, rest=(self.loss,))[0]  # weights have the mean 1
        b = self._level(z, self._constant - total / self.n)
        fixed = not (isinstance(z, np.ndarray) and z.flags.writeable)  # margins that may still change cannot be a key
        self._last = (z if fixed else None), b
        return b

    def _alone(self, z: PerRow) -> PerRow:
        """A single row has no best intercept, so 0 is used."""
        self._last = freeze(z), 0.0
        return z

    def _level(self, z: PerRow, near: Numbers) -> Numbers:
        """The best intercept, searched from ``near``. This start depends only on z, so that equal calls give equal results."""
        if self.deriv_shape:
            return levels_of(self._level_sums(z), np.broadcast_to(np.asarray(near, np.float64), self.deriv_shape))
        return level_of(lambda b: self.summed(bend_sums, z, self.y, rest=(self.loss, b)), float(near))

    def _level_sums(self, z: PerRow) -> LevelSums:
        """The sums that the levels of several outputs need, wherever the margins are."""

        def ask(function: Callable[..., Sums], *rest: object) -> Sums:
            return self.summed(function, z, self.y, rest=(self.loss, *rest))

        return LevelSums(self.loss, self.n, ask, lambda: (self.here(z), self.here(self.y)))

    @cached_property
    def _constant(self) -> Numbers:
        """The best constant prediction."""
        return self._level(self.zero, 0.0)

    def __getstate__(self) -> dict[str, Any]:
        return {name: item for name, item in self.__dict__.items() if name != "_last"}

    def lifted(self, z: PerRow) -> PerRow:
        """The margins plus their intercept."""
        return self.filled(np.add, z, rest=(self.level(z),))

    def _with(self, data: Data, y: np.ndarray) -> InterceptModel:
        new = super()._with(data, y)
        for name in ("_last", "_constant"):
            vars(new).pop(name, None)
        return new

    def _look(self, x: np.ndarray, valued: bool = False, graded: bool = False, z: PerRow | None = None) -> tuple[float, Any]:
        """One pass for the margins, which determine the intercept and the derivatives, and one pass for the gradient."""
        z = self.data.parts.numbers(*self.deriv_shape) if z is None else z
        first_total(self.data, RowProducts(x, z))
        at = self.lifted(freeze(z))
        if not graded:
            return self.mean_at(at), None
        c = self.data.parts.numbers(*self.deriv_shape)
        total = self.summed(value_and_derivs, at, self.y, c, rest=(self.loss,))[0]
        return total / self.n, self.data.tdot(c) / self.n

    def between(self, z: PerRow, dz: PerRow) -> Along:
        """t -> mean of phi(z + b + t (dz + db)): never below f, and equal to f at t = 0 up to second derivatives.

        The intercept moves on a line, to the end of its Newton step. So f falls by at least the decrease of this function.
        """
        return super().between(self.lifted(z), self.filled(np.add, dz, rest=(self._level_change(z, dz),)))

    def _level_change(self, z: PerRow, dz: PerRow) -> Numbers:
        if self.deriv_shape:
            if not hasattr(self.loss, "curvature_rows"):
                return 0.0
            total, moved = self.curvature_sums_at(z, dz)
            return -CurvatureRows.inverse_of(total) @ moved
        total, moved = self.summed(_bent_sums, self.lifted(z), self.y, dz, rest=(self.loss,))
        return -moved / total if total > 0 else 0.0


def _margin_sum(z: np.ndarray, y: np.ndarray, loss: Loss) -> tuple[np.ndarray | float]:
    w = weights_of(loss, y)
    return (z.sum(axis=0, dtype=np.float64) if w is None else w @ z,)


def _bent_sums(z: np.ndarray, y: np.ndarray, dz: np.ndarray, loss: Loss) -> tuple[float, float]:
    h = second_of(z, y, loss)
    return float(h.sum(dtype=np.float64)), float(h @ dz)
