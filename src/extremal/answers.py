"""What is asked of an answer before it is returned: whether it is in its set, and whether float64 could tell a better one."""

from __future__ import annotations

import math

import numpy as np

from extremal import checks
from extremal.counting import CountedSet
from extremal.iterates import wide
from extremal.objective import Objective
from extremal.result import Certificate
from extremal.sets.base import Unsure, counted

CHECKS = 50  # calls of an oracle, and a tenth of those of the run, that it may take to tell whether a point is in the set
LARGE = 10**7  # entries of a point up to which its rounding is looked at
ROUNDED = 0.25  # share of the tolerance that a change of the gap by rounding must be for the tolerance to be out of reach


def inside(C: CountedSet, x: np.ndarray) -> bool:
    """Whether x is in the set, up to rounding; yes, where only its oracle knows and a moderate number of calls cannot tell.

    These calls count as a certificate's.
    """
    with counted(CHECKS + max(math.prod(x.shape), C.calls.lmos) // 10) as asked:
        try:
            return C.inner.contains(x)
        except Unsure:
            return True
        finally:
            C.calls.certificate_lmos += asked.calls


def at_rounding(f: Objective, C: CountedSet, found: Certificate, wanted: float) -> bool:
    """Whether changing x in its last digits changes the gap by as much as the tolerance ``wanted``: two gradients and LMOs."""
    if math.prod(found.x.shape) > LARGE:
        return False
    rng = np.random.default_rng(0)
    for _ in range(2):
        signs = rng.choice((-1.0, 1.0), found.x.shape)
        g = f.grad(np.asarray(wide(found.x)) * (1.0 + np.finfo(np.float64).eps * signs))
        C.calls.certificate += f.n
        if not checks.all_finite(g) or abs(C.gap(found.x, g) - found.gap) >= ROUNDED * wanted:
            return True
    return False
