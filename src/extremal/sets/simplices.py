"""Simplices and boxes: weights that sum to a total, entries between bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.sets.base import ConvexSet, brief, refuse_non_finite
from extremal.vertices import Coordinate, DenseVertex


@dataclass(frozen=True, eq=False, repr=False)
class Simplex(ConvexSet):
    """The simplex: non-negative weights that sum to ``total``.

        {x : x >= 0, sum_j x_j = total},   lmo(g) = total e_j,  j = argmin g_j

    One pass over g; the vertex is two numbers. Diameter sqrt(2) total (0 in one dimension). Ties go to the smallest j.

    Parameters
    ----------
    total : float
        Positive; 1 for probabilities.
    shape : int or tuple of int, optional
        Shape of the points; any if left out.

    Examples
    --------
    >>> import numpy as np
    >>> Simplex().lmo(np.array([1.0, -3.0])).to_array()
    array([0., 1.])
    """

    total: float = 1.0
    shape: tuple[int, ...] | None = None

    def __post_init__(self):
        self._fix(total=checks.positive("Simplex", "total", self.total))

    def lmo(self, g: np.ndarray) -> Coordinate:
        """total e_j at the smallest g_j."""
        j = int(g.argmin())  # a NaN counts as smallest, an infinity as smallest or largest
        refuse_non_finite(self, float(g.flat[j]), float(g.max()))
        return Coordinate(j, self.total, g.shape)

    def contains(self, x: np.ndarray, tol: float = 1e-9) -> bool:
        """x_j >= -tol total, and the sum is total up to tol."""
        off = abs(float(x.sum(dtype=np.float64)) - self.total)
        return off <= tol * self.total and float(x.min()) >= -tol * self.total

    @property
    def diameter(self) -> float:
        """sqrt(2) total."""
        return 0.0 if self.shape is not None and math.prod(self.shape) == 1 else math.sqrt(2) * self.total

    def start(self) -> np.ndarray:
        """The barycentre: all weights equal."""
        shape = self._known_shape("start()")
        return np.full(shape, self.total / math.prod(shape))


@dataclass(frozen=True, eq=False, repr=False)
class Box(ConvexSet):
    """A box: every entry between its own bounds.

        {x : lower <= x <= upper},   lmo(g)_j = lower_j if g_j > 0 else upper_j

    One pass over g, a dense vertex. Diameter |upper - lower|.

    Parameters
    ----------
    lower, upper : float or array
        Finite bounds, lower <= upper; a number holds for every entry.
    shape : int or tuple of int, optional
        Shape of the points; that of the bounds if these are arrays, any if left out.

    Examples
    --------
    >>> import numpy as np
    >>> Box(0.0, [1.0, 2.0]).lmo(np.array([3.0, -4.0])).to_array()
    array([0., 2.])
    """

    lower: Any
    upper: Any
    shape: tuple[int, ...] | None = None

    def __post_init__(self):
        self._fix(lower=_bound("lower", self.lower), upper=_bound("upper", self.upper))
        shapes = [self.lower.shape, self.upper.shape]
        try:
            shape = np.broadcast_shapes(*shapes, self.shape or ())
        except ValueError:
            shape = None
        if shape is None or 0 in shape or (self.shape is not None and shape != self.shape):
            raise InputError(
                f"`Box(lower=..., upper=..., shape=...)` must fit one shape, got {shapes[0]}, {shapes[1]} and {self.shape}"
            )
        if not (self.lower <= self.upper).all():
            raise InputError("`Box(lower=..., upper=...)` must have lower <= upper everywhere")
        if shape:
            self._fix(shape=shape)

    def lmo(self, g: np.ndarray) -> DenseVertex:
        """The corner with lower_j where g_j > 0 and upper_j elsewhere."""
        refuse_non_finite(self, float(np.abs(g).max()))
        return DenseVertex(np.where(g > 0, self.lower, self.upper).astype(np.result_type(g, np.float32), copy=False))

    def contains(self, x: np.ndarray, tol: float = 1e-9) -> bool:
        """lower <= x <= upper, up to tol times the larger bound's size."""
        slack = tol * np.maximum(np.abs(self.lower), np.abs(self.upper))
        return bool((x >= self.lower - slack).all() and (x <= self.upper + slack).all())

    @property
    def diameter(self) -> float:
        """|upper - lower|."""
        return float(np.linalg.norm(np.broadcast_to(self.upper - self.lower, self._known_shape("diameter")).reshape(-1)))

    def start(self) -> np.ndarray:
        """The centre."""
        return np.broadcast_to(self.lower + (self.upper - self.lower) / 2, self._known_shape("start()")).copy()


def _bound(name: str, value: Any) -> np.ndarray:
    array = checks.array("Box", name, value)
    if array.dtype.kind not in "biuf":
        raise InputError(f"`Box({name}=...)` must be a number or an array of numbers, got {value!r}")
    array = array.astype(np.float64)
    if not np.isfinite(array).all():
        raise InputError(f"`Box({name}=...)` must be finite (the set has to be compact), got {brief(array)}")
    array.flags.writeable = False
    return array
