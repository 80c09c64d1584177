"""Regression over the simplex: rows in blocks, and weights for all targets by active sets, or for each by Newton steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from extremal.data.rows import RowData
from extremal.losses.margin import Squared
from extremal.objectives.margins import MarginModel
from extremal.rounding.exact import settle, violation
from extremal.run.front import minimize
from extremal.run.many import least_squares_many
from extremal.run.result import Status, Trace
from extremal.sets.simplices.plain import Simplex
from extremal.sklearn.answer import GAP_ROUNDING, Answer, answer_at, ended, gap_bound
from extremal.sklearn.fitting import model_of
from extremal.sklearn.options import Options

GRAM_COLUMNS = 2000  # the active-set method stores the Gram matrix of at most this many columns
SMALL_QR = 10**8  # an orthogonal factorisation is cheap up to this many rows times columns squared
PASSES = 1000  # up to this many columns per target, products of the columns cost less than a run for every target
SIMPLEX_BLOCK = 2**18  # numbers in a block of rows
EIGEN_NOISE = 1e-14  # eigenvalues of the products below this share of the largest are rounding
ROW_ROUNDS = 4  # maximum number of gradients from the rows


@dataclass(frozen=True)
class SimplexRows:
    """The data of a fit: rows, targets (n, t), weights, and whether the means are subtracted."""

    X: RowData
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
        """Whether an orthogonal factorisation, which keeps more digits, is affordable."""
        return self.count * self.columns**2 <= SMALL_QR

    @cached_property
    def weight(self) -> float:
        """The sum of the weights."""
        return float(self.count if self.weights is None else self.weights.sum(dtype=np.float64))

    def best_solver(self) -> str:
        """The cheaper solver."""
        d, few = self.columns, PASSES * self.targets * self.X.fill
        return "active_set" if d <= GRAM_COLUMNS and (self.small or d <= few) else "newton"

    def model(self, t: int) -> MarginModel:
        """The objective of one target."""
        return model_of(Squared(), self.X, self.y[:, t], self.weights, self.centred)

    @cached_property
    def slack(self) -> np.ndarray:
        """The possible rounding error in the gap of each target."""
        s = np.ones(self.count) if self.weights is None else self.weights
        about = np.average(self.y, axis=0, weights=s)  # offsets shared by the columns, or absorbed by an intercept, do not count
        squares = np.einsum("i,it,it->t", s, self.y - about, self.y - about, dtype=np.float64) / self.weight
        return GAP_ROUNDING[self.X.dtype.itemsize] * squares

    def blocks(self, least: int = 1, dtype: DTypeLike = np.float64) -> Iterator[tuple[np.ndarray, np.ndarray, Any]]:
        """Yield blocks of rows, targets and weights, in the given float type."""
        size = max(least, SIMPLEX_BLOCK // (self.columns + self.targets), 1)
        for some, A in self.X.arrays(size):
            s = 1.0 if self.weights is None else self.weights[some, None].astype(dtype)
            yield A.astype(dtype, copy=False), self.y[some].astype(dtype), s

    @cached_property
    def means(self) -> tuple[np.ndarray, np.ndarray]:
        """The means of the columns and of the targets."""
        if not self.centred:
            return np.zeros(self.columns), np.zeros(self.targets)
        sums = [((s * A).sum(axis=0), (s * y).sum(axis=0)) for A, y, s in self.blocks()]
        x, y = (np.sum(parts, axis=0) / self.weight for parts in zip(*sums, strict=True))
        return x, y

    def factor(self) -> tuple[np.ndarray, np.ndarray]:
        """R (m, d) and T (m, t), m <= 6 d, with |R w - T_t|^2 = sum of weighted squares + constant, to rounding."""
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
        """H = A'SA and h = A'Sy with the means subtracted, summed over blocks of rows.

        If the weights sum to ``total``, the mean of each row is subtracted from its entries, and total times this mean from its
        targets. This changes no residual, and a common part of the columns costs no digits. Products are then computed in the
        float type of X, and in float64 otherwise.
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
        """f, its gradient (d, t) and the best intercepts at weights (d, t), computed from the residuals."""
        b = self.means[1] - self.means[0] @ x
        value, g = np.zeros(self.targets), np.zeros((self.columns, self.targets))
        for A, y, s in self.blocks():
            r = A @ x + b - y
            value += 0.5 * (s * r * r).sum(axis=0)
            g += A.T @ (s * r)
        return value / self.weight, g / self.weight, b


