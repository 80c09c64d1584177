"""The sub-problems of sliding: against projections, from the atoms of the last, within their limit on questions."""

from __future__ import annotations

import numpy as np
import pytest
from cases import DIM
from sliding_problems import VECTOR_SETS, rng

import extremal as ex
from extremal.moves.sliding.prox import Solver
from extremal.quadratic.solver import Hull, settle_atoms


class Asked:
    """A set that counts."""

    def __init__(self, C):
        self.C, self.lmos = C, 0

    def lmo(self, g):
        self.lmos += 1
        return self.C.lmo(g)


def sub_gap(C, g, centre, beta, u) -> float:
    slope = g + beta * (u - centre)
    return float(np.vdot(slope, u)) - C.lmo(slope).dot(slope)


@pytest.mark.parametrize("C", VECTOR_SETS, ids=repr)
def test_sub_problems_are_solved_to_their_accuracy_from_the_atoms_of_the_last(C):
    """A chain of them: each starts from the atoms of the one before, and its gap is recomputed from the definition."""
    C = C.on(DIM)
    x, hull, asked, solve = C.start(), None, Asked(C), Solver(0.01, None, 1000)
    for k, beta in enumerate((2.0, 0.5, 30.0, 1.0, 7.0, 0.01)):
        g = rng(k).standard_normal(DIM)
        u, hull = solve(asked, g, x, hull, beta)
        assert C.contains(u, 1e-12)
        np.testing.assert_allclose(hull.atoms.x, u, atol=1e-14)
        np.testing.assert_allclose(
            hull.gram, [[v.dot(w.to_array()) for v in hull.atoms.vertices] for w in hull.atoms.vertices], atol=1e-12
        )
        assert sub_gap(C, g, x, beta, u) <= 0.01 * beta * np.sum((u - x) ** 2) + 1e-12
        if hasattr(C, "project"):
            exact = C.project(x - g / beta)
            assert np.sum((u - exact) ** 2) <= 0.02 * np.sum((u - x) ** 2) + 1e-12  # q is beta-strongly convex
        x = u
    assert asked.lmos < 400


def test_a_known_face_costs_one_question():
    """Once the atoms of the answer are there, a sub-problem is solved on them, and the oracle only confirms it."""
    C, asked, solve = ex.Simplex().on(DIM), None, Solver(0.1, None, 1000)
    x, hull = C.start(), None
    for k in range(30):
        asked = Asked(C)
        x, hull = solve(asked, np.where(np.arange(DIM) < 3, -1.0, 1.0) + 0.01 * rng(k).standard_normal(DIM), x, hull, 1.0)
    assert asked.lmos == 1
    assert len(hull.atoms) <= 3


def test_the_limit_on_questions_holds_and_the_point_is_feasible():
    C, asked = ex.L2Ball(1.0).on(DIM), Asked(ex.L2Ball(1.0))
    u, _ = Solver(1e-9, None, 3)(asked, rng().standard_normal(DIM), C.project(rng(1).standard_normal(DIM)), None, 0.5)
    assert asked.lmos == 3
    assert C.contains(u, 1e-12)


def test_weights_of_atoms_are_settled():
    """q falls by what the slopes say, and nothing is left to be won."""
    V = rng(1).standard_normal((12, 5))
    g, centre, beta = rng(2).standard_normal(5), rng(3).dirichlet(np.ones(12)), 3.0
    hull = Hull.of(ex.points.ActiveSet([ex.points.DenseVertex(v) for v in V], centre))
    w, slopes = settle_atoms(hull, V @ g, beta, 1e-10, hull.atoms.weights)
    np.testing.assert_allclose(slopes, V @ g + beta * V @ V.T @ (w - centre), atol=1e-9)
    assert slopes[w > 0].max() - slopes.min() <= 1e-9
    assert w.min() >= 0
    assert w.sum() == pytest.approx(1, abs=1e-12)


def test_sparse_starting_points_are_kept_sparse():
    x = np.array([0.0, 0.25, 0.0, 0.75])
    v = ex.points.Coordinate(0, 1.0, (4,))
    assert isinstance(Hull.at(x, v).atoms.vertices[0], ex.points.SparseVertex)
    assert isinstance(Hull.at(x, ex.points.DenseVertex(x)).atoms.vertices[0], ex.points.DenseVertex)
    for like in (v, ex.points.DenseVertex(x)):
        np.testing.assert_array_equal(Hull.at(x, like).atoms.x, x)
