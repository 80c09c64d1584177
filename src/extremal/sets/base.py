"""The contract of a set, and what every set shares."""

from __future__ import annotations

import dataclasses
import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

import numpy as np

from extremal import checks
from extremal.checks import InputError, NonFiniteError, OutsideError
from extremal.points.matrix import Iterate, Matrix
from extremal.points.vertex import Vertex, dot64, least
from extremal.support.clock import ASKED

BELOW = 1e-4  # share of its two terms by which a gap may be negative; a point that is outside by rounding gets there
ORTHOGONAL = 1e-9  # share of |x| |g| that <g, x> may be by rounding
CHECKED = {"lmo", "lmo_from", "contains", "project"}  # methods whose first argument is checked, see `ConvexSet`


class ConvexSet(ABC):
    """A compact convex set, known by its linear minimisation oracle.

    A new set is a frozen dataclass with a field ``shape`` and these four; docs/add-a-set.md has a complete one. Most sets
    fit arrays of any shape: they are made without one, and ``on(shape)`` gives the same set for arrays of that shape.
    Sets that can do more say so by further methods: ``project`` (`Projectable`), ``away`` and ``max_step`` (`Faced`),
    ``lmo_from`` (`Warm`). Two sets are equal if they are of one class and have equal parameters.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> isinstance(ex.Simplex(), ex.ConvexSet)
    True
    """

    matrix_free: ClassVar[bool] = False  # whether ``lmo`` takes gradients that are known by products only
    by_factors: ClassVar[bool] = False  # whether `LowRankFW` corrects its points by their factors
    is_bounds: ClassVar[bool] = False  # whether it is `Bounded`, and below `Warm`: found out once, as it takes long
    is_warm: ClassVar[bool] = False

    shape: tuple[int, ...] | None  # shape of the set's points, None as long as it is open
    _fits = None  # of a set of open shape: the last shape that was asked about and fits

    def __init_subclass__(cls, **options: object) -> None:
        """What every set shares in its methods: what is no array of numbers that fits is refused before they see it."""
        super().__init_subclass__(**options)
        for name in CHECKED & vars(cls).keys():
            setattr(cls, name, _checked(name, vars(cls)[name]))  # what is abstract stays so
        cls.is_bounds, cls.is_warm = issubclass(cls, Bounded), issubclass(cls, Warm)

    @abstractmethod
    def lmo(self, g: np.ndarray) -> Vertex:
        """An extreme point s that minimises <g, s> over the set; on ties, the one of smallest index."""

    @abstractmethod
    def contains(self, x: np.ndarray, tol: float = 1e-9) -> bool:
        """Whether x is in the set, up to ``tol`` relative to its size; if tol is left out, 1e-5 for x in float32."""

    @property
    @abstractmethod
    def diameter(self) -> float:
        """Largest Euclidean distance of two points of the set, exact unless the class says otherwise."""

    @abstractmethod
    def start(self) -> Any:
        """A feasible point to start from: an array, or a `FactoredMatrix` where that is smaller."""

    def spikes(self) -> Spikes | None:
        """The vertices, if all of them have one entry each; None of other sets."""
        return None

    def gap(self, x: np.ndarray, g: np.ndarray, s: Vertex | None = None) -> float:
        """The Frank-Wolfe gap at x, max over s in the set of <g, x - s>, or a proven upper bound on it.

        For convex f with gradient g at x no point of the set is better than x by more. An oracle that is not exact answers
        with a bound on what it may have missed, and that bound is used. Between bounds the gap is summed entry by entry, so
        that large bounds do not swallow small gaps. One oracle call, or none if ``s``, the oracle's answer to g, is given.

        Examples
        --------
        >>> import numpy as np, extremal as ex
        >>> ex.L1Ball(2.0).gap(np.array([1.0, 0.0]), np.array([-1.0, 0.5]))
        1.0
        """
        s = self.lmo(g) if s is None else s
        if isinstance(x, np.ndarray) and isinstance(g, np.ndarray) and s.low is None:
            d = x.astype(np.float64)
            s.add_to(d, -1.0)  # x - s: what the two share is not lost twice
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
        """The set that ``lmo`` answers for: this one, but for an `AffineCut`, whose bounds are left to the method."""
        return self

    def on(self, shape: int | tuple[int, ...]) -> Self:
        """Return this set for points of the given shape, or refuse a shape that does not fit.

        Examples
        --------
        >>> from extremal import LinfBall
        >>> LinfBall(1.0).on(9).diameter
        6.0
        """
        wanted = _as_shape(type(self).__name__, shape)
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
        """Store checked fields; the shape may have been given as an int."""
        shape = None if self.shape is None else _as_shape(type(self).__name__, self.shape)
        checks.fix(self, **({"shape": shape} | fields))


@runtime_checkable
class Projectable(Protocol):
    """A set with a cheap Euclidean projection."""

    def project(self, x: np.ndarray) -> np.ndarray: ...  # the point of the set that is nearest to x


