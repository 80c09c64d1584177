"""Corrective steps over the factors: certificates, agreement with projected gradients, ranks, radii, float types, counts."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import extremal as ex
from extremal import InputError, NuclearBall
from extremal.moves.low_rank.factors import Decomposition, FactorProblem, descend_factors
from extremal.points import FactoredMatrix
from extremal.sets.spectral.lanczos import ritz


def completion(loss=None, shape=(30, 40), count=500, rank=2, noise=0.1, seed=0):
    """Some entries of a matrix of low rank, and its nuclear norm."""
    rng = np.random.default_rng(seed)
    m, n = shape
    truth = rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n))
    rows, cols = np.divmod(rng.choice(m * n, count, replace=False), n)
    y = truth[rows, cols] + noise * rng.standard_normal(count)
    loss = loss or ex.Squared()
    if loss.labels is not None:
        y = np.where(y > 0, loss.labels[1], loss.labels[0])
    return ex.LinearModel(loss, ex.Entries(rows, cols, shape), y), float(np.linalg.norm(truth, "nuc"))


def weights(loss, d=15, k=6, n=200, seed=0):
    """A model with k outputs, of which two directions matter."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d))
    Z = A @ rng.standard_normal((d, 2)) @ rng.standard_normal((2, k)) + rng.gumbel(size=(n, k))
    return ex.LinearModel(loss, A, Z.argmax(axis=1) if isinstance(loss, ex.Multinomial) else Z)


def run(f, radius, method=None, **options):
    return ex.minimize(f, NuclearBall(radius), method or ex.LowRankFW(), **{"tol": 1e-8, "max_iter": 300} | options)


def gap(f, x, radius):
    """max over the ball of <grad f(x), x - s>, by a dense decomposition."""
    G, x = np.asarray(f.grad(np.asarray(x, np.float64)), np.float64), np.asarray(x, np.float64)
    return float(np.vdot(G, x)) + radius * float(np.linalg.norm(G, 2))


def by_projections(f, radius, steps=1000):
    """Accelerated projected gradients with restarts: the minimum, independently."""
    C, x, z, t = NuclearBall(radius), np.zeros(f.shape), np.zeros(f.shape), 1.0
    for _ in range(steps):
        new = C.project(z - np.asarray(f.grad(z)) / f.smoothness)
        if np.vdot(z - new, new - x) > 0:
            t = 1.0
        before, t, moved = t, (1 + np.sqrt(1 + 4 * t * t)) / 2, np.linalg.norm(new - x)
        x, z = new, new + (before - 1) / t * (new - x)
        if moved <= 1e-9 * radius:
            break
    return f.value(x)


SMOOTH = {
    "squared": lambda: completion(),
    "tall": lambda: completion(shape=(40, 30)),
    "huber": lambda: completion(ex.Huber(0.5)),
    "logistic": lambda: completion(ex.Logistic()),
    "multinomial": lambda: (weights(ex.Multinomial(6)), 10.0),
    "multitask": lambda: (weights(ex.MultiTask(ex.Squared(), 6)), 20.0),
    "wide": lambda: completion(shape=(3, 200), count=300),
    "repeats": lambda: (ex.LinearModel(ex.Squared(), ex.Entries([0, 0, 1, 1], [0, 0, 1, 2], (2, 3)), [1.0, 2.0, 3.0, -1.0]), 4.0),
}


@pytest.mark.parametrize("share", [0.05, 0.5])
@pytest.mark.parametrize("name", SMOOTH)
def test_certified_minimum(name, share):
    f, size = SMOOTH[name]()
    radius = share * size
    r = run(f, radius)
    assert r.converged
    assert np.isclose(r.value, f.value(np.asarray(r.x)), rtol=1e-10, atol=0)
    assert gap(f, r.x, radius) <= r.gap + 1e-12 * abs(r.value)
    assert r.gap <= gap(f, r.x, radius) + 2e-8 * radius * np.linalg.norm(np.asarray(f.grad(np.asarray(r.x))), 2) + 1e-12
    assert np.linalg.norm(np.asarray(r.x), "nuc") <= radius * (1 + 1e-12)
    least = by_projections(f, radius)
    assert -1e-12 * least <= r.value - least <= 1e-8 * least


def test_factors_or_an_array_as_the_objective_has_it():
    assert isinstance(run(*completion()).x, FactoredMatrix)
    assert isinstance(run(weights(ex.Multinomial(6)), 3.0).x, np.ndarray)


def test_reveals_the_rank():
    f, size = completion(shape=(60, 80), count=3000, rank=4)
    assert run(f, 0.7 * size).x.rank == 4
    r = run(f, 1e-3 * size)
    values = Decomposition.of(r.x).values
    first, second = np.linalg.svd(np.asarray(f.grad(r.x)), compute_uv=False)[:2]
    assert values[1:].sum() * (first - second) <= r.gap <= 1e-4 * values[0] * (first - second)  # what is apart makes the gap


