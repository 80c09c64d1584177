"""Set cases: polytopes, by brute force over their vertices or by HiGHS on their definitions."""

from __future__ import annotations

import importlib.util
import itertools
import math

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog
from set_case import SetCase

from extremal.sets.polytopes.edges import PathPolytope
from extremal.sets.polytopes.general import ConvexHull, IntegerHull, Polytope
from extremal.sets.polytopes.graphs import Matchings, SpanningTrees
from extremal.sets.polytopes.transport import Birkhoff, TransportPolytope

GENERATOR = np.random.default_rng(5)


def mixture(points, rng) -> np.ndarray:
    """A random one, exact if all points are equal."""
    points = np.array(points)
    return points[0] + np.tensordot(rng.dirichlet(np.ones(len(points))), points - points[0], 1)


def by_vertices(C, vertices, shape=None, **known) -> SetCase:
    """A case whose vertices (and maybe further points) are all known."""
    V = np.array(vertices, np.float64).reshape(len(vertices), -1)
    shape = V.shape[1:] if shape is None else shape
    return SetCase(
        C,
        minimum=lambda g: float((V @ g.reshape(-1)).min()),
        sample=lambda rng: mixture(V, rng).reshape(shape),
        **known,
    )


def farthest(V) -> float:
    return max(float(np.linalg.norm(v - w)) for v in V for w in V)


def by_highs(C, A_eq, b_eq, sample, **known) -> SetCase:
    """A case of the form {x >= 0, A_eq x = b_eq}."""
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}

    def minimum(g):
        top = np.abs(g).max() or 1.0
        return linprog(1e4 / top * g.reshape(-1), A_eq=A_eq, b_eq=b_eq, method="highs-ds", options=tight).fun * top / 1e4

    return SetCase(C, minimum, sample, **known)


# hulls of points


def hull(points, name="") -> SetCase:
    P = np.array(points)
    flat, title = P.reshape(len(P), -1), name and f"ConvexHull {name}"
    known = {"diameter": farthest(flat), "scaled": lambda c: ConvexHull(c * P), "name": title}
    return by_vertices(ConvexHull(P), flat, P.shape[1:], **known)


HULLS = (
    hull(GENERATOR.standard_normal((9, 5))),
    hull(GENERATOR.standard_normal((20, 2)) + 7.0),
    hull(GENERATOR.standard_normal((6, 2, 3))),
    hull([[1.0], [3.0], [2.0]]),
    hull([[1.0, 0.0, 2.0], [2.0, 0.0, 4.0], [2.0, 0.0, 4.0], [4.0, 0.0, 8.0]], "with points in line, one of them twice"),
)
POINT = by_vertices(ConvexHull([[1.0, -2.0]]), [[1.0, -2.0]], diameter=0.0)


# sums of rows and columns


def sums(m, n) -> np.ndarray:
    """The matrix that takes an m x n matrix to the sums of its rows and of its columns."""
    return np.vstack([np.kron(np.eye(m), np.ones(n)), np.kron(np.ones(m), np.eye(n))])


def birkhoff(n) -> SetCase:
    eye, every = np.eye(n), list(itertools.permutations(range(n)))

    def sample(rng):
        return mixture([eye[list(every[i])] for i in rng.choice(len(every), 4)], rng)

    D = max(np.linalg.norm(eye - eye[list(p)]) for p in every)
    return by_highs(Birkhoff(n), sums(n, n), np.ones(2 * n), sample, diameter=D)


def corner(a, b, rng) -> np.ndarray:
    """A plan by the north-west corner rule, in a random order of rows and columns."""
    a, b, X = list(a), list(b), np.zeros((len(a), len(b)))
    rows, columns = list(rng.permutation(len(a))), list(rng.permutation(len(b)))
    while rows and columns:
        i, j = rows[0], columns[0]
        X[i, j] = moved = min(a[i], b[j])
        a[i], b[j] = a[i] - moved, b[j] - moved
        (rows if a[i] <= b[j] else columns).pop(0)
    return X


def transport(a, b, diameter=None) -> SetCase:
    a, b = np.array(a, float), np.array(b, float)

    def sample(rng):
        return mixture([corner(a, b, rng) for _ in range(4)], rng)

    return by_highs(
        TransportPolytope(a, b), sums(len(a), len(b)), np.append(a, b), sample,
        diameter=diameter, scaled=lambda c: TransportPolytope(c * a, c * b), name=f"TransportPolytope({a}, {b})",
    )  # fmt: skip


SUMS = (
    *(birkhoff(n) for n in (2, 3, 4)),
    transport([1.0, 2.0, 0.5], [0.75, 1.25, 1.0, 0.5]),
    transport([0.3, 0.7], [0.1, 0.2, 0.3, 0.4]),
    transport([2.0, 2.0, 2.0], [2.0, 2.0, 2.0], diameter=2 * math.sqrt(6)),
    transport([1.0, 0.0, 4.0], [2.0, 3.0]),
)


# paths


