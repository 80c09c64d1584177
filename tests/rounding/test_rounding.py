"""Settled points: the constraints hold with no tolerance at all, in the point's own float type and any order of summation."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
import test_catalogue
from hypothesis import given, settings
from hypothesis import strategies as st

import extremal as ex
from extremal.rounding.exact import settle, violation

SIZES = st.sampled_from([1, 2, 3, 7, 10, 100, 1000, 100_000])
NUMBERS = st.sampled_from([1.0, 0.1, 1e-3, 1e6, 1 / 3, 0.7, 2.0, math.pi])
DTYPES = st.sampled_from([np.float32, np.float64])
EXAMPLES = settings(max_examples=60)
cases = pytest.mark.parametrize("case", test_catalogue.CASES, ids=str)


def sums(x: np.ndarray, rng: np.random.Generator) -> set[float]:
    """Sums in several orders, in x's own float type."""
    orders = [x, x[::-1], np.sort(x), rng.permutation(x)]
    one_by_one = [np.cumsum(y)[-1] for y in orders]
    pairwise = [y.sum() for y in orders]
    return {*map(float, one_by_one), *map(float, pairwise), float(x @ np.ones_like(x))}


def weights(rng: np.random.Generator, size: int, sparse: bool) -> np.ndarray:
    w = rng.dirichlet(np.full(size, 0.05 if sparse else 2.0)) if size <= 1000 else rng.exponential(size=size)
    w = np.where(rng.random(size) < 0.5, 0.0, w) if sparse else w
    w[0] += w.sum() == 0
    return w / w.sum()


def near(x: np.ndarray, dtype, rng: np.random.Generator, noise: float) -> np.ndarray:
    return (x * (1 + noise * rng.uniform(-1, 1, x.shape))).astype(dtype)


def check(C, x, y):
    """What every settled point keeps."""
    assert y.dtype == x.dtype
    assert y.shape == x.shape
    assert violation(C, y) == 0.0
    assert settle(C, y).tobytes() == y.tobytes()  # as it was
    assert np.abs(y - x).max() <= 1e-3 * max(np.abs(x).max(), 1e-300)


# totals


@EXAMPLES
@given(size=SIZES, total=NUMBERS, dtype=DTYPES, seed=st.integers(0, 2**32 - 1), sparse=st.booleans())
def test_weights_sum_to_their_total_in_any_order(size, total, dtype, seed, sparse):
    rng = np.random.default_rng(seed)
    x = near(total * weights(rng, size, sparse), dtype, rng, 1e-6)
    C = ex.Simplex(total)
    y = settle(C, x)
    check(C, x, y)
    assert (y >= 0).all()
    assert sums(y, rng) == {float(dtype(total))}
    assert (y[x == 0] == 0).all()
    off = abs(float(x.sum(dtype=np.float64)) - total) + 2 * np.finfo(dtype).eps * total
    assert np.abs(y.astype(np.float64) - x).max() <= off


@EXAMPLES
@given(size=SIZES, total=NUMBERS, dtype=DTYPES, seed=st.integers(0, 2**32 - 1), spent=st.sampled_from([1.0, 0.5, 1.000001]))
def test_budgets_are_kept_in_any_order(size, total, dtype, seed, spent):
    rng = np.random.default_rng(seed)
    w = (spent * total * weights(rng, size, True)).astype(dtype)
    signed = w * rng.choice([-1, 1], size).astype(dtype)
    lower = np.where(rng.random(size) < 0.5, np.minimum(signed, 0), -np.inf)
    upper = np.where(rng.random(size) < 0.5, np.maximum(signed, 0), np.inf)
    for C, x in (
        (ex.L1Ball(total), signed),
        (ex.UnitSimplex(total), w),
        (ex.BoundedL1Ball(total, lower, upper), signed),
        (ex.BoundedL1Ball(total), signed),
    ):
        y = settle(C, x)
        check(C, x, y)
        assert max(sums(np.abs(y), rng)) <= total
        assert (y[x == 0] == 0).all()
        assert (y * x >= 0).all()
        if isinstance(C, ex.BoundedL1Ball):
            assert ((y >= C.lower) & (y <= C.upper)).all()
        if spent == 0.5:
            np.testing.assert_array_equal(y, x)  # a budget that is not used up


