"""Minimise quadratic functions of bounded variables, with a fixed sum or not: one active-set Newton method.

    min q(w) = g'd + d'Hd / 2,   d = u - x,   u_j = the sum of scale_a w_a over the variables a with place_a = j
    over lower <= w <= upper, and sum w = 1 if the variables are ``tied``

One text has two forms: compiled, for arrays; and plain Python, for Hessians given by their products, with conjugate gradients
instead of a factor. extremal.quadratic.solver explains the form of q.
"""

from __future__ import annotations

from operator import matmul

import numpy as np

from extremal.kernels.bounded import look_at, scattered, value_at
from extremal.kernels.factors import SUM_ROUNDING, direction, hold, new_factor
from extremal.kernels.jit import as_python, inner_kernel, long_vectors, vectors
from extremal.kernels.rows import inner_product

NOTHING = 1e-25  # a weight of this size is rounding, even next to a weight near 1
PROMISING, PROMISING_ROW = 0.1, 0.5  # other weights enter if they promise this share of the largest promise; the same with a root
ENOUGH_LEFT = 0.1  # share of a step's decrease that is enough
GOING, DONE, STOPPED_SINGULAR = 0, 1, 2  # the variables may improve; they are final; a round needs a `SingularProblem`
FORCING = 0.1  # share of the residual at which conjugate gradients stop


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
def freed(w, slopes, place, scale, size, lower, upper, tied, share):
    """The variables that no bound holds: those in between, and those whose slopes lead inside; weights enter by promise.

    While the origin and one sign of a coordinate are in use, the other sign waits: these three lie on a line.
    """
    free, used = np.empty(w.size, np.bool_), np.zeros(size)
    level, best, origin = 0.0, 0.0, False
    if tied:
        for a in range(w.size):
            level += w[a] * slopes[a]
            if w[a] > 0.0:
                used[place[a]] = scale[a] if scale[a] != 0.0 else used[place[a]]
                origin = origin or scale[a] == 0.0
        for a in range(w.size):
            best = max(best, level - slopes[a] if w[a] <= 0.0 else 0.0)
    for a in range(w.size):
        if tied:
            waits = origin and used[place[a]] * scale[a] < 0.0
            free[a] = w[a] > 0.0 or (best > 0.0 and level - slopes[a] > share * best and not waits)
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
def cut_step(p, w, value, slopes, step):
    """The whole step, a half, a quarter, ... of it, cut off at the bounds; or the step to the first bound.

    The first candidate that is lower than the last one wins. The last one needs no evaluation: q is a parabola up to it.
    """
    stop = min(1.0, least_ratio(w, step, p.lower, p.upper))
    edge = value + (stop - 0.5 * stop * stop) * inner_product(slopes, step)
    t = 1.0
    while True:
        new = moved(w, step, max(t, stop), p.lower, p.upper, p.tied)
        if t <= stop or value_at(p, new) < edge:
            return new
        t = 0.5 * t if t > 0.01 else 0.0


@inner_kernel
def factored(p, factor, w, slopes):
    """The change of the free variables that minimises q without bounds; variables that it would take outside are dropped."""
    share = PROMISING if p.root.size == 0 else PROMISING_ROW
    free = freed(w, slopes, p.place, p.scale, p.x.size, p.lower, p.upper, p.tied, share)
    while True:
        hold(p, factor, w, slopes, free)
        step = direction(p, factor, w, slopes)
        if step.size == 0 or leave_misled(w, step, p.lower, p.upper, free) == 0:
            return step


def conjugate(p, factor, w, slopes):
    """The Newton step by conjugate gradients, with the diagonal of H as preconditioner.

    Variables that it would take outside stay. The rest of the step is used if it still descends, otherwise it is recomputed.
    """
    free = freed(w, slopes, p.place, p.scale, p.x.size, p.lower, p.upper, p.tied, PROMISING)
    diagonal = p.H.diagonal()
    while True:
        idx, step = np.flatnonzero(free), np.zeros(len(w))
        if len(idx) == 0:
            return step
        step[idx], share, flat = _conjugate(p, idx, slopes[idx], diagonal)
        if flat is not None and least_ratio(w, step, p.lower, p.upper) >= 1.0:
            step = _along_flat(p, w, step, idx, flat)
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
    """The step of these variables without their bounds, the share of each in a correction of the sum, and a flat direction.

    In a flat direction, q falls until a bound is met: its curvature is 0, or may be rounding. Without one, the last is None.
    """
    at, scale = p.place[idx], p.scale[idx]
    curves = diagonal[at] * scale * scale
    inverse = 1.0 / np.maximum(curves, max(1e-6 * float(curves.mean()), 1e-300))
    share = inverse / inverse.sum() if p.tied else np.zeros(len(idx))
    r, u = slopes - share @ slopes, np.zeros(len(idx))  # less their level, which would hide their differences
    z = inverse * r  # with sum 0, if the variables are tied
    along, rz = -z, r @ z
    target = FORCING**2 * rz
    for _ in range(p.H.longest):
        if rz <= target:
            break
        bent = scale * (p.H @ scattered(at, scale, along, p.x.size))[at]
        bend = along @ bent
        if not bend > SUM_ROUNDING * len(idx) * (along @ (along / inverse)):
            return u, share, along
        u += (rz / bend) * along
        r += (rz / bend) * bent
        r -= share @ r
        z = inverse * r
        rz, before = r @ z, rz
        along = -z + (rz / before) * along
    return u if u.any() else -z, share, None


def _along_flat(p, w, step, idx, flat):
    """The step, and on from its end along a flat direction to the first bound."""
    more = np.zeros(len(w))
    more[idx] = flat
    farthest = least_ratio(w + step, more, p.lower, p.upper)
    return step + (farthest if farthest < np.inf else 1.0) * more


@long_vectors
def descend(p, factor, w, tol, rounds):
    """Minimise until at most ``tol`` can be gained, or for ``rounds`` rounds; return the variables, and one of the codes above.

    Each round minimises q over the free variables, and stops them at bounds. No round increases q. The ``factor`` may already
    hold some of the variables.
    """
    value, slopes, left, new = np.inf, w, np.inf, w
    for turn in range(rounds + 1):
        then, after, noise = look_at(p, new)
        more = remaining(new, after, p.lower, p.upper, p.tied)
        other = more < 0.5 * left or stopped(w, new, p.lower, p.upper)
        if turn > 0 and not (then < value or (then <= value + noise and other)):
            return w, DONE
        w, value, slopes, left = new, then, after, more
        if left <= tol:
            return w, DONE
        if turn == rounds:
            break
        step = factored(p, factor, w, slopes)
        if step.size == 0:
            return w, STOPPED_SINGULAR
        new = cut_step(p, w, value, slopes, step)
    return w, GOING


def _offset(p, w):
    """`offset_of` for vectors that are long enough for numpy."""
    return scattered(p.place, p.scale, w, p.x.size) - p.x


_BY_PRODUCTS = {"factored": conjugate, "offset_of": _offset, "combined": matmul, "product": matmul, "inner_product": matmul}
*_, descended_by_products = as_python([look_at, value_at, cut_step, descend], **_BY_PRODUCTS)
[plain_factor] = as_python([new_factor])  # faster than a compiled call from Python
