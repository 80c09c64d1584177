"""Other programs and processes: their output, and the reason for a failure in one line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from extremal_lab.threads import alone


class ChildError(RuntimeError):
    """A program that failed, with the last line that it wrote."""


def output(command: Sequence[str], environment: Mapping[str, str] | None = None, minutes: float = 15) -> str:
    """The standard output of a program; a `ChildError` if it fails or takes too long.

    Examples
    --------
    >>> import sys
    >>> output([sys.executable, "-c", "print(6 * 7)"]).strip()
    '42'
    >>> output([sys.executable, "-c", "import sys; sys.exit('no such thing')"])
    Traceback (most recent call last):
        ...
    extremal_lab.bench.children.ChildError: no such thing
    """
    chosen = os.environ if environment is None else environment
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60 * minutes, env=chosen, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ChildError(f"{type(error).__name__}: it does not start, or does not end") from None
    if done.returncode:
        raise ChildError(last_line(done.stderr or done.stdout or _ended(done.returncode)))
    return done.stdout


def asked(module: str, *words: object, minutes: float = 15) -> dict[str, Any]:
    """Run a module in a process of its own, on one thread, and return its last line of output, as JSON."""
    command = [sys.executable, "-m", module, *map(str, words)]
    return json.loads(output(command, alone(), minutes).splitlines()[-1])


def answer(said: Mapping[str, Any]) -> None:
    """Write a line for `asked`."""
    sys.stdout.write(json.dumps(said) + "\n")


def installed(package: str) -> bool:
    """Whether a package is installed.

    Examples
    --------
    >>> installed("numpy"), installed("no_such_package")
    (True, False)
    """
    return find_spec(package) is not None


def _ended(code: int) -> str:
    """The reason for the end of a program without output.

    Examples
    --------
    >>> _ended(-signal.SIGTERM), _ended(3)
    ('it was ended by SIGTERM', 'it ended with 3')
    """
    return f"it was ended by {signal.Signals(-code).name}" if code < 0 else f"it ended with {code}"


def last_line(text: str) -> str:
    r"""The last line, in which most programs give their reason; at most 200 characters.

    Examples
    --------
    >>> last_line("Traceback\n  ...\nValueError: no\n"), last_line("")
    ('ValueError: no', 'no reason given')
    """
    lines = text.strip().splitlines()
    return lines[-1][:200] if lines else "no reason given"
