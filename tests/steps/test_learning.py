"""Steps that learn curvature on the way, and steps from the curvature of batches: their formulas, written out again."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from cases import DIM, LOSSES, MATRIX, SETS, N, model, separable, targets

import extremal as ex
from extremal.objectives.base import Sampler

R, B = 2.0, 6
Y = targets(ex.Logistic())
SECANT, BACKTRACKING, BATCH = ex.steps.Secant(), ex.steps.Backtracking(), ex.steps.BatchCurvature()


def path(method, f=None, C=None, count=25, **options):
    f = model(ex.Logistic()) if f is None else f
    states = ex.iterate(f, ex.L1Ball(R) if C is None else C, method, **options)
    return [np.array(state.x) for state in itertools.islice(states, count)]


def value(x):
    return np.logaddexp(0.0, -Y * (MATRIX @ x)).mean()


def rows(x, idx=slice(None)):
    """phi' and phi'' of the logistic loss."""
    p = 1.0 / (1.0 + np.exp(Y[idx] * (MATRIX[idx] @ x)))
    return -Y[idx] * p, p * (1.0 - p)


def slope(x):
    return MATRIX.T @ rows(x)[0] / N


def corner(g):
    s = np.zeros(DIM)
    j = int(np.abs(g).argmax())
    s[j] = -R * np.sign(g[j])
    return s


# the secant


def test_the_secant_is_its_formula():
    x, L, last, expected = np.zeros(DIM), 0.0, None, []
    for _ in range(25):
        expected.append(x)
        g = slope(x)
        if last is not None:
            moved = x - last[0]
            L = max(moved @ (g - last[1]) / (moved @ moved), 0.99 * L)
        last, d = (x, g), corner(g) - x
        eta = 0.01 if L == 0.0 else min(1.0, -(g @ d) / (L * (d @ d)))
        x = x + eta * d
    found = path(ex.Method(ex.gradients.Full(), SECANT))
    np.testing.assert_allclose(found, expected, atol=1e-9)
    assert value(found[-1]) < value(found[0]) - 0.01


def test_the_secant_costs_nothing():
    plain, learnt = (
        ex.minimize(model(ex.Logistic()), ex.L1Ball(R), ex.Method(ex.gradients.Sarah(B, 0.1), step), max_iter=30, tol=0).calls
        for step in (ex.steps.OpenLoop(), SECANT)
    )
    assert (plain.grads, plain.values, plain.hessian_rows) == (learnt.grads, learnt.values, learnt.hessian_rows)


def test_the_secant_with_matrices_in_factors():
    rng = np.random.default_rng(0)
    i, j = np.divmod(rng.choice(600, 200, replace=False), 20)
    y = rng.standard_normal(30)[i] * rng.standard_normal(20)[j]
    f = ex.LinearModel(ex.Squared(), ex.data.Entries(i, j, shape=(30, 20)), y)
    r = ex.minimize(f, ex.NuclearBall(20.0), ex.Method(ex.gradients.Full(), SECANT), max_iter=40, tol=0)
    assert r.value < 0.5 * f.value(np.zeros(f.shape))


def test_the_secant_is_refused_on_a_curved_manifold():
    f = ex.KarcherMean([np.diag([1.0, 4.0]), np.diag([4.0, 1.0])])
    method = ex.Method(ex.gradients.Full(), SECANT, ex.moves.GeodesicMove(ex.points.SPD()))
    with pytest.raises(ex.InputError, match="gradients of two iterates have no difference"):
        ex.minimize(f, f.interval(), method, x0=f.interval().lower, max_iter=5, tol=0)


@pytest.mark.parametrize("gradient", [ex.gradients.Sarah(10, 0.2), ex.gradients.Saga(10)], ids=repr)
@pytest.mark.parametrize("make", [model, separable])
def test_the_secant_solves_with_variance_reduction(gradient, make):
    f = make(ex.Logistic())
    method = ex.Method(gradient, SECANT, ex.moves.Pairwise())
    assert ex.minimize(f, ex.L1Ball(R), method, max_grads=300 * N, tol=1e-6, atol=1e-6).converged


