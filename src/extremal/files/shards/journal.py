"""The journal of a build: its options and each finished piece, so that an interrupted build can go on.

A line is a checksum and JSON. A line that was cut, and all lines after it, count as not written.
"""

from __future__ import annotations

import json
import os
import stat
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from extremal import __version__
from extremal.files.shards.sources import source_files
from extremal.files.shards.writing import written

JOURNAL = "journal"
JsonRecord = dict[str, Any]  # in types of JSON


def build_record(source: object, options: JsonRecord) -> JsonRecord | None:
    """The identity of a build: the files of the source with sizes and times, and the options; None without files.

    Examples
    --------
    >>> build_record([([[1.0]], [1])], {}) is None
    True
    """
    files = source_files(source)
    if files is None:
        return None
    beside = [Path(str(name)) for name in (options.get("target"),) if str(name).endswith(".npy")]
    try:
        stats = [(os.path.abspath(path), os.stat(path)) for path in [*files, *beside]]
    except (OSError, ValueError):  # the reader gives the reason
        return None
    if not all(stat.S_ISREG(found.st_mode) for _, found in stats):
        return None
    told = [[path, found.st_size, found.st_mtime_ns] for path, found in stats]
    return {"version": __version__, "files": told, "options": {name: str(value) for name, value in options.items()}}


def journal_lines(folder: Path) -> list[tuple[JsonRecord | None, int]]:
    """The whole lines of a journal, and the position at which each ends.

    Examples
    --------
    >>> journal_lines(Path("no such folder"))
    []
    """
    found, end = list[tuple[JsonRecord | None, int]](), 0
    try:
        lines = (folder / JOURNAL).read_bytes().split(b"\n")[:-1]
        for line in lines:
            mark, _, text = line.partition(b" ")
            if mark != b"%08x" % zlib.crc32(text):
                break
            end += len(line) + 1
            found.append((json.loads(text), end))
    except (OSError, ValueError, RecursionError):
        return found
    return found


def can_go_on(folder: Path, record: JsonRecord | None) -> bool:
    """Whether a folder has finished pieces of a build of that record, and holds only files."""
    lines = [] if record is None else journal_lines(folder)
    if len(lines) < 2 or lines[0][0] != record:
        return False
    return all(entry.is_file(follow_symlinks=False) for entry in os.scandir(folder))


class Journal:
    """The journal in the folder of a build; lines are added as pieces are finished.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Journal(Path(folder), {"seed": 0}) as journal:
    ...         journal.add({"piece": 1})
    ...         journal.add({"piece": 2})
    ...     with Journal(Path(folder), {"seed": 0}) as journal:
    ...         journal.replay(lambda item: item["piece"] < 2)
    ...     [item for item, _ in journal_lines(Path(folder))]
    1
    [{'seed': 0}, {'piece': 1}]
    """

    def __init__(self, folder: Path, record: JsonRecord | None):
        self.path = folder / JOURNAL
        self._lines = journal_lines(folder)
        self.pieces = max(0, len(self._lines) - 1)  # recorded by an interrupted build
        with written(self.path):
            self._file = open(self.path, "ab", buffering=0)  # noqa: SIM115
        if not self._lines:
            self.add(record)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def replay(self, take: Callable[[JsonRecord], bool]) -> int:
        """Pass the pieces to ``take`` until it refuses one; forget that piece and all later ones. Return the number taken."""
        taken = 0
        for item, _ in self._lines[1:]:
            if item is None or not take(item):
                break
            taken += 1
        if self._lines:
            self._file.truncate(self._lines[taken][1])
        return taken

    def add(self, item: JsonRecord | None) -> None:
        """Write a line."""
        text = json.dumps(item).encode("ascii")
        left = memoryview(b"%08x %s\n" % (zlib.crc32(text), text))
        with written(self.path):
            while len(left):
                left = left[self._file.write(left) :]
