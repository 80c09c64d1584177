"""Arrays from .npy and .npz files: nothing is unpickled or evaluated, and no header is trusted before its bytes are there."""

from __future__ import annotations

import math
import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp

from extremal.checks import InputError
from extremal.files.reading import damaged, decoding, limit, opened_file, too_large
from extremal.support.display import printable

MAGIC = b"\x93NUMPY"
LONGEST_HEADER = 2**16  # bytes of a header
NUMPY_KINDS = "?biufcSU"
FIELD = r"'{}'\s*:\s*{}\s*[,}}]"
MOST_COLUMNS = 2**31 - 1
LARGEST_SIDE = 2**48  # of one side of an array; another side may be 0
FORMATS: dict[str, tuple[Any, tuple[str, ...]]] = {  # scipy's formats of sparse matrices: the class, the arrays of its indices
    "csr": (sp.csr_array, ("indices", "indptr")),
    "csc": (sp.csc_array, ("indices", "indptr")),
    "bsr": (sp.bsr_array, ("indices", "indptr")),
    "coo": (sp.coo_array, ("row", "col")),
    "dia": (sp.dia_array, ("offsets",)),
}


def read_npy(path: Path) -> np.ndarray:
    """Read the array of a .npy file."""
    with opened_file(path) as file:
        return _array(path, file, path.stat().st_size if path.is_file() else math.inf)


