"""Gradients of functions of some entries of a matrix: they are zero except at the observed positions."""

from __future__ import annotations

import operator
from functools import cached_property, reduce
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike

from extremal import checks
from extremal.kernels.arguments import kernels
from extremal.points.factored import FactoredMatrix
from extremal.points.matrix import Iterate, Matrix, Scaling, check_positions
from extremal.support.kinds import Products


class Positions:
    """Positions (rows[t], cols[t]), t = 0, 1, ..., of an m x n matrix, in any order and with repeats.

    When a product first needs their order by rows, two counting sorts find it once.
    """

    def __init__(self, rows: np.ndarray, cols: np.ndarray, shape: tuple[int, int]):
        self.rows, self.cols, self.shape = rows, cols, shape

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, at: np.ndarray) -> Positions:
        """A selection of the positions."""
        return Positions(self.rows[at], self.cols[at], self.shape)

    @cached_property
    def layout(self) -> tuple[np.ndarray | None, np.ndarray, np.ndarray]:
        """(order, starts, indices) by row, then column; order is None if already sorted. Row i starts at starts[i]."""
        kind = np.int32 if max(len(self), *self.shape) < 2**31 else np.int64
        order = np.arange(len(self), dtype=kind)
        starts = np.zeros(1, kind)
        for keys, side in ((self.cols, self.shape[1]), (self.rows, self.shape[0])):
            before, order, starts = order, np.empty_like(order), np.zeros(side + 1, kind)
            kernels("positions").arrange(keys, before, starts, order)
        indices = self.cols[order].astype(kind, copy=False)
        return (None if (order[1:] > order[:-1]).all() else order), starts, indices

    def by_rows(self, values: np.ndarray) -> sp.csr_array:
        """The sparse array with these values; repeated positions stay separate."""
        order, starts, indices = self.layout
        data = values
        if order is not None:
            data = np.empty_like(values)
            kernels("positions").pick(values, order, data)
        found = sp.csr_array((data, indices, starts), shape=self.shape)
        found.has_sorted_indices, found.has_canonical_format = True, self.most == 1  # so that scipy does not check
        return found

    @cached_property
    def most(self) -> int:
        """The number of repeats of the most frequent position."""
        return int(kernels("positions").repeats(*self.layout[1:]))

    def __getstate__(self) -> dict[str, object]:
        return {"rows": self.rows, "cols": self.cols, "shape": self.shape}


