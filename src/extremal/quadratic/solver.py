"""The one solver for quadratic functions over weights, between bounds, or over the hull of atoms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from extremal.kernels.arguments import kernels, locked, writable
from extremal.points.active import ActiveSet, as_atom
from extremal.points.factored import FactoredMatrix, factors
from extremal.points.iterates import freeze
from extremal.points.low_rank import LowRank, RankOne
from extremal.points.matrix import Iterate
from extremal.points.vertex import Coordinate, SparseVertex, Vertex
from extremal.quadratic.search import workable
from extremal.support import clock
from extremal.support.kinds import Symmetric

if TYPE_CHECKING:
    from extremal.kernels.bounded import QuadraticProblem
    from extremal.kernels.factors import Factor


ROUNDS = 50  # largest number of rounds of the active-set method
LONGEST = 100  # largest number of iterations of conjugate gradients in a round
WEIGHT_NOISE = 4 * np.finfo(np.float64).eps  # a weight of this size is rounding, and its atom is dropped
SETTLE_ROUNDS = 100  # largest number of rounds of the quadratic problem between two oracle calls
UNTIMED = 10**5  # entries of a matrix for which all rounds together are too fast to time


@dataclass(frozen=True)
class Quadratic:
    """q(w) = g'd + d'Hd / 2 with d = u - x, u_j = the sum of scale_a w_a over the variables a with place_a = j.

    The domain is weights w >= 0 of sum 1 (`over_weights`), or bounds (`in_box`). q is relative to x, so that rounding does not
    hide small gains near x. Each weight belongs to one coordinate of u, so that an l1 ball (two signs per coordinate, and 0)
    needs no larger matrix than its coordinates. H is an array, an object with ``H @ u`` and ``H.diagonal()``, or given by a root.

    Examples
    --------
    >>> import numpy as np
    >>> q = Quadratic.in_box(np.eye(2), np.array([-3.0, 0.5]), np.zeros(2), np.zeros(2), np.full(2, 2.0))
    >>> q.minimise(np.zeros(2), 0.0)
    array([2., 0.])
    """

    H: Symmetric | None  # k x k, positive semidefinite; None if there is a root
    g: np.ndarray  # k
    x: np.ndarray  # k
    place: np.ndarray  # the coordinate of each variable
    scale: np.ndarray  # the contribution of a variable of 1 to its coordinate; 0 for the origin
    lower: np.ndarray
    upper: np.ndarray
    tied: bool  # whether the variables sum to 1
    root: np.ndarray | None = None  # k x r with H = root root': differences keep twice as many digits
    longest: int = LONGEST  # largest number of iterations of conjugate gradients

    @classmethod
    def over_weights(
        cls,
        H: Symmetric | None,
        g: np.ndarray,
        x: np.ndarray,
        place: np.ndarray | None = None,
        scale: np.ndarray | None = None,
        root: np.ndarray | None = None,
    ) -> Quadratic:
        """The problem over non-negative weights of sum 1. Default for the places: one weight per coordinate.

        Examples
        --------
        >>> import numpy as np
        >>> Quadratic.over_weights(np.eye(2), np.array([0.0, -0.5]), np.zeros(2)).minimise(np.array([1.0, 0.0]), 1e-9)
        array([0.25, 0.75])
        """
        places, ones, zeros, infinities = _usual(len(x) if place is None else len(place))
        return cls(H, g, x, places if place is None else place, ones if scale is None else scale, zeros, infinities, True, root)

    @classmethod
    def in_box(cls, H: Symmetric, g: np.ndarray, x: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> Quadratic:
        """The problem over lower <= w <= upper."""
        return cls(H, g, x, *_usual(len(x))[:2], lower, upper, False)

    def point(self, w: np.ndarray) -> np.ndarray:
        """The point u of the variables w."""
        return np.bincount(self.place, w * self.scale, len(self.x))

    def minimise(self, w: np.ndarray, tol: float, rounds: int = ROUNDS) -> np.ndarray:
        """Minimise from ``w`` until at most ``tol`` can be gained, or for some rounds; return the best variables.

        The possible gain is that of moving a unit of weight, or the gap between bounds. Each round minimises q over the variables
        that no bound holds, and stops them at bounds. It uses a Cholesky factor of their part of H, updated from round to round
        in O(m^2) for each of m variables that comes or goes. If H is not an array, it uses conjugate gradients with the diagonal
        as preconditioner. If a system is singular, it takes the shortest solution. No round increases q.

        References
        ----------
        Wolfe (1976), Finding the nearest point in a polytope; Lawson, Hanson (1974), Solving least squares problems; Bertsekas
        (1982), Projected Newton methods for optimization problems with simple constraints; More, Toraldo (1991), On the solution
        of large quadratic programming problems with bound constraints.
        """
        solver, size = kernels("active_set"), len(self.x)
        w = np.where(w > solver.NOTHING, w, 0.0) if self.tied else np.clip(w, self.lower, self.upper)
        if self.root is None and not isinstance(self.H, np.ndarray):
            return solver.descended_by_products(self._problem(ByProducts(self.H, self.longest)), None, w, tol, rounds)[0]
        problem = self._problem(np.empty((0, 0)) if self.root is not None else _numbers(self.H))
        factor = solver.plain_factor(len(w), 0 if self.root is None else max(1, self.root.shape[1]))
        state, some = solver.GOING, rounds if size * size <= UNTIMED else 1
        while state != solver.DONE and rounds > 0:
            clock.check()
            w, state = solver.descend(problem, factor, w, float(tol), min(some, rounds))
            if state == solver.STOPPED_SINGULAR:
                problem = _ready(kernels("bounded").SingularProblem(*problem), factor, w)
            else:
                rounds -= some
        return w

    def _problem(self, H: np.ndarray | ByProducts) -> QuadraticProblem:
        """The problem for the solver: arrays that it does not change."""
        root = np.empty((0, 0)) if self.root is None else _numbers(self.root)
        root = np.zeros((len(root), 1)) if self.root is not None and root.size == 0 else root
        diagonal = H.diagonal() if self.root is None else np.einsum("ij,ij->i", root, root)
        workable(diagonal)
        g, x, lower, upper = (_numbers(a) for a in (self.g, self.x, self.lower, self.upper))
        place, scale = np.ascontiguousarray(self.place, np.int64), np.ascontiguousarray(self.scale, np.float64)
        return kernels("bounded").QuadraticProblem(H, root, g, x, locked(place), locked(scale), lower, upper, self.tied)


class GrowingQuadratic:
    """q(w) = <g, w> + |root' w|^2 / 2 over weights w >= 0 of sum 1, with variables that arrive one after another.

    A problem reuses the work of the last one, which had one variable less: O(m r) for m weights in use and rows of length r.

    Examples
    --------
    >>> import numpy as np
    >>> q = GrowingQuadratic(np.array([[2.0, 0.0]]), np.zeros(1))
    >>> q.add(np.array([0.0, 1.0]), 0.0)
    >>> q.minimise(np.array([1.0, 0.0]), 1e-12)
    array([0.2, 0.8])
    """

    def __init__(self, root: np.ndarray, g: np.ndarray):
        rows, rank = root.shape
        self._root, self._g, self._factor = _room(2 * rows + 30, max(rank, 1))
        self._root[:rows, :rank], self._g[:rows], self._count = workable(root), workable(g), rows

    def add(self, row: np.ndarray, slope: float) -> None:
        """Add one variable, the last."""
        if self._count == len(self._g):
            root, g, factor = _room(2 * self._count, self._root.shape[1])
            for new, old in ((root, self._root), (g, self._g), *zip(factor, self._factor, strict=True)):
                new[tuple(slice(0, size) for size in old.shape)] = old
            self._root, self._g, self._factor = root, g, factor
        self._root[self._count, : len(row)], self._g[self._count] = workable(row), workable(slope)
        self._count += 1

    def minimise(self, w: np.ndarray, tol: float, rounds: int = ROUNDS) -> np.ndarray:
        """Weights at which moving a unit of weight gains at most ``tol``, as in `Quadratic.minimise`."""
        clock.check()
        solver, k = kernels("active_set"), self._count
        places, ones, zeros, infinities = _usual(k)
        numbers = self._root[:k], self._g[:k], zeros, places, ones, zeros, infinities
        problem = kernels("bounded").QuadraticProblem(np.empty((0, 0)), *numbers, True)
        factor = self._factor._replace(position=self._factor.position[:k])
        return solver.descend(problem, factor, np.where(w > solver.NOTHING, w, 0.0), float(tol), rounds)[0]


def _ready(problem: Any, factor: Factor, w: np.ndarray) -> Any:
    """The problem in its form for singular systems, which few runs need: it compiles here, off the clock of the run."""
    clock.untimed(lambda: kernels("active_set").descend(problem, factor, w, 0.0, 0))
    return problem


class ByProducts:
    """A Hessian given by its products, for the solver; each product checks the clock, and the last one is kept."""

    def __init__(self, H: Any, longest: int):
        self._H, self.longest, self._last = H, longest, (np.empty(0), np.empty(0))
        self.diagonal = cache(H.diagonal)  # computed once

    def __matmul__(self, d: np.ndarray) -> np.ndarray:
        last = self._last[0]
        if last.shape != d.shape or (last != d).any():
            clock.check()
            self._last = d, self._H @ d
        return self._last[1]


def _room(rows: int, rank: int) -> tuple[np.ndarray, np.ndarray, Factor]:
    """A root, slopes and a factor with room for ``rows`` variables."""
    return np.zeros((rows, rank)), np.zeros(rows), kernels("active_set").plain_factor(rows, rank)


@lru_cache(maxsize=32)
def _usual(size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Places, scales and bounds of weights with one coordinate each."""
    return locked(np.arange(size)), locked(np.ones(size)), np.zeros(size), np.full(size, np.inf)


