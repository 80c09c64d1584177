"""The common base of norm balls: centre, membership, size."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.points.composed import Combination
from extremal.points.vertex import DenseVertex, Vertex
from extremal.sets.base import ConvexSet, points_shape
from extremal.sets.shared import float_of, numbers, power
from extremal.sets.simplices.bounds import rounding
from extremal.support.values import changed

SIZE_ONLY = 3  # number of fields of a ball without further parameters


@dataclass(frozen=True, eq=False, repr=False)
class NormBall(ConvexSet):
    """The ball of a norm that depends only on magnitudes.

        {x : norm(x - centre) <= radius},   lmo(g) = centre + argmin {<g, v> : norm(v) <= radius}

    A new ball is a frozen dataclass with `_norm`, `_extreme` and `_reach` that checks its further fields in `__post_init__`.
    The diameter is 2 radius max {|x|_2 : norm(x) <= 1}. The ball is symmetric about its centre, so two points are at most
    twice as far apart as the farther one is from the centre.

    Parameters
    ----------
    radius : float
        A positive number.
    shape : int or tuple of int, optional
        Shape of the points. Default: the shape of the centre if given, otherwise any.
    centre : array, optional
        The centre of the ball. Default: 0.

    Examples
    --------
    >>> from extremal import L1Ball
    >>> ball = L1Ball(2.0, centre=[1.0, 0.0])
    >>> isinstance(ball, NormBall), ball.norm(np.array([3.0, -4.0])), ball.lmo(np.array([0.0, 1.0])).to_array()
    (True, 7.0, array([ 1., -2.]))
    """

    radius: float
    shape: tuple[int, ...] | None = field(default=None, kw_only=True)
    centre: Any = field(default=None, kw_only=True)

    @abstractmethod
    def _norm(self, a: np.ndarray) -> float:
        """The norm, given all magnitudes: flat, in float64, with the largest about 1."""

    @abstractmethod
    def _extreme(self, g: np.ndarray) -> Vertex:
        """The oracle's answer for the ball around 0."""

    @abstractmethod
    def _reach(self) -> float:
        """The largest |x|_2 with norm(x) <= 1."""

    def lmo(self, g: np.ndarray) -> Vertex:
        v = self._extreme(g)
        return v if self.centre is None else self._placed(v)

    def _placed(self, v: Vertex) -> Vertex:
        """A vertex of the ball around 0, moved to the centre."""
        return v if self.centre is None else Combination(((1.0, v), (1.0, DenseVertex(self.centre))))

    def _centred(self, x: np.ndarray) -> np.ndarray:
        """x - centre, flat and in float64."""
        return (x.astype(np.float64) - (0.0 if self.centre is None else self.centre)).reshape(-1)

    def _noise(self, x: np.ndarray) -> float:
        """The share of the radius that is rounding: a point near a far centre has lost digits."""
        far = 0.0 if self.centre is None else self.norm(self.centre) / self.radius
        return rounding(x) + 8.0 * float(np.finfo(float_of(x)).eps) * far

    def norm(self, x: np.ndarray) -> float:
        """The norm of x (not of x - centre), in float64; entries may have any size that float64 can hold."""
        a = np.abs(np.asarray(x, np.float64)).reshape(-1)
        top = float(a.max())
        if not 0 < top < math.inf:
            return top
        scale = power(top)
        return scale * float(self._norm(a / scale))

    def contains(self, x: np.ndarray, tol: float = 1e-9) -> bool:
        """norm(x - centre) <= radius (1 + tol) + 4 eps norm(centre), where eps is the rounding unit of x's float type."""
        if self.centre is None:
            return self.norm(x) <= self.radius * (1 + tol)
        with np.errstate(over="ignore"):
            excess = self.norm(x - self.centre) - self.radius * (1 + tol)
        return excess <= 0 or excess <= 4 * float(np.finfo(float_of(x)).eps) * self.norm(self.centre)

    def on(self, shape: int | tuple[int, ...]) -> Self:
        """As for any set; a ball that knows its radius only needs no second check."""
        if self.shape is not None or len(vars(self)) > SIZE_ONLY or self.centre is not None:
            return super().on(shape)
        return changed(self, shape=points_shape(type(self).__name__, shape))

    @property
    def diameter(self) -> float:
        return 2 * self.radius * self._reach()

    def start(self) -> np.ndarray:
        return np.zeros(self._known_shape("start()")) if self.centre is None else self.centre.copy()

    def __post_init__(self):
        call = type(self).__name__
        self._fix(radius=checks.positive(call, "radius", self.radius))
        if self.centre is not None:
            self._fix(centre=numbers(call, "centre", self.centre, "an array of numbers"))
            self._fit("centre", self.centre.shape)

    def _fit(self, name: str, shape: tuple[int, ...]) -> None:
        """Take the shape of the array in field ``name``, or refuse that array if the points have another shape."""
        if self.shape is None:
            self._fix(shape=shape)
        elif self.shape != shape:
            raise InputError(f"`{type(self).__name__}({name}=...)` must have the points' shape {self.shape}, got {shape}")


@dataclass(frozen=True, eq=False, repr=False)
class ProjectableBall(NormBall):
    """A ball with a cheap Euclidean projection."""

    @abstractmethod
    def _nearest(self, y: np.ndarray) -> np.ndarray:
        """The point nearest to y in the ball around 0, for y outside; in float64."""

    def project(self, x: np.ndarray) -> np.ndarray:
        """The point of the ball nearest to x, in x's float type; x itself if it is inside."""
        kind = float_of(x)
        c = np.zeros(()) if self.centre is None else self.centre
        y = checks.finite(f"{type(self).__name__}.project", "x", np.asarray(x, np.float64)) - c
        return np.array(x if self.norm(y) <= self.radius else c + self._nearest(y), kind)


def p_norm(a: np.ndarray, p: float) -> float:
    """(sum_j a_j^p)^(1/p), for a >= 0 that is not all 0."""
    top = float(a.max())
    return top if p == math.inf else top * float(((a / top) ** p).sum()) ** (1 / p)
