"""Lists of what there is."""

from __future__ import annotations

from typing import Annotated

import typer

from extremal import checks
from extremal.cli.common import AsJson, listing, one_line
from extremal.files.outputs import terminal, to_json
from extremal.losses.named import LOSS_FORMS
from extremal.methods.names import METHODS
from extremal.sets.parse import SETS, named

MORE = (  # words that are no set by themselves
    ("groups", "groups:RADIUS;0-4;5-9 or groups:RADIUS;size=5", "Sum of the l2 norms of groups of features."),
    ("nonneg", "nonneg, nonpos or free", "Signs of all coefficients."),
    ("bounds", ">=0, <= 1.5 or [0, 1]", "Bounds of all coefficients."),
    ("relations", "'age <= 2*income' or 'sum == 1'", "Linear relations between features by name, or x0, x1, ..."),
    ("&", "'l1:3 & nonneg'", "Joins several of these."),
)


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
    rows = [(name, form, _first_line(named(name))) for name, (_, form, _) in SETS.items()] + list(MORE)
    listing(("name", "written", "summary"), rows, as_json)


def losses(as_json: AsJson = False) -> None:
    """List the losses and the targets they take."""
    listing(
        ("name", "written", "summary"), [(name, form, _first_line(kind)) for name, (form, _, kind) in LOSS_FORMS.items()], as_json
    )


def _first_line(documented: type) -> str:
    return (documented.__doc__ or "").partition("\n")[0]
