"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from extremal.checks import InputError


@contextmanager
def whole(path: str | Path) -> Iterator[Path]:
    """A path to write to, beside ``path``, which becomes ``path`` at the end; after an error, what was there before stays.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with whole(Path(folder, "answer.txt")) as temporary:
    ...         _ = temporary.write_text("42")
    ...     Path(folder, "answer.txt").read_text()
    '42'
    """
    path = Path(os.path.realpath(check_out(Path(path))))
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def check_out(path: Path) -> Path:
    """Return ``path`` if a file can be written there, otherwise say why not: before the run, not after it."""
    if not path.parent.is_dir():
        raise InputError(f"{path}: cannot be written, there is no directory {path.parent}")
    if (path.exists() and not path.is_file()) or not os.access(path.parent, os.W_OK):
        raise InputError(f"{path}: cannot be written, it is no file or its directory is read-only")
    return path
