"""Batches that go through the rows pass by pass."""

from __future__ import annotations

import numpy as np
import pytest

from extremal.objectives.base import Sampler
from extremal.objectives.passes import PassSampler

SIZES = pytest.mark.parametrize(("n", "b"), [(12, 3), (10, 3), (10, 4), (10, 5), (101, 7), (5, 1), (2, 1), (1, 1), (1000, 333)])


def batches(n, b, count, seed=0):
    sampler = PassSampler(n, seed)
    return [np.array(sampler.rows(k, b)) for k in range(count)]


@SIZES
def test_every_row_comes_once_per_pass(n, b):
    drawn = np.concatenate(batches(n, b, 4 * n // b))
    for p in range(len(drawn) // n):
        np.testing.assert_array_equal(np.sort(drawn[p * n : (p + 1) * n]), np.arange(n))


@SIZES
def test_the_rows_of_a_batch_are_distinct(n, b):
    for idx in batches(n, b, 5 * n // b + 1):
        assert len(np.unique(idx)) == b


@SIZES
def test_less_than_two_passes_lie_between_two_draws(n, b):
    drawn = np.concatenate(batches(n, b, 6 * n // b + 1))
    for i in range(n):
        assert (np.diff(np.flatnonzero(drawn == i)) < 2 * n).all()


@SIZES
def test_draws_are_the_same_in_any_order(n, b):
    wanted = batches(n, b, 30)
    sampler = PassSampler(n, 0)
    for k in np.random.default_rng(0).permutation(30):
        np.testing.assert_array_equal(sampler.rows(int(k), b), wanted[k])
    ahead = PassSampler(n, 0).ahead(3, b)
    for k in range(min(len(ahead), 27)):
        np.testing.assert_array_equal(ahead[k], wanted[3 + k])


def test_seeds_and_passes_differ():
    first, second = (np.concatenate(batches(100, 10, 20, seed)) for seed in (0, 1))
    assert (first[:100] != first[100:]).any()
    assert (first != second).any()


def test_orders_are_uniform():
    """The first row of a pass over four: each comes about 1000 times of 4000, with five standard errors to spare."""
    sampler = PassSampler(4, 0)
    found = np.bincount([sampler.rows(4 * p, 1)[0] for p in range(4000)], minlength=4)
    assert (np.abs(found - 1000) < 5 * np.sqrt(4000 * 0.25 * 0.75)).all()


@pytest.mark.parametrize(("b", "replace"), [(6, False), (10, False), (3, True)])
def test_large_batches_and_repeats_are_drawn_as_before(b, replace):
    for k in range(5):
        np.testing.assert_array_equal(PassSampler(10, 3).rows(k, b, replace), Sampler(10, 3).rows(k, b, replace))


def test_blocks_are_read_round_by_round():
    sampler = PassSampler(30, 0, blocks=True)
    drawn = np.concatenate([sampler.rows(k, 4) for k in range(15)])
    np.testing.assert_array_equal(np.diff(drawn) % 30, 1)
