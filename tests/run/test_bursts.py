"""Bursts: the same iterations as the readable loop, for every pair of estimator and set, kind of data and loss."""

from __future__ import annotations

import dataclasses
import itertools
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from burst_problems import (
    DATA,
    DENSE,
    DIM,
    ESTIMATORS,
    ONE_EACH,
    ONE_SET_EACH,
    SETS,
    SPARSE,
    N,
    agree,
    both,
    model,
    step_of,
    wide_model,
)

import extremal as ex
from extremal import gradients, laws, steps
from extremal.kernels import arguments, oracles
from extremal.kernels.arguments import BurstOracle, ScaledPair
from extremal.kernels.burst import rescale
from extremal.methods.method import Budget
from extremal.run.loop import prepare

# the same iterations


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("where", SETS)
def test_every_pair_makes_the_iterations_of_the_loop(name, where, count, monkeypatch):
    """Ten thousand of them for one estimator and one set of each kind, some hundreds for the others."""
    many = 10_000 if name in ONE_EACH and where in ONE_SET_EACH else 500
    monkeypatch.setattr("extremal.objectives.base._STEPS", 97)  # many draws, and calls, and no round number
    f = model(SPARSE)
    record = ex.Record(every=many / 20, what=("value", "x"))
    fast, slow = both(f, SETS[where], ESTIMATORS[name], max_iter=many, record=record)
    agree(fast, slow)
    np.testing.assert_allclose(fast.trace.x, slow.trace.x, rtol=0, atol=1e-9)
    assert sum(count) > 0.8 * many  # all but those with a full gradient
    assert SETS[where].on(DIM).contains(fast.x, 1e-9)


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize("loss", [ex.Logistic(), ex.NonlinearLeastSquares(), ex.Squared(), ex.Huber(0.3)], ids=repr)
def test_every_kind_of_data_and_loss(name, kind, loss, count):
    if kind == "csr, one value" and isinstance(loss, ex.Huber):
        loss = ex.Huber(5.0)  # where many derivatives are cut off at the same number, rounding decides between equal sums
    f = model(DATA[kind], loss)
    for where in ("l1", "box"):
        agree(*both(f, SETS[where], ESTIMATORS[name], max_iter=200))
    assert sum(count) > 200


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("kind", ["csr", "dense"])
@pytest.mark.parametrize("where", ["l1", "simplex", "box"])
def test_float32_rows_agree_with_the_same_rows_in_float64(name, kind, where):
    f = model(DATA[kind], dtype=np.float32)
    fast, slow = both(f, SETS[where], ESTIMATORS[name], max_iter=150)
    assert (f.data.dtype, fast.x.dtype) == (np.float32, np.float64)
    assert fast.calls == slow.calls
    np.testing.assert_allclose(fast.x, slow.x, rtol=0, atol=1e-9)
    wide = next(both(model(DATA[kind].astype(np.float32), dtype=np.float64), SETS[where], ESTIMATORS[name], max_iter=150))
    np.testing.assert_allclose(fast.x, wide.x, rtol=0, atol=1e-9)


RULES = [
    steps.OpenLoop(), steps.Decay(1, 3, 0.5), steps.TwoPhase(d=20), steps.TwoPhase(d=1000), steps.Anytime(d=20),
    steps.InverseSqrt(), steps.SmallBatch(), steps.FullStep(), steps.Scaled(steps.OpenLoop(), 0.3),
    steps.Scaled(steps.Scaled(steps.Decay(2, 8), 2.0), 3.0),
]  # fmt: skip


@pytest.mark.parametrize("step", RULES, ids=repr)
@pytest.mark.parametrize("budget", [{"max_iter": 90}, {"max_grads": 3000}], ids=repr)
def test_every_step_that_is_fixed_in_advance(step, budget, count):
    agree(*both(model(SPARSE), SETS["l1"], ESTIMATORS["saga sarah"], step, **budget))
    assert sum(count) > 80


@pytest.mark.parametrize("step", [steps.EpochOpenLoop(), steps.EpochHarmonic(), steps.InverseSqrt()], ids=repr)
@pytest.mark.parametrize("name", ["svrg", "svrg, doubling"])
def test_steps_that_go_by_epochs(step, name, count):
    agree(*both(model(SPARSE), SETS["simplex"], ESTIMATORS[name], step, max_iter=300))
    assert sum(count) > 200


