"""The contract of a move."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self, TypeAlias, TypeVar

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.gradients.base import Estimate, SomeGradient, Steps
from extremal.objectives.base import Objective, manifold_of
from extremal.points.active import ActiveSet
from extremal.points.composed import Place
from extremal.points.manifolds import Euclidean, Manifold
from extremal.points.vertex import Vertex
from extremal.sets.base import ConvexSet, Projectable, Spikes
from extremal.steps.base import Step


class Certifier(Protocol):
    """The operations that a certificate needs of a set; on a manifold, the oracle at a point, ``lmo_at``."""

    def gap(self, x: np.ndarray, g: np.ndarray) -> float: ...


class MoveOracle(Protocol):
    """The operations that a plain move needs of a set."""

    def start(self) -> np.ndarray: ...
    def lmo(self, g: np.ndarray, x: np.ndarray | None = None) -> Vertex: ...
    def away(self, g: np.ndarray, x: np.ndarray) -> Vertex: ...  # for sets that know their faces
    def max_step(self, x: np.ndarray, s: Vertex, a: Vertex) -> float: ...  # the same
    def n_blocks(self) -> int: ...  # for products of sets
    def block(self, i: int) -> tuple[Place, ConvexSet]: ...  # the same: where block i is, and its set
    def block_lmo(self, i: int, g: np.ndarray) -> Vertex: ...  # the same: the oracle of block i
    def spikes(self) -> Spikes | None: ...  # the vertices, if each has one entry
    def limits(self) -> tuple[np.ndarray, np.ndarray]: ...  # the bounds of a box
    def gap(self, x: np.ndarray, g: np.ndarray, s: Vertex | None = None) -> float: ...  # s is the oracle's answer, if known
    def holds(self, x: np.ndarray) -> bool: ...  # whether x is certainly in the set, without an oracle call


def check_manifold(manifold: Manifold, f: Objective) -> None:
    """Refuse an objective whose gradients belong to another manifold; an objective without a manifold is trusted."""
    wanted = manifold_of(f)
    if wanted not in (None, manifold):
        raise InputError(f"gradients of {type(f).__name__} are tangent vectors of {wanted}: move there, got {manifold}")


def check_projectable(call: str, onto: object, also: str = "") -> None:
    """Refuse an ``onto`` that is no set with a projection; ``also`` names what else is accepted."""
    if not (isinstance(onto, ConvexSet) and isinstance(onto, Projectable)):
        raise InputError(f"`{call}(onto=...)` must be a set with a projection such as L1Ball(20.0){also}, got {onto!r}")


def check_onto(call: str, onto: ConvexSet, f: Objective, C: ConvexSet) -> None:
    """Refuse a projection onto another set than that of the run: its points could lie outside."""
    if onto.on(f.shape) != C:
        raise InputError(f"`{call}(onto=...)` must be the set of the run, {C}, got {onto}")


@dataclass(frozen=True)
class Point:
    """The state of a move; moves that keep more (an active set, a second sequence) add fields."""

    x: np.ndarray  # the iterate, which is feasible
    query: np.ndarray  # where to evaluate the next gradient: x itself, except for accelerated moves
    steps: Steps = ()  # the (eta, s) that led here from the previous point, so that margins can follow
    active: ActiveSet | None = None  # the atoms that x is a combination of, if the move keeps them
    memory: Any = None  # the model that led here, if the move reuses it
    work: float = 0.0  # numbers of atoms that quadratic problems have read so far, if the move counts them


P = TypeVar("P", bound=Point)


class Move(Protocol[P]):
    """The contract of a move: one or more oracle calls, and data access through f only."""

    atomic: ClassVar[bool]  # whether its points keep an active set
    one_vertex: ClassVar[bool]  # whether each step goes to one vertex, which estimators may follow

    @property
    def projects(self) -> bool:
        """Whether the steps use the set's projection, and not only its oracle."""
        ...

    def check(self, gradient: SomeGradient, f: Objective, C: ConvexSet) -> None:
        """Refuse an estimator, an objective or a set that the move cannot handle."""
        ...

    def first(self, C: MoveOracle) -> np.ndarray | ActiveSet:
        """The default start of a run: a point of the set, or an active set."""
        ...

    def start(self, x0: np.ndarray) -> P:
        """The first point."""
        ...

    def advance(self, k: int, f: Objective, C: MoveOracle, point: P, estimate: Estimate, step: Step) -> P:
        """The point after iteration k."""
        ...

    def gap(self, C: Certifier, x: np.ndarray, g: np.ndarray) -> float:
        """The Frank-Wolfe gap at x for a gradient g: zero only at stationary points."""
        ...

    def promise(self, point: P) -> float | None:
        """An estimate of the gap, if the move does not ask the oracle in every step; otherwise None."""
        ...


SomeMove: TypeAlias = Move[Any]  # a move with any type of points
MEMBERS = ("check", "first", "start", "advance", "gap", "promise", "atomic", "one_vertex", "projects")


def check_move(call: str, move: object) -> None:
    """Refuse an object that is not a move; `FlatMove` provides everything except ``advance``."""
    checks.contract(call, "move", move, "move", "VertexMove()", MEMBERS)


class Flat:
    """The base of every move in flat space."""

    one_vertex: ClassVar[bool] = False

    @property
    def projects(self) -> bool:
        """False, unless a move overrides this."""
        return False

    def check(self, gradient: SomeGradient, f: Objective, C: ConvexSet) -> None:
        """Refuse parts that the move cannot handle: here, an objective on a manifold."""
        check_manifold(Euclidean(), f)

    def gap(self, C: Certifier, x: np.ndarray, g: np.ndarray) -> float:
        """max over s of <g, x - s>."""
        return C.gap(x, g)


class FlatMove(Flat):
    """The base of moves without atoms: they start at ``C.start()``, and ask the oracle in every step."""

    atomic: ClassVar[bool] = False

    def first(self, C: MoveOracle) -> np.ndarray | ActiveSet:
        """The set's own starting point."""
        return C.start()

    def start(self, x0: np.ndarray) -> Point:
        """x^0, which is also the query."""
        return Point(x0, x0)

    def promise(self, point: Point) -> float | None:
        """None: the move asks the oracle in every step."""
        return None


class PartMove(FlatMove):
    """The base of moves that read one part of the gradient in a step, and may draw which: the run tells them its seed."""

    def seeded(self, seed: int) -> Self:
        """The move with the run's seed, if it draws and has none of its own."""
        return self
