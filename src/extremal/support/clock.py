"""The clock of a run, its deadline, and the count of oracle calls made by sets."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar


class Clock:
    """Wall-clock and processor seconds since the start, without the time spent paused."""

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
        """Seconds of processor time, over all processors."""
        return (time.process_time() if self._paused_at is None else self._paused_at[1]) - self._start[1]

    @property
    def stopped(self) -> bool:
        """Whether the clock is paused."""
        return self._paused_at is not None

    def move_to(self, seconds: float, cpu: float) -> None:
        """Go on from these seconds, as a run does from a checkpoint."""
        now = self._now()
        self._start = now[0] - seconds, now[1] - cpu

    def paused(self) -> Clock:
        """Work inside this context does not count."""
        return self

    def __enter__(self) -> None:
        self._paused_at = self._now()

    def __exit__(self, *error: object) -> None:
        assert self._paused_at is not None
        (seconds, cpu), (then, before), (start, started) = self._now(), self._paused_at, self._start
        self._start, self._paused_at = (start + seconds - then, started + cpu - before), None


class TimeUp(Exception):
    """The time of a run ended in the middle of a step; the driver ends the run at the last state."""


_LATE: ContextVar[Callable[[], bool] | None] = ContextVar("extremal_late", default=None)
_RUNNING: ContextVar[Clock | None] = ContextVar("extremal_clock", default=None)


@contextmanager
def deadline(over: Callable[[], bool] | None, clock: Clock | None = None) -> Iterator[None]:
    """In this context, `late` and `check` call ``over`` to learn whether time is up; with None nothing is ever late.

    ``clock`` is the clock of the run, which `untimed` stops.
    """
    token, running = _LATE.set(over), _RUNNING.set(clock)
    try:
        yield
    finally:
        _LATE.reset(token)
        _RUNNING.reset(running)


def untimed(work: Callable[[], object]) -> None:
    """Do some work that the clock of the run does not count, such as compiling a kernel that few runs need.

    Examples
    --------
    >>> clock = Clock()
    >>> with deadline(None, clock):
    ...     untimed(lambda: print(clock.stopped))
    True
    """
    clock = _RUNNING.get()
    if clock is None or clock.stopped:
        work()
        return
    with clock.paused():
        work()


def late() -> bool:
    """Whether the time of the run is over; a long step should then end with its current result.

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
    """Leave a step that has no result yet, if the time of the run is over."""
    over = _LATE.get()
    if over is not None and over():
        raise TimeUp


T = TypeVar("T")


class Unsure(Exception):
    """A question about a set reached its limit of oracle calls."""


class Asked:
    """The number of oracle calls so far, and its limit."""

    def __init__(self, limit: float):
        self.calls, self.limit = 0, limit

    def count(self, call: Callable[[], T]) -> T:
        """Make a call that counts as one; the oracle calls of parts that it makes do not count again."""
        if self.calls >= self.limit:
            raise Unsure
        self.calls += 1
        token = ASKED.set(None)
        try:
            return call()
        finally:
            ASKED.reset(token)


ASKED: ContextVar[Asked | None] = ContextVar("extremal_asked", default=None)


class counted:
    """Count the oracle calls in this context: a set may call its own oracle for ``start``, ``diameter`` and ``contains``.

    The call that would exceed the limit raises `Unsure`.
    """

    def __init__(self, limit: float = math.inf):
        self._asked = Asked(limit)

    def __enter__(self) -> Asked:
        self._token = ASKED.set(self._asked)
        return self._asked

    def __exit__(self, *error: object) -> None:
        ASKED.reset(self._token)
