"""Tables that keep second derivatives: the algorithms, written out again, make the same iterates, and what is proved holds."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

import extremal as ex
from extremal.objectives.base import Sampler

RNG = np.random.default_rng(3)
N, D, R = 60, 7, 6.0
A = RNG.standard_normal((N, D)) * np.linspace(0.3, 2.0, D)
Y = np.where(RNG.random(N) < 0.5, 1.0, -1.0)
PEAKS = np.abs(A).max(axis=0)
METHOD = ex.Method(ex.gradients.Saga(5), ex.steps.SelfConcordant(), ex.moves.InFacePairwise())
SEEDS = pytest.mark.parametrize("seed", range(3))


def logistic():
    return ex.LinearModel(ex.Logistic(), A, Y)


def bends(x, idx):
    """Margins, phi' and phi'' of the logistic loss at some rows."""
    z = A[idx] @ x
    p = 1.0 / (1.0 + np.exp(Y[idx] * z))
    return z, -Y[idx] * p, p * (1.0 - p)


def slope(x):
    """The gradient of f."""
    return A.T @ bends(x, np.arange(N))[1] / N


def pair_step(x, g):
    """d = t (s - a): the best corner, the worst corner of the face that holds x, and the longest feasible t, by bisection."""
    s, a = np.zeros(D), np.zeros(D)
    j = int(np.abs(g).argmax())
    s[j] = -R * np.sign(g[j])
    if np.abs(x).sum() < R * (1.0 - 1e-12):
        a = -s
    else:
        held = np.abs(x) > 1e-12 * R
        i = int(np.where(held, np.sign(x) * g, -np.inf).argmax())
        a[i] = R * np.sign(x[i])
    low, high = 0.0, 1.0
    for _ in range(80):
        mid = (low + high) / 2
        low, high = (mid, high) if np.abs(x + mid * (s - a)).sum() <= max(R, np.abs(x).sum()) + 1e-12 else (low, mid)
    return (s - a) * (1.0 if high == 1.0 else low)


def length(gap, h, M):
    return math.log1p(M * gap / h) / M


def stream(b, seed, stream=0, in_passes=6):
    """The rows of all batches: an order for each pass, in which number i takes the place of an earlier one.

    A batch that began in the pass before meets no row twice: rows that it has move to the end of the batch's size.
    """
    if 2 * b > N:  # as `Sampler` draws: the r-th pick is uniform below N - b + r + 1, or that number itself if it is taken
        sampler = Sampler(N, seed)
        yield from (sampler.rows(k, b) for k in itertools.count())
    rows = []
    for p in itertools.count():
        order = []
        for i, u in enumerate(np.random.default_rng((seed, 0, in_passes, stream, p)).random(N)):
            j = int(u * (i + 1))
            order.append(i if j == i else order[j])
            order[j] = i
        begun = list(rows)
        head = order[:b] if begun else []
        rows += [i for i in head if i not in begun] + [i for i in head if i in begun] + order[len(head) :]
        while len(rows) >= b:
            yield np.array(rows[:b])
            del rows[:b]


def tracked(b, T, seed):
    """`TrackedFW` with the whole Hessian, cold start."""
    batches, x = stream(b, seed), np.zeros(D)
    z, c, q, seen = np.zeros(N), np.zeros(N), np.zeros(N), np.zeros(N, bool)

    def sums(x):
        return A.T @ (c + q * (A @ x - z)), (A.T * q) @ A

    def look(x):
        idx = next(batches)
        z[idx], c[idx], q[idx] = bends(x, idx)
        seen[idx] = True

    look(x)
    top, path = np.abs(sums(x)[0]).max() / b, []
    for _ in range(T):
        (G, H), m = sums(x), seen.sum()
        d = pair_step(x, G / m)
        gap = -d @ G / m
        if gap > 0:
            x = x + min(1.0, length(gap, d @ H @ d / m, PEAKS @ np.abs(d))) * d
        look(x)
        if seen.all() and np.abs(sums(x)[0]).max() < 1e-4 * top * N:
            z, c, q = bends(x, np.arange(N))
            top = np.abs(sums(x)[0]).max() / N
        path.append(x)
    return np.array(path)


