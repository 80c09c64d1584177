"""Newton steps between bounds: second-order moves over boxes."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from extremal.checks import InputError
from extremal.gradients.base import Estimate, SomeGradient
from extremal.moves.base import FlatMove, MoveOracle, Point
from extremal.moves.newton.model import Hessian, Memory, NewtonState
from extremal.moves.newton.spikes import INNER, check_dense
from extremal.objectives.base import Objective
from extremal.objectives.expansion import Expansion
from extremal.quadratic.search import longest_step
from extremal.quadratic.solver import Quadratic
from extremal.sets.base import Bounded, ConvexSet
from extremal.steps.base import Step

BOX_ROUNDS = 100  # largest number of rounds of a quadratic problem
BOX_LONGEST = 8  # largest number of iterations of conjugate gradients in a round, far from the solution
TOWARD_BOUNDS = 0.999  # share of the way to the bounds that a step longer than Newton's may take


@dataclass(frozen=True)
class BoxNewton(FlatMove):
    """A Newton step over a box: bounds, signs, non-negative coefficients.

        u = argmin over lower <= u <= upper, u_j = x_j for j outside W, of <g, u - x> + (u - x)' H (u - x) / 2
        x <- x + t (u - x),   H = (1/n) A_W' diag phi''(A x) A_W,   t = 1, 1/2, ... by Armijo, or 2, 4, ... while f falls

    W holds the coordinates that the gradient does not hold at a bound. An active-set method solves the quadratic problem: it
    keeps bounds that are hit, and leaves bounds whose multipliers have the wrong sign. The move keeps a Hessian as long as every
    step reduces the gap fivefold. f never increases. If H is not positive definite, |phi''| replaces phi''. The step rule is
    not used. A quadratic f whose Hessian is known (`gradients.Expanded`) is minimised by the first step.

    A step takes one LMO and one product with the columns W for t. A new Hessian takes the sum over rows of their squared entries
    in W, counts as n component gradients, and costs O(k^3) for k = |W|. If W has more than 400 columns of sparse data, or 1500
    of dense data, conjugate gradients use products with the Hessian, which count as n component gradients each.

    References
    ----------
    Bertsekas (1982), Projected Newton methods for optimization problems with simple constraints, SIAM J. Control Optim. 20;
    More, Toraldo (1991), On the solution of large quadratic programming problems with bound constraints, SIAM J. Optim. 1;
    Lin, More (1999), Newton's method for large bound-constrained optimization problems, SIAM J. Optim. 9.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.eye(3), np.array([0.6, 0.4, -1.0]))
    >>> r = ex.minimize(f, ex.Box(0.0, 0.5), ex.Method(ex.gradients.Growing(), ex.steps.FullStep(), BoxNewton()), tol=1e-9)
    >>> r.x.round(6), r.n_iter
    (array([0.5, 0.4, 0. ]), 1)
    """

    def check(self, gradient: SomeGradient, f: Objective, C: ConvexSet) -> None:
        super().check(gradient, f, C)
        check_dense("BoxNewton", f, C)
        if not isinstance(C, Bounded):
            raise InputError(f"BoxNewton needs a set of bounds, such as Box or LinfBall, got {C}")

    def first(self, C: MoveOracle) -> np.ndarray:
        """The point of the box nearest to 0."""
        lower, upper = C.limits()
        return np.clip(np.zeros_like(C.start()), lower, upper)

    def advance(self, k: int, f: Objective, C: MoveOracle, point: Point, estimate: Estimate, step: Step) -> Point:
        """One Newton step."""
        at = NewtonState.of(f, C, point.x, estimate)
        low, high = C.limits()
        lower, upper = _entries(low, at.x), _entries(high, at.x)
        memory, x = self._model(at, point.memory, lower, upper), at.x.copy()
        if memory is not None:
            W = memory.part.W
            q = Quadratic.in_box(at.tailed(memory.H, W), at.g[W], x[W], lower[W], upper[W])
            if point.memory is None and isinstance(at.f, Expansion):  # f is known, and one problem minimises it
                x[W] = q.minimise(x[W], at.f.within(at.value), BOX_ROUNDS)
                x = at.moved(point.x, x, memory)
                return Point(x, x, memory=memory)
            if not isinstance(q.H, np.ndarray) and at.far:
                q = replace(q, longest=BOX_LONGEST)
            inner = INNER * (1 if isinstance(q.H, np.ndarray) else 10) * at.gap

            def solve(H: Hessian) -> tuple[np.ndarray, np.ndarray, float]:
                d = replace(q, H=H).minimise(x[W], inner, BOX_ROUNDS) - x[W]
                return d, d, max(1.0, TOWARD_BOUNDS * longest_step(x[W], d, lower[W], upper[W], most=math.inf))

            def place(d: np.ndarray, t: float = 1.0) -> np.ndarray:
                there = x.copy()
                there[W] += t * d
                return np.clip(there, lower, upper)

            found = at.descend(memory, q.H, solve, place)
            if found.t > 0:
                x = place(found.kept, found.t) if found.x is None else found.x
            memory = memory.after(found)
        x = at.moved(point.x, x, memory)
        return Point(x, x, memory=memory)

    def _model(self, at: NewtonState, memory: Memory | None, lower: np.ndarray, upper: np.ndarray) -> Memory | None:
        """The quadratic model of the last step if it is still good, otherwise a new one; None if no coordinate can move."""
        if at.learns:
            return Memory.new(at.f.on_columns(np.arange(at.x.size)), at) if memory is None else memory.learnt(at)
        held = ((at.x <= lower) & (at.g >= 0)) | ((at.x >= upper) & (at.g <= 0))
        W = (~held).nonzero()[0]
        if len(W) == 0:
            return None
        known = memory is not None and np.isin(W, memory.part.W, assume_unique=True).all()
        if known and memory is not None and memory.fits(at):
            return memory.again(at)
        if known and memory is not None and memory.part.f is at.f and len(memory.part.W) <= 1.5 * len(W):
            return Memory.new(memory.part, at, memory)
        return Memory.new(at.f.on_columns(W), at, memory)


def _entries(bound: Any, x: np.ndarray) -> np.ndarray:
    """A bound of every coordinate of x, which is flat."""
    return np.full(x.shape, float(bound)) if np.ndim(bound) == 0 else np.asarray(bound, np.float64).reshape(-1)
