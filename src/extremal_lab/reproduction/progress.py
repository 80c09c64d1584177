"""The progress of a comparison and the time left: a bar on a terminal, elsewhere an occasional line on stderr."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from extremal.files import printable, terminal

LINE_EVERY = 10.0  # seconds


class Pace:
    """The time left, from the cost of newly finished tasks and the time that they took.

    Examples
    --------
    >>> now = [0.0]
    >>> pace = Pace(10.0, clock=lambda: now[0])
    >>> now[0] = 6.0
    >>> pace.done(2.0, fresh=False), pace.done(3.0, fresh=True), pace.left     # 5 of 10 are left, at 2 seconds each
    (None, None, 10.0)
    """

    def __init__(self, total: float, clock: Any = time.monotonic):
        self.total, self.clock, self.began = total, clock, clock()
        self.finished = self.fresh = 0.0  # cost of all finished tasks, and of those that were not in the store
        self.tasks = 0

    def done(self, cost: float, fresh: bool) -> None:
        """Note a finished task."""
        self.tasks += 1
        self.finished += cost
        self.fresh += cost if fresh else 0.0

    @property
    def left(self) -> float | None:
        """Seconds left, or None before the first new task is done."""
        if not self.fresh:
            return None
        return max(self.total - self.finished, 0.0) * (self.clock() - self.began) / self.fresh

    @property
    def text(self) -> str:
        """The time left in words."""
        left = self.left
        return "" if left is None else f", about {_clock(left)} left"


def _clock(seconds: float) -> str:
    return f"{int(seconds // 60)}:{int(seconds % 60):02d}"


@contextmanager
def shown(console: Console, what: str, total: float) -> Iterator[Any]:
    """A callable (task, fresh) that shows the progress on ``console``."""
    pace = Pace(total)
    if not console.is_terminal:
        yield _Lines(what, pace)
        return
    name = printable(what).replace("{", "{{").replace("}", "}}")  # descriptions are formats
    said, left = (TextColumn(text, markup=False) for text in (name, "{task.description}"))
    with Progress(said, BarColumn(), left, TimeElapsedColumn(), console=console, transient=True) as bar:
        row = bar.add_task("", total=total)

        def seen(task: Any, fresh: bool) -> None:
            pace.done(task.cost, fresh)
            bar.update(row, completed=pace.finished, description=f"{pace.tasks} runs{pace.text}")

        yield seen


class _Lines:
    """Lines on stderr, for logs of long runs: the output on stdout does not depend on the duration."""

    def __init__(self, what: str, pace: Pace):
        self.console, self.what, self.pace, self.due = terminal(stderr=True), what, pace, time.monotonic() + LINE_EVERY

    def __call__(self, task: Any, fresh: bool) -> None:
        self.pace.done(task.cost, fresh)
        if time.monotonic() >= self.due:
            self.due = time.monotonic() + LINE_EVERY
            share = min(100.0, 100 * self.pace.finished / self.pace.total)
            self.console.print(f"{self.what}: {self.pace.tasks} runs, {share:.0f} %{self.pace.text}", soft_wrap=True)
