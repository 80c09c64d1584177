"""``extremal bench``: the cost of the methods on this machine, as ratios."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from extremal.checks import InputError
from extremal.cli.common import lines, one_line
from extremal.files import check_out, terminal
from extremal_lab.bench.worker import LONG, NETWORK, PARTS, USUAL, summary

if TYPE_CHECKING:
    from rich.console import Console

    from extremal_lab.bench.suite import Item

LEGEND = (
    "Every number is a median over repeats, with the least and the most of them, in the unit that the title of its table names.\n"
    "CPU time is that of one thread. A bar is a limit that a median should not exceed."
)


@one_line()
def bench(
    parts: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PART]...", help=f"Default: {', '.join(USUAL)}; by name also {', '.join((*LONG, *NETWORK))}."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="About a minute; not for the history.")] = False,
    full: Annotated[bool, typer.Option("--full", help="More repeats, and ten million rows if they fit.")] = False,
    peers: Annotated[bool, typer.Option("--peers", help="Also other packages, installed from PyPI into the cache.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with code 3 if a bar is missed.")] = False,
    listed: Annotated[bool, typer.Option("--list", help="Describe each part, and exit.")] = False,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of JSON, table and picture.")] = Path("extremal-bench"),
) -> None:
    """Measure the cost of the methods, as ratios of CPU time on one thread: to scipy's gradient, to a dense pass, to bars.

    A run of all usual parts is kept in the folder under its date and commit, and the picture shows how the ratios changed over
    the kept runs. Quick runs and runs of some parts are written beside them, under a name of their own.

    Exit codes: 0 measured; 1 a part failed; 2 a mistake in the input; 3 a bar is missed, with --strict; 130 Ctrl-C.
    """
    from extremal_lab.bench import suite

    if listed:
        lines([(part, summary(part)) for part in PARTS])
        return
    if quick and full:
        raise InputError("--quick and --full exclude each other: choose one")
    level = "quick" if quick else "full" if full else "default"
    chosen, console = suite.chosen(parts or [], peers), terminal()
    _folder(out)
    console.print(LEGEND, soft_wrap=True, highlight=False)
    items = _measured(chosen, level, console)
    _bars(items, console)
    said = _write(items, level, suite.complete(chosen) and not quick and not suite.failed(items), out, console)
    if suite.failed(items):
        raise typer.Exit(1)
    if strict and any(_missed(found) for found in said["measurements"]):
        raise typer.Exit(3)


def _folder(out: Path) -> None:
    """Make the folder, or raise an error if it cannot be written: before the measurements, not after them."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{out}: the results cannot be written there ({error.strerror})") from None
    check_out(out / "latest.png")


def _measured(chosen: list[str], level: str, console: Console) -> list[Item]:
    """Measure the parts; a terminal shows each result as it comes, and each part ends with a table."""
    from extremal_lab.bench import peers, suite

    items: list[Item] = []
    try:
        for part in chosen:
            with console.status(f"{part} ...") as status:
                found = suite.run([part], level, lambda item, part=part: status.update(f"{part}: {item.name} ..."))
            found = peers.worst_first(found) if part == peers.PART else found
            _show(part, found, console)
            items += found
    except KeyboardInterrupt:
        typer.echo("interrupted; nothing is written", err=True)
        raise typer.Exit(130) from None
    return items


def _show(part: str, items: list[Item], console: Console) -> None:
    from extremal_lab.bench.timing import Measurement
    from extremal_lab.reproduction.report import print_table

    found = [item for item in items if isinstance(item, Measurement)]
    for unit in dict.fromkeys(item.unit for item in found):
        rows = [_cells(item) for item in found if item.unit == unit]
        console.print()
        print_table(console, f"{part}: {unit}", ("", "median", "least", "most", "bar", ""), rows)
    for item in items:
        if not isinstance(item, Measurement):
            console.print(f"{part}: {item.name}: not measured: {item.reason}", soft_wrap=True, highlight=False, markup=False)


def _cells(item: Any) -> list[str]:
    bar = "" if item.bar is None else f"{item.bar:g}"
    return [item.name, *(f"{value:.3g}" for value in (item.ratio, item.low, item.high)), bar, item.verdict]


def _bars(items: list[Item], console: Console) -> None:
    """Print the number of bars that are met, and the names of those that are missed."""
    from extremal_lab.bench.timing import Measurement

    held = [item for item in items if isinstance(item, Measurement) and item.bar is not None]
    missed = [item for item in held if item.verdict == "missed"]
    console.print(f"\nBars met: {len(held) - len(missed)} of {len(held)}", soft_wrap=True, highlight=False)
    for item in missed:
        said = f"missed: {item.part}, {item.name}: {item.ratio:.3g}, bar {item.bar:g}"
        console.print(said, soft_wrap=True, highlight=False, markup=False)


def _write(items: list[Item], level: str, keep: bool, out: Path, console: Console) -> dict[str, Any]:
    """Write the JSON always, a table in Markdown beside the history, and the picture if matplotlib is installed."""
    from extremal_lab.bench import picture, report

    said = report.document(items, level)
    name = report.stem(said) if keep else "quick" if level == "quick" else "parts"
    report.write(out / f"{name}.json", said)
    console.print(f"The numbers: {out / name}.json", soft_wrap=True, highlight=False)
    if not keep:
        (out / f"{name}.md").write_text(report.markdown(said), encoding="utf-8")
        console.print(f"The table in Markdown: {out / name}.md", soft_wrap=True, highlight=False)
    try:
        drawn = picture.draw(out / ("latest.png" if keep else f"{name}.png"), said, report.history(out) if keep else ())
    except InputError as error:
        console.print(f"no picture: {error}", soft_wrap=True, highlight=False, markup=False)
    else:
        console.print(f"The picture: {drawn}", soft_wrap=True, highlight=False)
    return said


def _missed(found: dict[str, Any]) -> bool:
    return found["bar"] is not None and found["ratio"] > found["bar"]
