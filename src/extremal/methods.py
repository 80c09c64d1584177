"""The named methods: each a gradient estimator, a move and a step rule.

A method is given by its own parameters only. ``prepare`` fits it to a problem and a budget: open parameters get the
values that the method's theory suggests, and the step rule learns the horizon.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, Protocol

from extremal import checks
from extremal.checks import InputError
from extremal.gradients import Facts, Full, Gradient, SagaSarah, Sarah
from extremal.moves import Move, VertexMove
from extremal.objective import Objective
from extremal.steps import InverseSqrt, OpenLoop, Plan, ShortStep, Step, TwoPhase, check_step


@dataclass(frozen=True)
class Budget:
    """What a run may spend; None is no limit."""

    max_grads: int | None = None  # component gradients of the method
    max_iter: int | None = None  # iterations
    max_seconds: float | None = None  # on the run's clock

    def horizon(self, facts: Facts) -> int | None:
        """K: the iterations that fit in max_iter and, in the mean, in max_grads."""
        limits = [] if self.max_iter is None else [self.max_iter]
        if self.max_grads is not None:
            limits.append(max(1, round((self.max_grads - facts.start) / facts.per_step)))
        return min(limits, default=None)


class Recipe(Protocol):
    """Anything that can be made into a method for a problem and a budget."""

    def prepare(self, f: Objective, budget: Budget) -> Method: ...


@dataclass(frozen=True)
class Method:
    """A method from its parts: any gradient estimator x any move x any step rule.

    Parameters
    ----------
    gradient : Gradient
        How g is made.
    step : Step
        How far to go; what it leaves open is filled in from the budget and the estimator.
    move : Move
        How the iterate moves given g.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.eye(2), np.array([1.0, 1.0]))
    >>> method = ex.Method(gradient=ex.Sarah(batch=1, p=0.5), step=ex.LineSearch())
    >>> ex.minimize(f, ex.Simplex(), method=method, max_iter=50).x.round(6)
    array([0.5, 0.5])
    """

    gradient: Gradient[Any]
    step: Step
    move: Move = field(default_factory=VertexMove)

    def __post_init__(self):
        check_step("Method", self.step)

    def prepare(self, f: Objective, budget: Budget) -> Method:
        """The same method with its step rule bound."""
        facts = self.gradient.facts(f.n)
        return replace(self, step=self.step.bind(Plan(budget.horizon(facts), facts.d, facts.c)))


@dataclass(frozen=True)
class FrankWolfe:
    """Frank-Wolfe with full gradients.

        s = lmo(grad f(x)),   x <- x + eta_k (s - x)

    n component gradients and one LMO an iteration, no memory. For convex f, f(x_k) - f* <= 2 L D^2 / (k + 2) with the
    default step; for non-convex f, the smallest gap falls like 1/sqrt k.

    Parameters
    ----------
    step : Step, optional
        `OpenLoop` (the default for convex f), `ShortStep` (the default for non-convex f that know their L),
        `LineSearch`, or any other; non-convex f without L get `InverseSqrt`.

    References
    ----------
    Frank, Wolfe (1956); Jaggi (2013); Lacoste-Julien (2016), arXiv:1607.00345.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.eye(2), np.array([1.0, 3.0]))
    >>> r = ex.minimize(f, ex.L1Ball(2.0), method=ex.FrankWolfe(step=ex.LineSearch()))
    >>> r.x, r.gap <= 1e-4 * r.value
    (array([0., 2.]), True)
    """

    step: Step | None = None

    summary: ClassVar[str] = "full gradients; convex O(1/k), non-convex O(1/sqrt k)"

    def __post_init__(self):
        _check("FrankWolfe", self.step)

    def prepare(self, f: Objective, budget: Budget) -> Method:
        """Step by convexity, if it is open."""
        step = self.step or (OpenLoop() if f.convex else _short_step(f))
        return Method(Full(), step).prepare(f, budget)


@dataclass(frozen=True)
class SarahFW:
    """Sarah Frank-Wolfe: Algorithm 1 of the paper, a recursive estimator with occasional full gradients.

        s^k = lmo(g^k),   x^{k+1} = x^k + eta_k (s^k - x^k)
        g^{k+1} = grad f(x^{k+1})                                                     with probability p
        g^{k+1} = g^k + (1/b) sum_{i in S_k} [grad f_i(x^{k+1}) - grad f_i(x^k)]      otherwise

    n component gradients at the start, then p n + 2b (1 - p) (at most 4b) and one LMO an iteration; memory O(d).
    Convex f: O~(n + sqrt n Lt D^2 / eps) component gradients for any b <= sqrt n. Needs to know neither L nor D.

    Parameters
    ----------
    batch : int, optional
        b. Left out, ceil(sqrt n): the bound on component gradients is the same for all b <= sqrt n (Corollary 1), the
        bound on LMO calls is smallest at sqrt n, and for non-convex f both are. The paper's experiments take n/100.
    p : float, optional
        Left out, 2b / (n + 2b): full gradients and differences then cost the same in the mean.
    step : Step, optional
        Left out, Theorem 1's two-phase step for convex f (`TwoPhase`, or `Anytime` if the budget sets no horizon) and
        Theorem 2's 1/sqrt K for others (`InverseSqrt`; see also `SmallBatch`).
    replace : bool
        Draw the rows of a batch with replacement. Distinct rows have the smaller variance and are the default.

    References
    ----------
    Beznosikov, Dobre, Gidel (2024), Sarah Frank-Wolfe, ICML, Algorithm 1, Theorems 1 and 2. arXiv:2304.11737.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((200, 20))
    >>> f = ex.LinearModel(ex.Logistic(), A, np.sign(A[:, 0]))
    >>> r = ex.minimize(f, ex.L1Ball(5.0), method=ex.SarahFW(), max_grads=100 * f.n, tol=0)
    >>> r.gap < 0.02, r.calls.grads >= 100 * f.n
    (True, True)
    """

    batch: int | None = None
    p: float | None = None
    step: Step | None = None
    replace: bool = False
    summary: ClassVar[str] = "Algorithm 1: variance-reduced, any batch, occasional full gradients, memory O(d)"

    def __post_init__(self):
        _check("SarahFW", self.step, self.batch)
        if self.p is not None:
            checks.within("SarahFW", "p", self.p, 0, 1)

    def prepare(self, f: Objective, budget: Budget) -> Method:
        """B, p and the step of the theory, where they are open."""
        b = _batch("SarahFW", self.batch, f.n)
        p = 2 * b / (f.n + 2 * b) if self.p is None else self.p
        return Method(Sarah(b, p, self.replace), self.step or _theory_step(f)).prepare(f, budget)


@dataclass(frozen=True)
class SagaSarahFW:
    """Saga Sarah Frank-Wolfe: Algorithm 2 of the paper, which never needs a full gradient.

        s^k = lmo(g^k),   x^{k+1} = x^k + eta_k (s^k - x^k)
        g^{k+1} = (1/b) sum_{S_k} [grad f_i(x^{k+1}) - grad f_i(x^k)] + (1 - lam) g^k
                  + lam ( (1/b) sum_{S_k} [grad f_i(x^k) - y_i^k] + (1/n) sum_j y_j^k )
        y_i^{k+1} = grad f_i(x^{k+1}) for i in S_k

    2b component gradients and one LMO an iteration. The table y holds n numbers for a linear model, n gradients for
    `Separable`: above 1 GiB a warning says so, and one that does not fit in memory is refused. Same bounds as `SarahFW`.

    Parameters
    ----------
    batch : int, optional
        b. Left out, ceil(sqrt n), for the reasons given at `SarahFW`.
    lam : float, optional
        lambda. Left out, b / (2n), as in Theorems 3 and 4.
    step : Step, optional
        Left out, Theorem 3's two-phase step for convex f, Theorem 4's 1/sqrt K for others.
    start : "full" or "cold"
        "full" starts from the gradient and its table, for n component gradients; this is what the theorems' bounds
        assume. "cold" starts from one random component and y = 0; after K iterations the error that brings is damped
        by exp(-b K / 8n).
    replace : bool
        Draw the rows of a batch with replacement. Distinct rows have the smaller variance, refresh the table faster,
        and are the default.

    References
    ----------
    Beznosikov, Dobre, Gidel (2024), Sarah Frank-Wolfe, ICML, Algorithm 2, Theorems 3 and 4. arXiv:2304.11737.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((200, 20))
    >>> f = ex.LinearModel(ex.Logistic(), A, np.sign(A[:, 0]))
    >>> r = ex.minimize(f, ex.L1Ball(5.0), method=ex.SagaSarahFW(start="cold"), max_iter=1000, tol=0)
    >>> r.calls.grads == 1 + 1000 * 2 * 15, r.calls.lmos
    (True, 1000)
    """

    batch: int | None = None
    lam: float | None = None
    step: Step | None = None
    start: Literal["full", "cold"] = "full"
    replace: bool = False
    summary: ClassVar[str] = "Algorithm 2: variance-reduced, any batch, no full gradients, a table of n derivatives"

    def __post_init__(self):
        _check("SagaSarahFW", self.step, self.batch)
        if self.lam is not None:
            checks.within("SagaSarahFW", "lam", self.lam, 0, 1)
        checks.one_of("start", self.start, ("full", "cold"))

    def prepare(self, f: Objective, budget: Budget) -> Method:
        """B, lambda and the step of the theory, where they are open."""
        b = _batch("SagaSarahFW", self.batch, f.n)
        lam = b / (2 * f.n) if self.lam is None else self.lam
        return Method(SagaSarah(b, lam, self.start, self.replace), self.step or _theory_step(f)).prepare(f, budget)


METHODS: dict[str, type[FrankWolfe] | type[SarahFW] | type[SagaSarahFW]] = {  # names on the command line
    "frank-wolfe": FrankWolfe,
    "sarah-fw": SarahFW,
    "saga-sarah-fw": SagaSarahFW,
}


def as_recipe(method: Recipe | str | None) -> Recipe:
    """The method that was asked for: an object, a name from ``METHODS``, or `SarahFW` if left open."""
    if method is None:
        return SarahFW()
    if isinstance(method, str):
        return METHODS[checks.one_of("method", method, METHODS)]()
    if isinstance(method, type) or not hasattr(method, "prepare"):
        raise InputError(f"`minimize(method=...)` must be a method such as SarahFW() or a name, got {method!r}")
    return method


def _theory_step(f: Objective) -> Step:
    return TwoPhase() if f.convex else InverseSqrt()


def _short_step(f: Objective) -> Step:
    try:
        return ShortStep(f.smoothness)
    except InputError:
        return InverseSqrt()


def _check(call: str, step: Step | None, batch: int | None = None) -> None:
    if step is not None:
        check_step(call, step)
    if batch is not None:
        checks.whole(call, "batch", batch, 1)


def _batch(call: str, batch: int | None, n: int) -> int:
    return math.ceil(math.sqrt(n)) if batch is None else checks.whole(call, "batch", batch, 1, n)
