"""The command line: ``extremal solve FILE --set l1:20``, the paper's experiments, and lists of what there is."""

from __future__ import annotations

import io
import sys
from importlib.metadata import entry_points
from typing import Annotated

import typer

from extremal import __version__
from extremal.cli import data, lists
from extremal.cli.predicting import predict
from extremal.cli.solving import solve

EXIT_CODES = (
    "Exit codes: 0 the certified gap meets the tolerance; 2 a mistake in the input, or a file that cannot be read or written; "
    "3 the run ended before the tolerance was met, or there is no minimum (its result is printed and saved all the same); "
    "130 Ctrl-C (the best certified point so far is, too)."
)

app = typer.Typer(
    help="Projection-free learning: minimise finite sums over convex sets, with certified answers.",
    epilog=EXIT_CODES, add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False,
)  # fmt: skip


def main() -> None:
    """The entry point of the ``extremal`` command."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a name that the terminal cannot show ends no command
    app()


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"extremal {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None: ...


app.command(epilog=EXIT_CODES)(solve)
app.command(epilog="Exit codes: 0 done; 2 a mistake in the input, or a file that cannot be read or written.")(predict)
for command in (lists.methods, lists.sets, lists.losses):
    app.command()(command)
app.add_typer(data.data_app, name="data")
for found in sorted(entry_points(group="extremal.commands"), key=lambda point: point.name):  # of other packages
    app.command(found.name)(found.load())
