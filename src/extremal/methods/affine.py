"""Methods for a second, affine constraint beside the set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from extremal import checks
from extremal.checks import InputError
from extremal.gradients.full import Full
from extremal.gradients.momentum import Storm
from extremal.gradients.penalty import Penalised, smoothing
from extremal.laws import PowerLaw
from extremal.methods.method import Budget, Checked, Method, root_batch
from extremal.objectives.base import Objective
from extremal.sets.base import ConvexSet
from extremal.sets.made.cuts import AffineCut, check_affine
from extremal.steps.adaptive import LineSearch, ShortStep
from extremal.steps.base import Step
from extremal.steps.schedules import OpenLoop


@dataclass(frozen=True, eq=False)
class MostFW(Checked):
    """Momentum-based stochastic Frank-Wolfe (MOST-FW) for x in C with lower <= G x <= upper.

        y <- grad f_S(x) + (1 - gamma_t) (y - grad f_S(x_prev))
        d  = y + (1/mu_t) G'(G x - proj(G x)),   x <- x + eta_t (lmo(d) - x),   t = 1, 2, ...
        gamma_t = eta_t = 2 / (t + 1),   mu_t = mu (t + 1)^(-1/4)

    The start takes b component gradients; an iteration takes 2b, one LMO and two products with G. Memory is O(d). Without G
    the method is Frank-Wolfe on `Storm` with these steps. The penalty is the wrapper `Penalised`. Its ``violation(x)`` is the
    distance of G x from its bounds: ``r.method.gradient.violation(r.x)`` for a result r.

    The certified gap is that of f over C alone. With G it stays positive at the solution, so pass ``tol=0, atol=0``: a
    small gap may otherwise stop the run at a point that violates the constraint.

    The constants of gamma, eta and mu are from memory of the paper. To first order the violation is mu_t times the constraint's
    multiplier, so with the power -1/4 it falls like t^(-1/4). ``mu=PowerLaw(c, 2, -1/2)`` balances the violation with the error
    in f: both then fall like t^(-1/2).

    Parameters
    ----------
    batch : int, optional
        b. Default: 1.
    G : array or scipy sparse matrix of shape (r, d), optional
        One row per constraint. Default: only the constraints of an `AffineCut`.
    lower, upper : float or array of shape (r,), optional
        Bounds on G x; equal for equations. With G, at least one of them is required.
    mu : float or PowerLaw
        Smoothing: c for c (t + 1)^(-1/4), or the law at t - 1 = 0, 1, ...
    step : Step, optional
        Default: 2 / (t + 1). With G, a rule that looks at f alone is refused.

    References
    ----------
    Akhtar, Rajawat (2021), Momentum based projection free stochastic optimization under affine constraints, ACC; Zeroth and
    first order stochastic Frank-Wolfe algorithms for constrained optimization, arXiv:2107.06534.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.eye(3), np.array([1.0, 0.0, 0.0]))     # without G, all weight on the first
    >>> method = ex.MostFW(batch=3, G=[[1.0, -1.0, 0.0]], lower=0.0, upper=0.0, mu=0.01)
    >>> ex.minimize(f, ex.Simplex(), method=method, tol=0, atol=0, max_iter=2000).x.round(2)
    array([0.5, 0.5, 0. ])
    >>> C = ex.AffineCut(ex.Simplex(), G=[[1.0, -1.0, 0.0]], lower=0.0, upper=0.0)               # the same, as a set
    >>> ex.minimize(f, C, method=ex.MostFW(batch=3, mu=0.01), tol=0, atol=0, max_iter=2000).x.round(2)
    array([0.5, 0.5, 0. ])
    """

    batch: int | None = None
    G: Any = None
    lower: Any = None
    upper: Any = None
    mu: float | PowerLaw = 1.0
    step: Step | None = None

    def __post_init__(self):
        super().__post_init__()
        checks.fix(self, mu=smoothing("MostFW", self.mu))
        if self.G is not None:
            checks.fix(self, **check_affine("MostFW", self.G, self.lower, self.upper))
            check_fixed(self.step)
        elif self.lower is not None or self.upper is not None:
            raise InputError("`MostFW(lower=..., upper=...)` are bounds on G x: give G too")

    def __repr__(self) -> str:
        G = None if self.G is None else f"<{self.G.shape[0]} x {self.G.shape[1]}>"
        return f"MostFW(batch={self.batch}, G={G}, mu={self.mu}, step={self.step})"

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        b = root_batch("MostFW", self.batch, f.n, 0)
        gradient = Storm(b, PowerLaw(2, 2, -1))  # gamma_t = 2 / (t + 1) at estimate j = t - 1
        if isinstance(C, AffineCut) and self.G is not None:
            raise InputError("`MostFW(G=...)` must be omitted if the set is an AffineCut, which has its own G")
        cut = C if isinstance(C, AffineCut) else self
        if cut.G is not None:
            check_fixed(self.step)
            gradient = Penalised(gradient, cut.G, cut.lower, cut.upper, self.mu)
            gradient.check_fits(f)
        return Method(gradient, self.step or OpenLoop()).prepare(f, C, budget)


def with_penalty(f: Objective, C: Any) -> Method:
    """The counterpart for an `AffineCut` with full gradients, for objectives without batches."""
    gradient = Penalised(Full(), C.G, C.lower, C.upper, smoothing("MostFW", 1.0))
    gradient.check_fits(f)
    return Method(gradient, OpenLoop())


def check_fixed(step: Step | None) -> None:
    """Refuse a step rule that looks at f, because f is not the whole objective."""
    if isinstance(step, (LineSearch, ShortStep)):
        raise InputError(f"`MostFW(step=...)` must be fixed in advance, such as OpenLoop(): {step} ignores the penalty")
