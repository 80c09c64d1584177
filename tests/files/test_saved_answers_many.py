"""Answers of random problems are verified, and changed ones are not: 40 of each, or ``EXTREMAL_ANSWERS=1000``."""

from __future__ import annotations

import collections
import copy
import os
from itertools import count

import numpy as np
import pytest
from problems import problem
from test_saved_answers import changed

import extremal as ex
from extremal.checks import InputError, NonFiniteError
from extremal.files.answers import arrays_of, verify_arrays
from extremal.objectives.margins import MarginModel

MANY = int(os.environ.get("EXTREMAL_ANSWERS", "40"))
SEED, SLOW = 77, ("MaxNormBall", "MinkowskiSum", "Polytope", "IntegerHull")
TINY = 1e-60  # values that are a matter of underflow


def answers():
    """Answers of random problems, with what a file would hold."""
    for index in count():
        try:
            p = problem(SEED, index)
            if p.hostile or p.words["set"] in SLOW or not isinstance(p.f, MarginModel) or p.words["method"] != "auto":
                continue
            r = ex.minimize(p.f, p.region.C, **p.options)
        except (InputError, NonFiniteError):
            continue
        if abs(r.value) > TINY:
            yield p, r, arrays_of(r)


def tampered(p, held, rng):
    """One number changed by one part in 10^6, another set, or other data."""
    kind = int(rng.integers(4))
    f, C, names = p.f, None, sorted(name for name in set(held) - {"seal", "answer"} if held[name].size)
    if kind == 0:
        C = ex.ShiftedSet(p.region.C, np.full(p.f.shape, 1e-6 * p.region.C.on(p.f.shape).diameter + 1e-9))
    elif kind == 1:
        f = copy.copy(f)
        f.y = np.asarray(f.y, np.float64)[::-1] * (1 + 1e-6)
    else:
        name = names[int(rng.integers(len(names)))]
        held = held | {name: changed(held[name])}
    return held, f, C


@pytest.mark.slow
def test_answers_are_verified_and_changed_ones_are_not():
    verdicts, forged, rng = collections.Counter(), collections.Counter(), np.random.default_rng(0)
    for p, _, held in answers():
        verdicts[verify_arrays(held, p.f, p.region.C, "answer").verdict] += 1
        arrays, f, C = tampered(p, held, rng)
        C = p.region.C if C is None and "Oracle" in str(held["answer"]) else C  # a set of the user is not in the file
        try:
            forged[verify_arrays(arrays, f, C, "answer").verdict] += 1
        except InputError:  # the arrays of the set do not make a set any more
            forged["refused"] += 1
        if verdicts["proved"] >= MANY:
            break
    assert verdicts["refuted"] == 0, verdicts
    assert verdicts["not proved"] <= 0.05 * MANY, verdicts  # labels that are all equal, classes without rows
    assert forged["proved"] == 0, forged
    assert forged["refuted"] + forged["refused"] >= MANY, forged
