"""Some random problems in every run of the suite, and what the fuzzer itself promises; `make fuzz` runs it at length."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from cases import minimum
from fuzz import BROKEN, table, verdict
from fuzz_check import outcome, same, separation, solve
from problems import problem
from problems_exact import ExactModel, gap_of
from problems_later import KINDS, LATER
from problems_made import ALL
from problems_sets import ANY_SHAPE, wide

import extremal as ex
from extremal import sets

SEED, PARTS, EACH = 21, 10, 10


@pytest.mark.parametrize("first", [*range(0, PARTS * EACH, EACH), LATER, LATER + EACH])
def test_random_problems_keep_every_promise(first):
    """No point outside, no gap below the true one, no crash, no warning; and the tolerance, but for one problem of a part."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = [outcome(SEED, index) for index in range(first, first + EACH)]
    flags = {flag for r in found for flag in r["flags"]} - {"slow", "unsaid", "loose", "missed"}  # no test hangs on the clock
    assert not flags, [r for r in found if set(r["flags"]) & flags]
    missed = [r for r in found if "missed" in r["flags"]]
    assert len(missed) <= 1, missed


@pytest.mark.parametrize(
    ("seed", "index"),
    [
        (202, 932),
        (202, 1153),
        (202, 2055),
        (202, 3844),
        (303, 363),
        (303, 1229),
        (303, 167),
        (606, 1004),
        (707, 142),
        (707, 1334),
        (707, 1475),
    ],
)
def test_problems_that_were_not_solved_once(seed, index):
    """Parts of a gradient that cancel, gaps beyond float64, steps to the boundary, atoms that were left out too early."""
    assert not set(outcome(seed, index)["flags"]) - {"slow"}


def test_every_set_of_the_catalogue_can_be_drawn():
    kinds = {name for name in sets.__all__ if isinstance(getattr(sets, name), type)}
    contracts = {"ConvexSet", "Faced", "Projectable", "Warm"}
    assert kinds - contracts == set(ALL) | (set(KINDS) - {"float32"})


def test_a_problem_depends_on_its_seed_and_index_alone():
    first, again = problem(5, 8), problem(5, 8)
    problem(5, 9)
    assert first.words == again.words
    assert same(solve(first), solve(again))
    assert problem(5, 9).words != first.words != problem(6, 8).words


def test_definitions_agree_with_those_of_other_tests():
    rng = np.random.default_rng(0)
    for C in (ex.L1Ball(2.0, shape=7), ex.L2Ball(2.0, shape=7), ex.LinfBall(2.0, shape=7), ex.Simplex(2.0, 7)):
        region = ANY_SHAPE[type(C).__name__](np.random.default_rng(0), (7,), 2.0)
        assert region.C == C  # no centre, with this seed
        g = rng.standard_normal(7)
        assert math.isclose(float(region.least(wide(g))), minimum(C, g), rel_tol=1e-12)
        s = C.lmo(g).to_array()
        assert region.outside(wide(s)) <= 1e-15 < 1e-3 < region.outside(wide(1.1 * s))


def test_a_false_gap_and_a_false_value_are_seen():
    A, y = np.array([[1.0, 2.0], [0.5, -1.0], [3.0, 0.0]]), np.array([1.0, 2.0, -1.0])
    f, x = ex.LinearModel(ex.Squared(), A, y), np.array([0.25, -0.5])
    region = ANY_SHAPE["L1Ball"](np.random.default_rng(0), (2,), 1.0)
    look = ExactModel(ex.Squared(), A, y, shape=(2,)).at(x)
    value, g = f.value_and_grad(x)
    gap, slack, floor = gap_of(region, x, look)
    assert abs(value - look.value) <= look.value_error < 1e-12
    assert abs(g @ x - minimum(region.C, g) - gap) <= slack < 1e-12
    assert 0 < floor < slack


def test_a_linear_form_separates_what_is_outside():
    region = ANY_SHAPE["KSupportBall"](np.random.default_rng(0), (9,), 2.0)
    x = np.random.default_rng(1).standard_normal(9)
    x /= 1 + region.outside(wide(x))  # on the boundary
    assert separation(region, 0.99 * x) == 0.0
    assert separation(region, 1.01 * x) > 1e-3


def test_the_verdict_counts_what_is_broken():
    fine = {"flags": [], "judged": True, "set": "Box", "loss": "Squared()", "cpu": 0.1}
    assert verdict([fine] * 10)[1]
    assert verdict([fine] * 999 + [fine | {"flags": ["missed"]}])[1]
    assert not verdict([fine] * 99 + [fine | {"flags": ["missed"]}])[1]
    for flag in BROKEN:
        assert not verdict([fine] * 999 + [fine | {"flags": [flag]}])[1]
    assert "Squared" in table([fine], "loss")
