"""What a step moves. An iterate is a value: a step makes a new one and leaves the old one alone.

So a state that was yielded stays true, and two-point estimators may keep x_prev without a copy. Dense arrays are
the only kind so far; another kind (factored low-rank matrices) registers itself with these three functions.
"""

from __future__ import annotations

from functools import singledispatch

import numpy as np

from extremal.vertices import Vertex, dot64


@singledispatch
def toward(x: np.ndarray, v: Vertex, eta: float) -> np.ndarray:
    """Step to a vertex: (1 - eta) x + eta v, a convex combination also in rounding."""
    new = (1.0 - eta) * x
    v.add_to(new, eta)
    new.flags.writeable = False
    return new


@singledispatch
def inner(x: np.ndarray, g: np.ndarray) -> float:
    """<g, x>, summed in float64."""
    return dot64(x, g)


@singledispatch
def distance2(x: np.ndarray, v: Vertex) -> float:
    """|v - x|^2 without forming v."""
    return max(0.0, dot64(x, x) - 2.0 * v.dot(x) + v.norm2)
