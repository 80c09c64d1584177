"""A set and what is known of it from its definition: the rows that tests/sets/test_catalogue.py runs over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import extremal as ex


@dataclass(frozen=True)
class SetCase:
    """One instance of a set; everything beside C is written from the definition or solved by other software."""

    C: ex.ConvexSet  # with its shape
    minimum: Callable[[np.ndarray], float]  # min over s of <g, s>, for g in float64
    sample: Callable[[np.random.Generator], np.ndarray]  # a random feasible point, not by the oracle
    diameter: float | None = None  # the exact one; None if the class says that its own is a bound
    scaled: Callable[[float], ex.ConvexSet] | None = None  # the same set times a factor, with its shape
    tol: float = 1e-9  # accuracy of the oracle and of membership, relative
    name: str = ""  # for the test's name, if the class alone will not do

    def __str__(self) -> str:
        return self.name or repr(self.C)

    @property
    def size(self) -> float:
        """About the largest entry of a point."""
        return max(1e-300, max(float(np.abs(self.sample(np.random.default_rng(i))).max()) for i in range(3)))
