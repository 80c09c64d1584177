"""Polytopes of undirected graphs, with one variable per edge: spanning trees and matchings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from extremal import checks
from extremal.checks import InputError
from extremal.points.vertex import SparseVertex
from extremal.sets.base import refuse_non_finite
from extremal.sets.oracle import member
from extremal.sets.polytopes.edges import EdgeSet, Graph, listed
from extremal.sets.shared import scaled_gradient

COST_ENTRIES = 1_000_000  # upper limit for the entries of a full cost matrix


@dataclass(frozen=True, eq=False, repr=False)
class SpanningTrees(EdgeSet):
    """The spanning tree polytope of a connected graph: the convex hull of its spanning trees.

        conv {1_T : T a spanning tree},   lmo(g) = the tree with the smallest sum of g_e, of any sign

    Each oracle call sorts the edges and finds a minimum spanning tree, O(E log E); the vertex has n - 1 entries for n nodes.
    Ties go to the edges of smallest index. ``contains`` calls the oracle, see `extremal.sets.oracle.distance`. The diameter is
    a bound, sqrt(2 min(n - 1, E - n + 1)), exact if two trees are that far apart.

    Parameters
    ----------
    edges : array of shape (E, 2) or sequence of pairs
        The two ends of each edge; nodes are integers or any hashable objects. Parallel edges are allowed, loops are not.

    References
    ----------
    Edmonds (1971), Matroids and the greedy algorithm, Mathematical Programming 1.

    Examples
    --------
    >>> C = SpanningTrees([(0, 1), (1, 2), (2, 0)])
    >>> C.lmo(np.array([1.0, -3.0, 0.0])).to_array(), round(C.diameter**2, 9)
    (array([0., 1., 1.]), 2.0)
    """

    def __post_init__(self):
        edges = listed("SpanningTrees", self.edges, loops=False)
        self._fix(edges=edges, shape=(len(edges),))
        if self.lmo(np.zeros(len(edges))).indices.size < self._graph.size - 1:
            raise InputError("`SpanningTrees(edges=...)` must be the edges of a connected graph")

    def lmo(self, g: np.ndarray) -> SparseVertex:
        from scipy.sparse.csgraph import minimum_spanning_tree

        refuse_non_finite(self, float(np.abs(g).max()))
        order = np.argsort(g, kind="stable")  # g is replaced by ranks from 1, because scipy reads zeros as missing edges
        rank = np.empty(len(g))
        rank[order] = np.arange(1.0, len(g) + 1)
        used, n = self._graph.cheapest(rank), self._graph.size
        ends = self._graph.tails[used].astype(np.int32), self._graph.heads[used].astype(np.int32)  # old scipy needs int32
        weights = sp.csr_array((rank[used], ends), shape=(n, n))
        tree = order[minimum_spanning_tree(weights).data.astype(np.int64) - 1]
        return SparseVertex(np.sort(tree), np.ones(len(tree)), g.shape)

    def contains(self, x: np.ndarray, tol: float = 1e-9) -> bool:
        return member(self, x, tol)

    @property
    def diameter(self) -> float:
        n = self._graph.size
        return math.sqrt(2 * min(n - 1, len(self.edges) - n + 1))

    def start(self) -> np.ndarray:
        """The tree of the edges with the smallest indices."""
        return self.lmo(np.zeros(self.shape or 0)).to_array()


@dataclass(frozen=True, eq=False, repr=False)
class Matchings(EdgeSet):
    """The matching polytope of a graph: the convex hull of its matchings, sets of edges that share no node.

        conv {1_M : M a matching},   lmo(g) = the matching, or the perfect one, with the smallest sum of g_e

    For bipartite graphs each oracle call solves an assignment problem (scipy), and ``contains`` checks the sums at the nodes.
    Other graphs need networkx and its blossom method, O(n^3) steps of Python. Costs are then rounded to integers, to 2^-60 of
    the largest, for which the method is exact, and ``contains`` calls the oracle, see `extremal.sets.oracle.distance`.

    The vertex has at most n / 2 entries for n nodes. The diameter is a bound, sqrt(min(E, 2 k)) for k edges in the largest
    matching. It is exact if two matchings of that size share no edge, or if two matchings together contain all edges.

    Parameters
    ----------
    edges : array of shape (E, 2) or sequence of pairs
        As for `SpanningTrees`.
    perfect : bool
        Whether every node must be matched; the graph must then have such a matching.

    References
    ----------
    Edmonds (1965), Maximum matching and a polyhedron with 0,1-vertices, Journal of Research of the NBS 69B.

    Examples
    --------
    >>> C = Matchings([("a", 1), ("a", 2), ("b", 1)])
    >>> C.lmo(np.array([-3.0, -2.0, -2.0])).to_array(), C.lmo(np.array([-3.0, -2.0, 2.0])).to_array()
    (array([0., 1., 1.]), array([1., 0., 0.]))
    >>> Matchings([("a", 1), ("a", 2), ("b", 1)], perfect=True).lmo(np.array([-3.0, -2.0, 2.0])).to_array()
    array([0., 1., 1.])
    """

    perfect: bool = False

    def __post_init__(self):
        edges = listed("Matchings", self.edges, loops=False)
        self._fix(edges=edges, perfect=checks.flag("Matchings", "perfect", self.perfect), shape=(len(edges),))
        if self._best(np.zeros(len(edges))) is None:
            raise InputError("`Matchings(edges=..., perfect=True)` must have a perfect matching, and there is none")

    def lmo(self, g: np.ndarray) -> SparseVertex:
        best = self._best(scaled_gradient(self, g)[0])
        used = np.sort(np.zeros(0, np.int64) if best is None else best)
        return SparseVertex(used, np.ones(len(used)), g.shape)

    def contains(self, x: np.ndarray, tol: float = 1e-9) -> bool:
        """x >= 0, sums at nodes at most 1 (1 if perfect), up to tol; if not bipartite, also a mixture of matchings."""
        at = abs(self._graph.incidence) @ x.astype(np.float64)
        filled = not self.perfect or float(at.min()) >= 1 - tol
        if not (float(x.min()) >= -tol and float(at.max()) <= 1 + tol and filled):
            return False
        return self._graph.sides is not None or member(self, x, tol)

    @property
    def diameter(self) -> float:
        """sqrt(min(E, 2 k)), where k is the size of the largest matching."""
        E = len(self.edges)
        return math.sqrt(min(E, 2 * self.lmo(-np.ones(E)).indices.size))

    def start(self) -> np.ndarray:
        """A matching with the largest number of edges."""
        return self.lmo(-np.ones(len(self.edges))).to_array()

    def _best(self, cost: np.ndarray) -> np.ndarray | None:
        """The edges of the cheapest matching, for costs below 2 in magnitude; None if no perfect one exists."""
        used = self._graph.cheapest(cost)
        if not self.perfect:
            used = used[cost[used] < 0]
        find = _blossom if self._graph.sides is None else _assigned
        return find(self._graph, used, cost[used], self.perfect)


def _assigned(graph: Graph, used: np.ndarray, cost: np.ndarray, perfect: bool) -> np.ndarray | None:
    """The cheapest matching of a bipartite graph, as an assignment.

    If the matching need not be perfect, each node u gets a partner u*, to which it can be matched at no cost. Partners of
    matched nodes are matched with each other. The edges are (u, v), (v*, u*), (u, u*), (v*, v). scipy reads zeros as missing
    edges, so 2 is added to all costs. This is harmless, because all these matchings have the same size.
    """
    sides: Any = graph.sides
    number, p, q = np.where(sides == 0, np.cumsum(sides == 0), np.cumsum(sides)) - 1, int((sides == 0).sum()), int(sides.sum())
    flip = sides[graph.tails[used]] == 1
    left = number[np.where(flip, graph.heads[used], graph.tails[used])]
    right = number[np.where(flip, graph.tails[used], graph.heads[used])]
    if p * q <= COST_ENTRIES:
        return _assigned_densely(used, left, right, cost, (p, q), perfect)
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching

    rows, columns, data, size = left, right, cost + 2, (p, q)
    if not perfect:
        rows = np.concatenate([left, p + right, np.arange(p + q)])
        columns = np.concatenate([right, q + left, q + np.arange(p), np.arange(q)])
        data, size = np.append(data, np.full(len(used) + p + q, 2.0)), (p + q, p + q)
    elif p != q:
        return None
    try:
        matched = min_weight_full_bipartite_matching(sp.csr_array((data, (rows, columns)), shape=size))
    except ValueError:
        return None
    return used[np.isin(left * (p + q) + right, matched[0] * (p + q) + matched[1])]


def _assigned_densely(
    used: np.ndarray, left: np.ndarray, right: np.ndarray, cost: np.ndarray, size: tuple[int, int], perfect: bool
) -> np.ndarray | None:
    """The cheapest matching, by a full matrix: missing edges cost infinity, or zero if nodes may stay unmatched."""
    from scipy.optimize import linear_sum_assignment

    if perfect and size[0] != size[1]:
        return None
    matrix, edges = np.full(size, np.inf if perfect else 0.0), np.full(size, -1)
    for e in np.argsort(-cost, kind="stable"):  # the cheapest of parallel edges comes last
        matrix[left[e], right[e]], edges[left[e], right[e]] = cost[e], used[e]
    try:
        found = edges[linear_sum_assignment(matrix)]
    except ValueError:
        return None
    return np.sort(found[found >= 0])


def _blossom(graph: Graph, used: np.ndarray, cost: np.ndarray, perfect: bool) -> np.ndarray | None:
    """The cheapest matching of any graph."""
    try:
        import networkx  # pyright: ignore[reportMissingImports, reportMissingModuleSource]
    except ImportError:
        raise InputError("`Matchings(edges=...)` of a graph that is not bipartite needs networkx: pip install networkx") from None
    edge = {frozenset(pair): e for *pair, e in zip(graph.tails[used].tolist(), graph.heads[used].tolist(), used, strict=True)}
    G = networkx.Graph()
    G.add_nodes_from(range(graph.size))
    for (u, v), w in zip(edge, (-(cost * 2.0**60)).tolist(), strict=True):
        G.add_edge(u, v, weight=int(w))
    matching = networkx.max_weight_matching(G, maxcardinality=perfect)
    if perfect and 2 * len(matching) < graph.size:
        return None
    return np.array([edge[frozenset(pair)] for pair in matching], dtype=np.int64)
