"""From a figure to its curves: minima, trials, the steps that were tuned, and the runs that are shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal.experiments.pool import Results, Seen, run_all
from extremal.experiments.recipes import full_name
from extremal.experiments.sources import Source, resolve
from extremal.experiments.spec import TUNING_SEED, Figure, Problem
from extremal.experiments.store import Store
from extremal.experiments.tasks import Minimum, Run


@dataclass(frozen=True)
class Curve:
    """The runs of a method on a problem, one for each seed."""

    method: str
    steps: str  # "theory": the method's own; "tuned": times the best of the trials
    factor: float
    batch: int
    runs: tuple[dict[str, np.ndarray], ...]

    @property
    def final(self) -> float:
        """The median of the last values."""
        return float(np.median([run["value"][-1] for run in self.runs]))


@dataclass(frozen=True)
class Panel:
    """A problem with its certified minimum and its curves."""

    problem: Problem
    source: Source
    convex: bool
    minimum: float  # nothing is drawn below it
    gap: float  # its exact Frank-Wolfe gap: for convex f, no point of the set is better by more
    how: str
    curves: tuple[Curve, ...]

    @property
    def maximum(self) -> float:
        """The largest value of all curves."""
        return max(float(np.nanmax(run["value"])) for curve in self.curves for run in curve.runs)

    @property
    def floor(self) -> float:
        """Differences to the minimum below this mean nothing."""
        return max(self.gap, 1e-15 * max(1.0, abs(self.minimum)))

    def excess(self, curve: Curve) -> float:
        """Median over the seeds of f - f_min at the end, not below the floor."""
        return max(curve.final - self.minimum, self.floor)


class Work:
    """What a comparison runs on: data that were found, results that are kept, workers."""

    def __init__(self, store: Store, workers: int = 1, download: bool = True):
        self.store, self.workers, self.download = store, workers, download
        self._found: dict[tuple[str, int | None], Source] = {}

    def find(self, data: str, rows: int | None = None) -> Source:
        """A data set, or some of its rows; looked for once. After a download that failed, none is tried again."""
        if (data, rows) not in self._found:
            source = resolve(data, download=self.download, rows=rows)
            self.download = self.download and source.origin != "stand-in"
            self._found[data, rows] = source
        return self._found[data, rows]


def sources_of(figures: Sequence[Figure], work: Work) -> dict[str, Source]:
    """The data of all figures."""
    return {problem.data: work.find(problem.data) for figure in figures for problem in figure.problems}


def first_tasks(figure: Figure, sources: dict[str, Source]) -> list[Any]:
    """Minima, trials and runs with the methods' own steps."""
    tasks: list[Any] = []
    for problem in figure.problems:
        tasks.append(Minimum(sources[problem.data], problem.loss, problem.set))
        for method in figure.methods:
            tasks += _trials(figure, problem, sources, method)
            tasks += _shown(figure, problem, sources, method, 1.0)
    return tasks


def tuned_tasks(figure: Figure, sources: dict[str, Source], results: Results) -> list[Run]:
    """Runs with the best constant of each method."""
    return [
        run
        for problem in figure.problems
        for method in figure.methods
        for run in _shown(figure, problem, sources, method, best_factor(figure, problem, sources, method, results))
        if figure.factors
    ]


def cost(figure: Figure, sources: dict[str, Source]) -> float:
    """Rough seconds of one core, for the time left."""
    tasks = first_tasks(figure, sources)
    tuned = [run for p in figure.problems for m in figure.methods for run in _shown(figure, p, sources, m, 1.0) if figure.factors]
    return sum(task.cost for task in dict.fromkeys(tasks)) + sum(run.cost for run in tuned)


def panels(figure: Figure, work: Work, sources: dict[str, Source], seen: Seen = lambda task, fresh: None) -> list[Panel]:
    """Run a figure: a panel for each of its problems."""
    results = run_all(first_tasks(figure, sources), work.store, work.workers, seen)
    results |= run_all(tuned_tasks(figure, sources, results), work.store, work.workers, seen)
    return [_panel(figure, problem, sources, results) for problem in figure.problems]


def best_factor(figure: Figure, problem: Problem, sources: dict[str, Source], method: str, results: Results) -> float:
    """The constant of the trial that ended lowest; the one nearest to 1 among equals."""

    def score(run: Run) -> tuple[float, float]:
        value = float(results[run]["value"][-1])
        return (value if np.isfinite(value) else np.inf, abs(np.log(run.factor)))

    return min(_trials(figure, problem, sources, method), key=score).factor if figure.factors else 1.0


def _trials(figure: Figure, problem: Problem, sources: dict[str, Source], method: str) -> list[Run]:
    return [_run(figure, problem, sources, method, factor, TUNING_SEED) for factor in figure.factors]


def _shown(figure: Figure, problem: Problem, sources: dict[str, Source], method: str, factor: float) -> list[Run]:
    return [_run(figure, problem, sources, method, factor, seed) for seed in range(figure.seeds)]


def _run(figure: Figure, problem: Problem, sources: dict[str, Source], method: str, factor: float, seed: int) -> Run:
    source = sources[problem.data]
    batch = figure.batch_size(source.n)
    return Run(source, problem.loss, problem.set, full_name(method), batch, factor, seed, figure.passes, figure.rows)


def _panel(figure: Figure, problem: Problem, sources: dict[str, Source], results: Results) -> Panel:
    source = sources[problem.data]
    found = results[Minimum(source, problem.loss, problem.set)]
    curves = []
    for method in figure.methods:
        choices = {"theory": 1.0} | ({"tuned": best_factor(figure, problem, sources, method, results)} if figure.factors else {})
        for steps, factor in choices.items():
            runs = tuple(results[run] for run in _shown(figure, problem, sources, method, factor))
            curves.append(Curve(full_name(method), steps, factor, figure.batch_size(source.n), runs))
    lowest = min(float(np.nanmin(run["value"])) for curve in curves for run in curve.runs)
    value, how = float(found["value"]), str(found["how"])
    if lowest < value:
        how += "; a run ended lower" + ("" if bool(found["convex"]) else ", and its value is taken")
    return Panel(problem, source, bool(found["convex"]), min(value, lowest), float(found["gap"]), how, tuple(curves))
