"""The runs of a call or a program, one after another, in one file: those that have ended, and the one that is going on."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from extremal import checks
from extremal.checks import InputError
from extremal.methods.method import Budget
from extremal.run.checkpoints import container
from extremal.run.checkpoints.codec import StateReader, StateWriter
from extremal.support.versions import known_version

if TYPE_CHECKING:
    from extremal.run.checkpoints.keeper import Keeper

SECONDS = 60.0  # least time between two writes, unless the caller says otherwise,
SHARE = 0.01  # and the largest share of the time that writes take then
LAST_STATES = 3  # a path starts a run from so many runs before it
KIND = "runs"
Now = Callable[[], float]


@dataclass
class Entry:
    """A run of the log, as this process knows it."""

    facts: dict[str, Any]  # the call, the budgets, the tolerances and the problem, in plain JSON
    result: Any = None
    last: dict[str, Any] | None = None  # where it ended, if the next run starts from there
    start: Any = None  # where it began, if it is a run of a path


class Log:
    """The file of one call. ``now`` is the clock by which it writes.

    After SIGINT or SIGTERM the run stops at its next state, which is written first. A second signal ends it at once.
    """

    def __init__(self, call: str, path: object, seconds: float | None, now: Now = time.monotonic):
        name, pause = ("path", "seconds") if call == "checkpoint" else ("checkpoint", "checkpoint_seconds")
        self.said = "--checkpoint" if call == "solve" else f"`{call}({name}=...)`"
        self.path, self.now = container.check_place(self.said, path), now
        self.seconds = None if seconds is None else checks.at_least(call, pause, seconds, 0)
        self.found, self.note = container.last_of(self.said, self.path)
        header: dict[str, Any] = {} if self.found is None else self.found.header
        self.old: list[dict[str, Any]] = header.get("runs", [])  # runs of the file
        self.sound = self.found is not None and self.found.path == self.path  # the file may become the one before
        self.given: dict[str, Any] = {}  # the objects of all calls so far, by name
        self.names: dict[int, str] = {}
        self.entries: list[Entry] = []
        self.model: Any = None  # the objective of the current run
        self.signal: int | None = None  # the signal that has arrived
        self._reader = None if self.found is None else StateReader(header.get("nodes", []), self.given, self.found)
        self._ended: tuple[StateWriter, list[Any]] | None = None  # the state at the end of the last run, not written yet
        self._handlers: dict[int, Any] = {}
        self._wait(0.0)
        if self.found is not None and not (isinstance(self.old, list) and all(map(_is_run, self.old))):
            raise InputError(f"{self.said}: {self.found.path} holds no state of a run")
        if self.found is not None and (header.get("kind") != KIND or header.get("extremal") != known_version()):
            self.refuse(f"it was written by version {header.get('extremal')} of extremal, and this is {known_version()}")

    def next_run(self, call: str, budget: Budget) -> Keeper:
        """The keeper of the next run."""
        from extremal.run.checkpoints.keeper import Keeper

        at = len(self.entries)
        self._ended = None
        return Keeper(self, call, at, budget, self.old[at] if at < len(self.old) else None)

    def refuse(self, why: str) -> None:
        """Say that the file does not belong to the call."""
        where = self.path if self.found is None else self.found.path
        raise InputError(f"{self.said}: {where} is the checkpoint of another run: {why}")

    @property
    def reader(self) -> StateReader:
        """The reader of the file."""
        assert self._reader is not None
        return self._reader

    def name(self, names: dict[int, str], given: dict[str, Any]) -> None:
        """Add the objects of a call; one that an earlier call had keeps its name."""
        self.names = names | self.names
        self.given.update(given)

    def forget(self) -> None:
        """Drop the rest of the file: the runs from here on begin anew."""
        self.old = self.old[: len(self.entries)]

    # writing

    def due(self) -> bool:
        """Whether it is time to write, or to stop."""
        return self.signal is not None or self.now() >= self._due_at

    def writer(self) -> tuple[StateWriter, list[Any]]:
        """A writer that has the runs before the current one, and their places."""
        writer, runs = StateWriter(self.names, self.model), list[Any]()
        for i, entry in enumerate(self.entries):
            last = entry.last if i >= len(self.entries) - LAST_STATES else None
            kept = {"last": writer.put(last), "result": writer.put(entry.result), "start": writer.put(entry.start)}
            runs.append(entry.facts | {"state": None} | kept)
        return writer, runs

    def write(self, writer: StateWriter, runs: list[Any]) -> None:
        """Write the file, and set the time of the next write."""
        before = self.now()
        made = {name: sys.modules[name].__version__ for name in ("numpy", "numba") if name in sys.modules}
        header = {"kind": KIND, "extremal": known_version(), "made_with": made, "runs": runs, "nodes": writer.nodes}
        container.write(self.path, header, writer.blocks, self.sound)
        self.sound = True
        self._wait(self.now() - before)

    def end_run(self, entry: Entry, writer: StateWriter, runs: list[Any]) -> None:
        """Take the end of a run, which is written when the call ends, or when it is time."""
        self.entries.append(entry)
        self._ended = writer, runs
        if self.due():
            self.close()
            if self.signal is not None:
                self.stop(self.signal)

    def close(self) -> None:
        """Write the end of the call, unless the file has it."""
        if self._ended is not None:
            ended, self._ended = self._ended, None
            self.write(*ended)

    def _wait(self, took: float) -> None:
        self._due_at = self.now() + (max(SECONDS, took / SHARE) if self.seconds is None else self.seconds)

    # signals

    def take_signals(self) -> None:
        """Take the signals that ask for an end, on the main thread only, if nobody else has taken them."""
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                    self._handlers[number] = signal.signal(number, self._noted)

    def give_signals(self) -> None:
        """Give them back."""
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._handlers.clear()

    def _noted(self, number: int, frame: object) -> None:
        if self.signal is not None:
            self.stop(number)
        self.signal = number

    def stop(self, number: int) -> None:
        """End as the signal asked for."""
        if number == signal.SIGTERM:
            signal.signal(number, self._handlers.pop(number, signal.SIG_DFL))
            signal.raise_signal(number)
        raise KeyboardInterrupt


def _is_run(old: Any) -> bool:
    """Whether the file has all that belongs to a run."""
    lists = ("tol", 2), ("budget", 3), ("first_budget", 3)
    return (
        isinstance(old, dict)
        and old.keys() >= {"call", "problem", "state", "last", "result", "start"}
        and isinstance(old["problem"], dict)
        and all(isinstance(old.get(name), list) and len(old[name]) == size for name, size in lists)
    )
