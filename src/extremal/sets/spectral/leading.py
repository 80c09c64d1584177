"""Leading eigenpairs by block Lanczos steps, with a bound on what is left."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

BlockProduct = Callable[[np.ndarray], np.ndarray]  # n x b -> n x b: the products of a symmetric matrix with b vectors
DENSE_SIDE = 96  # sides up to this are solved by a dense eigenproblem
BASIS = 40  # vectors kept, at least; half of them survive a restart
BLOCK_STEPS = 1000  # block steps; what is found by then is the answer, with the bound that it has
CHANCE = 1e-3  # that an eigenvalue beyond the bound stays unseen, in the worst case
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Leading:
    """The k leading eigenpairs of a symmetric matrix, as far as they were found."""

    values: np.ndarray  # Ritz values, largest first
    vectors: np.ndarray  # n x k, orthonormal
    slack: float  # the k largest eigenvalues sum up to sum(values) + slack at most; see the module's text
    residual: float  # |A X - X diag(values)|
    steps: int  # block products with A


def leading(
    apply: BlockProduct, start: np.ndarray, k: int, tol: float, *, eps: float = EPS, terms: float = 0.0, trace: float = math.inf
) -> Leading:
    """The k leading eigenpairs of a symmetric A, from a start of n x b with independent normal entries, b >= k.

    ``apply(V)`` is A V up to a relative rounding of ``eps``, or that part of ``terms`` if A is a sum of matrices of this norm.
    Stops when slack <= tol k max |t|. ``trace`` is for A >= 0: its trace, or a bound on it.

    Examples
    --------
    >>> A = np.diag(np.arange(1.0, 401.0))
    >>> found = leading(lambda V: A @ V, np.random.default_rng(0).standard_normal((400, 1)), 1, 1e-8)
    >>> found.values.round(6), bool(found.values[0] <= 400 <= found.values[0] + found.slack), found.steps < 200
    (array([400.]), True, True)
    """
    n, b = start.shape
    if n <= max(DENSE_SIDE, 8 * b):  # every eigenvalue up to rounding
        values, X = _dense(apply, n)
        size = float(np.abs(values[[0, -1]]).max())
        return Leading(values[:k], np.ascontiguousarray(X[:, :k]), 8 * eps * n * k * max(size, terms), 0.0, n)
    basis = _Basis(apply, start)
    while True:
        basis.grow()
        if basis.due:
            values, Y = basis.ritz()
            size = k * float(np.abs(values[[0, -1]]).max())
            residual = basis.residual(Y[:, :k])
            slack = basis.slack(values, Y[:, 0], residual, trace) if k == 1 else 10 * math.sqrt(k) * residual
            rounding = 16 * eps * max(size, k * terms)
            if slack <= tol * size or residual <= rounding or basis.steps >= BLOCK_STEPS:
                return Leading(values[:k], basis.vectors(Y[:, :k]), slack + rounding, residual, basis.steps)
            if basis.full:
                basis.restart(values, Y)


def ritz(apply: BlockProduct, start: np.ndarray, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Ritz values of a symmetric A, largest first, and their vectors, over the Krylov space that ``steps`` products span.

    No test and no bound: directions in which A is large, for whoever wants many of them and none exactly. Small matrices are
    solved exactly, as by `leading`, and have as many as their size.

    Examples
    --------
    >>> values, X = ritz(lambda V: np.arange(400.0)[:, None] * V, np.ones((400, 1)), 30)
    >>> X.shape, bool(350 < values[0] < 399), bool(np.allclose(X.T @ X, np.eye(30)))
    ((400, 30), True, True)
    """
    n = len(start)
    if n <= max(DENSE_SIDE, steps):
        return _dense(apply, n)
    basis = _Basis(apply, start, steps)
    while not basis.full:
        basis.grow()
    values, Y = basis.ritz()
    return values, basis.vectors(Y)


def _dense(apply: BlockProduct, n: int) -> tuple[np.ndarray, np.ndarray]:
    """All eigenvalues, largest first, and their vectors."""
    A = np.hstack([apply(np.eye(n, min(16, n - i), -i)) for i in range(0, n, 16)])
    values, X = np.linalg.eigh((A + A.T) / 2)
    return values[::-1], X[:, ::-1]


