"""Run the figures of the paper, or of a user, and write numbers, pictures and the page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from extremal.checks import InputError
from extremal.files import check_out
from extremal.support.palette import colours_of_methods
from extremal_lab.reproduction import own, pictures, report
from extremal_lab.reproduction.markdown import write_ledger
from extremal_lab.reproduction.page import write_page
from extremal_lab.reproduction.plan import Contest, Panel, Work, compared
from extremal_lab.reproduction.progress import shown
from extremal_lab.reproduction.spec import Figure

Shown = tuple[Figure, list[Panel]]


def run_figures(figures: Sequence[Figure], work: Work, console: Console, out: Path, check: bool = False) -> list[Shown]:
    """Run figures one after the other, and write the numbers and pictures of each as soon as it is done."""
    comparisons = compared(figures, work)
    for comparison in comparisons if check else ():
        comparison.check()
    folder(out)
    _say_what_is_shown(comparisons, console)
    looks = colours_of_methods(method for comparison in comparisons for method in comparison.methods)
    done = []
    for comparison in comparisons:
        figure = comparison.figure
        with shown(console, figure.name, comparison.cost) as seen:
            found = comparison.panels(seen)
        report.write_csv(out / f"{figure.name}.csv", figure, found)
        pictures.draw(figure, found, out, looks)
        report.print_table(console, figure.title, *ends(found))
        done.append((figure, found))
    return done


def write(title: str, done: Sequence[Shown], out: Path, console: Console, quick: bool = False, **more: Any) -> dict[str, Any]:
    """Write the page and its data."""
    folder(out)
    said = report.report(title, done, quick, **more)
    write_page(out / "index.html", said)
    write_ledger(out / "ledger.md", said, [(figure, *ends(found)) for figure, found in done])
    report.write_json(out / "settings.json", {name: said[name] for name in ("generated", "settings", "versions", "machine")})
    console.print(
        f"\nThe page: {out / 'index.html'}; beside it numbers (CSV), pictures (PNG, PDF) and tables (ledger.md).",
        soft_wrap=True,
    )
    return said


def folder(out: Path) -> Path:
    """Make the folder of the results, or raise an error if it cannot be written: before the runs, not after them."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{out}: the results cannot be written there ({error.strerror})") from None
    check_out(out / "index.html")
    return out


def _say_what_is_shown(comparisons: Sequence[Contest], console: Console) -> None:
    for trouble in comparisons[0].work.troubles if comparisons else ():
        console.print(trouble, soft_wrap=True, highlight=False)
    for source in dict.fromkeys(source for comparison in comparisons for source in comparison.sources.values()):
        console.print(f"{source.name}: {source.text} ({source.n} x {source.d})", soft_wrap=True, highlight=False)


def ends(panels: Sequence[Panel]) -> tuple[list[str], list[list[str]]]:
    """The final values: columns and rows of f - f_min, median over the seeds, own steps / tuned (its constant)."""
    several = len({panel.problem.set for panel in panels}) > 1
    columns = ["f - f_min at the end", *(_heading(panel, several) for panel in panels)]
    rows = [[name, *(_end(panel, method) for panel in panels)] for method, name in report.labels(panels).items()]
    rows.append(["f_min", *(f"{panel.minimum:.9g}" for panel in panels)])
    rows.append(["its gap", *(f"{panel.gap:.0e}" for panel in panels)])
    rows.append(["f at the start", *(f"{panel.curves[0].start:.4g}" for panel in panels)])
    return columns, rows


def _heading(panel: Panel, with_set: bool) -> str:
    source = panel.source
    return source.name + f", {own.shown(panel.problem.set)}" * with_set + " (stand-in)" * (source.origin == "stand-in")


def _end(panel: Panel, method: str) -> str:
    curves = [curve for curve in panel.curves if curve.method == method]
    return " / ".join(f"{panel.excess(c):.1e}" + (f" ({c.factor:.1g})" if c.steps == "tuned" else "") for c in curves)
