"""Any estimator with any move and step; special cases that coincide; estimates that are right in the mean; others' defects."""

from __future__ import annotations

import itertools
from dataclasses import replace as changed
from types import SimpleNamespace

import numpy as np
import pytest
from cases import DIM, GRADIENTS, MATRIX, MOVES, SETS, STEPS, N, linear_only, model, separable

import extremal as ex
from extremal import gradients, laws, moves, steps
from extremal.gradients import table as tables
from extremal.gradients.base import Phase
from extremal.objectives.base import SECOND

A, B, W = np.linspace(-0.4, 0.3, DIM), np.linspace(0.2, -0.3, DIM), np.linspace(0.1, 0.5, DIM)  # three points
LOOP = steps.OpenLoop()
ONE = laws.PowerLaw(1, 1, 0)  # always 1


def path(f, C, method, count, **options):
    return list(itertools.islice(ex.iterate(f, C, method=method, **options), count))


# the grid


@pytest.mark.parametrize("move", MOVES, ids=repr)
@pytest.mark.parametrize("gradient", GRADIENTS, ids=repr)
def test_any_estimator_with_any_move(gradient, move):
    for f in (model(ex.Logistic(), "csr"), separable(ex.NonlinearLeastSquares())):
        method = ex.Method(gradient, LOOP, move)
        if linear_only(gradient) and (f.deriv_shape or not isinstance(move, moves.VertexMove)):
            wanted = "margins" if f.deriv_shape else r"follows the vertex of each step: it needs the move VertexMove\(\)"
            for call in (ex.minimize, ex.iterate):
                with pytest.raises(ex.InputError, match=f"Substitute.*{wanted}"):
                    call(f, SETS[0], method=method)
            continue
        for C in SETS:
            states = path(f, C, method, 12, seed=1)
            assert all(C.contains(s.x, 1e-12) and C.contains(s.point.query, 1e-12) for s in states)
            assert np.abs(states[-1].x - states[0].x).max() > 1e-3
            assert states[-1].calls.lmos >= 11


@pytest.mark.parametrize("step", STEPS, ids=repr)
@pytest.mark.parametrize("move", MOVES, ids=repr)
def test_any_step_with_any_move(step, move):
    f = model(ex.Logistic())
    for gradient in (
        gradients.Full(),
        gradients.Svrg(5, epoch=6),
        gradients.Spider(laws.EpochLength(), laws.Doubling()),
        gradients.Saga(5),
    ):
        method = ex.Method(gradient, step, move)
        if isinstance(step, (steps.EpochOpenLoop, steps.EpochHarmonic)) and not hasattr(gradient, "epoch"):
            with pytest.raises(ex.InputError, match="goes by epochs"):
                ex.iterate(f, SETS[0], method=method)
            continue
        facts = gradient.facts(N)
        if (isinstance(step, (steps.TwoPhase, steps.Anytime)) and facts.d is None) or isinstance(step, steps.LuFreundStep):
            with pytest.raises(ex.InputError, match="must be given: the gradient estimator states none"):
                ex.iterate(f, SETS[0], method=method)
            method = ex.Method(
                gradient, steps.LuFreundStep(m=4) if isinstance(step, steps.LuFreundStep) else type(step)(d=4.0), move
            )
        for C in SETS[:4]:
            assert all(C.contains(s.x, 1e-12) for s in path(f, C, method, 12, horizon=11))


# special cases


def sliding(beta, tol=1e-9):
    return moves.Sliding(beta=beta, tol=tol)


