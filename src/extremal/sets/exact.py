"""Sets in rational arithmetic: vertices, gaps and membership without rounding, for sets whose oracle is a selection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from extremal.checks import InputError
from extremal.points.composed import Place
from extremal.points.vertex import DenseVertex, dot64
from extremal.sets.base import ConvexSet
from extremal.sets.made.blocks import Blocked
from extremal.sets.norms.balls import L1Ball, LinfBall
from extremal.sets.polytopes.general import ConvexHull
from extremal.sets.polytopes.transport import Birkhoff
from extremal.sets.simplices.plain import Box, Simplex, UnitSimplex
from extremal.support.rational import fraction


@dataclass(frozen=True)
class ExactSet:
    """A set for points and gradients that are arrays of fractions.

    Ties go as in the set's own oracle. The start is the oracle's answer to 0, because a centre such as that of `Simplex` is
    rounded.
    """

    inner: ConvexSet
    matrix_free = is_warm = False

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the points."""
        return self.inner.shape or ()

    @property
    def diameter(self) -> float:
        """That of the set, rounded."""
        return self.inner.diameter

    def lmo(self, g: np.ndarray) -> DenseVertex:
        """A vertex with the smallest <g, s>."""
        if (kind := _kind(self.inner)) is not None:
            return DenseVertex(fraction(np.broadcast_to(kind.vertex(self.inner, g), g.shape)))
        s = np.empty(g.shape, object)
        for i in range(self.n_blocks()):
            place, part = self.block(i)
            s[place] = part.lmo(g[place].reshape(part.shape)).values.reshape(s[place].shape)
        return DenseVertex(s)

    def gap(self, x: np.ndarray, g: np.ndarray, s: DenseVertex | None = None) -> Any:
        """max over s in the set of <g, x - s>, a fraction."""
        return dot64(x - (self.lmo(g) if s is None else s).values, g)

    def contains(self, x: np.ndarray, tol: float = 0.0) -> bool:
        """Whether x is in the set, without a tolerance; in a `ConvexHull`, up to rounding."""
        if (kind := _kind(self.inner)) is not None:
            return bool(kind.holds(self.inner, x))
        return all(part.contains(x[place].reshape(part.shape)) for place, part in map(self.block, range(self.n_blocks())))

    def start(self) -> np.ndarray:
        """The oracle's answer to 0."""
        return self.lmo(np.zeros(self.shape, np.int64).astype(object)).values

    def n_blocks(self) -> int:
        """The number of blocks, of a product."""
        return self.inner.n_blocks() if isinstance(self.inner, Blocked) else 0

    def block(self, i: int) -> tuple[Place, ExactSet]:
        """The place of block i, and its set."""
        assert isinstance(self.inner, Blocked)
        place, part = self.inner.block(i)
        return place, ExactSet(part)


class _Kind(NamedTuple):
    vertex: Callable[[Any, np.ndarray], Any]  # the set and g -> the vertex, broadcast to the shape of g
    holds: Callable[[Any, np.ndarray], Any]  # the set and x -> whether x is in it


def _simplex(C: Simplex, g: np.ndarray) -> np.ndarray:
    return _spike(g, int(g.argmin()), fraction(C.total))


def _unit_simplex(C: UnitSimplex, g: np.ndarray) -> np.ndarray:
    return _spike(g, int(g.argmin()), fraction(C.total) if g.min() < 0 else 0)


def _l1_ball(C: L1Ball, g: np.ndarray) -> np.ndarray:
    j, r = int(np.abs(g).argmax()), fraction(C.radius)
    return _spike(g, j, -r if g.flat[j] > 0 else r) + _centre(C)


def _linf_ball(C: LinfBall, g: np.ndarray) -> np.ndarray:
    r = fraction(C.radius)
    return np.where(g > 0, -r, r) + _centre(C)


def _hull(C: ConvexHull, g: np.ndarray) -> np.ndarray:
    points = fraction(C.points)
    return points[int((points.reshape(len(points), -1) @ g.reshape(-1)).argmin())]


