"""How far to go along a Newton step."""

from __future__ import annotations

from extremal.objectives.base import Segment

SUFFICIENT = 1e-4  # share of the slope that counts as a decrease
UNSEEN = 1e-15, 1e-10  # shares of f: its rounding, and what a decrease may be to be lost in it
SLOPE_HALVINGS = 40  # of the part of a step in which the slope vanishes


def armijo(line: Segment, value: float, slope: float, bend: float, most: float, scale: float = 0.0) -> float:
    """t = 1 if f falls enough there, else 1/2, 1/4, ...; or 2, 4, ... up to ``most`` while f falls more than the model says.

    Where f, or numbers of size ``scale`` that it is made of, hide the decrease in their rounding, slopes tell instead of values.
    """
    t, scale = min(1.0, most), max(abs(value), scale)
    tiny, now = UNSEEN[0] * abs(value), line.value(t)
    if -slope <= UNSEEN[1] * scale and now <= value + 10 * UNSEEN[0] * scale:
        for _ in range(SLOPE_HALVINGS):
            if line.slope(t) <= -0.9 * slope:  # f still falls there, or rises less than it fell
                return t
            t /= 2
        return 0.0
    while not now <= value + SUFFICIENT * t * slope + tiny:
        t /= 2
        if t < 1e-12:
            return 0.0
        now = line.value(t)
    while value - now < 0.7 * -t * (
        slope + t * bend
    ):  # it falls less than the model says: perhaps it would not have to go so far
        if not (then := line.value(0.5 * t)) < now:
            break
        t, now = 0.5 * t, then
    if t == 1.0 and value - now > 1.1 * -(slope + bend):
        while t < most:
            further = min(2 * t, most)
            if not (then := line.value(further)) < now:
                break
            t, now = further, then
    return t
