"""The sets in unit coordinates, for an interior-point method: slacks that are positive inside, and one linear system.

    x = x(w),  P = dx/dw,     s = s(w) > 0,  J = ds/dw,     (P'HP + J' diag(lam / s) J + curvature) dw = r

In unit coordinates a slack near zero is a number of its own, not a difference of two large numbers: it keeps its digits. Each
system is reduced to a positive definite d x d matrix, H plus a diagonal: O(d^3) for its factor, O(d^2) for a solution. Boyd,
Vandenberghe (2004), Convex Optimization, section 11.8, has such eliminations.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_solve

from extremal.sets import Box, ConvexSet, L1Ball, L2Ball, LinfBall, Simplex

BOUNDARY = 0.995  # largest share of the way to the boundary


class Lift(ABC):
    """A set in unit coordinates. By default its slacks are w itself."""

    @property
    @abstractmethod
    def m(self) -> int:
        """Number of slacks."""

    @abstractmethod
    def centre(self) -> np.ndarray:
        """A point w with all slacks positive."""

    @abstractmethod
    def raised(self, x: np.ndarray) -> np.ndarray:
        """A point w with x(w) = x."""

    @abstractmethod
    def lowered(self, w: np.ndarray) -> np.ndarray:
        """x(w)."""

    @abstractmethod
    def pull(self, w: np.ndarray, g: np.ndarray, lam: np.ndarray) -> np.ndarray:
        """J' lam - P' g, up to a vector that is orthogonal to all steps."""

    @abstractmethod
    def matrix(self, H: np.ndarray, s: np.ndarray, lam: np.ndarray) -> np.ndarray:
        """The d x d matrix to factorise."""

    @abstractmethod
    def solve(self, factor: Any, w: np.ndarray, lam: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The step dw for the right-hand side r, and dx = P dw without the rounding of that product."""

    @abstractmethod
    def feasible(self, x: np.ndarray) -> np.ndarray:
        """The point x, made feasible after rounding."""

    def slacks(self, w: np.ndarray) -> np.ndarray:
        """s(w)."""
        return w

    def change(self, w: np.ndarray, dw: np.ndarray) -> np.ndarray:
        """J dw."""
        return dw

    def reach(self, w: np.ndarray, dw: np.ndarray) -> float:
        """The largest t <= 1 that leaves each slack at least 0.005 of itself."""
        return to_boundary(w, dw)

    def settled(self, w: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The points w and x, with their equations restored after rounding."""
        return w, x


def lift(C: ConvexSet, d: int) -> Lift | None:
    """The lift of a set of vectors of length d; None for a set without a lift.

    Examples
    --------
    >>> from extremal import L1Ball
    >>> ball = lift(L1Ball(2.0), 2)
    >>> ball.m, ball.lowered(np.array([0.5, 0.0, 0.0, 0.25, 0.25]))        # (u, v, rest)
    (5, array([ 1. , -0.5]))
    """
    match C:
        case L1Ball(centre=None):
            return _Cross(d, C.radius)
        case Simplex():
            return _Simplex(d, C.total)
        case L2Ball(centre=None):
            return _Ball(d, C.radius)
        case LinfBall(centre=None):
            return _Box(np.full(d, -C.radius), np.full(d, C.radius))
        case Box():
            return _Box(np.broadcast_to(C.lower, (d,)), np.broadcast_to(C.upper, (d,)))
    return None


def to_boundary(s: np.ndarray, ds: np.ndarray) -> float:
    """The largest t <= 1 with s + t ds >= 0.005 s, for s > 0.

    Examples
    --------
    >>> to_boundary(np.array([1.0, 1.0]), np.array([-2.0, 1.0]))
    0.4975
    """
    fall = float((-ds / s).max())
    return min(1.0, BOUNDARY / fall) if fall > 0 else 1.0


@dataclass(frozen=True)
class _Simplex(Lift):
    """{radius w : w >= 0, sum w = 1}."""

    d: int
    radius: float

    @property
    def m(self) -> int:
        return self.d

    def centre(self) -> np.ndarray:
        return np.full(self.m, 1.0 / self.m)

    def raised(self, x: np.ndarray) -> np.ndarray:
        return x / self.radius

    def lowered(self, w: np.ndarray) -> np.ndarray:
        return self.radius * w

    def pull(self, w: np.ndarray, g: np.ndarray, lam: np.ndarray) -> np.ndarray:
        r = lam - self.radius * g
        return r - float(w @ r)  # constants are orthogonal to all steps; this constant makes r small near the optimum

    def matrix(self, H: np.ndarray, s: np.ndarray, lam: np.ndarray) -> np.ndarray:
        return _plus_diagonal(self.radius**2 * H, lam / s)

    def solve(self, factor: Any, w: np.ndarray, lam: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        b = cho_solve(factor, np.column_stack([r, np.ones(self.d)]), check_finite=False)
        dw = b[:, 0] - b[:, 1] * (b[:, 0].sum() / b[:, 1].sum())  # sum dw = 0
        return dw, self.radius * dw

    def settled(self, w: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        w = w / w.sum()
        return w, self.lowered(w)

    def feasible(self, x: np.ndarray) -> np.ndarray:
        x = np.maximum(x, 0.0)
        return x * (self.radius / x.sum())


@dataclass(frozen=True)
class _Cross(_Simplex):
    """The l1 ball as a simplex: x = radius (u - v), w = (u, v, rest) >= 0, sum w = 1."""

    @property
    def m(self) -> int:
        return 2 * self.d + 1

    def raised(self, x: np.ndarray) -> np.ndarray:
        u, v = np.maximum(x, 0.0) / self.radius, np.maximum(-x, 0.0) / self.radius
        return np.concatenate([u, v, [max(0.0, 1.0 - u.sum() - v.sum())]])

    def lowered(self, w: np.ndarray) -> np.ndarray:
        u, v, _ = self._parts(w)
        return self.radius * (u - v)

    def pull(self, w: np.ndarray, g: np.ndarray, lam: np.ndarray) -> np.ndarray:
        return super().pull(w, np.concatenate([g, -g, [0.0]]), lam)

    def matrix(self, H: np.ndarray, s: np.ndarray, lam: np.ndarray) -> np.ndarray:
        a, b, _ = self._parts(lam / s)
        return _plus_diagonal(self.radius**2 * H, a * (b / (a + b)))

    def solve(self, factor: Any, w: np.ndarray, lam: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """With lam / w = (a, b, c): a du + b dv = r_u + r_v, and du - dv = dx / radius is the remaining unknown."""
        a, b, c = self._parts((lam / w)[:, None])
        ru, rv, rest = self._parts(np.column_stack([r, np.ones(self.m)]))
        both, up, down = (ru + rv) / (a + b), b / (a + b), a / (a + b)
        dx = cho_solve(factor, up * ru - down * rv, check_finite=False)
        out = np.concatenate([both + up * dx, both - down * dx, rest / c])
        nu = out[:, 0].sum() / out[:, 1].sum()  # sum dw = 0
        return out[:, 0] - nu * out[:, 1], self.radius * (dx[:, 0] - nu * dx[:, 1])

    def settled(self, w: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where u and v nearly cancel, the accumulated x is more exact than u - v; but it must not drift away from u - v."""
        w, x = w / w.sum(), x / w.sum()
        u, v, _ = self._parts(w)
        return w, np.where(np.abs(x - self.radius * (u - v)) <= 1e-12 * self.radius * (u + v), x, self.radius * (u - v))

    def feasible(self, x: np.ndarray) -> np.ndarray:
        return _shrunk(x, float(np.abs(x).sum()), self.radius)

    def _parts(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return w[: self.d], w[self.d : -1], w[-1:]


@dataclass(frozen=True, eq=False)
class _Box(Lift):
    """lower + width p, w = (p, q) >= 0, p + q = 1: the distances from both bounds, each with all its digits."""

    lower: np.ndarray
    upper: np.ndarray

    @property
    def m(self) -> int:
        return 2 * len(self.lower)

    @property
    def width(self) -> np.ndarray:
        return self.upper - self.lower

    def centre(self) -> np.ndarray:
        return np.full(self.m, 0.5)

    def raised(self, x: np.ndarray) -> np.ndarray:
        p = (x - self.lower) / np.where(self.width > 0, self.width, 1.0)
        return np.concatenate([p, 1.0 - p])

    def lowered(self, w: np.ndarray) -> np.ndarray:
        return self.lower + self.width * np.split(w, 2)[0]

    def pull(self, w: np.ndarray, g: np.ndarray, lam: np.ndarray) -> np.ndarray:
        r = 0.5 * (np.subtract(*np.split(lam, 2)) - self.width * g)
        return np.concatenate([r, -r])  # the rest is orthogonal to all steps, because dq = -dp

    def matrix(self, H: np.ndarray, s: np.ndarray, lam: np.ndarray) -> np.ndarray:
        return _plus_diagonal(self.width[:, None] * H * self.width, np.add(*np.split(lam / s, 2)))

    def solve(self, factor: Any, w: np.ndarray, lam: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        dp = cho_solve(factor, np.subtract(*np.split(r, 2)), check_finite=False)
        return np.concatenate([dp, -dp]), self.width * dp

    def feasible(self, x: np.ndarray) -> np.ndarray:
        return np.clip(x, self.lower, self.upper)


@dataclass(frozen=True)
class _Ball(Lift):
    """The Euclidean ball: x = radius w, one slack s = 1 - |w|^2, J = -2 w', and lam times the curvature 2 I of -s."""

    d: int
    radius: float

    @property
    def m(self) -> int:
        return 1

    def centre(self) -> np.ndarray:
        return np.zeros(self.d)

    def raised(self, x: np.ndarray) -> np.ndarray:
        return x / self.radius

    def lowered(self, w: np.ndarray) -> np.ndarray:
        return self.radius * w

    def slacks(self, w: np.ndarray) -> np.ndarray:
        size = math.sqrt(float(w @ w))
        return np.array([(1.0 - size) * (1.0 + size)])

    def change(self, w: np.ndarray, dw: np.ndarray) -> np.ndarray:
        return np.array([-2.0 * float(w @ dw)])

    def reach(self, w: np.ndarray, dw: np.ndarray) -> float:
        t, least = 1.0, (1.0 - BOUNDARY) * self.slacks(w)[0]
        while self.slacks(w + t * dw)[0] < least:
            t *= 0.8
        return t

    def pull(self, w: np.ndarray, g: np.ndarray, lam: np.ndarray) -> np.ndarray:
        return -2.0 * lam * w - self.radius * g

    def matrix(self, H: np.ndarray, s: np.ndarray, lam: np.ndarray) -> np.ndarray:
        return _plus_diagonal(self.radius**2 * H, np.full(self.d, 2.0 * lam[0]))

    def solve(self, factor: Any, w: np.ndarray, lam: np.ndarray, r: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        b = cho_solve(factor, np.column_stack([r, 2.0 * w]), check_finite=False)
        dot = 2.0 * w @ b  # J' (lam / s) J has rank one: Sherman, Morrison
        dw = b[:, 0] - b[:, 1] * (dot[0] / (self.slacks(w)[0] / lam[0] + dot[1]))
        return dw, self.radius * dw

    def feasible(self, x: np.ndarray) -> np.ndarray:
        return _shrunk(x, float(np.linalg.norm(x)), self.radius)


def _plus_diagonal(M: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
    """M + diag(diagonal), in place, because the caller owns M."""
    M[np.diag_indices_from(M)] += diagonal
    return M


def _shrunk(x: np.ndarray, size: float, radius: float) -> np.ndarray:
    return x if size <= radius else x * (radius * (1.0 - 1e-15) / size)
