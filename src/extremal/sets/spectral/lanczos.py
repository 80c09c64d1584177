"""Leading singular and eigenvectors of matrices known by products, with bounds on the values that may have been missed.

The method is that of Lanczos. It builds an orthonormal basis of the Krylov space of a start, with two passes of
orthogonalisation, and reduces a full basis to its best half (thick restarts; Wu, Simon 2000). Singular triples come from
Lanczos on the smaller of G'G and GG': the bidiagonalisation of Golub and Kahan (1965), with one of its two bases kept.

The following holds for a symmetric A with eigenvalues l_1 >= l_2 >= ... and Ritz values t_1 >= t_2 >= ...:

- t_1 <= l_1, and some eigenvalue is within |A x - t_1 x| of t_1: proven. It is not proven that this eigenvalue is the largest,
  not even if the residual is small.
- Let s be the start, x the Ritz vector of t_1 = x'Ax, r = |A x - t_1 x| and a the component of s along an eigenvector of l_1.
  Then

      (l_1 - t_1) prod_j (l_1 - t_j) / (t_1 - t_j)  <=  r |s'x| / |a|,   j = 2, 3, ...

  (van Dorsselaer, Hochstenbach, van der Vorst 2000). Indeed x = p(A) s for a polynomial p with zeros t_2, t_3, ..., which
  grows beyond t_1, so x contains at least |a| / |s'x| of the missed eigenvector. After restarts, s is the part of the start
  that remains, with the polynomial scaled to one at t_1. The start has independent normal entries, plus any other vector. So
  for any A, |a| is below CHANCE sqrt(pi / 2) with a probability of at most CHANCE. The bound fails with no larger probability,
  and fails by little: by a factor of c with probability CHANCE / c. The seed of the generator is fixed, so that equal questions
  have equal answers; the probability is that of meeting a matrix that is orthogonal to this start.
- For A = G'G with a known |G|, l_1 is at most the larger eigenvalue of [[t_1, b], [b, w]]. Here b is the norm of the part of
  the products outside the basis, and w = |G|^2 - (trace of A on the basis). This is proven, and tight if few directions carry
  most of G.

For k > 1 leading pairs the method uses a block of k + 2 starts. Some k eigenvalues sum to t_1 + ... + t_k, up to
sqrt(k) |A X - X diag(t)|: proven. Larger eigenvalues stay unseen only if their vectors are nearly orthogonal to all the starts
at once; the bound uses ten times that margin.

A bound on the number of products: with j products, l_1 - t_1 > e l_1 for A >= 0 of size n has a probability of at most
1.648 sqrt(n) exp(-(2 j - 1) sqrt(e)) (Kuczynski, Wozniakowski 1992). A start near the answer finds it earlier, but says less
about other directions, by the same factor: the bound needs as many products as from a random start.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from extremal.points.low_rank import LowRank, RankOne
from extremal.points.vertex import Vertex
from extremal.sets.spectral.operators import SpectralProducts

BlockProduct = Callable[[np.ndarray], np.ndarray]  # n x b -> n x b: products of a symmetric matrix with b vectors
DENSE_SIDE = 96  # sides up to this length are solved as a dense eigenproblem
BASIS = 40  # minimum number of vectors kept; half of them survive a restart
BLOCK_STEPS = 1000  # limit for block steps; the method then returns its current answer, with the current bound
CHANCE = 1e-3  # worst-case probability that an eigenvalue beyond the bound stays unseen
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Triple:
    """The leading singular triple of G."""

    sigma: float  # |G v|, at most the largest singular value
    upper: float  # at least the largest singular value, as explained in the module's docstring
    left: np.ndarray  # u, of length one
    right: np.ndarray  # v, of length one
    residual: float  # |G' u - sigma v|
    steps: int  # products with G, and as many with G'


def leading_singular(A: SpectralProducts, near: Vertex | None, tol: float) -> Triple:
    """The leading singular triple of G, with upper <= sigma (1 + tol) if that can be reached."""
    m, n = A.shape
    if A.size == 0:
        return Triple(0.0, 0.0, np.eye(1, m)[0], np.eye(1, n)[0], 0.0, 0)
    there, back = (A.right, A.left) if n <= m else (A.left, A.right)
    start = _start(min(m, n), 1, near, of_left=m < n)
    found = leading(lambda V: back(there(V)), start, 1, 2 * tol, eps=A.eps, trace=A.square)
    v, image = found.vectors[:, 0], there(found.vectors)[:, 0]
    sigma = float(np.linalg.norm(image))
    upper = math.sqrt(max(sigma * sigma, float(found.values[0])) + found.slack)
    if sigma == 0:  # entries that cancel
        return Triple(0.0, A.unscaled(upper), np.eye(1, m)[0], np.eye(1, n)[0], 0.0, found.steps)
    left, right = (image / sigma, v) if n <= m else (v, image / sigma)
    return Triple(A.unscaled(sigma), A.unscaled(upper), left, right, A.unscaled(found.residual / sigma), found.steps)


@dataclass(frozen=True)
class Smallest:
    """Eigenpairs of the k smallest eigenvalues of sym(G) = (G + G') / 2."""

    values: np.ndarray  # Ritz values, smallest first
    low: float  # at most the sum of the k smallest eigenvalues, as explained in the module's docstring
    vectors: np.ndarray  # d x k, orthonormal
    residual: float  # |sym(G) X - X diag(values)|
    steps: int  # products with G, and as many with G', of a block of k or a few more vectors


def smallest(A: SpectralProducts, k: int, near: Vertex | None, tol: float) -> Smallest:
    """The k smallest eigenvalues of sym(G) and their vectors, up to ``tol`` times the largest magnitude of an eigenvalue."""
    start = _start(A.shape[0], min(A.shape[0], k + 2 if k > 1 else 1), near, of_left=False)
    terms = float(np.linalg.norm(A.right(start[:, :1])))  # about |G|, which may be far larger than |sym(G)|
    found = leading(lambda V: -(A.right(V) + A.left(V)) / 2, start, k, tol, eps=A.eps, terms=terms)
    low = -min(float(found.values.sum()) + found.slack, math.sqrt(k * A.square))  # |sym(G)| <= |G|
    values = np.array([A.unscaled(float(-t)) for t in found.values])
    return Smallest(values, A.unscaled(low), found.vectors, A.unscaled(found.residual), found.steps)


def _start(n: int, b: int, near: Vertex | None, of_left: bool) -> np.ndarray:
    """Independent normal entries, plus the vectors of an earlier answer if they fit, scaled to similar length."""
    start = np.random.default_rng(0).standard_normal((n, b))
    if isinstance(near, (RankOne, LowRank)):
        earlier = near.left if of_left else near.right
        if len(earlier) == n:
            earlier = earlier.reshape(n, -1)[:, :b]
            start[:, : earlier.shape[1]] += math.sqrt(n) * earlier / np.maximum(np.linalg.norm(earlier, axis=0), EPS)
    return start


# symmetric matrices by block steps


@dataclass(frozen=True)
class Leading:
    """The k leading eigenpairs of a symmetric matrix, to the accuracy reached."""

    values: np.ndarray  # Ritz values, largest first
    vectors: np.ndarray  # n x k, orthonormal
    slack: float  # the k largest eigenvalues sum to at most sum(values) + slack; see the module's docstring
    residual: float  # |A X - X diag(values)|
    steps: int  # block products with A


def leading(
    apply: BlockProduct, start: np.ndarray, k: int, tol: float, *, eps: float = EPS, terms: float = 0.0, trace: float = math.inf
) -> Leading:
    """The k leading eigenpairs of a symmetric A, from an n x b start with independent normal entries, b >= k.

    ``apply(V)`` is A V up to a relative rounding of ``eps``, or up to eps times ``terms`` if A is a sum of matrices of this
    norm. The method stops when slack <= tol k max |t|. ``trace`` is the trace of A >= 0, or a bound on it.

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

    The function makes no test and gives no bound. It is for callers who need many directions in which A is large, but none
    exactly. Small matrices are solved exactly, as in `leading`, and have as many Ritz values as their size.

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
    """An orthonormal basis of a Krylov space as rows of V, and H = V A V'; the next b rows follow the basis."""

    def __init__(self, apply: BlockProduct, start: np.ndarray, size: int = BASIS):
        n, self._b = start.shape
        most = min(max(size, 4 * self._b), n - self._b)
        self._apply, self._most, self._rng = apply, most, np.random.default_rng(2)
        self._V, self._H = np.empty((most + self._b, n)), np.zeros((most, most))  # the lower triangle of H
        self._link = np.zeros((self._b, self._b))  # A (last rows) = (a sum of the basis) + link (next rows)
        self.steps, self._used, self._size = 0, 0, 0.0
        self._orthonormalise(start.T.copy())
        self._start = np.zeros(most)  # coefficients of the first start on the basis, or of the part that restarts left
        self._start[0] = self._link[0, 0]

    @property
    def full(self) -> bool:
        """Whether the basis must restart before it can grow."""
        return self._used + self._b > self._most

    @property
    def due(self) -> bool:
        """Whether to compute the Ritz values: always at first, later at every fourth step."""
        return self.full or self.steps < 8 or self.steps % 4 == 0

    def grow(self) -> None:
        """Take the next rows into the basis, and find the rows that follow: one product each."""
        new = slice(self._used, self._used + self._b)
        P = self._apply(self._V[new].T).T
        self._used += self._b
        self.steps += 1
        self._H[new, : self._used] = self._orthonormalise(P)

    def _orthonormalise(self, P: np.ndarray) -> np.ndarray:
        """Make the next rows from P: orthonormal, and random if nothing remains; return P's coefficients on the basis."""
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
        """|A X - X diag(t)| for Ritz vectors X = V' Y, from the link to the next rows."""
        return float(np.linalg.norm(Y[-self._b :].T @ self._link))

    def vectors(self, Y: np.ndarray) -> np.ndarray:
        """V' Y, a vector in each column."""
        return self._V[: self._used].T @ Y

    def slack(self, values: np.ndarray, y: np.ndarray, residual: float, trace: float) -> float:
        """How far an eigenvalue may lie above the largest Ritz value, by the randomness of the start or by the trace."""
        unseen = residual * abs(float(self._start[: len(y)] @ y)) / (CHANCE * math.sqrt(math.pi / 2))
        return min(_root(unseen, values[0] - values[1:]), self._excess(float(values[0]), trace))

    def _excess(self, top: float, trace: float) -> float:
        """The larger eigenvalue of [[top, b], [b, w]], minus top, for A >= 0."""
        if not math.isfinite(trace):
            return math.inf
        w = max(0.0, trace - float(np.trace(self._H[: self._used, : self._used])))
        return (w - top) / 2 + math.hypot((top - w) / 2, float(np.linalg.norm(self._link)))

    def restart(self, values: np.ndarray, Y: np.ndarray) -> None:
        """Keep the better half of the basis, and the next rows."""
        keep = self._most // 2
        behind = self._V[self._used : self._used + self._b].copy()
        self._V[:keep] = Y[:, :keep].T @ self._V[: self._used]
        self._V[keep : keep + self._b] = behind
        self._H[:] = 0.0
        self._H[range(keep), range(keep)] = values[:keep]
        apart = np.maximum(values[0] - values[keep:], np.finfo(np.float64).tiny)
        filtered = np.prod((values[:keep, None] - values[keep:]) / apart, axis=1)  # zero for removed values, one for t_1
        self._start[:keep] = filtered * (self._start[: self._used] @ Y[:, :keep])
        self._start[keep:] = 0.0
        self._used = keep


def _root(right: float, gaps: np.ndarray) -> float:
    """The d with d prod_j (1 + d / gaps_j) = right, from above, by Newton's method in log d, a convex problem."""
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
