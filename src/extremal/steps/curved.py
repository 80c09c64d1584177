"""Steps from the curvature that the gradient estimate knows: no constant, no schedule, no line search."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any

from extremal.checks import InputError
from extremal.gradients.base import Bending
from extremal.steps.adaptive import Adaptive
from extremal.steps.base import Direction


@dataclass(frozen=True)
class SelfConcordant(Adaptive):
    """The minimiser of a bound on f along d, for losses whose curvature changes slowly.

        eta = theta log(1 + M gap / h) / M,   gap = -<g, d>,   h = d' H d,   M = s max_i |<a_i, d>|

    H is the model of the Hessian that the estimator keeps; for losses that are not convex, its majorant. s is the loss's
    ``self_concordance``, with |phi'''| <= s phi'': then f(x + eta d) <= f(x) - eta gap + h (e^(eta M) - 1 - eta M) / M^2, and eta
    minimises the right-hand side. theta is the share of the step that the noise of g allows; 1 for `TrackedSag`. A step needs no
    value of f, and the largest entries of the columns bound M from above. The rule suits `TrackedSag`, `TrackedSaga` and
    `Saga(curved=True)`.

    References
    ----------
    Bach (2010), Self-concordant analysis for logistic regression, arXiv:0910.4627; Tran-Dinh, Li, Cevher (2015), Composite convex
    minimization involving self-concordant-like cost functions, arXiv:1502.01068.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.Method(ex.gradients.TrackedSag(batch=10), ex.steps.SelfConcordant(), ex.moves.InFacePairwise()).step
    SelfConcordant()
    """

    def eta(self, k: int, direction: Direction) -> float:
        """The step, at most 1."""
        estimate: Any = direction.estimate
        if not isinstance(estimate, Bending):
            raise InputError(
                "SelfConcordant needs an estimator that keeps second derivatives, TrackedSag(batch=...) or "
                f"Saga(batch=..., curved=True), got states of type {type(estimate).__name__}"
            )
        f: Any = direction.f
        gap, d = direction.gap, direction.vector
        if gap <= 0.0:
            return 0.0
        h, M = estimate.curvature(f, d), f.bends.self_concordance * f.bends.reach(d)
        return min(1.0, estimate.share(f, d, gap) * bound_minimiser(gap, h, M))


def bound_minimiser(gap: float, h: float, M: float) -> float:
    """log(1 + M gap / h) / M, or gap / h for M = 0; where all curvature has underflowed, the step stays finite."""
    h = max(h, sys.float_info.min)
    return math.log1p(M * (gap / h)) / M if M > 0.0 else gap / h
