"""The space of the iterates: flat, or a manifold with geodesics and transport."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from extremal.checks import InputError

_NOT_A_POINT = "SPD: a point must be a symmetric positive definite matrix of finite numbers"


class Manifold(Protocol):
    """The contract of a manifold; tangent vectors are arrays of the shape of a point."""

    def inner(self, x: np.ndarray, u: np.ndarray, v: np.ndarray) -> float: ...  # <u, v> in the tangent space at x
    def log(self, x: np.ndarray, z: np.ndarray) -> np.ndarray: ...  # the tangent vector at x that points to z
    def geodesic(self, x: np.ndarray, z: np.ndarray, t: float) -> np.ndarray: ...  # from x (t = 0) to z (t = 1)
    def transport(self, x: np.ndarray, z: np.ndarray, v: np.ndarray) -> np.ndarray: ...  # v, from the tangent space at x to z's


@dataclass(frozen=True)
class Euclidean:
    """Flat space: geodesics are segments, and transport changes nothing.

    Examples
    --------
    >>> import numpy as np
    >>> Euclidean().geodesic(np.array([0.0]), np.array([2.0]), 0.25)
    array([0.5])
    """

    def inner(self, x: np.ndarray, u: np.ndarray, v: np.ndarray) -> float:
        """<u, v>."""
        return float(np.vdot(u, v))

    def log(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        """Z - x."""
        return z - x

    def geodesic(self, x: np.ndarray, z: np.ndarray, t: float) -> np.ndarray:
        """(1 - t) x + t z."""
        return (1 - t) * x + t * z

    def transport(self, x: np.ndarray, z: np.ndarray, v: np.ndarray) -> np.ndarray:
        """V."""
        return v


@dataclass(frozen=True)
class SPD:
    """Symmetric positive definite matrices with the affine-invariant metric <U, V>_X = tr(X^-1 U X^-1 V).

    Two points have a common frame B with X = B B' and Z = B diag(w) B', by a Cholesky factor of X and one eigenproblem. In it

        log_X(Z) = B diag(log w) B',   geodesic(t) = B diag(w^t) B',   dist(X, Z) = |log w|,
        transport(V) = E V E' with E = B diag(sqrt w) B^-1 = (Z X^-1)^(1/2)

    Each operation is O(d^3). The curvature is between -1/2 and 0, so exactly one geodesic joins any two points. Congruences X
    -> G X G' are isometries.

    References
    ----------
    Bhatia (2007), Positive Definite Matrices, chapter 6.

    Examples
    --------
    >>> import numpy as np
    >>> SPD().geodesic(np.eye(2), np.diag([4.0, 9.0]), 0.5).round(12)
    array([[2., 0.],
           [0., 3.]])
    """

    def inner(self, x: np.ndarray, u: np.ndarray, v: np.ndarray) -> float:
        """tr(X^-1 U X^-1 V)."""
        inverse = np.linalg.inv(_root(x))
        return float(np.vdot(inverse @ u @ inverse.T, inverse @ v @ inverse.T))

    def log(self, x: np.ndarray, z: np.ndarray) -> np.ndarray:
        """B diag(log w) B'."""
        B, w = frame(x, z)
        return _symmetric((B * np.log(w)) @ B.T)

    def geodesic(self, x: np.ndarray, z: np.ndarray, t: float) -> np.ndarray:
        """B diag(w^t) B'."""
        B, w = frame(x, z)
        return _symmetric((B * w**t) @ B.T)

    def transport(self, x: np.ndarray, z: np.ndarray, v: np.ndarray) -> np.ndarray:
        """E V E', E = B diag(sqrt w) B^-1."""
        B, w = frame(x, z)
        move = (B * np.sqrt(w)) @ np.linalg.inv(B)
        return _symmetric(move @ v @ move.T)

    def dist(self, x: np.ndarray, z: np.ndarray) -> float:
        """|log w|, the length of the geodesic."""
        return float(np.linalg.norm(np.log(frame(x, z)[1])))

    def gradient(self, x: np.ndarray, g: np.ndarray) -> np.ndarray:
        """X sym(G) X: the Riemannian gradient of a function with Euclidean gradient G."""
        return _symmetric(x @ _symmetric(g) @ x)


def _symmetric(a: np.ndarray) -> np.ndarray:
    return (a + a.swapaxes(-1, -2)) / 2


def _root(x: np.ndarray) -> np.ndarray:
    """C lower triangular with X = C C'."""
    try:
        return np.linalg.cholesky(x)
    except np.linalg.LinAlgError:
        raise InputError(_NOT_A_POINT) from None


def frame(x: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """B and w > 0 with X = B B', Z = B diag(w) B'; one pair per Z, if z is a stack."""
    root = _root(x)
    inverse = np.linalg.inv(root)
    try:
        w, q = np.linalg.eigh(_symmetric(inverse @ z @ inverse.T))  # C^-1 Z C^-T = Q diag(w) Q'
    except np.linalg.LinAlgError:  # a NaN
        raise InputError(_NOT_A_POINT) from None
    if not (w > 0).all():
        raise InputError(_NOT_A_POINT)
    return root @ q, w
