"""Frank-Wolfe on manifolds: positive definite matrices, Loewner intervals, the Karcher mean, and flat space as a special case."""

from __future__ import annotations

import itertools
import math
from functools import partial

import numpy as np
import pytest
import scipy.linalg
from cases import model

import extremal as ex
from extremal.moves.vertex import GeodesicDirection
from extremal.points.manifolds import frame
from extremal.run.counting import CountedObjective
from extremal.run.result import Calls

M = ex.points.SPD()
SIZES = pytest.mark.parametrize("d", [1, 2, 5])


def sym(a: np.ndarray) -> np.ndarray:
    return (a + a.swapaxes(-1, -2)) / 2


def function(f, a: np.ndarray) -> np.ndarray:
    """f of symmetric matrices, by their eigenvalues."""
    w, q = np.linalg.eigh(sym(a))
    return (q * f(w)[..., None, :]) @ q.swapaxes(-1, -2)


def points(rng, *shape: int, spread: float = 0.6) -> np.ndarray:
    """Random positive definite matrices of shape (..., d, d)."""
    return function(lambda w: np.exp(spread * w), rng.standard_normal(shape))


def roots(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return function(np.sqrt, x), function(lambda w: w**-0.5, x)  # X^(1/2) and its inverse


def inside(rng, C: ex.LoewnerInterval) -> np.ndarray:
    """A random point of the interval: an extreme one in half of the cases."""
    q, root = np.linalg.qr(rng.standard_normal(C.lower.shape))[0], roots(C.upper - C.lower)[0]
    w = rng.random(len(q)) if rng.random() < 0.5 else rng.integers(0, 2, len(q))
    return sym(C.lower + root @ (q * w) @ q.T @ root)


def interval(rng, d: int, spread: float = 0.6) -> ex.LoewnerInterval:
    low = points(rng, d, d, spread=spread)
    return ex.LoewnerInterval(low, low + points(rng, d, d, spread=spread))


def karcher(f: ex.KarcherMean) -> np.ndarray:
    """The mean by gradient descent: X <- Exp_X(mean of log_X(A_i))."""
    x = f.matrices.mean(axis=0)
    for _ in range(25):
        root, inverse = roots(x)
        x = root @ function(np.exp, function(np.log, inverse @ f.matrices @ inverse).mean(axis=0)) @ root
    return sym(x)


@pytest.fixture(scope="module")
def mean():
    """A Karcher mean problem, its interval, and the least value."""
    f = ex.KarcherMean(points(np.random.default_rng(0), 64, 3, 3))
    return f, f.interval(), f.value(karcher(f))


@SIZES
def test_spd_agrees_with_scipy(d):
    x, z = points(np.random.default_rng(d), 2, d, d)
    root, v = scipy.linalg.sqrtm(x).real, sym(np.random.default_rng(9).standard_normal((d, d)))
    inverse = np.linalg.inv(root)
    inner = sym(inverse @ z @ inverse)
    assert M.log(x, z) == pytest.approx(root @ scipy.linalg.logm(inner) @ root)
    assert M.geodesic(x, z, 0.3) == pytest.approx(root @ scipy.linalg.fractional_matrix_power(inner, 0.3) @ root)
    assert M.geodesic(x, z, 0.3) == pytest.approx(root @ scipy.linalg.expm(0.3 * inverse @ M.log(x, z) @ inverse) @ root)
    E = scipy.linalg.sqrtm(z @ np.linalg.inv(x)).real
    assert M.transport(x, z, v) == pytest.approx(E @ v @ E.T)
    assert M.inner(x, v, M.log(x, z)) == pytest.approx(np.trace(np.linalg.solve(x, v) @ np.linalg.solve(x, M.log(x, z))))
    assert M.dist(x, z) == pytest.approx(np.linalg.norm(scipy.linalg.logm(inner)))
    slope = (np.trace(v @ M.geodesic(x, z, 1e-6)) - np.trace(v @ M.geodesic(x, z, -1e-6))) / 2e-6  # of f(X) = tr(V X)
    assert M.inner(x, M.gradient(x, v), M.log(x, z)) == pytest.approx(slope, rel=1e-7, abs=1e-9)


@SIZES
def test_spd_keeps_the_identities_of_its_metric(d):
    rng = np.random.default_rng(d)
    x, y, z = points(rng, 3, d, d)
    u, v = sym(rng.standard_normal((2, d, d)))
    G = rng.standard_normal((d, d)) + 2 * np.eye(d)
    assert M.geodesic(x, z, 0.0) == pytest.approx(x)
    assert M.geodesic(x, z, 1.0) == pytest.approx(z)
    assert math.sqrt(M.inner(x, M.log(x, z), M.log(x, z))) == pytest.approx(M.dist(x, z))
    assert M.dist(x, M.geodesic(x, z, 0.25)) == pytest.approx(0.25 * M.dist(x, z))
    assert M.inner(z, M.transport(x, z, u), M.transport(x, z, v)) == pytest.approx(M.inner(x, u, v))  # an isometry
    assert M.transport(z, x, M.transport(x, z, v)) == pytest.approx(v)
    assert M.transport(x, z, M.log(x, z)) == pytest.approx(-M.log(z, x))  # geodesics transport their own velocity
    assert M.dist(G @ x @ G.T, G @ z @ G.T) == pytest.approx(M.dist(x, z))
    assert M.dist(x, z) <= M.dist(x, y) + M.dist(y, z) + 1e-12
    assert frame(x, np.stack([y, z]))[1][1] == pytest.approx(frame(x, z)[1])  # many at once


@SIZES
def test_the_interval_and_its_euclidean_oracle(d):
    rng = np.random.default_rng(d)
    C, g = interval(rng, d), rng.standard_normal((d, d))
    some = [inside(rng, C) for _ in range(100)]
    for scale in (1e-300, 1.0, 1e300):
        s = C.lmo(g * scale).to_array()
        assert C.contains(s, 1e-12)
        assert np.vdot(g, s) <= min(np.vdot(g, x) for x in some) + 1e-12
    assert all(C.contains(x) for x in [*some, C.lower, C.upper, C.start()])
    assert max(np.linalg.norm(x - y) for x, y in itertools.combinations(some, 2)) <= C.diameter * (1 + 1e-12)
    for out in (C.upper + 1e-6 * np.eye(d), C.lower - 1e-6 * np.eye(d), np.full((d, d), np.nan)):
        assert not C.contains(out)
    assert d == 1 or not C.contains(C.start() + 1e-3 * np.tri(d, k=-1))  # not symmetric
    with pytest.raises(ex.InputError, match="shape"):
        C.on((d + 1, d + 1))


def test_intervals_refuse_bad_bounds():
    eye, rest = np.eye(2), 3 * np.eye(2)
    cases = (
        ((eye + np.triu(np.ones((2, 2))), rest), "symmetric"), ((rest, eye), "lower <= upper"), ((eye, np.eye(3)), "one shape"),
        ((eye * np.nan, rest), "finite"), ((np.ones(2), rest), "square"), ((eye, [["a", "b"], ["c", "d"]]), "square"),
    )  # fmt: skip
    for bounds, words in cases:
        with pytest.raises(ex.InputError, match=words):
            ex.LoewnerInterval(*bounds)
    with pytest.raises(ex.InputError, match="positive definite"):
        ex.LoewnerInterval(-eye, eye).lmo_at(eye, eye / 2)
    with pytest.raises(ex.NonFiniteError):
        ex.LoewnerInterval(eye, rest).lmo_at(eye * np.nan, 2 * eye)
    assert ex.LoewnerInterval(eye, eye).lmo_at(eye, eye).to_array() == pytest.approx(eye)  # a single point


@SIZES
@pytest.mark.parametrize("spread", [0.2, 1.5])
def test_the_geodesic_oracle_is_best(d, spread):
    """On 20 problems: not above random feasible points, not below the bound that it proves."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        C = interval(rng, d, spread)
        x, g = inside(rng, C) * 0.5 + C.start() * 0.5, sym(rng.standard_normal((d, d)))
        s = C.lmo_at(g, x)
        value, size = M.inner(x, g, M.log(x, s.to_array())), math.sqrt(M.inner(x, g, g))
        others = [M.inner(x, g, M.log(x, inside(rng, C))) for _ in range(200 if seed < 3 else 20)]
        assert C.contains(s.to_array(), 1e-12)
        assert s.low - 1e-12 * size <= value <= min(others) + 1e-9 * size
        assert value <= 0.4 * s.low  # the bound is of the same size


def printed(g: np.ndarray, x: np.ndarray, C: ex.LoewnerInterval) -> np.ndarray:
    """The closed form in print: Z = X^(1/2) Q (P' [-sgn D]_+ P + Lh) Q' X^(1/2), Uh - Lh = P'P."""
    root, inverse = roots(x)
    D, Q = np.linalg.eigh(sym(inverse @ g @ inverse))
    low, high = (Q.T @ inverse @ bound @ inverse @ Q for bound in (C.lower, C.upper))
    P = np.linalg.cholesky(sym(high - low)).T
    return sym(root @ Q @ (P.T @ np.diag(D < 0) @ P + low) @ Q.T @ root)


def test_the_printed_oracle_holds_where_matrices_commute_only():
    rng = np.random.default_rng(0)
    low, rise, x, g = (np.diag(v) for v in (rng.random(4) + 0.5, rng.random(4), rng.random(4) + 0.7, rng.standard_normal(4)))
    C = ex.LoewnerInterval(low, low + rise)
    assert C.lmo_at(g, x).to_array() == pytest.approx(printed(g, x, C))
    C, x = ex.LoewnerInterval(np.eye(2), [[3.0, 0.9], [0.9, 1.5]]), np.array([[1.5, 0.3], [0.3, 1.2]])
    g = np.diag([1.0, -1.0])
    ours, theirs = (M.inner(x, g, M.log(x, z)) for z in (C.lmo_at(g, x).to_array(), printed(g, x, C)))
    best = min(M.inner(x, g, M.log(x, inside(rng, C))) for _ in range(100))
    assert ours <= best < -0.2 < 0.18 < theirs  # it would point uphill


def test_karcher_mean_gradients_and_smoothness():
    rng = np.random.default_rng(0)
    f = ex.KarcherMean(points(rng, 12, 3, 3))
    C, best = f.interval(), karcher(f)
    assert C.contains(best)
    assert np.abs(f.grad(best)).max() < 1e-9
    assert f.values(f.matrices[0])[0] == pytest.approx(0.0, abs=1e-20)
    assert f.values(f.matrices[0])[1] == pytest.approx(M.dist(f.matrices[0], f.matrices[1]) ** 2)
    for _ in range(20):
        x, z = inside(rng, C), inside(rng, C)
        slopes = (f.values(M.geodesic(x, z, 1e-5)) - f.values(M.geodesic(x, z, -1e-5))) / 2e-5
        assert [M.inner(x, g, M.log(x, z)) for g in f.derivs(x)] == pytest.approx(slopes, rel=1e-6, abs=1e-8)
        bend = f.value(z) - f.value(x) - M.inner(x, f.grad(x), M.log(x, z))
        assert -1e-12 <= bend <= f.smoothness / 2 * M.dist(x, z) ** 2 + 1e-12  # convex and L-smooth along geodesics
    same = ex.KarcherMean([np.eye(2), np.eye(2)])
    assert ex.minimize(same, same.interval(), method=ex.RiemannianSFW(manifold=M), max_iter=3).gap == 0


def path(f, C, method) -> np.ndarray:
    return np.array([s.x for s in itertools.islice(ex.iterate(f, C, method, seed=3, horizon=40), 40)])


@pytest.mark.parametrize("step", [ex.steps.OpenLoop(), ex.steps.ShortStep(), ex.steps.LineSearch()], ids=repr)
@pytest.mark.parametrize("C", [ex.L1Ball(2.0), ex.L2Ball(1.5), ex.Simplex()], ids=repr)
def test_in_flat_space_the_move_is_the_plain_one(C, step):
    f = model(ex.Logistic())
    plain, flat = (
        ex.Method(ex.gradients.Sarah(batch=5, p=0.3), step, move) for move in (ex.moves.VertexMove(), ex.moves.GeodesicMove())
    )
    assert (path(f, C, plain) == path(f, C, flat)).all()
    a, b = (ex.minimize(f, C, method=m, max_iter=30, bursts=False) for m in (plain, flat))
    assert (a.gap, a.value, a.calls) == (b.gap, b.value, b.calls)


PAIRS = (
    (ex.RiemannianSFW(), ex.SFW()), (ex.RiemannianSFW(batch=7), ex.SFW(batch=7)), (ex.SVRFW(), ex.SVFW()),
    (ex.SVRFW(batch=9, epoch=4), ex.SVFW(batch=9, epoch=4)), (ex.SpiderRFW(batch=8, restart=64), ex.SpiderFW(batch=8, epoch=8)),
    (ex.SpiderRFW(batch=6, restart=24), ex.Method(ex.gradients.Spider(6, 4, restart=24), ex.steps.InverseSqrt())),
)  # fmt: skip


@pytest.mark.parametrize("pair", PAIRS, ids=repr)
def test_in_flat_space_the_methods_are_those_of_other_rows(pair):
    ours, theirs = (path(model(ex.NonlinearLeastSquares()), ex.L1Ball(2.0), method) for method in pair)
    assert (ours == theirs).all()


def test_the_constants_of_spider():
    f = model(ex.Squared())
    for budget, known in (({"max_iter": 25}, (5, 5, 25)), ({"max_grads": 3 * 6**3}, (6, 6, 36)), ({}, (8, 8, 60))):
        g = ex.minimize(f, ex.L1Ball(2.0), ex.SpiderRFW(), **budget).method.gradient
        assert (g.batch, g.epoch, g.restart) == known


@pytest.mark.parametrize("step", [None, ex.steps.OpenLoop()], ids=repr)
@pytest.mark.parametrize("method", [ex.RiemannianSFW, ex.SVRFW, ex.SpiderRFW])
def test_methods_find_the_karcher_mean(mean, method, step):
    f, C, best = mean
    run = partial(ex.minimize, f, C, method(manifold=M, step=step), x0=C.lower, tol=0, atol=0)
    feasible, start = [], run(max_iter=0)
    r = run(max_iter=150, callback=lambda state: feasible.append(C.contains(state.x)))
    assert all(feasible)
    assert len(feasible) == r.calls.lmos == r.n_iter == 150
    assert -1e-12 <= r.value - best <= min(r.gap, 0.03 * (start.value - best))
    assert r.gap < 0.1 * start.gap
    assert (run(max_iter=150).x == r.x).all()


@pytest.mark.parametrize(
    ("step", "gap"), [(ex.steps.OpenLoop(), 0.02), (ex.steps.ShortStep(), 1e-3), (ex.steps.LineSearch(), 1e-8)], ids=repr
)
def test_plain_frank_wolfe_certifies_the_karcher_mean(mean, step, gap):
    f, C, best = mean
    r = ex.minimize(f, C, method=ex.Method(ex.gradients.Full(), step, ex.moves.GeodesicMove(M)), max_iter=150, tol=0, atol=gap)
    assert -1e-12 <= r.value - best <= r.gap <= gap
    assert r.calls.certificate == 0  # the gradient is exact: its gap is free


def test_full_batches_follow_the_full_gradient(mean):
    """Transport is exact: with all components in each batch, both recursions give the gradient."""
    f, C, _ = mean
    gradients = ex.gradients.Full(), ex.gradients.Svrg(f.n, epoch=7, manifold=M), ex.gradients.Spider(f.n, epoch=7, manifold=M)
    full, svrg, spider = (
        path(f, C, ex.Method(gradient, ex.steps.OpenLoop(), ex.moves.GeodesicMove(M))) for gradient in gradients
    )
    assert svrg == pytest.approx(full, abs=1e-9)
    assert spider == pytest.approx(full, abs=1e-9)


def test_the_gap_vanishes_where_bounds_are_active():
    """The mean is outside of the interval; the bound that stands for the gap still tends to zero."""
    f = ex.KarcherMean(points(rng := np.random.default_rng(0), 20, 3, 3))
    low = karcher(f) + np.diag([0.3, 0.1, -0.2])
    C = ex.LoewnerInterval(low, low + np.diag([0.1, 0.2, 0.1]))
    r = ex.minimize(
        f, C, method=ex.Method(ex.gradients.Full(), ex.steps.OpenLoop(), ex.moves.GeodesicMove(M)), max_iter=300, tol=1e-5
    )
    assert r.converged
    assert all(f.value(inside(rng, C)) >= r.value - r.gap for _ in range(200))


def test_steps_look_along_the_geodesic(mean):
    f, C, _ = mean
    counted, x = CountedObjective(f, calls := Calls()), C.start()
    estimate = ex.gradients.Full().init(counted, x, ex.objectives.Sampler(f.n, 0))
    line = (direction := GeodesicDirection(M, counted, x, estimate, C.lmo_at(estimate.g, x))).segment()
    assert line.slope(0.0) == pytest.approx(-direction.gap)
    assert direction.norm2 == pytest.approx(M.dist(x, direction.z) ** 2)
    for t in (0.2, 0.5, 0.9):
        assert line.slope(t) == pytest.approx((line.value(t + 1e-5) - line.value(t - 1e-5)) / 2e-5, rel=1e-5)
    assert (calls.grads, calls.values) == (f.n * 5, f.n * 6)


def test_wrong_input_is_refused(mean):
    (f, C, _), eye = mean, np.eye(2)
    for bad, args in itertools.product((-eye, np.diag([1.0, 0.0]), eye * np.nan), (1, -1)):
        with pytest.raises(ex.InputError, match="positive definite"):
            M.log(*(bad, eye)[::args])
    for bad, words in (([eye, -eye], "matrix 1"), ([np.tri(2)], "symmetric"), (eye, "shape")):
        with pytest.raises(ex.InputError, match=words):
            ex.KarcherMean(bad)
    for method in (ex.RiemannianSFW(), ex.SVRFW(), ex.SpiderRFW()):
        with pytest.raises(ex.InputError, match="tangent vectors of SPD"):
            ex.minimize(f, C, method=method, max_iter=1)
    with pytest.raises(ex.InputError, match="lmo_at"):
        ex.minimize(f, ex.L2Ball(1.0), method=ex.SVRFW(manifold=M), max_iter=1)
    with pytest.raises(ex.InputError, match="transport"):
        ex.moves.GeodesicMove(M).check(ex.gradients.Storm(batch=5), f, C)
    for x, g in ((C.lower / 2, C.lower), (2 * C.upper, -C.upper)):
        with pytest.raises(ex.InputError, match="left the set"):
            ex.moves.GeodesicMove(M).gap(C, x, g)
