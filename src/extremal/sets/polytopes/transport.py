"""Matrices with given row and column sums: assignments and transports."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from extremal import checks
from extremal.checks import InputError
from extremal.points.vertex import SparseVertex, Vertex
from extremal.sets.base import ConvexSet, WarmSet
from extremal.sets.polytopes.programs import Program
from extremal.sets.polytopes.rows import ProgramRows
from extremal.sets.shared import numbers, scaled_gradient
from extremal.sets.simplices import bounds


@dataclass(frozen=True, eq=False, repr=False)
class Birkhoff(bounds.ZeroFaced):
    """The Birkhoff polytope: doubly stochastic matrices, the convex hull of the permutations.

        {X : X >= 0, X 1 = 1, X' 1 = 1},   lmo(G) = the permutation matrix with the smallest sum of G

    Each oracle call solves an assignment problem, O(n^3) at worst (`scipy.optimize.linear_sum_assignment`); the vertex has n
    entries. The diameter is sqrt(2 n), the distance of two permutations that agree nowhere; it is 0 for n = 1.

    The zeros of X determine the smallest face that contains X, so away moves need no active set.

    Parameters
    ----------
    n : int
        Number of rows and columns, at least 1.

    References
    ----------
    Garber, Meshi (2016), Linear-memory and decomposition-invariant linearly convergent conditional gradient algorithm for
    structured polytopes, arXiv:1605.06492.

    Examples
    --------
    >>> C = Birkhoff(2)
    >>> C.lmo(np.array([[1.0, 0.0], [0.0, 3.0]])).to_array()
    array([[0., 1.],
           [1., 0.]])
    >>> C.away(np.array([[1.0, 0.0], [0.0, 3.0]]), np.eye(2)).to_array()    # the only vertex on that face
    array([[1., 0.],
           [0., 1.]])
    """

    n: int
    shape: tuple[int, ...] | None = field(init=False, default=None)

    def __post_init__(self):
        n = checks.whole("Birkhoff", "n", self.n, 1)
        self._fix(n=n, shape=(n, n))

    def lmo(self, g: np.ndarray) -> SparseVertex:
        return _assignment(self, scaled_gradient(self, g)[0], 1.0)

    def contains(self, x: np.ndarray, tol: float = 1e-9) -> bool:
        """Whether X >= -tol, and all sums of rows and columns are 1 up to tol."""
        return _sums(x, np.ones(self.n), np.ones(self.n), tol)

    @property
    def diameter(self) -> float:
        return math.sqrt(2 * self.n) if self.n > 1 else 0.0

    def start(self) -> np.ndarray:
        return np.full((self.n, self.n), 1 / self.n)

    def away(self, g: np.ndarray, x: np.ndarray) -> SparseVertex:
        """The permutation with the largest sum of G that uses only entries with X > 0."""
        return _assignment(self, np.where(bounds.support(x, 1.0), -scaled_gradient(self, g)[0], np.inf), 1.0)


@dataclass(frozen=True, eq=False, repr=False)
class TransportPolytope(WarmSet, bounds.ZeroFaced):
    """The transport polytope: non-negative matrices with given row and column sums.

        {X : X >= 0, X 1 = a, X' 1 = b},   lmo(G) = the cheapest plan to move a to b at costs G

    Each oracle call solves a linear program with m n variables by HiGHS, as for `Polytope`, with ``lmo_from`` if highspy is
    installed. If all entries of a and b are equal, it solves an assignment problem. Vertices have at most m + n - 1 entries,
    exact to 1e-9 of the largest of a and b. The diameter is a bound, exact if a = b = 1:

        sqrt(2 min(sum_i a_i min(a_i, max b), sum_j b_j min(b_j, max a))),   0 if a or b has one positive entry

    The zeros of X determine the smallest face that contains X, so away moves need no active set.

    Parameters
    ----------
    a, b : array
        Sums of the rows and of the columns: non-negative, with equal positive totals.

    References
    ----------
    Peyré, Cuturi (2019), Computational optimal transport, Foundations and Trends in Machine Learning 11.

    Examples
    --------
    >>> C = TransportPolytope([1.0, 2.0], [2.0, 1.0])
    >>> C.lmo(np.array([[0.0, 1.0], [1.0, 3.0]])).to_array()
    array([[0., 1.],
           [2., 0.]])
    """

    a: Any
    b: Any
    shape: tuple[int, ...] | None = field(init=False, default=None)

    def __post_init__(self):
        a, b = _mass("a", self.a), _mass("b", self.b)
        if abs(float(a.sum() - b.sum())) > 1e-10 * float(a.sum()):
            raise InputError(f"`TransportPolytope(a=..., b=...)` must have equal totals, got {a.sum():g} and {b.sum():g}")
        self._fix(a=a, b=b, shape=(len(a), len(b)))

    def lmo_from(self, g: np.ndarray, near: Vertex | None) -> Vertex:
        """The same as ``lmo``, but from the basis of ``near`` if that is the last answer and highspy is installed."""
        g = scaled_gradient(self, g)[0]
        return _assignment(self, g, float(self.a[0])) if self._even else self._program.ask(g, near)

    def contains(self, x: np.ndarray, tol: float = 1e-9) -> bool:
        """Whether X >= 0 with row sums a and column sums b, up to tol times the largest of these."""
        return _sums(x, self.a, self.b, tol * self._size)

    @property
    def diameter(self) -> float:
        """A bound: |X - Y|^2 <= |X|^2 + |Y|^2, and no entry exceeds min(a_i, b_j)."""
        a, b = self.a, self.b
        if min(np.count_nonzero(a), np.count_nonzero(b)) == 1:
            return 0.0
        rows, columns = float(a @ np.minimum(a, b.max())), float(b @ np.minimum(b, a.max()))
        return math.sqrt(2 * min(rows, columns))

    def start(self) -> np.ndarray:
        return np.multiply.outer(self.a, self.b / self.b.sum())

    def away(self, g: np.ndarray, x: np.ndarray) -> Vertex:
        """The plan with the largest sum of G X that uses only entries with X > 0."""
        g, used = scaled_gradient(self, g)[0], bounds.support(x, self._size)
        if self._even:
            return _assignment(self, np.where(used, -g, np.inf), float(self.a[0]))
        cells = np.flatnonzero(used)
        try:
            part = self._on(cells).ask(-g.reshape(-1)[cells]).to_array()
        except (RuntimeError, ValueError):  # infeasible, or without any cell
            raise bounds.not_in(self) from None
        return SparseVertex(cells[part > 0], part[part > 0], g.shape)

    @property
    def _size(self) -> float:
        return max(float(self.a.max()), float(self.b.max()))

    @property
    def _even(self) -> bool:
        """Whether this set is a scaled Birkhoff polytope."""
        return len(self.a) == len(self.b) and bool((self.a == self.a[0]).all() and (self.b == self.a[0]).all())

    @cached_property
    def _program(self) -> Program:
        return self._on(np.arange(len(self.a) * len(self.b)))

    def _on(self, cells: np.ndarray) -> Program:
        """The linear program restricted to these entries."""
        m, n = len(self.a), len(self.b)
        places = np.concatenate([cells // n, m + cells % n]), np.tile(np.arange(len(cells)), 2)
        A = sp.csr_array((np.ones(2 * len(cells)), places), shape=(m + n, len(cells)))
        b = np.concatenate([self.a, self.b * (self.a.sum() / self.b.sum())])
        return Program(ProgramRows(None, None, A, b, np.tile([0.0, np.inf], (len(cells), 1))))


def _assignment(C: ConvexSet, cost: np.ndarray, value: float) -> SparseVertex:
    from scipy.optimize import linear_sum_assignment

    try:
        rows, columns = linear_sum_assignment(cost)
    except ValueError:  # the solution would need entries with infinite costs
        raise bounds.not_in(C) from None
    return SparseVertex(rows * cost.shape[1] + columns, np.full(len(rows), value), cost.shape)


def _sums(x: np.ndarray, a: np.ndarray, b: np.ndarray, slack: float) -> bool:
    off = np.append(x.sum(axis=1, dtype=np.float64) - a, x.sum(axis=0, dtype=np.float64) - b)
    return float(x.min()) >= -slack and float(np.abs(off).max()) <= slack


def _mass(name: str, value: object) -> np.ndarray:
    v = numbers("TransportPolytope", name, value, "a vector of numbers")
    if not ((v >= 0).all() and v.any()):
        raise InputError(f"`TransportPolytope({name}=...)` must be non-negative with a positive total, got {value!r}")
    return v
