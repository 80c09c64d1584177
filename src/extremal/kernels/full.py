"""Passes over all rows of a CSR matrix: products, and the sum, the derivatives and the gradient of a linear model at once.

Large data are worked on in parts, see `extremal.kernels.parts`. All sums are in float64, and x is taken in float64, so that
float32 data need not be copied for it.
"""

from __future__ import annotations

import numpy as np

from extremal.checks import InputError
from extremal.kernels import parts
from extremal.kernels.jit import jit
from extremal.kernels.rows import dot_range, tdot_range
from extremal.kernels.rows import take_rows as take_rows
from extremal.kernels.terms import terms
from extremal.kernels.views import locked

CsrArrays = tuple[np.ndarray, np.ndarray, np.ndarray]  # indptr, indices, data

CACHED_ROWS = 8192  # rows whose entries are still in the cache when they are read again
CACHED_FEATURES = 2**18  # features up to which x and the gradient stay in the cache together


@jit
def sweep(indptr, indices, data, y, x, loss, parameter, first, last, block, valued, z, c, g):
    """For the rows from first to last: return sum phi(<a_i, x>, y_i) if ``valued``, z_i = <a_i, x>, c_i = phi', g += sum c_i a_i.

    ``z``, ``c`` and ``g`` may be empty, which leaves them out. A block of rows is read from memory once.
    """
    total, room, none = 0.0, np.empty((2, min(block, last - first))), np.empty(0)
    for start in range(first, last, block):
        size = min(block, last - start)
        at, ys = room[0, :size], y[start : start + size]
        dot_range(indptr, indices, data, x, start, at)
        if z.size > 0:
            z[start : start + size] = at
        if c.size == 0 and g.size == 0:
            total += terms(loss, parameter, at, ys, valued, none, none)
            continue
        derivs = room[1, :size]
        total += terms(loss, parameter, at, ys, valued, derivs, none)
        if c.size > 0:
            c[start : start + size] = derivs
        if g.size > 0:
            tdot_range(indptr, indices, data, derivs, start, g)
    return total


def model(
    entries: CsrArrays,
    y: np.ndarray,
    x: np.ndarray,
    d: int,
    loss: tuple[int, float],
    valued: bool,
    graded: bool,
    c: np.ndarray | None,
    z: np.ndarray | None,
) -> tuple[float, np.ndarray]:
    """sum_i phi(<a_i, x>, y_i) and A' phi'; ``c`` and ``z`` are filled with phi' and with A x, if given.

    What is not asked for is zero, or empty.
    """
    x, y, block = _point(x, d), locked(y), _block(entries, d)
    c, z = (np.empty(0) if a is None else a for a in (c, z))

    def part(first: int, last: int) -> tuple[float, np.ndarray]:
        g = np.zeros(d if graded else 0)
        return float(sweep(*entries, y, x, *loss, first, last, block, valued, z, c, g)), g

    return parts.sums_of_parts(
        part, _bounds(entries, d)
    )  # so many parts whatever is asked for: values are the same to the last digit


def dot(entries: CsrArrays, x: np.ndarray, d: int) -> np.ndarray:
    """A x."""
    out, x = np.empty(len(entries[0]) - 1, np.result_type(entries[2], x)), _point(x, d)
    list(parts.each(lambda first, last: dot_range(*entries, x, first, out[first:last]), _bounds(entries, 0)))
    return out


def tdot(entries: CsrArrays, c: np.ndarray, d: int) -> np.ndarray:
    """A' c, for d columns."""
    c = locked(np.ascontiguousarray(c, np.result_type(c, np.float32)))
    if len(c) != len(entries[0]) - 1:
        raise InputError(f"c must have one entry per row of A, {len(entries[0]) - 1}, got {len(c)}")

    def part(first: int, last: int) -> tuple[float, np.ndarray]:
        g = np.zeros(d)
        tdot_range(*entries, c[first:last], first, g)
        return 0.0, g

    return parts.sums_of_parts(part, _bounds(entries, d))[1].astype(np.result_type(entries[2], c), copy=False)


def rows_in_order(entries: CsrArrays, order: np.ndarray) -> CsrArrays:
    """Copies with row order[t] as row t."""
    indptr, indices, data = entries
    starts = np.zeros(len(order) + 1, indptr.dtype)
    np.cumsum(np.diff(indptr)[order], out=starts[1:])
    new = starts, np.empty(starts[-1], indices.dtype), np.empty(starts[-1], data.dtype)
    take_rows(*entries, locked(order), *new)
    return new


def compile_full(entries: CsrArrays) -> None:
    """Compile all this for data of a kind, or load it from numba's cache."""
    none, x = (entries[0][:1], entries[1][:0], entries[2][:0]), np.zeros(1)
    model(none, x[:0], x, 1, (0, 0.0), True, True, None, None)
    tdot(none, dot(none, x, 1), 1)


def _block(entries: CsrArrays, d: int) -> int:
    """Rows of a block: as many as stay in the cache, unless x and d sums do not; then so many that these are seldom read anew."""
    if d <= CACHED_FEATURES:
        return CACHED_ROWS
    n = len(entries[0]) - 1
    return max(CACHED_ROWS, 8 * d * n // max(1, int(entries[0][-1])))


def _bounds(entries: CsrArrays, d: int) -> list[int]:
    """Where parts begin and end that have d sums each, and about as many entries."""
    indptr, total = entries[0], int(entries[0][-1])
    many = parts.count(total, d)
    wanted = np.arange(1, many, dtype=indptr.dtype) * (total // many)  # of one type with indptr, which would be copied otherwise
    return [0, *np.searchsorted(indptr, wanted).tolist(), len(indptr) - 1]


def _point(x: np.ndarray, d: int) -> np.ndarray:
    """x as the loops take it, in float64; they would not notice a wrong length."""
    if x.shape != (d,):
        raise InputError(f"x must have shape {(d,)}, one entry per column of A, got {x.shape}")
    return locked(np.ascontiguousarray(x, np.float64))
