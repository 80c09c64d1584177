"""Products of sets: each block of a vector, or each row of an array, lies in a set of its own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.points.composed import Place, blocks_of, joined_blocks, parted
from extremal.points.vertex import DenseVertex, SparseVertex, Vertex
from extremal.quadratic.search import longest_step
from extremal.sets.base import ConvexSet, Faced, refuse_non_finite
from extremal.sets.made.cuts import check_set, on_shape
from extremal.sets.made.sums import gathered
from extremal.sets.norms.balls import L1Ball
from extremal.sets.simplices import bounds
from extremal.sets.simplices.plain import Box, Simplex


@runtime_checkable
class Blocked(Protocol):
    """A set whose points are made of blocks, each in a set of its own."""

    def n_blocks(self) -> int: ...  # how many blocks there are
    def block(self, i: int) -> tuple[Place, ConvexSet]: ...  # the place of block i, and the set of x[place], in its shape


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Product(ConvexSet):
    """The product of sets: consecutive blocks of a vector each lie in one of the sets.

        {x : x[start_i:stop_i].reshape(shape_i) in C_i for all i},   lmo(g) = the blocks' lmo_i(g_i), one after the other

    A call costs one oracle call of every part. The vertex keeps the vertices of the parts as they are, or is one sparse vertex
    if all of them are sparse. The diameter is sqrt(sum_i D_i^2), exact if all D_i are. For steps away from vertices see
    `FacedProduct`.

    Parameters
    ----------
    *parts : ConvexSet
        The sets, each with a known shape, or one list of them.
    sets : sequence of ConvexSet, optional
        The same sets by keyword.

    References
    ----------
    Lacoste-Julien, Jaggi, Schmidt, Pletscher (2013), Block-coordinate Frank-Wolfe optimization for structural SVMs, ICML.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> C = Product(ex.Simplex(shape=2), ex.Box(-1.0, 1.0, shape=(2, 2)))
    >>> s = C.lmo(np.array([3.0, 1.0, 1.0, -1.0, -1.0, 1.0])).to_array()
    >>> s
    array([ 0.,  1., -1.,  1.,  1., -1.])
    >>> C.split(s)[1]
    array([[-1.,  1.],
           [ 1., -1.]])
    """

    kind: ClassVar[type] = ConvexSet  # the type required of the parts

    sets: tuple[ConvexSet, ...]
    shape: tuple[int, ...] | None

    def __init__(self, *parts: object, sets: Sequence[ConvexSet] = ()):
        given = gathered(type(self).__name__, parts, sets)
        for C in given:
            _check_kind(type(self).__name__, C, self.kind)
            if C.shape is None:
                raise InputError(f"`{type(self).__name__}(...)` must be made of sets of known shapes: give {C}.on(shape)")
        checks.fix(self, sets=given, shape=(sum(math.prod(C.shape or ()) for C in given),))

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """The shapes of the blocks."""
        return [C.shape or () for C in self.sets]

    def split(self, x: np.ndarray) -> list[np.ndarray]:
        """The blocks of a point, as views."""
        if x.shape != self.shape:
            raise InputError(f"`{type(self).__name__}.split(x)` must be given points of shape {self.shape}, got {x.shape}")
        return blocks_of(x, self.shapes)

    def join(self, blocks: Sequence[np.ndarray]) -> np.ndarray:
        """A point from its blocks."""
        shapes = [np.shape(block) for block in blocks]
        if shapes != self.shapes:
            raise InputError(f"`{type(self).__name__}.join(blocks)` must be given blocks of shapes {self.shapes}, got {shapes}")
        return np.concatenate([np.asarray(block).reshape(-1) for block in blocks])

    def n_blocks(self) -> int:
        """The number of sets."""
        return len(self.sets)

    def block(self, i: int) -> tuple[Place, ConvexSet]:
        """The entries of block i in a point, a slice, and its set."""
        return (slice(self._ends[i], self._ends[i + 1]),), self.sets[i]

    @cached_property
    def _ends(self) -> list[int]:
        return np.cumsum([0, *map(math.prod, self.shapes)]).tolist()

    def lmo(self, g: np.ndarray) -> Vertex:
        blocks = self.split(g)
        return joined_blocks([C.lmo(block) for C, block in zip(self.sets, blocks, strict=True)], blocks, g.shape)

    def contains(self, x: np.ndarray, tol: float = 1e-9) -> bool:
        return all(C.contains(block, tol) for C, block in zip(self.sets, self.split(x), strict=True))

    @property
    def diameter(self) -> float:
        return math.hypot(*(C.diameter for C in self.sets))

    def start(self) -> np.ndarray:
        return self.join([np.asarray(C.start()) for C in self.sets])


class FacedProduct(Product):
    """A `Product` of sets that know their faces, for steps away from vertices without an active set.

        away(g, x) = the blocks' away_i(g_i, x_i), one after the other,   max_step = the smallest of the blocks'

    The rest is as for `Product`.

    Parameters
    ----------
    *parts, sets
        As for `Product`; the sets have ``away`` and ``max_step``.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> C = FacedProduct(ex.Simplex(shape=2), ex.Simplex(shape=3))
    >>> C.away(np.array([1.0, 2.0, 3.0, 2.0, 1.0]), np.array([0.5, 0.5, 0.0, 0.5, 0.5])).to_array()
    array([0., 1., 0., 1., 0.])
    """

    kind: ClassVar[type] = Faced

    def away(self, g: np.ndarray, x: np.ndarray) -> Vertex:
        """The worst vertex of each block's face, joined."""
        return _away(self.sets, self.split(g), self.split(x), x.shape)

    def max_step(self, x: np.ndarray, s: Vertex, a: Vertex) -> float:
        """The smallest of the longest steps of the blocks."""
        return _max_step(self.sets, self.split(x), parted(s, self.shapes), parted(a, self.shapes))


