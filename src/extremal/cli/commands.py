"""The command line: ``extremal solve FILE --set l1:20``, the paper's experiments, and lists of methods, sets and losses."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated

import typer

from extremal.checks import InputError
from extremal.cli import compiling, data, lists
from extremal.cli.common import one_line
from extremal.cli.predicting import predict
from extremal.cli.shards import shards_app
from extremal.cli.solving import solve
from extremal.cli.verifying import verify_answer
from extremal.support.versions import versions

EXIT_CODES = (
    "Exit codes: 0 the certified gap meets the tolerance; 2 a mistake in the input, or a file that cannot be read or written; "
    "3 the run ended before it met the tolerance, or there is no minimum (the result is still printed and saved); "
    "130 Ctrl-C (the best certified point so far is printed and saved)."
)
VERDICTS = "Exit codes: 0 proved; 2 a mistake in the input, or a file that cannot be read; 3 not proved; 4 refuted; 130 Ctrl-C."
LABORATORY = {"bench": "figures", "compare": "figures", "demo": "demo", "reproduce": "figures"}  # commands, and their extras
LENIENT = {"ignore_unknown_options": True, "allow_extra_args": True}

app = typer.Typer(
    help="Projection-free learning: minimise finite sums over convex sets, with certified answers.",
    epilog=EXIT_CODES, no_args_is_help=True, pretty_exceptions_enable=False,
)  # fmt: skip


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo("\n".join(f"{name} {text}" for name, text in versions().items() if name != "platform"))
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the versions, one line per package.")
    ] = False,
) -> None: ...


def _add(name: str, point: EntryPoint | None) -> None:
    """Add a command of another package; if that does not load, add a command that says so for any arguments."""
    try:
        if point is None:
            raise ImportError("it is not installed")
        command = point.load()
    except (ImportError, AttributeError) as error:
        remedy = f"pip install 'extremal[{LABORATORY[name]}]'" if name in LABORATORY else "install its package again"
        said = _absent(f"`extremal {name}` cannot be run ({error}): {remedy}")
        app.command(name, help="Not installed.", add_help_option=False, context_settings=LENIENT)(said)
    else:
        app.command(name)(command)


def _absent(sentence: str) -> Callable[[], None]:
    @one_line()
    def command() -> None:
        raise InputError(sentence)

    return command


app.command(epilog=EXIT_CODES)(solve)
app.command(epilog="Exit codes: 0 done; 2 a mistake in the input, or a file that cannot be read or written.")(predict)
app.command("verify", epilog=VERDICTS)(verify_answer)
for command in (lists.methods, lists.sets, lists.losses):
    app.command()(command)
app.command("compile")(compiling.compile_kernels)
app.add_typer(data.data_app, name="data")
app.add_typer(shards_app, name="shards")
others = {point.name: point for point in entry_points(group="extremal.commands")}
for name in sorted({*others, *LABORATORY}):
    _add(name, others.get(name))