@runtime_checkable
class Faced(Protocol):
    """A set that knows the smallest face that holds a point: moves away from vertices then need no active set."""

    def away(self, g: np.ndarray, x: np.ndarray) -> Vertex: ...  # a vertex v of that face with the largest <g, v>
    def max_step(self, x: np.ndarray, s: Vertex, a: Vertex) -> float: ...  # largest t <= 1 with x + t (s - a) in the set


@dataclasses.dataclass(frozen=True)
class Spikes:
    """The vertices of a set whose vertices have one entry each: low_j e_j and high_j e_j for every j, where these are not 0."""

    low: float | np.ndarray  # for all entries, or for each
    high: float | np.ndarray
    origin: bool  # whether 0 is in the set


@runtime_checkable
class Bounded(Protocol):
    """A set that is all bounds: a box."""

    def limits(self) -> tuple[np.ndarray, np.ndarray]: ...  # the lowest and the highest corner, or numbers for every entry


@runtime_checkable
class Normed(Protocol):
    """A set that is the ball of a norm."""

    def norm(self, x: np.ndarray) -> float: ...  # of whatever x is given, in the ball or not


@runtime_checkable
class Warm(Protocol):
    """A set whose oracle iterates, and may start from an earlier answer."""

    def lmo_from(self, g: np.ndarray, near: Vertex | None) -> Vertex: ...


@runtime_checkable
class _Shaped(Protocol):
    @property
    def shape(self) -> tuple[int, ...]: ...


def _checked(name: str, method: Callable[..., object]) -> Callable[..., object]:
    """The method of a set, for arrays of numbers that fit its shape only."""
    argument, oracle = "g" if name.startswith("lmo") else "x", name.startswith("lmo")

    @functools.wraps(method)
    def call(self: ConvexSet, a: Any, *args: object, **options: object) -> object:
        if oracle and (asked := ASKED.get()) is not None:
            return asked.count(lambda: call(self, a, *args, **options))
        if type(a) is not np.ndarray or a.dtype.kind != "f" or a.shape != (self.shape or self._fits):
            a = _fitting(self, name, argument, a)
        if name == "project":
            checks.finite(f"{type(self).__name__}.project", "x", a)
        if name == "contains" and not args and not options and a.dtype.itemsize < 8:  # tol is left out
            options = {"tol": 1e-5}
        return method(self, a, *args, **options)

    return call


def _fitting(C: ConvexSet, name: str, argument: str, a: Any) -> Any:
    """The argument as an array of the set's shape; matrices that are no arrays pass to sets that take them."""
    what = f"`{type(C).__name__}.{name}({argument}=...)`"
    if not (C.matrix_free and isinstance(a, _Shaped) and isinstance(a.shape, tuple) and not isinstance(a, np.ndarray)):
        a = checks.array(f"{type(C).__name__}.{name}", argument, a)
        if a.dtype.kind not in "biuf" or a.ndim == 0 or a.size == 0:
            raise InputError(f"{what} must be an array of real numbers, got {a.dtype} of shape {a.shape}")
        a = a if a.dtype.kind == "f" else a.astype(np.float64)
    if C.shape is None:
        C.on(a.shape)  # refuses a shape that the set has no points of
        object.__setattr__(C, "_fits", a.shape)
    elif C.shape != a.shape:
        raise InputError(f"{what} must have the shape of the set's points, {C.shape}, got {a.shape}")
    return a


def _size(a: Iterate) -> float:
    """|a|, or infinity where its square is; of a matrix by its entries, as they were before equal places cancelled."""
    values: Any = a.stored if isinstance(a, Matrix) else a
    with np.errstate(over="ignore"):
        return math.sqrt(dot64(values, values))


def brief_array(value: Any) -> str:
    """A parameter on one line: large arrays by their shape."""
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
    if checks.is_sparse(value):  # kept by rows or by columns
        return value.shape, value.format, *map(_hashable, (value.indptr, value.indices, value.data))
    return tuple(map(_hashable, value)) if isinstance(value, (list, tuple)) else value


def _as_shape(call: str, shape: object) -> tuple[int, ...]:
    return tuple(checks.whole(call, "shape", m, 1) for m in (shape if isinstance(shape, (tuple, list)) else (shape,)))


def refuse_non_finite(C: ConvexSet, *extremes: float) -> None:
    """Refuse a gradient, judged by numbers that are finite only if all its entries are."""
    if not all(map(math.isfinite, extremes)):
        raise NonFiniteError(f"{type(C).__name__}.lmo(g): g has a NaN or an infinite entry")


class WarmSet(ConvexSet):
    """A set whose oracle may start from an earlier answer (`Warm`): ``lmo`` is the same without one."""

    @abstractmethod
    def lmo_from(self, g: np.ndarray, near: Vertex | None) -> Vertex:
        """As ``lmo``, from an earlier answer."""

    def lmo(self, g: np.ndarray) -> Vertex:
        return self.lmo_from(g, None)
