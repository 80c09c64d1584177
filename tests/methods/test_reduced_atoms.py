"""Stochastic away, pairwise and blended steps: the algorithms written out, and each step of Theorems D and E."""

from __future__ import annotations

import math
from itertools import combinations, islice, pairwise

import numpy as np
import pytest

import extremal as ex
from extremal.gradients.base import PlainEstimate
from extremal.moves.atoms import AtomsPoint
from extremal.objectives.base import Sampler
from extremal.points import ActiveSet, Coordinate

RNG = np.random.default_rng(7)
N, D = 80, 5
A = RNG.standard_normal((N, D))
TRUTH = np.array([0.6, 0.3, 0.1, 0.0, 0.0])
Y = A @ TRUTH + 0.3 * RNG.standard_normal(N)
F, C = ex.LinearModel(ex.Squared(), A, Y), ex.Simplex()
H = A.T @ A / N
MU, L = np.linalg.eigvalsh(H)[[0, -1]]
SINGLE = np.square(A).sum(axis=1).max()  # the largest L_i
WIDTH = 2 / math.sqrt(D - 1 / D)  # the pyramidal width of the unit simplex in an odd dimension
RATE = MU * WIDTH**2 / (16 * L * 2)
BEST = ex.minimize(F, C, tol=1e-14).value
SEEDS = pytest.mark.parametrize("seed", range(3))
BOTH = pytest.mark.parametrize("move", [ex.moves.Away(), ex.moves.BlendedPairwise()], ids=repr)


def slope(x, idx=slice(None)):
    """The mean gradient of some rows."""
    rows = A[idx]
    return rows.T @ (rows @ x - Y[idx]) / len(rows)


def height(x):
    """f."""
    return float(np.square(A @ x - Y).mean() / 2)


# the algorithms, written out: over the simplex the atoms are the support


def atoms_step(x, g, kind):
    """x after an away, pairwise or blended step of the unit simplex, of length min(1, gap / (L |d|^2))."""
    held, s = np.flatnonzero(x > 1e-12), np.eye(D)[g.argmin()]
    i, j = held[g[held].argmax()], held[g[held].argmin()]
    worst, best = np.eye(D)[i], np.eye(D)[j]
    if kind == "away":
        away = len(held) > 1 and g @ (worst - x) > g @ (x - s)
        d = x[i] / (1 - x[i]) * (x - worst) if away else s - x
    elif kind == "pairwise":
        d = s - x if g.argmin() == i else x[i] * (s - worst)
    else:
        d = x[i] * (best - worst) if i != j and g @ (worst - best) >= g @ (x - s) else s - x
    gap, bend = -g @ d, L * d @ d
    return x + (min(1.0, gap / bend) if gap > 0 else 0.0) * d


def growing(T, seed, kind, b, growth):
    sampler, x, path = Sampler(N, seed), np.eye(D)[0], []
    for k in range(T):
        size = min(N, math.ceil(b * growth**k - 1e-9))
        x = atoms_step(x, slope(x, sampler.fresh(k, size) if size < N else slice(None)), kind)
        path.append(x)
    return path


def in_stages(T, seed, kind, b, m, growth):
    sampler, x, path = Sampler(N, seed), np.eye(D)[0], []
    for k in range(T):
        stage, place = divmod(k, m)
        if place == 0:
            w, g = x, slope(x)
        else:
            size = min(N, math.ceil(b * growth**stage - 1e-9))
            idx = (sampler.rows if growth == 1.0 else sampler.fresh)(k - 1, size)
            g = slope(x, idx) - slope(w, idx) + slope(w)
        x = atoms_step(x, g, kind)
        path.append(x)
    return path


def follows(method, path, seed):
    states = ex.iterate(F, C, method, seed=seed, x0=ActiveSet.at(Coordinate(0, 1.0, (D,))))
    next(states)
    for k, x in enumerate(path):
        np.testing.assert_allclose(next(states).x, x, rtol=0, atol=1e-8, err_msg=f"iteration {k}")


@SEEDS
@pytest.mark.parametrize("kind", ["away", "pairwise"])
@pytest.mark.parametrize("growth", [1.0, 1.1])
def test_growing_batches_are_those_of_the_algorithm_written_out(kind, growth, seed):
    follows(ex.AwaySFW(4, growth=growth, pairwise=kind == "pairwise"), growing(60, seed, kind, 4, growth), seed)


@SEEDS
@pytest.mark.parametrize(("make", "kind"), [
    (ex.VRAwayFW, "away"), (ex.VRPairwiseFW, "pairwise"), (ex.VRBlendedFW, "blended"),
    (lambda *a, **o: ex.VRBlendedFW(*a, in_faces=True, **o), "blended"),
])  # fmt: skip
@pytest.mark.parametrize("growth", [1.0, 1.5])
def test_stages_are_those_of_the_algorithm_written_out(make, kind, growth, seed):
    follows(make(6, 8, growth=growth), in_stages(50, seed, kind, 6, 8, growth), seed)


