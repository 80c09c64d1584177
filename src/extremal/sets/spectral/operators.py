"""Matrices known only by their products."""

from __future__ import annotations

import math
from typing import Any, Protocol, runtime_checkable

import numpy as np
import scipy.sparse as sp

from extremal.checks import NonFiniteError
from extremal.points.matrix import Iterate
from extremal.support import linalg

DOUBLE = np.finfo(np.float64)


class SpectralProducts:
    """A matrix given by its products G V and G' U, divided by a power of two near its largest entry against overflow.

    G may be an array, a scipy sparse array, or any object with ``shape``, ``G @ v`` and ``G.T @ u`` for float64 vectors v and
    u. Arrays of other types are copied to float64. Products that are not finite are refused.

    Examples
    --------
    >>> A = SpectralProducts(np.array([[3e300, 0.0], [0.0, 1e300]]))
    >>> A.size, A.right(np.eye(2)).round(3)
    (3e+300, array([[0.56 , 0.   ],
           [0.   , 0.187]]))
    """

    def __init__(self, G: Any):
        if (values := _entries(G)) is None:
            self.size, e, self.eps = _probe(G)
            self.square = math.inf
        else:
            G, values = (a.astype(np.float64, copy=False) for a in (G, values))
            self.size, e = _largest(values)  # not finite if an entry is not; e is its exponent
            self.square = _square(G, values, e)  # an upper bound on |G|^2 / 4^e, infinite if unknown
            self.eps = float(DOUBLE.eps)  # rounding of the products
        self.shape: tuple[int, int] = G.shape
        self._several = values is not None  # whether G @ V works for matrices V
        self._G, self._T, self._halves = G, G.T, (math.ldexp(1.0, e // 2), math.ldexp(1.0, e - e // 2))

    def right(self, V: np.ndarray) -> np.ndarray:
        """G V / 2^e, for V of shape n x b."""
        return self._times(self._G, V)

    def left(self, U: np.ndarray) -> np.ndarray:
        """G' U / 2^e, for U of shape m x b."""
        return self._times(self._T, U)

    def unscaled(self, value: float) -> float:
        """The value times 2^e; infinite if it overflows."""
        return value * self._halves[0] * self._halves[1]

    def _times(self, G: Any, V: np.ndarray) -> np.ndarray:
        V = V / self._halves[0]
        W = G @ V if self._several else np.column_stack([G @ v for v in np.ascontiguousarray(V.T)])
        if not np.isfinite(W).all():
            raise NonFiniteError("a product with g has a NaN or an infinite entry")
        return W / self._halves[1]


def _entries(G: Any) -> np.ndarray | None:
    """The stored entries of an array or a sparse array; None for a matrix known only by products."""
    if isinstance(G, np.ndarray):
        return G
    return G.data if sp.issparse(G) and G.format in ("csr", "csc", "coo", "bsr") else None


def _largest(values: np.ndarray) -> tuple[float, int]:
    """The largest magnitude and its exponent, without a temporary."""
    size = max(float(values.max()), -float(values.min())) if values.size else 0.0
    return size, math.frexp(size)[1] if math.isfinite(size) else 0


def _probe(G: np.ndarray) -> tuple[float, int, float]:
    """The same as `_largest`, and the rounding, by a product with a random vector, which is finite if and only if G is."""
    v = np.random.default_rng(1).standard_normal(G.shape[1])
    size, eps = math.nan, math.nan
    for shift in (0, 100):  # in the second round, finite products cannot overflow
        with np.errstate(over="ignore", invalid="ignore"):
            image = G @ np.ldexp(v, -shift)
        eps = float(np.finfo(image.dtype).eps)
        size, e = _largest(image)
        if math.isfinite(size):
            return size, e + shift, eps
    return size, 0, eps


def _square(G: Any, values: np.ndarray, e: int) -> float:
    if abs(e) > DOUBLE.maxexp // 3 or (sp.issparse(G) and not G.has_canonical_format):  # duplicates to be summed
        return math.inf
    flat = values.ravel(order="K")
    return math.ldexp(float(np.vdot(flat, flat)), -2 * e) * (1 + flat.size * float(DOUBLE.eps))


@runtime_checkable
class Factored(Protocol):
    """A matrix left right', stored as factors of m x r and n x r."""

    @property
    def left(self) -> np.ndarray: ...
    @property
    def right(self) -> np.ndarray: ...


def singular_values(x: Iterate) -> np.ndarray:
    """All singular values that are not certainly zero; O((m + n) r^2) for factors. NaN if x is not finite.

    Examples
    --------
    >>> from extremal.points import LowRank
    >>> singular_values(LowRank(np.array([[3.0], [4.0]]), np.ones((4, 1)))).round(12)
    array([10.])
    """
    if isinstance(x, Factored):
        left, right = _factors(x)
        x = _triangle(left) @ _triangle(right).T
    a = np.asarray(x, np.float64)
    try:
        return linalg.svd(a, compute_uv=False)
    except np.linalg.LinAlgError:
        return np.array([math.nan])


def compressed(x: Iterate) -> np.ndarray:
    """Q'XQ for an orthonormal basis Q of the rows and columns of a square X in factors; X itself if it is an array.

    Examples
    --------
    >>> from extremal.points import LowRank
    >>> compressed(LowRank(np.eye(9, 1), 2 * np.eye(9, 1))).shape
    (2, 2)
    """
    if not isinstance(x, Factored):
        return np.asarray(x, np.float64)
    left, right = _factors(x)
    r = _triangle(np.hstack([left, right]))
    return r[:, : left.shape[1]] @ r[:, left.shape[1] :].T


def _factors(x: Factored) -> tuple[np.ndarray, np.ndarray]:
    """Left and right with two dimensions, in float64."""
    left, right = x.left, x.right
    return left.astype(np.float64).reshape(len(left), -1), right.astype(np.float64).reshape(len(right), -1)


def _triangle(a: np.ndarray) -> np.ndarray:
    """R of a = QR; not finite if a is not."""
    return np.asarray(np.linalg.qr(a, mode="r"))
