"""The full gradient at every step: deterministic methods."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from extremal.gradients.base import Facts, OnePoint, PlainEstimate
from extremal.objectives.base import Objective
from extremal.objectives.sampling import Sampler


@dataclass(frozen=True)
class Full(OnePoint[PlainEstimate]):
    """g = grad f(x): n component gradients a step, no memory; every gap is a certificate.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.Method(gradient=ex.gradients.Full(), step=ex.steps.OpenLoop())
    Method(gradient=Full(), step=OpenLoop(), move=VertexMove())
    """

    def facts(self, n: int) -> Facts:
        return Facts(start=n, per_step=n, d=1.0, one_point=True)

    def _at(self, f: Objective, j: int, x: np.ndarray, state: PlainEstimate | None, sampler: Sampler) -> PlainEstimate:
        return PlainEstimate(f.grad(x), exact=True)
