"""Rows and targets of a regression over the simplex: by blocks, in float64, reduced to as many rows as columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import DTypeLike

from extremal.losses.margin import Squared
from extremal.objectives.intercept import InterceptModel
from extremal.objectives.linear import LinearModel
from extremal.rounding.exact import settle
from extremal.run.many import least_squares_many
from extremal.run.result import Trace
from extremal.sets.simplices.plain import Simplex
from extremal.sklearn.certified import gap_bound

GRAM_COLUMNS = 2000  # up to so many the active-set method keeps a matrix of their products
SMALL_QR = 10**8  # rows times columns squared, up to which an orthogonal factorisation costs next to nothing
PASSES = 1000  # columns for each target, up to which products of the columns cost less than a run for every target
SIMPLEX_BLOCK = 2**18  # numbers of a block of rows
GAP_ROUNDING = {8: 1e-12, 4: 2.5e-7}  # share of the mean of y^2 that a gap may be by rounding, by bytes of a coefficient
EIGEN_NOISE = 1e-14  # of an eigenvalue of the products, relative to the largest: what is below is rounding
ROW_ROUNDS = 4  # gradients from the rows, at most


@dataclass(frozen=True)
class Answer:
    """The weights of one target."""

    x: np.ndarray
    intercept: float
    value: float
    gap: float
    n_iter: int
    n_grads: int
    status: str
    met: bool  # whether the tolerance was
    trace: Trace
    method: str


@dataclass(frozen=True)
class SimplexRows:
    """The data of a fit: rows, targets (n, t), weights, and whether their means are taken off."""

    X: Any
    y: np.ndarray
    weights: np.ndarray | None
    centred: bool

    @property
    def count(self) -> int:
        """n."""
        return self.X.shape[0]

    @property
    def columns(self) -> int:
        """d."""
        return self.X.shape[1]

    @property
    def targets(self) -> int:
        """t."""
        return self.y.shape[1]

    @property
    def small(self) -> bool:
        """Whether an orthogonal factorisation is worth its digits."""
        return self.count * self.columns**2 <= SMALL_QR

    @cached_property
    def weight(self) -> float:
        """The sum of the weights."""
        return float(self.count if self.weights is None else self.weights.sum(dtype=np.float64))

    def best_solver(self) -> str:
        """By what each would cost."""
        n, d = self.X.shape
        share = self.X.nnz / max(1, n * d) if sp.issparse(self.X) else 1.0
        return "active_set" if d <= GRAM_COLUMNS and (self.small or d <= PASSES * self.targets * share) else "newton"

    def model(self, t: int) -> LinearModel:
        """The objective of one target."""
        kind = InterceptModel if self.centred else LinearModel
        return kind(Squared(), self.X, self.y[:, t], self.weights)

    @cached_property
    def slack(self) -> np.ndarray:
        """What rounding may do to the gap of each target."""
        s = np.ones(self.count) if self.weights is None else self.weights
        about = np.average(self.y, axis=0, weights=s)  # offsets that the columns share, or an intercept takes, are no size
        squares = np.einsum("i,it,it->t", s, self.y - about, self.y - about, dtype=np.float64) / self.weight
        return GAP_ROUNDING[self.X.dtype.itemsize] * squares

    def blocks(self, least: int = 1, dtype: DTypeLike = np.float64) -> Iterator[tuple[np.ndarray, np.ndarray, Any]]:
        """Rows, targets and weights, some at a time, in float64 or as they are."""
        size = max(least, SIMPLEX_BLOCK // (self.columns + self.targets), 1)
        for start in range(0, self.count, size):
            some = slice(start, start + size)
            A = self.X[some]
            A = A.toarray() if sp.issparse(A) else A
            s = 1.0 if self.weights is None else self.weights[some, None].astype(dtype)
            yield A.astype(dtype, copy=False), self.y[some].astype(dtype), s

    @cached_property
    def means(self) -> tuple[np.ndarray, np.ndarray]:
        """Of the columns and of the targets."""
        if not self.centred:
            return np.zeros(self.columns), np.zeros(self.targets)
        sums = [((s * A).sum(axis=0), (s * y).sum(axis=0)) for A, y, s in self.blocks()]
        x, y = (np.sum(parts, axis=0) / self.weight for parts in zip(*sums, strict=True))
        return x, y

    def factor(self) -> tuple[np.ndarray, np.ndarray]:
        """R (m, d) and T (m, t), m <= 6 d: |R w - T_t|^2 is the sum of weighted squares but for a constant, to rounding."""
        d, (mean_x, mean_y) = self.columns, self.means
        R, T = np.zeros((0, d)), np.zeros((0, self.targets))
        for A, y, s in self.blocks(least=4 * d):
            root = np.sqrt(s)
            R, T = np.vstack([R, root * (A - mean_x)]), np.vstack([T, root * (y - mean_y)])
            if len(R) > 2 * d:
                Q, R = np.linalg.qr(R)
                T = Q.T @ T
        return R, T

    def products(self, total: float | None) -> tuple[np.ndarray, np.ndarray]:
        """H = A'SA and h = A'Sy, the means taken off, summed over blocks of rows.

        Where the weights sum to ``total``, the mean of each row is taken off its entries, and total times that off its targets:
        no residual changes, and what all columns share costs no digits. Products are made in the float type of X then, and in
        float64 otherwise.
        """
        dtype, d = self.X.dtype if total is not None else np.dtype(np.float64), self.columns
        mean_x, mean_y = (mean.astype(dtype) for mean in self.means)
        H, h = np.zeros((d, d)), np.zeros((d, self.targets))
        for A, y, s in self.blocks(dtype=dtype):
            A, y = A - mean_x, y - mean_y
            if total is not None:
                level = A.mean(axis=1, keepdims=True)
                A -= level
                y -= dtype.type(total) * level
            root = np.sqrt(s)
            A, y = (root * A, root * y) if self.weights is not None else (A, y)
            H += A.T @ A
            h += A.T @ y
        return H, h

    def look(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """f, its gradient (d, t) and the best intercepts at weights (d, t), from the residuals."""
        b = self.means[1] - self.means[0] @ x
        value, g = np.zeros(self.targets), np.zeros((self.columns, self.targets))
        for A, y, s in self.blocks():
            r = A @ x + b - y
            value += 0.5 * (s * r * r).sum(axis=0)
            g += A.T @ (s * r)
        return value / self.weight, g / self.weight, b


@dataclass(frozen=True)
class Look:
    """Weights (t, d) of all targets, and how good they are."""

    x: np.ndarray
    n_iter: np.ndarray
    converged: np.ndarray
    values: np.ndarray
    gaps: np.ndarray
    intercepts: np.ndarray
    g: np.ndarray  # (d, t)


def by_active_sets(rows: SimplexRows, C: Any, tol: float) -> list[Answer]:
    """All targets by `least_squares_many` on a factor of the rows, or on one of the products of the columns.

    Products lose digits that a further round finds again, from the gradient at the rows: H (w - x) + g is the gradient at w.
    """
    if rows.small:
        at, rounds = _solved(rows, C, *rows.factor()), 1
    else:
        H, h = rows.products(C.total if type(C) is Simplex else None)
        root, inverse = square_root(H)
        at, rounds = _solved(rows, C, root, inverse @ h), 1
        while (at.gaps > tol * at.values + rows.slack).any() and rounds < ROW_ROUNDS:
            new = _solved(rows, C, root, inverse @ (H @ at.x.T.astype(np.float64) - rows.weight * at.g))
            at, rounds = _better(at, new), rounds + 1
    n_grads = (1 + rounds) * rows.count
    return [
        Answer(
            at.x[t],
            float(at.intercepts[t]),
            float(at.values[t]),
            float(at.gaps[t]),
            int(at.n_iter[t]),
            n_grads,
            "stalled",
            bool(at.gaps[t] <= tol * at.values[t] + rows.slack[t] or (rows.small and at.converged[t])),
            _trace(at, t, n_grads, rows.count),
            "active_set",
        )
        for t in range(rows.targets)
    ]


def _solved(rows: SimplexRows, C: Any, R: np.ndarray, T: np.ndarray) -> Look:
    """The minimisers of |R w - T_t|^2 in the float type of X, with values and gaps from the rows."""
    found = least_squares_many(R, np.ascontiguousarray(T.T), type(C)(C.total))
    x = np.array([settle(C, w.astype(rows.X.dtype)) for w in found.x])
    wide = x.astype(np.float64)
    values, g, b = rows.look(np.ascontiguousarray(wide.T))
    gaps = np.array([gap_bound(C, w, np.ascontiguousarray(g[:, t]), values[t], Squared()) for t, w in enumerate(wide)])
    return Look(x, found.n_iter, found.converged, values, gaps, b, g)


def _better(old: Look, new: Look) -> Look:
    """Of each target the weights with the smaller gap."""
    keep = old.gaps <= new.gaps
    pick = {
        name: np.where(keep, getattr(old, name), getattr(new, name)) for name in ("n_iter", "values", "gaps", "intercepts", "g")
    }
    return Look(np.where(keep[:, None], old.x, new.x), converged=old.converged, **pick)


def square_root(H: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """R with R'R = H, and its pseudo-inverse transposed, from the eigenvalues of H that are not rounding.

    Examples
    --------
    >>> import numpy as np
    >>> R, inverse = square_root(np.diag([4.0, 0.0]))
    >>> R.round(12) + 0.0, (inverse @ np.array([2.0, 0.0])).round(12)
    (array([[0., 0.],
           [2., 0.]]), array([0., 1.]))
    """
    values, vectors = np.linalg.eigh(H)
    kept = values > EIGEN_NOISE * max(values[-1], 0.0)
    roots = np.sqrt(np.where(kept, values, 0.0))
    return roots[:, None] * vectors.T, np.divide(1.0, roots, out=np.zeros_like(roots), where=kept)[:, None] * vectors.T


def _trace(at: Look, t: int, grads: int, n: int) -> Trace:
    """One row: an active-set method has no gaps on its way."""
    trace, steps = Trace(), int(at.n_iter[t])
    row = {"iter": steps, "grads": grads, "passes": grads / n, "lmos": steps + 1, "seconds": np.nan, "cpu": np.nan}
    trace.append(row | {"value": float(at.values[t]), "gap": float(at.gaps[t])})
    return trace
