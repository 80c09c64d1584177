"""Tracked SAGA: the algorithm, written out again, makes the same iterates, and each step of Theorems A to C holds."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations, islice, pairwise, product

import numpy as np
import pytest

import extremal as ex
from extremal.objectives.base import Sampler
from extremal.run.counting import CountedObjective
from extremal.run.result import Calls

RNG = np.random.default_rng(5)
N, D, R = 60, 6, 6.0
A = RNG.standard_normal((N, D)) * np.linspace(0.3, 2.0, D)
Y = np.where(RNG.random(N) < 0.5, 1.0, -1.0)
PEAKS = np.abs(A).max(axis=0)
SEEDS = pytest.mark.parametrize("seed", range(3))


def logistic(rows=slice(None)):
    return ex.LinearModel(ex.Logistic(), A[rows], Y[rows])


def counted(f):
    return CountedObjective(f, Calls())


def bends(x, idx=slice(None)):
    """Margins, phi' and phi'' of the logistic loss at some rows."""
    z = A[idx] @ x
    p = 1.0 / (1.0 + np.exp(Y[idx] * z))
    return z, -Y[idx] * p, p * (1.0 - p)


def slope(x):
    """The gradient of f."""
    return A.T @ bends(x)[1] / N


def height(x):
    """f."""
    return float(np.log1p(np.exp(-Y * (A @ x))).mean())


def blended(x, g):
    """The direction of blended steps within faces of the l1 ball, and whether it is cut off at a face: d."""
    s, j = np.zeros(D), int(np.abs(g).argmax())
    s[j] = -R * np.sign(g[j])
    if np.abs(x).sum() < R * (1.0 - 1e-12):
        a, b = -s, s
    else:
        held = np.flatnonzero(np.abs(x) > 1e-12 * R)
        corners = np.zeros((len(held), D))
        corners[np.arange(len(held)), held] = R * np.sign(x[held])
        a, b = corners[(corners @ g).argmax()], corners[(corners @ g).argmin()]
    if g @ (a - b) < g @ (x - s):
        return s - x
    low, high = 0.0, 1.0
    for _ in range(80):
        mid = (low + high) / 2
        low, high = (mid, high) if np.abs(x + mid * (b - a)).sum() <= max(R, np.abs(x).sum()) + 1e-12 else (low, mid)
    return (b - a) * (1.0 if high == 1.0 else low)


def written_out(b, T, seed, epoch):
    """`TrackedSagaFW` over the l1 ball with all sums formed anew, from 0: its points, and the iterations with full gradients."""
    sampler, x = Sampler(N, seed), np.zeros(D)
    z, c, q = bends(x)
    g, w, idx, age, full = slope(x), np.zeros(0), np.zeros(0, int), 0, [0]
    safe, goal, cut, path = x, math.inf, False, []
    for k in range(T):
        wanted = False
        if age == 0 and height(x) > goal + 1e-14:
            x, goal, wanted = safe, math.inf, True
        else:
            d = blended(x, g)
            gap, h, M = -g @ d, q @ np.square(A @ d) / N, PEAKS @ np.abs(d)
            doubt = abs(w @ (A[idx] @ d)) / b if age else 0.0
            eta = 0.0
            if gap > 0:
                wanted = doubt >= gap
                eta = 0.0 if wanted else min(1.0, (1 - doubt / gap) * math.log1p(M * gap / h) / M)
            new = x + eta * d
            if age == 0:
                safe, goal, wanted, cut = new, height(x) - eta * gap / 2, cut and eta == 1.0, eta == 1.0
            x = new
        if wanted or age + 1 >= epoch:
            (z, c, q), g, age, w, idx = bends(x), slope(x), 0, np.zeros(0), np.zeros(0, int)
            full.append(k + 1)
        else:
            idx, age = sampler.rows(k + 1, b), age + 1
            z_new, c_new, q_new = bends(x, idx)
            table = c + q * (A @ x - z)
            w = c_new - table[idx]
            g = A.T @ table / N + A[idx].T @ w / b
            z[idx], c[idx], q[idx] = z_new, c_new, q_new
        path.append(x)
    return np.array(path), full


