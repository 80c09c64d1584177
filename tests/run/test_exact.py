"""Runs in rational arithmetic: equal, to the last digit, to a few lines of fractions."""

from __future__ import annotations

import copy
import pickle
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest

import extremal as ex
from extremal.checks import InputError
from extremal.sets.exact import exact_set

F = Fraction
A = [[F(2), F(1, 3), F(0)], [F(-1), F(1, 2), F(4, 7)], [F(1, 5), F(-3), F(1)], [F(1), F(1), F(-2, 9)]]
Y = [F(1), F(-1, 2), F(2, 3), F(3, 7)]
HULL = [[F(0), F(0), F(1, 3)], [F(1, 7), F(-1), F(0)], [F(2), F(1), F(1)], [F(0), F(1, 2), F(-5, 9)]]
THIRD = F(1, 3)
CASES = {  # the set, and its vertices in the order of ties
    "simplex": (ex.Simplex(THIRD), [[THIRD if i == j else F(0) for i in range(3)] for j in range(3)]),
    "unit-simplex": (ex.UnitSimplex(2), [[F(0)] * 3] + [[F(2) if i == j else F(0) for i in range(3)] for j in range(3)]),
    "l1": (ex.L1Ball(F(5, 7)), [[s * F(5, 7) if i == j else F(0) for i in range(3)] for j in range(3) for s in (1, -1)]),
    "linf": (ex.LinfBall(F(2, 9)), [list(v) for v in product((F(2, 9), F(-2, 9)), repeat=3)]),
    "box": (
        ex.Box([F(-1, 3), F(0), F(-2)], [F(1, 9), F(1), F(1, 2)]),
        [list(v) for v in product((F(1, 9), F(-1, 3)), (F(1), F(0)), (F(1, 2), F(-2)))],
    ),
    "hull": (ex.ConvexHull(np.array(HULL, dtype=object)), HULL),
}  # fmt: skip
SETS = pytest.mark.parametrize("name", CASES)


def objective(**options):
    M, y = np.array(A, dtype=object), np.array(Y, dtype=object)
    return ex.Separable(
        4, 3,
        grad=lambda x, idx: (M[idx] @ x - y[idx])[:, None] * M[idx],
        value=lambda x, idx: (M[idx] @ x - y[idx]) ** 2 / 2,
        convex=True, dtype=object, **options,
    )  # fmt: skip


def naive(vertices, steps, rule):
    """Frank-Wolfe on lists of fractions; the last point, its value, and its gap."""
    dot = lambda u, v: sum(a * b for a, b in zip(u, v, strict=True))  # noqa: E731
    x = min(vertices, key=lambda v: 0)
    for k in range(steps + 1):
        r = [dot(a, x) - y for a, y in zip(A, Y, strict=True)]
        g = [dot(r, column) / 4 for column in zip(*A, strict=True)]
        s = min(vertices, key=lambda v: dot(g, v))
        d = [b - a for a, b in zip(x, s, strict=True)]
        if k == steps:
            return x, dot(r, r) / 8, -dot(g, d)
        curve = sum(dot(a, d) ** 2 for a in A) / 4
        eta = rule(k, -dot(g, d), curve, dot(d, d))
        x = [a + eta * b for a, b in zip(x, d, strict=True)]
    raise AssertionError


RULES = {
    "open-loop": (ex.steps.OpenLoop(), lambda k, gap, curve, size: F(2, k + 2)),
    "line-search": (ex.steps.LineSearch(), lambda k, gap, curve, size: min(F(1), gap / curve) if curve else F(0)),
    "short": (ex.steps.ShortStep(F(29, 3)), lambda k, gap, curve, size: min(F(1), gap / (F(29, 3) * size)) if size else F(0)),
}


@SETS
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("steps", [0, 1, 2, 5])
def test_every_number_is_that_of_fractions(name, rule, steps):
    (C, vertices), (step, formula) = CASES[name], RULES[rule]
    r = ex.minimize(objective(), C, ex.FrankWolfe(step), max_iter=steps, tol=0, atol=0)
    x, value, gap = naive(vertices, r.n_iter, formula)
    assert r.n_iter == steps or r.gap == 0
    assert r.x.tolist() == x
    assert (r.value, r.gap) == (value, gap)
    assert {type(v) for v in (*r.x, r.value, r.gap)} == {Fraction}


@SETS
def test_a_gap_certifies_without_a_tolerance(name):
    """f(x) - f(v) <= gap for every vertex and mean of vertices, in fractions; and the trace holds floats."""
    C, vertices = CASES[name]
    f = objective()
    r = ex.minimize(f, C, ex.FrankWolfe(ex.steps.LineSearch()), max_iter=6, tol=0, atol=0)
    for v, w in product(vertices, repeat=2):
        middle = (np.array(v, dtype=object) + np.array(w, dtype=object)) / 2
        assert f.value(middle) >= r.value - r.gap
    assert r.trace.gap.dtype == np.float64
    assert r.violation == 0.0
    assert f"{float(r.gap):.3e}" in repr(r)
    assert f"{float(r.gap):.3e}" in r._repr_html_()


