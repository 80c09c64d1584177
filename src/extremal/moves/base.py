"""The contract of a move."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from extremal.gradients.base import Estimate, Steps
from extremal.objective import Objective
from extremal.steps import Step
from extremal.vertices import Vertex


class Oracle(Protocol):
    """All that a plain move asks of a set."""

    def lmo(self, g: np.ndarray) -> Vertex: ...


@dataclass(frozen=True)
class Point:
    """Where a run stands; moves that keep more (an active set, a second sequence) add fields."""

    x: np.ndarray  # the iterate, feasible
    query: np.ndarray  # where the next gradient is wanted; x itself, except for accelerated moves
    steps: Steps = ()  # the (eta, s) that led here from the previous point, so that margins can follow


class Move(Protocol):
    """The contract of a move: one oracle call or many, no data access but through f."""

    def start(self, x0: np.ndarray) -> Point:
        """The first point."""
        ...

    def advance(self, k: int, f: Objective, C: Oracle, point: Point, estimate: Estimate, step: Step) -> Point:
        """The point after iteration k."""
        ...
