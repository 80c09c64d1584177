"""A step on its way: f along it, and how far it goes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from extremal.objectives.base import Segment
from extremal.objectives.slices import Slice


class LookedLine:
    """f on the way from x to x + d, at which it may have been looked: ``there`` is its value and its margins then."""

    def __init__(self, at: Any, part: Slice, d: np.ndarray, there: tuple[float, np.ndarray] | None):
        self.at, self.part, self.d, self.there = at, part, d, there

    @cached_property
    def dz(self) -> np.ndarray:
        """The change of the margins."""
        return self.part.dot(self.d) if self.there is None else self.at.f.change(self.at.z, self.there[1])

    @cached_property
    def line(self) -> Segment:
        """f by margins between both ends."""
        return self.at.f.between(self.at.z, self.dz)

    @property
    def size(self) -> float:
        """The root mean square of the change of the margins."""
        return self.at.f.length(self.dz)

    def value(self, t: float) -> float:
        """At t = 1 as it was seen."""
        return self.line.value(t) if self.there is None or t != 1.0 else self.there[0]

    def slope(self, t: float) -> float:
        """By margins."""
        return self.line.slope(t)


@dataclass(frozen=True)
class Descent:
    """A step that was found."""

    t: float  # the share of it to be taken; 0 if f does not fall there
    kept: Any  # what the solution of its model is kept as
    value: float  # f there
    line: LookedLine  # the way
    width: float = 0.0  # of the model for the next step
    H: Any = None  # what was learnt on the way
    x: np.ndarray | None = None  # the point at t = 1, if f has been looked at there
