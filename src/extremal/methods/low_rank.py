"""Full gradients over a nuclear ball, corrected over the factors of the iterate."""

from __future__ import annotations

from dataclasses import dataclass

from extremal import checks
from extremal.checks import InputError
from extremal.gradients.full import Full
from extremal.methods.method import Budget, Method, WithCard
from extremal.moves.low_rank.move import FactorCorrective
from extremal.objectives.base import Objective
from extremal.sets.base import ConvexSet
from extremal.sets.spectral.nuclear import NuclearBall
from extremal.steps.schedules import FullStep


@dataclass(frozen=True)
class LowRankFW(WithCard):
    """Corrective Frank-Wolfe over a nuclear ball: the oracle adds directions, then f is minimised over the factors of x.

        widen the column and row spaces of x by leading singular vectors of grad f(x); a proximal step on the small core there;
        x <- left right' that minimises f over |left|^2 + |right|^2 <= 2 radius, from there

    The method serves completion (`Entries`), where x stays in factors and no m x n array is made, and matrices of weights
    (`Multinomial`, `MultiTask`). There are few iterations, with one LMO each; an inner one takes n component gradients. f does
    not rise, except by rounding. Memory: some 20 (m + n) r numbers for x of rank r. The move is `FactorCorrective`.

    Parameters
    ----------
    width : int
        New directions per iteration.
    accuracy : float
        An iteration ends when the slope over the factors has fallen to this share of its first value, in (0, 1].
    limit : int
        Largest number of inner steps per iteration. It doubles after an iteration that reached it, up to eight times.

    References
    ----------
    Laue (2012), A hybrid algorithm for convex semidefinite optimization, ICML. Zhang, Yu, Schuurmans (2012), Accelerated
    training for matrix-norm regularization: a boosting approach, NIPS.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> rng = np.random.default_rng(0)
    >>> rows, cols = np.divmod(rng.choice(1200, 600, replace=False), 40)
    >>> y = (rng.standard_normal((30, 2)) @ rng.standard_normal((2, 40)))[rows, cols]
    >>> f = ex.LinearModel(ex.Squared(), ex.Entries(rows, cols, (30, 40)), y)
    >>> r = ex.minimize(f, ex.NuclearBall(40.0), method=ex.LowRankFW(), tol=1e-6)
    >>> r.converged, r.x
    (True, FactoredMatrix(30 x 40, rank 2))
    """

    width: int = 60
    accuracy: float = 0.2
    limit: int = 15

    def __post_init__(self):
        checks.fix(
            self,
            width=checks.whole("LowRankFW", "width", self.width, 1),
            accuracy=checks.within("LowRankFW", "accuracy", self.accuracy, 0, 1),
            limit=checks.whole("LowRankFW", "limit", self.limit, 0),
        )

    def prepare(self, f: Objective, C: ConvexSet, budget: Budget) -> Method:
        if not isinstance(C, NuclearBall):
            raise InputError(f"LowRankFW() is for nuclear balls, such as NuclearBall(10.0); got the set {C}")
        return Method(Full(), FullStep(), FactorCorrective(self.width, self.accuracy, self.limit)).prepare(f, C, budget)
