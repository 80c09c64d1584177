"""The contract of a set, and the parts that all sets have in common."""

from __future__ import annotations

import dataclasses
import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np

from extremal import checks
from extremal.checks import InputError, NonFiniteError, OutsideError
from extremal.points.matrix import Iterate, Matrix
from extremal.points.vertex import Vertex, dot64, least
from extremal.support.clock import ASKED

if TYPE_CHECKING:
    from extremal.quadratic.polyhedral import Inequalities

BELOW = 1e-4  # a gap may be negative by this share of its two terms: rounding can put a point outside the set
ORTHOGONAL = 1e-9  # rounding can make <g, x> this share of |x| |g|
CHECKED = {"lmo", "lmo_from", "contains", "project"}  # methods that check their first argument, see `ConvexSet`


class ConvexSet(ABC):
    """A compact convex set, known by its linear minimisation oracle.

    A new set is a frozen dataclass with a field ``shape`` and the four methods below; docs/add-a-set.md has a complete
    example. Most sets fit arrays of any shape: they are created without a shape, and ``on(shape)`` returns the same set for
    arrays of that shape. Optional methods add abilities: ``project`` (`Projectable`), ``away`` and ``max_step`` (`Faced`),
    ``lmo_from`` (`Warm`). Two sets are equal if they have the same class and equal parameters.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> isinstance(ex.Simplex(), ex.ConvexSet)
    True
    """

    matrix_free: ClassVar[bool] = False  # whether ``lmo`` accepts gradients that are known only by their products
    by_factors: ClassVar[bool] = False  # whether `LowRankFW` corrects its points by their factors
    is_bounds: ClassVar[bool] = False  # whether the set is `Bounded`, and below `Warm`: tested once, because the test is slow
    is_warm: ClassVar[bool] = False

    shape: tuple[int, ...] | None  # shape of the set's points, None while it is open
    _fits = None  # for a set of open shape: the last shape that was asked for and fits

    def __init_subclass__(cls, **options: object) -> None:
        """Wrap the methods in `CHECKED`, so that they see only arrays of numbers of a shape that fits."""
        super().__init_subclass__(**options)
        for name in CHECKED & vars(cls).keys():
            setattr(cls, name, _checked(name, vars(cls)[name]))  # abstract methods stay abstract
        cls.is_bounds, cls.is_warm = issubclass(cls, Bounded), issubclass(cls, Warm)

    @abstractmethod
    def lmo(self, g: np.ndarray) -> Vertex:
        """Return an extreme point s that minimises <g, s> over the set; ties go to the smallest index."""

    @abstractmethod
    def contains(self, x: np.ndarray, tol: float = 1e-9) -> bool:
        """Whether x is in the set, up to ``tol`` relative to its size. Default of tol: 1e-9, or 1e-5 for x in float32."""

    @property
    @abstractmethod
    def diameter(self) -> float:
        """Largest Euclidean distance between two points of the set, exact unless the class says otherwise."""

    @abstractmethod
    def start(self) -> Any:
        """Return a feasible point to start from: an array, or a `FactoredMatrix` if that is smaller."""

    def spikes(self) -> Spikes | None:
        """The vertices, if every vertex has a single nonzero entry; None for other sets."""
        return None

    def inequalities(self) -> Inequalities | None:
        """The set as linear constraints on its points, if these are known and not too many; None for other sets."""
        return None

    def gap(self, x: np.ndarray, g: np.ndarray, s: Vertex | None = None) -> float:
        """The Frank-Wolfe gap at x, max over s in the set of <g, x - s>, or a proven upper bound on it.

        For convex f with gradient g at x, no point of the set is better than x by more than the gap. An inexact oracle also
        returns a bound on its error, and the gap includes that bound. For a box the gap is summed entry by entry, so that
        large bounds do not swallow small gaps. The method makes one oracle call, or none if ``s``, the oracle's answer to g,
        is given.

        Examples
        --------
        >>> import numpy as np, extremal as ex
        >>> ex.L1Ball(2.0).gap(np.array([1.0, 0.0]), np.array([-1.0, 0.5]))
        1.0
        """
        s = self.lmo(g) if s is None else s
        if isinstance(x, np.ndarray) and isinstance(g, np.ndarray) and s.low is None:
            d = x.astype(np.float64)
            s.add_to(d, -1.0)  # x - s: digits that the two share are lost only once
            if self.is_bounds:
                return float(np.maximum(d * g, 0.0).sum(dtype=np.float64))
            excess = dot64(d, g)
        else:
            excess = dot64(x, g) - least(s, g)
        if excess < 0:
            there = least(s, g)
            if excess < -BELOW * (abs(there + excess) + abs(there)) and -excess > ORTHOGONAL * _size(x) * _size(g):
                raise OutsideError(
                    "the iterate has left the set: the gap is negative; a move, a step rule or an oracle is at fault"
                )
        return max(0.0, excess)

    @property
    def relaxed(self) -> ConvexSet:
        """The set that ``lmo`` answers for: this set, except for an `AffineCut`, which leaves its bounds to the method."""
        return self

    def on(self, shape: int | tuple[int, ...]) -> Self:
        """Return this set for points of the given shape, or refuse a shape that does not fit.

        Examples
        --------
        >>> from extremal import LinfBall
        >>> LinfBall(1.0).on(9).diameter
        6.0
        """
        wanted = points_shape(type(self).__name__, shape)
        if self.shape is None:
            return dataclasses.replace(self, shape=wanted)  # type: ignore[type-var]
        if self.shape != wanted:
            raise InputError(f"{self} has points of shape {self.shape}, but x has shape {wanted}")
        return self

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._identity() == other._identity()  # type: ignore[attr-defined]

    def __hash__(self) -> int:
        return hash(self._identity())

    def __repr__(self) -> str:
        shown = (f"{f.name}={brief_array(value)}" for f, value in self._parameters() if not _is_default(f, value))
        return f"{type(self).__name__}({', '.join(shown)})"

    def _parameters(self) -> Iterator[tuple[dataclasses.Field[object], object]]:
        return ((f, getattr(self, f.name)) for f in dataclasses.fields(self))  # type: ignore[arg-type]

    def _identity(self) -> tuple[object, ...]:
        return (type(self), *(_hashable(value) for _, value in self._parameters()))

    def _known_shape(self, what: str) -> tuple[int, ...]:
        if self.shape is None:
            raise InputError(f"{self}.{what} depends on the dimension: ask {self}.on(dimension).{what}")
        return self.shape

    def _fix(self, **fields: object) -> None:
        """Store checked fields; the shape may be given as an int."""
        shape = None if self.shape is None else points_shape(type(self).__name__, self.shape)
        checks.fix(self, **({"shape": shape} | fields))


