"""A second constraint by a penalty: a wrapper for any estimator."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.gradients.base import Estimate, Facts, InEpochs, Phase, SomeGradient, Steps, Wrapper, phase_of
from extremal.laws import PowerLaw
from extremal.objectives.base import Objective, Sampler
from extremal.sets.made.cuts import check_affine


@dataclass(frozen=True)
class PenalisedEstimate(InEpochs):
    """An estimate that includes the pull of the penalty."""

    g: np.ndarray  # y + (1/mu) G'(G x - proj(G x)): the direction for the oracle, not an estimate of grad f
    own: Estimate  # the state of the estimator; its g is y
    exact: bool = False  # never True, even if y is exact: g is not the gradient of f
    phase: Phase | None = None  # that of the estimator


@dataclass(frozen=True, eq=False)
class Penalised(Wrapper[PenalisedEstimate]):
    """Any estimator with a smoothed penalty for lower <= G x <= upper, a constraint that C does not include.

        g_j = y_j + (1/mu_j) G'(G x_j - proj(G x_j)),   y_j the estimate of grad f(x_j), proj onto [lower, upper]

    The second term is the gradient of |G x - proj(G x)|^2 / (2 mu). As mu falls to zero, iterates move toward the constraint, but
    never satisfy it exactly: check ``violation(x)``. The cost is the component gradients of the estimator, and two products with
    G per step. Memory is that of the estimator and one vector.

    The certified gap of a run is that of f over C alone, without this constraint. It stays positive at the solution of both. A
    run may stop at a point that violates the constraint if the gap is small there, so pass ``tol=0, atol=0``. Steps that evaluate
    f (`LineSearch`, `ShortStep`) ignore the penalty: choose a step that is fixed in advance.

    Parameters
    ----------
    gradient : Gradient
        The estimator of grad f.
    G : array or scipy sparse matrix of shape (r, d)
        One row per constraint; arrays x are read in the order of ``x.reshape(-1)``.
    lower, upper : float or array of shape (r,), optional
        Bounds on G x, which may be infinite; equal bounds make equations. One of the two may be omitted.
    mu : float or PowerLaw
        The smoothing at estimate j = 0, 1, ...; a number c means c (j + 2)^(-1/4).

    References
    ----------
    Akhtar, Rajawat (2021), Zeroth and first order stochastic Frank-Wolfe algorithms for constrained optimization,
    arXiv:2107.06534.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> g = ex.gradients.Penalised(ex.gradients.Storm(batch=5), G=np.ones((1, 3)), lower=0.0, upper=0.0)  # x_1 + x_2 + x_3 = 0
    >>> g.violation(np.array([1.0, 2.0, 0.0]))
    3.0
    >>> g.pull(np.array([1.0, 2.0, 0.0]), mu=0.5)
    array([6., 6., 6.])
    """

    gradient: SomeGradient
    G: Any
    lower: Any = None
    upper: Any = None
    mu: float | PowerLaw = 1.0

    def __post_init__(self):
        super().__post_init__()
        checks.fix(self, **check_affine("Penalised", self.G, self.lower, self.upper), mu=smoothing("Penalised", self.mu))

    def __repr__(self) -> str:
        return f"Penalised(gradient={self.gradient!r}, G=<{self.G.shape[0]} x {self.G.shape[1]}>, mu={self.mu})"

    def violation(self, x: np.ndarray) -> float:
        """|G x - proj(G x)|, the distance of G x from its bounds."""
        return float(np.linalg.norm(self._excess(x)))

    def pull(self, x: np.ndarray, mu: float) -> np.ndarray:
        """(1/mu) G'(G x - proj(G x)), computed in float64; row by row, if x is a stack of points."""
        return ((self._excess(x) @ self.G) / mu).reshape(x.shape).astype(x.dtype)

    def facts(self, n: int) -> Facts:
        """The facts of the estimator, plus the penalty, which is Euclidean."""
        return replace(self.gradient.facts(n), penalty=True, one_point=False, manifold=None)

    def init(self, f: Objective, x: np.ndarray, sampler: Sampler) -> PenalisedEstimate:
        self.check_fits(f)
        return self._estimate(0, x, self.gradient.init(f, x, sampler))

    def update(
        self, f: Objective, k: int, x_prev: np.ndarray, x: np.ndarray, steps: Steps, state: PenalisedEstimate, sampler: Sampler
    ) -> PenalisedEstimate:
        return self._estimate(k + 1, x, self.gradient.update(f, k, x_prev, x, steps, state.own, sampler))

    def check_fits(self, f: Objective) -> None:
        """Refuse a G that does not match the shape of x."""
        if self.G.shape[1] != math.prod(f.shape):
            raise InputError(
                f"`Penalised(G=...)` must have {math.prod(f.shape)} columns, one for each entry of x, got {self.G.shape[1]}"
            )

    def _estimate(self, j: int, x: np.ndarray, own: Estimate) -> PenalisedEstimate:
        mu: Any = self.mu
        g = own.g + self.pull(x, mu(j))  # g_j = y_j + (1/mu_j) G'(G x_j - proj(G x_j))
        return PenalisedEstimate(g, own, phase=phase_of(own))

    def _excess(self, x: np.ndarray) -> np.ndarray:
        """G x - proj(G x), one row per point."""
        z = np.asarray(x, np.float64).reshape(-1, self.G.shape[1]) @ self.G.T
        return z - np.clip(z, self.lower, self.upper)


def smoothing(call: str, mu: object) -> PowerLaw:
    """The law of mu: as given, or c (j + 2)^(-1/4), which is c (t + 1)^(-1/4) for t = 1, 2, ..."""
    if isinstance(mu, PowerLaw):
        checks.positive(call, "mu", mu(0))
        return mu
    return PowerLaw(checks.positive(call, "mu", mu), 2.0, -0.25)
