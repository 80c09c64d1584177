"""Products of two vectors, several entries at once: the order of these sums is the compiler's."""

from __future__ import annotations

from numpy import uint64 as U

from extremal.kernels.jit import summing


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
def row_product(M, i, j, m):
    """The product of the first m entries of two rows."""
    total = 0.0
    for t in range(m):
        total += M[i, t] * M[j, t]
    return total
