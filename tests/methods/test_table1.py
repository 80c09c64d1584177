"""Every method of Table 1, iterate for iterate and row for row, against tests/truths/naive_table1.py."""

from __future__ import annotations

import itertools
import math
from functools import lru_cache

import naive
import naive_table1 as table1
import numpy as np
import pytest
import scipy.sparse as sp

import extremal as ex
from extremal import gradients, laws, steps
from extremal.objectives.base import SECOND

N, D, K, R, SEED = 30, 8, 200, 4.0, 3
LOSS = {"logistic": ex.Logistic(), "nlls": ex.NonlinearLeastSquares()}
CURVATURE = {"logistic": 0.25, "nlls": 0.15406}


@lru_cache
def arrays(loss):
    rng = np.random.default_rng(7)
    A = rng.standard_normal((N, D)) * (rng.random((N, D)) < 0.5) * np.linspace(0.5, 2.0, D)
    y = rng.integers(0, 2, N)
    return A, 2 * y - 1 if loss == "logistic" else y


@lru_cache
def problem(loss):
    return naive.Problem(loss, *arrays(loss))


def model(loss, data="dense"):
    A, y = arrays(loss)
    return ex.LinearModel(LOSS[loss], sp.csr_array(A) if data == "csr" else A, y)


def draws(b, replace=False, late=0, stream=0):
    """j -> the rows of estimate j; ``late`` for estimators that count updates instead."""
    sampler = ex.objectives.Sampler(N, SEED)
    return lambda j: sampler.rows(j - late, b, replace, stream)


def fresh(b, late=0, replace=False):
    """The same for batches that grow: b is a function of j."""
    return lambda j: ex.objectives.Sampler(N, SEED).fresh(j - late, b(j), replace)


def places(length):
    """j -> (t, k, N_t)."""
    known = list(itertools.islice(table1.positions(length), K + 1))
    return lambda j: known[j]


def root(power):
    return math.ceil(N**power - 1e-9)


def svrf_length(t):
    return 1 if t == 0 else 2 ** (t + 3) - 2


def spider_length(t):
    return 2**t


def open_loop(k):
    return 2 / (k + 2)


def sqrt_step(k):
    return 1 / math.sqrt(K)


def lu_freund_step(b):
    m = N / b
    return lambda t: 2 * (2 * m + t) / ((t + 1) * (4 * m + t))


