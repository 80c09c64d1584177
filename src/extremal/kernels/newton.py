"""Some columns of a CSR matrix, and their weighted Gram matrix by rows."""

from __future__ import annotations

from extremal.kernels.jit import bare


@bare
def compact(indptr, indices, data, place, starts, columns, values):
    """Copy the entries of the columns j with place[j] >= 0, which become columns place[j]; return how many there are.

    ``columns`` and ``values`` need room for one entry more than that. No branch: which entries stay cannot be foreseen.
    """
    used = 0
    for i in range(indptr.size - 1):
        starts[i] = used
        for e in range(indptr[i], indptr[i + 1]):
            p = place[indices[e]]
            columns[used] = p
            values[used] = data[e]
            used += p >= 0
    starts[indptr.size - 1] = used
    return used


@bare
def diagonal(indptr, indices, data, h, out):
    """out_j += sum_i h_i a_ij^2."""
    for i in range(indptr.size - 1):
        for e in range(indptr[i], indptr[i + 1]):
            out[indices[e]] += h[i] * data[e] * data[e]


@bare
def gram(indptr, indices, data, h, first, last, out):
    """out += sum over the rows from first to last of h_i a_i a_i', its lower triangle (columns of a row increase)."""
    for i in range(first, last):
        if h[i] == 0.0:
            continue
        for e in range(indptr[i], indptr[i + 1]):
            w = h[i] * data[e]
            row = indices[e]
            for other in range(indptr[i], e + 1):
                out[row, indices[other]] += w * data[other]