CGS_MOVE = moves.AcceleratedSliding(
    beta=laws.PowerLaw(4.0, 3, -1), tol=laws.Telescoping(16.0)
)  # L = 1 and D = 4, the ball of radius 2
ROOT, TWO_THIRDS, THIRD = 8, 16, 4  # of n = 60, rounded up
SAME = {  # pairs of methods that go the same way
    "Sarah p = 1": (ex.SarahFW(batch=3, p=1.0, step=LOOP), ex.FrankWolfe(step=LOOP)),
    "Sarah b = n": (ex.SarahFW(batch=N, step=LOOP), ex.FrankWolfe(step=LOOP)),
    "Saga Sarah b = n": (ex.SagaSarahFW(batch=N, step=LOOP), ex.FrankWolfe(step=LOOP)),
    "Spider epoch 1": (ex.SpiderFW(batch=3, epoch=1, step=LOOP), ex.FrankWolfe(step=LOOP)),
    "Svrg epoch 1": (ex.SVFW(batch=3, epoch=1, step=LOOP), ex.FrankWolfe(step=LOOP)),
    "MiniBatch b = n": (ex.SFW(batch=N, step=LOOP), ex.FrankWolfe(step=LOOP)),
    "Sag b = n": (ex.NegiarSFW(batch=N), ex.FrankWolfe(step=LOOP)),
    "Saga b = n": (ex.SagaFW(batch=N, step=LOOP), ex.FrankWolfe(step=LOOP)),
    "Storm b = n": (ex.OneSampleSFW(batch=N, step=LOOP), ex.FrankWolfe(step=LOOP)),
    "Pool b = n": (ex.OnlineFW(batch=N, step=LOOP), ex.FrankWolfe(step=LOOP)),
    "theory's SVRF batches at n = 60": (ex.SVRF(step=LOOP), ex.FrankWolfe(step=LOOP)),
    "Substitute b = n, eta = theta": (ex.LuFreundSFW(batch=N, step=steps.Decay(2, 3)), ex.FrankWolfe(step=steps.Decay(2, 3))),
    "Storm rho = 1": (ex.Method(gradients.Storm(5, rho=ONE), LOOP), ex.Method(gradients.MiniBatch(5), LOOP)),
    "Momentum rho = 1": (ex.Method(gradients.Momentum(5, rho=ONE), LOOP), ex.Method(gradients.MiniBatch(5), LOOP)),
    "Sag rho = 1": (ex.Method(gradients.Sag(5, rho=ONE), LOOP), ex.NegiarSFW(batch=5)),
    "Saga Sarah lam = 1 is Saga": (ex.Method(gradients.SagaSarah(5, lam=1.0), LOOP), ex.Method(gradients.Saga(5), LOOP)),
    "Spider restart = n": (ex.Method(gradients.Spider(5, 4, restart=N), LOOP), ex.Method(gradients.Spider(5, 4), LOOP)),
    "Svrg of one long epoch, steps by epoch": (
        ex.Method(gradients.Svrg(5, epoch=1000), steps.EpochOpenLoop()), ex.Method(gradients.Svrg(5, epoch=1000), LOOP),
    ),
    "Decay(2, 2) and Anytime(1)": (ex.SagaSarahFW(step=steps.Decay(2, 2)), ex.SagaSarahFW(step=steps.Anytime(1.0))),
    "MostFW without a second constraint": (ex.MostFW(batch=5), ex.Method(gradients.Storm(5, laws.PowerLaw(2, 2, -1)), LOOP)),
    "RiemannianSFW in flat space": (ex.RiemannianSFW(), ex.SFW()),
    "SVRFW in flat space": (ex.SVRFW(), ex.SVFW()),
    "SVFW from its parts": (ex.SVFW(), ex.Method(gradients.Svrg(TWO_THIRDS, THIRD), steps.InverseSqrt())),
    "Sliding, beta near 0": (ex.Method(gradients.Sarah(5, 0.1), LOOP, sliding(1e-12)), ex.Method(gradients.Sarah(5, 0.1), LOOP)),
    "AcceleratedSliding, gamma = 1": (
        ex.Method(gradients.Sarah(5, 0.1), steps.FullStep(), moves.AcceleratedSliding(2.0, 0.01)),
        ex.Method(gradients.Sarah(5, 0.1), steps.FullStep(), sliding(2.0, 0.01)),
    ),
    "DoubleSliding, alpha = 0 and one beta": (
        ex.Method(gradients.Full(), steps.Decay(1e-300, 1), moves.DoubleSliding(beta=2.0, beta_y=2.0, tol=0.01)),
        ex.Method(gradients.Full(), steps.FullStep(), sliding(2.0, 0.01)),
    ),
    "SCGS b = n is CGS up to beta": (ex.SCGS(L=1.0, batch=N), ex.Method(gradients.Full(), steps.Decay(3, 3), CGS_MOVE)),
    "CGS from its parts": (
        ex.CGS(L=1.0), ex.Method(gradients.Full(), steps.Decay(3, 3), changed(CGS_MOVE, beta=laws.PowerLaw(3.0, 2, -1))),
    ),
    "FCGS from its parts": (
        ex.FCGS(L=1.0), ex.Method(gradients.Spider(ROOT, ROOT), steps.FullStep(), moves.Sliding(beta=3.0, tol=1 / 40)),
    ),
    "FCGS of epochs of 1 is NCGS-VR of epochs of 1": (ex.FCGS(batch=3, epoch=1), ex.NCGSVR(batch=3, epoch=1)),
}  # fmt: skip


