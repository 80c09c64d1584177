"""Losses phi(z, y) of a margin z = <a, x> and a target y: elementwise, smooth, safe at any margin.

A loss knows ``value``, ``deriv`` (in z), ``curvature`` (a bound on |phi''|), ``convex``, and which targets it takes; one that
knows ``second`` (phi'') too is `Curved`, and open to second-order methods.
Values and derivatives keep the float type of z. Losses of several margins a row are in extremal.multi_losses.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.kernels.codes import HUBER, LOGISTIC, NONLINEAR, SQUARED
from extremal.lazy import imported


class Loss(Protocol):
    """The contract of a loss."""

    @property
    def curvature(self) -> float: ...  # sup |phi''|
    @property
    def convex(self) -> bool: ...  # decides the default step of a method
    @property
    def labels(self) -> tuple[float, ...] | None: ...  # accepted targets; None: any finite number
    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray: ...  # phi(z, y)
    def deriv(self, z: np.ndarray, y: np.ndarray) -> np.ndarray: ...  # d phi / d z


@runtime_checkable
class Curved(Loss, Protocol):
    """A loss of one margin with a second derivative; where phi'' jumps, either side will do."""

    def second(self, z: np.ndarray, y: np.ndarray) -> np.ndarray: ...  # d^2 phi / d z^2


@runtime_checkable
class MultiLoss(Loss, Protocol):
    """The contract of a loss of k margins z = a' X, X of shape (d, k): z (b, k) -> value (b,), deriv (b, k).

    ``curvature`` bounds the operator norm of the k x k matrix of second derivatives.
    """

    @property
    def outputs(self) -> int: ...  # k
    @property
    def target_shape(self) -> tuple[int, ...]: ...  # shape of one row's target: () for a number, (k,) for one per output


class BentMulti(MultiLoss, Protocol):
    """A loss of several margins with second derivatives, diag(D_i) - P_i P_i' for every row."""

    def bends(self, z: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]: ...  # D and P, (b, k); P may be 0


