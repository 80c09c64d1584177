"""Evaluate a loss over many rows: sums, derivatives and lines, by compiled loops for the losses of this library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from extremal.checks import InputError, NonFiniteError
from extremal.kernels.arguments import kernels, locked
from extremal.losses.base import Curved, Loss
from extremal.losses.glm import Quantile
from extremal.losses.margin import compiled
from extremal.losses.multi import CurvatureRows
from extremal.losses.weighted import unweighted, weights_of

TOLD = 1e-8  # smallest change, as a share of the margin, for which a difference quotient of derivatives is accurate
FAR_ROW = 20.0  # rows with phi'^2 / phi'' of at least this are far out
STEP = 1e-5  # step of differences of phi'
ROWS_AT_ONCE = 2**14  # largest number of rows that are summed at once
_NONE = np.empty(0)
EVALUATED = 2**13  # largest number of rows in one evaluation of a loss: from 128 KiB on, Dask's workers map each array anew


def chunks(n: int, size: int = 0) -> list[slice]:
    """Slices of all rows, chunk by chunk."""
    size = size or ROWS_AT_ONCE
    return [slice(i, i + size) for i in range(0, n, size)]


def sum_of(function: Callable[..., np.ndarray], *arrays: np.ndarray) -> float:
    """The sum over all entries of function(*arrays), chunk by chunk and in float64."""
    total, found = 0.0, None
    for rows in chunks(len(arrays[0])):
        found = _by_pieces(function, [a[rows] for a in arrays], found)
        total += float(found.sum(dtype=np.float64))
    return total


def _by_pieces(function: Callable[..., np.ndarray], arrays: Sequence[np.ndarray], room: np.ndarray | None) -> np.ndarray:
    """function(*arrays), row by row, in pieces that are small; in the room of an earlier answer."""
    n = len(arrays[0])
    found = [function(*(a[rows] for a in arrays)) for rows in chunks(n, EVALUATED)]
    return found[0] if len(found) == 1 else np.concatenate(found, out=None if room is None else room[:n])


def each_of(function: Callable[..., np.ndarray], z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """function(z, y), chunk by chunk."""
    if len(z) <= ROWS_AT_ONCE:
        return function(z, y)
    out = np.empty_like(z)
    for rows in chunks(len(z)):
        out[rows] = function(z[rows], y[rows])
    return out


def derivs_of(z: np.ndarray, y: np.ndarray, loss: Loss) -> np.ndarray:
    """phi'(z_i, y_i)."""
    return each_of(loss.deriv, z, y)


def second_of(z: np.ndarray, y: np.ndarray, loss: Any) -> np.ndarray:
    """phi''(z_i, y_i)."""
    code = compiled(loss)
    if code is None:
        if not hasattr(loss, "second"):  # faster than isinstance(loss, Curved)
            raise InputError(f"{loss!r} has no second derivative: give it a method second(z, y)")
        return _checked_second(z, y, loss)
    h = np.empty_like(z)
    _line(code, z, y, False, h[:0], h)
    return h


def mean_second_of(loss: Loss, z: np.ndarray, width: float, y: np.ndarray, h: np.ndarray) -> np.ndarray:
    """The mean of phi'' from z - width to z + width, from phi' at both ends, or h = phi''(z) if the ends are too close."""
    change = derivs_of(z + width, y, loss) - derivs_of(z - width, y, loss)
    return np.where((width > TOLD * np.abs(z)) & np.isfinite(change), change / (2.0 * width), h)


def bent_of(z: np.ndarray, y: np.ndarray, loss: Loss) -> tuple[np.ndarray, np.ndarray]:
    """phi' and phi'' of every row, in one loop over the margins."""
    code = compiled(loss)
    if code is None:
        return derivs_of(z, y, loss), second_of(z, y, loss)
    c, h = np.empty(len(z)), np.empty(len(z))
    _line(code, z, y, False, c, h)
    return c, h


def _checked_second(z: np.ndarray, y: np.ndarray, loss: Curved) -> np.ndarray:
    """phi'' of a user's own loss, checked."""
    h = np.asarray(each_of(lambda z, y: np.broadcast_to(loss.second(z, y), z.shape), z, y))
    if not np.isfinite(h).all():
        raise NonFiniteError(f"{type(loss).__name__}.second(z, y) has a NaN or an infinity")
    return np.maximum(h, 0) if loss.convex else h