@dataclass(frozen=True, eq=False, repr=False)
class Rows(ConvexSet):
    """Arrays whose rows x[0], x[1], ... each lie in one and the same set.

        {x : x[i] in C for all i},   lmo(g)[i] = lmo_C(g[i])

    A call costs one oracle call per row, or one pass over g if C is a `Simplex`, an `L1Ball` around 0 or a `Box`. The vertex
    is sparse if the rows' vertices are; otherwise it keeps the vertices of the rows. The diameter is sqrt(rows) times that of
    C, exact if C's is. ``Rows(Simplex())`` is the set of row-stochastic matrices. For steps away from vertices see
    `FacedRows`.

    Parameters
    ----------
    C : ConvexSet
        The set of a row.
    count : int, optional
        Number of rows. Default: any number.
    shape : tuple of int, optional
        Shape of the points, (rows, ...).

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> Rows(ex.Simplex()).lmo(np.array([[1.0, 0.0, 2.0], [0.0, 3.0, -1.0]])).to_array()
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """

    kind: ClassVar[type] = ConvexSet  # the type required of C

    C: ConvexSet
    count: int | None = None
    shape: tuple[int, ...] | None = None

    def __post_init__(self):
        call = type(self).__name__
        C, count = check_set(call, self.C), None if self.count is None else checks.whole(call, "count", self.count, 1)
        _check_kind(call, C, self.kind)
        self._fix(C=C, count=count)
        if self.shape is not None:
            if len(self.shape) < 2 or count not in (None, self.shape[0]):
                raise InputError(f"`{call}(shape=...)` must be (rows, ...), {count or 'any number'} of them, got {self.shape}")
            self._fix(C=on_shape(call, C, self.shape[1:]), count=self.shape[0])
        elif count is not None and C.shape is not None:
            self._fix(shape=(count, *C.shape))

    def n_blocks(self) -> int:
        """The number of rows."""
        return self._known_shape("n_blocks()")[0]

    def block(self, i: int) -> tuple[Place, ConvexSet]:
        """The index of row i, and its set."""
        return (i,), self.C

    def lmo(self, g: np.ndarray) -> Vertex:
        return row_answers(self.C, g)

    def contains(self, x: np.ndarray, tol: float = 1e-9) -> bool:
        return all(self.C.contains(row, tol) for row in x)

    @property
    def diameter(self) -> float:
        return math.sqrt(self._known_shape("diameter")[0]) * self.C.diameter

    def start(self) -> np.ndarray:
        return np.stack([np.asarray(self.C.start())] * self._known_shape("start()")[0])