@EXAMPLES
@given(size=st.sampled_from([2, 3, 10, 1000]), dtype=DTYPES, seed=st.integers(0, 2**32 - 1), total=NUMBERS)
def test_capped_weights_and_boxes_with_a_budget(size, dtype, seed, total):
    rng = np.random.default_rng(seed)
    cap = 1.7 * total / size
    x = ex.CappedSimplex(cap, total).on(size).project(total * weights(rng, size, True)).astype(dtype)
    y = settle(ex.CappedSimplex(cap, total), x)
    check(ex.CappedSimplex(cap, total), x, y)
    assert (y <= cap).all()
    assert sums(y, rng) == {float(dtype(total))}
    C = ex.BudgetBox(-total, total, 0.25 * total)
    z = C.on(size).project(total * rng.standard_normal(size)).astype(dtype)
    got = settle(C, z)
    assert settle(C, got).tobytes() == got.tobytes()
    assert np.abs(got).max() <= total
    unit = np.finfo(dtype).eps * max(got[got > 0].sum(), total)  # entries of both signs are coarser than the total may be
    assert violation(C, got) <= unit


def test_long_and_short_positions_cancel_out():
    rng = np.random.default_rng(0)
    C = ex.BudgetBox(-0.5, 0.5, 0.0)
    y = settle(C, C.on(999).project(rng.standard_normal(999)))
    assert sums(y, rng) == {0.0}


def test_caps_that_leave_no_room_are_met_as_well_as_can_be():
    for size in (3, 7, 10):
        C = ex.CappedSimplex(1 / size)
        y = settle(C, np.full(size, 1 / size))
        assert (y <= 1 / size).all()
        assert violation(C, y) <= 2e-16


# norms, bounds, order


