"""The catalogue of sets: one contract, held against definitions and independent solvers, for every set."""

from __future__ import annotations

import copy
import itertools
import math
import pickle

import numpy as np
import pytest
import sets_composed
import sets_norms
import sets_polytopes
import sets_simplices
import sets_spectral
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import extremal as ex
from extremal.points.vertex import least
from extremal.sets.base import Faced, Projectable

CASES = (*sets_norms.CASES, *sets_simplices.CASES, *sets_spectral.CASES, *sets_polytopes.CASES, *sets_composed.CASES)
EVERY = pytest.mark.parametrize("case", CASES, ids=str)
FACED = pytest.mark.parametrize("case", [c for c in CASES if isinstance(c.C, Faced)], ids=str)
PROJECTABLE = pytest.mark.parametrize("case", [c for c in CASES if isinstance(c.C, Projectable)], ids=str)
entries = st.floats(-1.5, 1.5, width=32) | st.sampled_from([0.0, -0.0, 1.0, -1.0])  # the latter make ties and zeros
seeds = st.integers(0, 2**32 - 1)
EXAMPLES = settings(max_examples=25)  # of some 250 sets, each


def gradient(data, case, dtype=np.float64) -> np.ndarray:
    return data.draw(arrays(np.float64, case.C.shape, elements=entries)).astype(dtype)


def tolerance(case, dtype) -> float:
    return max(case.tol, 1e-5 if dtype == np.float32 else 0.0)


def dense(x) -> np.ndarray:
    return np.asarray(x, np.float64)


# the oracle


@EVERY
@EXAMPLES
@given(data=st.data(), dtype=st.sampled_from([np.float32, np.float64]), seed=seeds)
def test_the_oracle_answers_a_best_feasible_point(case, data, dtype, seed):
    g, tol = gradient(data, case, dtype), tolerance(case, dtype)
    s = case.C.lmo(g)
    point, wide = s.to_array(), g.astype(np.float64)
    scale = tol * (case.size * float(np.abs(wide).sum()) + abs(case.minimum(wide)))
    assert point.shape == g.shape == s.shape
    assert case.C.contains(point, tol)
    assert s.dot(g) == pytest.approx(float(np.vdot(wide, point)), abs=10 * scale + 1e-300)
    assert s.norm2 == pytest.approx(float(np.vdot(point, point)), rel=1e-5 if dtype == np.float32 else 1e-9)
    assert s.dot(g) == pytest.approx(case.minimum(wide), abs=scale + 1e-300)
    assert (
        least(s, g) <= case.minimum(wide) + (1e-12 if dtype == np.float64 else tol) * scale / tol + 1e-300
    )  # safe also if inexact
    rng = np.random.default_rng(seed)
    best = min(float(np.vdot(wide, case.sample(rng))) for _ in range(5))
    assert s.dot(g) <= best + 10 * scale + 1e-300


@EVERY
@settings(max_examples=8)
@given(data=st.data())
def test_huge_and_tiny_gradients(case, data):
    g = gradient(data, case)
    assume(not g.any() or np.abs(g).max() > 1e-6)  # else the product has lost its digits
    least = case.minimum(g)
    off = 10 * case.tol * (case.size * float(np.abs(g).sum()) + abs(least))
    for scale in (1e-300, 1e-30, 1e30, 1e300):
        with np.errstate(under="ignore"):
            s = case.C.lmo(g * scale).to_array()
        assert case.C.contains(s, case.tol)
        assert float(np.vdot(s, g)) == pytest.approx(least, abs=off + 1e-300)


@EVERY
@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_huge_and_tiny_float32(case, scale):
    g = np.random.default_rng(0).standard_normal(case.C.shape).astype(np.float32)
    s = case.C.lmo(g * np.float32(scale)).to_array()
    assert case.C.contains(s, 1e-5)
    off = 1e-4 * (case.size * float(np.abs(g).sum()) + abs(case.minimum(g.astype(np.float64))))
    assert float(np.vdot(s, g)) == pytest.approx(case.minimum(g.astype(np.float64)), abs=off)


@EVERY
def test_zero_gradients_and_ties(case):
    for g in (np.zeros(case.C.shape), np.ones(case.C.shape), -np.ones(case.C.shape)):
        s = case.C.lmo(g)
        assert case.C.contains(s.to_array(), case.tol)
        assert s.dot(g) == pytest.approx(case.minimum(g), abs=10 * case.tol * case.size * g.size)
        assert case.C.lmo(g).key == s.key  # the same question, the same answer


