"""What a comparison says, as plain data for the page, and the files beside it: tidy CSV, the settings as JSON."""

from __future__ import annotations

import csv
import datetime
import importlib.metadata
import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import rankdata

from extremal.experiments.plan import Curve, Panel
from extremal.experiments.spec import METHODS, OURS, TUNING_SEED, Figure
from extremal.experiments.store import code
from extremal.methods import METHODS as ALL
from extremal.outputs import whole

CSV_COLUMNS = (
    "figure", "data", "origin", "loss", "set", "method", "steps", "factor", "batch", "seed", "passes", "lmos", "cpu", "value",
    "gap", "f_min", "f_min_gap",
)  # fmt: skip
PACKAGES = ("numpy", "scipy", "numba", "scikit-learn", "matplotlib", "plotly")


def label(method: str) -> str:
    """The name of a curve.

    Examples
    --------
    >>> label("sarah-fw"), label("sarah-fw:batch=10"), label("svrf")
    ('Algorithm 1 (Sarah)', 'Algorithm 1 (Sarah), batch=10', 'svrf')
    """
    name, *settings = method.split(":")
    return ", ".join([METHODS.get(name, name), *settings])


def ranks(panels: Sequence[Panel], steps: str) -> dict[str, list[float]]:
    """For each method its rank on each problem, 1 the lowest f at the end; equals share their mean rank."""
    found: dict[str, list[float]] = {}
    for panel in panels:
        for method, (rank, _) in _places(panel, steps).items():
            found.setdefault(method, []).append(rank)
    return found


def _places(panel: Panel, steps: str) -> dict[str, tuple[float, bool]]:
    """For each method its rank, and whether none is better."""
    curves = [curve for curve in panel.curves if curve.steps == steps]
    ends = [panel.excess(curve) for curve in curves]
    places = zip(curves, rankdata(ends), ends, strict=True)
    return {curve.method: (float(rank), end == min(ends)) for curve, rank, end in places}


def overview(panels: Sequence[Panel], steps: str) -> list[dict[str, Any]]:
    """Who wins where: median rank over the problems with quartiles, best first."""
    rows, found = [], [_places(panel, steps) for panel in panels]
    for method, places in ranks(panels, steps).items():
        q1, median, q3 = (float(q) for q in np.quantile(places, (0.25, 0.5, 0.75)))
        first = sum(held[method][1] for held in found if method in held)
        rows.append({"method": method, "median": median, "q1": q1, "q3": q3, "first": first, "problems": len(places)})
    return sorted(rows, key=lambda row: row["median"])


def page_figure(figure: Figure, panels: Sequence[Panel]) -> dict[str, Any]:
    """A figure as the page takes it."""
    problems = [_page_panel(panel) for panel in panels]
    return {"name": figure.name, "title": figure.title, "caption": _caption(figure), "problems": problems}


def _page_panel(panel: Panel) -> dict[str, Any]:
    source = panel.source
    return {
        "key": panel.problem.key, "data": source.name, "origin": source.origin, "origin_text": source.text,
        "n": source.n, "d": source.d, "loss": panel.problem.loss, "set": panel.problem.set, "convex": panel.convex,
        "f_min": panel.minimum, "f_min_gap": panel.gap, "f_min_how": panel.how, "f_max": panel.maximum, "floor": panel.floor,
        "curves": [_page_curve(curve) for curve in panel.curves],
    }  # fmt: skip


def _page_curve(curve: Curve) -> dict[str, Any]:
    runs = [{"seed": seed} | {name: _short(name, column) for name, column in run.items()} for seed, run in enumerate(curve.runs)]
    return {
        "method": curve.method,
        "steps": curve.steps,
        "factor": curve.factor,
        "edge": curve.edge,
        "batch": curve.batch,
        "runs": runs,
    }


def _short(name: str, column: np.ndarray) -> list[float | None]:
    """Numbers for the page: values and counts in full, for f - f_min is a difference; the others to six digits."""
    digits = 17 if name in ("value", "lmos") else 6
    return [float(f"{v:.{digits}g}") if np.isfinite(v) else None for v in column.tolist()]


def report(title: str, shown: Sequence[tuple[Figure, Sequence[Panel]]], quick: bool, **more: Any) -> dict[str, Any]:
    """Everything that the page shows."""
    panels = [panel for _, found in shown for panel in found]
    methods = dict.fromkeys(curve.method for panel in panels for curve in panel.curves)
    steps = [s for s in ("theory", "tuned") if any(curve.steps == s for panel in panels for curve in panel.curves)]
    return {
        "title": title, "generated": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), "quick": quick,
        "summary": _summary(shown, quick), "caution": cautions(panels),
        "methods": [{"name": m, "label": label(m), "source": _card(m), "ours": m.split(":")[0] in OURS} for m in methods],
        "figures": [page_figure(figure, found) for figure, found in shown],
        "overview": {s: overview(panels, s) for s in steps} if len(panels) > 1 else {},
        "studies": [], "ledger": [], "table2": None,
        "settings": settings(shown), "versions": versions(), "machine": machine(),
    } | more  # fmt: skip


