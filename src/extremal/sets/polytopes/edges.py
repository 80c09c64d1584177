"""Graphs given by their edges, checked and numbered, and flows through directed graphs, with a variable for each edge."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from extremal.checks import InputError
from extremal.points.vertex import SparseVertex
from extremal.sets.base import ConvexSet
from extremal.sets.shared import scaled_gradient
from extremal.sets.simplices import bounds


class Edges(tuple):
    """Pairs of nodes that are not integers; repr shows only their number."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{len(self)} edges>"


class Graph:
    """Edges with nodes numbered from 0, in the order of their first use; integer nodes in increasing order."""

    def __init__(self, edges: np.ndarray | Edges):
        if isinstance(edges, Edges):
            self.index: dict[Hashable, int] = {}
            ends = np.array([[self.index.setdefault(node, len(self.index)) for node in pair] for pair in edges])
        else:
            nodes, ends = np.unique(edges, return_inverse=True)
            self.index, ends = {node: i for i, node in enumerate(nodes.tolist())}, ends.reshape(edges.shape)
        self.size, self.tails, self.heads = len(self.index), ends[:, 0], ends[:, 1]

    @cached_property
    def incidence(self) -> sp.csr_array:
        """The n x E matrix with 1 at the tail and -1 at the head of each edge."""
        E = len(self.tails)
        places = np.concatenate([self.tails, self.heads]), np.tile(np.arange(E), 2)
        return sp.csr_array((np.repeat([1.0, -1.0], E), places), shape=(self.size, E))

    def topological(self) -> list[tuple[int, int, int]]:
        """(tail, head, e) of the edges, each after all edges that lead to its tail; some are missing if there is a cycle."""
        waiting, out = np.bincount(self.heads, minlength=self.size).tolist(), [[] for _ in range(self.size)]
        for e, tail in enumerate(self.tails.tolist()):
            out[tail].append(e)
        ready, order = deque(v for v in range(self.size) if not waiting[v]), []
        while ready:
            for e in out[(tail := ready.popleft())]:
                head = int(self.heads[e])
                order.append((tail, head, e))
                waiting[head] -= 1
                if not waiting[head]:
                    ready.append(head)
        return order

    def cheapest(self, cost: np.ndarray) -> np.ndarray:
        """The cheapest of all edges between the same two nodes; the first one on ties."""
        pairs = np.minimum(self.tails, self.heads) * self.size + np.maximum(self.tails, self.heads)
        order = np.lexsort((cost, pairs))
        return order[np.append(True, np.diff(pairs[order]) > 0)]

    @cached_property
    def sides(self) -> np.ndarray | None:
        """0 or 1 for each node such that every edge joins a 0 and a 1, or None if the graph is not bipartite."""
        near = [[] for _ in range(self.size)]
        for tail, head in zip(self.tails.tolist(), self.heads.tolist(), strict=True):
            near[tail].append(head)
            near[head].append(tail)
        side = np.full(self.size, -1)
        for root in range(self.size):
            todo, side[root] = ([root], 0) if side[root] < 0 else ([], side[root])
            while todo:  # every node connected to the root, with alternating sides
                v = todo.pop()
                for w in near[v]:
                    if side[w] < 0:
                        side[w] = 1 - side[v]
                        todo.append(w)
        return None if (side[self.tails] == side[self.heads]).any() else side


@dataclass(frozen=True, eq=False, repr=False)
class EdgeSet(ConvexSet):
    """A set of vectors with one number per edge of a graph."""

    edges: Any
    shape: tuple[int, ...] | None = field(init=False, default=None)

    @cached_property
    def _graph(self) -> Graph:
        return Graph(self.edges)


def listed(call: str, edges: np.ndarray | Iterable[Sequence[Hashable]], loops: bool = True) -> np.ndarray | Edges:
    """Check the edges; return an E x 2 array of integers, or pairs if the nodes are other objects."""
    if isinstance(edges, np.ndarray) and edges.dtype.kind in "iu" and edges.shape[1:] == (2,) and len(edges):
        return _numbered(call, edges, loops)
    try:
        pairs = [(u, v) for u, v in (edges.tolist() if isinstance(edges, np.ndarray) else edges)]
        hash(tuple(pairs))
    except (TypeError, ValueError):
        raise InputError(f"`{call}(edges=...)` must be pairs of nodes, integers or others that can be hashed") from None
    if not pairs:
        raise InputError(f"`{call}(edges=...)` must have an edge, got none")
    if any(not isinstance(node, (int, np.integer)) or isinstance(node, bool) for pair in pairs for node in pair):
        if not loops and any(u == v for u, v in pairs):
            raise _loop(call, next(u for u, v in pairs if u == v))
        return Edges(pairs)
    return _numbered(call, np.array(pairs), loops)


def _numbered(call: str, edges: np.ndarray, loops: bool) -> np.ndarray:
    a = edges.astype(np.int64)
    if not loops and (a[:, 0] == a[:, 1]).any():
        raise _loop(call, int(a[a[:, 0] == a[:, 1]][0, 0]))
    a.flags.writeable = False
    return a


def _loop(call: str, node: Hashable) -> InputError:
    return InputError(f"`{call}(edges=...)` must join two nodes each, got a loop at {node!r}")


@dataclass(frozen=True, eq=False, repr=False)
class PathPolytope(EdgeSet, bounds.ZeroFaced):
    """Unit flows from a source to a sink in a directed acyclic graph: the convex hull of its paths.

        {x : x >= 0, flow out of v - flow into v = [v = source] - [v = sink] for every node v}
        lmo(g) = the shortest path, where edge e has length g_e of any sign

    A call is one pass over the edges in topological order, O(V + E) steps of Python, and the vertex has the edges of the path.
    Among paths of equal length, the first one found wins. The diameter is exact: the square root of the largest number of
    edges that belong to just one of two paths. A linear program finds it at the first use.

    The zeros of x determine the smallest face that contains x, so away moves need no active set.

    Parameters
    ----------
    edges : array of shape (E, 2) or sequence of pairs
        (tail, head) of each edge; nodes are integers or any hashable objects. Parallel edges are allowed, cycles are not.
    source, sink : node
        The first and the last node of every path; at least one path must exist.

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
        """Whether x >= -tol, and the flow is conserved at every node up to tol."""
        off = self._graph.incidence @ x.astype(np.float64) - self._supply
        return float(x.min()) >= -tol and float(np.abs(off).max()) <= tol

    @property
    def diameter(self) -> float:
        """sqrt(max |P - Q| + |Q - P|) over pairs of paths P, Q."""
        return self._diameter

    def start(self) -> np.ndarray:
        return self.lmo(np.zeros(self.shape or 0)).to_array()

    def away(self, g: np.ndarray, x: np.ndarray) -> SparseVertex:
        """The longest path that uses only edges with x > 0."""
        return self._path(np.where(bounds.support(x, 1.0), -scaled_gradient(self, g)[0], np.inf))

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
        """Send two units of flow; the first on an edge is worth 1, the second -1. The solution is integral, hence two paths."""
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
