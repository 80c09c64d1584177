"""Variance-reduced sliding: sub-problems against projections, trajectories against plain numpy, convergence, counts, refusals."""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
import scipy.sparse as sp
from cases import DIM, MATRIX, N, full, gap, model, project, separable

import extremal as ex
from extremal.kernels import pairwise
from extremal.methods.base import Budget
from extremal.moves.sliding.prox import Probe, Solver
from extremal.points.factored import FactoredMatrix
from extremal.quadratic.atoms import Hull

ESTIMATORS = ("saga", "sarah", "saga-sarah", "svrg")
POLYTOPE = ex.Polytope(A_ub=np.vstack([np.ones(DIM), np.arange(DIM)]), b_ub=[1.0, 2.0], bounds=(-0.5, 1.0))
VECTOR_SETS = (
    ex.L1Ball(2.0),
    ex.Simplex(),
    ex.GroupBall(1.0, groups=np.arange(DIM) // 2),
    ex.Box(-0.3, 0.2),
    ex.L2Ball(0.7),
    POLYTOPE,
)
MATRIX_SETS = (ex.NuclearBall(0.6), ex.L1Ball(1.0), ex.Simplex())
EVERY_ESTIMATOR = pytest.mark.parametrize("gradient", ESTIMATORS)
BOTH_FORMS = pytest.mark.parametrize("accelerated", [False, True])


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


ROWS = rng(3).standard_normal((120, DIM))


def strong(dtype=np.float64) -> ex.LinearModel:
    """Least squares, well-conditioned; the minimum lies on the boundary of each set."""
    y = ROWS @ np.linspace(-1.0, 1.0, DIM) + 0.3 * rng(4).standard_normal(len(ROWS))
    return ex.LinearModel(ex.Squared(), ROWS.astype(dtype), y.astype(dtype))


def outputs(n: int = 100, d: int = 5, k: int = 3) -> ex.LinearModel:
    A = rng(5).standard_normal((n, d))
    return ex.LinearModel(
        ex.MultiTask(ex.Squared(), k), A, A @ rng(6).standard_normal((d, k)) + 0.2 * rng(7).standard_normal((n, k))
    )


def run(f, C, method, passes=40, **options):
    return ex.minimize(f, C, method, **{"tol": 0.0, "atol": 0.0, "max_grads": passes * f.n} | options)


# the sub-problem


class Asked:
    """A set that counts."""

    def __init__(self, C):
        self.C, self.lmos = C, 0

    def lmo(self, g):
        self.lmos += 1
        return self.C.lmo(g)


def sub_gap(C, g, centre, beta, u) -> float:
    slope = g + beta * (u - centre)
    return float(np.vdot(slope, u)) - C.lmo(slope).dot(slope)


@pytest.mark.parametrize("C", VECTOR_SETS, ids=repr)
def test_sub_problems_are_solved_to_their_accuracy_from_the_atoms_of_the_last(C):
    """A chain of them: each starts from the atoms of the one before, and its gap is recomputed from the definition."""
    C = C.on(DIM)
    x, hull, asked, solve = C.start(), None, Asked(C), Solver(0.01, None, 1000)
    for k, beta in enumerate((2.0, 0.5, 30.0, 1.0, 7.0, 0.01)):
        g = rng(k).standard_normal(DIM)
        u, hull = solve(asked, g, x, hull, beta)
        assert C.contains(u, 1e-12)
        np.testing.assert_allclose(hull.atoms.x, u, atol=1e-14)
        np.testing.assert_allclose(
            hull.gram, [[v.dot(w.to_array()) for v in hull.atoms.vertices] for w in hull.atoms.vertices], atol=1e-12
        )
        assert sub_gap(C, g, x, beta, u) <= 0.01 * beta * np.sum((u - x) ** 2) + 1e-12
        if hasattr(C, "project"):
            exact = C.project(x - g / beta)
            assert np.sum((u - exact) ** 2) <= 0.02 * np.sum((u - x) ** 2) + 1e-12  # q is beta-strongly convex
        x = u
    assert asked.lmos < 400


def test_a_known_face_costs_one_question():
    """Once the atoms of the answer are there, a sub-problem is solved on them, and the oracle only confirms it."""
    C, asked, solve = ex.Simplex().on(DIM), None, Solver(0.1, None, 1000)
    x, hull = C.start(), None
    for k in range(30):
        asked = Asked(C)
        x, hull = solve(asked, np.where(np.arange(DIM) < 3, -1.0, 1.0) + 0.01 * rng(k).standard_normal(DIM), x, hull, 1.0)
    assert asked.lmos == 1
    assert len(hull.atoms) <= 3


def test_the_limit_on_questions_holds_and_the_point_is_feasible():
    C, asked = ex.L2Ball(1.0).on(DIM), Asked(ex.L2Ball(1.0))
    u, _ = Solver(1e-9, None, 3)(asked, rng().standard_normal(DIM), C.project(rng(1).standard_normal(DIM)), None, 0.5)
    assert asked.lmos == 3
    assert C.contains(u, 1e-12)


def test_the_kernel_is_its_python_text():
    """Compiled and plain agree, and q falls by what the slopes say."""
    V = rng(1).standard_normal((12, 5))
    g, centre, beta = rng(2).standard_normal(5), rng(3).dirichlet(np.ones(12)), 3.0
    gram, first = V @ V.T, V @ g
    plain = getattr(pairwise.settle, "py_func", pairwise.settle)
    found = []
    for kernel in (pairwise.settle, plain):
        w, slopes = centre.copy(), first.copy()
        steps = kernel(gram, centre, first, beta, 0.0, 1e-10, 100_000, w, slopes)
        assert 0 < steps < 100_000
        np.testing.assert_allclose(slopes, first + beta * gram @ (w - centre), atol=1e-9)
        assert slopes[w > 0].max() - slopes.min() <= 1e-10
        assert w.min() >= 0
        assert w.sum() == pytest.approx(1, abs=1e-12)
        found.append(w)
    np.testing.assert_allclose(V.T @ found[0], V.T @ found[1], atol=1e-8)


def test_sparse_starting_points_are_kept_sparse():
    x = np.array([0.0, 0.25, 0.0, 0.75])
    v = ex.points.Coordinate(0, 1.0, (4,))
    assert isinstance(Hull.at(x, v).atoms.vertices[0], ex.points.SparseVertex)
    assert isinstance(Hull.at(x, ex.points.DenseVertex(x)).atoms.vertices[0], ex.points.DenseVertex)
    for like in (v, ex.points.DenseVertex(x)):
        np.testing.assert_array_equal(Hull.at(x, like).atoms.x, x)


# trajectories, against plain numpy


def constants(f, b):
    A = np.asarray(MATRIX)
    L, rows = 0.25 * float(np.linalg.eigvalsh(A.T @ A)[-1]) / N, 0.25 * (A**2).sum(axis=1)
    noise = (N - b) / (b * (N - 1)) * rows.max()
    return L, N * (b - 1) / (b * (N - 1)) * L + noise, noise


def rows_of(f):
    y, A = f.y, np.asarray(MATRIX)
    return lambda x, idx: (-y[idx] / (1 + np.exp(y[idx] * (A[idx] @ x))))[:, None] * A[idx]


def test_plain_saga_by_hand():
    """x <- project(x - g / (L_b + V)), g = mean over the batch of (new - old) + mean of the table."""
    f, C, b = model(ex.Logistic()), ex.L1Ball(2.0), 6
    beta, sampler, grads = sum(constants(f, b)[1:]), ex.objectives.Sampler(N, 3), rows_of(f)
    x, every = np.zeros(DIM), np.arange(N)
    table = grads(x, every)
    g = table.mean(axis=0)
    method = ex.VRSliding("saga", batch=b, accelerated=False)
    for state in itertools.islice(ex.iterate(f, C, method=method, seed=3), 60):
        np.testing.assert_allclose(state.x, x, atol=1e-11)
        x, idx = project(C, x - g / beta), sampler.rows(state.k, b)
        new = grads(x, idx)
        g = (new - table[idx]).mean(axis=0) + table.mean(axis=0)
        table[idx] = new
    assert np.abs(x).sum() > 1


def test_accelerated_saga_by_hand():
    """The three sequences, the anchor, and the rule for tau, from the docstring of AnchoredSliding."""
    f, C, b = model(ex.Logistic()), ex.L1Ball(2.0), 6
    L, smooth, noise = constants(f, b)
    beta, lean, m = smooth + noise, min(0.5, noise / (4 * L)), N // b
    sampler, grads = ex.objectives.Sampler(N, 3), rows_of(f)
    z = y = w = q = np.zeros(DIM)
    table = grads(q, np.arange(N))
    g, t, before = table.mean(axis=0), 0, 0.0
    taus = set()
    for state in itertools.islice(ex.iterate(f, C, method=ex.VRSliding("saga", batch=b, accelerated=True), seed=3), 100):
        np.testing.assert_allclose(state.x, y, atol=1e-11)
        np.testing.assert_allclose(state.point.query, q, atol=1e-11)
        tau = 2 / (t + 4)
        taus.add(tau)
        z = project(C, z - g / max(tau * beta, noise / 2))
        y = tau * z + lean * w + (1 - tau - lean) * y
        if (state.k + 1) % m == 0:
            far = float(np.linalg.norm(y - w))
            t, before, w = t + (far > (1 - tau) * before), far, y
        tau = 2 / (t + 4)
        q = tau * z + lean * w + (1 - tau - lean) * y
        idx = sampler.rows(state.k, b)
        new = grads(q, idx)
        g = (new - table[idx]).mean(axis=0) + table.mean(axis=0)
        table[idx] = new
    assert len(taus) > 1


@pytest.mark.parametrize("b", [1, 7, N])
@BOTH_FORMS
def test_beta_is_the_smoothness_of_a_batch(b, accelerated):
    f = model(ex.Logistic())
    L, smooth, noise = constants(f, b)
    move = ex.VRSliding("svrg", batch=b, accelerated=accelerated).prepare(f, ex.L1Ball(2.0).on(DIM), Budget()).move
    assert move.beta == pytest.approx(smooth + noise, rel=1e-6)
    assert move.beta == pytest.approx({1: 2 * f.row_smoothness.max(), N: L}.get(b, move.beta), rel=1e-6)
    if accelerated:
        assert move.lean == pytest.approx(min(0.5, noise / (4 * L)), rel=1e-6)
        assert move.least == pytest.approx(noise / 2, rel=1e-6)


def test_what_is_left_open_follows_the_rows():
    """Acceleration where a batch tells of the other rows; no table where it was asked for and they have little in common."""
    alike = ex.LinearModel(ex.Squared(), 1 + 0.1 * rng().standard_normal((100, 5)), np.ones(100))
    apart = ex.LinearModel(ex.Squared(), np.eye(100), np.ones(100))
    free = separable(ex.Logistic())
    parts = lambda f, **o: ex.VRSliding(**o).prepare(f, ex.L1Ball(1.0).on(f.shape), Budget())  # noqa: E731
    for f, options, move, gradient in (
        (alike, {}, ex.moves.AnchoredSliding, ex.gradients.Saga),
        (apart, {}, ex.moves.WarmSliding, ex.gradients.Saga),
        (free, {}, ex.moves.WarmSliding, ex.gradients.Saga),
        (alike, {"accelerated": True}, ex.moves.AnchoredSliding, ex.gradients.Saga),
        (apart, {"accelerated": True}, ex.moves.AnchoredSliding, ex.gradients.Svrg),
        (free, {"accelerated": True}, ex.moves.AnchoredSliding, ex.gradients.Svrg),
    ):
        method = parts(f, **options)
        assert (type(method.move), type(method.gradient)) == (move, gradient)


@EVERY_ESTIMATOR
@BOTH_FORMS
def test_rows_that_have_nothing_in_common(gradient, accelerated):
    """Orthogonal rows, where steps of 1/L_b are too long for a table: it must not diverge."""
    y = rng().standard_normal(64)
    f, C = ex.LinearModel(ex.Squared(), np.eye(64), y), ex.L2Ball(100.0)
    r = run(f, C, ex.VRSliding(gradient, batch=8, accelerated=accelerated), 100)
    assert r.value <= (1e-2 if accelerated else 1e-5) * f.value(np.zeros(64))


def test_non_convex_sums_get_no_longer_steps_than_1_over_L():
    f, C = model(ex.NonlinearLeastSquares()), ex.L1Ball(2.0).on(DIM)
    for gradient, b in itertools.product(ESTIMATORS, (1, 8, N)):
        move = ex.VRSliding(gradient, batch=b).prepare(f, C, Budget()).move
        assert isinstance(move, ex.moves.WarmSliding)  # acceleration is for convex f, unless asked for
        assert move.beta >= f.smoothness
    assert isinstance(ex.VRSliding(accelerated=True).prepare(f, C, Budget()).move, ex.moves.AnchoredSliding)


# convergence


@functools.cache
def least_value(C) -> float:
    """f* of `strong`, by projected gradients where there is a projection."""
    f = strong()
    if C == POLYTOPE:
        return ex.minimize(f, C, ex.AwayFW(), tol=1e-11).value
    x, C = C.on(DIM).start(), C.on(DIM)
    for _ in range(2000):
        x = C.project(x - f.grad(x) / f.smoothness)
    return f.value(x)


@EVERY_ESTIMATOR
@BOTH_FORMS
@pytest.mark.parametrize("C", VECTOR_SETS, ids=repr)
def test_every_estimator_over_every_set(gradient, accelerated, C):
    f, best = strong(), least_value(C)
    scale = f.value(np.zeros(DIM))
    r = run(f, C, ex.VRSliding(gradient, accelerated=accelerated, oracle="lmo"))
    assert -1e-12 <= r.value - best <= (1e-4 if accelerated else 1e-5) * scale
    assert C.contains(r.x, 1e-12)
    assert r.calls.lmos >= r.n_iter
    if hasattr(C, "project"):
        exact = run(f, C, ex.VRSliding(gradient, accelerated=accelerated, oracle="project"))
        assert exact.calls.lmos == 0
        assert exact.calls.grads == r.calls.grads or exact.gap == 0 or r.gap == 0
        assert exact.value == pytest.approx(r.value, abs=(1e-5 if accelerated else 1e-6) * scale)


@EVERY_ESTIMATOR
@BOTH_FORMS
@pytest.mark.parametrize("C", MATRIX_SETS, ids=repr)
def test_several_outputs(gradient, accelerated, C):
    f, C = outputs(), C.on((5, 3))
    by_atoms, by_projection = (
        run(f, C, ex.VRSliding(gradient, accelerated=accelerated, oracle=oracle)) for oracle in ("lmo", "project")
    )
    assert C.contains(by_atoms.x, 1e-9)
    assert by_projection.gap <= 1e-3
    np.testing.assert_allclose(by_atoms.x, by_projection.x, atol=2e-3)
    assert by_atoms.value == pytest.approx(by_projection.value, rel=1e-5)


@EVERY_ESTIMATOR
@pytest.mark.parametrize("oracle", ["lmo", "project"])
@pytest.mark.parametrize("C", [ex.Simplex(), ex.L2Ball(0.7)], ids=repr)
def test_strongly_convex_sums_converge_geometrically(gradient, oracle, C):
    """Plain: the same number of passes more takes the gap down by the same factor, to rounding."""
    f = strong()
    gaps = [run(f, C, ex.VRSliding(gradient, accelerated=False, oracle=oracle), passes, seed=1).gap for passes in (15, 30, 45)]
    assert gaps[1] <= max(gaps[0] / 10, 1e-12)
    assert gaps[2] <= max(gaps[1] / 10, 1e-12)


def test_acceleration_helps_where_the_problem_is_ill_conditioned():
    A = (1 + rng(1).standard_normal((400, 10))) * np.geomspace(1.0, 0.1, 10)
    f = ex.LinearModel(ex.Squared(), A, A @ np.geomspace(1.0, 10.0, 10))  # f* = 0
    plain, fast = (run(f, ex.L2Ball(1000.0), ex.VRSliding("saga", accelerated=a), 60).value for a in (False, True))
    assert fast <= 1e-6 * plain


@EVERY_ESTIMATOR
@BOTH_FORMS
def test_any_sum_without_constants(gradient, accelerated):
    """beta is found on the way, whatever the units of f are: the answers are those of the linear model."""
    f, C = strong(), ex.L1Ball(1.5)
    best = ex.minimize(f, C, ex.PairwiseFW(), tol=1e-12).value
    for unit, oracle in ((1e-6, "lmo"), (1e6, "project")):
        h = ex.Separable(
            f.n,
            DIM,
            grad=lambda x, idx, unit=unit: unit * f.derivs(x, idx)[:, None] * ROWS[idx],
            value=lambda x, idx, unit=unit: unit * f.values(x, idx),
            convex=True,
        )
        r = run(h, C, ex.VRSliding(gradient, accelerated=accelerated, oracle=oracle))
        assert isinstance(r.method.move.beta, Probe)
        assert -1e-12 <= r.value / unit - best <= 1e-4 * best


def test_a_known_smoothness_is_a_lower_bound_of_what_is_found():
    f, C = separable(ex.NonlinearLeastSquares()), ex.L1Ball(5.0)
    assert ex.VRSliding().prepare(f, C.on(DIM), Budget()).move.beta.least == f.smoothness
    for state in itertools.islice(ex.iterate(f, C, method=ex.VRSliding("sarah")), 2, 60):
        assert state.point.L >= f.smoothness


@EVERY_ESTIMATOR
@pytest.mark.parametrize("make", [model, separable])
def test_non_convex_sums(gradient, make):
    """The value falls and the gap becomes small, by oracle and by projection."""
    loss, C = ex.NonlinearLeastSquares(), ex.L1Ball(5.0)
    f = make(loss)
    for oracle in ("lmo", "project"):
        r = run(f, C, ex.VRSliding(gradient, oracle=oracle), 150)
        first = gap(C, np.zeros(DIM), full(loss, np.zeros(DIM))[1])
        assert r.value < full(loss, np.zeros(DIM))[0]
        assert r.gap <= 0.05 * first


@EVERY_ESTIMATOR
@BOTH_FORMS
@pytest.mark.parametrize("oracle", ["lmo", "project"])
def test_float32_rows(gradient, accelerated, oracle):
    C, method, f = ex.Simplex(), ex.VRSliding(gradient, accelerated=accelerated, oracle=oracle), strong(np.float32)
    wide, r = run(ex.LinearModel(f.loss, f.data.dot(np.eye(f.shape[0])), f.y), C, method), run(f, C, method)
    assert (f.data.dtype, r.x.dtype) == (np.float32, np.float64)
    assert r.value == pytest.approx(wide.value, rel=1e-6)  # products with some float32 rows are summed in another order
    np.testing.assert_allclose(r.x, wide.x, atol=1e-5)


def test_sparse_rows_and_shuffled_ones():
    dense = model(ex.Logistic())
    C, method = ex.L1Ball(2.0), ex.VRSliding(batch=8)
    found = [run(f, C, method, 100).value for f in (dense, model(ex.Logistic(), "csr"), dense.shuffled())]
    assert found[1] == pytest.approx(found[0], abs=1e-12)
    assert found[2] == pytest.approx(found[0], abs=1e-7)


# matrices in factors


def completion() -> ex.LinearModel:
    at = np.flatnonzero(rng(3).random(48) < 0.7)
    rows, cols = np.divmod(at, 6)
    y = (rng(1).standard_normal((8, 2)) @ rng(2).standard_normal((2, 6)))[rows, cols]
    return ex.LinearModel(ex.Squared(), ex.Entries(rows, cols, (8, 6)), y)


@BOTH_FORMS
def test_matrices_in_factors(accelerated):
    """The same steps as on arrays, without ever forming the matrix."""
    f, C, zero = completion(), ex.NuclearBall(4.0), np.zeros((8, 6))
    method = ex.VRSliding("saga", accelerated=accelerated, oracle="lmo")
    assert ex.VRSliding().prepare(f, C.on((8, 6)), Budget()).move.onto is None
    one, two = (itertools.islice(ex.iterate(f, C, method=method, x0=x0), 15) for x0 in (None, zero))
    for a, b in zip(one, two, strict=True):
        assert isinstance(a.x, FactoredMatrix)
        assert isinstance(b.x, np.ndarray)
        assert C.contains(a.x)
        np.testing.assert_allclose(np.asarray(a.x), b.x, atol=0.05)  # sub-problems are solved to a tenth
    assert f.value(a.x) < 0.8 * f.value(zero)


# counts, memory, starts


@dataclass(frozen=True)
class Ball(ex.L1Ball):
    """An l1 ball that counts."""

    def lmo(self, g):
        SEEN.append("lmo")
        return super().lmo(g)


SEEN: list[str] = []


@EVERY_ESTIMATOR
@BOTH_FORMS
@pytest.mark.parametrize("known", [True, False])
def test_counts_are_what_reached_the_objective_and_the_set(gradient, accelerated, known):
    inner, grads = separable(ex.Logistic()), []

    def grad(x, idx):
        grads.append(len(idx))
        return inner._grad(x, idx)

    f = ex.Separable(N, DIM, grad=grad, value=inner._value, convex=True, smoothness=inner.smoothness if known else None)
    SEEN.clear()
    r = run(f, Ball(2.0), ex.VRSliding(gradient, batch=5, accelerated=accelerated, oracle="lmo"), 30)
    assert r.calls.total_grads == sum(grads)
    assert r.calls.lmos + r.calls.certificate_lmos == len(SEEN)
    assert r.calls.lmos >= r.n_iter


COSTS = {"saga": lambda k, b: b, "saga-sarah": lambda k, b: 2 * b, "svrg": lambda k, b: N if k % (N // b + 1) == 0 else 2 * b}


@pytest.mark.parametrize("gradient", COSTS)
@BOTH_FORMS
def test_costs_are_those_of_the_docstring(gradient, accelerated):
    due, b = 0, 5
    method = ex.VRSliding(gradient, batch=b, accelerated=accelerated)
    for state in itertools.islice(ex.iterate(model(ex.Logistic()), ex.L1Ball(2.0), method=method), 50):
        due += COSTS[gradient](state.k, b) if state.k else N
        assert (state.calls.grads, state.calls.lmos) == (due, 0)
        if gradient == "svrg":
            assert state.exact == (state.k % (N // b + 1) == 0)  # the snapshot is the iterate, also if accelerated


def test_tests_of_the_curvature_cost_what_they_say():
    """Two gradients of each of its rows, at the steps that are due."""
    f, b = separable(ex.Logistic()), 5
    probe = ex.VRSliding("saga", batch=b).prepare(f, ex.L1Ball(2.0).on(DIM), Budget()).move.beta
    assert (probe.batch, probe.every) == (b, N // (4 * b))
    rows = 10  # of a test, at least
    extra = []
    for state in itertools.islice(ex.iterate(f, ex.L1Ball(2.0), method=ex.VRSliding("saga", batch=b, oracle="project")), 40):
        extra.append(state.calls.grads - N - b * state.k)
    made = np.diff(extra) / (2 * rows)
    assert (made == np.round(made)).all()
    assert all((made[k] >= 1) == probe.due(k) for k in range(len(made)))


def test_atoms_are_handed_back_and_taken_up_again():
    f, C = strong(), ex.Simplex()
    method = ex.VRSliding(accelerated=False, oracle="lmo")
    r = run(f, C, method, 20)
    np.testing.assert_allclose(r.atoms.x, r.x, atol=1e-14)
    again = run(f, C, method, 3, x0=r.atoms)
    assert again.value <= r.value + 1e-9
    np.testing.assert_allclose(again.atoms.x, again.x, atol=1e-14)
    assert (
        run(f, C, ex.VRSliding(accelerated=True, oracle="lmo"), 3, x0=r.atoms).atoms is None
    )  # those of z are not the iterate's
    assert run(f, C, ex.VRSliding(accelerated=False), 3, x0=r.atoms).atoms is None  # a projection keeps none


@pytest.mark.parametrize("step", [ex.steps.LineSearch(), ex.steps.OpenLoop()], ids=repr)
def test_other_steps_keep_atoms_and_iterate_together(step):
    f, C = strong(), ex.L1Ball(1.5)
    for state in itertools.islice(
        ex.iterate(f, C, method=ex.Method(ex.gradients.Saga(14), step, ex.moves.WarmSliding(beta=8.0))), 1, 30
    ):
        np.testing.assert_allclose(state.point.active.x, state.x, atol=1e-13)
        assert C.contains(state.x, 1e-12)


def test_the_estimator_follows_the_memory():
    small, C = strong(), ex.L1Ball(1.0)
    assert isinstance(ex.VRSliding().prepare(small, C.on(DIM), Budget()).gradient, ex.gradients.Saga)
    call = lambda x, idx: np.zeros((len(idx), 2**14))  # noqa: E731
    large = ex.Separable(2**14, 2**14, grad=call, value=call, convex=True, smoothness=1.0)
    method = ex.VRSliding().prepare(large, C.on(2**14), Budget())
    assert isinstance(method.gradient, ex.gradients.Svrg)
    assert method.gradient.batch == math.ceil(math.sqrt(2**14))


def test_the_oracle_follows_the_set():
    f, wide = strong(), outputs()
    onto = lambda f, C, oracle="auto": ex.VRSliding(oracle=oracle).prepare(f, C.on(f.shape), Budget()).move.onto  # noqa: E731
    assert onto(f, ex.L1Ball(1.0)) == ex.L1Ball(1.0, shape=DIM)
    assert onto(f, ex.L1Ball(1.0), "lmo") is None
    assert onto(f, POLYTOPE) is None
    assert onto(wide, ex.NuclearBall(1.0)) is not None  # 5 x 3
    A = sp.random_array((4, 200), density=0.1, rng=rng())
    tall = ex.LinearModel(ex.MultiTask(ex.Squared(), 60), A, np.zeros((4, 60)))
    assert onto(tall, ex.NuclearBall(1.0)) is None
    assert onto(tall, ex.NuclearBall(1.0), "project") is not None
    assert onto(completion(), ex.NuclearBall(1.0)) is None


def test_degenerate_problems():
    """Data that are all zero, and a set that is a point."""
    flat = ex.LinearModel(ex.Squared(), np.zeros((5, 2)), np.arange(5.0))
    point = ex.LinearModel(ex.Squared(), [[2.0], [1.0], [0.5]], [1.0, 3.0, -1.0])
    one = ex.LinearModel(ex.Squared(), [[2.0, 1.0]], [1.0])
    line = ex.Separable(4, 2, grad=lambda x, i: np.ones((len(i), 2)), value=lambda x, i: np.full(len(i), x.sum()), convex=True)
    for gradient, accelerated, oracle in itertools.product(ESTIMATORS, (False, True), ("lmo", "project")):
        method = ex.VRSliding(gradient, batch=1, accelerated=accelerated, oracle=oracle)
        for f, C in (
            (flat, ex.L1Ball(2.0)),
            (flat, ex.L2Ball(1e-200)),
            (point, ex.Simplex()),
            (one, ex.Simplex()),
            (line, ex.L1Ball(2.0)),
        ):
            *_, state = itertools.islice(ex.iterate(f, C, method=method), 12)
            assert C.contains(state.x, 1e-12)
        assert f.value(state.x) <= -1.5


def test_a_gradient_that_is_not_finite_ends_the_run():
    calls = itertools.count()

    def grad(x, idx):
        return np.full((len(idx), 3), np.nan if next(calls) > 20 else 1.0)

    f = ex.Separable(50, 3, grad=grad, value=lambda x, idx: np.full(len(idx), x.sum()), convex=True, smoothness=1.0)
    for oracle in ("lmo", "project"):
        calls = itertools.count()
        r = ex.minimize(f, ex.L1Ball(1.0), ex.VRSliding(oracle=oracle), tol=0, atol=0, max_iter=50)
        assert r.status is ex.Status.NON_FINITE
        assert np.isfinite(r.x).all()


# refusals


def test_bad_arguments_are_refused_by_name():
    f = model(ex.Logistic())
    for options, said in (
        ({"gradient": "sagaa"}, "unknown gradient 'sagaa'; did you mean 'saga'"),
        ({"oracle": "lm"}, "unknown oracle 'lm'; did you mean 'lmo'"),
        ({"accelerated": 1}, r"`VRSliding\(accelerated=...\)` must be True or False"),
        ({"batch": 0}, r"`VRSliding\(batch=...\)` must be a whole number of at least 1, got 0"),
        ({"L": -1.0}, r"`VRSliding\(L=...\)` must be a positive finite number"),
    ):
        with pytest.raises(ex.InputError, match=said):
            ex.VRSliding(**options)
    with pytest.raises(ex.InputError, match=rf"`VRSliding\(batch=...\)` must be a whole number between 1 and {N}"):
        ex.minimize(f, ex.L1Ball(2.0), ex.VRSliding(batch=N + 1))
    with pytest.raises(ex.InputError, match=r'oracle="project".*Polytope.*has no projection; "lmo"'):
        ex.minimize(f, POLYTOPE, ex.VRSliding(oracle="project"))
    with pytest.raises(ex.InputError, match=r"`WarmSliding\(onto=...\)`: matrices in factors are not projected"):
        ex.minimize(completion(), ex.NuclearBall(1.0), ex.VRSliding(accelerated=False, oracle="project"))


@pytest.mark.parametrize("make", [ex.moves.WarmSliding, lambda **o: ex.moves.AnchoredSliding(**{"lean": 0.1, "epoch": 3} | o)])
def test_bad_moves_are_refused_by_name(make):
    for options, said in (
        ({"beta": 0.0}, r"Sliding\(beta=...\)` must be a positive finite number"),
        ({"beta": "L"}, r"Sliding\(beta=...\)` must be a positive finite number"),
        ({"accuracy": 2.0}, r"Sliding\(accuracy=...\)` must be a number in \(0, 1\]"),
        ({"limit": 0}, r"Sliding\(limit=...\)` must be a whole number of at least 1"),
        ({"onto": 3}, r"Sliding\(onto=...\)` must be a set with a projection"),
        ({"onto": POLYTOPE}, r"Sliding\(onto=...\)` must be a set with a projection"),
    ):
        with pytest.raises(ex.InputError, match=said):
            make(**{"beta": 1.0} | options)
    with pytest.raises(ex.InputError, match=r"onto=...\)` must be the set of the run, L1Ball"):
        ex.minimize(
            model(ex.Logistic()),
            ex.L1Ball(2.0),
            ex.Method(ex.gradients.Full(), ex.steps.FullStep(), make(beta=1.0, onto=ex.L1Ball(3.0))),
        )


def test_bad_anchors_are_refused_by_name():
    for options, said in (
        ({"lean": 0.6}, r"`AnchoredSliding\(lean=...\)` must be a number in \(0, 0.5\]"),
        ({"lean": -0.1}, r"`AnchoredSliding\(lean=...\)` must be a finite number of at least 0"),
        ({"least": -1.0}, r"`AnchoredSliding\(least=...\)` must be a finite number of at least 0"),
        ({"epoch": 0}, r"`AnchoredSliding\(epoch=...\)` must be a whole number of at least 1"),
    ):
        with pytest.raises(ex.InputError, match=said):
            ex.moves.AnchoredSliding(**{"beta": 1.0, "lean": 0.1, "epoch": 3} | options)
