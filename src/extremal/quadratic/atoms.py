"""Atoms with their inner products: proximal problems over their hull, solved on the weights alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal.points.active import ActiveSet, as_atom
from extremal.points.factored import FactoredMatrix, factors
from extremal.points.iterates import freeze
from extremal.points.low_rank import LowRank, RankOne
from extremal.points.matrix import Iterate
from extremal.points.vertex import Coordinate, SparseVertex, Vertex
from extremal.quadratic.solver import Quadratic

WEIGHT_NOISE = 4 * np.finfo(np.float64).eps  # a weight of this size is rounding, and its atom is dropped
SETTLE_ROUNDS = 100  # of the quadratic problem between two questions to the oracle, at most


@dataclass(frozen=True)
class Hull:
    """x = sum_i w_i v_i, and <v_i, v_j> of all pairs: k^2 numbers for k atoms.

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
        """From the atoms: a product of each with all."""
        rows = [atoms.dots(_as_gradient(v)) for v in atoms.vertices]
        return cls(atoms, freeze(np.array(rows, np.float64)))

    @classmethod
    def at(cls, x: Any, like: Vertex) -> Hull:
        """A point as the only atom; kept by its non-zeros, if ``like`` is a vertex that is kept so."""
        sparse = isinstance(like, (Coordinate, SparseVertex)) and isinstance(x, np.ndarray)
        places = np.flatnonzero(x) if sparse else None
        atom = as_atom(x) if places is None else SparseVertex(places, x.reshape(-1)[places].astype(np.float64), x.shape)
        return cls.of(ActiveSet.at(atom))

    def with_atom(self, v: Vertex) -> Hull:
        """The same point with one atom more, of weight zero: a product with each."""
        atoms = self.atoms.with_atom(v)
        k = len(self.gram)
        gram = np.empty((k + 1, k + 1))
        gram[:k, :k] = self.gram
        gram[k] = gram[:, k] = atoms.dots(_as_gradient(v))
        return Hull(atoms, freeze(gram))

    def only(self, kept: np.ndarray) -> Hull:
        """The same point with these of its atoms; the others have no weight."""
        return Hull(self.atoms.only(kept), freeze(np.ascontiguousarray(self.gram[np.ix_(kept, kept)])))

    def with_weights(self, weights: np.ndarray) -> Hull:
        """Another point of the hull; atoms without weight are dropped."""
        kept = weights > WEIGHT_NOISE
        weights = np.where(kept, weights, 0.0)
        gram = self.gram if kept.all() else freeze(np.ascontiguousarray(self.gram[np.ix_(kept, kept)]))
        return Hull(self.atoms.with_weights(weights / weights.sum()), gram)


def settle_atoms(hull: Hull, first: np.ndarray, beta: float, tol: float, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Weights that minimise <first, w> + beta/2 |V(w - centre)|^2, from where they are, and the slopes there.

    ``first`` holds <g, v_i>, and the centre is the hull's point. No move of weight between two atoms promises more than ``tol``.
    """
    q = Quadratic.over_weights(beta * hull.gram, first, hull.atoms.weights)
    weights = q.minimise(weights, tol, SETTLE_ROUNDS)
    return weights, first + q.H @ (weights - hull.atoms.weights)


def displacement(x: Iterate, atoms: ActiveSet, change: np.ndarray) -> Iterate:
    """sum_i change_i v_i, in the form that x has."""
    if not isinstance(x, FactoredMatrix):
        return atoms.sum(change)
    parts = [(c, factors(v)) for c, v in zip(change, atoms.vertices, strict=True) if c]
    return FactoredMatrix.zeros(x.shape, x.dtype).plus(0.0, parts)


def _as_gradient(v: Vertex) -> Any:
    """A vertex in a form that others have products with."""
    return FactoredMatrix(*factors(v)) if isinstance(v, (RankOne, LowRank)) else v.to_array()
