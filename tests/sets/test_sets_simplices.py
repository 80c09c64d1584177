"""Simplices, boxes with a budget and chains: answers by hand, refusals, diameters by brute force, moves inside faces."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import brentq, linprog
from sets_simplices import budget_corners, budget_point, farthest

import extremal as ex
from extremal.points.vertex import Coordinate, DenseVertex, SparseVertex
from extremal.sets.simplices.boxes import BudgetBox, CappedSimplex, Hypersimplex
from extremal.sets.simplices.chains import Monotone
from extremal.sets.simplices.plain import UnitSimplex

INF, NAN = math.inf, math.nan
whole = arrays(np.float64, 9, elements=st.integers(-3, 3).map(float))  # with many ties
FACED = [
    ex.Simplex(2.0).on(8),
    UnitSimplex(2.0).on(8),
    CappedSimplex(0.3).on(8),
    CappedSimplex(np.array([0.1, 0.5, 0.0, INF, 0.4, 0.2, 0.3, 0.3])),
    Hypersimplex(3).on((2, 4)),
    BudgetBox(-1.0, 2.0, 1.5).on(8),
    BudgetBox(np.linspace(-2.0, 1.0, 8), np.linspace(0.0, 2.0, 8), 1.0),
    ex.Box(np.linspace(-2.0, 1.0, 8), np.linspace(0.0, 2.0, 8)),
    Monotone(-1.0, 2.0).on(8),
    Monotone(-1.0, 2.0, increasing=False).on((4, 2)),
    ex.LinfBall(1.5, shape=8),
    ex.LinfBall(1.5, centre=np.linspace(-2.0, 1.0, 8)),
    ex.L2Ball(1.5, shape=(2, 4)),
    ex.BoundedL1Ball(2.0, -1.0, 0.5).on(8),
    ex.BoundedL1Ball(2.0, np.linspace(-0.9, 0.1, 8), np.linspace(0.2, 2.0, 8)),
]


def refused(*parts: str):
    return pytest.raises(ex.InputError, match=".*".join(map(re.escape, parts)))


# the oracles


def test_no_weight_above_ten_percent():
    s = CappedSimplex(0.1).lmo(np.arange(20.0)[::-1])
    assert isinstance(s, SparseVertex)
    np.testing.assert_array_equal(s.indices, np.arange(10, 20))
    np.testing.assert_array_equal(s.values, np.full(10, 0.1))


def test_ties_go_to_the_smallest_index():
    zero, g = np.zeros(6), np.array([1.0, 0.0, 1.0, 0.0, 1.0, 1.0])
    np.testing.assert_allclose(CappedSimplex(0.3).lmo(zero).to_array(), [0.3, 0.3, 0.3, 0.1, 0, 0])
    np.testing.assert_allclose(CappedSimplex(0.3).lmo(g).to_array(), [0.3, 0.3, 0.1, 0.3, 0, 0])
    np.testing.assert_allclose(CappedSimplex([0.3, 0.3, 0.1, 0.4, 0.6, 1]).lmo(g).to_array(), [0.3, 0.3, 0, 0.4, 0, 0])
    np.testing.assert_array_equal(Hypersimplex(3).lmo(g).to_array(), [1, 1, 0, 1, 0, 0])
    np.testing.assert_array_equal(BudgetBox(-1.0, 1.0, -2.0).lmo(zero).to_array(), [1, 1, -1, -1, -1, -1])
    np.testing.assert_array_equal(BudgetBox(-np.ones(6), 1.0, 1.0).lmo(g).to_array(), [1, 1, 0, 1, -1, -1])
    np.testing.assert_array_equal(UnitSimplex().lmo(zero).to_array(), zero)
    assert UnitSimplex().lmo(g) == Coordinate(0, 0.0, (6,))
    assert UnitSimplex(3.0).lmo(-g) == Coordinate(0, 3.0, (6,))
    np.testing.assert_array_equal(Monotone(0.0, 2.0).lmo(zero).to_array(), np.full(6, 2.0))


@given(g=whole, cap=st.sampled_from([0.12, 0.2, 0.3, 0.5, 1.0, 7.0]))
def test_one_cap_and_equal_caps_answer_alike(g, cap):
    one, many = CappedSimplex(cap).lmo(g), CappedSimplex(np.full(9, cap)).lmo(g)
    np.testing.assert_array_equal(one.indices, many.indices)
    np.testing.assert_allclose(one.values, many.values, rtol=1e-12)
    assert len(one.values) == min(9, math.ceil(round(1 / min(cap, 1.0), 9)))


@given(g=whole, seed=st.integers(0, 999))
def test_caps_are_used_up_from_the_smallest_entry_on(g, seed):
    """Against a full sort, one entry after the other."""
    caps = np.random.default_rng(seed).integers(0, 4, 9) / 4
    caps[seed % 9] += 1
    want, left = np.zeros(9), 1.0
    for j in np.lexsort((np.arange(9), g)):
        want[j] = min(caps[j], left)
        left -= want[j]
    np.testing.assert_array_equal(CappedSimplex(caps).lmo(g).to_array(), want)


@pytest.mark.parametrize("size", [60, 1001])
@pytest.mark.parametrize("seed", range(4))
def test_large_budget_boxes_against_linear_programming(size, seed):
    rng = np.random.default_rng(seed)
    g = rng.standard_normal(size) if seed % 2 else rng.integers(-3, 4, size).astype(float)
    lower, upper = np.sort(rng.standard_normal((2, size)), axis=0)
    total = float(lower.sum() + rng.random() * (upper - lower).sum())
    for C, lo, up in ((BudgetBox(lower, upper, total), lower, upper), (BudgetBox(-1, 2, 0.3).on(size), -1.0, 2.0)):
        bounds = np.column_stack([np.broadcast_to(lo, size), np.broadcast_to(up, size)])
        lp = linprog(g, A_eq=np.ones((1, size)), b_eq=[C.total], bounds=bounds, method="highs")
        s = C.lmo(g)
        assert C.contains(s.to_array(), 1e-12)
        assert s.dot(g) == pytest.approx(lp.fun, rel=1e-9)


@pytest.mark.parametrize("size", [999, 5000])
@pytest.mark.parametrize("amount", [0.1, 10.0, 0.5, 0.999])
def test_selections_whatever_the_order_of_the_entries(size, amount):
    """Entries that are looked at first may be the largest, the smallest, or all the same."""
    rng = np.random.default_rng(0)
    caps = rng.integers(1, 9, size).astype(float)  # sums are exact
    total = amount if amount == 10.0 else float(round(amount * caps.sum()))
    stride = 1 + size // 1000
    high, low, flat = rng.standard_normal((3, size))
    high[::stride] += 9.0
    low[::stride] -= 9.0
    flat[::stride] = 0.0
    for g in (high, low, flat, np.sort(high), np.tile([1.0, -1.0, 0.5], size)[:size]):
        order = np.argsort(g, kind="stable")
        spent = np.minimum(np.cumsum(caps[order]), total)
        want = np.empty(size)
        want[order] = np.diff(spent, prepend=0.0)
        np.testing.assert_array_equal(CappedSimplex(caps, total).lmo(g).to_array(), want)


def test_equal_vertices_have_equal_keys():
    """The entry with the rest is the same, those before it come in any order, and may be tied with it."""
    caps = np.array([0.3, 0.1, 0.23, 0.31, 0.4, 0.7])
    firsts = [[1, 2, 3, 9], [2, 1, 3, 9], [3, 2, 1, 9], [9, 9, 9, 9], [1, 9, 9, 9], [9, 9, 1, 9], [9, 1, 9, 9]]
    for C in (CappedSimplex(0.3).on(6), CappedSimplex(caps, 0.8), BudgetBox(-caps, caps, -0.5)):
        answers = [C.lmo(np.array([*first, 10.0, 11.0])) for first in firsts]
        assert -caps[3] < answers[0].to_array()[3] < caps[3]
        assert len({s.key for s in answers}) == 1


def test_the_largest_floats_are_a_gradient_too():
    g = np.array([1.0, -1.0, -1.0, -1.0, 1.0, -1.0]) * np.finfo(np.float64).max
    np.testing.assert_array_equal(Monotone(0.0, 1.0).lmo(g).to_array(), [0, 1, 1, 1, 1, 1])
    np.testing.assert_array_equal(Hypersimplex(2).lmo(g).to_array(), [0, 1, 1, 0, 0, 0])
    np.testing.assert_array_equal(BudgetBox(-np.ones(6), 1.0, 2.0).lmo(g).to_array(), [-1, 1, 1, 1, -1, 1])


def test_rests_that_are_rounding_are_none():
    g = np.arange(6.0)
    for total in (0.3, 0.1 + 0.2, math.nextafter(0.1 + 0.2, 1.0)):  # 0.3 / 0.1 is below 3, and 0.1 + 0.2 is above 0.3
        for cap in (0.1, np.full(6, 0.1)):
            s = CappedSimplex(cap, total).lmo(g)
            np.testing.assert_array_equal(s.indices, [0, 1, 2])
            np.testing.assert_array_equal(s.values, [0.1, 0.1, 0.1])


def test_kinds_of_vertices():
    g = np.arange(6.0).reshape(2, 3)
    assert isinstance(BudgetBox(0.0, 1.0, 2.5).lmo(g), SparseVertex)
    assert isinstance(BudgetBox(np.zeros((2, 3)), 1.0, 2.5).lmo(g), SparseVertex)
    assert isinstance(BudgetBox(-1.0, 1.0, 2.5).lmo(g), DenseVertex)
    assert Hypersimplex(6).lmo(g).indices.tolist() == [0, 1, 2, 3, 4, 5]
    assert len(CappedSimplex(0.25).lmo(g).values) == 4
    assert len(CappedSimplex(0.24).lmo(g).values) == 5


# sizes


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 6, 7])
def test_diameters_with_equal_rooms_by_brute_force(size):
    for cap in (1 / size, 0.15, 0.2, 0.3, 0.37, 0.5, 0.8, 1.0, 3.0):
        if cap * size >= 1:
            V = budget_corners(0.0, min(cap, 1.0), 1.0, size)
            assert CappedSimplex(cap).on(size).diameter == pytest.approx(farthest(V), abs=1e-12)
            assert CappedSimplex(np.full(size, cap)).diameter == pytest.approx(farthest(V), abs=1e-12)
            shifted = BudgetBox(-2.0, min(cap, 1.0) - 2.0, 1.0 - 2 * size).on(size)
            assert shifted.diameter == pytest.approx(farthest(V), abs=1e-12)
    for k in range(1, size + 1):
        C = Hypersimplex(k, 3.0).on(size)
        assert C.diameter == pytest.approx(3 * math.sqrt(2 * min(k, size - k)))
        assert C.diameter == pytest.approx(farthest(budget_corners(0.0, 3.0, 3.0 * k, size)))


@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 6))
def test_diameters_with_unequal_rooms_are_bounds(seed, size):
    rng = np.random.default_rng(seed)
    lower, upper = np.sort(rng.standard_normal((2, size)), axis=0)
    total = float(lower.sum() + rng.random() * (upper - lower).sum())
    D, true = BudgetBox(lower, upper, total).diameter, farthest(budget_corners(lower, upper, total, size))
    amount, spare = total - lower.sum(), upper.sum() - total
    simple = min(np.linalg.norm(upper - lower), math.sqrt(2 * min(amount, spare) * (upper - lower).max()))
    assert true <= D * (1 + 1e-9) + 1e-9
    assert D <= simple * (1 + 1e-9) + 1e-9


def test_diameters_by_hand():
    assert UnitSimplex(3.0).on(1).diameter == 3.0
    assert UnitSimplex(3.0).on(2).diameter == pytest.approx(3 * math.sqrt(2))
    assert Monotone(-1.0, 2.0).on(4).diameter == 6.0
    assert CappedSimplex([INF, 0.0, 1.0]).diameter == pytest.approx(math.sqrt(2))


def test_membership_is_relative_to_the_size():
    for c in (1e-12, 1.0, 1e12):
        C = BudgetBox(-c, 1e9 * c, 2 * c).on(3)  # an upper bound far out of reach does not blur the lower one
        assert C.contains(c * np.array([-1.0, 1.0, 2.0]))
        assert not C.contains(c * np.array([-1.001, 1.001, 2.0]))
        assert not C.contains(c * np.array([-1.0, 1.0, 2.001]))
        assert CappedSimplex(c * 0.5, c).contains(c * np.array([0.5, 0.5, 0.0]))
        assert not CappedSimplex(c * 0.5, c).contains(c * np.array([0.5001, 0.4999, 0.0]))
        assert not UnitSimplex(c).contains(c * np.array([0.5, 0.5001]))
        assert not Monotone(0.0, c).contains(c * np.array([0.5, 0.4999]))
        assert Monotone(0.0, c, increasing=False).contains(c * np.array([0.5, 0.4999]))


def test_a_set_of_the_origin():
    C = BudgetBox(0.0, 1.0, 0.0).on(3)
    assert C.diameter == 0.0
    for x in (C.start(), C.lmo(np.ones(3)).to_array(), C.project(np.ones(3)), C.away(np.ones(3), np.zeros(3)).to_array()):
        np.testing.assert_array_equal(x, np.zeros(3))
    assert C.contains(np.zeros(3))
    assert not C.contains(np.full(3, 1e-20))


# projections


@pytest.mark.parametrize("far", [1e-3, 1.0, 1e3, 1e10])
@pytest.mark.parametrize("seed", range(5))
def test_projections_against_a_root_finder(far, seed):
    rng = np.random.default_rng(seed)
    size = 40
    lower, upper = np.sort(rng.standard_normal((2, size)), axis=0)
    total = float(lower.sum() + rng.random() * (upper - lower).sum())
    x = far * rng.standard_normal() + rng.standard_normal(size)
    for C, lo, up in (
        (BudgetBox(lower, upper, total), lower, upper),
        (CappedSimplex(0.07).on(size), 0.0, 0.07),
        (ex.Simplex(), 0.0, 1.0),
    ):
        p = C.project(x)
        total = 1.0 if lo is not lower else C.total
        y = x - x.mean()
        excess = lambda t, y=y, lo=lo, up=up, to=total: np.clip(y - t, lo, up).sum() - to  # noqa: E731
        theta = brentq(excess, -50, 50, xtol=1e-15, rtol=1e-15)
        np.testing.assert_allclose(p, np.clip(y - theta, lo, up), atol=1e-12)
        assert abs(p.sum() - total) <= 1e-12 * np.abs(p).sum()
        assert (p >= lo).all()
        assert (p <= up).all()


def test_projections_by_hand():
    np.testing.assert_allclose(ex.Simplex().project(np.array([2.0, 1.5, -1.0])), [0.75, 0.25, 0.0])
    np.testing.assert_array_equal(ex.Simplex().project(np.array([9.0, 0.0, 0.0])), [1, 0, 0])
    np.testing.assert_allclose(UnitSimplex().project(np.array([0.2, -0.5, 0.3])), [0.2, 0.0, 0.3])
    np.testing.assert_allclose(UnitSimplex().project(np.array([2.0, 1.5, -1.0])), [0.75, 0.25, 0.0])
    np.testing.assert_allclose(CappedSimplex(0.5).project(np.array([9.0, 1.0, 1.0])), [0.5, 0.25, 0.25])
    np.testing.assert_array_equal(Hypersimplex(2).project(np.array([5.0, 4.0, 0.0])), [1, 1, 0])
    np.testing.assert_array_equal(ex.Box(0.0, 1.0).project(np.array([-1.0, 0.5, 2.0])), [0, 0.5, 1])
    np.testing.assert_allclose(Monotone(0.0, 2.0).project(np.array([-1.0, 1.0, 0.0, 3.0])), [0, 0.5, 0.5, 2])
    falling = Monotone(0.0, 2.0, increasing=False)
    np.testing.assert_allclose(falling.project(np.array([[3.0, 0.0], [1.0, -1.0]])), [[2, 0.5], [0.5, 0]])


def test_projections_from_where_floats_are_far_apart():
    np.testing.assert_allclose(CappedSimplex(0.4).project(1e16 + np.array([0.0, 0.0, 2.0])), [0.3, 0.3, 0.4])
    np.testing.assert_allclose(ex.Simplex().project(np.full(3, -1e17)), [1 / 3, 1 / 3, 1 / 3])


def test_projections_leave_their_argument_alone():
    x = np.array([2.0, 1.5, -1.0, 0.3])
    x.flags.writeable = False
    for C in (ex.Simplex(), UnitSimplex(), CappedSimplex(0.4), Hypersimplex(2), BudgetBox(-1.0, 1.0, 0.0), Monotone(0.0, 1.0)):
        C.on(4).project(x)


# faces


def test_faces_of_the_simplex_with_its_inside():
    C, g = UnitSimplex(2.0), np.array([-1.0, -2.0, 5.0])
    assert C.away(g, np.array([1.0, 1.0, 0.0])).j == 0  # the sum is spent: 0 is not on the face
    assert C.away(g, np.array([0.5, 1.0, 0.0])) == Coordinate(0, 0.0, (3,))
    assert C.away(g, np.array([0.5, 0.5, 0.5])).j == 2
    assert C.away(g, np.zeros(3)) == Coordinate(0, 0.0, (3,))
    zero, first = Coordinate(0, 0.0, (3,)), Coordinate(0, 2.0, (3,))
    assert C.max_step(np.array([0.5, 1.0, 0.0]), first, zero) == 0.25
    assert C.max_step(np.array([0.5, 1.0, 0.0]), zero, first) == 0.25
    assert C.max_step(np.array([2.0, 0.0, 0.0]), zero, first) == 1.0


def test_faces_by_hand():
    g = np.array([3.0, 2.0, 1.0, 0.0])
    np.testing.assert_allclose(CappedSimplex(0.4).away(g, np.array([0.0, 0.4, 0.3, 0.3])).to_array(), [0, 0.4, 0.4, 0.2])
    np.testing.assert_allclose(BudgetBox(-1, 1, 0).away(g, np.array([-1.0, 1.0, 0.5, -0.5])).to_array(), [-1, 1, 1, -1])
    np.testing.assert_array_equal(ex.Box(-1, 1).away(g - 1.5, np.array([-1.0, 1.0, 0.5, -0.5])).to_array(), [-1, 1, -1, -1])
    np.testing.assert_array_equal(Monotone(0, 1).away(g, np.array([0.0, 0.5, 0.5, 1.0])).to_array(), [0, 1, 1, 1])
    assert CappedSimplex(0.4).max_step(
        np.array([0.0, 0.4, 0.3, 0.3]),
        SparseVertex(np.array([0, 1]), np.array([0.4, 0.4]), (4,)),
        DenseVertex(np.array([0, 0.4, 0.4, 0])),
    ) == pytest.approx(0.75)


@pytest.mark.parametrize("C", FACED, ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_at_a_bound_does_not_leave_the_face(C, dtype):
    """The face of a vertex is the vertex, also if its entries are off by a rounding error."""
    rng, eps = np.random.default_rng(3), float(np.finfo(dtype).eps)
    for _ in range(20):
        v = C.lmo(rng.standard_normal(C.shape)).to_array()
        x = (v + 0.5 * eps * np.abs(v).max() * rng.uniform(-1, 1, C.shape)).astype(dtype)
        np.testing.assert_allclose(C.away(rng.standard_normal(C.shape), x).to_array(), v, atol=10 * eps)


@pytest.mark.parametrize("C", FACED, ids=repr)
def test_steps_between_vertices_of_the_face_reach_the_nearest_point(C):
    """Pairwise steps without an active set end at the projection, which another routine finds."""
    rng = np.random.default_rng(1)
    for target in (2 * rng.standard_normal(C.shape), 0.3 * rng.standard_normal(C.shape)):
        x = C.lmo(rng.standard_normal(C.shape)).to_array()
        for _ in range(3000):
            g = x - target
            s, a = C.lmo(g), C.away(g, x)
            d = s.to_array() - a.to_array()
            if np.vdot(g, -d) <= 1e-14:
                break
            x = x + min(C.max_step(x, s, a), float(np.vdot(g, -d) / np.vdot(d, d))) * d
        assert C.contains(x, 1e-12)
        np.testing.assert_allclose(x, C.project(target), atol=1e-6)


# refusals


@pytest.mark.parametrize("bad", [0, -1.0, NAN, INF, "1", True, None, [1.0]], ids=repr)
def test_sizes(bad):
    for make in (UnitSimplex, lambda t: CappedSimplex(1.0, t)):
        with refused("total=...", "positive finite"):
            make(bad)
    with refused("`Hypersimplex(scale=...)`", "positive finite"):
        Hypersimplex(1, bad)


@pytest.mark.parametrize("bad", [0, -0.5, NAN, "1", None, 1j, [0.5, -0.1], [NAN, 1.0], [0.0, 0.0], [[1.0], [1.0, 2]]], ids=repr)
def test_caps(bad):
    with refused("`CappedSimplex(cap=...)` must be"):
        CappedSimplex(bad)


def test_caps_that_are_too_low():
    with refused("`CappedSimplex(cap=...)` must be at least total / dimension = 0.2 for 5 entries, got 0.1"):
        CappedSimplex(0.1).on(5)
    with refused("at least total / dimension = 0.5 for 4 entries, got 0.1"):
        CappedSimplex(0.1, total=2, shape=(2, 2))
    with refused("must sum to total = 1.0 or more", "0.25 on average for 4 entries", "sum to 0.8"):
        CappedSimplex([0.1, 0.2, 0.2, 0.3])
    for call in (lambda C: C.lmo(np.ones(5)), lambda C: C.contains(np.ones(5)), lambda C: C.project(np.ones(5))):
        with refused("at least total / dimension = 0.2"):
            call(CappedSimplex(0.1))
    for size in range(1, 200):  # what the message names is accepted, whatever its rounding
        x = CappedSimplex(1 / size).on(size).start()
        np.testing.assert_allclose(x, 1 / size)
        assert CappedSimplex(1 / size).lmo(np.arange(size)).dot(np.ones(size)) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("bad", [0, -1, 2.0, "2", True, None], ids=repr)
def test_numbers_of_entries(bad):
    with refused("`Hypersimplex(k=...)` must be a whole number of at least 1"):
        Hypersimplex(bad)


def test_more_entries_than_there_are():
    with refused("`Hypersimplex(k=...)` must be a whole number between 1 and 6, got 7"):
        Hypersimplex(7).on((2, 3))
    with refused("between 1 and 6, got 7"):
        Hypersimplex(7).lmo(np.ones(6))


def test_budgets_that_cannot_be_met():
    with refused("`BudgetBox(total=...)` must be from sum(lower) = 0.0 to sum(upper) = 3.0 for 3 entries, got 4.0"):
        BudgetBox(0, 1, 4).on(3)
    with refused("from sum(lower) = -1.5 to sum(upper) = 3.0 for 2 entries, got -2.0"):
        BudgetBox([-1.0, -0.5], [1.0, 2.0], -2)
    with refused("got 4.0"):
        BudgetBox(0, 1, 4).lmo(np.ones(3))
    for bad in (NAN, INF, "1", None, [1.0, 2.0]):
        with refused("`BudgetBox(total=...)` must be"):
            BudgetBox(0, 1, bad)
    with refused("`BudgetBox(upper=...)` must be finite"):
        BudgetBox(0, INF, 1)
    with refused("`BudgetBox(lower=..., upper=...)` must have lower <= upper"):
        BudgetBox(1, 0, 1)
    with refused("`BudgetBox(lower=..., upper=..., shape=...)` must fit one shape, got (2,), (3,) and None"):
        BudgetBox([0, 0], [1, 1, 1], 1)


def test_chains_that_cannot_be():
    with refused("`Monotone(lower=..., upper=...)` must have lower <= upper, got 1.0 and 0.0"):
        Monotone(1, 0)
    with refused("`Monotone(increasing=...)` must be True or False"):
        Monotone(0, 1, 1)
    with refused("`Monotone(lower=...)` must be one number"):
        Monotone([0, 0], 1)
    with refused("`Monotone(upper=...)` must be finite"):
        Monotone(0, INF)


# sets as values


def test_bounds_are_copies_and_are_spread_over_the_shape():
    caps = np.array([0.4, 0.5, 0.6])
    C = CappedSimplex(caps, shape=(2, 3))
    caps[:] = 9.0
    assert C.cap.shape == (2, 3)
    np.testing.assert_array_equal(C.cap[1], [0.4, 0.5, 0.6])
    with pytest.raises(ValueError, match="read-only"):
        C.cap[0, 0] = 1.0
    assert C == CappedSimplex([[0.4, 0.5, 0.6]] * 2)
    assert BudgetBox([0, 0], 1, 1) == BudgetBox([0.0, 0.0], 1.0, 1.0, shape=2)
    assert repr(CappedSimplex(0.1)) == "CappedSimplex(cap=0.1)"
    assert CappedSimplex(0.1) == CappedSimplex(0.1) != CappedSimplex(0.2)


def test_samples_of_these_tests_are_feasible():
    x = budget_point(np.random.default_rng(0), -1.0, 2.0, 0.5, (7,))
    assert x.sum() == pytest.approx(0.5)
    assert x.min() >= -1
    assert x.max() <= 2
