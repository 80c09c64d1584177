"""Counts are what a witness has seen: an objective and a set that count for themselves, under every method of the library."""

from __future__ import annotations

import functools
import math
from dataclasses import replace

import numpy as np
import pytest
from witness import OwnLogistic, Seen, counting, oracle, product, separable, watched

import extremal as ex
from extremal.checks import InputError
from extremal.methods.cards import METHODS

N, D = 40, 6
RNG = np.random.default_rng(7)
A, Y = RNG.standard_normal((N, D)), np.where(RNG.random(N) < 0.5, 1.0, -1.0)
TASKS = np.where(RNG.random((N, 3)) < 0.5, 1.0, -1.0)
WITNESS = functools.cache(counting)

MODELS = {
    "separable": lambda seen: separable(seen, A, Y),
    "linear": lambda seen: WITNESS(ex.LinearModel)(seen, OwnLogistic(seen), A, Y),
    "intercept": lambda seen: WITNESS(ex.InterceptModel)(seen, OwnLogistic(), A, Y),
    "tasks": lambda seen: WITNESS(ex.LinearModel)(seen, ex.MultiTask(OwnLogistic(), 3), A, TASKS),
}
POINTS = {
    "l1": ex.L1Ball(2.0, shape=D),
    "l2": ex.L2Ball(2.0, shape=D),
    "simplex": ex.Simplex(2.0, D),
    "box": ex.Box(-1.0, 2.0, D),
    "k-support": ex.KSupportBall(2.0, 2, shape=D),
    "polytope": ex.Polytope(np.ones((1, D)), [1.0], bounds=(-1, 1)),
}
SETS = {
    **{name: functools.partial(watched, C=C) for name, C in POINTS.items()},
    "oracle": functools.partial(oracle, C=ex.L1Ball(2.0, shape=D), contains=False),
    "oracle that contains": functools.partial(oracle, C=ex.L1Ball(2.0, shape=D), contains=True),
    "product": lambda seen: product(seen, ex.L1Ball(1.0, shape=2), ex.Simplex(shape=D - 2)),
    "nuclear": functools.partial(watched, C=ex.NuclearBall(3.0, shape=(D, 3))),
    "matrices": functools.partial(watched, C=ex.L1Ball(3.0, shape=(D, 3))),
}
ZEROTH = ("fzfw", "fzcgs")
MATRICES = ("nuclear", "matrices")
OPEN = ("away-fw", "pairwise-fw", "blended-pairwise-fw")  # they want a line search on sums that are no linear models


def method_of(name: str, f) -> object:
    method = METHODS[name]()
    if isinstance(f, ex.Separable) and name in OPEN:
        return replace(method, step=ex.steps.LineSearch())
    return replace(method, sigma=1.0) if name == "scgs" else method


def seen_by(name: str, model: str, region: str) -> tuple[Seen, Seen] | None:
    """What was counted, and what the witnesses saw; None if the method refuses the problem."""
    f_seen, c_seen = Seen(), Seen()
    f, C = MODELS[model](f_seen), SETS[region](c_seen)
    try:
        calls = ex.minimize(f, C, method_of(name, f), tol=1e-7, atol=0, max_iter=25, max_grads=60 * N).calls
    except InputError:
        return None
    estimated = calls.values / (2 * math.prod(f.shape)) if name in ZEROTH else 0  # gradients, from values on both sides
    grads = calls.total_grads - estimated
    counted = Seen(grads, calls.values + calls.certificate_values, calls.lmos + calls.certificate_lmos, calls.block_lmos)
    seen = f_seen.grads + f_seen.entries // math.prod(f.shape)  # parts of gradients count as their share of the entries
    return counted, Seen(seen, f_seen.values, c_seen.lmos, c_seen.block_lmos)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", METHODS)
def test_every_call_is_counted(name, model):
    regions = [region for region in SETS if (region in MATRICES) == (model == "tasks")]
    runs = {region: seen_by(name, model, region) for region in regions}
    wrong = {region: run for region, run in runs.items() if run is not None and run[0] != run[1]}
    assert not wrong, "\n".join(f"{region}: counted {run[0]}, seen {run[1]}" for region, run in wrong.items())


@pytest.mark.parametrize("name", METHODS)
def test_no_method_refuses_all_of_these_problems(name):
    pairs = (("separable", "l1"), ("linear", "l1"), ("linear", "simplex"), ("tasks", "nuclear"), ("linear", "product"))
    assert any(seen_by(name, *pair) is not None for pair in pairs)
