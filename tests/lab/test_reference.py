"""The reference minimum: closed forms, independent solvers, hard data, and the parts of the interior-point method one by one."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import cases
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize as scipy_minimize

import extremal as ex
from extremal.checks import InputError, NonFiniteError
from extremal.sets.base import ConvexSet
from extremal_lab.reproduction import reference as module
from extremal_lab.reproduction import working_set
from extremal_lab.reproduction.interior import Curved, descend, polish, secant, second
from extremal_lab.reproduction.lifts import lift, to_boundary
from extremal_lab.reproduction.reference import Reference, reference
from extremal_lab.reproduction.working_set import by_columns

FOLDER = os.environ.get("EXTREMAL_DATA")
CONVEX = tuple(loss for loss in cases.LOSSES if loss.convex)
EXACT = 1e-14  # what rounding may do to the constraints


def enough(value: float) -> float:
    return max(1e-11, 1e-10 * abs(value))


def gap_of(f: ex.LinearModel, C: ConvexSet, x: np.ndarray) -> float:
    """The Frank-Wolfe gap by the formulas of cases.py: neither the library's losses nor its oracles."""
    A = np.asarray(f.data._A.todense() if sp.issparse(f.data._A) else f.data._A, np.float64)
    with np.errstate(over="ignore"):  # 1 / (1 + exp(z)) is 0 then, as it should be
        c = cases.truth(f.loss)[1](A @ x, f.y.astype(np.float64))
    return cases.gap(C, x, A.T @ c / len(A))


def check(f: ex.LinearModel, C: ConvexSet, times: float = 1.0) -> Reference:
    """A reference whose promises have been checked: feasible, with a gap that is true and small."""
    r = reference(f, C)
    assert C.contains(r.x, tol=EXACT)
    assert r.x.dtype == np.float64
    assert r.value == f.value(r.x)
    assert r.gap <= times * enough(r.value)
    assert gap_of(f, C, r.x) <= 2 * times * enough(r.value)
    assert r.how.startswith("interior point")
    return r


def scipy_minimum(f: ex.LinearModel, C: ConvexSet, x0: np.ndarray | None = None) -> float:
    """f* by SLSQP: another method, on another form of the problem."""
    d = f.shape[0]
    both = isinstance(C, ex.L1Ball)  # x = u - v
    fold = (lambda w: w[:d] - w[d:]) if both else (lambda w: w)
    unfold = (lambda g: np.concatenate([g, -g])) if both else (lambda g: g)
    bounds, constraints = None, ()
    match C:
        case ex.L1Ball(radius=R):
            bounds, constraints = [(0, None)] * (2 * d), [{"type": "ineq", "fun": lambda w: R - w.sum()}]
        case ex.L2Ball(radius=R):
            constraints = [{"type": "ineq", "fun": lambda x: R * R - x @ x}]
        case ex.LinfBall(radius=R):
            bounds = [(-R, R)] * d
        case ex.Simplex(total=t):
            bounds, constraints = [(0, None)] * d, [{"type": "eq", "fun": lambda w: w.sum() - t}]
        case ex.Box(lower=lo, upper=up):
            bounds = list(zip(np.broadcast_to(lo, d), np.broadcast_to(up, d), strict=True))
    x0 = C.on(d).start() if x0 is None else x0
    w0 = np.concatenate([np.maximum(x0, 0), np.maximum(-x0, 0)]) if both else x0
    out = scipy_minimize(
        lambda w: f.value(fold(w)), w0, jac=lambda w: unfold(f.grad(fold(w))), bounds=bounds, constraints=constraints,
        method="SLSQP", options={"maxiter": 1000, "ftol": 1e-15},
    )  # fmt: skip
    assert C.contains(fold(out.x), tol=1e-6)
    return float(out.fun)


# against what is known


@pytest.mark.parametrize("C", cases.SETS, ids=str)
@pytest.mark.parametrize("scale", [0.1, 1.0, 30.0])
def test_projections(C, scale):
    """(1/2n) |x - y|^2 is smallest at the projection of y."""
    y = scale * np.random.default_rng(3).standard_normal(cases.DIM)
    f = ex.LinearModel(ex.Squared(), np.eye(cases.DIM), y)
    r, p = check(f, C), cases.project(C, y)
    assert f.value(p) - 1e-14 * scale**2 <= r.value <= f.value(p) + r.gap + 1e-14 * scale**2
    assert np.linalg.norm(r.x - p) <= math.sqrt(2 * cases.DIM * (r.gap + 1e-14 * scale**2))  # f is strongly convex


@pytest.mark.parametrize("C", cases.SETS, ids=str)
@pytest.mark.parametrize("loss", CONVEX, ids=str)
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_every_convex_loss_on_every_set(loss, C, kind, f_star):
    r = check(cases.model(loss, kind), C)
    assert r.value == pytest.approx(f_star(loss, C), abs=2e-9)
    assert r.lower <= f_star(loss, C) <= r.value + 1e-9
    assert (r.convex, r.starts) == (True, 1)


