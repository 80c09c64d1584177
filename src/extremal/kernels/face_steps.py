"""One step within a face, for sets with one-entry vertices: its two vertices, its longest length, and the length to take."""

from __future__ import annotations

import math

from extremal.kernels.arguments import FAINTEST, FaceStep
from extremal.kernels.jit import bare, inlined


@inlined
def reach_of(faces, j):
    """The size of the vertices at coordinate j."""
    return faces.reach[j] if faces.reach.size > 1 else faces.reach[0]


@inlined
def spent(faces, x):
    """sum_j |x_j| / reach_j."""
    total = 0.0
    for j in range(x.size):
        if x[j] != 0.0:
            total += abs(x[j]) / reach_of(faces, j)
    return total


@bare
def step_in_face(faces, g, x):
    """The best vertex, the worst vertex of the face of x, and the longest step t <= 1 between them."""
    best, top = 0, -math.inf
    for j in range(g.size):
        score = (abs(g[j]) if faces.two_sided else -g[j]) * reach_of(faces, j)
        if score > top:
            best, top = j, score
    value = reach_of(faces, best)
    if faces.two_sided:
        value = -value if g[best] > 0.0 else value
    elif faces.origin and g[best] >= 0.0:
        best, value = 0, 0.0
    used, noise = spent(faces, x), faces.noise
    if faces.two_sided and used < 1.0 - noise:  # x lies inside: the whole set is its face
        opposite = value if g[best] != 0.0 else -value
        return FaceStep(best, value, best, -opposite, step_on_both_sides(faces, x, used, best, value, best, -opposite))
    worst, top, size = 0, -math.inf, 0.0
    for j in range(g.size):
        if (abs(x[j]) if faces.two_sided else x[j]) > noise * reach_of(faces, j):
            score = (g[j] if x[j] > 0.0 else -g[j]) * reach_of(faces, j)
            if score > top:
                worst, top = j, score
                size = reach_of(faces, j) if x[j] > 0.0 else -reach_of(faces, j)
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
def move(x, p, eta):
    """x <- x + eta t (s - a)."""
    x[p.s] += eta * p.t * p.up
    x[p.a] -= eta * p.t * p.down
