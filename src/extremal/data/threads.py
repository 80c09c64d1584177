"""How many threads BLAS has while a run reads rows that are elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

from extremal.data.rows import rows_elsewhere
from extremal.support.linalg import one_thread

T = TypeVar("T")


def steady(f: object) -> AbstractContextManager[object]:
    """A context for runs on rows elsewhere: BLAS has one thread, so that sums over x do not depend on the number of threads."""
    return one_thread() if rows_elsewhere(getattr(f, "data", None)) else nullcontext()


def steadily(f: object, states: Iterator[T]) -> Iterator[T]:
    """The same states. The caller's own work between them may use all threads."""
    while True:
        with steady(f):
            state = next(states)
        yield state
