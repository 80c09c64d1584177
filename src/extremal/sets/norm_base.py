"""What all balls of norms share: the centre, membership, size; and the helpers of their oracles."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.sets.base import ConvexSet, brief, refuse_non_finite
from extremal.vertices import Combination, Coordinate, DenseVertex, SparseVertex, Vertex


@dataclass(frozen=True, eq=False, repr=False)
class NormBall(ConvexSet):
    """The ball of a norm that depends on magnitudes only.

        {x : norm(x - centre) <= radius},   lmo(g) = centre + argmin {<g, v> : norm(v) <= radius}

    A new one is a frozen dataclass with `_norm`, `_extreme` and `_reach`, that checks its fields after `_fix_ball`. Diameter
    2 radius max {|x|_2 : norm(x) <= 1}: the ball is symmetric about its centre, so x and y are no farther apart than twice the
    farther of them is from there.

    Parameters
    ----------
    radius : float
        Positive.
    shape : int or tuple of int, optional
        Shape of the points; that of the centre if left out, else any.
    centre : array, optional
        The ball's centre; 0 if left out.

    Examples
    --------
    >>> import numpy as np
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
        """The norm, given all magnitudes: flat, in float64, the largest about 1."""

    @abstractmethod
    def _extreme(self, g: np.ndarray) -> Vertex:
        """The oracle's answer for the ball around 0."""

    @abstractmethod
    def _reach(self) -> float:
        """The largest |x|_2 with norm(x) <= 1."""

    def norm(self, x: np.ndarray) -> float:
        """The norm of x (not of x - centre), in float64; entries may be as large or small as these get."""
        a = np.abs(np.asarray(x, np.float64)).reshape(-1)
        top = float(a.max())
        if not 0 < top < math.inf:
            return top
        scale = power(top)
        return scale * float(self._norm(a / scale))

    def lmo(self, g: np.ndarray) -> Vertex:
        """The centre and the extreme point of the ball around 0."""
        v = self._extreme(g)
        return v if self.centre is None else Combination(((1.0, v), (1.0, DenseVertex(self.centre))))

    def contains(self, x: np.ndarray, tol: float = 1e-9) -> bool:
        """norm(x - centre) <= radius (1 + tol) + 4 eps norm(centre), eps being the rounding unit of x's float type."""
        if self.centre is None:
            return self.norm(x) <= self.radius * (1 + tol)
        with np.errstate(over="ignore"):
            excess = self.norm(x - self.centre) - self.radius * (1 + tol)
        return excess <= 0 or excess <= 4 * float(np.finfo(float_of(x)).eps) * self.norm(self.centre)

    @property
    def diameter(self) -> float:
        """2 radius max {|x|_2 : norm(x) <= 1}."""
        return 2 * self.radius * self._reach()

    def start(self) -> np.ndarray:
        """The centre."""
        return np.zeros(self._known_shape("start()")) if self.centre is None else self.centre.copy()

    def _fix_ball(self) -> None:
        """Store the radius, the shape and the centre, checked."""
        call = type(self).__name__
        self._fix(radius=checks.positive(call, "radius", self.radius))
        if self.centre is not None:
            self._fix(centre=numbers(call, "centre", self.centre))
            self._fit("centre", self.centre.shape)

    def _fit(self, name: str, shape: tuple[int, ...]) -> None:
        """Take the shape of the array in field ``name``, or refuse it if another is wanted."""
        if self.shape is None:
            self._fix(shape=shape)
        elif self.shape != shape:
            raise InputError(f"`{type(self).__name__}({name}=...)` must have the points' shape {self.shape}, got {shape}")

    def _fit_size(self, name: str, size: int) -> None:
        """Take points to be vectors of this length, or refuse it if the shape has another number of entries."""
        if self.shape is None:
            self._fix(shape=(size,))
        elif math.prod(self.shape) != size:
            wanted = f"one for each of the {math.prod(self.shape)} entries"
            raise InputError(f"`{type(self).__name__}({name}=...)` must be {wanted}, got {size}")


