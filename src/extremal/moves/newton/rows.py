"""Newton steps over polyhedra: a dual active-set method minimises the quadratic model under the rows themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal.checks import InputError
from extremal.gradients.base import Estimate, SomeGradient
from extremal.moves.base import FlatMove, MoveOracle, Point, check_onto
from extremal.moves.newton.model import NewtonState
from extremal.moves.newton.spikes import check_dense
from extremal.moves.newton.whole import formed, whole_model
from extremal.objectives.base import Objective
from extremal.quadratic.polyhedral import Holding
from extremal.sets.base import ConvexSet
from extremal.steps.base import Step


@dataclass(frozen=True)
class RowPoint(Point):
    """A point that knows the constraints that hold it."""

    held: Holding | None = None


@dataclass(frozen=True)
class RowNewton(FlatMove):
    """A Newton step over a set known by its inequalities, for some hundreds of columns.

        u = argmin of <g, u - x> + (u - x)' H (u - x) / 2  over A u <= b, E u = c, lower <= u <= upper, |u|_1 <= radius
        x <- x + t (u - x),   H = (1/n) A' diag phi''(A x) A,   t = 1, 1/2, ... by Armijo, or 2, 4, ... while f falls

    A dual active-set method solves the quadratic problem, and begins with the constraints that held the last step. It reads no
    data and makes no oracle call. The move keeps a Hessian as long as every step reduces the gap fivefold. f never increases. If
    H is not positive definite, |phi''| replaces phi''. The step rule is not used.

    A step takes one LMO. A Hessian costs n d^2 multiplications and counts as n component gradients. The quadratic problem costs
    O(d^3), and O(d^2) for each constraint that comes or goes.

    Parameters
    ----------
    onto : ConvexSet
        The set of the run, which declares its inequalities: `Polytope`, `Monotone`, `CappedSimplex`, `BudgetBox`, ...

    References
    ----------
    Goldfarb, Idnani (1983), A numerically stable dual method for solving strictly convex quadratic programs, Math. Prog. 27;
    Lee, Sun, Saunders (2014), Proximal Newton-type methods for minimizing composite functions, SIAM J. Optim. 24.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.eye(3), np.array([0.7, -0.4, 0.3]))
    >>> r = ex.minimize(f, ex.Monotone(-0.5, 0.5), tol=1e-9)
    >>> r.x.round(6), r.n_iter
    (array([0.15, 0.15, 0.3 ]), 1)
    """

    onto: ConvexSet

    def check(self, gradient: SomeGradient, f: Objective, C: ConvexSet) -> None:
        super().check(gradient, f, C)
        check_dense("RowNewton", f, C)
        check_onto("RowNewton", self.onto, f, C)
        if C.inequalities() is None:
            raise InputError(f"RowNewton needs a set known by its inequalities, such as Polytope or Monotone, got {C}")

    def first(self, C: MoveOracle) -> np.ndarray:
        """The point of the set nearest to 0, or the set's own starting point if rounding prevents that."""
        rows, shape = self.onto.inequalities(), self.onto.shape
        if rows is None or shape is None:
            return C.start()
        zero = np.zeros(rows.size)
        found = rows.minimiser(np.eye(rows.size), zero, zero)
        return C.start() if found is None else rows.snapped(found[0]).reshape(shape)

    def start(self, x0: np.ndarray) -> RowPoint:
        return RowPoint(x0, x0)

    def advance(self, k: int, f: Objective, C: MoveOracle, point: Point, estimate: Estimate, step: Step) -> RowPoint:
        """One Newton step."""
        at, rows = NewtonState.of(f, C, point.x, estimate), self.onto.on(f.shape).inequalities()
        memory, held = whole_model(at, point.memory), point.held if isinstance(point, RowPoint) else None
        assert rows is not None

        def solve(H: Any) -> tuple[np.ndarray, np.ndarray, float]:
            nonlocal held
            found = rows.minimiser(H, at.g, at.x, held)
            if found is None:
                return np.zeros_like(at.x), at.x, 1.0
            held = found[1]
            u = rows.snapped(at.x + found[0])
            return u - at.x, u, 1.0 if len(held.kinds) > rows.equations else rows.longest(at.x, u - at.x)

        found = at.descend(memory, at.tailed(formed(memory.H, at.x.size), memory.part.W), solve, lambda u: u)
        x = at.x
        if found.t > 0:
            x = found.kept if found.t == 1 else at.x + found.t * (found.kept - at.x)
            x = found.x if found.x is not None else x
        x = at.moved(point.x, x, memory)
        return RowPoint(x, x, memory=memory.after(found), held=held)
