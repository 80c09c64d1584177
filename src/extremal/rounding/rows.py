"""Polytopes: a point moves toward an inner point until every inequality holds in any order of summation."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from extremal.rounding.base import BROKEN, Pairs, broken, out_of, rounded_inward, settled
from extremal.rounding.equations import WholeEquations, solved
from extremal.rounding.totals import exact_sum, sum_to
from extremal.sets.polytopes.general import Polytope
from extremal.sets.polytopes.rows import ProgramRows, parts
from extremal.support import linalg

REPAIRED_ENTRIES = 4_000_000  # limit for the entries of equations; larger systems are left as they are
NUDGES = 8  # short steps back inside, each aimed twice as far as the last


@settled.register
def _(C: Polytope, x: np.ndarray) -> np.ndarray:
    """The point, or its positive and negative parts if these are the variables of the linear program."""
    if not C.folds:
        return _settled(C.lifted, C._program.size, x)
    z = _settled(C.lifted, C._program.size, parts(x))
    return z[: x.size] - z[x.size :]


def _settled(C: ProgramRows, size: float, x: np.ndarray) -> np.ndarray:
    """Move x to the bounds, next to the equations, and inside the inequalities; entries at a bound stay there if possible."""
    lo, up = rounded_inward(C.bounds[:, 0], C.bounds[:, 1], x.dtype)
    y = np.clip(x, lo, up)
    if C.A_eq is not None:
        rows = WholeEquations.of(C.A_eq, C.b_eq, x.dtype)
        if len(rows.b) < len(C.b_eq) or not rows.holds(y):
            y = _finished(C, _on_equations(C, y, lo, up), lo, up)
    y = _nudged(C, y, lo, up)
    over = _excess(C, y)
    if not (over > 0).any():
        return y
    for fixed in ((y == lo) | (y == up), lo == up):
        inner = _inner(C, size, np.where(fixed, y, lo), np.where(fixed, y, up))
        if inner is not None:
            bad = over > 0
            t = float((over[bad] / (over[bad] - np.minimum(_excess(C, inner)[bad], 0.0))).max())
            while t < 10 * BROKEN:
                z = _finished(C, np.clip((y + t * (inner - y)).astype(x.dtype), lo, up), lo, up)
                if not (_excess(C, z) > 0).any():
                    return z
                t = 2 * t + float(np.finfo(x.dtype).eps)
    return y


@broken.register
def _(C: Polytope, x: np.ndarray) -> Pairs:
    yield from out_of(x, C.bounds[:, 0], C.bounds[:, 1])
    x = parts(x) if C.folds else x
    rows, wide, size = C.lifted, x.astype(np.float64), C._program.size
    for A, b, equations in ((rows.A_ub, rows.b_ub, False), (rows.A_eq, rows.b_eq, True)):
        if A is None:
            continue
        near = np.arange(len(b)) if equations else np.flatnonzero(A @ wide - b + _rounding(A, wide) > 0)
        for i in near:
            row, where = _row(A, int(i))
            right = float(x.dtype.type(b[i])) if equations else b[i]
            off = exact_sum(np.append(row * wide[where], -right))
            scale = float(np.abs(row).max(initial=0.0)) * size + abs(float(b[i]))
            yield abs(off) if equations else max(0.0, off), scale


def _row(A: Any, i: int) -> tuple[np.ndarray, np.ndarray | slice]:
    """The entries of a row, and where they are."""
    if not sp.issparse(A):
        return A[i], slice(None)
    cut = slice(A.indptr[i], A.indptr[i + 1])
    return A.data[cut], A.indices[cut]


def _rounding(A: Any, x: np.ndarray) -> np.ndarray:
    """The largest possible rounding error of A x, in any order of summation."""
    count = np.diff(A.indptr) if sp.issparse(A) else (A != 0).sum(axis=1)
    return (count + 1) * float(np.finfo(np.float64).eps) * (abs(A) @ np.abs(x))


def _excess(C: ProgramRows, x: np.ndarray) -> np.ndarray:
    """A_ub x - b_ub, plus the largest possible rounding error."""
    wide = x.astype(np.float64)
    return np.zeros(0) if C.A_ub is None else C.A_ub @ wide - C.b_ub + _rounding(C.A_ub, wide)


def _nudged(C: ProgramRows, x: np.ndarray, lo: np.ndarray, up: np.ndarray) -> np.ndarray:
    """Move x by the shortest step that brings broken inequalities back; return x itself if such steps do not do.

    A point that rounding has left outside by 1e-13 moves as little. The way to an inner point may be a thousand times as long.
    """
    y, share = x, 1.0
    for _ in range(NUDGES):
        over = _excess(C, y)
        bad, free = over > 0, (y > lo) & (y < up)
        if not bad.any():
            return y
        if not free.any() or (bad.sum() + (0 if C.A_eq is None else len(C.b_eq))) * x.size > REPAIRED_ENTRIES:
            break
        rows = _full(C.A_ub[bad]) if C.A_eq is None else np.vstack([_full(C.A_ub[bad]), _full(C.A_eq)])
        off = np.append(share * over[bad], np.zeros(len(rows) - bad.sum()))  # equations stay as they are
        y = y.astype(np.float64)
        y[free] -= linalg.lstsq(rows[:, free], off)
        y, share = _finished(C, np.clip(y.astype(x.dtype), lo, up), lo, up), 2 * share
    return x


def _full(A: Any) -> np.ndarray:
    return np.asarray(A.toarray() if sp.issparse(A) else A)


def _on_equations(C: ProgramRows, x: np.ndarray, lo: np.ndarray, up: np.ndarray) -> np.ndarray:
    """x with the smallest changes that bring it nearer to the equations, as long as they do; zeros change only if needed."""
    if C.A_eq is None or C.A_eq.shape[0] * x.size > REPAIRED_ENTRIES:
        return x
    A = _full(C.A_eq)
    enough = _rounding(A, x.astype(np.float64)) + np.finfo(x.dtype).eps * (np.abs(C.b_eq) + abs(A) @ np.abs(x))
    for zeros in (False, True):
        x, off = _nearer(A, C.b_eq, x, lo, up, zeros)
        if (np.abs(off) <= enough).all():
            break
    return x


def _nearer(
    A: np.ndarray, b: np.ndarray, x: np.ndarray, lo: np.ndarray, up: np.ndarray, zeros: bool
) -> tuple[np.ndarray, np.ndarray]:
    """x after some corrections by least squares, and the remaining A x - b."""
    off = b - A @ x.astype(np.float64)
    for _ in range(5):
        free = (x > lo) & (x < up) & (zeros | (x != 0))
        if not off.any() or not free.any():
            break
        y = x.astype(np.float64)
        y[free] += linalg.lstsq(A[:, free], off)
        y = np.clip(y.astype(x.dtype), lo, up)
        rest = b - A @ y.astype(np.float64)
        if not np.abs(rest).max() < np.abs(off).max():
            break
        x, off = y, rest
    return x, off


def _finished(C: ProgramRows, x: np.ndarray, lo: np.ndarray, up: np.ndarray) -> np.ndarray:
    """x with exact equations, if their coefficients are whole numbers."""
    if C.A_eq is None:
        return x
    row = _row(C.A_eq, 0)[0]
    if len(C.b_eq) == 1 and len(row) == len(C.bounds) and (row == 1).all():  # the entries sum to a total
        return sum_to(x, lo, up, float(C.b_eq[0]))
    return solved(C.A_eq, C.b_eq, x, lo, up)


def _inner(C: ProgramRows, size: float, lower: np.ndarray, upper: np.ndarray) -> np.ndarray | None:
    """The point between bounds farthest from all inequalities, each divided by its norm; None if one is always tight."""
    from scipy.optimize import linprog

    A: Any = sp.csr_array(C.A_ub)
    norms = np.maximum(np.sqrt(np.asarray((A * A).sum(axis=1)).reshape(-1)), 1e-300)
    rows = sp.hstack([sp.diags_array(1 / norms) @ A, np.ones((A.shape[0], 1))])
    equations = None if C.A_eq is None else sp.hstack([sp.csr_array(C.A_eq), np.zeros((C.A_eq.shape[0], 1))])
    ends = np.column_stack([np.append(lower, 0.0), np.append(upper, size)])
    found = linprog(np.append(np.zeros(len(lower)), -1.0), rows, C.b_ub / norms, equations, C.b_eq, ends, method="highs")
    return found.x[:-1] if found.status == 0 and found.x[-1] > 1e-9 * size else None
