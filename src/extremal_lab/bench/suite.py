"""The suite: its parts one after the other, each in a process of its own that has one thread."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence

from extremal.checks import one_of
from extremal_lab.bench.children import last_line
from extremal_lab.bench.timing import Measurement, Skipped
from extremal_lab.bench.worker import NETWORK, PARTS, USUAL, read
from extremal_lab.threads import alone

__all__ = ["LEVELS", "PARTS", "chosen", "run"]

LEVELS = ("smoke", "quick", "default", "full")
Item = Measurement | Skipped


def chosen(named: Sequence[str], peers: bool = False) -> list[str]:
    """The parts to run, in the order of the suite: those named, or the usual ones; ``peers`` adds those that need the network.

    Examples
    --------
    >>> chosen(["memory", "methods"])
    ['methods', 'memory']
    >>> "copt" in chosen([]), "copt" in chosen([], peers=True)
    (False, True)
    """
    for name in named:
        one_of("part", name, PARTS)
    wanted = set(named or USUAL) | (set(NETWORK) if peers else set())
    return [part for part in PARTS if part in wanted]


def complete(parts: Sequence[str]) -> bool:
    """Whether all parts are there, except those that run by name only."""
    return set(parts) >= set(USUAL)


def run(parts: Sequence[str], level: str, see: Callable[[Item], object]) -> list[Item]:
    """Measure, and show each result as it comes. A failed part is reported, and the others go on."""
    one_of("level", level, LEVELS)
    items: list[Item] = []
    for part in parts:
        for item in _part(part, level):
            items.append(item)
            see(item)
    return items


def failed(items: Sequence[Item]) -> bool:
    """Whether a part did not finish."""
    return any(isinstance(item, Skipped) and item.name == FAILED for item in items)


FAILED = "failed"


def _part(part: str, level: str) -> Iterator[Item]:
    command = [sys.executable, "-m", "extremal_lab.bench.worker", part, level]
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=alone()) as process,
    ):
        try:
            assert process.stdout is not None
            yield from map(read, process.stdout)
        except BaseException:
            process.kill()
            raise
        if process.wait():
            errors.seek(0)
            yield Skipped(part, FAILED, last_line(errors.read()))
