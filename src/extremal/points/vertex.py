"""The contract of an oracle's answer."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

import numpy as np


def dot64(a: np.ndarray, b: np.ndarray) -> float:
    """<a, b>, summed in float64 whatever the arrays hold: gaps are differences of such sums.

    Matrices that are not arrays (in factors, or known at some positions only) have a method ``inner`` for it.
    """
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return float(np.vdot(a.astype(np.float64, copy=False), b.astype(np.float64, copy=False)))
    return b.inner(a) if isinstance(a, np.ndarray) else a.inner(b)


class Vertex(Protocol):
    """An extreme point, kept as small as its structure allows."""

    @property
    def shape(self) -> tuple[int, ...]: ...  # shape of the vertex as an array
    @property
    def norm2(self) -> float: ...  # |v|^2
    @property
    def key(self) -> Hashable: ...  # equal for equal vertices: active sets look atoms up by it
    @property
    def low(self) -> float | None: ...  # a proven bound, <g, s> >= low for all s of the set; None: <g, v> itself is it
    def dot(self, g: np.ndarray) -> float: ...  # <g, v>
    def add_to(self, x: np.ndarray, w: float) -> None: ...  # x += w v, in place
    def to_array(self) -> np.ndarray: ...  # a fresh dense copy


def least(v: Vertex, g: np.ndarray) -> float:
    """What no point of the set undercuts: <g, v> for the answer v of an exact oracle, its proven bound for others."""
    return v.dot(g) if v.low is None else v.low
