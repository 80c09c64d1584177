"""Minimise quadratic functions of bounded variables, with a fixed sum or not: one active-set Newton method.

    min q(w) = g'd + d'Hd / 2,   d = u - x,   u_j = the sum of scale_a w_a over the variables a with place_a = j
    over lower <= w <= upper, and sum w = 1 if the variables are ``tied``

One text has two forms: compiled, for arrays; and plain Python, for Hessians given by their products, with conjugate gradients
instead of a factor. extremal.quadratic.solver explains the form of q.
"""

from __future__ import annotations

from operator import matmul
from typing import Any, NamedTuple

import numpy as np

from extremal.kernels.factors import SUM_ROUNDING, direction, hold, new_factor
from extremal.kernels.jit import as_python, inner_kernel, vectors

NOTHING = 1e-25  # a weight of this size is rounding, even next to a weight near 1
PROMISING, PROMISING_ROW = 0.1, 0.5  # other weights enter if they promise this share of the largest promise; the same with a root
ENOUGH_LEFT = 0.1  # share of a step's decrease that is enough
FORCING = 0.1  # share of the residual at which conjugate gradients stop


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
    return value + max(0.5 * square, 0.0), slopes, SUM_ROUNDING * noise


@vectors
def remaining(w, slopes, lower, upper, tied):
    """The largest possible gain: that of moving a unit of weight, or the gap if every variable has its own bounds."""
    top, low, gap = -np.inf, np.inf, 0.0
    for a in range(w.size):
        if tied:
            top, low = slopes[a] if w[a] > 0.0 and not top > slopes[a] else top, min(low, slopes[a])
        else:
            gap += max(slopes[a] * (w[a] - lower[a]), slopes[a] * (w[a] - upper[a]))
    return top - low if tied else gap


@vectors
def freed(w, slopes, lower, upper, tied, share):
    """The variables that no bound holds: those in between, and those whose slopes lead inside; weights enter by promise."""
    free, level, best = np.empty(w.size, np.bool_), 0.0, 0.0
    if tied:
        for a in range(w.size):
            level += w[a] * slopes[a]
        for a in range(w.size):
            best = max(best, level - slopes[a] if w[a] <= 0.0 else 0.0)
    for a in range(w.size):
        if tied:
            free[a] = w[a] > 0.0 or (best > 0.0 and level - slopes[a] > share * best)
        else:
            free[a] = not ((w[a] <= lower[a] and slopes[a] >= 0.0) or (w[a] >= upper[a] and slopes[a] <= 0.0))
    return free


@vectors
def leave_misled(w, step, lower, upper, free):
    """Hold the variables at a bound that a step would cross; return their number."""
    count = 0
    for a in range(w.size):
        if free[a] and ((w[a] <= lower[a] and step[a] < 0.0) or (w[a] >= upper[a] and step[a] > 0.0)):
            free[a] = False
            count += 1
    return count


@vectors
def least_ratio(w, step, lower, upper):
    """The ratio test: the multiple of the step at which a variable meets a bound; variables at a bound are ignored."""
    least = np.inf
    for a in range(w.size):
        if step[a] < 0.0 and w[a] > lower[a]:
            least = min(least, (lower[a] - w[a]) / step[a])
        if step[a] > 0.0 and w[a] < upper[a]:
            least = min(least, (upper[a] - w[a]) / step[a])
    return least


@vectors
def moved(w, step, t, lower, upper, tied):
    """w + t step between the bounds, with sum 1 if tied; a variable within rounding of a bound moves onto it."""
    new, total = np.empty(w.size), 0.0
    for a in range(w.size):
        near = SUM_ROUNDING * abs(t * step[a])
        new[a] = w[a] + t * step[a]
        new[a] = lower[a] if new[a] <= lower[a] + near and step[a] < 0.0 else new[a]
        new[a] = upper[a] if new[a] >= upper[a] - near and step[a] > 0.0 else new[a]
        new[a] = 0.0 if tied and new[a] <= NOTHING else new[a]
        total += new[a]
    if tied:
        for a in range(w.size):
            new[a] /= total
    return new


@vectors
def stopped(w, new, lower, upper):
    """Whether a variable moved from between its bounds to one of them."""
    found = False
    for a in range(w.size):
        found = found or (lower[a] < w[a] < upper[a] and not lower[a] < new[a] < upper[a])
    return found


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
def value_at(p, w):
    """q(w), by one product with H; for arrays, only with the columns that w uses."""
    d = scattered(p.place, p.scale, w, p.x.size) - p.x
    if p.root.size > 0:
        along = combined(p.root, d)
        return d @ p.g + 0.5 * (along @ along)
    return d @ (p.g + 0.5 * combined(p.H, d))


