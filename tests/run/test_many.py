"""Many least squares at once: the minimiser of each, certified, feasible, and the same whoever computes it."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tracemalloc

import numba.core.config
import numpy as np
import pytest
import scipy.sparse as sp

import extremal as ex
from extremal.data import parts

SETS = [ex.Simplex(), ex.Simplex(2.5), ex.UnitSimplex(0.7), ex.L1Ball(1.5)]
M, D, P = 12, 5, 40


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape)


def problems(p: int = P, m: int = M, d: int = D, noise: float = 0.3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Targets near combinations of some columns."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((p, m, d))
    return A, np.einsum("pij,pj->pi", A, rng.dirichlet(np.full(d, 0.4), p)) + noise * rng.standard_normal((p, m))


def corners(C: ex.ConvexSet, d: int) -> np.ndarray:
    """The vertices, as rows."""
    if isinstance(C, ex.L1Ball):
        return C.radius * np.vstack([np.eye(d), -np.eye(d)])
    return C.total * (np.eye(d) if isinstance(C, ex.Simplex) else np.vstack([np.eye(d), np.zeros(d)]))


def least(A: np.ndarray, b: np.ndarray, C: ex.ConvexSet) -> float:
    """The minimum by trying every set of vertices: the smallest value at an affine minimiser that is a convex combination."""
    points, found = corners(C, A.shape[1]) @ A.T - b, np.inf
    for k in range(1, min(len(points), A.shape[0] + 1) + 1):
        for some in itertools.combinations(points, k):
            first, rest = some[0], np.reshape([s - some[0] for s in some[1:]], (k - 1, len(b)))
            w = np.linalg.lstsq(rest.T, -first, rcond=None)[0]
            if (w >= 0).all() and w.sum() <= 1:
                found = min(found, float(np.square(first + rest.T @ w).sum()) / (2 * len(b)))
    return found


def certificate(A: np.ndarray, b: np.ndarray, x: np.ndarray, C: ex.ConvexSet) -> tuple[float, float]:
    """Value and gap in extended precision."""
    A, b, x = (a.astype(np.longdouble) for a in (A, b, x))
    r = A @ x - b
    g = A.T @ r / len(b)
    return float(r @ r / (2 * len(b))), float(g @ x - (corners(C, len(x)).astype(np.longdouble) @ g).min())


def check(A: np.ndarray, B: np.ndarray, C: ex.ConvexSet, r: ex.run.ManyResult, scale: float = 1.0) -> None:
    """Feasible to the last digits, and certified: each gap is right within its rounding."""
    for p in range(len(B)):
        value, gap = certificate(A[p], B[p], r.x[p], C)
        assert r.value[p] == pytest.approx(value, rel=1e-9, abs=1e-24 * scale)
        assert abs(r.gap[p] - gap) <= r.rounding[p]
        assert r.gap[p] >= 0
    size = np.abs(r.x).sum(axis=1)
    if isinstance(C, ex.L1Ball):
        assert (size <= C.radius * (1 + 1e-15)).all()
    else:
        assert (r.x >= 0).all()
        assert (size <= C.total * (1 + 1e-15)).all()
    if isinstance(C, ex.Simplex):
        assert (size >= C.total * (1 - 1e-15)).all()


# the minimiser


@pytest.mark.parametrize("C", SETS, ids=repr)
@pytest.mark.parametrize(("m", "d"), [(6, 4), (3, 4), (2, 4), (1, 3), (5, 1)])
def test_every_set_of_vertices_is_beaten(C, m, d):
    A, B = problems(25, m, d, seed=m)
    r = ex.least_squares_many(A, B, C)
    check(A, B, C, r)
    assert r.converged.all()
    assert r.value == pytest.approx([least(A[p], B[p], C) for p in range(25)], rel=1e-10, abs=1e-15)


@pytest.mark.parametrize("C", SETS, ids=repr)
def test_it_agrees_with_minimize(C):
    A, B = problems(8, 50, 10)
    r = ex.least_squares_many(A, B, C)
    for p in range(8):
        f = ex.LinearModel(ex.Squared(), A[p], B[p])
        one = ex.minimize(f, C, method=ex.BlendedPairwiseFW(), tol=1e-11, max_iter=5000)
        assert one.converged
        assert r.x[p] == pytest.approx(one.x, abs=1e-4)
        assert one.value - one.gap <= r.value[p] * (1 + 1e-14) <= one.value * (1 + 2e-14)
        value, g = f.value_and_grad(r.x[p])
        assert r.value[p] == pytest.approx(value, rel=1e-13)
        assert r.gap[p] == pytest.approx(float(g @ r.x[p]) - C.lmo(g).dot(g), abs=r.rounding[p])


def test_the_simplex_is_what_is_meant_if_nothing_is_said():
    A, B = problems()
    assert (ex.least_squares_many(A, B).x == ex.least_squares_many(A, B, ex.Simplex()).x).all()


def test_iterations_are_as_many_as_the_solution_has_vertices_and_little_more():
    A, B = problems(200, 50, 10, noise=0.01)
    r = ex.least_squares_many(A, B)
    assert (r.n_iter >= np.count_nonzero(r.x, axis=1)).all()
    assert r.n_iter.max() <= 20


# where columns are not independent, or of one size


def degenerate():
    A, B = problems()
    fit = np.einsum("pij,pj->pi", A, np.random.default_rng(1).dirichlet(np.ones(D), P))
    twice = np.concatenate([A, A], axis=2)
    yield "equal columns", twice, B
    for e in (1e-3, 1e-6, 1e-9, 1e-12):
        yield f"columns that differ by {e}", twice + e * normal(P, M, 2 * D, seed=2), B
    yield "zero columns", A * np.array([1.0, 0, 1, 0, 1]), B
    yield "zero matrices", 0 * A, B
    yield "zero targets", A, 0 * B
    yield "an exact fit", A, fit
    yield "a column is the target", A, A[:, :, 3].copy()
    yield "rank 2", normal(P, M, 2) @ normal(P, 2, D), B
    yield "rank 2, an exact fit", (low := normal(P, M, 2) @ normal(P, 2, D)), low.mean(axis=2)
    yield "more columns than rows", normal(P, 4, 15), normal(P, 4, seed=1)
    yield "more columns than rows, an exact fit", (wide := normal(P, 4, 15)), wide.mean(axis=2)
    yield "random walks", np.cumsum(normal(P, 30, 20), axis=1), np.cumsum(normal(P, 30, seed=1), axis=1)
    yield "a level far above the differences", 1e5 + A, 1e5 + B
    yield "columns of many sizes", A * 10.0 ** np.arange(-4, 6, 2), B
    yield "tiny numbers", 1e-12 * A, 1e-12 * B
    yield "huge numbers", 1e12 * A, 1e12 * B


@pytest.mark.parametrize("C", SETS, ids=repr)
@pytest.mark.parametrize(("A", "B"), [case[1:] for case in degenerate()], ids=[case[0] for case in degenerate()])
def test_degenerate_problems_are_solved_too(A, B, C):
    r = ex.least_squares_many(A, B, C)
    check(A, B, C, r, float(np.square(B).max() + np.square(A).max()))
    assert r.converged.all()
    assert (r.gap <= np.maximum(1e-8 * r.value, r.rounding)).all()
    assert (r.n_iter <= 5 * A.shape[2] + 5).all()


def test_levels_do_not_matter_on_the_simplex():
    """Only differences of columns count there: the certificate keeps its digits."""
    A, B = (np.round(a, 3) for a in problems())
    there = ex.least_squares_many(A + 4096.0, B + 4096.0)
    here = ex.least_squares_many(A, B)
    assert there.x == pytest.approx(here.x, abs=1e-7)
    assert there.value == pytest.approx(here.value, rel=1e-9)
    assert (there.gap <= 1e-10 * there.value).all()


@pytest.mark.parametrize("C", SETS[:3], ids=repr)
def test_columns_may_differ_by_twelve_orders_of_magnitude(C):
    A = normal(300, 50, 10) * 10.0 ** np.random.default_rng(1).uniform(-6, 6, (300, 1, 10))
    B = normal(300, 50, seed=2)
    r = ex.least_squares_many(A, B, C)
    check(A, B, C, r, 1e12)
    assert r.converged.all()


@pytest.mark.parametrize("C", SETS, ids=repr)
def test_sums_stay_right_over_many_iterations(C):
    A = normal(4, 80, 60) + 3 * normal(4, 80, 1, seed=1)
    B = np.einsum("pij,pj->pi", A, np.random.default_rng(2).dirichlet(np.ones(60), 4)) + 0.01 * normal(4, 80, seed=3)
    r = ex.least_squares_many(A, B, C)
    check(A, B, C, r)
    assert r.converged.all()


def test_a_tolerance_of_zero_is_met_within_rounding_only():
    A, B = problems()
    r = ex.least_squares_many(A, B, tol=0.0)
    assert (r.converged == (r.gap <= r.rounding)).all()
    assert (r.rounding < 1e-13 * np.square(B).mean(axis=1)).all()
    assert ex.least_squares_many(A, B, tol=0.0, atol=1.0).converged.all()


# the same answers, however they are computed


@pytest.mark.parametrize("C", SETS, ids=repr)
def test_one_matrix_is_as_good_as_copies_of_it(C):
    A, B = normal(M, D), normal(P, M, seed=1)
    one, copies = ex.least_squares_many(A, B, C), ex.least_squares_many(np.broadcast_to(A, (P, M, D)), B, C)
    for name in ("x", "value", "gap", "rounding", "converged", "n_iter"):
        assert (getattr(one, name) == getattr(copies, name)).all(), name


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("number", [1, 3])
def test_threads_and_parts_change_no_bit(shared, number, monkeypatch):
    A, B = problems(700, 10, 2)
    A = A[0] if shared else A
    whole = ex.least_squares_many(A, B)
    monkeypatch.setattr(parts, "PART", 200)
    monkeypatch.setattr(numba.core.config, "NUMBA_NUM_THREADS", number)
    pieces = ex.least_squares_many(A, B)
    for name in ("x", "value", "gap", "n_iter"):
        assert (getattr(whole, name) == getattr(pieces, name)).all(), name


def test_problems_do_not_know_of_each_other():
    A, B = problems()
    order = np.random.default_rng(3).permutation(P)
    assert (ex.least_squares_many(A[order], B[order]).x == ex.least_squares_many(A, B).x[order]).all()
    assert (ex.least_squares_many(A[7:8], B[7:8]).x == ex.least_squares_many(A, B).x[7]).all()


def test_float32_is_exact_for_the_data_as_they_are():
    A, B = (a.astype(np.float32) for a in problems())
    r, same = ex.least_squares_many(A, B), ex.least_squares_many(A.astype(np.float64), B.astype(np.float64))
    assert (r.x == same.x).all()
    assert (r.gap == same.gap).all()
    check(A, B, ex.Simplex(), r)


def test_integers_lists_and_views_are_taken():
    A, B = np.round(3 * normal(4, 6, 3)).astype(int), np.round(3 * normal(4, 6, seed=1)).astype(int)
    wanted = ex.least_squares_many(A.astype(float), B.astype(float)).x
    assert (ex.least_squares_many(A.tolist(), B.tolist()).x == wanted).all()
    backwards = np.ascontiguousarray(A.transpose(2, 1, 0)).transpose(2, 1, 0)
    assert (ex.least_squares_many(backwards, B[::1]).x == wanted).all()


def test_without_a_compiler(tmp_path):
    A, B = problems(3)
    np.savez(tmp_path / "in.npz", A=A, B=B)
    answers = ", ".join(f"ex.least_squares_many(d['A'], d['B'], ex.{C!r}).x" for C in SETS)
    code = f"import numpy as np, extremal as ex; d = np.load('in.npz'); np.save('out.npy', [{answers}])"
    plain = os.environ | {"NUMBA_DISABLE_JIT": "1"}
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, cwd=tmp_path, env=plain)
    wanted = [ex.least_squares_many(A, B, C).x for C in SETS]
    assert np.load(tmp_path / "out.npy") == pytest.approx(np.array(wanted), abs=1e-12)


@pytest.mark.parametrize("p", [0, 1])
@pytest.mark.parametrize("shared", [True, False])
def test_no_problem_and_one(p, shared):
    A, B = problems(1)
    r = ex.least_squares_many(A[0] if shared else A[:p], B[:p])
    assert (r.x.shape, r.value.shape, r.gap.shape, r.converged.shape, r.n_iter.shape) == ((p, D), (p,), (p,), (p,), (p,))
    assert f"{p} problems" in repr(r)
    assert (r.x == ex.least_squares_many(A, B).x[:p]).all()


def test_memory_is_that_of_a_part(monkeypatch):
    """A stack that has to be converted is converted by parts."""
    A, B = np.zeros((4000, 10, 5), np.float16), np.ones((4000, 10), np.float32)
    ex.least_squares_many(A[:1], B[:1])
    monkeypatch.setattr(parts, "PART", 5000)
    monkeypatch.setattr(numba.core.config, "NUMBA_NUM_THREADS", 1)
    tracemalloc.start()
    r = ex.least_squares_many(A, B)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    answers = sum(getattr(r, name).nbytes for name in ("x", "value", "gap", "rounding", "converged", "n_iter"))
    assert peak < answers + A.nbytes / 4


# mistakes


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda A, B: (A[0, 0], B), r"`least_squares_many\(A=...\)` must have shape \(m, d\) or \(P, m, d\).*got \(5,\)"),
        (lambda A, B: (A[:, :0], B[:, :0]), r"A=.*m and d at least 1, got \(40, 0, 5\)"),
        (lambda A, B: (A, B[:7]), r"`least_squares_many\(B=...\)` must have shape \(40, 12\), got \(7, 12\)"),
        (lambda A, B: (A[0], B.T), r"must have shape \(P, 12\), got \(12, 40\); one row for each problem: pass B.T"),
        (lambda A, B: (A[0], B[0]), r"must have shape \(P, 12\), got \(12,\)"),
        (lambda A, B: (A + 1j, B), r"A=.*must hold float64, float32, integers or bools, got dtype complex128"),
        (lambda A, B: (A, B.astype(str)), r"B=.*must hold float64, float32, integers or bools, got dtype <U"),
        (lambda A, B: (sp.csr_array(A[0]), B), r"must be dense arrays, got a sparse one"),
        (lambda A, B: (np.ma.array(A), B), r"A=.*must be a plain array, got a masked one"),
        (lambda A, B: (np.where(A == A[3, 4, 1], np.nan, A), B), r"A=.*must be finite, got nan at index \(3, 4, 1\)"),
        (lambda A, B: (np.where(A == A[3, 4, 1], -np.inf, A)[3], B), r"A=.*must be finite, got -inf at index \(4, 1\)"),
        (lambda A, B: (A, np.where(B == B[5, 2], np.nan, B)), r"B=.*must be finite, got nan at index \(5, 2\)"),
        (lambda A, B: (np.where(np.arange(P)[:, None, None] == 6, 1e200, 1) * A, B), r"in problem 6 squares exceed"),
    ],
)
def test_mistakes_are_named(change, text):
    with pytest.raises(ex.InputError, match=text):
        ex.least_squares_many(*change(*problems()))


@pytest.mark.parametrize(
    "C", [ex.Box(0.0, 1.0), ex.L2Ball(1.0), ex.CappedSimplex(0.5), ex.L1Ball(1.0, centre=np.ones(D)), "simplex"]
)
def test_other_sets_are_sent_to_minimize(C):
    with pytest.raises(ex.InputError, match=r"must be a Simplex, a UnitSimplex or an L1Ball without a centre, got .*minimize\("):
        ex.least_squares_many(*problems(), C)


def test_a_set_of_another_dimension_is_refused():
    with pytest.raises(ex.InputError, match=r"points of shape \(6,\), but x has shape \(5,\)"):
        ex.least_squares_many(*problems(), ex.Simplex(shape=6))


@pytest.mark.parametrize("option", ["tol", "atol"])
@pytest.mark.parametrize("bad", [-1.0, np.nan, "1e-3"])
def test_tolerances_are_numbers(option, bad):
    with pytest.raises(ex.InputError, match=rf"`least_squares_many\({option}=...\)` must be a finite number of at least 0"):
        ex.least_squares_many(*problems(), **{option: bad})