class FacedRows(Rows):
    """`Rows` in a set that knows its faces, for steps away from vertices without an active set.

        away(g, x)[i] = away_C(g[i], x[i]),   max_step = the smallest of the rows'

    The rest is as for `Rows`. One pass handles all rows if C is a `Simplex`.

    Parameters
    ----------
    C, count, shape
        As for `Rows`; C has ``away`` and ``max_step``, such as `Simplex`.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> C = FacedRows(ex.Simplex())
    >>> C.away(np.array([[1.0, 2.0], [2.0, 1.0]]), np.array([[1.0, 0.0], [0.5, 0.5]])).to_array()
    array([[1., 0.],
           [1., 0.]])
    """

    kind: ClassVar[type] = Faced

    def away(self, g: np.ndarray, x: np.ndarray) -> Vertex:
        """The worst vertex of each row's face, joined."""
        if isinstance(self.C, Simplex):
            return _one_each(np.where(bounds.support(x, self.C.total), g, -np.inf), np.argmax, self.C.total)
        return _away([self.C] * len(x), g, x, x.shape)

    def max_step(self, x: np.ndarray, s: Vertex, a: Vertex) -> float:
        """The smallest of the longest steps of the rows."""
        if isinstance(self.C, Simplex):
            return longest_step(x, s.to_array() - a.to_array())
        shapes = [x.shape[1:]] * len(x)
        return _max_step([self.C] * len(x), x, parted(s, shapes), parted(a, shapes))


def row_answers(C: ConvexSet, g: np.ndarray) -> Vertex:
    """The answers of C to all rows of g, as one vertex; for some sets one pass handles all rows."""
    match C:
        case Simplex():
            refuse_non_finite(C, float(g.min()), float(g.max()))
            return _one_each(g, np.argmin, C.total)
        case L1Ball(centre=None):
            refuse_non_finite(C, float(np.abs(g).max()))
            v = _one_each(np.abs(g), np.argmax, C.radius)
            return SparseVertex(v.indices, np.where(g.flat[v.indices] > 0, -C.radius, C.radius), g.shape)
        case Box():
            refuse_non_finite(C, float(np.abs(g).max()))
            return DenseVertex(np.where(g > 0, C.lower, C.upper).astype(np.result_type(g, np.float32), copy=False))  # by rows
    return joined_blocks([C.lmo(row) for row in g], list(g), g.shape)


def _one_each(g: np.ndarray, pick: Callable[..., np.ndarray], value: float) -> SparseVertex:
    """The same number in each row of g, at the index that argmin or argmax picks."""
    flat = g.reshape(len(g), -1)
    return SparseVertex(np.arange(len(g)) * flat.shape[1] + pick(flat, axis=1), np.full(len(g), value), g.shape)


def _check_kind(call: str, C: ConvexSet, kind: type) -> None:
    if not isinstance(C, kind):
        raise InputError(f"`{call}(...)` must be made of sets with `away` and `max_step`, such as Simplex(), got {C}")


def _away(sets: Sequence[Any], g: Any, x: Iterable[np.ndarray], shape: tuple[int, ...]) -> Vertex:
    return joined_blocks([C.away(g_i, x_i) for C, g_i, x_i in zip(sets, g, x, strict=True)], g, shape)


def _max_step(sets: Sequence[Any], x: Iterable[np.ndarray], s: Sequence[Vertex], a: Sequence[Vertex]) -> float:
    return min(C.max_step(x_i, s_i, a_i) for C, x_i, s_i, a_i in zip(sets, x, s, a, strict=True))
