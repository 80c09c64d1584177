"""Sets of symmetric matrices without negative eigenvalues, with a bounded trace."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.points.factored import FactoredMatrix
from extremal.points.low_rank import LowRank, RankOne
from extremal.points.matrix import Iterate
from extremal.points.vertex import Vertex
from extremal.sets.base import ConvexSet, WarmSet, refuse_non_finite
from extremal.sets.simplices import bounds
from extremal.sets.spectral.lanczos import Smallest, smallest
from extremal.sets.spectral.nuclear import matrices_only
from extremal.sets.spectral.operators import SpectralProducts, compressed


@dataclass(frozen=True, eq=False, repr=False)
class Spectrahedron(WarmSet):
    """The spectrahedron: symmetric positive semidefinite matrices with a given trace.

        {X : X = X', X >= 0, tr X = trace},   lmo(G) = trace v v',  v an eigenvector of the smallest eigenvalue of sym(G)

    with sym(G) = (G + G') / 2. A vertex is 2 d numbers. G may be an array, a scipy sparse array, or any object with ``shape``,
    ``G @ v`` and ``G.T @ u``; the set never makes it dense. Up to d = 96, d products and an eigenproblem give the answer up to
    rounding. Beyond, Lanczos' method takes some dozens of products with G and with G', or hundreds if many eigenvalues are
    close to the smallest. The answer's ``low`` is then a bound as for `NuclearBall`:

        trace (l_min - tol l_max) <= low <= trace l_min <= <G, lmo(G)>,   l_max the largest magnitude of an eigenvalue

    The diameter is sqrt(2) trace (0 for d = 1).

    Parameters
    ----------
    trace : float
        A positive number.
    shape : tuple of int, optional
        The shape (d, d). Default: any.
    tol : float
        Accuracy of the smallest eigenvalue, relative to the largest magnitude of an eigenvalue.

    References
    ----------
    Hazan (2008), Sparse approximate solutions to semidefinite programs, LATIN.

    Examples
    --------
    >>> C = Spectrahedron(2.0)
    >>> C.lmo(np.array([[3.0, 0.0], [0.0, -4.0]])).to_array().round(9)
    array([[0., 0.],
           [0., 2.]])
    >>> C.contains(np.eye(2)), C.contains(np.array([[1.0, 1.1], [1.1, 1.0]]))
    (True, False)
    """

    matrix_free: ClassVar[bool] = True

    trace: float = 1.0
    shape: tuple[int, ...] | None = field(default=None, kw_only=True)
    tol: float = field(default=1e-8, kw_only=True)

    def __post_init__(self):
        self._fix(trace=checks.positive("Spectrahedron", "trace", self.trace), tol=_tol(self))
        matrices_only(self, square=True)

    def lmo_from(self, g: Iterate, near: Vertex | None) -> RankOne:
        """The same as ``lmo``, but ties between nearly equal directions go to one near an earlier answer. Saves no products."""
        found = _found(self, g, 1, near, self.tol)
        v = found.vectors[:, 0]
        return RankOne(self.trace * v, v, self.trace * found.low)

    def contains(self, x: np.ndarray, tol: float = 1e-9) -> bool:
        """Whether x is symmetric with eigenvalues >= 0 and this trace, up to tol trace; O(d r^2) for factors of r columns."""
        return _is_between(x, self.trace, math.inf, tol * self.trace)

    @property
    def diameter(self) -> float:
        return 0.0 if self.shape == (1, 1) else math.sqrt(2) * self.trace

    def start(self) -> FactoredMatrix:
        """The vertex trace e_0 e_0', in factors."""
        unit = np.eye(self._known_shape("start()")[0], 1)
        return FactoredMatrix(self.trace * unit, unit)

    def project(self, x: np.ndarray) -> np.ndarray:
        """Replace the eigenvalues of sym(x) by the nearest point of a simplex: an eigenproblem, O(d^3)."""
        return _with_eigenvalues_in(x, self.trace, self.trace)


@dataclass(frozen=True, eq=False, repr=False)
class Fantope(WarmSet):
    """The Fantope: the convex hull of the projectors on k-dimensional subspaces.

        {X : X = X', 0 <= X <= I, tr X = k},   lmo(G) = V V',  V eigenvectors of the k smallest eigenvalues of sym(G)

    A vertex is d k numbers, and G is as for `Spectrahedron`. For d <= max(96, 8 k + 16), d products and an eigenproblem give
    the answer up to rounding. Beyond, Lanczos' method uses a block of k + 2 vectors, and the answer's ``low`` is a bound,

        sum_i l_i - k tol l_max <= low <= sum_i l_i <= <G, lmo(G)>,   i = 1..k, the smallest eigenvalues,

    which fails only if an unseen eigenvector is nearly orthogonal to k + 2 random vectors. The diameter is
    sqrt(2 min(k, d - k)).

    Parameters
    ----------
    k : int
        Dimension of the subspaces, at most d.
    shape, tol
        As for `Spectrahedron`.

    References
    ----------
    Overton, Womersley (1992), On the sum of the largest eigenvalues of a symmetric matrix, SIAM J. Matrix Anal. Appl. 13.
    Vu, Cho, Lei, Rohe (2013), Fantope projection and selection, NeurIPS.

    Examples
    --------
    >>> C = Fantope(2)
    >>> C.lmo(np.diag([3.0, -4.0, 1.0])).to_array().round(9) + 0.0
    array([[0., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    >>> C.on((5, 5)).diameter
    2.0
    """

    matrix_free: ClassVar[bool] = True

    k: int
    shape: tuple[int, ...] | None = field(default=None, kw_only=True)
    tol: float = field(default=1e-8, kw_only=True)

    def __post_init__(self):
        self._fix(k=checks.whole("Fantope", "k", self.k, 1), tol=_tol(self))
        matrices_only(self, square=True)
        if self.shape is not None and self.k > self.shape[0]:
            raise InputError(f"`Fantope(k=...)` must be at most d for points of shape (d, d) = {self.shape}, got {self.k}")

    def lmo_from(self, g: Iterate, near: Vertex | None) -> LowRank:
        """The same as ``lmo``, but ties between nearly equal directions go to those near an earlier answer. Saves no products."""
        found = _found(self, g, self.k, near, self.tol)
        V = np.eye(self.k) if self.k == g.shape[0] else found.vectors  # the set is {I}
        return LowRank(V, V, found.low)

    def contains(self, x: np.ndarray, tol: float = 1e-9) -> bool:
        """Whether x is symmetric with eigenvalues in [0, 1] and trace k, up to tol k; O(d r^2) for factors of r columns."""
        return _is_between(x, self.k, 1.0, tol * self.k)

    @property
    def diameter(self) -> float:
        return math.sqrt(2 * min(self.k, self._known_shape("diameter")[0] - self.k))

    def start(self) -> FactoredMatrix:
        """The vertex e_0 e_0' + ... + e_{k-1} e_{k-1}', in factors."""
        first = np.eye(self._known_shape("start()")[0], self.k)
        return FactoredMatrix(first, first)

    def project(self, x: np.ndarray) -> np.ndarray:
        """Replace the eigenvalues of sym(x) by the nearest numbers in [0, 1] with sum k: an eigenproblem, O(d^3)."""
        return _with_eigenvalues_in(x, 1.0, self.k)


def _tol(C: Spectrahedron | Fantope) -> float:
    return checks.within(type(C).__name__, "tol", C.tol, 0, 0.1)


def _found(C: ConvexSet, g: Iterate, k: int, near: Vertex | None, tol: float) -> Smallest:
    A = SpectralProducts(g)
    refuse_non_finite(C, A.size)
    if A.shape[0] != A.shape[1] or k > A.shape[0]:
        raise InputError(f"{C} has points of shape (d, d) with d >= {k}, but g has shape {A.shape}")
    return smallest(A, k, near, tol)


def _is_between(x: Iterate, trace: float, most: float, slack: float) -> bool:
    """Whether x is symmetric, with this trace and eigenvalues in [0, most], all up to slack."""
    a = compressed(x)
    if not np.abs(a).max(initial=0.0) <= 2 * trace + (len(a) + 2) * slack:  # entries of X >= 0 do not exceed its trace
        return False
    if np.abs(a - a.T).max(initial=0.0) > slack or abs(float(np.trace(a)) - trace) > slack:
        return False
    values = np.linalg.eigvalsh((a + a.T) / 2)
    return bool(values.min(initial=0.0) >= -slack and values.max(initial=0.0) <= most + slack)


def _with_eigenvalues_in(x: np.ndarray, most: float, total: float) -> np.ndarray:
    """The nearest symmetric matrix with eigenvalues in [0, most] and sum total."""
    half = np.asarray(x, np.float64) / 2
    values, v = np.linalg.eigh(half + half.T)
    return (v * bounds.nearest(values, 0.0, most, total)) @ v.T
