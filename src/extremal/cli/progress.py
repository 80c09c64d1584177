"""How far a run is: a bar on stderr if that is a terminal, elsewhere nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from extremal.files.outputs import terminal
from extremal.run.loop import State


@contextmanager
def progress(passes: float, quiet: bool) -> Iterator[Callable[[State], None] | None]:
    """A callback that shows it."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = terminal(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    text = TextColumn("{task.completed:.1f} of {task.total:g} passes{task.description}", markup=False)
    with Progress(BarColumn(), text, TimeElapsedColumn(), console=console, transient=True) as bar:
        task = bar.add_task("", total=passes)
        yield _Watch(0.1, lambda k, text: bar.update(task, completed=min(k, passes), description=text))


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