class _Basis:
    """An orthonormal basis of a Krylov space, a vector in each row of V, and H = V A V'; the next b rows stand behind it."""

    def __init__(self, apply: BlockProduct, start: np.ndarray, size: int = BASIS):
        n, self._b = start.shape
        most = min(max(size, 4 * self._b), n - self._b)
        self._apply, self._most, self._rng = apply, most, np.random.default_rng(2)
        self._V, self._H = np.empty((most + self._b, n)), np.zeros((most, most))  # of H, the lower triangle
        self._link = np.zeros((self._b, self._b))  # A (last rows) = (a sum of the basis) + link (next rows)
        self.steps, self._used, self._size = 0, 0, 0.0
        self._orthonormalise(start.T.copy())
        self._start = np.zeros(most)  # coefficients on the basis of the first start, or of what restarts left of it
        self._start[0] = self._link[0, 0]

    @property
    def full(self) -> bool:
        """Whether the basis has to be restarted before it can grow."""
        return self._used + self._b > self._most

    @property
    def due(self) -> bool:
        """Whether to look at the Ritz values: at first always, later at every fourth step."""
        return self.full or self.steps < 8 or self.steps % 4 == 0

    def grow(self) -> None:
        """Take the next rows into the basis, and find those behind them: one product each."""
        new = slice(self._used, self._used + self._b)
        P = self._apply(self._V[new].T).T
        self._used += self._b
        self.steps += 1
        self._H[new, : self._used] = self._orthonormalise(P)

    def _orthonormalise(self, P: np.ndarray) -> np.ndarray:
        """Make the next rows from P: orthonormal, and random where nothing is left; returns P's coefficients on the basis."""
        inside = np.zeros((self._b, self._used))
        for i, p in enumerate(P):
            self._size = max(self._size, float(np.linalg.norm(p)))
            c, p, rest = _apart(p, self._V[: self._used + i])
            inside[i], self._link[i, :i], self._link[i, i] = c[: self._used], c[self._used :], rest
            if rest <= 8 * EPS * self._size:
                _, p, rest = _apart(self._rng.standard_normal(len(p)), self._V[: self._used + i])
            self._V[self._used + i] = p / rest
        return inside

    def ritz(self) -> tuple[np.ndarray, np.ndarray]:
        """Ritz values, largest first, and the coefficients of their vectors."""
        values, Y = np.linalg.eigh(self._H[: self._used, : self._used])
        return values[::-1], Y[:, ::-1]

    def residual(self, Y: np.ndarray) -> float:
        """|A X - X diag(t)| for Ritz vectors X = V' Y: what the last rows leave."""
        return float(np.linalg.norm(Y[-self._b :].T @ self._link))

    def vectors(self, Y: np.ndarray) -> np.ndarray:
        """V' Y, a vector in each column."""
        return self._V[: self._used].T @ Y

    def slack(self, values: np.ndarray, y: np.ndarray, residual: float, trace: float) -> float:
        """How far an eigenvalue may lie above the largest Ritz value: by the start's randomness, or by the trace."""
        unseen = residual * abs(float(self._start[: len(y)] @ y)) / (CHANCE * math.sqrt(math.pi / 2))
        return min(_root(unseen, values[0] - values[1:]), self._excess(float(values[0]), trace))

    def _excess(self, top: float, trace: float) -> float:
        """The larger eigenvalue of [[top, b], [b, w]], less top; for A >= 0."""
        if not math.isfinite(trace):
            return math.inf
        w = max(0.0, trace - float(np.trace(self._H[: self._used, : self._used])))
        return (w - top) / 2 + math.hypot((top - w) / 2, float(np.linalg.norm(self._link)))

    def restart(self, values: np.ndarray, Y: np.ndarray) -> None:
        """Keep the better half, and the next rows."""
        keep = self._most // 2
        behind = self._V[self._used : self._used + self._b].copy()
        self._V[:keep] = Y[:, :keep].T @ self._V[: self._used]
        self._V[keep : keep + self._b] = behind
        self._H[:] = 0.0
        self._H[range(keep), range(keep)] = values[:keep]
        apart = np.maximum(values[0] - values[keep:], np.finfo(np.float64).tiny)
        filtered = np.prod((values[:keep, None] - values[keep:]) / apart, axis=1)  # zero for what goes, one for t_1
        self._start[:keep] = filtered * (self._start[: self._used] @ Y[:, :keep])
        self._start[keep:] = 0.0
        self._used = keep


def _root(right: float, gaps: np.ndarray) -> float:
    """d with d prod_j (1 + d / gaps_j) = right, from above: Newton's method in log d, a convex problem."""
    if right == 0:
        return 0.0
    gaps, u = np.maximum(gaps, EPS * right), math.log(right)
    for _ in range(5):
        ratios = math.exp(u) / gaps
        u -= (u + float(np.log1p(ratios).sum()) - math.log(right)) / (1 + float((ratios / (1 + ratios)).sum()))
    return math.exp(u)


def _apart(p: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """p = c V + q with q orthogonal to the rows of V, in two passes; c, q and |q|."""
    c = V @ p
    q = p - c @ V
    again = V @ q
    q -= again @ V
    return c + again, q, float(np.linalg.norm(q))