@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize("loss", [ex.Logistic(), ex.NonlinearLeastSquares()], ids=repr)
@pytest.mark.parametrize("C", [ex.L1Ball(2.0), ex.L2Ball(2.0)], ids=repr)  # both of diameter 4
def test_special_cases_coincide(name, loss, C):
    one, two = (path(model(loss), C, method, 41, seed=4, horizon=40) for method in SAME[name])
    for a, b in zip(one, two, strict=True):
        np.testing.assert_allclose(a.x, b.x, atol=1e-9, err_msg=f"iterate {a.k}")
    assert np.abs(one[-1].x - one[1].x).max() > 1e-4


def test_spider_for_non_convex_sums_is_made_of_its_parts():
    f, C = model(ex.NonlinearLeastSquares()), ex.L1Ball(2.0)
    one, two = (
        path(f, C, m, 41, horizon=40) for m in (ex.SpiderFW(), ex.Method(gradients.Spider(ROOT, ROOT), steps.InverseSqrt()))
    )  # fmt: skip
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a.x, b.x)


def test_a_pool_that_holds_all_is_the_whole_sum():
    f = model(ex.Logistic())
    for state in path(f, ex.L1Ball(2.0), ex.OnlineFW(batch=25), 20):
        same = np.abs(state.g - f.grad(state.x)).max() <= 1e-15
        assert same == state.exact == (state.k >= 2)


# right in the mean


class Fixed:
    """A sampler that draws what it is told to."""

    def __init__(self, idx, second=None):
        self.idx, self.second = np.array(idx), np.array(idx if second is None else second)

    def rows(self, k, batch, replace=False, stream=0):
        return self.second if stream == SECOND else self.idx

    def fresh(self, k, batch, replace=False):
        return self.idx


def few(kind):
    rows, y = MATRIX[:5], np.array([1.0, -1, 1, 1, -1])
    return ex.LinearModel(ex.Logistic(), rows, y) if kind == "dense" else separable(ex.Logistic(), rows, y)


def mean_over_every_batch(gradient, f, state, b, replace):
    batches = itertools.product(range(5), repeat=b) if replace else itertools.combinations(range(5), b)
    return np.mean([gradient.update(f, 3, A, B, (), state(), Fixed(idx)).g for idx in batches], axis=0)


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("kind", ["dense", "separable"])
@pytest.mark.parametrize("b", [1, 3])
def test_the_mean_over_every_batch(replace, kind, b):
    """The unbiased ones give grad f(x); the others what their formula says, from an estimate that is off."""
    f, off, phase = few(kind), np.linspace(1, 2, DIM), Phase(0, 1, 9)
    table = lambda: SimpleNamespace(g=off, table=tables.DerivativeTable.at(f, W))  # noqa: E731
    plain = lambda: SimpleNamespace(g=off, phase=phase, w=W, gw=f.grad(W))  # noqa: E731
    here, there, rho = f.grad(B), f.grad(A), 0.3
    law, share = laws.PowerLaw(rho, 1, 0), (1 - 0.8**b if replace else b / 5)  # how often a row is in the batch
    wanted = {
        gradients.MiniBatch(b, replace): (plain, here),
        gradients.MiniBatch(laws.PowerLaw(b, 1, 0), replace): (plain, here),
        gradients.Svrg(b, 9, replace): (plain, here),
        gradients.Saga(b, False, replace): (table, here),
        gradients.Saga(b, True, replace): (table, here),
        gradients.Spider(b, 9, replace=replace): (plain, off + here - there),
        gradients.Momentum(b, law, replace): (plain, (1 - rho) * off + rho * here),
        gradients.Storm(b, law, replace): (plain, here + (1 - rho) * (off - there)),
        gradients.Sag(b, replace=replace): (table, (1 - share) * f.grad(W) + share * here),
        gradients.Sag(b, law, replace): (table, (1 - rho * share) * f.grad(W) + rho * share * here),
    }
    for gradient, (state, expected) in wanted.items():
        found = mean_over_every_batch(gradient, f, state, b, replace)
        np.testing.assert_allclose(found, expected, atol=1e-13, err_msg=repr(gradient))


# defects of other libraries


