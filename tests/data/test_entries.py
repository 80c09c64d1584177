"""Entries of a matrix as data: the same problem as a dense one with one row a_i = e_{rows_i} e_{cols_i}', at every step."""

from __future__ import annotations

import itertools
import pickle
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
from cases import GRADIENTS, LOSSES

import extremal as ex
from extremal import Entries, checks
from extremal.points import FactoredMatrix, iterates
from extremal.points.composed import Combination
from extremal.points.entries_gradient import MatrixSum, Observed, Positions
from extremal.points.low_rank import LowRank, RankOne
from extremal.points.vertex import Coordinate, DenseVertex, SparseVertex, dot64
from extremal.sets.base import ConvexSet, refuse_non_finite

M, N, COUNT = 7, 5, 60
RADIUS = 3.0
RNG = np.random.default_rng(0)
ROWS, COLS = RNG.integers(0, M, COUNT), RNG.integers(0, N, COUNT)  # with repeats
ONE_HOT = np.zeros((COUNT, M * N))
ONE_HOT[np.arange(COUNT), ROWS * N + COLS] = 1.0
Y = RNG.standard_normal(COUNT)
IDX = (None, np.arange(COUNT), np.array([3, 3, 50, 0]), np.array([], np.int64))
VERTICES = (
    RankOne(RNG.standard_normal(M), RNG.standard_normal(N)),
    LowRank(RNG.standard_normal((M, 2)), RNG.standard_normal((N, 2))),
    Coordinate(int(ROWS[4] * N + COLS[4]), -1.5, (M, N)),
    SparseVertex(np.array([0, 9, 34]), np.array([1.0, -1.0, 2.0]), (M, N)),
    DenseVertex(RNG.standard_normal((M, N))),
    DenseVertex(FactoredMatrix(RNG.standard_normal((M, 2)), RNG.standard_normal((N, 2)))),
    Combination(((0.5, RankOne(RNG.standard_normal(M), RNG.standard_normal(N))), (-2.0, Coordinate(3, 1.0, (M, N))))),
)


def flat(a) -> np.ndarray:
    return np.asarray(a).reshape(-1)


