"""Shared code of all file readers: one sentence per fault of a file, and a limit on the size of compressed content."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from extremal import checks
from extremal.checks import InputError
from extremal.support.memory import free_memory

OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
BYTES_VARIABLE = "EXTREMAL_MAX_BYTES"
MOST_BYTES = 2**30  # default limit on the bytes that a compressed file may hold
SOLVE_VECTORS = 6  # least number of vectors of the size of x that a run holds


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn the errors of a missing or unreadable file into one sentence."""
    try:
        if path.is_file() and path.stat().st_size == 0:
            raise InputError(f"{path}: the file is empty")
        yield
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({_reason(error)})") from None
    except MemoryError:
        raise InputError(f"{path}: cannot be read (it takes more memory than there is)") from None


def check_room(path: Path, d: int) -> None:
    """Refuse more features than the memory can hold coefficients for: the number alone costs a writer of files nothing."""
    if SOLVE_VECTORS * 8 * d > (free_memory() or math.inf):
        raise InputError(f"{path}: {d} features are more than the memory can hold coefficients for")


@contextmanager
def decoding(path: Path) -> Iterator[None]:
    """Turn any error of a decoder into one sentence; the type of the error depends on the position of the wrong bytes."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except Exception as error:
        raise damaged(path, _reason(error)) from None


def damaged(path: Path, reason: str) -> InputError:
    """The error for a file that is not whole."""
    return InputError(f"{path}: the file is truncated or damaged ({reason})")


def _reason(error: BaseException) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text.strip().partition("\n")[0] or type(error).__name__


@contextmanager
def opened_file(path: Path, max_bytes: int | None = None) -> Iterator[BinaryIO]:
    """Open a file for bytes, decompressed by its suffix; the limit holds for compressed and for endless files."""
    with reading(path):
        try:
            opener = OPENERS.get(path.suffix.lower())
            file = (opener or open)(path, "rb")
        except ValueError as error:  # the name is not possible for a file
            raise InputError(f"{path!s}: cannot be read ({error})") from None
        with file:
            if opener is None and path.is_file():
                yield file
            else:
                yield io.BufferedReader(_Limited(file, path, limit(max_bytes)), 2**20)


def limit(max_bytes: int | None) -> int:
    """The bytes that a compressed file may hold: the argument, else the environment variable, else 2^30."""
    if max_bytes is not None:
        return checks.whole("load", "max_bytes", max_bytes, 1)
    given = os.environ.get(BYTES_VARIABLE, "").strip()
    try:
        number = int(float(given)) if given else MOST_BYTES
    except (ValueError, OverflowError):
        number = 0
    if number < 1:
        raise InputError(f"the environment variable {BYTES_VARIABLE} must be a number of bytes such as 4e9, got {given!r}")
    return number


def too_large(path: Path, most: int) -> InputError:
    """The error for a compressed file that holds more than the limit."""
    how = f"max_bytes= in Python, or the environment variable {BYTES_VARIABLE}={4 * most}"
    return InputError(f"{path}: it holds more than {most} bytes; to read it all the same, raise the limit by {how}")


class _Limited(io.RawIOBase):
    """A stream that raises an error after ``most`` bytes."""

    def __init__(self, file: BinaryIO | io.BufferedIOBase, path: Path, most: int):
        self.file, self.path, self.most, self.done = file, path, most, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        with decoding(self.path):
            piece = self.file.read(len(buffer))
        self.done += len(piece)
        if self.done > self.most:
            raise too_large(self.path, self.most)
        buffer[: len(piece)] = piece
        return len(piece)
