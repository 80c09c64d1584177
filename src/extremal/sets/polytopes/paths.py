"""Flows through a directed graph, with one variable for each edge."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from extremal.checks import InputError
from extremal.points.plain import SparseVertex
from extremal.points.vertex import Vertex
from extremal.quadratic.search import longest_step
from extremal.sets.answers import scaled_gradient
from extremal.sets.polytopes.edges import EdgeSet, listed
from extremal.sets.simplices import bounds


@dataclass(frozen=True, eq=False, repr=False)
class PathPolytope(EdgeSet):
    """Unit flows from a source to a sink in a directed graph without cycles: the mixtures of paths.

        {x : x >= 0, flow out of v - flow into v = [v = source] - [v = sink] for every node v}
        lmo(g) = the shortest path, where edge e has length g_e, of any sign

    One pass over the edges in topological order, O(V + E) steps of Python; the vertex has the path's edges. Of paths of equal
    length the one is taken that is found first. Diameter sqrt(largest number of edges in just one of two paths), exact, by
    a linear program at the first use.

    The smallest face that holds x is known by where x is zero, so that moves away from vertices need no active set.

    Parameters
    ----------
    edges : array of shape (E, 2) or sequence of pairs
        (tail, head) of each edge; nodes are integers, or anything that can be hashed. Parallel edges are allowed, cycles are not.
    source, sink : node
        Where paths begin and end; there has to be one.

    References
    ----------
    Joulin, Tang, Fei-Fei (2014), Efficient image and video co-localization with Frank-Wolfe algorithm, ECCV.

    Examples
    --------
    >>> C = PathPolytope([("a", "b"), ("b", "c"), ("a", "c")], "a", "c")
    >>> C.lmo(np.array([1.0, -3.0, -1.0])).to_array(), round(C.diameter**2, 9)
    (array([1., 1., 0.]), 3.0)
    """

    source: Hashable
    sink: Hashable

    def __post_init__(self):
        edges = listed("PathPolytope", self.edges)
        self._fix(edges=edges, shape=(len(edges),))
        for name, node in (("source", self.source), ("sink", self.sink)):
            if node not in self._graph.index:
                raise InputError(f"`PathPolytope({name}=...)` must be a node of an edge, got {node!r}")
        if self.source == self.sink:
            raise InputError(f"`PathPolytope(source=..., sink=...)` must differ, got {self.sink!r} twice")
        if len(self._order) < self.shape[0]:  # type: ignore[index]
            raise InputError("`PathPolytope(edges=...)` must have no directed cycle")
        if self._shortest(np.zeros(len(edges))) is None:
            raise InputError(f"`PathPolytope(sink=...)` must be reachable from {self.source!r}, and {self.sink!r} is not")

    def lmo(self, g: np.ndarray) -> SparseVertex:
        return self._path(scaled_gradient(self, g)[0])

    def contains(self, x: np.ndarray, tol: float = 1e-9) -> bool:
        """x >= -tol, and the flow is kept at every node up to tol."""
        off = self._graph.incidence @ x.astype(np.float64) - self._supply
        return float(x.min()) >= -tol and float(np.abs(off).max()) <= tol

    @property
    def diameter(self) -> float:
        """sqrt(max |P - Q| + |Q - P|) over pairs of paths P, Q."""
        return self._diameter

    def start(self) -> np.ndarray:
        return self.lmo(np.zeros(self.shape or 0)).to_array()

    def away(self, g: np.ndarray, x: np.ndarray) -> SparseVertex:
        """The longest path of those that use edges with x > 0 only."""
        return self._path(np.where(bounds.support(x, 1.0), -scaled_gradient(self, g)[0], np.inf))

    def max_step(self, x: np.ndarray, s: Vertex, a: Vertex) -> float:
        """The largest t <= 1 with x + t (s - a) >= 0."""
        return longest_step(x, s.to_array() - a.to_array())

    @cached_property
    def _order(self) -> list[tuple[int, int, int]]:
        return self._graph.topological()

    @cached_property
    def _supply(self) -> np.ndarray:
        supply = np.zeros(self._graph.size)
        supply[[self._graph.index[self.source], self._graph.index[self.sink]]] = 1.0, -1.0
        return supply

    @cached_property
    def _diameter(self) -> float:
        """Two units of flow, where the first on an edge is worth 1 and the second -1: integral, hence two paths."""
        from scipy.optimize import linprog

        E, flow = len(self.edges), self._graph.incidence
        worth = np.repeat([-1.0, 1.0], E)
        found = linprog(worth, A_eq=sp.hstack([flow, flow]), b_eq=2 * self._supply, bounds=(0, 1), method="highs")
        return math.sqrt(round(-found.fun))

    def _path(self, cost: np.ndarray) -> SparseVertex:
        path = self._shortest(cost)
        if path is None:
            raise bounds.not_in(self)
        return SparseVertex(np.array(path), np.ones(len(path)), cost.shape)

    def _shortest(self, cost: np.ndarray) -> list[int] | None:
        """The edges of the shortest path, in increasing order."""
        length, by, c = [math.inf] * self._graph.size, [-1] * self._graph.size, cost.tolist()
        source, sink = self._graph.index[self.source], self._graph.index[self.sink]
        length[source] = 0.0
        for tail, head, e in self._order:
            if length[tail] + c[e] < length[head]:
                length[head], by[head] = length[tail] + c[e], e
        path: list[int] = []
        while sink != source and by[sink] >= 0:
            path.append(by[sink])
            sink = int(self._graph.tails[by[sink]])
        return sorted(path) if sink == source else None
