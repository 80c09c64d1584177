"""Map the files of shards without reading them, or read them; files that differ from the manifest are refused."""

from __future__ import annotations

import math
import mmap
import os
from pathlib import Path
from typing import BinaryIO

import numpy as np

from extremal.checks import InputError
from extremal.files.array_files import npy_header
from extremal.files.reading import damaged, reading
from extremal.files.shards.manifest import FileMark, Manifest


def open_shard(directory: Path, manifest: Manifest, i: int, keep: bool = False) -> dict[str, np.ndarray]:
    """The arrays of shard i by name, mapped and read-only; sizes and headers are checked, the contents are not read.

    With ``keep`` the arrays are read into memory.

    Raises
    ------
    InputError
        If a file is missing, truncated, or different from the manifest; the message names the file.

    Examples
    --------
    >>> import tempfile
    >>> from extremal.files.shards.manifest import Shard, TargetFacts
    >>> facts = TargetFacts(0.0, 1.0, True, (0.0, 1.0))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder, "00000.rows.npy"), np.eye(2))
    ...     np.save(Path(folder, "00000.targets.npy"), np.arange(2.0))
    ...     shard = Shard("00000", 2, 4, {"rows": FileMark(160, 1), "targets": FileMark(144, 2)})
    ...     manifest = Manifest("dense", 2, 2, 4, "float64", facts, None, None, True, 0, (shard,))
    ...     open_shard(Path(folder), manifest, 0)["rows"]
    array([[1., 0.],
           [0., 1.]])
    """
    shard = manifest.shards[i]
    layout = manifest.layout(shard.n, shard.nnz)
    return {array: _opened(shard.path(Path(directory), array), shard.files[array], *layout[array], keep) for array in layout}


def check_sizes(directory: Path, manifest: Manifest) -> None:
    """Refuse a directory with a file that is missing or has another size than in the manifest, without opening a file."""
    for shard in manifest.shards:
        for array, mark in shard.files.items():
            path = shard.path(directory, array)
            with reading(path):
                check_size(path, mark, os.stat(path).st_size)


def check_size(path: Path, mark: FileMark, size: int) -> None:
    """Refuse a file of another size than in the manifest."""
    if size != mark.bytes:
        raise damaged(path, f"it has {size} bytes, and the manifest says {mark.bytes}")


def _opened(path: Path, mark: FileMark, dtype: np.dtype, shape: tuple[int, ...], keep: bool) -> np.ndarray:
    """Map or read the array of a file of that size, dtype and shape."""
    if path.exists() and not path.is_file():
        raise InputError(f"{path}: cannot be read (it is not a file)")  # opening a pipe would wait
    with reading(path), open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        check_size(path, mark, size)
        start = _start(path, file, dtype, shape)
        if size != start + dtype.itemsize * math.prod(shape):
            raise damaged(path, f"its header has {start} bytes, and the manifest leaves another number for it")
        if keep:
            return _read(path, file, start, dtype, shape)
        mapping = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
    return np.frombuffer(mapping, dtype, math.prod(shape), start if math.prod(shape) else 0).reshape(shape)


def _read(path: Path, file: BinaryIO, start: int, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """Read an array; a file that was cut in the meantime is refused, where a mapping of it would end the process."""
    file.seek(start)
    a = np.fromfile(file, dtype, math.prod(shape))
    if a.size < math.prod(shape):
        raise damaged(path, "it was cut while it was read")
    return a.reshape(shape)


def _start(path: Path, file: BinaryIO, dtype: np.dtype, shape: tuple[int, ...]) -> int:
    """The position of the first number of an array in C order."""
    found, fortran, sides, start = npy_header(path, file)
    if (found, sides) != (dtype, shape) or (fortran and len(shape) > 1):
        order = " in Fortran order" if fortran else ""
        raise InputError(
            f"{path}: expected shape {shape} of dtype {dtype}, as the manifest says, got shape {sides} of dtype {found}{order}"
        )
    return start
