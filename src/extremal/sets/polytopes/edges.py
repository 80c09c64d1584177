"""Graphs by their edges: checked, numbered, and what sets with a variable for each edge ask of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from extremal.checks import InputError
from extremal.sets.base import ConvexSet


class Edges(tuple):
    """Pairs of nodes that are no integers, shown by their number only."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<{len(self)} edges>"


class Graph:
    """Edges with nodes numbered from 0 on, in the order of their first use; integers in increasing order."""

    def __init__(self, edges: np.ndarray | Edges):
        if isinstance(edges, Edges):
            self.index: dict[Hashable, int] = {}
            ends = np.array([[self.index.setdefault(node, len(self.index)) for node in pair] for pair in edges])
        else:
            nodes, ends = np.unique(edges, return_inverse=True)
            self.index, ends = {node: i for i, node in enumerate(nodes.tolist())}, ends.reshape(edges.shape)
        self.size, self.tails, self.heads = len(self.index), ends[:, 0], ends[:, 1]

    @cached_property
    def incidence(self) -> Any:
        """The n x E matrix with 1 at the tail and -1 at the head of each edge."""
        E = len(self.tails)
        places = np.concatenate([self.tails, self.heads]), np.tile(np.arange(E), 2)
        return sp.csr_array((np.repeat([1.0, -1.0], E), places), shape=(self.size, E))

    def topological(self) -> list[tuple[int, int, int]]:
        """(tail, head, e) of the edges, each after all that lead to its tail; fewer than all if there is a cycle."""
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
        """Of all edges between the same two nodes, that of least cost; the first one on ties."""
        pairs = np.minimum(self.tails, self.heads) * self.size + np.maximum(self.tails, self.heads)
        order = np.lexsort((cost, pairs))
        return order[np.append(True, np.diff(pairs[order]) > 0)]

    @cached_property
    def sides(self) -> np.ndarray | None:
        """0 or 1 for each node so that every edge joins a 0 and a 1, or None if the graph is not bipartite."""
        near = [[] for _ in range(self.size)]
        for tail, head in zip(self.tails.tolist(), self.heads.tolist(), strict=True):
            near[tail].append(head)
            near[head].append(tail)
        side = np.full(self.size, -1)
        for root in range(self.size):
            todo, side[root] = ([root], 0) if side[root] < 0 else ([], side[root])
            while todo:  # all that is connected to the root, alternating
                v = todo.pop()
                for w in near[v]:
                    if side[w] < 0:
                        side[w] = 1 - side[v]
                        todo.append(w)
        return None if (side[self.tails] == side[self.heads]).any() else side


@dataclass(frozen=True, eq=False, repr=False)
class EdgeSet(ConvexSet):
    """A set of vectors with a number for each edge of a graph."""

    edges: Any
    shape: tuple[int, ...] | None = field(init=False, default=None)

    @cached_property
    def _graph(self) -> Graph:
        return Graph(self.edges)


def listed(call: str, edges: Any, loops: bool = True) -> np.ndarray | Edges:
    """Edges as an E x 2 array of integers, or as pairs of other nodes; refused if they are none."""
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
