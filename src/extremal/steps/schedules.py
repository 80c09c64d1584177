"""Steps that are fixed in advance: functions of the iteration, the horizon and the estimator's constants."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from extremal import checks
from extremal.gradients.base import Phase
from extremal.steps.base import Plan, Scheduled, constant, first, once_bound, wanted
from extremal.support.kinds import Numbers


@dataclass(frozen=True)
class OpenLoop(Scheduled):
    """The classical step of Frank-Wolfe: eta_k = 2 / (k + 2).

    With full gradients, f(x_k) - f* <= 2 L D^2 / (k + 2) for convex f.

    References
    ----------
    Jaggi (2013), Revisiting Frank-Wolfe.

    Examples
    --------
    >>> OpenLoop().eta(0, None)
    1.0
    """

    def at(self, k: Numbers, phase: Phase | None = None) -> Numbers:
        """2 / (k + 2)."""
        return 2.0 / (k + 2.0)


@dataclass(frozen=True)
class Decay(Scheduled):
    """A falling step: eta_k = min(1, scale / (k + shift)^power).

    Decay(2, 2) is the open loop, Decay(2, 8) the slower start of momentum methods, Decay(1, 1, 1/2) that of online methods.

    Parameters
    ----------
    scale, shift, power : float
        Positive.

    Examples
    --------
    >>> Decay(2, 8).eta(0, None)
    0.25
    """

    scale: float
    shift: float
    power: float = 1.0

    def __post_init__(self):
        given = {"scale": self.scale, "shift": self.shift, "power": self.power}
        checks.fix(self, **{name: checks.positive("Decay", name, value) for name, value in given.items()})

    def at(self, k: Numbers, phase: Phase | None = None) -> Numbers:
        """scale / (k + shift)^power."""
        return np.minimum(1.0, self.scale / (k + self.shift) ** self.power)


@dataclass(frozen=True)
class FullStep(Scheduled):
    """All the way: eta = 1. For moves whose target is not a vertex, such as plain sliding.

    Examples
    --------
    >>> FullStep().eta(0, None)
    1.0
    """

    def at(self, k: Numbers, phase: Phase | None = None) -> Numbers:
        """1."""
        return 1.0


@dataclass(frozen=True)
class TwoPhase(Scheduled):
    """The step of Theorems 1 and 3 of the Sarah Frank-Wolfe paper: constant first, then falling like 2/k.

        eta_k = 1/d                           if K <= d or k < k0 = ceil(K/2)
        eta_k = 2 / (2d + k - k0)             otherwise

    d is 2/p for Sarah and 4n/b for Saga Sarah. Without a horizon K the rule turns into `Anytime`.

    Parameters
    ----------
    d : float, optional
        Taken from the method if left out.
    horizon : int, optional
        K; taken from the budget if left out.

    References
    ----------
    Beznosikov, Dobre, Gidel (2024), Theorems 1 and 3; Stich (2019), Lemma 3, arXiv:1907.04232.

    Examples
    --------
    >>> rule = TwoPhase(d=10, horizon=100)
    >>> rule.eta(0, None), rule.eta(49, None), rule.eta(60, None)
    (0.1, 0.1, 0.06666666666666667)
    """

    d: float | None = None
    horizon: int | None = None

    def __post_init__(self):
        checks.fix(self, d=constant("TwoPhase", self.d), horizon=_horizon("TwoPhase", self.horizon))

    def bind(self, plan: Plan) -> TwoPhase | Anytime:
        """d and K from the plan."""
        d, horizon = wanted(self, "d", self.d, plan.d), first(self.horizon, plan.horizon)
        return Anytime(d) if horizon is None else replace(self, d=d, horizon=horizon)

    def at(self, k: Numbers, phase: Phase | None = None) -> Numbers:
        """1/d, then 2 / (2d + k - k0)."""
        d, K = once_bound(self, self.d), once_bound(self, self.horizon)
        short = K <= d * (1 + 1e-12)  # K = d exactly may differ by the rounding of d
        return 2.0 / (2.0 * d + (0 if short else np.maximum(0, k - math.ceil(K / 2))))


@dataclass(frozen=True)
class Anytime(Scheduled):
    """The same order as `TwoPhase` without a horizon: eta_k = 2 / (2d + k).

    From r_{k+1} <= (1 - eta_k) r_k + c eta_k^2 follows r_K = O(d^2 r_0 / K^2 + c / K), by the usual induction.

    Parameters
    ----------
    d : float, optional
        Taken from the method if left out.

    Examples
    --------
    >>> Anytime(d=10).eta(0, None), Anytime(d=10).eta(180, None)
    (0.1, 0.01)
    """

    d: float | None = None

    def __post_init__(self):
        checks.fix(self, d=constant("Anytime", self.d))

    def bind(self, plan: Plan) -> Self:
        """d from the plan."""
        return replace(self, d=wanted(self, "d", self.d, plan.d))

    def at(self, k: Numbers, phase: Phase | None = None) -> Numbers:
        """2 / (2d + k)."""
        return 2.0 / (2.0 * once_bound(self, self.d) + k)


@dataclass(frozen=True)
class InverseSqrt(Scheduled):
    """The step of Theorems 2 and 4, for non-convex f: eta = c / K^power, c = 1, power = 1/2.

    Constant over the K iterations that the budget allows; without a horizon, eta_k = c / (k + 1)^power.

    Parameters
    ----------
    c : float
        In (0, 1].
    horizon : int, optional
        K; taken from the budget if left out.
    power : float
        Another power than the square root: 2/3 in some momentum methods.

    Examples
    --------
    >>> InverseSqrt(horizon=100).eta(7, None)
    0.1
    """

    c: float = 1.0
    horizon: int | None = None
    power: float = 0.5

    def __post_init__(self):
        c = checks.within("InverseSqrt", "c", self.c, 0, 1)
        power = checks.within("InverseSqrt", "power", self.power, 0, 1)
        checks.fix(self, c=c, horizon=_horizon("InverseSqrt", self.horizon), power=power)

    def bind(self, plan: Plan) -> Self:
        """K from the plan."""
        return replace(self, horizon=first(self.horizon, plan.horizon))

    def at(self, k: Numbers, phase: Phase | None = None) -> Numbers:
        """c / K^power."""
        return self.c / (k + 1.0 if self.horizon is None else max(1, self.horizon)) ** self.power


@dataclass(frozen=True)
class SmallBatch(Scheduled):
    """A shorter non-convex step for batches below sqrt n: eta = c / sqrt(K), with c from the estimator.

        c = min(1, (p b / (1 - p))^(1/4))   for Sarah
        c = min(1, b / sqrt n)^(1/2)        for Saga Sarah

    With c = 1 the proofs of Theorems 2 and 4 give O(n / eps^2) component gradients at b = 1; balancing their two terms
    gives this c and O(n + sqrt n / eps^2) for every b <= sqrt n, still without L or D.

    Parameters
    ----------
    horizon : int, optional
        K; taken from the budget if left out.

    Examples
    --------
    >>> SmallBatch(horizon=100).bind(Plan(c=0.5))
    InverseSqrt(c=0.5, horizon=100, power=0.5)
    """

    horizon: int | None = None

    def __post_init__(self):
        checks.fix(self, horizon=_horizon("SmallBatch", self.horizon))

    def bind(self, plan: Plan) -> InverseSqrt:
        """c and K from the plan."""
        return InverseSqrt(plan.c, first(self.horizon, plan.horizon))

    def at(self, k: Numbers, phase: Phase | None = None) -> Numbers:
        """Known once bound."""
        return once_bound(self, None)


def _horizon(call: str, horizon: int | None) -> int | None:
    return None if horizon is None else checks.whole(call, "horizon", horizon, 0)
