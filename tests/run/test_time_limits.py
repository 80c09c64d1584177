"""``max_seconds`` is kept by every method: at most a tenth and 0.2 s over, on a clock that only the work itself moves."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import pytest
from test_counts_witness import MATRICES, MODELS, SETS, N, method_of
from witness import Seen

import extremal as ex
from extremal.checks import InputError
from extremal.methods.cards import METHODS

LIMIT = 1.0
OVER = 0.1 * LIMIT + 0.2


@dataclass
class Work:
    """A clock on which oracle calls and looks at components take their time, and nothing else does."""

    seen: Seen
    lmo: float  # seconds for a linear minimisation
    look: float  # for n component gradients, or values

    def __call__(self) -> float:
        return self.lmo * self.seen.lmos + self.look * (self.seen.grads + self.seen.values) / N


SLOW = {"oracle": (0.02, 2e-3), "objective": (2e-3, 0.02)}


def spent(name: str, model: str, region: str, slow: str, monkeypatch) -> float | None:
    """Seconds that a run took; None if the method refuses the problem."""
    seen = Seen()
    f, C = MODELS[model](seen), SETS[region](seen)
    clock = Work(seen, *SLOW[slow])
    for watch in ("perf_counter", "process_time", "monotonic"):
        monkeypatch.setattr(time, watch, clock)
    try:
        start = clock()
        ex.minimize(f, C, method_of(name, f), tol=1e-300, atol=0, max_seconds=LIMIT, max_iter=1000)
        return clock() - start
    except InputError:
        return None
    finally:
        monkeypatch.undo()


@pytest.mark.parametrize("slow", SLOW)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", METHODS)
def test_a_run_stops_when_it_is_told(name, model, slow, monkeypatch):
    regions = [region for region in SETS if (region in MATRICES) == (model == "tasks")]
    times = {region: spent(name, model, region, slow, monkeypatch) for region in regions}
    late = {region: round(t, 2) for region, t in times.items() if t is not None and t > LIMIT + OVER}
    assert not late, f"told to stop after {LIMIT} s, ended after {late}"


def test_the_clock_of_this_test_moves():
    seen = Seen()
    ex.minimize(MODELS["linear"](seen), SETS["l1"](seen), "frank-wolfe", tol=0, atol=0, max_iter=50)
    assert Work(seen, *SLOW["objective"])() > LIMIT
    assert np.isclose(Work(Seen(lmos=3), 0.5, 1.0)(), 1.5)


@pytest.mark.parametrize("method", ["fzfw", "fzcgs", "sarah-fw", "auto"])
def test_time_may_be_over_within_the_first_estimate(method):
    """The answer is then the starting point, certified."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((200, 10))
    f = ex.LinearModel(ex.Logistic(), A, np.sign(A[:, 0]))
    r = ex.minimize(f, ex.L1Ball(2.0), method=method, max_seconds=1e-9)
    assert r.status == "max_seconds"
    assert r.n_iter == 0
    assert r.gap == pytest.approx(ex.L1Ball(2.0).on(10).gap(r.x, f.grad(r.x)))
    assert r.value == f.value(r.x)
