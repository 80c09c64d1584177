"""What oracles share: gradients scaled so that sums neither overflow nor vanish, small vertices, and how compiled loops ask."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from extremal.points.vertex import Coordinate, DenseVertex, SparseVertex
from extremal.sets.base import ConvexSet, refuse_non_finite


def float_of(x: np.ndarray) -> np.dtype:
    """The float type that holds x's numbers."""
    return np.result_type(x, np.float32)


def power(top: float) -> float:
    """The power of two next above a number, 1 for 0 and 2^1023 at most: dividing by it rounds nothing."""
    return 2.0 ** min(1023, math.frexp(top)[1]) if top > 0 else 1.0


def scaled_gradient(C: ConvexSet, g: np.ndarray) -> tuple[np.ndarray, float]:
    """g / scale in float64, entries below 2 in magnitude, and the scale, a power of two; what is not finite is refused.

    Examples
    --------
    >>> import extremal as ex
    >>> scaled_gradient(ex.Simplex(), np.array([3e300, -1e300]))[0].round(3)
    array([ 0.56 , -0.187])
    """
    high, low = float(g.max()), float(g.min())
    refuse_non_finite(C, high, low)
    scale = power(max(high, -low))
    return g.astype(np.float64) / scale, scale


def unit(C: ConvexSet, g: np.ndarray) -> np.ndarray:
    """The same, flat, without the scale."""
    return scaled_gradient(C, g)[0].reshape(-1)


def peak(C: ConvexSet, g: np.ndarray, size: float) -> Coordinate:
    """-size sign(g_j) e_j at the first of the largest |g_j|, without a copy of g."""
    i, j = int(g.argmax()), int(g.argmin())  # a NaN counts as largest and as smallest
    high, low = float(g.flat[i]), float(g.flat[j])
    refuse_non_finite(C, high, low)
    if high == -low:
        i = j = min(i, j)
    at = i if high >= -low else j
    return Coordinate(at, -size if float(g.flat[at]) > 0 else size, g.shape)


def signs(C: ConvexSet, g: np.ndarray, size: float) -> DenseVertex:
    """-size sign(g), and size where g_j = 0."""
    refuse_non_finite(C, float(np.abs(g).max()))
    kind = float_of(g).type
    return DenseVertex(np.where(g > 0, kind(-size), kind(size)))


def largest(a: np.ndarray, k: int) -> np.ndarray:
    """Where the k largest entries are, in rising order; of equal entries the first ones. O(length) and a sort of k indices."""
    if k >= len(a):
        return np.arange(len(a))
    last = np.partition(a, len(a) - k)[len(a) - k]
    above = np.flatnonzero(a > last)
    return np.sort(np.concatenate([above, np.flatnonzero(a == last)[: k - len(above)]]))


def few(indices: np.ndarray, values: np.ndarray, shape: tuple[int, ...]) -> SparseVertex | DenseVertex:
    """The vertex with these entries: sparse and without its zeros, or dense if more than half of all entries are not zero."""
    filled = values != 0
    if 2 * int(np.count_nonzero(filled)) <= math.prod(shape):
        return SparseVertex(indices[filled], values[filled], shape)
    out = np.zeros(math.prod(shape))
    out[indices] = values
    return DenseVertex(out.reshape(shape))


@dataclass(frozen=True)
class CompiledOracle:
    """An oracle of `extremal.kernels.oracles`: its kind, a size, and two arrays whose meaning depends on the kind.

    A set whose class has a method ``compiled() -> CompiledOracle | None`` of its own runs in bursts; a class that inherits one
    does not, as it may have another oracle.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.L1Ball(2.0).compiled()
    CompiledOracle(kind='peak', size=2.0, lower=0.0, upper=0.0)
    """

    kind: Literal["peak", "weighted", "least", "unit", "corner", "fill"]
    size: float = 1.0  # radius or total; the amount to be spent for "fill"
    lower: float | np.ndarray = 0.0  # weights for "weighted"; an array, or one number for all entries
    upper: float | np.ndarray = 0.0

    @property
    def single(self) -> bool:
        """Whether a vertex has one entry."""
        return self.kind not in ("corner", "fill")


def compiled_oracle(C: object) -> CompiledOracle | None:
    """The oracle of a set as compiled loops take it; None for sets whose class does not say."""
    said = vars(type(C)).get("compiled")
    return None if said is None else said(C)
