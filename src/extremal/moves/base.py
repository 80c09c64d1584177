"""The contract of a move."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.gradients.base import Estimate, SomeGradient, Steps
from extremal.objectives.base import Objective, manifold_of
from extremal.points.active import ActiveSet
from extremal.points.manifolds import Euclidean, Manifold
from extremal.points.vertex import Vertex
from extremal.sets.base import ConvexSet, Spikes
from extremal.steps.base import Step


class Certifier(Protocol):
    """What a certificate asks of a set; on a manifold it is the oracle at a point, ``lmo_at``."""

    def gap(self, x: np.ndarray, g: np.ndarray) -> float: ...


class MoveOracle(Protocol):
    """All that a plain move asks of a set."""

    def start(self) -> np.ndarray: ...
    def lmo(self, g: np.ndarray, x: np.ndarray | None = None) -> Vertex: ...
    def away(self, g: np.ndarray, x: np.ndarray) -> Vertex: ...  # of sets that know their faces
    def max_step(self, x: np.ndarray, s: Vertex, a: Vertex) -> float: ...  # the same
    def spikes(self) -> Spikes | None: ...  # the vertices of a set that is all spikes
    def limits(self) -> tuple[np.ndarray, np.ndarray]: ...  # of a box
    def gap(self, x: np.ndarray, g: np.ndarray, s: Vertex | None = None) -> float: ...  # s, the oracle's answer, if it is known
    def holds(self, x: np.ndarray) -> bool: ...  # whether x is known to be in the set, without a call of its oracle


def check_manifold(manifold: Manifold, f: Objective) -> None:
    """Refuse an objective with gradients of another place; one that does not say is trusted."""
    wanted = manifold_of(f)
    if wanted not in (None, manifold):
        raise InputError(f"gradients of {type(f).__name__} are tangent vectors of {wanted}: move there, got {manifold}")


@dataclass(frozen=True)
class Point:
    """Where a run stands; moves that keep more (an active set, a second sequence) add fields."""

    x: np.ndarray  # the iterate, feasible
    query: np.ndarray  # where the next gradient is wanted; x itself, except for accelerated moves
    steps: Steps = ()  # the (eta, s) that led here from the previous point, so that margins can follow
    active: ActiveSet | None = None  # the atoms that x is a combination of, if the move keeps them
    memory: Any = None  # the model that led here, of moves that use it again
    work: float = 0.0  # numbers of atoms that quadratic problems have read so far, of moves that count them


P = TypeVar("P", bound=Point)


class Move(Protocol[P]):
    """The contract of a move: one oracle call or many, no data access but through f."""

    atomic: ClassVar[bool]  # whether its points keep an active set
    one_vertex: ClassVar[bool]  # whether each step goes to one vertex, which estimators may follow

    @property
    def projects(self) -> bool:
        """Whether its steps use the set's projection, and not its oracle alone."""
        ...

    def check(self, gradient: SomeGradient, f: Objective, C: ConvexSet) -> None:
        """Refuse an estimator, an objective or a set that it cannot go with."""
        ...

    def first(self, C: MoveOracle) -> np.ndarray | ActiveSet:
        """Where a run starts that was not told: a point of the set, or an active set."""
        ...

    def start(self, x0: np.ndarray) -> P:
        """The first point."""
        ...

    def advance(self, k: int, f: Objective, C: MoveOracle, point: P, estimate: Estimate, step: Step) -> P:
        """The point after iteration k."""
        ...

    def gap(self, C: Certifier, x: np.ndarray, g: np.ndarray) -> float:
        """The Frank-Wolfe gap at x for a gradient g: zero at stationary points only."""
        ...

    def promise(self, point: P) -> float | None:
        """What a move that does not ask the oracle in every step knows of the gap; None of the others."""
        ...


SomeMove: TypeAlias = Move[Any]  # whatever its points are
MEMBERS = ("check", "first", "start", "advance", "gap", "promise", "atomic", "one_vertex", "projects")


def check_move(call: str, move: object) -> None:
    """Refuse what is no move; one from `FlatMove` has all but ``advance``."""
    checks.contract(call, "move", move, "move", "VertexMove()", MEMBERS)


class Flat:
    """What every move in flat space shares."""

    one_vertex: ClassVar[bool] = False

    @property
    def projects(self) -> bool:
        """Moves do without, if they do not say otherwise."""
        return False

    def check(self, gradient: SomeGradient, f: Objective, C: ConvexSet) -> None:
        """Refuse an estimator, an objective or a set that it cannot go with: always gradients that are tangent vectors."""
        check_manifold(Euclidean(), f)

    def gap(self, C: Certifier, x: np.ndarray, g: np.ndarray) -> float:
        """max over s of <g, x - s>."""
        return C.gap(x, g)


class FlatMove(Flat):
    """What moves without atoms share: they start where the set says, and ask the oracle in every step."""

    atomic: ClassVar[bool] = False

    def first(self, C: MoveOracle) -> np.ndarray | ActiveSet:
        """The set's own starting point."""
        return C.start()

    def start(self, x0: np.ndarray) -> Point:
        """x^0, with the gradient wanted there."""
        return Point(x0, x0)

    def promise(self, point: Point) -> float | None:
        """The oracle is asked in every step."""
        return None