@pytest.mark.parametrize("C", cases.SETS, ids=str)
@pytest.mark.parametrize("loss", CONVEX, ids=str)
def test_scipy_finds_nothing_better_nor_worse(loss, C):
    f = cases.model(loss)
    assert reference(f, C).value == pytest.approx(scipy_minimum(f, C), abs=1e-7)


@pytest.mark.parametrize("C", cases.SETS, ids=str)
def test_not_convex_is_stationary_and_as_good_as_scipy_from_many_starts(C):
    f, rng = cases.model(ex.NonlinearLeastSquares()), np.random.default_rng(0)
    r = check(f, C)
    starts = [cases.project(C, rng.standard_normal(cases.DIM)) for _ in range(5)]
    assert r.value <= min(scipy_minimum(f, C, x0) for x0 in starts) + 1e-9
    assert (r.convex, r.starts, r.lower) == (False, 6, r.value)


@pytest.mark.parametrize("seed", [4, 8, 71, 99, 148, 296])
def test_not_convex_finds_the_lowest_of_several_valleys(seed):
    """In one dimension the minimum is seen on a grid; from the centre the descent ends in another valley in all these cases."""
    rng = np.random.default_rng(seed)
    A, y = 3.0 * rng.standard_normal((6, 1)), rng.integers(0, 2, 6).astype(float)
    f, C = ex.LinearModel(ex.NonlinearLeastSquares(), A, y), ex.L1Ball(5.0).on(1)
    lowest = min(f.value(np.array([t])) for t in np.linspace(-5, 5, 4001))
    centre = descend(Curved(f), lift(C, 1), lambda x, g: cases.gap(C, x, g), enough)
    assert f.value(centre.x) > lowest + 1e-3
    assert lowest - 1e-5 <= check(f, C).value <= lowest + 1e-9


def test_logistic_start_has_the_sign_of_the_labels():
    """y = 1 wants small margins: a start with the other sign would have misclassified everything."""
    f = cases.model(ex.NonlinearLeastSquares())
    C = ex.L2Ball(20.0).on(cases.DIM)
    x = module._logistic(f, C, lift(C, cases.DIM))
    assert np.mean((f.margins(x) < 0) == (f.y == 1)) > 0.7
    assert f.value(x) < 0.8 * f.value(np.zeros(cases.DIM))


# hard data


def random_problem(n=40, d=6, loss=None, seed=0, change=lambda A: A, sparse=False):
    loss = loss or ex.Logistic()
    rng = np.random.default_rng(seed)
    A = change(rng.standard_normal((n, d)))
    y = A @ rng.standard_normal(d) + 0.5 * rng.standard_normal(n)
    y = y if loss.labels is None else np.where(y > np.median(y), loss.labels[1], loss.labels[0])
    return ex.LinearModel(loss, sp.csr_array(A) if sparse else A, y)


BALLS = (ex.L1Ball(3.0), ex.L2Ball(2.0), ex.LinfBall(0.7), ex.Simplex(2.0), ex.Box(-0.5, 1.0))


def duplicated(A):
    return np.hstack([A[:, :3], A[:, :3]])


def with_zero_column(A):
    return A * np.array([1.0, 0.0, 1.0, 1.0, 0.0, 1.0])


def badly_scaled(A):
    return A * np.array([1e3, 1.0, 1e-3, 1e3, 10.0, 1.0])


def offset(A):
    return 480.0 + 5.0 * A  # like madelon


@pytest.mark.parametrize("C", BALLS, ids=str)
@pytest.mark.parametrize("change", [duplicated, with_zero_column, badly_scaled, offset])
@pytest.mark.parametrize("sparse", [False, True])
def test_awkward_columns(C, change, sparse):
    check(random_problem(change=change, sparse=sparse), C)


@pytest.mark.parametrize("C", BALLS, ids=str)
@pytest.mark.parametrize("loss", [ex.Squared(), ex.Huber(0.1), ex.NonlinearLeastSquares()], ids=str)
@pytest.mark.parametrize("shape", [(1, 6), (40, 1), (1, 1), (5, 30)])
def test_one_row_one_column_more_columns_than_rows(C, loss, shape):
    check(random_problem(*shape, loss=loss), C)


@pytest.mark.parametrize("C", [ex.L1Ball(1e4), ex.L2Ball(1e4), ex.LinfBall(1e4), ex.Box(-1e4, 2e4)], ids=str)
@pytest.mark.parametrize("sparse", [False, True])
def test_separable_data_at_a_large_radius(C, sparse):
    A = np.random.default_rng(0).standard_normal((50, 5))
    y = np.sign(A[:, 0])
    r = check(ex.LinearModel(ex.Logistic(), sp.csr_array(A) if sparse else A, y), C)
    assert 0 <= r.value < 1e-10


@pytest.mark.parametrize("C", [ex.L1Ball(1e3), ex.L2Ball(1e3), ex.LinfBall(1e3), ex.Box(-1e3, 2e3)], ids=str)
def test_a_minimum_inside(C):
    f = random_problem(loss=ex.Squared())
    x = np.linalg.lstsq(f.data._A, f.y, rcond=None)[0]
    r = check(f, C)
    assert r.value == pytest.approx(f.value(x), rel=1e-12)
    np.testing.assert_allclose(r.x, x, atol=1e-9)


