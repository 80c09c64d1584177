"""Newton steps over any set: the quadratic model is minimised by linear minimisations, over kept atoms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal import checks
from extremal.gradients.base import Estimate, SomeGradient
from extremal.moves.atoms import AtomMove, AtomsPoint
from extremal.moves.base import MoveOracle
from extremal.moves.newton.model import Memory, NewtonState, Root
from extremal.moves.newton.spikes import check_dense
from extremal.objectives.base import Objective
from extremal.points.active import ActiveSet
from extremal.points.iterates import farthest, freeze, toward
from extremal.points.vertex import DenseVertex
from extremal.quadratic.search import least_point, root_of
from extremal.quadratic.solver import GrowingQuadratic
from extremal.sets.base import ConvexSet
from extremal.steps.base import Step
from extremal.support.clock import late

LEAST_SHARE = 1e-4  # share of the gap to which a quadratic problem is solved where the gap is far larger than f
ENOUGH = 20  # linear minimisations, and two for each coordinate, that one quadratic problem is worth; or one, if it is learnt
ATOM_ROUNDS, FEWEST_ROUNDS = 100, 10  # of a quadratic problem between two questions to the oracle; fewer, but some, if all
ROUNDS_WORK = 4e6  # numbers that they read would be more than this
LEARNT_SHARE = 5  # times the tolerance for quadratic problems that are learnt
TRIES = 4  # of points inside that are of no use, after which steps go without: one, two, four, ... until the next try
KEPT_ATOMS = 100  # atoms, and three for each coordinate, that are kept
FACTORED = 0.01  # of its cube: numbers that would take as long to read as a Hessian of that size takes to be factored


@dataclass(frozen=True)
class NewtonPoint(AtomsPoint):
    """A point that knows whether points inside of the set have been of use to quadratic problems."""

    wait: int = 0  # steps to go without one
    useless: int = 0  # how often one was of no use since one was


@dataclass(frozen=True)
class AtomNewton(AtomMove):
    """A Newton step over any set with a linear minimisation oracle, for sums of few coordinates.

        u = argmin over C of <g, u - x> + (u - x)' H (u - x) / 2,   x <- x + t (u - x)
        H = (1/n) A' diag phi''(A x) A,   t = 1, 1/2, ... by Armijo, or 2, 4, ... while f falls

    The quadratic problem is solved by fully corrective Frank-Wolfe steps: the oracle's answer to the model's gradient joins the
    atoms, and the best weights of all atoms are found by an active-set method, until the model's gap is a share ``tol`` of the
    gap of f. No data are read meanwhile, so that a pass over the data is paid back by many oracle calls. A Hessian is kept as
    long as every step brings the gap down fivefold. f never increases. Where H is not positive definite |phi''| takes the place
    of phi''. There is no step to choose: the step rule is not asked.

    Objectives that are no linear models, and losses without second derivatives, have a Hessian that is learnt from gradients:
    the mean of g_i g_i' over the components, scaled, and corrected by every change of the gradient (BFGS).

    At most ``limit`` + 1 LMOs for each model that a step tries; a Hessian costs n d^2 multiplications and counts as n component
    gradients; memory d^2.

    Parameters
    ----------
    tol : float
        Accuracy of the quadratic problem relative to the gap, in (0, 1].
    limit : int
        Linear minimisations that one quadratic problem may take.

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
        """The set's own starting point: far out, where vertices are, losses may be flat."""
        return C.start()

    def advance(self, k: int, f: Objective, C: MoveOracle, point: AtomsPoint, estimate: Estimate, step: Step) -> AtomsPoint:
        at = NewtonState.of(f, C, point.x, estimate)
        memory, shape = self._model(at, point.memory), point.x.shape
        known, begin = point.atoms, np.zeros(0)  # one model begins where the last one ended
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
        else:  # the model led nowhere
            eta = at.ahead(memory)
            atoms = point.atoms.toward(at.s, eta).dropping(0.0) if eta > 0 else point.atoms
            x = at.x if eta == 0 else toward(point.x, at.s, eta)
        x = x if x is found.x else freeze(x.reshape(shape).astype(point.x.dtype, copy=False))
        x = point.x if np.array_equal(x, point.x) else x  # the same: there is nothing more to be won
        atoms = atoms if len(atoms) <= KEPT_ATOMS + 3 * x.size else ActiveSet.at(DenseVertex(x))
        return NewtonPoint(x, x, active=atoms, memory=memory.after(found), work=work, wait=wait, useless=useless)

    def _model(self, at: NewtonState, old: Memory | None) -> Memory:
        """The quadratic model of the last step if it is still good, or a new one."""
        if old is not None and at.learns:
            return old.learnt(at)
        if old is not None and old.fits(at):
            return old.again(at)
        return Memory.new(at.f.on_columns(np.arange(at.x.size)) if old is None else old.part.of(at.f), at, old, rooted=True)

    def _inner(self, B: np.ndarray, at: NewtonState, C: Any, shape: tuple[int, ...]) -> DenseVertex | None:
        """The farthest point of the set on the way to where the model is least without the set, if there is any.

        Where the solution is not at the boundary, vertices alone would take as many as there are dimensions, and one more. Sets
        that know their points by their oracle only have none.
        """
        d = least_point(B, at.g)
        t = farthest(lambda t: C.holds((at.x + t * d).reshape(shape)), 2.0**-11) if np.isfinite(d).all() else 0.0
        return None if t == 0 else DenseVertex(freeze((at.x + t * d).reshape(shape)))

    def _enough(self, at: NewtonState) -> float:
        """The gap of the quadratic problem at which it is solved: one that is learnt is not worth much."""
        return LEARNT_SHARE * self.tol * at.gap if at.learns else self.tol * min(at.gap, max(abs(at.value), LEAST_SHARE * at.gap))

    def _minimise(
        self, B: np.ndarray, at: NewtonState, C: MoveOracle, atoms: ActiveSet, shape: tuple[int, ...], begin: np.ndarray
    ) -> tuple[ActiveSet, np.ndarray, np.ndarray]:
        """The atoms, with those that came in; their shares of the step d = sum_a share_a (v_a - x), u = x + d; and d.

        x itself is an atom of all the weight but the shares of ``begin``. The others are known by their distance from it, so
        that small steps keep their digits, however large the set is.
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
            if float(np.vdot(slope, d - row)) <= enough or atoms.find(s) is not None or late():  # what s promises
                break
            q.add(B @ row, float(at.g @ row))
            D, w, atoms = np.vstack([D, row]), np.append(w, 0.0), atoms.with_atom(s)
        return atoms, w[1:], d
