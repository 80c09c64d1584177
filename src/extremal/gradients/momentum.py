"""Averages over time: momentum, and its variance-reduced form STORM."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.gradients import batches
from extremal.gradients.base import Batched, Facts, OnePoint, PlainEstimate, Steps
from extremal.laws import PowerLaw
from extremal.objectives.base import Objective, Sampler

PUBLISHED = PowerLaw(4.0, 9.0, -2 / 3)  # 4 / (t + 8)^(2/3), t = 1, 2, ...
HARMONIC = PowerLaw(1.0, 1.0, -1.0)  # 1/t, t = 1, 2, ...


def check_rho(call: str, rho: PowerLaw) -> None:
    """Refuse anything but a law; ``weight`` caps the weight at 1."""
    if not isinstance(rho, PowerLaw):
        raise InputError(f"`{call}(rho=...)` must be a PowerLaw such as PowerLaw(1, 1, -1) for 1/t, got {rho!r}")


def weight(rho: PowerLaw, j: int) -> float:
    """rho_j, at most 1."""
    return min(1.0, rho(j))


@dataclass(frozen=True)
class Momentum(OnePoint[PlainEstimate], Batched[PlainEstimate]):
    """g_j = (1 - rho_j) g_{j-1} + rho_j (1/b) sum_{i in S_j} grad f_i(x_j), g_{-1} = 0: the whole vector decays.

    Cost: b component gradients per step, memory O(d).

    Parameters
    ----------
    batch : int
        b, from 1 to n.
    rho : PowerLaw
        Weight of the new gradient at estimate j = 0, 1, ... Default: 4 / (j + 9)^(2/3), as published.
    replace : bool
        Whether to draw the rows of a batch with replacement.

    References
    ----------
    Mokhtari, Hassani, Karbasi (2020), Stochastic conditional gradient methods, JMLR.

    Examples
    --------
    >>> Momentum(batch=10).rho
    PowerLaw(scale=4.0, shift=9.0, power=-0.6666666666666666)
    """

    batch: int
    rho: PowerLaw = PUBLISHED
    replace: bool = False

    def __post_init__(self):
        super().__post_init__()
        check_rho("Momentum", self.rho)

    def facts(self, n: int) -> Facts:
        b = checks.whole("Momentum", "batch", self.batch, 1, n)
        return Facts(start=b, per_step=b)

    def _at(self, f: Objective, j: int, x: np.ndarray, state: PlainEstimate | None, sampler: Sampler) -> PlainEstimate:
        rho = weight(self.rho, j)
        new = rho * batches.mean(f, x, sampler.rows(j, self.batch, self.replace))
        return PlainEstimate(new if state is None else (1 - rho) * state.g + new, exact=False)


@dataclass(frozen=True)
class Storm(Batched[PlainEstimate]):
    """Momentum that carries its old part to the new point with the same batch.

        g_j = grad f_S(x_j) + (1 - rho_j) (g_{j-1} - grad f_S(x_{j-1})),   grad f_S = (1/b) sum_{i in S_j} grad f_i

    Cost: b component gradients at the start, 2b per step, memory O(d).

    Parameters
    ----------
    batch : int
        b, from 1 to n.
    rho : PowerLaw
        Weight at estimate j = 0, 1, ... Default: 1 / (j + 1), as for convex f in 1-SFW.
    replace : bool
        Whether to draw the rows of a batch with replacement.

    References
    ----------
    Cutkosky, Orabona (2019), Momentum-based variance reduction, arXiv:1905.10018; Zhang et al. (2020), One sample
    stochastic Frank-Wolfe, arXiv:1910.04322 (its oblivious form).

    Examples
    --------
    >>> Storm(batch=1).rho(0)
    1.0
    """

    batch: int
    rho: PowerLaw = HARMONIC
    replace: bool = False

    def __post_init__(self):
        super().__post_init__()
        check_rho("Storm", self.rho)

    def facts(self, n: int) -> Facts:
        b = checks.whole("Storm", "batch", self.batch, 1, n)
        return Facts(start=b, per_step=2 * b)

    def init(self, f: Objective, x: np.ndarray, sampler: Sampler) -> PlainEstimate:
        return PlainEstimate(batches.mean(f, x, sampler.rows(0, self.batch, self.replace)), exact=False)

    def update(
        self, f: Objective, k: int, x_prev: np.ndarray, x: np.ndarray, steps: Steps, state: PlainEstimate, sampler: Sampler
    ) -> PlainEstimate:
        keep = 1 - weight(self.rho, k + 1)
        idx = sampler.rows(k + 1, self.batch, self.replace)
        change = f.derivs(x, idx) - keep * f.derivs(x_prev, idx)
        return PlainEstimate(f.combine(change, idx) + keep * state.g, exact=False)
