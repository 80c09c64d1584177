"""What the proofs of Theorems 1 to 4 claim, checked exactly on tiny problems and in the mean over seeds on small ones.

Expectations are exact: every batch (subsets, or tuples when rows are drawn with replacement) and both sides of the coin go
through the library's own updates. The bounds use the constants of the proofs, and bound the whole Lyapunov function of each
proof, error of the estimate and of the table included: f(x^k) - f* alone would also forgive a wrong estimator.
"""

from functools import lru_cache
from itertools import combinations, islice, product
from math import exp, sqrt
from types import SimpleNamespace

import naive
import numpy as np
import pytest

import extremal as ex
from extremal.gradients.base import PlainEstimate
from extremal.gradients.table import DerivativeTable, TableEstimate


class Given:
    """A sampler that hands out one batch and one coin."""

    def __init__(self, rows, coin=1.0):
        self._rows, self._coin = np.array(rows), coin

    def rows(self, k, batch, replace=False):
        assert len(self._rows) == batch
        return self._rows

    def coin(self, k):
        return self._coin


def logistic(n, d, rng):
    """A linear model; its table holds numbers."""
    A, y = rng.standard_normal((n, d)), rng.choice([-1, 1], n)
    f, problem = ex.LinearModel(ex.Logistic(), A, y), naive.Problem("logistic", A, y)

    def gradients(x):
        return np.array([problem.component(i, x) for i in range(n)])

    return SimpleNamespace(f=f, gradients=gradients, table=lambda c: c[:, None] * A, L_i=f.row_smoothness)


def quadratics(n, d, rng):
    """Indefinite quadratics; their table holds vectors."""
    H, q = rng.standard_normal((n, d, d)), rng.standard_normal((n, d))
    H = H + H.transpose(0, 2, 1)
    f = ex.Separable(n, d, grad=lambda x, idx: H[idx] @ x + q[idx], value=lambda x, idx: (H[idx] @ x / 2 + q[idx]) @ x)
    return SimpleNamespace(f=f, gradients=lambda x: H @ x + q, table=lambda c: c, L_i=np.linalg.norm(H, 2, axis=(1, 2)))


def every_batch(n, b, replace):
    return list(product(range(n), repeat=b) if replace else combinations(range(n), b))


def norm2(v):
    """|v|^2, for each row of a matrix."""
    return np.square(v).sum(axis=-1)


def variance(v, b, replace):
    """E |mean of v over a batch - mean of v|^2, the textbook formula."""
    n = len(v)
    return norm2(v - v.mean(axis=0)).mean() / b * (1.0 if replace else (n - b) / (n - 1))


TINY = [(4, 3, False), (5, 2, False), (6, 3, False), (4, 3, True), (5, 2, True)]
tiny_problems = pytest.mark.parametrize(("n", "d", "replace"), TINY)
tiny_kinds = pytest.mark.parametrize("kind", [logistic, quadratics])


def random_cases(kind, n, d, count=3):
    """Problems with x, x_new and g anywhere, for every batch size."""
    for seed in range(count):
        rng = np.random.default_rng((seed, n))
        tiny = kind(n, d, rng)
        x, x_new, g = rng.standard_normal((3, d))
        for b in range(1, n + 1):
            yield tiny, b, x, x_new, g, rng.standard_normal((n, *tiny.f.deriv_shape))


@tiny_problems
@tiny_kinds
def test_sarah_in_expectation(kind, n, d, replace):
    p = 0.3
    for tiny, b, x, x_new, g, _ in random_cases(kind, n, d):
        batches = every_batch(n, b, replace)
        estimator, state = ex.gradients.Sarah(b, p, replace), PlainEstimate(g, exact=False)
        results = [estimator.update(tiny.f, 0, x, x_new, (), state, Given(rows, coin=p)).g for rows in batches]
        results += [estimator.update(tiny.f, 0, x, x_new, (), state, Given(batches[0], coin=0.999 * p)).g]
        weights = np.append(np.full(len(batches), (1 - p) / len(batches)), p)
        delta = tiny.gradients(x_new) - tiny.gradients(x)
        grad, grad_new = tiny.gradients(x).mean(axis=0), tiny.gradients(x_new).mean(axis=0)

        np.testing.assert_allclose(weights @ np.array(results) - grad_new, (1 - p) * (g - grad), atol=1e-12)
        error = weights @ norm2(np.array(results) - grad_new)
        assert error == pytest.approx((1 - p) * (norm2(g - grad) + variance(delta, b, replace)), rel=1e-10)
        assert error <= (1 - p) * (norm2(g - grad) + norm2(delta).mean() / b) * (1 + 1e-12)  # Lemma 3 of PAGE
        assert norm2(delta).mean() <= np.mean(tiny.L_i**2) * norm2(x_new - x)  # hence the inequality of Theorem 1


