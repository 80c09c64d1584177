"""Sampling: draws are a function of (seed, shard, step), uniform, cover all rows, and cost O(b)."""

from __future__ import annotations

import itertools
import tracemalloc
from collections import Counter

import numpy as np
import pytest
from scipy.stats import chisquare

import extremal as ex


def peak_of(call) -> int:
    """Bytes that a call allocates at its peak."""
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("batch", [1, 4, 10, 30])
@pytest.mark.parametrize("replace", [False, True])
def test_draws_depend_on_nothing_but_seed_and_step(batch, replace):
    forward, backward = ex.objectives.Sampler(30, seed=3), ex.objectives.Sampler(30, seed=3)
    steps = [*range(0, 3000, 97), 511, 512, 513]
    first = {k: forward.rows(k, batch, replace).copy() for k in steps}
    for k in reversed(steps):
        backward.rows(k + 5, 2)  # other questions in between
        backward.coin(k)
        np.testing.assert_array_equal(backward.rows(k, batch, replace), first[k])


@pytest.mark.parametrize("other", [{"seed": 1}, {"seed": 0, "shard": 1}])
@pytest.mark.parametrize("batch", [1, 2, 5])
def test_another_seed_or_shard_draws_other_rows(other, batch):
    a, b = ex.objectives.Sampler(1000, seed=0), ex.objectives.Sampler(1000, **other)
    assert any((a.rows(k, batch) != b.rows(k, batch)).any() for k in range(5))
    assert a.coin(0) != b.coin(0)


def test_steps_and_blocks_of_steps_draw_different_rows():
    sampler = ex.objectives.Sampler(10**6, seed=0)
    draws = {tuple(sampler.rows(k, 3)) for k in range(3000)}
    assert len(draws) == 3000
    assert len({sampler.coin(k) for k in range(5000)}) == 5000


@pytest.mark.parametrize(("n", "batch"), [(1, 1), (7, 1), (7, 3), (7, 6), (7, 7), (20_000, 10), (20_000, 5000)])
def test_rows_are_valid_and_distinct(n, batch):
    sampler = ex.objectives.Sampler(n, seed=0)
    for k in (0, 1, 600):
        rows = sampler.rows(k, batch)
        assert rows.shape == (batch,)
        assert rows.dtype == np.int64
        assert rows.min() >= 0
        assert rows.max() < n
        assert len(set(rows.tolist())) == batch


def test_replacement_repeats_rows():
    sampler = ex.objectives.Sampler(10, seed=0)
    assert any(len(set(sampler.rows(k, 10, replace=True).tolist())) < 10 for k in range(5))


def test_a_full_batch_is_all_rows():
    np.testing.assert_array_equal(np.sort(ex.objectives.Sampler(9, seed=4).rows(11, 9)), np.arange(9))


@pytest.mark.parametrize("batch", [1, 4, 7, 19])
@pytest.mark.parametrize("replace", [False, True])
def test_marginals_are_uniform(batch, replace):
    """Also where n mod b is not 0: no row is left out."""
    sampler = ex.objectives.Sampler(20, seed=5)
    counts = Counter(int(i) for k in range(4000) for i in sampler.rows(k, batch, replace))
    assert set(counts) == set(range(20))
    spread = 1.0 if replace else 19 / (20 - batch)  # distinct rows vary less; scaled up, the statistic is a chi-square
    statistic = chisquare(list(counts.values())).statistic * spread
    assert 4.0 < statistic < 45.0  # 19 degrees of freedom: both ends beyond 1 in 1000


def test_sets_of_rows_are_uniform():
    sampler = ex.objectives.Sampler(6, seed=2)
    counts = Counter(frozenset(sampler.rows(k, 3).tolist()) for k in range(4000))
    assert len(counts) == len(list(itertools.combinations(range(6), 3)))
    assert chisquare(list(counts.values())).pvalue > 1e-3


def test_coins_are_uniform_and_independent_of_rows():
    sampler = ex.objectives.Sampler(2**40, seed=7)  # so large that a row takes as many random bits as a coin
    coins = np.array([sampler.coin(k) for k in range(5000)])
    rows = np.array([sampler.rows(k, 1)[0] for k in range(5000)])
    assert 0 <= coins.min() < coins.max() < 1
    assert chisquare(np.histogram(coins, bins=20, range=(0, 1))[0]).pvalue > 1e-3
    for shift in range(3):  # in the first block of steps too, where both begin
        assert abs(np.corrcoef(coins[shift:], rows[: len(rows) - shift])[0, 1]) < 0.06
        assert abs(np.corrcoef(coins[shift:500], rows[: 500 - shift])[0, 1]) < 0.2


def test_start_is_one_row_for_the_seed():
    starts = [ex.objectives.Sampler(50, seed=s).start() for s in range(40)]
    assert all(i.shape == (1,) and 0 <= i[0] < 50 for i in starts)
    assert len({int(i[0]) for i in starts}) > 10
    np.testing.assert_array_equal(ex.objectives.Sampler(50, seed=3).start(), ex.objectives.Sampler(50, seed=3).start())


@pytest.mark.parametrize("replace", [False, True])
def test_cost_does_not_grow_with_n(replace):
    ex.objectives.Sampler(10**9, seed=1).rows(0, 100, replace)  # compiled
    assert peak_of(lambda: ex.objectives.Sampler(10**9, seed=0).rows(0, 100, replace)) < 8 * 2**20  # 512 steps of 100 rows


@pytest.mark.parametrize(("n", "batch"), [(5, 2), (64, 63), (65, 40), (1000, 999), (10**6, 3000)])
def test_bits_and_hashes_mark_the_same_rows(n, batch, monkeypatch):
    bits = ex.objectives.Sampler(n, seed=0).ahead(0, batch)
    monkeypatch.setattr("extremal.objectives.base._BITS", 0)
    np.testing.assert_array_equal(ex.objectives.Sampler(n, seed=0).ahead(0, batch), bits)


@pytest.mark.parametrize(("n", "batch"), [(10**6, 10**5), (10**6, 10**6)])
def test_a_huge_batch_is_drawn_for_one_step_only(n, batch):
    peak = peak_of(lambda: ex.objectives.Sampler(n, seed=0).rows(0, batch))
    assert peak < 8 * (n + 4 * batch)


def test_a_small_batch_is_drawn_for_many_steps_at_once(monkeypatch):
    made, generator = [], ex.objectives.Sampler._rng
    monkeypatch.setattr(ex.objectives.Sampler, "_rng", lambda self, *key: made.append(key) or generator(self, *key))
    sampler = ex.objectives.Sampler(10**5, seed=0)
    for k in range(20_000):
        sampler.rows(k, 1)
        sampler.coin(k)
    assert 0 < len(made) <= 2 * 20_000 / 100  # a generator for each step would take longer than the step


@pytest.mark.parametrize("batch", [0, 301, 400])
def test_a_batch_that_does_not_fit_is_refused(batch):
    """Distinct rows of a batch larger than all would never be found."""
    sampler = ex.objectives.Sampler(300, seed=0)
    for draw in (sampler.rows, sampler.ahead, sampler.fresh):
        with pytest.raises(ex.InputError, match="from 1 to 300"):
            draw(1, batch)
    assert len(sampler.rows(1, 400, replace=True)) == 400
