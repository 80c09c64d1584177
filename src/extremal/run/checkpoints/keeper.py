"""One run of a log: what is compared, what is kept of it, and how it goes on."""

from __future__ import annotations

from contextlib import suppress
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from extremal.checks import InputError
from extremal.data.parts import counting_rows
from extremal.methods.method import Budget
from extremal.run.checkpoints.codec import Later, StateWriter, caches_in, restore, saved
from extremal.run.checkpoints.log import Entry, Log
from extremal.run.checkpoints.problem import described, difference, names_of
from extremal.run.result import Result, Status
from extremal.run.saving import Unsaved

if TYPE_CHECKING:
    from extremal.run.driver import Driver
    from extremal.run.loop import Setup, State

LIVE = ("f", "C", "burst", "calls")  # parts of a run that change in place; the counts are restored last
DRIVER = ("last", "best", "tight", "gap_due", "headway", "floor", "value_due", "tail", "first")
LIMITS = ("max_grads", "max_iter", "max_seconds")
FINISHED = (Status.GAP, Status.STALLED, Status.PRECISION)  # a larger budget changes nothing
MISTAKES = (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError, OverflowError)


class Keeper(Unsaved):
    """Saves one run, and brings it back to its last state. ``old`` is what the file has of it."""

    saves = True

    def __init__(self, log: Log, call: str, at: int, budget: Budget, old: dict[str, Any] | None):
        self.log, self.call, self.at, self.old = log, call, at, old
        self.budget, self.first = budget, budget
        self.result: Result | None = None
        self._root: dict[str, Any] | None = None
        self._start: tuple[Any] | None = None
        self._ended: tuple[StateWriter, list[Any]] | None = None
        if old is not None:
            if old.get("call") != call:
                self._refuse(f"run {at + 1} was a call of `{old.get('call')}`, and is one of `{call}` now")
            self.first = self._allowed(budget, old)

    def _allowed(self, budget: Budget, old: dict[str, Any]) -> Budget:
        """The budget that the steps of the run know: that of the first call. A later call may raise it, and not lower it."""
        for name, before in zip(LIMITS, old["budget"], strict=True):
            new = getattr(budget, name)
            if new is not None and (before is None or new < before):
                self._refuse(f"`{name}` was {before} there, and is {new} now; it may be raised only")
        return Budget(*old["first_budget"])

    def _refuse(self, why: str) -> None:
        self.log.refuse(why if self.at == 0 and len(self.log.old) <= 1 else f"in run {self.at + 1}, {why}")

    # before the run

    @property
    def start(self) -> Any:
        """The start that the file has for a run of a path."""
        assert self.old is not None
        return self.log.reader.get(self.old["start"])

    def bind(self, setup: Setup, seed: int, record: Any, accuracy: tuple[float, float], start: tuple[Any] | None = None) -> Setup:
        """Compare the problem with that of the file; the setup from which the run goes on.

        A run of a path has its ``start``, a point or None, and leaves its last state to the next ones.
        """
        log, self._start = self.log, start
        roots = {"f": setup.f.inner, "C": setup.whole, "method": setup.method, "oracle": setup.C.inner}
        live = {"run.f": setup.f, "run.C": setup.C, "run.calls": setup.f.calls, "run.sampler": setup.sampler}
        live |= {"run.burst": setup.burst} if setup.burst is not None else {}
        self._names, given = names_of({f"{self.at}.{name}": root for name, root in roots.items()})
        given |= {f"{self.at}.{name}": item for name, item in live.items()}
        log.name(self._names | {id(item): f"{self.at}.{name}" for name, item in live.items()}, given)
        self._mine, log.model = given, setup.f.inner
        problem = {"seed": repr(seed), "bursts": repr(setup.burst is not None)}
        for name in ("f", "C", "method"):
            problem |= described(roots[name], name)
        problem |= {} if start is not None else described(setup.point.x, "x0")
        problem |= described(record, "record")
        self.facts: dict[str, Any] = {
            "call": self.call,
            "tol": list(accuracy),
            "budget": [getattr(self.budget, name) for name in LIMITS],
            "first_budget": [getattr(self.first, name) for name in LIMITS],
            "problem": problem,
        }
        if start is not None and self.old is not None and any(self.old[name] != self.facts[name] for name in ("tol", "budget")):
            self._refuse("its tolerances or budgets were others; a path keeps them")
        if self.old is None:
            self._try(setup.point)
            return setup
        found = difference(self.old["problem"], problem)
        if found is not None:
            self._refuse(found)
        return self._found(setup)

    def _try(self, item: Any) -> None:
        """Refuse a state that no checkpoint can hold, before the run begins."""
        try:
            with suppress(Later):
                StateWriter(self.log.names, self.log.model).put(item)
        except InputError as error:
            raise InputError(f"{self.log.said}: this run cannot be saved: {error}") from None

    def _found(self, setup: Setup) -> Setup:
        """The setup at the state of the file, or at the start if the file has only the result, and a call wants more."""
        log, old = self.log, self.old
        assert old is not None
        try:
            counting_rows(None, self._decode, old)
        except MISTAKES as error:
            if isinstance(error, InputError):
                self._refuse(str(error))
            raise InputError(f"{log.said}: {log.path} holds no state of a run ({error})") from error
        if self._root is None and self._answered() is None:
            log.forget()
        if self._root is None:
            return setup
        state: State = self._root["state"]
        method = setup.method
        why = "; ".join(filter(None, (method.why, log.note)))
        return replace(setup, point=state.point, estimate=state.estimate, k=state.k, method=method.chosen(why, method.guarded))

    def _decode(self, old: dict[str, Any]) -> None:
        """Make the values of the file, and give the changing parts of the run their states."""
        reader = self.log.reader
        reader.model = self.log.model
        self.result, self._root, self._last = (reader.get(old[name]) for name in ("result", "state", "last"))
        held = self._root or self._last
        if held is None:
            return
        for name, caches in held["caches"].items():
            reader.note(self.log.given[name], caches)
        reader.finish()
        for name in LIVE:
            if f"{self.at}.run.{name}" in self._mine:
                restore(self._mine[f"{self.at}.run.{name}"], held["live"][name])

    # at the beginning of the run

    def answer(self) -> tuple[Result, State | None] | None:
        """The result and the last state, if the file has the end of the same run."""
        result = self._answered()
        if result is None:
            return None
        self.log.entries.append(Entry(self.facts, result, self._last, self._from))
        held = self._last or self._root
        return result, None if held is None else held["state"]

    def _answered(self) -> Result | None:
        if self.old is None or self.result is None or self.result.status is Status.CALLBACK:
            return None  # a callback wants a pause
        same = all(self.old[name] == self.facts[name] for name in ("tol", "budget"))
        more = self.old["tol"] == self.facts["tol"] and self.result.status in FINISHED
        return self.result if same or more else None

    def resumed(self, driver: Driver) -> bool:
        """Bring the driver to the state of the file; whether the driver has judged this state before."""
        root, recorder = self._root, driver.recorder
        if root is None:
            self._try(driver.first.estimate)
            return False
        for name in DRIVER:
            setattr(driver, name, root["driver"][name])
        recorder.next, recorder.trace = root["next"], root["trace"]
        driver.clock.move_to(*root["clock"])
        if driver.unlimited:
            driver.budget = Budget(*root["budget"])
        return bool(root["judged"]) or (self.result is not None and self.result.status is Status.CALLBACK)

    # during the run

    def __enter__(self) -> None:
        """Take the signals that ask for an end."""
        self.log.take_signals()

    def __exit__(self, *error: object) -> None:
        self.log.give_signals()

    def due(self) -> bool:
        """Whether it is time to write, or to stop."""
        return self.log.due()

    def look(self, driver: Driver, state: State) -> None:
        """Write the state if it is time; stop the run if a signal has arrived."""
        if not self.log.due():
            return
        with driver.clock.paused(), suppress(Later):
            self.log.write(*self._kept(driver, state, judged=True))
        if self.log.signal is not None:
            self.log.stop(self.log.signal)

    def ended(self, driver: Driver, state: State) -> None:
        """Keep the state at the end, before the certificates of the result."""
        with suppress(Later):
            self._ended = self._kept(driver, state, judged=False)

    def finish(self, result: Result, state: State) -> Result:
        """Take the result; a run that was interrupted, or that an error ended, keeps its last checkpoint."""
        if self._ended is None:
            return result
        (writer, runs), self._ended = self._ended, None
        last = {"state": state, "caches": self._caches(), "live": self._live()} if self._start is not None else None
        kept = replace(result, trace=copy(result.trace))  # its trace has one row more than that of the state
        runs[-1] |= {"result": writer.put(kept), "last": writer.put(last)}
        self.log.end_run(Entry(self.facts, kept, last, self._from), writer, runs)
        return result

    @property
    def _from(self) -> Any:
        return None if self._start is None else self._start[0]

    def _caches(self) -> dict[str, list[str]]:
        return {name: known for name, item in self._mine.items() if (known := caches_in(item))}

    def _live(self) -> dict[str, Any]:
        parts = {name: self._mine.get(f"{self.at}.run.{name}") for name in LIVE}
        return {name: saved(item) for name, item in parts.items() if item is not None}

    def _kept(self, driver: Driver, state: State, judged: bool) -> tuple[StateWriter, list[Any]]:
        (writer, runs), recorder, clock = self.log.writer(), driver.recorder, driver.clock
        root = {
            "state": state,
            "live": self._live(),
            "caches": self._caches(),
            "driver": {name: getattr(driver, name) for name in DRIVER},
            "next": recorder.next,
            "trace": recorder.trace,
            "clock": (clock.seconds, clock.cpu),
            "judged": judged,
            "budget": tuple(getattr(driver.budget, name) for name in LIMITS),
        }
        facts = self.facts | {"state": writer.put(root), "last": None, "result": None, "start": writer.put(self._from)}
        return writer, [*runs, facts]