@pytest.mark.parametrize("name", ["squared", "multitask", "multinomial"])
def test_a_large_radius_is_not_felt(name):
    f = SMOOTH[name]()[0] if name != "multinomial" else weights(ex.Multinomial(6), n=2000)
    free, more = (run(f, radius, tol=1e-6, atol=1e-9) for radius in (1e3, 1e4))
    if name == "squared":  # every entry can be matched
        assert max(free.value, more.value) < 1e-12
    else:
        assert np.linalg.norm(free.x, "nuc") < 900
        assert np.isclose(free.value, more.value, rtol=1e-7)
        assert np.abs(f.grad(free.x)).max() < 1e-5 * np.abs(f.grad(np.zeros(f.shape))).max()


@pytest.mark.parametrize("scale", [1e-100, 1e-6, 1e6, 1e100])
def test_units_do_not_matter(scale):
    f, size = completion()
    other = ex.LinearModel(ex.Squared(), f.data, scale * f.y)
    r, s = run(f, 0.3 * size, atol=0, tol=1e-6), run(other, 0.3 * size * scale, atol=0, tol=1e-6)
    assert s.converged
    assert np.isclose(s.value / scale**2, r.value, rtol=1e-6)


def test_no_gradient_no_step():
    f = ex.LinearModel(ex.Squared(), ex.Entries([0, 1], [1, 2], (2, 3)), np.zeros(2))
    r = run(f, 1.0)
    assert (r.status, r.n_iter, r.gap, r.x.rank) == (ex.Status.GAP, 0, 0.0, 0)
    states = ex.iterate(f, NuclearBall(1.0), ex.LowRankFW())
    assert [next(states).x.rank for _ in range(3)] == [0, 0, 0]


def test_a_start_in_float32_leads_to_an_answer_in_float64():
    f, size = completion(shape=(60, 80), count=3000)
    r = run(f, 0.5 * size)
    again = run(f, 0.5 * size, x0=(0.9 * r.x).astype(np.float32))
    assert again.converged
    assert again.x.dtype == np.float64
    assert again.x.norm_nuclear() <= 0.5 * size * (1 + 1e-12)
    assert again.value == pytest.approx(r.value, rel=1e-7)


@pytest.mark.parametrize("loss", [ex.Squared(), ex.Logistic(), ex.NonlinearLeastSquares()], ids=str)
def test_f_never_rises(loss):
    f, size = completion(loss, shape=(60, 80), count=3000)
    states = ex.iterate(f, NuclearBall(0.8 * size), ex.LowRankFW())
    values = [f.value(next(states).x) for _ in range(25)]
    assert all(b <= a * (1 + 1e-12) for a, b in itertools.pairwise(values))
    assert values[-1] < 0.5 * values[0]


def test_non_convex_losses_reach_a_small_gap():
    f, size = completion(ex.NonlinearLeastSquares(), shape=(60, 80), count=3000)
    r = run(f, 0.1 * size, tol=1e-6)
    assert r.converged
    assert abs(gap(f, r.x, 0.1 * size) - r.gap) <= 1e-9


@pytest.mark.parametrize("kind", ["factors", "array"])
def test_from_an_earlier_answer(kind):
    f, size = completion(shape=(60, 80), count=3000, rank=4)
    cold = run(f, 0.5 * size)
    x0 = cold.x if kind == "factors" else np.asarray(cold.x)
    assert run(f, 0.5 * size, x0=x0).n_iter == 0
    warm, other = (run(f, 0.501 * size, x0=x, tol=1e-6) for x in (x0, None))
    assert np.isclose(warm.value, other.value, rtol=2e-6)
    assert warm.calls.grads < other.calls.grads


def test_starts_of_full_rank():
    f, size = completion(shape=(20, 25), count=200)
    x0 = np.random.default_rng(0).standard_normal((20, 25))
    r = run(f, 0.5 * size, x0=0.5 * size * x0 / np.linalg.norm(x0, "nuc"))
    assert r.converged
    assert np.linalg.matrix_rank(r.x, tol=1e-6 * size) < 10


class Watched(ex.LinearModel):
    """A model that counts what it is asked."""

    def __init__(self, *args):
        super().__init__(*args)
        self.values_asked = self.grads_asked = 0

    def value(self, x):
        self.values_asked += 1
        return super().value(x)

    def grad(self, x):
        self.grads_asked += 1
        return super().grad(x)

    def value_and_grad(self, x):
        self.values_asked, self.grads_asked = self.values_asked + 1, self.grads_asked + 1
        return super().value_and_grad(x)


def test_counts():
    f, size = completion()
    watched = Watched(f.loss, f.data, f.y)
    r = run(watched, 0.3 * size)
    assert r.calls.grads == watched.grads_asked * f.n
    assert r.calls.values + r.calls.certificate_values == watched.values_asked * f.n
    assert (r.calls.lmos, r.calls.certificate, r.n_iter) == (r.n_iter, 0, r.n_iter)


