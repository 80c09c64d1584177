"""Values, gradients and gaps of linear models in extended precision, with bounds for what float64 may make of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from problems_sets import Region, Wide, length, total, wide

import extremal as ex

EPS = float(np.finfo(np.float64).eps)


def value_of(loss: Any, z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """phi(z, y) for each row, as the docstrings write it."""
    match loss:
        case ex.Logistic():
            return np.logaddexp(0, -y * z)
        case ex.NonlinearLeastSquares():
            return (y - sigmoid(-z)) ** 2
        case ex.Squared():
            return (z - y) ** 2 / 2
        case ex.Huber(delta=t):
            r = np.abs(z - y)
            return np.where(r <= t, r**2 / 2, Wide(t) * (r - Wide(t) / 2))
        case ex.Quantile(width=w):
            s = -deriv_of(loss, z, y)
            return s * (y - z - Wide(w) * s / 2)
        case ex.Poisson(cap=c):
            over = np.maximum(z - c, 0)
            mean = np.exp(np.minimum(z, c)) * (1 + over + over**2 / 2)
            return mean - y * z + y * np.log(np.where(y > 0, y, 1)) - y
        case ex.Multinomial():
            top = z.max(axis=1, keepdims=True)
            return np.log(np.exp(z - top).sum(axis=1)) + top[:, 0] - z[np.arange(len(z)), y.astype(int)]
        case ex.MultiTask(loss=inner):
            return value_of(inner, z, y).sum(axis=1)
    raise KeyError(loss)


def deriv_of(loss: Any, z: np.ndarray, y: np.ndarray) -> np.ndarray:
    """phi'(z, y) for each row, or one row of them for each row."""
    match loss:
        case ex.Logistic():
            return -y * sigmoid(-y * z)
        case ex.NonlinearLeastSquares():
            q = sigmoid(-z)
            return 2 * (y - q) * q * sigmoid(z)
        case ex.Squared():
            return z - y
        case ex.Huber(delta=t):
            return np.clip(z - y, -Wide(t), Wide(t))
        case ex.Quantile(q=q, width=w):
            return -np.clip((y - z) / Wide(w), Wide(q) - 1, Wide(q))
        case ex.Poisson(cap=c):
            return np.exp(np.minimum(z, c)) * (1 + np.maximum(z - c, 0)) - y
        case ex.Multinomial():
            e = np.exp(z - z.max(axis=1, keepdims=True))
            p = e / e.sum(axis=1, keepdims=True)
            p[np.arange(len(z)), y.astype(int)] -= 1
            return p
        case ex.MultiTask(loss=inner):
            return deriv_of(inner, z, y)
    raise KeyError(loss)