def expit(u: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-u)), elementwise."""
    return imported("scipy.special").expit(u)  # by the first loss that is evaluated: it takes long


@dataclass(frozen=True)
class Logistic:
    """Logistic loss, targets in {-1, 1}.

        phi(z, y) = log(1 + exp(-y z)),   phi' = -y / (1 + exp(y z)),   |phi''| <= 1/4

    Examples
    --------
    >>> import numpy as np
    >>> Logistic().value(np.array([0.0, -1e4]), np.array([1.0, 1.0]))
    array([6.93147181e-01, 1.00000000e+04])
    """

    curvature = 0.25
    convex = True
    labels = (-1.0, 1.0)

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """log(1 + exp(-y z)) = max(0, -y z) + log(1 + exp(-|z|))."""
        return np.maximum(0.0, -y * z) + np.log1p(np.exp(-np.abs(z)))

    def deriv(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """-y / (1 + exp(y z))."""
        return -y * expit(-y * z)

    def second(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """1 / ((1 + exp(z)) (1 + exp(-z)))."""
        return expit(z) * expit(-z)


@dataclass(frozen=True)
class SignedLogistic(Logistic):
    """Logistic loss of a row of weight |y| and label sign(y).

        phi(z, y) = |y| log(1 + exp(-sign(y) z)),   phi' = -y / (1 + exp(sign(y) z))

    The compiled loops of `Logistic` are those of this loss for any y.

    Examples
    --------
    >>> import numpy as np
    >>> SignedLogistic(2.0).value(np.zeros(2), np.array([1.0, -2.0])).round(4)
    array([0.6931, 1.3863])
    """

    heaviest: float = 1.0
    labels = None  # type: ignore[assignment]

    @property
    def curvature(self) -> float:  # type: ignore[override]
        """A quarter of the largest weight."""
        return 0.25 * self.heaviest

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """|y| log(1 + exp(-sign(y) z))."""
        return np.maximum(0.0, -y * z) + np.abs(y) * np.log1p(np.exp(-np.abs(z)))

    def deriv(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """-y / (1 + exp(sign(y) z))."""
        return np.abs(y) * super().deriv(z, np.sign(y))

    def second(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """|y| / ((1 + exp(z)) (1 + exp(-z)))."""
        return np.abs(y) * super().second(z, y)


@dataclass(frozen=True)
class NonlinearLeastSquares:
    """Least squares on a sigmoid, targets in {0, 1}; not convex. The second problem of the Sarah Frank-Wolfe paper.

        phi(z, y) = (y - q)^2,   q = 1 / (1 + exp(z)),   phi' = 2 (y - q) q (1 - q)

    Mind the sign: a large margin z means q near 0, as the paper writes it. |phi''| = 2 q^2 (1 - q) |2 - 3q| is largest
    at q = (15 - sqrt 33)/24 (for y = 0; y = 1 is its mirror image), where it is 0.15406.

    Examples
    --------
    >>> import numpy as np
    >>> NonlinearLeastSquares().value(np.array([0.0, 1e4]), np.array([0.0, 1.0]))
    array([0.25, 1.  ])
    """

    _q = (15.0 - math.sqrt(33.0)) / 24.0
    curvature = 2.0 * _q**2 * (1.0 - _q) * (2.0 - 3.0 * _q)
    convex = False
    labels = (0.0, 1.0)

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """(y - q)^2."""
        return np.square(y - expit(-z))

    def deriv(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """2 (y - q) q (1 - q)."""
        q = expit(-z)
        return 2.0 * (y - q) * q * expit(z)  # 1 - q = 1 / (1 + exp(-z)) keeps its digits for large z

    def second(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """2 q (1 - q) (q (1 - q) - (y - q) (1 - 2q))."""
        q, rest = expit(-z), expit(z)
        return 2.0 * q * rest * (q * rest - (y - q) * (rest - q))


@dataclass(frozen=True)
class Squared:
    """Half the squared error, any finite targets.

        phi(z, y) = (z - y)^2 / 2,   phi' = z - y,   phi'' = 1

    Examples
    --------
    >>> import numpy as np
    >>> Squared().value(np.array([3.0]), np.array([1.0]))
    array([2.])
    """

    curvature = 1.0
    convex = True
    labels = None

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """(z - y)^2 / 2."""
        return 0.5 * np.square(z - y)

    def deriv(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """z - y."""
        return z - y

    def second(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """1."""
        return np.ones_like(z)


@dataclass(frozen=True)
class Huber:
    """Squared error near zero, absolute error far out, any finite targets: outliers pull with bounded force.

        phi(z, y) = r^2 / 2 if |r| <= delta else delta (|r| - delta/2),   r = z - y,   |phi''| <= 1

    Parameters
    ----------
    delta : float
        Where the parabola turns into a line; positive.

    Examples
    --------
    >>> import numpy as np
    >>> Huber(delta=1.0).value(np.array([0.5, 10.0]), np.array([0.0, 0.0]))
    array([0.125, 9.5  ])
    """

    delta: float = 1.0
    curvature = 1.0
    convex = True
    labels = None

    def __post_init__(self):
        object.__setattr__(self, "delta", checks.positive("Huber", "delta", self.delta))

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """r^2 / 2, or delta (|r| - delta/2): with m = min(|r|, delta) both are m (|r| - m/2)."""
        r = np.abs(z - y)
        m = np.minimum(r, self.delta)
        return m * (r - 0.5 * m)

    def deriv(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """r clipped to [-delta, delta]."""
        return np.clip(z - y, -self.delta, self.delta)

    def second(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """1 on the parabola, 0 on the lines."""
        return (np.abs(z - y) <= self.delta).astype(z.dtype)


LOSSES: dict[str, Callable[[], Loss]] = {  # names on the command line
    "logistic": Logistic,
    "nonlinear-least-squares": NonlinearLeastSquares,
    "squared": Squared,
    "huber": Huber,
}


_COMPILED = {Logistic: LOGISTIC, SignedLogistic: LOGISTIC, NonlinearLeastSquares: NONLINEAR, Squared: SQUARED, Huber: HUBER}


def compiled(loss: Loss) -> tuple[int, float] | None:
    """The loss as compiled loops take it: its number and its one parameter; None for a loss of your own.

    Examples
    --------
    >>> compiled(Huber(delta=2.0))
    (3, 2.0)
    """
    code = _COMPILED.get(type(loss))
    return None if code is None else (code, float(getattr(loss, "delta", 0.0)))


def check_targets(loss: Loss, y: np.ndarray, n: int) -> np.ndarray:
    """Return y in float64, refusing targets that the loss does not take."""
    _check_shape(loss, y, n)
    if y.dtype.kind not in "biuf":
        raise InputError(f"`LinearModel(y=...)` must hold numbers, got dtype {y.dtype}; {_how_to_map(loss)}")
    y = checks.finite("LinearModel", "y", y.astype(np.float64))
    least = getattr(loss, "least", None)
    if least is not None and not (y >= least).all():
        raise InputError(f"`LinearModel(y=...)` with {loss!r} takes targets from {least:g} on, got {y.min():g}")
    if loss.labels is None or (known := np.isin(y, loss.labels)).all():
        return y
    seen = _some(np.unique(y if len(loss.labels) == 2 else y[~known]))
    raise InputError(f"`LinearModel(y=...)` with {loss!r} takes labels {_some(loss.labels)}, got {seen}; {_how_to_map(loss)}")


def _check_shape(loss: Loss, y: np.ndarray, n: int) -> None:
    """Refuse targets that are not one per row of A."""
    rest = loss.target_shape if isinstance(loss, MultiLoss) else ()
    if y.shape == (n, *rest):
        return
    if rest:
        raise InputError(f"`LinearModel(y=...)` must have shape {(n, *rest)}, one row of targets per row of A, got {y.shape}")
    hint = "; give the classes of one-hot rows, y.argmax(axis=1)" if _is_one_hot(loss, y) else ""
    raise InputError(f"`LinearModel(y=...)` must have shape ({n},), one per row of A, got {y.shape}{hint}")


def _is_one_hot(loss: Loss, y: np.ndarray) -> bool:
    return isinstance(loss, MultiLoss) and y.shape[1:] == (loss.outputs,)


def _some(values: Sequence[float] | np.ndarray) -> str:
    """A set of numbers, increasing: all of them, or the first and the last."""
    shown = [f"{v:g}" for v in values]
    return "{" + ", ".join(shown if len(shown) <= 5 else [*shown[:3], "...", shown[-1]]) + "}"


def _how_to_map(loss: Loss) -> str:
    if loss.labels is None:
        return "map them to numbers first"
    if len(loss.labels) != 2:
        return "map them, e.g. classes, y = np.unique(y, return_inverse=True)"
    low, high = loss.labels
    return f"map them, e.g. y = np.where(y == positive_class, {high:g}, {low:g})"
