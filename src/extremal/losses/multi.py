"""Losses of several margins per row, for models with a matrix X of one column per output: z = a' X, a row of k numbers.

Values are one number per row, derivatives one row of k; both keep the float type of z.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.losses.base import Curved, Loss, MultiLoss


@dataclass(frozen=True)
class CurvatureRows:
    """Second derivatives of a loss of k margins, row by row: diag(D_i) - P_i P_i'."""

    D: np.ndarray  # (n, k)
    P: np.ndarray | None  # (n, k), or None

    def dot(self, Z: np.ndarray) -> np.ndarray:
        """The product of each row's matrix with the same row of Z."""
        out = self.D * Z
        return out if self.P is None else out - self.P * (self.P * Z).sum(axis=1, keepdims=True)

    @cached_property
    def total(self) -> np.ndarray:
        """The sum over all rows, k x k."""
        whole = np.diag(self.D.sum(axis=0, dtype=np.float64))
        return whole if self.P is None else whole - (self.P.T @ self.P).astype(np.float64)

    def mixed(self, c: int) -> np.ndarray:
        """Row c of each row's matrix, (n, k)."""
        out = np.zeros_like(self.D) if self.P is None else self.P[:, c, None] * -self.P
        out[:, c] += self.D[:, c]
        return out

    @staticmethod
    def inverse_of(total: np.ndarray) -> np.ndarray:
        """The pseudoinverse of a total, which changes intercepts by minus its product with the sum of derivatives."""
        return np.linalg.pinv(total, rcond=1e-12, hermitian=True)