@pytest.mark.parametrize("recipe", ["sarah-fw", "saga-sarah-fw", "negiar-sfw", "saga-fw", "momentum-sfw", "one-sample-sfw",
                                    "lu-freund-sfw", "svfw"])  # fmt: skip
@pytest.mark.parametrize("loss", [ex.Logistic(), ex.NonlinearLeastSquares()], ids=repr)
def test_the_named_methods_run_in_bursts_with_their_own_steps(recipe, loss, count):
    f = model(SPARSE, loss)
    fast, slow = (ex.minimize(f, ex.L1Ball(3.0), recipe, max_grads=20 * N, tol=0, bursts=fast) for fast in (True, False))
    agree(fast, slow)
    assert sum(count) > 0


@pytest.mark.parametrize("batch", [1, N - 1, N])
@pytest.mark.parametrize("name", ONE_EACH)
def test_smallest_and_largest_batches(name, batch, count):
    gradient = dataclasses.replace(ESTIMATORS[name], batch=batch)
    agree(*both(model(SPARSE), SETS["l1"], gradient, max_iter=60))
    assert sum(count) > 40


@pytest.mark.parametrize("ones", [False, True], ids=["values", "ones"])
@pytest.mark.parametrize("name", ONE_EACH)
def test_batches_that_are_sorted_by_length_and_read_in_pieces(name, ones, count):
    """Rows of 0 to 24 entries, and batches of more rows than are read at once."""
    rng = np.random.default_rng(3)
    A = sp.csr_array(
        np.where(rng.random((400, DIM)) < rng.random((400, 1)), 1.0 if ones else rng.standard_normal((400, DIM)), 0.0)
    )
    f = ex.LinearModel(ex.Logistic(), A, np.where(rng.random(400) < 0.5, 1.0, -1.0))
    gradient = dataclasses.replace(ESTIMATORS[name], batch=150)
    setup = prepare(
        "minimize", f, SETS["l1"], ex.Method(gradient, step_of(gradient)), None, 0, Budget(max_iter=9), in_bursts=True
    )
    assert setup.burst._model.uneven
    assert setup.burst._state.room.shape[1] < 150
    agree(*both(f, SETS["l1"], gradient, max_iter=100))
    assert sum(count) > 80


# large dimensions: the index


WIDE = {
    "l1": ex.L1Ball(30.0),
    "weighted": ex.WeightedL1Ball(30.0, 1.0 + np.arange(3000) % 7),
    "simplex": ex.Simplex(30.0),
    "unit": ex.UnitSimplex(30.0),
}


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("where", WIDE)
def test_the_index_finds_what_a_look_at_each_coordinate_finds(name, where, monkeypatch):
    monkeypatch.setattr("extremal.run.bursts.run._worth_it", lambda *args: True)  # it would pay later only for some
    f, gradient = wide_model(), dataclasses.replace(ESTIMATORS[name], batch=2)
    method = ex.Method(gradient, step_of(gradient))
    setup = prepare("minimize", f, WIDE[where], method, None, 0, Budget(max_iter=800), in_bursts=True)
    assert setup.burst._oracle.blocks.size == 47  # 3000 / 64
    agree(*both(f, WIDE[where], gradient, max_iter=800, record=1.0))


def test_the_index_is_there_for_large_dimensions():
    sarah, saga = (ex.Method(g, steps.OpenLoop()) for g in (gradients.Sarah(1, 0.1), gradients.Saga(1)))
    many = ex.Method(gradients.Sarah(79, 0.1), steps.OpenLoop())  # batches that touch more than a third of all
    for d, method, blocks in ((400, sarah, 0), (3000, sarah, 47), (3000, saga, 0), (9000, saga, 141), (600, many, 0)):
        f = wide_model(d=d, density=12 / d)
        assert (
            prepare("minimize", f, ex.L1Ball(1.0), method, None, 0, Budget(), in_bursts=True).burst._oracle.blocks.size == blocks
        )


