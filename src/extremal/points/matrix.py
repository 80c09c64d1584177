"""The common base of matrices that are not arrays: products, sums and single entries, and a dense copy only on request."""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from extremal import checks
from extremal.checks import InputError
from extremal.support.kinds import Numbers, Products

LARGEST_COPY = 4 * 2**30  # limit for a dense copy, in bytes
Scaling = Callable[[Any, float], Any]  # multiplication or division by a number


class Matrix(ABC):
    """An m x n matrix that is a value: it never changes.

    Matrices support ``A @ v`` and ``A.T @ u`` (for vectors, or several side by side), ``A.flat[indices]``, ``A + B``,
    ``A - B``, ``c * A`` and ``A / c``. ``np.asarray(A)`` makes a dense copy, up to 4 GiB.
    """

    ndim = 2
    __array_ufunc__ = None  # numpy arrays and numbers leave sums and products to this class

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """(m, n)."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype:
        """float32 or float64."""

    @property
    @abstractmethod
    def T(self) -> Products:
        """The transpose, also known by products."""

    @abstractmethod
    def __matmul__(self, v: np.ndarray) -> np.ndarray: ...

    @abstractmethod
    def _scaled_by(self, operation: Scaling, c: float) -> Self:
        """Apply the operation with a number to all entries."""

    @abstractmethod
    def _plus_matrix(self, other: Matrix) -> Matrix: ...

    @abstractmethod
    def inner(self, other: Iterate) -> float:
        """<A, B> in float64, for another matrix or an array."""

    @abstractmethod
    def entries(self, rows: ArrayLike, cols: ArrayLike) -> np.ndarray:
        """A[rows[t], cols[t]] for every t."""

    @abstractmethod
    def all_finite(self) -> bool:
        """Whether the matrix contains no NaN and no infinity."""

    @abstractmethod
    def sum(self) -> float:
        """The sum of all entries."""

    @abstractmethod
    def to_array(self) -> np.ndarray:
        """A dense copy, of any size."""

    @abstractmethod
    def astype(self, dtype: DTypeLike, copy: bool = True) -> Self:
        """The matrix in another float type; itself if it already has that type."""

    @property
    def stored(self) -> Iterate:
        """The entries as given, before duplicates are summed; the matrix itself if that is the same."""
        return self

    @property
    def size(self) -> int:
        """m n."""
        return math.prod(self.shape)

    @property
    def flat(self) -> _Flat:
        """Entries by flat index: ``A.flat[j]``, ``A.flat[indices]``."""
        return _Flat(self)

    def copy(self) -> Self:
        """The matrix itself, because it never changes."""
        return self

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        if copy is False:
            raise ValueError(f"a {type(self).__name__} has no array to share: use np.asarray")
        need = self.size * self.dtype.itemsize
        if need > LARGEST_COPY:
            what = f"{self.shape[0]} x {self.shape[1]} {type(self).__name__}"
            raise MemoryError(
                f"a dense copy of this {what} would take {need / 2**30:.1f} GiB: sets that are ``matrix_free`` need none; "
                "use `A @ v`, `A.T @ u` and `A.entries(rows, cols)`"
            )
        return self.to_array().astype(self.dtype if dtype is None else dtype, copy=False)

    def __rmatmul__(self, u: ArrayLike) -> np.ndarray:
        return (self.T @ np.asarray(u).T).T

    def __mul__(self, c: float) -> Any:
        return self._scaled_by(operator.mul, c) if np.ndim(c) == 0 else NotImplemented

    def __truediv__(self, c: float) -> Any:
        return self._scaled_by(operator.truediv, c) if np.ndim(c) == 0 else NotImplemented

    def __add__(self, other: Iterate) -> Iterate:
        if isinstance(other, np.ndarray):
            return np.asarray(self) + other
        return self._plus_matrix(other) if isinstance(other, Matrix) else NotImplemented

    def __rmul__(self, c: float) -> Self:
        return self * c

    def __radd__(self, other: Iterate) -> Iterate:
        return self + other

    def __sub__(self, other: Iterate) -> Iterate:
        return self + -other

    def __rsub__(self, other: Iterate) -> Iterate:
        return -self + other

    def __neg__(self) -> Self:
        return self * -1.0


Iterate = np.ndarray | Matrix  # iterates, and their gradients


def wide(x: Iterate) -> Any:
    """The same numbers in float64; fractions stay fractions."""
    return x if x.dtype.kind == "O" else x.astype(np.float64, copy=False)


class _Flat:
    """Entries of a matrix by flat index."""

    def __init__(self, matrix: Matrix):
        self._matrix = matrix

    def __getitem__(self, j: int | np.ndarray) -> Numbers:
        found = self._matrix.entries(*np.divmod(np.atleast_1d(j), self._matrix.shape[1]))
        return found[0] if np.ndim(j) == 0 else found


def check_positions(call: str, rows: ArrayLike, cols: ArrayLike, shape: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns as arrays of one shape; refuse entries that are not whole numbers within ``shape``, and name the first."""
    rows, cols = checks.array(call, "rows", rows), checks.array(call, "cols", cols)
    if rows.shape != cols.shape:
        raise InputError(f"`{call}(rows=..., cols=...)` must be of one shape, got {rows.shape} and {cols.shape}")
    for name, a, side in (("rows", rows, shape[0]), ("cols", cols, shape[1])):
        if a.dtype.kind not in "iu" and a.size:
            raise InputError(f"`{call}({name}=...)` must hold whole numbers, got dtype {a.dtype}")
        if a.size and not (0 <= a.min() and a.max() < side):
            t = int(np.argmax((a < 0) | (a >= side)))
            raise InputError(f"`{call}({name}=...)` must hold numbers from 0 to {side - 1}, got {a.flat[t]} at index {t}")
    return rows, cols