def test_momentum_decays_the_whole_vector_and_copts_variant_the_drawn_entries_only():
    f, idx, rho = model(ex.Logistic()), np.array([4, 7]), 0.25
    law, drawn = laws.PowerLaw(rho, 1, 0), np.zeros(N)
    drawn[idx] = 1
    off = f.grad(W)
    g = gradients.Momentum(2, law).update(f, 0, A, B, (), SimpleNamespace(g=off), Fixed(idx)).g
    np.testing.assert_allclose(g, (1 - rho) * off + rho * f.combine(f.derivs(B, idx), idx), atol=1e-15)
    table = tables.DerivativeTable.at(f, W)
    before = table.c.copy()
    gradients.Sag(2, law).update(f, 0, A, B, (), SimpleNamespace(g=off, table=table), Fixed(idx))
    np.testing.assert_allclose(table.c, before + rho * drawn * (f.derivs(B) - before), atol=1e-15)
    f, C, methods = model(ex.Logistic()), ex.L1Ball(2.0), (ex.MomentumSFW(batch=5), ex.CoptMomentumSFW(batch=5))
    kinds = [ex.minimize(f, C, method=m, max_iter=1).method.gradient for m in methods]
    assert [type(k) for k in kinds] == [gradients.Momentum, gradients.Sag]
    assert kinds[1].rho is not None


@pytest.mark.parametrize("x0", [None, np.linspace(-0.3, 0.2, DIM)])
def test_lu_freund_begins_with_the_gradient(x0):
    """Its first LMO sees grad f(x0), counted, and not g = 0."""
    f, C = model(ex.Logistic()), ex.L1Ball(2.0)
    first, second, *_ = path(f, C, ex.LuFreundSFW(batch=5), 3, x0=x0)
    wanted = f.grad(np.zeros(DIM) if x0 is None else x0)
    np.testing.assert_allclose(first.g, wanted, atol=1e-15)
    (eta, s), = second.point.steps  # fmt: skip
    np.testing.assert_array_equal(s.to_array(), C.lmo(wanted).to_array())
    assert eta == 1.0
    assert first.exact


def test_two_batches_are_two_and_every_stream_covers_all_rows():
    """No row is dropped at the end of an epoch; the table's batch is drawn apart from the estimate's."""
    sampler, b = ex.objectives.Sampler(N, seed=0), 7  # 7 does not divide 60
    streams = {
        "rows": [sampler.rows(k, b) for k in range(1200)],
        "second": [sampler.rows(k, b, stream=SECOND) for k in range(1200)],
        "fresh": [sampler.fresh(k, b) for k in range(1200)],
    }
    for name, batches in streams.items():
        counts = np.bincount(np.concatenate(batches), minlength=N)  # 140 each in the mean, deviation 11
        assert counts.min() > 90, name
        assert counts.max() < 190, name
        assert all(len(set(idx)) == b for idx in batches)
    common = [len(set(i) & set(j)) for i, j in zip(streams["rows"], streams["second"], strict=True)]
    assert np.mean(common) == pytest.approx(b * b / N, abs=0.1)  # as for batches that know nothing of each other
    np.testing.assert_array_equal(np.sort(sampler.order()), np.arange(N))
    assert (sampler.order() != ex.objectives.Sampler(N, seed=1).order()).any()


def test_laws_of_epochs_need_epochs():
    f = model(ex.Logistic())
    with pytest.raises(ex.InputError, match=r"EpochLength\(scale=1\.0\) needs an estimator with epochs"):
        ex.iterate(f, ex.L1Ball(2.0), method=ex.Method(gradients.MiniBatch(laws.EpochLength()), LOOP))
    for make in (gradients.Svrg, gradients.Spider):
        with pytest.raises(ex.InputError, match=rf"`{make.__name__}\(epoch=\.\.\.\)` must be a whole number"):
            make(5, epoch=laws.PowerLaw())


def test_tolerances_go_on_falling_from_epoch_to_epoch():
    """A sub-problem's tolerance of 1/(k + 1) that began anew with each epoch would stall at the length of an epoch."""
    f, C = model(ex.Logistic()), ex.L1Ball(2.0)
    for move in (
        moves.Sliding(beta=0.7, tol=laws.PowerLaw(1, 1, -1)),
        moves.AcceleratedSliding(beta=0.7, tol=laws.PowerLaw(1, 1, -1)),
    ):
        method = ex.Method(gradients.Spider(8, epoch=8), steps.FullStep(), move)
        assert ex.minimize(f, C, method=method, max_iter=400, tol=0, atol=0).gap < 1 / 100
