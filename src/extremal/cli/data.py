"""``extremal data``: list the data sets, fetch them, and print the paper's Table 2 from them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from extremal import checks
from extremal.cli.common import AsJson, one_line
from extremal.cli.progress import bar
from extremal.files import datasets
from extremal.files.outputs import to_json
from extremal.support.display import printable, terminal

data_app = typer.Typer(help="Data sets by name: list them, fetch them, print the paper's Table 2.", no_args_is_help=True)
TABLE2 = ("data set", "paper's d", "paper's n", "file", "d", "n", "non-zero", "positive", "remark")
TEXTS = ("name", "found", "note", "data set", "file", "remark")  # the columns of text


@data_app.command(name="list")
@one_line()
def list_(as_json: AsJson = False) -> None:
    """List the data sets, and where each was found."""
    rows = []
    for entry in datasets.CATALOGUE.values():
        found = datasets.find(entry.name)
        place = None if found is None else str(found)
        rows.append({"name": entry.name, "rows": entry.n, "features": entry.d, "found": place, "note": entry.note})
    if as_json:
        typer.echo(to_json(rows))
        return
    _table(list(rows[0]), [[*map(str, (r["name"], r["rows"], r["features"], r["found"] or "not here", r["note"]))] for r in rows])


@data_app.command("fetch")
@one_line()
def fetch_command(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="See: extremal data list.")],
    mirror: Annotated[str, typer.Option(metavar="URL", help="A directory with the files of LIBSVM.")] = datasets.PUBLIC,
) -> None:
    """Download missing data sets, and print where each one is."""
    for name in names:
        checks.one_of("data set", name, datasets.CATALOGUE)
    for name in names:
        found = datasets.find(name)
        if found is not None:
            typer.echo(f"{name}: already here, {found}")
            continue
        typer.echo(f"{name}: downloaded to {fetch_shown(name, mirror)}")


@data_app.command("table2")
@one_line()
def table2_command(as_json: AsJson = False) -> None:
    """Print the paper's Table 2, measured on the data sets found on this machine."""
    rows = datasets.table2()
    if as_json:
        typer.echo(to_json([dataclasses.asdict(row) for row in rows]))
        return
    print_table2(rows)


def print_table2(rows: Sequence[datasets.Table2Row]) -> None:
    """Print the paper's Table 2 beside the measured values."""
    _table(TABLE2, [table2_cells(row) for row in rows])


def fetch_shown(name: str, mirror: str = datasets.PUBLIC) -> Path:
    """Download a data set, with a progress bar on a terminal."""
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TransferSpeedColumn

    columns = TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TransferSpeedColumn()
    with bar(name, None, *columns) as move:
        shown = None if move is None else lambda done, total: move(completed=done, total=total)
        return datasets.fetch(name, progress=shown, base_url=mirror)


def table2_cells(row: datasets.Table2Row) -> list[str]:
    """A row of cells, in the order of ``TABLE2``."""
    shares = ("-" if share is None else f"{100 * share:.4g} %" for share in (row.density, row.positives))
    sizes = ("-" if size is None else str(size) for size in (row.d, row.n))
    return [row.paper, str(row.paper_d), str(row.paper_n), row.name, *sizes, *shares, row.remark]


def _table(names: Sequence[str], rows: list[list[str]]) -> None:
    """Print columns as wide as their contents, numbers to the right; the last column may exceed the terminal's width."""
    from rich.text import Text

    console = terminal()
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    for i, line in enumerate([names, *rows]):
        cells = [text.ljust(w) if name in TEXTS else text.rjust(w) for name, text, w in zip(names, line, widths, strict=True)]
        console.print(Text(printable("  ".join(cells).rstrip()), style="bold" if i == 0 else ""), soft_wrap=True)
