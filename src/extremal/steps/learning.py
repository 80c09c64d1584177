"""Steps that learn the smoothness of f on the way: from changes of the gradient, or from values of f. They have no parameter.

Rules are values and keep nothing. The curvature that they have learnt stays with the run (`Direction.notes`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from extremal.checks import NonFiniteError
from extremal.objectives.base import Segment
from extremal.quadratic.search import UNSEEN
from extremal.steps.adaptive import Adaptive
from extremal.steps.base import Direction

FIRST_STEP = 0.01  # the first step: the way along which the first curvature is measured
KEPT_SHARE = 0.99  # share of the known curvature that one step keeps, if the new one is smaller
RELAXED, RAISED = 0.9, 2.0  # factors of the smoothness: before a step, and after a step that was too long
RAISES = 100  # most raises of one step: 2^100 times the smoothness


@dataclass(frozen=True)
class Secant(Adaptive):
    """A short step whose smoothness is learnt from changes of the gradient estimate: for any f and any estimator.

        l_k = <g_k - g_{k-1}, x_k - x_{k-1}> / |x_k - x_{k-1}|^2,   L_k = max(l_k, 0.99 L_{k-1})
        eta = min(1, gap / (L_k |d|^2)),   gap = -<g, d>;   the first step is 0.01

    l_k is the curvature of f along the last step, up to noise of the estimates. The rule takes the largest of the last hundred
    or so, because the next direction may be steeper than the last. It asks f for nothing: no value, no constant and no second
    derivative, and it costs nothing. It does not check whether f has fallen, so there is no guarantee: a direction that is much
    steeper than all before it takes f up, and the next step knows. Estimates without vanishing noise (`MiniBatch`) have changes
    that are mostly noise; estimators with variance reduction suit the rule. On curved manifolds the rule is refused.

    References
    ----------
    Barzilai, Borwein (1988), Two-point step size gradient methods, IMA Journal of Numerical Analysis 8; Malitsky, Mishchenko
    (2020), Adaptive gradient descent without descent, ICML, arXiv:1910.09529. The form for Frank-Wolfe steps is this library's.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((1000, 20))
    >>> f = ex.LinearModel(ex.Logistic(), A, np.sign(A[:, 0] - A[:, 1] + rng.standard_normal(1000)))
    >>> method = ex.Method(ex.gradients.Sarah(batch=10, p=0.02), ex.steps.Secant(), ex.moves.Pairwise())
    >>> ex.minimize(f, ex.L1Ball(1.0), method, max_grads=40 * f.n, tol=1e-6).converged
    True
    """

    def eta(self, k: int, direction: Direction) -> float:
        """The step, at most 1."""
        x, g = direction.x, direction.estimate.g
        last, L = direction.notes.get(self, (None, 0.0))
        if last is not None:
            bent, length = direction.change(*last)
            if length > 0.0:
                L = max(bent / length, KEPT_SHARE * L)
        direction.notes[self] = (x, g), L
        if direction.gap <= 0.0:
            return 0.0
        h = L * direction.norm2
        return min(1.0, direction.gap / h) if h > 0.0 else FIRST_STEP


@dataclass(frozen=True)
class Backtracking(Adaptive):
    """A short step that learns the smoothness of f, and makes sure that f falls.

        eta = min(1, gap / (M |d|^2)),   gap = -<grad f(x), d>
        M = 0.9 M, then M = 2 M until f(x + eta d) <= f(x) - eta gap + eta^2 M |d|^2 / 2

    Steps follow the curvature along the way, which is often far below the global constant L, and no constant is needed. f never
    rises. The rates are those of `ShortStep` with max(2 L, M_0) instead of L, linear for away and pairwise steps over polytopes.
    The slope is that of f itself, not of the estimate: a noisy direction that points uphill gets a step of 0. Where rounding of f
    hides the decrease, slopes of f decide. Cost: a slope and about two values of f per step, each n values for a linear model.

    References
    ----------
    Pedregosa, Negiar, Askari, Jaggi (2020), Linearly convergent Frank-Wolfe with backtracking line-search, AISTATS,
    arXiv:1806.05123, Algorithm 2, with their constants 0.9 and 2.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.eye(3), np.array([0.6, 0.4, -1.0]))
    >>> r = ex.minimize(f, ex.Simplex(), ex.PairwiseFW(step=ex.steps.Backtracking()), tol=1e-9)
    >>> r.x.round(6)
    array([0.6, 0.4, 0. ])
    """

    def eta(self, k: int, direction: Direction) -> float:
        """The step, at most 1; 0 if f does not fall along d."""
        line, length = direction.segment(), direction.norm2
        gap = -line.slope(0.0)
        if not math.isfinite(gap):
            raise NonFiniteError(f"Backtracking: the slope at eta = 0 is {-gap}")
        if gap <= 0.0 or length <= 0.0:
            return 0.0
        known = direction.notes.get(self)
        M = (line.slope(FIRST_STEP) + gap) / (FIRST_STEP * length) if known is None else RELAXED * known
        M, eta = _falling(line, gap, length, max(M, 1e-12 * gap / length))
        direction.notes[self] = M
        return eta


def _falling(line: Segment, gap: float, length: float, M: float) -> tuple[float, float]:
    """The first of M, 2 M, 4 M, ... whose step is short enough, and the step; a step of 0 if none is."""
    start = line.value(0.0)
    blur = UNSEEN[1] * abs(start)
    for _ in range(RAISES):
        eta = min(1.0, gap / (M * length))
        if eta * gap > blur:
            fits = line.value(eta) <= start - eta * gap + 0.5 * eta * eta * M * length
        else:
            fits = line.slope(eta) + gap <= eta * M * length
        if fits:
            return M, eta
        M *= RAISED
    return M / RAISED**RAISES, 0.0
