"""Progress of runs for `verbose=1`: an observer of their records that evaluates neither the objective nor the set."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from extremal import checks
from extremal.run.result import Result, Row
from extremal.support.display import Screen, screen

QUIET = 1.0  # seconds before the first line: a shorter call writes only its last line


class RunProgress:
    """The progress of one call, which may make several runs: passes and seconds are totals over the runs.

    Examples
    --------
    >>> progress = RunProgress("minimize", now=lambda: 0.0)
    >>> progress.begin(tol=1e-3, atol=0.0)
    >>> progress.see({"passes": 3.0, "seconds": 2.5, "value": 0.5, "gap": 0.002})
    >>> progress.text()
    'minimize: 3.0 passes, f 0.5, gap 2.00e-03 = 4 x tolerance, 2.5 s'
    """

    def __init__(self, name: str, place: Screen | None = None, now: Callable[[], float] | None = None):
        self.name, self.place, self.now = name, place or screen(), now or time.monotonic
        self.started = self.now()
        self.next = self.started + QUIET  # time at which to show the line
        self.part, self.last = "", ""  # the name of the current run among several; the line that stays
        self.before, self.latest = (0.0, 0.0), (0.0, 0.0)  # passes and seconds of earlier runs, and of the current run
        self.value, self.gap, self.tol, self.atol = math.nan, math.nan, 0.0, 0.0

    def begin(self, tol: float, atol: float) -> None:
        """Begin another run."""
        self.before, self.latest = self.totals(), (0.0, 0.0)
        self.tol, self.atol, self.value, self.gap = tol, atol, math.nan, math.nan

    def totals(self) -> tuple[float, float]:
        """Passes and seconds of all runs."""
        return self.before[0] + self.latest[0], self.before[1] + self.latest[1]

    def due(self) -> bool:
        """Whether it is time to show a line."""
        return self.now() >= self.next

    def see(self, row: Row) -> None:
        """Take a record of the run, with or without a value and a gap, and show it if it is time."""
        self.latest = float(row["passes"]), float(row["seconds"])
        value, gap = float(row.get("value", math.nan)), float(row.get("gap", math.nan))
        self.value, self.gap = self.value if math.isnan(value) else value, self.gap if math.isnan(gap) else gap
        if self.due():
            self.place.show(self.text())
            now = self.now()
            self.next = now + self.place.pause(now - self.started)

    def finish(self, result: Result) -> None:
        """End a run: its own words are the last line, unless the call has others."""
        self.latest = self.latest[0], result.seconds
        self.value, self.gap = float(result.value), float(result.gap)
        self.last = f"{self.text()}: {result.status.sentence}"

    def text(self) -> str:
        """The line to show."""
        passes, seconds = self.totals()
        known = [] if math.isnan(self.value) else [f"f {self.value:.8g}"]
        known += [] if math.isnan(self.gap) else [f"gap {self.gap:.2e}{self._relative()}"]
        return f"{self.name}: " + ", ".join([*filter(None, [self.part]), f"{passes:.1f} passes", *known, f"{seconds:.1f} s"])

    def _relative(self) -> str:
        wanted = self.tol * abs(self.value) + self.atol
        return f" = {self.gap / wanted:.3g} x tolerance" if wanted > 0 else ""


def check_verbose(call: str, verbose: object) -> int:
    """``verbose`` as a whole number of at least 0; True and False are 1 and 0.

    Examples
    --------
    >>> check_verbose("minimize", True)
    1
    """
    return int(verbose) if isinstance(verbose, bool) else checks.whole(call, "verbose", verbose, 0)


_PROGRESS: ContextVar[RunProgress | None] = ContextVar("extremal_progress", default=None)


@contextmanager
def shown(name: str, verbose: int) -> Iterator[None]:
    """Show the progress of all runs inside if ``verbose`` asks for it; nested calls become part of the outer one."""
    if not verbose or _PROGRESS.get() is not None:
        yield
        return
    progress = RunProgress(name)
    token = _PROGRESS.set(progress)
    try:
        yield
    except BaseException:
        progress.last = ""
        raise
    finally:
        _PROGRESS.reset(token)
        progress.place.end(progress.last)


@contextmanager
def observed(tol: float, atol: float) -> Iterator[RunProgress | None]:
    """The observer of a run that begins here, if there is one; runs inside its objective are not shown."""
    progress = _PROGRESS.get()
    if progress is not None:
        progress.begin(tol, atol)
    token = _PROGRESS.set(None)
    try:
        yield progress
    finally:
        _PROGRESS.reset(token)


def next_part(part: str) -> None:
    """Name the next part of a call; this does nothing if no progress is shown.

    Examples
    --------
    >>> next_part("set 1 of 3")
    """
    progress = _PROGRESS.get()
    if progress is not None:
        progress.part = part


def last_line(words: str, costs: bool = False) -> None:
    """Set the last line of a call, with the passes and seconds of all its runs if ``costs``; "" means no line.

    Examples
    --------
    >>> last_line("3 of 3 sets are within the tolerance", costs=True)
    """
    progress = _PROGRESS.get()
    if progress is not None:
        passes, seconds = progress.totals()
        cost = f"{passes:.1f} passes, {seconds:.1f} s: " if costs else ""
        progress.part, progress.last = "", words and f"{progress.name}: {cost}{words}"
