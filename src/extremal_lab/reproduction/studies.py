"""The studies: rates over n and eps, batch sizes, starts without a full gradient, memory, bytes sent, and the grid of all parts.

Each study is a list of tasks like those of the figures, and a conclusion from their results.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Console

from extremal_lab.reproduction import compression
from extremal_lab.reproduction.grid import GRID
from extremal_lab.reproduction.memory import Memory
from extremal_lab.reproduction.plan import Work
from extremal_lab.reproduction.pool import Results, run_all
from extremal_lab.reproduction.progress import shown
from extremal_lab.reproduction.rates import GRIDS, LOGISTIC, NONCONVEX, RATES, Fit, Rate, radius
from extremal_lab.reproduction.report import inside, label, print_table
from extremal_lab.reproduction.sources import Source
from extremal_lab.reproduction.spec import FIGURES, OURS, Problem, batch_size
from extremal_lab.reproduction.spec import quick as quickly
from extremal_lab.reproduction.study import Finding, Look, Study, finding
from extremal_lab.reproduction.tasks import Minimum, Run


def run_studies(
    names: Sequence[str], work: Work, console: Console, quick: bool = False, data: str | None = None
) -> list[Finding]:
    """Run studies by name, on the data of the paper or on other data."""
    done, look = [], Look(work, data)
    for name in names:
        study = STUDIES[name]
        tasks = study.tasks(look, quick)
        with shown(console, name, sum(task.cost for task in dict.fromkeys(tasks))) as seen:
            results = run_all(tasks, work.store, work.workers, seen)
        done.append(study.conclude(look, quick, results))
        for held in done[-1].page["tables"]:
            print_table(console, held["title"], held["columns"], held["rows"])
    return done


# rates


def _rates_tasks(look: Look, quick: bool) -> list[Any]:
    return [task for grid in GRIDS.values() for task in grid.tasks(look.some, quick)]


def _rates(look: Look, quick: bool, results: Results) -> Finding:
    fits = {(r, m): r.fit(m, look.some, quick, results) for r in RATES for m in GRIDS[r.grid].methods}
    columns = ("problem and batch", "claimed", "method", "exponent of n (95 %)", "exponent of 1/eps (95 %)")
    rows = [[r.grid, r.text, label(m), str(fit.n), str(fit.eps)] for (r, m), fit in fits.items()]
    sets = ", ".join(f"{name}: {grid.scale:g} ({grid.set(look.some)})" for name, grid in GRIDS.items())
    text = (
        "Calls that an accuracy eps takes, as n^a / eps^c: a plane in log error, log n and log calls for each seed, which draws "
        "its own rows and its own batches; t-intervals over the seeds. The error is f - f_min at the end, for non-convex f the "
        "average gap over the run. Claimed exponents are upper bounds from worst-case theory, so smaller ones are better. Each "
        f"run has its own horizon. L D^2, small enough for the bounds to say something, and the set that has it: {sets}. "
        f"Data: {look.subject.text}."
    )
    plots = [_rate_plot(r, m, fit) for (r, m), fit in fits.items() if r.count == "gradients"]  # once for each grid
    return finding("rates", "Rates over n and eps", look.subject.text, text, (columns, rows), fits, plots)


def _rate_plot(rate: Rate, method: str, fit: Fit) -> dict[str, Any]:
    """The error against component gradients, a line for each n."""
    series = []
    for n in dict.fromkeys(n for n, _ in fit.errors):
        points = [(calls, error) for (size, calls), error in fit.errors.items() if size == n]
        series.append({"label": f"n = {n}", "x": [x for x, _ in points], "y": [y for _, y in points], "low": None, "high": None})
    y_label = "f - f_min" if GRIDS[rate.grid].loss == LOGISTIC else "average gap"
    axes = {"x_label": "component gradients", "y_label": y_label, "log_x": True, "log_y": True}
    return {"title": f"{rate.grid}: {label(method)}", "series": series} | axes


# batch sizes

BATCHES = ("1", "10", "sqrt", "n/10", "n/1")
BALLS = {LOGISTIC: 2500.0, NONCONVEX: 10.0}  # L D^2, as in the rates at b = 1


def _batch_runs(look: Look, quick: bool) -> dict[tuple[str, str, str, float], list[Run]]:
    source, seeds, budgets = look.some(2000), 2 if quick else 3, (8.0, 64.0) if quick else (32.0, 512.0)
    return {
        (loss, method, text, passes): [
            Run(source, loss, radius(loss, BALLS[loss], source), method, batch_size(text, source.n), 1.0, seed, passes, 100)
            for seed in range(seeds)
        ]
        for loss in (LOGISTIC, NONCONVEX)
        for method in OURS
        for text in BATCHES
        for passes in budgets
    }


def _batch_minimum(look: Look) -> Minimum:
    return Minimum(look.some(2000), LOGISTIC, radius(LOGISTIC, BALLS[LOGISTIC], look.some(2000)))


def _batch_tasks(look: Look, quick: bool) -> list[Any]:
    return [*(run for held in _batch_runs(look, quick).values() for run in held), _batch_minimum(look)]


def _batches(look: Look, quick: bool, results: Results) -> Finding:
    least = results[_batch_minimum(look)]
    errors = {
        key: float(np.mean([_error(key[0], results[run], least) for run in runs]))
        for key, runs in _batch_runs(look, quick).items()
    }
    budgets = sorted({key[3] for key in errors})
    rows = []
    for loss, method, text in dict.fromkeys(key[:3] for key in errors):
        early, late = (errors[loss, method, text, passes] for passes in budgets)
        rows.append([loss, label(method), text, f"{early:.1e}", f"{late:.1e}", f"{early / late:.1f}"])
    columns = ("problem", "method", "batch", *(f"error, {passes:g} passes" for passes in budgets), "gain")
    text = (
        "The error is f - f_min for logistic regression, and the average exact gap along the run for non-linear least squares; "
        f"mean over the seeds, n = {look.some(2000).n}, the sets of the rates at b = 1. Data: {look.some(2000).text}."
    )
    return finding("batches", "Any batch size", look.subject.text, text, (columns, rows), {"errors": errors, "budgets": budgets})


def _error(loss: str, run: dict[str, np.ndarray], least: dict[str, np.ndarray]) -> float:
    if loss == NONCONVEX:
        return float(np.nanmean(run["gap"][1:]))
    return max(float(run["value"][-1] - least["value"]), float(least["gap"]), 1e-15)


# Algorithm 2 without any full gradient

STARTS = ("sarah-fw", "saga-sarah-fw", "saga-sarah-fw:start=cold")


def _start_runs(look: Look, quick: bool) -> dict[tuple[Problem, str], list[Run]]:
    figure = quickly(FIGURES["fig1"]) if quick else FIGURES["fig1"]  # to share runs with the figure
    return {
        (p, method): [
            Run(source, p.loss, p.set, method, figure.batch_size(source.n), 1.0, seed, figure.passes, figure.rows)
            for seed in range(figure.seeds)
        ]
        for p, source in look.convex().items()
        for method in STARTS
    }


def _start_tasks(look: Look, quick: bool) -> list[Any]:
    minima = [Minimum(source, p.loss, p.set) for p, source in look.convex().items()]
    return [*(run for held in _start_runs(look, quick).values() for run in held), *minima]


def _starts(look: Look, quick: bool, results: Results) -> Finding:
    made = _start_runs(look, quick)
    ends: dict[Problem, list[float]] = {}
    cost: dict[Problem, list[float]] = {}
    for (p, _), runs in made.items():
        least = results[Minimum(runs[0].source, p.loss, p.set)]
        ends.setdefault(p, []).append(float(np.median([_error(p.loss, results[run], least) for run in runs])))
        cost.setdefault(p, []).append(float(np.mean([_per_step(run, results[run]) for run in runs])))
    rows = [
        [p.key, *(f"{end:.1e}" for end in three), f"{three[2] / three[0]:.2f}", *(f"{each:.2f}" for each in cost[p][:2])]
        for p, three in ends.items()
    ]
    passes = next(iter(made.values()))[0].passes or np.inf
    columns = ("problem", "Alg. 1", "Alg. 2", "Alg. 2, no full gradient", "last / first", "gradients / b, Alg. 1", "Alg. 2")
    text = (
        f"f - f_min at the end of {passes:g} passes, median over the seeds. Algorithm 2 starts with one full gradient, or "
        "without any (start=cold). The last columns are component gradients for each iteration, over the batch size."
    )
    on = ", ".join(dict.fromkeys(source.text for source in look.convex().values()))
    numbers = {"ends": ends, "cost": cost, "passes": passes}
    return finding("starts", "No full gradient", on, text, (columns, rows), numbers, caution=inside(passes))


def _per_step(run: Run, made: dict[str, np.ndarray]) -> float:
    """Component gradients for each LMO call, in batches."""
    return float((made["passes"][-1] - made["passes"][0]) * run.source.n / (made["lmos"][-1] - made["lmos"][0]) / run.batch)


# memory


def _memory_tasks(look: Look, quick: bool) -> list[Any]:
    source = look.some(8000)
    kinds = {"linear": Memory.METHODS, "separable": Memory.METHODS[:-1]}  # the last one is for linear models only
    return [Memory(source, method, kind) for kind, methods in kinds.items() for method in methods]


def _memory(look: Look, quick: bool, results: Results) -> Finding:
    tasks = _memory_tasks(look, quick)
    source, held = tasks[0].source, {(t.kind, t.method): float(results[t]["bytes"]) for t in tasks}
    extra = {(kind, method): (size - held[kind, "sarah-fw"]) / 8 for (kind, method), size in held.items()}
    units = {"linear": source.n, "separable": source.n * source.d}
    rows = [
        [_KINDS[kind], label(method), f"{held[kind, method] / 1e6:.2f}", f"{more:.0f}", f"{more / units[kind]:.2f}"]
        for (kind, method), more in extra.items()
    ]
    columns = ("objective", "method", "held, MB", "numbers beyond Algorithm 1's", "over n (linear) or n d")
    text = f"Memory that a run holds between iterations (tracemalloc), n = {source.n}, d = {source.d}, batch 20. {source.text}."
    numbers = {"extra": extra, "n": source.n, "d": source.d}
    return finding("memory", "Memory of the table", source.text, text, (columns, rows), numbers)


_KINDS = {"linear": "LinearModel", "separable": "Separable"}


# error against bytes


def _sender(look: Look, quick: bool) -> Source:
    """The data of compressed messages: w8a, or the user's."""
    data = look.data or "w8a"
    return look.work.find(data, rows=min(2000 if quick else 10000, look.work.find(data).n))


def _compression(look: Look, quick: bool, results: Results) -> Finding:
    source = _sender(look, quick)
    return finding("compression", compression.TITLE, source.text, **compression.found(source, quick, results))


STUDIES = {
    "rates": Study(_rates_tasks, _rates),
    "batches": Study(_batch_tasks, _batches),
    "starts": Study(_start_tasks, _starts),
    "memory": Study(_memory_tasks, _memory),
    "compression": Study(lambda look, quick: compression.tasks(_sender(look, quick), quick), _compression),
    "grid": GRID,
}
