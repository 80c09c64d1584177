"""Data sets from files (LIBSVM text, CSV, .npz, .npy), and models to files. Whatever is wrong is one `InputError`."""

from __future__ import annotations

import bz2
import csv
import gzip
import lzma
import zipfile
import zlib
from array import array
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.lib.npyio import NpzFile

from extremal import libsvm
from extremal.checks import InputError
from extremal.libsvm import is_number, parse_number, refuse_non_finite, short
from extremal.outputs import whole
from extremal.result import Result

_OPENERS = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_DAMAGE = (EOFError, lzma.LZMAError, zlib.error, zipfile.BadZipFile)
_NO_ARRAY = (ValueError, KeyError, TypeError, NotImplementedError, RuntimeError)  # np.load and load_npz on wrong contents


def load(path: str | Path, target: str | int | Path | None = None) -> tuple[Any, np.ndarray]:
    r"""Read features A and targets y; the file's suffix says how.

    ``.csv``: a first row without any number is a header. ``.npy``: a matrix. ``.npz``: arrays A (or X) and y, or what
    scipy.sparse.save_npz writes, and y. Any other suffix: LIBSVM text. Text may be compressed (.gz, .bz2, .xz). A is a
    CSR array for LIBSVM and sparse .npz, otherwise dense; labels of a CSV that are no numbers stay text.

    Parameters
    ----------
    path : str or Path
        The file.
    target : str, int or Path, optional
        Where y is. CSV: a column's name or 0-based number; .npy: a column's number, or a .npy file that holds y; .npz:
        a .npy file that holds y. Left out, it is the last column, or the array y.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "tiny")
    ...     _ = path.write_text("+1 1:0.5 3:2  # a comment\n-1 2:1\n")
    ...     A, y = load(path)
    >>> A.toarray(), y
    (array([[0.5, 0. , 2. ],
           [0. , 1. , 0. ]]), array([ 1., -1.]))
    """
    path = Path(path)
    packed = path.suffix.lower() in _OPENERS
    kind = (path.with_suffix("") if packed else path).suffix.lower()
    if packed and kind in (".npz", ".npy"):
        raise InputError(f"{path}: a compressed {kind} file is not read; decompress it first")
    A, y = _arrays(path, kind, target) if kind in (".npz", ".npy") else _text(path, kind, target)
    if A.ndim != 2 or 0 in A.shape or A.dtype.kind not in "biuf":
        raise InputError(f"{path}: expected a matrix of real numbers, got shape {A.shape} of dtype {A.dtype}")
    if y.shape != (A.shape[0],):
        raise InputError(f"{path}: expected one target for each of the {A.shape[0]} rows, got targets of shape {y.shape}")
    return A, y


