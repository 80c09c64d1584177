"""Atoms with their inner products: proximal problems over their hull, solved on the weights alone."""

from __future__ import annotations

from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from extremal.points.active import ActiveSet, as_atom
from extremal.points.factored import FactoredMatrix, factors
from extremal.points.iterates import freeze
from extremal.points.low_rank import LowRank, RankOne
from extremal.points.plain import Coordinate, SparseVertex
from extremal.points.vertex import Vertex

WEIGHT_NOISE = 4 * np.finfo(np.float64).eps  # a weight of this size is rounding, and its atom is dropped
PAIRWISE_STEPS = 100  # pairwise steps between two questions to the oracle, at least
PER_ATOM = 20  # and so many more for each atom
PAIRWISE_ATTEMPTS = 4  # at that many pairwise steps
ATOM_RIDGE = 1e-14  # added to the diagonal, relative to the trace, where atoms may depend on each other


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

    def with_weights(self, weights: np.ndarray) -> Hull:
        """Another point of the hull; atoms without weight are dropped."""
        kept = weights > WEIGHT_NOISE
        weights = np.where(kept, weights, 0.0)
        gram = self.gram if kept.all() else freeze(np.ascontiguousarray(self.gram[np.ix_(kept, kept)]))
        return Hull(self.atoms.with_weights(weights / weights.sum()), gram)


def settle_atoms(
    hull: Hull, first: np.ndarray, beta: float, share: float, floor: float, weights: np.ndarray, slopes: np.ndarray
) -> bool:
    """Weights that nearly minimise <first, w> + beta/2 |V(w - centre)|^2, in place, from where they are.

    ``first`` holds <g, v_i>, ``slopes`` the slopes at ``weights``, and the centre is the hull's point. Pairwise steps, and, if
    these zigzag, steps to the minimum over the affine hull of the atoms in use. Says whether no move of weight between two
    atoms promises more than max(share beta |V(w - centre)|^2, floor).

    References
    ----------
    Wolfe (1976), Finding the nearest point in a polytope.
    """
    from extremal.kernels import pairwise  # numba: imported when first used

    limit = PAIRWISE_STEPS + PER_ATOM * len(weights)
    for attempt in range(PAIRWISE_ATTEMPTS):
        if attempt:
            _to_affine_minimum(hull, first, beta, weights, slopes)
        steps = pairwise.settle_pairs(hull.gram, hull.atoms.weights, first, beta, share, floor, limit, weights, slopes)
        if steps < limit:
            return True
    return False


def _to_affine_minimum(hull: Hull, first: np.ndarray, beta: float, weights: np.ndarray, slopes: np.ndarray) -> None:
    """To the minimum over the affine hull of the atoms in use, or to where the first weights vanish and on from there; O(k^3)."""
    for _ in range(len(weights)):
        used = np.flatnonzero(weights > 0)
        M = beta * hull.gram[np.ix_(used, used)]
        M.flat[:: len(used) + 1] += max(ATOM_RIDGE * float(M.trace()), 1e-300)
        solved = np.linalg.solve(M, np.stack([slopes[used], np.ones(len(used))], axis=1))
        change = solved[:, 1] * float(solved[:, 0].sum() / solved[:, 1].sum()) - solved[:, 0]
        down = change < 0
        stop = float(np.min(weights[used[down]] / -change[down], initial=1.0))
        new = weights[used] + stop * change
        new[new <= WEIGHT_NOISE] = 0.0
        weights[used] = new / new.sum()
        slopes[:] = first + beta * (hull.gram @ (weights - hull.atoms.weights))
        if stop == 1:
            return


@singledispatch
def displacement(x: np.ndarray, atoms: ActiveSet, change: np.ndarray) -> Any:
    """sum_i change_i v_i, in the form that x has."""
    return atoms.sum(change)


@displacement.register
def _(x: FactoredMatrix, atoms: ActiveSet, change: np.ndarray) -> FactoredMatrix:
    parts = [(c, factors(v)) for c, v in zip(change, atoms.vertices, strict=True) if c]
    return FactoredMatrix.zeros(x.shape, x.dtype).plus(0.0, parts)


def _as_gradient(v: Vertex) -> Any:
    """A vertex in a form that others have products with."""
    return FactoredMatrix(*factors(v)) if isinstance(v, (RankOne, LowRank)) else v.to_array()
