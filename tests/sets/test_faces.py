"""The faces of balls, against their definitions: the worst vertex of the smallest face, and the longest step."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import extremal as ex
from extremal.sets.norms.faces import longest_in_ball, longest_in_l1

D, R = 6, 2.0
RNG = np.random.default_rng(2)
CENTRE, WEIGHTS = 0.3 * RNG.standard_normal(D), np.array([1.0, 0.5, 2.0])
GROUPS = [[0, 3], [1], [2, 4, 5]]
LOWER, UPPER = np.array([-0.7, 0.0, -3.0, 0.1, -0.4, -np.inf]), np.array([0.5, 1.2, 0.0, 0.6, 3.0, np.inf])


def by_groups(y, weights=(1.0, 1.0, 1.0)):
    return sum(w * np.linalg.norm(y[h]) for w, h in zip(weights, GROUPS, strict=True)) / R


SETS = {
    "groups": (ex.GroupBall(R, GROUPS, WEIGHTS), lambda x: by_groups(x, WEIGHTS)),
    "groups, centre": (ex.GroupBall(R, GROUPS, centre=CENTRE), lambda x: by_groups(x - CENTRE)),
    "l2": (ex.L2Ball(R, shape=D), lambda x: np.linalg.norm(x) / R),
    "l2, centre": (ex.L2Ball(R, centre=CENTRE), lambda x: np.linalg.norm(x - CENTRE) / R),
    "max": (ex.LinfBall(R, centre=CENTRE), lambda x: np.abs(x - CENTRE).max() / R),
    "k-sparse": (ex.KSparseBall(0.7, k=3, shape=D), lambda x: max(np.abs(x).max() / 0.7, np.abs(x).sum() / 2.1)),
    "k-sparse, centre": (
        ex.KSparseBall(0.7, k=2, centre=CENTRE), lambda x: max(np.abs(x - CENTRE).max() / 0.7, np.abs(x - CENTRE).sum() / 1.4),
    ),
    "bounded l1": (
        ex.BoundedL1Ball(R, LOWER, UPPER), lambda x: max(np.abs(x).sum() / R, 1 + (LOWER - x).max(), 1 + (x - UPPER).max()),
    ),
}  # fmt: skip
EVERY_SET = pytest.mark.parametrize("name", SETS)


def points(name):
    """Random mixtures of vertices: inside, on faces of all dimensions, and vertices."""
    C = SETS[name][0]
    for k in range(60):
        g = RNG.standard_normal(D)
        atoms = [C.lmo(g + (0.0, 0.3, 2.0)[k % 3] * RNG.standard_normal(D)).to_array() for _ in range(1 + k % 4)]
        yield RNG.dirichlet(np.ones(len(atoms))) @ np.array(atoms)


def corners(name, x):
    """All vertices of polytopes; of round sets, those that x may be a mixture of on the boundary, and some others."""
    C = SETS[name][0]
    if name.startswith(("groups", "l2")):
        centre = np.zeros(D) if C.centre is None else C.centre
        parts, weights = (GROUPS, C.weights) if name.startswith("groups") else ([list(range(D))], np.ones(1))
        for h, w in zip(parts, weights, strict=True):
            v, y = centre.copy(), (x - centre)[h]
            if np.linalg.norm(y) > 1e-9:
                v[h] += C.radius / w * y / np.linalg.norm(y)
                yield v
        yield from (C.lmo(RNG.standard_normal(D)).to_array() for _ in range(20))
    elif name == "bounded l1":
        ends = [
            sorted({max(low, -R), min(high, R), float(np.clip(0.0, low, high))}) for low, high in zip(LOWER, UPPER, strict=True)
        ]
        for v in map(np.array, itertools.product(*ends)):
            for j in range(D):
                rest = R - np.abs(np.delete(v, j)).sum()
                for entry in {v[j], rest, -rest}:
                    u = np.where(np.arange(D) == j, entry, v)
                    if SETS[name][1](u) <= 1 + 1e-12:
                        yield u
    else:
        centre, size, k = (np.zeros(D) if C.centre is None else C.centre), C.radius, getattr(C, "k", D)
        for S in itertools.combinations(range(D), k):
            for signs in itertools.product((-size, size), repeat=k):
                v = centre.copy()
                v[list(S)] += signs
                yield v


@EVERY_SET
def test_the_worst_vertex_is_that_of_the_smallest_face(name):
    """A vertex is in the smallest face that holds x if x can be moved a little away from it within the set."""
    C, norm = SETS[name]
    for x in points(name):
        g = RNG.standard_normal(D)
        held = [v for v in corners(name, x) if norm(x + 1e-3 * (x - v)) <= 1 + 1e-12]
        a = C.away(g, x).to_array()
        assert norm(a) <= 1 + 1e-12
        assert norm(x + 1e-6 * (x - a)) <= 1 + 1e-10
        assert g @ a >= max((g @ v for v in held), default=-np.inf) - 1e-3


@EVERY_SET
def test_the_longest_step_ends_at_the_boundary(name):
    C, norm = SETS[name]
    for x in points(name):
        g = RNG.standard_normal(D)
        s, a = C.lmo(g), C.away(g, x)
        d = s.to_array() - a.to_array()
        t = C.max_step(x, s, a)
        assert 0.0 <= t <= 1.0
        assert norm(x + t * d) <= 1 + 1e-11
        assert t == 1.0 or norm(x + (t + 1e-5) * d) > 1 + 1e-12


def test_the_smallest_face_of_a_group_ball_by_hand():
    C = ex.GroupBall(5.0, [[0, 1], [2], [3, 4]])
    x = np.array([1.2, -1.6, 3.0, 0.0, 0.0])  # norms 2, 3, 0: on the boundary
    np.testing.assert_allclose(C.away(np.array([1.0, 0.0, 0.0, 9.0, 9.0]), x).to_array(), [3.0, -4.0, 0.0, 0.0, 0.0])
    np.testing.assert_allclose(C.away(np.array([-1.0, 0.0, 1.0, 9.0, 9.0]), x).to_array(), [0.0, 0.0, 5.0, 0.0, 0.0])
    opposite = C.away(np.array([0.0, 0.0, 0.0, 3.0, -4.0]), 0.5 * x).to_array()
    np.testing.assert_allclose(opposite, [0.0, 0.0, 0.0, 3.0, -4.0])


def test_products_of_balls_know_their_faces():
    C = ex.FacedProduct(ex.GroupBall(R, [[0, 1], [2]], shape=3), ex.L2Ball(1.0, shape=2), ex.LinfBall(0.5, shape=1))
    x = np.array([0.6, 0.8, -1.0, 0.6, -0.8, 0.5])  # on the boundary of each block
    g = np.array([1.0, 1.0, -9.0, 1.0, 1.0, -1.0])
    np.testing.assert_allclose(C.away(g, x).to_array(), [0.0, 0.0, -2.0, 0.6, -0.8, 0.5])
    A = RNG.standard_normal((50, 6))
    f = ex.LinearModel(ex.Logistic(), A, np.where(RNG.random(50) < 0.5, 1.0, -1.0))
    r = ex.minimize(f, C, ex.Method(ex.gradients.Full(), ex.steps.LineSearch(), ex.moves.InFaceBlended()), tol=1e-5, max_iter=999)
    assert r.converged


@pytest.mark.parametrize("off", [-3e-13, 0.0, 3e-13])
def test_rounding_does_not_end_a_step_along_a_face(off):
    """Between the vertices of a face, a step ends where the worst vertex has no weight left, wherever rounding has put x."""
    C, directions = ex.GroupBall(R, GROUPS, WEIGHTS), RNG.standard_normal((20, D))
    for u in directions:
        pieces = [np.where(np.isin(np.arange(D), h), u, 0.0) for h in GROUPS]
        a, b, c = (R / w * v / np.linalg.norm(v) for w, v in zip(WEIGHTS, pieces, strict=True))
        x = (0.5 * a + 0.3 * b + 0.2 * c) * (1 + off)
        for s, worst, share in ((a, b, 0.3), (b, c, 0.2), (c, a, 0.5)):
            found = C.max_step(x, *map(ex.points.DenseVertex, (s, worst)))
            assert found == pytest.approx(share, rel=1e-11)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_faces_of_balls_of_any_size(scale):
    x = scale * np.array([0.6, 0.8, -2.0])
    for C, wanted in (
        (ex.GroupBall(3.0 * scale, [[0, 1], [2]]), [1.8, 2.4, 0.0]),
        (ex.BoundedL1Ball(3.4 * scale), [0.0, 3.4, 0.0]),
    ):
        np.testing.assert_allclose(C.away(np.array([1.0, 2.0, 3.0]), x).to_array() / scale, wanted)


def test_a_step_of_nothing_and_a_step_from_the_boundary():
    assert longest_in_ball(lambda t: 1.0, 1.0, 1e-12) == 1.0
    assert longest_in_ball(lambda t: 1.0 + t, 1.0, 1e-12) <= 1e-11
    assert longest_in_l1(np.ones(2), np.zeros(2), np.ones(2), 2.0, 2.0, 1e-12) == 1.0


@EVERY_SET
@pytest.mark.parametrize("move", [ex.moves.InFacePairwise(), ex.moves.InFaceBlended()], ids=repr)
def test_steps_within_faces_converge(name, move):
    """With group balls they do at the pace of plain steps, because vertices turn; the others reach full accuracy."""
    C = SETS[name][0]
    A = RNG.standard_normal((80, D))
    f = ex.LinearModel(ex.Squared(), A, A @ RNG.standard_normal(D))
    tol = 1e-3 if name.startswith("groups") else 1e-9
    r = ex.minimize(f, C, ex.Method(ex.gradients.Full(), ex.steps.LineSearch(), move), tol=tol, atol=tol, max_iter=3000)
    assert r.converged
    assert SETS[name][1](r.x) <= 1 + 1e-9
