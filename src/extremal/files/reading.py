"""What all readers of files share: one sentence for whatever is wrong with a file, and a limit for what is compressed."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from extremal import checks
from extremal.checks import InputError

OPENERS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
BYTES_VARIABLE = "EXTREMAL_MAX_BYTES"
MOST_BYTES = 2**30  # bytes that a compressed file may hold, if nobody says otherwise


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn what a missing or unreadable file raises into one sentence."""
    try:
        if path.is_file() and path.stat().st_size == 0:
            raise InputError(f"{path}: the file is empty")
        yield
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({_reason(error)})") from None
    except MemoryError:
        raise InputError(f"{path}: cannot be read (it takes more memory than there is)") from None


@contextmanager
def decoding(path: Path) -> Iterator[None]:
    """Turn what a decoder raises on wrong bytes into one sentence; which error that is depends on where they are wrong."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except Exception as error:
        raise damaged(path, _reason(error)) from None


def damaged(path: Path, reason: str) -> InputError:
    """What to raise about a file that is not whole."""
    return InputError(f"{path}: the file is truncated or damaged ({reason})")


def _reason(error: BaseException) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text.strip().partition("\n")[0] or type(error).__name__


@contextmanager
def opened_file(path: Path, max_bytes: int | None = None) -> Iterator[BinaryIO]:
    """The bytes of a file, decompressed if its suffix says so; not more than the limit of what is compressed or has no end."""
    with reading(path):
        try:
            opener = OPENERS.get(path.suffix.lower())
            file = (opener or open)(path, "rb")
        except ValueError as error:  # of a name that no file can have
            raise InputError(f"{path!s}: cannot be read ({error})") from None
        with file:
            if opener is None and path.is_file():
                yield file
            else:
                yield io.BufferedReader(_Limited(file, path, limit(max_bytes)), 2**20)


def limit(max_bytes: int | None) -> int:
    """The bytes that a compressed file may hold: as given, as the environment says, or 2^30."""
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
    """What to raise about a compressed file that holds more than the limit."""
    how = f"max_bytes= in Python, or the environment variable {BYTES_VARIABLE}={4 * most}"
    return InputError(f"{path}: it holds more than {most} bytes; to read it all the same, raise the limit by {how}")


class _Limited(io.RawIOBase):
    """A stream that ends with an error after so many bytes."""

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
