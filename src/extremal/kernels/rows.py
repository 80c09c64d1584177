"""Products with rows of a CSR matrix, some in any order or all that follow one another, without making a matrix of those rows.

Unsigned positions spare the test for negative ones that numba makes at each access. A row's sum is in two halves, and entries
are announced to the processor before they are read. The functions for one row use no array after their last loop: numba
would count references to it, which takes longer than a short row.
"""

from __future__ import annotations

import numpy as np
from numpy import uint64 as U

from extremal.kernels.jit import jit
from extremal.kernels.prefetch import prefetch

FAR, NEAR = 16, 8  # so many rows ahead a row that was drawn is announced: first where it starts, then itself
ENTRIES_AHEAD = 96  # so many entries ahead, where rows follow one another


def _inner(function):
    """For the loop over a row: compiled into its caller, products and sums in one instruction."""
    return jit(function, fastmath={"contract"}, forceinline=True)


@_inner
def rows_product(indptr, indices, data, x, i):
    """<a_i, x>, in float64."""
    even, odd, e, stop = 0.0, 0.0, U(indptr[i]), U(indptr[i + U(1)])
    if (stop - e) & U(1):
        even = data[e] * x[U(indices[e])]
        e += U(1)
    while e < stop:
        even += data[e] * x[U(indices[e])]
        odd += data[e + U(1)] * x[U(indices[e + U(1)])]
        e += U(2)
    return even + odd


@_inner
def scatter_rows(indptr, indices, data, c, i, out):
    """out += c a_i."""
    e, stop = U(indptr[i]), U(indptr[i + U(1)])
    while e < stop:
        out[U(indices[e])] += c * data[e]
        e += U(1)


@_inner
def announce(indices, data, e):
    """Entries from e on will be read soon."""
    prefetch(data, e)
    prefetch(data, e + U(8))
    prefetch(indices, e)


@_inner
def look_ahead(indptr, indices, data, idx, t):
    """Announce the rows that come after idx[t]."""
    prefetch(indptr, U(idx[min(t + FAR, idx.size - 1)]))
    announce(indices, data, U(indptr[U(idx[min(t + NEAR, idx.size - 1)])]))


@jit
def rows_dot(indptr, indices, data, x, idx, out):
    """out[t] = <a_i, x> with i = idx[t]."""
    for t in range(idx.size):
        look_ahead(indptr, indices, data, idx, t)
        out[t] = rows_product(indptr, indices, data, x, U(idx[t]))


@jit
def rows_tdot(indptr, indices, data, c, idx, out):
    """out += sum over t of c[t] a_i with i = idx[t]."""
    for t in range(idx.size):
        look_ahead(indptr, indices, data, idx, t)
        scatter_rows(indptr, indices, data, c[t], U(idx[t]), out)


@jit
def dot_range(indptr, indices, data, x, first, out):
    """out[t] = <a_i, x> with i = first + t."""
    for t in range(out.size):
        announce(indices, data, U(indptr[first + t]) + U(ENTRIES_AHEAD))
        out[t] = rows_product(indptr, indices, data, x, U(first + t))


@jit
def tdot_range(indptr, indices, data, c, first, out):
    """out += sum over t of c[t] a_i with i = first + t."""
    for t in range(c.size):
        announce(indices, data, U(indptr[first + t]) + U(ENTRIES_AHEAD))
        scatter_rows(indptr, indices, data, c[t], U(first + t), out)


@jit
def dot_matrix(indptr, indices, data, x, idx, out):
    """out[t] = a_i' x with i = idx[t], for a matrix x; summed in float64 like ``rows_dot``."""
    total = np.empty(x.shape[1])
    for t in range(idx.size):
        total[:] = 0.0
        for e in range(indptr[idx[t]], indptr[idx[t] + 1]):
            row, value = indices[e], data[e]
            for j in range(total.size):
                total[j] += value * x[row, j]
        for j in range(total.size):
            out[t, j] = total[j]


@jit
def tdot_matrix(indptr, indices, data, c, idx, out):
    """out += sum over t of a_i c[t]' with i = idx[t], for a matrix c."""
    for t in range(idx.size):
        for e in range(indptr[idx[t]], indptr[idx[t] + 1]):
            row, value = indices[e], data[e]
            for j in range(out.shape[1]):
                out[row, j] += value * c[t, j]


@jit
def column(indptr, indices, data, j, idx, out):
    """out[t] = entry j of row idx[t]; indices are sorted in each row."""
    for t in range(idx.size):
        lo, hi = indptr[idx[t]], indptr[idx[t] + 1]
        e = lo + np.searchsorted(indices[lo:hi], j)
        out[t] = data[e] if e < hi and indices[e] == j else 0.0


@jit
def norms2(indptr, data, out):
    """out[i] = |a_i|^2, summed in float64."""
    for i in range(out.size):
        total = 0.0
        for e in range(U(indptr[i]), U(indptr[i + 1])):
            value = np.float64(data[e])
            total += value * value
        out[i] = total


@jit
def take_rows(indptr, indices, data, order, starts, new_indices, new_data):
    """Row order[t] becomes row t; ``starts`` are the row starts of the new matrix."""
    for t in range(order.size):
        look_ahead(indptr, indices, data, order, t)
        e, shift = U(indptr[order[t]]), U(starts[t])
        for s in range(shift, U(starts[t + 1])):
            new_indices[s] = indices[e + s - shift]
            new_data[s] = data[e + s - shift]
