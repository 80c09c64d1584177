"""Data sets from files: LIBSVM text, CSV, .npz, .npy. Any mistake raises one `InputError`."""

from __future__ import annotations

import csv
import io
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from extremal.checks import InputError
from extremal.files import libsvm
from extremal.files.array_files import read_npy, read_npz
from extremal.files.csv_cells import CsvColumns, cell_numbers, is_header, separated
from extremal.files.libsvm import short
from extremal.files.reading import OPENERS, opened_file

Chosen = tuple[Sequence[int], int | None]  # the numbers of the feature columns, and of the target column
Choose = Callable[[int, list[str]], Chosen]  # its arguments are the width of a table and its header


@dataclass(frozen=True)
class Table:
    """The content of a file: features A, targets y, and the names of both if the file has them."""

    A: Any
    y: np.ndarray | None
    names: tuple[str, ...] | None = None
    target: str | None = None


def load_table(
    path: str | Path, target: str | int | Path | None = None, *, max_bytes: int | None = None
) -> tuple[Any, np.ndarray]:
    r"""Read features A and targets y from a file; its suffix gives the format.

    ``.csv`` and ``.tsv``: commas, semicolons or tabs separate the columns, a first row without any number is a header, and True
    and False in features are 1 and 0. ``.npy``: a matrix. ``.npz``: arrays A (or X) and y, or a matrix
    written by scipy.sparse.save_npz, and y. Any other suffix: LIBSVM text. Text may be compressed (.gz, .bz2, .xz). A is a
    CSR array for LIBSVM and sparse .npz, otherwise dense. Labels of a CSV that are not numbers stay text.

    Parameters
    ----------
    path : str or Path
        The file.
    target : str, int or Path, optional
        The place of y. CSV: a column's name or 0-based number; .npy: a column's number, or a .npy file that holds y; .npz:
        a .npy file that holds y. Default: the last column, or the array y.
    max_bytes : int, optional
        The limit on the content of a compressed file, because a small file can grow without bound. Default: the environment
        variable EXTREMAL_MAX_BYTES, or 2^30.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "tiny")
    ...     _ = path.write_text("+1 1:0.5 3:2  # a comment\n-1 2:1\n")
    ...     A, y = load_table(path)
    >>> A.toarray(), y
    (array([[0.5, 0. , 2. ],
           [0. , 1. , 0. ]]), array([ 1., -1.]))
    """
    table = read_table(path, target, max_bytes)
    assert table.y is not None
    return table.A, table.y


def read_table(path: str | Path, target: str | int | Path | None = None, max_bytes: int | None = None) -> Table:
    r"""Like `load_table`, with the names of the columns if the file has a header.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "t.csv").write_text("age,price\n3,10\n4,12\n")
    ...     table = read_table(Path(folder, "t.csv"))
    >>> table.names, table.target
    (('age',), 'price')
    """
    path = Path(path)
    kind = file_kind(path)
    if kind in (".npz", ".npy"):
        table = _arrays(path, kind, target, max_bytes)
    elif kind == ".csv":
        table = _csv(path, max_bytes, lambda *of: _all_but(column_number(path, target, *of), of[0]), target is None)
    else:
        if target is not None:
            raise InputError(f"{path}: LIBSVM text has its targets at the start of each line; leave out target={target!r}")
        table = _libsvm(path, max_bytes)
    _check_matrix(path, table.A)
    if table.y is None or table.y.shape != (table.A.shape[0],):
        shape = None if table.y is None else table.y.shape
        raise InputError(f"{path}: expected one target for each of the {table.A.shape[0]} rows, got targets of shape {shape}")
    return table


def file_kind(path: Path) -> str:
    """The suffix that gives the format of a file, compressed or not."""
    packed = path.suffix.lower() in OPENERS
    kind = (path.with_suffix("") if packed else path).suffix.lower()
    if packed and kind in (".npz", ".npy"):
        raise InputError(f"{path}: a compressed {kind} file is not read; decompress it first")
    return ".csv" if kind == ".tsv" else kind


def _check_matrix(path: Path, A: Any) -> None:
    if A.ndim != 2 or 0 in A.shape or A.dtype.kind not in "biuf":
        raise InputError(f"{path}: expected a matrix of real numbers, got shape {A.shape} of dtype {A.dtype}")


def read_features(
    path: str | Path, width: int, names: Sequence[str] | None = None, drop: str | int | None = None, max_bytes: int | None = None
) -> Table:
    r"""Read the features without the targets, for a model of ``width`` features that may have names.

    CsvColumns are matched by name if both the model and the file have names, otherwise by order. ``drop`` is a column of a
    CSV or .npy file that is not a feature.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "t.csv").write_text("id,b,a\n7,1,2\n8,3,4\n")
    ...     read_features(Path(folder, "t.csv"), 2, ("a", "b")).A
    array([[2., 1.],
           [4., 3.]])
    """
    path = Path(path)
    kind = file_kind(path)
    if kind == ".csv":
        table = _csv(path, max_bytes, lambda count, header: (_places(path, width, names, drop, count, header), None))
    elif kind == ".npy":
        A = read_npy(path)
        _check_matrix(path, A)
        table = Table(A[:, _places(path, width, names, drop, A.shape[1], [])], None)
    else:
        table = Table(read_npz(path, max_bytes=max_bytes)[0], None) if kind == ".npz" else _libsvm(path, max_bytes)
    _check_matrix(path, table.A)
    d = table.A.shape[1]
    if kind not in (".csv", ".npy", ".npz") and d < width:  # the last features may be 0 everywhere
        table.A.resize((table.A.shape[0], width))
    elif d != width:
        raise InputError(f"{path}: expected {width} features as in the model, got {d}")
    return replace(table, y=None)


