"""Newton steps over sets with a projection: accelerated projected gradients minimise the quadratic model."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal.gradients.base import Estimate, SomeGradient
from extremal.moves.base import FlatMove, MoveOracle, Point, check_onto, check_projectable
from extremal.moves.newton.model import Memory, NewtonState
from extremal.moves.newton.spikes import INNER, NEWCOMERS, SAMPLED, check_dense, coordinates
from extremal.moves.newton.whole import whole_model
from extremal.objectives.base import Objective
from extremal.objectives.column_blocks import FORMED_COLUMNS
from extremal.objectives.expansion import BLAS, Expansion
from extremal.sets.base import ConvexSet
from extremal.steps.base import Step
from extremal.support.clock import late

PROJECTIONS = 2000  # largest number of projections of one quadratic problem
LOOKS = 10  # projections between two looks at the gap of the quadratic problem
FAR_INNER, FAR_PROJECTIONS = 0.1, 50  # share of the gap, and number of projections, if each takes a product with the data
CHEAP_WHOLE = 2**21  # up to this many rows times columns squared, a choice of columns saves no time
WANTED = 0.25  # an old model is not good enough if it lacks a group with this share of the gap
SPARE_GROUPS = 1.5  # a model of this multiple of the columns that are wanted serves again


@dataclass(frozen=True)
class GroupPart:
    """Some groups of a group ball."""

    groups: np.ndarray
    within: Any  # the group ball on their coordinates

    def has(self, J: np.ndarray) -> bool:
        """Whether the groups J are among them."""
        return bool(np.isin(J, self.groups, assume_unique=True).all())


@dataclass(frozen=True)
class GroupPoint(Point):
    """A point that knows the groups of its model; None if these are all."""

    part: GroupPart | None = None


@dataclass(frozen=True)
class ProjectedNewton(FlatMove):
    """A Newton step over a set with a cheap projection; over a group ball, on the groups in use and the best new ones.

        u = argmin over C, u_j = x_j for j outside W, of <g, u - x> + (u - x)' H (u - x) / 2
        x <- x + t (u - x),   H = (1/n) A_W' diag phi''(A x) A_W

    Over a group ball, W holds the columns of the groups in use and of those whose vertices promise the most. Over other sets, and
    for small data, W holds all columns. Accelerated projected gradients with restarts solve the quadratic problem, until its gap
    is a hundredth of the gap of f. They read no data. A projection costs one product with H, |W|^2 multiplications. The move
    keeps a Hessian as long as every step reduces the gap fivefold. f never increases. The step rule is not used.

    A step takes one LMO. A Hessian counts as n component gradients. If W has more than 400 columns of sparse data, or 1500 of
    dense data, the projections use products with the Hessian, which count as n component gradients each.

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

    def start(self, x0: np.ndarray) -> GroupPoint:
        return GroupPoint(x0, x0)

    def advance(self, k: int, f: Objective, C: MoveOracle, point: Point, estimate: Estimate, step: Step) -> GroupPoint:
        """One Newton step."""
        at = NewtonState.of(f, C, point.x, estimate)
        memory, part = self._model(at, point, NEWCOMERS if estimate.exact else SAMPLED)
        W, within, shape = memory.part.W, self.onto if part is None else part.within, point.x.shape if part is None else None

        def solve(H: Any) -> tuple[np.ndarray, np.ndarray, float]:
            u = _minimiser(H, at.g[W], at.x[W], within, shape or W.shape, at.gap)
            return u - at.x[W], u, 1.0

        def place(u: np.ndarray, t: float = 1.0) -> np.ndarray:
            there = at.x.copy()
            there[W] = u if t == 1.0 else there[W] + t * (u - there[W])
            return there

        found, x = at.descend(memory, memory.H, solve, place), at.x
        if found.t > 0:
            x = place(found.kept, found.t) if found.x is None else found.x
        x = at.moved(point.x, x, memory)
        return GroupPoint(x, x, memory=memory.after(found), part=part)

    def _model(self, at: NewtonState, point: Point, growth: tuple[int, int]) -> tuple[Memory, GroupPart | None]:
        """The quadratic model of the last step if it is still good, otherwise a new one; and its part of the set."""
        from extremal.sets.norms.groups import GroupBall

        C, old, part = self.onto, point.memory, point.part if isinstance(point, GroupPoint) else None
        whole = None if part is not None else old
        if not isinstance(C, GroupBall) or at.learns or _small(at):
            return whole_model(at, whole), None
        promise, used = C.promises(at.x, at.g), C.used(at.x)
        if part is not None and old.fits(at) and part.has(np.union1d(used, np.flatnonzero(promise > WANTED * at.gap))):
            return old.again(at), part
        most = math.ceil(max(growth[1], math.sqrt(BLAS * at.x.size)) * len(promise) / at.x.size)
        J = coordinates(promise, used, INNER * at.gap, max(growth[0] * len(used), most))
        W, within = C.on_groups(J)
        if at.x.size <= min(2 * len(W), FORMED_COLUMNS):
            return whole_model(at, whole), None
        if part is not None and old.part.f is at.f and part.has(J) and len(old.part.W) <= SPARE_GROUPS * len(W):
            return Memory.new(old.part, at, old), part  # its columns are already copied
        return Memory.new(at.f.on_columns(W), at, old), GroupPart(J, within)


def _small(at: NewtonState) -> bool:
    """Whether a Hessian of all columns is cheap; that of an expansion is known already."""
    d = at.x.size
    return d <= NEWCOMERS[1] or (1 if isinstance(at.f, Expansion) else at.f.n) * float(d) ** 2 <= CHEAP_WHOLE


def _minimiser(H: Any, g: np.ndarray, x: np.ndarray, onto: Any, shape: tuple[int, ...], gap: float) -> np.ndarray:
    """The minimiser u of the model over a set; ``slope`` and ``bent`` are gradients at the extrapolated point v, and at u."""
    inner, most = (INNER, PROJECTIONS) if isinstance(H, np.ndarray) else (FAR_INNER, FAR_PROJECTIONS)
    u = v = x
    bent = slope = g
    L, momentum = float(g @ (H @ g)) / max(float(g @ g), 1e-300) or 1.0, 1.0
    for i in range(most):
        if i % LOOKS == LOOKS - 1 and (onto.gap(u.reshape(shape), bent.reshape(shape)) <= inner * gap or late()):
            break
        new = onto.project((v - slope / L).reshape(shape)).reshape(-1)
        change = new - v
        turn = H @ change
        bend, size = float(change @ turn), float(change @ change)
        if size == 0:  # v is the minimiser, up to rounding
            return new
        if bend > 1.0000001 * L * size:
            L = 1.1 * bend / size
            continue
        ahead, there = new - u, slope + turn
        if float(change @ ahead) < 0:  # the extrapolation points the wrong way
            momentum = 1.0
        following = 0.5 + np.sqrt(0.25 + momentum**2)
        share, momentum = (momentum - 1.0) / following, following
        v, slope = new + share * ahead, there + share * (there - bent)
        u, bent = new, there
    return u
