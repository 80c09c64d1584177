"""The loopless SARAH estimator: Algorithm 1 of Beznosikov, Dobre, Gidel, *Sarah Frank-Wolfe* (ICML 2024), line 5."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from extremal import checks
from extremal.gradients.base import Batched, Facts, PlainEstimate, Steps
from extremal.objectives.base import Objective, Sampler


@dataclass(frozen=True)
class Sarah(Batched[PlainEstimate]):
    """A recursive estimate, refreshed by a full gradient with probability p (also known as PAGE).

        g = grad f(x)                                                  with probability p
        g = g_prev + (1/b) sum_{i in S} [grad f_i(x) - grad f_i(x_prev)]   otherwise

    n component gradients at the start, then n or 2b a step; memory O(d).

    Parameters
    ----------
    batch : int
        b, from 1 to n.
    p : float
        In (0, 1]; 1 is the full gradient.
    replace : bool
        Draw the rows of a batch with replacement.

    References
    ----------
    Li, Bao, Zhang, Richtarik (2021), PAGE, arXiv:2008.10898; Beznosikov, Dobre, Gidel (2024), arXiv:2304.11737.

    Examples
    --------
    >>> Sarah(batch=10, p=0.1)
    Sarah(batch=10, p=0.1, replace=False)
    """

    batch: int
    p: float
    replace: bool = False

    def __post_init__(self):
        super().__post_init__()
        checks.fix(self, p=checks.within("Sarah", "p", self.p, 0, 1))

    def facts(self, n: int) -> Facts:
        """p n + 2b (1 - p) component gradients a step; d = 2/p; c = (p b / (1 - p))^(1/4), at most 1."""
        b, p = checks.whole("Sarah", "batch", self.batch, 1, n), self.p
        c = min(1.0, (p * b / (1 - p)) ** 0.25) if p < 1 else 1.0
        return Facts(start=n, per_step=p * n + 2 * b * (1 - p), d=2 / p, c=c)

    def init(self, f: Objective, x: np.ndarray, sampler: Sampler) -> PlainEstimate:
        return PlainEstimate(f.grad(x), exact=True)

    def update(
        self, f: Objective, k: int, x_prev: np.ndarray, x: np.ndarray, steps: Steps, state: PlainEstimate, sampler: Sampler
    ) -> PlainEstimate:
        if sampler.coin(k) < self.p:
            return PlainEstimate(f.grad(x), exact=True)  # g^{k+1} = grad f(x^{k+1})
        idx = sampler.rows(k, self.batch, self.replace)  # S_k
        change = f.derivs(x, idx) - f.derivs(x_prev, idx)  # grad f_i(x^{k+1}) - grad f_i(x^k)
        return PlainEstimate(state.g + f.combine(change, idx), exact=False)
