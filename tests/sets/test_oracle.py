"""A user's own set: its answers, its start, and a run on it."""

from __future__ import annotations

import numpy as np
import pytest
from sets_composed import CORNERS, best_corner, corner_distance, largest_entry

import extremal as ex
from extremal.points.vertex import Coordinate, SparseVertex
from extremal.sets.oracle import Oracle


def test_answers_of_a_reused_buffer_are_kept():
    buffer = np.zeros(3)

    def lmo(g):
        buffer[...] = -np.sign(g)
        return buffer

    C = Oracle(lmo, 4.0)
    first = C.lmo(np.array([1.0, 1.0, 1.0]))
    C.lmo(np.array([-1.0, -1.0, -1.0]))
    np.testing.assert_array_equal(first.to_array(), [-1, -1, -1])
    shared = SparseVertex(np.array([0]), np.array([1.0]), (3,))
    kept = Oracle(lambda g: shared, 1.0).lmo(np.ones(3))
    shared.values[0] = 5.0
    np.testing.assert_array_equal(kept.to_array(), [1, 0, 0])


def test_the_gradient_cannot_be_written_to():
    def careless(g):
        g *= -1
        return g

    with pytest.raises(ValueError, match="read-only"):
        Oracle(careless, 1.0).lmo(np.ones(3))


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (np.zeros(2), r"`Oracle\(lmo=...\)` must answer points of shape \(3,\), the shape of g, got shape \(2,\)"),
        (Coordinate(0, 1.0, (2,)), r"`Oracle\(lmo=...\)` must answer points of shape \(3,\)"),
        (np.array([0.0, np.nan, 0.0]), r"`Oracle\(lmo=...\)` must answer finite points"),
        (Coordinate(0, np.inf, (3,)), r"`Oracle\(lmo=...\)` must answer finite points"),
        (None, r"`Oracle\(lmo=...\)` must answer an array of real numbers, got None"),
        (np.zeros(3, complex), r"`Oracle\(lmo=...\)` must answer an array of real numbers"),
        ([[1.0], [1.0, 2.0]], r"`Oracle\(lmo=...\)` must be a rectangular array"),
    ],
)
def test_answers_that_are_no_points_are_refused(answer, message):
    with pytest.raises(ex.InputError, match=message):
        Oracle(lambda g: answer, 1.0).lmo(np.ones(3))


def test_lists_and_whole_numbers_are_answers():
    v = Oracle(lambda g: [1, 0, 2], 1.0).lmo(np.ones(3))
    assert v.to_array().dtype == np.float64
    np.testing.assert_array_equal(v.to_array(), [1, 0, 2])


def test_where_an_oracle_starts():
    C = Oracle(best_corner, corner_distance())
    np.testing.assert_array_equal(C.on(3).start(), CORNERS[3])
    with pytest.raises(ex.InputError, match="depends on the dimension"):
        C.start()
    x = np.array([0.1, 0.2, 0.3])
    given = Oracle(best_corner, corner_distance(), start=x)
    x[...] = 9.0
    assert given.shape == (3,)
    np.testing.assert_array_equal(given.start(), [0.1, 0.2, 0.3])


def test_oracles_are_equal_if_their_functions_are():
    assert Oracle(best_corner, 1.0, 3) == Oracle(best_corner, 1.0).on(3)
    assert Oracle(best_corner, 1.0) != Oracle(best_corner, 2.0)
    assert Oracle(best_corner, 1.0) != Oracle(largest_entry, 1.0)
    assert Oracle(best_corner, 1.0, start=np.zeros(3)) != Oracle(best_corner, 1.0, start=np.ones(3))


def test_a_run_on_an_oracle_is_the_run_on_the_set():
    f = ex.LinearModel(ex.Squared(), np.eye(4), np.array([3.0, 0.0, -1.0, 0.0]))
    own = Oracle(largest_entry, 4.0, start=np.zeros(4))
    runs = [ex.minimize(f, C, ex.FrankWolfe(), max_iter=20, tol=0, atol=0) for C in (own, ex.L1Ball(2.0))]
    np.testing.assert_array_equal(runs[0].x, runs[1].x)
    assert runs[0].gap == runs[1].gap
