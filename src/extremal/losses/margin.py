"""Losses of one margin: logistic, squared, Huber, non-linear least squares."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from extremal import checks
from extremal.kernels.arguments import HUBER, LOGISTIC, NONLINEAR, SQUARED
from extremal.losses.base import Loss, expit


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
    nonnegative = True
    labels = (-1.0, 1.0)
    ends_at_zero = True
    self_concordance = 1.0

    def mean(self, z: np.ndarray) -> np.ndarray:
        """The probability of y = 1."""
        return expit(z)

    def far(self, y: np.ndarray) -> float:
        """A few units, as for log-odds."""
        return 3.0

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """log(1 + exp(-y z)) = max(0, -y z) + log(1 + exp(-|z|))."""
        return np.maximum(0.0, -y * z) + np.log1p(np.exp(-np.abs(z)))

    def deriv(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """-y / (1 + exp(y z))."""
        sign = -y
        return sign * expit(sign * z)

    def second(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """1 / ((1 + exp(z)) (1 + exp(-z)))."""
        return expit(z) * expit(-z)


@dataclass(frozen=True)
class SignedLogistic(Logistic):
    """Logistic loss of a row with weight |y| and label sign(y).

        phi(z, y) = |y| log(1 + exp(-sign(y) z)),   phi' = -y / (1 + exp(sign(y) z))

    The compiled loops of `Logistic` compute this loss for any y.

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
    """Least squares on a sigmoid, with targets in {0, 1}; not convex. The second problem of the Sarah Frank-Wolfe paper.

        phi(z, y) = (y - q)^2,   q = 1 / (1 + exp(z)),   phi' = 2 (y - q) q (1 - q)

    Note the sign: a large margin z means q near 0, as in the paper. |phi''| = 2 q^2 (1 - q) |2 - 3q| is 0.15406 at most,
    for q = (15 - sqrt 33)/24. This is for y = 0; y = 1 is the mirror image.

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
    self_concordance = 2.0

    def mean(self, z: np.ndarray) -> np.ndarray:
        """1 / (1 + exp(z))."""
        return expit(-z)

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """p^2 for p = |y - q|, which keeps its digits for large margins."""
        return np.square(expit(np.where(y > 0.5, z, -z)))

    def deriv(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """2 (y - q) q (1 - q) = 2 (2 y - 1) p^2 (1 - p)."""
        u = np.where(y > 0.5, z, -z)
        size = 2.0 * np.square(expit(u)) * expit(-u)
        return np.where(y > 0.5, size, -size)

    def second(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """2 p^2 (1 - p) (2 - 3 p)."""
        u = np.where(y > 0.5, z, -z)
        p, rest = expit(u), expit(-u)
        return 2.0 * np.square(p) * rest * (2.0 * rest - p)

    def majorant(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """2 p^2 (1 - p) (2 - p) for p = |y - q|, where |phi''| is 2 p^2 (1 - p) |2 - 3 p|."""
        p, rest = (expit(np.where(y > 0.5, u, -u)) for u in (z, -z))
        return 2.0 * np.square(p) * rest * (1.0 + rest)


@dataclass(frozen=True)
class Squared:
    """Half the squared error, any finite targets.

        phi(z, y) = (z - y)^2 / 2,   phi' = z - y,   phi'' = 1

    The loss is ``quadratic``: its second derivative does not depend on z, so methods compute the Hessian of f once.

    Examples
    --------
    >>> import numpy as np
    >>> Squared().value(np.array([3.0]), np.array([1.0]))
    array([2.])
    """

    curvature = 1.0
    convex = True
    nonnegative = True
    quadratic = True
    labels = None
    self_concordance = 0.0

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
    """Squared error near zero, absolute error far out, for any finite targets: outliers have bounded influence.

        phi(z, y) = r^2 / 2 if |r| <= delta else delta (|r| - delta/2),   r = z - y,   |phi''| <= 1

    Parameters
    ----------
    delta : float
        The residual at which the parabola becomes a line; positive.

    Examples
    --------
    >>> import numpy as np
    >>> Huber(delta=1.0).value(np.array([0.5, 10.0]), np.array([0.0, 0.0]))
    array([0.125, 9.5  ])
    """

    delta: float = 1.0
    curvature = 1.0
    convex = True
    nonnegative = True
    labels = None
    self_concordance = 0.0

    def __post_init__(self):
        object.__setattr__(self, "delta", checks.positive("Huber", "delta", self.delta))

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """r^2 / 2, or delta (|r| - delta/2); with m = min(|r|, delta) both are m (|r| - m/2)."""
        r = np.abs(z - y)
        m = np.minimum(r, self.delta)
        return m * (r - 0.5 * m)

    def deriv(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """r clipped to [-delta, delta]."""
        return np.clip(z - y, -self.delta, self.delta)

    def second(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """1 on the parabola, 0 on the lines."""
        return (np.abs(z - y) <= self.delta).astype(z.dtype)

    def majorant(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """1, because phi'' jumps."""
        return np.ones_like(z)


LOSSES: dict[str, Callable[[], Loss]] = {  # names on the command line
    "logistic": Logistic,
    "nonlinear-least-squares": NonlinearLeastSquares,
    "squared": Squared,
    "huber": Huber,
}
_COMPILED = {Logistic: LOGISTIC, SignedLogistic: LOGISTIC, NonlinearLeastSquares: NONLINEAR, Squared: SQUARED, Huber: HUBER}


def compiled(loss: Loss) -> tuple[int, float] | None:
    """The number and the one parameter of a loss in compiled loops; None for a user's own loss.

    Examples
    --------
    >>> compiled(Huber(delta=2.0))
    (3, 2.0)
    """
    code = _COMPILED.get(type(loss))
    return None if code is None else (code, loss.delta if isinstance(loss, Huber) else 0.0)
