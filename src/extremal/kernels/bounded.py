"""A quadratic function of bounded variables: its arrays, its value and its derivatives. `active_set.py` minimises it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from extremal.kernels.factors import SUM_ROUNDING
from extremal.kernels.jit import inner_kernel, vectors
from extremal.kernels.rows import inner_product, row_with


class QuadraticProblem(NamedTuple):
    """A quadratic function, and the domain of its variables."""

    H: Any  # k x k, positive semidefinite, or an object with ``H @ d``; empty if there is a root
    root: np.ndarray  # k x r with H = root root': differences keep twice as many digits; empty if unknown
    g: np.ndarray  # k
    x: np.ndarray  # k
    place: np.ndarray  # the coordinate of each variable
    scale: np.ndarray  # the contribution of a variable of 1 to its coordinate; 0 for the origin
    lower: np.ndarray
    upper: np.ndarray
    tied: bool  # whether the variables sum to 1; they are then non-negative, without other bounds


class SingularProblem(NamedTuple):
    """The same problem in the form for singular systems, which takes twice as long to compile, and is seldom needed."""

    H: Any
    root: np.ndarray
    g: np.ndarray
    x: np.ndarray
    place: np.ndarray
    scale: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    tied: bool
    singular: bool = True


@vectors
def scattered(place, scale, w, size):
    """The point u of the variables w."""
    u = np.zeros(size)
    for a in range(w.size):
        u[place[a]] += scale[a] * w[a]
    return u


@vectors
def seen(place, scale, g, x, d, bent, square):
    """q at x + d, its derivatives in w, and the rounding error of the value; from Hd, and d'Hd if it is known better."""
    value, noise = 0.0, 0.0
    for j in range(d.size):
        value += d[j] * ((g[j] + 0.5 * bent[j]) if square < 0.0 else g[j])
        noise += abs(d[j]) * (abs(g[j]) + abs(bent[j])) + abs(x[j]) * abs(g[j] + bent[j])
    slopes = np.empty(place.size)
    for a in range(place.size):
        slopes[a] = scale[a] * (g[place[a]] + bent[place[a]])
    noise *= SUM_ROUNDING * max(1.0, 0.25 * np.sqrt(place.size))  # sums of many terms, as of all weights, err by more
    return value + max(0.5 * square, 0.0), slopes, noise


@inner_kernel
def combined(M, d):
    """M'd: the sum of d_j M_j over the rows with d_j != 0."""
    total = np.zeros(M.shape[1])
    for j in range(d.size):
        if d[j] != 0.0:
            for t in range(total.size):
                total[t] += d[j] * M[j, t]
    return total


@inner_kernel
def product(M, v):
    """M v."""
    found = np.empty(M.shape[0])
    for j in range(found.size):
        found[j] = row_with(M, j, v)
    return found


@inner_kernel
def offset_of(p, w):
    """d = u - x for the variables w."""
    d = scattered(p.place, p.scale, w, p.x.size)
    for j in range(d.size):
        d[j] -= p.x[j]
    return d


@inner_kernel
def value_at(p, w):
    """q(w), by one product with H; for arrays, only with the columns that w uses."""
    d = offset_of(p, w)
    if p.root.size > 0:
        along = combined(p.root, d)
        return inner_product(d, p.g) + 0.5 * inner_product(along, along)
    return inner_product(d, p.g) + 0.5 * inner_product(d, combined(p.H, d))


@inner_kernel
def look_at(p, w):
    """q(w), its derivatives, and the rounding error of the value: one product with H."""
    d = offset_of(p, w)
    if p.root.size > 0:
        along = combined(p.root, d)
        return seen(p.place, p.scale, p.g, p.x, d, product(p.root, along), inner_product(along, along))
    return seen(p.place, p.scale, p.g, p.x, d, combined(p.H, d), -1.0)
