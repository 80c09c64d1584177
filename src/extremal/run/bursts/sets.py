"""Sets as compiled loops take them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal.kernels.codes import CORNER, FILL, LEAST, PEAK, UNIT, WEIGHTED
from extremal.sets.base import ConvexSet
from extremal.support.kinds import Numbers


@dataclass(frozen=True)
class Vertices:
    """A set by its oracle: a number, a size, and two arrays whose meaning depends on the number."""

    code: int
    size: float = 1.0  # radius or total; the amount to be spent for FILL
    lower: Numbers = 0.0  # weights for WEIGHTED; an array, or one number for all entries
    upper: Numbers = 0.0

    @property
    def single(self) -> bool:
        """Whether a vertex has one entry."""
        return self.code < CORNER


def vertices(C: ConvexSet) -> Vertices | None:
    """The set as compiled loops take it; None for sets that they do not know.

    Examples
    --------
    >>> import extremal as ex
    >>> vertices(ex.L1Ball(2.0)), vertices(ex.L2Ball(2.0))
    (Vertices(code=0, size=2.0, lower=0.0, upper=0.0), None)
    """
    known = _KNOWN.get(type(C).__name__) if type(C).__module__.startswith("extremal.sets.") else None
    return None if known is None else known(C)


def _ball(code: int) -> Callable[[Any], Vertices | None]:
    return lambda C: Vertices(code, C.radius, getattr(C, "weights", 0.0)) if C.centre is None else None


def _cube(C: Any) -> Vertices:
    centre = 0.0 if C.centre is None else C.centre
    return Vertices(CORNER, lower=centre - C.radius, upper=centre + C.radius)


def _budget(C: Any) -> Vertices:
    lower, upper, total = C._limits
    amount = total - float(np.broadcast_to(lower, C.shape).sum())
    return Vertices(FILL, amount, lower, upper)


_KNOWN: dict[str, Callable[[Any], Vertices | None]] = {  # by name: the sets are imported by those who use them
    "L1Ball": _ball(PEAK),
    "WeightedL1Ball": _ball(WEIGHTED),
    "Simplex": lambda C: Vertices(LEAST, C.total),
    "UnitSimplex": lambda C: Vertices(UNIT, C.total),
    "Box": lambda C: Vertices(CORNER, lower=C.lower, upper=C.upper),
    "LinfBall": _cube,
    "CappedSimplex": _budget,
    "Hypersimplex": _budget,
    "BudgetBox": _budget,
}
