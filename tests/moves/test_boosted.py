"""Boosted moves: against a transcription of the paper, and by what the direction promises."""

from __future__ import annotations

import numpy as np
import pytest

import extremal as ex
from extremal.checks import InputError

RNG = np.random.default_rng(11)
A = RNG.standard_normal((60, 8))
Y = A @ np.array([0.9, -0.7, 0.4, 0, 0, 0, 0, 0]) + 0.3 * RNG.standard_normal(60)
SETS = pytest.mark.parametrize("C", [ex.Simplex(), ex.L1Ball(1.5), ex.L2Ball(0.8), ex.Box(np.full(8, -0.3), 0.5)], ids=repr)


def least_squares(scale=1.0):
    return ex.LinearModel(ex.Squared(), scale * A, scale * Y)


def cosine(a, b):
    size = np.linalg.norm(a) * np.linalg.norm(b)
    return a @ b / size if size > 0 else -1.0


def naive(C, growth, rounds, steps):
    """Algorithm 1 of Combettes, Pokutta (2020) with short steps."""
    L = float(np.linalg.eigvalsh(A.T @ A / len(Y))[-1])
    x = np.zeros(8) if C.contains(np.zeros(8)) else C.lmo(np.zeros(8)).to_array()
    path = []
    for _ in range(steps):
        g = A.T @ (A @ x - Y) / len(Y)
        d, total = np.zeros(8), 0.0
        for k in range(rounds or 1000):
            r = -g - d
            u = C.lmo(-r).to_array() - x
            if k and -r @ d / np.linalg.norm(d) > r @ u:
                break
            share = r @ u / (u @ u)
            new = d + share * u
            if k and cosine(-g, new) - cosine(-g, d) < growth:
                break
            d, total = new, total + share
        d = d / total
        x = x + min(1.0, -(g @ d) / (L * (d @ d))) * d
        path.append(x)
    return path


@SETS
@pytest.mark.parametrize(("growth", "rounds"), [(1e-3, None), (0.1, None), (1e-3, 2)])
def test_every_step_is_that_of_the_paper(C, growth, rounds):
    L = float(np.linalg.eigvalsh(A.T @ A / len(Y))[-1])
    method = ex.BoostFW(ex.steps.ShortStep(L), growth, rounds)
    start = np.zeros(8) if C.contains(np.zeros(8)) else C.lmo(np.zeros(8)).to_array()
    for T in (1, 2, 5, 12):
        r = ex.minimize(least_squares(), C, method, max_iter=T, tol=0, x0=start)
        np.testing.assert_allclose(r.x, naive(C, growth, rounds, T)[-1], atol=1e-9)


@SETS
def test_one_round_is_a_step_of_frank_wolfe(C):
    f = least_squares()
    runs = [ex.minimize(f, C, m, max_iter=40, tol=0) for m in (ex.BoostFW(rounds=1), ex.FrankWolfe(ex.steps.LineSearch()))]
    np.testing.assert_allclose(runs[0].x, runs[1].x, atol=1e-9)


@SETS
def test_points_stay_in_the_set_and_the_gap_falls(C):
    r, plain = (ex.minimize(least_squares(), C, m, max_iter=100, tol=1e-6) for m in (ex.BoostFW(), ex.FrankWolfe()))
    assert C.contains(r.x)
    assert r.gap <= max(1e-6, 0.5 * plain.gap)


def test_the_scale_of_f_changes_no_direction():
    """The data times 2^20, and so the gradient times 2^40: the directions are the same."""
    runs = [ex.minimize(least_squares(s), ex.L1Ball(1.0), ex.BoostFW(), max_iter=15, tol=0) for s in (1.0, 2.0**20)]
    np.testing.assert_allclose(runs[1].x, runs[0].x, atol=1e-9)
    assert runs[1].calls.lmos == runs[0].calls.lmos


@pytest.mark.parametrize("gradient", [ex.gradients.Sarah(7, 0.2), ex.gradients.Saga(5), ex.gradients.ShuffledSarah(6)], ids=repr)
def test_stochastic_estimators_drive_the_move(gradient):
    method = ex.Method(gradient, ex.steps.OpenLoop(), ex.moves.Boosted())
    few, many = (ex.minimize(least_squares(), ex.L1Ball(1.0), method, max_iter=T, tol=0, seed=0) for T in (20, 2000))
    assert ex.L1Ball(1.0).contains(many.x)
    assert many.gap < 0.2 * few.gap


def test_what_cannot_be_boosted_is_refused():
    with pytest.raises(InputError, match="growth"):
        ex.moves.Boosted(growth=1.5)
    with pytest.raises(InputError, match="rounds"):
        ex.BoostFW(rounds=0)
    with pytest.raises(InputError, match="follow"):
        ex.Method(ex.gradients.Substitute(5), ex.steps.LuFreundStep(), ex.moves.Boosted()).prepare(
            least_squares(), ex.L1Ball(1.0), ex.methods.Budget()
        )