def _permutation(C: Birkhoff, g: np.ndarray) -> np.ndarray:
    """The assignment of least cost, by shortest augmenting paths: O(n^3) sums (Kuhn 1955; Jonker, Volgenant 1987)."""
    n = C.n
    rows, columns, row_of = [0] * (n + 1), [0] * (n + 1), [n] * (n + 1)  # prices, and the row of each column; n is none
    for i in range(n):
        row_of[n] = i  # column n is where row i waits
        j, way = _free_column(g, rows, columns, row_of)
        while j != n:
            row_of[j], j = row_of[way[j]], way[j]
    s = np.zeros((n, n), np.int64)
    s[row_of[:n], np.arange(n)] = 1
    return s


def _free_column(g: np.ndarray, rows: list[Any], columns: list[Any], row_of: list[int]) -> tuple[int, list[int]]:
    """The nearest column without a row, and the column before each column on the way; prices rise by the distance."""
    n = len(g)
    j, way, seen = n, [n] * n, [False] * (n + 1)
    slack: list[Any] = [None] * n  # the least reduced cost of each column
    while row_of[j] != n:
        seen[j], at = True, row_of[j]
        others = [c for c in range(n) if not seen[c]]
        for c in others:
            rest = g[at, c] - rows[at] - columns[c]
            if slack[c] is None or rest < slack[c]:
                slack[c], way[c] = rest, j
        j = min(others, key=lambda c: slack[c])
        step = slack[j]
        for c in (c for c in range(n + 1) if seen[c]):
            rows[row_of[c]], columns[c] = rows[row_of[c]] + step, columns[c] - step
        for c in others:
            slack[c] -= step
    return j, way


def _spike(g: np.ndarray, j: int, value: Any) -> np.ndarray:
    s = np.zeros(g.shape, np.int64).astype(object)
    s.flat[j] = value
    return s


def _centre(C: L1Ball | LinfBall) -> Any:
    return 0 if C.centre is None else fraction(C.centre)


_KINDS: dict[type, _Kind] = {
    Simplex: _Kind(_simplex, lambda C, x: (x >= 0).all() and x.sum() == fraction(C.total)),
    UnitSimplex: _Kind(_unit_simplex, lambda C, x: (x >= 0).all() and x.sum() <= fraction(C.total)),
    L1Ball: _Kind(_l1_ball, lambda C, x: np.abs(x - _centre(C)).sum() <= fraction(C.radius)),
    LinfBall: _Kind(_linf_ball, lambda C, x: np.abs(x - _centre(C)).max() <= fraction(C.radius)),
    Box: _Kind(
        lambda C, g: np.where(g > 0, fraction(C.lower), fraction(C.upper)),
        lambda C, x: (x >= fraction(C.lower)).all() and (x <= fraction(C.upper)).all(),
    ),
    ConvexHull: _Kind(_hull, lambda C, x: C.contains(x.astype(np.float64))),
    Birkhoff: _Kind(_permutation, lambda C, x: (x >= 0).all() and (x.sum(axis=0) == 1).all() and (x.sum(axis=1) == 1).all()),
}


def _kind(C: ConvexSet) -> _Kind | None:
    return _KINDS.get(type(C))


def exact_set(call: str, C: ConvexSet) -> ExactSet:
    """The set in rational arithmetic; refuse a set whose oracle computes instead of selecting.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from extremal import Simplex
    >>> exact_set("minimize", Simplex(Fraction(1, 3), shape=2)).lmo(np.array([2, 1], dtype=object)).values
    array([Fraction(0, 1), Fraction(1, 3)], dtype=object)
    """
    for part in _parts(C):
        if _kind(part) is None:
            names = ", ".join(sorted(kind.__name__ for kind in _KINDS))
            raise InputError(f"`{call}(C=...)` must be {names}, or a product of such sets, for an exact run, got {part}")
    return ExactSet(C)


def _parts(C: ConvexSet) -> list[ConvexSet]:
    """The sets that a product is made of, or the set itself."""
    if _kind(C) is not None or not isinstance(C, Blocked):
        return [C]
    return [inner for i in range(C.n_blocks()) for inner in _parts(C.block(i)[1])]
