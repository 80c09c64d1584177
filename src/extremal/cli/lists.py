"""Lists of methods, sets and losses. Methods are a table and cards, from the facts in `Card`: the paper's Table 1, corrected."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Annotated, Any

import typer

from extremal import checks
from extremal.cli.common import AsJson, lines, listing, one_line
from extremal.files.outputs import to_json
from extremal.losses.named import LOSS_FORMS
from extremal.methods.card import Card
from extremal.methods.cards import METHODS
from extremal.sets.words.names import MORE, SETS, named
from extremal.support.display import terminal

TABLE_COLUMNS = (
    "method", "convex SFO", "convex LMO", "non-convex SFO", "non-convex LMO", "full gradients", "big batches", "needs",
    "memory", "source",
)  # fmt: skip
WRITTEN = ("name", "written", "summary")


@one_line()
def methods(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Print the card of this method.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the methods: the paper's Table 1, or the card of one method."""
    if as_json:
        typer.echo(to_json([_row(known) for known in METHODS] if name is None else _row(name)))
    elif name is None:
        _show_table()
    else:
        _show_card(name)


def sets(as_json: AsJson = False) -> None:
    """List the sets, and how to write them."""
    rows = [(name, form, _first_line(named(name))) for name, (_, form, _) in SETS.items()]
    listing(WRITTEN, rows + [(name, *said) for name, said in MORE.items()], as_json)


def losses(as_json: AsJson = False) -> None:
    """List the losses, and the targets that they accept."""
    listing(WRITTEN, [(name, form, _first_line(kind)) for name, (form, _, kind) in LOSS_FORMS.items()], as_json)


def _first_line(documented: type) -> str:
    return (documented.__doc__ or "").partition("\n")[0]


def _row(name: str) -> dict[str, Any]:
    """The facts about a method, under the names of the table's columns, for machines."""
    make = METHODS[checks.one_of("method", name, METHODS)]
    return _of_card(make.card) | {"class": make.__name__}


def _of_card(card: Card) -> dict[str, Any]:
    convex, other = card.convex or (None, None), card.nonconvex or (("no rate",) * 2 if card.no_rate else (None, None))
    known = (card.name, *convex, *other, card.full_gradients, card.big_batches, list(card.needs), card.memory, card.source)
    more = {"summary": card.summary, "note": card.note, "correction": card.correction}
    smallest = {} if card.smallest is None else {"b = 1": _of_card(card.smallest)}
    return dict(zip(TABLE_COLUMNS, known, strict=True)) | more | smallest


def _show_table() -> None:
    """Print Table 1 at its full width on any terminal; a star marks our corrections and remarks, with the reason below."""
    from rich.table import Table

    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in TABLE_COLUMNS:
        shown.add_column(column, no_wrap=True)
    rows = [line for known in map(_row, METHODS) for line in (known, known.get("b = 1")) if line is not None]
    for known in rows:
        star = " *" if known["correction"] else ""
        shown.add_row(*(_cell(known[column]) + (star if column == "method" else "") for column in TABLE_COLUMNS))
    console = terminal()
    wide = terminal(file=console.file, width=max(console.width, 200), force_terminal=console.is_terminal)
    head = "O(...) to accuracy eps. SFO: component gradients, LMO: linear minimisations, ~: up to logarithms, -: no guarantee."
    wide.print(head, "", shown, "", "Our corrections of the paper's table, and remarks:", sep="\n")
    for known in rows:
        if known["correction"]:
            wide.print(f"* {known['method']}: {known['correction']}")


def _show_card(name: str) -> None:
    """Print all facts about one method: its docstring, its row of the table, its parameters."""
    known, make, console = _row(name), METHODS[name], terminal()
    text = inspect.cleandoc(make.__doc__ or "").split("\nExamples\n")[0].rstrip()
    console.print(f"{name}: {make.__name__}", style="bold", soft_wrap=True)
    console.print(text, soft_wrap=True)
    console.print()
    defaults = ", ".join(_written(field) for field in dataclasses.fields(make))
    cells = [(column, _cell(known[column])) for column in TABLE_COLUMNS[1:] if known[column] != []]
    lines([*cells, ("call", f"ex.{make.__name__}({defaults})")])


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(value) or "-"
    return "-" if value is None else str(value)


def _written(field: dataclasses.Field[Any]) -> str:
    """A parameter with its default, in Python syntax."""
    made = field.default_factory
    return f"{field.name}={(field.default if made is dataclasses.MISSING else made())!r}"
