"""Finite sums f(x) = (1/n) sum_i f_i(x): linear models, and any sum given by callables.

What fixes grad f_i is called its derivative c_i: one number for a linear model (grad f_i = c_i a_i), the gradient
itself otherwise. Estimators store and subtract derivatives only, so a table of them costs what it must and no more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.data import Data, as_data
from extremal.iterates import inner, toward
from extremal.losses import Loss, check_targets
from extremal.vertices import Vertex

Rows = np.ndarray | None  # indices of components; None means all of them


class Segment(Protocol):
    """f on the segment from x to a vertex s, as a function of the step: t -> f(x + t (s - x))."""

    @property
    def grads_per_slope(self) -> int: ...  # component gradients that one slope costs
    def value(self, t: float) -> float: ...
    def slope(self, t: float) -> float: ...  # <grad f(x + t (s - x)), s - x>


class Objective(Protocol):
    """The contract of a finite sum, all that the methods know of it."""

    @property
    def n(self) -> int: ...  # number of components
    @property
    def shape(self) -> tuple[int, ...]: ...  # shape of x
    @property
    def dtype(self) -> np.dtype: ...  # float type of x
    @property
    def convex(self) -> bool: ...
    @property
    def deriv_shape(self) -> tuple[int, ...]: ...  # shape of one c_i
    @property
    def smoothness(self) -> float: ...  # L: grad f is L-Lipschitz
    def value(self, x: np.ndarray) -> float: ...
    def grad(self, x: np.ndarray) -> np.ndarray: ...
    def value_and_grad(self, x: np.ndarray) -> tuple[float, np.ndarray]: ...
    def derivs(self, x: np.ndarray, idx: Rows = None) -> np.ndarray: ...  # c_i for i in idx
    def combine(self, c: np.ndarray, idx: Rows = None) -> np.ndarray: ...  # mean over idx of the gradients c stands for
    def along(self, x: np.ndarray, s: Vertex) -> Segment: ...


class LinearModel:
    """A loss of linear predictions.

        f(x) = (1/n) sum_i phi(<a_i, x>, y_i),   grad f(x) = (1/n) A' c,   c_i = phi'(<a_i, x>, y_i)

    A full gradient costs two passes over A; b components cost 2b rows. Tables of component gradients hold n numbers.

    Parameters
    ----------
    loss : Loss
        `Logistic`, `NonlinearLeastSquares`, `Squared`, `Huber` or your own.
    A : array or scipy sparse matrix of shape (n, d)
        One row per component. float32 stays float32, and so does x then.
    y : array of shape (n,)
        Targets; the loss says which it takes.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.eye(2), np.array([1.0, 3.0]))
    >>> f.value(np.zeros(2)), f.grad(np.zeros(2))
    (2.5, array([-0.5, -1.5]))
    >>> f.smoothness
    0.5
    """

    deriv_shape: tuple[int, ...] = ()

    def __init__(self, loss: Loss, A: Any, y: Any):
        if isinstance(loss, type) or not hasattr(loss, "deriv"):
            raise InputError(f"`LinearModel(loss=...)` must be a loss such as Logistic(), got {loss!r}")
        self.loss: Loss = loss
        self.data: Data = as_data(A)
        y = checks.array("LinearModel", "y", y)
        if y.shape != (self.data.shape[0],):
            raise InputError(f"`LinearModel(y=...)` must have shape ({self.data.shape[0]},), one per row of A, got {y.shape}")
        self.y = check_targets(loss, y, self.data.dtype)

    @property
    def n(self) -> int:
        """Number of components (rows)."""
        return self.data.shape[0]

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of x."""
        return self.data.shape[1:]

    @property
    def dtype(self) -> np.dtype:
        """Float type of the data, and of x."""
        return self.data.dtype

    @property
    def convex(self) -> bool:
        """Whether the loss is."""
        return self.loss.convex

    def value(self, x: np.ndarray) -> float:
        """f(x), one pass."""
        return _mean(self.loss.value(self.data.dot(x), self.y))

    def grad(self, x: np.ndarray) -> np.ndarray:
        """Full gradient, two passes."""
        return self.combine(self.derivs(x))

    def value_and_grad(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Both, from one product A x."""
        z = self.data.dot(x)
        return _mean(self.loss.value(z, self.y)), self.combine(self.loss.deriv(z, self.y))

    def derivs(self, x: np.ndarray, idx: Rows = None) -> np.ndarray:
        """c_i = phi'(<a_i, x>, y_i) for i in idx."""
        return self.loss.deriv(self.data.dot(x, idx), self.y if idx is None else self.y[idx])

    def combine(self, c: np.ndarray, idx: Rows = None) -> np.ndarray:
        """(1/b) sum over idx of c_i a_i."""
        return self.data.tdot(c, idx) / len(c)

    def along(self, x: np.ndarray, s: Vertex) -> Segment:
        """f on the segment to s, from the margins of both ends: a probe costs O(n) and no product."""
        z = self.data.dot(x)
        return _Margins(self.loss, self.y, z, self.data.dot_vertex(s) - z)

    @property
    def smoothness(self) -> float:
        """L = curvature * lambda_max(A'A) / n, by a dense eigenvalue or by Lanczos steps; computed once."""
        return self.loss.curvature * self._lambda_max / self.n

    @cached_property
    def _lambda_max(self) -> float:
        return _lambda_max(self.data)

    @cached_property
    def row_smoothness(self) -> np.ndarray:
        """L_i = curvature * |a_i|^2; the paper's Lt is the root of the mean of their squares."""
        return self.loss.curvature * self.data.row_norms2().astype(np.float64)


@dataclass(frozen=True)
class _Margins:
    loss: Loss
    y: np.ndarray
    z: np.ndarray  # A x
    dz: np.ndarray  # A (s - x)
    grads_per_slope: int = 0  # a slope reads margins only

    def value(self, t: float) -> float:
        return _mean(self.loss.value(self.z + t * self.dz, self.y))

    def slope(self, t: float) -> float:
        return _mean(self.loss.deriv(self.z + t * self.dz, self.y) * self.dz)


class Separable:
    """Any finite sum, given by callables that evaluate some of its components: your own model, or autodiff.

        f(x) = (1/n) sum_i f_i(x)

    Tables of component gradients hold n gradients here (n x d numbers). A full gradient is summed in chunks of at most
    64 MiB, so methods without a table need no such memory.

    Parameters
    ----------
    n : int
        Number of components.
    shape : int or tuple of int
        Shape of x.
    grad : callable (x, idx) -> array of shape (len(idx), *shape)
        One gradient per index, in the order of idx; idx is an integer array.
    value : callable (x, idx) -> array of shape (len(idx),)
        One value per index.
    convex : bool
        Whether f is convex; decides the default steps, and whether the gap bounds f(x) - f*. False unless you say so.
    smoothness : float, optional
        A Lipschitz constant L of grad f, for the methods and steps that need one.
    dtype : numpy float type
        Float type of x.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> P = np.array([[1.0, 0.0], [0.0, 1.0]])            # nearest point of the simplex to two points
    >>> f = ex.Separable(2, 2, grad=lambda x, idx: x - P[idx],
    ...                  value=lambda x, idx: 0.5 * ((x - P[idx]) ** 2).sum(axis=1), convex=True)
    >>> float(ex.minimize(f, ex.Simplex(), method=ex.FrankWolfe()).x[0])
    0.5
    """

    def __init__(
        self,
        n: int,
        shape: int | tuple[int, ...],
        grad: Callable[[np.ndarray, np.ndarray], np.ndarray],
        value: Callable[[np.ndarray, np.ndarray], np.ndarray],
        *,
        convex: bool = False,
        smoothness: float | None = None,
        dtype: Any = np.float64,
    ):
        self.n = checks.whole("Separable", "n", n, 1)
        sizes = shape if isinstance(shape, tuple) else (shape,)
        self.shape = tuple(checks.whole("Separable", "shape", m, 1) for m in sizes)
        for name, call in (("grad", grad), ("value", value)):
            if not callable(call):
                raise InputError(f"`Separable({name}=...)` must be a callable (x, idx) -> array, got {call!r}")
        self._grad, self._value = grad, value
        self.convex = bool(convex)
        self.dtype = checks.floating("Separable", "dtype", np.dtype(dtype))
        self._smoothness = None if smoothness is None else checks.positive("Separable", "smoothness", smoothness)
        size = int(np.prod(self.shape)) * self.dtype.itemsize
        self._chunk = max(1, min(self.n, 2**26 // size))  # components whose gradients fit in 64 MiB

    @property
    def deriv_shape(self) -> tuple[int, ...]:
        """A component's derivative is its whole gradient."""
        return self.shape

    @property
    def smoothness(self) -> float:
        """L as it was given."""
        if self._smoothness is None:
            raise InputError("this method needs a Lipschitz constant of the gradient: give `Separable(..., smoothness=L)`")
        return self._smoothness

    def value(self, x: np.ndarray) -> float:
        """f(x)."""
        return sum(float(self._values(x, idx).sum(dtype=np.float64)) for idx in self._chunks()) / self.n

    def grad(self, x: np.ndarray) -> np.ndarray:
        """Full gradient, chunk by chunk."""
        total = np.zeros(self.shape, self.dtype)
        for idx in self._chunks():
            total += self.derivs(x, idx).sum(axis=0)
        return total / self.n

    def value_and_grad(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Both."""
        return self.value(x), self.grad(x)

    def derivs(self, x: np.ndarray, idx: Rows = None) -> np.ndarray:
        """The gradients of the components idx, one per row; of all of them, chunk by chunk into an array of its own."""
        if idx is None:
            out = np.empty((self.n, *self.shape), self.dtype)
            for chunk in self._chunks():
                out[chunk] = self.derivs(x, chunk)
            return out
        rows = np.asarray(self._grad(x, idx), self.dtype)
        if rows.shape != (len(idx), *self.shape):
            raise InputError(
                f"`Separable(grad=...)` must answer one gradient per index, shape {(len(idx), *self.shape)}, got {rows.shape}"
            )
        return rows

    def combine(self, c: np.ndarray, idx: Rows = None) -> np.ndarray:
        """(1/b) sum of the rows of c."""
        return c.mean(axis=0)

    def along(self, x: np.ndarray, s: Vertex) -> Segment:
        """f on the segment to s; a slope costs a full gradient."""
        return _Chord(self, x, s)

    def _values(self, x: np.ndarray, idx: np.ndarray) -> np.ndarray:
        values = np.asarray(self._value(x, idx))
        if values.shape != (len(idx),):
            raise InputError(f"`Separable(value=...)` must answer one value per index, shape ({len(idx)},), got {values.shape}")
        return values

    def _chunks(self):
        return (np.arange(i, min(i + self._chunk, self.n)) for i in range(0, self.n, self._chunk))


@dataclass(frozen=True)
class _Chord:
    f: Separable
    x: np.ndarray
    s: Vertex

    @property
    def grads_per_slope(self) -> int:
        return self.f.n

    def value(self, t: float) -> float:
        return self.f.value(toward(self.x, self.s, t))

    def slope(self, t: float) -> float:
        g = self.f.grad(toward(self.x, self.s, t))
        return self.s.dot(g) - inner(self.x, g)


def _mean(values: np.ndarray) -> float:
    return float(values.mean(dtype=np.float64))


def _lambda_max(A: Data) -> float:
    """Largest eigenvalue of A'A, to a relative 1e-6 and never below it by more."""
    d = A.shape[1]
    if not A.row_norms2().any():
        return 0.0
    if d <= 64:
        columns = [A.tdot(A.dot(e)).astype(np.float64) for e in np.eye(d, dtype=A.dtype)]
        return max(0.0, float(np.linalg.eigvalsh(np.array(columns))[-1]))

    from scipy.sparse.linalg import LinearOperator, eigsh  # imported when first needed: it takes long

    def gram(v: np.ndarray) -> np.ndarray:
        return A.tdot(A.dot(v.reshape(-1).astype(A.dtype))).astype(np.float64)

    operator = LinearOperator((d, d), matvec=gram, dtype=np.float64)  # pyright: ignore
    v0 = np.random.default_rng(0).standard_normal(d)
    top = eigsh(operator, k=1, tol=1e-7, v0=v0, return_eigenvectors=False)  # pyright: ignore
    return max(0.0, float(top[0])) * (1.0 + 1e-6)
