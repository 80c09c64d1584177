"""A user's own set, from functions."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from extremal import checks
from extremal.checks import InputError
from extremal.points.composed import Blocks, Combination
from extremal.points.low_rank import LowRank, RankOne
from extremal.points.vertex import Coordinate, DenseVertex, SparseVertex, Vertex
from extremal.sets.base import ConvexSet, refuse_non_finite
from extremal.sets.membership import member

VERTICES = (Blocks, Combination, Coordinate, DenseVertex, LowRank, RankOne, SparseVertex)


@dataclass(frozen=True)
class Functions:
    """What the user gave, as a value."""

    lmo: Callable[[np.ndarray], object]
    diameter: float
    start: tuple[tuple[int, ...], bytes] | None  # shape and entries
    contains: Callable[..., object] | None  # (x, tol) -> bool

    def __repr__(self) -> str:
        return f"<{getattr(self.lmo, '__qualname__', type(self.lmo).__qualname__)}, diameter {self.diameter:g}>"


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Oracle(ConvexSet):
    """Your own set, from a function that minimises a linear form over it.

        lmo(g) = argmin over s in the set of <g, s>

    That function and a number are enough. What it answers is copied and checked: its shape, and that it is finite. That it is
    a point of the set and the best one is yours to see to: certificates are only as true as ``lmo``. Cost of a call as the
    function's, and a copy; the vertex is dense, or what the function answers. Diameter: as given.

    Two are equal if they have the same functions and numbers. They can be pickled if the functions can.

    Parameters
    ----------
    lmo : callable
        ``lmo(g)`` answers a point s of the set with the least <g, s>, as an array of the shape of g or as a vertex
        (`Coordinate`, `SparseVertex`, `RankOne`, ...). g is finite, may be zero or float32, and cannot be written to.
    diameter : float
        Positive; the largest distance of two points, or a bound.
    shape : int or tuple of int, optional
        Shape of the points; that of ``start``, or any, if left out.
    start : array, optional
        A point of the set; the answer to g = (1, ..., 1) if left out.
    contains : callable, optional
        ``contains(x, tol)`` says whether x is in the set up to tol times its size. Left out, it is found by Frank-Wolfe steps
        toward x, many calls of ``lmo``.
    functions : Functions, optional
        All of these but the shape, as another `Oracle` keeps them: how ``on(shape)`` makes one.

    Examples
    --------
    >>> corners = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    >>> C = Oracle(lambda g: corners[(corners @ g).argmin()], diameter=np.sqrt(5), shape=2)
    >>> C.lmo(np.array([-1.0, -3.0])).to_array()
    array([0., 1.])
    >>> C.contains(np.array([1.0, 0.5])), C.contains(np.array([1.0, 0.6]))
    (True, False)
    """

    functions: Functions
    shape: tuple[int, ...] | None

    def __init__(
        self,
        lmo: Callable[[np.ndarray], object] | None = None,
        diameter: float | None = None,
        shape: int | tuple[int, ...] | None = None,
        start: ArrayLike | None = None,
        contains: Callable[..., object] | None = None,
        *,
        functions: Functions | None = None,
    ):
        functions = functions or _functions(lmo, diameter, start, contains)
        checks.fix(self, functions=functions, shape=functions.start[0] if shape is None and functions.start else shape)
        self._fix()
        if functions.start is not None and functions.start[0] != self.shape:
            raise InputError(f"`Oracle(start=...)` must have the shape {self.shape}, got {functions.start[0]}")

    def lmo(self, g: np.ndarray) -> Vertex:
        refuse_non_finite(self, float(np.abs(g).max()))
        shown = g.view()
        shown.flags.writeable = False
        return _checked(self.functions.lmo(shown), g.shape)

    def contains(self, x: np.ndarray, tol: float = 1e-9) -> bool:
        """What the function says; without one, whether no g separates x from the set, up to tol times its size."""
        if not np.isfinite(x).all():
            return False
        own = self.functions.contains
        return member(self, x, tol) if own is None else bool(own(x, tol))

    @property
    def diameter(self) -> float:
        return self.functions.diameter

    def start(self) -> np.ndarray:
        """The point given, or the answer to g = (1, ..., 1)."""
        if self.functions.start is None:
            return self.lmo(np.ones(self._known_shape("start()"))).to_array().astype(np.float64, copy=False)
        shape, entries = self.functions.start
        return np.frombuffer(entries).reshape(shape).copy()


def _functions(lmo: object, diameter: object, start: ArrayLike | None, contains: object) -> Functions:
    """The arguments, refused where they cannot be right."""
    if not callable(lmo):
        raise InputError(f"`Oracle(lmo=...)` must be a callable g -> point, got {lmo!r}")
    if contains is not None and not callable(contains):
        raise InputError(f"`Oracle(contains=...)` must be a callable (x, tol) -> bool, got {contains!r}")
    diameter = checks.positive("Oracle", "diameter", diameter)
    if start is None:
        return Functions(lmo, diameter, None, contains)
    x = checks.finite("Oracle", "start", _real("start", start, "be").astype(np.float64))
    return Functions(lmo, diameter, (x.shape, x.tobytes()), contains)


def _checked(answer: object, shape: tuple[int, ...]) -> Vertex:
    """The answer as a vertex of its own, refused if it is none of the shape."""
    if isinstance(answer, VERTICES):
        v, finite = copy.deepcopy(answer), math.isfinite(answer.norm2)
    else:
        v = DenseVertex(_real("lmo", answer, "answer"))
        finite = bool(np.isfinite(v.values).all())
    if v.shape != shape:
        raise InputError(f"`Oracle(lmo=...)` must answer points of shape {shape}, as g has, got shape {v.shape}")
    if not finite:
        raise InputError("`Oracle(lmo=...)` must answer finite points, got a NaN or an infinite entry")
    return v


def _real(name: str, value: object, verb: str) -> np.ndarray:
    """A copy of an array of real numbers: float32 is kept, other numbers become float64."""
    a = checks.array("Oracle", name, value)
    if a.dtype.kind not in "biuf":
        raise InputError(f"`Oracle({name}=...)` must {verb} an array of real numbers, got {value!r}")
    return np.array(a, np.float32 if a.dtype == np.float32 else np.float64, order="C")
