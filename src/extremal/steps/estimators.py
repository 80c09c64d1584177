"""Steps that go with an estimator: begun anew at each epoch, or with the weights of a substitute gradient."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

from extremal import checks
from extremal.checks import InputError
from extremal.steps.base import Plan, Scheduled, constant, once_bound, wanted
from extremal.support.kinds import Numbers


class ByEpochs(Scheduled):
    """A rule that begins anew at each epoch."""

    def bind(self, plan: Plan) -> Self:
        """Refuse an estimator without epochs."""
        if not plan.epochs:
            raise InputError(f"{self} goes by epochs, and the gradient estimator has none; Svrg and Spider have")
        return self


@dataclass(frozen=True)
class EpochOpenLoop(ByEpochs):
    """The open loop, begun anew at each epoch: eta = 2 / (k + 2) at position k of the epoch.

    References
    ----------
    Hazan, Luo (2016), Variance-reduced and projection-free stochastic optimization, arXiv:1602.02101.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.steps.EpochOpenLoop()
    EpochOpenLoop()
    """

    def at(self, k: Numbers, phase: Any = None) -> Numbers:
        """2 / (k + 2) within the epoch."""
        return 2.0 / (phase.k + 2.0)


@dataclass(frozen=True)
class EpochHarmonic(ByEpochs):
    """The step of SPIDER Frank-Wolfe for convex f: eta = 2 / (K_t + k + 1) at position k of an epoch of length K_t.

    With lengths 1, 2, 4, ... it goes on like 2 / (iterations made so far + 2).

    References
    ----------
    Yurtsever, Sra, Cevher (2019), Conditional gradient methods via stochastic path-integrated differential estimator.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.steps.EpochHarmonic()
    EpochHarmonic()
    """

    def at(self, k: Numbers, phase: Any = None) -> Numbers:
        """2 / (K_t + k + 1)."""
        return 2.0 / (phase.length + phase.k + 1.0)


@dataclass(frozen=True)
class LuFreundStep(Scheduled):
    """The step that goes with the substitute gradient: eta_k = 2 (2m + k) / ((k + 1) (4m + k)), m = n/b.

    Parameters
    ----------
    m : float, optional
        Taken from the estimator if left out.

    References
    ----------
    Lu, Freund (2021), arXiv:1807.07680, with m for their n at batches of b.

    Examples
    --------
    >>> LuFreundStep(m=10).eta(0, None)
    1.0
    """

    m: float | None = None

    def __post_init__(self):
        checks.fix(self, m=constant("LuFreundStep", self.m, "m"))

    def bind(self, plan: Plan) -> Self:
        """m from the plan."""
        return replace(self, m=wanted(self, "m", self.m, plan.m, "Substitute"))

    def at(self, k: Numbers, phase: Any = None) -> Numbers:
        """2 (2m + k) / ((k + 1) (4m + k))."""
        m = once_bound(self, self.m)
        return 2.0 * (2.0 * m + k) / ((k + 1.0) * (4.0 * m + k))
