"""The driver around the loop: stopping, certificates, recording, the clock."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from operator import attrgetter

import numpy as np

from extremal.checks import NonFiniteError, OutsideError, UnsolvedError
from extremal.data.parts import counting_rows
from extremal.gradients.base import PlainEstimate, value_of
from extremal.methods.method import Budget, Method
from extremal.points.iterates import answer
from extremal.points.matrix import wide
from extremal.run.bursts.run import Reach
from extremal.run.headway import LONGER, Headway, Recorder, extended_grads, rounding_floor, usual_grads, usual_work, with_floor
from extremal.run.loop import Setup, State, loop
from extremal.run.progress import observed
from extremal.run.result import Calls, Certificate, Record, Result, Status
from extremal.run.saving import UNSAVED, Unsaved
from extremal.support.clock import Clock, TimeUp, deadline


class Driver:
    """Runs a prepared method: everything around the loop that is not the method's business."""

    first: State  # the state at which the run began

    def __init__(
        self,
        setup: Setup,
        tol: float,
        atol: float,
        budget: Budget,
        callback: Callable[[State], object] | None = None,
        record: Record | float | None = None,
        keeper: Unsaved | None = None,
    ):
        self.setup, self.f, self.C, self.keeper = setup, setup.f.inner, setup.C, keeper or UNSAVED
        self.tol, self.atol, self.callback = tol, atol, callback
        self.guarded = setup.method.guarded  # the method is for answers, not for comparisons
        self.unlimited = budget == Budget()  # such a run gets a default budget, which it is not blamed for spending
        self.budget = Budget(max_grads=usual_grads(self.f)) if self.unlimited else budget
        self.most_work = usual_work(self.f) if self.unlimited and self.guarded else math.inf  # of quadratic problems
        self.recorder, self.clock = Recorder(self.f, self.C.inner, record), Clock()
        self.last: Certificate | None = None  # the latest certificate
        self.best: Certificate | None = None  # the best one: smallest value, or smallest gap if f is not convex
        self.tight: Certificate | None = None  # the certificate with the smallest gap
        self.gap_due, self.value_due = (
            10 * self.f.n,
            0,
        )  # component gradients at which an exact gap is due, or a value if gaps are free
        self.headway = Headway()
        self.floor = 0.0  # the least gap that float64 can certify, if the run ended there
        self.tail = 0.0  # seconds that the last certificate took; the final certificate must fit in the time, too

    def drive(self) -> tuple[Result, State]:
        """Run to a stop; return the result and the last state reached."""
        with observed(self.tol, self.atol) as progress:
            self.recorder.progress = progress
            result, last = self.keeper.answer() or self._driven()
            if progress is not None:
                progress.finish(result)
        return result, last

    def _driven(self) -> tuple[Result, State]:
        state, status, states, keeper, limited = None, None, loop(self.setup), self.keeper, self.budget.max_seconds is not None
        try:
            with np.errstate(all="ignore"), deadline(self._over if limited else None, self.clock), keeper:
                self.first = state = next(states)
                if keeper.resumed(self):  # this state was judged before it was saved
                    state = states.send(self._reach())
                while (status := self._stop(state)) is None:
                    if keeper.saves:
                        keeper.look(self, state)
                    state = states.send(self._reach())
                keeper.ended(self, state)
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
        except TimeUp:
            status = Status.MAX_SECONDS
            if state is None:  # time ran out within the first estimate: the starting point is the answer
                setup, unknown = self.setup, PlainEstimate(np.zeros(self.f.shape), exact=False)
                self.first = state = State(0, setup.point, unknown, setup.f.calls, setup.f, setup.C, setup.method.move)
        except (OutsideError, UnsolvedError) as error:
            status = Status.OUTSIDE if isinstance(error, OutsideError) else Status.UNSOLVED
        except (NonFiniteError, np.linalg.LinAlgError, OverflowError) as error:
            if state is None:
                raise NonFiniteError(f"f cannot be computed at the starting point: {error}") from error
            status = Status.NON_FINITE
        if state is None or status is None:
            raise KeyboardInterrupt  # stopped before the first state: there is no point to certify
        with np.errstate(all="ignore"):  # checks below report numbers that are not finite
            result = counting_rows(state.calls, self._result, state, status)
        return keeper.finish(result, state), state

    def _over(self) -> bool:
        """Whether time is up, with a reserve for the final certificate."""
        most = self.budget.max_seconds
        return most is not None and self.clock.seconds + self.tail >= most

    def _late(self) -> bool:
        """Whether the driver needs a state now: with a callback, after each compiled call."""
        return self.callback is not None or self._over() or self.recorder.watched() or self.keeper.due()

    def _reach(self) -> Reach | None:
        """How far the run may go before the driver needs a state; None if the run has no bursts."""
        if self.setup.burst is None:
            return None
        b = self.budget
        grads = min(self.gap_due, self.recorder.next, math.inf if b.max_grads is None else b.max_grads)
        return Reach(grads, math.inf if b.max_iter is None else b.max_iter, self._late)

    def _stop(self, state: State) -> Status | None:
        if self.recorder.due(state):
            with self.clock.paused():
                self.recorder.see(state, self.clock)
        if self._converged(state):
            return Status.GAP
        if self.recorder.watched():
            self.recorder.glance(state, self.clock)
        budget, calls = self.budget, state.calls
        if budget.max_iter is not None and state.k >= budget.max_iter:
            return Status.MAX_ITER
        if budget.max_grads is not None and calls.grads >= budget.max_grads and not self._extended(state):
            return Status.MAX_GRADS
        if self._over():
            return Status.MAX_SECONDS
        if state.point.work > self.most_work:
            return Status.UNSOLVED
        if self.headway.stalled(state):
            return Status.STALLED
        if self.guarded and (status := self._hopeless(state)) is not None:
            return status
        if self.callback is not None:
            with self.clock.paused():
                if self.callback(state):
                    return Status.CALLBACK
        return None

    def _extended(self, state: State) -> bool:
        """Whether to extend the default budget: passes are small and oracle calls few, or the run is converging."""
        if not (self.unlimited and self.guarded):
            return False
        grads = state.calls.grads
        most = extended_grads(self.f, state.calls.lmos)
        most = max(most, int(LONGER * grads)) if self.headway.converging(grads) else most
        self.budget = Budget(max_grads=most) if grads < most else self.budget
        return grads < most

    def _hopeless(self, state: State) -> Status | None:
        """A status if steps change nothing but rounding errors; methods for answers are judged after 16, 32, 64, ... steps."""
        last = self.last
        if not state.exact or last is None or last.k != state.k:
            return None
        nowhere = self.headway.nowhere(last, self._wanted(last))
        if nowhere is None:
            return None
        return Status.STALLED if nowhere else Status.PRECISION if self._at_rounding(last, times=1.0) else None

    def _converged(self, state: State) -> bool:
        """Certify if a certificate is free or due; return whether the tolerance is met."""
        if state.exact:
            self.gap_due = self._later(state)
            if state.calls.grads < self.value_due and not self._promising(state):
                return False
        elif state.calls.grads < self.gap_due:
            return False
        return self._certify(state).meets(self.tol, self.atol)

    def _later(self, state: State) -> int:
        """When the next certificate is due: 10 passes from now, or a quarter of the passes made so far."""
        return state.calls.grads + max(10 * self.f.n, state.calls.grads // 4)

    def _promising(self, state: State) -> bool:
        """Whether a free gap may meet the tolerance; if it cannot, the pass for f(x) is saved.

        For convex f and tol < 0.9 nothing is missed. With v and g of an earlier certificate, f* lies in [v - g, v]. If |f(x)|
        exceeds ten times the larger end, then f(x) > 0, and the gap is at least nine tenths of f(x).
        """
        if self.last is None:
            return True
        size = max(abs(self.last.value), abs(self.last.value - self.last.gap))
        wanted = self.tol * size + self.atol
        promise = state.move.promise(state.point)  # for moves that do not ask the oracle in every step
        return state.gap(state.g) <= 10 * wanted if promise is None else promise <= 2 * wanted

    def _certify(self, state: State) -> Certificate:
        """Certify the state; with tol = atol = 0 no certificate can stop the run, so the clock is paused."""
        if self.last is not None and self.last.k == state.k:
            return self.last
        with nullcontext() if self.tol or self.atol else self.clock.paused():
            before = self.clock.seconds
            self.last = last = state.certify()
            self.tail = self.clock.seconds - before
        self.gap_due = self.value_due = self._later(state)
        self.best = min(self.best or last, last, key=attrgetter("value" if self.f.convex else "gap"))
        self.tight = min(self.tight or last, last, key=attrgetter("gap"))
        if self.recorder.record is None:
            self.recorder.certified(state, last, self.clock)
        return last

    def _result(self, state: State, status: Status) -> Result:
        found, status = self._final(state, status)
        if not self.C.may_contain(found.x):
            best = self.best  # a certificate inside the set; the starting point was checked before the run
            found = best if best is not None and best is not found and self.C.may_contain(best.x) else self._start()
            status = Status.OUTSIDE
        if self.guarded:
            found = self._guard(found)
        blameless = status is Status.STALLED or (status in (Status.MAX_GRADS, Status.UNSOLVED) and self.unlimited)
        if blameless and self._at_rounding(found):
            status = Status.PRECISION
        if not math.isfinite(found.gap) and status not in (Status.INTERRUPTED, Status.OUTSIDE):
            status = Status.UNCERTIFIED
        return Result(
            x=answer(found.x),
            value=found.value,
            gap=found.gap,
            status=status,
            converged=found.meets(self.tol, self.atol),
            n_iter=state.k,
            calls=Calls(**vars(state.calls)),
            seconds=self.clock.seconds,
            trace=self.recorder.trace,
            method=self._method(status, found),
            atoms=found.atoms,
            set=self.setup.whole,
            compiled=0 if self.setup.burst is None else self.setup.burst.iterations,
            convex=self.f.convex,
            objective=self.f,
            seed=self.setup.sampler.seed,
        )

    def _final(self, state: State, status: Status) -> tuple[Certificate, Status]:
        """The certificate of the last state, or the best one after an interruption or an accident."""
        for _ in range(2):
            try:
                found = self._certify(state)
                self.recorder.certified(state, found, self.clock)  # the last row
            except KeyboardInterrupt:  # an existing certificate is enough; without one, a second attempt follows
                status = Status.INTERRUPTED
            except (NonFiniteError, OutsideError, np.linalg.LinAlgError, OverflowError) as error:
                status = Status.OUTSIDE if isinstance(error, OutsideError) else Status.NON_FINITE
                if self.best is None and not math.isnan((start := self._start()).gap):
                    return start, status
                if self.best is None:
                    raise
            else:
                accident = status in (Status.INTERRUPTED, Status.NON_FINITE, Status.OUTSIDE)
                return self.best if accident and self.best is not None else found, status
            if self.best is not None:
                return self.best, status
        raise KeyboardInterrupt

    def _wanted(self, found: Certificate) -> float:
        return self.tol * abs(found.value) + self.atol

    def _at_rounding(self, found: Certificate, **times: float) -> bool:
        """Whether float64 can certify no smaller gap at this point; a tolerance of zero makes no demand."""
        if self.f.dtype.kind == "O":
            return False  # no number is rounded
        wanted = self._wanted(found)
        self.floor = rounding_floor(self.f, self.C, found, wanted, **times) if found.gap > wanted > 0 else 0.0
        return self.floor > 0

    def _method(self, status: Status, found: Certificate) -> Method:
        """The method of the run; if float64 ended the run, the reasons of its choice go on with the least gap."""
        method = self.setup.method
        ended = status is Status.PRECISION
        return replace(method, why=with_floor(method.why, self.floor, found.value)) if ended else method

    def _start(self) -> Certificate:
        """The certificate of the starting point."""
        if self.last is not None and self.last.k == 0:
            return self.last
        first, calls = self.first, self.first.calls
        value, gap = first.measure()
        calls.certificate, calls.certificate_values = calls.certificate + self.f.n, calls.certificate_values + self.f.n
        calls.certificate_lmos += 1
        if not math.isfinite(value):
            raise NonFiniteError(f"the objective's value at the starting point is {value}")
        return Certificate(0, first.x, value, gap, first.point.active)

    def _guard(self, found: Certificate) -> Certificate:
        """The better of a certificate and the starting point's; or the one with the smallest gap, if its value is as good."""
        if found.k == 0 or (self.f.convex and found.meets(self.tol, self.atol)):  # no point is better by more than its gap
            return found
        first, tight = self.first, self.tight or found
        as_good = tight.gap < found.gap and tight.value <= found.value + 1e-12 * abs(found.value)
        found = tight if as_good and not found.meets(self.tol, self.atol) else found
        value = value_of(first.estimate) if first.exact else None
        first.calls.certificate_values += self.f.n if value is None else 0
        if (self.f.value(wide(first.x)) if value is None else value) >= found.value:
            return found
        return self._start()
