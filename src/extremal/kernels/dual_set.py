"""Minimise a strictly convex quadratic function under linear constraints and a limit of the l1 norm: a dual active-set method.

    min g'd + d'Hd / 2   over A d <= b, with equality in the first rows,  lower <= d <= upper,  |x + d|_1 <= radius

The method starts at the minimiser without constraints and adds broken constraints one by one (Goldfarb, Idnani 1983). It needs no
feasible start. The l1 norm is the largest of 2^k linear forms, of which only broken ones are ever written down.
extremal.quadratic.polyhedral has the form for callers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from extremal.kernels.jit import bare, bare_inner_kernel
from extremal.kernels.rows import row_with

SAME = 1e-24  # a normal depends on others if the square of its remainder is below this share
SAME_AT_START = 1e-18  # the same for constraints of an earlier problem
OFF, LOOSEST = 1e-14, 1e-10  # a constraint is broken if it is off by more than this share of its terms; the same if rounding
# makes a broken constraint of one that depends on others
PULL_NOISE = 1e-13  # a multiplier of this share of the largest is rounding
NOT_BROKEN, FACE = -2, -1  # kinds of constraints: no constraint, a face of the l1 ball, then rows, lower bounds, upper bounds
IN_USE = 0


class PolyhedralProblem(NamedTuple):
    """The function and its constraints."""

    g: np.ndarray
    x: np.ndarray
    A: np.ndarray
    b: np.ndarray
    sizes: np.ndarray  # the sum of the magnitudes of each row
    metric: np.ndarray  # the length of each normal in the metric of H: of rows, bounds, and a face of the l1 ball
    lower: np.ndarray  # of d
    upper: np.ndarray
    radius: float  # infinite for no limit
    equations: int


class Working(NamedTuple):
    """The minimiser d under the constraints in use as equations: N'd = right, and J'N = [R; 0] for J'HJ = 1."""

    d: np.ndarray
    J: np.ndarray
    R: np.ndarray  # by columns: R[j, i] is the entry of row i and column j
    kinds: np.ndarray
    N: np.ndarray  # the normals, in rows; the last row is for the next one
    right: np.ndarray
    weights: np.ndarray  # the multipliers
    across: np.ndarray  # room for J' times a normal, and for other numbers
    r: np.ndarray
    sizes: np.ndarray  # the number of constraints in use


@bare_inner_kernel
def fill_normal(p, kind, normal, d):
    """Write the normal of a constraint, and return its right side; the face of the l1 ball is the one that x + d points to."""
    rows, k = p.A.shape
    if kind == FACE:
        right = p.radius
        for j in range(k):
            at = p.x[j] + d[j]
            normal[j] = 1.0 if at > 0.0 or (at == 0.0 and p.x[j] + p.upper[j] > 0.0) else -1.0
            right -= normal[j] * p.x[j]
        return right
    for j in range(k):
        normal[j] = p.A[kind, j] if kind < rows else 0.0
    if kind < rows:
        return p.b[kind]
    j = kind - rows
    normal[j - k if j >= k else j] = 1.0 if j >= k else -1.0
    return p.upper[j - k] if j >= k else -p.lower[j]


@bare_inner_kernel
def most_broken(p, d, slack):
    """The inequality that d breaks most, relative to the length of its normal; `NOT_BROKEN` if d breaks none."""
    rows, k = p.A.shape
    top, total, worst, found = 0.0, 0.0, 0.0, NOT_BROKEN
    for j in range(k):
        top = max(top, abs(d[j]), abs(p.x[j]))
        total += abs(p.x[j] + d[j])
    for i in range(p.equations, rows):
        off = row_with(p.A, i, d) - p.b[i]
        if off > slack * (p.sizes[i] * top + abs(p.b[i])) and off > worst * p.metric[i]:
            found, worst = i, off / p.metric[i]
    for j in range(k):
        low, high = p.lower[j] - d[j], d[j] - p.upper[j]
        off = max(low, high)
        if off > slack * top and off > worst * p.metric[rows + j]:
            found, worst = rows + j if low > high else rows + k + j, off / p.metric[rows + j]
    off = total - p.radius
    return FACE if off > slack * (p.radius + k * top) and off > worst * p.metric[rows + k] else found


@bare_inner_kernel
def look_across(work, place):
    """Write J' times a normal; return the square of its part in the directions that are still free, and of all of it."""
    k, q, rest, whole = work.d.size, work.sizes[IN_USE], 0.0, 0.0
    for j in range(k):
        work.across[j] = 0.0
    for i in range(k):
        if work.N[place, i] != 0.0:
            for j in range(k):
                work.across[j] += work.N[place, i] * work.J[i, j]
    for j in range(k):
        whole += work.across[j] ** 2
        rest += work.across[j] ** 2 if j >= q else 0.0
    return rest, whole


@bare_inner_kernel
def rotate_in(work, rest):
    """Add the normal that `look_across` has seen: a reflection turns its remainder into one number."""
    q, k, across, J = work.sizes[IN_USE], work.d.size, work.across, work.J
    size = -np.sqrt(rest) if across[q] > 0.0 else np.sqrt(rest)
    for j in range(q):
        work.R[q, j] = across[j]
    work.R[q, q] = size
    across[q] -= size
    square = rest + size * (size - 2.0 * (across[q] + size))
    for i in range(k):
        share = 0.0
        for j in range(q, k):
            share += J[i, j] * across[j]
        share *= 2.0 / square
        for j in range(q, k):
            J[i, j] -= share * across[j]
    work.sizes[IN_USE] = q + 1