def saga(b, T, seed):
    """`SagaFaceFW`, with sums that are formed anew in every iteration."""
    batches, x, path, bent = stream(b, seed), np.zeros(D), [], max(1, b // 3)
    _, c, q = bends(x, np.arange(N))
    q[:] = q.mean()
    g, idx, m, w, mean = A.T @ c / N, np.arange(1), q[:1], np.zeros(1), 0.0
    for _ in range(T):
        d = pair_step(x, g)
        gap, used = -g @ d, np.flatnonzero(d)
        own = np.square(d[used]) * (q @ np.square(A[:, used])) / N
        h = own.sum()
        if len(used) == 2:
            most = math.sqrt(own.prod())
            h += 2 * np.clip((m * A[np.ix_(idx, used)].prod(axis=1)).mean() * d[used].prod(), -most, most)
        r = (np.square(d[used]) @ np.sqrt(np.square(q) @ A[:, used] ** 4 / N)) ** 2 / (len(idx) * h * h)
        if gap > 0:
            rho = np.square(w * (A[idx] @ d)).mean() / (len(idx) * gap**2)
            mean += len(idx) / N * (min(rho, 100.0) - mean)
            loud = (6 * (1 + 8 / len(idx)) * max(rho, mean)) ** 2
            theta = max(0.5 / (1.0 + 2.0 * r), min(1 / (1 + loud), 1 / (1 + math.sqrt(r))))
            x = x + min(1.0, theta * length(gap, h, PEAKS @ np.abs(d))) * d
        idx = next(batches)
        _, new, m = bends(x, idx)
        m[bent:] = q[idx[bent:]]
        w = new - c[idx]
        g = A[idx].T @ w / b + A.T @ c / N
        c[idx], q[idx] = new, m
        path.append(x)
    return np.array(path)


@SEEDS
@pytest.mark.parametrize("b", [1, 7, 20, 45, N])
@pytest.mark.parametrize(("method", "written_out"), [(ex.TrackedFW, tracked), (ex.SagaFaceFW, saga)], ids=["tracked", "saga"])
def test_iterates_are_those_of_the_algorithm_written_out(method, written_out, b, seed):
    T = 40
    path = written_out(b, T, seed)
    states = ex.iterate(logistic(), ex.L1Ball(R), method(b), seed=seed, x0=np.zeros(D))
    start = next(states)
    assert not start.x.any()
    for k, x in enumerate(path):
        np.testing.assert_allclose(next(states).x, x, rtol=0, atol=1e-7 * R, err_msg=f"iteration {k}")


@SEEDS
def test_the_table_has_the_error_that_is_promised(seed):
    """|<g - grad f, v>| <= mean |<a_i, v>| q_i (e^r_i - 1 - r_i), r_i = |<a_i, x> - z_i|, once all rows were drawn."""
    checked = 0
    for k, state in zip(range(60), ex.iterate(logistic(), ex.L1Ball(R), ex.TrackedFW(10), seed=seed), strict=False):
        table = state.estimate.table
        if table.seen < N:
            continue
        r = np.abs(A @ state.x - table.z)
        v = RNG.standard_normal(D)
        error = abs((state.estimate.g - slope(state.x)) @ v)
        assert error <= np.abs(A @ v) @ (table.q * (np.expm1(r) - r)) / N + 1e-14, k
        checked += 1
    assert checked > 40


@SEEDS
def test_the_way_since_a_draw_bounds_the_age_of_the_table(seed):
    """r_i <= max_j |a_ij| times the l1 path of the last two passes."""
    b, path = 10, []
    for _, state in zip(range(50), ex.iterate(logistic(), ex.L1Ball(R), ex.TrackedFW(b), seed=seed), strict=False):
        path.append(state.x)
        table = state.estimate.table
        if table.seen == N:
            back = path[-2 * N // b - 1 :]
            way = np.abs(np.diff(back, axis=0)).sum()
            assert (np.abs(A @ state.x - table.z) <= np.abs(A).max(axis=1) * way + 1e-12).all()


@SEEDS
def test_a_step_lowers_f_by_what_is_proved(seed):
    """f(x + eta d) <= f(x) - eta [(1 - e^rho / 2) gap - error], for a Hessian and a slope that are old."""
    rng, f = np.random.default_rng(seed), logistic()
    for _ in range(300):
        x, old = rng.standard_normal((2, D)) * rng.choice([0.01, 0.3, 2.0])
        old = x + 0.2 * (old - x)
        z, c, q = bends(old, np.arange(N))
        g = A.T @ (c + q * (A @ x - z)) / N
        d = -rng.random() * 10.0 * g + 0.05 * rng.standard_normal(D)
        gap, h, M = -g @ d, q @ np.square(A @ d) / N, float(np.abs(A @ d).max())
        if gap <= 0:
            continue
        eta = min(1.0, length(gap, h, M))
        rho, error = np.abs(A @ (x - old)).max(), abs((g - slope(x)) @ d)
        assert f.value(x + eta * d) <= f.value(x) - eta * ((1 - math.exp(rho) / 2) * gap - error) + 1e-14
        u = M * gap / h
        if eta < 1.0:
            decrease = h / M**2 * ((1 + u) * math.log1p(u) - u)
            assert decrease >= gap**2 / (2 * h * (1 + u / 3)) * (1 - 1e-9)


@pytest.mark.parametrize(("method", "start", "bent"), [
    (ex.TrackedFW(6), (6, 6), 6), (ex.TrackedFW(6, start="full"), (60, 60), 6), (ex.SagaFaceFW(6), (60, 60), 2),
    (ex.SagaFaceFW(2), (60, 60), 1),
])  # fmt: skip
def test_counts_are_those_of_a_witness(method, start, bent):
    class Witness(ex.Logistic):
        derivs = seconds = 0

        def deriv(self, z, y):
            Witness.derivs += len(z)
            return super().deriv(z, y)

        def second(self, z, y):
            Witness.seconds += len(z)
            return super().second(z, y)

    T = 25
    f = ex.LinearModel(Witness(), A, Y)
    Witness.derivs = Witness.seconds = 0
    result = ex.minimize(f, ex.L1Ball(R), method, max_iter=T, tol=0, atol=0)
    calls = result.calls
    assert calls.hessian_rows == Witness.seconds == start[1] + bent * T
    assert calls.total_grads == Witness.derivs + Witness.seconds
    assert calls.grads == sum(start) + (method.batch + bent) * T
    assert calls.lmos == 2 * T


@pytest.mark.parametrize("method", [ex.TrackedFW(6), ex.SagaFaceFW(6)])
def test_the_gap_is_exact_and_the_point_feasible(method):
    result = ex.minimize(logistic(), ex.L1Ball(R), method, max_iter=50, tol=0, atol=0)
    g = slope(result.x)
    assert result.gap == pytest.approx(g @ result.x + R * np.abs(g).max(), rel=1e-9)
    assert np.abs(result.x).sum() <= R * (1 + 1e-12)


def test_a_table_is_drawn_anew_once_slopes_have_fallen():
    f = logistic()
    result = ex.minimize(f, ex.L1Ball(100.0), ex.TrackedFW(6), max_iter=400, tol=0, atol=0)
    extra = result.calls.grads - 12 * 401
    assert extra > 0
    assert extra % (2 * N) == 0
    assert result.gap <= 1e-10


HUGE = {
    "radius": lambda: (A, Y, 1e6),
    "saturated": lambda: (1e3 * A, Y, 1e3),
    "one column": lambda: (A[:, :1], Y, 3.0),
    "zero columns": lambda: (np.hstack([A, np.zeros((N, 2))]), Y, 3.0),
    "all zero": lambda: (np.zeros((N, 2)), Y, 3.0),
    "equal rows": lambda: (np.tile(A[:3], (20, 1)), np.tile(Y[:3], 20), 3.0),
    "one row": lambda: (A[:1], Y[:1], 3.0),
}


@pytest.mark.parametrize("name", HUGE)
@pytest.mark.parametrize("method", [ex.TrackedFW(), ex.TrackedFW(start="full"), ex.SagaFaceFW()], ids=repr)
@pytest.mark.parametrize("bursts", [True, False])
def test_hard_data_end_in_a_finite_feasible_point(name, method, bursts):
    rows, y, r = HUGE[name]()
    f = ex.LinearModel(ex.Logistic(), rows, y)
    result = ex.minimize(f, ex.L1Ball(r), method, max_iter=2000 if bursts else 300, tol=0, atol=0, bursts=bursts)
    assert np.isfinite(result.x).all()
    assert np.abs(result.x).sum() <= r * (1 + 1e-9)
    if bursts and name not in ("radius", "saturated"):
        best = ex.minimize(f, ex.L1Ball(r), tol=1e-12).value
        assert best - 1e-9 <= result.value <= best + 1e-3


@pytest.mark.parametrize("loss", [ex.Squared(), ex.Huber(0.5), ex.Quantile(0.3), ex.Poisson()], ids=repr)
@pytest.mark.parametrize("method", [ex.TrackedFW(6), ex.SagaFaceFW(6)], ids=["tracked", "saga"])
def test_other_losses_converge(loss, method):
    y = RNG.poisson(2.0, N) * 1.0
    f = ex.LinearModel(loss, A, y)
    best = ex.minimize(f, ex.L1Ball(1.0), tol=1e-9, max_grads=10**6).value
    result = ex.minimize(f, ex.L1Ball(1.0), method, max_grads=400 * N, tol=0, atol=0)
    left = 0.9 if isinstance(loss, ex.Quantile) else 1e-3  # its second derivatives say nothing about its kinks
    assert result.value <= best + left * (f.value(np.zeros(D)) - best)


# what is refused


def refuses(f, method, match):
    with pytest.raises(ex.InputError, match=match):
        ex.minimize(f, ex.L1Ball(R), method, max_iter=2)


@pytest.mark.parametrize("method", [ex.TrackedFW(2), ex.SagaFaceFW(2)])
def test_objectives_without_second_derivatives_of_rows_are_refused(method):
    class Custom:
        curvature, convex, labels = 1.0, True, None

        def value(self, z, y):
            return (z - y) ** 2 / 2

        def deriv(self, z, y):
            return z - y

    sums = ex.Separable(N, D, grad=lambda x, idx: A[idx], value=lambda x, idx: A[idx] @ x, convex=True)
    refuses(sums, method, "need a LinearModel of rows.*got Separable")
    refuses(ex.LinearModel(Custom(), A, Y), method, "need a LinearModel.*got LinearModel with ")
    tasks = ex.LinearModel(ex.MultiTask(ex.Logistic(), 2), A, np.stack([Y, -Y], axis=1))
    with pytest.raises(ex.InputError, match="need a LinearModel of rows whose loss has one margin"):
        ex.minimize(tasks, ex.L1Ball(R, shape=(D, 2)), method, max_iter=2)


def test_other_estimators_have_no_curvature_for_the_step():
    refuses(
        logistic(), METHOD, "SelfConcordant needs an estimator that keeps second derivatives.*got states of type TableEstimate"
    )


@pytest.mark.parametrize(("make", "match"), [
    (lambda: ex.TrackedFW(0), "TrackedFW.*`?batch"), (lambda: ex.TrackedFW(N + 1), "TrackedFW.*`?batch"),
    (lambda: ex.SagaFaceFW(N + 1), "SagaFaceFW.*`?batch"), (lambda: ex.TrackedFW(5, start="warm"), "start.*cold.*full"),
    (lambda: replace(METHOD, gradient=ex.gradients.TrackedSag(N + 1)), "TrackedSag.*batch"),
])  # fmt: skip
def test_bad_arguments_are_named(make, match):
    with pytest.raises(ex.InputError, match=match):
        ex.minimize(logistic(), ex.L1Ball(R), make(), max_iter=2)