def test_a_vertex_step_is_the_least_that_an_iteration_gains():
    f, size = completion(shape=(60, 80), count=3000, rank=4)
    C, L = NuclearBall(0.5 * size), f.smoothness
    method = ex.Method(ex.gradients.Full(), ex.steps.FullStep(), ex.moves.FactorCorrective(width=1, limit=0))
    states = ex.iterate(f, C, method)
    state = next(states)
    for _ in range(20):
        x, g, value = np.asarray(state.x), np.asarray(state.g), f.value(state.x)
        s = C.lmo(g).to_array()
        slope, length2 = float(np.vdot(g, s - x)), float(np.vdot(s - x, s - x))
        eta = min(1.0, -slope / (L * length2))
        state = next(states)
        assert value - f.value(state.x) >= 0.2 * (-eta * slope - eta**2 * L * length2 / 2)


def test_stochastic_gradients_choose_directions():
    f, size = completion(shape=(60, 80), count=3000)
    method = ex.Method(ex.gradients.MiniBatch(batch=500), ex.steps.FullStep(), ex.moves.FactorCorrective())
    r = run(f, 0.5 * size, method, max_iter=20, tol=1e-3)
    assert r.value <= 1.01 * run(f, 0.5 * size).value


def test_other_sets_are_refused():
    f = weights(ex.Multinomial(6))
    for C in (ex.L1Ball(1.0), ex.SpectralBall(1.0)):
        with pytest.raises(InputError, match=r"LowRankFW\(\) is for nuclear balls, such as NuclearBall\(10.0\); got the set"):
            ex.minimize(f, C, "low-rank-fw")
        with pytest.raises(InputError, match="FactorCorrective needs a NuclearBall"):
            ex.minimize(f, C, ex.Method(ex.gradients.Full(), ex.steps.FullStep(), ex.moves.FactorCorrective()))


@pytest.mark.parametrize("bad", [{"width": 0}, {"accuracy": 0.0}, {"accuracy": 1.5}, {"limit": -1}, {"width": 2.5}], ids=str)
def test_bad_parameters_are_refused(bad):
    (name,) = bad
    with pytest.raises(InputError, match=rf"`LowRankFW\({name}=...\)` must be"):
        ex.LowRankFW(**bad)
    with pytest.raises(InputError, match=rf"`FactorCorrective\({name.replace('accuracy', 'tol')}=...\)` must be"):
        ex.moves.FactorCorrective(**{name.replace("accuracy", "tol"): bad[name]})


# parts


def test_decompositions():
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((9, 3)), rng.standard_normal((7, 3))
    X = FactoredMatrix(np.hstack([left, left[:, :1]]), np.hstack([right, right[:, :1]]))  # four columns, rank three
    for x in (Decomposition.of(X), Decomposition.of(np.asarray(X))):
        assert len(x.values) == 3
        assert np.allclose((x.left * x.values) @ x.right.T, np.asarray(X))
        assert np.isclose(x.within(2.0).values.sum(), 2.0)
        assert x.within(1e9) is x
    assert len(Decomposition.of(np.zeros((4, 5))).values) == 0


@pytest.mark.parametrize("radius", [1.0, 1e3])  # on the sphere, and inside
def test_slopes_over_the_factors(radius):
    f, _ = completion()
    problem = FactorProblem(f, radius, np.zeros(f.shape))
    pair = np.random.default_rng(1).standard_normal(70 * 3)
    pair *= np.sqrt(2 * min(radius, 100.0)) / np.linalg.norm(pair)
    place = problem.at(pair)
    d = np.random.default_rng(2).standard_normal(len(pair))
    d -= np.vdot(d, pair) / np.vdot(pair, pair) * pair  # along the sphere: outward, f is not defined
    up, down = (problem.move(place, d, t).value for t in (1e-6, -1e-6))
    assert place.tight == (radius == 1.0)
    assert np.isclose((up - down) / 2e-6, np.vdot(place.slope, d), rtol=1e-4)


def test_descent_over_the_factors_stays_in_the_ball():
    f, size = completion()
    problem = FactorProblem(f, 0.3 * size, FactoredMatrix.zeros(f.shape))
    start = problem.move(problem.at(np.random.default_rng(0).standard_normal(70 * 4)), np.zeros(280), 0.0)
    place, ended = descend_factors(problem, start, 0.1, 1e-6, 500)
    assert not ended
    assert place.tight
    assert np.linalg.norm(place.slope) <= 1e-6 * np.linalg.norm(start.slope)
    assert np.vdot(place.pair, place.pair) <= 0.6 * size * (1 + 1e-12)
    assert descend_factors(problem, start, 0.1, 1e-6, 3)[1]


def test_ritz_pairs_of_small_matrices_are_exact():
    A = np.diag([3.0, 1.0, 2.0])
    values, X = ritz(lambda V: A @ V, np.ones((3, 1)), 2)
    assert np.allclose(values, [3, 2, 1])
    assert np.allclose(np.abs(X), np.eye(3)[:, [0, 2, 1]])


def test_entries_of_several_columns():
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((6, 5)), rng.standard_normal((7, 5))
    rows, cols = rng.integers(0, 6, 30), rng.integers(0, 7, 30)
    for dtype, tol in ((np.float64, 1e-14), (np.float32, 1e-5)):
        X = FactoredMatrix(left.astype(dtype), right.astype(dtype))
        assert np.allclose(X.entries(rows, cols), (left @ right.T)[rows, cols], atol=tol, rtol=tol)