@runtime_checkable
class Projectable(Protocol):
    """A set with a cheap Euclidean projection."""

    def project(self, x: np.ndarray) -> np.ndarray: ...  # the point of the set nearest to x


@runtime_checkable
class Faced(Protocol):
    """A set that knows the smallest face containing a point, so that away moves need no active set."""

    def away(self, g: np.ndarray, x: np.ndarray) -> Vertex: ...  # a vertex v of that face with the largest <g, v>
    def max_step(self, x: np.ndarray, s: Vertex, a: Vertex) -> float: ...  # largest t <= 1 with x + t (s - a) in the set


@dataclasses.dataclass(frozen=True)
class Spikes:
    """The vertices of a set whose vertices have one entry each: low_j e_j and high_j e_j for every j, where they are not 0."""

    low: float | np.ndarray  # one number for all entries, or one per entry
    high: float | np.ndarray
    origin: bool  # whether 0 is in the set


@runtime_checkable
class Bounded(Protocol):
    """A set given by bounds alone: a box."""

    def limits(self) -> tuple[np.ndarray, np.ndarray]: ...  # the lowest and the highest corner, or one number for all entries


@runtime_checkable
class Normed(Protocol):
    """A set that is the ball of a norm."""

    def norm(self, x: np.ndarray) -> float: ...  # the norm of any x, inside the ball or not


@runtime_checkable
class Warm(Protocol):
    """A set whose oracle is iterative and can start from an earlier answer."""

    def lmo_from(self, g: np.ndarray, near: Vertex | None) -> Vertex: ...


@runtime_checkable
class _Shaped(Protocol):
    @property
    def shape(self) -> tuple[int, ...]: ...