class Observed(Matrix):
    """A matrix that is zero except at given positions: the gradient of a function of these entries.

        G = sum_t values[t] e_{rows[t]} e_{cols[t]}'

    The gradient of a batch stores only the numbers of the batch, until it meets others. Products are those of a sparse matrix,
    which the first product builds.

    Parameters
    ----------
    positions : Positions
    values : array
        One value per position, in the same order; values of repeated positions add up.
    at : array of int, optional
        The positions of the values, in any order and with repeats; all other positions are zero.

    Examples
    --------
    >>> import numpy as np
    >>> G = Observed(Positions(np.array([0, 1]), np.array([2, 0]), (2, 3)), np.array([1.0, -2.0]))
    >>> G @ np.ones(3), G.T @ np.ones(2), float(G.flat[2])
    (array([ 1., -2.]), array([-2.,  0.,  1.]), 1.0)
    >>> np.asarray(2 * G)
    array([[ 0.,  0.,  2.],
           [-4.,  0.,  0.]])
    """

    def __init__(self, positions: Positions, values: np.ndarray, at: np.ndarray | None = None):
        self.positions, self.values, self.at = positions, values.view(), at
        self.values.flags.writeable = False

    @property
    def stored(self) -> np.ndarray:
        return self.values

    @property
    def shape(self) -> tuple[int, int]:
        return self.positions.shape

    @property
    def dtype(self) -> np.dtype:
        return self.values.dtype

    @property
    def T(self) -> Products:
        """The transpose, a scipy sparse array."""
        return self.sparse.T

    @property
    def full(self) -> np.ndarray:
        """The values at all positions."""
        if self.at is None:
            return self.values
        values = np.zeros(len(self.positions), self.dtype)
        kernels("positions").scatter(values, self.values, self.at)
        return values

    @cached_property
    def sparse(self) -> sp.csr_array:
        """The matrix as a scipy sparse array; repeated positions stay separate."""
        return (self.positions if self.at is None else self.positions.take(self.at)).by_rows(self.values)

    def __repr__(self) -> str:
        return f"Observed({self.shape[0]} x {self.shape[1]}, {len(self.values)} entries)"

    def __matmul__(self, v: np.ndarray) -> np.ndarray:
        return self.sparse @ v

    def _scaled_by(self, operation: Scaling, c: float) -> Observed:
        return Observed(self.positions, operation(self.values, c), self.at)

    def _plus_matrix(self, other: Matrix) -> Matrix:
        if not (isinstance(other, Observed) and other.positions is self.positions):
            return MatrixSum((self, other))
        if self.at is None and other.at is None:
            return Observed(self.positions, self.values + other.values)
        if self.at is not None and other.at is not None and 4 * (len(self.at) + len(other.at)) < len(self.positions):
            values, at = np.concatenate([self.values, other.values]), np.concatenate([self.at, other.at])
            return Observed(self.positions, values, at)
        some, more = (self, other) if self.at is not None else (other, self)
        values = more.full.astype(np.result_type(some.values, more.values))  # a copy
        kernels("positions").scatter(values, some.values, some.at)
        return Observed(self.positions, values)

    def inner(self, other: Iterate) -> float:
        """<G, X> in float64: one product per value, given the entries of X."""
        if isinstance(other, Observed):
            return float(self.astype(np.float64).sparse.multiply(other.astype(np.float64).sparse).sum())
        if isinstance(other, MatrixSum):
            return other.inner(self)
        values = self.values.astype(np.float64, copy=False)
        return float(values @ read_entries(other, self.positions, self.at).astype(np.float64, copy=False))

    def entries(self, rows: ArrayLike, cols: ArrayLike) -> np.ndarray:
        """G[rows[t], cols[t]] for every t, found by bisection."""
        rows, cols = check_positions("entries", rows, cols, self.shape)
        out = np.empty(rows.shape, self.dtype)
        A, flat = self.sparse, (a.reshape(-1) for a in (rows, cols, out))
        kernels("positions").lookup(A.indptr, A.indices, A.data, *flat)
        return out

    def all_finite(self) -> bool:
        return checks.all_finite(self.values)

    def sum(self) -> float:
        return float(self.values.sum())

    def to_array(self) -> np.ndarray:
        return self.sparse.toarray()

    def astype(self, dtype: DTypeLike, copy: bool = True) -> Observed:
        return self if self.dtype == dtype else Observed(self.positions, self.values.astype(dtype), self.at)

    def __getstate__(self) -> dict[str, object]:
        return {"positions": self.positions, "values": self.values, "at": self.at}


class MatrixSum(Matrix):
    """A sum of matrices, each known by its products, for example a gradient and the pull of a proximal term."""

    def __init__(self, terms: tuple[Any, ...]):
        self.terms = terms  # each is a `Matrix`; in a transpose also a scipy sparse array

    @property
    def shape(self) -> tuple[int, int]:
        return self.terms[0].shape

    @property
    def dtype(self) -> np.dtype:
        """The widest type among the terms."""
        return np.result_type(*(a.dtype for a in self.terms))

    @property
    def T(self) -> MatrixSum:
        return MatrixSum(tuple(a.T for a in self.terms))

    def __repr__(self) -> str:
        return f"MatrixSum{self.terms}"

    def __matmul__(self, v: np.ndarray) -> np.ndarray:
        return reduce(operator.add, (a @ v for a in self.terms))

    def _scaled_by(self, operation: Scaling, c: float) -> MatrixSum:
        return MatrixSum(tuple(operation(a, c) for a in self.terms))

    def _plus_matrix(self, other: Matrix) -> MatrixSum:
        return MatrixSum((*self.terms, other))

    def inner(self, other: Iterate) -> float:
        return sum(a.inner(other) for a in self.terms)

    def entries(self, rows: ArrayLike, cols: ArrayLike) -> np.ndarray:
        return reduce(operator.add, (a.entries(rows, cols) for a in self.terms))

    def all_finite(self) -> bool:
        return all(a.all_finite() for a in self.terms)

    def sum(self) -> float:
        return sum(a.sum() for a in self.terms)

    def to_array(self) -> np.ndarray:
        return reduce(operator.add, (a.to_array() for a in self.terms))

    def astype(self, dtype: DTypeLike, copy: bool = True) -> MatrixSum:
        return MatrixSum(tuple(a.astype(dtype) for a in self.terms))


def read_entries(x: Iterate, positions: Positions, at: np.ndarray | None = None) -> np.ndarray:
    """The entries of a matrix at all positions, or at some; for factored matrices, those at all positions are cached."""
    rows, cols = (positions.rows, positions.cols) if at is None else (positions.rows[at], positions.cols[at])
    if isinstance(x, FactoredMatrix):
        return x.image(positions, rows, cols) if at is None else x.gather(rows, cols)
    return x.entries(rows, cols) if isinstance(x, Matrix) else x[rows, cols]