def _places(path: Path, width: int, names: Sequence[str] | None, drop: object, count: int, header: list[str]) -> list[int]:
    """The columns of a file that hold the features of a model, in the model's order."""
    if names is not None and header:
        lost = [name for name in names if header.count(name) != 1]
        if lost:
            what = "has no column" if lost[0] not in header else "has more than one column"
            more = f" ({len(lost) - 1} more of the model's features are not there)" if len(lost) > 1 else ""
            raise InputError(f"{path}: {what} {lost[0]!r}{more}; its columns are {short(', '.join(header), 200)}")
        return [header.index(name) for name in names]
    left = [j for j in range(count) if drop is None or j != column_number(path, drop, count, header)]
    if len(left) != width:
        hint = "; name the column that is not a feature by target" if len(left) == width + 1 and drop is None else ""
        raise InputError(f"{path}: expected {width} columns, one for each feature of the model, got {len(left)}{hint}")
    return left


def _libsvm(path: Path, max_bytes: int | None) -> Table:
    with opened_file(path, max_bytes) as file:
        return Table(*libsvm.read(path, file))


def _all_but(column: int, width: int) -> Chosen:
    return [j for j in range(width) if j != column], column


def _csv(path: Path, max_bytes: int | None, choose: Choose, guessed: bool = False) -> Table:
    with opened_file(path, max_bytes) as file:
        [(table, _)] = csv_blocks(path, file, choose, guessed=guessed)
        return table


def csv_blocks(
    path: Path, file: BinaryIO, choose: Choose, most: int | None = None, guessed: bool = False
) -> Iterator[tuple[Table, array[int]]]:
    r"""Read an open CSV file in blocks of about ``most`` fields, or at once, with the line number of each row.

    With ``guessed``, messages say that the target is the last column because no other was named.

    Examples
    --------
    >>> file = io.BytesIO(b"a,b\n1,2\n3,4\n")
    >>> [table.y for table, where in csv_blocks(Path("t.csv"), file, lambda width, header: ([0], 1), most=2)]
    [array([2.]), array([4.])]
    """
    lines = io.TextIOWrapper(file, encoding="utf-8-sig", errors="backslashreplace", newline="")
    try:
        whole, separator = separated(lines)
        reader = csv.reader(whole, delimiter=separator, skipinitialspace=True)
        rows = ((reader.line_num, row) for row in reader if any(field.strip() for field in row))
        try:
            yield from _parsed(path, rows, choose, most, guessed)
        except csv.Error as error:
            raise InputError(f"{path}:{reader.line_num}: {error}") from None
    finally:
        with suppress(ValueError):  # the file is closed
            lines.detach()  # the caller opened the file, and closes it


def _parsed(
    path: Path, rows: Iterator[tuple[int, list[str]]], choose: Choose, most: int | None, guessed: bool
) -> Iterator[tuple[Table, array[int]]]:
    number, first = next(rows, (0, []))
    if not first:
        raise InputError(f"{path}: the file holds no rows")
    header = [name.strip() for name in first] if is_header(first) else []
    if "" in header:
        raise InputError(f"{path}:{number}: column {header.index('')} has no name (a row index? write the file without it)")
    features, target = choose(len(first), header)
    columns = CsvColumns(path, len(first), header, features, target, guessed)
    rows = rows if header else chain([(number, first)], rows)
    some = next(rows, None)
    if some is None:
        raise InputError(f"{path}: the file holds no rows below its header")
    names = (tuple(header[j] for j in features), None if target is None else header[target]) if header else (None, None)
    while some is not None:
        block = islice(chain([some], rows), None if most is None else max(1, most // len(first)))
        A, y, where = cell_numbers(block, columns)
        yield Table(A, y, *names), where
        some = next(rows, None)


def column_number(path: Path | str, target: Any, width: int, header: list[str], what: str = "target") -> int:
    """The number of the target's column, given by name or by number; the last column if none is given."""
    if width < 2:
        raise InputError(f"{path}: expected at least two columns, features and a target, got {width}")
    if target is None:
        return width - 1
    if isinstance(target, str) and target in header:
        if header.count(target) > 1:
            raise InputError(f"{path}: {header.count(target)} columns are named {target!r}; give the {what}'s number instead")
        return header.index(target)
    if str(target).isdecimal() and len(str(target)) < 10 and int(target) < width:
        return int(target)
    names = f" or a name of the header ({short(', '.join(header), 200)})" if header else ""
    raise InputError(f"{path}: no column {short(str(target))} for the {what}; expected a number from 0 to {width - 1}{names}")


def _arrays(path: Path, kind: str, target: Any, max_bytes: int | None) -> Table:
    y = read_npy(Path(target)) if target is not None and str(target).endswith(".npy") else None
    if kind == ".npz":
        A, own = read_npz(path, None if y is None else len(np.atleast_1d(y)), max_bytes)
        y = own if target is None else y
        if y is None:
            given = "holds no array y" if target is None else f"target={short(str(target))} is not a .npy file"
            raise InputError(f"{path}: {given}; expected an array y in the file, or target=FILE.npy")
        return Table(A, y)
    A = read_npy(path)
    if y is not None:
        return Table(A, y)
    if A.ndim != 2:
        raise InputError(f"{path}: expected a matrix, features and a target in its columns, got shape {A.shape}")
    column = column_number(path, target, A.shape[1], [])
    return Table(np.delete(A, column, axis=1), A[:, column])
