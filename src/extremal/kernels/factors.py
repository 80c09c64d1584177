"""A triangular factor of some rows and columns of a Hessian, updated as variables come and go."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from extremal.kernels.eigen import eigen
from extremal.kernels.jit import bare_inner_kernel, inner_kernel, vectors
from extremal.kernels.rows import inner_product, row_product, row_with

RIDGE = 1e-13  # added to a diagonal of ones, which bounds the pivots from below
FLAT = 1e-10  # the same relative to the slopes, if there is no curvature at all: no step is longer than its inverse
TINY_DIAGONAL = 1e-250  # a diagonal entry of this size means no curvature
DEPENDENT = 1e-22  # a row of length 1 depends on others if the square of its remainder is below this
BASE = 0.1  # the base changes if its weight is below this share of the largest
BLOCK = 32  # rows eliminated together, so that other rows are read once
DECOMPOSED = 64  # largest system for which an eigenvalue decomposition costs little
SINGULAR = 1e-10  # a system is singular if its smallest pivot is below this share of the largest
FLAT_EIGENVALUE = 1e-12  # an eigenvalue below this share of the largest counts as zero
SLOPE_ROUNDING = 1e-9  # share of a slope that may be rounding
SUM_ROUNDING = 4 * 2.0**-52  # the rounding of a sum, as a share of the sum of its magnitudes

COUNT, AT_BASE, COLUMNS_OF_Q = 0, 1, 2
WHOLE = 10  # fields of a `SingularProblem`: numba omits the branch of the other kind


class Factor(NamedTuple):
    """L L' = D M D, where M is the Hessian of the variables ``order[:count]`` relative to a base, and D = diag unit.

    If variables are tied, weight moves to and from the base, and the others are free: M_ac = <f_a - f_b, f_c - f_b>. With a root
    (for tied variables only), D (f_a - f_b) = L Q, and Q has orthonormal rows. A row that depends on others gets its own column
    in Q.
    """

    L: np.ndarray
    Q: np.ndarray
    unit: np.ndarray
    order: np.ndarray
    position: np.ndarray  # the position of each variable in the order; -1 if absent
    sizes: np.ndarray  # count, base, columns of Q in use


@vectors
def new_factor(variables, rank):
    """Room for ``variables`` variables, and for a root of ``rank`` columns; 0 without a root."""
    Q = np.empty((variables if rank > 0 else 0, rank + variables if rank > 0 else 0))
    order, position, sizes = np.empty(variables, np.int64), np.empty(variables, np.int64), np.empty(3, np.int64)
    for a in range(variables):
        position[a] = -1
    sizes[COUNT], sizes[AT_BASE], sizes[COLUMNS_OF_Q] = 0, -1, rank
    return Factor(np.empty((variables, variables)), Q, np.empty(variables), order, position, sizes)


@bare_inner_kernel
def hold(p, factor, w, slopes, free):
    """Change the factor to the free variables."""
    sizes, largest, best = factor.sizes, 0, 0
    for a in range(w.size):
        largest, best = a if w[a] > w[largest] else largest, a if slopes[a] < slopes[best] else best
    if p.tied:
        base = sizes[AT_BASE]
        if base < 0 or not free[base] or w[base] < BASE * w[largest]:
            clear_factor(p, factor, largest)
    gone, wanted = 0, 0
    for a in range(w.size):
        wanted += free[a] and factor.position[a] < 0
        gone += factor.position[a] >= 0 and not free[a]
    if 4 * gone > sizes[COUNT] or (p.root.size > 0 and sizes[COLUMNS_OF_Q] + wanted > factor.Q.shape[1]):
        clear_factor(p, factor, sizes[AT_BASE])
    elif gone > 0:
        for i in range(sizes[COUNT] - 1, -1, -1):
            if not free[factor.order[i]]:
                remove(p, factor, i)
    first, rank = sizes[COUNT], p.root.shape[1]
    for turn in range(3):  # first those in use, then the best newcomer, then the others
        for a in range(w.size):
            if not free[a] or factor.position[a] >= 0 or a == sizes[AT_BASE]:
                continue
            if turn != (0 if p.lower[a] < w[a] < p.upper[a] else 1 if a == best else 2):
                continue
            floor = floor_of(p, slopes, a, sizes[AT_BASE])
            if p.root.size == 0:
                append(p, factor, floor, a)
            elif (turn == 2 and sizes[COLUMNS_OF_Q] > rank) or not append_to_root(p, factor, floor, a, turn < 2):
                free[a] = False
                continue
            factor.order[sizes[COUNT]], factor.position[a] = a, sizes[COUNT]
            sizes[COUNT] += 1
    if p.root.size == 0:
        for i in range(first, sizes[COUNT], BLOCK):
            eliminate(factor.L, i, min(i + BLOCK, sizes[COUNT]))


@bare_inner_kernel
def clear_factor(p, factor, base):
    """Remove all variables."""
    for i in range(factor.sizes[COUNT]):
        factor.position[factor.order[i]] = -1
    factor.sizes[COUNT], factor.sizes[AT_BASE] = 0, base if p.tied else -1
    if p.root.size > 0:
        factor.sizes[COLUMNS_OF_Q] = p.root.shape[1]


@bare_inner_kernel
def bend(p, a, c, base):
    """The entry M_ac."""
    total = p.scale[a] * p.scale[c] * p.H[p.place[a], p.place[c]]
    if base < 0:
        return total
    b, s = p.place[base], p.scale[base]
    total -= s * (p.scale[a] * p.H[p.place[a], b])
    total -= s * (p.scale[c] * p.H[p.place[c], b])
    return total + s * s * p.H[b, b]


@bare_inner_kernel
def floor_of(p, slopes, a, base):
    """The amount added to M_aa: no step is longer than the distance between the bounds divided by FLAT."""
    if base >= 0:
        return FLAT * abs(slopes[base] - slopes[a])
    return FLAT * abs(slopes[a]) / max(p.upper[a] - p.lower[a], 1e-300)


@bare_inner_kernel
def append(p, factor, floor, a):
    """Add one variable: its row of D M D."""
    L, m, base = factor.L, factor.sizes[COUNT], factor.sizes[AT_BASE]
    diagonal = bend(p, a, a, base) + floor
    unit = 1.0 / np.sqrt(diagonal) if diagonal > TINY_DIAGONAL else 1.0
    for j in range(m):
        L[m, j] = bend(p, a, factor.order[j], base) * unit * factor.unit[j]
    L[m, m], factor.unit[m] = diagonal * unit * unit + RIDGE, unit


@bare_inner_kernel
def eliminate(L, first, last):
    """Turn rows of a matrix into rows of its Cholesky factor; raise pivots that rounding made too small.

    Return the least pivot before that: the matrix is positive definite if this pivot is positive.
    """
    least = np.inf
    for j in range(last):
        for i in range(max(first, j), last):
            rest = L[i, j] - row_product(L, i, j, j)
            least = least if i > j or least <= rest else rest
            L[i, j] = np.sqrt(max(rest, RIDGE)) if i == j else rest / L[j, j]
    return least


@bare_inner_kernel
def append_to_root(p, factor, floor, a, needed):
    """Add one variable by Gram-Schmidt, twice, if H has a root; skip a dependent row unless it is needed."""
    L, Q, m, base, width = factor.L, factor.Q, factor.sizes[COUNT], factor.sizes[AT_BASE], factor.sizes[COLUMNS_OF_Q]
    r = p.root.shape[1]
    for t in range(r):
        Q[m, t] = p.scale[a] * p.root[p.place[a], t]
        if base >= 0:
            Q[m, t] -= p.scale[base] * p.root[p.place[base], t]
    square = row_product(Q, m, m, r)
    unit = 1.0 / np.sqrt(square + floor) if square + floor > TINY_DIAGONAL else 1.0
    for t in range(width):
        Q[m, t] = Q[m, t] * unit if t < r else 0.0
    for j in range(m):
        L[m, j] = 0.0
    for _ in range(2):
        for j in range(m):
            c = row_product(Q, j, m, width)
            L[m, j] += c
            for t in range(width):
                Q[m, t] -= c * Q[j, t]
    square, extra = row_product(Q, m, m, width), floor * unit * unit + RIDGE * RIDGE
    if not (needed or square > DEPENDENT):
        return False
    length = np.sqrt(max(square, extra))
    for t in range(width):
        Q[m, t] = Q[m, t] / length if square > extra else 0.0
    if not square > extra:  # it depends on the others, and gets its own direction
        for j in range(m + 1):
            Q[j, width] = 1.0 if j == m else 0.0
        factor.sizes[COLUMNS_OF_Q] = width + 1
    L[m, m], factor.unit[m] = length, unit
    return True


@bare_inner_kernel
def remove(p, factor, i):
    """Remove a variable: rotations of columns make the remainder triangular again."""
    L, Q, m, width = factor.L, factor.Q, factor.sizes[COUNT], factor.sizes[COLUMNS_OF_Q]
    factor.position[factor.order[i]] = -1
    for j in range(i, m - 1):
        factor.order[j], factor.unit[j] = factor.order[j + 1], factor.unit[j + 1]
        factor.position[factor.order[j]] = j
        for t in range(j + 2):
            L[j, t] = L[j + 1, t]
    for j in range(i, m - 1):
        size = np.hypot(L[j, j], L[j, j + 1])
        c, s = (L[j, j] / size, L[j, j + 1] / size) if size > 0 else (1.0, 0.0)
        for k in range(j, m - 1):
            left, right = L[k, j], L[k, j + 1]
            L[k, j], L[k, j + 1] = c * left + s * right, c * right - s * left
        L[j, j] = max(L[j, j], RIDGE)
        if p.root.size > 0:
            for t in range(width):
                left, right = Q[j, t], Q[j + 1, t]
                Q[j, t], Q[j + 1, t] = c * left + s * right, c * right - s * left
    factor.sizes[COUNT] = m - 1


@inner_kernel
def direction(p, factor, w, slopes):
    """The Newton step of the variables in the factor, as a step of all variables; with sum 0 if these are tied.

    For singular systems, problems of the shorter kind get an empty array: `shortest` would double the time of compilation.
    """
    L, m, base, step = factor.L, factor.sizes[COUNT], factor.sizes[AT_BASE], np.zeros(slopes.size)
    if m == 0:
        return step
    right, top, least = np.empty(m), 0.0, np.inf
    for i in range(m):
        a = factor.order[i]
        right[i] = ((slopes[base] if base >= 0 else 0.0) - slopes[a]) * factor.unit[i]
        top, least = max(top, L[i, i] ** 2), min(least, L[i, i] ** 2)
    if p.root.size == 0 and m <= DECOMPOSED and least <= SINGULAR * top + 10 * RIDGE:
        if len(p) != WHOLE:
            return step[:0]
        shortest(p, factor, w, slopes, step)
        return step
    u, total = right, 0.0
    for i in range(m):
        for t in range(i):
            u[i] -= L[i, t] * u[t]
        u[i] /= L[i, i]
    for i in range(m - 1, -1, -1):
        u[i] /= L[i, i]
        for t in range(i):
            u[t] -= L[i, t] * u[i]
    for i in range(m):
        step[factor.order[i]] = factor.unit[i] * u[i]
        total += factor.unit[i] * u[i]
    if base >= 0:
        step[base] = -total
    return step


@inner_kernel
def shortest(p, factor, w, slopes, step):
    """Replace the step of a singular system by the shortest solution, so that rounding does not pick one at random.

    Lengths are relative to each variable's own curvature. In a direction with a slope but no curvature, the step is as long as
    the ridge allows. Slopes below their rounding error give no step.
    """
    m, base = factor.sizes[COUNT], factor.sizes[AT_BASE]
    size = m + (base >= 0)
    order, unit, noise, largest = np.empty(size, np.int64), np.empty(size), 0.0, 0.0
    for i in range(size):
        order[i] = factor.order[i] if i < m else base
    sizes, magnitudes = np.abs(p.x), np.abs(p.g)  # the second: the magnitudes of the terms of the slopes
    for a in range(w.size):
        sizes[p.place[a]] += abs(p.scale[a] * w[a])
    for j in range(sizes.size):
        for t in range(sizes.size):
            magnitudes[j] += abs(p.H[j, t]) * sizes[t]
    for i in range(size):
        own = bend(p, order[i], order[i], -1)
        unit[i] = 1.0 / np.sqrt(own) if own > TINY_DIAGONAL else 0.0
        largest = max(largest, unit[i])
    for i in range(size):
        unit[i] = unit[i] if unit[i] > 0.0 else largest if largest > 0.0 else 1.0
        noise += (SUM_ROUNDING * abs(p.scale[order[i]]) * magnitudes[p.place[order[i]]] * unit[i]) ** 2
    M, right, here, sums, across = np.empty((size, size)), np.empty(size), np.empty(size), np.empty(size), np.empty(size)
    length = np.sqrt(inner_product(unit, unit))
    for i in range(size):
        sums[i] = unit[i] / length if base >= 0 else 0.0  # the direction in which the sum changes
        right[i], here[i] = -slopes[order[i]] * unit[i], w[order[i]] / unit[i]
        for j in range(size):
            M[i, j] = bend(p, order[i], order[j], -1) * unit[i] * unit[j]
    if not inner_product(M.reshape(size * size), M.reshape(size * size)) < np.inf:
        return  # the numbers overflow
    right -= inner_product(right, sums) * sums
    for i in range(size):
        across[i] = row_with(M, i, sums)
    level = inner_product(sums, across) + 1.0  # a curvature of 1 in the direction of the sum, which no step changes
    for i in range(size):
        for j in range(size):
            M[i, j] += level * sums[i] * sums[j] - across[i] * sums[j] - sums[i] * across[j]
    values, basis = eigen(M)
    top = np.max(values)
    length, noise = np.sqrt(inner_product(right, right)), np.sqrt(noise)
    least = max(SLOPE_ROUNDING * length, noise)
    for i in range(size):
        along = row_with(basis, i, right)
        flat = values[i] <= SINGULAR * top and abs(along) <= least
        along = 0.0 if flat else along / max(values[i], RIDGE)
        if flat and values[i] <= FLAT_EIGENVALUE * top and length > noise:
            along = -row_with(basis, i, here)
        for j in range(size):
            step[order[j]] += along * basis[i, j] * unit[j]
