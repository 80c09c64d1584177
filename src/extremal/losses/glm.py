"""Further losses of one margin: smoothed quantiles and counts."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from extremal import checks


@dataclass(frozen=True)
class Quantile:
    """The pinball loss of a quantile, with its corner rounded over a width, for any finite targets.

        phi(z, y) = min over u of rho(u) + (r - u)^2 / (2 width),   rho(u) = max(q u, (q - 1) u),   r = y - z
        phi' = -clip(r / width, q - 1, q),   phi'' = 1 / width between, 0 outside

    This is the Moreau envelope of rho: it lies below rho by at most width max(q, 1 - q)^2 / 2, so a minimiser has a pinball
    loss within that of the best. At the minimum over an intercept, the share of rows below is q, up to the rows within the
    width.

    Parameters
    ----------
    q : float
        The quantile, between 0 and 1; 0.5 is the median.
    width : float
        Width of the parabola between the two lines, in units of y; positive.

    References
    ----------
    Koenker, Bassett (1978), Regression quantiles, Econometrica 46; Nesterov (2005), Smooth minimization of non-smooth functions,
    Math. Program. 103.

    Examples
    --------
    >>> import numpy as np
    >>> Quantile(0.9, width=0.1).value(np.zeros(2), np.array([1.0, -1.0]))
    array([0.8595, 0.0995])
    """

    q: float = 0.5
    width: float = 1e-2
    convex = True
    nonnegative = True
    labels = None
    self_concordance = 0.0

    def __post_init__(self):
        q = checks.within("Quantile", "q", self.q, 0, 1)
        if q == 1.0:
            raise checks.InputError("`Quantile(q=...)` must be below 1, got 1")
        checks.fix(self, q=q, width=checks.positive("Quantile", "width", self.width))

    @property
    def curvature(self) -> float:
        """1 / width."""
        return 1.0 / self.width

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """s (r - width s / 2) with s = clip(r / width, q - 1, q)."""
        r = y - z
        s = self._slope(r)
        return s * (r - 0.5 * self.width * s)

    def deriv(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """-clip(r / width, q - 1, q)."""
        return -self._slope(y - z)

    def second(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """1 / width on the parabola, 0 on the lines."""
        r = y - z
        inside = (r >= (self.q - 1.0) * self.width) & (r <= self.q * self.width)
        return inside.astype(z.dtype) / z.dtype.type(self.width)

    def majorant(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """1 / width, because phi'' jumps."""
        return np.full_like(z, 1.0 / self.width)

    def _slope(self, r: np.ndarray) -> np.ndarray:
        return np.clip(r / self.width, self.q - 1.0, self.q)


@dataclass(frozen=True)
class Poisson:
    """Half the Poisson deviance of counts with mean exp(z), for targets y >= 0.

        phi(z, y) = exp(z) - y z - (y - y log y),   phi' = exp(z) - y,   phi'' = exp(z)

    Above z = ``cap``, the second-order Taylor polynomial at cap replaces exp, so that nothing overflows and the curvature is
    finite. Means below exp(cap), 5e8 by default, are not affected. phi >= 0, and phi = 0 where the mean is y.

    Parameters
    ----------
    cap : float
        The margin beyond which the mean is no longer exp(z); at most 80, so that float32 can hold it.

    References
    ----------
    Nelder, Wedderburn (1972), Generalized linear models, J. R. Stat. Soc. A 135.

    Examples
    --------
    >>> import numpy as np
    >>> Poisson().value(np.array([0.0, 0.0]), np.array([1.0, 0.0]))
    array([0., 1.])
    """

    cap: float = 20.0
    convex = True
    nonnegative = True
    labels = None
    least = 0.0  # the smallest target
    self_concordance = 1.0

    def __post_init__(self):
        checks.fix(self, cap=checks.within("Poisson", "cap", self.cap, 0, 80))

    def mean(self, z: np.ndarray) -> np.ndarray:
        """exp(z), capped below infinity."""
        return np.exp(np.minimum(z, np.log(np.finfo(z.dtype).max)))

    def far(self, y: np.ndarray) -> float:
        """The logarithm of the largest count."""
        return 1.0 + float(np.log1p(y.max()))

    @property
    def curvature(self) -> float:
        """exp(cap)."""
        return math.exp(self.cap)

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Half the deviance, by expm1 and log1p near 0, where its terms would cancel."""
        beyond = np.maximum(z - self.cap, 0.0)
        mean = np.exp(np.minimum(z, self.cap))
        positive = np.maximum(y, np.finfo(z.dtype).tiny)
        u = np.where(y > 0, np.minimum(z, self.cap) - np.log(positive), 0.0).astype(z.dtype, copy=False)  # log(mean / y)
        near = np.where(np.abs(u) < 1.0, y * (np.expm1(np.clip(u, -1.0, 1.0)) - u), mean - y - y * u)
        inside = np.where(y > 0, near, mean)
        return inside + beyond * (mean * (1.0 + 0.5 * beyond) - y)

    def deriv(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """exp(z) - y."""
        return np.exp(np.minimum(z, self.cap)) * (1.0 + np.maximum(z - self.cap, 0.0)) - y

    def second(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """exp(z)."""
        return np.exp(np.minimum(z, self.cap))
