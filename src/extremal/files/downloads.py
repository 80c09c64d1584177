"""Download one file by pooch: into a temporary file, which gets its name after all checks."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import Any

from extremal.checks import InputError

RETRIES = 2  # pooch waits one second before the first retry, two before the second
TIMEOUT = (10.0, 30.0)  # seconds to connect, and seconds of silence after that
PROGRESS_BYTES = 2**14  # bytes between two calls of `progress`

Progress = Callable[[int, int | None], object]


class DownloadError(OSError):
    """A file could not be downloaded: the message names the address and the reason.

    Examples
    --------
    >>> issubclass(DownloadError, OSError)
    True
    """


def need(module: str) -> Any:
    """Import a package that only downloads need, or say how to install it."""
    try:
        return import_module(module)
    except ImportError:
        raise InputError(f"downloading needs {module}: pip install 'extremal[data]'") from None


def download(
    url: str,
    path: Path,
    *,
    sha256: str | None = None,
    check: Callable[[Path], None] | None = None,
    progress: Progress | None = None,
    timeout: tuple[float, float] = TIMEOUT,
) -> Path:
    """Download ``url`` to ``path``, in at most three attempts; a missing directory is created.

    The content must have this ``sha256``, and ``check`` may refuse it by an `InputError`. ``progress`` is called with the bytes
    so far and the total (None if the server does not give it). Any failure raises a `DownloadError` of one sentence.
    """
    pooch = need("pooch")
    if path.is_dir():
        raise DownloadError(f"cannot download {url}: there is a directory of that name ({path})")

    def get(url: str, output: str, _: Any) -> None:
        with ExitStack() as answers:  # closes connections after errors too, unlike pooch
            hooks = {"response": lambda answer, **_: answers.enter_context(answer)}
            pooch.HTTPDownloader(_Bar(progress), chunk_size=PROGRESS_BYTES, timeout=timeout, hooks=hooks)(url, output, None)
        if check is not None:
            check(Path(output))

    known, logger = {path.name: sha256 and f"sha256:{sha256}"}, pooch.get_logger()
    store = pooch.create(path.parent, url, registry=known, urls={path.name: url}, retry_if_failed=RETRIES)
    level = logger.level
    logger.setLevel("ERROR")  # pooch logs its work to stderr
    try:
        return Path(store.fetch(path.name, downloader=get))
    except (OSError, ValueError) as error:
        raise DownloadError(f"cannot download {url}: {_reason(error, path)}") from None
    finally:
        logger.setLevel(level)


def _reason(error: Any, path: Path) -> str:
    """The reason in a few words, from the network, the disk, pooch's checksum or the check of the content."""
    requests = need("requests")
    if isinstance(error, requests.HTTPError):
        return f"the server answered {error.response.status_code} {error.response.reason}".rstrip()
    if isinstance(error, (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError)):
        return f"there is no connection, or it broke off ({type(error).__name__})"
    cause = error.__cause__ or error
    said = cause.strerror if isinstance(cause, OSError) else None
    return f"{said} ({path})" if said else str(error).partition(". Deleted")[0]


class _Bar:
    """A progress bar for pooch, which sets the total, adds the bytes piece by piece, and fills the bar at the end."""

    def __init__(self, progress: Progress | None):
        self.progress, self.done, self.total = progress, 0, 0  # a total of 0 means unknown
        self.reset = self.close = lambda: None

    def update(self, size: int) -> None:
        self.done = min(self.done + size, self.total or self.done + size)
        if self.progress is not None:
            self.progress(self.done, self.total or None)
