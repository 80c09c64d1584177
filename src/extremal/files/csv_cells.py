"""The cells of a CSV file: its separator, its header, and its rows as numbers; a message names the line and the column."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from pathlib import Path
from typing import NoReturn

import numpy as np

from extremal.checks import InputError
from extremal.files.libsvm import first_infinite, is_number, parse_number, short

BOOLEANS = {"true": 1.0, "false": 0.0}  # as pandas writes them, in any case


@dataclass(frozen=True)
class CsvColumns:
    """The columns that a reader takes from a CSV file: the features, and the target if it is wanted."""

    path: Path
    width: int
    header: list[str]
    features: Sequence[int]
    target: int | None
    guessed: bool  # nobody named the target

    def called(self, j: int) -> str:
        """The name of a column, or its number in a file without a header."""
        return f"column {short(self.header[j]) if self.header else j}"

    def refuse(self, line: int, j: int, text: str, kind: str = "a number") -> NoReturn:
        """Raise the error for a cell that holds no number."""
        held = f"holds {text if is_number(text) else short(text)}, not {kind}" if text.strip() else "is empty"
        hint = " (a row with numbers in it is not taken for a header)" if line == 1 and not is_number(text) else ""
        if re.fullmatch(r"\s*[-+]?\d+,\d+\s*", text):
            hint = f" (write it with a point, {text.strip().replace(',', '.')})"
        if self.guessed and self.target is not None:
            hint += (
                f"; the target is the last column, {self.called(self.target).removeprefix('column ')}, unless you name another"
            )
        raise InputError(f"{self.path}:{line}: {self.called(j)} {held}{hint}")


def separated(lines: Iterator[str]) -> tuple[Iterator[str], str]:
    r"""All lines, and their separator: a semicolon or a tab if the first line has it and has no comma outside quotes.

    Examples
    --------
    >>> lines, separator = separated(iter(["\n", "age;price\n", "3;10\n"]))
    >>> list(lines), separator
    (['\n', 'age;price\n', '3;10\n'], ';')
    """
    blank, first = 0, ""
    for first in lines:
        if first.strip(" ,;\t\r\n"):
            break
        blank += 1
    else:
        return repeat("\n", blank), ","
    bare = re.sub(r'"[^"]*"', "", first)
    separator = "," if "," in bare else max(",;\t", key=bare.count)
    return chain(repeat("\n", blank), [first], lines), separator


def is_header(row: list[str]) -> bool:
    """Whether a first row holds names: no number, and not mostly True and False.

    Examples
    --------
    >>> is_header(["age", "price"]), is_header(["3", "price"]), is_header(["true", "guess"]), is_header(["True", "False", "yes"])
    (True, False, True, False)
    """
    return not any(map(is_number, row)) and 2 * sum(cell.strip().lower() in BOOLEANS for cell in row) <= len(row)


def parse_cell(text: str) -> float:
    """Read a number, or True and False as 1 and 0, or raise ValueError."""
    found = BOOLEANS.get(text.strip().lower())
    return parse_number(text) if found is None else found


def booleans(y: np.ndarray) -> np.ndarray:
    """Labels that are all True or False as 1 and 0; others as they are.

    Examples
    --------
    >>> booleans(np.array(["True", "FALSE"])).tolist(), booleans(np.array(["yes", "no"])).tolist()
    ([1.0, 0.0], ['yes', 'no'])
    """
    words = [word.lower() for word in y.tolist()] if y.dtype.kind == "U" else [""]
    return np.array([BOOLEANS[word] for word in words]) if set(words) <= set(BOOLEANS) else y


def cell_numbers(rows: Iterable[tuple[int, list[str]]], columns: CsvColumns) -> tuple[np.ndarray, np.ndarray | None, array[int]]:
    """The features and the targets of rows, and the line number of each row."""
    where, values, labels, parse = array("q"), array("d"), [], parse_number
    for line, row in rows:
        if len(row) != columns.width:
            words = f"expected {columns.width} columns as in the first row, got {len(row)}"
            raise InputError(f"{columns.path}:{line}: {words}")
        if columns.target is not None:
            labels.append(row[columns.target].strip())
        fields = [row[j] for j in columns.features]
        try:
            values.extend(map(parse, fields))
        except ValueError:  # of its first cells, some are in
            del values[len(where) * len(fields) :]
            parse = parse_cell
            values.extend(_parsed_cells(columns, line, fields))
        where.append(line)
    A = np.frombuffer(values).reshape(len(where), len(columns.features))
    _refuse_infinite(columns, where, A, columns.features)
    return A, None if columns.target is None else _targets(columns, columns.target, where, labels), where


def _parsed_cells(columns: CsvColumns, line: int, fields: list[str]) -> Iterator[float]:
    for j, text in zip(columns.features, fields, strict=True):
        try:
            yield parse_cell(text)
        except ValueError:
            columns.refuse(line, j, text)


def _targets(columns: CsvColumns, target: int, where: array[int], labels: list[str]) -> np.ndarray:
    """Numbers, or text if no label is a number; a mixture is a mistake."""
    texts = not any(map(is_number, labels))
    if texts and all(labels):
        return np.array(labels)
    for line, label in zip(where, labels, strict=True):
        if not label or not (texts or label.lower() in BOOLEANS or is_number(label)):
            columns.refuse(line, target, label)
    y = np.array([*map(parse_cell, labels)])
    _refuse_infinite(columns, where, y[:, None], [target])
    return y


def _refuse_infinite(columns: CsvColumns, where: array[int], A: np.ndarray, of: Sequence[int]) -> None:
    found = first_infinite(A.reshape(-1), None)
    if found is not None:
        i, j = divmod(found[0], A.shape[1])
        columns.refuse(where[i], of[j], str(found[1]), "a finite number")
