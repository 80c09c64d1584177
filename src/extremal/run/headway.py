"""Whether a run still gets somewhere: the one rule by which a run is called stalled."""

from __future__ import annotations

import math

import numpy as np

from extremal.gradients.base import value_of
from extremal.quadratic.search import UNSEEN
from extremal.run.loop import State
from extremal.run.result import Certificate

SAME_POINT = 3  # times that exact gradients may leave the point as it is
PROGRESS, IDLE_STEPS = 0.9, 12  # share of the smallest gap that is progress; steps without any, after which none is expected
DUST = float(np.finfo(np.float64).eps) ** 2  # share of the largest |f| below which a square of rounding errors is all of f
FIRST_JUDGED = 16  # steps after which a run for an answer is judged as a whole, and again when their number has doubled


class Headway:
    """What a run has brought so far."""

    def __init__(self) -> None:
        self.x, self.same = None, 0  # the last point, and how often it has stayed the same
        self.gap, self.value, self.scale, self.idle = math.inf, math.inf, 0.0, 0  # the smallest gap, the last f, the largest |f|
        self.judged, self.due = None, FIRST_JUDGED  # the certificate that was judged last, and the step to do it next

    def stalled(self, state: State) -> bool:
        """Whether the point stays where it is, or steps have lowered neither the gap nor f for so long that rounding is all.

        The second is asked of estimators that know f with an exact gradient: steps from these never go up.
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
        return self.same >= SAME_POINT or self.idle >= IDLE_STEPS

    def nowhere(self, last: Certificate, wanted: float) -> bool | None:
        """Whether the gap was not halved since it was judged last, nor f lowered by some of the tolerance; None if not due."""
        if last.k < self.due:
            return None
        self.due, before, self.judged = 2 * last.k, self.judged, last
        if before is None or before.k < 2 * FIRST_JUDGED:
            return False
        return last.gap > 0.5 * before.gap and last.value >= before.value - 0.01 * wanted
