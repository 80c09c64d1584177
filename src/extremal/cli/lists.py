"""Lists of what there is, and the demonstration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from extremal import checks
from extremal.cli.common import AsJson, listing, one_line
from extremal.losses import LOSSES
from extremal.methods import METHODS
from extremal.outputs import check_out
from extremal.sets import SETS, named


@one_line()
def methods(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Print the card of this method.")] = None,
    as_json: AsJson = False,
) -> None:
    """List the methods: the paper's Table 1, or the card of one."""
    from rich.console import Console

    from extremal import catalogue

    if as_json:
        rows = [catalogue.row(known) for known in METHODS] if name is None else catalogue.row(name)
        typer.echo(json.dumps(rows))
    elif name is None:
        catalogue.show_table(Console())
    else:
        catalogue.show_card(Console(), checks.one_of("method", name, METHODS))


def sets(as_json: AsJson = False) -> None:
    """List the sets and how they are written."""
    rows = [(name, form, _first_line(named(name))) for name, (_, form, _) in SETS.items()]
    listing(("name", "written", "summary"), rows, as_json)


def losses(as_json: AsJson = False) -> None:
    """List the losses and the targets they take."""
    kinds = {name: type(make()) for name, make in LOSSES.items()}
    listing(("name", "class", "summary"), [(name, kind.__name__, _first_line(kind)) for name, kind in kinds.items()], as_json)


@one_line()
def demo(
    out: Annotated[Path, typer.Option(metavar="PICTURE.png", help="Where the picture goes.")] = Path("extremal-demo.png"),
) -> None:
    """Fit a model under a constraint with its certificate, run methods side by side, save a picture."""
    from rich.console import Console

    from extremal.experiments.demo import run

    run(check_out(out), Console())


def _first_line(documented: type) -> str:
    return (documented.__doc__ or "").partition("\n")[0]
