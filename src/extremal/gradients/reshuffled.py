"""Batches without repetition: each pass over the rows has a random order of its own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from extremal.gradients.base import Estimate, Facts, Steps, Wrapper
from extremal.objectives.base import Objective, Sampler


@dataclass(frozen=True)
class Reshuffled(Wrapper[Estimate]):
    """Another estimator whose batches go through all rows in random order, pass by pass.

        S_0, S_1, ... = consecutive pieces of sigma_1, sigma_2, ...,   sigma_p a random order of all rows

    A row of a table is then never older than two passes, and averages over a pass are exact. Means of single batches are still
    unbiased, but batches depend on each other: theorems about independent batches do not cover them. The cost is that of the
    estimator, and 8 n bytes for two orders.

    Parameters
    ----------
    gradient : Gradient
        An estimator that draws batches of one size, such as ``Saga(batch=10)``.

    References
    ----------
    Mishchenko, Khaled, Richtarik (2020), Random reshuffling, NeurIPS, arXiv:2006.05988.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.gradients.Reshuffled(ex.gradients.Saga(batch=10)).facts(100).per_step
    10
    """

    gradient: Any
    like = "Saga(batch=10)"

    def facts(self, n: int) -> Facts:
        """The facts of the estimator; the run's sampler then goes through the rows."""
        return replace(self.gradient.facts(n), passes=True)

    def init(self, f: Objective, x: np.ndarray, sampler: Sampler) -> Estimate:
        return self.gradient.init(f, x, sampler)

    def update(
        self, f: Objective, k: int, x_prev: np.ndarray, x: np.ndarray, steps: Steps, state: Estimate, sampler: Sampler
    ) -> Estimate:
        return self.gradient.update(f, k, x_prev, x, steps, state, sampler)
