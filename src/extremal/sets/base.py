"""The contract of a set, and what every set shares."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np

from extremal import checks
from extremal.checks import InputError, NonFiniteError
from extremal.vertices import Vertex


class ConvexSet(ABC):
    """A compact convex set, known by its linear minimisation oracle.

    A new set is a frozen dataclass with a field ``shape`` and these four; see `L1Ball` for a complete one. Most sets
    fit arrays of any shape: they are made without one, and ``on(shape)`` gives the same set for arrays of that shape.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> isinstance(ex.Simplex(), ex.ConvexSet)
    True
    """

    shape: tuple[int, ...] | None  # shape of the set's points, None as long as it is open

    @abstractmethod
    def lmo(self, g: np.ndarray) -> Vertex:
        """An extreme point s that minimises <g, s> over the set; on ties, the one of smallest index."""

    @abstractmethod
    def contains(self, x: np.ndarray, tol: float = 1e-9) -> bool:
        """Whether x is in the set, up to ``tol`` relative to its size."""

    @property
    @abstractmethod
    def diameter(self) -> float:
        """Largest Euclidean distance of two points of the set, exact unless the class says otherwise."""

    @abstractmethod
    def start(self) -> np.ndarray:
        """A feasible point to start from."""

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

    def _known_shape(self, what: str) -> tuple[int, ...]:
        if self.shape is None:
            raise InputError(f"{self}.{what} depends on the dimension: ask {self}.on(dimension).{what}")
        return self.shape

    def _fix(self, **fields: Any) -> None:
        """Store checked fields; the shape may have been given as an int."""
        shape = None if self.shape is None else _as_shape(type(self).__name__, self.shape)
        checks.fix(self, **({"shape": shape} | fields))


def _as_shape(call: str, shape: Any) -> tuple[int, ...]:
    return tuple(checks.whole(call, "shape", m, 1) for m in (shape if isinstance(shape, (tuple, list)) else (shape,)))


def refuse_non_finite(C: ConvexSet, *extremes: float) -> None:
    """Refuse a gradient, judged by numbers that are finite only if all its entries are."""
    if not all(map(math.isfinite, extremes)):
        raise NonFiniteError(f"{type(C).__name__}.lmo(g): g has a NaN or an infinite entry")
