"""Newton steps over any set: linear minimisations over kept atoms minimise the quadratic model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal import checks
from extremal.gradients.base import Estimate, SomeGradient
from extremal.moves.atoms import AtomMove, AtomsPoint
from extremal.moves.base import MoveOracle
from extremal.moves.newton.model import NewtonState, Root
from extremal.moves.newton.spikes import check_dense
from extremal.moves.newton.whole import whole_model
from extremal.objectives.base import Objective
from extremal.points.active import ActiveSet
from extremal.points.iterates import farthest, freeze, toward
from extremal.points.vertex import DenseVertex
from extremal.quadratic.search import least_point, root_of
from extremal.quadratic.solver import GrowingQuadratic
from extremal.sets.base import ConvexSet
from extremal.steps.base import Step
from extremal.support.clock import late

LEAST_SHARE = 1e-4  # least share of the gap to which a quadratic problem is solved, if the gap is far larger than f
ENOUGH = 20  # LMOs of one quadratic problem: this, plus two per coordinate, or one if the Hessian is learnt
ATOM_ROUNDS, FEWEST_ROUNDS = 100, 10  # most and fewest rounds of a quadratic problem between two oracle calls
ROUNDS_WORK = 4e6  # numbers that these rounds may read before fewer are made
LEARNT_SHARE = 5  # multiple of the tolerance, if the Hessian is learnt
TRIES = 4  # useless inner points in a row before the move skips them for one, two, four, ... steps
KEPT_ATOMS = 100  # largest number of atoms kept: this, plus three per coordinate
FACTORED = 0.01  # share of k^3: numbers that take as long to read as a k x k Hessian takes to factor


@dataclass(frozen=True)
class NewtonPoint(AtomsPoint):
    """A point that knows whether inner points of the set have helped quadratic problems."""

    wait: int = 0  # steps to go without an inner point
    useless: int = 0  # inner points in a row that did not help


@dataclass(frozen=True)
class AtomNewton(AtomMove):
    """A Newton step over any set with a linear minimisation oracle, for sums of few coordinates.

        u = argmin over C of <g, u - x> + (u - x)' H (u - x) / 2,   x <- x + t (u - x)
        H = (1/n) A' diag phi''(A x) A,   t = 1, 1/2, ... by Armijo, or 2, 4, ... while f falls

    Fully corrective Frank-Wolfe steps solve the quadratic problem. The oracle's answer to the model's gradient joins the atoms,
    and an active-set method finds the best weights. The steps end when the model's gap is a share ``tol`` of the gap of f. They
    read no data: one pass over the data serves many oracle calls. The move keeps a Hessian as long as every step reduces the
    gap fivefold. f never increases. If H is not positive definite, |phi''| replaces phi''. The step rule is not used.

    If the objective is not a linear model, or its loss has no second derivatives, the Hessian is learnt from gradients. It is the
    mean of g_i g_i' over the components, scaled, and corrected by every change of the gradient (BFGS).

    Each model that a step tries takes at most ``limit`` + 1 LMOs. A Hessian costs n d^2 multiplications and counts as n
    component gradients; memory d^2.

    Parameters
    ----------
    tol : float
        Accuracy of the quadratic problem relative to the gap, in (0, 1].
    limit : int
        Largest number of linear minimisations of one quadratic problem.

    References
    ----------
    Liu, Cevher, Tran-Dinh (2022), A Newton Frank-Wolfe method for constrained self-concordant minimization, J. Global Optim.;
    Carderera, Pokutta (2020), Second-order conditional gradient sliding, arXiv:2002.08907.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.eye(3), np.array([0.6, 0.4, -1.0]))
    >>> method = ex.Method(ex.gradients.Growing(), ex.steps.FullStep(), ex.moves.AtomNewton())
    >>> r = ex.minimize(f, ex.LinfBall(0.5), method, tol=1e-9)
    >>> r.x.round(6), r.n_iter
    (array([ 0.5,  0.4, -0.5]), 1)
    """

    tol: float = 0.02
    limit: int = 300

    def __post_init__(self):
        tol = checks.within("AtomNewton", "tol", self.tol, 0, 1)
        checks.fix(self, tol=tol, limit=checks.whole("AtomNewton", "limit", self.limit, 1))

    def check(self, gradient: SomeGradient, f: Objective, C: ConvexSet) -> None:
        super().check(gradient, f, C)
        check_dense("AtomNewton", f, C)

    def first(self, C: MoveOracle) -> np.ndarray:
        """The set's own starting point: losses may be flat far out, where vertices are."""
        return C.start()

    def advance(self, k: int, f: Objective, C: MoveOracle, point: AtomsPoint, estimate: Estimate, step: Step) -> AtomsPoint:
        at = NewtonState.of(f, C, point.x, estimate)
        memory, shape = whole_model(at, point.memory, rooted=True), point.x.shape
        known, begin = point.atoms, np.zeros(0)  # a model begins at the end of the last one
        wait, useless = (point.wait, point.useless) if isinstance(point, NewtonPoint) else (0, 0)
        work = point.work

        def solve(H: np.ndarray | Root) -> tuple[np.ndarray, Any, float]:
            nonlocal known, begin, wait, useless, work
            B = H.B if isinstance(H, Root) else root_of(H)
            work += 0 if isinstance(H, Root) else FACTORED * float(len(H)) ** 3
            first = H is memory.H
            inner = self._inner(B, at, C, shape) if first and wait == 0 else None
            atoms, shares, d = self._minimise(B, at, C, known if inner is None else known.with_atom(inner), shape, begin)
            work += (len(shares) - 0.5 * (len(shares) - len(known))) * (1 + len(shares) - len(known)) * len(B)
            if first and wait == 0:
                useless = 0 if inner is not None and shares[atoms.find(inner)] > 0 else useless + 1
                wait = 2 ** min(useless - TRIES, 6) if useless >= TRIES else 0
            else:
                wait -= first
            useful = (shares > 0) | (atoms.weights > 0)
            known, begin = atoms.only(useful), shares[useful]
            return d, (atoms, shares, d), 1.0 / shares.sum() if shares.any() else 1.0

        found = at.descend(memory, memory.H, solve, lambda kept: at.x + kept[2])
        if found.t > 0:
            atoms, shares, d = found.kept
            shares = found.t * shares
            x, atoms = (
                at.x + found.t * d if found.x is None else found.x,
                atoms.with_weights(max(0.0, 1.0 - float(shares.sum())) * atoms.weights + shares),
            )
        else:  # the model gives no step
            eta = at.ahead(memory)
            atoms = point.atoms.toward(at.s, eta).dropping(0.0) if eta > 0 else point.atoms
            x = at.x if eta == 0 else toward(point.x, at.s, eta)
        x = x if x is found.x else freeze(x.reshape(shape).astype(point.x.dtype, copy=False))
        x = point.x if np.array_equal(x, point.x) else x  # the same object says that no step improves x
        atoms = atoms if len(atoms) <= KEPT_ATOMS + 3 * x.size else ActiveSet.at(DenseVertex(x))
        return NewtonPoint(x, x, active=atoms, memory=memory.after(found), work=work, wait=wait, useless=useless)

    def _inner(self, B: np.ndarray, at: NewtonState, C: Any, shape: tuple[int, ...]) -> DenseVertex | None:
        """The farthest point of the set toward the model's unconstrained minimiser, or None.

        Without such a point, a solution inside the set would take one vertex more than there are dimensions. Sets that test
        membership only by their oracle have no such point.
        """
        d = least_point(B, at.g)
        t = farthest(lambda t: C.holds((at.x + t * d).reshape(shape)), 2.0**-11) if np.isfinite(d).all() else 0.0
        return None if t == 0 else DenseVertex(freeze((at.x + t * d).reshape(shape)))

    def _enough(self, at: NewtonState) -> float:
        """The gap at which a quadratic problem counts as solved; a learnt Hessian is worth less accuracy."""
        return LEARNT_SHARE * self.tol * at.gap if at.learns else self.tol * min(at.gap, max(abs(at.value), LEAST_SHARE * at.gap))

    def _minimise(
        self, B: np.ndarray, at: NewtonState, C: MoveOracle, atoms: ActiveSet, shape: tuple[int, ...], begin: np.ndarray
    ) -> tuple[ActiveSet, np.ndarray, np.ndarray]:
        """Return the atoms, including new ones; their shares of the step d = sum_a share_a (v_a - x), u = x + d; and d.

        x itself is an atom and holds all weight except the shares of ``begin``. The other atoms are stored relative to x, so that
        small steps keep their digits even if the set is large.
        """
        D = np.stack([at.x, *(v.to_array().reshape(-1) for v in atoms.vertices)]) - at.x
        q, w, d, enough = GrowingQuadratic(D @ B.T, D @ at.g), np.zeros(len(D)), np.zeros_like(at.x), self._enough(at)
        w[1 : 1 + len(begin)] = begin
        w[0] = max(0.0, 1.0 - float(begin.sum()))
        for _ in range(min(self.limit, ENOUGH + (1 if at.learns else 2) * at.x.size)):
            rounds = int(max(FEWEST_ROUNDS, min(ATOM_ROUNDS, ROUNDS_WORK / max(1, len(D) * len(B)))))
            w = q.minimise(w, 0.1 * enough, rounds)
            d = w @ D
            slope = (at.g + (B @ d) @ B).reshape(shape)
            s = C.lmo(slope)
            row = s.to_array().reshape(-1) - at.x
            if float(np.vdot(slope, d - row)) <= enough or atoms.find(s) is not None or late():  # the promise of s
                break
            q.add(B @ row, float(at.g @ row))
            D, w, atoms = np.vstack([D, row]), np.append(w, 0.0), atoms.with_atom(s)
        return atoms, w[1:], d
