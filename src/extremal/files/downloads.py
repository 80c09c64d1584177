"""One file from the network: resumed where it broke off, tried again where that may help, whole or not there at all."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from time import sleep
from types import ModuleType
from typing import Any

from extremal.checks import InputError
from extremal.files.outputs import is_open, locked

WAITS = (1.0, 3.0)  # seconds between attempts, so there are three
TIMEOUT = (10.0, 30.0)  # seconds to connect, and seconds of silence after that
CHUNK = 2**14  # bytes; what is lost of a download that stalls is less

Progress = Callable[[int, int | None], object]


class DownloadError(OSError):
    """A file could not be downloaded: the message names the address and the reason.

    Examples
    --------
    >>> issubclass(DownloadError, OSError)
    True
    """


class _MayPass(Exception):
    """A failure that another attempt may not meet."""


def need(module: str) -> ModuleType:
    """Import a package that only downloads need, or say how to get it."""
    try:
        return import_module(module)
    except ImportError:
        raise InputError(f"downloading needs {module.partition('.')[0]}: pip install 'extremal[data]'") from None


def download(
    url: str,
    path: Path,
    *,
    sha256: str | None = None,
    check: Callable[[Path], None] | None = None,
    progress: Progress | None = None,
    timeout: tuple[float, float] = TIMEOUT,
) -> Path:
    """Download ``url`` to ``path``, which appears by a rename only after all checks: whatever has that name is whole.

    What came of an attempt stays beside it as ``.part``, also after the last one, and the next asks for the rest only
    (HTTP Range). Refused and lost connections, timeouts, truncated bodies and answers 5xx are tried three times, any other
    answer once. Whoever downloads the same file at the same time has a part of its own.

    Parameters
    ----------
    url, path : str, Path
        From where, and to where. The directory is made if need be.
    sha256 : str, optional
        What the file's SHA-256 must be.
    check : callable, optional
        Called with the downloaded file before the rename; an `InputError` refuses it.
    progress : callable, optional
        Called with the bytes that are there and those there will be (None if the server does not say) after each piece.
        The first goes back only if the server does not resume.
    timeout : (float, float)
        Seconds to wait for a connection, and for the next bytes.

    Raises
    ------
    DownloadError
        Whatever prevented it, in a sentence. A file that fails a check is removed, with its part.
    """
    pooch = need("pooch")
    get = _Resumable(path.with_name(path.name + ".part"), sha256, check, progress, timeout)
    try:
        with _quiet(pooch.get_logger()):
            pooch.retrieve(url, sha256 and f"sha256:{sha256}", fname=path.name, path=path.parent, downloader=get)
    except DownloadError:
        raise
    except OSError as error:  # of the disk: those of the network have become others
        raise _failed(url, f"{error.strerror or error} ({path})") from None
    if not path.is_file():
        raise _failed(url, f"{path} is there, and no file")
    return path


def _failed(url: str, reason: object) -> DownloadError:
    return DownloadError(f"cannot download {url}: {reason}")


@contextmanager
def _quiet(logger: Any) -> Iterator[None]:
    """Pooch tells on stderr what it does; we say it ourselves, or leave it to the caller."""
    level = logger.level
    logger.setLevel("ERROR")
    try:
        yield
    finally:
        logger.setLevel(level)


@dataclass(frozen=True)
class _Resumable:
    """What pooch calls a downloader: writes the body of ``url`` to a temporary file, which pooch renames or removes."""

    part: Path
    sha256: str | None
    check: Callable[[Path], None] | None
    progress: Progress | None
    timeout: tuple[float, float]

    def __call__(self, url: str, output: str, _: object = None) -> None:
        whole = Path(output)
        with _held(self.part) as ours:
            self._attempts(url, self.part if ours else whole)
            if ours:
                os.replace(self.part, whole)
        self._verify(url, whole)

    def _attempts(self, url: str, target: Path) -> None:
        for wait in (*WAITS, None):
            try:
                self._attempt(url, target)
                return
            except _MayPass as error:
                if wait is None:
                    raise _failed(url, f"{error}, at the last of {len(WAITS) + 1} attempts") from None
                sleep(wait)

    def _attempt(self, url: str, target: Path) -> None:
        requests, urllib3 = need("requests"), need("urllib3")
        there = target.stat().st_size
        headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={there}-"} if there else {})
        try:
            with requests.get(url, headers=headers, stream=True, timeout=self.timeout) as answer:
                start = _start(url, answer, there)
                if start is not None:
                    return self._save(answer, target, start)
        except (requests.ConnectionError, requests.Timeout, urllib3.exceptions.HTTPError) as error:
            raise _MayPass(_reason(error, self.timeout)) from None
        except requests.RequestException as error:
            raise _failed(url, error) from None
        os.truncate(target, 0)
        return self._attempt(url, target)  # asks for the whole, so once

    def _save(self, answer: Any, target: Path, start: int) -> None:
        length = answer.headers.get("Content-Length", "")
        total = start + int(length) if length.isdecimal() else None
        done = start
        with open(target, "ab" if start else "wb") as file:
            for piece in answer.raw.stream(CHUNK, decode_content=False):
                file.write(piece)
                done += len(piece)
                if self.progress is not None:
                    self.progress(done, total)
            file.flush()
            os.fsync(file.fileno())
        if total is not None and done != total:  # newer versions of urllib3 raise, older ones say nothing
            raise _MayPass(f"the connection was closed after {done} of {total} bytes")

    def _verify(self, url: str, path: Path) -> None:
        got = need("pooch").file_hash(str(path))
        if self.sha256 not in (None, got):
            raise _failed(url, f"the sha256 of what came is {got}, expected {self.sha256}")
        try:
            if self.check is not None:
                self.check(path)
        except InputError as error:
            raise _failed(url, error) from None


def _start(url: str, answer: Any, there: int) -> int | None:
    """Where the body begins in the file, None if the whole must be asked for; refuses every other answer."""
    status, said = answer.status_code, f"the server answered {answer.status_code} {answer.reason}".rstrip()
    if status == 200:
        return 0
    if status == 206 and there and answer.headers.get("Content-Range", "").startswith(f"bytes {there}-"):
        return there
    if status in (206, 416) and there:
        return None
    if status >= 500:
        raise _MayPass(said)
    raise _failed(url, said)


def _reason(error: BaseException, timeout: tuple[float, float]) -> str:
    """What is at the bottom of a chain of network errors, in a few words."""
    requests, urllib3 = need("requests"), need("urllib3")
    chain = [error]
    while (inner := chain[-1].__cause__ or chain[-1].__context__) is not None:
        chain.append(inner)
    if isinstance(error, requests.ConnectTimeout):
        return f"no connection within {timeout[0]:g} s"
    if any(isinstance(e, (TimeoutError, urllib3.exceptions.ReadTimeoutError)) for e in chain):
        return f"nothing came for {timeout[1]:g} s"
    if any(isinstance(e, urllib3.exceptions.IncompleteRead) for e in chain):
        return "the connection was closed before all had come"
    system = next((e.strerror for e in reversed(chain) if isinstance(e, OSError) and e.strerror), None)
    return str(system or chain[-1] or type(chain[-1]).__name__)


@contextmanager
def _held(part: Path) -> Iterator[bool]:
    """Make the partial file and hold its lock; False, at once, if another holds it or there are no locks here."""
    handle = locked(part, os.O_RDWR | os.O_CREAT)
    try:
        yield handle is not None
    finally:
        if handle is not None:
            if is_open(handle, part) and os.fstat(handle).st_size == 0:
                part.unlink()
            os.close(handle)  # ends the lock