def _card(method: str) -> str:
    name = method.split(":")[0]
    return ALL[name].card.source if name in ALL else "what minimize picks where no method is named"


def _summary(shown: Sequence[tuple[Figure, Sequence[Panel]]], quick: bool) -> list[str]:
    said = [
        "Each curve is the median over the seeds, each band shows their spread. The x-axis counts component gradients over n, "
        "LMO calls or CPU seconds; certificates and recording are on none of these counts.",
        "f_min comes from a certified solve by a method of another kind, which each panel names, with its exact Frank-Wolfe gap; "
        "nothing is drawn below it. f_max is the largest value at a point of any curve of the panel.",
    ]
    if quick and shown:
        figure = shown[0][0]
        size = f"{figure.passes:g} passes, {figure.seeds} seeds and {len(figure.factors)} trials of the tuning"
        said.insert(0, f"This is the quick version: {size} a figure.")
    return said


def cautions(panels: Sequence[Panel]) -> list[str]:
    """What a reader has to know before the numbers."""
    said = []
    stand_ins = sorted({panel.source.name for panel in panels if panel.source.origin == "stand-in"})
    if stand_ins:
        said.append(f"Not the real data: {', '.join(stand_ins)} could not be had, and generated stand-ins are shown.")
    loose = [panel.problem.key for panel in panels if panel.convex and panel.gap > 1e-6 * max(1.0, abs(panel.minimum))]
    if loose:
        said.append(f"The minimum is known only roughly (see its gap): {'; '.join(loose)}.")
    if panels and max(panel.curves[0].runs[0]["passes"][-1] for panel in panels) < 10:
        said.append("A few passes say little about where methods end.")
    edges = sum(curve.edge for panel in panels for curve in panel.curves)
    if edges:
        said.append(f"{edges} curves are tuned to an end of the grid of trials, which the tables mark: one beyond may be better.")
    return said


def settings(shown: Sequence[tuple[Figure, Sequence[Panel]]]) -> dict[str, Any]:
    """How the figures were made; the studies say it in their texts."""
    found: dict[str, Any] = {figure.name: _caption(figure) for figure, _ in shown}
    factors = next((figure.factors for figure, _ in shown if figure.factors), ())
    if factors:
        found["trials of the tuning"] = [float(f"{factor:.3g}") for factor in factors]
        found["tuned"] = "the method's own step times the constant whose trial ended lowest, the same trials for every method"
        found["seed of the trials"] = TUNING_SEED
    return found | {"start": "the set's own, 0 for balls", "seeds": "0, 1, 2, ..."}


def _caption(figure: Figure) -> str:
    trials = f"; tuned: the best of {len(figure.factors)} constants before the step" if figure.factors else ""
    runs = f"{figure.passes:g} full gradients a run, batch {figure.batch}, {figure.seeds} seeds"
    return f"{runs}, {figure.rows} points a curve{trials}."


def versions() -> dict[str, str]:
    """Of what the numbers depend on."""
    found = {"extremal": code(), "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, str]:
    """The processor and the system; nothing that names its owner."""
    return {"processor": _processor(), "cores": str(os.cpu_count()), "system": f"{platform.system()} {platform.machine()}"}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def write_csv(path: Path, figure: Figure, panels: Sequence[Panel]) -> None:
    """All runs of a figure, a row for each point, numbers to the last bit."""
    with whole(path) as temporary, open(temporary, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(CSV_COLUMNS)
        for panel in panels:
            for curve in panel.curves:
                writer.writerows(_csv_rows(figure, panel, curve))


def _csv_rows(figure: Figure, panel: Panel, curve: Curve) -> list[list[Any]]:
    p = panel.problem
    head = [
        figure.name,
        panel.source.name,
        panel.source.origin,
        p.loss,
        p.set,
        curve.method,
        curve.steps,
        repr(curve.factor),
        curve.batch,
    ]
    tail = [repr(panel.minimum), repr(panel.gap)]
    return [
        [*head, seed, *(repr(float(run[name][i])) for name in ("passes", "lmos", "cpu", "value", "gap")), *tail]
        for seed, run in enumerate(curve.runs)
        for i in range(len(run["value"]))
    ]


def write_json(path: Path, item: Any) -> None:
    """Plain JSON, whole or absent."""
    with whole(path) as temporary:
        temporary.write_text(json.dumps(item, indent=1), encoding="utf-8")


def print_table(console: Console, title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """A table at its full width, whatever the terminal's."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), title=title, title_justify="left")
    for i, column in enumerate(columns):
        table.add_column(column, justify="right" if i else "left", no_wrap=True)
    for row in rows:
        table.add_row(*map(str, row))
    Console(file=console.file, width=max(console.width, 240), force_terminal=console.is_terminal).print(table)
