"""Draw the ratios: each with its spread and its bar, and the history of those with a bar over the kept runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

from extremal.checks import InputError
from extremal.files import whole_file
from extremal.support.palette import PALETTE, colours_of_series

COLUMNS = 3
OUTSIDE: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.0, 1.0), "fontsize": 6, "frameon": False}  # hides no points
NEEDED = "the picture needs matplotlib: pip install 'extremal[figures]'"
Said = dict[str, Any]  # a run of the suite, in the form of `extremal_lab.bench.report.document`
Row = tuple[str, str, Said]  # its name on the axis, its series, its measurement


def draw(path: Path, said: Said, kept: Sequence[Said] = ()) -> Path:
    """Save the picture of a run as PNG, with the history if there are at least two kept runs."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError(NEEDED) from None
    panels = panels_of(said["measurements"])
    lines = math.ceil(len(panels) / COLUMNS)
    past = len(kept) > 1
    picture = Figure(figsize=(5.6 * COLUMNS, 3.0 * lines + (5.0 if past else 0.0) + 0.6), layout="constrained")
    grid = picture.add_gridspec(lines + past, COLUMNS, height_ratios=[3.0] * lines + [5.0] * past)
    for i, (title, rows) in enumerate(panels.items()):
        _panel(picture.add_subplot(grid[i // COLUMNS, i % COLUMNS]), title, rows)
    if past:
        _history(picture.add_subplot(grid[lines, :]), kept)
    picture.suptitle(_title(said), fontsize=11)
    with whole_file(path) as temporary:
        picture.savefig(temporary, format="png", dpi=80)
    return path


def panels_of(measurements: Sequence[Said]) -> dict[str, list[Row]]:
    """The measurements by panel: a name reads "panel: row, series".

    Examples
    --------
    >>> panels_of([{"part": "methods", "name": "w8a: SarahFW, b = 1, loop"}]).keys()
    dict_keys(['methods, w8a'])
    >>> panels_of([{"part": "methods", "name": "w8a: SarahFW, b = 1, loop"}])["methods, w8a"][0][:2]
    ('SarahFW', 'b = 1, loop')
    """
    panels: dict[str, list[Row]] = {}
    for found in measurements:
        panel, colon, rest = found["name"].partition(": ")
        row, _, series = (rest if colon else panel).partition(", ")
        title = f"{found['part']}, {panel}" if colon else found["part"]
        panels.setdefault(title, []).append((row, series, found))
    return panels


def _title(said: Said) -> str:
    where = f"{said['machine']['processor']}, {said['machine']['cores']} cores"
    versions = ", ".join(f"{name} {version}" for name, version in said["versions"].items())
    return f"extremal {said['version']} ({said['commit'] or 'no commit'}), {said['date'][:10]}: {where}; {versions}"


def _panel(axes: Any, title: str, rows: Sequence[Row]) -> None:
    """A line for each name, a colour for each series; a cross for a missed bar, a tick at the place of the bar."""
    names = list(dict.fromkeys(name for name, _, _ in rows))
    looks = {which: light for which, (light, _) in colours_of_series(which for _, which, _ in rows).items()}
    for name, which, found in rows:
        beside = [other for row, other, _ in rows if row == name]
        height = names.index(name) + 0.7 * (beside.index(which) + 0.5) / len(beside) - 0.35
        missed = found["bar"] is not None and found["ratio"] > found["bar"]
        axes.plot([found["low"], found["high"]], [height, height], color=looks[which], linewidth=1.2)
        axes.plot([found["ratio"]], [height], color=looks[which], marker="X" if missed else "o", markersize=4, linestyle="")
        if found["bar"] is not None:
            axes.plot([found["bar"]], [height], color="black", marker="|", markersize=8, linestyle="")
    low, high = min(found["low"] for _, _, found in rows), max(found["high"] for _, _, found in rows)
    if 0 < 5 * low < high:
        axes.set_xscale("log")
    axes.set_yticks(range(len(names)), names, fontsize=7)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="x", which="both", labelsize=6)
    axes.grid(alpha=0.25)
    axes.set_title(title, fontsize=9)
    axes.set_xlabel(fill(rows[0][2]["unit"], 70), fontsize=7)
    for which, colour in looks.items():
        axes.plot([], [], color=colour, marker="o", markersize=4, label=which)
    if any(looks):
        axes.legend(**OUTSIDE)


def _history(axes: Any, kept: Sequence[Said]) -> None:
    """Ratio over bar for each measurement with a bar, in the order of the runs."""
    tracks: dict[str, list[tuple[int, float]]] = {}
    for i, said in enumerate(kept):
        for found in said["measurements"]:
            if found["bar"] is not None:
                tracks.setdefault(f"{found['part']}, {found['name']}", []).append((i, found["ratio"] / found["bar"]))
    for j, (name, points) in enumerate(tracks.items()):
        style, (light, _) = ("-", "--", ":")[j // len(PALETTE) % 3], PALETTE[j % len(PALETTE)]
        axes.plot(*zip(*points, strict=True), style, color=light, marker="o", markersize=3, label=name)
    axes.axhline(1.0, color="black", linewidth=0.8)
    axes.set_yscale("log")
    axes.set_xticks(range(len(kept)), [f"{said['date'][:10]}\n{said['commit'] or said['version']}" for said in kept], fontsize=7)
    axes.set_ylabel("ratio / bar", fontsize=8)
    axes.set_title("history of what has a bar (below 1: met)", fontsize=9)
    axes.grid(alpha=0.25)
    axes.legend(**OUTSIDE)
