"""How kernels are compiled."""

from __future__ import annotations

import gc
import hashlib
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from math import inf
from pathlib import Path
from threading import Timer
from time import monotonic
from types import FunctionType
from typing import Any, TypeAlias
from uuid import uuid4

from extremal.support.lazy import imported

numba = imported("numba")  # Ctrl-C waits for this import

Kernel: TypeAlias = Callable[..., Any]

KEPT = "extremal: compiling kernels for this machine, once; it takes 10 to 30 seconds (`extremal compile` does it in advance)"
NOT_KEPT = (
    "extremal: compiling kernels, as in every process: neither the package's folder nor a cache in the home folder can be "
    "written, and NUMBA_CACHE_DIR names no folder to keep them in"
)


def jit(function: Kernel, **options: Any) -> Kernel:
    """Compile without the interpreter lock, and cache the machine code on disk if a folder is writable."""
    try:
        kernel = numba.njit(cache=True, nogil=True, no_cfunc_wrapper=True, **options)(function)
    except RuntimeError:  # a read-only install without a writable home: every process compiles anew
        notice.text = NOT_KEPT
        kernel = numba.njit(nogil=True, no_cfunc_wrapper=True, **options)(function)
    if not isinstance(kernel, FunctionType):  # as with ``NUMBA_DISABLE_JIT=1``
        kernel.__class__ = imported("extremal.kernels.linked").TwoForms
    return notice.attend(_stamped(kernel))


def bare(function: Kernel, **options: Any) -> Kernel:
    """The same for kernels that make no arrays, not even slices: numba then skips reference counts, costly in inner loops."""
    return jit(function, _nrt=False, **options)


def inlined(function: Kernel) -> Kernel:
    """A bare kernel that is inlined into its callers: for short functions of an inner loop."""
    return bare(function, forceinline=True)


def fused(function: Kernel) -> Kernel:
    """The same, with a product and a sum in one instruction where the processor has it."""
    return bare(function, fastmath={"contract"}, forceinline=True)


def summing(function: Kernel) -> Kernel:
    """The same for short loops that sum, in any order, so that several terms are added at once."""
    return bare(function, fastmath={"reassoc", "contract", "nsz"}, forceinline=True)


def elementwise(function: Kernel) -> Kernel:
    """The same for computations that are alike for all entries of an array, so that several entries are computed at once."""
    return bare(function, error_model="numpy", forceinline=True)


def vectors(function: Kernel) -> Kernel:
    """The same for loops over whole arrays: a division by zero gives an infinity, without a check for every entry."""
    return jit(function, error_model="numpy")


def long_vectors(function: Kernel) -> Kernel:
    """The same for long kernels, most of whose loops are in kernels that they call: see `extremal.kernels.linked`."""
    kernel: Any = vectors(function)
    kernel.compiler = imported("extremal.kernels.linked").PartOf
    return kernel


def inner_kernel(function: Kernel, **options: Any) -> Kernel:
    """Compile a kernel that only other kernels call: its code is cached and optimised with that of the callers."""
    options |= {
        "no_cpython_wrapper": True,
        "no_cfunc_wrapper": True,
        "pipeline_class": imported("extremal.kernels.linked").PartOf,
    }
    return numba.njit(nogil=True, error_model="numpy", **options)(function)


def bare_inner_kernel(function: Kernel) -> Kernel:
    """The same for kernels that make no arrays, not even slices."""
    return inner_kernel(function, _nrt=False)


def as_python(kernels: list[Kernel], **others: Kernel) -> list[Kernel]:
    """Kernels that call each other, as plain Python from the same text; ``others`` replaces some of the functions."""
    texts = [getattr(kernel, "py_func", kernel) for kernel in kernels]
    names = {name: value for text in texts for name, value in text.__globals__.items()} | others
    for text in texts:
        names[text.__name__] = FunctionType(text.__code__, names, text.__name__, text.__defaults__)
    return [names[text.__name__] for text in texts]


