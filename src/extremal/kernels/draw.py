"""Batches of distinct rows from uniform numbers by Floyd's algorithm: O(b) for b rows; and random orders of all rows.

The r-th pick is uniform in [0, n - b + r]; if that index is taken, n - b + r itself is the pick. Taken indices are marked in
a bit set or, if there are too many indices, in a hash table.

Rows can be sorted by length: the processor then predicts where the loop over a row ends.
"""

from __future__ import annotations

from numpy import uint64 as U

from extremal.kernels.instructions import prefetch
from extremal.kernels.jit import bare, inlined
from extremal.kernels.rows import FAR

LENGTHS = 64  # rows with this many entries or more count as equally long
EMPTY = -1
MIX = 0x9E3779B97F4A7C15 >> 1  # an odd number with well mixed bits, for multiplicative hashing


@bare
def by_bits(u, n, taken, out):
    """out[t] = a uniform set of indices below n from the numbers u[t] in [0, 1); the bits are 0 before and after."""
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


@bare
def by_hashes(u, n, slots, out):
    """The same with a hash table, whose size is a power of two above b."""
    b, mask = u.shape[1], slots.size - 1
    for t in range(u.shape[0]):
        for i in range(slots.size):
            slots[i] = EMPTY
        for r in range(b):
            top = n - b + r
            pick = int(u[t, r] * (top + 1))
            if not insert(slots, mask, pick):
                pick = top
                insert(slots, mask, pick)
            out[t, r] = pick


@bare
def in_random_order(u, out):
    """out = 0, ..., n - 1 in an order that the numbers u_i in [0, 1) decide: number i takes the place of an earlier one."""
    for i in range(u.size):
        j = U(u[i] * (i + 1))
        out[i] = out[j]
        out[j] = i


@inlined
def insert(slots, mask, pick):
    """Insert a number into the hash table; return whether it was new."""
    at = ((pick * MIX) >> 20) & mask
    while slots[at] != EMPTY:
        if slots[at] == pick:
            return False
        at = (at + 1) & mask
    slots[at] = pick
    return True


@bare
def sort_by_length(indptr, flat, q, b, order):
    """order = flat[q : q + b], sorted by the number of entries: a counting sort, whose counts stand at the end of ``order``."""
    place = U(order.size - LENGTHS)
    for k in range(U(LENGTHS)):
        order[place + k] = 0
    for r in range(q, q + b):
        prefetch(indptr, U(flat[min(r + FAR, flat.size - 1)]))
        order[place + entries_in(indptr, flat[r])] += 1
    start = 0
    for k in range(U(LENGTHS)):
        count = order[place + k]
        order[place + k] = start
        start += count
    for r in range(q, q + b):
        k = place + entries_in(indptr, flat[r])
        at = order[k]
        order[k] = at + 1
        order[U(at)] = flat[r]


@inlined
def entries_in(indptr, i):
    """The number of entries of row i, LENGTHS - 1 at most."""
    return min(U(indptr[U(i) + U(1)]) - U(indptr[U(i)]), U(LENGTHS - 1))
