"""The reference minimum over more columns than can be solved for at once: few columns and all columns agree."""

from __future__ import annotations

import re

import cases
import numpy as np
import pytest
import scipy.sparse as sp
from reference_problems import CONVEX, check, gap_of, random_problem

import extremal as ex
from extremal_lab.reproduction import reference as module
from extremal_lab.reproduction import working_set
from extremal_lab.reproduction.reference import reference
from extremal_lab.reproduction.working_set import by_columns


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
            for name in ("dot", "dot_vertex", "tdot", "row_norms2", "ready", "parts"):
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
