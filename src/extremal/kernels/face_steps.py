"""One step within a face, for sets with one-entry vertices: its two vertices, its longest length, and the length to take."""

from __future__ import annotations

import math

import numpy as np
from numpy import uint64 as U

from extremal.kernels.arguments import FAINTEST, FaceStep
from extremal.kernels.jit import bare, elementwise, inlined

SCANNED = 64  # coordinates whose largest score is found in one vector loop
SIZE_BITS = 2**63 - 1  # all bits of a number except its sign: sizes are in the order of these bits, as whole numbers


@inlined
def reach_of(faces, j):
    """The size of the vertices at coordinate j."""
    return faces.reach[j] if faces.reach.size > 1 else faces.reach[0]


# the best vertex


@inlined
def score_bits(faces, g, j):
    """The score |g_j| reach_j as a whole number; one size for all changes no order."""
    score = g[j] * faces.reach[j] if faces.reach.size > 1 else g[j]
    return np.float64(score).view(np.int64) & SIZE_BITS


@elementwise
def top_bits(faces, g, first, last):
    """The largest score of some coordinates."""
    top = np.int64(0)
    for j in range(first, last):
        top = max(top, score_bits(faces, g, j))
    return top


@inlined
def best_size(faces, g):
    """The first coordinate with the largest |g_j| reach_j: the first block that has this score is searched."""
    at, top, first = U(0), np.int64(-1), U(0)
    while first < U(g.size):
        last = min(first + U(SCANNED), U(g.size))
        found = top_bits(faces, g, first, last)
        at, top = (first, found) if found > top else (at, top)
        first = last
    while score_bits(faces, g, at) != top:
        at += U(1)
    return np.int64(at)


@elementwise
def all_below(g, limit):
    """Whether |g_j| < limit for all j."""
    top = np.int64(0)
    for j in range(U(g.size)):
        top = max(top, np.float64(g[j]).view(np.int64) & SIZE_BITS)
    return top < np.float64(limit).view(np.int64)


@inlined
def best_descent(faces, g):
    """The first coordinate with the largest -g_j reach_j."""
    best, top = 0, -math.inf
    for j in range(g.size):
        score = -g[j] * reach_of(faces, j)
        if score > top:
            best, top = j, score
    return best


# the coordinates at which x is not 0, in the order in which x reached them; their number stands at the end of the list


@inlined
def list_support(x, support):
    """List them all, if their number is -1."""
    count = 0
    if support[-1] >= 0:
        return
    for j in range(x.size):
        support[count] = j
        count += 1 if x[j] != 0.0 else 0
    support[-1] = count


@inlined
def change(x, support, j, by):
    """x_j <- x_j + by."""
    before = x[j]
    x[j] = before + by
    if before == 0.0 and x[j] != 0.0:
        support[support[-1]] = j
        support[-1] += 1
    elif before != 0.0 and x[j] == 0.0:
        support[-1] -= 1
        r = 0
        while support[r] != j:
            r += 1
        support[r] = support[support[-1]]


@inlined
def worst_held(faces, g, x, support):
    """sum_j |x_j| / reach_j, and the first coordinate with the largest sign(x_j) g_j reach_j of those that x holds, with it."""
    used, worst, top = 0.0, 0, -math.inf
    for r in range(U(support[-1])):
        j = support[r]
        reach = reach_of(faces, j)
        share = x[j] / reach if faces.reach.size > 1 else x[j]
        used += abs(share)
        score = math.copysign(1.0, x[j]) * g[j] * reach
        held = (abs(x[j]) if faces.two_sided else x[j]) > faces.noise * reach
        if held and (score > top or (score == top and j < worst)):
            worst, top = j, score
    return used if faces.reach.size > 1 else used / faces.reach[0], worst, top


@bare
def step_in_face(faces, g, x, support):
    """The best vertex, the worst vertex of the face of x, and the longest step t <= 1 between them."""
    best = best_size(faces, g) if faces.two_sided else best_descent(faces, g)
    value = reach_of(faces, best)
    if faces.two_sided:
        value = -value if g[best] > 0.0 else value
    elif faces.origin and g[best] >= 0.0:
        best, value = 0, 0.0
    noise = faces.noise
    used, worst, top = worst_held(faces, g, x, support)
    size = 0.0 if top == -math.inf else math.copysign(reach_of(faces, worst), x[worst])
    if faces.two_sided and used < 1.0 - noise:  # x lies inside: the whole set is its face
        opposite = value if g[best] != 0.0 else -value
        return FaceStep(best, value, best, -opposite, step_on_both_sides(faces, x, used, best, value, best, -opposite))
    if faces.origin and 1.0 - used > noise and top < 0.0:
        worst, size = 0, 0.0
    if faces.two_sided:
        return FaceStep(best, value, worst, size, step_on_both_sides(faces, x, used, best, value, worst, size))
    t = 1.0
    if size > 0.0 and not (best == worst and value == size):
        t = min(t, max(x[worst], 0.0) / size)
    if size == 0.0 and value > 0.0:
        t = min(t, max(1.0 - used, 0.0))
    return FaceStep(best, value, worst, size, t)


@bare
def step_on_both_sides(faces, x, used, s, up, a, down):
    """The longest step from the vertex ``down`` e_a to ``up`` e_s for which sum_j |x_j| / reach_j stays within 1."""
    ws, wa = 1.0 / reach_of(faces, s), 1.0 / reach_of(faces, a)
    if s == a:
        d = up - down
        if d == 0.0:
            return 1.0
        rest = 1.0 - max(0.0, used - ws * abs(x[s]))
        return min(1.0, max(0.0, (rest / ws - (x[s] if d > 0.0 else -x[s])) / abs(d)))
    rest = 1.0 - max(0.0, used - ws * abs(x[s]) - wa * abs(x[a]))
    first, second = -x[s] / up, x[a] / down
    if first > second:
        first, second = second, first
    t = 0.0
    now = ws * abs(x[s]) + wa * abs(x[a])
    for end in (first, second, 1.0):
        if (end <= 0.0 or end >= 1.0) and end != 1.0:
            continue
        there = ws * abs(x[s] + end * up) + wa * abs(x[a] - end * down)
        if there > rest + faces.noise:
            return min(end, t + max(0.0, rest - now) / ((there - now) / (end - t)))
        t, now = end, there
    return t


@inlined
def length_of(model, faces, gap, h, p):
    """The share of the longest step that the self-concordant bound allows, before the share of the noise."""
    if p.s == p.a:
        M = faces.growth * faces.peaks[p.s] * abs(p.up - p.down) * p.t
    else:
        M = faces.growth * (faces.peaks[p.s] * abs(p.up) + faces.peaks[p.a] * abs(p.down)) * p.t
    h = max(h, FAINTEST)
    return math.log1p(M * (gap / h)) / M if M > 0.0 else gap / h


@inlined
def gap_of(g, p):
    """-<g, d> for d = t (s - a)."""
    return -(p.t * p.up * g[p.s] - p.t * p.down * g[p.a])


@inlined
def move(x, support, p, eta):
    """x <- x + eta t (s - a)."""
    change(x, support, p.s, eta * p.t * p.up)
    change(x, support, p.a, -eta * p.t * p.down)