@pytest.mark.parametrize(
    ("C", "x"),
    [
        (ex.L1Ball(2.0), [0.0, -2.0, 0.0]),
        (ex.Simplex(2.0), [2.0, 0.0, 0.0]),
        (ex.LinfBall(2.0), [2.0, -2.0, 2.0]),
        (ex.Box([-1.0, 0.0, 1.0], 3.0), [3.0, 0.0, 3.0]),
    ],
    ids=str,
)
def test_a_minimum_at_a_vertex(C, x):
    f = ex.LinearModel(ex.Squared(), np.eye(3), np.array([100.0, -200.0, 50.0]))
    r = check(f, C)
    np.testing.assert_allclose(r.x, x, atol=1e-8)


@pytest.mark.parametrize(("loss", "C"), [(ex.Huber(1e-3), ex.Simplex(300.0)), (ex.Huber(1e-3), ex.L1Ball(50.0))], ids=str)
def test_huber_that_is_nearly_absolute_error(loss, C):
    """phi'' is zero almost everywhere: without the secant weights 300 steps are not enough."""
    f = random_problem(20, 19, loss, change=lambda A: 30.0 * A)
    r = check(f, C, times=100.0)  # margins of size 1e4 are rounded to 1e-12, and that is 1e-9 of phi'
    assert int(r.how.split()[2]) < 150


def test_bounds_that_meet():
    f = random_problem(loss=ex.Squared())
    lower = np.array([0.5, -1.0, 0.0, 2.0, -3.0, 0.0])
    upper = lower + np.array([0.0, 1.0, 0.0, 1.0, 0.0, 2.0])
    r = check(f, ex.Box(lower, upper))
    np.testing.assert_array_equal(r.x[[0, 2, 4]], lower[[0, 2, 4]])
    np.testing.assert_array_equal(reference(f, ex.Box(lower, lower)).x, lower)


@pytest.mark.parametrize("C", BALLS, ids=str)
def test_nothing_to_do_where_f_is_constant(C):
    r = check(ex.LinearModel(ex.Logistic(), np.zeros((3, 4)), np.array([1.0, -1.0, 1.0])), C)
    assert r.how == "interior point, 0 Newton steps"
    assert r.value == pytest.approx(math.log(2))


@pytest.mark.parametrize("C", BALLS, ids=str)
@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_float32_data_are_solved_in_float64(C, kind):
    f = cases.model(ex.Logistic(), kind, np.float32)
    r = check(f, C)
    assert r.value == pytest.approx(reference(cases.model(ex.Logistic()), C).value, rel=1e-6)


@pytest.mark.parametrize("loss", [ex.Squared(), ex.NonlinearLeastSquares()], ids=str)
def test_same_answer_every_time(loss):
    first = reference(cases.model(loss), ex.L1Ball(2.0))
    np.random.default_rng(5).standard_normal(3)
    again = reference(cases.model(loss), ex.L1Ball(2.0))
    assert first.x.tobytes() == again.x.tobytes()
    assert (first.value, first.gap, first.how) == (again.value, again.gap, again.how)


def test_a_gap_that_rounding_makes_large_is_told():
    rng = np.random.default_rng(0)
    A = 1e6 * rng.standard_normal((4, 8))
    f, C = ex.LinearModel(ex.Squared(), A, A @ rng.standard_normal(8) + 1e-3), ex.LinfBall(1e4)
    r = reference(f, C)
    told = gap_of(f, C, r.x)  # to be small, f' would need a residual of 1e-9, times 1e10: rounding decides
    assert r.gap == pytest.approx(told, rel=1e-3, abs=enough(r.value))
    assert r.value < 1e-12 * f.value(np.zeros(8))


@pytest.mark.parametrize("width", [0.5, 1e-9])  # of where the derivative is a number: at the start; there, but not around it
def test_derivatives_that_are_not_finite_are_refused(width):
    class Broken:
        curvature, convex, labels = 1.0, True, None
        value = ex.Squared.value

        def deriv(self, z, y):
            return np.where(np.abs(z) < width, z - y, np.nan)

    with pytest.raises(NonFiniteError):
        reference(ex.LinearModel(Broken(), np.eye(2), np.array([3.0, 3.0])), ex.L2Ball(2.0))


@pytest.mark.parametrize("C", [ex.L1Ball(1e300), ex.L2Ball(1e300), ex.LinfBall(1e300), ex.Box(-1e300, 1e300), ex.Box(-1e300, 0.0),
                               ex.Simplex(1e300)], ids=str)  # fmt: skip
def test_sets_whose_squares_overflow_are_refused_in_one_sentence(C):
    with pytest.raises(InputError, match=r"`reference\(C=...\)` must have points of size 1e\+100 at most, got .*1e\+300"):
        reference(random_problem(), C)


@pytest.mark.parametrize("C", BALLS, ids=str)
@pytest.mark.parametrize("sparse", [False, True])
def test_data_whose_squares_overflow_are_refused_in_one_sentence(C, sparse):
    with pytest.raises(InputError, match=r"must have rows of size 1e\+100 at most, got 1.8e\+308"):
        reference(random_problem(change=lambda A: 1e200 * A, sparse=sparse), C)
    with pytest.raises(InputError, match=r"must have targets of size 1e\+100 at most, got 1e\+200"):
        reference(ex.LinearModel(ex.Squared(), np.eye(6), np.full(6, 1e200)), C)
    with pytest.raises(InputError, match=r"must have margins on C of size 1e\+100 at most, got 1e\+120"):
        reference(ex.LinearModel(ex.Squared(), 1e60 * np.eye(6), np.ones(6)), ex.L1Ball(1e60))


