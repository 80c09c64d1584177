"""Losses of weighted rows: a row's target carries its weight, so that a selection of rows also selects their weights."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from extremal import checks
from extremal.checks import InputError
from extremal.data.kept import Derived
from extremal.data.parts import KeptNumbers
from extremal.losses.base import Curved, Loss, MultiLoss
from extremal.losses.margin import Logistic, SignedLogistic


@dataclass(frozen=True)
class Weighted:
    """Any loss of one margin, times the weight of the row; targets are pairs (y, weight).

    phi(z, (y, w)) = w loss(z, y)

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> Weighted(ex.Squared(), 3.0).value(np.array([2.0]), np.array([[0.0, 3.0]]))
    array([6.])
    """

    loss: Any
    heaviest: float
    labels = None

    @property
    def curvature(self) -> float:
        """The curvature of the loss, times the largest weight."""
        return self.loss.curvature * self.heaviest

    @property
    def convex(self) -> bool:
        """Whether the loss is convex."""
        return self.loss.convex

    @property
    def quadratic(self) -> bool:
        """Whether the second derivative of the loss does not depend on z."""
        return getattr(self.loss, "quadratic", False)

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """w loss(z, y)."""
        return y[:, -1] * self.loss.value(z, self._target(y))

    def deriv(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """w loss'(z, y)."""
        w = y[:, -1]
        return (w if z.ndim == 1 else w[:, None]) * self.loss.deriv(z, self._target(y))

    def _target(self, y: np.ndarray) -> np.ndarray:
        return y[:, 0]


class WeightedCurved(Weighted):
    """A weighted loss with a second derivative."""

    def second(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """w loss''(z, y)."""
        return y[:, -1] * self.loss.second(z, y[:, 0])

    @property
    def self_concordance(self) -> float:
        """The constant of the loss: a weight scales a majorant and its derivative alike."""
        return self.loss.self_concordance

    @property
    def majorant(self) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """The majorant of the loss, times w, if the loss has one."""
        inner = self.loss.majorant
        return lambda z, y: y[:, -1] * inner(z, y[:, 0])


class WeightedMulti(Weighted):
    """A weighted loss of several margins; the weight is the last entry of the target."""

    @property
    def outputs(self) -> int:
        """The number of outputs of the loss."""
        return self.loss.outputs

    @property
    def target_shape(self) -> tuple[int, ...]:
        """One number more than for the loss."""
        return ((self.loss.target_shape or (1,))[0] + 1,)

    @property
    def curvature_rows(self) -> Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray | None]]:
        """The curvature rows of the loss times the weight, if the loss has them."""
        inner = self.loss.curvature_rows

        def curvature_rows(z: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
            (D, P), w = inner(z, self._target(y)), y[:, -1:]
            return w * D, None if P is None else np.sqrt(w) * P

        return curvature_rows

    def _target(self, y: np.ndarray) -> np.ndarray:
        return y[:, :-1] if self.loss.target_shape else y[:, 0]


def with_weights(loss: Loss, y: np.ndarray, weights: ArrayLike | None, call: str = "LinearModel") -> tuple[Loss, np.ndarray]:
    """The loss and the targets of weighted rows, with weights divided by their mean, so that (1/n) sum is the weighted mean.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> loss, y = with_weights(ex.Logistic(), np.array([1.0, -1.0]), [1.0, 3.0])
    >>> loss, y
    (SignedLogistic(heaviest=1.5), array([ 0.5, -1.5]))
    """
    w = checks.finite(call, "weights", checks.array(call, "weights", weights).astype(np.float64))
    if w.shape != (len(y),):
        raise InputError(f"`{call}(weights=...)` must have shape ({len(y)},), one per row of A, got {w.shape}")
    if not (w >= 0).all() or not w.any():
        raise InputError(f"`{call}(weights=...)` must be non-negative and not all zero, got a minimum of {w.min():g}")
    w = w / w.max()
    w /= w.mean()
    return weighted_loss(loss, float(w.max())), carrying(y, w, loss)


def with_held_weights(loss: Loss, y: Any, w: Any) -> tuple[Loss, Derived]:
    """The loss and the targets for weights that lie with the parts of the rows, have mean 1 and know their maximum."""
    shape = y.shape if type(loss) is Logistic else (len(y), math.prod(y.shape[1:]) + 1)
    return weighted_loss(loss, w.heaviest), Derived(carrying, (y, w), shape, (loss,))


def weighted_loss(loss: Loss, heaviest: float) -> Loss:
    """The loss for targets that carry weights."""
    if type(loss) is Logistic:
        return SignedLogistic(heaviest)
    kind = WeightedMulti if isinstance(loss, MultiLoss) else WeightedCurved if isinstance(loss, Curved) else Weighted
    return kind(loss, heaviest)


def carrying(y: np.ndarray, w: np.ndarray, loss: Loss) -> np.ndarray:
    """The targets with their weights."""
    return (y * w).astype(y.dtype) if type(loss) is Logistic else np.column_stack([y, w.astype(y.dtype)])


def unweighted(loss: Loss) -> Any:
    """The loss of a row of weight 1."""
    return Logistic() if type(loss) is SignedLogistic else loss.loss if isinstance(loss, Weighted) else loss


def weights_of(loss: Loss, y: np.ndarray) -> np.ndarray | None:
    """The weights that targets carry; None if they carry none."""
    if not isinstance(loss, (SignedLogistic, Weighted)):
        return None
    if isinstance(y, KeptNumbers):
        return Derived(_carried, (y,), y.shape[:1], (loss,))  # pyright: ignore[reportReturnType]
    return _carried(y, loss)


def _carried(y: np.ndarray, loss: Loss) -> np.ndarray:
    return np.abs(y) if type(loss) is SignedLogistic else y[:, -1]


def targets_of(loss: Loss, y: np.ndarray) -> np.ndarray:
    """The targets without their weights."""
    return np.sign(y) if type(loss) is SignedLogistic else loss._target(y) if isinstance(loss, Weighted) else y
