"""A clock that can be paused."""

from __future__ import annotations

import time
from contextlib import contextmanager


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