@contextmanager
def _reading(path: Path, also: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Turn what a missing, unreadable or damaged file raises into one sentence."""
    try:
        if path.is_file() and path.stat().st_size == 0:
            raise InputError(f"{path}: the file is empty")
        yield
    except InputError:
        raise
    except _DAMAGE as error:
        raise InputError(f"{path}: the file is truncated or damaged ({_reason(error)})") from None
    except (OSError, *also) as error:
        raise InputError(f"{path}: cannot be read ({_reason(error)})") from None


def _reason(error: BaseException) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text.strip().partition("\n")[0] or type(error).__name__


def _text(path: Path, kind: str, target: Any) -> tuple[Any, np.ndarray]:
    opener: Any = _OPENERS.get(path.suffix.lower(), open)
    if kind == ".csv":
        with _reading(path), opener(path, "rt", encoding="utf-8-sig", errors="backslashreplace", newline="") as lines:
            return _csv(path, lines, target)
    with _reading(path), opener(path, "rb") as file:
        if target is not None:
            raise InputError(f"{path}: LIBSVM text has its targets at the start of each line; leave out target={target!r}")
        return libsvm.read(path, file)


def _csv(path: Path, lines: Iterable[str], target: Any) -> tuple[np.ndarray, np.ndarray]:
    reader = csv.reader(lines, skipinitialspace=True)
    try:
        rows = ((reader.line_num, row) for row in reader if any(field.strip() for field in row))
        number, first = next(rows, (0, []))
        if not first:
            raise InputError(f"{path}: the file holds no rows")
        header = [] if any(map(is_number, first)) else [name.strip() for name in first]
        if "" in header:
            raise InputError(f"{path}:{number}: column {header.index('')} has no name (a row index? write the file without it)")
        column = _column(path, target, len(first), header)
        return _table(path, rows if header else chain([(number, first)], rows), len(first), column)
    except csv.Error as error:
        raise InputError(f"{path}:{reader.line_num}: {error}") from None


def _column(path: Path, target: Any, width: int, header: list[str]) -> int:
    """The number of the target's column: given by name or by number, or the last one."""
    if width < 2:
        raise InputError(f"{path}: expected at least two columns, features and a target, got {width}")
    if target is None:
        return width - 1
    if isinstance(target, str) and target in header:
        if header.count(target) > 1:
            raise InputError(f"{path}: {header.count(target)} columns are named {target!r}; give the target's number instead")
        return header.index(target)
    if str(target).isdecimal() and int(target) < width:
        return int(target)
    names = f" or a name of the header ({short(', '.join(header), 200)})" if header else ""
    raise InputError(f"{path}: no column {str(target)!r} for the target; expected a number from 0 to {width - 1}{names}")


def _table(path: Path, rows: Iterable[tuple[int, list[str]]], width: int, column: int) -> tuple[np.ndarray, np.ndarray]:
    where, values, labels = array("q"), array("d"), []
    for number, row in rows:
        if len(row) != width:
            raise InputError(f"{path}:{number}: expected {width} columns as in the first row, got {len(row)}")
        labels.append(row.pop(column).strip())
        try:
            values.extend(map(parse_number, row))
        except ValueError:
            _no_number(path, number, next(field for field in row if not is_number(field)))
        where.append(number)
    if not where:
        raise InputError(f"{path}: the file holds no rows below its header")
    A = np.frombuffer(values).reshape(len(where), width - 1)
    refuse_non_finite(path, where, A.reshape(-1), np.arange(len(where) + 1) * (width - 1))
    return A, _targets(path, where, labels)


def _targets(path: Path, where: array[int], labels: list[str]) -> np.ndarray:
    """Numbers, or text if no label is a number; a mixture is a mistake."""
    wrong = [i for i, label in enumerate(labels) if not is_number(label)]
    if len(wrong) == len(labels) and all(labels):
        return np.array(labels)
    if wrong:
        i = wrong[0] if len(wrong) < len(labels) else labels.index("")
        _no_number(path, where[i], labels[i])
    y = np.array(labels, dtype=np.float64)
    refuse_non_finite(path, where, y, np.arange(len(y) + 1))
    return y


def _no_number(path: Path, line: int, text: str) -> NoReturn:
    hint = " (a row with numbers in it is not taken for a header)" if line == 1 else ""
    raise InputError(f"{path}:{line}: expected a number, got {short(text)}{hint}")


def _arrays(path: Path, kind: str, target: Any) -> tuple[Any, np.ndarray]:
    A, y = _npz(path) if kind == ".npz" else (_npy(path), None)
    if target is not None and str(target).endswith(".npy"):
        return A, _npy(Path(target))
    if kind == ".npz" and (target is not None or y is None):
        given = "holds no array y" if target is None else f"target={str(target)!r} is no .npy file"
        raise InputError(f"{path}: {given}; expected an array y in the file, or target=FILE.npy")
    if y is not None:
        return A, y
    if A.ndim != 2:
        raise InputError(f"{path}: expected a matrix, features and a target in its columns, got shape {A.shape}")
    column = _column(path, target, A.shape[1], [])
    return np.delete(A, column, axis=1), A[:, column]


def _npy(path: Path) -> np.ndarray:
    with _reading(path, _NO_ARRAY), open(path, "rb") as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def _npz(path: Path) -> tuple[Any, np.ndarray | None]:
    with _reading(path, _NO_ARRAY), open(path, "rb") as file, NpzFile(file, allow_pickle=False) as held:
        y = held.get("y")
        if "format" in held:
            A: Any = sp.load_npz(path)
            if A.format in ("csr", "csc", "bsr"):
                A.check_format(full_check=True)  # a conversion would read what is out of bounds
            return sp.csr_array(A), y
        names = [name for name in ("A", "X") if name in held]
        if len(names) != 1:
            raise InputError(f"{path}: expected an array A or X, got {', '.join(held.files) or 'none'}")
        return held[names[0]], y


def save_model(path: str | Path, result: Result, *, loss: str, set: str, method: str) -> None:
    """Write a model as .npz, whole or not at all.

    It holds x, value, gap, status, converged, n_iter, grads, lmos, loss, set and method; np.load reads it.
    """
    held: dict[str, Any] = {name: getattr(result, name) for name in ("x", "value", "gap", "converged", "n_iter")}
    held |= {"status": result.status.value, "grads": result.calls.grads, "lmos": result.calls.lmos}
    with whole(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, **held, loss=loss, set=set, method=method)
