"""Moves over an active set: toward a vertex, away from an atom, or from one to the other."""

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

RENEWAL = 50  # steps after which the iterate is computed anew from its atoms
LAZY_STEPS = 10  # steps that a lazy move takes without the oracle, where g is an estimate


@dataclass(frozen=True)
class Patience:
    """How long a lazy move goes without the oracle."""

    phi: float = math.inf  # its atoms have to promise this: half of the gap that the oracle last said; infinite if not lazy
    steps: int = 0  # taken since then


@dataclass(frozen=True)
class AtomsPoint(Point):
    """A point with its atoms."""

    patience: Patience = field(default_factory=Patience)
    age: int = 0  # steps since x was computed from the atoms

    @property
    def atoms(self) -> ActiveSet:
        """x is their combination, to rounding."""
        assert self.active is not None
        return self.active


@dataclass(frozen=True)
class View:
    """The atoms as g sees them."""

    dots: np.ndarray  # <g, v_i>
    here: float  # <g, x>
    best: int  # the atom with the smallest <g, v_i>
    worst: int  # the one with the largest

    @classmethod
    def of(cls, atoms: ActiveSet, g: np.ndarray) -> View:
        """One product of g with every atom."""
        dots = atoms.dots(g).astype(np.float64, copy=False)
        return cls(dots, float(atoms.weights @ dots), int(dots.argmin()), int(dots.argmax()))

    @property
    def behind(self) -> float:
        """<g, worst - x>: what going away from the worst atom promises."""
        return float(self.dots[self.worst]) - self.here

    @property
    def spread(self) -> float:
        """<g, worst - best>: what a pairwise step between atoms promises."""
        return float(self.dots[self.worst] - self.dots[self.best])


@dataclass(frozen=True)
class AtomPlan:
    """A step to be taken: its chord, and what a share eta of it makes of the atoms."""

    chord: Chord
    books: Callable[[float], ActiveSet]


def toward_vertex(atoms: ActiveSet, s: Vertex) -> AtomPlan:
    """x + eta (s - x)."""
    return AtomPlan(Chord.to(s), lambda eta: atoms.toward(s, eta))


def away(atoms: ActiveSet, i: int) -> AtomPlan:
    """x + eta t (x - v_i), at most until no weight is left on v_i: t = w_i / (1 - w_i)."""
    t = float(atoms.weights[i] / (1 - atoms.weights[i]))
    return AtomPlan(Chord(t, ((-t, atoms.vertices[i]),)), lambda eta: atoms.away(i, eta * t))


def pairwise(atoms: ActiveSet, s: Vertex, i: int) -> AtomPlan:
    """x + eta w_i (s - v_i), at most until no weight is left on v_i."""
    t = float(atoms.weights[i])
    return AtomPlan(Chord(0.0, ((t, s), (-t, atoms.vertices[i]))), lambda eta: atoms.swap(s, i, eta * t))


def take_step(
    k: int, f: Objective, point: AtomsPoint, estimate: Estimate, step: Step, plan: AtomPlan, patience: Patience
) -> AtomsPoint:
    """A share eta of the plan; the iterate is computed anew from its atoms when some are dropped, and every so often."""
    eta = take(step, k, Direction(f, point.x, estimate, plan.chord))
    atoms = plan.books(eta)
    kept = atoms.dropping(WEIGHT_NOISE)
    if len(kept) < len(atoms) or point.age + 1 >= RENEWAL:
        x, age = rebuilt(point.x, kept), 0
    else:
        x, age = along(point.x, plan.chord, eta), point.age + 1
    return AtomsPoint(x, x, active=kept, patience=patience, age=age)


class AtomMove(Flat, ABC):
    """What moves over atoms share: the start at a vertex, and lazy oracles."""

    atomic: ClassVar[bool] = True

    def first(self, C: MoveOracle) -> np.ndarray | ActiveSet:
        """A vertex of the set, the oracle's answer to zero."""
        start = C.start()
        return ActiveSet.at(C.lmo(np.zeros_like(start))) if isinstance(start, np.ndarray) else ActiveSet.at(as_atom(start))

    def start(self, x0: np.ndarray) -> AtomsPoint:
        """x^0 as one atom, until others are given."""
        return AtomsPoint(x0, x0, active=ActiveSet.at(as_atom(x0)))

    @abstractmethod
    def advance(self, k: int, f: Objective, C: MoveOracle, point: AtomsPoint, estimate: Estimate, step: Step) -> AtomsPoint:
        """The point after iteration k."""

    def promise(self, point: Any) -> float | None:
        """What a lazy move knows of the gap without asking the oracle: about twice what its steps have to promise."""
        phi = point.patience.phi
        return 2 * phi if math.isfinite(phi) else None


@dataclass(frozen=True)
class Lazy(AtomMove, ABC):
    """What moves share that may search their atoms first."""

    lazy: bool = False

    def __post_init__(self):
        checks.flag(type(self).__name__, "lazy", self.lazy)

    def _vertex(self, C: MoveOracle, point: AtomsPoint, estimate: Estimate, view: View, local: float) -> tuple[Vertex, Patience]:
        """Where to go: to the best atom while the atoms promise enough, otherwise to the oracle's answer.

        A noisy g promises something for ever, so that the oracle is then asked after so many steps at the latest.
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

    One LMO a step, and a product of g with every atom. For strongly convex f over a polytope, with a line search or short
    steps, f(x) - f* falls geometrically. A step with eta = 1 away from an atom drops it for good.

    Parameters
    ----------
    lazy : bool
        Search the known atoms first; ask the oracle only when they promise less than half of the last known gap.

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
    """Pairwise steps: weight goes from the worst atom to the best vertex, all other weights stay.

        s = lmo(g),   a = argmax over atoms of <g, a>,   x <- x + eta w_a (s - a)

    One LMO a step, and a product of g with every atom. For strongly convex f over a polytope it converges geometrically; in
    practice often faster than `Away`, with sparser atoms.

    Parameters
    ----------
    lazy : bool
        Search the known atoms first; ask the oracle only when they promise less than half of the last known gap.

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
        same = atoms.find(s) == view.worst  # nothing to go away from
        return take_step(
            k, f, point, estimate, step, toward_vertex(atoms, s) if same else pairwise(atoms, s, view.worst), patience
        )


@dataclass(frozen=True)
class BlendedPairwise(Lazy):
    """Blended pairwise steps: between two atoms while that promises as much as a new vertex, otherwise toward it.

        s = lmo(g),   a, b = argmax, argmin over atoms of <g, .>
        x <- x + eta w_a (b - a)  if <g, a - b> >= <g, x - s>,   else  x <- x + eta (s - x)

    One LMO a step (with ``lazy`` only when the atoms have no more to give), and a product of g with every atom. Weight goes to
    new vertices by Frank-Wolfe steps only, so there are no swap steps and few atoms. Converges geometrically for strongly
    convex f over a polytope.

    Parameters
    ----------
    lazy : bool
        Search the known atoms first; ask the oracle only when they promise less than half of the last known gap.

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
