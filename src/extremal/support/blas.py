"""Linear algebra of numpy on one thread: what it sums to depends on how many there are."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


def on_one_thread(items: Iterator[T]) -> Iterator[T]:
    """The same items, made while BLAS has one thread; as it is where the package threadpoolctl is missing.

    Examples
    --------
    >>> list(on_one_thread(iter([1, 2])))
    [1, 2]
    """
    with _limit():
        yield from items


def _limit() -> AbstractContextManager[object]:
    controller = _controller()
    return nullcontext() if controller is None else controller.limit(limits=1, user_api="blas")


@cache
def _controller() -> Any:
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController()
