"""Scaled, shifted and summed sets. Each oracle call makes one call of every part."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.points.composed import Combination
from extremal.points.low_rank import LowRank, RankOne
from extremal.points.vertex import Coordinate, DenseVertex, SparseVertex, Vertex, least
from extremal.sets.base import ConvexSet
from extremal.sets.made.cuts import check_set, on_shape
from extremal.sets.oracle import member
from extremal.sets.shared import numbers, one_number


@dataclass(frozen=True, eq=False, repr=False)
class ScaledSet(ConvexSet):
    """A set times a number; a negative number also mirrors the set.

        {factor x : x in C},   lmo(g) = factor lmo_C(sign(factor) g)

    The cost and the kind of vertex are as for C. The diameter is |factor| times that of C, exact if C's is.

    Parameters
    ----------
    C : ConvexSet
        Any set.
    factor : float
        Any number except zero.
    shape : int or tuple of int, optional
        Shape of the points. Default: the shape of C.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> C = ScaledSet(ex.Simplex(), -2.0)     # entries of at most 0 that sum to -2
    >>> C.lmo(np.array([1.0, 3.0])).to_array()
    array([ 0., -2.])
    """

    C: ConvexSet
    factor: float
    shape: tuple[int, ...] | None = None

    def __post_init__(self):
        wanted = "a finite number other than zero"
        self._fix(factor=one_number("ScaledSet", "factor", self.factor, wanted, lambda c: 0 < abs(c) < math.inf))
        C = on_shape("ScaledSet", check_set("ScaledSet", self.C), self.shape)
        self._fix(C=C, shape=C.shape)

    def lmo(self, g: np.ndarray) -> Vertex:
        return times(self.factor, self.C.lmo(g if self.factor > 0 else -g))

    def contains(self, x: np.ndarray, tol: float = 1e-9) -> bool:
        return self.C.contains(x / self.factor, tol)

    @property
    def diameter(self) -> float:
        return abs(self.factor) * self.C.diameter

    def start(self) -> np.ndarray:
        return self.factor * np.asarray(self.C.start())


@dataclass(frozen=True, eq=False, repr=False)
class ShiftedSet(ConvexSet):
    """A set moved by a vector.

        {x + offset : x in C},   lmo(g) = lmo_C(g) + offset

    The cost is that of C. The vertex is C's vertex and the offset, in one array if C's vertex is dense. The diameter is that
    of C.

    Parameters
    ----------
    C : ConvexSet
        Any set.
    offset : float or array
        A vector, or one number that moves every entry.
    shape : int or tuple of int, optional
        Shape of the points. Default: the shape of the offset, or of C.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> C = ShiftedSet(ex.L1Ball(1.0), [10.0, 20.0])
    >>> C.lmo(np.array([1.0, -3.0])).to_array()
    array([10., 21.])
    """

    C: ConvexSet
    offset: Any
    shape: tuple[int, ...] | None = None

    def __post_init__(self):
        self._fix(offset=numbers("ShiftedSet", "offset", self.offset))
        given = self.offset.shape
        if given and self.shape not in (None, given):
            raise InputError(f"`ShiftedSet(offset=...)` must be a number or have the shape {self.shape} of a point, got {given}")
        C = on_shape("ShiftedSet", check_set("ShiftedSet", self.C), given or self.shape)
        self._fix(C=C, shape=C.shape)

    def lmo(self, g: np.ndarray) -> Vertex:
        return total([self.C.lmo(g), DenseVertex(np.broadcast_to(self.offset, g.shape))], g)

    def contains(self, x: np.ndarray, tol: float = 1e-9) -> bool:
        """Whether x - offset is in C, up to tol times the size of C and of the offset."""
        y, away = x - self.offset, float(np.abs(self.offset).max())
        size = max(self.C.on(x.shape).diameter, float(np.abs(y).max()))
        return self.C.contains(y, tol * (1 + away / size) if size > 0 else tol)

    @property
    def diameter(self) -> float:
        return self.C.diameter

    def start(self) -> np.ndarray:
        return np.asarray(self.C.start()) + self.offset


@dataclass(frozen=True, eq=False, repr=False, init=False)
class MinkowskiSum(ConvexSet):
    """All sums of one point from each set.

        {x_1 + ... + x_k : x_i in C_i},   lmo(g) = lmo_1(g) + ... + lmo_k(g)

    The cost is the sum over the parts. The vertex is the sum of their vertices, each stored as compactly as before. The
    diameter is the sum of the diameters, which is an upper bound. ``contains`` has no formula: it runs Frank-Wolfe steps
    toward x, with many oracle calls.

    Parameters
    ----------
    *parts : ConvexSet
        The sets C_1, C_2, ..., or one list of them.
    sets : sequence of ConvexSet, optional
        The same sets by keyword.
    shape : int or tuple of int, optional
        Shape of the points. Default: the shape of the parts.

    References
    ----------
    Rockafellar (1970), Convex Analysis, section 16 (support functions).

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> C = MinkowskiSum(ex.L1Ball(1.0), ex.LinfBall(0.1))     # a sparse point, and a small change of every entry
    >>> C.lmo(np.array([1.0, -3.0])).to_array()
    array([-0.1,  1.1])
    """

    sets: tuple[ConvexSet, ...]
    shape: tuple[int, ...] | None

    def __init__(self, *parts: object, sets: Sequence[ConvexSet] = (), shape: int | tuple[int, ...] | None = None):
        checks.fix(self, shape=shape)
        self._fix(sets=gathered("MinkowskiSum", parts, sets))
        known = {C.shape for C in self.sets} | {self.shape}
        common = next((one for one in known if one is not None), None)
        self._fix(sets=tuple(on_shape("MinkowskiSum", C, common) for C in self.sets), shape=common)

    def lmo(self, g: np.ndarray) -> Vertex:
        return total([C.lmo(g) for C in self.sets], g)

    def contains(self, x: np.ndarray, tol: float = 1e-9) -> bool:
        return member(self.on(x.shape), x, tol)

    @property
    def diameter(self) -> float:
        return sum(C.diameter for C in self.sets)

    def start(self) -> np.ndarray:
        return np.sum([np.asarray(C.start()) for C in self.sets], axis=0)


def gathered(call: str, parts: tuple[object, ...], sets: object) -> tuple[ConvexSet, ...]:
    """The sets, given one by one or as one list."""
    given: Any = parts or sets
    if len(parts) == 1 and isinstance(parts[0], (list, tuple)):
        given = parts[0]
    if not isinstance(given, (list, tuple)) or not given or (parts and sets):
        raise InputError(f"`{call}(...)` must be given sets, one by one or as one list")
    return tuple(check_set(call, C) for C in given)


def times(c: float, v: Vertex) -> Vertex:
    """c v, of the same kind as v; a known bound then holds for |c| times the set, or for its mirror image."""
    low = None if v.low is None else abs(c) * v.low
    match v:
        case Coordinate():
            return Coordinate(v.j, c * v.value, v.shape, low)
        case SparseVertex():
            return SparseVertex(v.indices, c * v.values, v.shape, low)
        case RankOne() | LowRank():
            return type(v)(c * v.left, v.right, low)
        case DenseVertex():
            return DenseVertex(c * v.values, low)
    return Combination(((c, v),), low)


def total(parts: Sequence[Vertex], g: np.ndarray) -> Vertex:
    """The sum of the answers of several oracles to g; dense answers become one array."""
    low = None if all(v.low is None for v in parts) else sum(least(v, g) for v in parts)
    dense = [v.values for v in parts if isinstance(v, DenseVertex)]
    rest = [v for v in parts if not isinstance(v, DenseVertex)]
    if not rest:
        return DenseVertex(np.sum(dense, axis=0), low)
    summed = [*rest, DenseVertex(np.sum(dense, axis=0))] if dense else rest
    return summed[0] if len(summed) == 1 else Combination(tuple((1.0, v) for v in summed), low)
