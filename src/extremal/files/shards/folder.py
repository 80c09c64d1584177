"""The directory of a build: nothing is lost, nothing foreign is touched, and remains of interrupted builds are reused or removed.

A build works in a folder of its own inside the directory, next to a marker that it keeps locked. At the end the files are moved
into the directory, and the manifest is written last of all. A marker without a lock belongs to an interrupted build.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

from extremal.checks import InputError
from extremal.files.outputs import lock_file
from extremal.files.shards.journal import JsonRecord, can_go_on
from extremal.files.shards.manifest import MANIFEST, Manifest, Shard, read_manifest, write_manifest
from extremal.files.shards.writing import written

MARKER = ".extremal-building"
WORK_FOLDER = re.compile(r"\.extremal-work-[0-9a-f]{16}")
SHARD_FILE = re.compile(r"[0-9]{5,18}\.(starts|columns|values|rows|targets|weights)\.npy")
HALF_MANIFEST = re.compile(r"\.extremal-[0-9a-f]{16}-[0-9a-f]{16}\.tmp")  # left by a killed `whole_file`


@contextmanager
def work_folder(directory: Path, overwrite: bool, record: JsonRecord | None = None) -> Iterator[Path]:
    """Give a folder inside the directory, which is created if missing; both are removed at the end if nothing was published.

    The folder of an interrupted build of the same record is used again; remains of others are discarded. After Ctrl-C
    the folder stays if a build of the record can go on, and the message of the `KeyboardInterrupt` says so.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with work_folder(Path(folder, "train"), overwrite=False) as inside:
    ...         print(len(os.listdir(inside.parent)))
    ...     os.listdir(folder)
    2
    []
    """
    made = _make(directory)
    try:
        _refuse_foreign(directory)
        with _claimed(directory):
            _refuse_finished(directory, overwrite)
            folder = _taken_up(directory, record)
            try:
                yield folder
            except KeyboardInterrupt:
                words = "the same call or command resumes it"
                if not can_go_on(folder, record):
                    _clear(directory)
                    words = "its work was discarded"
                raise KeyboardInterrupt(f"{directory}: the build was interrupted; {words}") from None
            except BaseException:
                _clear(directory)
                raise
            _clear(directory)
    finally:
        if made:
            with suppress(OSError):
                directory.rmdir()  # if it is empty


def _taken_up(directory: Path, record: JsonRecord | None) -> Path:
    """The folder of an interrupted build that can go on, with all its shards; otherwise a new one. Other folders are removed."""
    folders = [directory / name for name in os.listdir(directory) if WORK_FOLDER.fullmatch(name)]
    folder = next((folder for folder in folders if can_go_on(folder, record)), None)
    if folder is not None and not (directory / MANIFEST).exists():
        for name in _shard_files(directory):
            if not (folder / name).exists():  # it was published already
                with written(directory / name):
                    os.replace(directory / name, folder / name)
    left = _clear(directory, folder)
    if folder is None:
        if left:
            discarded(directory)
        folder = directory / f".extremal-work-{secrets.token_hex(8)}"
        with written(folder):
            folder.mkdir()
    return folder


def discarded(directory: Path) -> None:
    """Log that remains of an interrupted build were discarded."""
    logging.getLogger("extremal").warning("%s: the remains of an interrupted build were discarded", directory)


def publish(directory: Path, folder: Path, manifest: Manifest) -> None:
    """Move the shards of a build to their place, replacing those of an earlier build, and write the manifest."""
    with written(directory / MANIFEST):
        (directory / MANIFEST).unlink(missing_ok=True)
    _clear_shards(directory)
    for shard in manifest.shards:
        for array in shard.files:
            path, last = shard.path(directory, array), final(shard, folder, array)
            with written(path):
                os.replace(last if last.exists() else shard.path(folder, array), path)
    with suppress(OSError):  # where directories cannot be opened
        _synced(directory)
    write_manifest(directory, manifest)


def final(shard: Shard, folder: Path, array: str) -> Path:
    """The file of an array that was written again, with the final numbers of labels."""
    return shard.path(folder, f"final-{array}")


def _synced(directory: Path) -> None:
    """Write the names to the disk before the manifest mentions them."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _make(directory: Path) -> bool:
    """Make the directory; return whether it was not there."""
    with written(directory):
        if directory.is_dir():
            return False
        if directory.exists() or not directory.parent.is_dir():
            what = "it is a file" if directory.exists() else f"there is no directory {directory.parent}"
            raise InputError(f"{directory}: cannot be written, {what}")
        directory.mkdir()
    return True


def _refuse_foreign(directory: Path) -> None:
    """Refuse a directory that holds files of another origin than a build."""
    with written(directory):
        names = sorted(os.listdir(directory))
    built = MANIFEST in names or MARKER in names
    for name in names:
        path = directory / name
        if WORK_FOLDER.fullmatch(name):
            known = path.is_dir() and not path.is_symlink()
        else:
            file = name in (MANIFEST, MARKER) or HALF_MANIFEST.fullmatch(name) or (built and SHARD_FILE.fullmatch(name))
            known = bool(file) and path.is_file() and not (name == MARKER and path.is_symlink())
        if not known:
            raise InputError(f"{directory}: holds something else ({name!r}); give a directory that is empty or new")


def _refuse_finished(directory: Path, overwrite: bool) -> None:
    if not (directory / MANIFEST).exists():
        return
    held = read_manifest(directory)
    if not overwrite:
        words = f"holds shards of {held.n} rows already; give another directory, or overwrite=True (--overwrite)"
        raise InputError(f"{directory}: {words}")


@contextmanager
def _claimed(directory: Path) -> Iterator[None]:
    """Hold the lock of the marker, which stays behind with the remains of a build."""
    marker, handle = directory / MARKER, None
    with written(marker):
        while handle is None:
            with suppress(FileExistsError):
                os.close(os.open(marker, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666))
            with suppress(FileNotFoundError):  # its former holder has removed it
                handle = lock_file(marker)
                if handle is None:
                    break
    if handle is None and find_spec("fcntl") is not None:
        raise InputError(f"{directory}: another build is at work there")
    try:
        yield
    finally:
        with suppress(OSError):
            if not any(map(WORK_FOLDER.fullmatch, os.listdir(directory))):
                marker.unlink()
        if handle is not None:
            os.close(handle)


def _clear(directory: Path, kept: Path | None = None) -> int:
    """Remove all work folders except ``kept``, and shards without a manifest; return how many there were."""
    names = [name for name in os.listdir(directory) if WORK_FOLDER.fullmatch(name) and directory / name != kept]
    for name in names:
        with suppress(OSError):
            shutil.rmtree(directory / name)
    return len(names) + (0 if (directory / MANIFEST).exists() else _clear_shards(directory))


def _clear_shards(directory: Path) -> int:
    names = _shard_files(directory)
    for name in names:
        with written(directory / name):
            (directory / name).unlink()
    return len(names)


def _shard_files(directory: Path) -> list[str]:
    return [name for name in os.listdir(directory) if SHARD_FILE.fullmatch(name)]