@dataclass(frozen=True, eq=False, repr=False)
class ProjectableBall(NormBall):
    """A ball with a cheap Euclidean projection."""

    @abstractmethod
    def _nearest(self, y: np.ndarray) -> np.ndarray:
        """The point of the ball around 0 that is nearest to y, which is outside; in float64."""

    def project(self, x: np.ndarray) -> np.ndarray:
        """The point of the ball that is nearest to x, in x's float type; x itself if it is inside."""
        kind = float_of(x)
        c = np.zeros(()) if self.centre is None else self.centre
        y = checks.finite(f"{type(self).__name__}.project", "x", np.asarray(x, np.float64)) - c
        return np.array(x if self.norm(y) <= self.radius else c + self._nearest(y), kind)


# what balls share


def numbers(call: str, name: str, value: Any) -> np.ndarray:
    """A read-only float64 copy of an array of finite numbers."""
    array = checks.array(call, name, value)
    if array.dtype.kind not in "biuf" or array.ndim == 0 or array.size == 0:
        raise InputError(f"`{call}({name}=...)` must be an array of numbers, got {brief(value)}")
    array = checks.finite(call, name, array.astype(np.float64))
    array.flags.writeable = False
    return array


def positive_numbers(call: str, name: str, value: Any) -> np.ndarray:
    """A read-only float64 copy of an array of positive finite numbers."""
    array = numbers(call, name, value)
    if not (array > 0).all():
        raise InputError(f"`{call}({name}=...)` must be positive everywhere, got {array.min()}")
    return array


def float_of(x: np.ndarray) -> np.dtype:
    """The float type that holds x's numbers."""
    return np.result_type(x, np.float32)


def power(top: float) -> float:
    """A power of two next to a positive number: dividing by it rounds nothing, and leaves numbers whose squares are safe."""
    return 2.0 ** min(1000, max(-1000, math.frexp(top)[1]))


def unit(C: ConvexSet, g: np.ndarray) -> np.ndarray:
    """g, flat, in float64, scaled such that its largest magnitude is about 1; zeros stay."""
    u = g.reshape(-1).astype(np.float64)
    high, low = float(u.max()), float(u.min())
    refuse_non_finite(C, high, low)
    top = max(high, -low)
    return u / power(top) if top > 0 else u


def peak(C: ConvexSet, g: np.ndarray, size: float) -> Coordinate:
    """-size sign(g_j) e_j at the first of the largest |g_j|, without a copy of g."""
    i, j = int(g.argmax()), int(g.argmin())  # a NaN counts as largest and as smallest
    high, low = float(g.flat[i]), float(g.flat[j])
    refuse_non_finite(C, high, low)
    if high == -low:
        i = j = min(i, j)
    at = i if high >= -low else j
    return Coordinate(at, -size if float(g.flat[at]) > 0 else size, g.shape)


def signs(C: ConvexSet, g: np.ndarray, size: float) -> DenseVertex:
    """-size sign(g), and size where g_j = 0."""
    refuse_non_finite(C, float(np.abs(g).max()))
    kind = float_of(g).type
    return DenseVertex(np.where(g > 0, kind(-size), kind(size)))


def few(indices: np.ndarray, values: np.ndarray, shape: tuple[int, ...]) -> SparseVertex | DenseVertex:
    """The vertex with these entries: sparse and without its zeros, or dense if more than half of all entries are not zero."""
    filled = values != 0
    if 2 * int(np.count_nonzero(filled)) <= math.prod(shape):
        return SparseVertex(indices[filled], values[filled], shape)
    out = np.zeros(math.prod(shape))
    out[indices] = values
    return DenseVertex(out.reshape(shape))


def shrunk(a: np.ndarray, w: np.ndarray, radius: float) -> np.ndarray:
    """max(a - t w, 0) with the t that makes sum_j w_j max(a_j - t w_j, 0) the radius, for a >= 0 and w > 0 where it is more.

    a_k / w_k = q_k is above t if and only if sum_i w_i^2 (q_i - q_k) < radius over the i with q_i > q_k. Summed up by the
    differences of neighbours, so that points far outside lose no digits.
    """
    q = a / w
    top = int(q.argmax())
    near = np.flatnonzero(q[top] - q < radius / w[top] ** 2)
    order = near[np.argsort(-q[near])]
    weight = np.cumsum(w[order] ** 2)
    used = np.cumsum(np.append(0.0, weight[:-1] * -np.diff(q[order])))
    last = int(np.count_nonzero(used < radius)) - 1
    S, out = order[: last + 1], np.zeros_like(a)
    out[S] = w[S] * ((q[S] - q[S[-1]]) + (radius - used[last]) / weight[last])
    return out
