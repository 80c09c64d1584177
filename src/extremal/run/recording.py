"""How a run is recorded: rows of the trace, off the count and off the clock."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from extremal.objectives.base import Smooth
from extremal.points.iterates import wide
from extremal.run.loop import State
from extremal.run.progress import RunProgress
from extremal.run.result import Certificate, Record, Row, Trace
from extremal.sets.base import ConvexSet
from extremal.support.clock import Clock


class Recorder:
    """Fills the trace: off the count (it asks the bare objective and set) and off the clock."""

    def __init__(self, f: Smooth, C: ConvexSet, record: Record | float | None, progress: RunProgress | None = None):
        self.f, self.C, self.trace, self.progress = f, C, Trace(), progress
        self.record = record if record is None or isinstance(record, Record) else Record(every=record)
        self.next = 0.0 if self.record else math.inf  # component gradients at which the next row is due

    def due(self, state: State) -> bool:
        """Whether it is time for a row."""
        return self.record is not None and state.calls.grads >= self.next

    def see(self, state: State, clock: Clock) -> None:
        """Add a row."""
        assert self.record is not None
        every = self.record.every * self.f.n
        self.next = (state.calls.grads // every + 1) * every
        self._add(self._row(state, clock) | self._measure(state, self.record.what))

    def certified(self, state: State, certificate: Certificate, clock: Clock) -> None:
        """Add a certificate as a row: it is there anyway."""
        with clock.paused():
            row = self._row(state, clock) | {"value": certificate.value, "gap": certificate.gap}
            self._add(row | ({"x": state.x} if self.record is not None and "x" in self.record.what else {}))

    def watched(self) -> bool:
        """Whether somebody waits for a line about the run."""
        return self.progress is not None and self.progress.due()

    def glance(self, state: State, clock: Clock) -> None:
        """Tell the observer how far the run is; this is no row of the trace."""
        if self.progress is not None:
            with clock.paused():
                self.progress.see(self._row(state, clock))

    def _add(self, row: Row) -> None:
        if self.progress is not None:
            self.progress.see(row)
        if self.trace.append(row) and self.record is not None and self.record.watch is not None:
            self.record.watch(row)

    def _row(self, state: State, clock: Clock) -> Row:
        calls = state.calls
        return {
            "iter": state.k,
            "grads": calls.grads,
            "passes": calls.grads / self.f.n,
            "lmos": calls.lmos,
            "seconds": clock.seconds,
            "cpu": clock.cpu,
        }

    def _measure(self, state: State, what: Sequence[str]) -> Row:
        row: Row = {"value": np.nan, "gap": np.nan}
        if "gap" in what:
            row["value"], row["gap"] = state.measure()
        elif "value" in what:
            row["value"] = self.f.value(wide(state.x))
        if "x" in what:
            row["x"] = state.x
        return row
