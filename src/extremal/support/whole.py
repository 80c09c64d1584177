"""Files that are whole or absent: written beside their place under an unpredictable name, and renamed at the end."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

__all__ = ["WriteError", "is_open", "lock_file", "written_whole"]


class WriteError(OSError):
    """A file could not be written, for example because the disk is full: the message names the file and the reason.

    Examples
    --------
    >>> print(WriteError(28, "No space left on device", "model.npz"))
    model.npz: cannot be written (No space left on device)
    """

    def __str__(self) -> str:
        return f"{self.filename}: cannot be written ({self.strerror})"


@contextmanager
def written_whole(path: str | Path) -> Iterator[Path]:
    """Give a temporary path beside ``path`` that becomes ``path`` at the end; after an error the previous file stays.

    The temporary file is always a new file (O_EXCL) with an unpredictable name. The new file and its directory are on the disk
    when the context ends. If a killed process leaves a temporary file behind, the next writer of the same ``path`` removes it. A
    `WriteError` names ``path`` and the reason of the system, such as a full disk.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with written_whole(Path(folder, "answer.txt")) as temporary:
    ...         _ = temporary.write_text("42")
    ...     Path(folder, "answer.txt").read_text()
    '42'
    """
    target = Path(os.path.realpath(path))
    try:
        temporary, handle = _temporary(target)
        try:
            yield temporary
            with open(temporary, "rb+") as file:
                os.fsync(file.fileno())
            with suppress(OSError):
                os.chmod(temporary, target.stat().st_mode & 0o7777)  # the mode of the file that is replaced
            os.replace(temporary, target)
            _to_disk(target.parent)
        finally:
            temporary.unlink(missing_ok=True)
            if handle is not None:
                os.close(handle)  # ends the lock
    except OSError as error:
        if type(error).__module__ != "builtins":  # for example the error of a download, which has its own message
            raise
        raise WriteError(error.errno, error.strerror or str(error), str(path)) from error


def _to_disk(directory: Path) -> None:
    """Write the entries of a directory to the disk, on systems that open directories."""
    with suppress(OSError):
        handle = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _temporary(target: Path) -> tuple[Path, int | None]:
    """Make a new file beside the target, locked if the system has locks; remove files whose locks are free."""
    mark = f".extremal-{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:16]}-"
    for name in os.listdir(target.parent):
        if name.startswith(mark) and name.endswith(".tmp"):
            with suppress(OSError):
                _remove(target.with_name(name))
    while True:
        temporary = target.with_name(f"{mark}{secrets.token_hex(8)}.tmp")
        os.close(os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666))
        with suppress(FileNotFoundError):  # another process took it for a leftover before it was locked
            return temporary, lock_file(temporary)


def _remove(leftover: Path) -> None:
    handle = lock_file(leftover)
    if handle is not None:
        leftover.unlink()
        os.close(handle)


def lock_file(path: Path) -> int | None:
    """Open a file and lock it until the handle closes; None, without waiting, if the lock is taken or there are no locks."""
    try:
        import fcntl
    except ImportError:  # Windows
        return None
    while True:
        handle = os.open(path, os.O_RDWR)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            return None
        if is_open(handle, path):
            return handle
        os.close(handle)  # its former holder has renamed or removed it meanwhile: do not touch it


def is_open(handle: int, path: Path) -> bool:
    """Whether the path still names this open file."""
    try:
        return os.path.samestat(os.fstat(handle), os.stat(path))
    except FileNotFoundError:
        return False
