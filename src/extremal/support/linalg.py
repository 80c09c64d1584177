"""Safe linear algebra with numpy: decompositions that always end, and sums that do not depend on threads.

With an infinity in a matrix, LAPACK may loop forever and write to stderr; the functions here raise an error at once.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from functools import cache
from typing import Any, TypeVar

import numpy as np


def svd(a: np.ndarray, **options: Any) -> Any:
    """The same as `numpy.linalg.svd`, but with a LinAlgError for a NaN or an infinity.

    Examples
    --------
    >>> import numpy as np
    >>> svd(np.diag([3.0, 4.0]), compute_uv=False)
    array([4., 3.])
    >>> svd(np.array([[1.0, np.inf], [0.0, 1.0]]))
    Traceback (most recent call last):
    numpy.linalg.LinAlgError: svd of a matrix with a NaN or an infinity
    """
    return np.linalg.svd(_finite("svd", a), **options)


def lstsq(a: np.ndarray, b: np.ndarray, rcond: float | None = None) -> np.ndarray:
    """The shortest least squares solution of a x = b; LinAlgError for a NaN or an infinity in a or b.

    Examples
    --------
    >>> import numpy as np
    >>> lstsq(np.array([[2.0], [2.0]]), np.array([1.0, 3.0])).round(12)
    array([1.])
    """
    return np.linalg.lstsq(_finite("lstsq", a), _finite("lstsq", b), rcond=rcond)[0]


def _finite(call: str, a: np.ndarray) -> np.ndarray:
    if not np.isfinite(a).all():
        raise np.linalg.LinAlgError(f"{call} of a matrix with a NaN or an infinity")
    return a


T = TypeVar("T")


def on_one_thread(items: Iterator[T]) -> Iterator[T]:
    """The same items, computed while BLAS has one thread; unchanged if the package threadpoolctl is missing.

    Examples
    --------
    >>> list(on_one_thread(iter([1, 2])))
    [1, 2]
    """
    with one_thread():
        yield from items


@contextmanager
def one_thread() -> Iterator[None]:
    """BLAS has one thread: long sums then do not depend on the number of threads.

    The limit holds for the whole process, until the last such context ends, in whatever order they end. Without the package
    threadpoolctl there is none.

    Examples
    --------
    >>> with one_thread():
    ...     float(np.ones(20_000) @ np.ones(20_000))
    20000.0
    """
    _LIMIT.enter()
    try:
        yield
    finally:
        _LIMIT.leave()


class _Limit:
    """The limit on the threads of BLAS, and the number of open contexts that need it."""

    def __init__(self) -> None:
        self.lock, self.many, self.libraries = threading.Lock(), 0, False
        self.held = ExitStack()

    def enter(self) -> None:
        """Limit the libraries that are loaded by now: scipy brings a BLAS of its own."""
        with self.lock:
            libraries = "scipy.linalg" in sys.modules
            if not self.many or libraries != self.libraries:
                controller = _controller(libraries)
                self.held.enter_context(nullcontext() if controller is None else controller.limit(limits=1, user_api="blas"))
                self.libraries = libraries
            self.many += 1

    def leave(self) -> None:
        """Restore the numbers of threads at the end of the last context."""
        with self.lock:
            self.many -= 1
            if not self.many:
                self.held.close()


_LIMIT = _Limit()


@cache
def _controller(with_scipy: bool) -> Any:
    """The libraries of BLAS, looked up again after scipy was imported."""
    try:
        from threadpoolctl import ThreadpoolController
    except ImportError:
        return None
    return ThreadpoolController()
