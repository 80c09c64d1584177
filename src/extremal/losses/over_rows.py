"""Losses of many margins: means, derivatives and lines, by compiled loops for the losses of this library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from extremal.checks import InputError, NonFiniteError
from extremal.kernels.views import locked
from extremal.losses.base import Curved, Loss
from extremal.losses.margin import compiled

TOLD = 1e-8  # share of a margin that a change must be for derivatives to tell a difference quotient
ROWS_AT_ONCE = 2**14  # rows whose loss is evaluated at once, at most: its temporaries stay small


def chunks(n: int) -> list[slice]:
    """All rows, by chunks."""
    return [slice(i, i + ROWS_AT_ONCE) for i in range(0, n, ROWS_AT_ONCE)]


def mean_of(function: Callable[..., np.ndarray], *arrays: np.ndarray) -> float:
    """The sum over all entries of function(*arrays), chunk by chunk and in float64, divided by the number of rows."""
    n = len(arrays[0])
    return sum(float(function(*(a[rows] for a in arrays)).sum(dtype=np.float64)) for rows in chunks(n)) / n


def each_of(function: Callable[..., np.ndarray], z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """function(z, y), chunk by chunk."""
    if len(z) <= ROWS_AT_ONCE:
        return function(z, y)
    out = np.empty_like(z)
    for rows in chunks(len(z)):
        out[rows] = function(z[rows], y[rows])
    return out


def derivs_of(loss: Loss, z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """phi'(z_i, y_i)."""
    return each_of(loss.deriv, z, y)


def second_of(loss: Any, z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """phi''(z_i, y_i)."""
    code = compiled(loss)
    if code is None:
        if not hasattr(loss, "second"):  # as isinstance(loss, Curved) would, which takes longer
            raise InputError(f"{loss!r} has no second derivative: give it a method second(z, y)")
        return _checked_second(loss, z, y)
    h = np.empty_like(z)
    _kernels().terms(*code, locked(z), locked(y), False, h[:0], h)
    return h


def mean_second_of(loss: Loss, z: np.ndarray, width: float, y: np.ndarray, h: np.ndarray) -> np.ndarray:
    """The mean of phi'' from z - width to z + width, by phi' at both ends; h = phi''(z) where that is too near to tell."""
    change = derivs_of(loss, z + width, y) - derivs_of(loss, z - width, y)
    return np.where((width > TOLD * np.abs(z)) & np.isfinite(change), change / (2.0 * width), h)


def bent_of(loss: Loss, z: np.ndarray, y: np.ndarray, valued: bool = False) -> tuple[float, np.ndarray, np.ndarray]:
    """The sum of phi if ``valued``, phi' and phi'' of every row, in float64 and in one loop over the margins."""
    code, z = compiled(loss), z.astype(np.float64, copy=False)
    if code is None:
        total = mean_of(loss.value, z, y) * len(z) if valued else 0.0
        return total, derivs_of(loss, z, y), second_of(loss, z, y)
    c, h = np.empty(len(z)), np.empty(len(z))
    return float(_kernels().terms(*code, locked(z), locked(y), valued, c, h)), c, h


def _checked_second(loss: Curved, z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """phi'' of a loss of the user's own."""
    h = np.asarray(each_of(lambda z, y: np.broadcast_to(loss.second(z, y), z.shape), z, y))
    if not np.isfinite(h).all():
        raise NonFiniteError(f"{type(loss).__name__}.second(z, y) has a NaN or an infinity")
    return np.maximum(h, 0) if loss.convex else h


@dataclass(frozen=True)
class Along:
    """f along a line of margins: t -> mean of phi(z + t dz, y)."""

    loss: Loss
    y: np.ndarray
    z: np.ndarray
    dz: np.ndarray
    grads_per_slope: int = 0  # a slope reads margins only

    def value(self, t: float) -> float:
        """f at t."""
        code = compiled(self.loss)
        if code is None:
            return mean_of(lambda z, dz, y: self.loss.value(z + t * dz, y), self.z, self.dz, self.y)
        return _kernels().line(*code, locked(self.z), locked(self.dz), float(t), locked(self.y)) / len(self.z)

    def slope(self, t: float) -> float:
        """Its derivative at t."""
        return mean_of(lambda z, dz, y: self.loss.deriv(z + t * dz, y) * dz, self.z, self.dz, self.y)


def _kernels() -> ModuleType:
    from extremal.kernels import terms  # numba: imported when first needed

    return terms
