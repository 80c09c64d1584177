"""Quadratic functions between bounds: an active-set method."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from extremal.quadratic.simplex import FLAT, FORCING, newton_step
from extremal.support import clock
from extremal.support.kinds import Symmetric

BOX_ROUNDS = 100  # of the active-set method, at most


@dataclass(frozen=True)
class BoxQuadratic:
    """q(u) = g'd + d'Hd / 2 with d = u - x, over lower <= u <= upper.

    Written from x on, so that what is won near x is not lost in rounding. H is an array, or anything with ``H @ u`` and
    ``H.diagonal()``.

    Examples
    --------
    >>> import numpy as np
    >>> q = BoxQuadratic(np.eye(2), np.array([-3.0, 0.5]), np.zeros(2), np.zeros(2), np.full(2, 2.0))
    >>> q.minimise(0.0)
    array([2., 0.])
    """

    H: Symmetric  # k x k, positive semidefinite
    g: np.ndarray
    x: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    longest: int = 100  # iterations of conjugate gradients, at most

    def look(self, u: np.ndarray) -> tuple[float, np.ndarray]:
        """q(u) and its gradient: one product with H."""
        d = u - self.x
        Hd = self.H @ d
        return float(d @ (0.5 * Hd + self.g)), Hd + self.g

    def gap(self, u: np.ndarray, slopes: np.ndarray) -> float:
        """max over the box of <slopes, u - v>."""
        return float(np.maximum(slopes * (u - self.lower), slopes * (u - self.upper)).sum())

    def minimise(self, tol: float) -> np.ndarray:
        """A point whose gap is at most ``tol``, or the best after some rounds.

        Each round minimises q over the coordinates that no bound holds, and lets them stop at bounds: a Cholesky factor of
        their part of H if H is an array, conjugate gradients with the diagonal as preconditioner if not. No round increases q.

        References
        ----------
        Bertsekas (1982), Projected Newton methods for optimization problems with simple constraints; More, Toraldo (1991), On
        the solution of large quadratic programming problems with bound constraints.
        """
        u = np.clip(self.x, self.lower, self.upper)
        value, slopes = self.look(u)
        for _ in range(BOX_ROUNDS):
            clock.check()
            if self.gap(u, slopes) <= tol:
                break
            new = self._round(u, value, slopes)
            if not new[1] < value:
                break
            u, value, slopes = new
        return u

    def _round(self, u: np.ndarray, value: float, slopes: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
        low, high = u <= self.lower, u >= self.upper
        free = ~((low & (slopes >= 0)) | (high & (slopes <= 0)))
        while free.any():
            idx = np.flatnonzero(free)
            step = self._newton(idx, slopes)
            wrong = (low[idx] & (step < 0)) | (high[idx] & (step > 0))
            if not wrong.any():
                return self._take(u, value, slopes, idx, step)
            if not isinstance(self.H, np.ndarray):
                return self._take(u, value, slopes, idx[~wrong], step[~wrong])
            free[idx[wrong]] = False
        return u, value, slopes

    def _newton(self, idx: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        """The change of these coordinates that minimises q without bounds."""
        if not isinstance(self.H, np.ndarray):
            return self._conjugate(idx, slopes[idx])
        right = -slopes[idx]
        width = np.maximum((self.upper - self.lower)[idx], 1e-300)
        return newton_step(self.H[np.ix_(idx, idx)], right, FLAT * np.abs(right) / width)

    def _conjugate(self, idx: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        diagonal = self.H.diagonal()[idx]
        inverse = 1.0 / np.maximum(diagonal, max(1e-6 * float(diagonal.mean()), 1e-300))
        step, r, whole = np.zeros(len(idx)), slopes.copy(), np.zeros(len(self.x))
        z = inverse * r
        p, rz = -z, float(r @ z)
        target = FORCING**2 * rz
        for _ in range(self.longest):
            if rz <= target:
                break
            whole[idx] = p
            Mp = (self.H @ whole)[idx]
            bend = float(p @ Mp)
            if not bend > 0:
                break
            step += (rz / bend) * p
            r += (rz / bend) * Mp
            z = inverse * r
            rz, before = float(r @ z), rz
            p = -z + (rz / before) * p
        return step if step.any() else -z

    def _take(
        self, u: np.ndarray, value: float, slopes: np.ndarray, idx: np.ndarray, step: np.ndarray
    ) -> tuple[np.ndarray, float, np.ndarray]:
        """All of the step, or a half, a quarter, ... of it, cut off at the bounds; or to where the first bound is hit."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ways = np.where(
                step > 0, (self.upper[idx] - u[idx]) / step, np.where(step < 0, (self.lower[idx] - u[idx]) / step, np.inf)
            )
        stop = min(1.0, float(ways.min(initial=np.inf)))
        edge = value + (stop - 0.5 * stop**2) * float(slopes[idx] @ step)
        t = 1.0
        while t > stop:
            new = self._moved(u, idx, t * step)
            there, then = self.look(new)
            if there < edge:
                return new, there, then
            t = 0.5 * t if t > 0.01 else 0.0
        new = self._moved(u, idx, stop * step)
        hit = idx[ways <= stop]
        new[hit] = np.where(step[ways <= stop] > 0, self.upper[hit], self.lower[hit])
        return new, *self.look(new)

    def _moved(self, u: np.ndarray, idx: np.ndarray, step: np.ndarray) -> np.ndarray:
        new = u.copy()
        new[idx] = np.clip(u[idx] + step, self.lower[idx], self.upper[idx])
        return new
