"""The contract of a gradient estimator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from extremal.objective import Objective
from extremal.sampling import Sampler
from extremal.vertices import Vertex

Steps = tuple[tuple[float, Vertex], ...]  # the (eta, s) that led from x_prev to x, in order


class Estimate(Protocol):
    """What an estimator hands on from step to step; each adds its own fields."""

    @property
    def g(self) -> np.ndarray: ...  # the estimate of grad f(x)
    @property
    def exact(self) -> bool: ...  # g is the full gradient at x, computed there: only then is its gap a certificate


@dataclass(frozen=True)
class Facts:
    """What theory says of an estimator on n components: its cost, and the steps its error recursion allows."""

    start: float  # component gradients of init
    per_step: float  # mean component gradients of an update
    d: float = 1.0  # convex f: steps of at most 1/d keep the recursion of the proof contracting
    c: float = 1.0  # non-convex f: step relative to 1/sqrt K that balances the terms of the proof, at most 1


E = TypeVar("E", bound=Estimate)


class Gradient(Protocol[E]):
    """The contract of an estimator: a start, and an update after each move."""

    def facts(self, n: int) -> Facts:
        """Cost and constants on n components; refuses a batch that does not fit."""
        ...

    def init(self, f: Objective, x: np.ndarray, sampler: Sampler) -> E:
        """Estimate at the starting point."""
        ...

    def update(self, f: Objective, k: int, x_prev: np.ndarray, x: np.ndarray, steps: Steps, state: E, sampler: Sampler) -> E:
        """Estimate at x, after step k has led there from x_prev."""
        ...