def test_a_run_ends_where_the_gap_is_zero():
    r = ex.minimize(
        objective(), ex.Box([F(0)] * 3, [F(1, 9)] * 3), ex.FrankWolfe(ex.steps.LineSearch()), tol=0, atol=0, max_iter=9
    )
    assert r.n_iter == 9 or (r.gap == 0 and r.converged and r.status == "gap")
    corner = ex.Box([F(5)] * 3, [F(6)] * 3)
    far = ex.Separable(1, 3, lambda x, idx: np.ones((1, 3), int), lambda x, idx: [x.sum()], convex=True, dtype=object)
    r = ex.minimize(far, corner, ex.FrankWolfe(), tol=0, atol=0)
    assert (r.x.tolist(), r.value, r.gap, r.status.value, r.n_iter) == ([5, 5, 5], 15, 0, "gap", 1)


def test_the_default_method_rounds_nothing():
    r = ex.minimize(objective(), ex.Simplex(), max_iter=4, tol=0)
    same = ex.minimize(objective(), ex.Simplex(), ex.FrankWolfe(ex.steps.OpenLoop()), max_iter=4, tol=0)
    assert r.x.tolist() == same.x.tolist()
    assert "fractions" in r.why


def test_progress_and_recorded_runs_and_starts(capsys):
    ex.minimize(objective(), ex.Simplex(), max_iter=3, tol=0, verbose=1, record=1)
    assert "gap" in capsys.readouterr().err
    x0 = [F(1, 4), F(1, 2), F(1, 4)]
    r = ex.minimize(
        objective(), ex.Simplex(), ex.FrankWolfe(), x0=x0, max_iter=3, tol=0, record=ex.Record(1, ("value", "gap", "x"))
    )
    assert r.trace.x[0].tolist() == x0
    assert len(r.trace) == 4
    with pytest.raises(InputError, match="must lie in the set"):
        ex.minimize(objective(), ex.Simplex(), ex.FrankWolfe(), x0=[F(1, 3), F(1, 3), F(1, 4)])
    with pytest.raises(InputError, match=r"fractions.Fraction.*got 0.25"):
        ex.minimize(objective(), ex.Simplex(), ex.FrankWolfe(), x0=[0.25, 0.5, 0.25])


@pytest.mark.parametrize("order", ["cyclic", "random", "gaps"])
def test_blocks_are_exact_too(order):
    """Two simplices of different size; with cyclic blocks, against fractions."""
    C = ex.Product(ex.Simplex(THIRD, shape=1), ex.Simplex(F(2, 7), shape=2))
    method = ex.Method(ex.gradients.Full(), ex.steps.LineSearch(), ex.moves.Blockwise(order))
    r = ex.minimize(objective(), C, method, max_iter=5, tol=0, atol=0)
    assert {type(v) for v in (*r.x, r.value, r.gap)} == {Fraction}
    assert r.x[0] == THIRD
    assert r.x[1] + r.x[2] == F(2, 7)
    g = (
        sum(
            (sum(a * b for a, b in zip(row, r.x, strict=True)) - y) * np.array(row, dtype=object)
            for row, y in zip(A, Y, strict=True)
        )
        / 4
    )
    assert r.gap == g[1] * r.x[1] + g[2] * r.x[2] - F(2, 7) * min(g[1], g[2])


# sets


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_assignments_are_the_cheapest(n):
    rng = np.random.default_rng(n)
    for _ in range(30):
        g = np.array([F(int(a), int(b)) for a, b in rng.integers(1, 9, (n * n, 2)) - [4, 0]], dtype=object).reshape(n, n)
        s = exact_set("f", ex.Birkhoff(n)).lmo(g).values
        least = min(sum(g[i, p[i]] for i in range(n)) for p in permutations(range(n)))
        assert (s * g).sum() == least
        assert exact_set("f", ex.Birkhoff(n)).contains(s)


def test_doubly_stochastic_matrices_are_exact():
    target = np.array([[F(1, 2), F(1, 3), F(1, 6)]] * 3, dtype=object)
    f = ex.Separable(
        1, (3, 3), lambda x, idx: (x - target)[None], lambda x, idx: [((x - target) ** 2).sum() / 2], convex=True, dtype=object
    )
    r = ex.minimize(f, ex.Birkhoff(3), ex.FrankWolfe(), max_iter=6, tol=0)
    assert r.x.sum(axis=0).tolist() == r.x.sum(axis=1).tolist() == [1, 1, 1]
    assert type(r.gap) is Fraction
    assert r.value == ((r.x - target) ** 2).sum() / 2


