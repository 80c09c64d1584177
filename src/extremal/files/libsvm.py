"""LIBSVM text: a label and ascending index:value pairs on each line. Whatever is wrong is one `InputError`.

`_plain` says what the text means. A compiled kernel reads the blocks that hold nothing unusual, with the same result on the bit.
"""

from __future__ import annotations

import io
import sys
from array import array
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

import numpy as np
import scipy.sparse as sp

from extremal.checks import InputError, all_finite

BYTES_AT_ONCE = 2**21  # bytes read at once
SMALL_FILE = 2**16  # bytes that Python reads in some ms, while importing numba takes hundreds


@dataclass(frozen=True)
class _Rows:
    """What has been read: row i stands in line where[i], and has the columns (from 1) and values from starts[i] on."""

    where: array[int] = field(default_factory=lambda: array("q"))
    targets: array[float] = field(default_factory=lambda: array("d"))
    starts: array[int] = field(default_factory=lambda: array("q", [0]))
    columns: array[int] = field(default_factory=lambda: array("i"))
    values: array[float] = field(default_factory=lambda: array("d"))


def read(path: Path, file: BinaryIO, block: int = BYTES_AT_ONCE) -> tuple[Any, np.ndarray]:
    r"""Read features A, a CSR array, and targets y from an open file; the path is for messages.

    Examples
    --------
    >>> A, y = read(Path("tiny"), io.BytesIO(b"+1 1:0.5 3:2  # a comment\n-1 2:1\n"))
    >>> A.shape, A.nnz, y
    ((2, 3), 3, array([ 1., -1.]))
    """
    rows, line = _Rows(), 1
    for text in _blocks(file, block):
        line = _fast(rows, text, line) or _plain(path, rows, text, line)
    return _matrix(path, rows)


def _blocks(file: BinaryIO, size: int) -> Iterator[bytes]:
    """The text in blocks of whole lines, of about the given size if no line is longer."""
    begun = []
    while chunk := file.read(size):
        end = chunk.rfind(b"\n") + 1
        if end:
            yield b"".join([*begun, chunk[:end]])
            begun = []
        begun.append(chunk[end:])
    if rest := b"".join(begun):
        yield rest


def _fast(rows: _Rows, text: bytes, line: int) -> int:
    """Read a block that starts with the given line, by the kernel; return the line after it, or 0 if nothing was read."""
    if len(text) < SMALL_FILE and "numba" not in sys.modules:
        return 0
    from extremal.kernels import libsvm as kernel  # numba: imported by the first large block

    found = kernel.read_lines(text) if kernel.COMPILED else None
    if found is None:
        return 0
    lines, where, labels, stops, columns, values = found
    rows.where.frombytes((where + line).tobytes())
    rows.targets.frombytes(labels.tobytes())
    rows.starts.frombytes((stops + len(rows.columns)).tobytes())
    rows.columns.frombytes(columns.tobytes())
    rows.values.frombytes(values.tobytes())
    return line + lines


def _plain(path: Path, rows: _Rows, text: bytes, line: int) -> int:
    """Read a block that starts with the given line, or explain what is wrong with it; return the line after it."""
    encoding = "utf-8-sig" if line == 1 else "utf-8"
    for content in io.TextIOWrapper(io.BytesIO(text), encoding, errors="backslashreplace", newline=""):
        if fields := content.partition("#")[0].split():
            try:
                _row(fields, rows.targets, rows.columns, rows.values)
            except (ValueError, OverflowError):
                _explain(f"{path}:{line}", fields)
            rows.where.append(line)
            rows.starts.append(len(rows.columns))
        line += 1
    return line


def _row(fields: list[str], targets: array[float], columns: array[int], values: array[float]) -> None:
    targets.append(parse_number(fields[0]))
    last = 0
    for pair in fields[1:]:
        index, value = pair.split(":")
        column = int(index)
        if column <= last or "_" in pair:
            raise ValueError
        columns.append(column)
        values.append(float(value))
        last = column


def _explain(place: str, fields: list[str]) -> NoReturn:
    """Refuse a line of LIBSVM text, naming the first field that is wrong."""
    if not is_number(fields[0]):
        raise InputError(f"{place}: expected a number as the label, got {short(fields[0])}")
    last = 0
    for pair in fields[1:]:
        index, colon, value = pair.partition(":")
        if index == "qid":
            raise InputError(f"{place}: {short(pair)}: ranking data with query ids are not supported")
        if not colon or not index.removeprefix("-").isdecimal() or not is_number(value):
            raise InputError(f"{place}: expected index:value after the label, got {short(pair)}")
        if len(index) > 640 or not 1 <= int(index) < 2**31:  # int() may refuse more than 640 digits
            raise InputError(f"{place}: expected an index from 1 to {2**31 - 1}, got {short(pair)}")
        if int(index) <= last:
            raise InputError(f"{place}: expected ascending indices, got {short(pair)} after index {last}")
        last = int(index)
    raise InputError(f"{place}: expected a label and index:value pairs, got {short(' '.join(fields))}")


def _matrix(path: Path, rows: _Rows) -> tuple[Any, np.ndarray]:
    if not rows.columns:
        raise InputError(f"{path}: the file holds {'labels, but no features' if rows.where else 'no rows'}")
    y, values, indptr = np.frombuffer(rows.targets), np.frombuffer(rows.values), np.frombuffer(rows.starts, np.int64)
    indices = np.frombuffer(rows.columns, np.int32)
    indices -= 1
    refuse_infinite(path, rows.where, y, np.arange(len(y) + 1))
    refuse_infinite(path, rows.where, values, indptr)
    starts = indptr.astype(np.int32) if len(values) < 2**31 else indptr  # scipy widens the indices to the wider of the two
    return sp.csr_array((values, indices, starts), shape=(len(y), int(indices.max()) + 1)), y


def refuse_infinite(path: Path, where: array[int], values: np.ndarray, starts: np.ndarray) -> None:
    """Refuse NaN and infinity; row i has values[starts[i]:starts[i + 1]] and stands in line where[i]."""
    if not all_finite(values):
        first = int(np.argmin(np.isfinite(values)))
        line = where[int(np.searchsorted(starts, first, side="right")) - 1]
        raise InputError(f"{path}:{line}: expected finite numbers, got {values[first]}")


def parse_number(text: str) -> float:
    """Read a number, or raise ValueError."""
    if "_" in text:  # float("1_0") is 10 in Python, and a mistake in a file
        raise ValueError(text)
    return float(text)


def is_number(text: str) -> bool:
    """Whether the text is a number, which may be NaN or infinite."""
    with suppress(ValueError):
        return parse_number(text) is not None
    return False


def short(text: str, most: int = 60) -> str:
    """The text in quotes, cut if it is long."""
    return repr(text if len(text) <= most else text[:most] + "...")