@SEEDS
@pytest.mark.parametrize("b", [1, 7, 30])
def test_iterates_are_those_of_the_algorithm_written_out(b, seed):
    T, epoch = 60, 12
    path, full = written_out(b, T, seed, epoch)
    states = list(
        islice(ex.iterate(logistic(), ex.L1Ball(R), ex.TrackedSagaFW(b, epoch=epoch), seed=seed, x0=np.zeros(D)), T + 1)
    )
    for k, x in enumerate(path):
        np.testing.assert_allclose(states[k + 1].x, x, rtol=0, atol=1e-7 * R, err_msg=f"iteration {k}")
    assert [s.k for s in states if s.exact] == full
    assert states[-1].calls.grads == 2 * N * len(full) + 2 * b * (T + 1 - len(full))
    assert states[-1].calls.hessian_rows == states[-1].calls.grads / 2
    assert states[-1].calls.values == N * sum(k < T for k in full)


# Theorem A: unbiased, with a variance of fourth order


class Given:
    """A sampler that hands out one batch."""

    def __init__(self, rows):
        self._rows = np.array(rows)

    def rows(self, k, batch, replace=False):
        assert len(self._rows) == batch
        return self._rows


def estimates(n, b, replace, x, new, mixed=()):
    """The estimates at ``new`` for every batch, from a table drawn at x, or at another point for some rows."""
    for rows in product(range(n), repeat=b) if replace else combinations(range(n), b):
        f, estimator = counted(logistic(slice(n))), ex.gradients.TrackedSaga(b, epoch=9, replace=replace)
        state = estimator.init(f, x, Given(()))
        at = x
        for some, there in mixed:
            state = ex.gradients.TrackedSaga(len(some), epoch=9).update(f, 0, at, there, (), state, Given(some))
            at = there
        yield estimator.update(f, 0, at, new, (), state, Given(rows)).g


def fresh_errors(n, x, new, mixed=()):
    """w_i at ``new`` for all rows, and q_i (e^r_i - 1 - r_i) of the same table."""
    z, c, q = (v[:n].copy() for v in bends(x))
    for some, there in mixed:
        z[some], c[some], q[some] = bends(there, some)
    r = np.abs(A[:n] @ new - z)
    return bends(new)[1][:n] - c - q * (A[:n] @ new - z), q * (np.expm1(r) - r)


@SEEDS
@pytest.mark.parametrize(("n", "b", "replace"), [(5, 1, False), (5, 2, False), (6, 3, False), (5, 5, False), (4, 2, True)])
def test_the_estimate_is_unbiased_with_the_variance_of_the_fresh_errors(n, b, replace, seed):
    rng = np.random.default_rng(seed)
    x, there, new, v = rng.standard_normal((4, D))
    mixed = [(np.array([0, 2]), there)]
    found = np.array(list(estimates(n, b, replace, x, new, mixed)))
    w, bound = fresh_errors(n, x, new, mixed)
    grad = A[:n].T @ bends(new)[1][:n] / n
    np.testing.assert_allclose(found.mean(axis=0), grad, atol=1e-12)
    along = w * (A[:n] @ v)
    textbook = np.var(along) / b * (1.0 if replace else (n - b) / (n - 1))
    assert np.square((found - grad) @ v).mean() == pytest.approx(textbook, rel=1e-9, abs=1e-20)
    assert textbook <= np.square(bound * (A[:n] @ v)).mean() / b * (1 + 1e-12)
    assert (np.abs(w) <= bound * (1 + 1e-9)).all()


