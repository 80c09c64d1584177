"""The results of a comparison, as plain data for the page, and the files beside it: tidy CSV, the settings as JSON."""

from __future__ import annotations

import csv
import datetime
import importlib.metadata
import itertools
import os
import platform
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import rankdata

from extremal.files import cells, terminal, to_json, whole_file
from extremal.methods import METHODS as ALL
from extremal.support.palette import colours_of_methods
from extremal_lab.reproduction import own
from extremal_lab.reproduction.plan import Curve, Panel
from extremal_lab.reproduction.spec import FREE, INSIDE, METHODS, OURS, TUNING_SEED, Figure, is_ours, transient
from extremal_lab.reproduction.store import code
from extremal_lab.reproduction.tasks import COLUMNS

CSV_COLUMNS = (
    "figure", "data", "origin", "loss", "set", "method", "steps", "factor", "batch", "seed", "passes", "lmos", "cpu", "value",
    "gap", "f_min", "f_min_gap",
)  # fmt: skip
PASSES = (
    "component gradients / n, those at the iterate that is shown included: a point of a curve is an iterate with its gradient, "
    "so that P passes are P - 1 steps of Frank-Wolfe"
)
PROJECTS = " (projects)"
PACKAGES = ("numpy", "scipy", "numba", "scikit-learn", "matplotlib", "plotly")


def label(method: str) -> str:
    """The name of a curve.

    Examples
    --------
    >>> label("sarah-fw"), label("sarah-fw:batch=10"), label("svrf")
    ('Algorithm 1 (Sarah)', 'Algorithm 1 (Sarah), batch=10', 'svrf')
    """
    name, *settings = own.shown(method).split(":")
    return ", ".join([(METHODS | FREE).get(name, name), *settings])


def labels(panels: Sequence[Panel]) -> dict[str, str]:
    """The names of all curves, in their order; the names mark methods that project on any of the problems."""
    curves = [curve for panel in panels for curve in panel.curves]
    projecting = {curve.method for curve in curves if curve.projects}
    return {m: label(m) + PROJECTS * (m in projecting) for m in dict.fromkeys(curve.method for curve in curves)}


def ranks(panels: Sequence[Panel], steps: str) -> dict[str, list[float]]:
    """The rank of each method on each problem, 1 for the lowest f at the end; equal methods share their mean rank."""
    found: dict[str, list[float]] = {}
    for panel in panels:
        for method, (rank, _) in _places(panel, steps).items():
            found.setdefault(method, []).append(rank)
    return found


def _places(panel: Panel, steps: str) -> dict[str, tuple[float, bool]]:
    """The rank of each method, and whether it is among the best."""
    curves = [curve for curve in panel.curves if curve.steps == steps]
    ends = [panel.excess(curve) for curve in curves]
    places = zip(curves, rankdata(ends), ends, strict=True)
    return {curve.method: (float(rank), end == min(ends)) for curve, rank, end in places}


def overview(panels: Sequence[Panel], steps: str) -> list[dict[str, Any]]:
    """The winners: median rank over the problems with quartiles, best first."""
    rows, found = [], [_places(panel, steps) for panel in panels]
    for method, places in ranks(panels, steps).items():
        q1, median, q3 = (float(q) for q in np.quantile(places, (0.25, 0.5, 0.75)))
        first = sum(held[method][1] for held in found if method in held)
        rows.append({"method": own.named(method), "median": median, "q1": q1, "q3": q3, "first": first, "problems": len(places)})
    return sorted(rows, key=lambda row: row["median"])


def page_figure(figure: Figure, panels: Sequence[Panel]) -> dict[str, Any]:
    """A figure in the form of the page."""
    problems = [_page_panel(panel) for panel in panels]
    return {"name": figure.name, "title": figure.title, "caption": _caption(figure), "problems": problems}


def _page_panel(panel: Panel) -> dict[str, Any]:
    source = panel.source
    return {
        "key": panel.problem.key, "data": source.name, "origin": source.origin, "origin_text": source.text,
        "n": source.n, "d": source.d, "loss": own.shown(panel.problem.loss), "set": own.shown(panel.problem.set),
        "convex": panel.convex,
        "f_min": panel.minimum, "f_min_gap": panel.gap, "f_min_how": panel.how, "f_max": panel.maximum, "floor": panel.floor,
        "curves": [_page_curve(curve) for curve in panel.curves],
    }  # fmt: skip


