"""The reference minimum: closed forms, independent solvers, hard data, losses and sets of one's own, real data."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import cases
import numpy as np
import pytest
import scipy.sparse as sp
from reference_problems import BALLS, CONVEX, EXACT, Cauchy, PseudoHuber, check, enough, gap_of, offset, random_problem
from scipy.optimize import minimize as scipy_minimize

import extremal as ex
from extremal.checks import InputError, NonFiniteError
from extremal.sets.base import ConvexSet
from extremal_lab.reproduction import reference as module
from extremal_lab.reproduction.interior import Curved, descend
from extremal_lab.reproduction.lifts import lift
from extremal_lab.reproduction.reference import Reference, reference

FOLDER = os.environ.get("EXTREMAL_DATA")


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


def duplicated(A):
    return np.hstack([A[:, :3], A[:, :3]])


def with_zero_column(A):
    return A * np.array([1.0, 0.0, 1.0, 1.0, 0.0, 1.0])


def badly_scaled(A):
    return A * np.array([1e3, 1.0, 1e-3, 1e3, 10.0, 1.0])


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
    x = np.linalg.lstsq(f.data.array, f.y, rcond=None)[0]
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
            for name in ("dot", "dot_vertex", "tdot", "row_norms2", "ready", "parts"):
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


# real data

real = pytest.mark.skipif(FOLDER is None, reason="EXTREMAL_DATA names no directory with the paper's data sets")
KNOWN = {("a8a", 20): 0.330905181, ("w8a", 20): 0.227847852, ("mushrooms", 20): 0.053088298}


@cache
def real_problem(name: str, loss: str = "Logistic") -> ex.LinearModel:
    from extremal.files.tables import load_table

    A, y = load_table(next(p for p in (Path(str(FOLDER)) / (name + end) for end in ("", ".xz", ".bz2", ".gz")) if p.exists()))
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
