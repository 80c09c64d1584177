"""The ledger as Markdown: claims and verdicts, where each method ended, the studies' tables, how it was run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from extremal.experiments.plan import Panel
from extremal.experiments.report import label
from extremal.experiments.spec import Figure
from extremal.outputs import whole


def write_ledger(path: Path, said: dict[str, Any], done: Sequence[tuple[Figure, Sequence[Panel]]]) -> None:
    """Write what a report says as Markdown."""
    with whole(path) as temporary:
        temporary.write_text("\n".join(_lines(said, done)) + "\n", encoding="utf-8")


def _lines(said: dict[str, Any], done: Sequence[tuple[Figure, Sequence[Panel]]]) -> Iterator[str]:
    yield "# The paper's claims, and what was measured\n"
    quick = " This is the quick version: fewer passes, seeds and trials." if said["quick"] else ""
    yield f"Made {said['generated']} by extremal {said['versions']['extremal']}.{quick}"
    yield from _verdicts(said["ledger"])
    for figure, panels in done:
        tuned = "; own steps / tuned (the constant before the step)" if figure.factors else ""
        yield f"\n## {figure.title}\n"
        yield f"f - f_min at the end of {figure.passes:g} full gradients, median of {figure.seeds} seeds{tuned}.\n"
        yield from table(*_ends(panels))
    for study in said["studies"]:
        yield f"\n## {study['title']}\n\n{study['text']}\n"
        for held in study["tables"]:
            yield from table(held["columns"], held["rows"])
    yield "\n## How it was run\n"
    yield from table(("what", "value"), [pair for part in ("settings", "versions", "machine") for pair in said[part].items()])


def _verdicts(ledger: Sequence[dict[str, str]]) -> Iterator[str]:
    if ledger:
        yield "\n## Verdicts\n"
        rows = [[r["claim"], f"**{r['verdict']}**", r["measured"], r["rule"], f"`{r['command']}`"] for r in ledger]
        yield from table(("claim", "verdict", "measured", "it holds if", "shown by"), rows)


def _ends(panels: Sequence[Panel]) -> tuple[list[str], list[list[str]]]:
    """A row for each method, a column for each problem."""
    columns = ["", *(Path(p.source.data).name + " (stand-in)" * (p.source.origin == "stand-in") for p in panels)]
    methods = dict.fromkeys(curve.method for curve in panels[0].curves)
    rows = [[label(method), *(_end(panel, method) for panel in panels)] for method in methods]
    rows.append(["f_min", *(f"{panel.minimum:.9g}" for panel in panels)])
    rows.append(["its gap", *(f"{panel.gap:.0e}" for panel in panels)])
    rows.append(["f at the start", *(f"{panel.curves[0].runs[0]['value'][0]:.4g}" for panel in panels)])
    return columns, rows


def _end(panel: Panel, method: str) -> str:
    curves = [curve for curve in panel.curves if curve.method == method]
    return " / ".join(f"{panel.excess(c):.1e}" + (f" ({c.factor:.2g})" if c.steps == "tuned" else "") for c in curves)


def table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> Iterator[str]:
    r"""A table in Markdown.

    Examples
    --------
    >>> for line in table(("a", "b"), [[1, "x|y"]]):
    ...     line
    '| a | b |'
    '|---|---|'
    '| 1 | x\\|y |'
    """
    yield _row(columns)
    yield "|" + "---|" * len(columns)
    yield from map(_row, rows)


def _row(cells: Sequence[Any]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"
