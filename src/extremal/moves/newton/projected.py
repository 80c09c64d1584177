"""Newton steps over sets with a projection: accelerated projected gradients minimise the quadratic model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal.gradients.base import Estimate, SomeGradient
from extremal.moves.base import FlatMove, MoveOracle, Point, check_onto, check_projectable
from extremal.moves.newton.model import NewtonState
from extremal.moves.newton.spikes import INNER, check_dense
from extremal.moves.newton.whole import whole_model
from extremal.objectives.base import Objective
from extremal.sets.base import ConvexSet
from extremal.steps.base import Step
from extremal.support.clock import late

PROJECTIONS = 2000  # largest number of projections of one quadratic problem
LOOKS = 10  # projections between two looks at the gap of the quadratic problem


@dataclass(frozen=True)
class ProjectedNewton(FlatMove):
    """A Newton step over a set with a cheap projection, such as a group ball, for some hundreds of columns.

        u = argmin over C of <g, u - x> + (u - x)' H (u - x) / 2,   x <- x + t (u - x),   H = (1/n) A' diag phi''(A x) A

    Accelerated projected gradients with restarts solve the quadratic problem, until its gap is a hundredth of the gap of f. They
    read no data. A projection costs one product with H, d^2 multiplications. The move keeps a Hessian as long as every step
    reduces the gap fivefold. f never increases. A Hessian counts as n component gradients. The step rule is not used.

    Parameters
    ----------
    onto : ConvexSet
        The set of the run.

    References
    ----------
    Beck, Teboulle (2009), A fast iterative shrinkage-thresholding algorithm, SIAM J. Imaging Sci. 2; O'Donoghue, Candes (2015),
    Adaptive restart for accelerated gradient schemes, Found. Comput. Math. 15.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.eye(3), np.array([0.6, 0.8, 0.1]))
    >>> r = ex.minimize(f, ex.GroupBall(0.5, groups=[[0, 1], [2]]), tol=1e-9)
    >>> r.x.round(6), r.converged
    (array([0.3, 0.4, 0. ]), True)
    """

    onto: ConvexSet

    def __post_init__(self):
        check_projectable("ProjectedNewton", self.onto)

    @property
    def projects(self) -> bool:
        """True: the quadratic problem is solved by projections."""
        return True

    def check(self, gradient: SomeGradient, f: Objective, C: ConvexSet) -> None:
        super().check(gradient, f, C)
        check_dense("ProjectedNewton", f, C)
        check_onto("ProjectedNewton", self.onto, f, C)

    def advance(self, k: int, f: Objective, C: MoveOracle, point: Point, estimate: Estimate, step: Step) -> Point:
        """One Newton step."""
        at = NewtonState.of(f, C, point.x, estimate)
        memory = whole_model(at, point.memory)

        def solve(H: Any) -> tuple[np.ndarray, np.ndarray, float]:
            d = self._minimise(H, at, C, point.x.shape)
            return d, d, 1.0

        found = at.descend(memory, memory.H, solve, lambda d: at.x + d)
        x = at.x + found.t * found.kept if found.x is None else found.x
        x = at.moved(point.x, x, memory)
        return Point(x, x, memory=memory.after(found))

    def _minimise(self, H: Any, at: NewtonState, C: MoveOracle, shape: tuple[int, ...]) -> np.ndarray:
        """The step d of the model; v is the extrapolated step, ``slope`` and ``bent`` are gradients of the model at v and d."""
        d = v = np.zeros_like(at.x)
        bent = slope = at.g
        L, momentum = float(at.g @ (H @ at.g)) / max(float(at.g @ at.g), 1e-300) or 1.0, 1.0
        for i in range(PROJECTIONS):
            if i % LOOKS == LOOKS - 1 and (C.gap((at.x + d).reshape(shape), bent.reshape(shape)) <= INNER * at.gap or late()):
                break
            new = self.onto.project((at.x + v - slope / L).reshape(shape)).reshape(-1) - at.x  # type: ignore[attr-defined]
            change = new - v
            turn = H @ change
            bend, size = float(change @ turn), float(change @ change)
            if size == 0:  # v is the minimiser, up to rounding
                return new
            if bend > 1.0000001 * L * size:
                L = 1.1 * bend / size
                continue
            ahead, there = new - d, slope + turn
            if float(change @ ahead) < 0:  # the extrapolation points the wrong way
                momentum = 1.0
            following = 0.5 + np.sqrt(0.25 + momentum**2)
            share, momentum = (momentum - 1.0) / following, following
            v, slope = new + share * ahead, there + share * (there - bent)
            d, bent = new, there
        return d
