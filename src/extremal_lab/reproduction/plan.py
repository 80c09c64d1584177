"""From a figure to its curves: minima, trials, tuned steps, and the runs that are shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal.checks import InputError
from extremal.files import datasets
from extremal.losses import LOSSES
from extremal.methods import METHODS, Budget, full_name
from extremal_lab.reproduction.own import HELD, is_reference, shown
from extremal_lab.reproduction.pool import Kept, Results, Seen, run_all
from extremal_lab.reproduction.sources import Source, constraint, loss_of, objective, resolve
from extremal_lab.reproduction.spec import TUNING_SEED, Figure, Problem, Trial
from extremal_lab.reproduction.tasks import Minimum, Run, method_of


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
    trial: str = ""  # the parameters that the tuning chose
    trials: int = 0  # the number of trials
    seeds: tuple[int, ...] = ()  # of the runs; empty: 0, 1, 2, ...

    @property
    def seeded(self) -> list[tuple[int, dict[str, np.ndarray]]]:
        """Each run with its seed."""
        return list(zip(self.seeds or range(len(self.runs)), self.runs, strict=True))

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
    fingerprint: tuple[float, ...] = ()  # numbers by which other machines know the problem

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
    store : Store or Unkept
        The store of results.
    workers : int
        Number of processes.
    fetch : callable, optional
        Fetches a data set by its name. Default: nothing is downloaded.
    """

    def __init__(self, store: Kept, workers: int = 1, fetch: Callable[[str], object] | None = None):
        self.store, self.workers, self.fetch = store, workers, fetch
        self.troubles: list[str] = []  # reasons for missing data
        self._found: dict[tuple[Any, ...], Source] = {}

    def find(self, data: str, rows: int | None = None, draw: int = 0, test: float = 0.0) -> Source:
        """A data set, a random subset of its rows, or all but a held-out share of them; the search runs once."""
        key = data, rows, draw, test
        if key not in self._found:
            if self.fetch is not None and data in datasets.NAMES and datasets.find(data) is None:
                self._try_to_fetch(data)
            self._found[key] = resolve(data, rows=rows, draw=draw, test=test)
        return self._found[key]

    def _try_to_fetch(self, data: str) -> None:
        assert self.fetch is not None
        try:
            self.fetch(data)
        except datasets.DownloadError as error:
            self.troubles.append(str(error))
            self.fetch = None  # the next download would fail as well