def _numbers(a: Any) -> np.ndarray:
    """A writable array: numba would compile a second version for read-only arrays."""
    return writable(a if type(a) is np.ndarray else np.asarray(a), np.float64)


@dataclass(frozen=True)
class Hull:
    """x = sum_i w_i v_i, with <v_i, v_j> for all pairs: k^2 numbers for k atoms.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> Hull.of(ex.points.ActiveSet([ex.points.Coordinate(0, 2.0, (3,)), ex.points.Coordinate(1, 2.0, (3,))], [0.75, 0.25])).gram
    array([[4., 0.],
           [0., 4.]])
    """

    atoms: ActiveSet
    gram: np.ndarray

    @classmethod
    def of(cls, atoms: ActiveSet) -> Hull:
        """Compute the products of all pairs of atoms."""
        rows = [atoms.dots(_as_gradient(v)) for v in atoms.vertices]
        return cls(atoms, freeze(np.array(rows, np.float64)))

    @classmethod
    def at(cls, x: Any, like: Vertex) -> Hull:
        """A point as the only atom; stored by its non-zeros if ``like`` is."""
        sparse = isinstance(like, (Coordinate, SparseVertex)) and isinstance(x, np.ndarray)
        places = np.flatnonzero(x) if sparse else None
        atom = as_atom(x) if places is None else SparseVertex(places, x.reshape(-1)[places].astype(np.float64), x.shape)
        return cls.of(ActiveSet.at(atom))

    def with_atom(self, v: Vertex) -> Hull:
        """The same point with one more atom, of weight zero; this takes a product with each atom."""
        atoms = self.atoms.with_atom(v)
        k = len(self.gram)
        gram = np.empty((k + 1, k + 1))
        gram[:k, :k] = self.gram
        gram[k] = gram[:, k] = atoms.dots(_as_gradient(v))
        return Hull(atoms, freeze(gram))

    def only(self, kept: np.ndarray) -> Hull:
        """The same point with the ``kept`` atoms; the others must have no weight."""
        return Hull(self.atoms.only(kept), freeze(np.ascontiguousarray(self.gram[np.ix_(kept, kept)])))

    def with_weights(self, weights: np.ndarray) -> Hull:
        """Another point of the hull; atoms without weight are dropped."""
        kept = weights > WEIGHT_NOISE
        weights = np.where(kept, weights, 0.0)
        gram = self.gram if kept.all() else freeze(np.ascontiguousarray(self.gram[np.ix_(kept, kept)]))
        return Hull(self.atoms.with_weights(weights / weights.sum()), gram)


def settle_atoms(hull: Hull, first: np.ndarray, beta: float, tol: float, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights that minimise <first, w> + beta/2 |V(w - centre)|^2, starting from ``weights``, and the slopes there.

    ``first`` holds <g, v_i>, and the centre is the hull's point. Moving weight between two atoms then gains at most ``tol``.
    """
    q = Quadratic.over_weights(beta * hull.gram, first, hull.atoms.weights)
    weights = q.minimise(weights, tol, SETTLE_ROUNDS)
    return weights, first + q.H @ (weights - hull.atoms.weights)


def displacement(x: Iterate, atoms: ActiveSet, change: np.ndarray) -> Iterate:
    """sum_i change_i v_i, in the same form as x."""
    if not isinstance(x, FactoredMatrix):
        return atoms.sum(change)
    parts = [(c, factors(v)) for c, v in zip(change, atoms.vertices, strict=True) if c]
    return FactoredMatrix.zeros(x.shape, x.dtype).plus(0.0, parts)


def _as_gradient(v: Vertex) -> Any:
    """A vertex in a form that other vertices can multiply."""
    return FactoredMatrix(*factors(v)) if isinstance(v, (RankOne, LowRank)) else v.to_array()
