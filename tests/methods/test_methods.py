"""Contracts over all methods: cost by each docstring's formula, convergence as each card promises, clear refusals."""

from __future__ import annotations

import itertools
import math

import naive_table1 as table1
import numpy as np
import pytest
from cases import DIM, MATRIX, METHODS, N, deviation, for_separable, full, gap, model, separable, slides

import extremal as ex

BALL = ex.L1Ball(2.0)
NAMED = [m for m in METHODS if not isinstance(m, ex.Method)]


def ceil(number: float) -> int:
    return math.ceil(number - 1e-9)


def epochs(length, begin, other):
    """Cost of estimate j: ``begin`` at the start of an epoch, ``other(k, N_t)`` at its iterations k = 2, 3, ..."""
    known = [begin if k == 1 else other(k, n_t) for _, k, n_t in itertools.islice(table1.positions(length), 200)]
    return lambda j: known[j]


def doubling(t):
    return 2**t


def svrf(t):
    return 1 if t == 0 else 2 ** (t + 3) - 2


def storc(t):
    return 1 if t == 0 else ceil(2 ** (t / 2 + 2))


def scgs_batch(k):
    """ceil(sigma^2 (k+2)^3 / (L^2 D^2)), k = 1, 2, ..."""
    L = 0.25 * float(np.linalg.eigvalsh(MATRIX.T @ MATRIX)[-1]) / N
    return ceil((deviation(ex.Logistic(), BALL) / (L * 2 * BALL.radius)) ** 2 * (k + 2) ** 3)


