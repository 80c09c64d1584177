"""Entries of a matrix in factors, at given positions."""

from __future__ import annotations

import numpy as np

from extremal.kernels.jit import jit
from extremal.kernels.rows import inner_product


@jit
def entries(left, right, rows, cols, out):
    """out[t] += left[i]' right[k] with i = rows[t], k = cols[t]."""
    for t in range(rows.size):
        out[t] += inner_product(left[rows[t]], right[cols[t]])


@jit
def add_at(left, right, rows, cols, out):
    """out[t] += left[i] right[k] with i = rows[t], k = cols[t]."""
    for t in range(rows.size):
        out[t] += left[rows[t]] * right[cols[t]]


@jit
def arrange(keys, before, starts, order):
    """A stable counting sort of ``before`` by keys[before]: fill order, and starts[k], where key k begins."""
    for t in range(before.size):
        starts[keys[before[t]] + 1] += 1
    for k in range(1, starts.size):
        starts[k] += starts[k - 1]
    place = starts.copy()
    for t in range(before.size):
        k = keys[before[t]]
        order[place[k]] = before[t]
        place[k] += 1


@jit
def repeats(starts, indices):
    """The largest number of times that a row contains the same index; indices are sorted in each row."""
    most = 1
    for i in range(starts.size - 1):
        count = 1
        for e in range(starts[i] + 1, starts[i + 1]):
            count = count + 1 if indices[e] == indices[e - 1] else 1
            most = max(most, count)
    return most


@jit
def lookup(starts, indices, data, rows, cols, out):
    """out[t] = sum of the entries of row rows[t] whose index is cols[t]; indices are sorted in each row."""
    for t in range(rows.size):
        lo, hi = starts[rows[t]], starts[rows[t] + 1]
        e = lo + np.searchsorted(indices[lo:hi], cols[t])
        total = 0.0
        while e < hi and indices[e] == cols[t]:
            total += data[e]
            e += 1
        out[t] = total


@jit
def scatter(values, c, at):
    """values[at[t]] += c[t]."""
    for t in range(at.size):
        values[at[t]] += c[t]


@jit
def pick(values, order, out):
    """out[t] = values[order[t]]."""
    for t in range(order.size):
        out[t] = values[order[t]]