def saga_sarah_results(tiny, b, replace, lam, x, x_new, g, c):
    """g and table after each batch."""
    for rows in every_batch(tiny.f.n, b, replace):
        state = TableEstimate(g, False, DerivativeTable(tiny.f, c.copy(), tiny.table(c).mean(axis=0)))
        new = ex.gradients.SagaSarah(b, lam, replace=replace).update(tiny.f, 0, x, x_new, (), state, Given(rows))
        yield new.g, tiny.table(new.table.c), new.table.mean


@tiny_problems
@tiny_kinds
def test_saga_sarah_in_expectation(kind, n, d, replace):
    for tiny, b, x, x_new, g, c in random_cases(kind, n, d):
        lam, y = naive.momentum(n, b), tiny.table(c)
        g_all, y_all, mean_all = map(np.array, zip(*saga_sarah_results(tiny, b, replace, lam, x, x_new, g, c), strict=True))
        old, new = tiny.gradients(x), tiny.gradients(x_new)
        grad, grad_new = old.mean(axis=0), new.mean(axis=0)

        np.testing.assert_allclose(g_all.mean(axis=0) - grad_new, (1 - lam) * (g - grad), atol=1e-12)
        noise = variance(new - old + lam * (old - y), b, replace)
        error = norm2(g_all - grad_new).mean()
        assert error == pytest.approx((1 - lam) ** 2 * norm2(g - grad) + noise, rel=1e-10)
        bound = (1 - lam) * norm2(g - grad) + 2 / b * norm2(new - old).mean() + 2 * lam**2 / b * norm2(old - y).mean()
        assert error <= bound * (1 + 1e-12)  # Lemma 2 of ZeroSARAH

        np.testing.assert_allclose(mean_all, y_all.mean(axis=1), atol=1e-12)
        table_error = norm2(new - y_all).mean()
        assert table_error == pytest.approx(missed(n, b, replace) * norm2(new - y).mean(), rel=1e-10, abs=1e-12)
        bound = (1 - b / (2 * n)) * norm2(old - y).mean() + 2 * n / b * norm2(new - old).mean()
        assert table_error <= bound * (1 + 1e-12)  # Lemma 3 of ZeroSARAH


def missed(n, b, replace):
    """The probability that a batch leaves a row of the table as it was."""
    return (1 - 1 / n) ** b if replace else 1 - b / n


@tiny_problems
@tiny_kinds
def test_the_table_recursion_holds_at_its_worst_table(kind, n, d, replace):
    """|u + v|^2 / (s |u|^2 + t |v|^2) is at most 1/s + 1/t, attained at u = (t/s) v: no table can do worse than these.

    Here u = grad f_j(x) - y_j, v = grad f_j(x_new) - grad f_j(x), s = 1 - b/2n and t = 2n/b. Drawn with replacement, a row
    is refreshed with a probability below b/n, the one that the lemma's proof takes; the inequality survives this.
    """
    for tiny, b, x, x_new, g, _ in random_cases(kind, n, d, count=1):
        of = tiny.f.derivs if kind is logistic else tiny.gradients  # what tables hold
        s, t = 1 - b / (2 * n), 2 * n / b
        c = of(x) - t / s * (of(x_new) - of(x))
        results = saga_sarah_results(tiny, b, replace, naive.momentum(n, b), x, x_new, g, c)
        old, new = tiny.gradients(x), tiny.gradients(x_new)
        table_error = np.mean([norm2(new - y).mean() for _, y, _ in results])
        bound = s * norm2(old - tiny.table(c)).mean() + t * norm2(new - old).mean()
        assert table_error / bound == pytest.approx(missed(n, b, replace) * (1 / s + 1 / t), rel=1e-9, abs=1e-12)
        assert table_error <= bound


