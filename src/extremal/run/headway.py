"""The progress of a run: its trace, whether it still advances, and when it stops short of its tolerance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext

import numpy as np

from extremal import checks
from extremal.data.rows import RowData
from extremal.gradients.base import value_of
from extremal.losses.weighted import unweighted
from extremal.objectives.base import Smooth
from extremal.objectives.intercept import InterceptModel
from extremal.objectives.margins import MarginModel
from extremal.points.matrix import wide
from extremal.quadratic.search import UNSEEN
from extremal.run.counting import CountedSet
from extremal.run.loop import State
from extremal.run.progress import RunProgress
from extremal.run.result import Certificate, Record, Row, Trace
from extremal.sets.base import ConvexSet
from extremal.support.clock import Clock

USUAL_PASSES = 1000  # passes of a run without a budget
MORE_PASSES = 5000  # passes of a run for an answer, if its passes are small
SMALL_RUN, FEW_LMOS = 1e9, 5000  # multiplications in all passes of a small run; the oracle calls it may have made by then
LEVEL_RUN, FEW_ROWS = 1e7, 1000  # margins in all passes, if classes have intercepts; overhead of a pass, in rows
QUADRATIC_WORK, QUADRATIC_SHARE = 6e8, 4.0  # numbers that quadratic problems may read; or this multiple of the work of all passes
MARKED, TENFOLD, LONGER = 1.1, 0.1, 1.5  # pace of the marks; progress that extends a default budget, and the extension
SAME_POINT = 3  # exact gradients in a row that may leave the point unchanged
PROGRESS, IDLE_STEPS = 0.9, 12  # share of the smallest gap that counts as progress; steps without progress in a stalled run
DUST = float(np.finfo(np.float64).eps) ** 2  # f below this share of the largest |f| is a square of rounding errors
FIRST_JUDGED = 16  # steps after which a run for an answer is judged as a whole; then each time their number has doubled
LARGE_POINT = 10**7  # entries of the largest point for which rounding is measured
ROUNDED = 0.25  # the tolerance is out of reach if rounding changes the gap by this share of it
NEAR_ROUNDING = 100.0  # a gap below this multiple of that change is rounding, if no step leads farther


def usual_grads(f: Smooth, passes: int = USUAL_PASSES) -> int:
    """Component gradients of a run without a budget: a number of passes, and never a time.

    It is smaller if one target ties the intercepts of classes together: a pass then looks at all rows dozens of times.
    """
    if isinstance(f, InterceptModel) and f.deriv_shape and not unweighted(f.loss).target_shape:
        passes = min(passes, max(1, int(LEVEL_RUN / (math.prod(f.deriv_shape) * (f.n + FEW_ROWS)))))
    return passes * f.n


def extended_grads(f: Smooth, lmos: int) -> int:
    """The extended budget of a run for an answer: more passes, if these are small and the run has made few oracle calls."""
    return min(usual_grads(f, MORE_PASSES), int(SMALL_RUN / _multiplications(f))) if lmos <= FEW_LMOS else 0


def _multiplications(f: Smooth) -> float:
    """The multiplications of one component gradient: the stored entries of a row, for each output."""
    if isinstance(f, MarginModel) and isinstance(f.data, RowData):
        return max(1.0, f.data.nnz / f.n) * math.prod(f.deriv_shape)
    return math.prod(f.shape)


def usual_work(f: Smooth) -> float:
    """How many numbers of atoms the quadratic problems of all steps may read."""
    return max(QUADRATIC_WORK, QUADRATIC_SHARE * USUAL_PASSES * f.n * math.prod(f.shape))


class Headway:
    """The progress of a run so far: the one rule that calls a run stalled."""

    def __init__(self) -> None:
        self.x, self.same = None, 0  # the last point, and how many times in a row it stayed the same
        self.gap, self.value, self.scale, self.idle = math.inf, math.inf, 0.0, 0  # the smallest gap, the last f, the largest |f|
        self.judged, self.due = None, FIRST_JUDGED  # the certificate judged last, and the step at which to judge next
        self.marks: list[tuple[int, float, float]] = []  # component gradients, the smallest gap and f, at a geometric pace

    def stalled(self, state: State) -> bool:
        """Whether the point no longer changes, or steps have long lowered neither the gap nor f by more than rounding.

        The second test is for estimators that know f with an exact gradient: steps from such estimates never go up.
        """
        self.same = self.same + 1 if state.exact and state.x is self.x else 0
        self.x = state.x
        value = value_of(state.estimate) if state.exact else None
        if value is not None:
            gap, self.scale = state.gap(state.g), max(self.scale, abs(value))
            lower = not self.value - value <= max(UNSEEN[0] * abs(self.value), DUST * self.scale)
            farther = gap < PROGRESS * self.gap or lower
            self.gap, self.idle = (gap, 0) if farther else (min(self.gap, gap), self.idle + 1)
            self.value = value
            if not self.marks or state.calls.grads > MARKED * self.marks[-1][0]:
                self.marks.append((state.calls.grads, self.gap, value))
        return self.same >= SAME_POINT or self.idle >= IDLE_STEPS

    def converging(self, grads: int) -> bool:
        """Whether the last third of the work, or the next longer part, lowered the gap or a positive f tenfold."""
        before = [mark for mark in self.marks if 3 * mark[0] <= 2 * grads]
        if not before:
            return False
        _, gap, value = before[-1]
        return self.gap <= TENFOLD * gap or 0 < self.value <= TENFOLD * value

    def nowhere(self, last: Certificate, wanted: float) -> bool | None:
        """Whether neither the gap has halved nor f has fallen by 1 % of the tolerance since the last check; None if not due."""
        if last.k < self.due:
            return None
        self.due, before, self.judged = 2 * last.k, self.judged, last
        if before is None or before.k < 2 * FIRST_JUDGED:
            return False
        return last.gap > 0.5 * before.gap and last.value >= before.value - 0.01 * wanted


def rounding_floor(f: Smooth, C: CountedSet, found: Certificate, wanted: float, times: float = NEAR_ROUNDING) -> float:
    """The least gap that float64 can certify at a point, if it exceeds ``wanted`` and the gap is near it; otherwise 0.0.

    The gap is near if it is at most ``times`` its change by rounding.
    """
    change = _change(f, C, found)
    return change / ROUNDED if change >= ROUNDED * wanted and found.gap <= times * change else 0.0


def _change(f: Smooth, C: CountedSet, found: Certificate) -> float:
    """The change of the gap if x changes in its last digits; it takes two gradients and LMOs. 0.0 for very large points."""
    if math.prod(found.x.shape) > LARGE_POINT:
        return 0.0
    rng, most = np.random.default_rng(0), 0.0
    for _ in range(2):
        signs = rng.choice((-1.0, 1.0), found.x.shape)
        g = f.grad(np.asarray(wide(found.x)) * (1.0 + np.finfo(np.float64).eps * signs))
        C.calls.certificate += f.n
        most = max(most, abs(C.gap(found.x, g) - found.gap) if checks.all_finite(g) else math.inf)
    return most


class Recorder:
    """Fills the trace without counting calls (it evaluates the bare objective and set) and with the clock paused."""

    def __init__(self, f: Smooth, C: ConvexSet, record: Record | float | None):
        self.f, self.C, self.trace = f, C, Trace()
        self.progress: RunProgress | None = None  # the observer that shows progress, if there is one
        self.record = record if record is None or isinstance(record, Record) else Record(every=record)
        self._told: Certificate | None = None  # the certificate in the last row
        self.next = 0.0 if self.record else math.inf  # component gradients at which the next row is due

    def due(self, state: State) -> bool:
        """Whether a row is due."""
        return self.record is not None and state.calls.grads >= self.next

    def see(self, state: State, clock: Clock) -> None:
        """Add a row."""
        assert self.record is not None
        every = self.record.every * self.f.n
        self.next = (state.calls.grads // every + 1) * every
        self._add(self._row(state, clock) | self._measure(state, self.record.what))

    def certified(self, state: State, certificate: Certificate, clock: Clock) -> None:
        """Add an existing certificate as a row, once; the clock is paused if someone looks at rows."""
        if certificate is self._told:
            return
        self._told = certificate
        with nullcontext() if self.progress is None and self.record is None else clock.paused():
            row = self._row(state, clock) | {"value": float(certificate.value), "gap": float(certificate.gap)}
            self._add(row | ({"x": state.x} if self.record is not None and "x" in self.record.what else {}))

    def watched(self) -> bool:
        """Whether the observer is due for a line about the run."""
        return self.progress is not None and self.progress.due()

    def glance(self, state: State, clock: Clock) -> None:
        """Tell the observer how far the run is, without adding a row to the trace."""
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
            row["value"], row["gap"] = map(float, state.measure())
        elif "value" in what:
            row["value"] = float(self.f.value(wide(state.x)))
        if "x" in what:
            row["x"] = state.x
        return row


def with_floor(why: str, floor: float, value: float) -> str:
    """The reasons of a choice, and the least gap that float64 can certify."""
    share = f", {floor / abs(value):.1e} of |f|" if value else ""
    limit = f"float64 certifies no gap below {floor:.1e}{share}"
    return f"{why}; {limit}" if why else limit