def _stamped(kernel: Kernel) -> Kernel:
    """Make cached code expire with any file of kernels.

    numba checks the kernel's own file only, and would use cached code that contains an old kernel of another file. It compares
    its version before it reads the rest, which may name classes that no longer exist.

    numba also numbers the files of code, and two processes that compile at once may write the same one: here each file has a
    unique name. Plain functions (``NUMBA_DISABLE_JIT=1``) are returned unchanged.
    """
    cache: Any = getattr(kernel, "_cache", None)
    kept = getattr(cache, "_cache_file", None)
    if kept is not None:
        kept._version = f"{kept._version} {_sources()}"
        kept._data_name = partial(_own_name, kept._data_name)
        kept.save = partial(_save, kept, kept.save)
        cache.load_overload = partial(_load, cache)
    return kernel


def _load(cache: Any, signature: Any, context: Any) -> Any:
    """Load cached code. numba's own function first imports all that compilation needs, scipy.linalg and numpy.f2py included.

    Machine code needs only the functions that count references to arrays. Where numba has to compile, it imports the rest.
    """
    numba.core.runtime.rtsys.initialize(context)
    with cache._guard_against_spurious_io_errors():
        return cache._load_overload(signature, context)


def _save(kept: Any, save: Callable[..., None], *args: Any) -> None:
    """Cache the code; if the disk is full, the next notice says that kernels are not cached."""
    try:
        save(*args)
    except OSError:
        notice.text = NOT_KEPT
        with suppress(OSError):
            Path(kept._index_path).unlink()  # it names code that does not exist


def _own_name(name: Callable[[int], str], number: int) -> str:
    return f"{name(number).removesuffix('.nbc')}.{uuid4().hex[:8]}.nbc"


@cache
def _sources() -> str:
    """A digest of the text of all kernels."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


class Notice:
    """Announces that kernels are being compiled, each time a user waits for it; cached code is loaded in silence.

    The notice comes after ``patience`` seconds of waiting. Compilations with less than ``pause`` seconds between them are one
    wait, with one line. The notice is a log record of level WARNING: it goes to stderr, unless the program configures logging.
    numba compiles one kernel at a time, including the kernels that it calls.
    """

    def __init__(self, clock: Callable[[], float] = monotonic, later: Callable[..., Timer] = Timer) -> None:
        self.text, self.patience, self.pause = KEPT, 0.5, 2.0
        self._clock, self._later = clock, later
        self.compiled = 0  # kernels that this process has compiled so far, without those that other kernels call
        self._inside, self._told, self._waited, self._end = False, False, 0.0, -inf

    def attend(self, kernel: Kernel) -> Kernel:
        """Watch the compilations of this kernel only; a plain function (``NUMBA_DISABLE_JIT=1``) has none."""
        compiler = getattr(kernel, "_compiler", None)
        if compiler is not None:  # numba calls it if there is no cached code
            compiler.compile = partial(self._compile, compiler.compile)
        return kernel

    def _compile(self, compile: Kernel, *args: Any) -> Any:
        if self._inside:  # a kernel that another kernel calls: the same wait
            return compile(*args)
        start, collecting = self._clock(), gc.isenabled()
        if start - self._end > self.pause:
            self._told, self._waited = False, 0.0
        word = None
        try:
            self._inside = True
            gc.disable()  # numba makes millions of objects, and keeps most: looking for garbage takes a tenth of the time
            word = None if self._told else self._tell_after(self.patience - self._waited)
            return compile(*args)
        finally:
            self._inside = False
            if collecting:
                gc.enable()
            if word is not None:
                word.cancel()
                word.join()
            self.compiled += 1
            self._end = self._clock()
            self._waited += self._end - start

    def _tell_after(self, seconds: float) -> Timer | None:
        if seconds <= 0:
            return self._tell()
        word = self._later(seconds, self._tell)
        word.daemon = True
        word.start()
        return word

    def _tell(self) -> None:
        self._told = True
        logging.getLogger("extremal").warning(self.text)


notice = Notice()
