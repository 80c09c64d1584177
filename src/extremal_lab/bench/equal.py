"""Methods at equal cost: the score of the last iterate within a budget of component gradients, and of CPU time.

The time of a run counts from the call on: its set-up (checks, preparation, constants of the data) and the time on its clock.
Recording is off the clock for every method, and so are certificates if no tolerance can stop the run.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from extremal.methods import Recipe
from extremal.run import Record, Result, minimize
from extremal.sets import L1Ball
from extremal_lab.bench.problems import NEVER
from extremal_lab.bench.timing import enough, seconds

GROWTH, TIMES = 4, 4  # a run with time left is repeated with GROWTH times its gradients, at most TIMES times
STOP = 1e-12  # no longer run is tried below this gap: there is nothing left to gain
WARM = 2  # passes of a first run, which compiles kernels and fills caches
CLOSE = 0.1  # a run at equal time is repeated if its time is off by more than this share


@dataclass(frozen=True)
class Case:
    """A problem, the score of its runs, and the unit of time."""

    name: str
    f: Any
    C: L1Ball
    score: Callable[[float, float], float]  # (value, gap) of the last iterate -> a number, smaller is better
    gradient: Callable[[], np.ndarray]  # one scipy full gradient
    passes: float = 60.0  # the budget: n component gradients each, or scipy gradients

    @property
    def grads(self) -> int:
        """The budget in component gradients."""
        return round(self.passes * self.f.n)

    def unit(self, target: float = 0.003) -> float:
        """CPU seconds of one scipy gradient now."""
        return seconds(self.gradient, enough(self.gradient, target))


@dataclass(frozen=True)
class Ran:
    """One run of a method: its score and its costs."""

    score: float
    value: float
    grads: int
    cpu: float  # seconds on the clock
    setup: float  # CPU seconds from the call to the start of the clock
    unit: float  # CPU seconds of a scipy gradient, before and after

    @property
    def passes(self) -> float:
        """CPU time in scipy gradients."""
        return (self.setup + self.cpu) / self.unit


def timed(case: Case, method: Recipe | str | None, **options: Any) -> tuple[Result, float, float]:
    """A run, CPU seconds from the call to the start of its clock, and CPU seconds of a scipy gradient around it."""
    marks: list[float] = []
    before, start = case.unit(), time.process_time()

    def watch(row: dict[str, Any]) -> None:
        marks.append(time.process_time() - start - row["cpu"])

    record = Record(every=options.pop("every", NEVER), what=options.pop("what", ()), watch=watch)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "a proximal sub-problem")  # sliding that reaches its limit is scored as it is
        r = minimize(case.f, case.C, method, record=record, **options)
    return r, marks[0], (before + case.unit()) / 2


def ran(case: Case, recipe: Recipe, grads: int, seed: int, limit: float) -> Ran:
    """A run of a method of Table 1 until it has spent the gradients, or ``limit`` seconds, without looks in between."""
    r, setup, unit = timed(case, recipe, seed=seed, tol=0, atol=0, max_grads=max(1, grads), max_seconds=limit)
    return Ran(case.score(r.value, r.gap), r.value, r.calls.grads, float(r.trace.cpu[-1]), setup, unit)


def affordable(run: Ran, passes: float) -> int:
    """The number of component gradients in the time of ``passes`` scipy gradients, at the cost of those of a run.

    Examples
    --------
    >>> run = Ran(score=1.0, value=1.0, grads=600, cpu=2.0, setup=1.0, unit=0.1)
    >>> run.passes, affordable(run, 60.0)
    (30.0, 1500)
    """
    left = passes * run.unit - run.setup
    return max(1, round(run.grads * left / run.cpu)) if run.cpu > 0 else run.grads


def at_time(case: Case, recipe: Recipe, known: Ran, seed: int, limit: float) -> Ran:
    """A run that takes the time of the budget; other runs predict the number of gradients for it.

    The method knows this number in advance, so that steps with a horizon have the right one.
    """
    run = known
    for _ in range(4):
        run = ran(case, recipe, affordable(run, case.passes), seed, limit)
        if abs(run.passes - case.passes) <= CLOSE * case.passes or run.grads <= case.f.n:
            break
    return run


@dataclass(frozen=True)
class Contest:
    """The results of the methods of Table 1 at one kind of budget: a run of each, and more of the best."""

    runs: Mapping[str, Sequence[Ran]]

    def score(self, name: str) -> float:
        """The median over the seeds.

        Examples
        --------
        >>> Contest({"a": [Ran(s, 0.0, 1, 1.0, 0.0, 1.0) for s in (3.0, 1.0, 2.0)]}).score("a")
        2.0
        """
        return median(run.score for run in self.runs[name])

    @property
    def order(self) -> list[str]:
        """The methods, the best first; those without a number last."""
        return sorted(self.runs, key=lambda name: (math.isnan(self.score(name)), self.score(name)))


def at_gradients(case: Case, recipes: Mapping[str, Recipe], seeds: int, finalists: int, limit: float) -> Contest:
    """Run all methods once, and the best of these with all seeds, at the budget of component gradients."""
    for recipe in recipes.values():
        ran(case, recipe, WARM * case.f.n, 0, limit)
    return _contest(recipes, seeds, finalists, lambda name, seed: ran(case, recipes[name], case.grads, seed, limit))


def at_times(case: Case, recipes: Mapping[str, Recipe], known: Contest, seeds: int, finalists: int, limit: float) -> Contest:
    """The same at the budget of CPU time; ``known`` gives the cost of gradients."""
    return _contest(recipes, seeds, finalists, lambda name, seed: at_time(case, recipes[name], known.runs[name][0], seed, limit))


def _contest(recipes: Mapping[str, Recipe], seeds: int, finalists: int, one: Callable[[str, int], Ran]) -> Contest:
    first = Contest({name: [one(name, 0)] for name in recipes})
    more = {name: [one(name, seed) for seed in range(1, seeds)] for name in first.order[:finalists]}
    return Contest({name: [*runs, *more.get(name, ())] for name, runs in first.runs.items()})


@dataclass(frozen=True)
class Solver:
    """The results of the solver under test at both budgets, a run for each seed."""

    gradients: Sequence[Ran]
    times: Sequence[Ran]
    method: str  # the method that it reports


def solver(case: Case, method: Recipe | str | None, seeds: int) -> Solver:
    """The solver at both budgets: the last row of its trace within each, recorded every half pass.

    Unlike the others, the solver may not exceed a budget by its last update. It knows the budget of gradients, not of time.
    """
    minimize(case.f, case.C, method, tol=0, atol=0, max_grads=WARM * case.f.n)
    found = [_both(case, method, seed) for seed in range(seeds)]
    return Solver([a for a, _, _ in found], [b for _, b, _ in found], found[0][2])


def _both(case: Case, method: Recipe | str | None, seed: int) -> tuple[Ran, Ran, str]:
    options = {"seed": seed, "tol": 0, "atol": 0}
    _, setup, _ = timed(case, method, max_grads=case.grads, **options)
    rows, unit = _rows(case, method, case.grads, options)
    within = _last(case, rows, lambda row: row["grads"] <= case.grads, setup, unit)
    grads = case.grads
    for _ in range(TIMES):
        if setup + rows[-1]["cpu"] >= case.passes * unit or rows[-1]["gap"] <= STOP:
            break
        grads *= GROWTH
        rows, unit = _rows(case, method, grads, options)
    in_time = _last(case, rows, lambda row: setup + row["cpu"] <= case.passes * unit, setup, unit)
    return within, in_time, rows[-1]["method"]


def _rows(case: Case, method: Recipe | str | None, grads: int, options: dict[str, Any]) -> tuple[list[dict[str, Any]], float]:
    r, _, unit = timed(case, method, max_grads=grads, every=0.5, what=("value", "gap"), **options)
    columns = ("grads", "cpu", "value", "gap")
    said = {"method": r.why or f"{type(r.method.gradient).__name__} and {type(r.method.move).__name__}"}
    return [dict(zip(columns, row, strict=True)) | said for row in zip(*(r.trace[c] for c in columns), strict=True)], unit


def _last(case: Case, rows: Sequence[dict[str, Any]], within: Callable[[dict[str, Any]], bool], setup: float, unit: float) -> Ran:
    """The last row within the budget; the first one if even that exceeds it."""
    row = [*rows[:1], *filter(within, rows)][-1]
    return Ran(case.score(row["value"], row["gap"]), row["value"], int(row["grads"]), float(row["cpu"]), setup, unit)
