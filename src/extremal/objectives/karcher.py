"""Problems on positive definite matrices."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from extremal import checks
from extremal.checks import InputError
from extremal.objectives.separable import Separable
from extremal.points.manifolds import SPD, frame
from extremal.sets.spectral.loewner import LoewnerInterval


class KarcherMean(Separable):
    """The geometric mean of positive definite matrices, as a finite sum on the manifold `SPD`.

        f(X) = (1/n) sum_i dist(X, A_i)^2,   grad f_i(X) = -2 log_X(A_i)

    Component gradients are Riemannian, that is tangent vectors at X. Use them with the metric of `SPD`, as `GeodesicMove(SPD())`
    does; a Euclidean method would minimise something else. f is convex along geodesics, and L refers to geodesics, too. The
    Hessian of dist^2 is at most 2 c coth(c), c = r / sqrt 2, at distance r, because the curvature is at least -1/2. On
    ``interval()``, r = sqrt(d) log(largest / smallest eigenvalue of the A_i).

    Cost: one Cholesky factor, and an eigenproblem of size d for each component.

    Parameters
    ----------
    matrices : array of shape (n, d, d)
        Symmetric positive definite matrices.

    References
    ----------
    Moakher (2005), A differential geometric approach to the geometric mean of symmetric positive-definite matrices.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.KarcherMean([np.diag([1.0, 4.0]), np.diag([4.0, 1.0])])
    >>> bool(np.abs(f.grad(2 * np.eye(2))).max() < 1e-12)          # the mean is 2 I
    True
    >>> f.interval().lower.round(6)                                # the harmonic mean
    array([[1.6, 0. ],
           [0. , 1.6]])
    """

    manifold = SPD()  # the gradients are its tangent vectors

    def __init__(self, matrices: ArrayLike):
        self.matrices, spread = _check(matrices)
        n, d, _ = self.matrices.shape
        c = max(1e-3, math.sqrt(d / 2) * math.log(spread))  # c coth(c) tends to 1 at 0
        super().__init__(n, (d, d), self._grads, self._values, convex=True, smoothness=2 * c / math.tanh(c))

    def interval(self) -> LoewnerInterval:
        """The interval between the harmonic and the arithmetic mean, which contains the geometric mean."""
        harmonic = np.linalg.inv(np.linalg.inv(self.matrices).mean(axis=0))
        return LoewnerInterval((harmonic + harmonic.T) / 2, self.matrices.mean(axis=0))

    def _grads(self, x: np.ndarray, idx: np.ndarray) -> np.ndarray:
        B, w = frame(x, self.matrices[idx])
        return -2 * (B * np.log(w)[:, None, :]) @ B.swapaxes(1, 2)  # -2 log_X(A_i) = -2 B diag(log w) B'

    def _values(self, x: np.ndarray, idx: np.ndarray) -> np.ndarray:
        return (np.log(frame(x, self.matrices[idx])[1]) ** 2).sum(axis=1)  # |log w|^2


def _check(matrices: ArrayLike) -> tuple[np.ndarray, float]:
    """The matrices as one array, and the ratio of their largest to their smallest eigenvalue."""
    A = checks.array("KarcherMean", "matrices", matrices)
    if A.ndim != 3 or A.shape[1] != A.shape[2] or not A.size or A.dtype.kind not in "biuf":
        raise InputError(f"`KarcherMean(matrices=...)` must be real, of shape (n, d, d), got shape {A.shape}, {A.dtype}")
    A = checks.finite("KarcherMean", "matrices", A.astype(np.float64))
    gaps = np.abs(A - A.swapaxes(1, 2)).max(axis=(1, 2)) > 1e-10 * np.abs(A).max(axis=(1, 2))
    if gaps.any():
        raise InputError(f"`KarcherMean(matrices=...)` must be symmetric, matrix {int(gaps.argmax())} is not")
    A = (A + A.swapaxes(1, 2)) / 2
    w = np.linalg.eigvalsh(A)
    if w.min() <= 0:
        i = int(w.min(axis=1).argmin())
        raise InputError(f"`KarcherMean(matrices=...)` must be positive definite, matrix {i} has eigenvalue {w.min():g}")
    A.flags.writeable = False
    return A, float(w.max() / w.min())