def vertex_cases(loss):
    """name: the library's method, the naive estimator, the step of iteration k = 0, 1, ..."""
    f, convex, order = problem(loss), loss == "logistic", ex.objectives.Sampler(N, SEED).order()
    in_svrf, in_spider = places(svrf_length), places(spider_length)
    storm_rho = (lambda t: 1 / t) if convex else (lambda t: (t - 1) ** (-2 / 3))
    grown, root_n = (lambda j: min(N, j + 1)), math.ceil(math.sqrt(N))
    growing = gradients.MiniBatch(laws.PowerLaw())
    cases = {
        "SFW": (ex.SFW(batch=5), table1.fresh(f, draws(5)), sqrt_step),
        "SFW growing": (ex.Method(growing, steps.OpenLoop()), table1.fresh(f, fresh(grown)), open_loop),
        "OnlineFW": (ex.OnlineFW(batch=2), table1.pool(f, order, 2), lambda k: (k + 1) ** -0.5),
        "MomentumSFW": (
            ex.MomentumSFW(batch=5), table1.momentum(f, draws(5), lambda t: 4 / (t + 8) ** (2 / 3)), lambda k: 2 / (k + 8),
        ),
        "CoptMomentumSFW": (
            ex.CoptMomentumSFW(batch=5), table1.sag(f, draws(5), lambda t: (2 / (t + 8)) ** (2 / 3)), lambda k: 2 / (k + 8),
        ),
        "OneSampleSFW": (
            ex.OneSampleSFW(batch=5), table1.storm(f, draws(5), storm_rho), lambda k: 1 / (k + 1) if convex else K ** (-2 / 3),
        ),
        "SVFW": (ex.SVFW(batch=5, epoch=6), table1.svrg(f, draws(5, late=1), lambda t: 6), sqrt_step),
        "SVFW theory": (ex.SVFW(), table1.svrg(f, draws(root(2 / 3), late=1), lambda t: root(1 / 3)), sqrt_step),
        "SVRF": (
            ex.SVRF(batch=3),
            table1.svrg(f, fresh(lambda j: min(N, 3 + in_svrf(j)[1]), late=1), svrf_length),
            lambda k: 2 / (in_svrf(k)[1] + 1),
        ),
        "SVRF theory": (ex.SVRF(), table1.svrg(f, fresh(lambda j: N, late=1), svrf_length), lambda k: 2 / (in_svrf(k)[1] + 1)),
        "SpiderFW": (ex.SpiderFW(), table1.spider(f, draws(root_n), lambda t: root_n), sqrt_step),
        "Spider restart": (
            ex.Method(gradients.Spider(5, 4, restart=12), steps.OpenLoop()),
            table1.spider(f, draws(5), lambda t: 4, restart=fresh(lambda j: 12)),
            open_loop,
        ),
        "SagaFW": (ex.SagaFW(batch=4), table1.saga(f, draws(4, late=1), draws(4, late=1, stream=SECOND)), sqrt_step),
        "SagaFW one batch": (
            ex.SagaFW(batch=4, two_batches=False), table1.saga(f, draws(4, late=1), draws(4, late=1)), sqrt_step,
        ),
        "NegiarSFW": (ex.NegiarSFW(batch=5), table1.sag(f, draws(5)), open_loop),
        "LuFreundSFW": (ex.LuFreundSFW(batch=5), table1.substitute(f, loss, draws(5, late=1), 5), lu_freund_step(5)),
        "LuFreundSFW b = 1": (ex.LuFreundSFW(), table1.substitute(f, loss, draws(1, late=1), 1), lu_freund_step(1)),
    }  # fmt: skip
    if convex:
        batch = fresh(lambda j: min(N, in_spider(j)[2]))
        cases["SpiderFW"] = (ex.SpiderFW(), table1.spider(f, batch, spider_length), lambda k: 2 / sum(in_spider(k)[1:]))
    again = {  # rows that are drawn twice
        "MiniBatch": (gradients.MiniBatch(9, replace=True), table1.fresh(f, draws(9, True))),
        "Momentum": (
            gradients.Momentum(9, replace=True),
            table1.momentum(f, draws(9, True), lambda t: 4 / (t + 8) ** (2 / 3)),
        ),
        "Storm": (gradients.Storm(9, replace=True), table1.storm(f, draws(9, True), lambda t: 1 / t)),
        "Svrg": (gradients.Svrg(9, 5, replace=True), table1.svrg(f, draws(9, True, late=1), lambda t: 5)),
        "Spider": (gradients.Spider(9, 5, replace=True), table1.spider(f, draws(9, True), lambda t: 5)),
        "Sag": (gradients.Sag(9, replace=True), table1.sag(f, draws(9, True))),
        "Saga": (gradients.Saga(9, replace=True), table1.saga(f, draws(9, True, late=1), draws(9, True, late=1))),
        "Substitute": (gradients.Substitute(9, replace=True), table1.substitute(f, loss, draws(9, True, late=1), 9)),
    }
    for name, (gradient, estimate) in again.items():
        cases[f"{name} with replacement"] = (ex.Method(gradient, steps.OpenLoop()), estimate, open_loop)
    return cases


def compare(f, method, run, horizon, lmos=False, atol=1e-10):
    states = itertools.islice(ex.iterate(f, ex.L1Ball(R), method=method, seed=SEED, horizon=horizon), horizon + 1)
    for state, (x, g, *calls) in zip(states, run, strict=True):
        np.testing.assert_allclose(state.x, x, atol=atol, err_msg=f"x at {state.k}")
        np.testing.assert_allclose(state.g, g, atol=atol, err_msg=f"g at {state.k}")
        assert not lmos or state.calls.lmos == calls[0]