@pytest.mark.parametrize("step", [SECANT, BACKTRACKING, ex.steps.Scaled(SECANT, 0.5)], ids=repr)
def test_nothing_that_one_run_has_learnt_is_known_to_the_next(step):
    method = ex.Method(ex.gradients.Saga(5), step, ex.moves.Pairwise())
    first = path(method)
    np.testing.assert_array_equal(path(method, model(ex.Logistic(), "csr"))[0], first[0])
    np.testing.assert_array_equal(path(method), first)
    both = [ex.iterate(model(ex.Logistic()), ex.L1Ball(R), method) for _ in range(2)]
    for x, states in zip(first, zip(*both, strict=True), strict=False):
        for state in states:  # two runs of one object, step by step
            np.testing.assert_array_equal(state.x, x)


# backtracking


def test_backtracking_is_its_formula():
    x, M, expected = np.zeros(DIM), None, []
    for _ in range(25):
        expected.append(x)
        g = slope(x)
        d = corner(g) - x
        gap, length = -(g @ d), d @ d
        M = (slope(x + 0.01 * d) @ d + gap) / (0.01 * length) if M is None else 0.9 * M
        while True:
            eta = min(1.0, gap / (M * length))
            if value(x + eta * d) <= value(x) - eta * gap + 0.5 * eta**2 * M * length:
                break
            M *= 2.0
        x = x + eta * d
    np.testing.assert_allclose(path(ex.Method(ex.gradients.Full(), BACKTRACKING)), expected, atol=1e-9)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("C", SETS, ids=repr)
def test_f_never_rises_with_backtracking(loss, C):
    f = model(loss)
    for gradient in (ex.gradients.Full(), ex.gradients.Sarah(batch=1, p=0.1)):  # noise does no harm: the rule asks f itself
        values = [f.value(x) for x in path(ex.Method(gradient, BACKTRACKING), f, C, 60)]
        assert (np.diff(values) <= 1e-12).all()
        assert values[-1] < values[0]


@pytest.mark.parametrize("move", [ex.moves.Away(), ex.moves.Pairwise(), ex.moves.BlendedPairwise()], ids=repr)
def test_backtracking_goes_on_where_rounding_hides_the_decrease(move):
    f = ex.LinearModel(ex.Squared(), np.eye(5), 1e6 + np.linspace(-1.0, 2.0, 5))  # values of 1e12, gaps of 1e-6
    C = ex.ShiftedSet(ex.Simplex(shape=5), np.full(5, 1e6))
    r = ex.minimize(f, C, ex.Method(ex.gradients.Full(), BACKTRACKING, move), tol=1e-8, atol=1e-8, max_iter=500)
    assert r.gap <= 1e-8


def test_backtracking_counts_what_it_asks():
    f = model(ex.Logistic())
    r = ex.minimize(f, ex.L1Ball(R), ex.Method(ex.gradients.Full(), BACKTRACKING), max_iter=50, tol=0)
    assert r.calls.grads == 51 * N
    assert 3 * 50 * N <= r.calls.values <= 6 * 50 * N


def test_backtracking_needs_no_constant_where_the_short_step_is_slow():
    """One column is 300 times as large as the others, and the solution does not use it: L is that of this column."""
    A = MATRIX.copy()
    A[:, -1] *= 300.0
    f, C = ex.LinearModel(ex.Squared(), A, MATRIX[:, :3].sum(axis=1)), ex.Simplex(1.0)
    ends = [ex.minimize(f, C, ex.PairwiseFW(step=step), max_iter=40, tol=0).gap for step in (ex.steps.ShortStep(), BACKTRACKING)]
    assert ends[1] < 0.1 * ends[0]


# curvature of batches


@pytest.mark.parametrize("seed", range(3))
def test_batch_curvature_is_its_formula(seed):
    sampler, x, c, idx, expected = Sampler(N, seed), np.zeros(DIM), rows(np.zeros(DIM))[0], np.arange(N), []
    g = MATRIX.T @ c / N
    for k in range(25):
        expected.append(x)
        d = corner(g) - x
        gap, u = -(g @ d), MATRIX[idx] @ d
        bends = rows(x, idx)[1] * u**2
        h, M = bends.mean() + 2.0 * bends.std() / math.sqrt(len(idx)), np.abs(u).max()
        x = x + (min(1.0, math.log1p(M * gap / h) / M) if gap > 0 else 0.0) * d
        idx = sampler.rows(k, B)
        new = rows(x, idx)[0]
        g = MATRIX[idx].T @ (new - c[idx]) / B + MATRIX.T @ c / N
        c[idx] = new
    np.testing.assert_allclose(path(ex.Method(ex.gradients.Saga(B), BATCH), seed=seed), expected, atol=1e-9)


