"""Linear models of many columns, solved on few of them: a minimum over an l1 ball or a simplex has few non-zeros.

    W <- W + those columns j outside with the largest score_j > max over i in W of score_i

The oracle picks the largest score: |g_j| for an l1 ball, -g_j for a simplex. With x_j = 0 outside of W, the answer on W is a
point of the whole set. Its gap there is the gap on W plus radius times the excess of the largest score over the largest in W.
Reference: Massias, Gramfort, Salmon (2018), Celer: a fast solver for the lasso with dual extrapolation, for such sets and their
doubling.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from extremal.objectives import LinearModel
from extremal.sets import L1Ball, Simplex
from extremal_lab.reproduction.interior import matrix

FIRST = 100  # columns of the first round; at most as many join in the second, and twice as many in each later round
ROUNDS = 20  # most rounds
ZERO = 1e-7  # share of the largest coordinate that counts as zero

Sparse = L1Ball | Simplex  # sets that keep their form without zero coordinates, and whose minima have many zeros


@dataclass(frozen=True)
class Few:
    """A point that is non-zero on few columns only, and its cost."""

    x: np.ndarray
    columns: int  # in the last round
    rounds: int
    steps: int  # Newton steps of all rounds


def by_columns(
    f: LinearModel,
    C: Sparse,
    solve: Callable[[LinearModel, Sparse], tuple[np.ndarray, int]],
    enough: Callable[[np.ndarray, float, np.ndarray], bool],
    most: int,
) -> Few:
    """Solve on more and more columns, until the answer is good enough on all, there is no room for more, or after 20 rounds.

    Parameters
    ----------
    f, C
        The sum, convex, and the set, both on all columns.
    solve : callable
        (f, C) on few columns -> the minimiser there, and the number of steps.
    enough : callable
        (x, f(x), grad f(x)) on all columns -> whether x is good enough.
    most : int
        The most columns to solve for at once.

    Examples
    --------
    >>> from extremal.losses import Squared
    >>> f = LinearModel(Squared(), np.eye(200), np.arange(200.0))
    >>> corner = lambda f, C: (C.lmo(f.grad(C.start())).to_array(), 1)
    >>> found = by_columns(f, Simplex(2.0).on(200), corner, lambda x, value, g: True, most=150)
    >>> found.x[195:], found.columns, found.rounds
    (array([0., 0., 0., 0., 2.]), 100, 1)
    """
    W, rounds, steps = np.sort(_best(C, f.grad(C.start()), min(FIRST, most))), 0, 0
    while True:
        x, rounds = np.zeros(f.shape), rounds + 1
        x[W], more = solve(LinearModel(f.loss, matrix(f.data, W), f.y), replace(C, shape=(len(W),)))
        (value, g), steps = f.value_and_grad(x), steps + more
        new = W if enough(x, value, g) else _next(W, x, _best(C, g, FIRST << (rounds - 1), W), most)
        if rounds == ROUNDS or np.array_equal(new, W):
            return Few(x, len(W), rounds, steps)
        W = new


def _best(C: Sparse, g: np.ndarray, count: int, W: np.ndarray | None = None) -> np.ndarray:
    """The columns with the largest scores, at most ``count``; only those with scores above all of W."""
    score = np.abs(g) if isinstance(C, L1Ball) else -g
    order = np.argsort(-score, kind="stable")[:count]
    return order if W is None else order[score[order] > score[W].max()]


def _next(W: np.ndarray, x: np.ndarray, joining: np.ndarray, most: int) -> np.ndarray:
    """W with the joining columns; if they are too many, columns near zero leave first, and the rest of the room is filled."""
    if len(W) + len(joining) > most:
        W = W[np.abs(x[W]) > ZERO * np.abs(x).max()]
    return np.union1d(W, joining[: most - len(W)])
