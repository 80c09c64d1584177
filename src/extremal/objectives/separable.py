"""Any finite sum, given by callables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.objectives.base import RowIndex, Segment
from extremal.points import iterates
from extremal.points.composed import Chord
from extremal.points.vertex import Vertex
from extremal.support.memory import room
from extremal.support.rational import is_exact


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
        Whether f is convex. This decides the default steps, and whether the gap bounds f(x) - f*. Default: False.
    smoothness : float, optional
        A Lipschitz constant L of grad f, for the methods and steps that need one.
    dtype : numpy float type, or object
        Float type of x. With ``object``, x and the answers of the callables are arrays of `fractions.Fraction`, and runs are
        exact: no number is rounded, and value and gap of the result are fractions.

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
        sizes = shape if isinstance(shape, (tuple, list)) else (shape,)
        self.shape = tuple(checks.whole("Separable", "shape", m, 1) for m in sizes)
        for name, call in (("grad", grad), ("value", value)):
            if not callable(call):
                raise InputError(f"`Separable({name}=...)` must be a callable (x, idx) -> array, got {call!r}")
        self._grad, self._value = grad, value
        self.convex = checks.flag("Separable", "convex", convex)
        if dtype not in (np.float32, np.float64, "float32", "float64", object):
            raise InputError(f"`Separable(dtype=...)` must be numpy.float32, numpy.float64 or object (fractions), got {dtype!r}")
        self.dtype = np.dtype(dtype)
        self._smoothness = None if smoothness is None else checks.positive("Separable", "smoothness", smoothness)
        size = int(np.prod(self.shape)) * self.dtype.itemsize
        self._chunk = max(1, min(self.n, 2**26 // size))  # components whose gradients fit in 64 MiB

    @property
    def deriv_shape(self) -> tuple[int, ...]:
        """The derivative of a component is its whole gradient."""
        return self.shape

    @property
    def smoothness(self) -> float:
        """The given L."""
        if self._smoothness is None:
            raise InputError("this method needs a Lipschitz constant of the gradient: give `Separable(..., smoothness=L)`")
        return self._smoothness

    def value(self, x: np.ndarray) -> float:
        """f(x)."""
        if is_exact(x):
            return sum(self.values(x, idx).sum() for idx in self._chunks()) / self.n
        return sum(float(self.values(x, idx).sum(dtype=np.float64)) for idx in self._chunks()) / self.n

    def grad(self, x: np.ndarray) -> np.ndarray:
        """Full gradient, chunk by chunk."""
        total = np.zeros(self.shape, self.dtype)
        for idx in self._chunks():
            total += self.derivs(x, idx).sum(axis=0)
        return total / self.n

    def value_and_grad(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """The value and the full gradient."""
        return self.value(x), self.grad(x)

    def derivs(self, x: np.ndarray, idx: RowIndex = None) -> np.ndarray:
        """The gradients of the components idx, one per row; those of all components are written chunk by chunk to one array."""
        if idx is None:
            out = room((self.n, *self.shape), self.dtype)
            for chunk in self._chunks():
                out[chunk] = self.derivs(x, chunk)
            return out
        rows = self._answer("grad", self._grad(x, idx), self.dtype)  # a copy, because the callable may reuse its buffer
        if rows.shape != (len(idx), *self.shape):
            raise InputError(
                f"`Separable(grad=...)` must answer one gradient per index, shape {(len(idx), *self.shape)}, got {rows.shape}"
            )
        return rows

    def combine(self, c: np.ndarray, idx: RowIndex = None) -> np.ndarray:
        """(1/b) sum of the rows of c."""
        return c.mean(axis=0)

    def along(self, x: np.ndarray, s: Vertex | Chord) -> Segment:
        """f on the segment to s; a slope costs a full gradient."""
        return _Segment(self, x, Chord.to(s))

    def ready(self) -> None:
        """Do nothing: there is no slow one-time work."""

    def values(self, x: np.ndarray, idx: RowIndex = None) -> np.ndarray:
        """f_i(x) for i in idx."""
        idx = np.arange(self.n) if idx is None else idx
        values = self._answer("value", self._value(x, idx), np.dtype(object if is_exact(x) else np.float64))
        if values.shape != (len(idx),):
            raise InputError(f"`Separable(value=...)` must answer one value per index, shape ({len(idx)},), got {values.shape}")
        return values

    def _answer(self, name: str, answer: Any, dtype: np.dtype) -> np.ndarray:
        if dtype.kind == "O":
            return checks.fractions(f"answers of `Separable({name}=...)`", answer)
        array = checks.array("Separable", name, answer)
        if array.dtype.kind not in "biuf":
            raise InputError(f"`Separable({name}=...)` must answer real numbers, got dtype {array.dtype}")
        return array.astype(dtype)

    def _chunks(self):
        return (np.arange(i, min(i + self._chunk, self.n)) for i in range(0, self.n, self._chunk))


@dataclass(frozen=True)
class _Segment:
    f: Separable
    x: np.ndarray
    d: Chord

    @property
    def grads_per_slope(self) -> int:
        return self.f.n

    def value(self, t: float) -> float:
        return self.f.value(iterates.along(self.x, self.d, t))

    def slope(self, t: float) -> float:
        g = self.f.grad(iterates.along(self.x, self.d, t))
        return self.d.dot(g, iterates.inner(self.x, g))