def test_ties_between_blocks_go_to_the_smallest_coordinate():
    """Columns in pairs that are equal, in other blocks and groups: the oracle has to take the first of each pair."""
    rng = np.random.default_rng(0)
    A = np.zeros((40, 9000))
    A[:, :8] = rng.standard_normal((40, 8))
    A[:, 5000:5008] = A[:, :8]
    f = ex.LinearModel(ex.Squared(), sp.csr_array(A), rng.standard_normal(40))
    for name in ("sarah", "saga", "storm", "saga sarah"):
        gradient = dataclasses.replace(ESTIMATORS[name], batch=1)
        fast, slow = both(f, ex.L1Ball(2.0), gradient, max_iter=500)
        agree(fast, slow)
        assert np.abs(fast.x[:8]).max() > 0
        assert not fast.x[8:].any()


def oracle_of(kind, weights, blocks, groups):
    return BurstOracle(kind, 1.0, weights, weights, np.zeros(0, np.int64), blocks, groups)


def by_hand(kind, G, sigma, w):
    g = G[:, 1] + sigma * G[:, 0]
    scores = np.abs(g) if kind == arguments.PEAK else np.abs(g) / w if kind == arguments.WEIGHTED else -g
    return int(scores.argmax()), scores.max()


@pytest.mark.parametrize("kind", [arguments.PEAK, arguments.WEIGHTED, arguments.LEAST])
@pytest.mark.parametrize("d", [64, 130, 9000])
def test_loose_bounds_and_ties_still_give_the_first_of_the_largest(kind, d):
    w = np.ones(d)
    for seed in range(40):
        rng = np.random.default_rng(seed)
        two, at = bool(seed % 3), rng.choice(d, size=12, replace=False)
        G = np.zeros((d, 2))
        G[at, 0] = rng.choice([-2.0, -1.0, 1.0, 2.0], size=12)
        G[at, 1] = rng.choice([-1.0, 0.0, 1.0], size=12) if two else 0.0
        blocks = np.empty(-(-d // 64))
        groups = np.empty(-(-len(blocks) // 64))
        oracle, g = oracle_of(kind, w, blocks, groups), ScaledPair(G, two, 1.0)
        oracles.rebuild_index(oracle, g)
        blocks += rng.choice([0.0, 1.0, 5.0], size=len(blocks), p=[0.98, 0.01, 0.01] if seed % 2 else [0.5, 0.25, 0.25])
        for Q in range(len(groups)):
            groups[Q] = blocks[64 * Q : 64 * Q + 64].max() + rng.choice([0.0, 3.0])
        assert oracles.best(oracle, g) == by_hand(kind, G, 1.0, w)
        true = [by_hand(kind, G[64 * B : 64 * B + 64], 1.0, w[64 * B : 64 * B + 64])[1] for B in range(len(blocks))]
        assert (blocks >= true).all()
        assert all(groups[B // 64] >= blocks[B] for B in range(len(blocks)))


def test_bounds_stay_above_negative_scores_when_v_is_rescaled():
    G = np.zeros((200, 2))
    G[:, 0] = 1.0 + np.arange(200) % 7
    blocks, groups = np.empty(4), np.empty(1)
    oracle = oracle_of(arguments.LEAST, np.zeros(1), blocks, groups)
    oracles.rebuild_index(oracle, ScaledPair(G, False, 1.0))
    rescale(oracle, ScaledPair(G, False, 1e-17))
    assert (blocks >= -1e-17).all()
    assert (groups >= -1e-17).all()
    np.testing.assert_allclose(G[:, 0], 1e-17 * (1.0 + np.arange(200) % 7))


HALF, ALL = laws.PowerLaw(0.5, 1.0, 0.0), laws.PowerLaw(1.0, 1.0, 0.0)


@pytest.mark.parametrize("gradient", [gradients.Momentum(2, HALF), gradients.Storm(2, HALF),
    gradients.SagaSarah(2, 0.5), gradients.Sag(2),
                                      gradients.Momentum(2, ALL), gradients.SagaSarah(2, 1.0)], ids=repr)  # fmt: skip
def test_scales_that_would_underflow(gradient):
    """alpha and 1 - eta of one half: after some thousand steps nothing would be left of V and x but for rescaling."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((1500, 8))
    f = ex.LinearModel(ex.Logistic(), A, np.where(rng.random(1500) < 0.5, 1.0, -1.0))
    fast, slow = both(f, ex.L1Ball(3.0), gradient, steps.InverseSqrt(horizon=4), max_iter=2500, max_grads=10**9)
    agree(fast, slow)


def test_large_gradients_do_not_overflow_by_the_scale_of_v():
    rng = np.random.default_rng(0)
    f = ex.LinearModel(ex.Squared(), 1e140 * rng.standard_normal((60, 8)), 1e140 * rng.standard_normal(60))
    agree(*both(f, ex.L1Ball(1.0), gradients.Momentum(2, HALF), max_iter=300, record=None), tol=1e270)
    fast, slow = both(f, ex.L1Ball(1.0), gradients.Momentum(2, HALF), max_iter=300)
    np.testing.assert_allclose(fast.x, slow.x, rtol=0, atol=1e-9)


def test_the_simplex_with_0_stays_there_if_no_gradient_is_negative():
    A = np.abs(DENSE)
    A[:, 3] = 0.0  # a gradient of exactly 0 is not negative
    f = ex.LinearModel(ex.Squared(), A, -np.ones(N))
    fast, slow = both(f, ex.UnitSimplex(2.0), gradients.Sag(5), max_iter=40, x0=np.full(DIM, 0.01))
    agree(fast, slow)
    assert fast.x.max() < 0.01


def test_a_budget_that_fills_the_box_keeps_the_bounds():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        lower = rng.standard_normal(DIM)
        upper = lower + rng.random(DIM)
        C = ex.BudgetBox(lower, upper, float(upper.sum()))
        fast, slow = both(model(SPARSE), C, gradients.Sag(5), max_iter=20)
        agree(fast, slow)
        assert (fast.x <= upper + 1e-14).all()


# contiguous blocks of shuffled rows


@pytest.mark.parametrize("name", ONE_EACH)
@pytest.mark.parametrize("kind", DATA)
def test_blocks_of_consecutive_rows(name, kind, count):
    f = model(DATA[kind]).shuffled(seed=3)
    agree(*both(f, SETS["l1"], ESTIMATORS[name], max_iter=400))
    assert sum(count) > 300


def test_a_block_goes_around_the_end_and_every_row_comes_as_often():
    sampler = ex.objectives.Sampler(10, seed=0, blocks=True)
    draws = np.array([sampler.rows(k, 4) for k in range(4000)])
    assert all(((row - row[0]) % 10 == np.arange(4)).all() for row in draws)
    assert any(row[0] > row[-1] for row in draws)
    often = np.bincount(draws.ravel(), minlength=10)
    assert np.abs(often / often.mean() - 1).max() < 0.1


# without compilation, and in several threads


def test_plain_python_does_the_same():
    """NUMBA_DISABLE_JIT=1: the kernels as Python functions."""
    code = (
        "import numpy as np, scipy.sparse as sp, extremal as ex\n"
        "rng = np.random.default_rng(0)\n"
        "A = sp.random_array((30, 600), density=0.02, rng=rng, format='csr')\n"
        "f = ex.LinearModel(ex.Logistic(), A, np.where(rng.random(30) < 0.5, 1.0, -1.0))\n"
        "import extremal.gradients as gr\n"
        "for g in (gr.Sarah(2, 0.1), gr.Saga(2), gr.SagaSarah(2, 0.1), gr.Sag(2), gr.Momentum(2), gr.Svrg(2, 9)):\n"
        "    for C in (ex.L1Ball(3.0), ex.Box(-1, 1), ex.CappedSimplex(0.1)):\n"
        "        m = ex.Method(g, ex.steps.OpenLoop())\n"
        "        x, y = (ex.minimize(f, C, m, max_iter=40, tol=0, bursts=b).x for b in (True, False))\n"
        "        assert abs(x - y).max() < 1e-9, (g, C)\n"
        "import numba; assert numba.config.DISABLE_JIT\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ | {"NUMBA_DISABLE_JIT": "1"}, timeout=1800)


def test_runs_in_several_threads_do_not_meet():
    f, method, answers = model(SPARSE), ex.Method(gradients.SagaSarah(5, 0.05), steps.OpenLoop()), {}

    def solve(seed):
        answers[seed] = ex.minimize(f, SETS["l1"], method, max_iter=3000, tol=0, seed=seed).x

    threads = [threading.Thread(target=solve, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    together = dict(answers)
    for seed in range(4):
        solve(seed)
        np.testing.assert_array_equal(answers[seed], together[seed])
    assert all((a != b).any() for a, b in itertools.combinations(together.values(), 2))
