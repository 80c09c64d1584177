"""The ball of the max-norm: matrices with factors of short rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.points.low_rank import LowRank
from extremal.points.vertex import Vertex
from extremal.sets.base import WarmSet
from extremal.sets.shared import scaled_gradient
from extremal.sets.spectral.nuclear import MatrixBall
from extremal.support import linalg

MOST_SIDES = 2000  # limit for the number of rows and columns together
UPDATES = 2000  # limit for the pairs of updates in one oracle call
SMALL_SUM = 1e-128  # below this, the length of a row or column is unknown, because squares underflow
LOOK = 20  # updates between two checks of the bound, which needs a decomposition


@dataclass(frozen=True, eq=False, repr=False)
class MaxNormBall(WarmSet, MatrixBall):
    """The max-norm ball: matrices with factors whose rows are short; a convex bound on entries that favours low rank.

        {X : X = U V', every row of U and of V has length at most sqrt(radius)}
        lmo(G) = -radius U V',  U and V with rows of length one that maximise <G, U V'>

    The oracle solves a semidefinite program of size m + n, and refuses sizes beyond 2000. It works on factors with more than
    sqrt(2 (m + n)) columns, where the program has no spurious local maxima except for exceptional G. In turns, it sets the
    rows of U to those of G V divided by their lengths, and the rows of V to those of G'U, with momentum. Each turn is
    O(m n sqrt(m + n)), and a call takes dozens or hundreds of turns. The vertex has O((m + n)^1.5) numbers. Any a, b > 0 prove
    a bound,

        <G, U V'> <= |D_a^(-1/2) G D_b^(-1/2)| sqrt(sum(a) sum(b)),   |.| the largest singular value

    which becomes tight if a and b are the lengths of the rows of G V and G'U. The updates stop when the bound is within
    ``tol`` of <G, U V'>. The answer's ``low`` is this bound, which is also proven if the updates stop at their limit. The
    diameter is 2 radius sqrt(m n).

    Parameters
    ----------
    radius : float
        A positive number.
    shape : tuple of int, optional
        Rows and columns of the points. Default: any.
    tol : float
        Relative accuracy of the oracle.

    References
    ----------
    Srebro, Shraibman (2005), Rank, trace-norm and max-norm, COLT. Wang, Chang, Kolter (2017), The mixing method: low-rank
    coordinate descent for semidefinite programming with diagonal constraints, arXiv:1706.00476. Lee, Shraibman, Spalek (2008),
    A direct product theorem for discrepancy, CCC.

    Examples
    --------
    >>> C = MaxNormBall(2.0)
    >>> C.lmo(np.array([[1.0, -1.0], [1.0, 1.0]])).to_array().round(4)      # rows of U at a right angle
    array([[-1.4142,  1.4142],
           [-1.4142, -1.4142]])
    >>> round(C.norm(np.eye(3)), 6), C.contains(2 * np.ones((3, 4))), C.contains(2 * np.array([[1.0, 1.0], [1.0, -1.0]]))
    (1.0, True, False)
    """

    tol: float = field(default=1e-6, kw_only=True)

    def __post_init__(self):
        super().__post_init__()
        self._fix(tol=checks.within("MaxNormBall", "tol", self.tol, 0, 0.1))
        if self.shape is not None:
            _refuse_large(self.shape)

    def lmo_from(self, g: np.ndarray, near: Vertex | None) -> LowRank:
        """-radius U V', starting from the rows of an earlier answer, or from random rows if those lead nowhere."""
        _refuse_large(g.shape)
        u, scale = scaled_gradient(self, g)
        U, V, upper = _longest(u, _first_rows(len(u), u.shape[1], near), self.tol)
        if near is not None and upper > float(np.vdot(u, U @ V.T)) * (1 + 2 * self.tol):
            U, V, upper = _longest(u, _first_rows(len(u), u.shape[1], None), self.tol)
        return LowRank(-self.radius * U, V, -self.radius * upper * scale)

    def norm(self, x: np.ndarray) -> float:
        """The max-norm: the smallest product of the largest row lengths of U and V over x = U V'.

            max_norm(x) = max |D_p^(1/2) x D_q^(1/2)|_*   over weights p, q >= 0 that each sum to one

        Some dozens of singular value decompositions find the maximum over p and q, of a concave function. The result is proven
        to be at most the norm. It is usually smaller by a share of 1e-9, and by 1e-5 if the maximum is flat.
        """
        top = float(np.abs(x).max())
        if not 0 < top < math.inf:
            return top
        a = x.astype(np.float64) / top
        return top * _weighed(a[np.ix_(np.abs(a).max(axis=1) > 0, np.abs(a).max(axis=0) > 0)])

    def contains(self, x: np.ndarray, tol: float = 1e-9) -> bool:
        """norm(x) <= radius (1 + tol): every point of the ball passes, and perhaps some that are outside by less than 1e-5."""
        most = self.radius * (1 + tol)
        largest = float(np.abs(x).max())  # a lower bound on the norm; the longest row or column is an upper bound
        if not largest <= most:
            return False
        lengths = (largest * float(np.linalg.norm(x.astype(np.float64) / (largest or 1.0), axis=i).max()) for i in (0, 1))
        return min(lengths) <= most or self.norm(x) <= most

    @property
    def diameter(self) -> float:
        """2 radius sqrt(m n), between the constant matrices with entries radius and -radius."""
        return 2 * self.radius * math.sqrt(math.prod(self._known_shape("diameter")))


def _refuse_large(shape: tuple[int, ...]) -> None:
    if sum(shape) > MOST_SIDES:
        raise InputError(
            f"`MaxNormBall(shape=...)` must have at most {MOST_SIDES} rows and columns together, got {shape}: the oracle is a "
            "semidefinite program; use NuclearBall for large matrices"
        )


def _first_rows(m: int, n: int, near: Vertex | None) -> np.ndarray:
    """Rows of length one: V of an earlier answer, or random rows with enough columns."""
    if isinstance(near, LowRank) and near.right.shape[0] == n and len(near.left) == m:
        return _unit(near.right.astype(np.float64))[0]
    return _unit(np.random.default_rng(0).standard_normal((n, 2 + math.isqrt(2 * (m + n)))))[0]


def _unit(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The rows divided by their lengths, and the lengths; a row of zeros becomes e_0."""
    lengths = np.sqrt(np.einsum("ij,ij->i", A, A))
    if lengths.all():
        return A / lengths[:, None], lengths
    rows = A / np.where(lengths > 0, lengths, 1.0)[:, None]
    rows[lengths == 0, 0] = 1.0
    return rows, lengths


def _longest(G: np.ndarray, V: np.ndarray, tol: float) -> tuple[np.ndarray, np.ndarray, float]:
    """U, V with rows of length one and a large <G, U V'>, and a proven upper bound on <G, U V'>."""
    U, before, pace, upper = np.empty(0), V, 0, math.inf
    value = -math.inf
    for turn in range(UPDATES):
        ahead = _unit(V + pace / (pace + 3) * (V - before))[0] if pace else V
        U, new, b = _turn(G, ahead)
        if b.sum() < value and pace:  # momentum went too far
            pace = 0
            U, new, b = _turn(G, V)
        before, V, value, pace = V, new, float(b.sum()), pace + 1
        if turn % LOOK == LOOK // 2:
            upper = min(upper, _bound(G, np.linalg.norm(G @ V, axis=1), b))
            if upper <= value * (1 + tol):
                break
    return U, V, upper


def _turn(G: np.ndarray, V: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The best U for V, the best V for that U, and the lengths of the rows of G'U, which sum to <G, U V'>."""
    U = _unit(G @ V)[0]
    return U, *_unit(G.T @ U)


def _bound(G: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    """The bound from a and b, over the nonzero rows and columns of G."""
    rows, columns = np.abs(G).sum(axis=1), np.abs(G).sum(axis=0)
    G = G[np.ix_(rows > 0, columns > 0)]
    if not G.size:
        return 0.0
    a, b = (np.where(sums < SMALL_SUM, sums, np.maximum(c, 1e-12 * sums))[sums > 0] for c, sums in ((a, rows), (b, columns)))
    norm = float(np.linalg.norm(G / np.sqrt(a)[:, None] / np.sqrt(b), 2)) * (1 + 1e-14 * math.sqrt(G.size))
    return norm * math.sqrt(float(a.sum()) * float(b.sum()))


def _weighed(x: np.ndarray) -> float:
    """The largest |D_p^(1/2) x D_q^(1/2)|_*, for x without rows or columns of zeros, in the logarithms of p and q."""
    from scipy.optimize import minimize
    from scipy.special import softmax

    m = len(x)

    def objective(z: np.ndarray) -> tuple[float, np.ndarray]:
        p, q = softmax(z[:m]), softmax(z[m:])
        u, s, vt = linalg.svd(np.sqrt(p)[:, None] * x * np.sqrt(q), full_matrices=False)
        total = max(float(s.sum()), 1e-300)
        slopes = np.concatenate([(u * u) @ s / total - p, s @ (vt * vt) / total - q]) / 2
        return -math.log(total), -slopes

    options = {"maxiter": 500, "ftol": 1e-15, "gtol": 1e-9}
    found = minimize(objective, np.zeros(sum(x.shape)), jac=True, method="L-BFGS-B", options=options)
    return math.exp(-float(found.fun))