def paths(edges, source, sink) -> list[np.ndarray]:
    """All of them, by depth-first search."""
    if source == sink:
        return [np.zeros(len(edges))]
    unit = np.eye(len(edges))
    return [unit[e] + rest for e, (u, v) in enumerate(edges) if u == source for rest in paths(edges, v, sink)]


def flows(edges, source, sink) -> SetCase:
    every = paths(edges, source, sink)
    nodes = sorted({v for edge in edges for v in edge}, key=str)
    A = np.array([[float(v == u) - float(v == w) for u, w in edges] for v in nodes])
    b = np.array([float(v == source) - float(v == sink) for v in nodes])
    return by_highs(
        PathPolytope(edges, source, sink), A, b, lambda rng: mixture(every, rng),
        diameter=farthest(every), name=f"PathPolytope with {len(edges)} edges, {len(every)} paths",
    )  # fmt: skip


GRID = [
    ((i, j), (i + di, j + dj)) for i in range(3) for j in range(3) for di, dj in ((0, 1), (1, 0)) if i + di < 3 and j + dj < 3
]
PATHS = (
    flows([("s", "a"), ("s", "b"), ("a", "t"), ("b", "t"), ("a", "b")], "s", "t"),
    flows([(3, 1), (3, 1), (1, 0), (3, 0), (1, 7), (9, 1)], 3, 0),  # parallel edges, an end and a beginning that lead nowhere
    flows(GRID, (0, 0), (2, 2)),
    flows([(0, 1), (0, 1)], 0, 1),
)


# trees and matchings


def is_tree(edges, chosen) -> bool:
    """Whether the chosen edges connect all nodes, by merging labels; their number is known to be right."""
    label = {v: v for edge in edges for v in edge}
    for e in chosen:
        u, v = (label[end] for end in edges[e])
        label = {node: u if name == v else name for node, name in label.items()}
    return len(set(label.values())) == 1


def indicators(E, subsets) -> np.ndarray:
    return np.array([np.isin(np.arange(E), chosen) for chosen in subsets], float)


def trees(edges) -> SetCase:
    n, E = len({v for edge in edges for v in edge}), len(edges)
    every = indicators(E, [c for c in itertools.combinations(range(E), n - 1) if is_tree(edges, c)])
    return by_vertices(SpanningTrees(edges), every, name=f"SpanningTrees of {n} nodes and {E} edges")


