"""The one way in which kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba


def jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile without the interpreter lock, and keep the machine code on disk where there is a place to write to."""
    try:
        return numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # a read-only install without a writable home: compiled anew in every process
        return numba.njit(nogil=True)(function)
