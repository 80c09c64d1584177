"""Steps from the curvature that the gradient estimate knows, or its last batch: no constant, no schedule, no line search."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal.checks import InputError
from extremal.gradients.base import Bending, Counting
from extremal.objectives.row_bends import bends_along
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


@dataclass(frozen=True)
class BatchCurvature(Adaptive):
    """The minimiser of the same bound, with the curvature of the last batch: for vertices of any kind, and every estimator.

        eta = log(1 + M gap / h) / M,   gap = -<g, d>,   M = s max_{i in S} |<a_i, d>|
        h = mean u + 2 std u / sqrt b,   u_i = phi''_i <a_i, d>^2  for the b rows i of the last batch S

    For losses that are not convex, u has the majorant of phi''. The two standard errors are for the noise of the batch: the step
    is shorter if few of its rows have curvature along d. The spread of a single row is its own size. If no row has curvature
    along d, the point stays where it is until the next batch.
    Before the first batch, S has all rows. The rule asks for products of rows with vertices, and for no columns: sets of matrices
    and dense vertices are served too. f needs to be a `LinearModel` whose loss has ``self_concordance``. Cost: b rows of second
    derivatives per step, which count as b component gradients; n with full gradients.

    References
    ----------
    Bach (2010), arXiv:0910.4627, for the bound; Roosta-Khorasani, Mahoney (2019), Sub-sampled Newton methods, Mathematical
    Programming 174, for curvature from batches. The combination is this library's.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((1000, 20))
    >>> f = ex.LinearModel(ex.Logistic(), A, np.sign(A[:, 0] - A[:, 1] + rng.standard_normal(1000)))
    >>> method = ex.Method(ex.gradients.SagaSarah(batch=50, lam=0.025), ex.steps.BatchCurvature())
    >>> r = ex.minimize(f, ex.L2Ball(1.0), method, max_grads=40 * f.n, tol=1e-6)
    >>> r.converged, r.calls.hessian_rows > 0
    (True, True)
    """

    def eta(self, k: int, direction: Direction) -> float:
        """The step, at most 1."""
        gap, f, x, d = direction.gap, direction.f, direction.x, direction.d
        if gap <= 0.0:
            return 0.0
        m, u, s = f.batch_bends(x, d) if isinstance(f, Counting) else bends_along(f, x, d, np.arange(f.n))
        bends = m * np.square(u)
        mean, spread = float(bends.mean()), float(bends.std() if len(bends) > 1 else bends[0])
        h = mean + 2.0 * spread / math.sqrt(len(bends))
        return min(1.0, bound_minimiser(gap, h, s * float(np.abs(u).max()))) if h > 0.0 else 0.0


def bound_minimiser(gap: float, h: float, M: float) -> float:
    """log(1 + M gap / h) / M, or gap / h for M = 0; where all curvature has underflowed, the step stays finite."""
    h = max(h, sys.float_info.min)
    return math.log1p(M * (gap / h)) / M if M > 0.0 else gap / h
