"""Figures for papers: PNG and PDF by matplotlib, a column for each problem, a row for each choice of steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from extremal.files import whole_file
from extremal.support.palette import Colour, colours_of_methods
from extremal_lab.reproduction.own import shown
from extremal_lab.reproduction.plan import Curve, Panel
from extremal_lab.reproduction.report import labels
from extremal_lab.reproduction.spec import Figure, is_ours

X_AXES = {"passes": "full gradients (component gradients / n)", "lmos": "LMO calls", "cpu": "CPU seconds"}
Y_AXES = {"relative": "(f - f_min) / (f_max - f_min)", "gap": "Frank-Wolfe gap"}
STEPS = {"own": "own steps", "tuned": "tuned steps"}


def draw(figure: Figure, panels: Sequence[Panel], folder: Path, looks: Mapping[str, Colour] | None = None) -> list[Path]:
    """Save the figure against each x-axis, and return the files. ``looks`` are colours shared with other figures."""
    made = []
    for x in X_AXES:
        picture = picture_of(figure, panels, x, looks)
        for suffix in ("png", "pdf"):
            path = folder / f"{figure.name}-{x}.{suffix}"
            with whole_file(path) as temporary:
                picture.savefig(temporary, format=suffix, dpi=150)
            made.append(path)
    return made


def picture_of(figure: Figure, panels: Sequence[Panel], x: str, looks: Mapping[str, Colour] | None = None) -> Any:
    """A matplotlib figure: relative suboptimality, and the gap too if f is not convex."""
    from matplotlib.figure import Figure as Picture

    names = labels(panels)
    looks = colours_of_methods(names) if looks is None else looks
    steps = [s for s in STEPS if any(curve.steps == s for panel in panels for curve in panel.curves)]
    kinds = ["relative"] if all(panel.convex for panel in panels) else ["relative", "gap"]
    rows = [(s, kind) for s in steps for kind in kinds]
    picture = Picture(figsize=(3.4 * len(panels) + 0.4, 2.7 * len(rows) + 1.0), layout="constrained")
    grid = picture.subplots(len(rows), len(panels), squeeze=False)
    for (s, kind), line in zip(rows, grid, strict=True):
        for panel, axes in zip(panels, line, strict=True):
            _panel(axes, panel)
            for curve in (curve for curve in panel.curves if curve.steps == s):
                _curve(axes, panel, curve, kind, x, names[curve.method], looks[curve.method][0])
        line[0].set_ylabel(f"{STEPS[s]}\n{Y_AXES[kind]}")
    for axes in grid[-1]:
        axes.set_xlabel(X_AXES[x])
    handles, names = grid[0][0].get_legend_handles_labels()
    picture.legend(handles, names, loc="outside lower center", ncols=min(4, 2 * len(panels)), frameon=False, fontsize=8)
    picture.suptitle(_plain(figure.title), fontsize=11)
    return picture


def _curve(axes: Any, panel: Panel, curve: Curve, kind: str, x: str, name: str, colour: str) -> None:
    across = np.median([run[x] for run in curve.runs], axis=0)
    low, middle, high = np.quantile(_heights(panel, curve, kind), (0.0, 0.5, 1.0), axis=0)
    axes.plot(across, middle, label=name, color=colour, linewidth=2.0 if is_ours(curve.method) else 1.1)
    axes.fill_between(across, low, high, color=colour, alpha=0.15, linewidth=0)


def _panel(axes: Any, panel: Panel) -> None:
    axes.set_yscale("log")
    axes.grid(alpha=0.25)
    name = panel.source.name if panel.source.origin != "stand-in" else f"stand-in for {panel.source.name}"
    axes.set_title(
        f"{_plain(name)}, {_plain(shown(panel.problem.set))}  (n = {panel.source.n}, d = {panel.source.d})", fontsize=9
    )


def _plain(name: str) -> str:
    """A name with the signs of formulas escaped."""
    return name.replace("$", r"\$")


def _heights(panel: Panel, curve: Curve, kind: str) -> np.ndarray:
    """The curve of each seed, cut at the accuracy of the certified minimum."""
    if kind == "gap":
        return np.maximum([run["gap"] for run in curve.runs], 1e-16)
    above = np.maximum(np.array([run["value"] for run in curve.runs]) - panel.minimum, panel.floor)
    return above / max(panel.maximum - panel.minimum, panel.floor)