@pytest.mark.parametrize("replace", [False, True])
def test_the_table_recursion_holds_for_all_batches(replace):
    """The worst ratio of the test above is at most 1 for every b <= n.

    With replacement: (1 - 1/n)^b <= exp(-t) with t = b/n <= 1, and 2 / (2 - t) + t/2 = 1 + t + (t^2/4) / (1 - t/2) <= exp(t).
    """
    worst = 0.0
    for n in range(1, 400):
        b = np.arange(1, n + 1)
        worst = max(worst, np.max(missed(n, b, replace) * (1 / (1 - b / (2 * n)) + b / (2 * n))))
    assert worst <= 1.0
    assert missed(399, 399, True) * 2.5 == pytest.approx(2.5 * exp(-1), rel=2e-3)


N, K, SEEDS = 20, 1000, 20
RADIUS = {"squared": 1.0, "logistic": 1.5, "nlls": 0.75}
LOSS = {"squared": ex.Squared(), "logistic": ex.Logistic(), "nlls": ex.NonlinearLeastSquares()}


@lru_cache
def small(loss):
    """A problem with its constants. Rows lie near one line: Lt is near L, and a step along the line sees all of L."""
    rng, R = np.random.default_rng(1), RADIUS[loss]
    A = np.column_stack([rng.choice([-1.0, 1.0], N), 0.3 * rng.standard_normal((N, 2))])
    right = rng.random(N) < 0.8
    y = {"squared": 0.6 * A[:, 0] + 2 * rng.standard_normal(N), "logistic": np.where(right, 1, -1) * A[:, 0]}
    y["nlls"] = (y["logistic"] < 0).astype(float)
    f = ex.LinearModel(LOSS[loss], A, y[loss])
    x0, L, Lt = np.array([-R, 0.0, 0.0]), f.smoothness, sqrt(np.mean(f.row_smoothness**2))
    f_min = naive.minimum(naive.Problem(loss, A, y[loss]), R)
    return SimpleNamespace(f=f, C=ex.L1Ball(R), x0=x0, h0=f.value(x0) - f_min, f_min=f_min, constants=(L, Lt, 2 * R))


def run(problem, method, seed, horizon=K):
    """The states 0, ..., K."""
    return islice(ex.iterate(problem.f, problem.C, method=method, x0=problem.x0, seed=seed, horizon=horizon), K + 1)


def lyapunov(problem, state, M):
    """f(x) - f* + M1 |grad f - g|^2 + M2 (1/n) sum_j |grad f_j - y_j|^2, the last for a method with a table."""
    f, x = problem.f, state.x
    value = f.value(x) - problem.f_min + M[0] * norm2(f.grad(x) - state.g)
    if len(M) == 1:
        return value
    return value + M[1] * np.mean(np.square(f.derivs(x) - state.estimate.table.c) * f.data.row_norms2())


def theorem(number, problem, b, replace):
    """Method, c, (M1, M2) and d of a theorem."""
    if number in (1, 2):
        p, constants = naive.probability(N, b), naive.constants1 if number == 1 else naive.constants2
        c, *M = constants(*problem.constants, p, b)
        return ex.SarahFW(batch=b, replace=replace), c, M, 2 / p
    c, *M = (naive.constants3 if number == 3 else naive.constants4)(*problem.constants, N, b)
    return ex.SagaSarahFW(batch=b, replace=replace), c, M, 4 * N / b


batches = pytest.mark.parametrize(("b", "replace"), [(4, False), (10, False), (10, True)])


@pytest.mark.parametrize("horizon", [K, None], ids=["two-phase", "anytime"])
@batches
@pytest.mark.parametrize("number", [1, 3])
@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_theorems_1_and_3_bound_the_mean(loss, number, b, replace, horizon):
    problem = small(loss)
    method, c, M, d = theorem(number, problem, b, replace)
    eta = {None: lambda k: 2 / (2 * d + k), K: naive.theorem1_step(2 / d, K)}[horizon]  # Theorem 3 is the same with d = 4n/b
    bound = naive.recursion(problem.h0, c, eta, K)[::10]
    runs = [[lyapunov(problem, s, M) for s in run(problem, method, seed, horizon) if s.k % 10 == 0] for seed in range(SEEDS)]
    assert np.all(np.mean(runs, axis=0) <= bound * (1 + 1e-12))
    assert bound[-1] < 0.8 * problem.h0  # it says something


