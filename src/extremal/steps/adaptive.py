"""Steps that look at f: the short step and the exact line search."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self, cast

from extremal import checks
from extremal.checks import InputError, NonFiniteError
from extremal.objectives.base import Objective, Parabola, Segment
from extremal.quadratic.search import first_decrease
from extremal.steps.base import Direction, Plan, Step
from extremal.support.lazy import imported
from extremal.support.rational import fraction, is_exact


class Adaptive(Step):
    """The base of both rules, which have no open parameters."""

    def bind(self, plan: Plan) -> Self:
        return self


@dataclass(frozen=True)
class ShortStep(Adaptive):
    """The minimiser of the quadratic upper bound: eta = min(1, <g, x - s> / (L |s - x|^2)).

    With full gradients f never increases. Lacoste-Julien's non-convex analysis uses this step.

    Parameters
    ----------
    L : float, optional
        Lipschitz constant of the gradient. Default: the objective's own.

    References
    ----------
    Levitin, Polyak (1966); Lacoste-Julien (2016), arXiv:1607.00345.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.FrankWolfe(step=ex.steps.ShortStep())
    FrankWolfe(step=ShortStep(L=None))
    """

    L: float | None = None

    def __post_init__(self):
        if self.L is not None:
            checks.fix(self, L=checks.positive("ShortStep", "L", self.L))

    def eta(self, k: int, direction: Direction) -> float:
        L = direction.f.smoothness if self.L is None else self.L
        curve = (fraction(L) if is_exact(direction.x) else L) * direction.norm2
        return 0.0 if direction.gap <= 0 else min(1.0, direction.gap / curve) if curve > 0 else 1.0


@dataclass(frozen=True)
class LineSearch(Adaptive):
    """The best step on the segment: eta = argmin over t in [0, 1] of f(x + t (s - x)).

    For a linear model a probe costs O(n) on the margins, without a product with A, and counts as n values. For `Separable` it
    costs a full gradient. If f is not convex, the rule takes a stationary point with a smaller f.

    Parameters
    ----------
    tol : float
        Relative tolerance on eta; steps below 1e-6 tol count as zero.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.FrankWolfe(step=ex.steps.LineSearch())
    FrankWolfe(step=LineSearch(tol=1e-10))
    """

    tol: float = 1e-10

    def __post_init__(self):
        checks.fix(self, tol=checks.positive("LineSearch", "tol", self.tol))

    def eta(self, k: int, direction: Direction) -> float:
        """The root of the slope in [0, 1], or the end to which the slopes point."""
        line = direction.segment()
        if is_exact(direction.x):
            return _exact_root(line)

        def slope(t: float) -> float:
            value = line.slope(t)
            if not math.isfinite(value):
                raise NonFiniteError(f"LineSearch: the slope at eta = {t} is {value}")
            return value

        if slope(0.0) >= 0:
            return 0.0  # a noisy g may point uphill
        t = 1.0 if slope(1.0) <= 0 else -line.fall / line.bend if isinstance(line, Parabola) else _root(slope, self.tol)
        return t if direction.f.convex else _decrease(line, t)


def short_step(f: Objective, otherwise: Step) -> Step:
    """The short step if f knows its L, ``otherwise`` if it does not."""
    try:
        return ShortStep(f.smoothness)
    except InputError:
        return otherwise


def _exact_root(line: Segment) -> Any:
    """The minimiser of a quadratic function in [0, 1], from its slopes at both ends."""
    start, end = line.slope(0), line.slope(1)
    if start >= 0 or end <= 0:
        return 0 if start >= 0 else 1
    t = cast(Any, start) / (start - end)
    if line.slope(t) != 0:
        raise InputError("LineSearch finds the minimiser on a line without rounding for quadratic f only: use OpenLoop()")
    return t


def _root(slope: Callable[[float], float], tol: float) -> float:
    brentq = imported("scipy.optimize").brentq  # imported by the first line search, because it takes long

    asked = [slope]  # brentq's function refers to itself: without this list, its referents would live until the collector runs
    try:
        options = {"xtol": 1e-6 * tol, "rtol": max(tol, 1e-15), "maxiter": 200, "full_output": True, "disp": False}
        return float(brentq(lambda t: asked[0](t), 0.0, 1.0, **options)[0])
    finally:
        asked.clear()


def _decrease(line: Segment, t: float) -> float:
    """Halve t until f has fallen: this ends, because the slope at 0 is negative."""
    found = first_decrease(lambda t: (line.value(t), None), line.value(0.0), 0.0, t, least=t * 2.0**-59, blur=0.0)
    return 0.0 if found is None else found[0]
