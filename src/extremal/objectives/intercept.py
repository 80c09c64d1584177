"""Linear models with an intercept that no set constrains: it is projected out."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from extremal.checks import InputError
from extremal.data.base import Data
from extremal.losses.base import Loss, MultiLoss
from extremal.losses.margin import compiled
from extremal.losses.multi import Multinomial, MultiTask
from extremal.losses.over_rows import Along, bent_of, derivs_of, mean_of, second_of
from extremal.losses.weighted import unweighted
from extremal.objectives.base import RowIndex, Segment
from extremal.objectives.levels import level_of, levels_of
from extremal.objectives.linear import LinearModel
from extremal.points.iterates import freeze
from extremal.support.kinds import Numbers


class InterceptModel(LinearModel):
    """A linear model with an intercept outside of the constraint.

        f(x) = min over b of (1/n) sum_i phi(<a_i, x> + b, y_i),   grad f(x) = (1/n) A' c,   c_i = phi'(<a_i, x> + b(x), y_i)

    b(x) is found to rounding by Newton steps on the margins, without a look at the data: some O(n). As f is the least over b,
    its gradient needs no derivative of b, it is convex if phi is, and a Frank-Wolfe gap of f bounds what is left to win in x
    and b together. Second derivatives lose what the intercept takes over:

        H = (1/n) (A' D A - A'D1 1'DA / 1'D1),   D = diag phi''

    It is no finite sum, since b depends on all rows: methods that draw batches refuse it. Convex losses only.

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
    _last: tuple[np.ndarray | None, Any] | None = None  # margins, and their intercept: it is asked for several times in a step

    def __init__(self, loss: Loss, A: Any, y: Any, weights: ArrayLike | None = None):
        super().__init__(loss, A, y, weights)
        if not self.loss.convex:
            raise InputError(f"`InterceptModel(loss=...)` must be convex, got {loss!r}; append a column of ones to A instead")
        inner = unweighted(self.loss)
        if isinstance(inner, MultiLoss) and not isinstance(inner, (Multinomial, MultiTask)):
            raise InputError(f"`InterceptModel(loss=...)` of several outputs must be Multinomial or MultiTask, got {loss!r}")

    def intercept(self, x: np.ndarray) -> Any:
        """b(x), the best intercept for x: a float, or one for each output."""
        return self.level(self.data.dot(x))

    def level(self, z: np.ndarray) -> Numbers:
        """The best intercept for given margins."""
        last = self._last
        if last is not None and last[0] is z:
            return last[1]
        w = self.weights
        mean = z.mean(axis=0, dtype=np.float64) if w is None else w @ z / w.sum()
        b = self._level(z, self._constant - mean)
        self._last = (z if not z.flags.writeable else None), b  # margins that may yet change are no key
        return b

    def _level(self, z: np.ndarray, near: Numbers) -> Numbers:
        """The best intercept, found from ``near``: a start that is a function of z alone, so that equal calls answer alike."""
        return levels_of(self.loss, z, self.y, near) if self.deriv_shape else level_of(self.loss, z, self.y, float(near))

    @cached_property
    def _constant(self) -> Numbers:
        """The best constant prediction."""
        return self._level(np.zeros((self.n, *self.deriv_shape)), 0.0)

    def __getstate__(self) -> dict[str, Any]:
        return {name: item for name, item in self.__dict__.items() if name != "_last"}

    def lifted(self, z: np.ndarray) -> np.ndarray:
        """The margins with their intercept."""
        return (z + self.level(z)).astype(z.dtype, copy=False)

    def _with(self, data: Data, y: np.ndarray) -> LinearModel:
        new = super()._with(data, y)
        for name in ("_last", "_constant"):
            new.__dict__.pop(name, None)
        return new

    def _pass(self, x: np.ndarray, value: bool = False, grad: bool = False) -> tuple[float, np.ndarray]:
        z = self.lifted(self.data.dot(x))
        return self._at(z) if grad else (mean_of(self.loss.value, z, self.y), z)

    def value_grad_margins(self, x: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """f(x), its gradient and the margins A x, without the intercept."""
        z = freeze(self.data.dot(x))
        return *self._at(self.lifted(z)), z

    def _at(self, z: np.ndarray) -> tuple[float, np.ndarray]:
        """The mean and its gradient, at margins that have been lifted."""
        if compiled(self.loss) is None:
            return mean_of(self.loss.value, z, self.y), self.combine(derivs_of(self.loss, z, self.y))
        total, c, _ = bent_of(self.loss, z, self.y, valued=True)
        return total / self.n, self.combine(c.astype(z.dtype, copy=False))

    def derivs(self, x: np.ndarray, idx: RowIndex = None) -> np.ndarray:
        """c_i for all i."""
        return self.derivs_at(self.data.dot(x), idx)

    def derivs_at(self, z: np.ndarray, idx: RowIndex = None) -> np.ndarray:
        """phi' at given margins of all rows, lifted by their intercept."""
        _refuse_batches(idx)
        return derivs_of(self.loss, self.lifted(z), self.y)

    def value_at(self, z: np.ndarray) -> float:
        """The least mean of phi(z_i + b, y_i) over b."""
        return mean_of(self.loss.value, self.lifted(z), self.y)

    def values(self, x: np.ndarray, idx: RowIndex = None) -> np.ndarray:
        """The terms of f(x), at its intercept."""
        _refuse_batches(idx)
        return self.loss.value(self.lifted(self.data.dot(x)), self.y)

    def between(self, z: np.ndarray, dz: np.ndarray) -> Segment:
        """t -> mean of phi(z + b + t (dz + db)): not less than f, and equal at t = 0 up to second derivatives.

        The intercept moves on a line, to where Newton's step would take it. So f falls by what this says, or more.
        """
        at = self.lifted(z)
        if self.deriv_shape:
            curvature_rows = self.curvature_rows_at(z) if hasattr(self.loss, "curvature_rows") else None
            move = 0.0 if curvature_rows is None else curvature_rows.follow(curvature_rows.dot(dz))
            return Along(self.loss, self.y, at, (dz + move).astype(dz.dtype, copy=False))
        h = second_of(self.loss, at, self.y).astype(np.float64)
        total = float(h.sum())
        move = -float(h @ dz) / total if total > 0 else 0.0
        return Along(self.loss, self.y, at, (dz + move).astype(dz.dtype, copy=False))

    def second_at(self, z: np.ndarray, width: float = 0.0) -> np.ndarray:
        """phi'' at given margins, lifted by their intercept."""
        return super().second_at(self.lifted(z), width)

    def curvature_rows_at(self, z: np.ndarray, width: float = 0.0) -> Any:
        """D and P at given margins, lifted by their intercepts."""
        return super().curvature_rows_at(self.lifted(z), width)

    def tail_ratio(self, z: np.ndarray) -> float:
        """As of `LinearModel`, at the intercept of the margins."""
        return super().tail_ratio(self.lifted(z))


def _refuse_batches(idx: RowIndex) -> None:
    if idx is not None:
        raise InputError("an InterceptModel has no batches, its intercept depends on all rows; use a method of full gradients")
