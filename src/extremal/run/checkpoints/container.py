"""The file of a checkpoint: a line of magic, a header in JSON, blocks of bytes, and a checksum of all of it.

A file is replaced as a whole, and the one before it stays under the name with ``.previous``. A damaged file is never read further
than its checksum.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from extremal.checks import InputError, check_out
from extremal.support.whole import written_whole

CHECKPOINT_FORMAT = 1
BEGINNING, SIZES, DIGEST = b"extremal checkpoint\n", 16, 32  # two sizes of eight bytes: the format, and the length of the header
AT_A_TIME = 2**22  # bytes that are read or written at a time
Hash = hashlib.blake2b


class Damaged(Exception):
    """A file that is not what was written."""


def previous(path: Path) -> Path:
    """The place of the checkpoint before."""
    return path.with_name(f"{path.name}.previous")


def check_place(said: str, path: object) -> Path:
    """The path of a checkpoint, checked before the run."""
    if not isinstance(path, (str, os.PathLike)) or not os.fspath(path):
        raise InputError(f'{said} must be a path such as "run.ckpt", got {path!r}')
    place = Path(os.fsdecode(path))
    check_out(previous(place))
    return check_out(place)


class Contents:
    """The contents of a checkpoint that is whole."""

    def __init__(self, path: Path, header: dict[str, Any], start: int):
        self.path, self.header, self._start = path, header, start

    def size(self, i: int) -> int:
        """The bytes of block i."""
        return self.header["blocks"][i][1]

    def fill(self, i: int, held: np.ndarray) -> None:
        """Read block i."""
        first = self.header["blocks"][i][0]
        with open(self.path, "rb") as file:
            file.seek(self._start + first)
            for piece in _pieces(held):
                if file.readinto(piece) != piece.nbytes:
                    raise ValueError(f"block {i} ends early")


def _pieces(a: np.ndarray) -> Iterator[memoryview]:
    view = memoryview(a)  # type: ignore[arg-type]
    return (view[first : first + AT_A_TIME] for first in range(0, len(view), AT_A_TIME))


def write(path: Path, header: dict[str, Any], blocks: Sequence[np.ndarray], keep: bool) -> None:
    """Replace the checkpoint at ``path``; with ``keep``, the old one becomes the one before."""
    places, at = list[tuple[int, int]](), 0
    for block in blocks:
        places.append((at, block.nbytes))
        at += block.nbytes
    text = json.dumps(header | {"blocks": places}, separators=(",", ":")).encode()
    with written_whole(path) as temporary:
        with open(temporary, "wb") as file:
            digest = Hash(digest_size=DIGEST)
            sizes = CHECKPOINT_FORMAT.to_bytes(8, "little") + len(text).to_bytes(8, "little")
            for piece in (BEGINNING, sizes, text, *(piece for block in blocks for piece in _pieces(block))):
                digest.update(piece)
                file.write(piece)
            file.write(digest.digest())
        with suppress(FileNotFoundError):
            if keep:
                os.replace(path, previous(path))


def last_of(said: str, path: Path) -> tuple[Contents | None, str]:
    """The checkpoint at ``path``, or the one before it if that one is damaged; and a sentence about it. None if there is none."""
    reasons = list[str]()
    for place in (path, previous(path)):
        try:
            found = _opened(said, place)
        except FileNotFoundError:
            continue
        except Damaged as damage:
            reasons.append(f"{place} is damaged: {damage}")
            continue
        except OSError as error:
            raise InputError(f"{said}: {place} cannot be read ({error.strerror})") from error
        note = f"{'; '.join(reasons)}; the run goes on from the checkpoint before it" if reasons else ""
        if note:
            logging.getLogger("extremal").warning("checkpoint: %s", note)
        return found, note
    if reasons:
        raise InputError(f"{said}: {'; '.join(reasons)}; remove it, and the run begins anew")
    return None, ""


def _opened(said: str, path: Path) -> Contents:
    """A whole file with its header; a newer format is refused."""
    with open(path, "rb") as file:
        head = file.read(len(BEGINNING) + SIZES)
        if not head.startswith(BEGINNING) or len(head) < len(BEGINNING) + SIZES:
            raise Damaged("it does not begin as a checkpoint does")
        form, size = (int.from_bytes(head[len(BEGINNING) + at :][:8], "little") for at in (0, 8))
        rest = os.fstat(file.fileno()).st_size - len(head) - DIGEST
        text = _checked(file, head, min(size, max(rest, 0)), rest)
    if form != CHECKPOINT_FORMAT:  # the beginning and the checksum are those of every format
        raise InputError(f"{said}: {path} has format {form}; this version of extremal reads {CHECKPOINT_FORMAT}")
    try:
        header = json.loads(text)
        spans = [(int(first), int(many)) for first, many in header["blocks"]]
        if any(first < 0 or many < 0 or first + many > rest - size for first, many in spans):
            raise ValueError("blocks outside of the file")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Damaged(f"its header cannot be read ({error})") from error
    return Contents(path, header, len(head) + size)


def _checked(file: BinaryIO, head: bytes, size: int, rest: int) -> bytes:
    """The text of the header, after the checksum of the whole file was compared."""
    digest, text, left = Hash(head, digest_size=DIGEST), b"", rest
    if size:
        text = file.read(size)
        digest.update(text)
        left -= len(text)
    while left > 0:
        piece = file.read(min(AT_A_TIME, left))
        if not piece:
            break
        digest.update(piece)
        left -= len(piece)
    if file.read(DIGEST) != digest.digest() or left:
        raise Damaged("its checksum does not match")
    return text
