"""Counting what an oracle is asked by those who do not call it themselves."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")


class Unsure(Exception):
    """A question about a set has taken as many calls of its oracle as it may take."""


class Asked:
    """How many times oracles were asked, and may be."""

    def __init__(self, limit: float):
        self.calls, self.limit = 0, limit

    def count(self, call: Callable[[], T]) -> T:
        """Make a call that counts as one; the calls that it makes of the oracles of parts do not count again."""
        if self.calls >= self.limit:
            raise Unsure
        self.calls += 1
        token = ASKED.set(None)
        try:
            return call()
        finally:
            ASKED.reset(token)


ASKED: ContextVar[Asked | None] = ContextVar("extremal_asked", default=None)


@contextmanager
def counted(limit: float = math.inf) -> Iterator[Asked]:
    """Count the calls of oracles inside: a set may ask its own for ``start``, ``diameter`` and ``contains``.

    `Unsure` is raised by the call that would exceed the limit.
    """
    asked = Asked(limit)
    token = ASKED.set(asked)
    try:
        yield asked
    finally:
        ASKED.reset(token)
