"""Lists of what there is."""

from __future__ import annotations

from typing import Annotated

import typer

from extremal import checks
from extremal.cli.common import AsJson, listing, one_line
from extremal.files.outputs import terminal, to_json
from extremal.losses.named import LOSS_FORMS
from extremal.methods.names import METHODS
from extremal.sets.words.names import MORE, SETS, named


@one_line()
def methods(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Print the card of this method.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the methods: the paper's Table 1, or the card of one."""
    from extremal.cli import table

    if as_json:
        rows = [table.row(known) for known in METHODS] if name is None else table.row(name)
        typer.echo(to_json(rows))
    elif name is None:
        table.show_table(terminal())
    else:
        table.show_card(terminal(), checks.one_of("method", name, METHODS))


def sets(as_json: AsJson = False) -> None:
    """List the sets and how they are written."""
    rows = [(name, form, _first_line(named(name))) for name, (_, form, _) in SETS.items()]
    rows += [(name, *said) for name, said in MORE.items()]
    listing(("name", "written", "summary"), rows, as_json)


def losses(as_json: AsJson = False) -> None:
    """List the losses and the targets they take."""
    listing(
        ("name", "written", "summary"), [(name, form, _first_line(kind)) for name, (form, _, kind) in LOSS_FORMS.items()], as_json
    )


def _first_line(documented: type) -> str:
    return (documented.__doc__ or "").partition("\n")[0]
