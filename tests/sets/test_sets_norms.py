"""Balls of norms: known answers, norms that must agree, linear programming, projections from afar, bad input."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog, minimize, minimize_scalar

import extremal as ex
from extremal.points.composed import Combination
from extremal.points.vertex import SparseVertex
from extremal.sets.base import Projectable
from extremal.sets.norms.balls import LpBall, NormBall, WeightedL1Ball
from extremal.sets.norms.groups import GroupBall, LatentGroupBall
from extremal.sets.norms.sorted import ElasticBall, KNormBall, KSparseBall, KSupportBall, OwlBall

D = 6
entries = st.floats(-2, 2, width=32) | st.sampled_from([0.0, 1.0, -1.0])
vectors = arrays(np.float64, D, elements=entries)
CHAIN = [[0, 1, 2], [2, 3, 4], [4, 5]]
BALLS = (
    ex.L1Ball(1.5),
    ex.L2Ball(1.5),
    ex.LinfBall(1.5),
    LpBall(1.5, 1.3),
    LpBall(1.5, 7),
    WeightedL1Ball(1.5, [1.0, 2.0, 0.5, 3.0, 1.0, 1.0]),
    KSupportBall(1.5, 3),
    KSparseBall(1.5, 3),
    KNormBall(1.5, 3),
    OwlBall(1.5, [3.0, 2.0, 1.0, 0.5, 0.5, 0.1]),
    ElasticBall(1.5, 0.4),
    GroupBall(1.5, [[0, 3], [1, 2, 4], [5]]),
    LatentGroupBall(1.5, CHAIN, [1.0, 1.3, 0.8]),
)
EVERY = pytest.mark.parametrize("C", BALLS, ids=lambda C: type(C).__name__)
NEAREST = [C for C in BALLS if isinstance(C, Projectable)]


def rows(seed: int, count: int = 20) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((count, D))


# answers of the oracle


def test_answers_by_hand():
    g = np.array([1.0, -3.0, 2.0])
    for C, wanted in (
        (LpBall(2.0, 3), -2 * np.sign(g) * np.sqrt(np.abs(g)) / (1 + 3**1.5 + 2**1.5) ** (1 / 3)),
        (WeightedL1Ball(2.0, [0.25, 1.0, 1.0]), [-8, 0, 0]),
        (KSupportBall(2.0, 2), 2 * np.array([0, 3, -2]) / np.sqrt(13)),
        (KSparseBall(2.0, 2), [0, 2, -2]),
        (KNormBall(2.0, 2), [0, 2, 0]),  # 3 and (1 + 3 + 2) / 2: a tie
        (KNormBall(2.0, 1), [-2, 2, -2]),
        (OwlBall(6.0, [3, 1, 1]), [0, 1.5, -1.5]),  # 3/3, 5/4, 6/5
        (OwlBall(6.0, [3, 2, 1]), [0, 2, 0]),  # 3/3, 5/5, 6/6: a tie
        (ElasticBall(2.0, 1), [0, 2, 0]),
        (ElasticBall(2.0, 0), -2 * g / np.sqrt(14)),
        (GroupBall(2.0, [[0, 2], [1]]), [0, 2, 0]),
        (GroupBall(2.0, [[0, 2], [1]], [0.5, 1.0]), -4 * np.array([1, 0, 2]) / np.sqrt(5)),
        (LatentGroupBall(2.0, [[0, 1], [1, 2]]), 2 * np.array([0, 3, -2]) / np.sqrt(13)),
    ):
        np.testing.assert_allclose(C.lmo(g).to_array(), wanted, rtol=1e-14, atol=1e-14, err_msg=repr(C))


def test_ties_go_to_the_smallest_indices_and_to_extreme_points():
    ones, zero = np.full(5, 0.1), np.zeros(5)
    for C, there in (
        (KSupportBall(1.0, 2), [-1, -1, 0, 0, 0] / np.sqrt(2)),
        (KSparseBall(1.0, 2), [-1, -1, 0, 0, 0]),
        (KNormBall(2.0, 5), [-2, 0, 0, 0, 0]),
        (OwlBall(2.0, [1.0] * 5), [-2, 0, 0, 0, 0]),
        (OwlBall(2.0, [1.0, 1.0, 0, 0, 0]), [-1, -1, -1, -1, -1]),
        (GroupBall(1.0, [[4], [0], [1, 2, 3]], [1.0, 1.0, 2.0]), [0, 0, 0, 0, -1]),
    ):
        np.testing.assert_allclose(C.lmo(ones).to_array(), there, err_msg=repr(C))
    assert KSparseBall(1.0, 2).lmo(zero).to_array().tolist() == [1, 1, 0, 0, 0]
    assert KNormBall(2.0, 1).lmo(np.eye(5)[2]).to_array().tolist() == [2, 2, -2, 2, 2]  # e_2 is on an edge of the cube
    assert OwlBall(2.0, [1.0, 0, 0, 0, 0]).lmo(np.eye(5)[2]).to_array().tolist() == [2, 2, -2, 2, 2]
    for C in (LpBall(3.0, 1.5), KSupportBall(3.0, 2), ElasticBall(3.0, 0.5), WeightedL1Ball(3.0, np.ones(5))):
        assert C.lmo(zero).to_array().tolist() == [3, 0, 0, 0, 0]


@given(g=vectors)
def test_lp_balls_are_the_balls_that_have_names(g):
    for p, C in ((1, ex.L1Ball(2.0)), (2, ex.L2Ball(2.0)), (math.inf, ex.LinfBall(2.0)), (np.float32(np.inf), ex.LinfBall(2.0))):
        np.testing.assert_allclose(LpBall(2.0, p).lmo(g).to_array(), C.lmo(g).to_array(), atol=1e-13)
        assert LpBall(2.0, p).norm(g) == pytest.approx(C.norm(g))
        assert LpBall(2.0, p).on(D).diameter == pytest.approx(C.on(D).diameter)


@given(g=vectors, a=st.sampled_from([0.0, 0.2, 0.7, 0.999, 1 - 1e-10, 1.0]))
def test_the_elastic_oracle_by_a_certificate(g, a):
    """g = t (a v + (1 - a) w) with |v|_inf <= 1 and |w|_2 <= 1 proves <g, x> >= -t where the norm is at most 1."""
    C = ElasticBall(1.0, a)
    s = C.lmo(g)
    t = -s.dot(g)
    rest = g - np.clip(g, -a * t, a * t)
    assert np.linalg.norm(rest) <= (1 - a) * t + 1e-14 * np.abs(g).max() + 1e-300
    assert C.norm(s.to_array()) == pytest.approx(1.0, rel=1e-14)


def halfspaces(C: NormBall) -> np.ndarray:
    """The ball of radius 1 as {x : A x <= 1}."""
    every = np.array(list(itertools.product([-1.0, 1.0], repeat=D)))
    match C:
        case ex.L1Ball():
            return every
        case ex.LinfBall():
            return np.vstack([np.eye(D), -np.eye(D)])
        case WeightedL1Ball():
            return every * C.weights
        case KSparseBall():
            return np.vstack([every / C.k, np.eye(D), -np.eye(D)])
        case KNormBall():
            return np.vstack([every * np.isin(np.arange(D), S) for S in itertools.combinations(range(D), C.k)])
        case OwlBall():
            return np.vstack([every * w for w in itertools.permutations(C.weights)])
    raise AssertionError(C)


@pytest.mark.parametrize("kind", [ex.L1Ball, ex.LinfBall, WeightedL1Ball, KSparseBall, KNormBall, OwlBall])
def test_polytopes_against_linear_programming(kind):
    C = next(C for C in BALLS if isinstance(C, kind))
    A = np.unique(halfspaces(C), axis=0)
    for g in rows(0, 4):
        lp = linprog(g, A_ub=A, b_ub=np.full(len(A), C.radius), bounds=(None, None), method="highs")
        assert C.lmo(g).dot(g) == pytest.approx(lp.fun, rel=1e-9)
        assert C.norm(g) == pytest.approx((A @ g).max(), rel=1e-13)


def test_vertices_are_as_small_as_they_can_be():
    g = np.array([0.1, 0.2, 0.3, 0.4, 2.0, 4.0, 6.0, 8.0])
    assert isinstance(ex.L1Ball(1.0).lmo(g), ex.points.Coordinate)
    assert isinstance(WeightedL1Ball(1.0, g).lmo(g), ex.points.Coordinate)
    assert isinstance(KNormBall(1.0, 8).lmo(g), ex.points.Coordinate)
    for C, count in (
        (KSupportBall(1.0, 3), 3),
        (KSparseBall(1.0, 3), 3),
        (OwlBall(1.0, [5, 1, 1, 1, 1, 1, 1, 1]), 3),  # 8/5, 14/6, 18/7, 20/8
        (GroupBall(1.0, [[0, 1, 2, 3], [4, 5], [6, 7]]), 2),
        (LatentGroupBall(1.0, [[0, 1, 2, 3], [4, 5, 6, 7], [3, 4, 7]]), 4),
    ):
        s = C.lmo(g)
        assert isinstance(s, SparseVertex), C
        assert len(s.indices) == count, C
        assert (np.diff(s.indices) > 0).all()
    assert isinstance(KSupportBall(1.0, 5).lmo(g), ex.points.DenseVertex)  # more than half of the entries
    assert isinstance(ElasticBall(1.0, 0.6).lmo(g), SparseVertex)


# norms


@EVERY
@given(x=vectors, y=vectors, c=st.floats(-3, 3))
def test_norms_are_norms(C, x, y, c):
    size = C.norm(x) + C.norm(y)
    assert C.norm(x + y) <= size * (1 + 1e-9)
    assert C.norm(c * x) == pytest.approx(abs(c) * C.norm(x), rel=1e-9, abs=1e-300)
    assert C.norm(np.sign(y + 0.1) * x) == pytest.approx(C.norm(x), rel=1e-9)
    assert (C.norm(x) > 0) == x.any()


@EVERY
def test_norms_and_oracles_are_dual(C):
    """|<g, x>| <= norm(x) times the dual norm of g, with equality at the oracle's answer."""
    for g, x in zip(rows(1), rows(2), strict=True):
        s = C.lmo(g)
        assert C.norm(s.to_array()) == pytest.approx(C.radius, rel=1e-9)
        assert abs(g @ x) <= -s.dot(g) / C.radius * C.norm(x) * (1 + 1e-9)


