"""Where the runs of this thread are saved: `checkpoint`, and the log that is active."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from extremal.methods.method import Budget
    from extremal.run.checkpoints.keeper import Keeper
    from extremal.run.checkpoints.log import Log


class Unsaved:
    """The keeper of a run that is not saved."""

    saves = False  # whether there is anything to do between two iterations

    def answer(self) -> Any:
        """The result and the last state, if they are known: here, None."""
        return None

    def __enter__(self) -> None:
        """Signals end the run at once."""

    def __exit__(self, *error: object) -> None: ...

    def due(self) -> bool:
        """False: nothing is written."""
        return False

    def resumed(self, driver: Any) -> bool:
        """False: the run begins."""
        return False

    def look(self, driver: Any, state: Any) -> None:
        """Nothing is written."""

    def ended(self, driver: Any, state: Any) -> None:
        """Nothing is kept."""

    def finish(self, result: Any, state: Any) -> Any:
        """The result as it is."""
        return result


UNSAVED = Unsaved()
_LOG: ContextVar[Log | None] = ContextVar("extremal_checkpoint", default=None)


@contextmanager
def checkpoint(path: str | Path, seconds: float | None = None) -> Iterator[None]:
    """Save all runs inside, one after another, so that the same program goes on from the file after it was killed.

    A run that the file has to its end returns its result at once. The first run without an end goes on from its last state, and
    the later ones begin. Every number is that of a program that was never stopped. This is the way for estimators, which make
    several runs in a fit; `minimize` and `path` have a ``checkpoint`` of their own.

    Parameters
    ----------
    path : path
        The file. The one before it stays beside it, with ``.previous`` added to its name.
    seconds : float, optional
        Least time between two writes. Default: 60, and more if a write takes more than 1 % of the time.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.eye(2), np.array([1.0, 3.0]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "runs.ckpt")
    ...     for attempt in range(2):  # the second one is read from the file
    ...         with ex.checkpoint(file):
    ...             found = [ex.minimize(f, ex.L1Ball(radius)) for radius in (1.0, 2.0)]
    ...     [float(r.value) for r in found], sorted(p.name for p in file.parent.iterdir())
    ([1.25, 0.5], ['runs.ckpt'])
    """
    with saving("checkpoint", path, seconds):
        yield


@contextmanager
def saving(call: str, path: object, seconds: float | None) -> Iterator[None]:
    """Save the runs inside; without a path, where the caller's runs are saved, if they are."""
    if path is None:
        yield
        return
    from extremal.run.checkpoints.log import Log  # only for runs that are saved

    log = Log(call, path, seconds)
    token = _LOG.set(log)
    try:
        yield
        log.close()
    finally:
        _LOG.reset(token)


@contextmanager
def run_inside(call: str, budget: Budget) -> Iterator[Keeper | None]:
    """Give the keeper of the run that begins here, or None if it is not saved.

    Runs inside of this run, such as those of a user's own oracle, are parts of it and have no keeper.
    """
    log = _LOG.get()
    if log is None:
        yield None
        return
    token = _LOG.set(None)
    try:
        yield log.next_run(call, budget)
    finally:
        _LOG.reset(token)
