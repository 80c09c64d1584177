"""Moves over an active set: toward a vertex, away from an atom, or from an atom to a vertex."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from extremal import checks
from extremal.gradients.base import Estimate
from extremal.moves.base import Flat, MoveOracle, Point
from extremal.objectives.base import Objective
from extremal.points.active import ActiveSet, as_atom, rebuilt
from extremal.points.composed import Chord
from extremal.points.iterates import along
from extremal.points.vertex import Vertex
from extremal.quadratic.solver import WEIGHT_NOISE
from extremal.steps.base import Direction, Step, take

RENEWAL = 50  # steps after which the iterate is recomputed from its atoms
LAZY_STEPS = 10  # steps that a lazy move takes without the oracle, if g is an estimate


@dataclass(frozen=True)
class Patience:
    """How long a lazy move goes on without the oracle."""

    phi: float = math.inf  # its atoms must promise half of the gap at the last oracle call; infinite if not lazy
    steps: int = 0  # steps since that call


@dataclass(frozen=True)
class AtomsPoint(Point):
    """A point with its active set."""

    patience: Patience = field(default_factory=Patience)
    age: int = 0  # steps since x was computed from the atoms

    @property
    def atoms(self) -> ActiveSet:
        """The atoms; x is their combination, up to rounding."""
        assert self.active is not None
        return self.active


@dataclass(frozen=True)
class View:
    """The products of g with the atoms."""

    dots: np.ndarray  # <g, v_i>
    here: float  # <g, x>
    best: int  # the atom with the smallest <g, v_i>
    worst: int  # the atom with the largest

    @classmethod
    def of(cls, atoms: ActiveSet, g: np.ndarray) -> View:
        """Multiply g with every atom."""
        dots = atoms.dots(g).astype(np.float64, copy=False)
        return cls(dots, float(atoms.weights @ dots), int(dots.argmin()), int(dots.argmax()))

    @property
    def behind(self) -> float:
        """<g, worst - x>: the promise of a step away from the worst atom."""
        return float(self.dots[self.worst]) - self.here

    @property
    def spread(self) -> float:
        """<g, worst - best>: the promise of a pairwise step between atoms."""
        return float(self.dots[self.worst] - self.dots[self.best])


@dataclass(frozen=True)
class AtomPlan:
    """A planned step: its chord, and the atoms after a share eta of it."""

    chord: Chord
    books: Callable[[float], ActiveSet]


def toward_vertex(atoms: ActiveSet, s: Vertex) -> AtomPlan:
    """Plan x + eta (s - x)."""
    return AtomPlan(Chord.to(s), lambda eta: atoms.toward(s, eta))


def away(atoms: ActiveSet, i: int) -> AtomPlan:
    """Plan x + eta t (x - v_i), at most until v_i has no weight left: t = w_i / (1 - w_i)."""
    t = float(atoms.weights[i] / (1 - atoms.weights[i]))
    return AtomPlan(Chord(t, ((-t, atoms.vertices[i]),)), lambda eta: atoms.away(i, eta * t))


def pairwise(atoms: ActiveSet, s: Vertex, i: int) -> AtomPlan:
    """Plan x + eta w_i (s - v_i), at most until v_i has no weight left."""
    t = float(atoms.weights[i])
    return AtomPlan(Chord(0.0, ((t, s), (-t, atoms.vertices[i]))), lambda eta: atoms.swap(s, i, eta * t))


def take_step(
    k: int, f: Objective, point: AtomsPoint, estimate: Estimate, step: Step, plan: AtomPlan, patience: Patience
) -> AtomsPoint:
    """Take a share eta of the plan; recompute the iterate from its atoms when some are dropped, and every RENEWAL steps."""
    eta = take(step, k, Direction(f, point.x, estimate, plan.chord))
    atoms = plan.books(eta)
    kept = atoms.dropping(WEIGHT_NOISE)
    if len(kept) < len(atoms) or point.age + 1 >= RENEWAL:
        x, age = rebuilt(point.x, kept), 0
    else:
        x, age = along(point.x, plan.chord, eta), point.age + 1
    return AtomsPoint(x, x, active=kept, patience=patience, age=age)


class AtomMove(Flat, ABC):
    """The base of moves over atoms: the start at a vertex, and lazy oracles."""

    atomic: ClassVar[bool] = True

    def first(self, C: MoveOracle) -> np.ndarray | ActiveSet:
        """A vertex of the set: the oracle's answer to zero."""
        start = C.start()
        return ActiveSet.at(C.lmo(np.zeros_like(start))) if isinstance(start, np.ndarray) else ActiveSet.at(as_atom(start))

    def start(self, x0: np.ndarray) -> AtomsPoint:
        """x^0 as the only atom, until others are given."""
        return AtomsPoint(x0, x0, active=ActiveSet.at(as_atom(x0)))

    @abstractmethod
    def advance(self, k: int, f: Objective, C: MoveOracle, point: AtomsPoint, estimate: Estimate, step: Step) -> AtomsPoint:
        """The point after iteration k."""

    def promise(self, point: Any) -> float | None:
        """An estimate of the gap without an oracle call: about twice the promise that a lazy step needs."""
        phi = point.patience.phi
        return 2 * phi if math.isfinite(phi) else None


@dataclass(frozen=True)
class Lazy(AtomMove, ABC):
    """The base of moves that may search their atoms first."""

    lazy: bool = False

    def __post_init__(self):
        checks.flag(type(self).__name__, "lazy", self.lazy)

    def _vertex(self, C: MoveOracle, point: AtomsPoint, estimate: Estimate, view: View, local: float) -> tuple[Vertex, Patience]:
        """The target: the best atom while the atoms promise enough, otherwise the oracle's answer.

        With a noisy g the promise never vanishes, so the move asks the oracle at least every LAZY_STEPS steps.
        """
        old = point.patience
        if local >= old.phi and (estimate.exact or old.steps < LAZY_STEPS):
            return point.atoms.vertices[view.best], Patience(old.phi, old.steps + 1)
        s = C.lmo(estimate.g)
        return s, Patience(max(0.0, view.here - s.dot(estimate.g)) / 2) if self.lazy else old


