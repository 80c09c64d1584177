"""The one quadratic solver: over weights, over an l1 ball, between bounds; by arrays, by roots, by products."""

import itertools

import numpy as np
import pytest
import scipy.optimize as so

import extremal as ex
from extremal.kernels import active_set, factors, master
from extremal.moves.newton import model, spikes
from extremal.quadratic import search, solver
from extremal.quadratic.search import bfgs, least_point, root_of
from extremal.quadratic.solver import GrowingQuadratic, Quadratic

KINDS = ("weights", "ball", "box")


class Products:
    """A matrix that is known by its products."""

    def __init__(self, H):
        self.H = H

    def __matmul__(self, u):
        return self.H @ u

    def diagonal(self):
        return self.H.diagonal()


def value(q, w, H):
    d = q.point(w) - q.x
    return float(q.g @ d + 0.5 * d @ H @ d)


def left(q, w, H):
    """What can still be won, computed apart from the solver."""
    slopes = q.scale * (q.g + H @ (q.point(w) - q.x))[q.place]
    if q.tied:
        return slopes[w > 0].max() - slopes.min()
    return float(np.maximum(slopes * (w - q.lower), slopes * (w - q.upper)).sum())


def problem(kind, B, seed, scales=1.0):
    """q with H = B'B, where to begin, and H."""
    rng, k = np.random.default_rng(seed + 100), B.shape[1]
    H, g = B.T @ B, rng.standard_normal(k) * scales * 3
    if kind == "box":
        lower, upper = -rng.random(k) / scales, rng.random(k) / scales
        x = rng.uniform(lower, upper)
        return Quadratic.in_box(H, g, x, lower, upper), x, H
    if kind == "weights":
        x = rng.dirichlet(np.full(k, 0.3))
        return Quadratic.over_weights(H, g, x), x, H
    place, scale = np.concatenate([np.arange(k), np.arange(k), [0]]), np.concatenate([np.full(k, 2.0), np.full(k, -2.0), [0.0]])
    w = rng.dirichlet(np.full(2 * k + 1, 0.1))
    return Quadratic.over_weights(H, g, np.bincount(place, w * scale, k), place, scale), w, H


def forms(q, B):
    """The same problem by an array, by products, and by a root if it is over weights."""
    put = {"place": q.place, "scale": q.scale, "lower": q.lower, "upper": q.upper, "tied": q.tied}
    yield q
    yield Quadratic(Products(B.T @ B), q.g, q.x, **put)
    if q.tied:
        yield Quadratic(None, q.g, q.x, root=B.T, **put)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [1, 2, 3, 12, 40])