def test_the_estimators_are_those_that_the_name_says():
    def parts(method):
        return method.prepare(F, C.on(D), ex.methods.Budget()).gradient

    m, b = 9, 9  # ceil(sqrt 80)
    grows = ex.gradients.Svrg(ex.laws.Geometric(b, 1.05), ex.laws.Doubling(m, 1.0, first=None))
    assert parts(ex.VRAwayFW()) == grows
    assert parts(ex.VRAwayFW(growth=1)) == ex.gradients.Svrg(b, m)
    assert parts(ex.VRPairwiseFW(gradient="sarah", epoch=4, growth=1)) == ex.gradients.Spider(b, 4)
    assert parts(ex.VRBlendedFW(7, gradient="saga")) == ex.gradients.Saga(7)
    assert parts(ex.AwaySFW()) == ex.gradients.MiniBatch(ex.laws.Geometric(1, 1.1))


@pytest.mark.parametrize(
    "method", [ex.AwaySFW(3, growth=1.2), ex.VRAwayFW(3, 5, growth=1.5), ex.VRBlendedFW(3, 5, growth=1.0)], ids=repr
)
def test_counts(method):
    T, states = 30, list(islice(ex.iterate(F, C, method), 31))
    if isinstance(method, ex.AwaySFW):
        wanted = sum(min(N, math.ceil(3 * 1.2**k - 1e-9)) for k in range(T + 1))
    else:
        wanted = sum(N if k % 5 == 0 else 2 * min(N, math.ceil(3 * method.growth ** (k // 5) - 1e-9)) for k in range(T + 1))
    assert states[-1].calls.grads == wanted
    facts = method.prepare(F, C.on(D), ex.methods.Budget()).gradient.facts(N)
    spent = facts.per_step if callable(facts.per_step) else lambda k: facts.per_step
    assert facts.start + sum(spent(k) for k in range(T)) == pytest.approx(wanted)


# each step of the theorems


class Whole:
    """The set as a run sees it: its oracle."""

    lmo = staticmethod(C.on(D).lmo)


def at(x):
    """A point of the unit simplex with its atoms."""
    held = np.flatnonzero(x)
    atoms = ActiveSet(tuple(Coordinate(int(i), 1.0, (D,)) for i in held), x[held])
    return AtomsPoint(x, x, active=atoms)


@SEEDS
@BOTH
def test_a_step_with_an_error_keeps_the_recursion(move, seed):
    """h+ <= (1 - rho) h + (5/4) |e|^2 / L, and h + 2 |e|^2 / L if an atom is dropped."""
    rng, step, kinds = np.random.default_rng(seed), ex.steps.ShortStep(L), [0, 0]
    for _ in range(400):
        x = rng.dirichlet(np.full(D, 0.4)) * (rng.random(D) < 0.7)
        if x.sum() < 1e-3 or (x[x > 0] / x.sum()).min() < 1e-6:
            continue
        point = at(x / x.sum())
        e = rng.standard_normal(D) * 10.0 ** rng.uniform(-4, 1)
        new = move.advance(0, F, Whole, point, PlainEstimate(slope(point.x) + e, False), step)
        h, then, error = height(point.x) - BEST, height(new.x) - BEST, e @ e / L
        dropped = len(new.atoms) < len(point.atoms) and len(new.atoms) > 1
        kinds[dropped] += 1
        assert then <= (h + 2 * error if dropped else (1 - RATE) * h + 1.25 * error) + 1e-14
    assert min(kinds) > 10


@SEEDS
@BOTH
def test_half_of_the_steps_drop_no_atom(move, seed):
    states = ex.iterate(F, C, ex.Method(ex.gradients.MiniBatch(5), ex.steps.ShortStep(), move), seed=seed, x0=np.eye(D)[0])
    sizes = [len(s.point.atoms) for s in islice(states, 200)]
    drops = np.cumsum(np.diff(sizes) < 0)
    assert (drops <= np.arange(1, 200) / 2).all()
    assert drops[-1] > 5


@SEEDS
def test_the_error_of_a_stage_is_bounded_by_both_heights(seed):
    """E |e|^2 <= (4 max L_i / b) (h(x) + h(w)), for every batch of a small problem."""
    rng, n, b = np.random.default_rng(seed), 7, 3
    rows, y = A[:n], Y[:n]
    f = ex.LinearModel(ex.Squared(), rows, y)
    best = ex.minimize(f, C, tol=1e-14).value
    single = np.square(rows).sum(axis=1).max()
    for _ in range(50):
        x, w = rng.dirichlet(np.full(D, 0.5), 2)
        change = rows * (rows @ (x - w))[:, None]
        errors = [np.square(change[list(S)].mean(axis=0) - change.mean(axis=0)).sum() for S in combinations(range(n), b)]
        heights = sum(np.square(rows @ v - y).mean() / 2 - best for v in (x, w))
        assert np.mean(errors) <= 4 * single / b * heights + 1e-14


def test_growing_batches_keep_the_bound_of_theorem_d():
    """The mean of f - f* over seeds, at every iteration."""
    b, growth, T = 4, 1.05, 80
    corners = np.eye(D)
    noise = max(np.square(A * (A @ v - Y)[:, None] - slope(v)).sum(axis=1).mean() for v in corners)  # convex in x: at a corner
    runs = [[height(x) - BEST for x in growing(T, seed, "away", b, growth)] for seed in range(20)]
    r, q = 1 - RATE, 1 / growth
    K = np.arange(1, T + 1)
    bound = r ** (K / 2) * (height(corners[0]) - BEST) + 2 * noise / (L * b) * max(r, q) ** (K / 2 - 1) * (K / 2 + 1 / (1 - q))
    assert (np.mean(runs, axis=0) <= bound).all()
    assert np.mean(runs, axis=0)[-1] < 1e-3 * np.mean(runs, axis=0)[0]


@pytest.mark.parametrize("make", [ex.VRAwayFW, ex.VRBlendedFW])
def test_stages_halve_the_distance_with_far_smaller_batches_than_theorem_e_asks(make):
    rng, n = np.random.default_rng(0), 20_000
    rows = rng.standard_normal((n, 2))
    f = ex.LinearModel(ex.Squared(), rows, rows @ [0.6, 0.4] + rng.standard_normal(n))
    mu, smooth = np.linalg.eigvalsh(rows.T @ rows / n)[[0, -1]]
    m = 2 + math.ceil(2.1 / (mu * 2.0 / (16 * smooth * 2)))  # the width of a segment is its length, sqrt 2
    assert 128 * np.square(rows).sum(axis=1).max() / smooth * m > n  # the theorem speaks of far larger sums
    best, heights = ex.minimize(f, C, tol=1e-14).value, []
    for s in islice(ex.iterate(f, C, make(n // 20, m, growth=1.0), x0=np.array([0.0, 1.0])), 3 * m + 1):
        if s.k % m == 0:
            heights.append(f.value(s.x) - best)
    assert all(then <= h / 2 + 1e-13 for h, then in pairwise(heights))


@pytest.mark.parametrize("make", [ex.VRAwayFW, ex.VRPairwiseFW, ex.VRBlendedFW], ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("options", [{"growth": 1.0}, {"gradient": "sarah"}, {"batch": 3, "growth": 1.2}], ids=str)
def test_stages_converge_linearly(make, options):
    """log (f - f*) falls along a line over stages of 9 iterations."""
    stages = np.zeros(26)
    for seed in range(3):
        states = ex.iterate(F, C, make(epoch=9, **options), seed=seed, x0=np.eye(D)[4])
        stages += [math.log(max(height(s.x) - BEST, 1e-15)) for s in islice(states, 0, 226, 9)]
    used = stages[: int((stages > 3 * math.log(1e-12)).sum())] / 3
    rate, at_first = np.polyfit(np.arange(len(used)), used, 1)
    assert len(used) >= 6
    assert rate < -0.3
    assert np.abs(used - at_first - rate * np.arange(len(used))).max() < 0.35 * (used[0] - used[-1])


@pytest.mark.parametrize(("make", "match"), [
    (lambda: ex.AwaySFW(growth=0.9), "AwaySFW.*growth.*at least 1"), (lambda: ex.AwaySFW(0), "AwaySFW.*batch"),
    (lambda: ex.AwaySFW(N + 1), "AwaySFW.*batch"), (lambda: ex.VRAwayFW(epoch=0), "VRAwayFW.*epoch"),
    (lambda: ex.VRPairwiseFW(gradient="storm"), "unknown gradient.*saga, sarah, svrg"),
    (lambda: ex.VRAwayFW(growth=0.5), "VRAwayFW.*growth"),
    (lambda: ex.VRBlendedFW(gradient="saga", epoch=3), "no stages: leave out epoch and growth"),
    (lambda: ex.VRBlendedFW(gradient="saga", growth=2.0), "no stages: leave out epoch and growth"),
    (lambda: ex.VRBlendedFW(in_faces=3), "in_faces"), (lambda: ex.VRBlendedFW(N + 1), "VRBlendedFW.*batch"),
])  # fmt: skip
def test_bad_arguments_are_named(make, match):
    with pytest.raises(ex.InputError, match=match):
        ex.minimize(F, C, make(), max_iter=2)
