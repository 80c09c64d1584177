"""The studies behind the ledger: rates over n and eps, batch sizes, starts without a full gradient, memory.

Each is a list of the same tasks that the figures are made of, and a conclusion from their results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Console

from extremal.experiments.memory import Memory
from extremal.experiments.plan import Work
from extremal.experiments.pool import Results, run_all
from extremal.experiments.progress import shown
from extremal.experiments.rates import SWEEPS, Sweep, points_of
from extremal.experiments.report import label
from extremal.experiments.sources import Source
from extremal.experiments.spec import FIGURES, OURS, batch_size
from extremal.experiments.tasks import Minimum, Run

SUBJECT = "a9a"  # the data that rates, batches and memory are measured on, if no other are named


@dataclass(frozen=True)
class Look:
    """Where studies find data."""

    work: Work
    subject: str = SUBJECT

    def find(self, data: str) -> Source:
        """A data set of the figures."""
        return self.work.find(data)

    def some(self, rows: int) -> Source:
        """That many random rows of the subject, or as many as it has."""
        return self.work.find(self.subject, rows=min(rows, self.work.find(self.subject).n))


@dataclass(frozen=True)
class Finding:
    """What a study found."""

    name: str
    numbers: dict[str, Any]  # for the ledger
    page: dict[str, Any]  # for the page: title, text, tables, plots


@dataclass(frozen=True)
class Study:
    """What to run, and what to make of it."""

    tasks: Callable[[Look, bool], list[Any]]  # (look, quick)
    conclude: Callable[[Look, bool, Results], Finding]


def run_studies(names: Sequence[str], work: Work, console: Console, quick: bool = False, subject: str = SUBJECT) -> list[Finding]:
    """Run studies by name."""
    done, look = [], Look(work, subject)
    for name in names:
        study = STUDIES[name]
        tasks = study.tasks(look, quick)
        with shown(console, name, sum(task.cost for task in dict.fromkeys(tasks))) as seen:
            results = run_all(tasks, work.store, work.workers, seen)
        done.append(study.conclude(look, quick, results))
        _say(done[-1], console)
    return done


def _say(finding: Finding, console: Console) -> None:
    from rich.table import Table

    for held in finding.page["tables"]:
        table = Table(*held["columns"], box=None, pad_edge=False, padding=(0, 2, 0, 0), title=held["title"], title_justify="left")
        for row in held["rows"]:
            table.add_row(*map(str, row))
        Console(file=console.file, width=max(console.width, 200), force_terminal=console.is_terminal).print(table)


def _table(title: str, columns: Sequence[str], rows: list[list[Any]]) -> dict[str, Any]:
    return {"title": title, "columns": list(columns), "rows": rows}


def _page(name: str, title: str, text: str, tables: list[Any], plots: Sequence[Any] = ()) -> dict[str, Any]:
    return {"name": name, "title": title, "text": text, "tables": tables, "plots": list(plots)}


# rates


def _rates_tasks(look: Look, quick: bool) -> list[Any]:
    return [task for sweep in SWEEPS for point in points_of(sweep, look.some, quick) for task in point.tasks]


def _rates(look: Look, quick: bool, results: Results) -> Finding:
    fits = {sweep.key: sweep.fit(points_of(sweep, look.some, quick), results) for sweep in SWEEPS}
    columns = ("error of", "over", "at equal", "batch", "method", "exponent", "95 % interval", "claimed")
    rows = [
        [s.quantity, s.over, s.equal, s.batch, label(s.method), f"{fit.slope:.2f}", f"{fit.low:.2f} to {fit.high:.2f}", s.says]
        for s, fit in ((s, fits[s.key]) for s in SWEEPS)
    ]
    text = (
        "Errors fitted by a power law over the seeds' runs; a claimed exponent is an upper bound from worst-case theory, so a "
        "smaller one is better. Each run has its own horizon. " + look.find(look.subject).text + ", random subsets of its rows."
    )
    plots = [_rate_plot(group, fits) for group in _groups()]
    return Finding("rates", fits, _page("rates", "Rates over eps and n", text, [_table("Exponents", columns, rows)], plots))


def _groups() -> list[list[Sweep]]:
    found: dict[str, list[Sweep]] = {}
    for sweep in SWEEPS:
        found.setdefault(sweep.claim, []).append(sweep)
    return list(found.values())


def _rate_plot(sweeps: list[Sweep], fits: dict[str, Any]) -> dict[str, Any]:
    first = sweeps[0]
    series = [
        {"label": label(s.method), "x": fits[s.key].x, "y": fits[s.key].y, "low": fits[s.key].least, "high": fits[s.key].most}
        for s in sweeps
    ]
    title = f"{first.title}: claimed {first.says}"
    return {"title": title, "x_label": first.x_label, "y_label": first.quantity, "log_x": True, "log_y": True, "series": series}


# batch sizes

BATCHES = ("1", "10", "sqrt", "n/10", "n/1")


def _batch_runs(look: Look, quick: bool) -> dict[tuple[str, str, str, float], list[Run]]:
    source, seeds, budgets = look.some(2000), 2 if quick else 3, (8.0, 64.0) if quick else (32.0, 512.0)
    return {
        (loss, method, text, passes): [
            Run(source, loss, "l1:20", method, batch_size(text, source.n), 1.0, seed, passes, 20) for seed in range(seeds)
        ]
        for loss in ("logistic", "nonlinear-least-squares")
        for method in OURS
        for text in BATCHES
        for passes in budgets
    }


def _batch_tasks(look: Look, quick: bool) -> list[Any]:
    return [
        *(run for runs in _batch_runs(look, quick).values() for run in runs),
        Minimum(look.some(2000), "logistic", "l1:20"),
    ]


def _batches(look: Look, quick: bool, results: Results) -> Finding:
    least = float(results[Minimum(look.some(2000), "logistic", "l1:20")]["value"])
    errors = {
        key: float(np.mean([_error(key[0], results[run], least) for run in runs]))
        for key, runs in _batch_runs(look, quick).items()
    }
    budgets = sorted({key[3] for key in errors})
    rows, gains = [], {}
    for loss, method, text in dict.fromkeys(key[:3] for key in errors):
        early, late = (errors[loss, method, text, passes] for passes in budgets)
        gains[loss, method, text] = early / late
        rows.append([loss, label(method), text, f"{early:.1e}", f"{late:.1e}", f"{early / late:.1f}"])
    columns = ("problem", "method", "batch", *(f"error, {passes:g} passes" for passes in budgets), "gain")
    text = (
        "The error is f - f_min for logistic regression, and the smallest exact gap along the run for non-linear least squares; "
        f"mean over the seeds, n = {look.some(2000).n}, l1 ball of radius 20. {look.some(2000).text}."
    )
    numbers = {"gains": gains, "budgets": budgets}
    return Finding("batches", numbers, _page("batches", "Any batch size", text, [_table("Errors", columns, rows)]))


def _error(loss: str, run: dict[str, np.ndarray], least: float) -> float:
    return float(run["value"][-1]) - least if loss == "logistic" else float(np.nanmin(run["gap"]))


# Algorithm 2 without any full gradient

STARTS = ("sarah-fw", "saga-sarah-fw", "saga-sarah-fw:start=cold")


def _start_runs(look: Look, quick: bool) -> dict[tuple[str, str, str], list[Run]]:
    passes, seeds, rows = (20.0, 2, 25) if quick else (100.0, 5, 50)  # those of the figures, so that no run is made twice
    problems = [p for name in ("fig1", "fig4") for p in FIGURES[name].problems]
    return {
        (p.data, p.set, method): [
            Run(look.find(p.data), p.loss, p.set, method, batch_size("n/100", look.find(p.data).n), 1.0, seed, passes, rows)
            for seed in range(seeds)
        ]
        for p in problems
        for method in STARTS
    }


def _start_tasks(look: Look, quick: bool) -> list[Any]:
    runs = _start_runs(look, quick)
    return [run for held in runs.values() for run in held] + [Minimum(look.find(d), "logistic", s) for d, s, _ in runs]


def _starts(look: Look, quick: bool, results: Results) -> Finding:
    ends: dict[tuple[str, str], list[float]] = {}
    for (data, set_, _), runs in _start_runs(look, quick).items():
        least = float(results[Minimum(look.find(data), "logistic", set_)]["value"])
        ends.setdefault((data, set_), []).append(float(np.median([results[run]["value"][-1] for run in runs])) - least)
    rows = [[*key, *(f"{end:.1e}" for end in three), f"{three[2] / three[0]:.2f}"] for key, three in ends.items()]
    columns = ("data", "set", "Algorithm 1", "Algorithm 2", "Algorithm 2, no full gradient", "last / first")
    text = "f - f_min at the end, median over the seeds. Algorithm 2 starts with one full gradient, or without any (start=cold)."
    return Finding("starts", {"ends": ends}, _page("starts", "No full gradient", text, [_table("Where they end", columns, rows)]))


# memory


def _memory_tasks(look: Look, quick: bool) -> list[Any]:
    source = look.some(8000)
    return [Memory(source, method, kind) for kind in ("linear", "separable") for method in Memory.METHODS]


def _memory(look: Look, quick: bool, results: Results) -> Finding:
    tasks = _memory_tasks(look, quick)
    source, peaks = tasks[0].source, {(t.kind, t.method): float(results[t]["bytes"]) for t in tasks}
    rows, extra = [], {}
    for (kind, method), peak in peaks.items():
        extra[kind, method] = (peak - peaks[kind, "sarah-fw"]) / 8
        size = source.n if kind == "linear" else source.n * source.d
        more = extra[kind, method]
        rows.append([_KINDS[kind], label(method), f"{peak / 1e6:.2f}", f"{more:.0f}", f"{more / size:.2f}"])
    columns = ("objective", "method", "held, MB", "numbers beyond Algorithm 1's", "over n (linear) or n d")
    text = f"Memory that a run holds between iterations (tracemalloc), n = {source.n}, d = {source.d}, batch 20. {source.text}."
    numbers = {"extra": extra, "n": source.n, "d": source.d}
    return Finding("memory", numbers, _page("memory", "Memory of the table", text, [_table("Memory held", columns, rows)]))


_KINDS = {"linear": "LinearModel", "separable": "Separable"}

STUDIES = {
    "rates": Study(_rates_tasks, _rates),
    "batches": Study(_batch_tasks, _batches),
    "starts": Study(_start_tasks, _starts),
    "memory": Study(_memory_tasks, _memory),
}
