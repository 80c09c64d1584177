"""Runs over models with several outputs: the trajectories of the plain sum, and the answers of other solvers."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from cases import GRADIENTS, METHODS, SPECIAL_GRADIENTS, linear_only, project, slides
from output_models import CLASSES, MATRIX, RNG, D, K, N, formulas, model, separable
from scipy.optimize import minimize as scipy_minimize
from scipy.special import log_softmax, softmax

import extremal as ex
from extremal.losses.multi import Multinomial, MultiTask
from extremal.sets.norms.groups import GroupBall
from extremal.sets.spectral.nuclear import NuclearBall

# runs: the same trajectory as that of the plain sum

SETS = (ex.L1Ball(4.0), ex.L2Ball(3.0), ex.Simplex(2.0), ex.Box(-0.5, 1.0))
FEEDS = [
    g
    for g in (*GRADIENTS, *SPECIAL_GRADIENTS[:4])
    if not linear_only(g) and not isinstance(g, (ex.gradients.Growing, ex.gradients.Expanded))
]
FEEDS.append(ex.gradients.Penalised(ex.gradients.Storm(5), G=np.ones((1, D * K)), upper=0.5))


def trajectory(f, C, method, count: int = 51) -> np.ndarray:
    return np.array([state.x for state in itertools.islice(ex.iterate(f, C, method=method, seed=3), count)])


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("C", SETS, ids=repr)
@pytest.mark.parametrize("gradient", FEEDS, ids=repr)
def test_every_estimator_takes_the_same_steps(gradient, C, kind):
    method = ex.Method(gradient, ex.steps.OpenLoop())
    got, wanted = (trajectory(f, C, method) for f in (model(Multinomial(K), kind), separable(Multinomial(K))))
    np.testing.assert_allclose(got, wanted, atol=1e-10)
    assert len(np.unique(got, axis=0)) > 20


OPEN = ex.AwayFW, ex.PairwiseFW, ex.BlendedPairwiseFW, ex.BoostFW  # they search lines of a linear model only, unless told
PLAIN = [replace(m, step=ex.steps.ShortStep()) if isinstance(m, OPEN) else m for m in METHODS if not isinstance(m, ex.Method)]
PLAIN = [m for m in PLAIN if not (linear_only(m) or (isinstance(m, ex.SCGS) and m.batch is None))]


@pytest.mark.parametrize("method", [*PLAIN, ex.SCGS(sigma=0.5), ex.DMFW(batch=5)], ids=repr)
@pytest.mark.parametrize("loss", [Multinomial(K), MultiTask(ex.Huber(), 2)], ids=repr)
def test_every_method_takes_the_same_steps(method, loss):
    C = ex.L1Ball(4.0)
    got, wanted = (trajectory(f, C, method, 31) for f in (model(loss, "csr"), separable(loss)))
    np.testing.assert_allclose(got, wanted, atol=1e-7 if slides(method) else 1e-8)  # line searches end within 1e-10


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("replace_", [False, True])
@pytest.mark.parametrize("C", SETS, ids=repr)
def test_the_substitute_gradient_follows_rows_of_margins(C, replace_, kind):
    """Against the published update, on arrays."""
    loss, b, C = Multinomial(K), 5, C.on((D, K))
    got = trajectory(model(loss, kind), C, ex.Method(ex.gradients.Substitute(b, replace_), ex.steps.OpenLoop()))
    x, m, sampler = C.start(), N / b, ex.objectives.Sampler(N, 3)
    sigma = MATRIX @ x
    for k in range(50):
        np.testing.assert_allclose(got[k], x, atol=1e-10)
        s = C.lmo(MATRIX.T @ formulas(loss)[1](sigma, CLASSES) / N).to_array()
        idx = np.unique(sampler.rows(k, b, replace_))
        x = x + 2 / (k + 2) * (s - x)
        sigma[idx] += 2 * m / (2 * m + k + 1) * (MATRIX[idx] @ s - sigma[idx])


def test_the_table_holds_one_row_per_component():
    for kind in ("dense", "csr"):
        f = model(Multinomial(K), kind)
        for state in itertools.islice(
            ex.iterate(f, ex.L1Ball(2.0), method=ex.Method(ex.gradients.Saga(5), ex.steps.OpenLoop())), 30
        ):
            assert state.estimate.table.c.shape == (N, K)
            np.testing.assert_allclose(state.estimate.table.mean, MATRIX.T @ state.estimate.table.c / N, atol=1e-14)


# answers


def blobs(n: int = 90, d: int = 6, classes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Gaussian blobs around corners of the first two features; the others are noise."""
    rng, y = np.random.default_rng(5), np.arange(n) % classes
    centres = np.zeros((classes, d))
    centres[:, :2] = [[2.0, 0.0], [-1.0, 1.7], [-1.0, -1.7]]
    return centres[y] + rng.standard_normal((n, d)), y


