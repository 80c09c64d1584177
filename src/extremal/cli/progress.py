"""How far a run or a download is: a bar on stderr if that is a terminal, elsewhere nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING

from extremal.files.outputs import terminal
from extremal.run.loop import State

if TYPE_CHECKING:
    from rich.progress import ProgressColumn


@contextmanager
def bar(name: str, total: float | None, *columns: ProgressColumn) -> Iterator[Callable[..., None] | None]:
    """What moves a bar of rich's columns; None if stderr is no terminal."""
    from rich.progress import Progress

    console = terminal(stderr=True)
    if not console.is_terminal:
        yield None
        return
    with Progress(*columns, console=console, transient=True) as shown:
        yield partial(shown.update, shown.add_task(name, total=total))


@contextmanager
def progress(passes: float, quiet: bool) -> Iterator[Callable[[State], None] | None]:
    """A callback that shows how far a run is."""
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn

    text = TextColumn("{task.completed:.1f} of {task.total:g} passes{task.description}", markup=False)
    with nullcontext() if quiet else bar("", passes, BarColumn(), text, TimeElapsedColumn()) as move:
        yield None if move is None else _Watch(0.1, lambda k, text: move(completed=min(k, passes), description=text))


class _Watch:
    """Shows passes, exact value and exact gap: off the count, off the clock, and for a twentieth of the time at most."""

    def __init__(self, every: float, show: Callable[[float, str], object]):
        self.every, self.show, self.text = every, show, ""
        self.due, self.measure_due = time.monotonic() + every, 0.0  # when to show and when to measure next

    def __call__(self, state: State) -> None:
        now = time.monotonic()
        if now < self.due:
            return
        if now >= self.measure_due:
            self.text = _measure(state)
            self.measure_due = now + max(0.5, 20 * (time.monotonic() - now))
        self.show(state.calls.grads / state.f.n, self.text)
        self.due = now + self.every


def _measure(state: State) -> str:
    value, gap = state.measure()
    return f", value {value:.6g}, gap {gap:.2e}"
