"""Other programs: what they write, and in one line why they failed."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence


class ChildError(RuntimeError):
    """A program that failed, with the last line that it wrote."""


def output(command: Sequence[str], environment: Mapping[str, str] | None = None, minutes: float = 15) -> str:
    """What a program writes to standard output; a `ChildError` if it fails or takes too long.

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
        raise ChildError(last_line(done.stderr or done.stdout))
    return done.stdout


def last_line(text: str) -> str:
    r"""The last line, which is the reason that most programs give; at most 200 characters of it.

    Examples
    --------
    >>> last_line("Traceback\n  ...\nValueError: no\n"), last_line("")
    ('ValueError: no', 'no reason given')
    """
    lines = text.strip().splitlines()
    return lines[-1][:200] if lines else "no reason given"
