"""Ratings to complete, and textbook proximal gradients with exact decompositions.

The problem has the shape of MovieLens 100k: ratings 1 to 5, rounded from a matrix of rank 10 and noise. A fifth is held back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from extremal import MatrixCompletion, NuclearBall, iterate
from extremal.methods import Recipe
from extremal_lab.bench.peer_l1 import projected

Threshold = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Ratings:
    """The shape of the problem."""

    rows: int = 943
    columns: int = 1682
    count: int = 100_000
    rank: int = 10
    noise: float = 0.7

    def made(self, seed: int) -> MatrixCompletion:
        """Ratings at random places, from one seed.

        Examples
        --------
        >>> Ratings(20, 30, 200).made(0).shape
        (20, 30)
        """
        rng, shape = np.random.default_rng(seed), (self.rows, self.columns)
        u, v = rng.standard_normal((self.rows, self.rank)), rng.standard_normal((self.rank, self.columns))
        truth = 3.5 + 0.8 / np.sqrt(self.rank) * u @ v
        rows, cols = np.divmod(rng.choice(truth.size, self.count, replace=False), self.columns)
        values = np.clip(np.round(truth[rows, cols] + self.noise * rng.standard_normal(self.count)), 1, 5)
        return MatrixCompletion(rows, cols, values, shape, centre="mean", validation=0.2, seed=seed)


def iterates(problem: Any, C: NuclearBall, method: Recipe, most: int, seed: int = 0) -> Iterator[Any]:
    """The iterates of a method, without the start."""
    states = iterate(problem.objective, C, method, seed=seed, horizon=most)
    return (state.x for state in islice(states, 1, most + 1))


# proximal gradients, penalised


def by_svd(Z: np.ndarray, weight: float) -> tuple[np.ndarray, np.ndarray]:
    """The proximal point of weight times the nuclear norm, and its singular values."""
    u, s, vt = np.linalg.svd(Z, full_matrices=False)
    s = np.maximum(s - weight, 0)
    return (u * s) @ vt, s


def by_gram(Z: np.ndarray, weight: float) -> tuple[np.ndarray, np.ndarray]:
    """The same from the eigenvalues of ZZ'.

    Examples
    --------
    >>> Z = np.random.default_rng(0).standard_normal((4, 6))
    >>> bool(np.allclose(by_gram(Z, 1.0)[0], by_svd(Z, 1.0)[0]))
    True
    """
    w, u = np.linalg.eigh(Z @ Z.T)
    s = np.sqrt(np.maximum(w, 0))
    u, s = u[:, s > weight], s[s > weight]
    return (u * ((s - weight) / s)) @ (u.T @ Z), s - weight


def fista(problem: Any, threshold: Threshold, iterations: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """min of 0.5 sum (X - ratings)^2 + weight |X|_*: the iterates, and their singular values."""
    places, y = problem.objective.data.positions, problem.objective.y
    X, Z, t = np.zeros(problem.shape), np.zeros(problem.shape), 1.0
    for _ in range(iterations):
        G = Z.copy()
        G[places.rows, places.cols] = y
        new, s = threshold(G)
        t, before = (1 + np.sqrt(1 + 4 * t * t)) / 2, t
        X, Z = new, new + (before - 1) / t * (new - X)
        yield X, s


# proximal gradients, constrained


def nearest(Z: np.ndarray, radius: float) -> np.ndarray:
    """The nearest point of the nuclear ball, from the eigenvalues of ZZ'.

    Examples
    --------
    >>> nearest(np.diag([3.0, 1.0]), 3.0).round(6)
    array([[2.5, 0. ],
           [0. , 0.5]])
    """
    w, u = np.linalg.eigh(Z @ Z.T)
    s = np.sqrt(np.maximum(w, 0))
    t = projected(s, radius)
    u, ratios = u[:, t > 0], t[t > 0] / s[t > 0]
    return (u * ratios) @ (u.T @ Z)


def constrained_fista(problem: Any, radius: float, iterations: int, shrink: float) -> Iterator[np.ndarray]:
    """min of 0.5 sum (X - ratings)^2 over the ball; momentum restarts when it points uphill.

    L = 1 is the known constant. With ``shrink`` < 1, L falls by that factor before each step, and doubles (up to 1) until f is
    not above its model.
    """
    at, y = problem.objective.data.positions, problem.objective.y
    X, Z, t, L = np.zeros(problem.shape), np.zeros(problem.shape), 1.0, 1.0
    for _ in range(iterations):
        rest, L = Z[at.rows, at.cols] - y, L * shrink
        while True:
            G = Z.copy()
            G[at.rows, at.cols] -= rest / L
            new = nearest(G, radius)
            D = new - Z
            if L >= 1 or np.sum(D[at.rows, at.cols] ** 2) <= L * np.vdot(D, D):
                break
            L = min(1.0, 2 * L)
        if np.vdot(D, new - X) < 0:
            t = 1.0
        before, t = t, (1 + np.sqrt(1 + 4 * t * t)) / 2
        X, Z = new, new + (before - 1) / t * (new - X)
        yield X