@batches
@pytest.mark.parametrize("number", [2, 4])
def test_theorems_2_and_4_bound_the_mean_gap(number, b, replace):
    """Summed up to any k: E[sum of eta gap_j over j < k] + E[Lyapunov function at k] <= h_0 + k eta^2 c."""
    problem, eta = small("nlls"), 1 / sqrt(K)
    method, c, M, _ = theorem(number, problem, b, replace)
    gaps, rest = np.zeros((2, SEEDS, K + 1))
    for seed in range(SEEDS):
        for s in run(problem, method, seed):
            g = problem.f.grad(s.x)
            gaps[seed, s.k], rest[seed, s.k] = g @ (s.x - naive.lmo(g, problem.C.radius)), lyapunov(problem, s, M)
    spent = eta * np.insert(np.cumsum(gaps[:, :-1], axis=1), 0, 0.0, axis=1)
    assert np.all((spent + rest).mean(axis=0) <= problem.h0 * (1 + 1e-12) + np.arange(K + 1) * eta**2 * c)
    bound = problem.h0 / (eta * K) + eta * c
    assert gaps[:, :-1].mean() <= bound
    assert bound < 0.8 * gaps[0, 0]  # it says something


@pytest.mark.parametrize("r0", [0.0, 1e-3, 1.0, 1e3])
@pytest.mark.parametrize("d", [1.0, 1.5, 4.0, 32.0, 1200.0])
def test_the_anytime_step_keeps_its_induction(d, r0):
    """With eta_k = 2 / (2d + k): r_k <= max(4c, 2d r_0) / (2d + k), and O(d^2 r_0 / k^2 + c / k) by telescoping."""
    step, k, c = ex.steps.Anytime(d), np.arange(3001), 1.0
    assert all(0 < step.eta(j, None) <= 1 / d for j in range(3000))
    r = naive.recursion(r0, c, lambda j: step.eta(j, None), 3000)
    t = 2 * d + k
    assert np.all(r <= max(4 * c, 2 * d * r0) / t * (1 + 1e-9))
    assert np.all((t - 1) * (t - 2) * r <= ((2 * d - 1) * (2 * d - 2) * r0 + 4 * c * k) * (1 + 1e-9))


@pytest.mark.parametrize(("method", "d"), [(ex.SarahFW(batch=4), 2 / naive.probability(N, 4)), (ex.SagaSarahFW(batch=4), N)])
def test_without_a_horizon_the_step_is_anytime(method, d):
    for state in islice(run(small("squared"), method, 0, horizon=None), 1, None):
        assert state.point.steps[0][0] == pytest.approx(2 / (2 * d + state.k - 1), rel=1e-14)


def furthest(loss, method, other):
    """Largest difference of x or g between the two runs, up to k = 300."""
    runs = islice(zip(run(small(loss), method, 0), run(small(loss), other, 1), strict=True), 301)
    return max(float(max(np.abs(u.x - v.x).max(), np.abs(u.g - v.g).max())) for u, v in runs)


@pytest.mark.parametrize(
    "step", [ex.steps.OpenLoop(), ex.steps.TwoPhase(d=4, horizon=K), ex.steps.Anytime(d=4), ex.steps.InverseSqrt(horizon=K)]
)
@pytest.mark.parametrize("loss", LOSS)
def test_special_cases_are_frank_wolfe(loss, step):
    plain = ex.FrankWolfe(step=step)
    assert furthest(loss, ex.SarahFW(batch=3, p=1.0, step=step), plain) == 0.0
    assert furthest(loss, ex.SarahFW(batch=N, step=step), plain) <= 1e-12
    assert furthest(loss, ex.SarahFW(batch=N, p=1e-9, step=step), plain) <= 1e-12  # no full gradient after the first
    assert furthest(loss, ex.SagaSarahFW(batch=N, step=step), plain) <= 1e-12
    assert furthest(loss, ex.SarahFW(batch=3, step=step), plain) > 1e-3  # the others differ