@pytest.mark.parametrize(
    "C", [ex.Rows(ex.L1Ball(THIRD)), ex.Columns(ex.Simplex(THIRD)), ex.Rows(ex.Box(F(-1, 7), F(1, 3)))], ids=repr
)
def test_ties_and_vertices_are_those_of_the_rounded_oracle(C):
    rng = np.random.default_rng(0)
    exact = exact_set("f", C.on((3, 4)))
    for _ in range(20):
        g = rng.integers(-2, 3, (3, 4))
        s = exact.lmo(g.astype(object)).values
        np.testing.assert_array_equal(s.astype(float), C.on((3, 4)).lmo(g.astype(float)).to_array())
        assert exact.contains(s)
        assert not exact.contains(s * F(101, 100))
    assert all(type(v) is Fraction for v in s.flat)


def test_sets_remember_fractions():
    C = ex.Simplex(THIRD)
    assert C == ex.Simplex(1 / 3)
    for same in (C, C.on(3), pickle.loads(pickle.dumps(C)), copy.deepcopy(C)):
        assert exact_set("f", same.on(3)).start().tolist() == [THIRD, 0, 0]
    B = ex.Box([F(0), THIRD], 1)
    for same in (B, B.on(2), pickle.loads(pickle.dumps(B)), copy.deepcopy(B)):
        assert exact_set("f", same.on(2)).lmo(np.array([F(1), F(1)])).values.tolist() == [0, THIRD]
    assert exact_set("f", ex.Simplex(0.1).on(2)).start()[0] == F(0.1)  # a float is the number that it is


def test_rounded_sets_serve_usual_runs():
    """A radius that is a fraction, in compiled code, too."""
    X = np.random.default_rng(0).standard_normal((50, 3))
    f = ex.LinearModel(ex.Squared(), X, X[:, 0])
    for exact, rounded in (
        (ex.L1Ball(THIRD), ex.L1Ball(1 / 3)),
        (ex.Box([-THIRD] * 3, [THIRD] * 3), ex.Box([-1 / 3] * 3, [1 / 3] * 3)),
    ):
        for method in (None, ex.SarahFW(), ex.FrankWolfe()):
            a, b = (ex.minimize(f, C, method, max_iter=20, tol=0) for C in (exact, rounded))
            np.testing.assert_array_equal(a.x, b.x)
            assert type(a.x) is np.ndarray


# refusals


def test_what_cannot_be_exact_is_refused():
    f, C = objective(), ex.Simplex()

    def run(method=None, C=C, f=f):
        return ex.minimize(f, C, method, max_iter=3, tol=0)

    for method, said in (
        (ex.SarahFW(), "must be made of Full.*Sarah"),
        (ex.PairwiseFW(ex.steps.LineSearch()), "must be made of VertexMove.*Pairwise"),
        (ex.NewtonFW(), "rounds numbers"),
        (ex.FrankWolfe(ex.steps.Decay(2, 8)), "step rule that gives fractions"),
        (ex.FrankWolfe(ex.steps.LogOpenLoop()), "step rule that gives fractions"),
    ):
        with pytest.raises(InputError, match=said):
            run(method)
    with pytest.raises(InputError, match="for an exact run, got L2Ball"):
        run(C=ex.L2Ball(1.0))
    with pytest.raises(InputError, match="for an exact run, got L2Ball"):
        run(C=ex.Product(ex.Simplex(shape=1), ex.L2Ball(1.0, shape=2)))
    half = ex.Separable(1, 3, lambda x, idx: np.full((1, 3), 0.5), lambda x, idx: [F(1)], convex=True, dtype=object)
    with pytest.raises(InputError, match=r"Separable\(grad=...\).*got 0.5"):
        run(f=half)
    cubic = ex.Separable(
        1, 3, lambda x, idx: (x**3 - F(1, 9))[None], lambda x, idx: [(x**4).sum() / 4 - x.sum() / 9], convex=True, dtype=object
    )
    with pytest.raises(InputError, match="call `minimize` for each set"):
        ex.path(f, [C])
    with pytest.raises(InputError, match="quadratic f only"):
        run(ex.FrankWolfe(ex.steps.LineSearch()), f=cubic)
    with pytest.raises(InputError, match="float64 or object"):
        ex.Separable(1, 3, print, print, dtype=int)


def test_callables_may_answer_whole_numbers():
    """int / int would be a float: whole numbers become fractions first."""
    f = ex.Separable(2, 2, lambda x, idx: np.array([[1, 2], [2, 4]])[idx], lambda x, idx: [1, 2], convex=True, dtype=object)
    r = ex.minimize(f, ex.Simplex(), ex.FrankWolfe(), max_iter=1, tol=0)
    assert r.value == F(3, 2)
    assert f.grad(np.array([F(1), F(0)])).tolist() == [F(3, 2), F(3)]