def solve_simplex(rows: SimplexRows, C: Any, options: Options, starts: Sequence[np.ndarray | None]) -> list[Answer]:
    """The weights of all targets, by the requested solver. Newton steps begin at ``starts``."""
    solver = rows.best_solver() if options.solver == "auto" else options.solver
    if solver == "newton":
        return [_by_newton(rows, C, options, t, start) for t, start in enumerate(starts)]
    answers = _by_active_sets(rows, C, options.tol)
    if options.solver == "auto":  # if columns are nearly dependent, the other method may get farther
        for t, answer in enumerate(answers):
            if answer.status != "tol":
                answers[t] = min(answer, _by_newton(rows, C, options, t, starts[t]), key=lambda found: found.gap)
    return answers


def _by_newton(rows: SimplexRows, C: Any, options: Options, t: int, start: np.ndarray | None) -> Answer:
    """One target, by a run of Newton steps."""
    f, slack, x0 = rows.model(t), rows.slack[t], None if start is None else settle(C, C.project(start.astype(np.float64)))
    r = minimize(f, C, x0=x0, seed=options.seed, tol=options.tol, atol=slack, max_iter=options.max_iter)
    return answer_at(f, C, r.x, options.tol, slack, r, "newton")


def _by_active_sets(rows: SimplexRows, C: Any, tol: float) -> list[Answer]:
    """All targets by `least_squares_many`, on a factor of the rows or of the products of the columns.

    Products lose digits. Further rounds recover them from the gradient at the rows: H (w - x) + g is the gradient at w.
    """
    rounds = 1
    if rows.small:
        answers = _solved(rows, C, *rows.factor(), tol)
    else:
        H, h = rows.products(C.total if type(C) is Simplex else None)
        root, inverse = square_root(H)
        answers = _solved(rows, C, root, inverse @ h, tol)
        while any(answer.status != "tol" for answer in answers) and rounds < ROW_ROUNDS:
            x, g = (np.column_stack(parts) for parts in ([a.x.astype(np.float64) for a in answers], [a.g for a in answers]))
            new = _solved(rows, C, root, inverse @ (H @ x - rows.weight * g), tol)
            answers = [min(pair, key=lambda answer: answer.gap) for pair in zip(answers, new, strict=True)]
            rounds += 1
    grads = (1 + rounds) * rows.count
    return [replace(answer, n_grads=grads, trace=_trace(answer, grads)) for answer in answers]


def _solved(rows: SimplexRows, C: Any, R: np.ndarray, T: np.ndarray, tol: float) -> list[Answer]:
    """The minimisers of |R w - T_t|^2 in the float type of X. One pass over the rows gives all values and gaps."""
    found = least_squares_many(R, np.ascontiguousarray(T.T), type(C)(C.total))
    xs = [settle(C, w.astype(rows.X.dtype)) for w in found.x]
    values, gradients, intercepts = rows.look(np.column_stack(xs).astype(np.float64))
    answers = []
    for t, x in enumerate(xs):
        value, g = float(values[t]), np.ascontiguousarray(gradients[:, t])
        gap = float(gap_bound(C, x.astype(np.float64), g, value, Squared()))
        exact = rows.small and found.converged[t]  # the minimiser, up to rounding
        status = "tol" if exact else ended(gap, value, tol, rows.slack[t], Status.STALLED)
        cost = int(found.n_iter[t]), 0, rows.count, "active_set"
        answers.append(Answer(x, value, gap, C, violation(C, x), status, *cost, intercept=float(intercepts[t]), g=g))
    return answers


def square_root(H: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """R with R'R = H, and its transposed pseudo-inverse, from the eigenvalues of H above rounding.

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


def _trace(answer: Answer, grads: int) -> Trace:
    """A trace of one row, because an active-set method has no gaps on its way."""
    trace, steps = Trace(), answer.n_iter
    row = {"iter": steps, "grads": grads, "passes": grads / answer.n, "lmos": steps + 1, "seconds": np.nan, "cpu": np.nan}
    trace.append(row | {"value": answer.value, "gap": answer.gap})
    return trace
