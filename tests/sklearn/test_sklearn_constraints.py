"""The argument ``constraint``: every form against the inequalities that it stands for."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from constraint_texts import ROWS, read
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import Bounds, LinearConstraint, linprog

import extremal as ex
from extremal.rounding.exact import settle, violation
from extremal.sklearn import ConstrainedLinearRegression

INF = math.inf


def least(g, lower, upper, A=None, b=None, A_eq=None, b_eq=None, l1=None) -> float:
    """min <g, w> over what the text says, by HiGHS, with w = p - q."""
    d = len(g)
    rows, right = [], []
    if A is not None:
        rows, right = [np.hstack([A, -np.asarray(A)])], [b]
    rows, right = [*rows, np.hstack([np.eye(d), -np.eye(d)]), np.hstack([-np.eye(d), np.eye(d)])], [*right, upper, -lower]
    if l1 is not None:
        rows, right = [*rows, np.ones((1, 2 * d))], [*right, [l1]]
    rows, right = np.vstack(rows), np.concatenate(right)
    kept = np.isfinite(right)
    equal = {} if A_eq is None else {"A_eq": np.hstack([A_eq, -np.asarray(A_eq)]), "b_eq": b_eq}
    found = linprog(np.concatenate([g, -g]), rows[kept], right[kept], bounds=(0, 1e4), **equal)
    assert found.status == 0, found.message
    return found.fun


# the forms, one by one


@pytest.mark.parametrize(
    ("constraint", "radius", "expected"),
    [
        ("l1:10", None, ex.L1Ball(10.0)),
        ("l1", 10, ex.L1Ball(10.0)),
        ("l1", None, ex.L1Ball(10.0)),
        ("linf", None, ex.LinfBall(10.0)),
        ("l1 & positive", None, ex.UnitSimplex(10.0)),
        ("groups;size=2", None, ex.GroupBall(10.0, [[0, 1], [2, 3]])),
        ("L1: 10", None, ex.L1Ball(10.0)),
        ("l2:3", None, ex.L2Ball(3.0)),
        ("linf", 0.5, ex.LinfBall(0.5)),
        ("lp:2,3", None, ex.LpBall(2.0, 3)),
        ("lp:3", 2, ex.LpBall(2.0, 3)),
        ("elastic:1,0.5", None, ex.ElasticBall(1.0, 0.5)),
        ("k-support:2", 1.5, ex.KSupportBall(1.5, 2)),
        ("k-sparse:1,2", None, ex.KSparseBall(1.0, 2)),
        ("simplex", None, ex.Simplex()),
        ("simplex:2", None, ex.Simplex(2.0)),
        ("simplex", 2, ex.Simplex(2.0)),
        ("unit-simplex", 3, ex.UnitSimplex(3.0)),
        ("capped-simplex:0.4", None, ex.CappedSimplex(0.4)),
        ("hypersimplex:2", None, ex.Hypersimplex(2)),
        ("box:0,1", None, ex.Box(0.0, 1.0)),
        ("budget-box:-1,1,0", None, ex.BudgetBox(-1.0, 1.0, 0.0)),
        ("monotone:0,1", None, ex.Monotone(0.0, 1.0)),
        ("monotone-decreasing:0,1", None, ex.Monotone(0.0, 1.0, increasing=False)),
        ("[0, 1]", None, ex.Box(np.zeros(4), np.ones(4))),
        (">=0 & <=1", None, ex.Box(np.zeros(4), np.ones(4))),
        ("groups:5;0-1;2,3", None, ex.GroupBall(5.0, [[0, 1], [2, 3]])),
        ("groups:5;size=2", None, ex.GroupBall(5.0, [[0, 1], [2, 3]])),
        ("groups;age,debt;income,tenure", 5, ex.GroupBall(5.0, [[0, 2], [1, 3]])),
        (ex.L1Ball(2.0), None, ex.L1Ball(2.0)),
        (ex.Rows(ex.Simplex(), 4), None, None),
        ("l1:10 & nonneg", None, ex.UnitSimplex(10.0)),
        ("l1 & nonneg", 10, ex.UnitSimplex(10.0)),
        ("l1:10 & free", None, ex.L1Ball(10.0)),
        (["l1:10", ">=0"], None, ex.UnitSimplex(10.0)),
        (("l1:10", ">=0"), None, ex.UnitSimplex(10.0)),
        ([ex.L1Ball(10.0), "nonneg"], None, ex.UnitSimplex(10.0)),
        ("l1:1 & nonpos", None, ex.BoundedL1Ball(1.0, np.full(4, -1.0), np.zeros(4))),
        ("sum == 1 & nonneg", None, ex.Simplex()),
        ("sum <= 2 & nonneg", None, ex.UnitSimplex(2.0)),
        ("simplex & <=0.4", None, ex.CappedSimplex(np.full(4, 0.4))),
        ("simplex & >=0.1", None, ex.BudgetBox(np.full(4, 0.1), np.full(4, 0.7), 1.0)),
        ("simplex & box:-1,2", None, ex.Simplex()),
        ("box:-1,1 & box:0,3", None, ex.Box(np.zeros(4), np.ones(4))),
        ("monotone & box:0,1", None, ex.Monotone(0.0, 1.0)),
        ("simplex & l1:3", None, ex.Simplex()),
    ],
)
def test_forms_and_the_sets_they_stand_for(constraint, radius, expected):
    if expected is None:
        with pytest.raises(ex.InputError, match=r"does not fit coefficients of shape \(4,\)"):
            read(constraint, radius)
        return
    plan = read(constraint, radius)
    assert plan.bounded
    assert plan.fraction is None
    got = plan.set()
    assert got.shape == (4,)
    assert got == expected.on(4) or (type(got) is type(expected) and _same(got, expected.on(4)))
    assert not plan.at_reach(got.start(), 1.0)


def _same(C, D) -> bool:
    """Whether both answer alike; their bounds may be written differently."""
    rng = np.random.default_rng(0)
    return all(np.allclose(C.lmo(g).to_array(), D.lmo(g).to_array(), atol=1e-12) for g in rng.standard_normal((20, 4)))


@pytest.mark.parametrize(
    ("constraint", "lower", "upper"),
    [
        (None, [-INF] * 4, [INF] * 4),
        ("free", [-INF] * 4, [INF] * 4),
        ([], [-INF] * 4, [INF] * 4),
        ("nonneg", [0] * 4, [INF] * 4),
        ("nonpos", [-INF] * 4, [0] * 4),
        (">= -1", [-1] * 4, [INF] * 4),
        ({"income": ">=0", "debt": "<=0"}, [-INF, 0, -INF, -INF], [INF, INF, 0, INF]),
        ({"age": (0, 1), "tenure": "[0, 2]", 1: 0, 2: None}, [0, 0, -INF, 0], [1, 0, INF, 2]),
        ({"age": (None, 1), -1: "nonneg", "debt": "free", 1: ">= -1"}, [-INF, -1, -INF, 0], [1, INF, INF, INF]),
        ({"age": "==2", "income": ">=0 & <=3"}, [2, 0, -INF, -INF], [2, 3, INF, INF]),
        ({}, [-INF] * 4, [INF] * 4),
        ("income >= 0 & 2*debt <= -1", [-INF, 0, -INF, -INF], [INF, INF, -0.5, INF]),
        ("0 <= age <= 1", [0, -INF, -INF, -INF], [1, INF, INF, INF]),
        ("-age <= 3", [-3, -INF, -INF, -INF], [INF] * 4),
        ("1 - age == 3", [-2, -INF, -INF, -INF], [-2, INF, INF, INF]),
        (["nonneg", {"age": "<=5"}], [0] * 4, [5, INF, INF, INF]),
        (Bounds(0, [1, 2, 3, np.inf]), [0] * 4, [1, 2, 3, INF]),
        (LinearConstraint(np.eye(4), -1, 1), [-1] * 4, [1] * 4),
        ((np.eye(4)[:2], [1, 2]), [-INF] * 4, [1, 2, INF, INF]),
        ({"bounds": [(0, 1), (None, 2), (0, None), (-1, 1)]}, [0, -INF, 0, -1], [1, 2, INF, 1]),
        ({"A_ub": [[1, 0, 0, 0]], "b_ub": [1], "bounds": (0, None)}, [0] * 4, [1, INF, INF, INF]),
    ],
)
def test_bounds_and_signs(constraint, lower, upper):
    plan = read(constraint)
    lower, upper = np.array(lower, float), np.array(upper, float)
    assert plan.bounded == np.isfinite([lower, upper]).all()
    for reach in (7.0, np.array([7.0, 8.0, 9.0, 10.0])):
        C = plan.set(reach)
        assert isinstance(C, ex.Box)
        np.testing.assert_array_equal(C.lower, np.where(np.isfinite(lower), lower, np.minimum(0, upper) - reach))
        np.testing.assert_array_equal(C.upper, np.where(np.isfinite(upper), upper, np.maximum(0, lower) + reach))
        for j in range(4):
            for x, end in ((C.lower.copy(), lower), (C.upper.copy(), upper)):
                w = C.start()
                w[j] = x[j]
                assert plan.at_reach(w, reach) == (not math.isfinite(end[j]))


def test_an_order_without_bounds():
    for text, up in (("monotone", True), ("monotone-increasing", True), ("monotone-decreasing", False)):
        plan = read(text)
        assert not plan.bounded
        assert plan.set(5.0) == ex.Monotone(-5.0, 5.0, up, 4)
        assert plan.set(np.array([1.0, 2.0, 5.0, 3.0])) == ex.Monotone(-5.0, 5.0, up, 4)
        assert plan.at_reach(np.array([-5.0, 0, 0, 0]), 5.0)
        assert not plan.at_reach(np.array([-4.0, 0, 0, 4.0]), 5.0)
    assert read("monotone & nonneg").set(5.0) == ex.Monotone(0.0, 5.0, True, 4)
    assert read(["monotone", {"age": ">=0"}]).set(5.0) == ex.Monotone(0.0, 5.0, True, 4)  # the first bounds all
    assert isinstance(read(["monotone", {"tenure": ">=0"}]).set(5.0), ex.Polytope)


# combinations, against linear programs


ORDER = np.array([[1.0, -1, 0, 0], [0, 1, -1, 0], [0, 0, 1, -1]])
ONES = np.ones((1, 4))
COMBINED = {
    "pair": ([(ROWS, [0.0, 3.0]), "box:-1,2"], {"A": ROWS, "b": [0, 3], "lower": -1, "upper": 2}),
    "sparse": ([(sp.csc_matrix(ROWS), 3.0), "box:-1,2"], {"A": ROWS, "b": [3, 3], "lower": -1, "upper": 2}),
    "text": ("age <= income & age + 2*income - tenure <= 3 & box:-1,2", {"A": ROWS, "b": [0, 3], "lower": -1, "upper": 2}),
    "fraction": ("age/2 + income <= 3 + tenure / 2 - 1.5 & [-1,2]", {"A": ROWS[1:], "b": [3], "lower": -1, "upper": 2}),
    "chain": ("age <= income <= debt <= tenure & [0,1]", {"A": ORDER, "b": [0, 0, 0], "lower": 0, "upper": 1}),
    "l1": ("l1:2 & age <= income", {"A": ROWS[:1], "b": [0], "l1": 2}),
    "l1 rows": (["l1:2", (ROWS, [0.0, 0.1])], {"A": ROWS, "b": [0, 0.1], "l1": 2}),
    "l1 bounds rows": (["l1:2", (ROWS, [0.0, 0.1]), {0: (-0.25, 0.5)}, "debt >= 0.125"],
                       {"A": ROWS, "b": [0, 0.1], "l1": 2, "lower": [-0.25, -INF, 0.125, -INF], "upper": [0.5, INF, INF, INF]}),
    "l1 nonneg rows": (["l1:2 & nonneg", (ROWS, [0.0, 0.1])], {"A": ROWS, "b": [0, 0.1], "l1": 2, "lower": 0}),
    "l1 total": ("l1:2 & sum == 1", {"A_eq": ONES, "b_eq": [1], "l1": 2}),
    "simplex rows": ("simplex & age <= income", {"A": ROWS[:1], "b": [0], "A_eq": ONES, "b_eq": [1], "lower": 0}),
    "simplex order": ("simplex & monotone", {"A": ORDER, "b": [0] * 3, "A_eq": ONES, "b_eq": [1], "lower": 0}),
    "order bounds": (["monotone & [0,1]", {"debt": "<=0.5"}], {"A": ORDER, "b": [0] * 3, "lower": 0, "upper": [1, 1, 0.5, 1]}),
    "order l1": ("monotone & l1:1", {"A": ORDER, "b": [0] * 3, "l1": 1}),
    "down": ("monotone-decreasing & [0,1] & age <= 0.75", {"A": -ORDER, "b": [0] * 3, "lower": 0, "upper": [0.75, 1, 1, 1]}),
    "equations": ({"A_eq": ROWS, "b_eq": [0.0, 1.0], "bounds": (-3, 3)}, {"A_eq": ROWS, "b_eq": [0, 1], "lower": -3, "upper": 3}),
    "both": ([LinearConstraint(ROWS, [-1, 0], [0.5, 1]), Bounds(-2, 2)],
             {"A": np.vstack([ROWS, -ROWS]), "b": [0.5, 1, 1, 0], "lower": -2, "upper": 2}),
    "polytope": ([ex.Polytope(A_ub=ROWS, b_ub=[0.0, 3.0], bounds=(-1, 2)), "nonneg"],
                 {"A": ROWS, "b": [0, 3], "lower": 0, "upper": 2}),
    "bounded l1": (["l1:2", {"age": (-0.5, 0.5), "income": ">=0", "debt": (0.25, 1)}],
                   {"l1": 2, "lower": [-0.5, 0, 0.25, -INF], "upper": [0.5, INF, 1, INF]}),
    "unbounded": ("age <= income", {"A": ROWS[:1], "b": [0], "lower": -9, "upper": 9}),
    "sum": ("sum == 1", {"A_eq": ONES, "b_eq": [1], "lower": -9, "upper": 9}),
    "half": ("sum >= 1 & nonneg", {"A": -ONES, "b": [-1], "lower": 0, "upper": 9}),
}  # fmt: skip


@pytest.mark.parametrize("name", COMBINED)
def test_combinations_against_linear_programs(name):
    constraint, truth = COMBINED[name]
    plan = read(constraint)
    C = plan.set() if plan.bounded else plan.set(9.0)
    assert plan.bounded == (name not in ("unbounded", "sum", "half"))
    assert C.shape == (4,)
    ends = {end: np.broadcast_to(np.asarray(truth.get(end, far), float), 4) for end, far in (("lower", -INF), ("upper", INF))}
    rng, points = np.random.default_rng(0), []
    for _ in range(25):
        g = rng.standard_normal(4)
        s = C.lmo(g).to_array()
        points.append(s)
        assert g @ s == pytest.approx(least(g, **(truth | ends)), abs=1e-7)
    x = settle(C, np.mean(points[:3], axis=0))
    assert violation(C, x) <= 1e-15
    assert (x >= ends["lower"]).all()
    assert (x <= ends["upper"]).all()
    if "A" in truth:
        assert (np.asarray(truth["A"]) @ x <= truth["b"]).all()
    if "l1" in truth:
        assert math.fsum(np.abs(x)) <= truth["l1"]


def test_columns_of_a_data_frame_go_by_name():
    pd = pytest.importorskip("pandas")
    A = pd.DataFrame({"tenure": [-1.0], "age": [1.0], "income": [2.0]})
    C = read([(A, 3.0), "box:-1,2"]).set()
    np.testing.assert_array_equal(np.asarray(C.A_ub.toarray()), ROWS[1:])
    with pytest.raises(ex.InputError, match=r"no feature 'agee'; did you mean 'age'\?"):
        read((A.rename(columns={"age": "agee"}), 3.0))


def test_names_with_other_characters():
    names = ["monthly income", "x-1", "log(age)", "sum"]
    C = read("'monthly income' <= x-1 & log(age) >= `sum` & [0,1]", names=names).set()
    np.testing.assert_array_equal(C.A_ub.toarray(), [[1, -1, 0, 0], [0, 0, -1, 1]])
    assert read("x1 <= x2 & [0,1]", names=None).set().A_ub.toarray().tolist() == [[0, 1, -1, 0]]
    assert read({"x3": "nonneg"}, names=None).set(1.0).lower.tolist() == [-1, -1, -1, 0]


@settings(max_examples=50)
@given(
    low=st.lists(st.sampled_from([-INF, -1.0, 0.0, 0.25]), min_size=4, max_size=4),
    high=st.lists(st.sampled_from([INF, 1.0, 0.5, 0.25]), min_size=4, max_size=4),
    extra=st.sampled_from(["", "l1:2", "sum == 1", "sum <= 1", "monotone", "age <= income"]),
    seed=st.integers(0, 99),
)
def test_any_bounds_with_anything(low, high, extra, seed):
    """Whatever is joined to bounds, the oracle agrees with a linear program."""
    bounds = Bounds(np.array(low), np.array(high))
    truth = {
        "": {}, "l1:2": {"l1": 2}, "sum == 1": {"A_eq": ONES, "b_eq": [1]}, "sum <= 1": {"A": ONES, "b": [1]},
        "monotone": {"A": ORDER, "b": [0] * 3}, "age <= income": {"A": ROWS[:1], "b": [0]},
    }[extra]  # fmt: skip
    plan = read([bounds, extra])
    C = plan.set(50.0)
    low, high = np.array(low), np.array(high)
    if not plan.bounded:  # those for the reach: of an order, all that none follows for
        low, high = (np.asarray(e) for e in plan._limits(50.0)[0])
    g = np.random.default_rng(seed).standard_normal(4)
    s = C.lmo(g).to_array()
    assert g @ s == pytest.approx(least(g, low, high, **truth), abs=1e-7)
    assert violation(C, settle(C, s)) <= 1e-15


# fractions


@pytest.mark.parametrize(
    ("constraint", "radius", "norm"),
    [
        ("l1:30%", None, lambda x: np.abs(x).sum()),
        ("l1", "30%", lambda x: np.abs(x).sum()),
        ("l2", "30%", np.linalg.norm),
        ("linf:30%", None, lambda x: np.abs(x).max()),
        ("l1 & nonneg", "30%", lambda x: np.abs(x).sum()),
        (["l1:30%", {"age": ">=0"}], None, lambda x: np.abs(x).sum()),
        ("l1:30% & age <= income", None, lambda x: np.abs(x).sum()),
        ("groups:30%;size=2", None, lambda x: np.linalg.norm(x[:2]) + np.linalg.norm(x[2:])),
        ("k-support:30%,2", None, ex.KSupportBall(1.0, 2).norm),
        ("elastic:30%,0.5", None, lambda x: 0.5 * np.abs(x).sum() + 0.5 * np.linalg.norm(x)),
    ],
)
def test_a_radius_as_a_fraction_of_a_norm(constraint, radius, norm):
    plan = read(constraint, radius)
    x = np.array([1.0, -2.0, 0.5, 3.0])
    assert plan.fraction == 0.3
    assert plan.norm(x) == pytest.approx(norm(x), rel=1e-12)
    with pytest.raises(ex.InputError, match="with_norm"):
        plan.set()
    done = plan.with_norm(plan.norm(x))
    assert done.fraction is None
    assert done.bounded
    C = done.set()
    size = getattr(C, "radius", None) or getattr(C, "total", None) or C.C.b_ub[-1]
    assert size == pytest.approx(0.3 * norm(x), rel=1e-12)
    with pytest.raises(ex.InputError, match="fraction of the unconstrained solution's norm, which is 0"):
        plan.with_norm(0.0)


# matrices of coefficients


def test_coefficients_of_several_outputs():
    shape = (4, 3)
    assert read("nuclear:2", shape=shape).set() == ex.NuclearBall(2.0, shape=shape)
    assert read("spectral", 2, shape=shape).set() == ex.SpectralBall(2.0, shape=shape)
    assert read("l1:5", shape=shape).set() == ex.L1Ball(5.0, shape=shape)
    assert read("l1:5 & nonneg", shape=shape).set() == ex.UnitSimplex(5.0, shape)
    rows = read("groups:2", shape=shape).set()
    assert rows.norm(np.ones(shape)) == pytest.approx(4 * math.sqrt(3))
    pairs = read("groups:2;0-1;2-3", shape=shape).set()
    assert pairs.norm(np.ones(shape)) == pytest.approx(2 * math.sqrt(6))
    C = read({"income": ">=0", 2: (-1, 1)}, shape=shape).set(9.0)
    np.testing.assert_array_equal(C.lower, [[-9.0] * 3, [0.0] * 3, [-1.0] * 3, [-9.0] * 3])
    assert read("income >= 0", shape=shape).set(np.full(shape, 9.0)).lower[1].tolist() == [0, 0, 0]
    S = read("simplex", shape=shape).set()
    np.testing.assert_array_equal(S.lmo(-np.arange(12.0).reshape(shape)).to_array()[3], [1, 1, 1])
    y = settle(S, np.full(shape, 0.25))
    assert (y.sum(axis=0) == 1).all()
    assert read("nuclear:30%", shape=shape).norm(np.eye(4, 3)) == pytest.approx(3.0)


def test_how_plans_read():
    assert str(read("l1", 10)) == "l1:10"
    assert str(read("l1 & nonneg", "30%")) == "l1:30% & nonneg"
    assert str(read({"income": ">=0", 3: (0, 1)})) == "{income: >=0, 3: (0, 1)}"
    assert str(read([(ROWS, 1.0), "nonneg"])) == "A w <= b (2 rows) & nonneg"
    assert str(read(ex.L1Ball(2.0))) == "L1Ball(radius=2.0)"
    assert str(read(None)) == "free"


def test_reach_leaves_room_for_what_has_to_be():
    plan = read("sum == 100")
    assert not plan.bounded
    assert plan.set(1.0).contains(np.full(4, 25.0))
    plan = read("age + income >= 50")
    assert plan.set(1.0).contains(np.array([25.0, 25.0, 0.0, 0.0]))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("constraint", ["x0 + x1 + x2 == 1", "x0 - x1 == 0 & x2 + x3 - x4 == 2", "nonneg & x1 + x3 == 0.1"])
def test_equations_of_a_fit_hold_exactly(constraint, dtype):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 6)).astype(dtype)
    model = ConstrainedLinearRegression(constraint).fit(X, X @ rng.standard_normal(6) + rng.standard_normal(100))
    assert model.constraint_violation_ == 0.0
    C = model.constraint_
    np.testing.assert_array_equal(C.A_eq.astype(dtype) @ model.coef_, C.b_eq.astype(dtype))