class Contest:
    """A figure on data that were found."""

    def __init__(self, figure: Figure, work: Work):
        self.figure, self.work = figure, work
        self.sources = {problem: _source(problem, work) for problem in figure.problems}
        self.methods = list(dict.fromkeys(map(_full_name, (*figure.methods, *figure.added))))
        for problem, source in self.sources.items():
            constraint(source, problem.set)  # refuses it here, and not in a worker
            if is_reference(problem.loss, LOSSES):
                loss_of(problem.loss)
        for method in (method for method in self.methods if is_reference(method, METHODS)):
            method_of(method)
        self._all = [(problem, method) for problem in figure.problems for method in self.methods]

    def check(self) -> None:
        """Refuse methods that do not go with a problem, and sets that do not fit, before anything is run."""
        for problem, source in self.sources.items():
            f, batch = objective(source, problem.loss), self.figure.batch_size(source.n)
            C = constraint(source, problem.set).on(f.shape)
            for method in self.methods:
                try:
                    method_of(method, batch).prepare(f, C, Budget(max_grads=f.n))
                except InputError as error:
                    raise InputError(f"{shown(method)} on {problem.key}: {error}") from None

    def first_tasks(self) -> list[Any]:
        """Minima, trials and runs with the methods' own steps."""
        tasks: list[Any] = [self._minimum(problem) for problem in self.figure.problems]
        for problem, method in self._all:
            tasks += [*self.trials(problem, method), *self._shown(problem, method)]
        return tasks

    def tuned_tasks(self, results: Results) -> list[Run]:
        """Runs with the best constant of each method."""
        if not self.figure.tuned:
            return []
        return [run for pair in self._all for run in self._tuned(*pair, results)]

    @property
    def cost(self) -> float:
        """Rough seconds of one core, to estimate the time left."""
        tuned = [run for pair in self._all for run in self._shown(*pair)] if self.figure.tuned else []
        return sum(task.cost for task in dict.fromkeys(self.first_tasks())) + sum(run.cost for run in tuned)

    def panels(self, seen: Seen = lambda task, fresh: None) -> list[Panel]:
        """Run the comparison, and return a panel for each problem."""
        results = run_all(self.first_tasks(), self.work.store, self.work.workers, seen)
        results |= run_all(self.tuned_tasks(results), self.work.store, self.work.workers, seen)
        return [self._panel(problem, results) for problem in self.figure.problems]

    def trials(self, problem: Problem, method: str) -> list[Run]:
        """One run for each candidate, from a seed that is not shown."""
        return [self._run(problem, trial, TUNING_SEED) for trial in self.figure.trials(method)]

    def best(self, problem: Problem, method: str, results: Results) -> Trial:
        """The candidate that ended lowest; among equals the one with the constant nearest to 1. Without any: the method."""

        def score(trial: Trial) -> tuple[float, float]:
            value = float(results[self._run(problem, trial, TUNING_SEED)]["value"][-1])
            return (value if np.isfinite(value) else np.inf, abs(np.log(trial.factor)))

        return min(self.figure.trials(method), key=score, default=Trial(method))

    def _minimum(self, problem: Problem) -> Minimum:
        return Minimum(self.sources[problem], problem.loss, problem.set)

    def _shown(self, problem: Problem, method: str, trial: Trial | None = None) -> list[Run]:
        first = self.figure.first_seed
        return [self._run(problem, trial or Trial(method), seed) for seed in range(first, first + self.figure.seeds)]

    def _tuned(self, problem: Problem, method: str, results: Results) -> list[Run]:
        return self._shown(problem, method, self.best(problem, method, results))

    def _run(self, problem: Problem, trial: Trial, seed: int) -> Run:
        figure, source = self.figure, self.sources[problem]
        batch = figure.batch_size(source.n)
        return Run(
            source, problem.loss, problem.set, trial.method, batch, trial.factor, seed, figure.passes, figure.rows,
            figure.seconds, problem.test, figure.points,
        )  # fmt: skip

    def _panel(self, problem: Problem, results: Results) -> Panel:
        found = results[self._minimum(problem)]
        curves = [curve for p, method in self._all if p == problem for curve in self._curves(problem, method, results)]
        lowest = min(float(np.nanmin(run["value"])) for curve in curves for run in curve.runs)
        value, convex, how = float(found["value"]), bool(found["convex"]), str(found["how"])
        if lowest < value:
            how += "; a run ended lower, and its value is taken"
        known = tuple(found["print"].tolist())
        return Panel(
            problem, self.sources[problem], convex, min(value, lowest), float(found["gap"]), how, tuple(curves), known
        )  # fmt: skip

    def _curves(self, problem: Problem, method: str, results: Results) -> list[Curve]:
        choices = {"own": Trial(method)} | ({"tuned": self.best(problem, method, results)} if self.figure.tuned else {})
        made, trials = [], self.figure.trials(method)
        for steps, trial in choices.items():
            runs = tuple(results[run] for run in self._shown(problem, method, trial))
            held = {"trial": trial.said, "trials": len(trials) if steps == "tuned" else 0, "seeds": self._seeds}
            edge = steps == "tuned" and bool(trials) and trial in (trials[0], trials[-1])
            facts = int(runs[0]["batch"]) or None, bool(runs[0]["projects"])
            made.append(Curve(method, steps, trial.factor, edge, *facts, runs, **held))
        return made

    @property
    def _seeds(self) -> tuple[int, ...]:
        return tuple(range(self.figure.first_seed, self.figure.first_seed + self.figure.seeds))


def _source(problem: Problem, work: Work) -> Source:
    """The data of a problem, without the rows that are held out."""
    return work.find(problem.data) if problem.test in ("", *HELD) else work.find(problem.data, test=float(problem.test))


def _full_name(method: str) -> str:
    """The full name of a method of the library; other texts stay."""
    return method if method in HELD or is_reference(method, METHODS) else full_name(method)


def compared(figures: Sequence[Figure], work: Work) -> list[Contest]:
    """Figures with all of their data found, before anything is run."""
    return [Contest(figure, work) for figure in figures]
