"""Products with one row of CSR data, or of dense data, which have two dimensions.

Unsigned positions spare the test for negative ones that numba makes at each access, which is half of the time. Sparse rows
are short, and are summed one entry after the other; dense ones several entries at once.
"""

from __future__ import annotations

from numpy import uint64 as U

from extremal.kernels.jit import inlined, summing
from extremal.kernels.prefetch import prefetch


@inlined
def row_dot(indptr, indices, data, i, v):
    """<a_i, v>."""
    if data.ndim == 2:
        return dense_dot(data, i, v)
    total = 0.0
    for e in range(U(indptr[i]), U(indptr[i + U(1)])):
        total += data[e] * v[U(indices[e])]
    return total


@summing
def dense_dot(data, i, v):
    """The same for a dense row."""
    total = 0.0
    for j in range(U(v.size)):
        total += data[i, j] * v[j]
    return total


@inlined
def two_dots(indptr, indices, data, i, v, w):
    """<a_i, v> and <a_i, w>."""
    if data.ndim == 2:
        return dense_dot(data, i, v), dense_dot(data, i, w)
    first, second = 0.0, 0.0
    for e in range(U(indptr[i]), U(indptr[i + U(1)])):
        j = U(indices[e])
        first += data[e] * v[j]
        second += data[e] * w[j]
    return first, second


@inlined
def dot_and_entry(indptr, indices, data, i, v, j):
    """<a_i, v> and a_ij."""
    if data.ndim == 2:
        return dense_dot(data, i, v), data[i, U(j)]
    total, found = 0.0, 0.0
    for e in range(U(indptr[i]), U(indptr[i + U(1)])):
        total += data[e] * v[U(indices[e])]
        if indices[e] == j:
            found = data[e]
    return total, found


@inlined
def row_entry(indptr, indices, data, i, j):
    """a_ij."""
    if data.ndim == 2:
        return data[i, U(j)]
    for e in range(U(indptr[i]), U(indptr[i + U(1)])):
        if indices[e] == j:
            return data[e]
    return 0.0


@inlined
def add(indptr, indices, data, i, c, out):
    """out[:, 0] += c a_i."""
    if data.ndim == 2:
        for j in range(U(out.shape[0])):
            out[j, 0] += c * data[i, j]
    else:
        for e in range(U(indptr[i]), U(indptr[i + U(1)])):
            out[U(indices[e]), 0] += c * data[e]


@inlined
def add_two(indptr, indices, data, i, c, m, out):
    """out[:, 0] += c a_i and out[:, 1] += m a_i."""
    if data.ndim == 2:
        for j in range(U(out.shape[0])):
            out[j, 0] += c * data[i, j]
            out[j, 1] += m * data[i, j]
    else:
        for e in range(U(indptr[i]), U(indptr[i + U(1)])):
            j = U(indices[e])
            out[j, 0] += c * data[e]
            out[j, 1] += m * data[e]


@inlined
def announce_row(indptr, indices, data, i):
    """Row i will be read soon: its first and its last entries, and what is between them if the row is short."""
    if data.ndim == 1:
        lo, hi = U(indptr[i]), U(indptr[i + U(1)])
        prefetch(indices, lo)
        prefetch(indices, hi)
        if data.strides[0] != 0:  # else one value stands for all
            prefetch(data, lo)
            prefetch(data, lo + U(8))
            prefetch(data, hi)
