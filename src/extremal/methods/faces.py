"""Stochastic Frank-Wolfe without a parameter: tables of second derivatives, steps within faces, self-concordant step lengths.

`TrackedSagaFW` is the relative with a proof for every start; docs/frontier-proofs.md has it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from extremal import checks
from extremal.gradients.base import Batched
from extremal.gradients.reshuffled import Reshuffled
from extremal.gradients.table import Saga
from extremal.gradients.tracked import TrackedSag
from extremal.gradients.tracked_saga import TrackedSaga
from extremal.methods.method import BatchAndStep, Budget, Method
from extremal.moves.atoms import BlendedPairwise, Pairwise
from extremal.moves.in_face import InFaceBlended, InFacePairwise
from extremal.moves.returning import Returning
from extremal.objectives.base import Objective
from extremal.objectives.row_bends import check_bends
from extremal.sets.base import ConvexSet, Faced
from extremal.steps.curved import SelfConcordant

PASS = 100  # iterations of a pass over the rows, if the batch is left out


@dataclass(frozen=True)
class _FaceMethod(BatchAndStep):
    """The shared part of both methods: everything but the estimator."""

    def _made(self, gradient: Batched, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        check_bends(f)
        move = InFacePairwise() if isinstance(C, Faced) else Pairwise()
        return Method(Reshuffled(gradient), self.step or SelfConcordant(), move).prepare(f, C, budget)

    def _size(self, f: Objective) -> int:
        call = type(self).__name__
        return math.ceil(f.n / PASS) if self.batch is None else checks.whole(call, "batch", self.batch, 1, f.n)


@dataclass(frozen=True)
class TrackedFW(_FaceMethod):
    """Tracked Frank-Wolfe: a table that is read at the current point by its own Taylor terms, and pairwise steps within faces.

        y_i(x) = phi'_i + phi''_i (<a_i, x> - z_i)  of the last draw of row i,   g = (1/N) sum_i y_i(x) a_i
        s = lmo(g),   a = argmax <g, a> over the face of x,   d = s - a
        x <- x + min(t, log(1 + M gap / h) / M) d,   gap = -<g, d>,   h = d' H d,   M = s max_i |<a_i, d>|

    H is the mean of phi''_i a_i a_i' over the table, t the longest feasible step, and s the self-concordance of the loss. Batches
    go through the rows in random order, pass by pass. There is no constant, no schedule and no horizon, and the start is cold.
    The error of the table is of second order in the way since the last draw of a row. The method takes linear models whose loss
    has ``self_concordance``: `Logistic`, `Squared`, `Poisson`, `Huber`, `Quantile`, `NonlinearLeastSquares`. An iteration takes b
    component gradients and b rows of second derivatives, which count as b component gradients more, and two oracle calls. Memory:
    3n numbers, and d for each column in which x has moved.

    Parameters
    ----------
    batch : int, optional
        b. Default: ceil(n / 100).
    step : Step, optional
        Default: `SelfConcordant`.
    start : "cold" or "full"
        "cold" starts from the first batch, "full" from all rows, for 2n component gradients.

    References
    ----------
    Garber, Meshi (2016), arXiv:1605.06492, for the step; Rodomanov, Kropotov (2016), ICML, and Gower, Le Roux, Bach (2018),
    arXiv:1710.07462, for the table; Bach (2010), arXiv:0910.4627, for its length. The combination is this library's.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((1000, 20))
    >>> f = ex.LinearModel(ex.Logistic(), A, np.sign(A[:, 0] - A[:, 1] + rng.standard_normal(1000)))
    >>> r = ex.minimize(f, ex.L1Ball(1.0), method=ex.TrackedFW(), max_grads=20 * f.n, tol=1e-8)
    >>> r.converged, r.calls.hessian_rows == r.calls.grads / 2
    (True, True)
    """

    start: Literal["cold", "full"] = "cold"

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        return self._made(TrackedSag(self._size(f), self.start), f, C, budget)


@dataclass(frozen=True)
class SagaFaceFW(_FaceMethod):
    """SAGA with pairwise steps within faces, whose length is that of a self-concordant bound: memory O(n + d).

        g = (1/b) sum_{i in S} [grad f_i(x) - y_i] + (1/n) sum_j y_j;   y_i <- grad f_i(x) for i in S
        s = lmo(g),   a = argmax <g, a> over the face of x,   d = s - a
        x <- x + min(t, theta log(1 + M gap / h) / M) d,   gap = -<g, d>,   M = s max_i |<a_i, d>|

    h = d' H d, its diagonal from the table and the rest from the batch. Noise of small batches shortens steps:

        theta = max(1/2 / (1 + 2r), min(1 / (1 + (6 (1 + 8/b) rho)^2), 1 / (1 + sqrt r)))
        r = E u^2 / (b h^2),   u_i = phi''_i sum_j d_j^2 a_ij^2,   rho = E_S[(phi'_i - y_i)^2 <a_i, d>^2] / (b gap^2)

    r is the noise that a whole step would make. rho is the noise that g has: its last value or its mean over about one pass,
    whichever is larger. Batches go through the rows in random order, pass by pass. There is no constant to set, no schedule and
    no horizon. The start takes n component gradients and at most 64 rows of second derivatives. An iteration takes b component
    gradients, b/3 rows of second derivatives, which count as component gradients too, and two oracle calls. Memory: 2n + 2d
    numbers.

    Parameters
    ----------
    batch : int, optional
        b. Default: ceil(n / 100).
    step : Step, optional
        Default: `SelfConcordant`.

    References
    ----------
    Defazio, Bach, Lacoste-Julien (2014), arXiv:1407.0202; Garber, Meshi (2016), arXiv:1605.06492; Gazagnadou, Gower, Salmon
    (2019), arXiv:1902.00071, for the noise of batches. The combination is this library's.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((1000, 20))
    >>> f = ex.LinearModel(ex.Logistic(), A, np.sign(A[:, 0] - A[:, 1] + rng.standard_normal(1000)))
    >>> ex.minimize(f, ex.L1Ball(1.0), method=ex.SagaFaceFW(), max_grads=40 * f.n, tol=1e-6).converged
    True
    """

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        return self._made(Saga(self._size(f), curved=True), f, C, budget)


@dataclass(frozen=True)
class TrackedSagaFW(_FaceMethod):
    """Tracked SAGA with a way back: the estimate of `TrackedFW` made unbiased, and a guarantee from every start.

        g = (1/n) sum_i y_i(x) a_i + (1/b) sum_{i in S} w_i a_i,   w_i = phi'(<a_i, x>) - y_i(x),   y_i(x) as for `TrackedFW`
        x <- x + min(t, theta log(1 + M gap / h) / M) d,   theta = 1 - u,   u = |(1/b) sum_{i in S} w_i <a_i, d>| / gap
        u >= 1, or an epoch is over: all rows are drawn at x;   if f has not fallen enough since the last time, x goes back

    d is between two vertices of the face that holds x, or toward a new vertex (`InFaceBlended`), or between atoms if the set does
    not know its faces. Batches are independent. Full passes are at most 4 n / b iterations apart. f falls "enough" if it falls by
    half of what the first step after a full pass promises; x goes back to the end of this step (`Returning`). The start takes 2n
    component gradients, and so does a full pass; other iterations take 2b. Half of them are rows of second derivatives. An
    iteration takes three oracle calls, or one over atoms. Memory: 3n numbers, and d for each column in which x has moved; a full
    pass reads the rows once more for each such column.

    Parameters
    ----------
    batch : int, optional
        b. Default: ceil(n / 100).
    step : Step, optional
        Default: `SelfConcordant`, which the guarantee needs.
    epoch : int, optional
        Iterations from one full pass to the next, at most. Default: ceil(4 n / b).

    References
    ----------
    Those of `TrackedFW`; Defazio, Bach, Lacoste-Julien (2014), arXiv:1407.0202; Lacoste-Julien, Jaggi (2015), arXiv:1511.05932,
    for the geometry of the rate. The combination and its proof are this library's.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((1000, 20))
    >>> f = ex.LinearModel(ex.Logistic(), A, np.sign(A[:, 0] - A[:, 1] + rng.standard_normal(1000)))
    >>> r = ex.minimize(f, ex.L1Ball(1.0), method=ex.TrackedSagaFW(), max_grads=40 * f.n, tol=1e-8)
    >>> r.converged, r.calls.hessian_rows == r.calls.grads / 2
    (True, True)
    """

    epoch: int | None = None

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        check_bends(f)
        move = InFaceBlended() if isinstance(C, Faced) else BlendedPairwise()
        gradient = TrackedSaga(self._size(f), self.epoch)
        return Method(gradient, self.step or SelfConcordant(), Returning(move)).prepare(f, C, budget)
