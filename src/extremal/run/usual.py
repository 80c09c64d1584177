"""What a run may spend that nobody has given a budget: by counts of operations, never by a clock."""

from __future__ import annotations

import math

from extremal.losses.weighted import unweighted
from extremal.objectives.base import Smooth
from extremal.objectives.intercept import InterceptModel

USUAL_PASSES = 1000  # of a run without a budget
MORE_PASSES = 5000  # of one for an answer, if its passes are small
SMALL_RUN, FEW_LMOS = 1e9, 5000  # multiplications of passes that are small; oracle calls by then, at most
LEVEL_RUN, FEW_ROWS = 1e7, 1000  # margins in all passes, where classes have intercepts; rows that take no longer than none
QUADRATIC_WORK, QUADRATIC_SHARE = 6e8, 4.0  # numbers that quadratic problems may read; times what all passes do, if that is more


def usual_grads(f: Smooth, passes: int = USUAL_PASSES) -> int:
    """Component gradients: so many passes, or fewer where each finds the best intercepts of classes.

    Such intercepts take dozens of looks at all rows.
    """
    tied = math.prod(f.deriv_shape) if isinstance(f, InterceptModel) and is_tied(f) else 0
    return (min(passes, max(1, int(LEVEL_RUN / (tied * (f.n + FEW_ROWS))))) if tied else passes) * f.n


def extended_grads(f: Smooth, lmos: int) -> int:
    """The same of a run for an answer: more, where passes are small and the oracle was asked little so far."""
    return min(usual_grads(f, MORE_PASSES), int(SMALL_RUN / math.prod(f.shape))) if lmos <= FEW_LMOS else 0


def usual_work(f: Smooth) -> float:
    """Numbers of atoms that the quadratic problems of its steps may read."""
    return max(QUADRATIC_WORK, QUADRATIC_SHARE * USUAL_PASSES * f.n * math.prod(f.shape))


def is_tied(f: InterceptModel) -> bool:
    """Whether one target ties the intercepts of all outputs together."""
    return bool(f.deriv_shape) and not unweighted(f.loss).target_shape  # type: ignore[attr-defined]