@pytest.mark.parametrize("data", ["dense", "csr"])
@pytest.mark.parametrize("loss", LOSS)
@pytest.mark.parametrize("name", vertex_cases("logistic"))
def test_a_method_is_what_its_paper_says(name, loss, data):
    method, estimate, eta = vertex_cases(loss)[name]
    run = table1.first(table1.vertex_steps(estimate, np.zeros(D), R, eta), K)
    compare(model(loss, data), method, run, K)
    assert len({int(np.abs(g).argmax()) for _, g in run}) >= 3  # not a trivial run
    assert np.count_nonzero(np.abs(run[-1][0]) > 1e-3) >= 3


def constants(loss):
    A, _ = arrays(loss)
    return CURVATURE[loss] * float(np.linalg.eigvalsh(A.T @ A)[-1]) / N, 2 * R


def storc_length(t):
    return 1 if t == 0 else math.ceil(2 ** (t / 2 + 2) - 1e-9)


def sliding_cases(loss, K):
    L, d = constants(loss)
    f, x0, in_storc = problem(loss), np.zeros(D), places(storc_length)
    m, b, root_n = root(1 / 3), root(2 / 3), math.ceil(math.sqrt(N))

    def square(t, k, n_t):
        return L * d**2 / (k * (k + 1))

    def storc_eta(t, k, n_t):
        return 2 * L * d**2 / 2**t / (n_t * k)

    storc = table1.svrg(f, fresh(lambda j: min(N, 3 * in_storc(j)[1]), late=1), storc_length)
    scgs = table1.fresh(f, fresh(lambda j: min(N, math.ceil((j + 3) ** 3 / 27 * 2 - 1e-9))))
    full = table1.fresh(f, lambda j: range(N))
    return {
        "CGS": (
            ex.CGS(L=L),
            table1.accelerated_sliding(full, x0, R, lambda k: 3 / (k + 2), lambda t, k, n: 3 * L / (k + 1), square),
        ),
        "SCGS": (
            ex.SCGS(L=L, batch=2),
            table1.accelerated_sliding(scgs, x0, R, lambda k: 3 / (k + 2), lambda t, k, n: 4 * L / (k + 2), square),
        ),
        "STORC": (
            ex.STORC(L=L, batch=3),
            table1.accelerated_sliding(storc, x0, R, lambda k: 2 / (k + 1), lambda t, k, n: 3 * L / k, storc_eta, storc_length),
        ),
        "NCGS": (
            ex.NCGS(L=L, batch=6),
            table1.double_sliding(table1.fresh(f, draws(6)), x0, R, lambda k: 2 / (k + 1), lambda k: 4 * L / k, 2 * L, 1 / K),
        ),
        "NCGSVR": (
            ex.NCGSVR(L=L),
            table1.plain_sliding(table1.svrg(f, draws(b, late=1), lambda t: m), x0, R, 3 * L, 1 / K),
        ),
        "FCGS": (
            ex.FCGS(L=L),
            table1.plain_sliding(table1.spider(f, draws(root_n), lambda t: root_n), x0, R, 3 * L, 1 / K),
        ),
    }


@pytest.mark.parametrize("data", ["dense", "csr"])
@pytest.mark.parametrize("loss", LOSS)
@pytest.mark.parametrize("name", sliding_cases("logistic", 1))
def test_a_sliding_method_is_what_its_paper_says(name, loss, data):
    method, run = sliding_cases(loss, 40)[name]
    run = table1.first(run, 40)
    compare(model(loss, data), method, run, 40, lmos=True, atol=1e-8)
    assert run[-1][2] > 40  # more than one LMO an iteration
    assert np.linalg.norm(run[-1][0] - run[20][0]) > 1e-6  # still on the way