@pytest.mark.parametrize("rank", [1, 3, 60])
@pytest.mark.parametrize("seed", range(3))
def test_nothing_is_left_to_be_won(kind, k, rank, seed):
    """Against the conditions of a minimum; singular matrices, from starts with all variables in use."""
    B = np.random.default_rng(seed).standard_normal((rank, k))
    q, w0, H = problem(kind, B, seed)
    before = max(left(q, w0, H), 1e-300)
    for i, form in enumerate(forms(q, B)):
        w = form.minimise(w0, 1e-10 * before, 1000)
        assert left(q, w, H) <= (1e-4 if i == 1 else 1e-8) * before
        assert value(q, w, H) <= value(q, w0, H) + 1e-12
        assert (w >= q.lower).all()
        assert (w <= q.upper).all()
        assert not q.tied or abs(w.sum() - 1) < 1e-14


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("flaw", ["rank", "twice", "whole numbers", "no column"])
@pytest.mark.parametrize("seed", range(12))
def test_all_forms_agree_on_singular_problems(kind, flaw, seed):
    """Slopes lead along directions without curvature, from a vertex: the value at the minimum is one number."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(3, 13))
    B = rng.standard_normal((int(rng.integers(0, k)), k))
    B = np.round(B) if flaw == "whole numbers" else B
    B[:, 0] = B[:, 1] if flaw == "twice" else 0.0 if flaw == "no column" else B[:, 0]
    q, w0, H = problem(kind, B, seed)
    w0 = np.eye(len(w0))[seed % len(w0)] if q.tied else q.lower
    values = [value(q, form.minimise(w0, 0.0), H) for form in forms(q, B)]
    assert max(values) - min(values) <= 1e-9 * np.abs([value(q, w0, H), *values]).max()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_all_forms_agree(kind, seed):
    B = np.random.default_rng(seed).standard_normal((60, 25))
    q, w0, _ = problem(kind, B, seed)
    points = [q.point(form.minimise(w0, 1e-10, 2000)) for form in forms(q, B)]
    np.testing.assert_allclose(points[0], points[1], atol=1e-5)
    for point in points[2:]:
        np.testing.assert_allclose(points[0], point, atol=1e-7)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_units_do_not_matter(kind, seed):
    """Columns of sizes from 1e-4 to 1e4."""
    rng = np.random.default_rng(seed)
    scales = 10.0 ** rng.uniform(-4, 4, 20)
    B = rng.standard_normal((40, 20)) * scales
    q, w0, H = problem(kind, B, seed, scales)
    w = q.minimise(w0, 1e-9 * left(q, w0, H), 1000)
    assert left(q, w, H) <= 1e-8 * left(q, w0, H)


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_that_is_there_twice_is_shared_evenly(kind):
    """By arrays of any size and by products: rounding does not choose."""
    rng = np.random.default_rng(2)
    B = rng.standard_normal((30, 6))
    B[:, 1] = B[:, 0]
    H, target = B.T @ B, np.array([0.4, 0.0, 0.3, -0.2, 0.0, 0.0])
    g = -H @ target
    if kind == "box":
        q, w0 = Quadratic.in_box(H, g, np.zeros(6), np.full(6, -1.0), np.full(6, 1.0)), np.zeros(6)
    elif kind == "weights":
        q, w0 = Quadratic.over_weights(H, g, np.zeros(6)), np.eye(6)[2]
    else:
        place, scale = np.concatenate([np.arange(6), np.arange(6), [0]]), np.concatenate([np.ones(6), -np.ones(6), [0.0]])
        q, w0 = Quadratic.over_weights(H, g, np.zeros(6), place, scale), np.eye(13)[12]
    for form in (q, Quadratic(Products(H), q.g, q.x, q.place, q.scale, q.lower, q.upper, q.tied)):
        u = q.point(form.minimise(w0, 1e-12, 500))
        assert abs(u[0] - u[1]) <= 1e-5
        assert u[0] > 0.1


def test_shared_evenly_also_by_compiled_newton_steps():
    """`minimize` takes compiled steps for few rows, and Python's for many: the same split of a column that is there twice."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((400, 6))
    A[:, 1] = A[:, 0]
    y = np.sign(A[:, 0] + 0.5 * rng.standard_normal(400))
    for tiles in (1, 30):
        r = ex.minimize(ex.LinearModel(ex.Logistic(), np.tile(A, (tiles, 1)), np.tile(y, tiles)), ex.L1Ball(1.5), tol=1e-9)
        assert r.x[0] > 0.5
        assert abs(r.x[0] - r.x[1]) <= 1e-5


def test_weights_of_an_l1_ball_against_scipy():
    rng = np.random.default_rng(1)
    B = rng.standard_normal((6, 5))
    q, w0, H = problem("ball", B, 1)
    w = q.minimise(w0, 1e-12)
    best = so.minimize(
        lambda v: value(q, v, H),
        np.full(11, 1 / 11),
        bounds=[(0, 1)] * 11,
        constraints={"type": "eq", "fun": lambda v: v.sum() - 1},
    )
    assert value(q, w, H) <= best.fun + 1e-9


@pytest.mark.parametrize("d", [1, 3, 12, 40, 150])
@pytest.mark.parametrize("seed", range(4))
def test_between_bounds_it_is_bounded_least_squares(d, seed):
    rng = np.random.default_rng(seed)
    M, target = rng.standard_normal((d + 5, d)), rng.standard_normal(d + 5)
    lower, upper = -rng.random(d), rng.random(d)
    x = rng.uniform(lower, upper)
    q = Quadratic.in_box(M.T @ M, M.T @ (M @ x - target), x, lower, upper)
    wanted = so.lsq_linear(M, target, (lower, upper), tol=1e-14, method="bvls").x
    np.testing.assert_allclose(q.minimise(x, 1e-13, 200), wanted, atol=1e-8)


def test_bounds_may_fix_coordinates_and_be_met_at_once():
    lower, upper = np.array([0.0, -1.0, 0.0]), np.array([2.0, 1.0, 0.0])
    q = Quadratic.in_box(np.eye(3), np.array([-5.0, 5.0, 1.0]), np.zeros(3), lower, upper)
    np.testing.assert_array_equal(q.minimise(np.zeros(3), 0.0), [2.0, -1.0, 0.0])


def test_a_flat_quadratic_goes_to_the_bounds():
    q = Quadratic.in_box(np.zeros((2, 2)), np.array([-1.0, 1.0]), np.zeros(2), np.full(2, -3.0), np.full(2, 4.0))
    np.testing.assert_array_equal(q.minimise(np.zeros(2), 0.0), [4.0, -3.0])
    flat = Quadratic.over_weights(np.zeros((3, 3)), np.array([1.0, -2.0, 0.5]), np.zeros(3))
    np.testing.assert_array_equal(flat.minimise(np.full(3, 1 / 3), 0.0), [0.0, 1.0, 0.0])
    rooted = Quadratic.over_weights(None, np.array([1.0, -2.0, 0.5]), np.zeros(3), root=np.zeros((3, 0)))
    np.testing.assert_array_equal(rooted.minimise(np.full(3, 1 / 3), 0.0), [0.0, 1.0, 0.0])


