"""From a figure to its curves: minima, trials, tuned steps, and the runs that are shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal.files import datasets
from extremal.methods import full_name
from extremal_lab.reproduction.pool import Results, Seen, run_all
from extremal_lab.reproduction.sources import Source, constraint, resolve
from extremal_lab.reproduction.spec import TUNING_SEED, Figure, Problem
from extremal_lab.reproduction.store import Store
from extremal_lab.reproduction.tasks import Minimum, Run


@dataclass(frozen=True)
class Curve:
    """The runs of a method on a problem, one for each seed."""

    method: str
    steps: str  # "own": the method's steps; "tuned": these times the best factor of the trials
    factor: float
    edge: bool  # whether that factor is the first or the last of the trials
    batch: int | None  # None if it changes from step to step, or if the method has none
    projects: bool  # whether its steps are projections onto the set
    runs: tuple[dict[str, np.ndarray], ...]

    @property
    def final(self) -> float:
        """The median of the last values."""
        return float(np.median([run["value"][-1] for run in self.runs]))

    @property
    def start(self) -> float:
        """The value at the start."""
        return float(self.runs[0]["value"][0])


@dataclass(frozen=True)
class Panel:
    """A problem with its certified minimum and its curves."""

    problem: Problem
    source: Source
    convex: bool
    minimum: float  # nothing is drawn below it
    gap: float  # exact Frank-Wolfe gap of the minimum: for convex f, no point of the set is better by more
    how: str
    curves: tuple[Curve, ...]

    @property
    def maximum(self) -> float:
        """The largest finite value at a point of any curve."""
        values = np.concatenate([run["value"] for curve in self.curves for run in curve.runs])
        return float(values[np.isfinite(values)].max(initial=self.minimum))

    @property
    def floor(self) -> float:
        """The least difference to the minimum that has a meaning."""
        return max(self.gap, 1e-15 * max(1.0, abs(self.minimum)))

    def excess(self, curve: Curve) -> float:
        """Median over the seeds of f - f_min at the end, not below the floor."""
        return max(curve.final - self.minimum, self.floor)


class Work:
    """The means of a comparison: data, kept results, workers.

    Parameters
    ----------
    store : Store
        The store of results.
    workers : int
        Number of processes.
    fetch : callable, optional
        Fetches a data set by its name. Default: nothing is downloaded.
    """

    def __init__(self, store: Store, workers: int = 1, fetch: Callable[[str], object] | None = None):
        self.store, self.workers, self.fetch = store, workers, fetch
        self.troubles: list[str] = []  # reasons for missing data
        self._found: dict[tuple[str, int | None, int], Source] = {}

    def find(self, data: str, rows: int | None = None, draw: int = 0) -> Source:
        """A data set, or a random subset of its rows; the search runs once."""
        key = data, rows, draw
        if key not in self._found:
            if self.fetch is not None and data in datasets.NAMES and datasets.find(data) is None:
                self._try_to_fetch(data)
            self._found[key] = resolve(data, rows=rows, draw=draw)
        return self._found[key]

    def _try_to_fetch(self, data: str) -> None:
        assert self.fetch is not None
        try:
            self.fetch(data)
        except datasets.DownloadError as error:
            self.troubles.append(str(error))
            self.fetch = None  # the next download would fail as well


class Comparison:
    """A figure on data that were found."""

    def __init__(self, figure: Figure, work: Work):
        self.figure, self.work = figure, work
        self.sources = {problem.data: work.find(problem.data) for problem in figure.problems}
        self.methods = list(dict.fromkeys(map(full_name, (*figure.methods, *figure.added))))
        for problem in figure.problems:
            constraint(self.sources[problem.data], problem.set)  # refuses it here, and not in a worker
        self._all = [(problem, method) for problem in figure.problems for method in self.methods]

    def first_tasks(self) -> list[Any]:
        """Minima, trials and runs with the methods' own steps."""
        tasks: list[Any] = [self._minimum(problem) for problem in self.figure.problems]
        for problem, method in self._all:
            tasks += [*self.trials(problem, method), *self._shown(problem, method, 1.0)]
        return tasks

    def tuned_tasks(self, results: Results) -> list[Run]:
        """Runs with the best constant of each method."""
        if not self.figure.factors:
            return []
        return [run for pair in self._all for run in self._shown(*pair, self.best_factor(*pair, results))]

    @property
    def cost(self) -> float:
        """Rough seconds of one core, to estimate the time left."""
        tuned = [run for pair in self._all for run in self._shown(*pair, 1.0)] if self.figure.factors else []
        return sum(task.cost for task in dict.fromkeys(self.first_tasks())) + sum(run.cost for run in tuned)

    def panels(self, seen: Seen = lambda task, fresh: None) -> list[Panel]:
        """Run the comparison, and return a panel for each problem."""
        results = run_all(self.first_tasks(), self.work.store, self.work.workers, seen)
        results |= run_all(self.tuned_tasks(results), self.work.store, self.work.workers, seen)
        return [self._panel(problem, results) for problem in self.figure.problems]

    def trials(self, problem: Problem, method: str) -> list[Run]:
        """One run for each constant, from a seed that is not shown."""
        return [self._run(problem, method, factor, TUNING_SEED) for factor in self.figure.trials(method)]

    def best_factor(self, problem: Problem, method: str, results: Results) -> float:
        """The constant of the trial that ended lowest; the one nearest to 1 among equals, and 1 without trials."""

        def score(run: Run) -> tuple[float, float]:
            value = float(results[run]["value"][-1])
            return (value if np.isfinite(value) else np.inf, abs(np.log(run.factor)))

        trials = self.trials(problem, method)
        return min(trials, key=score).factor if trials else 1.0

    def _minimum(self, problem: Problem) -> Minimum:
        return Minimum(self.sources[problem.data], problem.loss, problem.set)

    def _shown(self, problem: Problem, method: str, factor: float) -> list[Run]:
        return [self._run(problem, method, factor, seed) for seed in range(self.figure.seeds)]

    def _run(self, problem: Problem, method: str, factor: float, seed: int) -> Run:
        figure, source = self.figure, self.sources[problem.data]
        batch = figure.batch_size(source.n)
        return Run(source, problem.loss, problem.set, method, batch, factor, seed, figure.passes, figure.rows)

    def _panel(self, problem: Problem, results: Results) -> Panel:
        found = results[self._minimum(problem)]
        curves = [curve for p, method in self._all if p == problem for curve in self._curves(problem, method, results)]
        lowest = min(float(np.nanmin(run["value"])) for curve in curves for run in curve.runs)
        value, convex, how = float(found["value"]), bool(found["convex"]), str(found["how"])
        if lowest < value:
            how += "; a run ended lower, and its value is taken"
        return Panel(problem, self.sources[problem.data], convex, min(value, lowest), float(found["gap"]), how, tuple(curves))

    def _curves(self, problem: Problem, method: str, results: Results) -> list[Curve]:
        trials = self.figure.trials(method)
        choices = {"own": 1.0} | ({"tuned": self.best_factor(problem, method, results)} if self.figure.factors else {})
        made = []
        for steps, factor in choices.items():
            runs = tuple(results[run] for run in self._shown(problem, method, factor))
            edge = steps == "tuned" and bool(trials) and factor in (trials[0], trials[-1])
            made.append(Curve(method, steps, factor, edge, int(runs[0]["batch"]) or None, bool(runs[0]["projects"]), runs))
        return made


def compared(figures: Sequence[Figure], work: Work) -> list[Comparison]:
    """Figures with all of their data found, before anything is run."""
    return [Comparison(figure, work) for figure in figures]
