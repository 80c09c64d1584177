"""Equations with small whole numbers, solved in whole numbers of units, so that they hold in any order of summation.

The unit of row i is a power of two u_i such that all terms together are at most 2^mantissa u_i. The unit of entry j is U_j,
the largest u_i of its rows. Then x_j = U_j n_j, all sums are exact, and the equation is one of whole numbers:

    sum_j (a_ij U_j / u_i) n_j = b_i / u_i

An echelon form over the whole numbers gives the remainder of rounding to n to a few entries.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from extremal.rounding.totals import exact_sum, exact_unit
from extremal.support.kinds import MatrixLike

BITS = 10  # coefficients are whole numbers divided by 2^BITS, and at most 2^BITS
SPARE = 1 + 1e-6  # sums may grow by this factor, but not for a point that is already settled
LARGE_CHANGE = 2.0**20  # limit for changes; larger changes are not worth it
EQUATIONS_AT_ONCE = 300  # limit for the equations solved at once
REPAIRS = ((3, 0), (12, 0), (48, 0), (48, 4))  # entries of a row that may change, units that they may leave their bounds by
MOST_ENTRIES = 3000  # limit for these entries, over all rows


@dataclass(frozen=True)
class WholeEquations:
    """The equations of A x = b whose coefficients are whole numbers, after multiplication by a power of two."""

    A: sp.csr_array
    b: np.ndarray

    @classmethod
    def of(cls, A: Any, b: np.ndarray, dtype: np.dtype) -> WholeEquations:
        """Select these rows; their right sides are rounded to a float type."""
        A = sp.csr_array(A, dtype=np.float64, copy=True)
        A.eliminate_zeros()
        row, scale = np.repeat(np.arange(A.shape[0]), np.diff(A.indptr)), np.zeros(A.shape[0])
        for times in 2.0 ** np.arange(BITS, -1, -1):
            broken = np.unique(row[A.data * times != np.rint(A.data * times)])
            scale[np.setdiff1d(np.arange(A.shape[0]), broken)] = times
        large = np.unique(row[np.abs(A.data) * scale[row] > 2.0**BITS])
        kept = np.setdiff1d(np.flatnonzero(scale), large)
        right = np.asarray(b, np.float64).astype(dtype).astype(np.float64)
        return cls(sp.csr_array(sp.diags_array(scale) @ A)[kept], (scale * right)[kept])

    def units(self, x: np.ndarray, spare: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
        """u of the rows and U of the entries, 0 for entries that are in no row."""
        size = np.maximum(abs(self.A) @ np.abs(x.astype(np.float64)), np.abs(self.b))
        u, U = np.array([exact_unit(s * spare, x.dtype) for s in size.tolist()]), np.zeros(x.size)
        np.maximum.at(U, self.A.indices, np.repeat(u, np.diff(self.A.indptr)))
        return u, U

    def off(self, x: np.ndarray) -> np.ndarray:
        """A x - b, with each entry rounded once."""
        terms, ends = self.A.data * x.astype(np.float64)[self.A.indices], self.A.indptr
        return np.array([exact_sum(np.append(terms[ends[i] : ends[i + 1]], -c)) for i, c in enumerate(self.b)])

    def holds(self, x: np.ndarray) -> bool:
        """Whether the equations hold, in any order of summation if their right sides allow that."""
        if self.off(x).any():
            return False
        (u, _), wide = self.units(x), x.astype(np.float64)[self.A.indices]
        each = np.repeat(u, np.diff(self.A.indptr))
        coarse = np.unique(np.repeat(np.arange(len(u)), np.diff(self.A.indptr))[wide != np.rint(wide / each) * each])
        return not (self.b == np.rint(self.b / u) * u)[coarse].any()


def solved(A: MatrixLike, b: np.ndarray, x: np.ndarray, lo: np.ndarray, up: np.ndarray) -> np.ndarray:
    """x between bounds, with exact equations if they have solutions in whole numbers, and as near as possible otherwise.

    Examples
    --------
    >>> x = np.array([0.1, 0.2, 0.7])
    >>> y = solved(np.ones((1, 3)), np.ones(1), x, np.zeros(3), np.ones(3))
    >>> (x[2] + x[1]) + x[0] == 1, (y[2] + y[1]) + y[0] == 1
    (np.False_, np.True_)
    """
    rows = WholeEquations.of(A, b, x.dtype)
    if not 0 < len(rows.b) <= EQUATIONS_AT_ONCE or rows.holds(x):
        return x
    y = _on_grid(rows, x, lo, up)
    return y if np.abs(rows.off(y)).max() <= np.abs(rows.off(x)).max() else x


def _on_grid(rows: WholeEquations, x: np.ndarray, lo: np.ndarray, up: np.ndarray) -> np.ndarray:
    u, U = rows.units(x, SPARE)
    one = np.where(U > 0, U, 1.0)
    low, high = np.ceil(lo / one), np.floor(up / one)
    moved = (U > 0) & (low <= high)  # others are in no equation, or between bounds that are off the grid
    fixed = np.where(moved, 0.0, x.astype(np.float64))
    right = -rows.off(fixed) / u
    scaled = sp.csr_array(sp.diags_array(1 / u) @ rows.A @ sp.diags_array(np.where(moved, U, 0.0)))
    scaled.eliminate_zeros()
    n = np.where(moved, np.clip(np.rint(x.astype(np.float64) / one), low, high), 0.0)
    n = _balanced(scaled, np.rint(right) - scaled @ n, n, low, high)
    y = np.where(moved, n * one, x).astype(x.dtype)
    return _with_rests(rows, y, lo, up)


def _balanced(A: sp.csr_array, r: np.ndarray, n: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """n with A n increased by r, in all rows or as many as possible, by changes of a few entries that have room.

    Zeros stay zeros, and entries at a bound leave it only if nothing else works.
    """
    best, left = n, float(np.abs(r).sum())
    for each, inward in REPAIRS:
        start = np.where((n != 0) & (high - low > 2 * inward), np.clip(n, low + inward, high - inward), n)
        more, usable = r - A @ (start - n), (n != 0) & (low < start) & (start < high)
        while left and each * len(r) <= MOST_ENTRIES:
            columns = _roomy(A, usable, np.minimum(start - low, high - start), float(np.abs(more).sum()), each)
            new = start.copy()
            new[columns] += change_by(A[:, columns].toarray(), more)
            out = (new < low) | (new > high)
            if not out.any():
                rest = float(np.abs(r - A @ (new - n)).sum())
                best, left = (new, rest) if rest < left else (best, left)
                break
            usable &= ~out
    return best


def _roomy(A: Any, usable: np.ndarray, room: np.ndarray, need: float, each: int) -> np.ndarray:
    """For each row some entries to change: far from their bounds, with small coefficients, in few rows."""
    count = np.bincount(A.indices, minlength=len(room))
    found = []
    for i in range(A.shape[0]):
        where, size = A.indices[A.indptr[i] : A.indptr[i + 1]], np.abs(A.data[A.indptr[i] : A.indptr[i + 1]])
        where, size = where[usable[where]], size[usable[where]]
        order = np.lexsort((-room[where], count[where], size, room[where] < 4 * need))
        found.append(where[order[:each]])
    return np.unique(np.concatenate(found))


def change_by(B: np.ndarray, r: np.ndarray) -> np.ndarray:
    """Small whole numbers d with B d = r, for B and r of whole numbers, or as near as possible in rows without a solution.

    As in Euclid's algorithm, columns are subtracted from each other until each row has a column with zeros in the rows above
    (the column echelon form B V = H). Then H z = r is solved row by row, and d = V z. Columns v of V with B v = 0 finally make
    d shorter.

    Examples
    --------
    >>> change_by(np.array([[2.0, 3.0]]), np.array([1.0]))
    array([-1.,  1.])
    >>> change_by(np.array([[3.0, 3.0]]), np.array([1.0]))
    array([0., 0.])
    """
    (m, k), H = B.shape, B.copy()
    V, z, first = np.eye(k), np.zeros(k), 0
    for i in range(m):
        live = first + np.flatnonzero(H[i, first:])
        while len(live) > 1:
            j = live[np.argmin(np.abs(H[i, live]))]
            others = live[live != j]
            times = np.rint(H[i, others] / H[i, j])
            H[:, others] -= np.outer(H[:, j], times)
            V[:, others] -= np.outer(V[:, j], times)
            live = first + np.flatnonzero(H[i, first:])
        if max(np.abs(H).max(initial=0.0), np.abs(V).max(initial=0.0)) > LARGE_CHANGE:
            return np.zeros(k)
        if len(live):
            H[:, [first, live[0]]], V[:, [first, live[0]]] = H[:, [live[0], first]], V[:, [live[0], first]]
            z[first] = np.rint((r[i] - H[i, :first] @ z[:first]) / H[i, first])
            first += 1
    d = V @ z
    for v in V[:, first:].T:  # B v = 0
        d -= np.rint(d @ v / (v @ v)) * v
    return d if np.abs(d).max(initial=0.0) <= LARGE_CHANGE else np.zeros(k)


def _with_rests(rows: WholeEquations, x: np.ndarray, lo: np.ndarray, up: np.ndarray) -> np.ndarray:
    """x with the remainders of right sides modulo their unit, on small enough entries that are in no other row."""
    alone = np.bincount(rows.A.indices, minlength=x.size) == 1
    for i, off in enumerate(rows.off(x)):
        if off:
            cut = slice(rows.A.indptr[i], rows.A.indptr[i + 1])
            where, a = rows.A.indices[cut], rows.A.data[cut]
            y = (x[where].astype(np.float64) - off / a).astype(x.dtype)
            same = a * (y.astype(np.float64) - x[where]) == -off
            fits = same & alone[where] & (y >= lo[where]) & (y <= up[where])
            if fits.any():
                j = int(np.where(fits, np.abs(x[where]), np.inf).argmin())
                x[where[j]] = y[j]
    return x