@EVERY
@pytest.mark.parametrize("scale", [2.0**-1000, 2.0**1000])
def test_norms_of_huge_and_tiny_points(C, scale):
    for x in rows(3, 3):
        assert C.norm(x * scale) / scale == pytest.approx(C.norm(x), rel=1e-10)
    assert C.norm(np.zeros(D)) == 0.0
    assert C.norm(np.full(D, 5e-324)) > 0
    for bad in (np.inf, -np.inf):
        assert C.norm(np.array([1, bad, 0, 0, 0, 0])) == np.inf
    assert math.isnan(C.norm(np.array([1, np.nan, 0, np.inf, 0, 0])))


@given(x=vectors)
def test_norms_that_must_agree(x):
    ones = np.ones(D)
    l1, l2, top = float(np.abs(x).sum()), float(np.linalg.norm(x)), float(np.abs(x).max())
    for C, wanted in (
        (KSupportBall(1.0, 1), l1),
        (KSupportBall(1.0, D), l2),
        (KSparseBall(1.0, 1), l1),
        (KSparseBall(1.0, D), top),
        (KNormBall(1.0, 1), top),
        (KNormBall(1.0, D), l1),
        (OwlBall(1.0, ones), l1),
        (OwlBall(1.0, [1, 1, 1, 0, 0, 0]), KNormBall(1.0, 3).norm(x)),
        (ElasticBall(1.0, 0), l2),
        (ElasticBall(1.0, 1), l1),
        (WeightedL1Ball(1.0, ones), l1),
        (GroupBall(1.0, np.arange(D)), l1),
        (GroupBall(1.0, np.zeros(D, int)), l2),
        (LatentGroupBall(1.0, [[0, 3], [1, 2, 4], [5]], [1, 2, 3]), GroupBall(1.0, [[0, 3], [1, 2, 4], [5]], [1, 2, 3]).norm(x)),
    ):
        assert C.norm(x) == pytest.approx(wanted, rel=1e-9), C
    assert -KSparseBall(1.0, 3).lmo(x).dot(x) == pytest.approx(KNormBall(1.0, 3).norm(x), rel=1e-12)  # these two are dual


