"""LIBSVM text: a label and ascending index:value pairs on each line. Any mistake raises one `InputError`.

`_plain` is the reference. A compiled kernel reads the blocks that hold nothing unusual, with the same bits as the result.
"""

from __future__ import annotations

import io
import sys
from array import array
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn

import numpy as np
import scipy.sparse as sp

from extremal.checks import InputError, all_finite

BYTES_AT_ONCE = 2**21  # bytes read at once
SMALL_FILE = 2**16  # bytes that Python reads in a few ms, while importing numba takes hundreds


class TextRows(NamedTuple):
    """The content of some lines: row i stands in line where[i], and has the columns (from 0) and values from starts[i] on."""

    size: int  # bytes
    lines: int
    where: np.ndarray
    targets: np.ndarray
    starts: np.ndarray
    columns: np.ndarray
    values: np.ndarray


@dataclass(frozen=True)
class _Rows:
    """The rows read so far, in arrays that grow."""

    where: array[int] = field(default_factory=lambda: array("q"))
    targets: array[float] = field(default_factory=lambda: array("d"))
    starts: array[int] = field(default_factory=lambda: array("q", [0]))
    columns: array[int] = field(default_factory=lambda: array("i"))
    values: array[float] = field(default_factory=lambda: array("d"))

    def add(self, rows: TextRows) -> None:
        self.where.frombytes(rows.where.tobytes())
        self.targets.frombytes(rows.targets.tobytes())
        self.starts.frombytes((rows.starts[1:] + len(self.columns)).tobytes())
        self.columns.frombytes(rows.columns.tobytes())
        self.values.frombytes(rows.values.tobytes())


def read(path: Path, file: BinaryIO, block: int = BYTES_AT_ONCE) -> tuple[Any, np.ndarray]:
    r"""Read features A, a CSR array, and targets y from an open file; the path is for messages.

    Examples
    --------
    >>> A, y = read(Path("tiny"), io.BytesIO(b"+1 1:0.5 3:2  # a comment\n-1 2:1\n"))
    >>> A.shape, A.nnz, y
    ((2, 3), 3, array([ 1., -1.]))
    """
    rows = _Rows()
    for found in read_blocks(path, file, block):
        rows.add(found)
    return _matrix(path, rows)


def read_blocks(path: Path, file: BinaryIO, block: int = BYTES_AT_ONCE) -> Iterator[TextRows]:
    r"""Read an open file in blocks of lines, of about ``block`` bytes each; an error names the first wrong line of the file.

    Examples
    --------
    >>> [rows.targets.tolist() for rows in read_blocks(Path("tiny"), io.BytesIO(b"+1 1:0.5\n-1 2:1\n"), block=9)]
    [[1.0], [-1.0]]
    """
    line = 1
    for text in _blocks(file, block):
        rows = _fast(text, line) or _plain(path, text, line)
        _check_rows(path, rows)
        line += rows.lines
        yield rows


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


def _fast(text: bytes, line: int) -> TextRows | None:
    """Read a block that starts with the given line, by the kernel; None if the kernel does not understand it."""
    if len(text) < SMALL_FILE and "numba" not in sys.modules:
        return None
    from extremal.kernels import libsvm as kernel  # numba: imported by the first large block

    found = kernel.read_lines(text) if kernel.COMPILED else None
    if found is None:
        return None
    lines, where, labels, stops, columns, values = found
    columns -= 1
    return TextRows(len(text), lines, where + line, labels, np.concatenate([[0], stops]), columns, values)


def _plain(path: Path, text: bytes, line: int) -> TextRows:
    """Read a block that starts with the given line, or explain its first mistake."""
    encoding, rows, first = "utf-8-sig" if line == 1 else "utf-8", _Rows(), line
    for content in io.TextIOWrapper(io.BytesIO(text), encoding, errors="backslashreplace", newline=""):
        if fields := content.partition("#")[0].split():
            try:
                _row(fields, rows.targets, rows.columns, rows.values)
            except (ValueError, OverflowError):
                _check_rows(path, _as_text_rows(rows, len(text), line - first))  # reports the first of two mistakes
                _explain(f"{path}:{line}", fields)
            rows.where.append(line)
            rows.starts.append(len(rows.columns))
        line += 1
    return _as_text_rows(rows, len(text), line - first)


def _as_text_rows(rows: _Rows, size: int, lines: int) -> TextRows:
    """Whole rows only, without the remains of a wrong line."""
    n, nnz = len(rows.where), rows.starts[-1]
    where, targets, starts, columns, values = map(np.asarray, (rows.where, rows.targets, rows.starts, rows.columns, rows.values))
    return TextRows(size, lines, where, targets[:n], starts, columns[:nnz] - np.int32(1), values[:nnz])


def _check_rows(path: Path, rows: TextRows) -> None:
    """Refuse NaN and infinity, and name the first line that has one."""
    found = [first_infinite(rows.targets, None), first_infinite(rows.values, rows.starts)]
    if wrong := [place for place in found if place is not None]:
        row, value = min(wrong, key=lambda place: place[0])
        raise InputError(f"{path}:{rows.where[row]}: expected finite numbers, got {value}")


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
    starts = indptr.astype(np.int32) if len(values) < 2**31 else indptr  # scipy widens the indices to the wider of the two
    return sp.csr_array((values, indices, starts), shape=(len(y), int(indices.max()) + 1)), y


def refuse_infinite(path: Path, where: array[int], values: np.ndarray, starts: np.ndarray | None) -> None:
    """Refuse NaN and infinity; row i has values[starts[i]:starts[i + 1]] (or values[i]) and stands in line where[i]."""
    found = first_infinite(values, starts)
    if found is not None:
        raise InputError(f"{path}:{where[found[0]]}: expected finite numbers, got {found[1]}")


def first_infinite(values: np.ndarray, starts: np.ndarray | None) -> tuple[int, float] | None:
    """The first row with a NaN or infinity, and that value; row i has values[starts[i]:starts[i + 1]], or values[i].

    Examples
    --------
    >>> first_infinite(np.array([1.0, 2.0, np.inf]), np.array([0, 1, 3]))
    (1, inf)
    """
    if all_finite(values):
        return None
    first = int(np.argmin(np.isfinite(values)))
    row = first if starts is None else row_of_entry(starts, first)
    return row, float(values[first])


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


def row_of_entry(starts: np.ndarray, entry: int) -> int:
    """The row of an entry, if row i has the entries from starts[i] to starts[i + 1] - 1.

    Examples
    --------
    >>> row_of_entry(np.array([0, 2, 2, 5]), 2)
    2
    """
    return int(np.searchsorted(starts, entry, side="right")) - 1
