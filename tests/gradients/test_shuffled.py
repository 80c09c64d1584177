"""Shuffled SARAH: against a transcription, and what an epoch promises."""

from __future__ import annotations

import numpy as np
import pytest

import extremal as ex
from extremal.objectives.passes import PassSampler

RNG = np.random.default_rng(2)
N, D = 23, 4
A = RNG.standard_normal((N, D))
Y = np.where(RNG.random(N) < 0.5, 1.0, -1.0)


def logistic():
    return ex.LinearModel(ex.Logistic(), A, Y)


def slope(x, idx):
    """The mean gradient of some rows."""
    return A[idx].T @ (-Y[idx] / (1.0 + np.exp(Y[idx] * (A[idx] @ x)))) / len(idx)


def transcribed(points, b, seed):
    """The estimates at given points, from the equations of the docstring."""
    sampler, m = PassSampler(N, seed), -(-N // b)
    found, g, w, means = [], None, None, []
    for k, x in enumerate(points):
        idx = sampler.rows(k, b)
        if k % m == 0:
            means, g, w = [slope(x, idx)], (slope(x, idx) if k == 0 else np.mean(means, axis=0)), x
        else:
            means.append(slope(x, idx))
            g = np.mean(means, axis=0) if k < m else g + (slope(x, idx) - slope(w, idx)) / m
        found.append(g)
    return found


@pytest.mark.parametrize("b", [1, 4, 12])
@pytest.mark.parametrize("seed", range(3))
def test_estimates_are_those_of_the_equations(b, seed):
    f, gradient, sampler = logistic(), ex.gradients.ShuffledSarah(b), PassSampler(N, seed)
    points = [RNG.standard_normal(D) for _ in range(60)]
    state, found = gradient.init(f, points[0], sampler), []
    for k, x in enumerate(points):
        if k:
            state = gradient.update(f, k - 1, points[k - 1], x, None, state, sampler)
        found.append(state.g)
    np.testing.assert_allclose(found, transcribed(points, b, seed), atol=1e-12)


def test_a_pass_that_divides_the_rows_ends_at_the_gradient_of_a_point_that_rests():
    """At one point, the start of each later pass has the full gradient, and no step of that pass changes it."""
    f, gradient, sampler, x = logistic(), ex.gradients.ShuffledSarah(1), PassSampler(N, 0), np.full(D, 0.3)
    state = gradient.init(f, x, sampler)
    for k in range(3 * N):
        state = gradient.update(f, k, x, x, None, state, sampler)
        if k + 1 >= N:
            np.testing.assert_allclose(state.g, f.grad(x), atol=1e-14)


def test_it_takes_neither_full_gradients_nor_a_table():
    r = ex.minimize(logistic(), ex.L1Ball(1.0), ex.ShuffledSarahFW(batch=1), max_iter=10 * N, tol=0)
    passes = [1] + [2] * 9  # rows that are read per step; the start of a pass reads each row of its batch once
    assert r.calls.grads == sum(c * N for c in passes) - 9 + 1


def test_a_batch_of_all_rows_is_the_gradient():
    f, gradient, sampler, x = logistic(), ex.gradients.ShuffledSarah(N), PassSampler(N, 0), np.full(D, 0.3)
    state = gradient.init(f, x, sampler)
    assert state.exact
    assert (gradient.update(f, 0, x, 2 * x, None, state, sampler).g == f.grad(2 * x)).all()
