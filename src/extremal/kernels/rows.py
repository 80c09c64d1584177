"""Products with rows of CSR data, for single rows, some rows in any order, or consecutive rows; and with one row of dense data.

Unsigned positions avoid numba's test for negative ones at each access, which is half of the time. Entries are prefetched
before they are read.

The first functions are for one row of a batch, of `SparseRows` or `DenseRows`. numba knows the length of a tuple at compile
time, and omits the branch of the other kind. Sparse rows are summed one entry after the other, dense rows several entries at
once.

The other functions take whole arrays. They sum a row in two halves.
"""

from __future__ import annotations

import numpy as np
from numpy import uint64 as U

from extremal.kernels.arguments import DENSE
from extremal.kernels.instructions import add_pairs, pair_dots, prefetch
from extremal.kernels.jit import fused, inlined, jit, summing

FAR, NEAR = 16, 8  # how many rows ahead a drawn row is prefetched: first its start, then itself
ENTRIES_AHEAD = 96  # how many entries ahead, for consecutive rows


# products of two vectors, several entries at once: the compiler chooses the order of these sums


@summing
def inner_product(a, b):
    """a'b."""
    total = 0.0
    for j in range(b.size):
        total += a[j] * b[j]
    return total


@summing
def row_with(M, i, v):
    """The product of row i of M and v."""
    total = 0.0
    for j in range(U(v.size)):
        total += M[i, j] * v[j]
    return total


@summing
def row_with_column(M, i, X, k):
    """The product of row i of M and column k of X."""
    total = 0.0
    for j in range(U(X.shape[0])):
        total += M[i, j] * X[j, k]
    return total


@summing
def row_product(M, i, j, m):
    """The product of the first m entries of two rows."""
    total = 0.0
    for t in range(m):
        total += M[i, t] * M[j, t]
    return total


# one value; if all are equal, ``data`` has no axes, and its one value is a factor of the whole sum


@inlined
def times_value(data, e, v):
    """v times value e; or v if one value stands for all."""
    if data.ndim == 0:
        return v
    return data[e] * v


@inlined
def times_common(data, total):
    """``total`` times the value that stands for all, if there is one."""
    if data.ndim == 0:
        return data[()] * total
    return total


# one row of a batch


@fused
def row_dot(rows, i, X, k):
    """<a_i, x> for column x = X[:, k]."""
    if len(rows) == DENSE:
        return row_with_column(rows.data, i, X, k)
    total, other, e, stop = 0.0, 0.0, U(rows.indptr[i]), U(rows.indptr[i + U(1)])
    if (stop - e) & U(1):
        total = times_value(rows.data, e, X[U(rows.indices[e]), k])
        e += U(1)
    while e < stop:
        total += times_value(rows.data, e, X[U(rows.indices[e]), k])
        other += times_value(rows.data, e + U(1), X[U(rows.indices[e + U(1)]), k])
        e += U(2)
    return times_common(rows.data, total + other)


@fused
def two_dots(rows, i, X):
    """The products of a_i and the two columns of X."""
    if len(rows) == DENSE:
        return row_with_column(rows.data, i, X, U(0)), row_with_column(rows.data, i, X, U(1))
    start, stop = U(rows.indptr[i]), U(rows.indptr[i + U(1)])
    first, second = pair_dots(rows.indices, rows.data, start, stop, X)
    return times_common(rows.data, first), times_common(rows.data, second)


@fused
def add(rows, i, c, out):
    """out[:, 0] += c a_i."""
    if len(rows) == DENSE:
        for j in range(U(out.shape[0])):
            out[j, 0] += c * rows.data[i, j]
    else:
        c = times_common(rows.data, c)
        for e in range(U(rows.indptr[i]), U(rows.indptr[i + U(1)])):
            out[U(rows.indices[e]), 0] += times_value(rows.data, e, c)


@fused
def add_two(rows, i, c, m, out):
    """out[:, 0] += c a_i and out[:, 1] += m a_i."""
    if len(rows) == DENSE:
        for j in range(U(out.shape[0])):
            out[j, 0] += c * rows.data[i, j]
            out[j, 1] += m * rows.data[i, j]
    else:
        start, stop = U(rows.indptr[i]), U(rows.indptr[i + U(1)])
        c, m = times_common(rows.data, c), times_common(rows.data, m)
        add_pairs(rows.indices, rows.data, start, stop, c, m, out)


# prefetches: rows drawn at random arrive while other rows are processed


@inlined
def announce_entries(indices, data, e):
    """Prefetch the entries from e on."""
    prefetch(indices, e)
    if data.ndim == 1:  # otherwise one value stands for all
        prefetch(data, e)
        prefetch(data, e + U(8))


@inlined
def look_ahead(indptr, indices, data, idx, t):
    """Prefetch the rows after idx[t]: their first and their last entries, and so all of a short row."""
    prefetch(indptr, U(idx[min(t + FAR, idx.size - 1)]))
    i = U(idx[min(t + NEAR, idx.size - 1)])
    announce_entries(indices, data, U(indptr[i]))
    announce_entries(indices, data, U(indptr[i + U(1)]))


# rows of arrays


@fused
def rows_product(indptr, indices, data, x, i):
    """<a_i, x>, in float64."""
    even, odd, e, stop = 0.0, 0.0, U(indptr[i]), U(indptr[i + U(1)])
    if (stop - e) & U(1):
        even = times_value(data, e, x[U(indices[e])])
        e += U(1)
    while e < stop:
        even += times_value(data, e, x[U(indices[e])])
        odd += times_value(data, e + U(1), x[U(indices[e + U(1)])])
        e += U(2)
    return times_common(data, even + odd)


@fused
def scatter_rows(indptr, indices, data, c, i, out):
    """out += c a_i."""
    e, stop, c = U(indptr[i]), U(indptr[i + U(1)]), times_common(data, c)
    while e < stop:
        out[U(indices[e])] += times_value(data, e, c)
        e += U(1)


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
        announce_entries(indices, data, U(indptr[first + t]) + U(ENTRIES_AHEAD))
        out[t] = rows_product(indptr, indices, data, x, U(first + t))


@jit
def tdot_range(indptr, indices, data, c, first, out):
    """out += sum over t of c[t] a_i with i = first + t."""
    for t in range(c.size):
        announce_entries(indices, data, U(indptr[first + t]) + U(ENTRIES_AHEAD))
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
        e, last = indptr[idx[t]], indptr[idx[t] + 1]
        stop = last
        while e < stop:
            middle = e + (stop - e) // 2
            e, stop = (middle + 1, stop) if indices[middle] < j else (e, middle)
        out[t] = data[e] if e < last and indices[e] == j else 0.0


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
