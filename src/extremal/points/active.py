"""Active sets: a point as a convex combination of atoms, for moves away from atoms."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from extremal import checks
from extremal.checks import InputError
from extremal.points.factored import FactoredMatrix, factors, joined
from extremal.points.iterates import freeze
from extremal.points.low_rank import LowRank, RankOne
from extremal.points.matrix import Iterate
from extremal.points.stacks import Factors, Stack, stack
from extremal.points.vertex import DenseVertex, Vertex


class ActiveSet:
    """A convex combination of atoms, x = sum_i w_i v_i, w_i > 0, sum_i w_i = 1.

    Away, pairwise and fully corrective methods keep an active set and return it as ``result.atoms``; pass it as ``x0`` to
    start the next run there. It is a value: steps make new ones. Each atom occurs once, and is found by a hash of its key.

    Parameters
    ----------
    vertices : sequence of vertices
        `Coordinate`, `RankOne`, ... or `DenseVertex` for any point of the set; equal vertices are merged.
    weights : array
        One non-negative weight per vertex, with sum 1; atoms of weight zero are dropped.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> a = ex.points.ActiveSet([ex.points.Coordinate(0, 2.0, (3,)), ex.points.Coordinate(1, -2.0, (3,))], [0.75, 0.25])
    >>> a.x, len(a)
    (array([ 1.5, -0.5,  0. ]), 2)
    """

    def __init__(self, vertices: Iterable[Vertex], weights: ArrayLike):
        vertices, w = tuple(vertices), checks.array("ActiveSet", "weights", weights)
        if not vertices or w.shape != (len(vertices),) or w.dtype.kind not in "biuf":
            raise InputError(f"`ActiveSet(weights=...)` must be one number for each of {len(vertices)} vertices, got {weights!r}")
        w = checks.finite("ActiveSet", "weights", w.astype(np.float64))
        if w.min() < 0 or abs(w.sum() - 1) > 1e-9:
            raise InputError(f"`ActiveSet(weights=...)` must be non-negative and sum to 1, got a sum of {w.sum():.12g}")
        if len({v.shape for v in vertices}) > 1:
            raise InputError("`ActiveSet(vertices=...)` must be vertices of one shape")
        total: dict[Hashable, float] = {}
        for v, weight in zip(vertices, w, strict=True):
            total[v.key] = total.get(v.key, 0.0) + float(weight)
        atoms = {v.key: v for v in vertices if total[v.key] > 0}
        self._stack: Stack = stack(tuple(atoms.values()))
        self.weights: np.ndarray = _normal(np.array([total[key] for key in atoms]))

    @classmethod
    def _make(cls, atoms: Stack, weights: np.ndarray, places: dict[Hashable, int] | None = None) -> ActiveSet:
        """Make an active set without checks."""
        new = object.__new__(cls)
        new._stack, new.weights = atoms, freeze(weights)
        if places is not None:
            new._places = places
        return new

    @classmethod
    def at(cls, v: Vertex) -> ActiveSet:
        """An active set with all the weight on one atom."""
        return cls._make(stack((v,)), np.ones(1))

    @property
    def vertices(self) -> tuple[Vertex, ...]:
        """The atoms."""
        return self._stack.vertices

    def __len__(self) -> int:
        return len(self.vertices)

    def __repr__(self) -> str:
        return f"ActiveSet({len(self)} atoms)"

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the points."""
        return self.vertices[0].shape

    @property
    def x(self) -> np.ndarray:
        """sum_i w_i v_i, as an array."""
        return self._stack.sum(self.weights)

    @property
    def point(self) -> Any:
        """sum_i w_i v_i as an iterate: a factored matrix if all atoms have rank one."""
        return _in_factors(self) if isinstance(self._stack, Factors) else freeze(self.x)

    def sum(self, weights: np.ndarray) -> np.ndarray:
        """The combination of the atoms with other weights, as an array."""
        return self._stack.sum(weights)

    def dots(self, g: np.ndarray) -> np.ndarray:
        """<g, v_i> for each atom."""
        return self._stack.dots(g)

    @cached_property
    def _places(self) -> dict[Hashable, int]:
        return {v.key: i for i, v in enumerate(self.vertices)}

    def find(self, v: Vertex) -> int | None:
        """The position of an atom; None if it is missing."""
        return self._places.get(v.key)

    def toward(self, v: Vertex, eta: float) -> ActiveSet:
        """(1 - eta) x + eta v."""
        return self.at(v) if eta == 1 else self._shift(1.0 - eta, ((eta, v),))

    def away(self, i: int, t: float) -> ActiveSet:
        """x + t (x - v_i); atom i disappears at t = w_i / (1 - w_i)."""
        return self._shift(1.0 + t, ((-t, self.vertices[i]),))

    def swap(self, s: Vertex, i: int, t: float) -> ActiveSet:
        """x + t (s - v_i); atom i disappears at t = w_i."""
        return self._shift(1.0, ((t, s), (-t, self.vertices[i])))

    def with_weights(self, weights: np.ndarray) -> ActiveSet:
        """The same atoms with other weights, divided by their sum; atoms of weight zero are dropped."""
        return self._make(self._stack, _normal(weights), self._places).only(weights > 0)

    def with_atom(self, v: Vertex) -> ActiveSet:
        """The same point, with one more atom of weight zero."""
        if self.find(v) is not None:
            return self
        return self._make(self._stack.add(v), np.append(self.weights, 0.0), self._places | {v.key: len(self)})

    def dropping(self, nothing: float) -> ActiveSet:
        """Without the atoms whose weight is at most ``nothing``."""
        return self.only(self.weights > nothing)

    def _shift(self, scale: float, changes: tuple[tuple[float, Vertex], ...]) -> ActiveSet:
        new = self
        for _, v in changes:
            new = new.with_atom(v)
        weights = scale * new.weights
        for change, v in changes:
            weights[new._places[v.key]] += change
        return self._make(new._stack, weights, new._places)

    def only(self, kept: np.ndarray) -> ActiveSet:
        """The atoms selected by a mask, with their weights divided by their sum."""
        if kept.all():
            return self
        return self._make(self._stack.keep(np.flatnonzero(kept)), _normal(self.weights[kept]))


def _normal(weights: np.ndarray) -> np.ndarray:
    return freeze(weights / weights.sum())


def as_atom(x: np.ndarray | FactoredMatrix) -> Vertex:
    """A point of the set as an atom."""
    if not isinstance(x, FactoredMatrix):
        return DenseVertex(x)
    if x.rank > 1:
        return LowRank(*x.factors())
    left, right = x.factors() if x.rank else (np.zeros((side, 1), x.dtype) for side in x.shape)
    return RankOne(left[:, 0], right[:, 0])


def rebuilt(x: Iterate, atoms: ActiveSet) -> Any:
    """Recompute the iterate from its atoms, in the form of x, to remove the rounding errors of steps."""
    new = _in_factors(atoms) if isinstance(x, FactoredMatrix) else atoms.x
    return freeze(new.astype(x.dtype, copy=False))


def _in_factors(atoms: ActiveSet) -> FactoredMatrix:
    terms = [(w, factors(v)) for w, v in zip(atoms.weights, atoms.vertices, strict=True)]
    return FactoredMatrix(*joined(np.dtype(np.float64), terms))