def _page_curve(curve: Curve) -> dict[str, Any]:
    runs = [{"seed": seed} | {name: _short(name, run[name]) for name in COLUMNS} for seed, run in curve.seeded]
    held = {name: getattr(curve, name) for name in ("steps", "factor", "edge", "batch", "projects")}
    return {"method": own.named(curve.method)} | held | {"runs": runs}


def _short(name: str, column: np.ndarray) -> list[float | None]:
    """Numbers for the page: values and counts in full, because f - f_min is a difference; the others to six digits."""
    digits = 17 if name in ("value", "lmos") else 6
    return [float(f"{v:.{digits}g}") if np.isfinite(v) else None for v in column.tolist()]


def report(title: str, shown: Sequence[tuple[Figure, Sequence[Panel]]], quick: bool, **more: Any) -> dict[str, Any]:
    """The whole content of the page."""
    panels = [panel for _, found in shown for panel in found]
    steps = [s for s in ("own", "tuned") if any(curve.steps == s for panel in panels for curve in panel.curves)]
    return {
        "title": title, "generated": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), "quick": quick,
        "summary": _summary(shown, quick), "caution": _cautions(shown, more.get("studies", ())),
        "methods": _methods(panels),
        "figures": [page_figure(figure, found) for figure, found in shown],
        "overview": {s: overview(panels, s) for s in steps} if len(panels) > 1 else {},
        "studies": [], "ledger": [], "table2": None,
        "settings": settings(shown), "versions": versions(), "machine": machine(),
    } | more  # fmt: skip


def _cautions(shown: Sequence[tuple[Figure, Sequence[Panel]]], studies: Sequence[dict[str, Any]]) -> list[str]:
    """The cautions of the figures and of the studies, each once."""
    panels = [panel for _, found in shown for panel in found]
    passes = max((figure.passes or np.inf for figure, _ in shown), default=np.inf)
    return list(dict.fromkeys([*cautions(panels, passes), *(said for study in studies for said in study["caution"])]))


def _methods(panels: Sequence[Panel]) -> list[dict[str, Any]]:
    names = labels(panels)
    looks = colours_of_methods(names)
    return [
        {"name": own.named(m), "label": text, "source": _card(m), "ours": is_ours(m), "colour": looks[m]}
        for m, text in names.items()
    ]


def _card(method: str) -> str:
    name = method.split(":")[0]
    if name in ALL:
        return ALL[name].card.source
    return "what minimize picks where no method is named" if name == "auto" else "the user's own"


def _summary(shown: Sequence[tuple[Figure, Sequence[Panel]]], quick: bool) -> list[str]:
    said = [
        "Each curve is the median over the seeds, each band shows their spread. The x-axis counts component gradients over n, "
        "LMO calls or CPU seconds; certificates and recording are on none of these counts.",
        "f_min comes from a certified solve by a method of another kind, which each panel names, with its exact Frank-Wolfe gap; "
        "nothing is drawn below it. f_max is the largest value at a point of any curve of the panel.",
    ]
    if any(curve.projects for _, panels in shown for panel in panels for curve in panel.curves):
        said.append(
            "Methods that are marked with (projects) solve their steps by projections onto the set, which are not among the LMO "
            "calls; the others ask its oracle alone."
        )
    if quick and shown:
        figure = shown[0][0]
        size = f"{figure.budget}, {figure.seeds} seeds and {len(figure.factors)} trials of the tuning"
        said.insert(0, f"This is the quick version: {size} a figure.")
    return said


def cautions(panels: Sequence[Panel], passes: float) -> list[str]:
    """Warnings for readers of the numbers of runs of ``passes`` passes."""
    said = []
    stand_ins = sorted({panel.source.name for panel in panels if panel.source.origin == "stand-in"})
    if stand_ins:
        said.append(f"Not the real data: {', '.join(stand_ins)} could not be loaded, and the figures show generated stand-ins.")
    loose = [panel.problem.key for panel in panels if panel.convex and panel.gap > 1e-6 * max(1.0, abs(panel.minimum))]
    if loose:
        said.append(f"The minimum is known only roughly (see its gap): {'; '.join(loose)}.")
    if passes < 10:
        said.append("A few passes say little about the final values of methods.")
    if any(panel.convex and curve.method in OURS for panel in panels for curve in panel.curves):
        said += inside(passes)
    edges = sum(curve.edge for panel in panels for curve in panel.curves)
    if edges:
        said.append(f"{edges} curves are tuned to an end of the grid of trials (marked in the tables): one beyond may be better.")
    return said


