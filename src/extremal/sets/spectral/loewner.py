"""Sets of symmetric matrices with bounds in the Loewner order: A <= B if B - A has no negative eigenvalue."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from extremal.checks import InputError
from extremal.points.vertex import DenseVertex
from extremal.quadratic.search import first_decrease
from extremal.sets.base import ConvexSet
from extremal.sets.shared import numbers, scaled_gradient

INNER_STEPS = 200  # upper limit for one geodesic oracle
INNER_TOL = 1e-9  # of the oracle's own gap, relative to its value


@dataclass(frozen=True)
class GeodesicVertex(DenseVertex):
    """The answer of an oracle on a manifold at x: a point z of the set, and a proven bound for all points of the set."""

    low: float = -np.inf  # <g, log_x(y)>_x >= low for every y in the set


@dataclass(frozen=True, eq=False, repr=False)
class LoewnerInterval(ConvexSet):
    """Symmetric matrices between two bounds: an interval of the Loewner order.

        {Z : lower <= Z <= upper} = {lower + P W P : 0 <= W <= I},   P = (upper - lower)^(1/2)
        lmo(G) = lower + P W P,   W the projector on the negative eigenspace of P sym(G) P

    The set solves two eigenproblems of size d once, and one per oracle call; the vertex is dense. The diameter is exact:
    |upper - lower| (Frobenius).

    If lower is positive definite, the set is also geodesically convex for the affine-invariant metric, and has an oracle
    there:

        lmo_at(G, X) = argmin over Z of <G, log_X(Z)>_X = tr(S log M),   M = C^-1 Z C^-T,  S = C^-1 G C^-T,  X = C C'

    `lmo_at` describes the method, and why no closed form exists.

    Parameters
    ----------
    lower, upper : array of shape (d, d)
        Symmetric matrices with lower <= upper.

    References
    ----------
    Weber, Sra (2022), Riemannian optimization via Frank-Wolfe methods, arXiv:1710.10770.

    Examples
    --------
    >>> C = LoewnerInterval(np.eye(2), 3 * np.eye(2))
    >>> C.lmo(np.diag([1.0, -1.0])).to_array().round(12)
    array([[1., 0.],
           [0., 3.]])
    >>> C.contains(np.array([[2.0, 0.9], [0.9, 2.0]])), C.contains(np.array([[2.0, 1.1], [1.1, 2.0]]))
    (True, False)
    """

    lower: Any
    upper: Any
    shape: tuple[int, ...] | None = field(init=False, default=None)

    def __post_init__(self):
        lower, upper = _matrix("lower", self.lower), _matrix("upper", self.upper)
        if lower.shape != upper.shape:
            raise InputError(f"`LoewnerInterval(lower=..., upper=...)` must fit one shape, got {lower.shape} and {upper.shape}")
        low = float(np.linalg.eigvalsh(upper - lower)[0])
        if low < -1e-10 * _size(lower, upper):
            raise InputError(
                f"`LoewnerInterval(lower=..., upper=...)` must have lower <= upper: upper - lower has eigenvalue {low:g}"
            )
        self._fix(lower=lower, upper=upper, shape=lower.shape)

    def lmo(self, g: np.ndarray) -> DenseVertex:
        u, _ = scaled_gradient(self, g)
        return DenseVertex(self._at(_projector(_symmetric(u), self._root)))

    def lmo_at(self, g: np.ndarray, x: np.ndarray) -> GeodesicVertex:
        """A point Z that minimises <G, log_X(Z)>_X, for a tangent vector G at X, and a proven bound on that minimum.

        With X = C C', S = C^-1 G C^-T, Lh = C^-1 lower C^-T, Uh = C^-1 upper C^-T the problem is

            min tr(S log M)  over  Lh <= M <= Uh,   Z = C M C'

        The published formula, M = Lh + P' [-sgn D]_+ P in the eigenbasis of S = Q D Q', holds only if all these matrices
        commute. It depends on the choice of P with P'P = Uh - Lh, and random feasible points beat it. For indefinite S the
        problem is not convex. So conditional gradients find Z. The derivative of M -> tr(S log M) is known in the eigenbasis
        of M; over W in M = Lh + P'WP a projector solves the linear problem, as in ``lmo``. The answer is stationary. On random
        problems with d up to 20, restarts found nothing better, or up to 1% better if the eigenvalues of the bounds span
        orders of magnitude. A call takes a dozen eigenproblems of size d, and some hundred in the latter case.

        The bound does not depend on the answer: log is operator monotone, so log M lies between log Lh and log Uh, and

            low = min tr(S Y)  over  log Lh <= Y <= log Uh

        is a linear problem with a closed form. The bound is zero exactly if the minimum is, at stationary X.

        Examples
        --------
        >>> C = LoewnerInterval(np.eye(2), 4 * np.eye(2))
        >>> z = C.lmo_at(np.diag([1.0, -1.0]), 2 * np.eye(2))     # log_X(Z) = 2 log(Z / 2)
        >>> z.to_array().round(9), round(z.low, 6)        # low = -log 2
        (array([[1., 0.],
               [0., 4.]]), -0.693147)
        """
        u, scale = scaled_gradient(self, g)
        inverse = np.linalg.inv(_cholesky(x, "x"))  # C^-1, X = C C'
        s = _sandwich(inverse, _symmetric(u))  # S = C^-1 G C^-T
        lower, root = _sandwich(inverse, self._positive), self._root @ inverse.T  # Lh; Uh - Lh = root' root
        w = _minimise_log(s, lower, root)
        return GeodesicVertex(self._at(w), scale * _bound(s, lower, _symmetric(lower + root.T @ root)))  # Z = lower + P W P

    def contains(self, x: np.ndarray, tol: float = 1e-9) -> bool:
        """Whether X is symmetric, and X - lower and upper - X have no eigenvalue below zero, up to tol times the bounds' size."""
        size = _size(self.lower, self.upper)
        slack = tol * size
        if not np.abs(x).max() <= 2 * size + slack or np.abs(x - x.T).max() > slack:
            return False
        x = _symmetric(x.astype(np.float64))
        return bool(min(np.linalg.eigvalsh(x - self.lower)[0], np.linalg.eigvalsh(self.upper - x)[0]) >= -slack)

    @property
    def diameter(self) -> float:
        """|upper - lower|: two points differ by P E P with -I <= E <= I, and tr(E K E K) <= tr(K^2), K = P^2."""
        return float(np.linalg.norm(self.upper - self.lower))

    def start(self) -> np.ndarray:
        return self.lower + (self.upper - self.lower) / 2

    @cached_property
    def _root(self) -> np.ndarray:
        """P = (upper - lower)^(1/2)."""
        return _square_root(self.upper - self.lower)

    @cached_property
    def _positive(self) -> np.ndarray:
        """The lower bound, refused unless positive definite."""
        _cholesky(self.lower, "lower")
        return self.lower

    def _at(self, w: np.ndarray) -> np.ndarray:
        return _symmetric(self.lower + self._root @ w @ self._root)  # lower + P W P


