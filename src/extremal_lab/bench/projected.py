"""Projected gradients in a few lines of numpy: textbook rivals of a solver for the l1 ball."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from scipy.special import expit

from extremal_lab.bench.peer_l1 import projected
from extremal_lab.bench.timing import watched


class LogisticRows:
    """f and its gradient by scipy's products, from kept margins."""

    def __init__(self, A: Any, y: np.ndarray):
        self.A, self.y, self.At = A, y, A.T

    def value(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """f(x), and the margins."""
        z = self.y * (self.A @ x)
        return float(np.logaddexp(0, -z).mean()), z

    def grad(self, z: np.ndarray) -> np.ndarray:
        """The gradient at margins z."""
        return self.At @ (-self.y * expit(-z)) / len(z)


def spectral(f: LogisticRows, radius: float, memory: int = 10) -> Iterator[np.ndarray]:
    """Spectral projected gradient: steps by Barzilai and Borwein, and a search that lets f rise for some steps.

    References
    ----------
    Birgin, Martinez, Raydan (2000), Nonmonotone spectral projected gradient methods on convex sets.

    Examples
    --------
    >>> f = LogisticRows(np.eye(2), np.array([1.0, -1.0]))
    >>> *_, x = (x for x, _ in zip(spectral(f, 1.0), range(5)))
    >>> x.round(6)
    array([ 0.5, -0.5])
    """
    x = np.zeros(f.A.shape[1])
    value, z = f.value(x)
    g, alpha, past = f.grad(z), 1.0, [value]
    while True:
        d = projected(x - alpha * g, radius) - x
        slope, t = g @ d, 1.0
        new, z = f.value(x + d)
        while new > max(past) + 1e-4 * t * slope and t > 1e-10:
            t /= 2
            new, z = f.value(x + t * d)
        x, old, g = x + t * d, g, f.grad(z)
        past = [*past[1 - memory :], new]
        bend = t * (d @ (g - old))
        alpha = float(np.clip(t * t * (d @ d) / bend, 1e-10, 1e10)) if bend > 0 else 1e10
        yield x


def accelerated(f: LogisticRows, radius: float) -> Iterator[np.ndarray]:
    """FISTA: Nesterov's steps with backtracking, restarted when the momentum points uphill.

    References
    ----------
    Beck, Teboulle (2009), A fast iterative shrinkage-thresholding algorithm; O'Donoghue, Candes (2015), for the restarts.

    Examples
    --------
    >>> f = LogisticRows(np.eye(2), np.array([1.0, -1.0]))
    >>> *_, x = (x for x, _ in zip(accelerated(f, 1.0), range(20)))
    >>> x.round(6)
    array([ 0.5, -0.5])
    """
    x = v = np.zeros(f.A.shape[1])
    L, theta = 0.1, 1.0
    while True:
        value, z = f.value(v)
        g, L = f.grad(z), 0.9 * L
        while True:
            new = projected(v - g / L, radius)
            d = new - v
            if f.value(new)[0] <= value + g @ d + L / 2 * (d @ d) + 1e-15:
                break
            L *= 2
        theta = 1.0 if (v - new) @ (new - x) > 0 else theta
        after = (1 + np.sqrt(1 + 4 * theta**2)) / 2
        x, v, theta = new, new + (theta - 1) / after * (new - x), after
        yield x


def reached(
    points: Iterator[np.ndarray],
    score: Callable[[np.ndarray], float],
    precisions: Sequence[float],
    limit: float,
    clock: Callable[[], float] = time.process_time,
) -> dict[float, float]:
    """CPU seconds to the first point within each precision that is reached; scores are off the clock.

    Examples
    --------
    >>> ticks = iter(range(100))
    >>> points = iter([np.array([s]) for s in (1.0, 0.05, 0.001)])
    >>> reached(points, lambda x: x[0], (0.1, 0.01), 9.0, clock=lambda: next(ticks))
    {0.1: 2.0, 0.01: 3.0}
    """
    found = dict[float, float]()
    for spent, here in watched(points, score, clock):
        found |= {p: spent for p in precisions if here <= p and p not in found}
        if spent >= limit or len(found) == len(precisions):
            break
    return found
