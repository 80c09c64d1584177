"""Newton steps over any set: the quadratic model is minimised by linear minimisations, over kept atoms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal import checks
from extremal.active import ActiveSet, rebuild
from extremal.clock import late
from extremal.gradients.base import Estimate, Gradient
from extremal.iterates import farthest, freeze
from extremal.moves.atoms import AtomMove, AtomsPoint
from extremal.moves.newton import between, check_dense, room
from extremal.moves.newton_model import At, Memory
from extremal.objective import Objective
from extremal.sets.base import ConvexSet
from extremal.slices import sliced
from extremal.steps import Step
from extremal.vertices import DenseVertex
from extremal.weights import Quadratic, newton_step


@dataclass(frozen=True)
class AtomsMemoryPoint(AtomsPoint):
    """A point with its atoms and the quadratic model that led there."""

    memory: Memory | None = None


@dataclass(frozen=True)
class AtomNewton(AtomMove):
    """A Newton step over any set with a linear minimisation oracle, for linear models with few columns.

        u = argmin over C of <g, u - x> + (u - x)' H (u - x) / 2,   x <- x + t (u - x)
        H = (1/n) A' diag phi''(A x) A,   t = 1, 1/2, ... by Armijo, or 2, 4, ... while f falls

    The quadratic problem is solved by fully corrective Frank-Wolfe steps: the oracle's answer to the model's gradient joins the
    atoms, and the best weights of all atoms are found by an active-set method, until the model's gap is a share ``tol`` of the
    gap of f. No data are read meanwhile, so that a pass over the data is paid back by many oracle calls. A Hessian is kept as
    long as every step brings the gap down fivefold. f never increases. Where H is not positive definite |phi''| takes the place
    of phi''. There is no step to choose: the step rule is not asked.

    At most ``limit`` + 1 LMOs a step; a Hessian costs the sum over rows of their squared entries, and counts as n component
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
    >>> r = ex.minimize(f, ex.LinfBall(0.5), ex.Method(ex.Growing(), ex.FullStep(), ex.AtomNewton()), tol=1e-9)
    >>> r.x.round(6), r.n_iter
    (array([ 0.5,  0.4, -0.5]), 1)
    """

    tol: float = 0.02
    limit: int = 300

    def __post_init__(self):
        tol = checks.within("AtomNewton", "tol", self.tol, 0, 1)
        checks.fix(self, tol=tol, limit=checks.whole("AtomNewton", "limit", self.limit, 1))

    def check(self, gradient: Gradient[Any], f: Objective, C: ConvexSet) -> None:
        """Refuse matrices in factors."""
        super().check(gradient, f, C)
        check_dense("AtomNewton", f, C)

    def first(self, C: Any) -> Any:
        """The set's own starting point: far out, where vertices are, losses may be flat."""
        return C.start()

    def start(self, x0: np.ndarray) -> AtomsMemoryPoint:
        """x^0, an atom."""
        start = super().start(x0)
        return AtomsMemoryPoint(start.x, start.query, active=start.active)

    def advance(self, k: int, f: Any, C: Any, point: AtomsPoint, estimate: Estimate, step: Step) -> AtomsMemoryPoint:
        """One Newton step."""
        at = At.of(f, C, point.x, estimate)
        memory, shape = self._model(at, getattr(point, "memory", None)), point.x.shape

        def solve(H: Any) -> tuple[np.ndarray, Any, float]:
            atoms, new, u = self._minimise(H, at, C, point.atoms, shape)
            return u - at.x, (atoms, new), room(atoms.weights, new)

        t, kept = at.descend(memory.part, memory.H, solve)
        if t > 0:
            atoms, new = kept
            atoms = atoms.with_weights(between(atoms.weights, new, t))
        else:  # the model led nowhere
            eta = at.ahead()
            atoms = point.atoms.toward(at.s, eta).dropping(0.0) if eta > 0 else point.atoms
        x = point.x if atoms is point.atoms else rebuild(point.x, atoms)
        return AtomsMemoryPoint(x, x, active=atoms, memory=memory)

    def _model(self, at: At, old: Memory | None) -> Memory:
        """The quadratic model of the last step if it is still good, or a new one."""
        if old is not None and at.learns:
            return old.learnt(at)
        if old is not None and old.fits(at):
            return old.again(at)
        return Memory.new(sliced(at.f, np.arange(at.x.size)) if old is None else old.part.of(at.f), at)

    def _inner(self, H: np.ndarray, at: At, C: Any, atoms: ActiveSet, shape: tuple[int, ...]) -> ActiveSet:
        """With one atom more: the farthest point of the set on the way to where the model is least without the set.

        Where the solution is not at the boundary, vertices alone would take as many as there are dimensions, and one more. Sets
        that know their points by their oracle only have none.
        """
        d = newton_step(H.copy(), -at.g, np.zeros_like(at.g))
        t = farthest(lambda t: C.holds((at.x + t * d).reshape(shape)), 2.0**-11) if np.isfinite(d).all() else 0.0
        return atoms if t == 0 else atoms.with_atom(DenseVertex(freeze((at.x + t * d).reshape(shape))))

    def _minimise(
        self, H: np.ndarray, at: At, C: Any, atoms: ActiveSet, shape: tuple[int, ...]
    ) -> tuple[ActiveSet, np.ndarray, np.ndarray]:
        """The atoms, with those that came in, at their old weights; their new weights; the model's minimiser."""
        atoms = self._inner(H, at, C, atoms, shape)
        V = np.stack([v.to_array().reshape(-1) for v in atoms.vertices]).astype(np.float64)
        HV, w = V @ H, atoms.weights
        M = HV @ V.T
        for _ in range(self.limit):
            q = Quadratic(M, V @ at.g, atoms.weights, np.arange(len(w)), np.ones(len(w)))
            w = q.minimise(w, 0.1 * self.tol * at.gap)
            slope = (at.g + (w - atoms.weights) @ HV).reshape(shape)
            s = C.lmo(slope)
            if C.gap((w @ V).reshape(shape), slope, s) <= self.tol * at.gap or atoms.find(s) is not None or late():
                break
            row = s.to_array().reshape(1, -1).astype(np.float64)
            across = row @ HV.T
            V, HV, w = np.vstack([V, row]), np.vstack([HV, row @ H]), np.append(w, 0.0)
            M = np.block([[M, across.T], [across, row @ HV[-1:].T]])
            atoms = atoms.with_atom(s)
        return atoms, w, w @ V