@dataclass(frozen=True)
class Away(Lazy):
    """Away steps: toward the best vertex, or away from the worst atom, whichever promises more.

        s = lmo(g),   a = argmax over atoms of <g, a>
        x <- x + eta (s - x)  if <g, x - s> >= <g, a - x>,   else  x <- x + eta t (x - a),  t = w_a / (1 - w_a)

    A step takes one LMO and a product of g with every atom. For strongly convex f over a polytope, with a line search or short
    steps, f(x) - f* falls geometrically. A step with eta = 1 away from an atom drops the atom.

    Parameters
    ----------
    lazy : bool
        Search the known atoms first; ask the oracle only if they promise less than half of the last known gap.

    References
    ----------
    Wolfe (1970); Guelat, Marcotte (1986); Lacoste-Julien, Jaggi (2015), arXiv:1511.05932; Braun, Pokutta, Zink (2017),
    Lazifying conditional gradient algorithms, arXiv:1610.05120.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.eye(3), np.array([0.6, 0.4, -1.0]))
    >>> r = ex.minimize(f, ex.Simplex(), ex.Method(ex.gradients.Full(), ex.steps.LineSearch(), ex.moves.Away()), tol=1e-9)
    >>> r.x.round(6), len(r.atoms)
    (array([0.6, 0.4, 0. ]), 2)
    """

    def advance(self, k: int, f: Objective, C: MoveOracle, point: AtomsPoint, estimate: Estimate, step: Step) -> AtomsPoint:
        atoms, g = point.atoms, estimate.g
        view = View.of(atoms, g)
        s, patience = self._vertex(C, point, estimate, view, max(view.here - float(view.dots[view.best]), view.behind))
        forward = len(atoms) == 1 or view.here - s.dot(g) >= view.behind
        return take_step(k, f, point, estimate, step, toward_vertex(atoms, s) if forward else away(atoms, view.worst), patience)


@dataclass(frozen=True)
class Pairwise(Lazy):
    """Pairwise steps: weight goes from the worst atom to the best vertex; all other weights stay.

        s = lmo(g),   a = argmax over atoms of <g, a>,   x <- x + eta w_a (s - a)

    A step takes one LMO and a product of g with every atom. The method converges geometrically for strongly convex f over a
    polytope; in practice it is often faster than `Away`, with fewer atoms.

    Parameters
    ----------
    lazy : bool
        Search the known atoms first; ask the oracle only if they promise less than half of the last known gap.

    References
    ----------
    Lacoste-Julien, Jaggi (2015), arXiv:1511.05932.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.eye(3), np.array([0.6, 0.4, -1.0]))
    >>> r = ex.minimize(f, ex.Simplex(), ex.Method(ex.gradients.Full(), ex.steps.LineSearch(), ex.moves.Pairwise()), tol=1e-9)
    >>> r.x.round(6), len(r.atoms)
    (array([0.6, 0.4, 0. ]), 2)
    """

    def advance(self, k: int, f: Objective, C: MoveOracle, point: AtomsPoint, estimate: Estimate, step: Step) -> AtomsPoint:
        atoms, g = point.atoms, estimate.g
        view = View.of(atoms, g)
        s, patience = self._vertex(C, point, estimate, view, view.spread)
        same = atoms.find(s) == view.worst  # there is no atom to move away from
        return take_step(
            k, f, point, estimate, step, toward_vertex(atoms, s) if same else pairwise(atoms, s, view.worst), patience
        )


@dataclass(frozen=True)
class BlendedPairwise(Lazy):
    """Blended pairwise steps: between two atoms while this promises as much as a new vertex, otherwise toward the vertex.

        s = lmo(g),   a, b = argmax, argmin over atoms of <g, .>
        x <- x + eta w_a (b - a)  if <g, a - b> >= <g, x - s>,   else  x <- x + eta (s - x)

    A step takes one LMO and a product of g with every atom; with ``lazy``, the LMO is needed only if the atoms promise too
    little. New vertices gain weight by Frank-Wolfe steps only, so there are no swap steps and few atoms. The method converges
    geometrically for strongly convex f over a polytope.

    Parameters
    ----------
    lazy : bool
        Search the known atoms first; ask the oracle only if they promise less than half of the last known gap.

    References
    ----------
    Tsuji, Tanaka, Pokutta (2022), Pairwise conditional gradients without swap steps and sparser kernel herding, ICML.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.eye(3), np.array([0.6, 0.4, -1.0]))
    >>> method = ex.Method(ex.gradients.Full(), ex.steps.LineSearch(), ex.moves.BlendedPairwise())
    >>> r = ex.minimize(f, ex.Simplex(), method, tol=1e-9)
    >>> r.x.round(6), len(r.atoms)
    (array([0.6, 0.4, 0. ]), 2)
    """

    def advance(self, k: int, f: Objective, C: MoveOracle, point: AtomsPoint, estimate: Estimate, step: Step) -> AtomsPoint:
        atoms, g = point.atoms, estimate.g
        view = View.of(atoms, g)
        s, patience = self._vertex(C, point, estimate, view, view.spread)
        between = view.best != view.worst and view.spread >= view.here - s.dot(g)
        plan = pairwise(atoms, atoms.vertices[view.best], view.worst) if between else toward_vertex(atoms, s)
        return take_step(k, f, point, estimate, step, plan, patience)
