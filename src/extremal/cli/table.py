"""The methods as a table and as cards, from the metadata that each carries: the paper's Table 1, with what we correct in it."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

from rich.console import Console, Group
from rich.table import Table
from rich.text import Text

from extremal import checks
from extremal.files.outputs import terminal
from extremal.methods.base import Card
from extremal.methods.names import METHODS

TABLE_COLUMNS = (
    "method", "convex SFO", "convex LMO", "non-convex SFO", "non-convex LMO", "full gradients", "big batches", "needs",
    "memory", "source",
)  # fmt: skip


def row(name: str) -> dict[str, Any]:
    """What is known of a method, under the names of the table's columns, for machines.

    Examples
    --------
    >>> row("frank-wolfe")["convex SFO"]
    'n/eps'
    """
    make = METHODS[checks.one_of("method", name, METHODS)]
    return _row(make.card) | {"class": make.__name__}


def _row(card: Card) -> dict[str, Any]:
    convex, other = card.convex or (None, None), card.nonconvex or (("no rate",) * 2 if card.no_rate else (None, None))
    known = (card.name, *convex, *other, card.full_gradients, card.big_batches, list(card.needs), card.memory, card.source)
    more = {"summary": card.summary, "note": card.note, "correction": card.correction}
    smallest = {} if card.smallest is None else {"b = 1": _row(card.smallest)}
    return dict(zip(TABLE_COLUMNS, known, strict=True)) | more | smallest


def table() -> Group:
    """Table 1 of the paper from the code's own metadata; a star marks what we correct or remark, with the reason below."""
    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in TABLE_COLUMNS:
        shown.add_column(column, no_wrap=True)
    rows = [line for known in map(row, METHODS) for line in (known, known.get("b = 1")) if line is not None]
    for known in rows:
        star = " *" if known["correction"] else ""
        shown.add_row(*(_cell(known[column]) + (star if column == "method" else "") for column in TABLE_COLUMNS))
    head = Text(
        "O(...) to accuracy eps. SFO: component gradients, LMO: linear minimisations, ~: up to logarithms, -: no guarantee."
    )
    notes = [Text(f"* {known['method']}: {known['correction']}") for known in rows if known["correction"]]
    return Group(head, Text(), shown, Text(), Text("Our corrections of the paper's table, and remarks:"), *notes)


def show_table(console: Console) -> None:
    """Print the table at its full width, whatever the terminal's."""
    wide = terminal(file=console.file, width=max(console.width, 200), force_terminal=console.is_terminal)
    wide.print(table(), soft_wrap=False)


def show_card(console: Console, name: str) -> None:
    """Print all that is known of one method: its docstring, its row of the table, its parameters."""
    known = row(name)
    make = METHODS[name]
    console.print(Text(f"{name}: {make.__name__}", style="bold"), soft_wrap=True)
    console.print(Text(inspect.cleandoc(make.__doc__ or "").split("\nExamples\n")[0].rstrip()), soft_wrap=True)
    console.print()
    for column in TABLE_COLUMNS[1:]:
        if known[column] != []:
            console.print(Text.assemble((f"{column:<16}", "bold"), _cell(known[column])), soft_wrap=True)
    defaults = ", ".join(f"{field.name}={field.default!r}" for field in dataclasses.fields(make))
    console.print(Text.assemble((f"{'call':<16}", "bold"), f"ex.{make.__name__}({defaults})"), soft_wrap=True)


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(value) or "-"
    return "-" if value is None else str(value)
