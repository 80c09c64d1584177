"""Moves inside the smallest face that holds the iterate: they move away from vertices without an active set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from extremal.checks import InputError
from extremal.gradients.base import Estimate, SomeGradient
from extremal.moves.base import FlatMove, MoveOracle, Point
from extremal.objectives.base import Objective
from extremal.points.composed import Chord
from extremal.points.iterates import along
from extremal.points.vertex import Vertex
from extremal.sets.base import ConvexSet, Faced
from extremal.steps.base import Direction, Step, take


class _InFace(FlatMove):
    """The base of both moves, which need a set that knows its faces."""

    def check(self, gradient: SomeGradient, f: Objective, C: ConvexSet) -> None:
        super().check(gradient, f, C)
        if not isinstance(C, Faced):
            raise InputError(
                f"{type(self).__name__} needs a set that knows its faces, such as Simplex() or Box(0, 1); {C} does not: "
                "Away(), Pairwise() and BlendedPairwise() keep atoms instead"
            )


@dataclass(frozen=True)
class InFacePairwise(_InFace):
    """Decomposition-invariant pairwise steps: from the worst vertex of the face that holds x to the best vertex of the set.

        s = lmo(g),   a = argmax of <g, a> over the face,   x <- x + eta t (s - a),  t the largest with x + t (s - a) in C

    A step takes two oracle calls; there are no atoms and no memory. The set must know its faces: `Simplex`, `CappedSimplex`,
    `Hypersimplex`, `BudgetBox`, `Box`, `L1Ball`, `BoundedL1Ball`, `GroupBall`, `Birkhoff`, ... The method converges geometrically
    for strongly convex f over polytopes with 0/1 vertices, at a rate that depends on the sparsity of the solution, not on the
    dimension. If vertices are not 0/1 (a `BudgetBox` with bounds of all sizes), steps may become so short that the method stalls;
    `InFaceBlended` does not. Over balls with a round boundary (`GroupBall`, `L2Ball`) no such rate is known: a vertex of the face
    of x may be a little off the vertex that the solution needs.

    References
    ----------
    Garber, Meshi (2016), Linear-memory and decomposition-invariant linearly convergent conditional gradient algorithm for
    structured polytopes, arXiv:1605.06492.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.eye(3), np.array([0.6, 0.4, -1.0]))
    >>> method = ex.Method(ex.gradients.Full(), ex.steps.LineSearch(), ex.moves.InFacePairwise())
    >>> r = ex.minimize(f, ex.Simplex(), method, tol=1e-9)
    >>> r.x.round(6)
    array([0.6, 0.4, 0. ])
    """

    def advance(self, k: int, f: Objective, C: MoveOracle, point: Point, estimate: Estimate, step: Step) -> Point:
        """One step between two vertices."""
        s, a = C.lmo(estimate.g), C.away(estimate.g, point.x)
        return _go(k, f, point, estimate, step, _between(C, point.x, s, a))


@dataclass(frozen=True)
class InFaceBlended(_InFace):
    """Blended decomposition-invariant steps: between two vertices of the face, or toward a new vertex.

        s = lmo(g),   a, b = argmax, argmin of <g, .> over the face that holds x
        x <- x + eta t (b - a)  if <g, a - b> >= <g, x - s>,   else  x <- x + eta (s - x)

    A step takes three oracle calls; there are no atoms and no memory. The set must know its faces, as for `InFacePairwise`.

    References
    ----------
    Garber, Meshi (2016), arXiv:1605.06492; Tsuji, Tanaka, Pokutta (2022).

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.eye(3), np.array([0.6, 0.4, -1.0]))
    >>> method = ex.Method(ex.gradients.Full(), ex.steps.LineSearch(), ex.moves.InFaceBlended())
    >>> r = ex.minimize(f, ex.Simplex(), method, tol=1e-9)
    >>> r.x.round(6)
    array([0.6, 0.4, 0. ])
    """

    def advance(self, k: int, f: Objective, C: MoveOracle, point: Point, estimate: Estimate, step: Step) -> Point:
        """Step between two vertices of the face, or toward a new one."""
        g = estimate.g
        s, a, b = C.lmo(g), C.away(g, point.x), C.away(-g, point.x)
        toward = Direction(f, point.x, estimate, s)
        inside = a.dot(g) - b.dot(g) >= toward.gap
        return _go(k, f, point, estimate, step, _between(C, point.x, b, a) if inside else Chord.to(s))


def _between(C: MoveOracle, x: np.ndarray, s: Vertex, a: Vertex) -> Chord:
    t = C.max_step(x, s, a)
    return Chord(0.0, ((t, s), (-t, a)))


def _go(k: int, f: Objective, point: Point, estimate: Estimate, step: Step, chord: Chord) -> Point:
    x = along(point.x, chord, take(step, k, Direction(f, point.x, estimate, chord)))
    return Point(x, x)
