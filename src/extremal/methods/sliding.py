"""Sliding methods: one gradient serves a whole proximal step, which costs LMOs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.gradients.batches import MiniBatch
from extremal.gradients.full import Full
from extremal.gradients.reduced import Svrg
from extremal.laws import Doubling, EpochLength, EpochTolerance, PowerLaw, Telescoping
from extremal.methods.method import Budget, Checked, Method
from extremal.moves.sliding.plain import AcceleratedSliding
from extremal.objectives.base import Objective
from extremal.objectives.linear import LinearModel
from extremal.points.iterates import inner, start
from extremal.sets.base import ConvexSet
from extremal.steps.base import Step
from extremal.steps.schedules import Decay


@dataclass(frozen=True)
class CGS(Checked):
    """Conditional gradient sliding: Nesterov's acceleration with LMO-only proximal steps.

        z = (1 - gamma) y + gamma x,   x <- argmin over C of <grad f(z), u> + beta/2 |u - x|^2, to a gap of tol
        y <- (1 - gamma) y + gamma x
        gamma_k = 3/(k+2),  beta_k = 3L/(k+1),  tol_k = L D^2 / (k (k+1)),   k = 1, 2, ...

    An iteration takes n component gradients. There are K ~ eps^(-1/2) iterations, with 1/eps LMOs in all; memory 2d.

    Parameters
    ----------
    L : float, optional
        Smoothness. Default: the objective's own.
    step : Step, optional
        gamma. Default: 3/(k+2).

    References
    ----------
    Lan, Zhou (2016), Conditional gradient sliding for convex optimization, SIAM J. Optim. 26.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.CGS()
    CGS(L=None, step=None)
    """

    L: float | None = None
    step: Step | None = None

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        L = smoothness(f, self.L)
        move = AcceleratedSliding(beta=PowerLaw(3 * L, 2, -1), tol=square_tolerance(L, C))
        return Method(Full(), self.step or Decay(3, 3), move).prepare(f, C, budget)


@dataclass(frozen=True)
class SCGS(Checked):
    """Stochastic conditional gradient sliding: CGS with batches that grow like k^3.

        as CGS with gamma_k = 3/(k+2), beta_k = 4L/(k+2), tol_k = L D^2 / (k (k+1)),
        g the mean over B_k = ceil(sigma^2 (k+2)^3 / (L^2 D^2)) fresh components (at most n),   k = 1, 2, ...

    An iteration takes B_k component gradients, and the LMOs of its sub-problem; memory 2d.

    Parameters
    ----------
    L : float, optional
        Smoothness. Default: the objective's own.
    sigma : float, optional
        Standard deviation of a component gradient. Default: computed from the data of a linear model at ``C.start()``, and not
        counted; required for other objectives.
    batch : int, optional
        The practical constant: B_k = ceil((k+2)^3 / 27 * batch), so that the first batch is ``batch``.
    step : Step, optional
        gamma. Default: 3/(k+2).

    References
    ----------
    Lan, Zhou (2016), Conditional gradient sliding for convex optimization, SIAM J. Optim. 26, Algorithm 2.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.SCGS(batch=1)
    SCGS(L=None, sigma=None, batch=1, step=None)
    """

    L: float | None = None
    sigma: float | None = None
    batch: int | None = None
    step: Step | None = None

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        L, spent = smoothness(f, self.L), 0
        if self.batch is None:
            spent = 0 if self.sigma is not None else f.n
            ratio = deviation(f, C, self.sigma) / max(L * C.diameter, 1e-300)
            scale = min(f.n, ratio) ** 2  # B_k is n from the start for any ratio above sqrt n
        else:
            scale = checks.whole("SCGS", "batch", self.batch, 1, f.n) / 27
        move = AcceleratedSliding(beta=PowerLaw(4 * L, 3, -1), tol=square_tolerance(L, C))
        gradient = MiniBatch(PowerLaw(max(scale, 1e-300), 3, 3))
        return Method(gradient, self.step or Decay(3, 3), move, spent=spent).prepare(f, C, budget)


@dataclass(frozen=True)
class STORC(Checked):
    """Stochastic variance-reduced conditional gradient sliding: the SVRG estimator inside accelerated sliding.

        epoch 0 is one step w = lmo(grad f(x0)); epoch t = 1, 2, ... has N_t = ceil(2^(t/2 + 2)) iterations, from x = y = w
        gamma_k = 2/(k+1),  beta_k = 3L/k,  tol_{t,k} = 2 L D_t^2 / (N_t k),  D_t^2 = D^2 / 2^t,  batches of 900 N_t

    The parameters are from memory; they belong to the authors' case grad f(x*) = 0, one of three. An epoch takes n component
    gradients at its start, then 2b per iteration. Each iteration takes the LMOs of its sub-problem; memory 4d.

    Parameters
    ----------
    L : float, optional
        Smoothness. Default: the objective's own.
    batch : int, optional
        The practical constant: batches of b k at iteration k of an epoch instead of 900 N_t (both at most n).
    step : Step, optional
        gamma. Default: 2/(k+1) within each epoch.

    References
    ----------
    Hazan, Luo (2016), arXiv:1602.02101, Algorithm 2.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.STORC(batch=20)
    STORC(L=None, batch=20, step=None)
    """

    L: float | None = None
    batch: int | None = None
    step: Step | None = None

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        L, epochs = smoothness(f, self.L), Doubling(4, math.sqrt(2))
        batch = EpochLength(900) if self.batch is None else PowerLaw(checks.whole("STORC", "batch", self.batch, 1, f.n), 1, 1)
        tol = EpochTolerance(2 * L * diameter(C) ** 2)
        move = AcceleratedSliding(beta=PowerLaw(3 * L, 1, -1), tol=tol, from_vertex=True)
        return Method(Svrg(batch, epochs), self.step or Decay(2, 2), move).prepare(f, C, budget)


def smoothness(f: Objective, L: float | None) -> float:
    """The given L, or the objective's."""
    return max(f.smoothness, 1e-300) if L is None else float(L)


def diameter(C: ConvexSet) -> float:
    """D, bounded away from zero."""
    return max(C.diameter, 1e-150)


def square_tolerance(L: float, C: ConvexSet) -> Telescoping:
    """L D^2 / (k (k + 1)), k = 1, 2, ..."""
    return Telescoping(L * diameter(C) ** 2)


def deviation(f: Objective, C: ConvexSet, sigma: float | None) -> float:
    """The given sigma, or the root mean square deviation of a linear model's component gradients at C.start()."""
    if sigma is not None:
        return checks.positive("SCGS", "sigma", sigma)
    if not isinstance(f, LinearModel):
        raise InputError("`SCGS(sigma=...)` must be given for this objective: the deviation of a component gradient")
    x = start("SCGS", C.start(), f.dtype, C.matrix_free and f.factored)
    c = f.derivs(x)
    mean = f.combine(c)
    squares = np.square(c, dtype=np.float64).reshape(len(c), -1).sum(axis=1)  # summed over the outputs of a row
    return math.sqrt(max(0.0, float(np.mean(squares * f.data.row_norms2())) - inner(mean, mean)))
