"""Steps that restart at each epoch of the estimator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from extremal.checks import InputError
from extremal.steps.base import Plan, Scheduled
from extremal.support.kinds import Numbers


class ByEpochs(Scheduled):
    """A rule that restarts at each epoch."""

    def bind(self, plan: Plan) -> Self:
        """Refuse an estimator without epochs."""
        if not plan.epochs:
            raise InputError(f"{self} goes by epochs, and the gradient estimator has none; Svrg and Spider have them")
        return self


@dataclass(frozen=True)
class EpochOpenLoop(ByEpochs):
    """The open loop, restarted at each epoch: eta = 2 / (k + 2) at position k of the epoch.

    References
    ----------
    Hazan, Luo (2016), Variance-reduced and projection-free stochastic optimization, arXiv:1602.02101.

    Examples
    --------
    >>> EpochOpenLoop()
    EpochOpenLoop()
    """

    def at(self, k: Numbers, phase: Any = None) -> Numbers:
        return 2.0 / (phase.k + 2.0)


@dataclass(frozen=True)
class EpochHarmonic(ByEpochs):
    """The step of SPIDER Frank-Wolfe for convex f: eta = 2 / (K_t + k + 1) at position k of an epoch of length K_t.

    With lengths 1, 2, 4, ... the step continues like 2 / (iterations made so far + 2).

    References
    ----------
    Yurtsever, Sra, Cevher (2019), Conditional gradient methods via stochastic path-integrated differential estimator.

    Examples
    --------
    >>> EpochHarmonic()
    EpochHarmonic()
    """

    def at(self, k: Numbers, phase: Any = None) -> Numbers:
        return 2.0 / (phase.length + phase.k + 1.0)
