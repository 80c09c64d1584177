"""Random sets of matrices, polytopes and sets made of sets, each with its definition in extended precision.

Where a definition leads to a linear program the answer of another solver stands for it: <g, s> of a feasible s bounds the
minimum from above, which is the side that a certificate must not be on.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
from problems_sets import Maker, Region, Wide, total, wide
from scipy.optimize import linear_sum_assignment, linprog

import extremal as ex

# matrices


def values(x: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Singular values."""
    return np.linalg.svd(x.astype(np.float64).reshape(shape), compute_uv=False)


def eigen(x: np.ndarray, d: int) -> np.ndarray:
    X = x.astype(np.float64).reshape(d, d)
    return np.linalg.eigvalsh((X + X.T) / 2)


def skew(x: np.ndarray, d: int) -> float:
    X = x.reshape(d, d)
    return float(np.abs(X - X.T).max())


def nuclear(rng, shape, r) -> Region:
    least, outside = (lambda g: -r * values(g, shape)[0]), (lambda x: math.fsum(values(x, shape)) / r - 1)
    return Region(ex.NuclearBall(r, shape=shape), least, outside)


def spectral(rng, shape, r) -> Region:
    least, outside = (lambda g: -r * math.fsum(values(g, shape))), (lambda x: values(x, shape)[0] / r - 1)
    return Region(ex.SpectralBall(r, shape=shape), least, outside)


def spectrahedron(rng, shape, r) -> Region:
    d = shape[0]

    def outside(x):
        trace = abs(float(total(x.reshape(d, d).diagonal()) - Wide(r)))
        return max(trace, -eigen(x, d)[0], skew(x, d)) / r

    return Region(ex.Spectrahedron(r, shape=(d, d)), lambda g: r * eigen(g, d)[0], outside)


def fantope(rng, shape, r) -> Region:
    d = shape[0]
    k = int(rng.integers(1, d + 1))

    def outside(x):
        w = eigen(x, d)
        return max(abs(float(total(x.reshape(d, d).diagonal()) - k)) / k, -w[0], w[-1] - 1, skew(x, d))

    return Region(ex.Fantope(k, shape=(d, d)), lambda g: math.fsum(eigen(g, d)[:k]), outside)


def max_norm(rng, shape, r) -> Region:
    return Region(ex.MaxNormBall(r, shape=shape), None, None)


def sums_outside(a: np.ndarray, b: np.ndarray) -> Callable[[np.ndarray], float]:
    """Of non-negative matrices with row sums a and column sums b."""
    size = max(np.abs(wide(a)).max(), np.abs(wide(b)).max())

    def outside(x):
        X = x.reshape(len(a), len(b))
        rows = max(abs(total(row) - Wide(s)) for row, s in zip(X, a, strict=True))
        cols = max(abs(total(col) - Wide(s)) for col, s in zip(X.T, b, strict=True))
        return float(max(rows, cols, -x.min()) / size)

    return outside


def birkhoff(rng, shape, r) -> Region:
    n = shape[0]

    def least(g):
        G = g.reshape(n, n)
        return total(G[linear_sum_assignment(G.astype(np.float64))])

    return Region(ex.Birkhoff(n), least, sums_outside(np.ones(n), np.ones(n)))


def transport(rng, shape, r) -> Region:
    a, b = r * rng.dirichlet(np.ones(shape[0])), r * rng.dirichlet(np.ones(shape[1]))
    b[-1] = b[-1] + (math.fsum(a) - math.fsum(b))
    return Region(ex.TransportPolytope(a, b), None, sums_outside(a, b))


# polytopes


def by_program(C: ex.ConvexSet, A, b, E, e, lower, upper, size: float) -> Region:
    """{A x <= b, E x = e, lower <= x <= upper}; rows are divided by their largest entry."""
    rows = [(wide(a) / np.abs(a).max(), Wide(t) / Wide(np.abs(a).max())) for a, t in zip(A, b, strict=True)]
    ties = [(wide(a) / np.abs(a).max(), Wide(t) / Wide(np.abs(a).max())) for a, t in zip(E, e, strict=True)]

    def outside(x):
        worst = [total(a * x) - t for a, t in rows] + [abs(total(a * x) - t) for a, t in ties]
        return float(max(*worst, (wide(lower) - x).max(), (x - wide(upper)).max()) / Wide(size))

    return Region(C, None, outside)


def polytope(rng, shape, r) -> Region:
    d, m = math.prod(shape), int(rng.integers(1, 8))
    A = rng.standard_normal((m, d)) * (rng.random((m, d)) < 0.7)
    A[:, 0] = np.where(A.any(axis=1), A[:, 0], 1.0)
    inside = r * rng.uniform(-0.5, 0.5, d)
    b = A @ inside + r * rng.exponential(1.0, m) * rng.choice([0.1, 1.0])
    E, e = np.zeros((0, d)), np.zeros(0)
    if d > 2 and rng.random() < 0.4:
        E = np.ones((1, d)) if rng.random() < 0.5 else rng.standard_normal((1, d))
        e = E @ inside
    more = {"A_eq": E, "b_eq": e} if len(E) else {}
    C = ex.Polytope(A_ub=A, b_ub=b, bounds=(-r, r), **more)
    return by_program(C, A, b, E, e, np.full(d, -r), np.full(d, r), r)


