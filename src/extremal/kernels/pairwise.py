"""Pairwise steps on the weights of some atoms: a proximal problem over their hull."""

from __future__ import annotations

from extremal.kernels.jit import bare


@bare
def settle_pairs(gram, centre, first, beta, share, floor, limit, weights, slopes):
    """Move weight between pairs of atoms, by exact steps, until no move promises more than max(share * moved, floor).

    q(w) = <first, w> + beta/2 (w - centre)' gram (w - centre) over weights of sum 1, and moved = beta |V(w - centre)|^2. Weight
    goes from the atom in use with the largest slope to the one that lowers q most. ``weights`` and ``slopes`` (of q, there) are
    changed in place. Returns the number of steps, at most ``limit``: O(k) each.
    """
    k = weights.size
    for step in range(limit):
        low, high, moved = 0, -1, 0.0
        for i in range(k):
            if slopes[i] < slopes[low]:
                low = i
            if weights[i] > 0 and (high < 0 or slopes[i] > slopes[high]):
                high = i
            moved += (weights[i] - centre[i]) * (slopes[i] - first[i])
        if slopes[high] - slopes[low] <= max(share * moved, floor):
            return step
        to, length, most = low, weights[high], -1.0
        for i in range(k):
            fall = slopes[high] - slopes[i]
            if fall <= 0:
                continue
            curve = beta * (gram[i, i] + gram[high, high] - 2 * gram[i, high])
            t = weights[high] if curve * weights[high] <= fall else fall / curve
            gain = t * (fall - 0.5 * t * curve)
            if gain > most:
                to, length, most = i, t, gain
        weights[to] += length
        weights[high] = 0.0 if length == weights[high] else weights[high] - length
        for i in range(k):
            slopes[i] += beta * length * (gram[to, i] - gram[high, i])
    return limit
