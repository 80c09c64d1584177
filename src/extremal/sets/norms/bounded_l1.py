"""The l1 ball with bounds: a budget on the sum of magnitudes, and a sign or a range for each entry."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.points.vertex import Vertex
from extremal.quadratic.polyhedral import Inequalities
from extremal.quadratic.search import longest_step
from extremal.sets.base import ConvexSet, Spikes
from extremal.sets.norms.faces import longest_in_l1
from extremal.sets.shared import few, numbers, scaled_gradient
from extremal.sets.simplices import bounds


@dataclass(frozen=True, eq=False, repr=False)
class BoundedL1Ball(ConvexSet):
    """The l1 ball with bounds: a budget on the sum of magnitudes, and every entry between its own bounds.

        {x : lower <= x <= upper, sum_j |x_j| <= radius}
        lmo(g) = m, then moved against g where |g_j| is largest, as far as the bounds allow, until the radius is used up

    m is the point of smallest magnitudes between the bounds: 0 if the bounds contain 0, otherwise the bound nearer to 0. Each
    further unit of |x_j| costs one unit of the radius and gains |g_j|. This fractional knapsack problem is solved by
    selection, in O(dimension). All entries of a vertex but one are at a bound or 0; the vertex is sparse if possible. Ties go
    to the smallest j. `project` is O(d log d). The diameter is a bound. It is exact if the bounds only fix signs (each is 0 or
    beyond the radius) on two or more entries.

    Parameters
    ----------
    radius : float
        Positive, and at least sum_j |m_j|; otherwise the set is empty.
    lower, upper : float or array
        Bounds with lower <= upper, which may be infinite. One number holds for every entry.
    shape : int or tuple of int, optional
        Shape of the points. Default: the shape of the bounds if they are arrays, otherwise any.

    References
    ----------
    Dantzig (1957), Discrete-variable extremum problems, Operations Research 5 (the fractional knapsack).
    Kiwiel (2008), Breakpoint searching algorithms for the continuous quadratic knapsack problem, Mathematical Programming 112
    (the projection).

    Examples
    --------
    Few effects that are not zero, the first not negative, the second at most 1/2 in size:

    >>> C = BoundedL1Ball(2.0, lower=[0.0, -0.5, -np.inf], upper=[np.inf, 0.5, np.inf])
    >>> C.lmo(np.array([5.0, 4.0, -3.0])).to_array()
    array([ 0. , -0.5,  1.5])
    >>> BoundedL1Ball(1.0, lower=0.4, upper=1.0, shape=3)
    Traceback (most recent call last):
        ...
    extremal.checks.InputError: `BoundedL1Ball(radius=...)` must be at least 1.2, the least sum |x_j| between the bounds, got 1.0
    """

    radius: float
    lower: Any = -math.inf
    upper: Any = math.inf
    shape: tuple[int, ...] | None = None

    def __post_init__(self):
        call = "BoundedL1Ball"
        lower, upper = numbers(call, "lower", self.lower, infinite=True), numbers(call, "upper", self.upper, infinite=True)
        self._fix(radius=checks.positive(call, "radius", self.radius))
        shape = bounds.common_shape(call, self.shape, lower=lower, upper=upper)
        self._fix(shape=shape, lower=bounds.as_large(lower, shape), upper=bounds.as_large(upper, shape))
        if not ((lower <= upper).all() and (lower < math.inf).all() and (upper > -math.inf).all()):
            raise InputError(f"`{call}(lower=..., upper=...)` must have lower <= upper everywhere, lower < inf, upper > -inf")
        if shape is not None and self._needed > self.radius * (1 + bounds.ROUNDING):
            wanted = f"at least {self._needed:.12g}, the least sum |x_j| between the bounds"
            raise InputError(f"`{call}(radius=...)` must be {wanted}, got {self.radius}")

    def lmo(self, g: np.ndarray) -> Vertex:
        u = scaled_gradient(self, g)[0].reshape(-1)
        C = self.on(g.shape)
        nearest, below, above = C._rooms
        both = (below > 0) & (above > 0)  # also at g_j = 0, such an entry uses up the radius, because 0 is not a corner for it
        room = np.where(u > 0, below, np.where((u < 0) | both, above, 0.0))
        indices, values = bounds.filled(-np.abs(u), room, min(C._budget, float(room.sum())))
        values = np.where(u[indices] > 0, -values, values)
        if not nearest.any():
            return few(indices, values, g.shape)
        x = nearest.copy()
        x[indices] += values
        return few(np.arange(x.size), np.clip(x, bounds.flat(C.lower), bounds.flat(C.upper)), g.shape)

    def contains(self, x: np.ndarray, tol: float = 1e-9) -> bool:
        """Whether lower <= x <= upper, up to tol times an entry's size, and sum |x_j| <= radius (1 + tol)."""
        with np.errstate(invalid="ignore"):
            slack = tol * np.minimum(np.maximum(np.abs(self.lower), np.abs(self.upper)), self.radius)
        inside = bool((x >= self.lower - slack).all() and (x <= self.upper + slack).all())
        return inside and float(np.abs(x).sum(dtype=np.float64)) <= self.radius * (1 + tol)

    @property
    def diameter(self) -> float:
        """A bound: |x_j - y_j| <= c_j and sum_j |x_j - y_j| <= 2 budget, so |x - y|^2 <= max sum_j c_j d_j over such d."""
        self._known_shape("diameter")
        _, below, above = self._rooms
        c = below + above
        indices, d = bounds.filled(-c, c, min(2 * self._budget, float(c.sum())))
        return math.sqrt(float(c[indices] @ d))

    def start(self) -> np.ndarray:
        """The point of smallest magnitudes: 0 if the bounds contain it."""
        return np.broadcast_to(self._nearest, self._known_shape("start()")).copy()

    def project(self, x: np.ndarray) -> np.ndarray:
        """m + s clip(s (x - m) - t, 0, room), where s points from m away from 0, and t = 0 or the radius is used up."""
        C = self.on(x.shape)
        nearest, below, above = C._rooms
        away = x.reshape(-1).astype(np.float64) - nearest
        down = (above == 0) | ((away < 0) & (below > 0))
        sign, room = np.where(down, -1.0, 1.0), np.where(down, below, above)
        inside = np.clip(sign * away, 0.0, room)
        if float(inside.sum()) > C._budget:
            inside = bounds.nearest(sign * away, 0.0, room, C._budget) if C._budget > 0 else np.zeros_like(inside)
        return (nearest + sign * inside).reshape(x.shape)

    def away(self, g: np.ndarray, x: np.ndarray) -> Vertex:
        """The vertex with the largest <g, v> of the smallest face that holds x, up to 1e-12 of its size.

        The face keeps the entries that are at a bound. If x spends the whole radius, it also keeps the signs and the zeros of
        x, and its points spend the radius, too: a fractional knapsack over magnitudes.
        """
        return self.on(x.shape).worst(g, x, bounds.rounding(x))

    def worst(self, g: np.ndarray, x: np.ndarray, noise: float) -> Vertex:
        """The same, up to a share ``noise`` of its size."""
        y = x.reshape(-1).astype(np.float64)
        lower, upper = (np.broadcast_to(bounds.flat(b), y.shape) for b in (self.lower, self.upper))
        slack = noise * np.minimum(np.maximum(np.abs(lower), np.abs(upper)), self.radius)
        low, high = y <= lower + slack, y >= upper - slack
        lower, upper = np.where(high & ~low, upper, lower), np.where(low, lower, upper)
        if float(np.abs(y).sum()) < (1.0 - noise) * self.radius:
            return BoundedL1Ball(self.radius, lower.reshape(x.shape), upper.reshape(x.shape)).lmo(-g)
        sign = np.where(np.abs(y) > noise * self.radius, np.sign(y), 0.0)
        v = np.clip(0.0, lower, upper)
        spare = max(0.0, self.radius - float(np.abs(v).sum()))
        room = np.minimum(np.where(sign > 0, upper - v, np.where(sign < 0, v - lower, 0.0)), spare)
        indices, values = bounds.filled(-sign * g.reshape(-1), room, min(spare, float(room.sum())))
        v[indices] += sign[indices] * values
        return few(np.arange(y.size), v, x.shape)

    def max_step(self, x: np.ndarray, s: Vertex, a: Vertex) -> float:
        """The largest t <= 1 with x + t (s - a) in the set, up to rounding."""
        return self.on(x.shape).longest(x, s.to_array() - a.to_array(), bounds.rounding(x))

    def longest(self, x: np.ndarray, d: np.ndarray, noise: float) -> float:
        """The largest t <= 1 with x + t d in the set, up to a share ``noise`` of its size."""
        y = x.reshape(-1).astype(np.float64)
        short = longest_in_l1(y, d.reshape(-1), np.ones(y.size), float(np.abs(y).sum()), self.radius, noise)
        return longest_step(x, d, self.lower, self.upper, short)

    def inequalities(self) -> Inequalities:
        """The bounds and the limit of the norm."""
        size = math.prod(self._known_shape("inequalities()"))
        return Inequalities.of(size, lower=self.lower, upper=self.upper, radius=self.radius)

    def spikes(self) -> Spikes | None:
        """radius e_j and -radius e_j where the signs allow it, and 0; None if a bound limits a magnitude."""
        lower, upper = (np.broadcast_to(b, self.shape or ()).reshape(-1) for b in (self.lower, self.upper))
        signs = ((lower == 0) | (lower <= -self.radius)) & ((upper == 0) | (upper >= self.radius))
        if not signs.all() or not (upper - lower).any():
            return None
        low, high = np.where(lower == 0, 0.0, -self.radius), np.where(upper == 0, 0.0, self.radius)
        return Spikes(*(b if len(set(b.tolist())) > 1 else float(b[0]) for b in (low, high)), origin=True)

    @property
    def _nearest(self) -> np.ndarray:
        """m."""
        return np.clip(0.0, self.lower, self.upper)

    @property
    def _needed(self) -> float:
        """sum_j |m_j|."""
        return bounds.summed(np.abs(self._nearest), math.prod(self._known_shape("radius")))

    @cached_property
    def _budget(self) -> float:
        """The part of the radius that m leaves."""
        return max(0.0, self.radius - self._needed)

    @cached_property
    def _rooms(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """m, and the room of its entries below and above, flat: away from 0, and at most the budget."""
        m = self._nearest
        parts = m, np.minimum(m - self.lower, self._budget), np.minimum(self.upper - m, self._budget)
        return tuple(np.broadcast_to(part, self._known_shape("lmo(g)")).reshape(-1) for part in parts)  # pyright: ignore
