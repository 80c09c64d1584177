"""The substitute gradient of Lu and Freund: derivatives at margins that follow the vertices instead of any x."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal import checks
from extremal.gradients.base import Batched, Facts, PlainEstimate, Steps
from extremal.gradients.table import DerivativeTable
from extremal.objectives.base import Sampler
from extremal.support.memory import stored


@dataclass(frozen=True)
class SubstituteEstimate(PlainEstimate):
    """The substitute gradient and its parts; exact at the start only."""

    sigma: np.ndarray  # substitutes for the margins, changed in place by the next update
    table: DerivativeTable  # phi'(sigma_i), changed in place by the next update


@dataclass(frozen=True)
class Substitute(Batched[SubstituteEstimate]):
    """g = (1/n) sum_i phi'(sigma_i) a_i, where sigma_i moves toward the margin of the last vertex.

        sigma_i <- sigma_i + theta_k (<a_i, s_k> - sigma_i)  for i in S,   theta_k = min(1, scale 2m / (2m + k + 1)),  m = n/b

    Cost: n component gradients at the start, then b per step, never at an iterate. Requires a linear model. Memory: 2n numbers.

    Parameters
    ----------
    batch : int
        b, from 1 to n.
    replace : bool
        Whether to draw the rows of a batch with replacement.
    scale : float
        Default: 1, as published. The mean of sigma follows x only while theta_k / m is about the step. If the step is multiplied
        by a constant, multiply theta by the same constant.

    References
    ----------
    Lu, Freund (2021), Generalized stochastic Frank-Wolfe algorithm with stochastic substitute gradient, arXiv:1807.07680.

    Examples
    --------
    >>> Substitute(batch=10)
    Substitute(batch=10, replace=False, scale=1.0)
    """

    batch: int
    replace: bool = False
    scale: float = 1.0

    def __post_init__(self):
        super().__post_init__()
        checks.fix(self, scale=checks.positive("Substitute", "scale", self.scale))

    def facts(self, n: int) -> Facts:
        b = checks.whole("Substitute", "batch", self.batch, 1, n)
        return Facts(start=n, per_step=b, m=n / b, needs=("margins", "vertex_margins", "derivs_at"), one_vertex=True)

    def init(self, f: Any, x: np.ndarray, sampler: Sampler) -> SubstituteEstimate:
        """sigma_i = <a_i, x0>, so g is the gradient itself."""
        sigma = stored(f.here(f.margins(x)))
        table = DerivativeTable.of(f, stored(f.here(f.derivs_at(sigma))))
        return SubstituteEstimate(table.mean, True, sigma, table)

    def update(
        self, f: Any, k: int, x_prev: np.ndarray, x: np.ndarray, steps: Steps, state: SubstituteEstimate, sampler: Sampler
    ) -> SubstituteEstimate:
        m = f.n / self.batch
        theta = min(1.0, self.scale * 2 * m / (2 * m + k + 1))
        idx = sampler.rows(k, self.batch, self.replace)
        ((_, s),) = steps
        sigma, table = state.sigma, state.table
        sigma[idx] += theta * (f.vertex_margins(s, idx) - sigma[idx])  # once for each i, even if idx repeats it
        table.put(f, idx, f.derivs_at(sigma[idx], idx), distinct=not self.replace)
        return SubstituteEstimate(table.mean, False, sigma, table)
