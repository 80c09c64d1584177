"""Polytopes: what does not fit the contract of the catalogue."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import math
import pickle
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import extremal as ex
from extremal.sets.base import Faced, Warm
from extremal.sets.oracle import distance, member
from extremal.sets.polytopes.edges import PathPolytope
from extremal.sets.polytopes.general import ConvexHull, IntegerHull, Polytope
from extremal.sets.polytopes.graphs import Matchings, SpanningTrees
from extremal.sets.polytopes.transport import Birkhoff, TransportPolytope

seeds = st.integers(0, 2**32 - 1)
TRIANGLE = [(0, 1), (1, 2), (2, 0)]


# membership by the oracle


def project_to_l1(x, radius) -> np.ndarray:
    """By the threshold t with sum max(|x| - t, 0) = radius, found by bisection."""
    if np.abs(x).sum() <= radius:
        return x
    low, high = 0.0, np.abs(x).max()
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(np.abs(x) - middle, 0).sum() > radius else (low, middle)
    return np.sign(x) * np.maximum(np.abs(x) - low, 0)


@given(seed=seeds, d=st.integers(1, 12), far=st.sampled_from([0.3, 1.0, 1.001, 3.0]))
def test_distances_are_bounded_on_both_sides(seed, d, far):
    rng = np.random.default_rng(seed)
    C, x = ex.L1Ball(2.0), rng.standard_normal(d)
    x *= 2.0 * far / np.abs(x).sum()
    true = np.linalg.norm(x - project_to_l1(x, 2.0))
    found = distance(C.lmo, x)
    assert found.lower <= true + 1e-12
    assert found.upper >= true - 1e-12
    assert found.upper == pytest.approx(np.linalg.norm(found.nearest - x), abs=1e-12)
    assert C.contains(found.nearest, 1e-12)
    assert found.inside == (far <= 1)
    if not found.inside:  # the direction is a proof, by the definition of the set
        g = found.direction
        assert -2.0 * np.abs(g).max() - g @ x >= found.lower * np.linalg.norm(g) - 1e-12
        assert found.lower > 1e-9


@given(seed=seeds, d=st.integers(1, 8), size=st.sampled_from([1e-100, 1e-9, 1.0, 1e9, 1e100]))
def test_membership_does_not_depend_on_the_scale(seed, d, size):
    rng = np.random.default_rng(seed)
    C = ex.Simplex(size)
    x = size * rng.dirichlet(np.ones(d))
    assert member(C, x)
    x[0] += 1e-6 * size
    assert not member(C, x)
    assert member(C, x, 1e-5)


@pytest.mark.parametrize("d", [2, 5, 10])
def test_points_on_a_curved_boundary(d):
    """An ellipsoid off the origin: its centre tells the oracle nothing."""
    rng = np.random.default_rng(d)
    A, centre = rng.standard_normal((d, d)), rng.standard_normal(d)
    A /= np.linalg.norm(A, 2)

    def lmo(g):
        h = A.T @ (g / np.abs(g).max())
        return ex.points.DenseVertex(centre - A @ (h / np.linalg.norm(h)))

    u = rng.standard_normal(d)
    u = A @ (u / np.linalg.norm(u))
    assert distance(lmo, centre + u).inside
    assert distance(lmo, centre + 0.9 * u).inside
    assert not distance(lmo, centre + 1.01 * u).inside


def test_what_is_not_proved_within_the_limit_is_not_inside():
    C, x = ex.Simplex(), np.full(20, 1 / 20)
    assert distance(C.lmo, x).inside
    cut = distance(C.lmo, x, limit=5)
    assert not cut.inside
    assert cut.lower == 0
    assert cut.upper > 1e-9
    assert distance(C.lmo, x, start=x, limit=1).inside  # a point to begin with


def test_proofs_rest_on_the_bounds_of_inexact_oracles():
    """An oracle that misses the best vertices, and says by how much: points that it does not reach are not proved outside."""

    @dataclasses.dataclass(frozen=True)
    class Rough(ex.points.DenseVertex):
        low: float = 0.0  # type: ignore[misc]

    def lmo(g):
        return Rough(np.array([0.5, 0.5]), float(g.min()))

    unreached = distance(lmo, np.array([0.9, 0.1]))
    assert unreached.lower <= 0
    assert not unreached.inside
    outside = distance(lmo, np.array([2.0, 2.0]))
    assert 0 < outside.lower <= math.sqrt(4.5)


def test_no_point_is_too_far_or_too_odd():
    C = ConvexHull(np.eye(3))
    assert not member(C, np.full(3, 1e200))
    assert not member(C, np.array([np.inf, 0.0, 0.0]))
    assert not member(C, np.array([np.nan, 0.0, 0.0]))
    assert member(C, np.array([1.0, 0.0, 0.0]), 0.0)
    assert member(C, np.array([0.5, 0.5, 0.0], np.float32))


# hulls of points


def test_vertices_of_hulls_are_views_of_the_points():
    C = ConvexHull(np.eye(4))
    v = C.lmo(np.array([1.0, 2.0, 0.0, 3.0]))
    assert np.shares_memory(v.values, C.points)
    with pytest.raises(ValueError, match="read-only"):
        v.values[0] = 1.0


def test_diameters_of_many_points_are_bounds():
    P = np.random.default_rng(0).standard_normal((2001, 3))
    exact = max(float(np.linalg.norm(P - p, axis=1).max()) for p in P)
    assert ConvexHull(P[:2000]).diameter <= exact + 1e-12
    assert exact <= ConvexHull(P).diameter <= 2 * exact


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([1.0, 2.0], "points of real numbers in rows"),
        (np.zeros((0, 3)), "points of real numbers in rows"),
        ([["a"]], "points of real numbers in rows"),
        ([[1.0], [np.nan]], "must be finite, got nan"),
        ([[1.0], [1.0, 2.0]], "unequal length"),
    ],
)
def test_points_that_are_none(points, message):
    with pytest.raises(ex.InputError, match=message):
        ConvexHull(points)


# inequalities

BOX = {"A_ub": [[1.0, 1.0]], "b_ub": [1.0], "bounds": (0, None)}


@pytest.mark.parametrize("kind", [Polytope, IntegerHull])
@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"A_ub": [[1.0, 0.0]], "b_ub": [-1.0], "bounds": (0, None)},
            "feasible point, but HiGHS calls its constraints: Infeasible",
        ),
        ({"A_eq": [[1.0, 1.0], [1.0, 1.0]], "b_eq": [1.0, 2.0]}, "feasible point, but HiGHS calls its constraints: Infeasible"),
        ({"A_ub": [[1.0, -1.0]], "b_ub": [1.0], "bounds": (0, None)}, "bounded, but HiGHS calls it: Unbounded"),  # a ray
        ({"A_ub": [[1.0, 1.0], [-1.0, -1.0]], "b_ub": [1.0, 1.0]}, "bounded, but HiGHS calls it: Unbounded"),  # a line
        ({"A_ub": [[1.0, 1.0], [1.0, -1.0]], "b_ub": [1.0, 1.0]}, "bounded, but HiGHS calls it: Unbounded"),  # a cone of slacks
        ({"bounds": [(0, 1), (None, 1)]}, r"Unbounded \(variable 1 has no limit"),
        ({"A_ub": [[1.0, 1.0]], "bounds": (0, 1)}, "b_ub=...*given together"),
        ({"b_eq": [1.0], "bounds": [(0, 1)]}, "A_eq=.*given together"),
        ({"A_ub": [[1.0]], "b_ub": [1.0], "A_eq": [[1.0, 1.0]], "b_eq": [1.0]}, "the same number of columns"),
        ({"A_ub": [[1.0]], "b_ub": [1.0, 2.0]}, "one number for each of the 1 rows"),
        ({"A_ub": [1.0], "b_ub": [1.0]}, r"A_ub=...\)` must be a matrix"),
        ({"A_ub": [[np.nan]], "b_ub": [1.0]}, "must be finite, got nan"),
        ({"A_ub": sp.csr_array([[np.inf]]), "b_ub": [1.0]}, "must be finite, got inf"),
        ({"A_ub": [[1.0]], "b_ub": [np.inf]}, "must be finite, got inf"),
        ({}, "a pair .lower, upper., or one for each"),
        ({"bounds": (0, 1)}, "a pair .lower, upper., or one for each"),  # for how many variables?
        ({"A_ub": [[1.0, 1.0]], "b_ub": [1.0], "bounds": [(0, 1)]}, "one for each of the 2 variables"),
        ({"bounds": [(0, "b")]}, "numbers or None"),
        ({"bounds": [(1, 0)]}, "lower <= upper"),
        ({"bounds": [(0, np.nan)]}, "lower <= upper"),
    ],
)
def test_constraints_that_are_refused(kind, given, message):
    with pytest.raises(ex.InputError, match=message):
        kind(**given)


def test_bounds_are_those_of_linprog():
    both = Polytope(**BOX)
    assert both == Polytope(**BOX | {"bounds": [(0, None), (0, np.inf)]})
    assert both == Polytope(**BOX | {"bounds": np.array([[0, np.inf], [0, np.inf]])})
    assert both != Polytope(**BOX | {"bounds": [(0, None), (0, 1)]})
    assert both != Polytope(**BOX | {"A_ub": sp.csr_array(BOX["A_ub"])})  # a sparse matrix is kept as one
    sparse = Polytope(**BOX | {"A_ub": sp.coo_array(BOX["A_ub"])})
    assert sparse == Polytope(**BOX | {"A_ub": sp.csc_array(BOX["A_ub"])})
    assert "sparse" in repr(sparse)


def test_what_was_given_stays_the_users_own():
    A = np.array(BOX["A_ub"])
    C = Polytope(**BOX | {"A_ub": A})
    A[0, 0] = 100.0
    assert C.lmo(np.array([-1.0, 0.0])).to_array()[0] == 1.0


@pytest.mark.parametrize(
    ("C", "D"),
    [
        (Polytope(A_eq=np.ones((1, 6)), b_eq=[2.0], bounds=(0, None)), 2 * math.sqrt(2)),  # a simplex
        (Polytope(bounds=[(0, 1), (-1, 2)]), math.sqrt(10)),  # a box
        (Polytope(A_ub=-np.ones((1, 4)), b_ub=[-3.0], bounds=(0, 1)), math.sqrt(2)),  # the far corner of a box
        (IntegerHull(A_ub=[[2.0, 2.0]], b_ub=[3.0], bounds=(0, None)), math.sqrt(2)),
    ],
    ids=str,
)
def test_bounds_on_diameters_that_are_exact(C, D):
    assert C.diameter == pytest.approx(D, rel=1e-12)


def test_large_polytopes_keep_their_bounds_for_the_diameter():
    simplex = Polytope(A_eq=np.ones((1, 150)), b_eq=[1.0], bounds=(0, 1))
    assert simplex.diameter == pytest.approx(math.sqrt(2), rel=1e-12)


@pytest.mark.parametrize("installed", [True, False])
def test_answers_from_the_last_basis_are_as_good(installed, monkeypatch):
    if installed:
        pytest.importorskip("highspy")
    else:
        monkeypatch.setitem(sys.modules, "highspy", None)
    rng = np.random.default_rng(3)
    A = rng.standard_normal((40, 15))
    C, fresh = (Polytope(A, rng.random(40) + 0.1, bounds=(-1, 1)) for rng in (np.random.default_rng(4), np.random.default_rng(4)))
    g, near, first = rng.standard_normal(15), None, None
    for _ in range(12):
        near = C.lmo_from(g, near)
        assert near.dot(g) == pytest.approx(fresh.lmo(g).dot(g), abs=1e-11)
        assert C.contains(near.to_array())
        first = first or (g, near.key)
        g = g + 0.2 * rng.standard_normal(15)
    assert C.lmo(first[0]).key == first[1]  # without a hint, whatever was asked before


@pytest.mark.parametrize("C", [Polytope(**BOX), TransportPolytope([1.0, 2.0], [2.0, 1.0])], ids=str)
def test_copies_leave_the_solver_behind(C):
    assert isinstance(C, Warm)
    g = np.random.default_rng(0).standard_normal(C.shape)
    v = C.lmo_from(g, None)
    for other in (copy.copy(C), copy.deepcopy(C), pickle.loads(pickle.dumps(C))):
        assert other == C
        assert other.lmo_from(g, v).key == v.key


def test_equal_vertices_have_equal_keys():
    C = Polytope(A_ub=[[3.0, 7.0], [7.0, 3.0]], b_ub=[1.0, 1.0], bounds=(0, None))
    rng = np.random.default_rng(0)
    keys = {C.lmo(-rng.random(2)).key for _ in range(50)}
    assert len(keys) == 3  # (0, 1/7), (1/10, 1/10), (1/7, 0)


def test_hulls_of_no_integer_point():
    with pytest.raises(ex.InputError, match="integer point, but HiGHS calls its constraints: Infeasible"):
        IntegerHull(A_eq=[[2.0, 2.0]], b_eq=[1.0], bounds=(0, 1))


@pytest.mark.parametrize("integrality", [0, 2, 1.0, [1], [1, 2], [0, 0], "1"])
def test_integrality_that_is_none(integrality):
    with pytest.raises(ex.InputError, match="must be 1, or 0 and 1 for each of the 2 variables"):
        IntegerHull(**BOX, integrality=integrality)


# sums of rows and columns


def test_transports_that_do_not_add_up():
    with pytest.raises(ex.InputError, match="equal totals, got 3 and 4"):
        TransportPolytope([1.0, 2.0], [4.0])
    with pytest.raises(ex.InputError, match=r"b=...\)` must be non-negative"):
        TransportPolytope([1.0], [2.0, -1.0])
    with pytest.raises(ex.InputError, match=r"a=...\)` must be non-negative with a positive total"):
        TransportPolytope([0.0], [0.0])
    with pytest.raises(ex.InputError, match=r"a=...\)` must be a vector"):
        TransportPolytope([[1.0]], [1.0])


def test_totals_may_differ_by_rounding():
    a, b = np.full(10, 0.1), np.full(3, 1 / 3)
    C = TransportPolytope(a, b * (1 + 1e-12))
    assert C.contains(C.lmo(np.random.default_rng(0).standard_normal((10, 3))).to_array())


@given(seed=seeds, m=st.integers(1, 5), n=st.integers(1, 5))
def test_plans_have_few_entries(seed, m, n):
    rng = np.random.default_rng(seed)
    C = TransportPolytope(*(rng.dirichlet(np.ones(k)) for k in (m, n)))
    assert np.count_nonzero(C.lmo(rng.standard_normal((m, n))).to_array()) <= m + n - 1


@pytest.mark.parametrize(
    "C",
    [Birkhoff(1), TransportPolytope([3.0], [1.0, 2.0]), TransportPolytope([0.0, 3.0], [1.0, 2.0]), PathPolytope([(0, 1)], 0, 1)],
    ids=str,
)
def test_sets_of_one_point(C):
    assert isinstance(C, Faced)
    x, g = C.start(), np.random.default_rng(0).standard_normal(C.shape)
    assert C.diameter == 0
    assert C.contains(x)
    for v in (C.lmo(g), C.lmo(-g), C.away(g, x)):
        np.testing.assert_allclose(v.to_array(), x, atol=1e-12)
    assert C.max_step(x, C.lmo(g), C.away(g, x)) == 1.0


@pytest.mark.parametrize("n", [0, -1, 2.0, True, "3"])
def test_sizes_that_are_none(n):
    with pytest.raises(ex.InputError, match="must be a whole number"):
        Birkhoff(n)


# graphs


@pytest.mark.parametrize("kind", [SpanningTrees, Matchings, lambda edges: PathPolytope(edges, 0, 1)])
@pytest.mark.parametrize("edges", [5, [1, 2], [(1, 2, 3)], [(1, [2])], np.zeros((2, 3), int)])
def test_edges_that_are_none(kind, edges):
    with pytest.raises(ex.InputError, match="must be pairs of nodes"):
        kind(edges)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SpanningTrees([]), "must have an edge"),
        (lambda: SpanningTrees([(0, 1), (2, 3)]), "connected"),
        (lambda: SpanningTrees([(0, 1), (2, 2)]), "a loop at 2"),
        (lambda: Matchings([("a", "a")]), "a loop at 'a'"),
        (lambda: Matchings([(0, 1), (1, 2)], perfect=True), "a perfect matching, and there is none"),
        (lambda: Matchings([(0, 1), (0, 2), (0, 3), (4, 3)], perfect=True), "a perfect matching, and there is none"),
        (lambda: Matchings([(0, 1)], perfect=1), "True or False"),
        (lambda: PathPolytope([(0, 1), (1, 2), (2, 1), (2, 3)], 0, 3), "no directed cycle"),
        (lambda: PathPolytope([(0, 0), (0, 1)], 0, 1), "no directed cycle"),
        (lambda: PathPolytope([(0, 1), (2, 1)], 0, 2), "reachable from 0, and 2 is not"),
        (lambda: PathPolytope([(0, 1)], 0, "t"), r"sink=...\)` must be a node of an edge, got 't'"),
        (lambda: PathPolytope([(0, 1)], 7, 1), r"source=...\)` must be a node of an edge, got 7"),
        (lambda: PathPolytope([(0, 1)], 0, 0), "must differ"),
    ],
)
def test_graphs_that_are_refused(make, message):
    with pytest.raises(ex.InputError, match=message):
        make()


def test_edges_are_values():
    pairs = [(0, 1), (1, 2), (0, 2)]
    assert SpanningTrees(pairs) == SpanningTrees(np.array(pairs)) == SpanningTrees(tuple(map(list, pairs)))
    assert SpanningTrees(pairs) != SpanningTrees(pairs[::-1])
    named = SpanningTrees([("a", "b"), ("b", "c"), ("a", "c")])
    assert repr(named) == "SpanningTrees(edges=<3 edges>)"
    assert named == copy.deepcopy(named)
    assert PathPolytope(np.array(pairs), np.int64(0), 2).start().sum() in (1, 2)


def test_weights_of_zero_are_no_missing_edges():
    C = SpanningTrees(TRIANGLE)
    assert C.lmo(np.array([0.0, 5.0, 0.0])).to_array().tolist() == [1, 0, 1]
    D = Matchings([(0, 1), (1, 2), (2, 3), (3, 0)], perfect=True)
    assert D.lmo(np.array([0.0, 1.0, 0.0, -0.5])).to_array().tolist() == [1, 0, 1, 0]


def test_paths_may_have_any_length():
    """A long one, by hand: a chain with a shortcut at each link."""
    n = 500
    C = PathPolytope([(i, i + 1) for i in range(n)] + [(i, i + 2) for i in range(n - 1)], 0, n)
    g = np.concatenate([np.full(n, -1.0), np.full(n - 1, -3.0)])  # n / 2 shortcuts earn most
    assert C.lmo(g).dot(g) == -1.5 * n
    assert C.lmo(-g).dot(g) == -n
    assert C.diameter == pytest.approx(math.sqrt(1.5 * n))  # all links against all even shortcuts


@pytest.mark.parametrize(
    ("C", "x"),
    [
        (PathPolytope([("s", "t"), ("s", "t")], "s", "t"), np.zeros(2)),
        (Birkhoff(2), np.array([[1.0, 1.0], [0.0, 0.0]])),
        (TransportPolytope([2.0, 2.0], [2.0, 2.0]), np.array([[1.0, 1.0], [0.0, 0.0]])),
        (TransportPolytope([1.0, 2.0], [2.0, 1.0]), np.array([[1.0, 1.0], [0.0, 0.0]])),
        (TransportPolytope([1.0, 2.0], [2.0, 1.0]), np.zeros((2, 2))),
    ],
    ids=str,
)
def test_faces_are_those_of_points_in_the_set(C, x):
    with pytest.raises(ex.InputError, match=rf"{type(C).__name__}.away\(g, x\)` must be asked at a point x of the set"):
        C.away(np.ones(C.shape), x)


def test_general_matchings_need_networkx(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ex.InputError, match="pip install networkx"):
        Matchings(TRIANGLE)
    assert Matchings([(0, 1), (1, 2)]).diameter == pytest.approx(math.sqrt(2))


def test_odd_cycles_cut_off_half_integral_points():
    pytest.importorskip("networkx")
    C = Matchings(TRIANGLE)
    assert not C.contains(np.full(3, 0.5))  # each node has 1, but all three may have 1 only
    assert C.contains(np.full(3, 1 / 3))
    with pytest.raises(ex.InputError, match="there is none"):
        Matchings(TRIANGLE, perfect=True)


@given(seed=seeds)
def test_blossoms_are_exact_for_costs_next_to_each_other(seed):
    """Costs that differ by rounding only; sums are compared exactly, as integers."""
    pytest.importorskip("networkx")
    rng = np.random.default_rng(seed)
    edges = list(itertools.combinations(range(4), 2))
    g = -1.0 + 2.0**-52 * rng.integers(0, 20, 6)
    used = Matchings(edges, perfect=True).lmo(g).indices
    pairs = [(0, 5), (1, 4), (2, 3)]  # the perfect matchings of four nodes
    exact = [sum(int(g[e] * 2**52) for e in pair) for pair in pairs]
    assert sum(int(g[e] * 2**52) for e in used) == min(exact)