@SEEDS
def test_the_variance_is_of_fourth_order(seed):
    """The slope of log variance over log distance is 4, and that of SAGA 2; the error of the table alone has 2."""
    rng = np.random.default_rng(seed)
    x, u = rng.standard_normal((2, D)) * 0.3
    away = 0.3 * 2.0 ** -np.arange(6)
    tracked, saga, table = np.empty((3, 6))
    for i, t in enumerate(away):
        found = np.array(list(estimates(6, 2, False, x, x + t * u)))
        tracked[i] = np.square(found - found.mean(axis=0)).sum(axis=1).mean()
        table[i] = np.linalg.norm(fresh_errors(6, x, x + t * u)[0] @ A[:6])
        change = (bends(x + t * u)[1] - bends(x)[1])[:6, None] * A[:6]
        saga[i] = np.square(change - change.mean(axis=0)).sum(axis=1).mean()
    assert np.polyfit(np.log(away), np.log(tracked), 1)[0] == pytest.approx(4.0, abs=0.15)
    assert np.polyfit(np.log(away), np.log(saga), 1)[0] == pytest.approx(2.0, abs=0.15)
    assert np.polyfit(np.log(away), np.log(table), 1)[0] == pytest.approx(2.0, abs=0.15)


# Theorem B: what a shortened step lowers


@SEEDS
@pytest.mark.parametrize("b", [1, 6])
def test_a_shortened_step_lowers_f_by_what_is_proved(b, seed):
    """f(x + eta d) <= f(x) - eta [theta (1 - e^rho / 2) gap - T], T <= sqrt(h Q) (e^rho - 1 - rho), and the age of the table."""
    short, way, old, x_old = 0, 0.0, None, np.zeros(D)
    for state in islice(ex.iterate(logistic(), ex.L1Ball(R), ex.TrackedSagaFW(b, epoch=20), seed=seed, x0=np.zeros(D)), 120):
        x, estimate = state.x, state.estimate
        now = [v.copy() for v in (estimate.table.z, estimate.table.c, estimate.table.q)]
        (z, c, q), way = (now, 0.0) if state.exact else (old, way + np.abs(x - x_old).sum())
        d, old, x_old = blended(x, estimate.g), now, x
        along, w, r = A @ d, bends(x)[1] - c - q * (A @ x - z), np.abs(A @ x - z)  # of the table before the batch
        gap, T = -estimate.g @ d, abs(w @ along) / N
        assert (r <= np.abs(A).max(axis=1) * way + 1e-9).all()
        assert T <= (math.expm1(r.max()) - r.max()) * math.sqrt(q @ np.square(along) / N * q.mean()) + 1e-14
        if gap > 1e-9:
            h, rho, M = now[2] @ np.square(along) / N, np.abs(A @ x - now[0]).max(), PEAKS @ np.abs(d)
            theta = max(0.0, 1.0 - abs(w[estimate.idx] @ along[estimate.idx]) / b / gap)
            assert theta == pytest.approx(estimate.share(counted(logistic()), d, gap), abs=1e-6)
            eta = min(1.0, theta * math.log1p(M * gap / h) / M)
            assert height(x + eta * d) <= height(x) - eta * (theta * (1 - math.exp(rho) / 2) * gap - T) + 1e-14
            short += 0 < theta < 1
    assert short > 10


@pytest.mark.parametrize("loss", [ex.NonlinearLeastSquares(), ex.Huber(0.3), ex.Quantile(0.4, 0.5), ex.Poisson()], ids=repr)
def test_majorants_keep_the_descent(loss):
    """The same, with h from majorants: for losses whose second derivatives jump, and for f that is not convex."""
    y = (Y > 0) * 1.0
    f, s, checked = ex.LinearModel(loss, A, y), loss.self_concordance, 0
    for state in islice(ex.iterate(f, ex.L1Ball(R), ex.TrackedSagaFW(2, epoch=25), x0=np.zeros(D)), 100):
        x, estimate = state.x, state.estimate
        d, grad = blended(x, estimate.g), f.grad(x)
        gap, h, M = -estimate.g @ d, estimate.curvature(counted(f), d), s * (PEAKS @ np.abs(d))
        if gap > 1e-9 and h > 1e-12:
            fresh = estimate.w @ (A[estimate.idx] @ d) / 2
            theta, rho = max(0.0, 1 - abs(fresh) / gap), s * np.abs(A @ x - estimate.table.z).max()
            T = abs((grad - estimate.g) @ d + fresh)
            eta = min(1.0, theta * (math.log1p(M * gap / h) / M if M else gap / h))
            decrease = eta * (theta * (1 - math.exp(rho) / 2) * gap - T)
            assert f.value(x + eta * d) <= f.value(x) - decrease + 1e-12
            checked += 1
    assert checked > 30