def sigmoid(u: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-u))."""
    e = np.exp(-np.abs(u))
    return np.where(u >= 0, 1, e) / (1 + e)


@dataclass(frozen=True)
class Look:
    """What is true at a point."""

    value: float
    grad: np.ndarray  # flat
    value_error: float  # what float64 may be off
    grad_error: np.ndarray  # the same, for each entry
    floor: np.ndarray  # what it can hardly avoid to be off


class ExactModel:
    """A linear model in long doubles: of rows, or of entries of a matrix."""

    def __init__(self, loss: Any, A: Any, y: np.ndarray, weights: Any = None, intercept: bool = False, shape: Any = None):
        self.loss, self.y, self.intercept = loss, np.asarray(y, Wide), intercept
        self.entries = A if isinstance(A, tuple) else None  # rows and columns that are observed
        self.A = None if self.entries else np.asarray(A.toarray() if hasattr(A, "toarray") else A).astype(Wide)
        self.n, self.shape = len(y), shape
        w = np.ones(self.n, Wide) if weights is None else np.asarray(weights, Wide)
        self.w = w / total(w) * self.n

    def margins(self, x: np.ndarray) -> np.ndarray:
        return x[self.entries] if self.entries else self.A @ x

    def back(self, c: np.ndarray) -> np.ndarray:
        if self.entries:
            out = np.zeros(self.shape, Wide)
            np.add.at(out, self.entries, c)
            return out / self.n
        return self.A.T @ c / self.n

    def sizes(self, x: np.ndarray) -> np.ndarray:
        """Sums of |a_ij x_j|."""
        return np.abs(x)[self.entries] if self.entries else np.abs(self.A) @ np.abs(x)

    def reach(self, c: np.ndarray) -> np.ndarray:
        """Means of |a_ij| c_i."""
        if self.entries:
            return self.back(c)
        return np.abs(self.A).T @ c / self.n

    def at(self, x: np.ndarray, near: Any = 0.0) -> Look:
        """The truth at x; the intercept is looked for near one that may be right."""
        x = np.asarray(x, Wide).reshape(self.shape)
        z, size = self.margins(x), self.sizes(x)
        if self.intercept:
            b = self._level(z, near)
            z, size = z + b, size + np.abs(b)
        w = self.w if z.ndim == 1 else self.w[:, None]
        phi, c = self.w * value_of(self.loss, z, self.y), w * deriv_of(self.loss, z, self.y)
        many = math.prod(self.shape) + 8
        wobble, least = (self._wobble(z, w, k * EPS * (size + np.abs(z))) for k in (many, 1))
        wobble = wobble + w * self._lost(z) + (1e-12 if self.intercept else 0.0)  # intercepts are found to that
        noise = (8 + math.sqrt(self.n)) * EPS
        rows = np.abs(c).sum(axis=1) if c.ndim > 1 else np.abs(c)
        shift = (rows * (size.max(axis=1) if size.ndim > 1 else size)).sum() * many * EPS / self.n
        return Look(
            value=total(phi) / self.n,
            grad=self.back(c).reshape(-1),
            value_error=float(shift + noise * self._magnitude(z, phi) + EPS * total(np.sqrt(np.abs(self.w * phi))) / self.n),
            grad_error=self.reach(wobble + noise * np.abs(c)).reshape(-1),
            floor=self.reach(least + EPS * np.abs(c)).reshape(-1),
        )

    def _lost(self, z: np.ndarray) -> np.ndarray:
        """What derivatives lose where a target and a prediction near it cancel."""
        inner = getattr(self.loss, "loss", self.loss)
        if isinstance(inner, ex.Poisson):
            return 2 * EPS * (np.exp(np.minimum(z, inner.cap)) + np.abs(self.y))
        return 4 * EPS * sigmoid(z) * sigmoid(-z) if isinstance(inner, ex.NonlinearLeastSquares) else np.zeros_like(z)

    def _magnitude(self, z: np.ndarray, phi: np.ndarray) -> float:
        """Means of what a value is made of: terms that cancel count."""
        parts = np.abs(phi)
        if isinstance(self.loss, ex.Poisson) or isinstance(getattr(self.loss, "loss", None), ex.Poisson):
            terms = np.abs(self.y * z) + np.abs(self.y) * (1 + np.abs(np.log(np.where(self.y > 0, self.y, 1))))
            parts = parts + self.w * (terms.sum(axis=1) if terms.ndim > 1 else terms)
        if isinstance(self.loss, ex.Multinomial):
            parts = parts + self.w * np.abs(z).max(axis=1)
        return float(total(parts) / self.n)

    def _wobble(self, z: np.ndarray, w: np.ndarray, dz: np.ndarray) -> np.ndarray:
        """How far derivatives move where margins do."""
        if isinstance(self.loss, ex.Multinomial):
            return np.broadcast_to(w * np.minimum(dz.max(axis=1, keepdims=True), 1), z.shape)
        ends = [deriv_of(self.loss, z + s * dz, self.y) for s in (-1, 1)]
        return w * np.abs(ends[1] - ends[0])

    def _level(self, z: np.ndarray, near: Any) -> np.ndarray:
        """Intercepts: Newton steps from one that is near, kept while the derivative falls."""
        b = np.asarray(near, Wide) + np.zeros(z.shape[1:], Wide)
        w = self.w if z.ndim == 1 else self.w[:, None]
        slope = lambda b: (w * deriv_of(self.loss, z + b, self.y)).mean(axis=0)  # noqa: E731
        g = slope(b)
        for _ in range(60):
            step = self._newton(z + b, w, g)
            new, t = None, Wide(1)
            for _ in range(12):
                trial = slope(b + t * step)
                if np.abs(trial).max() < np.abs(g).max():
                    new = b + t * step, trial
                    break
                t /= 4
            if new is None:
                break
            b, g = new
        return b

    def _newton(self, z: np.ndarray, w: np.ndarray, g: np.ndarray) -> np.ndarray:
        if isinstance(self.loss, ex.Multinomial):
            p = deriv_of(self.loss, z, self.y)
            p[np.arange(self.n), self.y.astype(int)] += 1
            H = np.diag((w * p).mean(axis=0)) - (w * p).T @ p / self.n
            return -(np.linalg.pinv(H.astype(np.float64), rcond=1e-13) @ g.astype(np.float64)).astype(Wide)
        h = Wide(1e-7) * np.maximum(1, np.abs(z).max() * Wide(1e-6))
        ends = [(w * deriv_of(self.loss, z + s * h, self.y)).mean(axis=0) for s in (-1, 1)]
        slopes = (ends[1] - ends[0]) / (2 * h)
        return np.where(slopes > 0, -g / np.where(slopes > 0, slopes, 1), -np.sign(g) * h)


def gap_of(region: Region, x: np.ndarray, look: Look) -> tuple[float, float, float]:
    """The gap at x, what float64 may be off, and what it can hardly avoid; from the definition or any answer of the oracle."""
    x, g = wide(x), look.grad
    here = total(g * x)
    there = region.least(g) if region.least is not None else None
    if there is None:
        s = wide(region.C.lmo(g.astype(np.float64).reshape(region.C.shape)).to_array())
        there = total(g * s)
    d, D = len(x), region.C.diameter
    rough = EPS * math.sqrt(d) * float(total(np.abs(g * x)) + abs(there))
    slack = 8 * rough + float(length(look.grad_error)) * D + float(np.finfo(np.float64).tiny)  # below are no digits
    if region.least is None:
        slack += 1e-8 * (abs(float(here)) + abs(float(there)) + float(length(g)) * D)
    return float(here - there), slack, rough / 4 + float(length(look.floor)) * D / 2