K = 70
SQRT, THIRD, TWO_THIRDS = ceil(N**0.5), ceil(N ** (1 / 3)), ceil(N ** (2 / 3))
COSTS = [  # a method, and the component gradients of its estimate j = 0, 1, ..., by its docstring, on convex f
    (ex.FrankWolfe(), lambda j: N),
    (ex.OnlineFW(), lambda j: min(N, j + 1)),
    (ex.OnlineFW(batch=4), lambda j: min(N, 4 * (j + 1))),
    (ex.SCGS(), lambda j: min(N, scgs_batch(j + 1)) + (N if j == 0 else 0)),  # n for sigma, before the first estimate
    (ex.SCGS(sigma=deviation(ex.Logistic(), BALL)), lambda j: min(N, scgs_batch(j + 1))),
    (ex.SCGS(batch=2), lambda j: min(N, ceil((j + 3) ** 3 / 27 * 2))),
    (ex.CGS(), lambda j: N),
    (ex.SFW(), lambda j: min(N, K)),
    (ex.SFW(batch=7), lambda j: 7),
    (ex.SVFW(), epochs(lambda t: THIRD, N, lambda k, n_t: 2 * TWO_THIRDS)),
    (ex.SVFW(batch=3, epoch=10), epochs(lambda t: 10, N, lambda k, n_t: 6)),
    (ex.SagaFW(), lambda j: 2 * THIRD if j else N),
    (ex.SagaFW(batch=7, two_batches=False), lambda j: 7 if j else N),
    (ex.SVRF(), epochs(svrf, N, lambda k, n_t: 2 * min(N, 96 * (k + 1)))),
    (ex.SVRF(batch=3), epochs(svrf, N, lambda k, n_t: 2 * min(N, 3 + k))),
    (ex.STORC(), epochs(storc, N, lambda k, n_t: 2 * min(N, 900 * n_t))),
    (ex.STORC(batch=3), epochs(storc, N, lambda k, n_t: 2 * min(N, 3 * k))),
    (ex.NCGS(), lambda j: min(N, K)),
    (ex.NCGS(batch=20), lambda j: 20),
    (ex.NCGSVR(), epochs(lambda t: THIRD, N, lambda k, n_t: 2 * TWO_THIRDS)),
    (ex.NCGSVR(batch=5, epoch=9), epochs(lambda t: 9, N, lambda k, n_t: 10)),
    (ex.SpiderFW(), epochs(doubling, N, lambda k, n_t: 2 * min(N, n_t))),
    (ex.SpiderFW(batch=5, epoch=9, step=ex.steps.OpenLoop()), epochs(lambda t: 9, N, lambda k, n_t: 10)),
    (ex.FCGS(), epochs(lambda t: SQRT, N, lambda k, n_t: 2 * SQRT)),
    (ex.MomentumSFW(), lambda j: 1),
    (ex.MomentumSFW(batch=5), lambda j: 5),
    (ex.CoptMomentumSFW(batch=5), lambda j: 5),
    (ex.OneSampleSFW(), lambda j: 2 if j else 1),
    (ex.OneSampleSFW(batch=5), lambda j: 10 if j else 5),
    (ex.NegiarSFW(batch=5), lambda j: 5),
    (ex.LuFreundSFW(batch=5), lambda j: 5 if j else N),
    (ex.MostFW(batch=5), lambda j: 10 if j else 5),
    (ex.RiemannianSFW(), lambda j: min(N, K)),
    (ex.SVRFW(), epochs(lambda t: THIRD, N, lambda k, n_t: 2 * TWO_THIRDS)),
    (ex.SpiderRFW(), epochs(lambda t: SQRT, N, lambda k, n_t: 2 * SQRT)),  # s1 = n <= K
    (ex.SpiderRFW(batch=5, restart=20), epochs(lambda t: 4, 20, lambda k, n_t: 10)),
    (ex.SagaSarahFW(batch=5), lambda j: 10 if j else N),
    (ex.SagaSarahFW(batch=5, start="cold"), lambda j: 10 if j else 1),
    (ex.AwayFW(step=ex.steps.ShortStep()), lambda j: N),
    (ex.PairwiseFW(step=ex.steps.ShortStep()), lambda j: N),
    (ex.BlendedPairwiseFW(step=ex.steps.ShortStep()), lambda j: N),
    (ex.BoostFW(step=ex.steps.ShortStep()), lambda j: N),
    (ex.AwaySFW(), lambda j: min(N, math.ceil(1.1**j - 1e-9))),
    (ex.AwaySFW(batch=5, growth=1.2, pairwise=True), lambda j: min(N, math.ceil(5 * 1.2**j - 1e-9))),
    (ex.VRAwayFW(growth=1.0), epochs(lambda t: SQRT, N, lambda k, n_t: 2 * SQRT)),
    (ex.VRPairwiseFW(5, 4, gradient="sarah", growth=1.0), epochs(lambda t: 4, N, lambda k, n_t: 10)),
    (ex.VRBlendedFW(5, gradient="saga"), lambda j: 5 if j else N),
    (ex.ShuffledSarahFW(batch=5), lambda j: 5 if j < N / 5 or j % -(-N // 5) == 0 else 10),
]


@pytest.mark.parametrize(("method", "cost"), COSTS, ids=lambda v: repr(v) if hasattr(v, "card") else "")
def test_costs_are_those_of_the_docstring(method, cost):
    due = 0
    for state in itertools.islice(ex.iterate(model(ex.Logistic()), BALL, method=method, seed=2, horizon=K), K + 1):
        due += cost(state.k)
        assert (state.calls.grads, state.calls.values, state.calls.certificate) == (due, 0, 0)
        assert state.calls.lmos >= state.k if slides(method) else state.calls.lmos == state.k


def test_every_method_has_its_costs_written_down():
    elsewhere = {ex.SarahFW, ex.FullyCorrectiveFW}  # a coin, test_paper.py; as long as it takes, test_atoms.py
    assert {type(m) for m, _ in COSTS} | elsewhere == {type(m) for m in NAMED}


def test_non_convex_epochs_cost_what_the_docstring_says():
    due, cost = 0, epochs(lambda t: SQRT, N, lambda k, n_t: 2 * SQRT)
    for state in itertools.islice(ex.iterate(model(ex.NonlinearLeastSquares()), BALL, method=ex.SpiderFW()), K):
        due += cost(state.k)
        assert state.calls.grads == due


@pytest.mark.parametrize("T", [1, 9, 59, 200])
def test_batches_as_large_as_the_run_is_long(T):
    """SFW and NCGS: b = T for T iterations, or for T^2 component gradients; at most n. SFW without a budget: t at iteration t."""
    f = model(ex.NonlinearLeastSquares())
    for budget in ({"max_iter": T}, {"max_grads": T * T}):
        for method in (ex.SFW(), ex.NCGS()):
            assert ex.minimize(f, BALL, method=method, tol=0, atol=0, **budget).method.gradient == ex.gradients.MiniBatch(
                min(N, T)
            )
    open_end = itertools.islice(ex.iterate(f, BALL, method=ex.SFW()), T + 1)
    assert [s.calls.grads for s in open_end] == list(np.cumsum(np.minimum(N, np.arange(1, T + 2))))


# what the cards promise


@pytest.mark.parametrize("C", [BALL, ex.Simplex(), ex.L2Ball(1.5)], ids=repr)
@pytest.mark.parametrize("loss", [ex.Logistic(), ex.Squared()], ids=repr)
@pytest.mark.parametrize("method", [m for m in NAMED if m.card.convex], ids=repr)
def test_convex_guarantees(method, loss, C, f_star):
    """400 passes bring f within half a percent of f* of where it started; momentum, with its cube-root rate, within three,
    and the noisy SpiderRFW (0.04 to 0.8 percent over eight seeds) within one.
    """
    r = ex.minimize(model(loss), C, method=method, tol=0, atol=0, max_grads=400 * N, seed=1)
    start, best = full(loss, C.on(DIM).start())[0], f_star(loss, C)
    within = {ex.MomentumSFW: 0.03, ex.SpiderRFW: 0.01}.get(type(method), 5e-3)
    assert -1e-8 <= r.value - best <= within * (start - best)
    assert r.value - best <= r.gap + 1e-15
    assert r.value == pytest.approx(full(loss, r.x)[0], rel=1e-12)


ORDERS = {"n/eps^2": 2, "n + sqrt(n)/eps^2": 2, "n + n^(2/3)/eps^2": 2, "1/eps^3": 3, "1/eps^4": 4}
C = ex.L2Ball(5.0)


def smallest_gap(method, passes, seed):
    f, gaps = model(ex.NonlinearLeastSquares()), []

    def look(state):
        gaps.append(gap(C, state.x, full(ex.NonlinearLeastSquares(), state.x)[1]))

    r = ex.minimize(f, C, method=method, tol=0, atol=0, max_grads=passes * N, seed=seed, callback=look)
    return min(*gaps, r.gap)


@pytest.mark.parametrize("method", [m for m in NAMED if m.card.nonconvex and m.card.nonconvex[0] in ORDERS], ids=repr)
def test_non_convex_guarantees(method):
    """With 16 times the budget the smallest gap falls at least as the card's order says, in the mean."""
    short, long = (np.mean([smallest_gap(method, passes, seed) for seed in range(4)]) for passes in (10, 160))
    assert long <= short / 16 ** (1 / ORDERS[method.card.nonconvex[0]])


# refusals


@pytest.mark.parametrize("kind", sorted({type(m) for m in NAMED if hasattr(m, "batch")}, key=lambda k: k.__name__))
def test_a_batch_above_n_is_refused_by_name(kind):
    f = model(ex.Logistic())
    for call in (ex.minimize, ex.iterate):
        with pytest.raises(ex.InputError, match=rf"`{kind.__name__}\(batch=\.\.\.\)` .* between 1 and {N}, got {N + 1}"):
            call(f, BALL, method=kind(batch=N + 1))
    for bad in (0, 2.5, "5", True):
        with pytest.raises(ex.InputError, match=rf"`{kind.__name__}\(batch=\.\.\.\)` .* whole number of at least 1, got"):
            kind(batch=bad)


def unknown_smoothness():
    inner = separable(ex.Logistic())
    return ex.Separable(N, DIM, grad=inner._grad, value=inner._value, convex=True)


@pytest.mark.parametrize("kind", [ex.CGS, ex.SCGS, ex.STORC, ex.NCGS, ex.NCGSVR, ex.FCGS])
def test_sliding_asks_for_smoothness(kind):
    sigma = {"sigma": 1.0} if kind is ex.SCGS else {}
    with pytest.raises(ex.InputError, match="smoothness"):
        ex.minimize(unknown_smoothness(), BALL, method=kind(**sigma), max_iter=3)
    L = separable(ex.Logistic()).smoothness
    given = ex.minimize(unknown_smoothness(), BALL, method=kind(L=L, **sigma), max_iter=20, tol=0)
    known = ex.minimize(separable(ex.Logistic()), BALL, method=kind(**sigma), max_iter=20, tol=0)
    np.testing.assert_allclose(given.x, known.x, atol=1e-10)
    for bad in (0, -1.0, math.nan, "1"):
        with pytest.raises(ex.InputError, match=r"\(L=\.\.\.\)` must be a positive"):
            ex.minimize(model(ex.Logistic()), BALL, method=kind(L=bad), max_iter=3)


def test_scgs_asks_for_sigma_where_there_are_no_data():
    f = separable(ex.Logistic())
    with pytest.raises(ex.InputError, match=r"`SCGS\(sigma=\.\.\.\)` must be given.*deviation of a component gradient"):
        ex.minimize(f, BALL, method=ex.SCGS())
    ex.minimize(f, BALL, method=ex.SCGS(batch=1), max_iter=3)  # the practical batches need none
    by_hand = for_separable(ex.SCGS(), ex.Logistic(), BALL)
    one, two = (ex.minimize(g, BALL, method=by_hand, max_iter=9, tol=0) for g in (f, model(ex.Logistic())))
    three = ex.minimize(model(ex.Logistic()), BALL, method=ex.SCGS(), max_iter=9, tol=0)
    assert one.calls.grads == two.calls.grads == three.calls.grads - N  # sigma is estimated from all components
    np.testing.assert_allclose(one.x, three.x, atol=1e-10)
    for bad in (0, -1.0, math.nan, "1"):
        with pytest.raises(ex.InputError, match=r"`SCGS\(sigma=\.\.\.\)` must be a positive"):
            ex.minimize(f, BALL, method=ex.SCGS(sigma=bad))


@pytest.mark.parametrize("method", NAMED, ids=repr)
def test_degenerate_problems(method):
    """Data that are all zero, and a set that is a point: nothing divides by zero, and the loop goes on."""
    if getattr(method, "batch", None) not in (None, 1, 2, 3):
        method = type(method)(batch=3)
    flat = ex.LinearModel(ex.Squared(), np.zeros((5, 2)), np.arange(5.0))
    point = ex.LinearModel(ex.Squared(), [[2.0], [1.0], [0.5]], [1.0, 3.0, -1.0])
    for f, C in ((flat, BALL), (flat, ex.L2Ball(1e-200)), (point, ex.Simplex())):
        *_, state = itertools.islice(ex.iterate(f, C, method=method), 6)
        assert state.k == 5
        assert C.contains(state.x, 1e-12)
        assert state.certify().gap == 0.0
