"""The one way in which kernels are compiled."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core import event

KEPT = "extremal: compiling kernels for this machine, once; it takes from some seconds to a minute"
NOT_KEPT = (
    "extremal: compiling kernels, as in every process: neither the package's folder nor a cache in the home folder can be "
    "written, and NUMBA_CACHE_DIR names no folder to keep them in"
)


def jit(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Compile without the interpreter lock, and keep the machine code on disk where there is a place to write to."""
    try:
        kernel = numba.njit(cache=True, nogil=True, **options)(function)
    except RuntimeError:  # a read-only install without a writable home: compiled anew in every process
        _notice.text = NOT_KEPT
        return numba.njit(nogil=True, **options)(function)
    return _stamped(kernel)


def bare(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """The same for kernels that make no arrays, not even slices: numba then counts no references, which costs in inner loops."""
    return jit(function, _nrt=False, **options)


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """A bare kernel without a call where it is used: for short functions of an inner loop."""
    return bare(function, forceinline=True)


def sums(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same for short loops that sum: in any order, so that several terms are added at once."""
    return bare(function, fastmath={"reassoc", "contract", "nsz"}, forceinline=True)


def vectors(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same for loops over whole arrays: a division by zero gives an infinity, and is not looked for entry by entry."""
    return jit(function, error_model="numpy")


def _stamped(kernel: Any) -> Any:
    """Have the kept code go out of date with any file of kernels.

    numba looks at the kernel's own file only, and would go on to use code into which an old kernel of another file is
    compiled. Plain functions (``NUMBA_DISABLE_JIT=1``) pass as they are.
    """
    kept = getattr(getattr(kernel, "_cache", None), "_cache_file", None)
    if kept is not None:
        kept._source_stamp = kept._source_stamp, _sources()
    return kernel


@cache
def _sources() -> str:
    """A digest of all kernels' text."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


class _Notice(event.Listener):
    """Says once that kernels are being compiled, when that begins; code that was kept is loaded in silence.

    It is a log record of level WARNING: on stderr, unless the program has set up logging in another way.
    """

    text = KEPT
    told = False

    def on_start(self, event: event.Event) -> None:
        """Numba has found no kept code."""
        kernel = (event.data or {})["dispatcher"].py_func
        if not self.told and kernel.__module__.startswith(__package__):
            self.told = True
            logging.getLogger("extremal").warning(self.text)

    def on_end(self, event: event.Event) -> None:
        """Nothing is left to say."""


_notice = _Notice()
event.register("numba:compile", _notice)