# Theorem C: the way back


class Hostile(ex.gradients.TrackedSaga):
    """Estimates between full gradients point uphill."""

    def update(self, *given):
        state = super().update(*given)
        return state if state.exact else replace(state, g=-state.g)


@SEEDS
@pytest.mark.parametrize("gradient", [Hostile(1, epoch=15), Hostile(6, epoch=4), ex.gradients.TrackedSaga(1, epoch=15)])
def test_every_two_full_gradients_lower_f_by_the_goal(gradient, seed):
    """Whatever the iterations between them do."""
    method = ex.Method(gradient, ex.steps.SelfConcordant(), ex.moves.Returning(ex.moves.InFaceBlended()))
    f, hostile = logistic(), isinstance(gradient, Hostile)
    states = list(islice(ex.iterate(f, ex.L1Ball(R), method, seed=seed), 300))
    full = [s for s in states[:-1] if s.exact]
    best, goal, returned = ex.minimize(f, ex.L1Ball(R), tol=1e-13).value, math.inf, 0
    for s, then in pairwise(full):
        before, goal = goal, states[s.k + 1].point.memory.goal
        if goal == math.inf:  # x goes back, and meets the goal there
            returned += 1
            assert f.value(s.x) > before
            assert then.k == s.k + 1
            goal = before
            assert f.value(then.x) <= goal + 1e-14
        else:
            assert goal <= f.value(s.x) <= before + 1e-14
    assert (returned > 2) == hostile
    if hostile:
        assert f.value(full[-1].x) - best < 0.5 * (f.value(full[0].x) - best)


def width(d):
    """The pyramidal width of the unit simplex."""
    return 2 / math.sqrt(d if d % 2 == 0 else d - 1 / d)


SPREAD = A.max(axis=1) - A.min(axis=1)
LARGEST = np.abs(A).max(axis=1)  # margins over the unit simplex are at most this
LEAST = 1 / (1 + np.exp(LARGEST)) / (1 + np.exp(-LARGEST))  # phi'' there is at least this
MU = np.linalg.eigvalsh((A.T * LEAST) @ A / N)[0]
L = np.linalg.eigvalsh(A.T @ A / (4 * N))[-1]
RATE = MU * width(D) ** 2 / (4 * (2 * L + 2 * PEAKS.max() * SPREAD.mean() / 2))  # D^2 = 2, W = 2 max of peaks, Gamma


def face_slope(x, g):
    """<g, a - s> for the worst vertex a of the face of the simplex that holds x, and the best vertex s."""
    return g[x > 1e-12].max() - g.min()


@SEEDS
def test_the_slope_within_faces_bounds_the_distance_to_the_minimum(seed):
    """<grad f, a - s> >= delta sqrt(2 mu h), which is where the linear rate comes from."""
    rng = np.random.default_rng(seed)
    best = ex.minimize(logistic(), ex.Simplex(), tol=1e-13).value
    for _ in range(200):
        x = rng.dirichlet(np.full(D, 0.5)) * (rng.random(D) < 0.7)
        if x.sum() > 0:
            x = x / x.sum()
            assert face_slope(x, slope(x)) >= width(D) * math.sqrt(2 * MU * max(0.0, height(x) - best)) - 1e-12


