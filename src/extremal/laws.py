"""Numbers that change with the iteration: batch sizes, momentum weights, epoch lengths."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

__all__ = ["Doubling", "EpochLength", "EpochTolerance", "Geometric", "PowerLaw", "Telescoping"]

LARGEST = 600.0  # logarithm of the largest growth


@dataclass(frozen=True)
class PowerLaw:
    """scale * (k + shift) ** power, for k = 0, 1, ...

    Examples
    --------
    >>> PowerLaw(scale=4, shift=9, power=-2 / 3)(0)        # the momentum 4 / (t + 8)^(2/3) at t = 1
    0.924...
    """

    scale: float = 1.0
    shift: float = 1.0
    power: float = 1.0

    def __call__(self, k: int) -> float:
        return self.scale * (k + self.shift) ** self.power


@dataclass(frozen=True)
class Geometric:
    """scale * base ** k, for k = 0, 1, ... and base >= 1. As a batch, k is the epoch if there are epochs, else the iteration.

    It stops growing before it overflows.

    Examples
    --------
    >>> Geometric(scale=2.0, base=1.5)(2)
    4.5
    """

    scale: float = 1.0
    base: float = 2.0

    def __call__(self, k: int) -> float:
        return self.scale * self.base ** (min(k, LARGEST / math.log(self.base)) if self.base > 1.0 else 0)


@dataclass(frozen=True)
class Telescoping:
    """scale / ((k + 1) (k + 2)), for k = 0, 1, ...: its sum is scale.

    Examples
    --------
    >>> Telescoping(1.0)(1)
    0.16666666666666666
    """

    scale: float

    def __call__(self, k: int) -> float:
        return self.scale / ((k + 1) * (k + 2))


@dataclass(frozen=True)
class Doubling:
    """Epoch lengths that grow geometrically: ceil(scale * base ** t) - minus for t = 0, 1, ...; the first may be fixed.

    Examples
    --------
    >>> [Doubling()(t) for t in range(5)]
    [1, 2, 4, 8, 16]
    """

    scale: float = 1.0
    base: float = 2.0
    minus: int = 0
    first: int | None = 1

    def __call__(self, t: int) -> int:
        if t == 0 and self.first is not None:
            return self.first
        return max(1, math.ceil(self.scale * self.base**t - 1e-9) - self.minus)


@dataclass(frozen=True)
class EpochLength:
    """Batches as large as the epoch is long, times a factor.

    Examples
    --------
    >>> EpochLength(3)
    EpochLength(scale=3)
    """

    scale: float = 1.0


@dataclass(frozen=True)
class EpochTolerance:
    """A tolerance that halves with each epoch: scale * 2 ** -epoch / (length * (k + 1)) at position k.

    Examples
    --------
    >>> EpochTolerance(scale=2.0)
    EpochTolerance(scale=2.0)
    """

    scale: float

    def __call__(self, phase: Any) -> float:
        return self.scale * 2.0**-phase.epoch / (phase.length * (phase.k + 1))
