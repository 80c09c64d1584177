"""The shared parts of the commands: one-line errors, JSON or two columns."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

from extremal.checks import InputError, NonFiniteError
from extremal.files.outputs import to_json
from extremal.support.display import printable, terminal

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on stdout, and nothing else there.")]


def completed(names: Iterable[str]) -> Callable[[str], list[str]]:
    """The completions that a shell proposes: the names with the given beginning.

    Examples
    --------
    >>> completed(["l1", "l2", "simplex"])("l")
    ['l1', 'l2']
    """
    return lambda incomplete: sorted(name for name in names if name.startswith(incomplete))


@contextmanager
def one_line(interrupted: str = "interrupted before an answer was certified and saved") -> Iterator[None]:
    """End a user's mistake with one line and exit code 2, Ctrl-C with one line and 130; a bug gives a traceback.

    The interrupted code may say more in the message of its `KeyboardInterrupt`.
    """
    try:
        yield
    except BrokenPipeError:
        raise  # the reader of stdout has gone: typer ends quietly
    except (InputError, NonFiniteError, OSError, MemoryError) as error:
        text = f"not enough memory. {error}" if isinstance(error, MemoryError) else _as_options(str(error))
        typer.echo("error: " + printable(" ".join(text.split())), err=True)
        raise typer.Exit(2) from None
    except KeyboardInterrupt as error:
        typer.echo(printable(str(error) or interrupted), err=True)
        raise typer.Exit(130) from None


def _as_options(text: str) -> str:
    """The text with arguments of the library as options of the command line."""
    text = re.sub(r"`constraint=(.*?)`(?=:| )", r"--set \1", text)
    names = "tol|atol|seed|passes|batch|max_iter|max_seconds|engine"
    return re.sub(rf"`[\w.]+\(({names})=\.\.\.\)`", lambda m: "--" + m[1].replace("_", "-"), text)


def lines(pairs: list[tuple[str, str]]) -> None:
    """Print two columns, the first one bold on a terminal."""
    from rich.text import Text

    console = terminal()
    width = max(len(label) for label, _ in pairs) + 2
    for label, text in pairs:
        console.print(Text.assemble((f"{label:<{width}}", "bold"), printable(text)), soft_wrap=True)


def listing(names: tuple[str, str, str], rows: list[tuple[str, str, str]], as_json: bool) -> None:
    """Print a list of items with a name, a form and a summary: as JSON, or in two columns."""
    if as_json:
        typer.echo(to_json([dict(zip(names, row, strict=True)) for row in rows]))
        return
    width = max(len(second) for _, second, _ in rows) + 2
    lines([(first, f"{second:<{width}}{third}") for first, second, third in rows])