def optimum(A: np.ndarray, y: np.ndarray, k: int, radius: float) -> float:
    """min over |X|_1 <= radius of the multinomial loss by scipy, with X = U - V, U, V >= 0."""

    def value_and_grad(u: np.ndarray) -> tuple[float, np.ndarray]:
        half = u.size // 2
        z = A @ (u[:half] - u[half:]).reshape(-1, k)
        g = A.T @ (softmax(z, axis=1) - np.eye(k)[y]) / len(y)
        return -log_softmax(z, axis=1)[np.arange(len(y)), y].mean(), np.concatenate([g.ravel(), -g.ravel()])

    size = 2 * A.shape[1] * k
    budget = {"type": "ineq", "fun": lambda u: radius - u.sum(), "jac": lambda u: -np.ones(size)}
    options = {"ftol": 1e-13, "maxiter": 1000}
    found = scipy_minimize(
        value_and_grad, np.full(size, radius / size), jac=True, bounds=[(0, None)] * size, constraints=[budget],
        method="SLSQP", options=options,
    )  # fmt: skip
    assert found.success
    return float(found.fun)


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("radius", [1.0, 4.0])
def test_the_answer_is_that_of_another_solver(kind, radius):
    A, y = blobs()
    best = optimum(A, y, 3, radius)
    f = ex.LinearModel(Multinomial(3), sp.csr_array(A) if kind == "csr" else A, y)
    r = ex.minimize(f, ex.L1Ball(radius), method=ex.PairwiseFW(), tol=0, atol=1e-9, max_iter=5000)
    assert r.gap <= 1e-9
    assert r.value == pytest.approx(best, abs=1e-8)
    assert r.value <= best + r.gap


def test_tasks_are_apart_if_the_set_does_not_tie_them():
    """Squared errors over a box: each column is its own problem."""
    A, _ = blobs()
    Y = A @ RNG.standard_normal((6, 2)) / 3 + RNG.standard_normal((90, 2))
    f, C = ex.LinearModel(MultiTask(ex.Squared(), 2), A, Y), ex.Box(-0.2, 0.3)
    both = ex.minimize(f, C, method=ex.AwayFW(), tol=0, atol=1e-10)
    L, x = np.linalg.norm(A, 2) ** 2, np.zeros((6, 2))
    for _ in range(2000):
        x = project(C, x - A.T @ (A @ x - Y) / L)
    np.testing.assert_allclose(both.x, x, atol=1e-4)
    assert both.value == pytest.approx(0.5 * ((A @ x - Y) ** 2).sum() / 90, abs=1e-9)


def project_sizes(x: np.ndarray, radius: float, kind: str) -> np.ndarray:
    """The nearest matrix whose singular values, or whose rows' lengths, sum to the radius at most."""
    u, s, vt = np.linalg.svd(x, full_matrices=False) if kind == "nuclear" else (x, np.linalg.norm(x, axis=1), None)
    sizes = project(ex.L1Ball(radius), s)
    return (u * sizes) @ vt if kind == "nuclear" else x * (sizes / np.maximum(s, 1e-300))[:, None]


def by_projections(f: ex.LinearModel, radius: float, kind: str) -> float:
    """min f by projected gradients with momentum."""
    x, v, t = (np.zeros(f.shape), np.zeros(f.shape), 1.0)
    for _ in range(3000):
        new, t_new = project_sizes(v - f.grad(v) / f.smoothness, radius, kind), (1 + np.sqrt(1 + 4 * t * t)) / 2
        x, v, t = new, new + (t - 1) / t_new * (new - x), t_new
    return f.value(x)


@pytest.mark.parametrize("data_kind", ["dense", "csr"])
@pytest.mark.parametrize("kind", ["nuclear", "rows"])
def test_three_blobs_under_a_norm_of_the_matrix(kind, data_kind):
    """Few rows, or low rank: both are certified, and what they give away is as small as the gap says."""
    A, y = blobs()
    f, radius = ex.LinearModel(Multinomial(3), sp.csr_array(A) if data_kind == "csr" else A, y), 2.0
    C = NuclearBall(radius) if kind == "nuclear" else GroupBall(radius, np.repeat(np.arange(6), 3).reshape(6, 3))
    best = by_projections(f, radius, kind)
    for method in (ex.FrankWolfe(step=ex.steps.LineSearch()), ex.SagaSarahFW(batch=9), ex.PairwiseFW()):
        r = ex.minimize(f, C, method=method, tol=0, atol=2e-3, max_iter=3000)
        assert 0 <= r.gap <= 2e-3
        assert best - 1e-9 <= r.value <= best + r.gap
        assert ((A @ r.x).argmax(axis=1) == y).mean() > 0.8
    size = np.linalg.svd(r.x, compute_uv=False) if kind == "nuclear" else np.linalg.norm(r.x, axis=1)
    assert size.sum() <= radius * (1 + 1e-9)
    assert np.sort(size)[::-1][2:].sum() < 0.15 * radius  # two features carry it, in two dimensions
