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
def moments(indptr, indices, data, w, out):
    """out[0] += sum_i w_i a_i, out[1] += the same of squares."""
    for i in range(indptr.size - 1):
        for e in range(indptr[i], indptr[i + 1]):
            out[0, indices[e]] += w[i] * data[e]
            out[1, indices[e]] += w[i] * data[e] * data[e]


@bare
def gram(indptr, indices, data, h, out):
    """out += sum over all rows of h_i a_i a_i', its lower triangle (columns of a row increase)."""
    for i in range(indptr.size - 1):
        if h[i] == 0.0:
            continue
        for e in range(indptr[i], indptr[i + 1]):
            w = h[i] * data[e]
            row = indices[e]
            for other in range(indptr[i], e + 1):
                out[row, indices[other]] += w * data[other]


@bare
def gram_of_columns(indptr, indices, data, place, h, columns, values, out):
    """The same for the columns j with place[j] >= 0, which become columns place[j]; no copy of them is kept.

    ``columns`` and ``values`` have room for the entries of one row in these columns, and one entry more.
    """
    for i in range(indptr.size - 1):
        if h[i] == 0.0:
            continue
        used = 0
        for e in range(indptr[i], indptr[i + 1]):
            p = place[indices[e]]
            columns[used] = p
            values[used] = data[e]
            used += p >= 0
        for a in range(used):
            w = h[i] * values[a]
            row = columns[a]
            for b in range(a + 1):
                out[row, columns[b]] += w * values[b]
