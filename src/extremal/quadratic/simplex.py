"""Quadratic functions of weights that are not negative and sum to 1: an active-set method."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from extremal.checks import NonFiniteError
from extremal.support import clock
from extremal.support.lazy import imported

RIDGE = 1e-13  # added to a diagonal of ones, so that there is a Cholesky factor
FLAT = 1e-10  # and relative to the slopes, where there is no curvature at all: no step is longer than its inverse
LEARN = 1e-10  # share of the curvature that was thought to be there, below which a change of the gradient is rounding
TINY_DIAGONAL = 1e-250  # a diagonal entry of this size is no curvature
SUM_ROUNDING = 4 * np.finfo(np.float64).eps  # rounding of a sum, as a share of the sum of its magnitudes
TRIES = 30  # at a larger ridge, for matrices that are not quite positive semidefinite
NOTHING = 1e-25  # a weight of this size is rounding, also beside one that is nearly 1
ROUNDS = 50  # of the active-set method, at most
DECOMPOSED = 64  # unknowns up to which an eigenvalue decomposition costs little beside the rest
SINGULAR = 1e-10  # the smallest pivot, as a share of the largest, from which on solutions of a system are not told apart
SLOPE_ROUNDING = 1e-9  # share of a slope that may be rounding
FORCING = 0.1  # share of the residual that conjugate gradients leave


@dataclass(frozen=True)
class QuadraticValue:
    """Weights, and what a quadratic function is there."""

    w: np.ndarray
    value: float
    slopes: np.ndarray  # the derivatives in w
    noise: float  # what rounding may make of the value

    @property
    def spread(self) -> float:
        """The largest gain that moving a unit of weight promises."""
        return float(self.slopes[self.w > 0].max()) - float(self.slopes.min())

    def follows(self, last: QuadraticValue) -> bool:
        """Whether it is better than the last one: lower, or of equal value up to rounding with less left to be gained."""
        if self.value < last.value:
            return True
        fewer = bool(np.count_nonzero(self.w) < np.count_nonzero(last.w))
        return self.value <= last.value + self.noise and (fewer or self.spread < 0.5 * last.spread)


@dataclass(frozen=True)
class Quadratic:
    """q(w) = g'd + d'Hd / 2 with d = u - x, u = sum_a w_a scale_a e_{place_a}, over weights w >= 0 of sum 1.

    Written from x on, so that what is won near x is not lost in rounding. Each weight belongs to one coordinate of u, so that an
    l1 ball (two signs a coordinate, and 0) needs no larger matrix than its coordinates. H is an array, or anything with
    ``H @ u`` and ``H.diagonal()``.
    """

    H: Any  # k x k, positive semidefinite
    g: np.ndarray  # k
    x: np.ndarray  # k
    place: np.ndarray  # the coordinate that each weight is for
    scale: np.ndarray  # and how much of it there is for a weight of 1; 0 for the origin
    longest: int = 100  # iterations of conjugate gradients, at most
    root: np.ndarray | None = None  # k x r with H = root root', if it is known: differences keep twice as many digits then

    def point(self, w: np.ndarray) -> np.ndarray:
        """u."""
        return np.bincount(self.place, w * self.scale, len(self.x))

    def look(self, w: np.ndarray) -> QuadraticValue:
        """q(w) and its derivatives: one product with H."""
        d = self.point(w) - self.x
        if self.root is None:
            Hd = self.H @ d
            return QuadraticValue(w, float(d @ (0.5 * Hd + self.g)), self.scale * (Hd + self.g)[self.place], self._noise(d, Hd))
        r = d @ self.root
        slopes = self.root @ r + self.g
        return QuadraticValue(
            w, float(d @ self.g) + 0.5 * float(r @ r), self.scale * slopes[self.place], self._noise(d, slopes - self.g)
        )

    def _noise(self, d: np.ndarray, Hd: np.ndarray) -> float:
        return SUM_ROUNDING * (float(np.abs(d) @ (np.abs(self.g) + np.abs(Hd))) + float(np.abs(self.x) @ np.abs(self.g + Hd)))

    def minimise(self, w: np.ndarray, tol: float, rounds: int = ROUNDS) -> np.ndarray:
        """Weights at which no unit of weight can be moved for a gain of more than ``tol``, or the best after some rounds.

        Each round minimises q over the weights in use and those that promise most, and drops the ones that this would make
        negative. For m of them that is a Cholesky factor of their part of H, O(m^3 / 3), if H is an array; conjugate
        gradients with the diagonal as preconditioner if not. No round increases q.

        References
        ----------
        Wolfe (1976), Finding the nearest point in a polytope; Lawson, Hanson (1974), Solving least squares problems; More,
        Toraldo (1991), On the solution of large quadratic programming problems with bound constraints.
        """
        here = self.look(np.where(w > NOTHING, w, 0.0))
        for _ in range(rounds):
            clock.check()
            if here.spread <= tol:
                break
            new = self._round(here, here.w > 0)
            if not new.follows(here):
                break
            here = new
        return here.w

    def _round(self, here: QuadraticValue, used: np.ndarray) -> QuadraticValue:
        promise = np.where(used, 0.0, float(here.w @ here.slopes) - here.slopes)
        free = used | (promise > max(0.0, 0.1 * float(promise.max())))
        while True:
            idx = np.flatnonzero(free)
            step = self._newton(here, idx)
            wrong = (step < 0) & (here.w[idx] <= 0)
            if not (wrong.any() and self._formed):
                return self._take(here, idx, step)
            free[idx[wrong]] = False

    def _newton(self, here: QuadraticValue, idx: np.ndarray) -> np.ndarray:
        """The change of these weights, of sum 0, that minimises q if their signs are left aside."""
        return self._factored(here, idx) if self._formed else self._conjugate(idx, here.slopes[idx])

    @property
    def _formed(self) -> bool:
        return self.root is not None or isinstance(self.H, np.ndarray)

    def _factored(self, here: QuadraticValue, idx: np.ndarray) -> np.ndarray:
        """Weight goes to and from the largest one, the others are free: a system of one fewer."""
        base = int(here.w[idx].argmax())
        others = np.concatenate([idx[:base], idx[base + 1 :]])
        if len(others) == 0:
            return np.zeros(1)
        (at, scale), (b, weight) = ((self.place[i], self.scale[i]) for i in (others, idx[base]))
        right = here.slopes[idx[base]] - here.slopes[others]
        if self.root is not None:
            step = root_step(scale[:, None] * self.root[at] - weight * self.root[b], right, FLAT * np.abs(right))
            return np.concatenate([step[:base], [-float(step.sum())], step[base:]])
        across = scale * (self.H[at, b] * weight)
        M = self.H[at[:, None], at]
        M *= scale
        M *= scale[:, None]
        M -= across
        M -= across[:, None]
        M += self.H[b, b] * weight * weight
        noise = SUM_ROUNDING * np.abs(self.scale) * (np.abs(self.H) @ np.abs(self.x))[self.place]  # of slopes, by that of margins
        step = newton_step(M, right, FLAT * np.abs(right), noise[others] + noise[idx[base]])
        return np.concatenate([step[:base], [-float(step.sum())], step[base:]])

    def _conjugate(self, idx: np.ndarray, slopes: np.ndarray) -> np.ndarray:
        at, scale, size = self.place[idx], self.scale[idx], len(self.x)
        diagonal = self.H.diagonal()[at] * scale * scale
        inverse = 1.0 / np.maximum(diagonal, max(1e-6 * float(diagonal.mean()), 1e-300))

        def level(r: np.ndarray) -> np.ndarray:
            """The preconditioned residual, of sum 0."""
            return inverse * (r - float(inverse @ r) / float(inverse.sum()))

        step, r = np.zeros(len(idx)), slopes.copy()
        z = level(r)
        p, rz = -z, float(r @ z)
        target = FORCING**2 * rz
        for _ in range(self.longest):
            if rz <= target:
                break
            Mp = scale * (self.H @ np.bincount(at, p * scale, size))[at]
            bend = float(p @ Mp)
            if not bend > 0:
                break
            alpha = rz / bend
            step += alpha * p
            r += alpha * Mp
            z = level(r)
            rz, before = float(r @ z), rz
            p = -z + (rz / before) * p
        return step

    def _take(self, here: QuadraticValue, idx: np.ndarray, step: np.ndarray) -> QuadraticValue:
        """All of the step, or a half, a quarter, ... of it, without the weights that become negative; or to where the first does.

        The first of these that is lower than the last, which is on the edge and needs no look: q is a parabola up to there.
        """
        w = here.w
        down = np.flatnonzero((step < 0) & (w[idx] > 0))
        stop = float((w[idx[down]] / -step[down]).min()) if len(down) else 1.0
        edge = here.value + (min(stop, 1.0) - 0.5 * min(stop, 1.0) ** 2) * float(here.slopes[idx] @ step)
        t = 1.0
        while t > stop:
            new = self.look(_weights(w, idx, w[idx] + t * step))
            if new.value < edge:
                return new
            t = 0.5 * t if t > 0.01 else 0.0
        last = w[idx] + min(stop, 1.0) * step
        if stop < 1.0:
            last[down[w[idx[down]] / -step[down] <= stop]] = 0.0
        return self.look(_weights(w, idx, last))


def newton_step(M: np.ndarray, right: np.ndarray, floor: np.ndarray, noise: Any = 0.0) -> np.ndarray:
    """The solution u of M u = right for a positive semidefinite M, which is changed: the shortest of several.

    What of ``right`` is below its ``noise`` leads nowhere in directions without curvature.

    Rows and columns are scaled to a diagonal of ones, so that unknowns of any units are found alike, and the diagonal is
    raised by ``floor`` and by a share that grows until there is a Cholesky factor.
    """
    diagonal = M.diagonal() + floor
    if not np.isfinite(diagonal).all():
        raise NonFiniteError("the second derivatives of f are not finite, or too large to work with")
    unit = 1.0 / np.sqrt(np.where(diagonal > TINY_DIAGONAL, diagonal, 1.0))
    M *= unit
    M *= unit[:, None]
    right, ridge, raised = right * unit, RIDGE, floor * unit * unit
    ones = M.diagonal() + raised
    for _ in range(TRIES):
        M.flat[:: len(M) + 1] = ones + ridge
        factor, step, info = _lapack().dposv(M, right)
        if info == 0 and np.isfinite(step).all():
            flat = float(np.linalg.norm(noise * unit))
            return unit * (shortest(M, right, ridge, flat) if is_singular(factor, ridge) else step)
        ridge *= 100.0
    raise NonFiniteError("the second derivatives of f are not finite, or too large to work with")


def root_step(F: np.ndarray, right: np.ndarray, floor: np.ndarray) -> np.ndarray:
    """The solution u of (F F' + diag floor) u = right, by a QR factorisation of F': what is small in F F' is not lost in it."""
    diagonal = np.einsum("ij,ij->i", F, F) + floor
    if not np.isfinite(diagonal).all():
        raise NonFiniteError("the second derivatives of f are not finite, or too large to work with")
    unit = 1.0 / np.sqrt(np.where(diagonal > TINY_DIAGONAL, diagonal, 1.0))
    extra = np.diag(np.sqrt(floor * unit * unit + RIDGE**2))
    T = _lapack().dgeqrf(np.vstack([(F * unit[:, None]).T, extra]))[0][: len(F)]  # reflections below the triangle
    T.flat[:: len(T) + 1] = np.where(T.diagonal() == 0, RIDGE, T.diagonal())
    solve = _lapack().dtrtrs
    return unit * solve(T, solve(T, right * unit, trans=1)[0])[0]


def _lapack() -> ModuleType:
    return imported("scipy.linalg.lapack")  # when first needed: it takes long


def is_singular(factor: np.ndarray, ridge: float) -> bool:
    """Whether solutions of a system are not told apart, by the pivots of its Cholesky factor; of one that is small."""
    pivots = np.square(factor.diagonal())
    return len(pivots) <= DECOMPOSED and bool(pivots.min() <= SINGULAR * pivots.max() + 10 * ridge)


def shortest(M: np.ndarray, right: np.ndarray, ridge: float, noise: float = 0.0) -> np.ndarray:
    """Of many solutions of M u = right the shortest: rounding must not choose among them.

    Where there is no curvature but a slope, u is as long as the ridge allows.
    """
    values, vectors = np.linalg.eigh(M)
    along = vectors.T @ right
    flat = values <= SINGULAR * values[-1] + 2 * ridge
    nothing = flat & (np.abs(along) <= max(SLOPE_ROUNDING * float(np.linalg.norm(right)), noise))
    return vectors @ np.where(nothing, 0.0, along / np.maximum(values, ridge))


def bfgs(H: np.ndarray, s: np.ndarray, y: np.ndarray, least: float = 1e-3) -> np.ndarray:
    """The positive semidefinite matrix near H that maps the step s to the change y of the gradient; H if there is none."""
    Hs, sy = H @ s, float(s @ y)
    sHs = float(s @ Hs)
    if not (sHs > 0 and sy > least * sHs):
        return H
    return H + np.outer(y / sy, y) - np.outer(Hs / sHs, Hs)


def learn(H: np.ndarray, s: np.ndarray, y: np.ndarray, first: bool = False) -> np.ndarray:
    """The same for an H that knows nothing but such changes: also where there is far less curvature than it says.

    The first change scales all of it. Where there is none, or less, a fifth of what H says is left along s.
    """
    Hs, sy = H @ s, float(s @ y)
    sHs = float(s @ Hs)
    if not 0 < sHs < np.inf or not np.isfinite(sy):
        return H
    if first and sy > 0:
        H, Hs, sHs = H * (sy / sHs), Hs * (sy / sHs), sy
    if sy < LEARN * sHs:
        y, sy = 0.2 * Hs, 0.2 * sHs
    return H + np.outer(y / sy, y) - np.outer(Hs / sHs, Hs)


def is_definite(H: np.ndarray) -> bool:
    """Whether H is positive definite, by a Cholesky factor."""
    try:
        np.linalg.cholesky(H)
    except np.linalg.LinAlgError:
        return False
    return True


def _weights(w: np.ndarray, idx: np.ndarray, values: np.ndarray) -> np.ndarray:
    """w with others in some places: none negative, of sum 1."""
    new = w.copy()
    new[idx] = np.maximum(values, 0.0)
    return new / new.sum()
