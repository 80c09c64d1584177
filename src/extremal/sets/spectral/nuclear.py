"""Balls of matrix norms: bounds on the sum of the singular values, or on the largest."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.points.factored import FactoredMatrix
from extremal.points.low_rank import RankOne
from extremal.points.matrix import Iterate
from extremal.points.vertex import DenseVertex, Vertex
from extremal.sets.base import ConvexSet, WarmSet, refuse_non_finite
from extremal.sets.shared import scaled_gradient
from extremal.sets.simplices import bounds
from extremal.sets.spectral.lanczos import leading_singular
from extremal.sets.spectral.operators import SpectralProducts, singular_values
from extremal.support import linalg


@dataclass(frozen=True, eq=False, repr=False)
class MatrixBall(ConvexSet):
    """The ball of a norm of matrices, around 0."""

    radius: float
    shape: tuple[int, ...] | None = field(default=None, kw_only=True)

    def __post_init__(self):
        self._fix(radius=checks.positive(type(self).__name__, "radius", self.radius))
        matrices_only(self)

    @abstractmethod
    def norm(self, x: np.ndarray) -> float:
        """The norm of any x, inside the ball or not."""

    def contains(self, x: np.ndarray, tol: float = 1e-9) -> bool:
        return self.norm(x) <= self.radius * (1 + tol)

    def start(self) -> np.ndarray | FactoredMatrix:
        return np.zeros(self._known_shape("start()"))


@dataclass(frozen=True, eq=False, repr=False)
class NuclearBall(WarmSet, MatrixBall):
    """The nuclear norm ball: a budget on the sum of the singular values, with solutions of low rank.

        {X : sum_i sigma_i(X) <= radius},   lmo(G) = -radius u v',  u and v the leading singular vectors of G

    A vertex is m + n numbers. G may be an array, a scipy sparse array, or any object with ``shape``, ``G @ v`` and ``G.T @
    u``; the set never makes it dense. If the smaller side is at most 96, that number of products and an eigenproblem of this
    size give the answer up to rounding. Otherwise Lanczos' method takes some dozens of products with G and with G', or
    hundreds if many singular values are close to the largest. It also takes two passes over 40 vectors of the smaller side,
    and their memory. Then

        -radius sigma_1 (1 + tol) <= low <= -radius sigma_1 <= <G, lmo(G)>

    where ``low`` is the bound from which gaps are computed. If few singular values carry most of G, ``low`` is certainly below
    the minimum; for any G it is with a probability of at least 99.9%. The probability that sigma_1 is c tol above the value
    found is at most 0.1% / c. The argument is in lanczos.py. The method stops after 1000 products of each kind, which happens
    if hundreds of values are within 1e-3 of the largest. ``low`` is then as safe, but farther away. The diameter is 2 radius.
    G = 0 gives -radius e_0 e_0'.

    Parameters
    ----------
    radius : float
        A positive number.
    shape : tuple of int, optional
        Rows and columns of the points. Default: any.
    tol : float
        Relative accuracy of the largest singular value. Certified gaps do not fall below tol radius sigma_1.

    References
    ----------
    Jaggi (2013), Revisiting Frank-Wolfe: projection-free sparse convex optimization, ICML. Wu, Simon (2000), Thick-restart
    Lanczos method for large symmetric eigenvalue problems, SIAM J. Matrix Anal. Appl. 22. van Dorsselaer, Hochstenbach, van der
    Vorst (2000), Computing probabilistic bounds for extreme eigenvalues of symmetric matrices with the Lanczos method, ibid.

    Examples
    --------
    >>> C = NuclearBall(2.0)
    >>> (C.lmo(np.array([[3.0, 0.0], [0.0, -4.0]])).to_array() + 0.0).round(9)
    array([[0., 0.],
           [0., 2.]])
    >>> C.norm(np.diag([3.0, -4.0])), C.contains(np.eye(2)), C.contains(np.diag([1.0, -1.1]))
    (7.0, True, False)
    """

    matrix_free: ClassVar[bool] = True
    by_factors: ClassVar[bool] = True

    tol: float = field(default=1e-8, kw_only=True)

    def __post_init__(self):
        super().__post_init__()
        self._fix(tol=checks.within("NuclearBall", "tol", self.tol, 0, 0.1))

    def lmo_from(self, g: Iterate, near: Vertex | None) -> RankOne:
        """The same as ``lmo``, but ties between nearly equal directions go to one near an earlier answer. Saves no products."""
        A = SpectralProducts(g)
        refuse_non_finite(self, A.size)
        found = leading_singular(A, near, self.tol)
        return RankOne(-self.radius * found.left, found.right, -self.radius * found.upper)

    def norm(self, x: Iterate) -> float:
        """The sum of the singular values: O(m n min(m, n)) for an array, O((m + n) r^2) for factors of r columns."""
        return _total(singular_values(x))

    @property
    def diameter(self) -> float:
        return 2 * self.radius

    def start(self) -> FactoredMatrix:
        m, n = self._known_shape("start()")
        return FactoredMatrix.zeros((m, n))

    def project(self, x: np.ndarray) -> np.ndarray:
        """U diag(max(sigma - theta, 0)) V', with theta = 0 or the right sum, by a singular value decomposition of an array."""
        u, s, vt = linalg.svd(np.asarray(x, np.float64), full_matrices=False)
        if _total(s) > self.radius:
            s = bounds.nearest(s, 0.0, self.radius, self.radius)
            return (u * s) @ vt
        return np.array(x, np.float64)