@pytest.mark.parametrize("loss", cases.LOSSES, ids=str)
@pytest.mark.parametrize(("scale", "radius"), [(1.0, 1e98), (1e70, 1.0), (1e35, 1e35), (1e-200, 1e-200)])
def test_large_and_small_numbers_raise_nothing_and_the_gap_is_told(loss, scale, radius):
    """Warnings are errors here: neither these nor an OverflowError."""
    f = random_problem(loss=loss, change=lambda A: scale * A)
    for C in (ex.L1Ball(radius), ex.L2Ball(radius), ex.LinfBall(radius), ex.Box(-radius, 2 * radius), ex.Simplex(radius)):
        r = reference(f, C)
        assert C.contains(r.x, tol=EXACT)
        assert r.gap == pytest.approx(max(0.0, cases.gap(C, r.x, f.grad(r.x))), rel=1e-3, abs=1e-20)  # cancels


def test_float32_rows_whose_squares_overflow_in_float32():
    f = random_problem(loss=ex.Squared(), change=lambda A: (1e25 * A).astype(np.float32))
    assert f.data.dtype == np.float32
    assert reference(f, ex.L1Ball(1.0)).gap < 1e-6 * f.value(np.zeros(6))


# losses and data of one's own


@dataclass(frozen=True)
class PseudoHuber:
    curvature = 1.0
    convex = True
    labels = None

    def value(self, z, y):
        return np.sqrt(1.0 + np.square(z - y)) - 1.0

    def deriv(self, z, y):
        return (z - y) / np.sqrt(1.0 + np.square(z - y))


@dataclass(frozen=True)
class Cauchy:
    curvature = 1.0
    convex = False
    labels = None

    def value(self, z, y):
        return 0.5 * np.log1p(np.square(z - y))

    def deriv(self, z, y):
        return (z - y) / (1.0 + np.square(z - y))


@pytest.mark.parametrize(("loss", "starts"), [(PseudoHuber(), 1), (Cauchy(), 4)])
@pytest.mark.parametrize("C", BALLS, ids=str)
def test_a_loss_of_ones_own(loss, starts, C):
    f = random_problem(loss=loss)
    r = reference(f, C)
    assert r.gap <= enough(r.value)
    assert r.starts == starts
    assert r.value <= scipy_minimum(f, C) + 1e-9
    assert cases.gap(C, r.x, f.grad(r.x)) <= enough(r.value)


def test_data_of_ones_own():
    """Data that keep the contract and nothing else: the matrix is asked for by columns."""

    class Mine:
        def __init__(self, inner):
            self.shape, self.dtype = inner.shape, inner.dtype
            for name in ("dot", "dot_vertex", "tdot", "row_norms2", "ready"):
                setattr(self, name, getattr(inner, name))

    y = cases.targets(ex.Logistic())
    f = ex.LinearModel(ex.Logistic(), Mine(ex.data.Dense(cases.MATRIX)), y)
    r = reference(f, ex.L1Ball(2.0))
    assert r.how.startswith("interior point")
    assert r.value == pytest.approx(reference(cases.model(ex.Logistic()), ex.L1Ball(2.0)).value, rel=1e-12)


# what is left to Frank-Wolfe


@dataclass(frozen=True)
class Segment(ConvexSet):
    """A set that has no lift: from -end to end."""

    shape: tuple[int, ...] | None = (cases.DIM,)

    end = np.linspace(0.1, 1.0, cases.DIM)

    def lmo(self, g):
        return ex.points.DenseVertex(-self.end if g @ self.end > 0 else self.end)

    def contains(self, x, tol=1e-9):
        t = x @ self.end / (self.end @ self.end)
        return bool(abs(t) <= 1 + tol and np.abs(x - t * self.end).max() <= tol)

    @property
    def diameter(self):
        return 2 * float(np.linalg.norm(self.end))

    def start(self):
        return np.zeros(cases.DIM)


def test_a_set_of_ones_own():
    f = cases.model(ex.Squared())
    r = reference(f, Segment())
    a = cases.MATRIX @ Segment.end
    t = float(np.clip(a @ f.y / (a @ a), -1, 1))
    assert r.how.startswith("blended pairwise steps")
    assert r.value == pytest.approx(f.value(t * Segment.end), rel=1e-9)
    assert (r.convex, r.starts) == (True, 1)


def test_an_objective_of_ones_own():
    r = reference(cases.separable(ex.Squared()), ex.L2Ball(0.5))
    exact = reference(cases.model(ex.Squared()), ex.L2Ball(0.5))
    assert r.how.startswith("blended pairwise steps")
    assert r.gap <= 1e-8 * r.value + 1e-10
    assert r.lower <= exact.value <= r.value + exact.gap


