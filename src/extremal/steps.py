"""Step rules: eta_k in [0, 1].

A rule may leave open what only the run knows (a horizon, a smoothness constant, the constants of the estimator);
``bind`` fills that in from the run's `Plan` before the first step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, Self, TypeVar

import numpy as np

from extremal import checks
from extremal.iterates import distance2, inner
from extremal.objective import Objective, Segment
from extremal.vertices import Vertex


@dataclass(frozen=True)
class Plan:
    """What a method knows of the run to come, for rules that leave it open."""

    horizon: int | None = None  # K: iterations that the budget allows, None if there is no budget
    d: float = 1.0  # 1/d is the largest step that the estimator's recursion allows
    c: float = 1.0  # step of the non-convex theory relative to 1/sqrt K, see SmallBatch


class Direction:
    """The step from x to a vertex s as a rule sees it; each quantity is computed only if asked for."""

    def __init__(self, f: Objective, x: np.ndarray, g: np.ndarray, s: Vertex):
        self.f, self.x, self.g, self.s = f, x, g, s

    @cached_property
    def gap(self) -> float:
        """<g, x - s>: the Frank-Wolfe gap if g is the gradient, an estimate of it otherwise."""
        return inner(self.x, self.g) - self.s.dot(self.g)

    @cached_property
    def norm2(self) -> float:
        """|s - x|^2."""
        return distance2(self.x, self.s)

    def segment(self) -> Segment:
        """f between x and s."""
        return self.f.along(self.x, self.s)


T = TypeVar("T")


class Step(Protocol):
    """The contract of a step rule."""

    def bind(self, plan: Plan) -> Step:
        """The rule with all that was open filled in."""
        ...

    def eta(self, k: int, direction: Direction) -> float:
        """The step of iteration k = 0, 1, ..."""
        ...


@dataclass(frozen=True)
class OpenLoop:
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

    def bind(self, plan: Plan) -> Self:
        """Nothing is open."""
        return self

    def eta(self, k: int, direction: Direction) -> float:
        """2 / (k + 2)."""
        return 2.0 / (k + 2.0)


@dataclass(frozen=True)
class TwoPhase:
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

    def bind(self, plan: Plan) -> TwoPhase | Anytime:
        """d and K from the plan."""
        d, horizon = _first(self.d, plan.d), _first(self.horizon, plan.horizon)
        return Anytime(d) if horizon is None else replace(self, d=d, horizon=horizon)

    def eta(self, k: int, direction: Direction) -> float:
        """1/d, then 2 / (2d + k - k0)."""
        d, K = _bound(self, self.d), _bound(self, self.horizon)
        k0 = math.ceil(K / 2)
        return 1.0 / d if K <= d or k < k0 else 2.0 / (2.0 * d + k - k0)


@dataclass(frozen=True)
class Anytime:
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

    def bind(self, plan: Plan) -> Self:
        """d from the plan."""
        return replace(self, d=_first(self.d, plan.d))

    def eta(self, k: int, direction: Direction) -> float:
        """2 / (2d + k)."""
        return 2.0 / (2.0 * _bound(self, self.d) + k)


@dataclass(frozen=True)
class InverseSqrt:
    """The step of Theorems 2 and 4, for non-convex f: eta = c / sqrt(K), c = 1.

    Constant over the K iterations that the budget allows; without a horizon, eta_k = c / sqrt(k + 1).

    Parameters
    ----------
    c : float
        In (0, 1].
    horizon : int, optional
        K; taken from the budget if left out.

    Examples
    --------
    >>> InverseSqrt(horizon=100).eta(7, None)
    0.1
    """

    c: float = 1.0
    horizon: int | None = None

    def __post_init__(self):
        checks.within("InverseSqrt", "c", self.c, 0, 1)

    def bind(self, plan: Plan) -> Self:
        """K from the plan."""
        return replace(self, horizon=_first(self.horizon, plan.horizon))

    def eta(self, k: int, direction: Direction) -> float:
        """c / sqrt K."""
        return self.c / math.sqrt(k + 1 if self.horizon is None else max(1, self.horizon))


@dataclass(frozen=True)
class SmallBatch:
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
    InverseSqrt(c=0.5, horizon=100)
    """

    horizon: int | None = None

    def bind(self, plan: Plan) -> InverseSqrt:
        """c and K from the plan."""
        return InverseSqrt(plan.c, _first(self.horizon, plan.horizon))

    def eta(self, k: int, direction: Direction) -> float:
        """Known once bound."""
        return self.bind(Plan()).eta(k, direction)


@dataclass(frozen=True)
class ShortStep:
    """The minimiser of the quadratic upper bound: eta = min(1, <g, x - s> / (L |s - x|^2)).

    With full gradients f never increases; the step of Lacoste-Julien's non-convex analysis.

    Parameters
    ----------
    L : float, optional
        Lipschitz constant of the gradient; the objective's own if left out.

    References
    ----------
    Levitin, Polyak (1966); Lacoste-Julien (2016), arXiv:1607.00345.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.FrankWolfe(step=ex.ShortStep())
    FrankWolfe(step=ShortStep(L=None))
    """

    L: float | None = None

    def __post_init__(self):
        if self.L is not None:
            checks.positive("ShortStep", "L", self.L)

    def bind(self, plan: Plan) -> Self:
        """Nothing is open: the objective knows L."""
        return self

    def eta(self, k: int, direction: Direction) -> float:
        """min(1, gap / (L |s - x|^2)), never negative."""
        curve = (direction.f.smoothness if self.L is None else self.L) * direction.norm2
        return 0.0 if direction.gap <= 0 else min(1.0, direction.gap / curve) if curve > 0 else 1.0


@dataclass(frozen=True)
class LineSearch:
    """The best step on the segment: eta = argmin over t in [0, 1] of f(x + t (s - x)).

    For a linear model a probe costs O(n) on the margins and no product with A (it counts as n values); for `Separable`
    it costs a full gradient. If f is not convex, a stationary point with a smaller f is taken.

    Parameters
    ----------
    tol : float
        Absolute tolerance on eta, relative to 1.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.FrankWolfe(step=ex.LineSearch())
    FrankWolfe(step=LineSearch(tol=1e-10))
    """

    tol: float = 1e-10

    def __post_init__(self):
        checks.positive("LineSearch", "tol", self.tol)

    def bind(self, plan: Plan) -> Self:
        """Nothing is open."""
        return self

    def eta(self, k: int, direction: Direction) -> float:
        """Root of the slope in [0, 1], or the end that the slopes point to."""
        line = direction.segment()
        if line.slope(0.0) >= 0:
            return 0.0  # a noisy g may point uphill
        t = 1.0 if line.slope(1.0) <= 0 else _root(line.slope, self.tol)
        return t if direction.f.convex else _decrease(line, t)


def _root(slope: Callable[[float], float], tol: float) -> float:
    from scipy.optimize import brentq  # imported by the first line search: it takes long

    return float(brentq(slope, 0.0, 1.0, xtol=tol))  # pyright: ignore[reportArgumentType]


def _decrease(line: Segment, t: float) -> float:
    """Halve t until f has fallen: the slope at 0 is negative, so it will."""
    start = line.value(0.0)
    for _ in range(60):
        if line.value(t) <= start:
            return t
        t /= 2
    return 0.0


def _first(*options: T | None) -> T | None:
    return next((option for option in options if option is not None), None)


def _bound(rule: Step, value: T | None) -> T:
    if value is None:
        raise checks.InputError(f"{rule} is not bound: it needs the method's Plan, see `Step.bind`")
    return value
