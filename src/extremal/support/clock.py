"""A clock that can be paused, and the time by which a run has to end."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class Clock:
    """Seconds since the start, and seconds of the processors, without what was spent paused."""

    def __init__(self):
        self._start = self._now()
        self._paused_at: tuple[float, float] | None = None

    @staticmethod
    def _now() -> tuple[float, float]:
        return time.perf_counter(), time.process_time()

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return (time.perf_counter() if self._paused_at is None else self._paused_at[0]) - self._start[0]

    @property
    def cpu(self) -> float:
        """Seconds of all processors."""
        return (time.process_time() if self._paused_at is None else self._paused_at[1]) - self._start[1]

    @contextmanager
    def paused(self):
        """What is done inside does not count."""
        self._paused_at = self._now()
        try:
            yield
        finally:
            spent = (now - then for now, then in zip(self._now(), self._paused_at, strict=True))
            self._start = tuple(start + more for start, more in zip(self._start, spent, strict=True))
            self._paused_at = None


class TimeUp(Exception):
    """The time of a run is over in the middle of a step; the driver ends the run at the last state."""


_LATE: ContextVar[Callable[[], bool] | None] = ContextVar("extremal_late", default=None)


@contextmanager
def deadline(over: Callable[[], bool] | None) -> Iterator[None]:
    """Inside, `late` and `check` tell whether time is up by asking ``over``; nothing is ever late with None."""
    token = _LATE.set(over)
    try:
        yield
    finally:
        _LATE.reset(token)


def late() -> bool:
    """Whether the time of the run is over: a step that takes long should end with what it has.

    Examples
    --------
    >>> with deadline(lambda: True):
    ...     late()
    True
    >>> late()
    False
    """
    over = _LATE.get()
    return over is not None and over()


def check() -> None:
    """Leave a step that has nothing to show yet, if the time of the run is over."""
    if late():
        raise TimeUp
