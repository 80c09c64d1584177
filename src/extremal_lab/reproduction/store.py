"""Results on disk, under a key of the task, the package's version and its commit: whole or absent, never stale."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import tempfile
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import extremal
from extremal.checks import InputError
from extremal.files import whole_file
from extremal_lab.reproduction.own import code_of, held_by

DIGEST = 32  # bytes of a SHA-256


@cache
def code() -> str:
    """Version and commit of the library; with changes that are not committed, or without git, a digest of all sources.

    Examples
    --------
    >>> code().split()[0] == extremal.__version__
    True
    """
    folders = Path(extremal.__file__).parent, Path(__file__).parents[1]
    commit = _git(folders[0], "rev-parse", "--short=12", "HEAD") if _git(folders[0], "ls-files", "__init__.py") else ""
    if commit and not any(_git(folder, "status", "--porcelain", ".") for folder in folders):
        return f"{extremal.__version__} {commit}"
    return f"{extremal.__version__} {commit or 'no commit'} sources {_sources(*folders)}"


def _git(folder: Path, *words: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def _sources(*folders: Path) -> str:
    digest = hashlib.sha256()
    for folder in folders:
        for path in sorted(folder.rglob("*.py")):
            digest.update(path.relative_to(folder.parent).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def describe(task: Any) -> str:
    """The task as text: its kind and every field, to the last bit, and a digest of the user's code that it names."""
    if isinstance(task, str):
        return task
    fields = asdict(task)
    own = {"code of": code} if (code := code_of(fields)) else {}
    return json.dumps({"kind": type(task).__name__} | fields | own, sort_keys=True)


class Store:
    """A folder of results. A file is an npz archive of the arrays and the task's text, and its SHA-256 after it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Store(Path(folder) / "runs").get("any task") is None
    True
    """

    def __init__(self, folder: Path):
        self.folder, self.code = folder, code()  # of the first process: workers that start later use the same
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(dir=folder):  # fails now, not after the first run
                pass
        except OSError as error:
            raise InputError(f"{folder}: the results cannot be kept there ({error.strerror})") from None

    def path(self, task: Any) -> Path:
        """The file of the result of a task."""
        key = hashlib.sha256(f"{self.code}\n{describe(task)}".encode()).hexdigest()
        return self.folder / key[:2] / f"{key[2:]}.npz"

    def get(self, task: Any) -> dict[str, np.ndarray] | None:
        """The result, or None if there is none; a damaged file counts as none. Objects of a session have no results here."""
        if held_by(task):
            return None
        path = self.path(task)
        try:
            return _unpacked(path.read_bytes(), describe(task))
        except Exception:  # the error of a damaged archive depends on the position of the damage; the task runs again in any case
            return None

    def put(self, task: Any, result: dict[str, np.ndarray]) -> None:
        """Store a result: write it under another name first, then rename it. Objects of a session are not kept."""
        if held_by(task):
            return
        path = self.path(task)
        path.parent.mkdir(exist_ok=True)
        with whole_file(path) as temporary:
            temporary.write_bytes(_packed(result, describe(task)))


class Unkept:
    """A store that keeps nothing, and writes nothing."""

    def get(self, task: Any) -> None:
        """None."""

    def put(self, task: Any, result: dict[str, np.ndarray]) -> None:
        """Forget the result."""


def _packed(result: dict[str, np.ndarray], text: str) -> bytes:
    archive = io.BytesIO()
    np.savez_compressed(archive, task=np.array(text), **result)  # type: ignore[arg-type]
    return archive.getvalue() + hashlib.sha256(archive.getvalue()).digest()


def _unpacked(held: bytes, text: str) -> dict[str, np.ndarray] | None:
    """The arrays, if every byte is unchanged and they belong to the task."""
    archive, digest = held[:-DIGEST], held[-DIGEST:]
    if hashlib.sha256(archive).digest() != digest:
        return None
    with np.load(io.BytesIO(archive), allow_pickle=False) as arrays:
        result = {name: arrays[name] for name in arrays.files}
    return result if str(result.pop("task")) == text else None