@dataclass(frozen=True)
class Multinomial:
    """Multinomial logistic loss (softmax and cross-entropy), targets in {0, 1, ..., classes - 1}.

        phi(z, y) = log sum_j exp(z_j) - z_y,   phi' = p - e_y,   p_j = exp(z_j) / sum_i exp(z_i)

    The second derivative H = diag(p) - p p' has operator norm at most 1/2. Indeed v'Hv is the variance of v_j when j has
    probability p_j, and a variance is at most a quarter of the squared range (Popoviciu). So
    v'Hv <= (max v - min v)^2 / 4 <= |v|^2 / 2, with equality for two classes of probability 1/2.

    Parameters
    ----------
    classes : int
        Number k of classes, at least 2; the shape of x is (d, k).

    References
    ----------
    Böhning (1992), Multinomial logistic regression algorithm, Annals of the Institute of Statistical Mathematics 44.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> Multinomial(3).value(np.array([[0.0, 0.0, 0.0], [0.0, 1e4, 0.0]]), np.array([0, 2]))
    array([1.09861229e+00, 1.00000000e+04])
    >>> Multinomial(3).deriv(np.zeros((1, 3)), np.array([0])).round(3)
    array([[-0.667,  0.333,  0.333]])
    >>> f = ex.LinearModel(Multinomial(3), np.eye(3), [0, 1, 2])
    >>> r = ex.minimize(f, ex.L1Ball(3.0), method=ex.FrankWolfe(step=ex.steps.LineSearch()))
    >>> r.x.round(2) + 0.0                                       # the diagonal: each class has its feature
    array([[1., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """

    classes: int
    curvature = 0.5
    convex = True
    nonnegative = True
    target_shape = ()
    ends_at_zero = True

    def __post_init__(self):
        checks.fix(self, classes=checks.whole("Multinomial", "classes", self.classes, 2))

    @property
    def outputs(self) -> int:
        """k, one margin per class."""
        return self.classes

    @property
    def labels(self) -> tuple[float, ...]:
        """0, 1, ..., k - 1."""
        return tuple(map(float, range(self.classes)))

    def mean(self, z: np.ndarray) -> np.ndarray:
        """The probabilities of all classes."""
        e = np.exp(z - z.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    def far(self, y: np.ndarray) -> float:
        """A few units, as for log-odds."""
        return 3.0

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """log(1 + (exp(d_y) - 1) + sum_{j != y} exp(d_j)) - d_y with d = z - max z, so that small losses keep their digits."""
        d, own = _below_top(z), (_whole(y), np.arange(len(z)))
        d_y, e = d[own], np.exp(d, out=d)
        e[own] = 0.0
        return np.log1p(e.sum(axis=0) + np.expm1(d_y)) - d_y

    def deriv(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """p - e_y; entry y is minus the sum of the others, which keeps its digits if p_y is nearly 1."""
        d, own = _below_top(z), (_whole(y), np.arange(len(z)))
        p = np.exp(d, out=d)
        p /= p.sum(axis=0)
        p[own] = 0.0
        p[own] = -p.sum(axis=0)
        return np.ascontiguousarray(p.T)

    def curvature_rows(self, z: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """diag(p) - p p'."""
        p = _below_top(z)
        np.exp(p, out=p)
        p /= p.sum(axis=0)
        p = np.ascontiguousarray(p.T)
        return p, p


@dataclass(frozen=True)
class MultiTask:
    """The sum of one elementwise loss over several outputs: tasks that share A, and are coupled only by the set.

        phi(z, y) = sum_j loss(z_j, y_j),   phi' = (loss'(z_1, y_1), ..., loss'(z_k, y_k))

    The second derivative is diagonal, so its operator norm is at most the curvature of the inner loss.

    Parameters
    ----------
    loss : Loss
        `Squared`, `Logistic`, `Huber`, `NonlinearLeastSquares` or a user's own elementwise loss; it decides the accepted
        targets.
    outputs : int
        Number k of outputs, at least 1; targets have shape (n, k) and x has shape (d, k).

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> MultiTask(ex.Squared(), 2).value(np.array([[3.0, 1.0]]), np.array([[1.0, 0.0]]))
    array([2.5])
    >>> f = ex.LinearModel(MultiTask(ex.Squared(), 2), np.eye(2), [[1.0, 0.0], [0.0, 3.0]])
    >>> ex.minimize(f, ex.L1Ball(2.0), method=ex.FrankWolfe(step=ex.steps.LineSearch())).x.round(6)
    array([[0., 0.],
           [0., 2.]])
    """

    loss: Loss
    outputs: int

    def __post_init__(self):
        if checks.lacks(self.loss, "deriv") or isinstance(self.loss, MultiLoss):
            raise InputError(f"`MultiTask(loss=...)` must be a loss of one margin such as Squared(), got {self.loss!r}")
        checks.fix(self, outputs=checks.whole("MultiTask", "outputs", self.outputs, 1))

    @property
    def target_shape(self) -> tuple[int, ...]:
        """(k,): one target per output."""
        return (self.outputs,)

    @property
    def curvature(self) -> float:
        """The curvature of the inner loss."""
        return self.loss.curvature

    @property
    def convex(self) -> bool:
        """Whether the inner loss is convex."""
        return self.loss.convex

    @property
    def labels(self) -> tuple[float, ...] | None:
        """The labels of the inner loss."""
        return self.loss.labels

    def value(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """sum_j loss(z_j, y_j)."""
        return self.loss.value(z, y).sum(axis=1)

    def deriv(self, z: np.ndarray, y: np.ndarray) -> np.ndarray:
        """loss'(z_j, y_j) for every output j."""
        return self.loss.deriv(z, y)

    @property
    def curvature_rows(self) -> Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, None]]:
        """diag(loss''(z_j, y_j)), if the inner loss has a second derivative."""
        if not isinstance(self.loss, Curved):
            raise AttributeError(f"{self.loss!r} has no second derivative")
        second = self.loss.second
        return lambda z, y: (second(z, y), None)


def _below_top(z: np.ndarray) -> np.ndarray:
    """z - max z for each row, transposed and contiguous: sums over few classes are faster if rows are adjacent."""
    d = z.T.copy()
    d -= d.max(axis=0)
    return d


def _whole(y: np.ndarray) -> np.ndarray:
    """Targets as indices."""
    return y.astype(np.intp, copy=False)