def _checked(name: str, method: Callable[..., object]) -> Callable[..., object]:
    """Wrap a method of a set, so that it sees only arrays of numbers that fit the set's shape."""
    argument, oracle = "g" if name.startswith("lmo") else "x", name.startswith("lmo")

    @functools.wraps(method)
    def call(self: ConvexSet, a: Any, *args: object, **options: object) -> object:
        if oracle and (asked := ASKED.get()) is not None:
            return asked.count(lambda: call(self, a, *args, **options))
        if type(a) is not np.ndarray or a.dtype.kind != "f" or a.shape != (self.shape or self._fits):
            a = _fitting(self, name, argument, a)
        if name == "project":
            checks.finite(f"{type(self).__name__}.project", "x", a)
        if name == "contains" and not args and not options and a.dtype.itemsize < 8:  # tol is not given
            options = {"tol": 1e-5}
        return method(self, a, *args, **options)

    return call


def _fitting(C: ConvexSet, name: str, argument: str, a: Any) -> Any:
    """Return the argument as an array of the set's shape; matrices that are not arrays pass to the sets that accept them."""
    what = f"`{type(C).__name__}.{name}({argument}=...)`"
    if not (C.matrix_free and isinstance(a, _Shaped) and isinstance(a.shape, tuple) and not isinstance(a, np.ndarray)):
        a = checks.array(f"{type(C).__name__}.{name}", argument, a)
        if a.dtype.kind not in "biuf" or a.ndim == 0 or a.size == 0:
            raise InputError(f"{what} must be an array of real numbers, got {a.dtype} of shape {a.shape}")
        a = a if a.dtype.kind == "f" else a.astype(np.float64)
    if C.shape is None:
        C.on(a.shape)  # refuses a shape that does not fit the set
        object.__setattr__(C, "_fits", a.shape)
    elif C.shape != a.shape:
        raise InputError(f"{what} must have the shape of the set's points, {C.shape}, got {a.shape}")
    return a


def _size(a: Iterate) -> float:
    """|a|, or infinity if |a|^2 overflows; for a matrix, the norm of its stored entries, before duplicates are summed."""
    values: Any = a.stored if isinstance(a, Matrix) else a
    with np.errstate(over="ignore"):
        return math.sqrt(dot64(values, values))


def brief_array(value: Any) -> str:
    """Show a parameter on one line; a large array is shown by its shape."""
    if isinstance(value, np.ndarray):
        return f"{value.item():g}" if value.ndim == 0 else f"<{' x '.join(map(str, value.shape))} array>"
    if checks.is_sparse(value):
        return f"<{' x '.join(map(str, value.shape))} sparse array>"
    if isinstance(value, tuple) and len(value) > 6:
        return f"({', '.join(map(brief_array, value[:3]))}, ... {len(value)} in all)"
    return repr(value)


def _is_default(f: dataclasses.Field[object], value: object) -> bool:
    default = f.default
    if isinstance(value, np.ndarray) and default is not dataclasses.MISSING:
        return not f.init or np.array_equal(value, np.asarray(default))
    return not f.init or value is default or (value == default) is True


def _hashable(value: Any) -> object:
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype.str, value.tobytes()
    if checks.is_sparse(value):  # stored by rows or by columns
        return value.shape, value.format, *map(_hashable, (value.indptr, value.indices, value.data))
    return tuple(map(_hashable, value)) if isinstance(value, (list, tuple)) else value


def points_shape(call: str, shape: object) -> tuple[int, ...]:
    """The shape of points, given as an int or several."""
    return tuple(checks.whole(call, "shape", m, 1) for m in (shape if isinstance(shape, (tuple, list)) else (shape,)))


def refuse_non_finite(C: ConvexSet, *extremes: float) -> None:
    """Refuse a non-finite gradient, given numbers that are finite only if all its entries are."""
    if not all(map(math.isfinite, extremes)):
        raise NonFiniteError(f"{type(C).__name__}.lmo(g): g has a NaN or an infinite entry")


class WarmSet(ConvexSet):
    """A set whose oracle can start from an earlier answer (`Warm`); ``lmo`` starts without one."""

    @abstractmethod
    def lmo_from(self, g: np.ndarray, near: Vertex | None) -> Vertex:
        """The same as ``lmo``, but starting from an earlier answer."""

    def lmo(self, g: np.ndarray) -> Vertex:
        return self.lmo_from(g, None)