def top(g: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first pair of singular vectors, with one sign."""
    u, _, vt = np.linalg.svd(g)
    sign = np.sign(u[np.abs(u[:, 0]).argmax(), 0])
    return sign * u[:, 0], sign * vt[0]


@dataclass(frozen=True, eq=False, repr=False)
class Ball(ConvexSet):
    """A nuclear ball by dense SVDs, so that both problems are given the same vertices to the last bits."""

    matrix_free: ClassVar[bool] = True
    shape: tuple[int, ...] | None = None

    def lmo(self, g):
        refuse_non_finite(self, g.sum())
        u, v = top(np.asarray(g))
        return RankOne(-RADIUS * u, v)

    def contains(self, x, tol=1e-9):
        return x.norm_nuclear() <= RADIUS * (1 + tol)

    diameter = 2 * RADIUS

    def start(self):
        return FactoredMatrix.zeros(self.shape)


@dataclass(frozen=True, eq=False, repr=False)
class FlatBall(ConvexSet):
    """The same for vectors."""

    shape: tuple[int, ...] | None = None

    def lmo(self, g):
        u, v = top(g.reshape(M, N))
        return DenseVertex(-RADIUS * np.outer(u, v).reshape(-1))

    def contains(self, x, tol=1e-9):
        return True

    diameter = 2 * RADIUS

    def start(self):
        return np.zeros(self.shape)


def pair(loss):
    """The problem with entries, and the one with one-hot rows."""
    y = Y if loss.labels is None else np.where(Y > 0, loss.labels[1], loss.labels[0])
    return ex.LinearModel(loss, Entries(ROWS, COLS, (M, N)), y), ex.LinearModel(loss, ONE_HOT, y)


def states(method, count, loss=None, seed=0):
    f, h = pair(loss or ex.Squared())
    runs = ex.iterate(f, Ball(), method, seed=seed), ex.iterate(h, FlatBall(), method, seed=seed)
    return itertools.islice(zip(*runs, strict=True), count)


# the contract of data


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("idx", IDX, ids=str)
def test_products_are_those_with_one_hot_rows(idx, dtype):
    """Factors, arrays and derivatives keep their float type; products with vertices are in float64."""
    A, B = Entries(ROWS, COLS, (M, N)), ONE_HOT if idx is None else ONE_HOT[idx]
    x = FactoredMatrix(RNG.standard_normal((M, 2)), RNG.standard_normal((N, 2))).astype(dtype)
    atol = 1e-13 if dtype == np.float64 else 1e-5
    np.testing.assert_allclose(A.dot(x, idx), B @ flat(x), atol=atol)
    np.testing.assert_allclose(A.dot(np.asarray(x), idx), B @ flat(x), atol=atol)
    assert A.dot(x, idx).dtype == dtype
    c = RNG.standard_normal(len(B)).astype(dtype)
    np.testing.assert_allclose(flat(A.tdot(c, idx)), c @ B, atol=atol)
    assert A.tdot(c, idx).dtype == dtype
    for v in VERTICES:
        np.testing.assert_allclose(A.dot_vertex(v, idx), B @ flat(v.to_array()), atol=1e-13)
        assert A.dot_vertex(v, idx).dtype == np.float64


def test_shape_norms_and_smoothness():
    A = Entries(ROWS, COLS, (M, N))
    assert (A.shape, A.dtype) == ((COUNT, M, N), np.float64)
    assert repr(A) == f"Entries(<{COUNT} positions>, shape=(7, 5))"
    np.testing.assert_array_equal(A.row_norms2(), np.ones(COUNT))
    assert A.lambda_max() == np.bincount(ROWS * N + COLS).max() > 1
    for loss in LOSSES:
        f, h = pair(loss)
        assert f.smoothness == pytest.approx(h.smoothness, rel=1e-6)
        assert (f.n, f.shape, f.deriv_shape, f.factored) == (COUNT, (M, N), (), True)
    assert not pair(ex.Squared())[1].factored


def test_a_pickle_works_as_the_original():
    f = pickle.loads(pickle.dumps(pair(ex.Squared())[0]))
    x = FactoredMatrix.zeros((M, N))
    np.testing.assert_array_equal(flat(f.grad(x)), flat(pair(ex.Squared())[0].grad(x)))


def test_positions_are_sorted_once_for_all():
    positions = Entries(ROWS, COLS, (M, N)).positions
    order, starts, indices = positions.layout
    np.testing.assert_array_equal(order, np.lexsort((COLS, ROWS)))
    np.testing.assert_array_equal(indices, COLS[order])
    np.testing.assert_array_equal(np.diff(starts), np.bincount(ROWS, minlength=M))
    assert order.dtype == indices.dtype == np.int32
    assert Entries(ROWS[order], COLS[order], (M, N)).positions.layout[0] is None


# gradients


def observed(at=None) -> Observed:
    values = RNG.standard_normal(COUNT if at is None else len(at))
    return Observed(POSITIONS, values, at)


POSITIONS = Positions(ROWS, COLS, (M, N))
SOME = (None, np.array([3, 3, 50, 0]), np.array([7]), RNG.permutation(COUNT)[:40])


@pytest.mark.parametrize("p", SOME, ids=["all", "repeated", "one", "many"])
@pytest.mark.parametrize("q", SOME, ids=["all", "repeated", "one", "many"])
def test_arithmetic_of_gradients_is_that_of_arrays(p, q):
    g, h = observed(p), observed(q)
    a, b = np.asarray(g), np.asarray(h)
    for found, truth in (
        (g + h, a + b), (g - h, a - b), (-g, -a), (2 * g, 2 * a), (np.float64(2) * g, 2 * a), (g * np.float32(2), 2 * a),
        (g / 3, a / 3),
    ):  # fmt: skip
        assert isinstance(found, Observed)
        np.testing.assert_allclose(np.asarray(found), truth, atol=1e-13)
    np.testing.assert_allclose(g + np.ones((M, N)), a + 1, atol=1e-13)
    assert isinstance(np.ones((M, N)) - g, np.ndarray)
    np.testing.assert_allclose(np.asarray(g), a)  # neither has changed
    np.testing.assert_allclose(np.asarray(h), b)
    assert g.inner(h) == pytest.approx(np.vdot(a, b))


@pytest.mark.parametrize("at", SOME, ids=["all", "repeated", "one", "many"])
def test_products_with_gradients_are_those_of_arrays(at):
    g = observed(at)
    a, v, u, x = np.asarray(g), RNG.standard_normal((N, 3)), RNG.standard_normal(M), FactoredMatrix.zeros((M, N))
    x = iterates.toward(x, VERTICES[0], 0.5)
    np.testing.assert_allclose(g @ v, a @ v, atol=1e-13)
    np.testing.assert_allclose(g.T @ u, a.T @ u, atol=1e-13)
    np.testing.assert_allclose(u @ g, u @ a, atol=1e-13)
    np.testing.assert_allclose(g.flat[np.arange(M * N)], a.reshape(-1), atol=1e-13)
    assert g.flat[int(ROWS[3] * N + COLS[3])] == pytest.approx(a[ROWS[3], COLS[3]])
    for y in (x, np.asarray(x)):
        assert dot64(g, y) == dot64(y, g) == pytest.approx(np.vdot(a, np.asarray(y)))
    for s in VERTICES:
        assert s.dot(g) == pytest.approx(np.vdot(flat(s.to_array()), flat(a)))
    assert (g.shape, g.ndim, g.size, g.dtype) == (a.shape, 2, a.size, a.dtype)
    assert g.sum() == pytest.approx(a.sum())
    assert g.astype(np.float32).dtype == np.float32
    assert g.astype(np.float64) is g
    np.testing.assert_array_equal(np.asarray(pickle.loads(pickle.dumps(g))), a)


def test_a_gradient_is_not_written_to():
    c = RNG.standard_normal(COUNT)
    g = Observed(POSITIONS, c)
    with pytest.raises(ValueError, match="read-only"):
        g.values[0] = 1.0
    c[0] = 2.0  # the caller's array is the caller's


def test_sums_of_matrices_of_several_kinds():
    """What a proximal step asks the oracle with: g + beta (u - x)."""
    g, x = observed(), FactoredMatrix.zeros((M, N))
    u = iterates.toward(x, VERTICES[0], 0.5)
    total = g + 2.0 * (u - x)
    a = np.asarray(g) + 2.0 * np.asarray(u)
    assert isinstance(total, MatrixSum)
    v, w = RNG.standard_normal((N, 2)), RNG.standard_normal(M)
    for found, truth in (
        (total @ v, a @ v), (total.T @ w, a.T @ w), (total.T.T @ v, a @ v), (np.asarray(total), a),
        (np.asarray((total + g) / 2), (a + np.asarray(g)) / 2), (np.asarray(-(u - total)), a - np.asarray(u)),
        (total.flat[np.arange(M * N)], a.reshape(-1)), (total + a, 2 * a),
    ):  # fmt: skip
        np.testing.assert_allclose(found, truth, atol=1e-12)
    assert dot64(total, u) == pytest.approx(np.vdot(a, np.asarray(u)))
    assert dot64(g, total) == pytest.approx(np.vdot(a, np.asarray(g)))
    assert dot64(total, total) == pytest.approx(np.vdot(a, a))
    assert total.sum() == pytest.approx(a.sum())
    assert total.T.shape == (N, M)
    assert total.astype(np.float32).dtype == np.float32
    assert total.all_finite()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_gradient_that_is_not_finite_is_seen_to_be(bad):
    g = Observed(POSITIONS, np.append(np.zeros(COUNT - 1), bad))
    assert not checks.all_finite(g)
    assert not checks.all_finite(g + FactoredMatrix.zeros((M, N)))
    assert checks.all_finite(observed())
    assert checks.all_finite(Observed(POSITIONS, np.full(COUNT, 1e308)))  # their sum is not


# runs


@pytest.mark.parametrize("gradient", GRADIENTS, ids=repr)
@pytest.mark.parametrize("loss", [ex.Squared(), ex.Logistic()], ids=repr)
def test_every_estimator_makes_the_steps_of_the_dense_problem(gradient, loss):
    for a, b in states(ex.Method(gradient=gradient, step=ex.steps.OpenLoop()), 30, loss):
        assert isinstance(a.x, FactoredMatrix)
        assert isinstance(a.g, Observed)
        np.testing.assert_allclose(flat(a.x), b.x, atol=1e-10)
        np.testing.assert_allclose(flat(a.g), b.g, atol=1e-10)
        assert a.exact == b.exact
    assert replace(a.calls, rows=0) == replace(b.calls, rows=0)
    assert a.calls.rows <= b.calls.rows  # a sum of entries takes no second look at them


@pytest.mark.parametrize("step", [ex.steps.ShortStep(), ex.steps.LineSearch()], ids=repr)
def test_steps_that_look_at_f_are_those_of_the_dense_problem(step):
    for a, b in states(ex.FrankWolfe(step=step), 25):
        np.testing.assert_allclose(flat(a.x), b.x, atol=1e-10)
        mine, truth = a.certify(), b.certify()
        assert mine.value == pytest.approx(truth.value, rel=1e-11)
        assert mine.gap == pytest.approx(truth.gap, abs=1e-10)
        assert a.measure() == pytest.approx((truth.value, truth.gap), abs=1e-10)


MOVES = (
    ex.moves.Sliding(beta=2.0, tol=0.01),
    ex.moves.AcceleratedSliding(beta=ex.laws.PowerLaw(3.0, 2.0, -1.0), tol=ex.laws.Telescoping(4.0)),
    ex.moves.DoubleSliding(beta=ex.laws.PowerLaw(4.0, 1.0, -1.0), beta_y=2.0, tol=0.01),
)


@pytest.mark.parametrize("move", MOVES, ids=repr)
def test_sliding_moves_make_the_steps_of_the_dense_problem(move):
    for a, b in states(ex.Method(ex.gradients.Sarah(batch=5, p=0.2), ex.steps.OpenLoop(), move), 12):
        assert isinstance(a.x, FactoredMatrix)
        np.testing.assert_allclose(flat(a.x), b.x, atol=1e-9)


def test_gradients_from_values_make_the_steps_of_the_dense_problem():
    for a, b in states(ex.Method(ex.gradients.ZerothOrder(ex.gradients.Storm(5), mu=1e-3), ex.steps.OpenLoop()), 8):
        np.testing.assert_allclose(flat(a.x), b.x, atol=1e-8)


def test_the_answer_is_in_factors_with_an_exact_certificate():
    f, h = pair(ex.Squared())
    r = ex.minimize(f, Ball(), ex.FrankWolfe(step=ex.steps.LineSearch()), max_iter=40)
    x = flat(r.x)
    assert isinstance(r.x, FactoredMatrix)
    assert r.x.dtype == np.float64
    assert r.value == pytest.approx(h.value(x), rel=1e-12)
    g = h.grad(x)
    assert r.gap == pytest.approx(g @ x - FlatBall().lmo(g).dot(g), rel=1e-9)
    again = ex.minimize(f, Ball(), ex.FrankWolfe(step=ex.steps.LineSearch()), x0=r.x, max_iter=1)
    assert again.value <= r.value * (1 + 1e-12)


def test_a_run_that_meets_a_nan_says_so():
    @dataclass(frozen=True)
    class Broken(ex.Squared):
        def deriv(self, z, y):
            return np.where(z == 0, y, np.nan)

    f = ex.LinearModel(Broken(), Entries(ROWS, COLS, (M, N)), Y)
    assert ex.minimize(f, Ball(), ex.FrankWolfe(), max_iter=3).status == ex.Status.NON_FINITE
    *_, state = itertools.islice(ex.iterate(f, Ball(), ex.FrankWolfe()), 2)
    assert np.isnan(state.measure()[1])


def test_sets_that_want_arrays_are_given_arrays():
    """An l1 ball has Coordinate vertices and no use for factors: the iterate is dense, and so is what its oracle sees."""
    f, h = pair(ex.Squared())
    for method in (ex.FrankWolfe(), ex.SarahFW(batch=5), ex.SagaSarahFW(batch=5)):
        runs = ex.iterate(f, ex.L1Ball(2.0), method, seed=1), ex.iterate(h, ex.L1Ball(2.0), method, seed=1)
        for a, b in itertools.islice(zip(*runs, strict=True), 30):
            assert isinstance(a.x, np.ndarray)
            np.testing.assert_allclose(flat(a.x), b.x, atol=1e-12)
    a = next(ex.iterate(f, ex.L1Ball(2.0), ex.FrankWolfe(), x0=FactoredMatrix.zeros((M, N))))
    assert isinstance(a.x, np.ndarray)


@dataclass(frozen=True, eq=False, repr=False)
class LargeBall(Ball):
    """For matrices that have no dense form: one step of the power method, and a crude bound."""

    shape: tuple[int, ...] | None = None

    def lmo(self, g):
        v = np.random.default_rng(0).standard_normal(g.shape[1])
        u = g @ v
        v = g.T @ u
        low = -RADIUS * np.sqrt(max(0.0, dot64(g, g)))  # no singular value is above |g|
        return RankOne(-RADIUS * u / np.linalg.norm(u), v / np.linalg.norm(v), low)


@pytest.mark.parametrize("gradient", GRADIENTS, ids=repr)
def test_nothing_of_the_size_of_the_matrix_is_ever_made(gradient):
    """37 GiB would be: a run that asks for them fails."""
    shape, rng = (100_000, 50_000), np.random.default_rng(0)
    entries = Entries(rng.integers(0, shape[0], COUNT), rng.integers(0, shape[1], COUNT), shape)
    f = ex.LinearModel(ex.Squared(), entries, Y)
    assert f.smoothness == pytest.approx(1 / COUNT)
    for state in itertools.islice(ex.iterate(f, LargeBall(), ex.Method(gradient, ex.steps.OpenLoop())), 4):
        value, gap = state.measure()
        assert 0 < gap < np.inf
        assert value > 0


def test_no_move_makes_anything_of_the_size_of_the_matrix():
    shape, rng = (100_000, 50_000), np.random.default_rng(0)
    entries = Entries(rng.integers(0, shape[0], COUNT), rng.integers(0, shape[1], COUNT), shape)
    f = ex.LinearModel(ex.Squared(), entries, Y)
    atoms = (
        ex.moves.Away(),
        ex.moves.Pairwise(),
        ex.moves.BlendedPairwise(),
        ex.moves.BlendedPairwise(lazy=True),
        ex.moves.FullyCorrective(),
    )
    for move in (*MOVES, *atoms):
        r = ex.minimize(
            f, LargeBall(), ex.Method(gradient=ex.gradients.Full(), step=ex.steps.LineSearch(), move=move), max_iter=2
        )
        assert r.x.shape == shape
        assert r.value <= f.value(0 * r.x)


# what is refused


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: Entries([0, 5], [0, 0], (3, 3)), r"`Entries\(rows=...\)` must hold numbers from 0 to 2, got 5 at index 1"),
        (lambda: Entries([0, 1], [-1, 0], (3, 3)), r"`Entries\(cols=...\)` must hold numbers from 0 to 2, got -1 at index 0"),
        (lambda: Entries([0.5], [0], (3, 3)), r"`Entries\(rows=...\)` must hold whole numbers, got dtype float64"),
        (lambda: Entries([0, 1], [0], (3, 3)), "must be of one shape"),
        (lambda: Entries([], [], (3, 3)), r"`Entries\(rows=...\)` must be a list of at least one row"),
        (lambda: Entries([[0]], [[0]], (3, 3)), r"`Entries\(rows=...\)` must be a list"),
        (lambda: Entries([0], [0], (3,)), r"`Entries\(shape=...\)` must be two whole numbers"),
        (lambda: Entries([0], [0], (3, 0)), r"`Entries\(shape=...\)` must be a whole number of at least 1, got 0"),
        (lambda: ex.LinearModel(ex.Squared(), Entries([0], [0], (3, 3)), np.ones(2)), r"`LinearModel\(y=...\)`"),
        (lambda: ex.LinearModel(ex.Multinomial(3), Entries([0], [0], (3, 3)), np.ones(1)), r"`LinearModel\("),
        (lambda: ex.minimize(pair(ex.Squared())[0], Ball(), x0=FactoredMatrix.zeros((N, M))), r"must have shape \(7, 5\)"),
    ],
)
def test_mistakes_are_named(call, match):
    with pytest.raises(ex.InputError, match=match):
        call()
