"""Boosted moves: toward a combination of vertices that is better aligned with the negative gradient than a single vertex."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.gradients.base import Estimate, SomeGradient
from extremal.moves.base import FlatMove, MoveOracle, Point
from extremal.objectives.base import Objective, is_factored
from extremal.points.composed import Chord
from extremal.points.iterates import along, inner
from extremal.points.vertex import Vertex
from extremal.sets.base import ConvexSet
from extremal.steps.base import Direction, Step, take


@dataclass(frozen=True)
class Boosted(FlatMove):
    """A step along a direction that chases the negative gradient: several oracle calls, and one look at the gradient.

        d_0 = 0;   v_k = lmo(g + d_k),   lambda_k = <-g - d_k, v_k - x> / |v_k - x|^2,   d_{k+1} = d_k + lambda_k (v_k - x)
        x <- x + eta d_K / (lambda_0 + ... + lambda_{K-1})

    d_K divided by the sum of the lambda_k is a mean of the v_k - x, so the step stays in the set. Vertices are added as long as
    the cosine of the angle between -g and d_k grows by at least ``growth``, and at most ``rounds`` times. A step takes one oracle
    call per vertex and one more for the vertex that ends the rounds; O(d) memory. The move goes with every estimator and every
    step rule, except with estimators that follow one vertex. Iterates must be arrays.

    Parameters
    ----------
    growth : float
        delta, in (0, 1).
    rounds : int, optional
        The largest number of vertices in a step. Default: no limit.

    References
    ----------
    Combettes, Pokutta (2020), Boosting Frank-Wolfe by chasing gradients, ICML, arXiv:2003.06369.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.eye(3), np.array([0.6, 0.4, -1.0]))
    >>> method = ex.Method(ex.gradients.Full(), ex.steps.LineSearch(), ex.moves.Boosted())
    >>> ex.minimize(f, ex.Simplex(), method, tol=1e-6).x.round(4)
    array([0.6, 0.4, 0. ])
    """

    growth: float = 1e-3
    rounds: int | None = None

    def __post_init__(self):
        rounds = None if self.rounds is None else checks.whole("Boosted", "rounds", self.rounds, 1)
        checks.fix(self, growth=checks.within("Boosted", "growth", self.growth, 0, 1), rounds=rounds)

    def check(self, gradient: SomeGradient, f: Objective, C: ConvexSet) -> None:
        super().check(gradient, f, C)
        if C.matrix_free and is_factored(f):
            raise InputError(f"Boosted needs iterates that are arrays, got matrices in factors over {C}: use LowRankFW")

    def advance(self, k: int, f: Objective, C: MoveOracle, point: Point, estimate: Estimate, step: Step) -> Point:
        """Several oracle calls, one step."""
        chord = self._chase(C, point.x, estimate.g)
        x = along(point.x, chord, take(step, k, Direction(f, point.x, estimate, chord)))
        return Point(x, x)

    def _chase(self, C: MoveOracle, x: np.ndarray, g: np.ndarray) -> Chord:
        """The mean of the v_k - x by the weights lambda_k; its scale is not that of g, and so does not matter."""
        v, size = C.lmo(g), float(np.abs(g).max())
        if not 0 < size < math.inf:
            return Chord.to(v)
        g, d, cosine = g / size, np.zeros(g.shape), -1.0
        found: list[tuple[float, Vertex]] = []
        while True:
            way, residual = v.to_array() - x, -g - d
            share = inner(residual, way) / max(inner(way, way), 1e-300)
            new = d + share * way
            aligned = _cosine(-g, new)
            if not share > 0 or aligned < cosine + (self.growth if found else 0.0) or self._shrinks(residual, way, d):
                break
            d, cosine = new, aligned
            found.append((share, v))
            if len(found) == self.rounds:
                break
            v = C.lmo(g + d)
        total = math.fsum(share for share, _ in found)
        return Chord(-1.0, tuple((share / total, v) for share, v in found)) if found else Chord.to(v)

    @staticmethod
    def _shrinks(residual: np.ndarray, way: np.ndarray, d: np.ndarray) -> bool:
        """Whether a shorter d follows the residual better than the vertex does: then no vertex improves the angle."""
        length = math.sqrt(inner(d, d))
        return length > 0 and -inner(residual, d) / length > inner(residual, way)


def _cosine(a: np.ndarray, b: np.ndarray) -> float:
    """The cosine of the angle between a and b; -1 if b vanishes."""
    product = math.sqrt(inner(a, a)) * math.sqrt(inner(b, b))
    return inner(a, b) / product if product > 0 else -1.0
