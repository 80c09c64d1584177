"""Oracles of sets with simple vertices, on g = M + sigma V (a `ScaledPair`), for compiled loops.

A set is a small integer: PEAK for the l1 ball, WEIGHTED for one with weights, LEAST for the simplex, UNIT for the simplex
with 0, CORNER for boxes, FILL for boxes with a given sum. The first four have vertices at one coordinate, the one with the
largest score:

    PEAK |g_j|    WEIGHTED |g_j| / w_j    LEAST and UNIT -g_j        ties go to the smallest j

For large dimensions an index keeps upper bounds on the scores of blocks of 64 coordinates, and of blocks of 64 blocks. A bound
rises when a coordinate's score rises above it. It falls only when the oracle searches its block, which it does if the bound
exceeds the best score so far. M is constant between two changes of a coordinate, and sigma falls to 0. |M_j + sigma V_j| thus
stays below the larger of its value at the change and |M_j|: no bound becomes invalid.
"""

from __future__ import annotations

from numpy import int64
from numpy import uint64 as U

from extremal.kernels.arguments import LEAST, PEAK, SHIFT, UNIT, WEIGHTED, ScaledPair
from extremal.kernels.jit import bare, inlined


@inlined
def score(kind, value, weights, j):
    """The score of a coordinate with g_j = ``value``, which the oracle maximises."""
    if kind == PEAK:
        return abs(value)
    if kind == WEIGHTED:
        return abs(value) / weights[j]
    return -value


@inlined
def entry(g, j):
    """g_j = M_j + sigma V_j."""
    return g.G[U(j), 1] + g.sigma * g.G[U(j), 0]


@inlined
def best_of(oracle, g, lo, hi):
    """The first coordinate in [lo, hi) with the largest score, and the score."""
    if oracle.kind == PEAK:
        return scan(PEAK, g, oracle.lower, U(lo), U(hi))
    if oracle.kind == WEIGHTED:
        return scan(WEIGHTED, g, oracle.lower, U(lo), U(hi))
    return scan(LEAST, g, oracle.lower, U(lo), U(hi))


@inlined
def scan(kind, g, weights, lo, hi):
    """The same for a kind known at compile time: two searches side by side, each over every other coordinate."""
    one, two = U(1), U(2)
    at, other = lo, lo
    top, rival = score(kind, entry(g, lo), weights, lo), -1.0e308
    for j in range(lo + one, hi - one, two):
        found, next_one = score(kind, entry(g, j), weights, j), score(kind, entry(g, j + one), weights, j + one)
        at, top = (j, found) if found > top else (at, top)
        other, rival = (j + one, next_one) if next_one > rival else (other, rival)
    if (hi - lo) % two == U(0):
        found = score(kind, entry(g, hi - one), weights, hi - one)
        at, top = (hi - one, found) if found > top else (at, top)
    if rival > top or (rival == top and other < at):
        at, top = other, rival
    return int64(at), top


@inlined
def bound(oracle, g, j):
    """An upper bound on the score of a coordinate for this sigma and all smaller ones."""
    now = score(oracle.kind, entry(g, j), oracle.lower, j)
    return max(now, score(oracle.kind, g.G[U(j), 1], oracle.lower, j)) if g.two else now


@bare
def group_bound(blocks, Q):
    """The largest bound in group Q of blocks."""
    top = -1.0e308
    for B in range(Q << SHIFT, min((Q + 1) << SHIFT, blocks.size)):
        top = max(top, blocks[B])
    return top


@inlined
def lift(oracle, g, j):
    """Raise the bounds of coordinate j after it has changed."""
    top = bound(oracle, g, j)
    if top > oracle.blocks[j >> SHIFT]:
        oracle.blocks[j >> SHIFT] = top
        if top > oracle.groups[j >> (2 * SHIFT)]:
            oracle.groups[j >> (2 * SHIFT)] = top


@bare
def rebuild_index(oracle, g):
    """Recompute all bounds of the index."""
    for B in range(oracle.blocks.size):
        oracle.blocks[B] = -1.0e308
    for Q in range(oracle.groups.size):
        oracle.groups[Q] = -1.0e308
    for j in range(g.G.shape[0]):
        lift(oracle, g, j)


@inlined
def best(oracle, g):
    """The first coordinate with the largest score, and the score: by a scan of all coordinates, or by the index."""
    return best_by_index(oracle, g) if oracle.groups.size else best_of(oracle, g, 0, g.G.shape[0])


