"""Numbers of rows that are not a local array: constant, stored with the parts, or computed when needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal.data.parts import KeptNumbers, Part


@dataclass(frozen=True)
class Uniform(KeptNumbers):
    """The same number for all rows.

    Examples
    --------
    >>> Uniform((5,), 2.0).of(Part(None, slice(3, 5)))
    array([2., 2.])
    """

    shape: tuple[int, ...]
    value: float = 0.0

    def of(self, part: Part) -> np.ndarray:
        return np.full((part.n, *self.shape[1:]), self.value)


@dataclass(frozen=True)
class Held(KeptNumbers):
    """Numbers stored with the parts under a name; a head uses only some of them.

    Examples
    --------
    >>> Held("targets", (5,)).of(Part(None, slice(3, 5), kept={"targets": np.arange(9.0)}))
    array([0., 1.])
    """

    name: str
    shape: tuple[int, ...]

    def of(self, part: Part) -> np.ndarray:
        return part.kept[self.name][part.skipped :][: part.n]


@dataclass(frozen=True, eq=False)
class Stored(KeptNumbers):
    """Numbers of all rows in a local array; a head uses some numbers of the whole part.

    Examples
    --------
    >>> Stored(np.arange(5.0), (0, 3, 5), (5,)).of(Part(None, slice(2, 3), index=1))
    array([3.])
    """

    array: np.ndarray
    bounds: tuple[int, ...]  # the first row of each whole part, and n
    shape: tuple[int, ...]

    def of(self, part: Part) -> np.ndarray:
        first = self.bounds[part.index] + part.skipped
        return self.array[first : first + part.n]


@dataclass(frozen=True)
class Derived(KeptNumbers):
    """A function of other numbers, row by row, evaluated at each use. It is plain data, so that it can be sent.

    Examples
    --------
    >>> Derived(np.multiply, (Uniform((5,), 2.0), Uniform((5,), 3.0)), (5,)).of(Part(None, slice(3, 5)))
    array([6., 6.])
    """

    function: Callable[..., np.ndarray]
    numbers: tuple[Any, ...]  # `KeptNumbers`, or local arrays
    shape: tuple[int, ...]
    rest: tuple[Any, ...] = ()  # its further arguments

    def of(self, part: Part) -> np.ndarray:
        return self.function(*map(part.of, self.numbers), *self.rest)
