"""The paper's experiments, or a user's: run the figures, write numbers, pictures and the page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from extremal.checks import InputError
from extremal.experiments import pictures, report
from extremal.experiments.page import write_page
from extremal.experiments.plan import Panel, Work, cost, panels, sources_of
from extremal.experiments.progress import shown
from extremal.experiments.sources import Source
from extremal.experiments.spec import Figure

Shown = tuple[Figure, list[Panel]]


def run_figures(figures: Sequence[Figure], work: Work, console: Console, out: Path) -> list[Shown]:
    """Run figures one after the other; the numbers and pictures of each are written as soon as it is done."""
    sources = sources_of(figures, work)
    folder(out)
    _say_what_is_shown(sources, console)
    done = []
    for figure in figures:
        with shown(console, figure.name, cost(figure, sources)) as seen:
            found = panels(figure, work, sources, seen)
        report.write_csv(out / f"{figure.name}.csv", figure, found)
        pictures.draw(figure, found, out)
        _table(figure, found, console)
        done.append((figure, found))
    return done


def write(title: str, done: Sequence[Shown], out: Path, console: Console, quick: bool = False, **more: Any) -> dict[str, Any]:
    """The page and its data."""
    said = report.report(title, done, quick, **more)
    write_page(out / "index.html", said)
    report.write_json(out / "settings.json", {name: said[name] for name in ("generated", "settings", "versions", "machine")})
    console.print(f"\nThe page: {out / 'index.html'}; beside it the numbers (CSV) and pictures (PNG, PDF).", soft_wrap=True)
    return said


def folder(out: Path) -> Path:
    """Make the folder of the results, or say why it cannot be made."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{out}: the results cannot be written there ({error.strerror})") from None
    return out


def check_extras() -> None:
    """Say what to install before the runs, not after them."""
    for module, extra in (("matplotlib", "matplotlib"), ("plotly", "plotly"), ("pooch", "pooch"), ("sklearn", "scikit-learn")):
        try:
            __import__(module)
        except ImportError:
            raise InputError(f"the figures need {extra}: pip install 'extremal[figures]'") from None


def _say_what_is_shown(sources: dict[str, Source], console: Console) -> None:
    for source in sources.values():
        console.print(f"{source.data}: {source.text} ({source.n} x {source.d})", soft_wrap=True, highlight=False)


def _table(figure: Figure, found: Sequence[Panel], console: Console) -> None:
    """Where each method ended: f - f_min, median over the seeds, own steps and tuned."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), title=figure.title, title_justify="left")
    table.add_column("f - f_min at the end", no_wrap=True)
    for panel in found:
        table.add_column(
            Path(panel.source.data).name + (" (stand-in)" if panel.source.origin == "stand-in" else ""), justify="right"
        )
    for method in dict.fromkeys(curve.method for curve in found[0].curves):
        table.add_row(report.label(method), *(_cell(panel, method) for panel in found))
    table.add_row("f_min", *(f"{panel.minimum:.6g}" for panel in found))
    table.add_row("its certified gap" if all(p.convex for p in found) else "its gap", *(f"{panel.gap:.0e}" for panel in found))
    Console(file=console.file, width=max(console.width, 200), force_terminal=console.is_terminal).print(table)


def _cell(panel: Panel, method: str) -> str:
    """Own steps, then tuned ones."""
    return " / ".join(f"{panel.excess(curve):.1e}" for curve in panel.curves if curve.method == method)