@EXAMPLES
@given(
    size=SIZES, radius=NUMBERS, dtype=DTYPES, seed=st.integers(0, 2**32 - 1), off=st.sampled_from([0.0, 1e-9, 1e-6, -1e-9, -0.5])
)
def test_norms_are_at_most_the_radius(size, radius, dtype, seed, off):
    rng = np.random.default_rng(seed)
    v = rng.standard_normal(size)
    for C in (
        ex.L2Ball(radius),
        ex.LinfBall(radius),
        ex.LpBall(radius, 3.0),
        ex.ElasticBall(radius, 0.5),
        ex.KSupportBall(radius, min(3, size)),
        ex.KSparseBall(radius, min(3, size)),
        ex.KNormBall(radius, min(3, size)),
        ex.WeightedL1Ball(radius, rng.uniform(0.5, 2.0, size)),
        ex.OwlBall(radius, np.linspace(2.0, 1.0, size)),
        ex.GroupBall(radius, np.arange(size) // 3),
    ):
        x = (v * ((1 + off) * radius / C.norm(v))).astype(dtype)
        y = settle(C, x)
        check(C, x, y)
        assert C.norm(y) <= radius
        if off == -0.5:
            assert y is x or y.tobytes() == x.tobytes()
    for norm, C in ((np.linalg.norm, ex.L2Ball(radius)), (lambda y: np.sqrt((y**2).sum()), ex.L2Ball(radius))):
        y = settle(C, (v * ((1 + off) * radius / C.norm(v))).astype(dtype))
        assert norm(y) <= dtype(radius)
        assert norm(y) >= (1 - 1e-5) * (1 + min(off, 0.0)) * radius  # no farther in than it takes


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("radius", [0.1, 1e6, 1 / 3])
@pytest.mark.parametrize("kind", [ex.NuclearBall, ex.SpectralBall])
def test_norms_of_matrices(kind, radius, dtype):
    C, order = kind(radius), "nuc" if kind is ex.NuclearBall else 2
    for seed in range(10):
        X = np.random.default_rng(seed).standard_normal((30, 8))
        X = (X * (radius * (1 + 1e-9) / C.norm(X))).astype(dtype)
        Y = settle(C, X)
        check(C, X, Y)
        assert np.linalg.norm(Y, order) <= radius


def test_factors_stay_factors():
    C = ex.NuclearBall(0.1)
    rng = np.random.default_rng(0)
    X = ex.points.FactoredMatrix(rng.standard_normal((40, 3)), rng.standard_normal((20, 3)))
    X = X * (0.1 * (1 + 1e-9) / C.norm(X))
    Y = settle(C, X)
    assert isinstance(Y, ex.points.FactoredMatrix)
    assert violation(C, Y) == 0.0
    assert violation(C, X) > 0
    np.testing.assert_allclose(Y.to_array(), X.to_array(), rtol=1e-8)


@EXAMPLES
@given(size=SIZES, dtype=DTYPES, seed=st.integers(0, 2**32 - 1), bound=NUMBERS)
def test_bounds_and_order(size, dtype, seed, bound):
    rng = np.random.default_rng(seed)
    lower, upper = -bound * rng.random(size), bound * rng.random(size)
    x = near(np.where(rng.random(size) < 0.5, lower, upper), dtype, rng, 1e-6)
    y = settle(ex.Box(lower, upper), x)
    check(ex.Box(lower, upper), x, y)
    assert (y.astype(np.float64) >= lower).all()
    assert (y.astype(np.float64) <= upper).all()
    for up in (True, False):
        C = ex.Monotone(-bound, bound / 3, increasing=up)
        z = np.sort(rng.uniform(-bound, bound / 3, size))[:: 1 if up else -1]
        z = (z + 1e-6 * bound * rng.uniform(-1, 1, size)).astype(dtype)
        y = settle(C, z)
        check(C, z, y)
        assert (np.diff(y) >= 0).all() if up else (np.diff(y) <= 0).all()
        assert y.max() <= bound / 3
        assert y.min() >= -bound


def test_a_fixed_entry_is_the_nearest_number():
    C = ex.Box(0.1, 0.1)
    for dtype in (np.float32, np.float64):
        y = settle(C, np.array([0.1 + 1e-9], dtype))
        assert y[0] == dtype(0.1)
        assert violation(C, y) == 0.0


# polytopes


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_inequalities_hold_as_computed(dtype, make):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        A, b = rng.standard_normal((12, 6)), rng.random(12)
        C = ex.Polytope(A_ub=make(A), b_ub=b, bounds=(0, 1))
        x = C.lmo(rng.standard_normal(6)).to_array()
        x = (0.3 * x + 0.7 * C.lmo(rng.standard_normal(6)).to_array()).astype(dtype)
        y = settle(C, x)
        check(C, x, y)
        assert (A @ y <= b).all()
        assert all(math.fsum(row * y) <= c for row, c in zip(A, b, strict=True))
        assert ((y >= 0) & (y <= 1)).all()
        assert (y[x == 0] == 0).all()  # of 20 random ones, none has to leave a bound
        np.testing.assert_allclose(y, x, atol=1e-5 if dtype == np.float32 else 1e-8)


def test_equations_are_met_as_well_as_can_be():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((2, 8))
    C = ex.Polytope(A_eq=A, b_eq=A @ np.full(8, 0.5), bounds=(0, 1))
    x = C.start() + 1e-9 * rng.standard_normal(8)
    y = settle(C, x)
    assert violation(C, x) > 1e-10
    assert violation(C, y) < 1e-15
    assert settle(C, y).tobytes() == y.tobytes()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("total", [1.0, 0.1])
def test_totals_of_polytopes_are_exact(dtype, total):
    A = np.array([[1.0, -1.0, 0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 2.0, -1.0, 0.0, 0.3]])
    C = ex.Polytope(A_ub=A, b_ub=[0.0, 0.1 * total], A_eq=np.ones((1, 6)), b_eq=[total], bounds=(0, None))
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = sum(w * C.lmo(rng.standard_normal(6)).to_array() for w in (0.5, 0.3, 0.2)).astype(dtype)
        y = settle(C, x)
        check(C, x, y)
        assert sums(y, rng) == {float(dtype(total))}
        assert (A @ y <= C.b_ub).all()


@st.composite
def equations(draw):
    """Rows of -1, 0 and 1, each with an entry of its own, a point next to their solutions, and bounds around it."""
    m, d = draw(st.integers(1, 4)), draw(st.integers(2, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    A = np.hstack([rng.integers(-1, 2, (m, d)), np.diag(rng.choice([-1, 1], m))]).astype(float)
    dtype, size = draw(DTYPES), draw(st.sampled_from([1.0, 1e-3, 37.0]))
    x = size * rng.uniform(-1, 1, m + d)
    x[:d][rng.random(d) < 0.3] = 0.0
    b = np.round(A @ x)
    x[d:] += (b - A @ x) * A[:, d:].diagonal()
    upper = np.where(x == 0, rng.choice([0.0, 1.0], m + d), np.abs(x) * rng.choice([1.0, 1.1, 3.0], m + d))
    upper[d:] = 3 * np.abs(x[d:]) + 1  # entries of their own have room
    return A, b, (x * (1 + 4 * np.finfo(dtype).eps * rng.uniform(-1, 1, x.size))).astype(dtype), upper


@EXAMPLES
@given(problem=equations(), sparse=st.booleans(), seed=st.integers(0, 2**32 - 1))
def test_equations_of_ones_hold_in_any_order(problem, sparse, seed):
    A, b, x, upper = problem
    C = ex.Polytope(A_eq=sp.csr_array(A) if sparse else A, b_eq=b, bounds=np.column_stack([-upper, upper]))
    y = settle(C, x)
    check(C, x, y)
    assert (y[x == 0] == 0).all()
    assert (np.abs(y.astype(np.float64)) <= upper).all()
    rng = np.random.default_rng(seed)
    np.testing.assert_array_equal(A.astype(y.dtype) @ y, b)
    for row, right in zip(A.astype(y.dtype), b, strict=True):
        assert sums((row * y)[row != 0], rng) == {right}


@EXAMPLES
@given(seed=st.integers(0, 2**32 - 1), dtype=DTYPES)
def test_equations_with_other_whole_numbers(seed, dtype):
    """Whole numbers, halves and quarters, and a right side of few digits, beside bounds that hold some entries."""
    rng = np.random.default_rng(seed)
    A = np.hstack([rng.integers(-5, 6, (2, 5)), np.eye(2)]) * rng.choice([0.25, 1.0, 2.0], (2, 1))
    x = rng.uniform(0, 1, 7)
    b = np.round(4 * A @ x) / 4
    C = ex.Polytope(A_eq=A, b_eq=b, bounds=(-20, 20))
    x[5:] += (b - A @ x) / A[:, 5:].diagonal()
    y = settle(C, x.astype(dtype))
    assert violation(C, y) == 0.0
    np.testing.assert_array_equal(A.astype(dtype) @ y, b.astype(dtype))
    assert settle(C, y).tobytes() == y.tobytes()


def test_equations_that_no_numbers_solve_say_so():
    """Thirds have no end in binary digits, and 0.1 has more digits than sums of larger numbers."""
    for row, right, x in (
        ([3.0, 3.0], 1.0, [0.2, 2 / 15]),
        ([1.0, 1.0, -1.0], 0.1, [0.7, 0.9, 1.5]),
    ):
        C = ex.Polytope(A_eq=[row], b_eq=[right], bounds=(-9, 9))
        y = settle(C, np.array(x))
        assert 0 < violation(C, y) < 5e-16
        assert violation(C, y) == abs(math.fsum([*(np.array(row) * y), -right]))
    small = settle(ex.Polytope(A_eq=[[1.0, 1.0, -1.0]], b_eq=[0.1], bounds=(-9, 9)), np.array([0.7, 0.01, 0.61]))
    assert math.fsum([*small[:2], -small[2], -0.1]) == 0  # an entry that is small enough has the digits


def test_coefficients_that_are_to_be_equal_are():
    A = np.array([[1.0, -1.0, 0.0, 0.0], [0.0, 0.0, 1.0, -2.0]])
    C = ex.Polytope(A_eq=A, b_eq=[0.0, 0.0], A_ub=np.ones((1, 4)), b_ub=[1 / 3], bounds=(-1, 1))
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = sum(w * C.lmo(rng.standard_normal(4)).to_array() for w in (0.5, 0.3, 0.2))
        y = settle(C, x * (1 + 1e-15 * rng.standard_normal(4)))
        check(C, x, y)
        assert y[0] == y[1]
        assert y[2] == 2 * y[3]
        assert y.sum() <= 1 / 3


def test_an_l1_ball_cut_by_inequalities():
    d = 5
    A = np.array([[1.0, -1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.1, 0.3, -1.0]])
    C = ex.Polytope(A, [0.0, 0.1], radius=1 / 3)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = sum(w * C.lmo(rng.standard_normal(d)).to_array() for w in (0.5, 0.25, 0.25))
        y = settle(C, x)
        check(C, x, y)
        assert (A @ y <= [0.0, 0.1]).all()
        assert math.fsum(np.abs(y)) <= 1 / 3
    assert violation(C, np.array([0.1, 0.0, 0.0, 0.0, 0.0])) == pytest.approx(0.1)
    assert violation(C, np.full(d, 0.1)) == pytest.approx(0.5 - 1 / 3)


# sets made of sets


def test_parts_and_rows():
    rng = np.random.default_rng(0)
    C = ex.Product(ex.Simplex(shape=7), ex.L2Ball(0.1, shape=4))
    v = rng.standard_normal(4)
    x = np.concatenate([weights(rng, 7, False), 0.1 * v / np.linalg.norm(v)])
    y = settle(C, x)
    check(C, x, y)
    assert np.cumsum(y[:7])[-1] == 1
    R, W = ex.Rows(ex.Simplex(1 / 3)), np.array([weights(rng, 9, False) / 3 for _ in range(5)])
    check(R, W, settle(R, W))
    S = ex.ScaledSet(ex.Simplex(), -2.0)
    z = settle(S, -2 * weights(rng, 10, False))
    assert sums(z, rng) == {-2.0}
    assert violation(S, z) == 0.0


def test_balls_around_a_centre():
    rng = np.random.default_rng(0)
    for kind in (ex.L1Ball, ex.L2Ball, ex.LinfBall):
        C = kind(0.1, centre=rng.standard_normal(6))
        x = C.lmo(rng.standard_normal(6)).to_array()
        check(C, x, settle(C, x))


@cases
def test_every_set_can_be_asked(case):
    """Points of every set of the library are settled without moving far, and stay members."""
    rng = np.random.default_rng(0)
    x = case.sample(rng)
    y = settle(case.C, x)
    assert y.shape == x.shape
    np.testing.assert_allclose(y, x, atol=1e-6 * case.size)
    assert case.C.contains(y, case.tol)
    assert violation(case.C, y) <= 1e-9 * max(case.size, case.C.diameter)


@pytest.mark.parametrize(
    ("C", "x", "amount"),
    [
        (ex.Simplex(), [0.5, 0.75], 0.25),
        (ex.Simplex(), [1.5, -0.5], 0.5),
        (ex.L1Ball(1.0), [1.0, -1.0], 1.0),
        (ex.L2Ball(1.0), [3.0, 4.0], 4.0),
        (ex.Box(0.0, 1.0), [-0.25, 0.5], 0.25),
        (ex.UnitSimplex(), [1.0, 0.5], 0.5),
        (ex.BudgetBox(-1.0, 1.0, 0.0), [0.5, 0.25], 0.75),
        (ex.BoundedL1Ball(2.0, 0.0), [-0.5, 1.0], 0.5),
        (ex.Monotone(0.0, 1.0), [0.75, 0.25], 0.5),
        (ex.Polytope(A_ub=[[1.0, 2.0]], b_ub=[2.0], bounds=(0, None)), [1.0, 1.0], 1.0),
        (ex.Polytope(A_eq=[[1.0, 2.0]], b_eq=[2.0], bounds=(0, None)), [0.0, 0.5], 1.0),
        (ex.Rows(ex.Simplex()), [[1.0, 0.0], [0.5, 0.0]], 0.5),
        (ex.ShiftedSet(ex.Simplex(), 1.0), [1.5, 1.75], 0.25),
        (ex.ConvexHull([[0.0, 0.0], [1.0, 0.0]]), [0.5, 0.1], 1.0),
    ],
)
def test_violations_are_amounts_and_far_points_are_refused(C, x, amount):
    assert violation(C, np.array(x)) == pytest.approx(amount)
    with pytest.raises(ex.InputError, match=r"`settle\(C, x\)` must be given a point of .* breaks a constraint by"):
        settle(C, np.array(x))


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_refused(bad):
    for call in (settle, violation):
        with pytest.raises(ex.InputError, match="finite"):
            call(ex.Simplex(), np.array([1.0, bad]))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("total", [None, 1.0])
def test_a_point_that_is_hardly_outside_hardly_moves(sparse, total):
    """The inner point of a wide set is far away; a step toward it would cost digits of the certificate."""
    rng = np.random.default_rng(0)
    row = rng.standard_normal((1, 6))
    A, sums = np.vstack([row, -row]), {} if total is None else {"A_eq": np.ones((1, 6)), "b_eq": [total]}
    C = ex.Polytope(A_ub=sp.csr_array(A) if sparse else A, b_ub=[0.02, 0.02], bounds=(-300, 300), **sums)
    x = rng.standard_normal(6)
    if total is not None:
        x += (total - x.sum()) / 6
    flat = row[0] if total is None else row[0] - row.mean()
    x += flat * ((0.02 + 2e-13 - row[0] @ x) / (row[0] @ flat))
    inside = settle(C, x)
    assert np.abs(inside - x).max() < 1e-11
    assert violation(C, inside) == 0
