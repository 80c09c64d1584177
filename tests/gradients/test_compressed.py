"""Workers that send compressed estimates: EF21 and MARINA against their formulas, their bounds and an independent count."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from cases import DIM, MATRIX, N, model, separable, targets

import extremal as ex
from extremal.objectives.base import GRADIENT_NOISE, SYNCS

G = ex.gradients
R = 2.0
BALL = ex.L1Ball(R)
A, Y = MATRIX, targets(ex.Logistic())
LAZY = {"tol": 0, "atol": 0}
ESTIMATORS = (
    G.Full(), G.Sarah(3, 0.3), G.SagaSarah(3, 0.1), G.Saga(3), G.Sag(3), G.Momentum(3), G.Storm(3), G.Svrg(3, 5),
    G.Spider(3, 4), G.Pool(2), G.ShuffledSarah(3), G.Reshuffled(G.Saga(3)), G.ZerothOrder(G.Full(), mu=1e-4),
)  # fmt: skip


def states(method, count, f=None, seed=0, C=BALL):
    return list(itertools.islice(ex.iterate(f or model(ex.Logistic()), C, method=method, seed=seed), count))


def cuts(m):
    return [N * i // m for i in range(m + 1)]


def slope(x, i, m):
    """The gradient of f_i, m/n times the sum over the rows of worker i."""
    rows = slice(cuts(m)[i], cuts(m)[i + 1])
    return A[rows].T @ (-Y[rows] / (1 + np.exp(Y[rows] * (A[rows] @ x)))) * m / N


def corner(g):
    s = np.zeros(DIM)
    j = np.abs(g).argmax()
    s[j] = -R * np.sign(g[j])
    return s


def top(v, k):
    out = np.zeros_like(v)
    at = np.argsort(-np.abs(v), kind="stable")[:k]
    out[at] = v[at]
    return out


def some(v, k, rng):
    """k random entries times d/k, of the generator that workers are documented to have."""
    out = np.zeros_like(v)
    at = rng.choice(v.size, k, replace=False)
    out[at] = v[at] * v.size / k
    return out


def own_draws(seed, i, k, stream=GRADIENT_NOISE):
    return np.random.default_rng((seed, i, stream, k))


def ef21(m, K, send):
    """EF21 with full gradients, line by line; ``send(v, i, k)`` is C(v)."""
    x, kept, out = np.zeros(DIM), np.zeros((m, DIM)), []
    for k in range(K):
        kept = kept + np.array([send(slope(x, i, m) - kept[i], i, k) for i in range(m)])
        g = kept.mean(axis=0)
        out.append((x, g))
        x = x + 2 / (k + 2) * (corner(g) - x)
    return out


def marina(m, K, p, k_, seed):
    x, out, g, old = np.zeros(DIM), [], None, None
    for k in range(K):
        y = np.array([slope(x, i, m) for i in range(m)])
        whole = g is None or own_draws(seed, 0, k, SYNCS).random() < p
        g = y.mean(axis=0) if whole else g + np.mean([some(y[i] - old[i], k_, own_draws(seed, i, k)) for i in range(m)], axis=0)
        out.append((x, g))
        x, old = x + 2 / (k + 2) * (corner(g) - x), y
    return out


@pytest.mark.parametrize("m", [1, 4, 7])
def test_error_feedback_is_its_formulas(m):
    """Also with parts of unequal size: 60 rows, 7 workers."""
    for C, send in (
        (G.TopK(2), lambda v, i, k: top(v, 2)),
        (G.RandomK(3), lambda v, i, k: some(v, 3, own_draws(4, i, k)) * 3 / DIM),
    ):
        wanted = ef21(m, 60, send)
        for f in (model(ex.Logistic()), model(ex.Logistic(), "csr"), separable(ex.Logistic())):
            for state, (x, g) in zip(states(ex.EF21FW(C, m), 60, f, seed=4), wanted, strict=True):
                np.testing.assert_allclose(state.x, x, atol=1e-10)
                np.testing.assert_allclose(state.g, g, atol=1e-10)


@pytest.mark.parametrize("m", [1, 4, 7])
def test_marina_is_its_formulas(m):
    wanted = marina(m, 60, 0.2, 2, seed=5)
    for f in (model(ex.Logistic()), separable(ex.Logistic())):
        for state, (x, g) in zip(states(ex.MarinaFW("random-2", m, p=0.2), 60, f, seed=5), wanted, strict=True):
            np.testing.assert_allclose(state.x, x, atol=1e-10)
            np.testing.assert_allclose(state.g, g, atol=1e-10)


@pytest.mark.parametrize(
    "method", [ex.EF21FW("none"), ex.EF21FW(f"top-{DIM}"), ex.MarinaFW("none"), ex.MarinaFW("random-1", p=1.0)], ids=repr
)
def test_whole_vectors_are_frank_wolfe(method):
    for a, b in zip(states(method, 60), states(ex.FrankWolfe(step=ex.steps.OpenLoop()), 60), strict=True):
        np.testing.assert_allclose(a.x, b.x, atol=1e-12)


def mean_smoothness(m):
    """(1/m) sum_i L_i."""
    parts = [A[a:b] for a, b in itertools.pairwise(cuts(m))]
    return np.mean([np.linalg.norm(part, 2) ** 2 / 4 * m / N for part in parts])


@pytest.mark.parametrize(("m", "k"), [(1, 1), (4, 2), (5, 6)])
def test_errors_contract_and_values_obey_the_bound(m, k):
    """docs/compression.md: e_t <= q (e_{t-1} + Lm D eta_{t-1}), and the rate that follows."""
    q, Lm, D = math.sqrt(1 - k / DIM), mean_smoothness(m), 2 * R
    L, run = np.linalg.norm(A, 2) ** 2 / (4 * N), states(ex.EF21FW(G.TopK(k), m), 300)
    error = [np.mean([np.linalg.norm(s.estimate.states[i].kept - slope(s.x, i, m)) for i in range(m)]) for s in run]
    for t in range(1, 300):
        assert error[t] <= q * (error[t - 1] + Lm * D * 2 / (t + 1)) * (1 + 1e-9)
        assert np.linalg.norm(run[t].g - np.mean([one.kept for one in run[t].estimate.states], axis=0)) < 1e-12
    first, c = np.mean([np.linalg.norm(slope(run[0].x, i, m)) for i in range(m)]), q / (1 - q)
    least, f = ex.minimize(model(ex.Logistic()), BALL, tol=1e-9).value, model(ex.Logistic())
    for t in range(1, 300):
        moved = 2 * Lm * D * (t * c + math.log(t + 1) * c**2) + q * first / (1 - q) ** 2
        assert f.value(run[t].x) - least <= 2 * L * D**2 / (t + 1) + 2 * D * moved / (t * (t + 1))


def test_marina_errs_no_more_than_its_bound():
    """Means over seeds: E|g - grad f|^2 <= sum_s (1 - p)^(t - s) (omega / m) L_2^2 D^2 eta_s^2."""
    m, p, k, seeds, D = 4, 0.25, 2, 40, 2 * R
    parts = [A[a:b] for a, b in itertools.pairwise(cuts(m))]
    squares = np.mean([(np.linalg.norm(part, 2) ** 2 / 4 * m / N) ** 2 for part in parts])
    error, value, f = np.zeros(40), np.zeros(40), model(ex.Logistic())
    for seed in range(seeds):
        run = states(ex.MarinaFW(G.RandomK(k), m, p=p), 40, seed=seed)
        error += [np.sum((s.g - f.grad(s.x)) ** 2) / seeds for s in run]
        value += [f.value(s.x) / seeds for s in run]
    omega, bound, least = DIM / k - 1, 0.0, ex.minimize(f, BALL, tol=1e-9).value
    assert error[0] < 1e-24
    for t in range(1, 40):
        bound = (1 - p) * (bound + omega / m * squares * D**2 * (2 / (t + 1)) ** 2)
        assert error[t] <= bound
        noise = 2 * math.sqrt(squares * omega / m * (2 / p + 3 / (p**3 * t)))
        assert value[t] - least <= 2 * D**2 / (t + 1) * (np.linalg.norm(A, 2) ** 2 / (4 * N) + noise)
    assert (error[1:] > 1e-12).all()


@dataclass(frozen=True)
class Witness(G.RandomK):
    """Counts what passes through it."""

    seen: list = field(default_factory=list, compare=False)

    def compress(self, v, rng):
        message = super().compress(v, rng)
        self.seen.append((np.frombuffer(message.payload[: 4 * message.numbers], "<i4").size, len(message.payload)))
        return message


@pytest.mark.parametrize("inner", [G.Full(), G.Sarah(3, 0.3)], ids=["full", "sarah"])
def test_numbers_and_bytes_are_those_of_the_messages(inner):
    for m in (1, 4):
        C = Witness(3)
        r = ex.minimize(model(ex.Logistic()), BALL, ex.EF21FW(C, m, inner), max_iter=30, **LAZY)
        assert (r.calls.numbers, r.calls.bytes) == tuple(map(sum, zip(*C.seen, strict=True))) == (31 * m * 3, 31 * m * 36)
        C = Witness(3)
        r = ex.minimize(model(ex.Logistic()), BALL, ex.MarinaFW(C, m, inner, p=0.2), max_iter=30, seed=2, **LAZY)
        whole = 1 + sum(own_draws(2, 0, k, SYNCS).random() < 0.2 for k in range(1, 31))
        assert 1 < whole < 31
        assert len(C.seen) == m * (31 - whole)
        assert (r.calls.numbers, r.calls.bytes) == (
            3 * len(C.seen) + whole * m * DIM, sum(size for _, size in C.seen) + whole * m * 8 * DIM
        )  # fmt: skip


def test_nothing_is_sent_by_others_and_wrappers_count_too():
    f = model(ex.Logistic())
    for method in (ex.FrankWolfe(), ex.SarahFW(), ex.NewtonFW()):
        calls = ex.minimize(f, BALL, method, max_iter=5).calls
        assert (calls.numbers, calls.bytes) == (0, 0)
    inner = G.EF21(G.Full(), G.TopK(2), workers=3)
    penalised = G.Penalised(inner, G=np.ones((1, DIM)), upper=9.0)
    for gradient in (inner, G.ZerothOrder(inner, mu=1e-4), penalised, G.Reshuffled(inner)):
        r = ex.minimize(f, BALL, ex.Method(gradient, ex.steps.OpenLoop()), max_iter=9, **LAZY)
        assert (r.calls.numbers, r.calls.bytes) == (10 * 3 * 2, 10 * 3 * 24)
        assert r.calls.grads == 10 * N
    nested = ex.Method(G.EF21(inner, G.TopK(1), workers=2), ex.steps.OpenLoop())
    assert ex.minimize(f, BALL, nested, max_iter=9, **LAZY).calls.bytes == 10 * 2 * (3 * 24 + 12)


@pytest.mark.parametrize("inner", ESTIMATORS, ids=repr)
@pytest.mark.parametrize(
    "wrap", [lambda g: G.EF21(g, G.TopK(4)), lambda g: G.Marina(g, G.Natural(), p=0.2)], ids=["ef21", "marina"]
)
def test_workers_may_run_any_estimator(inner, wrap):
    gradient = wrap(inner)
    facts, run = gradient.facts(N), states(ex.Method(gradient, ex.steps.OpenLoop()), 301)
    cost = facts.per_step if callable(facts.per_step) else lambda k: facts.per_step
    spent = facts.start + sum(cost(k) for k in range(300))
    assert run[-1].calls.grads == (pytest.approx(spent, rel=0.2) if isinstance(inner, G.Sarah) else pytest.approx(spent))
    assert run[-1].measure()[1] < 0.25 * run[0].measure()[1]
    assert not any(state.exact for state in run)
    assert all(BALL.contains(state.x, 1e-12) for state in run)


def test_workers_with_passes_draw_every_row_once():
    seen = []
    f = separable(ex.Logistic())
    derivs = f.derivs
    f.derivs = lambda x, idx=None: (seen.append(np.array(idx)), derivs(x, idx))[1]
    states(ex.Method(G.EF21(G.Reshuffled(G.Sag(3)), G.TopK(2), workers=4), ex.steps.OpenLoop()), 5, f)
    assert sorted(np.concatenate(seen).tolist()) == list(range(N))  # 5 batches of 3 rows for each of 4 workers


@pytest.mark.parametrize(
    "method", [ex.EF21FW("random-2"), ex.MarinaFW("natural"), ex.EF21FW(batch=3), ex.MarinaFW(batch=3)], ids=repr
)
def test_same_seed_same_result(method):
    one, two, other = (ex.minimize(model(ex.Logistic(), "csr"), BALL, method, seed=s, max_iter=40, **LAZY) for s in (3, 3, 4))
    np.testing.assert_array_equal(one.x, two.x)
    assert (one.x != other.x).any()


def test_named_methods_are_their_parts():
    f = model(ex.Logistic())
    for named, gradient in (
        (ex.EF21FW(), G.EF21(G.Full(), G.TopK(1), 4)),
        (ex.EF21FW("natural", 5, G.Saga(2)), G.EF21(G.Saga(2), G.Natural(), 5)),
        (ex.EF21FW(batch=5, workers=6), G.EF21(G.Sarah(5, 0.5), G.TopK(1), 6)),
        (ex.MarinaFW(), G.Marina(G.Full(), G.RandomK(1), 12 / 64, 4)),
        (ex.MarinaFW("natural", p=0.5), G.Marina(G.Full(), G.Natural(), 0.5, 4)),
        (ex.MarinaFW("none"), G.Marina(G.Full(), G.NoCompression(), 1.0, 4)),
    ):
        setup = ex.minimize(f, BALL, named, max_iter=1).method
        assert setup.gradient == gradient
        assert setup.step == ex.steps.OpenLoop()
    setup = ex.minimize(model(ex.NonlinearLeastSquares()), BALL, ex.EF21FW(), max_iter=4).method
    assert isinstance(setup.step, ex.steps.InverseSqrt)


def test_on_a_non_convex_sum_the_smallest_gap_falls():
    f = model(ex.NonlinearLeastSquares())
    for method in (ex.EF21FW("top-2", step=ex.steps.OpenLoop()), ex.MarinaFW("random-2", step=ex.steps.OpenLoop())):
        gaps = [state.measure()[1] for state in states(method, 600, f)[::10]]
        assert min(gaps) < 0.05 * gaps[0]


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: G.EF21(G.Full(), G.TopK(2), workers=0), r"`EF21\(workers=...\)`"),
        (lambda: G.EF21(G.Full, G.TopK(2)), r"`EF21\(gradient=...\)`"),
        (lambda: G.Marina(G.Full(), G.TopK(2), 0.5), r"`Marina\(compressor=...\)` must be unbiased, .* got TopK"),
        (lambda: ex.MarinaFW("top-2"), r"`Marina\(compressor=...\)` must be unbiased"),
        (lambda: G.Marina(G.Full(), G.Natural(), 0.0), r"`Marina\(p=...\)`"),
        (lambda: ex.MarinaFW(p=1.5), r"`MarinaFW\(p=...\)`"),
        (lambda: G.Marina(G.MiniBatch(5), G.Natural(), 0.5), "Marina cannot run MiniBatch.*do not vanish"),
        (lambda: G.Marina(G.Reshuffled(G.MiniBatch(5)), G.Natural(), 0.5), "Marina cannot run MiniBatch"),
        (lambda: G.EF21(G.Substitute(5), G.Natural()), "EF21 cannot run Substitute, which follows the one vertex"),
        (lambda: G.EF21(G.TrackedSag(5), G.Natural()), "EF21 cannot run TrackedSag, which needs all rows"),
        (lambda: G.EF21(G.Saga(5, curved=True), G.Natural()), "EF21 cannot run Saga, which needs all rows"),
        (lambda: G.EF21(G.Growing(), G.Natural()), "EF21 cannot run Growing"),
        (lambda: G.EF21(G.Saga(16), G.Natural()), "between 1 and 15"),
        (lambda: ex.EF21FW(workers=N + 1), "at most one worker per component, got 61 for 60"),
        (lambda: ex.EF21FW(batch=16), r"`EF21FW\(batch=...\)` .*between 1 and 15"),
        (lambda: ex.EF21FW(batch=5, gradient=G.Saga(5)), r"`EF21FW\(batch=...\)` is the batch of Sarah"),
        (lambda: ex.EF21FW(gradient=G.Saga), r"`EF21FW\(gradient=...\)`"),
        (lambda: ex.EF21FW(step=3), r"`EF21FW\(step=...\)`"),
        (lambda: ex.Method(G.EF21(G.Full(), "top-2"), ex.steps.TwoPhase()), "TwoPhase"),
    ],
)
def test_what_cannot_be_is_refused(make, match):
    with pytest.raises(ex.InputError, match=match):
        run_of(make())


def run_of(given):
    method = given if hasattr(given, "prepare") else ex.Method(given, ex.steps.OpenLoop())
    return ex.minimize(model(ex.Logistic()), BALL, method, max_iter=1)


def test_on_a_curved_manifold_they_are_refused():
    C = ex.LoewnerInterval(np.eye(2), 3 * np.eye(2))
    f = ex.KarcherMean(np.stack([np.eye(2) * c for c in (1.0, 2.0, 3.0)]))
    with pytest.raises(ex.InputError, match="transport"):
        ex.minimize(
            f,
            C,
            ex.Method(G.EF21(G.Full(), G.TopK(2), 2), ex.steps.OpenLoop(), ex.moves.GeodesicMove(ex.points.SPD())),
            max_iter=2,
        )


def test_matrices_are_vectors_to_compressors():
    rng = np.random.default_rng(0)
    W = rng.standard_normal((DIM, 3))
    f = ex.LinearModel(ex.MultiTask(ex.Squared(), 3), A, A @ W / 4)
    for C in (ex.L1Ball(3.0), ex.NuclearBall(3.0)):
        r = ex.minimize(f, C, ex.EF21FW("top-6"), max_iter=300, **LAZY)
        assert r.x.shape == (DIM, 3)
        assert r.calls.bytes == 301 * 4 * 72
        assert r.gap < 0.05 * ex.minimize(f, C, ex.FrankWolfe(), max_iter=0).gap


@pytest.mark.parametrize("method", ["ef21-fw", "marina-fw"])
def test_gradients_at_observed_entries_are_sent_as_vectors(method):
    rows, columns = np.divmod(np.arange(0, 108, 2), 9)
    f = ex.LinearModel(ex.Squared(), ex.Entries(rows, columns, (12, 9)), np.sin(np.arange(54.0)))
    r = ex.minimize(f, ex.NuclearBall(3.0), method, max_iter=60, tol=0)
    assert r.gap < 0.2 * ex.minimize(f, ex.NuclearBall(3.0), method, max_iter=1, tol=0).gap
