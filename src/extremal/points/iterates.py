"""Iterates are values: a step makes a new iterate and leaves the old one unchanged.

So a yielded state stays valid, and two-point estimators can keep x_prev without a copy. There are two kinds: dense arrays, and
matrices in factors for objectives and sets that never need the whole matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.points.composed import Chord
from extremal.points.factored import FactoredMatrix, factors
from extremal.points.matrix import Iterate
from extremal.points.vertex import Vertex, dot64

T = TypeVar("T")


def start(call: str, x0: object, dtype: np.dtype, factored: bool = False) -> Any:
    """The first iterate: a copy of x0 in the run's float type, so that the caller's array does not change.

    A factored matrix stays factored if ``factored`` says that objective and set support it, and becomes an array otherwise.
    """
    if factored and isinstance(x0, FactoredMatrix):
        return x0.astype(dtype)
    if dtype.kind == "O":
        return freeze(checks.fractions(f"`{call}(x0=...)`", x0))
    x = checks.array(call, "x0", x0)
    if x.dtype.kind not in "biuf":
        raise InputError(f"`{call}(x0=...)` must hold real numbers, got dtype {x.dtype}")
    return freeze(checks.finite(call, "x0", x.astype(dtype, order="C")))


def freeze(a: T) -> T:
    """Make an array read-only, and so a value. Matrices that are not arrays are always values."""
    if isinstance(a, np.ndarray):
        a.flags.writeable = False
    return a


def farthest(holds: Callable[[float], bool], precision: float) -> float:
    """The largest t in [0, 1] for which ``holds`` is true, by bisection; 0 if it was true at no tested t."""
    if holds(1.0):
        return 1.0
    low, high = 0.0, 1.0
    while high - low > precision:
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def answer(x: T) -> T | np.ndarray:
    """The iterate for the caller: a new array, or a matrix that cannot change."""
    return np.array(x) if isinstance(x, np.ndarray) else x


def toward(x: np.ndarray | FactoredMatrix, v: Vertex, eta: float) -> Any:
    """A step to a vertex: (1 - eta) x + eta v, a convex combination even after rounding."""
    if isinstance(x, FactoredMatrix):
        return x.plus(1.0 - eta, ((eta, factors(v)),))
    new = (1 - eta) * x
    v.add_to(new, eta)
    return freeze(new)


def along(x: np.ndarray | FactoredMatrix, d: Chord, t: float) -> Any:
    """x + t d."""
    if isinstance(x, FactoredMatrix):
        return x.plus(1.0 + t * d.own, ((t * c, factors(v)) for c, v in d.terms))
    new = (1 + t * d.own) * x
    for c, v in d.terms:
        v.add_to(new, t * c)
    return freeze(new)


def blend(x: Iterate, u: Iterate, eta: float) -> Any:
    """(1 - eta) x + eta u, between two points."""
    new = (1.0 - eta) * x + eta * u
    return new.bounded() if isinstance(new, FactoredMatrix) else freeze(new)


inner = dot64  # <g, x> of an iterate, summed in float64


def length2(x: np.ndarray, d: Chord) -> float:
    """|d|^2 without forming d."""
    rest = d.norm2()
    if d.own == 0:
        return rest
    return max(0, d.own * d.own * dot64(x, x) + 2 * d.own * sum(c * v.dot(x) for c, v in d.terms) + rest)


def distance2(x: np.ndarray, v: Vertex) -> float:
    """|v - x|^2 without forming v."""
    return length2(x, Chord.to(v))