def _minimise_log(s: np.ndarray, lower: np.ndarray, root: np.ndarray) -> np.ndarray:
    """W in [0, I] that minimises tr(S log M), M = lower + root' W root: conditional gradients, from the W for log M = M - I."""
    w = _projector(s, root)
    value, g = _log_term(s, lower + root.T @ w @ root)
    for _ in range(INNER_STEPS):
        step = _projector(g, root) - w  # to the best W for the linear part
        gap = -float(np.vdot(root @ g @ root.T, step))
        if gap <= INNER_TOL * abs(value):
            break
        found = first_decrease(lambda t, w=w, step=step: _log_term(s, lower + root.T @ (w + t * step) @ root), value, -gap)
        if found is None:
            break
        t, value, g = found
        w = w + t * step
    return w


def _log_term(s: np.ndarray, m: np.ndarray) -> tuple[float, np.ndarray]:
    """tr(S log M) and its derivative in M: divided differences of log on the eigenvalues of M (Daleckii, Krein)."""
    a, q = np.linalg.eigh(_symmetric(m))
    t = q.T @ s @ q
    rise = a[:, None] - a  # a_i - a_j
    with np.errstate(invalid="ignore"):
        slopes = np.where(rise == 0, 1 / a, np.log1p(rise / a) / rise)  # (log a_i - log a_j) / (a_i - a_j)
    return float(np.log(a) @ np.diag(t)), _symmetric(q @ (t * slopes) @ q.T)


def _bound(s: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> float:
    """min tr(S Y) over log lower <= Y <= log upper: tr(S log lower) and the negative eigenvalues of P S P."""
    low = _function(np.log, lower)
    root = _square_root(_function(np.log, upper) - low)
    return float(np.vdot(s, low)) + float(np.minimum(np.linalg.eigvalsh(_symmetric(root @ s @ root)), 0).sum())


def _projector(g: np.ndarray, root: np.ndarray) -> np.ndarray:
    """The projector on the negative eigenspace of root G root': argmin <root G root', W> over 0 <= W <= I."""
    a, q = np.linalg.eigh(_symmetric(root @ g @ root.T))
    q = q[:, a < 0]
    return q @ q.T


def _function(f: Callable[[np.ndarray], np.ndarray], a: np.ndarray) -> np.ndarray:
    """f of a symmetric matrix, applied to its eigenvalues."""
    w, q = np.linalg.eigh(a)
    return _symmetric((q * f(w)) @ q.T)


def _square_root(a: np.ndarray) -> np.ndarray:
    return _function(lambda w: np.sqrt(np.maximum(w, 0)), a)  # rounding may leave small negative eigenvalues


def _symmetric(a: np.ndarray) -> np.ndarray:
    return (a + a.T) / 2


def _sandwich(b: np.ndarray, a: np.ndarray) -> np.ndarray:
    return _symmetric(b @ a @ b.T)


def _size(*matrices: np.ndarray) -> float:
    return max(float(np.linalg.norm(a, 2)) for a in matrices)


def _cholesky(a: np.ndarray, name: str) -> np.ndarray:
    try:
        return np.linalg.cholesky(a)
    except np.linalg.LinAlgError:
        raise InputError(f"`LoewnerInterval.lmo_at` works only on positive definite matrices, but {name} is not one") from None


def _matrix(name: str, value: object) -> np.ndarray:
    """A read-only symmetric matrix of floats."""
    a = numbers("LoewnerInterval", name, value, "a square matrix of numbers")
    if np.abs(a - a.T).max() > 1e-10 * np.abs(a).max():
        raise InputError(f"`LoewnerInterval({name}=...)` must be symmetric")
    a = _symmetric(a)
    a.flags.writeable = False
    return a
