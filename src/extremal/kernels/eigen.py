"""Eigenvalues and eigenvectors of a small symmetric matrix, in plain loops: a call of LAPACK would import scipy.linalg first.

Householder reflections make the matrix tridiagonal, and implicit QR steps with Wilkinson's shift make it diagonal.
Golub, Van Loan (2013), Matrix Computations, sections 8.3.1 and 8.3.3.
"""

from __future__ import annotations

import numpy as np

from extremal.kernels.jit import inner_kernel
from extremal.kernels.rows import U, inner_product, row_with

NEGLIGIBLE = 2.0**-52  # an entry beside the diagonal counts as zero below this share of its neighbours
QR_STEPS = 60  # largest number of QR steps per eigenvalue; two or three are usual


@inner_kernel
def eigen(M):
    """The eigenvalues of M, and an array with an eigenvector in each row; M is overwritten."""
    m = M.shape[0]
    rows, off = np.zeros((m, m)), np.zeros(m)
    for i in range(m):
        rows[i, i] = 1.0
    for k in range(m - 2):
        reflect(M, rows, k)
    values = np.empty(m)
    for i in range(m):
        values[i], off[i] = M[i, i], M[i + 1, i] if i + 1 < m else 0.0
    last, left = m - 1, QR_STEPS * m
    while last > 0 and left > 0:
        first = last
        while first > 0 and abs(off[first - 1]) > NEGLIGIBLE * (abs(values[first - 1]) + abs(values[first])):
            first -= 1
        if first == last:
            last -= 1
        else:
            qr_step(values, off, rows, first, last)
            left -= 1
    return values, rows


@inner_kernel
def reflect(M, rows, k):
    """Make the entries of column k below the first one under the diagonal zero: M <- P M P and rows <- P rows, P = I - b v v'."""
    m = U(M.shape[0])
    v, p = np.zeros(m), np.zeros(m)
    for i in range(U(k + 1), m):
        v[i] = M[i, U(k)]
    size = np.sqrt(inner_product(v, v))
    if size == 0.0:
        return
    v[k + 1] += size if v[k + 1] >= 0.0 else -size
    b = 2.0 / inner_product(v, v)
    for i in range(U(k), m):
        p[i] = b * row_with(M, i, v)  # v is 0 before k + 1
    half = 0.5 * b * inner_product(p, v)
    for i in range(U(k), m):
        p[i] -= half * v[i]
    for i in range(U(k), m):
        for j in range(U(k), m):
            M[i, j] -= v[i] * p[j] + p[i] * v[j]
    for j in range(m):
        p[j] = 0.0
    for i in range(U(k + 1), m):
        for j in range(m):
            p[j] += b * v[i] * rows[i, j]
    for i in range(U(k + 1), m):
        for j in range(m):
            rows[i, j] -= v[i] * p[j]


@inner_kernel
def qr_step(values, off, rows, first, last):
    """One step on the block from ``first`` to ``last``: rotations of neighbours, which chase one entry down the matrix."""
    half = 0.5 * (values[last - 1] - values[last])
    beside = off[last - 1]
    shift = half + np.hypot(half, beside) if half >= 0.0 else half - np.hypot(half, beside)
    x, z = values[first] - values[last] + beside * (beside / shift), off[first]
    for k in range(first, last):
        size = np.hypot(x, z)
        c, s = (x / size, z / size) if size > 0.0 else (1.0, 0.0)
        if k > first:
            off[k - 1] = size
        a, b, e = values[k], values[k + 1], off[k]
        values[k] = c * c * a + 2.0 * c * s * e + s * s * b
        values[k + 1] = s * s * a - 2.0 * c * s * e + c * c * b
        off[k] = c * s * (b - a) + (c * c - s * s) * e
        if k + 1 < last:
            x, z = off[k], s * off[k + 1]
            off[k + 1] *= c
        for j in range(U(rows.shape[1])):
            upper, lower = rows[U(k), j], rows[U(k + 1), j]
            rows[U(k), j], rows[U(k + 1), j] = c * upper + s * lower, c * lower - s * upper