@bare
def best_by_index(oracle, g):
    """The same by the index."""
    at, top, blocks, groups = 0, -1.0e308, oracle.blocks, oracle.groups
    first = highest(groups, 0, groups.size)
    B = highest(blocks, first << SHIFT, min((first + 1) << SHIFT, blocks.size))
    at, top = look_at_block(oracle, g, B, at, top)
    for Q in range(groups.size):  # all groups that may be better, or as good and earlier
        if groups[Q] < top or (groups[Q] == top and (Q << (2 * SHIFT)) > at):
            continue
        for B in range(Q << SHIFT, min((Q + 1) << SHIFT, blocks.size)):
            if blocks[B] > top or (blocks[B] == top and (B << SHIFT) < at):
                at, top = look_at_block(oracle, g, B, at, top)
        groups[Q] = group_bound(blocks, Q)
    return at, top


@bare
def highest(a, lo, hi):
    """The position of the largest entry of a[lo:hi]."""
    at = lo
    for i in range(lo, hi):
        if a[i] > a[at]:
            at = i
    return at


@bare
def look_at_block(oracle, g, B, at, top):
    """Search block B, and make its bound tight."""
    lo, hi = B << SHIFT, min((B + 1) << SHIFT, g.G.shape[0])
    j, found = best_of(oracle, g, lo, hi)
    if found > top or (found == top and j < at):
        at, top = j, found
    oracle.blocks[B] = max(found, best_of(oracle, ScaledPair(g.G, True, 0.0), lo, hi)[1]) if g.two else found
    return at, top


@inlined
def coordinate(oracle, g, at, top):
    """The vertex's value at coordinate ``at``, given the best score; the simplex with 0 returns 0 if no g_j is negative."""
    if oracle.kind == LEAST:
        return oracle.size
    if oracle.kind == UNIT:
        return oracle.size if top > 0 else 0.0
    length = oracle.size / oracle.lower[at] if oracle.kind == WEIGHTED else oracle.size
    return -length if entry(g, at) > 0 else length


@bare
def corner(oracle, g, s):
    """s_j = lower_j where g_j > 0 and upper_j elsewhere; bounds are arrays, or one number for all."""
    for j in range(s.size):
        s[j] = bound_of(oracle.lower, j) if entry(g, j) > 0 else bound_of(oracle.upper, j)


@bare
def fill_budget(oracle, g, s):
    """s = lower, plus the amount ``size`` spent where g is smallest, up to upper_j on entry j; ties go to the smallest j.

    The method is a quickselect by the cost of the cheaper entries, O(d) on average. If the entries before the pivot use up the
    amount, only these are searched again; if not, they and the pivot are filled. Bounds are arrays, or one number for all.
    """
    lower, upper, order = oracle.lower, oracle.upper, oracle.order
    for j in range(s.size):
        order[j] = j
        s[j] = bound_of(lower, j)
    lo, hi, left = 0, s.size, oracle.size
    while lo < hi and left > 1e-13 * oracle.size:
        pivot = partition(g, order, lo, hi)
        cost = 0.0
        for i in range(lo, pivot):
            cost += bound_of(upper, order[i]) - bound_of(lower, order[i])
        if cost >= left:
            hi = pivot
            continue
        for i in range(lo, pivot + 1):
            j = order[i]
            part = min(bound_of(upper, j) - bound_of(lower, j), left)
            s[j] = min(s[j] + part, bound_of(upper, j))
            left -= part
        lo = pivot + 1


@inlined
def bound_of(bounds, j):
    """Entry j of the bounds, which are an array or one number for all."""
    return bounds[j] if bounds.size > 1 else bounds[0]


@bare
def partition(g, order, lo, hi):
    """Partition order[lo:hi] around a pivot, cheaper entries first; return the position of the pivot."""
    middle = lo + (hi - lo) // 2
    order[middle], order[hi - 1] = order[hi - 1], order[middle]
    pivot = order[hi - 1]
    price = entry(g, pivot)
    place = lo
    for i in range(lo, hi - 1):
        j = order[i]
        here = entry(g, j)
        if here < price or (here == price and j < pivot):
            order[i], order[place] = order[place], j
            place += 1
    order[hi - 1], order[place] = order[place], pivot
    return place