@SEEDS
def test_full_gradients_converge_linearly(seed):
    """Each accepted step that no face cuts off shrinks f - f* by 1 - RATE or more; few steps in a row are cut off."""
    f, method = logistic(), ex.TrackedSagaFW(3, epoch=15)
    best = ex.minimize(f, ex.Simplex(), tol=1e-14).value
    states = list(islice(ex.iterate(f, ex.Simplex(), method, seed=seed, x0=np.eye(D)[0]), 200))
    cut, left = 0, []
    for s in states[:-1]:
        if not s.exact or height(s.x) - best < 1e-12:
            continue
        memory = states[s.k + 1].point.memory
        if memory.goal == math.inf or memory.cut:
            cut += 1
            assert cut <= D - 1 + 3
            assert memory.goal < math.inf or cut <= 3
            continue
        cut = 0
        assert memory.goal - best <= (1 - RATE) * (height(s.x) - best) + 1e-15
        left.append(height(s.x) - best)
    assert len(left) >= 3
    assert left[-1] < 0.5 ** (len(left) - 1) * left[0]  # far faster than the bound


# what users see


@pytest.mark.parametrize("loss", [ex.Squared(), ex.Huber(0.5), ex.Poisson(), ex.Logistic(), ex.NonlinearLeastSquares()], ids=repr)
@pytest.mark.parametrize("C", [ex.L1Ball(1.0), ex.Simplex(), ex.Box(-1.0, 1.0), ex.L2Ball(1.0)], ids=repr)
def test_it_converges_over_sets_with_and_without_faces(loss, C):
    y = Y if loss.labels == (-1, 1) else (Y > 0) * 1.0
    f = ex.LinearModel(loss, A, y)
    best = ex.minimize(f, C, tol=1e-9, max_grads=10**6)
    result = ex.minimize(f, C, ex.TrackedSagaFW(6), max_grads=60 * N, tol=0, atol=0)
    assert C.on(D).contains(result.x)
    if loss.convex:
        assert result.value <= best.value + 0.02 * (f.value(C.on(D).start()) - best.value)
    else:
        assert result.value <= f.value(C.on(D).start())


@pytest.mark.parametrize(("make", "match"), [
    (lambda: ex.TrackedSagaFW(0), "TrackedSagaFW.*batch"), (lambda: ex.TrackedSagaFW(N + 1), "TrackedSagaFW.*batch"),
    (lambda: ex.TrackedSagaFW(5, epoch=0), "epoch"), (lambda: ex.TrackedSagaFW(5, epoch=1.5), "epoch"),
    (lambda: ex.Method(ex.gradients.TrackedSaga(5), ex.steps.OpenLoop(), ex.moves.Returning(3)), "Returning.*move"),
])  # fmt: skip
def test_bad_arguments_are_named(make, match):
    with pytest.raises(ex.InputError, match=match):
        ex.minimize(logistic(), ex.L1Ball(R), make(), max_iter=2)


HARD = {
    "large radius": lambda: (A, Y, 1e6),
    "saturated": lambda: (1e3 * A, Y, 1e3),
    "one column": lambda: (A[:, :1], Y, 3.0),
    "all zero": lambda: (np.zeros((N, 2)), Y, 3.0),
    "one row": lambda: (A[:1], Y[:1], 3.0),
}


@pytest.mark.parametrize("name", HARD)
def test_hard_data_end_in_a_finite_feasible_point(name):
    rows, y, r = HARD[name]()
    f = ex.LinearModel(ex.Logistic(), rows, y)
    result = ex.minimize(f, ex.L1Ball(r), ex.TrackedSagaFW(), max_iter=150, tol=0, atol=0)
    assert np.isfinite(result.x).all()
    assert np.abs(result.x).sum() <= r * (1 + 1e-9)
    if name not in ("large radius", "saturated"):
        assert result.value <= ex.minimize(f, ex.L1Ball(r), tol=1e-10).value + 1e-6