def matchings(edges, perfect=False) -> SetCase:
    n, E = len({v for edge in edges for v in edge}), len(edges)
    sizes = (n // 2,) if perfect else range(n // 2 + 1)
    subsets = [c for k in sizes for c in itertools.combinations(range(E), k) if len({v for e in c for v in edges[e]}) == 2 * k]
    name = f"{'perfect ' * perfect}Matchings of {n} nodes and {E} edges"
    return by_vertices(Matchings(edges, perfect), indicators(E, subsets), name=name)


def complete(n) -> list[tuple[int, int]]:
    return list(itertools.combinations(range(n), 2))


TREES = (
    trees(complete(4)),
    trees([("a", "b"), ("b", "c"), ("c", "a"), ("a", "b"), ("c", "d")]),  # parallel edges and a bridge
    trees([(5, 2)]),
    trees([(0, 1), (2, 1), (1, 3)]),  # one tree only
)
BIPARTITE = (
    matchings([(i, "abc"[j]) for i in range(2) for j in range(3)]),
    matchings([(i, "abc"[j]) for i in range(3) for j in range(3)], perfect=True),
    matchings([(0, 1), (2, 1), (2, 3), (0, 1), (3, 4)]),  # a path with a double edge
    matchings([(0, 1), (2, 1), (2, 3)], perfect=True),  # one perfect matching
    matchings([(1, 0)]),
)
GENERAL = (
    ()
    if importlib.util.find_spec("networkx") is None
    else (
        matchings(complete(4)),
        matchings(complete(4), perfect=True),
        matchings([(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 2), (0, 1)]),  # an odd cycle, a chord, a double edge
    )
)


# inequalities


def corners(A, b, E, e, bounds) -> np.ndarray:
    """All vertices of {A x <= b, E x = e, bounds}: points of as many equations as variables that keep the rest."""
    d = len(bounds)
    lower, upper = bounds[:, 0], bounds[:, 1]
    rows = np.vstack([A, -np.eye(d)[np.isfinite(lower)], np.eye(d)[np.isfinite(upper)]])
    sides = np.concatenate([b, -lower[np.isfinite(lower)], upper[np.isfinite(upper)]])
    found, rank = [], np.linalg.matrix_rank(E) if len(E) else 0
    for chosen in itertools.combinations(range(len(rows)), d - rank):
        M, m = np.vstack([E, rows[list(chosen)]]), np.append(e, sides[list(chosen)])
        if np.linalg.matrix_rank(M) == d:
            x = np.linalg.lstsq(M, m, rcond=None)[0]
            if (rows @ x <= sides + 1e-9).all():
                found.append(x)
    return np.array(found)


def polytope(A=None, b=None, E=None, e=None, bounds=(None, None), d=None, sparse=False, name="", radius=None) -> SetCase:
    d = d or np.shape(A if A is not None else E)[1]
    A, b = np.zeros((0, d)) if A is None else np.array(A, float), np.zeros(0) if A is None else np.array(b, float)
    E, e = np.zeros((0, d)) if E is None else np.array(E, float), np.zeros(0) if e is None else np.array(e, float)
    pairs = np.array([bounds] * d if np.ndim(bounds) == 1 else bounds, dtype=object)
    ends = np.array([[-np.inf if lo is None else lo, np.inf if hi is None else hi] for lo, hi in pairs], float)
    form = sp.csr_array if sparse else np.array

    def scaled(c):
        rows = {"A_ub": form(A), "b_ub": c * b} if len(A) else {}
        rows |= {"A_eq": form(E), "b_eq": c * e} if len(E) else {}
        return Polytope(**rows, bounds=c * ends, radius=None if radius is None else c * radius)

    faces = np.array(list(itertools.product([-1.0, 1.0], repeat=d)) if radius else np.zeros((0, d)))
    every = corners(np.vstack([A, faces]), np.append(b, np.full(len(faces), radius or 0.0)), E, e, ends)
    return by_vertices(scaled(1.0), every, scaled=scaled if len(every) > 1 else None, name=f"Polytope {name}")


CUTS = GENERATOR.standard_normal((5, 3))
SIDES = [(0, 1), (0, None), (-1, 1), (-0.5, None), (None, 2)]
POLYTOPES = (
    polytope([[1, 2], [3, 1]], [2, 3], bounds=(0, None), name="of a plan"),
    polytope(np.vstack([np.eye(3), -np.eye(3), CUTS]), np.ones(11), name="with free variables"),
    polytope(CUTS, np.abs(CUTS).sum(axis=1) / 2, bounds=(-1, 1), sparse=True, name="by sparse cuts of a box"),
    polytope(E=np.ones((1, 5)), e=[1.0], bounds=(0, None), name="that is a simplex"),
    polytope([[1, -1, 0, 0]], [0.0], radius=1.5, name="and an l1 ball"),
    polytope(
        [[1, -1, 0]], [0.1], [[1, 2, 3]], [0.5], [(-1, 0.3), (-2, 2), (None, None)], radius=1.0, name="mixed, and an l1 ball"
    ),
    polytope([[1, -1, 0]], [0.1], bounds=(0, None), radius=1.0, name="of one sign, and an l1 ball"),
    polytope([[1, -1, 0]], [0.1], bounds=[(None, -0.1)] * 3, radius=2.0, sparse=True, name="below 0, and an l1 ball"),
    polytope(
        [[1, 1, 1, 1, 0]], [1.5], [[1, -1, 0, 0, 1]], [0.25], [(0, 1), (0, None), (-1, 1), (-0.5, None), (None, 2)], name="mixed"
    ),
    polytope([[1, 1], [1, 1], [2, 2], [-1, 0], [0, -1]], [1, 1, 2, 0, 0], name="with rows more than once"),
    polytope(d=3, bounds=[(0, 1), (-1, 1), (2, 2)], name="that is a box, flat"),
    polytope([[2.0], [-1.0]], [6.0, 1.0], name="on a line"),
    polytope([[1e6, 0], [0, 1e-6], [-1, 0], [0, -1]], [1e6, 1e-6, 0, 0], name="with rows of all sizes"),
    polytope(E=[[1, 1], [1, -1]], e=[3, 1], name="of one point"),
)


def integers(A, b, most, **more) -> SetCase:
    """Integer points with A x <= b and 0 <= x <= most."""
    A, b = np.array(A, float), np.array(b, float)
    grid = [x for x in itertools.product(*(range(m + 1) for m in most)) if (A @ x <= b + 1e-9).all()]
    return by_vertices(IntegerHull(A, b, bounds=[(0, m) for m in most], **more), grid, name=f"IntegerHull of {len(grid)} points")


INTEGERS = (
    integers([[2, 2]], [3], (3, 3)),
    integers([[3, 5, 4, 2]], [7.5], (1, 1, 1, 1)),
    integers([[2, 1, 3], [-1, 2, 1]], [6.5, 2.5], (3, 3, 2)),
    by_vertices(  # y <= 1.5 - x / 2 for x in 0, 1, 2; and 2 y <= 2.5
        IntegerHull([[0.5, 1.0], [0.0, 2.0]], [1.5, 2.5], bounds=[(0, 2.5), (0, None)], integrality=[1, 0]),
        [(0, 0), (0, 1.25), (1, 0), (1, 1.0), (2, 0), (2, 0.5)],
        name="IntegerHull of segments",
    ),
)

CASES: tuple[SetCase, ...] = (*HULLS, POINT, *SUMS, *PATHS, *TREES, *BIPARTITE, *GENERAL, *POLYTOPES, *INTEGERS)
