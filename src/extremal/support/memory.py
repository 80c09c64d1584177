"""The amount of free memory, by the system and by the limit of a container; room for arrays that would take much of it."""

from __future__ import annotations

import errno
import math
import mmap
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["free_memory", "mapping_of", "room", "scratch_folder", "stored"]

SYSTEM, CONTAINER, PROCESS = Path("/proc/meminfo"), Path("/sys/fs/cgroup"), Path("/proc/self/status")
MOUNTS, OTHER_FOLDER, IN_MEMORY = Path("/proc/self/mounts"), "/var/tmp", ("tmpfs", "ramfs")
SCRATCH = 2**20  # bytes of an array from which on it may be mapped
SCRATCH_SHARE = 32  # what part of the free memory an array may be before it is
SCRATCH_UNTOLD = 2**24  # bytes that it may be where the system does not say what is free


def free_memory() -> int | None:
    """Bytes that can be allocated without swapping, or None if the system does not report them."""
    return min((free for free in (_of_machine(), _of_container(), _of_process()) if free is not None), default=None)


def room(shape: tuple[int, ...], dtype: Any = np.float64) -> np.ndarray:
    """An array of any content: in memory, or mapped from a file without a name where it would be much of the free memory.

    Examples
    --------
    >>> room((2, 3)).shape, mapping_of(room((2, 3)))
    ((2, 3), None)
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size < SCRATCH or np.dtype(dtype).hasobject or not _is_much(size):
        return np.empty(shape, dtype)
    try:
        with tempfile.TemporaryFile(dir=scratch_folder()) as file:
            _reserve(file.fileno(), size)
            return np.frombuffer(mmap.mmap(file.fileno(), size), dtype).reshape(shape)
    except OSError as error:
        where = scratch_folder() if error.errno != errno.ENOENT else "no directory for scratch files"
        raise MemoryError(
            f"{where}: no room for {size / 2**30:.1f} GiB of numbers, which are much of the memory ({error.strerror}); "
            "set TMPDIR to a directory with more"
        ) from None


def scratch_folder() -> str:
    """The directory for scratch files: that for temporary files (TMPDIR), or /var/tmp if the files of the first are in memory.

    Examples
    --------
    >>> Path(scratch_folder()).is_dir()
    True
    """
    own = tempfile.gettempdir()
    other = _is_in_memory(own) and os.access(OTHER_FOLDER, os.W_OK) and not _is_in_memory(OTHER_FOLDER)
    return OTHER_FOLDER if other else own


def _is_in_memory(folder: str) -> bool:
    """Whether the files of a folder take memory (tmpfs), if the system says so."""
    place = Path(folder).resolve()
    try:
        mounts = [line.split()[1:3] for line in MOUNTS.read_text().splitlines()]
    except OSError:
        return False
    above = [(len(at), i, kind) for i, (at, kind) in enumerate(mounts) if place.is_relative_to(at)]  # the last one hides others
    return max(above, default=(0, 0, ""))[2] in IN_MEMORY


def stored(a: np.ndarray) -> np.ndarray:
    """Copy an array into memory from `room`."""
    new = room(a.shape, a.dtype)
    new[...] = a
    return new


def mapping_of(a: np.ndarray) -> mmap.mmap | None:
    """Return the mapping behind an array, or None if the array is in memory."""
    base: object = a
    while isinstance(base, (np.ndarray, memoryview)):
        base = base.obj if isinstance(base, memoryview) else base.base
    return base if isinstance(base, mmap.mmap) else None


def _is_much(size: int) -> bool:
    free = free_memory()
    return size > SCRATCH_UNTOLD if free is None else SCRATCH_SHARE * size >= free


def _reserve(file: int, size: int) -> None:
    """Give a file its size, and take its blocks at once: a failed write to a mapping would end the process."""
    if sys.platform == "linux":
        os.posix_fallocate(file, 0, size)
    else:
        os.truncate(file, size)


def _of_machine() -> int | None:
    try:
        lines = SYSTEM.read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return None


def _of_container() -> int | None:
    try:
        limit, used = (int((CONTAINER / name).read_text()) for name in ("memory.max", "memory.current"))
        stat = dict(line.split() for line in (CONTAINER / "memory.stat").read_text().splitlines())
        return max(0, limit - used + int(stat.get("inactive_file", 0)))  # the page cache can be dropped
    except (OSError, ValueError):  # no control group, or one without a limit ("max")
        return None


def _of_process() -> int | None:
    """The memory that a limit on private memory (ulimit -d) leaves."""
    try:
        import resource  # not available on all systems

        limit = resource.getrlimit(resource.RLIMIT_DATA)[0]
        used = next(int(line.split()[1]) for line in PROCESS.read_text().splitlines() if line.startswith("VmData:"))
    except (ImportError, OSError, StopIteration):
        return None
    return None if limit == resource.RLIM_INFINITY else max(0, limit - 1024 * used)