def test_many_coefficients(monkeypatch):
    f, C = cases.model(ex.Logistic()), ex.L2Ball(0.5)
    exact = reference(f, C)
    monkeypatch.setattr(module, "DIMENSION", cases.DIM - 1)
    r = reference(f, C)
    assert (exact.how.split(",")[0], r.how.split(",")[0]) == ("interior point", "blended pairwise steps with line search")
    assert r.gap <= 1e-8 * r.value + 1e-10
    assert abs(r.value - exact.value) <= r.gap + exact.gap


def test_many_coefficients_and_not_convex(monkeypatch):
    monkeypatch.setattr(module, "DIMENSION", cases.DIM - 1)
    r = reference(cases.model(ex.NonlinearLeastSquares()), ex.L1Ball(0.5))
    assert r.how.startswith("blended pairwise steps")


# more columns than can be solved for at once


def wide_problem(loss, one_hot=False, n=1000, d=5000):
    """1% of normal entries; or 40 groups of 125 columns, one 1 in each, most often in the first columns of the group."""
    rng = np.random.default_rng(0)
    if one_hot:
        columns = np.minimum(d // 40 - 1, rng.pareto(0.7, (n, 40)).astype(int)) + d // 40 * np.arange(40)
        A = sp.csr_array((np.ones(40 * n), columns.ravel(), 40 * np.arange(n + 1)), shape=(n, d))
    else:
        A = sp.random_array((n, d), density=0.01, rng=rng, format="csr", data_sampler=lambda size: rng.standard_normal(size))
    x = np.zeros(d)
    x[rng.choice(d, d // 100, replace=False)] = 3 * rng.standard_normal(d // 100)
    y = A @ x + 0.3 * rng.standard_normal(n)
    return ex.LinearModel(loss, A, y if loss.labels is None else np.sign(y))


@pytest.mark.parametrize("one_hot", [False, True])
@pytest.mark.parametrize(
    ("loss", "C", "d"),
    [
        (ex.Logistic(), ex.L1Ball(20.0), 5000),  # as users have it; the others on a fifth of rows and columns
        (ex.Logistic(), ex.L1Ball(200.0), 1000),
        (ex.Logistic(), ex.Simplex(1.0), 1000),
        (ex.Logistic(), ex.Simplex(200.0), 1000),
        (ex.Squared(), ex.L1Ball(20.0), 1000),
        (ex.Huber(0.5), ex.Simplex(20.0), 1000),
    ],
    ids=str,
)
def test_thousands_of_columns_are_certified_too(loss, C, d, one_hot, monkeypatch):
    f = wide_problem(loss, one_hot, d // 5, d)
    monkeypatch.setattr(module, "DIMENSION", 3 * d // 5)
    r = check(f, C)
    assert r.gap <= 1e-9 * r.value + 1e-11
    columns = int(re.fullmatch(rf"interior point on (\d+) of {d} columns, \d+ rounds?, \d+ Newton steps", r.how)[1])
    assert np.count_nonzero(r.x) <= columns < 0.6 * d
    assert (r.convex, r.starts) == (True, 1)


@pytest.fixture
def few_columns(monkeypatch):
    """30 columns instead of 3000, and 4 to begin with."""
    monkeypatch.setattr(module, "DIMENSION", 30)
    monkeypatch.setattr(working_set, "FIRST", 4)


SPARSE = (ex.L1Ball(3.0), ex.L1Ball(0.1), ex.Simplex(2.0), ex.Simplex(0.01))


@pytest.mark.parametrize("C", SPARSE, ids=str)
@pytest.mark.parametrize("loss", CONVEX, ids=str)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("shape", [(25, 60), (1, 31), (200, 40)])
def test_few_columns_and_all_columns_agree(C, loss, sparse, shape, few_columns, monkeypatch):
    f = random_problem(*shape, loss=loss, sparse=sparse, change=lambda A: A * (np.arange(A.shape[1]) % 3 > 0))  # zero columns too
    few = check(f, C) if shape != (200, 40) else reference(f, C)  # more than 30 coordinates may be needed then
    monkeypatch.setattr(module, "DIMENSION", 3000)
    every = check(f, C)
    assert (" columns," in few.how, " columns," in every.how) == (True, False)
    assert every.lower <= few.value <= every.value + few.gap + 1e-15
    assert few.lower <= every.value


def test_float32_and_data_of_ones_own_on_few_columns(few_columns):
    class Mine:
        def __init__(self, inner):
            self.shape, self.dtype = inner.shape, inner.dtype
            for name in ("dot", "dot_vertex", "tdot", "row_norms2", "ready"):
                setattr(self, name, getattr(inner, name))

    f = random_problem(25, 60, change=lambda A: A.astype(np.float32))
    narrow, own = ex.LinearModel(f.loss, f.data, f.y), ex.LinearModel(f.loss, Mine(f.data), f.y)
    first, second = check(narrow, ex.L1Ball(3.0)), reference(own, ex.L1Ball(3.0))
    assert (first.value, first.how) == (pytest.approx(second.value, rel=1e-12), second.how)


def test_too_few_columns_are_told_by_the_gap(few_columns):
    """All 40 coordinates are needed, and 30 may be taken."""
    y = np.random.default_rng(0).uniform(1.0, 2.0, 40)
    f, C = ex.LinearModel(ex.Squared(), np.eye(40), y), ex.L1Ball(70.0)
    r = reference(f, C)
    np.testing.assert_allclose(np.sort(r.x)[10:], np.sort(y)[10:], rtol=1e-6)
    assert r.how.startswith("interior point on 30 of 40 columns, ")
    assert r.gap == pytest.approx(gap_of(f, C, r.x), rel=1e-9)
    assert r.gap > 1.0
    assert r.lower <= 0.0


def test_columns_that_are_not_needed_make_room():
    """10 at once: other ones than the first 10 are needed, and some of these are not."""
    A = np.random.default_rng(4).standard_normal((30, 80))
    f, C, seen = ex.LinearModel(ex.Squared(), A, A[:, :4] @ [4.0, -3.0, 2.0, 1.0]), ex.L1Ball(6.0).on(80), []

    def solve(f, C):
        seen.append(f.shape[0])
        return reference(f, C).x, 7

    few = by_columns(f, C, solve, lambda x, value, g: cases.gap(C, x, g) <= 1e-9, 10)
    assert cases.gap(C, few.x, f.grad(few.x)) <= 1e-9
    assert (few.columns, few.rounds, few.steps, seen) == (10, 3, 21, [10, 10, 10])


def test_rounds_come_to_an_end():
    """A solver that answers nonsense: no answer is good enough, and there is always another column."""
    f, C, rng = random_problem(10, 500, ex.Squared()), ex.L1Ball(1.0).on(500), np.random.default_rng(0)
    few = by_columns(f, C, lambda f, C: (C.lmo(rng.standard_normal(f.shape)).to_array(), 1), lambda x, value, g: False, 120)
    assert few.rounds <= working_set.ROUNDS
    assert few.columns <= 120


def test_mistakes():
    f = cases.model(ex.Squared())
    with pytest.raises(InputError, match=r"`reference\(f=...\)`"):
        reference(ex.Squared(), ex.L1Ball(1.0))  # pyright: ignore
    with pytest.raises(InputError, match=r"`reference\(C=...\)`"):
        reference(f, "l1:20")  # pyright: ignore
    with pytest.raises(InputError, match="shape"):
        reference(f, ex.L1Ball(1.0, shape=cases.DIM + 1))


def test_the_gap_is_the_proven_bound_of_an_oracle_that_is_not_exact():
    """One that may have missed 0.01: the answer alone would prove more than is known."""

    class Rough(ex.L1Ball):
        def lmo(self, g):
            s = super().lmo(g)
            return replace(s, low=s.dot(g) - 0.01)

    r = reference(cases.model(ex.Logistic()), Rough(2.0))
    exact = reference(cases.model(ex.Logistic()), ex.L1Ball(2.0))
    assert r.gap == pytest.approx(0.01 + exact.gap, abs=1e-6)
    assert r.lower <= exact.lower


def test_lower_bound():
    r = Reference(value=2.0, gap=0.5, x=np.zeros(1), how="", convex=True, starts=1)
    assert r.lower == 1.5
    assert Reference(value=2.0, gap=0.5, x=np.zeros(1), how="", convex=False, starts=1).lower == 2.0
    with pytest.raises(AttributeError):
        r.value = 1.0  # pyright: ignore


# the parts


@pytest.mark.parametrize("loss", [*cases.LOSSES, PseudoHuber(), Cauchy()], ids=str)
def test_second_derivatives(loss):
    z = np.linspace(-4.1, 4.1, 38)
    y = np.full(38, loss.labels[1] if loss.labels else 0.3)
    h = 1e-6
    slopes = (loss.deriv(z + h, y) - loss.deriv(z - h, y)) / (2 * h)
    np.testing.assert_allclose(second(loss, z, y), slopes, atol=1e-8)
    assert (secant(loss, z, y) >= second(loss, z, y)).all()
    assert np.isfinite(second(loss, np.array([-1e5, 1e5]), y[:2])).all()


def test_second_derivatives_by_differences_keep_to_what_the_loss_says():
    class Liar(Cauchy):
        convex, curvature = True, 0.5

    z, y = np.linspace(-4, 4, 33), np.zeros(33)
    assert second(Cauchy(), z, y).min() < -0.1
    assert (second(Liar(), z, y).min(), second(Liar(), z, y).max()) == (0.0, 0.5)


def test_secant_weights_of_huber_stay_above_it():
    loss, y = ex.Huber(0.5), np.zeros(1)
    for z in (0.2, -0.4, 3.0, -20.0):
        at = np.array([z])
        model = lambda t, at=at: loss.value(at, y) + loss.deriv(at, y) * (t - at) + 0.5 * secant(loss, at, y) * (t - at) ** 2  # noqa: E731
        t = np.linspace(-40, 40, 801)
        assert (model(t) >= loss.value(t, y) - 1e-12).all()


@pytest.mark.parametrize("A", cases.DATA, ids=lambda A: f"{type(A).__name__}-{A.dtype}")
@pytest.mark.parametrize("loss", [ex.Logistic(), ex.NonlinearLeastSquares()], ids=str)
def test_hessian_is_the_derivative_of_the_gradient(A, loss):
    f = Curved(ex.LinearModel(loss, A, cases.targets(loss)))
    x, h = np.linspace(-1, 1, cases.DIM), 1e-6
    columns = [(f.grad(f.margins(x + h * e)) - f.grad(f.margins(x - h * e))) / (2 * h) for e in np.eye(cases.DIM)]
    H = f.hessian(f.margins(x))
    assert H.dtype == np.float64
    np.testing.assert_allclose(H, columns, atol=1e-8)


def test_few_entries_stay_sparse_and_many_do_not():
    few, many = sp.random_array((50, 30), density=0.1, rng=np.random.default_rng(0)), np.ones((50, 30))
    assert sp.issparse(Curved(ex.LinearModel(ex.Squared(), sp.csr_array(few), np.zeros(50)))._A)
    assert not sp.issparse(Curved(ex.LinearModel(ex.Squared(), sp.csr_array(many), np.zeros(50)))._A)


LIFTS = [lift(C, cases.DIM) for C in cases.SETS]


def interior(lifted, seed=0):
    rng = np.random.default_rng(seed)
    C = cases.SETS[LIFTS.index(lifted)]
    return 0.6 * lifted.raised(cases.project(C, rng.standard_normal(cases.DIM))) + 0.4 * lifted.centre()


def tangent(lifted, w):
    """A basis of the steps that keep the lift's equations."""
    d, m = cases.DIM, len(w)
    if type(lifted).__name__ == "_Box":
        return np.vstack([np.eye(d), -np.eye(d)])
    return np.eye(m) if type(lifted).__name__ == "_Ball" else np.linalg.svd(np.ones((1, m)))[2][1:].T


@pytest.mark.parametrize("lifted", LIFTS, ids=str)
def test_lifts_are_the_set(lifted):
    C, x = cases.SETS[LIFTS.index(lifted)], cases.project(cases.SETS[LIFTS.index(lifted)], np.linspace(-0.5, 0.4, cases.DIM))
    np.testing.assert_allclose(lifted.lowered(lifted.raised(x)), x, atol=1e-15)
    assert C.contains(lifted.lowered(lifted.centre()), tol=EXACT)
    assert lifted.slacks(lifted.centre()).shape == (lifted.m,)
    assert (lifted.slacks(interior(lifted)) > 0).all()
    for corner in cases.corners(C, cases.DIM)[:20]:
        assert lifted.slacks(lifted.raised(corner)).min() == pytest.approx(0, abs=1e-12)
        assert C.contains(lifted.feasible((1 + 1e-10) * corner), tol=EXACT)
        np.testing.assert_allclose(lifted.feasible((1 + 1e-10) * corner), corner, atol=1e-8)


@pytest.mark.parametrize("lifted", LIFTS, ids=str)
def test_steps_solve_the_system_that_they_stand_for(lifted):
    """Against the full system, assembled from differences: P = dx/dw, J = ds/dw, on the steps that keep the equations."""
    rng = np.random.default_rng(1)
    w, g, d = interior(lifted), rng.standard_normal(cases.DIM), cases.DIM
    B, s = rng.standard_normal((d, d)), lifted.slacks(w)
    H, lam, t = B @ B.T, rng.random(lifted.m) + 0.1, 1e-6
    P = np.array([(lifted.lowered(w + t * e) - lifted.lowered(w - t * e)) / (2 * t) for e in np.eye(len(w))]).T
    J = np.array([(lifted.slacks(w + t * e) - lifted.slacks(w - t * e)) / (2 * t) for e in np.eye(len(w))]).T
    curved = 2 * lam[0] * np.eye(d) if type(lifted).__name__ == "_Ball" else 0.0
    N = tangent(lifted, w)
    K = P.T @ H @ P + J.T @ np.diag(lam / s) @ J + curved
    expected = N @ np.linalg.solve(N.T @ K @ N, N.T @ (J.T @ lam - P.T @ g))
    r = lifted.pull(w, g, lam)
    dw, dx = lifted.solve((np.linalg.cholesky(lifted.matrix(H, s, lam)), True), w, lam, r)
    np.testing.assert_allclose(dw, expected, atol=1e-7)
    np.testing.assert_allclose(dx, P @ dw, atol=1e-7)
    np.testing.assert_allclose(lifted.change(w, dw), J @ dw, atol=1e-7)
    assert r @ dw == pytest.approx((J.T @ lam - P.T @ g) @ dw)
    for length in (1.0, 100.0):
        reach = lifted.reach(w, length * dw)
        assert (lifted.slacks(w + reach * length * dw) >= 0.0049 * s).all()
        assert reach == 1.0 or (lifted.slacks(w + 1.3 * reach * length * dw) < 0.005 * s).any()


def test_no_digits_are_lost_where_u_and_v_nearly_cancel():
    """x is followed apart from u and v; but it is led back to u - v where the two part."""
    ball = lift(ex.L1Ball(2.0), 2)
    w, x = np.array([0.25, 0.25, 0.25, 0.25, 0.0]), np.array([1e-17, 0.5])
    new, settled = ball.settled(2 * w, 2 * x)
    np.testing.assert_array_equal(new, w)
    np.testing.assert_array_equal(settled, [1e-17, 0.0])


def test_to_boundary():
    assert to_boundary(np.array([2.0, 1.0]), np.array([1.0, 0.0])) == 1.0
    assert to_boundary(np.array([2.0, 1.0]), np.array([-8.0, -1.0])) == pytest.approx(0.995 / 4)


def test_polish_takes_a_minimum_inside_to_its_last_digits():
    f, C = random_problem(loss=ex.Squared(), change=offset), ex.L1Ball(2000.0)
    gap = lambda x, g: cases.gap(C, x, g)  # noqa: E731
    curved, inside = Curved(f), lambda x: C.contains(x, tol=0.0)
    x = reference(f, C).x + 1e-7 * np.random.default_rng(0).standard_normal(6)
    new = polish(curved, x, gap, inside)
    assert gap(new, f.grad(new)) < 1e-4 * gap(x, f.grad(x))
    assert inside(new)
    assert polish(curved, x, gap, lambda x: False) is x  # nowhere to go


@pytest.mark.parametrize(("enough", "polished"), [(1.0, False), (-1.0, True)])
def test_only_a_gap_that_is_too_large_is_polished(monkeypatch, enough, polished):
    monkeypatch.setattr(module, "polish", lambda f, x, gap, inside: np.zeros(8))
    monkeypatch.setattr(module, "_enough", lambda value: enough)
    monkeypatch.setattr(module, "descend", lambda f, lifted, gap, _, *start: descend(f, lifted, gap, lambda value: 1e-3, *start))
    A = np.random.default_rng(0).standard_normal((4, 8))
    found = reference(ex.LinearModel(ex.Squared(), A, A.sum(axis=1)), ex.LinfBall(10.0))
    assert found.x.any() != polished


@pytest.mark.parametrize("loss", [ex.Logistic(), ex.NonlinearLeastSquares()], ids=str)
def test_descent_that_is_never_good_enough_ends_with_the_best_of_its_points(loss):
    """The smallest gap for convex f; the smallest value otherwise, since a saddle has a small gap too."""
    f, C, seen = cases.model(loss), ex.L1Ball(2.0), {}

    def gap(x, g):
        seen[f.value(x), x.tobytes()] = abs(cases.gap(C, x, g)) + 1e-20  # never zero
        return seen[f.value(x), x.tobytes()]

    found = descend(Curved(f), lift(C, cases.DIM), gap, lambda value: 1e-25)
    assert 20 < found.steps <= 300
    value = f.value(found.x)
    assert seen[value, found.x.tobytes()] == min(seen.values()) if loss.convex else value == min(seen)[0]


def test_descent_from_a_start_of_ones_own():
    f, C = cases.model(ex.Logistic()), ex.L1Ball(2.0)
    lifted = lift(C, cases.DIM)
    found = descend(Curved(f), lifted, lambda x, g: cases.gap(C, x, g), lambda value: 1e-9, interior(LIFTS[0]), 0.01)
    assert f.value(found.x) == pytest.approx(reference(f, C).value, abs=2e-9)
    assert 0 < found.steps < 40


# real data

real = pytest.mark.skipif(FOLDER is None, reason="EXTREMAL_DATA names no directory with the paper's data sets")
KNOWN = {("a8a", 20): 0.330905181, ("w8a", 20): 0.227847852, ("mushrooms", 20): 0.053088298}


@cache
def real_problem(name: str, loss: str = "Logistic") -> ex.LinearModel:
    from extremal.files.tables import load

    A, y = load(next(p for p in (Path(str(FOLDER)) / (name + end) for end in ("", ".xz", ".bz2", ".gz")) if p.exists()))
    low, high = getattr(ex, loss)().labels
    return ex.LinearModel(getattr(ex, loss)(), A, np.where(y == y.max(), high, low))


@real
@pytest.mark.parametrize(("name", "radius"), KNOWN)
def test_known_optima(name, radius):
    f, C = real_problem(name), ex.L1Ball(radius)
    r = reference(f, C)
    assert r.value == pytest.approx(KNOWN[name, radius], abs=1e-9)
    assert r.gap <= enough(r.value)
    assert cases.gap(C, r.x, f.grad(r.x)) <= 2 * enough(r.value)


@real
@pytest.mark.parametrize("name", ["breast-cancer_scale", "mushrooms", "a8a", "madelon"])
@pytest.mark.parametrize("radius", [2, 200, 2000])
def test_real_data_are_certified_at_every_radius(name, radius):
    f, C = real_problem(name), ex.L1Ball(radius)
    r = reference(f, C)
    assert r.gap <= 1e-10 * max(1, radius / 1000)  # the rounding of a gradient counts times the radius
    assert C.contains(r.x, tol=EXACT)
    assert r.value < f.value(np.zeros(f.shape))


@real
@pytest.mark.parametrize("name", ["breast-cancer_scale", "mushrooms"])
def test_real_data_not_convex(name):
    f = real_problem(name, "NonlinearLeastSquares")
    r = reference(f, ex.L1Ball(2000))
    assert r.gap <= 1e-8
    assert r.value < 0.1 * f.value(np.zeros(f.shape))