@inner_kernel
def look_at(p, w):
    """q(w), its derivatives, and the rounding error of the value: one product with H."""
    d = scattered(p.place, p.scale, w, p.x.size) - p.x
    if p.root.size > 0:
        along = combined(p.root, d)
        return seen(p.place, p.scale, p.g, p.x, d, p.root @ along, along @ along)
    return seen(p.place, p.scale, p.g, p.x, d, combined(p.H, d), -1.0)


@inner_kernel
def cut_step(p, w, value, slopes, step):
    """The whole step, a half, a quarter, ... of it, cut off at the bounds; or the step to the first bound.

    The first candidate that is lower than the last one wins. The last one needs no evaluation: q is a parabola up to it.
    """
    stop = min(1.0, least_ratio(w, step, p.lower, p.upper))
    edge = value + (stop - 0.5 * stop * stop) * (slopes @ step)
    t = 1.0
    while t > stop:
        new = moved(w, step, t, p.lower, p.upper, p.tied)
        if value_at(p, new) < edge:
            return new
        t = 0.5 * t if t > 0.01 else 0.0
    return moved(w, step, stop, p.lower, p.upper, p.tied)


@inner_kernel
def factored(p, factor, w, slopes):
    """The change of the free variables that minimises q without bounds; variables that it would take outside are dropped."""
    free = freed(w, slopes, p.lower, p.upper, p.tied, PROMISING if p.root.size == 0 else PROMISING_ROW)
    while True:
        hold(p, factor, w, slopes, free)
        step = direction(p, factor, w, slopes)
        if leave_misled(w, step, p.lower, p.upper, free) == 0:
            return step


def conjugate(p, factor, w, slopes):
    """The Newton step by conjugate gradients, with the diagonal of H as preconditioner.

    Variables that it would take outside stay. The rest of the step is used if it still descends, otherwise it is recomputed.
    """
    free, diagonal = freed(w, slopes, p.lower, p.upper, p.tied, PROMISING), p.H.diagonal()
    while True:
        idx, step = np.flatnonzero(free), np.zeros(len(w))
        if len(idx) == 0:
            return step
        step[idx], share = _conjugate(p, idx, slopes[idx], diagonal)
        fall = float(slopes @ step)
        if leave_misled(w, step, p.lower, p.upper, free) == 0:
            return step
        step[~free] = 0.0
        if p.tied:
            kept = np.where(free[idx], share, 0.0)
            step[idx] -= kept * (step.sum() / max(kept.sum(), 1e-300))
        if slopes @ step <= ENOUGH_LEFT * fall and leave_misled(w, step, p.lower, p.upper, free) == 0:
            d = scattered(p.place, p.scale, step, p.x.size)
            bend = float(d @ (p.H @ d))
            return step * (-float(slopes @ step) / bend) if bend > 0 else step  # to the minimiser of q along the step


def _conjugate(p, idx, slopes, diagonal):
    """The step of these variables without their bounds, and the share of each in a correction of the sum."""
    at, scale = p.place[idx], p.scale[idx]
    curves = diagonal[at] * scale * scale
    inverse = 1.0 / np.maximum(curves, max(1e-6 * float(curves.mean()), 1e-300))
    share = inverse / inverse.sum() if p.tied else np.zeros(len(idx))
    r, u = slopes.copy(), np.zeros(len(idx))
    z = inverse * (r - share @ r)  # with sum 0, if the variables are tied
    along, rz = -z, r @ z
    target = FORCING**2 * rz
    for _ in range(p.H.longest):
        if rz <= target:
            break
        bent = scale * (p.H @ scattered(at, scale, along, p.x.size))[at]
        bend = along @ bent
        if not bend > 0:
            break
        u += (rz / bend) * along
        r += (rz / bend) * bent
        z = inverse * (r - share @ r)
        rz, before = r @ z, rz
        along = -z + (rz / before) * along
    return u if u.any() else -z, share


@vectors
def descend(p, factor, w, tol, rounds):
    """Minimise until at most ``tol`` can be gained, or for ``rounds`` rounds; return the variables, and whether they are final.

    Each round minimises q over the free variables, and stops them at bounds. No round increases q. The ``factor`` may already
    hold some of the variables.
    """
    value, slopes, noise = look_at(p, w)
    left = remaining(w, slopes, p.lower, p.upper, p.tied)
    for _ in range(rounds):
        if left <= tol:
            break
        step = factored(p, factor, w, slopes)
        new = cut_step(p, w, value, slopes, step)
        then, after, noise = look_at(p, new)
        more = remaining(new, after, p.lower, p.upper, p.tied)
        other = more < 0.5 * left or stopped(w, new, p.lower, p.upper)
        if not (then < value or (then <= value + noise and other)):
            return w, True
        w, value, slopes, left = new, then, after, more
    return w, left <= tol


*_, descended_by_products = as_python([look_at, value_at, cut_step, descend], factored=conjugate, combined=matmul)
[plain_factor] = as_python([new_factor])  # faster than a compiled call from Python