@dataclass(frozen=True, eq=False, repr=False)
class SpectralBall(MatrixBall):
    """The ball of the operator norm: no singular value exceeds ``radius``.

        {X : sigma_1(X) <= radius},   lmo(G) = -radius U V',  G = U diag(sigma) V'

    Each oracle call takes a singular value decomposition, O(m n min(m, n)), and the vertex is dense. The diameter is 2 radius
    sqrt(min(m, n)). For zero singular values, and so for G = 0, LAPACK chooses the vectors.

    Parameters
    ----------
    radius : float
        A positive number.
    shape : tuple of int, optional
        Rows and columns of the points. Default: any.

    References
    ----------
    Jaggi (2013), Revisiting Frank-Wolfe: projection-free sparse convex optimization, ICML.

    Examples
    --------
    >>> (SpectralBall(2.0).lmo(np.array([[3.0, 0.0], [0.0, -4.0]])).to_array() + 0.0).round(9)
    array([[-2.,  0.],
           [ 0.,  2.]])
    """

    def lmo(self, g: np.ndarray) -> DenseVertex:
        u, _, vt = linalg.svd(scaled_gradient(self, g)[0], full_matrices=False)
        return DenseVertex(-self.radius * (u @ vt))

    def norm(self, x: Iterate) -> float:
        """The largest singular value: O(m n min(m, n)) for an array, O((m + n) r^2) for factors of r columns."""
        return float(singular_values(x).max(initial=0.0))

    @property
    def diameter(self) -> float:
        return 2 * self.radius * math.sqrt(min(self._known_shape("diameter")))

    def project(self, x: np.ndarray) -> np.ndarray:
        """U diag(min(sigma, radius)) V': a singular value decomposition."""
        u, s, vt = linalg.svd(np.asarray(x, np.float64), full_matrices=False)
        return (u * np.minimum(s, self.radius)) @ vt


def _total(s: np.ndarray) -> float:
    """The sum, which may be infinite."""
    with np.errstate(over="ignore"):
        return float(s.sum())


def matrices_only(C: ConvexSet, square: bool = False) -> None:
    """Refuse a shape that is not the shape of a matrix, or of a square one."""
    if C.shape is not None and (len(C.shape) != 2 or (square and C.shape[0] != C.shape[1])):
        wanted = "two equal numbers, for square matrices" if square else "two numbers, rows and columns"
        raise InputError(f"`{type(C).__name__}(shape=...)` must be {wanted}, got {C.shape}")