def integer_hull(rng, shape, r) -> Region:
    d = int(rng.integers(1, 5))
    A = rng.integers(-2, 5, (2, d)).astype(float)
    A[:, 0] = np.where(A.any(axis=1), A[:, 0], 1.0)
    b, most = rng.integers(1, 8, 2).astype(float), int(rng.integers(1, 4))
    grid = np.array([x for x in itertools.product(range(most + 1), repeat=d) if (A @ x <= b).all()], float)
    points = grid.astype(Wide)
    return Region(ex.IntegerHull(A, b, bounds=[(0, most)] * d), lambda g: (points @ g).min(), in_hull(grid))


def in_hull(points: np.ndarray) -> Callable[[np.ndarray], float]:
    """How far a point is from being a mixture, by a linear program: the least largest residual, relative to the points."""
    flat = points.reshape(len(points), -1)
    size = max(float(np.abs(flat).max()), 1e-300)
    m, d = flat.shape

    def outside(x):
        P, z = flat.T / size, (x / Wide(size)).astype(np.float64)
        off = -np.ones((d, 1))
        A = np.block([[P, off], [-P, off]])
        options = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
        found = linprog(
            np.append(np.zeros(m), 1.0), A_ub=A, b_ub=np.append(z, -z), A_eq=[[1.0] * m + [0.0]], b_eq=[1.0], options=options
        )
        return float(found.fun) - 1e-9 if found.status == 0 else math.nan  # no more than the solver can say

    return outside


def convex_hull(rng, shape, r) -> Region:
    m = int(rng.integers(1, 2 * math.prod(shape) + 2))
    points = r * rng.standard_normal((m, *shape)) + (r * 10 * rng.standard_normal(shape) if rng.random() < 0.2 else 0.0)
    rows = points.reshape(m, -1).astype(Wide)
    return Region(ex.ConvexHull(points), lambda g: (rows @ g).min(), in_hull(points))


def paths(rng, shape, r) -> Region:
    """From the first of some nodes in a row to the last."""
    n = int(rng.integers(2, 8))
    edges = [(i, i + 1) for i in range(n - 1)] + [(i, j) for i in range(n) for j in range(i + 2, n) if rng.random() < 0.5]
    A = np.array([[float(v == u) - float(v == w) for u, w in edges] for v in range(n)])
    b = np.array([1.0, *[0.0] * (n - 2), -1.0])

    def least(g):
        far = [Wide(0)] + [Wide(np.inf)] * (n - 1)
        for e in sorted(range(len(edges)), key=edges.__getitem__):
            u, v = edges[e]
            far[v] = min(far[v], far[u] + g[e])
        return far[-1]

    C = ex.PathPolytope(edges, 0, n - 1)
    return Region(C, least, by_program(C, [], [], A, b, np.zeros(len(edges)), np.ones(len(edges)), 1.0).outside)


def graph(rng, complete: bool = False) -> tuple[int, list[tuple[int, int]]]:
    n = int(rng.integers(2, 6))
    edges = [e for e in itertools.combinations(range(n), 2) if e[1] == e[0] + 1 or complete or rng.random() < 0.6]
    return n, edges


def indicators(E: int, subsets) -> np.ndarray:
    return np.array([np.isin(np.arange(E), chosen) for chosen in subsets], float)


def spanning(n: int, edges, chosen) -> bool:
    label = list(range(n))
    for e in chosen:
        u, v = (label[end] for end in edges[e])
        label = [u if name == v else name for name in label]
    return len(set(label)) == 1


def trees(rng, shape, r) -> Region:
    n, edges = graph(rng)
    V = indicators(len(edges), [c for c in itertools.combinations(range(len(edges)), n - 1) if spanning(n, edges, c)])
    return Region(ex.SpanningTrees(edges), lambda g: (V.astype(Wide) @ g).min(), in_hull(V))


def matchings(rng, shape, r) -> Region:
    n, edges = graph(rng)
    E = len(edges)
    chosen = [
        c
        for k in range(n // 2 + 1)
        for c in itertools.combinations(range(E), k)
        if len({v for e in c for v in edges[e]}) == 2 * k
    ]
    V = indicators(E, chosen)
    return Region(ex.Matchings(edges), lambda g: (V.astype(Wide) @ g).min(), in_hull(V))


VECTORS: dict[str, Maker] = {  # the shape is a wish where a graph or a program decides
    "Polytope": polytope, "IntegerHull": integer_hull, "PathPolytope": paths, "SpanningTrees": trees, "Matchings": matchings,
}  # fmt: skip
MATRICES: dict[str, Maker] = {
    "NuclearBall": nuclear, "SpectralBall": spectral, "MaxNormBall": max_norm, "TransportPolytope": transport,
}  # fmt: skip
SQUARE: dict[str, Maker] = {"Spectrahedron": spectrahedron, "Fantope": fantope, "Birkhoff": birkhoff}