@given(x=vectors, k=st.integers(1, D))
def test_the_k_support_norm_is_the_latent_norm_of_all_groups_of_k(x, k):
    """One by the formula, the other by an optimisation."""
    every = [list(S) for S in itertools.combinations(range(D), k)]
    assert LatentGroupBall(1.0, every).norm(x) == pytest.approx(KSupportBall(1.0, k).norm(x), rel=2e-10)


@given(x=vectors, w=st.sampled_from([0.3, 1.0, 1.2, 4.0]))
def test_the_latent_norm_of_two_groups(x, w):
    """What both share is divided in one proportion."""
    A, B, both = x[:2], x[4:], x[2:4]

    def cost(t: float) -> float:
        return math.hypot(*A, *(t * both)) + w * math.hypot(*B, *((1 - t) * both))

    best = minimize_scalar(cost, bounds=(0, 1), method="bounded", options={"xatol": 1e-12}).fun
    wanted = min(best, cost(0.0), cost(1.0))
    assert LatentGroupBall(1.0, [[0, 1, 2, 3], [2, 3, 4, 5]], [1.0, w]).norm(x) == pytest.approx(wanted, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize("seed", range(4))
def test_the_latent_norm_against_its_dual(seed):
    """max {<u, x> : |u_g|_2 <= weights_g} by sequential quadratic programming."""
    rng = np.random.default_rng(seed)
    groups = [*CHAIN, [0, 3, 5], [1, 4]]
    w, x = rng.uniform(0.5, 2, len(groups)), rng.standard_normal(D)
    slack = [{"type": "ineq", "fun": lambda u, S=S, c=c: c**2 - u[S] @ u[S]} for S, c in zip(groups, w, strict=True)]
    found = minimize(lambda u: -(u @ x), np.zeros(D), constraints=slack, method="SLSQP", options={"ftol": 1e-13, "maxiter": 500})
    assert found.success
    assert LatentGroupBall(1.0, groups, w).norm(x) == pytest.approx(-found.fun, rel=1e-7)


def test_the_latent_norm_of_many_groups():
    """A chain of pairs with weights 1: no worse than alternate pairs, no better than the Euclidean norm."""
    d = 3000
    x = np.random.default_rng(0).standard_normal(d)
    C = LatentGroupBall(1.0, [[j, j + 1] for j in range(d - 1)])
    pairs = np.hypot(x[::2], x[1::2]).sum()
    assert 0.5 * pairs < C.norm(x) < pairs
    even = np.where(np.arange(d) % 2, 0.0, x)
    assert C.norm(even) == pytest.approx(np.abs(even).sum(), rel=1e-9)  # no pair holds two of these


# centres


@EVERY
def test_a_centre_moves_the_ball(C):
    centre = np.linspace(-3, 2, D)
    moved = type(C)(**{f: getattr(C, f) for f in ("radius", *C.__match_args__[1:])}, centre=centre)
    assert moved.shape == (D,)
    assert moved.diameter == pytest.approx(C.on(D).diameter)
    np.testing.assert_array_equal(moved.start(), centre)
    for g in rows(4, 5):
        s = moved.lmo(g)
        assert isinstance(s, Combination)
        np.testing.assert_allclose(s.to_array(), centre + C.lmo(g).to_array(), rtol=1e-15, atol=1e-15)
        assert moved.contains(s.to_array())
        assert not moved.contains(centre + 1.001 * C.lmo(g).to_array())
    assert moved != C.on(D)
    assert moved.on(D) == moved


@EVERY
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_members_of_balls_far_away(C, dtype):
    """Where the rounding of x is more than tol radius, it decides; a point farther outside than that is still outside."""
    far = 1e6 if dtype == np.float32 else 1e12
    moved = type(C)(**{f: getattr(C, f) for f in ("radius", *C.__match_args__[1:])}, centre=np.full(D, far))
    for g in rows(5, 5):
        s = C.lmo(g).to_array()
        assert moved.contains((far + s).astype(dtype))
        assert not moved.contains((far + 5 * s).astype(dtype))


# projections


def test_what_has_a_projection():
    assert {type(C).__name__ for C in NEAREST} == {"GroupBall", "L1Ball", "L2Ball", "LinfBall", "WeightedL1Ball"}


@pytest.mark.parametrize("C", NEAREST, ids=lambda C: type(C).__name__)
def test_projections_by_hand(C):
    inside = np.full(D, 0.01)
    again = C.project(inside)
    np.testing.assert_array_equal(again, inside)
    assert again is not inside
    assert C.project(np.full(D, 9.0, np.float32)).dtype == np.float32
    assert C.project(np.full(D, 9)).dtype == np.float64
    with pytest.raises(ex.InputError, match=r"project\(x=...\)` must be finite, got nan at index 2"):
        C.project(np.array([0, 0, np.nan, 0, 0, 0]))
    moved = type(C)(**{f: getattr(C, f) for f in ("radius", *C.__match_args__[1:])}, centre=inside)
    np.testing.assert_allclose(moved.project(inside + rows(6)[0]), inside + C.project(rows(6)[0]), atol=1e-14)


@pytest.mark.parametrize("C", NEAREST, ids=lambda C: type(C).__name__)
@pytest.mark.parametrize("scale", [1e10, 1e20, 1e150, 1e300])
def test_projections_from_afar(C, scale):
    """Onto the ball, and at the answer of the oracle where this is one point by a margin."""
    y = scale * np.array([1.0, 2.0, 2.5, -4.0, 5.0, -6.0])
    p = C.project(y)
    assert C.norm(p) == pytest.approx(C.radius, rel=1e-12)
    if not isinstance(C, ex.L2Ball):
        wanted = C.lmo(-y).to_array()
        np.testing.assert_allclose(p, wanted, rtol=1e-9 if scale > 1e15 else 1e-6, atol=1e-9 if scale > 1e15 else 1e-6)


@given(y=vectors, r=st.floats(0.01, 3.0))
def test_the_threshold_against_bisection(y, r):
    """max(|y_j| - t w_j, 0), t by bisection."""
    w = np.array([1.0, 2.0, 0.5, 3.0, 0.1, 1.0])
    assume(w @ np.abs(y) > r)
    low, high = 0.0, float((np.abs(y) / w).max())
    for _ in range(100):
        t = (low + high) / 2
        low, high = (t, high) if w @ np.maximum(np.abs(y) - t * w, 0) > r else (low, t)
    wanted = np.sign(y) * np.maximum(np.abs(y) - high * w, 0)
    np.testing.assert_allclose(WeightedL1Ball(r, w).project(y), wanted, atol=1e-12)
    np.testing.assert_allclose(GroupBall(r, np.arange(D), w).project(y), wanted, atol=1e-12)


# sets as parts of a run, and as values


@pytest.mark.parametrize("C", NEAREST, ids=lambda C: type(C).__name__)
def test_a_run_ends_at_the_projection(C):
    """The distance is bounded by the gap: f(x) = |x - y|^2 / (2 n)."""
    y = np.array([3.0, -1.0, 0.5, 0.2, 1.0, -0.3])
    f = ex.LinearModel(ex.Squared(), np.eye(D), y)
    r = ex.minimize(f, C, method=ex.FrankWolfe(step=ex.steps.LineSearch()), max_iter=1000, tol=0, atol=1e-4)
    assert r.gap <= 1e-2
    assert np.linalg.norm(r.x - C.project(y)) <= math.sqrt(2 * D * r.gap) + 1e-12


def test_groups_in_two_ways():
    by_lists = GroupBall(1.0, [[3, 1], (0, 5), np.array([2, 4])])
    by_labels = GroupBall(1.0, np.array([4, -1, 7, -1, 7, 4]))
    assert by_lists == by_labels == GroupBall(1.0, [4, -1, 7, -1, 7, 4], weights=[1, 1, 1])
    words = ["b", "a", "c", "a", "c", "b"]
    assert all(by_lists == GroupBall(1.0, kind(words)) for kind in (list, tuple, np.array, lambda w: np.array(w, object)))
    assert GroupBall(1.0, np.array([["a", "b"], ["a", "b"]])).shape == (2, 2)
    assert by_lists != GroupBall(1.0, [[0, 5], [3, 1], [2, 4]])  # weights go by this order
    assert [group.tolist() for group in by_lists.groups] == [[1, 3], [0, 5], [2, 4]]
    assert by_lists.groups[-1].tolist() == [2, 4]
    assert GroupBall(1.0, np.array([[0, 1], [0, 2]])).shape == (2, 2)
    assert GroupBall(1.0, [[0, 1], [2, 3]]).shape == (4,)
    assert GroupBall(1.0, [[0, 1], [2, 3]], shape=(2, 2)).on((2, 2)).groups == GroupBall(1.0, [0, 0, 1, 1]).groups


def test_arrays_are_copied_and_kept():
    w, c, group = np.ones(3), np.zeros(3), np.array([0, 1])
    C = WeightedL1Ball(1.0, w, centre=c)
    G = GroupBall(1.0, [group, [2]])
    w[:], c[:], group[:] = 7.0, 7.0, 0
    assert C.weights.tolist() == [1, 1, 1]
    assert C.centre.tolist() == [0, 0, 0]
    assert G.groups[0].tolist() == [0, 1]
    for kept in (C.weights, C.centre, G.groups.indices, G.weights):
        with pytest.raises(ValueError, match="read-only"):
            kept[0] = 5


def test_shapes_are_taken_from_arrays():
    assert ex.L1Ball(1.0, centre=np.zeros((2, 3))).shape == (2, 3)
    assert WeightedL1Ball(1.0, np.ones((2, 3))).shape == (2, 3)
    assert OwlBall(1.0, [2, 1, 1]).shape == (3,)
    assert OwlBall(1.0, [2, 1, 1, 1], shape=(2, 2)).shape == OwlBall(1.0, [2, 1, 1, 1], centre=np.eye(2)).shape == (2, 2)
    assert LatentGroupBall(1.0, [[0, 1], [1, 2]]).shape == (3,)
    for C in (KNormBall(1.0, 5), KSupportBall(1.0, 5)):
        with pytest.raises(ex.InputError, match="between 1 and 2, got 5"):
            C.lmo(np.array([1.0, -2.0]))
    assert KSupportBall(1.0, 5).norm(np.array([3.0, -4.0])) == 5.0


def test_shape_and_centre_are_given_by_name():
    with pytest.raises(TypeError):
        ex.L1Ball(1.0, 3)  # type: ignore[misc]
    match ex.L1Ball(2.0, shape=3):
        case ex.L1Ball(radius=r):
            assert r == 2.0
    assert repr(ex.L1Ball(2.0, centre=[1, 2])) == "L1Ball(radius=2.0, shape=(2,), centre=<2 array>)"
    assert repr(GroupBall(2.0, [0, 0, 1])) == "GroupBall(radius=2.0, shape=(3,), groups=<2 groups>, weights=<2 array>)"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: ex.L2Ball(0), "`L2Ball(radius=...)` must be a positive finite number, got 0"),
        (lambda: KSupportBall(math.nan, 2), "`KSupportBall(radius=...)` must be a positive finite number, got nan"),
        (lambda: ex.L1Ball(1, shape=3, centre=[1, 2]), "`L1Ball(centre=...)` must have the points' shape (3,), got (2,)"),
        (lambda: ex.L1Ball(1, centre=[1, math.inf]), "`L1Ball(centre=...)` must be finite, got inf at index 1"),
        (lambda: ex.L1Ball(1, centre=2.0), "`L1Ball(centre=...)` must be an array of numbers, got 2.0"),
        (lambda: ex.L1Ball(1, centre=[]), "`L1Ball(centre=...)` must be an array of numbers, got []"),
        (lambda: ex.L1Ball(1, centre=["a"]), "`L1Ball(centre=...)` must be an array of numbers"),
        (lambda: ex.L1Ball(1, centre=[[1], [1, 2]]), "`L1Ball(centre=...)` must be a rectangular array"),
        (lambda: LpBall(1, 0.5), "`LpBall(p=...)` must be a number of at least 1 (math.inf is one), got 0.5"),
        (lambda: LpBall(1, math.nan), "`LpBall(p=...)` must be a number of at least 1"),
        (lambda: LpBall(1, True), "`LpBall(p=...)` must be a number of at least 1"),
        (lambda: LpBall(1, "2"), "`LpBall(p=...)` must be a number of at least 1"),
        (lambda: WeightedL1Ball(1, [1, 0]), "`WeightedL1Ball(weights=...)` must be positive everywhere, got 0.0"),
        (lambda: WeightedL1Ball(1, [1, -2]), "`WeightedL1Ball(weights=...)` must be positive everywhere, got -2.0"),
        (lambda: WeightedL1Ball(1, [1, math.nan]), "`WeightedL1Ball(weights=...)` must be finite, got nan at index 1"),
        (lambda: WeightedL1Ball(1, [1, 2], shape=3), "`WeightedL1Ball(weights=...)` must have the points' shape (3,), got (2,)"),
        (lambda: WeightedL1Ball(1, [1, 2], centre=[0]), "(weights=...)` must have the points' shape (1,), got (2,)"),
        (lambda: KSupportBall(1, 0), "`KSupportBall(k=...)` must be a whole number of at least 1, got 0"),
        (lambda: KSparseBall(1, 1.5), "`KSparseBall(k=...)` must be a whole number of at least 1, got 1.5"),
        (lambda: KNormBall(1, 4, shape=3), "`KNormBall(k=...)` must be a whole number between 1 and 3, got 4"),
        (lambda: KNormBall(1, 4).on(3), "`KNormBall(k=...)` must be a whole number between 1 and 3, got 4"),
        (lambda: KSupportBall(1, 4, centre=[0, 0]), "`KSupportBall(k=...)` must be a whole number between 1 and 2, got 4"),
        (lambda: OwlBall(1, [1, 2]), "that do not increase, 0 or more, the first above 0, got [1, 2]"),
        (lambda: OwlBall(1, [1, -1]), "`OwlBall(weights=...)` must be a list of numbers that do not increase"),
        (lambda: OwlBall(1, [0, 0]), "`OwlBall(weights=...)` must be a list of numbers that do not increase"),
        (lambda: OwlBall(1, [[1, 0]]), "`OwlBall(weights=...)` must be a list of numbers that do not increase"),
        (lambda: OwlBall(1, [1, math.nan]), "`OwlBall(weights=...)` must be finite, got nan at index 1"),
        (lambda: OwlBall(1, [2, 1], shape=(2, 2)), "`OwlBall(weights=...)` must be one for each of the 4 entries, got 2"),
        (lambda: ElasticBall(1, -0.1), "`ElasticBall(l1_ratio=...)` must be a number in [0, 1], got -0.1"),
        (lambda: ElasticBall(1, 1.1), "`ElasticBall(l1_ratio=...)` must be a number in [0, 1], got 1.1"),
        (lambda: ElasticBall(1, math.nan), "`ElasticBall(l1_ratio=...)` must be a number in [0, 1], got nan"),
        (lambda: ElasticBall(1, None), "`ElasticBall(l1_ratio=...)` must be a number in [0, 1], got None"),
        (lambda: GroupBall(1, [[0, 1], []]), "must be lists of one or more flat indices, but group 1 is []"),
        (lambda: GroupBall(1, [[0, 1], 2]), "must be lists of one or more flat indices, but group 1 is 2"),
        (lambda: GroupBall(1, [[0, 1], [2.0]]), "must be lists of one or more flat indices, but group 1 is [2.0]"),
        (lambda: GroupBall(1, [[0, 1], [[2]]]), "must be lists of one or more flat indices, but group 1 is [[2]]"),
        (lambda: GroupBall(1, [[0, 1], [[2], [3, 4]]]), "`GroupBall(groups[1]=...)` must be a rectangular array"),
        (lambda: GroupBall(1, [[0, 1], [-1]]), "`GroupBall(groups=...)` must hold indices of 0 or more, but -1 is in group 1"),
        (lambda: GroupBall(1, [[0, 1, 0]]), "must hold an index once in a group, but group 0 is [0, 1, 0]"),
        (lambda: GroupBall(1, [[0, 1], [1, 2]]), "must not overlap, but index 1 does; see LatentGroupBall"),
        (lambda: GroupBall(1, [[0, 1], [3]]), "must hold every index of shape (4,), but 2 is in none"),
        (lambda: GroupBall(1, [[0, 1], [2]], shape=4), "must hold every index of shape (4,), but 3 is in none"),
        (lambda: GroupBall(1, [[0, 1], [2]], shape=2), "must hold indices below 2, for points of shape (2,), got 2"),
        (lambda: GroupBall(1, [0, 0, 1], shape=4), "must hold every index of shape (4,), but 3 is in none"),
        (lambda: GroupBall(1, []), "`GroupBall(groups=...)` must be lists of flat indices, or one whole number or word"),
        (lambda: GroupBall(1, 3), "`GroupBall(groups=...)` must be lists of flat indices, or one whole number or word"),
        (lambda: GroupBall(1, np.ones(3)), "`GroupBall(groups=...)` must be lists of flat indices, or one whole number or word"),
        (lambda: GroupBall(1, [[0], [1]], [1.0]), "must be one for each of the 2 groups, got shape (1,)"),
        (lambda: GroupBall(1, [[0], [1]], [1.0, -1.0]), "`GroupBall(weights=...)` must be positive everywhere, got -1.0"),
        (lambda: GroupBall(1, [[0], [1]], 2.0), "`GroupBall(weights=...)` must be an array of numbers, got 2.0"),
        (lambda: LatentGroupBall(1, [[0, 1], [3]]), "must hold every index of shape (4,), but 2 is in none"),
        (lambda: LatentGroupBall(1, [[0, 1], [1, 9]], shape=3), "must hold indices below 3, for points of shape (3,), got 9"),
        (lambda: LatentGroupBall(1, [[0], [0, 1]], [1, 0]), "must be positive everywhere, got 0.0"),
    ],
)  # fmt: skip
def test_balls_that_are_none(make, words):
    with pytest.raises(ex.InputError, match=re.escape(words)):
        make()


@pytest.mark.parametrize("C", [ex.LinfBall(1.0), LpBall(1.0, 3), KNormBall(1.0, 2)], ids=repr)
def test_diameters_that_depend_on_the_dimension_are_asked_for(C):
    with pytest.raises(ex.InputError, match=r"ask .*on\(dimension\).diameter"):
        C.diameter


@pytest.mark.parametrize("scale", [0.0, 1e-310, 1e-250, 1.0, 1e250, 1e308])
def test_an_l1_norm_is_the_sum_of_scaled_magnitudes(scale):
    x, C = np.linspace(-1.0, 1.0, 8) * scale, ex.L1Ball(1.0)
    assert C.norm(x) == super(ex.L1Ball, C).norm(x)
