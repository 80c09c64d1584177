"""What is asked of an answer that misses its tolerance: whether float64 could tell a better one."""

from __future__ import annotations

import math

import numpy as np

from extremal import checks
from extremal.objectives.base import Smooth
from extremal.points.iterates import wide
from extremal.run.counted_set import CountedSet
from extremal.run.result import Certificate

LARGE_POINT = 10**7  # entries of a point up to which its rounding is looked at
ROUNDED = 0.25  # share of the tolerance that a change of the gap by rounding must be for the tolerance to be out of reach
NEAR_ROUNDING = 100.0  # times that change: a gap below is one of rounding, if no step leads farther


def at_rounding(f: Smooth, C: CountedSet, found: Certificate, wanted: float, times: float = NEAR_ROUNDING) -> bool:
    """Whether the gap is at most ``times`` what rounding makes of it, and the tolerance ``wanted`` lies below that."""
    change = _change(f, C, found)
    return change >= ROUNDED * wanted and found.gap <= times * change


def _change(f: Smooth, C: CountedSet, found: Certificate) -> float:
    """How far the gap changes if x changes in its last digits: two gradients and LMOs; 0.0 for very large points."""
    if math.prod(found.x.shape) > LARGE_POINT:
        return 0.0
    rng, most = np.random.default_rng(0), 0.0
    for _ in range(2):
        signs = rng.choice((-1.0, 1.0), found.x.shape)
        g = f.grad(np.asarray(wide(found.x)) * (1.0 + np.finfo(np.float64).eps * signs))
        C.calls.certificate += f.n
        most = max(most, abs(C.gap(found.x, g) - found.gap) if checks.all_finite(g) else math.inf)
    return most
