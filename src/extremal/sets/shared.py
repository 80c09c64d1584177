"""Helpers that sets share: checks of constructor arguments, which become read-only values, and answers of oracles."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np

from extremal import checks
from extremal.checks import InputError
from extremal.points.vertex import Coordinate, DenseVertex, SparseVertex
from extremal.sets.base import ConvexSet, Spikes, brief_array, refuse_non_finite
from extremal.support.rational import RoundedArray, as_fractions

SHAPE_KINDS: dict[str, Callable[[tuple[int, ...]], bool]] = {  # the wanted kind: a test of the shape
    "one number": lambda shape: not shape,
    "a number or an array of numbers": lambda shape: True,
    "an array of numbers": lambda shape: len(shape) >= 1,
    "a vector of numbers": lambda shape: len(shape) == 1,
    "a matrix of numbers": lambda shape: len(shape) == 2,
    "a square matrix of numbers": lambda shape: len(shape) == 2 and shape[0] == shape[1],
    "points of real numbers in rows": lambda shape: len(shape) >= 2,
}


def one_number(call: str, name: str, value: Any, wanted: str, fits: Callable[[float], bool]) -> float:
    """Return ``value`` as a float; refuse other types and numbers that do not fit (``fits`` also sees NaN)."""
    real = isinstance(value, Real) and not isinstance(value, (bool, np.bool_))
    if not real or not fits(float(value)):
        raise InputError(f"`{call}({name}=...)` must be {wanted}, got {value!r}")
    return float(value)


def numbers(
    call: str, name: str, value: object, kind: str = "a number or an array of numbers", infinite: bool = False
) -> np.ndarray:
    """Return a read-only float64 copy of a number or an array of one of `SHAPE_KINDS`; ``infinite`` allows infinite entries.

    Examples
    --------
    >>> numbers("Box", "upper", [1, 2])
    array([1., 2.])
    >>> numbers("Polytope", "A_ub", [1, 2], "a matrix of numbers")
    Traceback (most recent call last):
        ...
    extremal.checks.InputError: `Polytope(A_ub=...)` must be a matrix of numbers, got shape (2,), int64
    """
    a = value if isinstance(value, RoundedArray) else checks.array(call, name, value)
    a = a if isinstance(a, RoundedArray) or a.dtype.kind != "O" else _rounded(a)
    _refuse_other(call, name, a, kind, value)
    a = np.array(a, np.float64, order="C") if not isinstance(a, RoundedArray) else a
    if infinite and np.isnan(a).any():
        raise InputError(f"`{call}({name}=...)` must be without NaN, got {_shown(a, value)}")
    if not infinite and a.ndim == 0 and not math.isfinite(a):
        raise InputError(f"`{call}({name}=...)` must be finite, got {value!r}")
    a = a if infinite else checks.finite(call, name, a)
    a.flags.writeable = False
    return a


def _rounded(a: np.ndarray) -> np.ndarray:
    """An array of fractions as floats that remember them; other arrays stay as they are."""
    exact = as_fractions(a)
    return a if exact is None else RoundedArray.of(exact)


def positive_numbers(call: str, name: str, value: object) -> np.ndarray:
    """Return a read-only float64 copy of an array of positive finite numbers."""
    a = numbers(call, name, value, "an array of numbers")
    if not (a > 0).all():
        raise InputError(f"`{call}({name}=...)` must be positive everywhere, got {a.min()}")
    return a


def matrix_argument(call: str, name: str, value: object, by_columns: bool = False) -> Any:
    """Return a read-only float64 copy of a matrix: an array, or a sparse matrix by rows or columns, sorted, without zeros."""
    if not checks.is_sparse(value):
        return numbers(call, name, value, "a matrix of numbers")
    _refuse_other(call, name, value, "a matrix of numbers", value)
    from scipy.sparse import csc_array, csr_array  # already imported by the caller who made the value

    a = (csc_array if by_columns else csr_array)(value, dtype=np.float64, copy=True)
    a.sum_duplicates()  # also sorts
    a.eliminate_zeros()
    checks.finite(call, name, a.data)
    a.indices, a.indptr = a.indices.astype(np.int64), a.indptr.astype(np.int64)  # equal matrices have equal bytes
    for part in (a.data, a.indices, a.indptr):
        part.flags.writeable = False
    return a


def _refuse_other(call: str, name: str, a: Any, kind: str, value: object) -> None:
    if a.dtype.kind not in "biuf" or 0 in a.shape or not SHAPE_KINDS[kind](a.shape):
        raise InputError(f"`{call}({name}=...)` must be {kind}, got {_shown(a, value)}")


def _shown(a: Any, value: object) -> str:
    return f"shape {a.shape}, {a.dtype}" if a.ndim and 0 not in a.shape else f"{value!r}"


def constraints(call: str, A_ub: object, b_ub: object, A_eq: object, b_eq: object, bounds: object) -> dict[str, Any]:
    """Check the fields that describe a polytope as in `scipy.optimize.linprog`, with the bounds as a d x 2 array."""
    fields: dict[str, Any] = {}
    for kind, A, b in (("ub", A_ub, b_ub), ("eq", A_eq, b_eq)):
        if (A is None) != (b is None):
            raise InputError(f"`{call}(A_{kind}=..., b_{kind}=...)` must be given together")
        A = None if A is None else matrix_argument(call, f"A_{kind}", A)
        b = None if A is None else numbers(call, f"b_{kind}", b, "a vector of numbers")
        if A is not None and b is not None and len(b) != A.shape[0]:
            raise InputError(f"`{call}(b_{kind}=...)` must have one number for each of the {A.shape[0]} rows, got {len(b)}")
        fields |= {f"A_{kind}": A, f"b_{kind}": b}
    widths = {A.shape[1] for A in (fields["A_ub"], fields["A_eq"]) if A is not None}
    if len(widths) > 1:
        raise InputError(f"`{call}(A_ub=..., A_eq=...)` must have the same number of columns, got {widths}")
    return fields | {"bounds": _pairs(call, bounds, widths.pop() if widths else None)}


def _pairs(call: str, value: object, d: int | None) -> np.ndarray:
    """One pair for all variables, or one pair per variable; None means no bound."""
    pairs = np.array((None, None) if value is None else value, dtype=object)
    if pairs.ndim == 1 and d is not None:
        pairs = np.tile(pairs, (d, 1))
    each = "each variable" if d is None else f"each of the {d} variables"
    wanted = f"`{call}(bounds=...)` must be a pair (lower, upper), or one for {each}"
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not len(pairs) or (d or len(pairs)) != len(pairs):
        raise InputError(f"{wanted}, got {brief_array(value)}")
    for k, none in enumerate((-np.inf, np.inf)):
        pairs[:, k] = [none if end is None else end for end in pairs[:, k]]
    try:
        a = pairs.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{wanted}, numbers or None, got {brief_array(value)}") from None
    if not ((a[:, 0] <= a[:, 1]).all() and (a[:, 0] < np.inf).all() and (a[:, 1] > -np.inf).all()):
        raise InputError(f"`{call}(bounds=...)` must have lower <= upper for each variable, got {brief_array(value)}")
    a.flags.writeable = False
    return a


def float_of(x: np.ndarray) -> np.dtype:
    """The float type that holds x's numbers."""
    return np.result_type(x, np.float32)


