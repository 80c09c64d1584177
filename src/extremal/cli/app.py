"""The entry point of the command line; it reports missing packages in one line."""

from __future__ import annotations

import io
import sys
from importlib.util import find_spec


def main() -> None:
    """The entry point of the ``extremal`` command."""
    missing = [package for package in ("typer", "rich") if find_spec(package) is None]
    if missing:
        sys.stderr.write(f"error: the command line needs {' and '.join(missing)}: pip install 'extremal[cli]'\n")
        sys.exit(2)
    try:
        from extremal.cli.commands import app
    except KeyboardInterrupt:
        sys.stderr.write("interrupted before the command began\n")
        sys.exit(130)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a name that the terminal cannot show must not end a command
    app()
