"""Parts of a completion: a radius chosen on held-back entries, factors in the ball, and predictions from factors."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from extremal.objectives.completion import DAMPING, MatrixCompletion
from extremal.points.factored import FactoredMatrix
from extremal.rounding.exact import settle, violation
from extremal.run.front import minimize
from extremal.sets.simplices.plain import UnitSimplex
from extremal.sets.spectral.nuclear import NuclearBall
from extremal.support import linalg

RIDGE_ROUNDS = 100  # maximum number of reweighted ridge regressions for a robust loss
GATHERED = 2**22  # number of factor entries gathered at once
FIRST_SHARE, FACTOR, WORSE = 1 / 256, 1.5, 2  # radii to try: first share of the largest, ratio, rises in a row
HELD_BACK, FEWEST = 0.1, 20  # share of the entries that choose a radius, and the fewest entries that allow such a choice
ROUGH_TOL, RADIUS_TRIES = 1e-2, 30  # relative accuracy and iterations of the trial fits
MET = 1e-6  # the fit matches all values if f is below this share of their mean square
DEFAULT = 0.25  # share of the largest radius that is used if there are too few entries


@dataclass(frozen=True)
class Filling:
    """mean + row_i + col_j + (U diag(s) V')_ij, clipped to ``ends`` if given.

    Examples
    --------
    >>> import numpy as np
    >>> one = np.ones((2, 1))
    >>> m = Filling(one, np.array([2.0]), one.T, 1.0, np.zeros(2), np.zeros(2), penalty=0.0, centre="mean", delta=None)
    >>> m.at(np.array([0, 7]), np.array([1, 1])), m.fill(np.array([[5.0, np.nan]])).round(6)
    (array([3., 1.]), array([[5., 5.]]))
    """

    left: np.ndarray  # m x r
    values: np.ndarray  # r
    right: np.ndarray  # r x n
    mean: float
    rows: np.ndarray  # offsets of rows
    cols: np.ndarray  # offsets of columns
    penalty: float  # on the squared length of the factor of a row
    centre: str | None  # which offsets are used
    delta: float | None  # of a Huber loss; None for the squared loss
    ends: tuple[float, float] | None = None  # values beyond are set to the nearest end

    def at(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """Entries at positions; rows and columns beyond the matrix contribute neither offsets nor factors."""
        i, j = rows.reshape(-1), cols.reshape(-1)
        old, seen = i < len(self.rows), j < len(self.cols)
        out = np.full(len(i), self.mean)
        out[old] += self.rows[i[old]]
        out[seen] += self.cols[j[seen]]
        both, scaled = np.flatnonzero(old & seen), self.left * self.values
        size = max(1, GATHERED // max(1, len(self.values)))
        for some in (both[k : k + size] for k in range(0, len(both), size)):
            out[some] += np.einsum("tr,rt->t", scaled[i[some]], self.right[:, j[some]])
        return self._clipped(out).astype(self.left.dtype).reshape(rows.shape)

    def _clipped(self, values: np.ndarray) -> np.ndarray:
        return values if self.ends is None else np.clip(values, *self.ends)

    @cached_property
    def _factors(self) -> np.ndarray:
        """v_j = s^(1/2) V_j for every column, in float64."""
        return (np.sqrt(self.values)[:, None] * self.right).T.astype(np.float64)

    def fill(self, X: np.ndarray) -> np.ndarray:
        """Replace the NaN of X in place, row by row, each row from its own known entries."""
        missing = np.isnan(X)
        for i in np.flatnonzero(missing.any(axis=1)):
            gaps = missing[i]
            X[i, gaps] = self._row(X[i, ~gaps].astype(np.float64), np.flatnonzero(~gaps), np.flatnonzero(gaps))
        return X

    def _row(self, x: np.ndarray, known: np.ndarray, gaps: np.ndarray) -> np.ndarray:
        """The entries at the gaps."""
        rest = x - self.mean - self.cols[known]
        offset = float(rest.sum() / (len(rest) + DAMPING)) if self.centre == "rows+cols" else 0.0
        w = self._factor(self._factors[known], rest - offset)
        return self._clipped(self.mean + offset + self.cols[gaps] + self._factors[gaps] @ w)

    def _factor(self, V: np.ndarray, y: np.ndarray) -> np.ndarray:
        """argmin over w of sum_j phi(<w, v_j> - y_j) + penalty |w|^2 / 2; Huber's loss by reweighted ridge regressions."""
        w = ridge(V, y, np.ones(len(y)), self.penalty)
        if self.delta is None:
            return w
        for _ in range(RIDGE_ROUNDS):
            size = np.abs(V @ w - y)
            last, w = w, ridge(V, y, self.delta / np.maximum(size, self.delta), self.penalty)
            if np.abs(w - last).max(initial=0.0) <= 1e-10 * np.abs(w).max(initial=0.0):
                break
        return w


def ridge(V: np.ndarray, y: np.ndarray, weights: np.ndarray, penalty: float) -> np.ndarray:
    """argmin over w of sum_j weights_j (<w, v_j> - y_j)^2 + penalty |w|^2; the shortest w if there are several."""
    root = np.sqrt(weights)
    A, b = root[:, None] * V, root * y
    if A.size == 0:
        return np.zeros(V.shape[1])
    if penalty <= 1e-12 * float(np.square(A).sum()):
        return linalg.lstsq(A, b, rcond=1e-10)
    if len(A) < A.shape[1]:
        return A.T @ np.linalg.solve(A @ A.T + penalty * np.eye(len(A)), b)
    return np.linalg.solve(A.T @ A + penalty * np.eye(A.shape[1]), A.T @ b)


def mean_square(problem: MatrixCompletion) -> float:
    """The mean square of the centred values."""
    return float(np.square(problem.objective.y.astype(np.float64)).mean())


def chosen_radius(problem: MatrixCompletion, values: np.ndarray, less: Callable[..., MatrixCompletion]) -> float:
    """The radius with the smallest error on held-back entries. ``less`` makes the problem with a share of them held back."""
    largest = problem.largest_radius
    if not largest > 1e-12 * float(np.linalg.norm(values.astype(np.float64))):
        return 1.0  # the offsets explain all values
    if len(values) < FEWEST:
        return DEFAULT * largest
    part = less(validation=HELD_BACK)
    radius, x, tried, worse = FIRST_SHARE * largest, None, {}, 0
    while radius <= largest and worse < WORSE:
        x, error = _held_back_error(part, radius, x)
        if tried and error is None:
            break
        worse = worse + 1 if tried and (error or 0.0) >= min(tried.values()) else 0
        tried[radius], radius = error or 0.0, FACTOR * radius
    best = min(tried, key=tried.__getitem__)
    for near in (best / math.sqrt(FACTOR), best * math.sqrt(FACTOR)):
        error = _held_back_error(part, near, None)[1]
        tried |= {} if error is None else {near: error}
    return min(tried, key=tried.__getitem__)


def _held_back_error(part: MatrixCompletion, radius: float, start: np.ndarray | None) -> tuple[np.ndarray, float | None]:
    """A rough fit, and its error on the held-back entries; None if it matches all entries, as many matrices may do."""
    scale = mean_square(part)
    r = minimize(part.objective, NuclearBall(radius), x0=start, tol=ROUGH_TOL, atol=MET * scale, max_iter=RADIUS_TRIES)
    return r.x, part.rmse(r.x) if r.value > MET * scale else None


def rounded_factors(
    x: Any, C: NuclearBall, rank: int | None, dtype: np.dtype
) -> tuple[FactoredMatrix, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Round a matrix in factors so that it lies exactly in C; return it and its non-zero U, s, V' of the given rank at most."""
    (q1, r1), (q2, r2) = (np.linalg.qr(a.astype(np.float64)) for a in x.factors())
    u, s, vt = linalg.svd(r1 @ r2.T, full_matrices=False)
    keep = int(np.count_nonzero(s > 8 * np.finfo(dtype).eps * s.max(initial=0.0)))
    keep = keep if rank is None else min(keep, rank)
    U, s, Vt = (q1 @ u[:, :keep]).astype(dtype), s[:keep].astype(dtype), (vt[:keep] @ q2.T).astype(dtype)
    s = settle(UnitSimplex(C.radius), s) if len(s) else s  # a sum within the radius in any order of summation
    while violation(C, rounded := FactoredMatrix(U * s, np.ascontiguousarray(Vt.T))) > 0:
        s = settle(UnitSimplex(C.radius), s * dtype.type(1 - 2 * np.finfo(dtype).eps))
    return rounded, (U, s, Vt)