@EVERY
def test_gradients_that_are_not_finite_are_refused(case):
    size = math.prod(case.C.shape)
    for j, bad, dtype in itertools.product({0, size // 2, size - 1}, [np.nan, np.inf, -np.inf], [np.float32, np.float64]):
        g = np.random.default_rng(0).standard_normal(size).astype(dtype)
        g[j] = bad
        with pytest.raises(ex.NonFiniteError, match=r"lmo\(g\): g has a NaN or an infinite entry"):
            case.C.lmo(g.reshape(case.C.shape))


@EVERY
def test_the_gradient_is_left_alone(case):
    g = np.random.default_rng(0).standard_normal(case.C.shape)
    g.flags.writeable = False
    before = g.copy()
    case.C.lmo(g)
    np.testing.assert_array_equal(g, before)


@EVERY
def test_answers_can_be_stepped_to(case):
    g = np.random.default_rng(1).standard_normal(case.C.shape)
    s, x = case.C.lmo(g), dense(case.C.start())
    for dtype in (np.float64, np.float32):
        moved = x.astype(dtype)
        s.add_to(moved, 0.25)
        assert moved.dtype == dtype
        np.testing.assert_allclose(moved, x + 0.25 * s.to_array(), rtol=1e-5, atol=1e-5 * case.size)
    a = s.to_array()
    a[...] = 9.0  # a copy
    assert not (s.to_array() == 9.0).all()


# membership, size, start


@EVERY
@EXAMPLES
@given(seed=seeds)
def test_samples_are_members_and_points_beyond_the_boundary_are_not(case, seed):
    rng = np.random.default_rng(seed)
    assert case.C.contains(case.sample(rng), case.tol)
    g = rng.standard_normal(case.C.shape)
    s, other = case.C.lmo(g).to_array(), case.C.lmo(-g).to_array()
    if np.vdot(g, other - s) > 1e-3 * case.size:
        assert not case.C.contains(s - 1e-2 * (other - s), min(case.tol, 1e-4))
        assert case.C.contains(s + 0.5 * (other - s), case.tol)
    assert not case.C.contains(np.full(case.C.shape, np.nan))


@EVERY
@EXAMPLES
@given(seed=seeds)
def test_the_diameter_is_never_exceeded(case, seed):
    rng = np.random.default_rng(seed)
    D = case.C.diameter
    a, b = case.sample(rng), case.sample(rng)
    g = rng.standard_normal(case.C.shape)
    v, w = case.C.lmo(g).to_array(), case.C.lmo(-g).to_array()
    assert max(np.linalg.norm((a - b).reshape(-1)), np.linalg.norm((v - w).reshape(-1))) <= D * (1 + 1e-9)


@pytest.mark.parametrize("case", [c for c in CASES if c.diameter is not None], ids=str)
def test_exact_diameters(case):
    assert case.C.diameter == pytest.approx(case.diameter, rel=1e-9)


@EVERY
def test_start_is_feasible_and_fresh(case):
    x = case.C.start()
    assert x.shape == case.C.shape
    for dtype in (np.float32, np.float64):
        assert case.C.contains(np.asarray(x).astype(dtype), tolerance(case, dtype))
    if isinstance(x, np.ndarray):
        x[...] = 7.0
        assert case.C.contains(case.C.start(), case.tol)


@pytest.mark.parametrize("case", [c for c in CASES if c.scaled is not None], ids=str)
@pytest.mark.parametrize("factor", [1e-10, 1e10])
def test_sets_of_any_size(case, factor):
    C = case.scaled(factor)
    g = np.random.default_rng(0).standard_normal(case.C.shape)
    s = C.lmo(g)
    assert C.contains(s.to_array(), case.tol)
    off = 10 * case.tol * (case.size * float(np.abs(g).sum()) + abs(case.minimum(g)))
    assert s.dot(g) / factor == pytest.approx(case.minimum(g), abs=off)
    assert C.diameter == pytest.approx(case.C.diameter * factor, rel=1e-9)
    other = C.lmo(-g).to_array()
    assert not C.contains(s.to_array() - 1e-2 * (other - s.to_array()), min(case.tol, 1e-4))


# what some sets can do besides


@PROJECTABLE
@EXAMPLES
@given(seed=seeds, far=st.sampled_from([0.1, 1.0, 10.0]))
def test_projections_are_nearest_points(case, seed, far):
    """p is the nearest point to v if and only if <p - v, p - s> <= 0 for all s of the set."""
    rng = np.random.default_rng(seed)
    v = case.sample(rng) + far * case.size * rng.standard_normal(case.C.shape)
    p = case.C.project(v)
    assert case.C.contains(p, case.tol)
    g = p - v
    s = case.C.lmo(g).to_array()
    assert float(np.vdot(g, p - s)) <= 1e-8 * (np.abs(g).sum() + case.size) * case.size * far
    inside = case.sample(rng)
    np.testing.assert_allclose(case.C.project(inside), inside, atol=1e-9 * case.size)


@PROJECTABLE
def test_points_that_are_not_finite_have_no_projection(case):
    for bad in (np.nan, np.inf):
        with pytest.raises(ex.InputError, match=r"project\(x=...\)` must be finite"):
            case.C.project(np.full(case.C.shape, bad))


@FACED
@EXAMPLES
@given(seed=seeds, atoms=st.integers(1, 4))
def test_vertices_to_go_away_from_are_worst_on_the_face(case, seed, atoms):
    rng = np.random.default_rng(seed)
    vertices = [case.C.lmo(rng.standard_normal(case.C.shape)).to_array() for _ in range(atoms)]
    x = sum(w * v for w, v in zip(rng.dirichlet(np.ones(atoms)), vertices, strict=True))
    g = rng.standard_normal(case.C.shape)
    a = case.C.away(g, x)
    off = 1e-9 * case.size * np.abs(g).sum()
    assert case.C.contains(a.to_array(), case.tol)
    assert a.dot(g) >= max(float(np.vdot(g, v)) for v in vertices) - off  # all of them lie on the face
    assert case.C.contains(x + 1e-6 * (x - a.to_array()), 1e-9), "a is not on the smallest face that holds x"
    s = case.C.lmo(g)
    t = case.C.max_step(x, s, a)
    assert 0 <= t <= 1
    d = s.to_array() - a.to_array()
    assert case.C.contains(x + t * d, 1e-9)
    if t < 1 and np.abs(d).max() > 1e-9 * case.size:
        assert not case.C.contains(x + (t + 1e-3) * d, 1e-9)


# sets as values


@EVERY
def test_sets_are_values(case):
    again = copy.deepcopy(case.C)
    assert again == case.C
    assert hash(again) == hash(case.C)
    assert pickle.loads(pickle.dumps(case.C)) == case.C
    assert case.C != ex.Simplex(17.25)
    assert "\n" not in repr(case.C)
    assert len(repr(case.C)) < 300


@EVERY
def test_what_is_no_point_of_the_shape_is_refused(case):
    calls = [case.C.lmo, case.C.contains, *([case.C.project] if isinstance(case.C, Projectable) else [])]
    shape = case.C.shape
    wrong = (
        np.zeros((*shape[:-1], shape[-1] + 1)),
        np.zeros(0),
        1.0,
        "abc",
        None,
        np.zeros(shape, complex),
        np.zeros(shape, object),
    )
    for call in calls:
        for a in (*wrong, np.ma.masked_all(shape)):
            with pytest.raises(ex.InputError, match=rf"{type(case.C).__name__}\.{call.__name__}\([gx]="):
                call(a)
    assert case.C.contains(case.C.start())


@EVERY
def test_integers_and_lists_are_numbers(case):
    g = np.arange(math.prod(case.C.shape)).reshape(case.C.shape)
    assert case.C.lmo(g).key == case.C.lmo(g.tolist()).key == case.C.lmo(g.astype(np.float64)).key


@EVERY
def test_answers_in_float32_are_members(case):
    g = np.random.default_rng(0).standard_normal(case.C.shape).astype(np.float32)
    assert case.C.contains(case.C.lmo(g).to_array().astype(np.float32))


@EVERY
def test_shapes_that_do_not_fit_are_refused(case):
    assert case.C.on(case.C.shape) == case.C
    with pytest.raises(ex.InputError, match="shape"):
        case.C.on((*case.C.shape[:-1], case.C.shape[-1] + 1))