@pytest.mark.parametrize(
    ("gradient", "bent"),
    [
        (ex.gradients.Full(), 20 * N),
        (ex.gradients.MiniBatch(B), 20 * B),
        (ex.gradients.Saga(B), N + 19 * B),  # all rows before the first batch
        (ex.gradients.SagaSarah(B, 0.1, start="cold"), 1 + 19 * B),
        (ex.gradients.Reshuffled(ex.gradients.Sag(B)), 20 * B),
        (ex.gradients.Storm(B), 20 * B),
    ],
    ids=repr,
)
def test_rows_of_second_derivatives_are_counted(gradient, bent):
    f, C = model(ex.Squared()), ex.L1Ball(R)
    plain, curved = (
        ex.minimize(f, C, ex.Method(gradient, step), max_iter=20, tol=0, atol=0).calls for step in (ex.steps.OpenLoop(), BATCH)
    )
    assert curved.hessian_rows <= bent  # fewer where a noisy estimate points uphill
    assert curved.hessian_rows >= 0.3 * bent
    assert curved.grads == plain.grads + curved.hessian_rows
    assert curved.values == plain.values


@pytest.mark.parametrize("loss", [ex.Logistic(), ex.Squared(), ex.Poisson(), ex.NonlinearLeastSquares()], ids=repr)
@pytest.mark.parametrize(
    "C", [ex.L1Ball(R), ex.L2Ball(R), ex.LinfBall(0.3), ex.GroupBall(R, [[i] for i in range(DIM)])], ids=repr
)
def test_exact_curvature_lowers_f(loss, C):
    """With all rows, h is an upper bound and the step is the minimiser of a bound on f."""
    y = np.abs(targets(loss)) if loss == ex.Poisson() else targets(loss)
    f = ex.LinearModel(loss, MATRIX, y)
    values = [f.value(x) for x in path(ex.Method(ex.gradients.Full(), BATCH), f, C, 40)]
    assert (np.diff(values) <= 1e-12).all()
    assert values[-1] < values[0]


def test_batch_curvature_with_vertices_of_rank_one():
    rng = np.random.default_rng(0)
    i, j = np.divmod(rng.choice(600, 300, replace=False), 20)
    z = 2.0 * rng.standard_normal(30)[i] * rng.standard_normal(20)[j]
    f = ex.LinearModel(ex.Logistic(), ex.data.Entries(i, j, shape=(30, 20)), np.sign(z))
    r = ex.minimize(f, ex.NuclearBall(60.0), ex.Method(ex.gradients.Full(), BATCH), max_iter=60, tol=0)
    line = ex.minimize(f, ex.NuclearBall(60.0), ex.Method(ex.gradients.Full(), ex.steps.LineSearch()), max_iter=60, tol=0)
    assert r.value < 0.5 * math.log(2.0)
    assert r.value < line.value + 0.1
    assert r.calls.hessian_rows == r.calls.lmos * f.n


def test_a_batch_without_curvature_waits_for_the_next():
    """Only one row has an entry in the column that the step moves: the point waits until a batch has this row."""
    A = np.zeros((40, 2))
    A[:39, 0], A[39, 1] = 1e-6, 20.0
    f, C = ex.LinearModel(ex.Squared(), A, np.r_[np.zeros(39), 40.0]), ex.L1Ball(1.0)
    states = list(itertools.islice(ex.iterate(f, C, ex.Method(ex.gradients.SagaSarah(4, 0.1), BATCH)), 40))
    assert all(C.contains(state.x) for state in states)
    assert states[-1].x[1] > 0.5


@pytest.mark.parametrize(
    ("f", "said"),
    [
        (separable(ex.Logistic()), "got Separable"),
        (ex.LinearModel(ex.Multinomial(3), MATRIX, np.arange(N) % 3), r"got LinearModel with Multinomial"),
    ],
    ids=["separable", "several margins"],
)
def test_objectives_without_such_rows_are_refused(f, said):
    with pytest.raises(ex.InputError, match=rf"BatchCurvature\(\) needs a LinearModel whose loss has one margin.*{said}"):
        ex.minimize(f, ex.L2Ball(1.0), ex.Method(ex.gradients.Full(), BATCH), max_iter=5, tol=0)
