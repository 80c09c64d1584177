"""Sets: the oracle answers a best feasible point whatever the gradient, and the set knows its own size."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pytest
from cases import DIM, LOWER, SETS, UPPER, VERTICES, corners, minimum, project
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog

import extremal as ex
from extremal.sets import parse

TOL = {np.float32: 1e-5, np.float64: 1e-12}
EVERY_SET = pytest.mark.parametrize("C", SETS, ids=repr)
entries = st.floats(-1.5, 1.5, width=32) | st.sampled_from([0.0, -0.0, 1.0, -1.0])  # the latter make ties and zeros
gradients = arrays(np.float64, DIM, elements=entries)


def size(C) -> float:
    return float(np.abs(corners(C, DIM)).max())


@EVERY_SET
@given(g=gradients, dtype=st.sampled_from([np.float32, np.float64]), seed=st.integers(0, 9))
def test_the_oracle_answers_a_best_feasible_point(C, g, dtype, seed):
    g = g.astype(dtype)
    s, tol = C.lmo(g), TOL[dtype]
    point = s.to_array()
    assert point.shape == g.shape
    assert C.contains(point, tol)
    assert s.dot(g) == pytest.approx(minimum(C, g), rel=tol, abs=tol * size(C))
    others = [project(C, v) for v in np.random.default_rng(seed).standard_normal((20, DIM)) * size(C)]
    assert s.dot(g) <= min((np.vstack([corners(C, DIM), *others]) @ g).tolist()) + 10 * tol * size(C)


@EVERY_SET
@pytest.mark.parametrize("scale", [1e-310, 1e-300, 1e-30, 1e30, 1e300, 1e308])
@given(g=gradients)
def test_the_oracle_at_huge_and_tiny_gradients(C, scale, g):
    with np.errstate(under="ignore"):
        s = C.lmo(g * scale).to_array()
    assert C.contains(s, 1e-9)
    if scale >= 1e-300:  # below, the gradient itself has lost its digits
        assert s @ g == pytest.approx(minimum(C, g), rel=1e-9, abs=1e-9 * size(C))


@EVERY_SET
@pytest.mark.parametrize("scale", [1e-40, 1e-30, 1e30, 1e38])
def test_the_oracle_at_huge_and_tiny_float32(C, scale):
    g = np.linspace(-1.5, 1.2, DIM).astype(np.float32)
    s = C.lmo(g * np.float32(scale)).to_array()
    assert C.contains(s, 1e-5)
    assert s @ g == pytest.approx(minimum(C, g), rel=1e-4)


@EVERY_SET
@pytest.mark.parametrize("radius", [1e-12, 1e12])
def test_sets_of_any_size(C, radius):
    big = ex.Box(C.lower * radius, C.upper * radius) if isinstance(C, ex.Box) else type(C)(radius)
    g = np.linspace(-1.0, 2.0, DIM)
    s = big.lmo(g)
    assert big.contains(s.to_array())
    assert s.dot(g) == pytest.approx(minimum(big, g), rel=1e-12)
    outside = s.to_array() * np.where(s.to_array() != 0, 1.01, 1.0)
    assert not big.contains(outside)


@EVERY_SET
def test_ties_and_zero_gradients_go_to_the_smallest_index(C):
    for g in (np.zeros(DIM), np.ones(DIM), -np.ones(DIM)):
        s = C.lmo(g)
        assert C.contains(s.to_array())
        assert s.dot(g) == pytest.approx(minimum(C, g))
        if isinstance(C, (ex.L1Ball, ex.Simplex)):
            assert isinstance(s, ex.points.Coordinate)
            assert s.j == 0
    if isinstance(C, (ex.L1Ball, ex.Simplex)):
        assert C.lmo(np.array([0, 0, -3.0, 1, -3.0])).j == 2


def test_answers_by_hand():
    g = np.array([1.0, -3.0, 2.0])
    np.testing.assert_array_equal(ex.L1Ball(2.0).lmo(g).to_array(), [0, 2, 0])
    np.testing.assert_array_equal(ex.L1Ball(2.0).lmo(-g).to_array(), [0, -2, 0])
    np.testing.assert_allclose(ex.L2Ball(2.0).lmo(g).to_array(), -2 * g / np.sqrt(14))
    np.testing.assert_array_equal(ex.LinfBall(2.0).lmo(g).to_array(), [-2, 2, -2])
    np.testing.assert_array_equal(ex.Simplex(2.0).lmo(-np.abs(g)).to_array(), [0, 2, 0])
    np.testing.assert_array_equal(ex.Simplex(2.0).lmo(np.abs(g)).to_array(), [2, 0, 0])
    np.testing.assert_array_equal(ex.Box(-1.0, 5.0).lmo(g).to_array(), [-1, 5, -1])


@EVERY_SET
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("at", [0, 4, DIM - 1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_non_finite_gradients_are_refused(C, bad, at, dtype):
    for g in (np.linspace(-1, 1, DIM), np.zeros(DIM)):
        g = g.astype(dtype)
        g[at] = bad
        with pytest.raises(ex.NonFiniteError, match=type(C).__name__):
            C.lmo(g)


@EVERY_SET
def test_whole_numbers_are_a_gradient_too(C):
    g = np.arange(DIM) - 3
    np.testing.assert_allclose(C.lmo(g).to_array(), C.lmo(g.astype(np.float64)).to_array())


@pytest.mark.parametrize("C", [C for C in SETS if not isinstance(C, ex.L2Ball)], ids=repr)
def test_the_oracle_against_linear_programming(C):
    for g in np.random.default_rng(0).standard_normal((8, DIM)):
        if isinstance(C, ex.L1Ball):  # x = u - v with u, v >= 0
            lp = linprog(np.r_[g, -g], A_ub=np.ones((1, 2 * DIM)), b_ub=[C.radius], method="highs")
        elif isinstance(C, ex.Simplex):
            lp = linprog(g, A_eq=np.ones((1, DIM)), b_eq=[C.total], method="highs")
        else:
            lower, upper = (-C.radius, C.radius) if isinstance(C, ex.LinfBall) else (C.lower, C.upper)
            bounds = np.column_stack([np.broadcast_to(lower, DIM), np.broadcast_to(upper, DIM)])
            lp = linprog(g, bounds=bounds, method="highs")
        assert C.lmo(g).dot(g) == pytest.approx(lp.fun, rel=1e-9)


@EVERY_SET
@given(a=gradients, b=gradients)
def test_the_diameter_is_never_exceeded_and_attained(C, a, b):
    D = C.on(DIM).diameter
    assert np.linalg.norm(project(C, 3 * a) - project(C, 3 * b)) <= D * (1 + 1e-9)
    V = corners(C, DIM)
    farthest = np.sqrt(((V[:, None] - V[None]) ** 2).sum(axis=2)).max()
    assert farthest == pytest.approx(D, rel=1e-12)


def test_diameters_that_depend_on_the_dimension():
    assert ex.LinfBall(1.0).on((2, 8)).diameter == 8.0
    assert ex.Box(0.0, 1.0).on(9).diameter == 3.0
    assert ex.Simplex(4.0).on(1).diameter == 0.0
    assert ex.Simplex(4.0).on(2).diameter == pytest.approx(4 * np.sqrt(2))


@EVERY_SET
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_contains_on_both_sides_of_the_boundary(C, dtype):
    """Every corner is on the boundary; the outside is 1e-3 beyond it, seen from an inner point."""
    inner = C.on(DIM).start()
    for corner in corners(C, DIM):
        assert C.contains((inner + (1 - 1e-3) * (corner - inner)).astype(dtype), TOL[dtype])
        assert C.contains(corner.astype(dtype), TOL[dtype])
        assert not C.contains((inner + (1 + 1e-3) * (corner - inner)).astype(dtype), TOL[dtype])
    assert not C.contains(np.full(DIM, np.nan, dtype))


def test_the_simplex_is_flat():
    assert not ex.Simplex().contains(np.full(4, 0.2))
    assert not ex.Simplex().contains(np.array([1.5, -0.5, 0.0]))
    assert not ex.Simplex().contains(np.zeros(3))


@EVERY_SET
def test_start_is_feasible(C):
    for dtype in (np.float32, np.float64):
        x = C.on(DIM).start()
        assert x.shape == (DIM,)
        assert C.contains(x.astype(dtype), TOL[dtype])
    x[:] = 7.0  # the caller's own
    assert C.contains(C.on(DIM).start())


@EVERY_SET
def test_points_that_are_matrices(C):
    if isinstance(C, ex.Box) and C.shape is not None:
        C2 = ex.Box(LOWER.reshape(2, -1), UPPER.reshape(2, -1))
    else:
        C2 = C.on((2, DIM // 2))
    g = np.random.default_rng(0).standard_normal(DIM)
    for g2 in (g.reshape(2, -1), np.asfortranarray(g.reshape(2, -1))):
        s = C2.lmo(g2)
        np.testing.assert_allclose(s.to_array(), C.lmo(g).to_array().reshape(2, -1))
        assert s.dot(g2) == pytest.approx(minimum(C, g))
        assert C2.contains(s.to_array())
    assert C2.start().shape == (2, DIM // 2)
    assert C2.diameter == pytest.approx(C.on(DIM).diameter)


@EVERY_SET
def test_on_a_shape(C):
    there = C.on(DIM)
    assert there.shape == (DIM,)
    assert there.on((DIM,)) is there
    with pytest.raises(ex.InputError, match=r"shape \(8,\), but x has shape \(9,\)"):
        there.on(DIM + 1)


@pytest.mark.parametrize("C", [C for C in SETS if C.shape is None], ids=repr)
def test_an_open_shape_is_asked_for(C):
    assert C.on((3, 2)).shape == (3, 2)
    assert C.shape is None
    assert type(C)(1.0, **({"upper": 2.0} if isinstance(C, ex.Box) else {}), shape=4).shape == (4,)
    with pytest.raises(ex.InputError, match=r"on\(dimension\).start\(\)"):
        C.start()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("l1:20", ex.L1Ball(20.0)),
        (" L2:1e-3 ", ex.L2Ball(1e-3)),
        ("linf:0.5", ex.LinfBall(0.5)),
        ("simplex", ex.Simplex()),
        ("simplex:3", ex.Simplex(3.0)),
        ("box:-1,2", ex.Box(-1.0, 2.0)),
        ("lp:2,1.5", ex.LpBall(2.0, 1.5)),
        ("lp:2,inf", ex.LpBall(2.0, np.inf)),
        ("elastic:2,0.5", ex.ElasticBall(2.0, 0.5)),
        ("k-support:2,3", ex.KSupportBall(2.0, 3)),
        ("k-sparse:2,3", ex.KSparseBall(2.0, 3)),
        ("k-norm:2,3", ex.KNormBall(2.0, 3)),
        ("unit-simplex", ex.UnitSimplex()),
        ("unit-simplex:2", ex.UnitSimplex(2.0)),
        ("capped-simplex:0.1", ex.CappedSimplex(0.1)),
        ("capped-simplex:0.5,2", ex.CappedSimplex(0.5, 2.0)),
        ("hypersimplex:3", ex.Hypersimplex(3)),
        ("budget-box:-1,1,0", ex.BudgetBox(-1.0, 1.0, 0.0)),
        ("monotone:0,1", ex.Monotone(0.0, 1.0)),
        ("nuclear:3", ex.NuclearBall(3.0)),
        ("l1", ex.L1Ball(10.0)),
        ("spectral", ex.SpectralBall(10.0)),
    ],
)
def test_sets_by_a_short_string(text, wanted):
    assert repr(parse(text)) == repr(wanted)
    assert type(parse(text)) is type(wanted)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("l3:1", "unknown set 'l3'; did you mean 'l"),
        ("hypersimplex:2.5", "`Hypersimplex(k=...)` must be a whole number"),
        ("capped-simplex", "write capped-simplex:CAP or capped-simplex:CAP,TOTAL"),
        ("symplex", "did you mean 'simplex'?"),
        ("", "unknown set"),
        ("lp", "write lp:RADIUS,P"),
        ("l1:", "write l1:RADIUS"),
        ("l1:abc", "write l1:RADIUS"),
        ("l1:1,2", "write l1:RADIUS"),
        ("box:1", "write box:LOWER,UPPER"),
        ("l1:-1", "`L1Ball(radius=...)` must be a positive finite number"),
        ("l1:nan", "`L1Ball(radius=...)` must be a positive finite number"),
        ("simplex:0", "`Simplex(total=...)` must be a positive finite number"),
        ("box:1,0", "lower <= upper"),
        ("box:0,inf", "`Box(upper=...)` must be finite"),
    ],
)
def test_short_strings_that_are_no_set(text, words):
    with pytest.raises(ex.InputError, match=re.escape(words)):
        parse(text)


@pytest.mark.parametrize("v", VERTICES, ids=lambda v: type(v).__name__)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_vertices_equal_their_arrays(v, dtype):
    g, x, a = np.linspace(-2, 1, DIM).astype(dtype), np.ones(DIM, dtype), v.to_array()
    assert v.dot(g) == pytest.approx(float(a @ g), rel=1e-6)
    assert v.norm2 == pytest.approx(float(a @ a))
    v.add_to(x, 0.25)
    assert x.dtype == dtype
    np.testing.assert_allclose(x, 1 + 0.25 * a, rtol=1e-6)
    assert v.shape == (DIM,)
    a[:] = 9.0  # a copy
    assert not (v.to_array() == 9.0).any()


def test_vertices_move_points_of_any_memory_layout():
    a = np.arange(6.0).reshape(2, 3)
    for v in (ex.points.Coordinate(4, 2.0, (2, 3)), ex.points.DenseVertex(a)):
        for x in (np.zeros((2, 3)), np.zeros((2, 3), order="F"), np.zeros((4, 3))[::2], np.zeros((3, 2)).T):
            v.add_to(x, 0.5)
            np.testing.assert_array_equal(x, 0.5 * v.to_array())


def test_equal_vertices_have_equal_keys():
    assert ex.points.Coordinate(1, 2.0, (3,)).key == ex.L1Ball(2.0).lmo(np.array([0.0, -1.0, 0.5])).key
    assert len({ex.L1Ball(2.0).lmo(g).key for g in (*np.eye(3), *-np.eye(3), *np.eye(3))}) == 6
    assert ex.points.DenseVertex(np.array([0.0, 1.0])).key == ex.points.DenseVertex(np.array([-0.0, 1.0])).key
    assert ex.points.DenseVertex(np.array([0.0, 1.0])).key != ex.points.DenseVertex(np.array([1.0, 0.0])).key


def test_a_parameter_with_a_default_may_become_an_array():
    @dataclass(frozen=True, eq=False, repr=False)
    class Weighted(ex.L2Ball):
        w: tuple = (1.0, 1.0)

        def __post_init__(self):
            super().__post_init__()
            self._fix(w=np.asarray(self.w, float))

    assert "w=" not in repr(Weighted(1.0))
    assert "w=" in repr(Weighted(1.0, w=(1.0, 2.0, 3.0)))
