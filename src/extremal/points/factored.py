"""Matrices in factors, X = left right': steps toward vertices of low rank make them without ever forming the matrix."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from extremal import checks
from extremal.checks import InputError, NonFiniteError
from extremal.points.composed import Combination
from extremal.points.low_rank import FactorBuffer, LowRank, RankOne
from extremal.points.matrix import Iterate, Matrix, Scaling, check_positions, wide
from extremal.points.vertex import DenseVertex, Vertex
from extremal.support import linalg

SMALLEST = 1e-12  # limit for the factor that all columns share: below it, the columns are rescaled
FactorPair = tuple[np.ndarray, np.ndarray]  # m x r and n x r


class FactoredMatrix(Matrix):
    """An m x n matrix of rank at most r, X = left right', in (m + n) r numbers.

    The matrix is a value, like a read-only array. A step (1 - eta) X + eta s toward a vertex s of rank one makes a new matrix
    from m + n numbers. Columns are only added, and the versions of an iterate share them. There is no bound on the rank. But
    beyond 2 r + min(64, m, n) columns, for r columns at the last check, `compressed` reduces them to the rank of X if that is
    smaller.

    ``X @ v``, ``X.T @ u``, ``X.flat[j]``, sums, differences and multiples need no dense copy; ``np.asarray(X)`` makes one, up
    to 4 GiB.

    Parameters
    ----------
    left : array of shape (m, r)
    right : array of shape (n, r)

    Examples
    --------
    >>> import numpy as np
    >>> X = FactoredMatrix(np.array([[1.0], [2.0]]), np.array([[3.0], [0.0], [4.0]]))
    >>> X, X.rank, X @ np.ones(3)
    (FactoredMatrix(2 x 3, rank 1), 1, array([ 7., 14.]))
    >>> np.asarray(X)
    array([[3., 0., 4.],
           [6., 0., 8.]])
    >>> X.entries([0, 1], [2, 0]), round(X.norm_nuclear() ** 2, 9)
    (array([4., 6.]), 125.0)
    """

    def __init__(self, left: ArrayLike, right: ArrayLike):
        left, right = _factor("left", left), _factor("right", right)
        if left.shape[1] != right.shape[1]:
            sizes = f"{left.shape[1]} and {right.shape[1]}"
            raise InputError(f"`FactoredMatrix(left=..., right=...)` must have the same number of columns, got {sizes}")
        dtype = np.result_type(left, right)
        self._columns, self.rank = FactorBuffer(left.astype(dtype), right.astype(dtype)), left.shape[1]
        self._scale = 1.0  # X = scale left[:, :rank] right[:, :rank]'

    @classmethod
    def _of(cls, columns: FactorBuffer, rank: int, scale: float = 1.0) -> FactoredMatrix:
        new = cls.__new__(cls)
        new._columns, new.rank, new._scale = columns, rank, scale
        return new

    @classmethod
    def zeros(cls, shape: tuple[int, int], dtype: DTypeLike = np.float64) -> FactoredMatrix:
        """The zero matrix, without any columns."""
        m, n = (checks.whole("FactoredMatrix.zeros", "shape", side, 1) for side in shape)
        return cls(np.zeros((m, 0), dtype), np.zeros((n, 0), dtype))

    @property
    def left(self) -> np.ndarray:
        """A copy of the m x r factor, including the scale."""
        return self._columns.left[:, : self.rank] * self.dtype.type(self._scale)

    @property
    def right(self) -> np.ndarray:
        """The n x r factor, read-only."""
        view = self._columns.right[:, : self.rank]
        view.flags.writeable = False
        return view

    @property
    def shape(self) -> tuple[int, int]:
        return len(self._columns.left), len(self._columns.right)

    @property
    def dtype(self) -> np.dtype:
        return self._columns.left.dtype

    @property
    def T(self) -> FactoredMatrix:
        """The transpose, with the same columns."""
        return self._of(FactorBuffer(self.right, self._columns.left[:, : self.rank]), self.rank, self._scale)

    def __repr__(self) -> str:
        return f"FactoredMatrix({self.shape[0]} x {self.shape[1]}, rank {self.rank})"

    def __reduce__(self) -> tuple[object, ...]:
        return FactoredMatrix, self.factors()

    def in_problem(self) -> dict[str, np.ndarray]:
        """What a checkpoint compares of a start: its factors, and no room for more."""
        return {"left": self.left, "right": self.right}

    def __matmul__(self, v: np.ndarray) -> np.ndarray:
        return self._scale * (self._columns.left[:, : self.rank] @ (self.right.T @ v))

    def _scaled_by(self, operation: Scaling, c: float) -> FactoredMatrix:
        return self._of(self._columns, self.rank, operation(self._scale, float(c)))

    def _plus_matrix(self, other: Matrix) -> FactoredMatrix:
        if not isinstance(other, FactoredMatrix):
            return NotImplemented
        if other._columns is self._columns:
            return self._with_version(other)
        return self._renewed([(1.0, self.factors()), (1.0, other.factors())])

    def _with_version(self, other: FactoredMatrix) -> FactoredMatrix:
        """The sum with another version of the same matrix, with as many columns as the longer one."""
        long, short = (self, other) if self.rank >= other.rank else (other, self)
        left = long.left
        left[:, : short.rank] += short.left
        return self._of(FactorBuffer(left, long.right, self._columns.limit), long.rank)

    def factors(self) -> FactorPair:
        """The two factors, left and right."""
        return self.left, self.right

    def to_array(self) -> np.ndarray:
        return self.left @ self.right.T

    def astype(self, dtype: DTypeLike, copy: bool = True) -> FactoredMatrix:
        return self if self.dtype == dtype else FactoredMatrix(self.left.astype(dtype), self.right.astype(dtype))

    def all_finite(self) -> bool:
        """Whether the factors contain no NaN and no infinity."""
        return all(checks.all_finite(a) for a in self.factors())

    def sum(self) -> float:
        return float(self.left.sum(axis=0, dtype=np.float64) @ self.right.sum(axis=0, dtype=np.float64))

    def entries(self, rows: ArrayLike, cols: ArrayLike) -> np.ndarray:
        """X[rows[t], cols[t]] for every t, with r products each."""
        return self.gather(*check_positions("entries", rows, cols, self.shape))

    def gather(self, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """The same as ``entries``, for checked positions."""
        return self._scaled(self._columns.gather(self.rank, rows, cols))

    def image(self, key: Hashable, rows: np.ndarray, cols: np.ndarray) -> np.ndarray:
        """The same as ``gather``, cached for the lifetime of ``key``: the next version pays only for its new columns."""
        return self._scaled(self._columns.image(self.rank, key, rows, cols))

    def inner(self, other: Iterate) -> float:
        """<X, Y> in float64: O((m + n) r) per step for X itself, O((m + n) r r') for factors, r products for others."""
        if other is self:
            return self._scale * self._scale * self._columns.norm2(self.rank)
        if isinstance(other, FactoredMatrix):
            return float(np.vdot(wide(other.left).T @ wide(self.left), wide(other.right).T @ wide(self.right)))
        if isinstance(other, np.ndarray):
            return float(np.vdot(wide(self.left), wide(other) @ wide(self.right)))
        return other.inner(self)

    def norm_nuclear(self) -> float:
        """The sum of the singular values: O((m + n) r^2)."""
        return float(self._decomposed()[2].sum())

    def plus(self, own: float, terms: Iterable[tuple[float, FactorPair]] = ()) -> FactoredMatrix:
        """own X + sum_j c_j left_j right_j': a step, at the cost of the new columns."""
        terms, scale = [(c, pair) for c, pair in terms if c != 0], own * self._scale
        if not terms:
            return self * own
        if self.rank == 0 or abs(scale) < SMALLEST:
            return self._renewed([(own, self.factors()), *terms] if scale else terms).bounded()
        columns, rank = self._columns, self.rank
        for c, (left, right) in terms:
            columns, rank = columns.append(rank, left * (c / scale), right)
        return self._of(columns, rank, scale).bounded()

    def compressed(self, tol: float | None = None) -> FactoredMatrix:
        """X with as few columns as its rank: drop the smallest singular values, whose sum is at most ``tol`` |X|_*.

        The remaining values are scaled up to keep the nuclear norm, and so the trace if X is symmetric without negative
        eigenvalues: X stays in a nuclear ball, or on a spectrahedron. X changes by at most 2 tol |X|_*. Steps use the
        tolerance 5e-13 (5e-7 in float32), so that X changes by 1e-12 |X|_*. The cost is O((m + n) r^2).
        """
        tol = (5e-13 if self.dtype == np.float64 else 5e-7) if tol is None else checks.at_least("compressed", "tol", tol, 0)
        q_left, q_right, s, u, vt = self._decomposed()
        total = s.sum()
        keep = int(np.sum(np.cumsum(s[::-1])[::-1] > tol * total))
        if keep == 0:
            return self.zeros(self.shape, self.dtype)
        s = s[:keep] * (total / s[:keep].sum())
        return FactoredMatrix(q_left @ (u[:, :keep] * s), q_right @ vt[:keep].T)

    def _scaled(self, a: np.ndarray) -> np.ndarray:
        return a if self._scale == 1 else np.multiply(a, self._scale, out=a)

    def bounded(self) -> FactoredMatrix:
        """X, compressed if a check of the rank is due."""
        return self.compressed() if self.rank > self._columns.limit else self

    def _renewed(self, terms: list[tuple[float, FactorPair]]) -> FactoredMatrix:
        """sum_j c_j left_j right_j', with its own columns."""
        columns = FactorBuffer(*joined(self.dtype, terms), self._columns.limit)
        return self._of(columns, columns.used)

    def _decomposed(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Q1, Q2, s, U, V' with X = Q1 U diag(s) V' Q2'."""
        (q1, r1), (q2, r2) = (np.linalg.qr(a) for a in self.factors())
        try:
            u, s, vt = linalg.svd(r1 @ r2.T, full_matrices=False)
        except np.linalg.LinAlgError:
            raise NonFiniteError("a FactoredMatrix holds a NaN or an infinity") from None
        return q1, q2, s, u, vt


def factors(v: Vertex) -> FactorPair:
    """Factors of a vertex: its own, or a dense copy and an identity matrix."""
    if isinstance(v, RankOne):
        return v.left[:, None], v.right[:, None]
    if isinstance(v, LowRank):
        return v.left, v.right
    if isinstance(v, Combination):
        return joined(np.dtype(np.float64), [(c, factors(u)) for c, u in v.terms])
    if isinstance(v, DenseVertex) and isinstance(v.values, FactoredMatrix):
        return v.values.factors()
    a = v.to_array()
    return (np.eye(len(a)), a.T) if a.shape[0] <= a.shape[1] else (a, np.eye(a.shape[1]))


def joined(dtype: np.dtype, terms: list[tuple[float, FactorPair]]) -> FactorPair:
    """Factors of sum_j c_j left_j right_j', in new arrays."""
    left, right = np.hstack([c * left for c, (left, _) in terms]), np.hstack([right for _, (_, right) in terms])
    return left.astype(dtype, copy=False), right.astype(dtype, copy=False)


def _factor(name: str, a: ArrayLike) -> np.ndarray:
    a = checks.array("FactoredMatrix", name, a)
    if a.ndim != 2 or len(a) == 0:
        raise InputError(f"`FactoredMatrix({name}=...)` must have two dimensions, rows and columns, got shape {a.shape}")
    return a.astype(checks.floating("FactoredMatrix", name, a.dtype), copy=False)
