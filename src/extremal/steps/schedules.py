"""Steps fixed in advance: functions of the iteration, the horizon and the estimator's constants."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from extremal import checks
from extremal.gradients.base import Phase
from extremal.steps.base import Plan, Scheduled, first, once_bound, wanted
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
        return 2 / (k + 2)  # a fraction if k is one


@dataclass(frozen=True)
class LogOpenLoop(Scheduled):
    """An open loop whose constant grows: eta_k = l / (k + l) with l = 2 + log(k + 1).

    The constant l of the step l / (k + l) limits the order of convergence over strongly convex sets and on strongly convex f:
    larger constants allow higher orders, and begin more slowly. This rule needs no choice.

    References
    ----------
    Pokutta (2024), The Frank-Wolfe algorithm: a short introduction, arXiv:2311.05313; Wirth, Kerdreux, Pokutta (2023),
    Acceleration of Frank-Wolfe algorithms with open-loop step-sizes, AISTATS, arXiv:2205.12838.

    Examples
    --------
    >>> LogOpenLoop().eta(0, None), round(LogOpenLoop().eta(100, None), 4)
    (1.0, 0.062)
    """

    def at(self, k: Numbers, phase: Phase | None = None) -> Numbers:
        constant = 2.0 + np.log(k + 1.0)
        return constant / (k + constant)


@dataclass(frozen=True)
class Decay(Scheduled):
    """A decreasing step: eta_k = min(1, scale / (k + shift)^power).

    Decay(2, 2) is the open loop, Decay(2, 8) the slower start of momentum methods, Decay(1, 1, 1/2) the step of online methods.

    Parameters
    ----------
    scale, shift, power : float
        Positive numbers.

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
        return np.minimum(1.0, self.scale / (k + self.shift) ** self.power)


@dataclass(frozen=True)
class FullStep(Scheduled):
    """The full step: eta = 1, for moves whose target is not a vertex, such as plain sliding.

    Examples
    --------
    >>> FullStep().eta(0, None)
    1.0
    """

    def at(self, k: Numbers, phase: Phase | None = None) -> Numbers:
        return 1.0


class Open(Scheduled):
    """The base of rules with open constants: a given d or m is at least 1, a given horizon is a whole number."""

    def __post_init__(self):
        call, given = type(self).__name__, {name: item for name, item in vars(self).items() if item is not None}
        for name in given.keys() & {"d", "m"}:
            checks.fix(self, **{name: checks.at_least(call, name, given[name], 1)})
        if "horizon" in given:
            checks.fix(self, horizon=checks.whole(call, "horizon", given["horizon"], 0))


@dataclass(frozen=True)
class TwoPhase(Open):
    """The step of Theorems 1 and 3 of the Sarah Frank-Wolfe paper: first constant, then falling like 2/k.

        eta_k = 1/d                           if K <= d or k < k0 = ceil(K/2)
        eta_k = 2 / (2d + k - k0)             otherwise

    d is 2/p for Sarah and 4n/b for Saga Sarah. Without a horizon K the rule becomes `Anytime`.

    Parameters
    ----------
    d : float, optional
        Default: the method's.
    horizon : int, optional
        K. Default: from the budget.

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

    def bind(self, plan: Plan) -> TwoPhase | Anytime:
        d, horizon = wanted(self, "d", self.d, plan.d), first(self.horizon, plan.horizon)
        return Anytime(d) if horizon is None else replace(self, d=d, horizon=horizon)

    def at(self, k: Numbers, phase: Phase | None = None) -> Numbers:
        d, K = once_bound(self, self.d), once_bound(self, self.horizon)
        short = K <= d * (1 + 1e-12)  # rounding of d must not decide the case K = d
        return 2.0 / (2.0 * d + (0 if short else np.maximum(0, k - math.ceil(K / 2))))


@dataclass(frozen=True)
class Anytime(Open):
    """A step of the same order as `TwoPhase`, without a horizon: eta_k = 2 / (2d + k).

    r_{k+1} <= (1 - eta_k) r_k + c eta_k^2 implies r_K = O(d^2 r_0 / K^2 + c / K), by the usual induction.

    Parameters
    ----------
    d : float, optional
        Default: the method's.

    Examples
    --------
    >>> Anytime(d=10).eta(0, None), Anytime(d=10).eta(180, None)
    (0.1, 0.01)
    """

    d: float | None = None

    def bind(self, plan: Plan) -> Self:
        return replace(self, d=wanted(self, "d", self.d, plan.d))

    def at(self, k: Numbers, phase: Phase | None = None) -> Numbers:
        return 2.0 / (2.0 * once_bound(self, self.d) + k)


@dataclass(frozen=True)
class InverseSqrt(Open):
    """The step of Theorems 2 and 4, for non-convex f: eta = c / K^power, c = 1, power = 1/2.

    The step is constant over the K iterations that the budget allows; without a horizon, eta_k = c / (k + 1)^power.

    Parameters
    ----------
    c : float
        A number in (0, 1].
    horizon : int, optional
        K. Default: from the budget.
    power : float
        The power; some momentum methods have 2/3.

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
        checks.fix(self, c=c, power=power)
        super().__post_init__()

    def bind(self, plan: Plan) -> Self:
        return replace(self, horizon=first(self.horizon, plan.horizon))

    def at(self, k: Numbers, phase: Phase | None = None) -> Numbers:
        return self.c / (k + 1.0 if self.horizon is None else max(1, self.horizon)) ** self.power


@dataclass(frozen=True)
class SmallBatch(Open):
    """A shorter non-convex step for batches below sqrt n: eta = c / sqrt(K), with c from the estimator.

        c = min(1, (p b / (1 - p))^(1/4))   for Sarah
        c = min(1, b / sqrt n)^(1/2)        for Saga Sarah

    With c = 1 the proofs of Theorems 2 and 4 give O(n / eps^2) component gradients at b = 1. Balancing their two terms gives
    this c and O(n + sqrt n / eps^2) for every b <= sqrt n, again without L or D.

    Parameters
    ----------
    horizon : int, optional
        K. Default: from the budget.

    Examples
    --------
    >>> SmallBatch(horizon=100).bind(Plan(c=0.5))
    InverseSqrt(c=0.5, horizon=100, power=0.5)
    """

    horizon: int | None = None

    def bind(self, plan: Plan) -> InverseSqrt:
        return InverseSqrt(plan.c, first(self.horizon, plan.horizon))

    def at(self, k: Numbers, phase: Phase | None = None) -> Numbers:
        return once_bound(self, None)


@dataclass(frozen=True)
class LuFreundStep(Open):
    """The step for the substitute gradient: eta_k = 2 (2m + k) / ((k + 1) (4m + k)), m = n/b.

    Parameters
    ----------
    m : float, optional
        Default: the estimator's.

    References
    ----------
    Lu, Freund (2021), arXiv:1807.07680, with m instead of their n for batches of b.

    Examples
    --------
    >>> LuFreundStep(m=10).eta(0, None)
    1.0
    """

    m: float | None = None

    def bind(self, plan: Plan) -> Self:
        return replace(self, m=wanted(self, "m", self.m, plan.m, "Substitute"))

    def at(self, k: Numbers, phase: Phase | None = None) -> Numbers:
        m = once_bound(self, self.m)
        return 2.0 * (2.0 * m + k) / ((k + 1.0) * (4.0 * m + k))
