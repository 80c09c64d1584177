"""The checkpoint of a run: when it is written, what it holds, and how the same call goes on from it."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from copy import copy
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from extremal import checks
from extremal.checks import InputError
from extremal.data.parts import counting_rows
from extremal.methods.method import Budget
from extremal.run.checkpoints import container
from extremal.run.checkpoints.codec import Reader, Writer, caches_in, restore, saved
from extremal.run.checkpoints.problem import described, difference, names_of
from extremal.run.result import Result, Status
from extremal.support.versions import versions

if TYPE_CHECKING:
    from extremal.run.driver import Driver
    from extremal.run.loop import Setup, State

SECONDS = 60.0  # least time between two checkpoints, unless the caller says otherwise,
SHARE = 0.01  # and the largest share of the time that writing them takes then
LIVE = ("f", "C", "calls", "burst")  # parts of a run that change in place, in the order in which they are restored
DRIVER = ("last", "best", "tight", "gap_due", "headway", "floor", "value_due", "tail", "first")
GOES_ON = Status.CALLBACK  # the callback wanted a pause
Now = Callable[[], float]


class Keeper:
    """Writes the checkpoints of one run, and brings the run back to the last of them.

    ``now`` is the clock by which it writes. After SIGINT or SIGTERM, the run stops at its next state, which it writes first.
    """

    def __init__(self, call: str, path: object, seconds: float | None, now: Now = time.monotonic):
        self.call, self.path, self.now = call, container.check_place(call, path), now
        self.seconds = None if seconds is None else checks.at_least(call, "checkpoint_seconds", seconds, 0)
        self.found, self.note = container.read(call, self.path)
        self.sound = self.found is not None and self.found.path == self.path  # the file may become the one before
        self.due_at = now() + (SECONDS if self.seconds is None else self.seconds)
        self.signal: int | None = None  # the signal that has arrived
        self._ended: Writer | None = None  # the state at the end, to which the result will be added

    # before the run

    def first_budget(self, budget: Budget) -> Budget:
        """The budget that the steps of the run know: that of the first call. A call may raise it, and not lower it."""
        if self.found is None:
            return budget
        first, last = (Budget(**self.found.header[name]) for name in ("first_budget", "budget"))
        for name in ("max_grads", "max_iter", "max_seconds"):
            old, new = getattr(last, name), getattr(budget, name)
            if new is not None and (old is None or new < old):
                self._refuse(f"`{name}` was {old} there, and is {new} now; it may only be raised")
        return first

    def bind(self, setup: Setup, seed: int, record: Any, budget: Budget, first: Budget) -> Setup:
        """Compare the problem with that of the file; the setup from which the run goes on."""
        self._setup, self._budget = setup, {"budget": _plain(budget), "first_budget": _plain(first)}
        roots = {"f": setup.f.inner, "C": setup.whole, "method": setup.method, "oracle": setup.C.inner}
        self._names, self._given = names_of(roots)
        live = {"run.f": setup.f, "run.C": setup.C, "run.calls": setup.f.calls, "run.sampler": setup.sampler}
        live |= {"run.burst": setup.burst} if setup.burst is not None else {}
        self._names |= {id(item): name for name, item in live.items()}
        self._given |= live
        self._problem = {"seed": repr(seed), "extremal": versions()["extremal"], "bursts": repr(setup.burst is not None)}
        for name in ("f", "C", "method"):
            self._problem |= described(roots[name], name)
        self._problem |= described(setup.point.x, "x0") | described(record, "record")
        if self.found is None:
            self._try(setup)
            return setup
        if self.found.header.get("kind") != "run":
            self._refuse(f"it was written by `{self.found.header.get('kind')}`")
        found = difference(self.found.header["problem"], self._problem)
        if found is not None:
            self._refuse(found)
        return self._read(setup)

    def _try(self, setup: Setup) -> None:
        """Refuse a run with a part that no checkpoint can hold, before it begins."""
        try:
            Writer(self._names).put(setup.point)
        except InputError as error:
            raise InputError(f"`{self.call}(checkpoint=...)` cannot save this run: {error}") from None

    def _refuse(self, why: str) -> None:
        where = self.path if self.found is None else self.found.path
        raise InputError(f"`{self.call}(checkpoint=...)`: {where} is of another run: {why}")

    def _read(self, setup: Setup) -> Setup:
        assert self.found is not None
        try:
            counting_rows(None, self._decode)
            state: State = self._root["state"]
            return replace(setup, point=state.point, estimate=state.estimate, k=state.k)
        except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError, OverflowError) as error:
            if isinstance(error, InputError):
                self._refuse(str(error))
            raise InputError(f"`{self.call}(checkpoint=...)`: {self.found.path} holds no state of a run ({error})") from error

    def _decode(self) -> None:
        """Make the values of the file, and give the changing parts of the run their states; the counts come last."""
        assert self.found is not None
        header, given = self.found.header, self._given
        reader = Reader(header["nodes"], given, self.found.fill)
        self._root: dict[str, Any] = reader.get(header["root"])
        self._result: Result | None = reader.get(header["result"])
        for name, caches in self._root["caches"].items():
            reader.note(given[name], caches)
        for name in LIVE:
            if f"run.{name}" in given:
                restore(given[f"run.{name}"], self._root["live"][name])
        reader.finish()
        restore(given["run.calls"], self._root["live"]["calls"])

    # at the beginning of the run

    def answer(self, driver: Driver) -> tuple[Result, State] | None:
        """The result, if the file has the end of the same run."""
        if self.found is None or self._result is None or self._result.status is GOES_ON or not self._same(driver):
            return None
        return self._result, self._root["state"]

    def _same(self, driver: Driver) -> bool:
        header = self.found.header if self.found is not None else {}
        return header["budget"] == self._budget["budget"] and header["tol"] == [driver.tol, driver.atol]

    def resumed(self, driver: Driver, state: State) -> bool:
        """Bring the driver to the state of the file; whether the driver has judged this state before."""
        if self.found is None:
            return False
        root, recorder = self._root, driver.recorder
        for name in DRIVER:
            setattr(driver, name, root["driver"][name])
        recorder.next, recorder.trace = root["next"], root["trace"]
        driver.clock.move_to(*root["clock"])
        if self._same(driver) and driver.unlimited:
            driver.budget = Budget(**root["budget"])
        return bool(root["judged"]) or (self._result is not None and self._result.status is GOES_ON)

    # during the run

    def due(self) -> bool:
        """Whether it is time to write, or to stop."""
        return self.signal is not None or self.now() >= self.due_at

    def look(self, driver: Driver, state: State) -> None:
        """Write the state if it is time; stop the run if a signal has arrived."""
        if not self.due():
            return
        with driver.clock.paused():
            before = self.now()
            self._write(self._kept(driver, state, judged=True), None, driver)
            after = self.now()
        least = max(SECONDS, (after - before) / SHARE) if self.seconds is None else self.seconds
        self.due_at = after + least
        if self.signal is not None:
            self._stop(self.signal)

    def ended(self, driver: Driver, state: State) -> None:
        """Keep the state at the end; certificates of the result come after it."""
        self._ended = self._kept(driver, state, judged=False)

    def finish(self, driver: Driver, result: Result) -> Result:
        """Write the end of the run; a run that was interrupted, or that an error ended, keeps its last checkpoint."""
        if self._ended is not None:
            writer, self._ended = self._ended, None
            self._write(writer, replace(result, trace=copy(result.trace)), driver)  # its trace has one row more than the state's
        return result

    def _kept(self, driver: Driver, state: State, judged: bool) -> Writer:
        writer, recorder, clock = Writer(self._names), driver.recorder, driver.clock
        live = {name: saved(item) for name in LIVE if (item := self._given.get(f"run.{name}")) is not None}
        caches = {name: known for name, item in self._given.items() if (known := caches_in(item))}
        root = {
            "state": state,
            "caches": caches,
            "live": live,
            "driver": {name: getattr(driver, name) for name in DRIVER},
            "next": recorder.next,
            "trace": recorder.trace,
            "clock": (clock.seconds, clock.cpu),
            "judged": judged,
            "budget": _plain(driver.budget),
        }
        self._root_at = writer.put(root)
        return writer

    def _write(self, writer: Writer, result: Result | None, driver: Driver) -> None:
        header = {
            "kind": "run",
            "versions": versions(),
            "problem": self._problem,
            "tol": [driver.tol, driver.atol],
            **self._budget,
            "root": self._root_at,
            "result": writer.put(result),
            "nodes": writer.nodes,
        }
        container.write(self.path, header, writer.blocks, self.sound)
        self.sound = True

    # signals

    def __enter__(self) -> Keeper:
        """Take the signals that ask for an end, on the main thread only."""
        self._handlers: dict[int, Any] = {}
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                    self._handlers[number] = signal.signal(number, self._noted)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _noted(self, number: int, frame: object) -> None:
        """Note the first signal; the second ends the run at once."""
        if self.signal is not None:
            self._stop(number)
        self.signal = number

    def _stop(self, number: int) -> None:
        if number == signal.SIGTERM:
            signal.signal(number, self._handlers.pop(number, signal.SIG_DFL))
            signal.raise_signal(number)
        raise KeyboardInterrupt


def _plain(budget: Budget) -> dict[str, Any]:
    return {name: value for name, value in asdict(budget).items() if name in ("max_grads", "max_iter", "max_seconds")}


