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
        curves = [curve for curve in panel.curves if curve.steps == steps]
        for curve, rank in zip(curves, rankdata([panel.excess(curve) for curve in curves]), strict=True):
            found.setdefault(curve.method, []).append(float(rank))
    return found


def overview(panels: Sequence[Panel], steps: str) -> list[dict[str, Any]]:
    """Who wins where: median rank over the problems with quartiles, best first."""
    rows = []
    for method, places in ranks(panels, steps).items():
        q1, median, q3 = (float(q) for q in np.quantile(places, (0.25, 0.5, 0.75)))
        first = sum(place < 2 for place in places)
        rows.append({"method": method, "median": median, "q1": q1, "q3": q3, "first": first, "problems": len(places)})
    return sorted(rows, key=lambda row: row["median"])


def page_figure(figure: Figure, panels: Sequence[Panel]) -> dict[str, Any]:
    """A figure as the page takes it."""
    trials = f"; tuned: the best of {len(figure.factors)} constants before the step" if figure.factors else ""
    caption = f"{figure.passes:g} full gradients a run, batch {figure.batch}, {figure.seeds} seeds{trials}."
    return {"name": figure.name, "title": figure.title, "caption": caption, "problems": [_page_panel(p) for p in panels]}


def _page_panel(panel: Panel) -> dict[str, Any]:
    source = panel.source
    return {
        "key": panel.problem.key, "data": Path(source.data).name, "origin": source.origin, "origin_text": source.text,
        "n": source.n, "d": source.d, "loss": panel.problem.loss, "set": panel.problem.set, "convex": panel.convex,
        "f_min": panel.minimum, "f_min_gap": panel.gap, "f_min_how": panel.how, "f_max": panel.maximum,
        "curves": [_page_curve(curve) for curve in panel.curves],
    }  # fmt: skip


def _page_curve(curve: Curve) -> dict[str, Any]:
    runs = [{"seed": seed} | {name: _short(name, column) for name, column in run.items()} for seed, run in enumerate(curve.runs)]
    return {"method": curve.method, "steps": curve.steps, "factor": curve.factor, "batch": curve.batch, "runs": runs}


def _short(name: str, column: np.ndarray) -> list[float | None]:
    """Numbers for the page: values in full, for f - f_min is their difference; the others to five digits."""
    digits = 17 if name == "value" else 5
    return [float(f"{v:.{digits}g}") if np.isfinite(v) else None for v in column.tolist()]


def report(title: str, shown: Sequence[tuple[Figure, Sequence[Panel]]], quick: bool, **more: Any) -> dict[str, Any]:
    """Everything that the page shows."""
    panels = [panel for _, found in shown for panel in found]
    methods = dict.fromkeys(curve.method for panel in panels for curve in panel.curves)
    steps = [s for s in ("theory", "tuned") if any(curve.steps == s for panel in panels for curve in panel.curves)]
    return {
        "title": title, "generated": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), "quick": quick,
        "summary": _summary(panels, quick),
        "methods": [{"name": m, "label": label(m), "source": _card(m), "ours": m.split(":")[0] in OURS} for m in methods],
        "figures": [page_figure(figure, found) for figure, found in shown],
        "overview": {s: overview(panels, s) for s in steps} if len(panels) > 1 else {},
        "studies": [], "ledger": [], "table2": None,
        "settings": settings(shown), "versions": versions(), "machine": machine(),
    } | more  # fmt: skip


def _card(method: str) -> str:
    name = method.split(":")[0]
    return ALL[name].card.source if name in ALL else "what minimize picks where no method is named"


def _summary(panels: Sequence[Panel], quick: bool) -> list[str]:
    stand_ins = sorted({panel.source.data for panel in panels if panel.source.origin == "stand-in"})
    said = [
        "Each curve is the median over the seeds, each band shows their spread. The x-axis counts component gradients over n, "
        "LMO calls or CPU seconds; what certificates and recording cost is counted apart.",
        "f_min is certified by an interior-point method, with its exact Frank-Wolfe gap; nothing is drawn below it.",
    ]
    if quick:
        said.insert(0, "This is the quick version: fewer passes, two seeds and three trials of the tuning.")
    if stand_ins:
        said.insert(0, f"Not the real data: {', '.join(stand_ins)} could not be had, and generated stand-ins are shown.")
    return said


def settings(shown: Sequence[tuple[Figure, Sequence[Panel]]]) -> dict[str, Any]:
    """How the figures were made."""
    if not shown:
        return {}
    figure = shown[0][0]
    return {
        "passes": figure.passes, "batch": figure.batch, "seeds": f"0 to {figure.seeds - 1}", "start": "0 for balls",
        "trials of the tuning": [float(f"{factor:.3g}") for factor in figure.factors],
        "tuned": "the method's own step times the constant whose trial ended lowest, the same trials for every method",
        "seed of the trials": TUNING_SEED, "points of a curve": figure.rows,
    }  # fmt: skip


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
    head = [figure.name, p.data, panel.source.origin, p.loss, p.set, curve.method, curve.steps, repr(curve.factor), curve.batch]
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
