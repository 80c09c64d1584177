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
def column(indptr, indices, data, j, idx, out):
    """out[t] = entry j of row idx[t]; indices are sorted in each row."""
    for t in range(idx.size):
        lo, hi = indptr[idx[t]], indptr[idx[t] + 1]
        e = lo + np.searchsorted(indices[lo:hi], j)
        out[t] = data[e] if e < hi and indices[e] == j else 0.0