def mapped_npy(path: Path) -> np.ndarray:
    """Map the array of a .npy file without reading it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder, "a.npy"), np.eye(2))
    ...     mapped_npy(Path(folder, "a.npy")).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    with opened_file(path) as file:
        if not path.is_file():
            raise InputError(f"{path}: cannot be read (it is not a file)")
        stream = NpyStream(path, file, path.stat().st_size)
    if not math.prod(stream.shape):
        return np.empty(stream.shape, stream.dtype)
    order = "F" if stream.fortran else "C"
    return np.asarray(np.memmap(path, stream.dtype, "r", stream.start, stream.shape, order))


def _array(path: Path, file: BinaryIO, size: float, name: str = "") -> np.ndarray:
    """Read the array that begins here, in a file or a part of a file of ``size`` bytes."""
    stream = NpyStream(path, file, size, name)
    flat = stream.numbers(math.prod(stream.shape))
    return flat.reshape(stream.shape, order="F" if stream.fortran else "C")


class NpyStream:
    """The array that begins here, in a file or a part of a file of ``size`` bytes, read from its first number on.

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO()
    >>> np.save(file, np.arange(6.0).reshape(3, 2))
    >>> file.seek(0)
    0
    >>> stream = NpyStream(Path("a.npy"), file, 200)
    >>> stream.shape, stream.rows(1), stream.rows(1)
    ((3, 2), array([[0., 1.]]), array([[2., 3.]]))
    """

    def __init__(self, path: Path, file: BinaryIO, size: float, name: str = ""):
        self.path, self.file, self.which = path, file, f"{name}: " if name else ""
        self.dtype, self.fortran, self.shape, self.start = npy_header(path, file, self.which)
        count = math.prod(self.shape)
        if count * self.dtype.itemsize > size - self.start:
            left = size - self.start
            words = f"its header announces {count} numbers of {self.dtype.itemsize} bytes, and {left} bytes follow"
            raise damaged(path, self.which + words)
        if len(self.shape) > 3 or max(self.shape, default=0) > LARGEST_SIDE:
            words = f"expected a matrix of real numbers, got shape {self.shape} of dtype {self.dtype}"
            raise InputError(f"{path}: {self.which}{words}")

    def rows(self, count: int) -> np.ndarray:
        """The next rows of an array that is not in Fortran order."""
        shape = count, *self.shape[1:]
        return self.numbers(math.prod(shape)).reshape(shape)

    def numbers(self, count: int) -> np.ndarray:
        """The next numbers."""
        flat = np.empty(count, self.dtype)
        left: Any = memoryview(flat.view(np.uint8))  # type: ignore[arg-type]
        while len(left):
            with decoding(self.path):
                done = self.file.readinto(left)  # type: ignore[attr-defined]
            if not done:
                raise damaged(self.path, f"{self.which}{len(left)} bytes are missing")
            left = left[done:]
        _check_entries(self.path, flat, self.which)
        return flat.astype(self.dtype.newbyteorder("="), copy=False)


def npy_header(path: Path, file: BinaryIO, which: str = "") -> tuple[np.dtype, bool, tuple[int, ...], int]:
    """Dtype, order, shape, and the bytes of the header itself."""
    with decoding(path):
        start = file.read(8)
        wide = start[6:7] != b"\x01"
        length = int.from_bytes(file.read(4 if wide else 2), "little")
        text = file.read(min(length, LONGEST_HEADER)).decode("latin1")
    if (
        not start.startswith(MAGIC)
        or start[6:7] not in (b"\x01", b"\x02", b"\x03")
        or length > LONGEST_HEADER
        or len(text) < length
    ):
        raise InputError(f"{path}: cannot be read ({which}this is not .npy data, or its header is damaged)")
    found = [re.search(FIELD.format(*field), text) for field in (
        ("descr", r"'([<>=|]?)([a-zA-Z?])(\d*)'"), ("fortran_order", "(True|False)"), ("shape", r"\(([\d\s,L]*)\)"),
    )]  # fmt: skip
    descr, order, shape = found
    if descr is None or order is None or shape is None:
        raise InputError(f"{path}: cannot be read ({which}expected an array of numbers, got the header {text.strip()[:100]!r})")
    return _dtype(path, descr, which), order[1] == "True", _shape(path, shape[1], which), 8 + (4 if wide else 2) + length


def _dtype(path: Path, descr: re.Match[str], which: str) -> np.dtype:
    kind, size = descr[2], descr[3]
    if kind == "O":
        raise InputError(f"{path}: cannot be read ({which}Object arrays cannot be loaded, as they may run any code)")
    try:
        dtype = np.dtype("".join(descr.groups())) if kind in NUMPY_KINDS and len(size) < 9 else None
    except (TypeError, ValueError):
        dtype = None
    if dtype is None or not dtype.itemsize:
        raise InputError(f"{path}: cannot be read ({which}it does not hold numbers, but the type {''.join(descr.groups())!r})")
    return dtype


def _shape(path: Path, text: str, which: str) -> tuple[int, ...]:
    sides = [side.strip().removesuffix("L") for side in text.split(",") if side.strip()]
    if not all(side.isdecimal() and len(side) < 400 for side in sides):
        raise damaged(path, f"{which}its shape reads ({text[:60]})")
    return tuple(map(int, sides))


def _check_entries(path: Path, flat: np.ndarray, which: str) -> None:
    """Refuse bytes that are not a bool or a letter, because numpy would fail on them later."""
    if flat.dtype.kind == "b" and flat.view(np.uint8).max(initial=0) > 1:
        raise damaged(path, f"{which}a bool is neither 0 nor 1")
    if flat.dtype.kind == "U" and flat.view(flat.dtype.str[0] + "u4").max(initial=0) > 0x10FFFF:
        raise damaged(path, f"{which}a character is not valid")


@contextmanager
def npz_arrays(path: Path, max_bytes: int | None = None) -> Iterator[Arrays]:
    """Open the arrays of a .npz file; each is read on request."""
    with opened_file(path) as file:
        with decoding(path):
            archive = zipfile.ZipFile(file)
        yield Arrays(path, archive, limit(max_bytes))


class Arrays:
    """The arrays of an archive by name."""

    def __init__(self, path: Path, archive: zipfile.ZipFile, most: int):
        self.path, self._archive, self._most = path, archive, most
        self._members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}

    @property
    def names(self) -> str:
        """The names of the arrays, in words."""
        return ", ".join(map(printable, self._members)) or "none"

    @property
    def all_names(self) -> tuple[str, ...]:
        """The names of the arrays."""
        return tuple(self._members)

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def get(self, name: str) -> np.ndarray | None:
        """The array of that name, or None."""
        return self._read(self._members[name]) if name in self else None

    def __getitem__(self, name: str) -> np.ndarray:
        found = self.get(name)
        if found is None:
            raise InputError(f"{self.path}: cannot be read (expected an array {name}, got {self.names})")
        return found

    def _read(self, info: zipfile.ZipInfo) -> np.ndarray:
        with self._opened(info) as member:
            return _array(self.path, member, info.file_size, info.filename)

    @contextmanager
    def stream(self, name: str) -> Iterator[NpyStream]:
        """Open an array that is read row by row."""
        if name not in self:
            raise InputError(f"{self.path}: cannot be read (expected an array {name}, got {self.names})")
        info = self._members[name]
        with self._opened(info) as member:
            yield NpyStream(self.path, member, info.file_size, info.filename)

    @contextmanager
    def _opened(self, info: zipfile.ZipInfo) -> Iterator[Any]:
        if info.compress_type != zipfile.ZIP_STORED and info.file_size > self._most:
            raise too_large(self.path, self._most)
        with decoding(self.path):
            member = self._archive.open(info)
        with member:
            yield member
            with decoding(self.path):
                member.read(1)  # the archive compares the checksum at the end


def read_npz(path: Path, rows: int | None = None, max_bytes: int | None = None) -> tuple[Any, np.ndarray | None]:
    """Read features and targets of a .npz file: arrays A (or X) and y, or the form of scipy.sparse.save_npz; y is optional.

    ``rows`` is the required number of rows if the targets come from elsewhere.
    """
    with npz_arrays(path, max_bytes) as held:
        y = held.get("y")
        if "format" in held:
            rows = len(y) if y is not None and y.ndim == 1 else rows
            return _sparse(path, held, rows), y
        names = [name for name in ("A", "X") if name in held]
        if len(names) != 1:
            raise InputError(f"{path}: expected an array A or X, got {held.names}")
        return held[names[0]], y


def _sparse(path: Path, held: Arrays, rows: int | None) -> Any:
    """Read the sparse matrix as rows, after a check of its sides and indices: these decide the memory to allocate."""
    with decoding(path):
        name = str(held["format"].reshape(-1)[0].astype(str))
    if name not in FORMATS:
        raise InputError(f"{path}: cannot be read (expected a sparse matrix as {', '.join(FORMATS)}, got {name!r})")
    shape, data = held["shape"], held["data"]
    make, parts = FORMATS[name]
    indices = tuple(held[part] for part in parts)
    if shape.shape != (2,) or any(part.dtype.kind not in "iu" or part.ndim != 1 for part in (shape, *indices)):
        raise damaged(path, "sides and indices of a sparse matrix must be whole numbers")
    n, d = map(int, shape)
    if not (0 < n and 0 < d <= MOST_COLUMNS):
        raise damaged(path, f"a sparse matrix cannot have {n} rows and {d} columns")
    if rows is not None and rows != n:
        raise InputError(f"{path}: expected one target for each of the {n} rows, got {rows} targets")
    with decoding(path):
        A = make((data, indices) if name == "coo" else (data, *indices), shape=(n, d))
        if name in ("csr", "csc", "bsr"):
            A.check_format(full_check=True)  # a conversion would read out of bounds
        return sp.csr_array(A)
