"""The full gradient at every step: deterministic methods."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from extremal.gradients.base import Facts, PlainEstimate, Steps
from extremal.objectives.base import Objective
from extremal.objectives.sampling import Sampler


@dataclass(frozen=True)
class Full:
    """g = grad f(x): n component gradients a step, no memory; every gap is a certificate.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.Method(gradient=ex.gradients.Full(), step=ex.steps.OpenLoop())
    Method(gradient=Full(), step=OpenLoop(), move=VertexMove())
    """

    def facts(self, n: int) -> Facts:
        """n component gradients a step, no error."""
        return Facts(start=n, per_step=n, d=1.0, one_point=True)

    def init(self, f: Objective, x: np.ndarray, sampler: Sampler) -> PlainEstimate:
        """grad f(x0)."""
        return PlainEstimate(f.grad(x), exact=True)

    def update(
        self, f: Objective, k: int, x_prev: np.ndarray, x: np.ndarray, steps: Steps, state: PlainEstimate, sampler: Sampler
    ) -> PlainEstimate:
        """grad f(x)."""
        return PlainEstimate(f.grad(x), exact=True)
