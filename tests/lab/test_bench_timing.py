"""Ratios: that they are what they say, by clocks that are set by hand, and the problems that they are measured on."""

import math
import types

import numpy as np
import pytest
from test_bench import measured

from extremal.checks import InputError
from extremal.files import datasets
from extremal.run.result import Trace
from extremal_lab.bench import problems, timing


class FakeClock:
    """Goes on by what is spent, and by nothing else."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def spends(self, seconds):
        def work():
            self.now += seconds

        return work


def fake_result(cpu, passes, iters):
    trace = Trace()
    for row in zip(iters, passes, cpu, strict=True):
        trace.append(dict(zip(("iter", "passes", "cpu"), row, strict=True)))
    return types.SimpleNamespace(trace=trace)


def test_a_measurement_is_the_median_and_its_spread():
    found = measured(ratios=[1.0, 3.0, 1.1])
    assert (found.ratio, found.low, found.high, found.repeats) == (1.1, 1.0, 3.0, 3)
    assert found.verdict == "met"
    assert measured(ratios=[1.3]).verdict == "missed"
    assert measured(bar=None).verdict == ""


@pytest.mark.parametrize("ratios", [[], [1.0, math.nan], [math.inf]])
def test_what_is_no_number_is_no_measurement(ratios):
    with pytest.raises(ValueError, match="no finite ratios"):
        measured(ratios=ratios)


def test_seconds_are_the_mean_of_the_calls():
    clock = FakeClock()
    assert timing.seconds(clock.spends(0.5), times=8, clock=clock) == 0.5
    assert clock.now == 4.0


def test_enough_calls_take_the_target():
    clock = FakeClock()
    assert timing.enough(clock.spends(0.01), 0.1, clock=clock) == 16
    assert timing.enough(clock.spends(0.0), 0.1, most=100, clock=clock) == 100


def test_turns_divide_by_the_neighbours():
    """A base that becomes slower in between counts half before and half after."""
    bases = iter([1.0, 3.0, 3.0, 5.0, 5.0])
    ratios = timing.in_turns(lambda: next(bases), {"a": lambda: 4.0, "b": lambda: 6.0}, repeats=2)
    assert ratios == {"a": [2.0, 1.0], "b": [2.0, 1.2]}


def test_several_bases_are_for_the_same_runs():
    runs = iter([4.0, 8.0])
    found = timing.against({"slow": lambda: 2.0, "fast": lambda: 1.0}, {"a": lambda: next(runs)}, repeats=2)
    assert found == {"slow": {"a": [2.0, 4.0]}, "fast": {"a": [4.0, 8.0]}}


def test_pairs_by_a_fake_clock(monkeypatch):
    """Ours over the other's, not the other way round."""
    times = {"ours": 3.0, "other": 2.0}
    monkeypatch.setattr(timing, "seconds", lambda work, times_: times[work()])
    monkeypatch.setattr(timing, "enough", lambda work, target: 1)
    pair = timing.Pair("dot", lambda: "ours", lambda: "other", "times", 1.5)
    found = timing.compared("rows", pair, repeats=3, target=0.1)
    assert (found.part, found.ratio, found.repeats, found.bar, found.unit) == ("rows", 1.5, 3, 1.5, "times")


def test_looking_is_off_the_clock():
    clock = FakeClock()

    def points():
        for i in range(3):
            clock.now += 2.0
            yield i

    assert list(timing.watched(points(), lambda i: clock.spends(50.0)() or 10 * i, clock)) == [(2.0, 0), (4.0, 10), (6.0, 20)]


def test_exponents():
    assert timing.exponent([10, 100, 1000], [5, 50, 500]) == pytest.approx(1.0)
    assert timing.exponent([10, 100, 1000], [7, 7, 7]) == pytest.approx(0.0)
    with pytest.raises(InputError):
        timing.exponent([10], [1])


def test_costs_are_from_the_first_state_on():
    r = fake_result(cpu=[1.0, 4.0], passes=[1.0, 7.0], iters=[0, 12])
    assert problems.per_pass(r) == 0.5
    assert problems.per_iteration(r) == 0.25


def test_scipys_gradient_is_the_gradient():
    problem = problems.generated(300, 40, per_row=4)
    x = np.linspace(-1, 1, 40)
    assert np.allclose(problem.scipy_gradient()(), problem.f.grad(x), rtol=1e-12)


def test_generated_rows_are_what_they_should_be():
    problem = problems.generated(70_000, 60, per_row=5)
    A = problem.A
    assert A.indices.dtype == np.int32
    assert A.data.dtype == np.float64
    assert set(np.diff(A.indptr)) == {5}
    assert (np.diff(A.indices.reshape(-1, 5)) > 0).all()
    assert abs(A.data[-5000:].mean()) < 0.1  # the last block is filled, too
    assert 0.9 < A.data[-5000:].std() < 1.1
    assert set(problem.y) == {-1.0, 1.0}


def test_a_stand_in_is_called_so(monkeypatch, tmp_path):
    monkeypatch.delenv("EXTREMAL_DATA", raising=False)
    monkeypatch.setattr(datasets, "user_dir", lambda: tmp_path)
    assert problems.named("mushrooms").name == "like mushrooms"
