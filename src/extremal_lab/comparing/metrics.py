"""What is measured of each method beside its curve: medians over the seeds at the end, and what an accuracy costs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal import checks
from extremal_lab.reproduction.own import named
from extremal_lab.reproduction.plan import Curve, Panel
from extremal_lab.reproduction.report import labels
from extremal_lab.reproduction.spec import Figure

Run = dict[str, np.ndarray]
NOWHERE = float("nan")
ACCURACIES = (1e-2, 1e-4, 1e-6)  # on pages
COSTS = {"passes": "component gradients / n", "lmos": "LMO calls", "cpu": "CPU seconds"}


@dataclass(frozen=True)
class Metric:
    """A number of a run."""

    text: str
    of: Callable[[Panel, Run], float]
    convex: bool | None = None  # for problems that are convex only (True) or not convex only (False)


def _end(column: str) -> Callable[[Panel, Run], float]:
    return lambda panel, run: float(run[column][-1]) if column in run else NOWHERE


def _average_gap(panel: Panel, run: Run) -> float:
    return float(np.nanmean(run["gap"][1:])) if np.isfinite(run["gap"][1:]).any() else NOWHERE


def _best_gap(panel: Panel, run: Run) -> float:
    return float(np.nanmin(run["gap"])) if np.isfinite(run["gap"]).any() else NOWHERE


def _excess(panel: Panel, run: Run) -> float:
    return max(float(run["value"][-1]) - panel.minimum, panel.floor)


METRICS = {
    "value": Metric("f at the end", _end("value")),
    "excess": Metric("f - f_min at the end, not below the accuracy of f_min", _excess),
    "gap": Metric("exact Frank-Wolfe gap at the end", _end("gap")),
    "average_gap": Metric("mean of the exact gaps along the run", _average_gap, convex=False),
    "best_gap": Metric("least of the exact gaps along the run", _best_gap, convex=False),
    "test": Metric("loss on the test rows at the end", _end("test")),
    "nonzeros": Metric("non-zeros of the last point", _end("nonzeros")),
    "passes": Metric("component gradients / n", _end("passes")),
    "lmos": Metric("LMO calls", _end("lmos")),
    "cpu": Metric("CPU seconds", _end("cpu")),
    "bytes": Metric("bytes that agents or workers sent", lambda panel, run: float(run.get("bytes", 0.0))),
}


def metrics_of(panels: Sequence[Panel]) -> list[str]:
    """The metrics that some run has."""
    runs = [(panel, run) for panel in panels for curve in panel.curves for run in curve.runs]
    return [name for name, metric in METRICS.items() if any(np.isfinite(_measured(metric, panel, run)) for panel, run in runs)]


def _measured(metric: Metric, panel: Panel, run: Run) -> float:
    return metric.of(panel, run) if metric.convex in (None, panel.convex) else NOWHERE


def table(panels: Sequence[Panel], names: Sequence[str]) -> list[dict[str, Any]]:
    """A row for each curve: the problem, the method, its tuning, and medians over the seeds."""
    for name in names:
        checks.one_of("metric", name, METRICS)
    return [_row(panel, curve) | _medians(panel, curve, names) for panel in panels for curve in panel.curves]


def _row(panel: Panel, curve: Curve) -> dict[str, Any]:
    chosen = curve.trial or (f"factor={curve.factor:.3g}" if curve.steps == "tuned" and curve.trials else "")
    row = {"problem": panel.problem.key, "method": named(curve.method), "steps": curve.steps, "trials": curve.trials}
    return row | {"chosen": chosen, "seeds": len(curve.runs)}


def _medians(panel: Panel, curve: Curve, names: Sequence[str]) -> dict[str, float]:
    return {name: float(np.median([_measured(METRICS[name], panel, run) for run in curve.runs])) for name in names}


def time_to(panels: Sequence[Panel], accuracy: float, by: str = "cpu", of: str = "excess") -> list[dict[str, Any]]:
    """What an accuracy costs: a row for each curve, with the seeds that reach it and the median over all seeds.

    A run reaches the accuracy at its first point with f - f_min, or with a gap, of at most ``accuracy``. The median is infinite
    if half of the runs do not reach it.
    """
    checks.positive("time_to", "accuracy", accuracy)
    checks.one_of("cost of `time_to(by=...)`", by, COSTS)
    checks.one_of("measure of `time_to(of=...)`", of, ("excess", "gap"))
    rows = []
    for panel in panels:
        for curve in panel.curves:
            costs = [_cost(panel, run, accuracy, by, of) for run in curve.runs]
            reached = {"reached": int(np.isfinite(costs).sum()), by: float(np.median(costs))}
            rows.append(_row(panel, curve) | reached)
    return rows


def _cost(panel: Panel, run: Run, accuracy: float, by: str, of: str) -> float:
    left = run["gap"] if of == "gap" else run["value"] - panel.minimum
    there = np.flatnonzero(left <= accuracy)
    return float(run[by][there[0]]) if len(there) else np.inf


# for the page


def study(figure: Figure, panels: Sequence[Panel]) -> dict[str, Any]:
    """The metrics as a section of the page: a table for each problem, and curves of the test loss and of non-zeros."""
    names, text = metrics_of(panels), labels(panels)
    tables = [_page_table(panel, names, text) for panel in panels]
    tables += [_costs_table(panel, text) for panel in panels if panel.convex]
    plots = [
        _plot(panel, column, text) for panel in panels for column in ("test", "nonzeros") if column in panel.curves[0].runs[0]
    ]  # fmt: skip
    said = "; ".join(f"{name}: {METRICS[name].text}" for name in names)
    more = f"Medians over the seeds after {figure.budget}. {said}."
    return {
        "name": "metrics",
        "title": "All metrics",
        "text": more,
        "tables": tables,
        "plots": plots,
        "caution": _unequal(panels),
    }


def _unequal(panels: Sequence[Panel]) -> list[str]:
    """A caution where methods were tuned with different numbers of trials."""
    counts = {named(curve.method): curve.trials for panel in panels for curve in panel.curves if curve.steps == "tuned"}
    if len(set(counts.values())) < 2:
        return []
    return [f"Methods had different numbers of trials: {', '.join(f'{name} {count}' for name, count in counts.items())}."]


def _page_table(panel: Panel, names: Sequence[str], text: dict[str, str]) -> dict[str, Any]:
    held = [name for name in names if METRICS[name].convex in (None, panel.convex) and (name != "bytes" or _sent(panel))]
    rows = [
        [text[curve.method], *(_row(panel, curve)[name] or "-" for name in ("steps", "chosen")), *_cells(panel, curve, held)]
        for curve in _distinct(panel)
    ]  # fmt: skip
    return {"title": f"{panel.problem.key}: at the end", "columns": ["method", "steps", "chosen", *held], "rows": rows}


def _sent(panel: Panel) -> bool:
    return any(float(run.get("bytes", 0)) > 0 for curve in panel.curves for run in curve.runs)


def _distinct(panel: Panel) -> list[Curve]:
    """The curves, without those that repeat a method because others are tuned."""
    return [curve for curve in panel.curves if curve.steps == "own" or curve.trials]


def _cells(panel: Panel, curve: Curve, names: Sequence[str]) -> list[str]:
    return [f"{value:.4g}" if np.isfinite(value) else "-" for value in _medians(panel, curve, names).values()]


def _costs_table(panel: Panel, text: dict[str, str]) -> dict[str, Any]:
    """Passes and CPU seconds to the accuracies of pages."""
    columns = [f"{unit} to {accuracy:g}" for accuracy in ACCURACIES for unit in ("passes", "seconds")]
    rows = [
        [text[curve.method], curve.steps, *(_cell(panel, curve, a, by) for a in ACCURACIES for by in ("passes", "cpu"))]
        for curve in _distinct(panel)
    ]  # fmt: skip
    return {"title": f"{panel.problem.key}: costs of f - f_min", "columns": ["method", "steps", *columns], "rows": rows}


def _cell(panel: Panel, curve: Curve, accuracy: float, by: str) -> str:
    median = float(np.median([_cost(panel, run, accuracy, by, "excess") for run in curve.runs]))
    return f"{median:.3g}" if np.isfinite(median) else "-"


def _plot(panel: Panel, column: str, text: dict[str, str]) -> dict[str, Any]:
    curves = [curve for curve in panel.curves if curve.steps == "own"]
    series = [_series(curve, column, text[curve.method]) for curve in curves]
    title = {"test": "loss on the test rows", "nonzeros": "non-zeros"}[column]
    axes = {"x_label": COSTS["passes"], "y_label": title, "log_x": False, "log_y": False}
    return {"title": f"{panel.problem.key}: {title}", "series": series} | axes


def _series(curve: Curve, column: str, name: str) -> dict[str, Any]:
    x, y = (np.median([run[key] for run in curve.runs], axis=0).tolist() for key in ("passes", column))
    return {"label": name, "x": x, "y": y, "low": None, "high": None}
