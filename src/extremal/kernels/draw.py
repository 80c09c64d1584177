"""Batches of distinct rows, from uniform numbers."""

from __future__ import annotations

from numpy import uint64 as U

from extremal.kernels.jit import bare


@bare
def distinct(u, n, taken, out):
    """out[t] = a uniform set of indices below n, by Floyd's algorithm from the numbers u[t] in [0, 1): O(b) for b of them.

    The r-th pick is uniform in [0, n - b + r]; if that is taken, n - b + r itself is the pick. ``taken`` has a bit for every
    index, all 0 before and after.
    """
    b = u.shape[1]
    for t in range(u.shape[0]):
        for r in range(b):
            top = n - b + r
            pick = U(u[t, r] * (top + 1))
            if (taken[pick >> U(6)] >> (pick & U(63))) & U(1):
                pick = U(top)
            taken[pick >> U(6)] |= U(1) << (pick & U(63))
            out[t, r] = pick
        for r in range(b):
            taken[U(out[t, r]) >> U(6)] = U(0)
