"""Data sets by name: find them, fetch them, and check their content.

These are the paper's data sets and related ones, as LIBSVM text. The search begins in the directory that the environment
variable EXTREMAL_DATA names, and goes on in the user's data directory, where downloads go.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from extremal import checks
from extremal.checks import InputError
from extremal.files import tables
from extremal.files.downloads import TIMEOUT, DownloadError, Progress, download, need

__all__ = ["CATALOGUE", "NAMES", "DataSet", "DownloadError", "Table2Row", "fetch", "find", "load", "table2"]

PUBLIC = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary"
DATA_VARIABLE = "EXTREMAL_DATA"
SUFFIXES = ("", ".xz", ".bz2", ".gz")
BY_HAND = f"download it yourself and set {DATA_VARIABLE} to its directory"


@dataclass(frozen=True)
class DataSet:
    """Facts about a data set: its size, its content in numbers, and the SHA-256 of the public file if known.

    It has n rows and d features. ``labels`` are those of the file, the larger one for the positive class. ``positives`` is the
    number of positive rows, ``nonzeros`` the number of entries that are not 0, and ``total`` their sum.

    Examples
    --------
    >>> CATALOGUE["w8a"].n, CATALOGUE["w8a"].d, CATALOGUE["w8a"].positives
    (49749, 300, 1479)
    """

    name: str
    n: int
    d: int
    labels: tuple[float, float]
    positives: int
    nonzeros: int
    total: float
    sha256: str | None
    note: str

    @property
    def url(self) -> str:
        """The address of the public file."""
        return f"{PUBLIC}/{self.name}"


_SIGNS, _REBUILT = (-1.0, 1.0), None  # rebuilt from UCI's files: the content is known, the public file's SHA-256 is not
CATALOGUE = {entry.name: entry for entry in (
    DataSet("a8a", 22696, 123, _SIGNS, 5506, 314815, 314815.0,
            "d08a37b3fadd4bd3c8b3fc30bdc93b54d7c0f371265c90cbfb931a7efe97cd28",
            "census income, 0/1; a subset of a9a, of the size that the paper's Table 2 gives for a9a"),
    DataSet("a8a.t", 9865, 123, _SIGNS, 2335, 136777, 136777.0,
            "fc16c3580048add99056ee4d14105c93f0af63fb8ff6a78f3d66bf5d87c13cd3",
            "the rest of a9a; its file lacks the last column"),
    DataSet("a9a", 32561, 123, _SIGNS, 7841, 451592, 451592.0,
            "f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906",
            "census income, 0/1; a8a and a8a.t together"),
    DataSet("a9a.t", 16281, 123, _SIGNS, 3846, 225731, 225731.0,
            "1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9",
            "the test set of a9a; its file lacks the last column"),
    DataSet("w8a", 49749, 300, _SIGNS, 1479, 579586, 579586.0,
            "6a9fa8fd5f524303240a5db07d4b3d4a51e8b7b4b20a914105d8e3e8c81640f2",
            "web pages, 0/1; 3 % positive, and 8 % of the rows are empty"),
    DataSet("mushrooms", 8124, 112, (1.0, 2.0), 4208, 170604, 170604.0,
            "f39a4eb628dc61a7d43760815b061c9e497aa728ce1ad8bde57a09ef6043b538",
            "0/1, 21 ones in every row; linearly separable"),
    DataSet("madelon", 2000, 500, _SIGNS, 1000, 999999, 488083511.0, _REBUILT,
            "dense integers about 480, so L is huge: scale them"),
    DataSet("madelon.t", 600, 500, _SIGNS, 300, 300000, 146395833.0, _REBUILT,
            "the test set of madelon"),
    DataSet("breast-cancer", 683, 10, (2.0, 4.0), 239, 6830, 735419268.0, _REBUILT,
            "feature 1 is the patient's id, up to 1.3e7: use breast-cancer_scale"),
    DataSet("breast-cancer_scale", 683, 10, (2.0, 4.0), 239, 6830, -3791.963304, _REBUILT,
            "every column scaled to [-1, 1], that of the patient's id too"),
)}  # fmt: skip
NAMES = tuple(CATALOGUE)


def load(name: str, *, download: bool = True) -> tuple[sp.csr_array, np.ndarray]:
    """Load a data set: A as CSR in float64 with all d columns, y as -1 and +1 (the larger label of the file is +1).

    A file that differs from the `CATALOGUE` (rows, columns, labels, positives, non-zeros, sum) is refused, wherever it comes
    from. A missing data set is downloaded; with ``download=False`` it is an `InputError`. The cost is one reading of the file:
    half a second for the largest.

    Examples
    --------
    >>> from extremal import datasets
    >>> datasets.NAMES[:6]
    ('a8a', 'a8a.t', 'a9a', 'a9a.t', 'w8a', 'mushrooms')
    >>> A, y = datasets.load("mushrooms")  # doctest: +SKIP
    >>> A.shape == (datasets.CATALOGUE["mushrooms"].n, datasets.CATALOGUE["mushrooms"].d)  # doctest: +SKIP
    True
    """
    entry = _entry(name)
    path = fetch(name) if checks.flag("load", "download", download) else find(name)
    if path is None:
        raise InputError(f"{name} is not here: fetch it (extremal data fetch {name}), or {BY_HAND} ({entry.url})")
    return _read(entry, path)


def find(name: str) -> Path | None:
    """Find the file of a data set, plain or compressed (.xz, .bz2, .gz): in EXTREMAL_DATA, then in the user's directory.

    Examples
    --------
    >>> import tempfile
    >>> from unittest import mock
    >>> with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, EXTREMAL_DATA=folder):
    ...     _ = Path(folder, "w8a.xz").write_bytes(b"")
    ...     print(find("w8a").name)
    w8a.xz
    """
    _entry(name)
    places = (folder / (name + suffix) for folder in _folders() for suffix in SUFFIXES)
    return next((path for path in places if path.is_file()), None)


def fetch(name: str, *, progress: Progress | None = None, base_url: str = PUBLIC, timeout: tuple[float, float] = TIMEOUT) -> Path:
    """Return the file of a data set, downloaded into the user's data directory if it is not on this machine.

    `extremal.files.downloads.download` makes three attempts. The file gets its name only after a check of its SHA-256 or, if
    that is not known, of its content. On failure, a `DownloadError` names the address, the reason, and how to download by hand.

    ``progress`` is called with the bytes so far and the total, or None if the total is not known. ``base_url`` is the directory
    that holds the files, LIBSVM's or a mirror's. ``timeout`` has the seconds to wait for a connection, and for the next bytes.

    Examples
    --------
    >>> fetch("w8a", progress=lambda done, total: None)  # doctest: +SKIP
    >>> fetch("mushroms")
    Traceback (most recent call last):
        ...
    extremal.checks.InputError: unknown data set 'mushroms'; did you mean 'mushrooms'? Accepted: a8a, a8a.t, a9a, a9a.t, ...
    """
    entry = _entry(name)
    if (found := find(name)) is not None:
        return found
    check = None if entry.sha256 else partial(_check_download, entry)
    url = f"{base_url.rstrip('/')}/{name}"
    try:
        return download(url, user_dir() / name, sha256=entry.sha256, check=check, progress=progress, timeout=timeout)
    except DownloadError as error:
        raise DownloadError(f"{error}; {BY_HAND}") from None


def user_dir() -> Path:
    """The user's data directory, where downloads go: platformdirs' answer for this system."""
    return Path(need("platformdirs").user_data_dir("extremal"))


def _entry(name: str) -> DataSet:
    return CATALOGUE[checks.one_of("data set", name, CATALOGUE)]


def _folders() -> Iterator[Path]:
    """The directories to search. Without platformdirs nothing was ever downloaded, so there is no second directory."""
    if given := os.environ.get(DATA_VARIABLE):
        if not Path(given).is_dir():
            raise InputError(f"the environment variable {DATA_VARIABLE} must name a directory with data sets, got {given!r}")
        yield Path(given)
    if find_spec("platformdirs") is not None:
        yield user_dir()


def _read(entry: DataSet, path: Path) -> tuple[sp.csr_array, np.ndarray]:
    A, y = tables.load_table(path)
    for what, expected, got in _facts(entry, A, y):
        if expected != got:
            raise InputError(f"{path}: not the content of {entry.name}: expected {what} {expected}, got {got}")
    A = sp.csr_array((A.data, A.indices, A.indptr), shape=(entry.n, entry.d))  # the last column may be empty
    return A, np.where(y == entry.labels[1], 1.0, -1.0)


def _facts(entry: DataSet, A: Any, y: np.ndarray) -> Iterator[tuple[str, object, object]]:
    """The checks of a file: (name, expected, got). They cost O(nnz); the sum may differ by a share of 1e-4, for rounding."""
    yield "rows", entry.n, A.shape[0]
    yield "columns, at most", entry.d, max(entry.d, A.shape[1])
    yield "labels", entry.labels, tuple(np.unique(y).tolist())
    yield "positive rows", entry.positives, int((y == entry.labels[1]).sum())
    yield "non-zeros", entry.nonzeros, int(A.count_nonzero())
    total = float(A.data.sum())
    yield "the sum", entry.total, entry.total if math.isclose(entry.total, total, rel_tol=1e-4) else total


def _check_download(entry: DataSet, path: Path) -> None:
    try:
        _read(entry, path)
    except InputError as error:  # without the name of a temporary file
        raise InputError(f"the content is not that of {entry.name} ({str(error).removeprefix(str(path)).lstrip(': ')})") from None


@dataclass(frozen=True)
class Table2Row:
    """A row of the paper's Table 2: the paper's numbers, and those of the data; None if the data set is not here.

    Examples
    --------
    >>> Table2Row("madelon", 500, 2000, "madelon", remark="not here").n is None
    True
    """

    paper: str
    paper_d: int
    paper_n: int
    name: str
    d: int | None = None
    n: int | None = None
    density: float | None = None
    positives: float | None = None
    remark: str = ""


PAPER = (
    ("a9a", 123, 22696, "a9a"), ("breast cancer", 10, 683, "breast-cancer_scale"), ("madelon", 500, 2000, "madelon"),
    ("mushrooms", 112, 8124, "mushrooms"), ("w8a", 300, 49749, "w8a"),
)  # fmt: skip


def table2() -> list[Table2Row]:
    """The paper's Table 2, measured: d, n, the share of non-zeros and of positive labels of each data set that is here.

    The function downloads nothing. The remark on a9a says "verified" only after a comparison of a9a with a8a and a8a.t.

    Examples
    --------
    >>> [(row.paper, row.paper_d, row.paper_n) for row in table2()][:2]
    [('a9a', 123, 22696), ('breast cancer', 10, 683)]
    """
    return [_row(*said) for said in PAPER]


def _row(paper: str, paper_d: int, paper_n: int, name: str) -> Table2Row:
    remark = _remark() if name == "a9a" else ""
    if find(name) is None:
        return Table2Row(paper, paper_d, paper_n, name, remark=f"not here; {remark}".removesuffix("; "))
    A, y = load(name, download=False)
    n, d = CATALOGUE[name].n, CATALOGUE[name].d  # which `load` has checked
    density, positives = float(A.count_nonzero() / (n * d)), float((y > 0).mean())
    return Table2Row(paper, paper_d, paper_n, name, d, n, density, positives, remark)


def _remark() -> str:
    """The relation of the paper's a9a to the public one, as far as the files on this machine show it."""
    missing = [name for name in ("a9a", "a8a", "a8a.t") if find(name) is None]
    if missing:
        compared = f"not compared, missing {', '.join(missing)}"
    else:
        compared = "verified" if _rows("a9a") == _rows("a8a") + _rows("a8a.t") else "not true of the files that are here"
    sizes = f"the paper's n = {CATALOGUE['a8a'].n} is the size of a8a; a9a has {CATALOGUE['a9a'].n} rows"
    return f"{sizes} (= a8a + a8a.t as multisets: {compared})"


def _rows(name: str) -> Counter[tuple[float, bytes, bytes]]:
    """The rows of a data set with their labels, as a multiset."""
    A, y = load(name, download=False)
    indices, starts = A.indices.astype(np.int64), A.indptr
    spans = zip(y.tolist(), starts[:-1], starts[1:], strict=True)
    return Counter((label, indices[i:j].tobytes(), A.data[i:j].tobytes()) for label, i, j in spans)