def inside(passes: float) -> list[str]:
    """A sentence about runs of the two algorithms that end inside their transient; none for longer runs."""
    if transient(OURS[1], passes) <= INSIDE:
        return []
    left = " and ".join(f"{100 * transient(method, passes):.0f} % for {label(method)}" for method in OURS)
    return [
        f"{passes:g} passes lie inside the transient of the two algorithms: of the error at the start their constant steps "
        f"leave {left}, so that where they end says little about their rates."
    ]


def settings(shown: Sequence[tuple[Figure, Sequence[Panel]]]) -> dict[str, Any]:
    """The settings of the figures; the texts of the studies have their own."""
    found: dict[str, Any] = {figure.name: _caption(figure) for figure, _ in shown}
    factors = next((figure.factors for figure, _ in shown if figure.factors), ())
    if factors:
        found["trials of the tuning"] = [float(f"{factor:.3g}") for factor in factors]
        found["tuned"] = "the method's own step times the constant whose trial ended lowest, the same trials for every method"
        found["seed of the trials"] = TUNING_SEED
    return found | {"start": "the set's own, 0 for balls", "seeds": "0, 1, 2, ...", "passes": PASSES}


def _caption(figure: Figure) -> str:
    methods = {*figure.methods, *figure.added}
    trials = f"; tuned: the best of {len(figure.factors)} constants before the step" if figure.factors else ""
    trials += "".join(f"; {label(method)}: the best of {len(found)} trials" for method, found in figure.tuning)
    trials += "; methods without a parameter are not tuned" if figure.factors and FREE.keys() & methods else ""
    batch = "each method's own batch" if figure.batch is None else f"batch {figure.batch} where a method has one"
    runs = f"{figure.budget} a run, {batch}, {figure.seeds} seeds"
    return f"{runs}, {figure.rows} points a curve{trials}."


def versions() -> dict[str, str]:
    """The versions of the packages behind the numbers."""
    found = {"extremal": code(), "python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def machine() -> dict[str, str]:
    """The processor and the system, without the name of their owner."""
    return {"processor": _processor(), "cores": str(os.cpu_count()), "system": f"{platform.system()} {platform.machine()}"}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def write_csv(path: Path, figure: Figure, panels: Sequence[Panel]) -> None:
    """Write all runs of a figure, a row for each point, numbers to the last bit; a repeated point has one row."""
    with whole_file(path) as temporary, open(temporary, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(CSV_COLUMNS)
        for panel in panels:
            for curve in panel.curves:
                writer.writerows(map(cells, _csv_rows(figure, panel, curve)))


def _csv_rows(figure: Figure, panel: Panel, curve: Curve) -> list[list[Any]]:
    p, source = panel.problem, panel.source
    of_curve = [own.named(curve.method), curve.steps, repr(curve.factor), "" if curve.batch is None else curve.batch]
    head = [figure.name, source.name, source.origin, own.shown(p.loss), own.shown(p.set), *of_curve]
    tail = [repr(panel.minimum), repr(panel.gap)]
    return [[*head, seed, *point, *tail] for seed, run in curve.seeded for point in _points(run)]


def _points(run: dict[str, np.ndarray]) -> Iterator[tuple[str, ...]]:
    """The points of a run, each once."""
    points = zip(*(map(repr, run[name].tolist()) for name in COLUMNS), strict=True)
    return (point for point, _ in itertools.groupby(points))


def write_json(path: Path, item: Any) -> None:
    """Write plain JSON, whole or not at all."""
    with whole_file(path) as temporary:
        temporary.write_text(to_json(item, indent=1), encoding="utf-8")


def print_table(console: Console, title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a table at its full width, whatever the width of the terminal."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), title=title, title_justify="left")
    for i, column in enumerate(columns):
        table.add_column(column, justify="right" if i else "left", no_wrap=True)
    for row in rows:
        table.add_row(*map(str, row))
    terminal(file=console.file, width=max(console.width, 240), force_terminal=console.is_terminal).print(table)
