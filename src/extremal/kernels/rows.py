"""Products with some rows of a CSR matrix, without making a matrix of those rows."""

from __future__ import annotations

import numpy as np

from extremal.kernels.jit import jit


@jit
def dot(indptr, indices, data, x, idx, out):
    """out[t] = <a_i, x> with i = idx[t]."""
    for t in range(idx.size):
        total = 0.0
        for e in range(indptr[idx[t]], indptr[idx[t] + 1]):
            total += data[e] * x[indices[e]]
        out[t] = total


@jit
def tdot(indptr, indices, data, c, idx, out):
    """out += sum over t of c[t] a_i with i = idx[t]."""
    for t in range(idx.size):
        for e in range(indptr[idx[t]], indptr[idx[t] + 1]):
            out[indices[e]] += c[t] * data[e]


@jit
def dot_matrix(indptr, indices, data, x, idx, out):
    """out[t] = a_i' x with i = idx[t], for a matrix x; summed in float64 like ``dot``."""
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
