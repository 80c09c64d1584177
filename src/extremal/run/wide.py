"""A minimum over a constraint as it was read: bounded, without bounds, or with a radius that is a share of a norm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import astuple, replace
from typing import Any, TypeAlias

import numpy as np

from extremal.checks import InputError
from extremal.objectives.margins import MarginModel
from extremal.objectives.reach import reaches, told_apart
from extremal.run.result import Calls, Result, Status
from extremal.run.shortest import shortened
from extremal.run.starts import moved_inside
from extremal.sets.base import ConvexSet
from extremal.sets.words.read import Reading, read_constraint

Kept: TypeAlias = dict[str, Any]  # keywords of `minimize`: tolerances, seed and budget
OneRun: TypeAlias = Callable[[ConvexSet, Any, Kept], Result]  # one run over a set, from a start or None
NO_WIDER = (Status.INTERRUPTED, Status.MAX_SECONDS)  # no wider bounds are tried after these


def least_within(f: MarginModel, plan: Reading, solve: OneRun, kept: Kept, start: Any = None) -> tuple[ConvexSet, Result, bool]:
    """The set, the run over it, and whether a minimum exists.

    Where the constraint has no bounds, artificial ones are widened until the solution touches none of them. The result has the
    calls and seconds of all runs.

    Examples
    --------
    >>> import extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.eye(2), np.array([1.0, -3.0]))
    >>> plan = read_constraint("nonneg", None, f.shape)
    >>> _, run, exists = least_within(f, plan, lambda C, x0, kept: ex.minimize(f, C, x0=x0, **kept), {"tol": 1e-6, "atol": 1e-10})
    >>> run.x.round(4), exists
    (array([1., 0.]), True)
    """
    if plan.bounded:
        C = plan.set().on(f.shape)
        return C, solve(C, None if start is None else moved_inside(C, np.asarray(start, f.dtype)), kept), True
    C, before = None, None
    start = np.zeros(f.shape, f.dtype) if start is None else start  # the middle of the bounds may be far out
    for reach in reaches(f):
        C = plan.set(reach).on(f.shape)
        run = solve(C, moved_inside(C, np.asarray(start, f.dtype)), kept)
        apart = told_apart(f, run.value, kept["atol"])
        run = run if apart else shortened(f, C, run, reach, kept["tol"], kept["atol"])
        kept, start, before = budget_left(kept, run), run.x, run if before is None else after(before, run)
        if apart:
            break
        if run.status in NO_WIDER or not plan.at_reach(np.asarray(run.x), reach):
            return C, before, True
    assert C is not None
    assert before is not None
    return C, before, False


def with_radius(f: MarginModel, plan: Reading, solve: OneRun, kept: Kept, refusal: str) -> tuple[Reading, Result]:
    """The constraint with its percentage of the norm of the unconstrained solution as a number, and the run that found the norm.

    ``refusal`` is the sentence for a loss without a minimum.
    """
    _, found, exists = least_within(f, read_constraint(None, None, f.shape), solve, kept)
    if found.status == Status.INTERRUPTED:
        raise KeyboardInterrupt  # the radius is not known yet, so there is no answer
    if not exists:
        raise InputError(refusal)
    return plan.with_norm(plan.norm(np.asarray(found.x))), found


def budget_left(kept: Kept, run: Result) -> Kept:
    """The budget after a run: one limit of time holds for all runs."""
    most = kept.get("max_seconds")
    return kept if most is None else kept | {"max_seconds": max(most - run.seconds, 1e-3)}


def after(before: Result, run: Result) -> Result:
    """The run with the calls and the seconds of an earlier one added."""
    calls = Calls(*(a + b for a, b in zip(astuple(before.calls), astuple(run.calls), strict=True)))
    return replace(run, calls=calls, seconds=before.seconds + run.seconds)
