"""Some columns of a CSR matrix, and their weighted Gram matrix by rows."""

from __future__ import annotations

from extremal.kernels.jit import bare, inlined


@bare
def compact(indptr, indices, data, place, starts, columns, values):
    """Copy the entries of the columns j with place[j] >= 0, which become columns place[j]; return how many there are.

    ``columns`` and ``values`` need room for one entry more than that. No branch: which entries stay cannot be foreseen.
    """
    used = 0
    for i in range(indptr.size - 1):
        starts[i] = used
        used = keep_columns(indices, data, indptr[i], indptr[i + 1], place, columns, values, used)
    starts[indptr.size - 1] = used
    return used


@inlined
def keep_columns(indices, data, first, last, place, columns, values, used):
    """The same for one row, behind the first ``used`` entries."""
    for e in range(first, last):
        p = place[indices[e]]
        columns[used] = p
        values[used] = data[e]
        used += p >= 0
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
        if h[i] != 0.0:
            add_square(indices, data, indptr[i], indptr[i + 1], h[i], out)


@inlined
def add_square(columns, values, first, last, c, out):
    """out += c a a', its lower triangle."""
    for e in range(first, last):
        w = c * values[e]
        row = columns[e]
        for other in range(first, e + 1):
            out[row, columns[other]] += w * values[other]


@bare
def gram_of_columns(indptr, indices, data, place, h, columns, values, out):
    """The same for the columns j with place[j] >= 0, which become columns place[j]; no copy of them is kept.

    ``columns`` and ``values`` have room for the entries of one row in these columns, and one entry more.
    """
    for i in range(indptr.size - 1):
        if h[i] != 0.0:
            used = keep_columns(indices, data, indptr[i], indptr[i + 1], place, columns, values, 0)
            add_square(columns, values, 0, used, h[i], out)