@bare_inner_kernel
def rotate_out(work, place):
    """Remove the constraint at a place; rotations keep R triangular."""
    q, J, R = work.sizes[IN_USE] - 1, work.J, work.R
    for j in range(place, q):
        work.kinds[j], work.right[j], work.weights[j] = work.kinds[j + 1], work.right[j + 1], work.weights[j + 1]
        for i in range(work.d.size):
            work.N[j, i] = work.N[j + 1, i]
        for i in range(j + 2):
            R[j, i] = R[j + 1, i]
    for j in range(place, q):
        size = np.sqrt(R[j, j] ** 2 + R[j, j + 1] ** 2)
        c, s = R[j, j] / size, R[j, j + 1] / size
        for t in range(j, q):
            up, down = R[t, j], R[t, j + 1]
            R[t, j], R[t, j + 1] = c * up + s * down, c * down - s * up
        for i in range(work.d.size):
            left, right = J[i, j], J[i, j + 1]
            J[i, j], J[i, j + 1] = c * left + s * right, c * right - s * left
    work.sizes[IN_USE] = q


@bare_inner_kernel
def solve_upper(work):
    """Turn the first entries of r into R^-1 r."""
    for i in range(work.sizes[IN_USE] - 1, -1, -1):
        work.r[i] /= work.R[i, i]
        for j in range(i):
            work.r[j] -= work.R[i, j] * work.r[i]


@bare_inner_kernel
def recompute(p, work):
    """Compute d and the multipliers anew from the factor."""
    q, k, y = work.sizes[IN_USE], work.d.size, work.across
    for j in range(k):
        y[j] = 0.0
        for i in range(k):
            y[j] -= work.J[i, j] * p.g[i]
    for i in range(q):
        free, y[i] = y[i], work.right[i]
        for j in range(i):
            y[i] -= work.R[i, j] * y[j]
        y[i] /= work.R[i, i]
        work.r[i] = free - y[i]
    solve_upper(work)
    for i in range(q):
        work.weights[i] = work.r[i]
    for i in range(k):
        work.d[i] = row_with(work.J, i, y)
    for i in range(q):  # once more for the remainders, which J makes large if H is nearly singular
        y[i] = work.right[i] - row_with(work.N, i, work.d)
        for j in range(i):
            y[i] -= work.R[i, j] * y[j]
        y[i] /= work.R[i, i]
    for i in range(k):
        for j in range(q):
            work.d[i] += work.J[i, j] * y[j]


@bare_inner_kernel
def take_over(p, work):
    """Begin with the equations, and with inequalities that an earlier problem used; drop those that pull the wrong way."""
    given, work.sizes[IN_USE] = work.sizes[IN_USE], 0
    for i in range(given):
        q, kind = work.sizes[IN_USE], work.kinds[i]
        for j in range(work.d.size):
            work.N[q, j] = work.N[i, j]
        work.right[q] = p.radius - row_with(work.N, q, p.x) if kind == FACE else fill_normal(p, kind, work.N[q], work.d)
        rest, whole = look_across(work, q)
        if rest > SAME_AT_START * whole:
            work.kinds[q] = kind
            rotate_in(work, rest)
    while True:
        recompute(p, work)
        place, least = -1, 0.0
        for i in range(work.sizes[IN_USE]):
            least = min(least, -PULL_NOISE * abs(work.weights[i]))
        for i in range(work.sizes[IN_USE]):
            if not 0 <= work.kinds[i] < p.equations and work.weights[i] < least:
                place, least = i, work.weights[i]
        if place < 0:
            return
        rotate_out(work, place)


@bare_inner_kernel
def add_broken(p, work, kind):
    """Add a broken inequality; constraints that pull the wrong way leave. Return whether a point satisfies all of them."""
    weight, k, spare = 0.0, work.d.size, work.N.shape[0] - 1
    right = fill_normal(p, kind, work.N[spare], work.d)
    while True:
        q, room, place = work.sizes[IN_USE], np.inf, -1
        rest, whole = look_across(work, spare)
        for i in range(q):
            work.r[i] = work.across[i]
        solve_upper(work)
        for i in range(q):
            if work.r[i] > 0.0 and not 0 <= work.kinds[i] < p.equations and work.weights[i] < room * work.r[i]:
                room, place = max(work.weights[i], 0.0) / work.r[i], i
        full = max(row_with(work.N, spare, work.d) - right, 0.0) / rest if rest > SAME * whole else np.inf
        t = min(room, full)
        if t == np.inf:
            return False
        for i in range(k):
            for j in range(q, k if full < np.inf else q):
                work.d[i] -= t * work.J[i, j] * work.across[j]
        for i in range(q):
            work.weights[i] -= t * work.r[i]
        weight += t
        if full <= room:
            work.kinds[q], work.right[q], work.weights[q] = kind, right, weight
            for j in range(k):
                work.N[q, j] = work.N[spare, j]
            rotate_in(work, rest)
            return True
        rotate_out(work, place)


@bare
def dual_minimum(p, work, limit):
    """Minimise from the constraints in ``work``, at most ``limit`` constraints long; return whether this was enough."""
    take_over(p, work)
    fresh, slack = True, OFF
    for _ in range(limit):
        kind = most_broken(p, work.d, slack)
        if kind == NOT_BROKEN and fresh:
            return True
        added = kind != NOT_BROKEN and add_broken(p, work, kind)
        fresh = not added
        if fresh:  # anew, without the rounding errors of the way
            recompute(p, work)
            slack *= 1.0 if kind == NOT_BROKEN else 10.0
            if slack > LOOSEST:
                return False
    return False