def power(top: float) -> float:
    """The next power of two above a number, 1 for 0 and at most 2^1023: division by it is exact."""
    return 2.0 ** min(1023, math.frexp(top)[1]) if top > 0 else 1.0


def scaled_gradient(C: ConvexSet, g: np.ndarray) -> tuple[np.ndarray, float]:
    """Return g / scale in float64, with entries below 2 in magnitude, and the scale, a power of two; refuse non-finite g.

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
    """The scaled gradient as a flat array, without the scale."""
    return scaled_gradient(C, g)[0].reshape(-1)


def peak(C: ConvexSet, g: np.ndarray, size: float) -> Coordinate:
    """-size sign(g_j) e_j at the first of the largest |g_j|, without a copy of g."""
    i, j = int(g.argmax()), int(g.argmin())  # a NaN counts as largest and as smallest
    high, low = g.item(i), g.item(j)
    refuse_non_finite(C, high, low)
    if high == -low:
        i = j = min(i, j)
    at = i if high >= -low else j
    return Coordinate(at, -size if g.item(at) > 0 else size, g.shape)


def signs(C: ConvexSet, g: np.ndarray, size: float) -> DenseVertex:
    """-size sign(g), and size where g_j = 0."""
    refuse_non_finite(C, float(np.abs(g).max()))
    kind = float_of(g).type
    return DenseVertex(np.where(g > 0, kind(-size), kind(size)))


def largest(a: np.ndarray, k: int) -> np.ndarray:
    """Indices of the k largest entries, in rising order; ties go to the first. O(length) and a sort of k indices."""
    if k >= len(a):
        return np.arange(len(a))
    last = np.partition(a, len(a) - k)[len(a) - k]
    above = np.flatnonzero(a > last)
    return np.sort(np.concatenate([above, np.flatnonzero(a == last)[: k - len(above)]]))


def few(indices: np.ndarray, values: np.ndarray, shape: tuple[int, ...]) -> SparseVertex | DenseVertex:
    """The vertex with these entries: sparse and without zeros, or dense if more than half of all entries are not zero."""
    filled = values != 0
    if 2 * int(np.count_nonzero(filled)) <= math.prod(shape):
        return SparseVertex(indices[filled], values[filled], shape)
    out = np.zeros(math.prod(shape))
    out[indices] = values
    return DenseVertex(out.reshape(shape))


@dataclass(frozen=True)
class CompiledOracle:
    """An oracle of `extremal.kernels.oracles`: its kind, a size, and two arrays whose meaning depends on the kind.

    A set runs in bursts if its class itself defines ``compiled() -> CompiledOracle | None``. An inherited method does not
    count, because the subclass may have another oracle.

    Examples
    --------
    >>> import extremal as ex
    >>> ex.L1Ball(2.0).compiled()
    CompiledOracle(kind='peak', size=2.0, lower=0.0, upper=0.0)
    """

    kind: Literal["peak", "weighted", "least", "unit", "corner", "fill"]
    size: float = 1.0  # radius or total; the amount to spend for "fill"
    lower: float | np.ndarray = 0.0  # weights for "weighted"; an array, or one number for all entries
    upper: float | np.ndarray = 0.0

    @property
    def single(self) -> bool:
        """Whether a vertex has one entry."""
        return self.kind not in ("corner", "fill")


def compiled_oracle(C: object) -> CompiledOracle | None:
    """The oracle of a set in the form that compiled loops use; None if the set's class does not define ``compiled``."""
    said = vars(type(C)).get("compiled")
    return None if said is None else said(C)


def least_products(spikes: Spikes, g: np.ndarray) -> np.ndarray:
    """min of <g, s> over the vertices s at each coordinate."""
    low = np.where(spikes.low == 0, np.inf, spikes.low * g)
    return np.minimum(low, np.where(spikes.high == 0, np.inf, spikes.high * g))