def _line(
    code: tuple[int, float],
    z: np.ndarray,
    y: np.ndarray,
    valued: bool,
    c: np.ndarray,
    h: np.ndarray,
    dz: np.ndarray = _NONE,
    t: float = 0.0,
) -> float:
    """The compiled sum at the margins z + t dz, which also fills the derivatives c and h, unless these are empty."""
    return float(kernels("terms").line(*code, locked(z), locked(dz), t, locked(y), valued, c, h))


def line_sum(z: np.ndarray, dz: np.ndarray, y: np.ndarray, loss: Loss, t: float) -> tuple[float]:
    """sum_i phi(z_i + t dz_i, y_i)."""
    code = compiled(loss)
    if code is None:
        return (sum_of(lambda z, dz, y: loss.value(z + t * dz, y), z, dz, y),)
    return (_line(code, z, y, True, _NONE, _NONE, dz, float(t)),)


def slope_sum(z: np.ndarray, dz: np.ndarray, y: np.ndarray, loss: Loss, t: float) -> tuple[float]:
    """sum_i phi'(z_i + t dz_i, y_i) dz_i."""
    return (sum_of(lambda z, dz, y: loss.deriv(z + t * dz, y) * dz, z, dz, y),)


def value_sum(z: np.ndarray, y: np.ndarray, loss: Loss) -> tuple[float]:
    """sum_i phi(z_i, y_i)."""
    return (sum_of(loss.value, z, y),)


def value_and_derivs(z: np.ndarray, y: np.ndarray, c: np.ndarray, loss: Loss) -> tuple[float]:
    """sum_i phi(z_i, y_i); fills c_i = phi'(z_i, y_i)."""
    code = compiled(loss)
    if code is None:
        c[...] = derivs_of(z, y, loss)
        return value_sum(z, y, loss)
    return (_line(code, z, y, True, c, c[:0]),)


def tail_sum(z: np.ndarray, y: np.ndarray, loss: Loss) -> tuple[float]:
    """The sum of phi'^2 / phi''; infinite where phi'' vanishes and phi' does not."""
    c, h = (a.astype(np.float64) for a in (derivs_of(z, y, loss), second_of(z, y, loss)))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return (float(np.where(c == 0, 0.0, np.square(c) / h).sum()),)


def curvature_of(z: np.ndarray, y: np.ndarray, loss: Loss, width: float, far: bool) -> np.ndarray:
    """phi''(z_i, y_i), or its mean within a width of z_i.

    ``far`` from a solution, some rows are far out on a line of their loss: phi'' vanishes, phi' does not. If the slopes are of
    size one, these rows get some curvature, because steps would otherwise have no bound and would have to turn around. It is
    phi'^2 / 20, or phi'^2 / phi if phi is larger; with it a row alone would reach its target in one step.
    """
    h = second_of(z, y, loss)
    h = mean_second_of(loss, z, width, y, h) if width > 0 else h
    own = unweighted(loss) if far and loss.convex else None
    if own is None or not (own.curvature <= 1 or isinstance(own, Quantile)):
        return h
    w = weights_of(loss, y)
    w = np.ones(len(z)) if w is None else w  # a row of weight 2 counts twice
    slopes, values = np.square(derivs_of(z, y, loss)), each_of(loss.value, z, y)
    return np.maximum(h, np.minimum(slopes / np.maximum(FAR_ROW * np.where(w > 0, w, 1.0), values), own.curvature * w))


def curvature_rows_of(z: np.ndarray, y: np.ndarray, loss: Any, width: float = 0.0) -> CurvatureRows:
    """The second derivatives of a loss of several margins; means within ``width``, if the outputs do not mix."""
    found = CurvatureRows(*loss.curvature_rows(z, y))
    mean = width > 0 and found.P is None
    return CurvatureRows(mean_second_of(loss, z, width, y, found.D), None) if mean else found


def bend_sums(z: np.ndarray, y: np.ndarray, loss: Loss, b: float) -> tuple[float, float, float]:
    """The sums of phi', |phi'| and phi'' at z + b, with phi'' by differences if the loss has only phi'."""
    z = z.astype(np.float64, copy=False) + b
    if hasattr(loss, "second"):
        c, h = bent_of(z, y, loss)
    else:
        c, ends = derivs_of(z, y, loss), (derivs_of(z + side, y, loss) for side in (STEP, -STEP))
        h = (next(ends) - next(ends)) / (2 * STEP)
    total, size, bend = (float(a.sum(dtype=np.float64)) for a in (c, np.abs(c), h))
    return total, size, bend