@pytest.mark.parametrize("kind", KINDS)
def test_rounds_never_increase_the_function(kind):
    B = np.random.default_rng(3).standard_normal((5, 20))
    q, w, H = problem(kind, B, 3)
    for form in forms(q, B):
        u, values = w, []
        for _ in range(15):
            values.append(value(q, u, H))
            u = form.minimise(u, 0.0, rounds=1)
        assert all(b <= a + 1e-13 * (1 + abs(a)) for a, b in itertools.pairwise(values))


@pytest.mark.parametrize("rank", [2, 8, 50])
def test_variables_may_come_one_after_another(rank):
    """What is kept from problem to problem changes no answer."""
    rng = np.random.default_rng(rank)
    rows, g = rng.standard_normal((70, rank)), rng.standard_normal(70)
    q, w = GrowingQuadratic(rows[:1], g[:1]), np.ones(1)
    for k in range(1, 70):
        q.add(rows[k], g[k])
        w = q.minimise(np.append(w, 0.0), 1e-10, 200)
    fresh = Quadratic.over_weights(None, g, np.zeros(70), root=rows)
    H = rows @ rows.T
    assert left(fresh, w, H) <= 1e-8
    assert abs(value(fresh, w, H) - value(fresh, fresh.minimise(w, 1e-10, 200), H)) <= 1e-9
    assert w.min() >= 0
    assert abs(w.sum() - 1) < 1e-14


def test_factors_are_kept_up_to_date():
    """L L' is the matrix of the variables in the factor after these came and went, by arrays and by roots."""
    rng = np.random.default_rng(5)
    rows = rng.standard_normal((30, 12))
    H = rows @ rows.T + 0.01 * np.eye(30)
    root = np.hstack([rows, 0.1 * np.eye(30)])
    for q in (
        Quadratic.over_weights(H, np.zeros(30), np.zeros(30)),
        Quadratic.over_weights(None, np.zeros(30), np.zeros(30), root=root),
    ):
        p = q._problem(np.empty((0, 0)) if q.root is not None else H)
        factor = factors.new_factor(30, 0 if q.root is None else 42)
        for seed in range(12):
            w = np.random.default_rng(seed).dirichlet(np.full(30, 0.2))
            w[w < 0.005] = 0.0
            w /= w.sum()
            active_set.descend(p, factor, w, 0.0, 1)
            count, base = factor.sizes[:2]
            order = factor.order[:count]
            M = H[np.ix_(order, order)] - H[order, base][:, None] - H[base, order] + H[base, base]
            unit, L = factor.unit[:count], np.tril(factor.L[:count, :count])
            np.testing.assert_allclose(L @ L.T, unit[:, None] * M * unit, atol=1e-8)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_refused(bad):
    H = np.eye(2)
    H[1, 1] = bad
    with pytest.raises(ex.NonFiniteError, match="second derivatives"):
        Quadratic.over_weights(H, np.zeros(2), np.zeros(2)).minimise(np.array([1.0, 0.0]), 0.0)
    with pytest.raises(ex.NonFiniteError, match="second derivatives"):
        GrowingQuadratic(np.eye(2), np.zeros(2)).add(np.array([0.0, bad]), 0.0)
    with pytest.raises(ex.NonFiniteError, match="second derivatives"):
        least_point(H, np.zeros(2))


def test_the_least_point_and_roots():
    rng = np.random.default_rng(0)
    B, g = rng.standard_normal((9, 5)), rng.standard_normal(5)
    np.testing.assert_allclose(least_point(B, g), -np.linalg.solve(B.T @ B, g), atol=1e-10)
    for H in (B.T @ B, np.diag([1.0, 0.0]), np.zeros((2, 2))):
        R = root_of(H)
        np.testing.assert_allclose(R.T @ R, H, atol=1e-12)


def test_bfgs_maps_the_step_to_the_change_of_the_gradient():
    rng = np.random.default_rng(0)
    B = rng.standard_normal((10, 6))
    H, s = B.T @ B, rng.standard_normal(6)
    y = 2 * H @ s + 0.1 * s
    new = bfgs(H, s, y)
    np.testing.assert_allclose(new @ s, y)
    assert np.linalg.eigvalsh(new).min() > 0
    assert bfgs(H, s, -y) is H


def test_compiled_steps_have_the_constants_of_plain_ones():
    assert master.ROUNDS == solver.ROUNDS
    for name in ("INNER", "EARLY"):
        assert getattr(master, name) == getattr(spikes, name)
    for name in ("TAIL", "OUTWARD"):
        assert getattr(master, name) == getattr(model, name)
    assert (search.SUFFICIENT, search.UNSEEN[1]) == (master.SUFFICIENT, master.UNSEEN)
