"""Pieces of a constraint joined to one region, and the set that has an oracle for the region."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from extremal.checks import InputError
from extremal.sets.base import ConvexSet
from extremal.sets.norms.balls import L1Ball
from extremal.sets.norms.bounded_l1 import BoundedL1Ball
from extremal.sets.polytopes.general import Polytope
from extremal.sets.simplices.boxes import BudgetBox, CappedSimplex
from extremal.sets.simplices.chains import Monotone
from extremal.sets.simplices.plain import Box, Simplex, UnitSimplex
from extremal.sets.words.pieces import Features, Piece, refused

JOINED = "These can be joined: bounds, signs, linear inequalities, monotone, simplex and l1; other balls stand alone"


@dataclass(frozen=True)
class Region:
    """{w : lower <= w <= upper, sum w = total, |w|_1 <= radius, w in order, below <= A w <= above}; None for no constraint."""

    text: str
    features: Features
    lower: np.ndarray  # one per coefficient, infinite for no bound
    upper: np.ndarray
    total: float | None
    radius: float | None
    chain: int
    A: Any  # sparse, possibly without rows
    below: np.ndarray
    above: np.ndarray

    def built(self, lower: np.ndarray, upper: np.ndarray) -> ConvexSet:
        """The set, with bounds that may be tighter than those of the region."""
        shape = self.features.shape
        if self.A.shape[0] or not self._plain(lower, upper):
            return self._polytope(lower, upper)
        if self.chain:
            return Monotone(float(lower[0]), float(upper[0]), self.chain > 0, shape)
        if self.total is not None:
            return _budget(lower, upper, self.total, shape)
        if self.radius is not None:
            return _ball(lower, upper, self.radius, shape)
        return Box(lower.reshape(shape), upper.reshape(shape))

    @cached_property
    def ends(self) -> tuple[np.ndarray, np.ndarray]:
        """Bounds that follow from all constraints except the inequalities."""
        lower, upper = self.lower, self.upper
        if self.chain:
            lower, upper = lower[:: self.chain], upper[:: self.chain]
            lower, upper = np.maximum.accumulate(lower), np.minimum.accumulate(upper[::-1])[::-1]
            lower, upper = lower[:: self.chain], upper[:: self.chain]
        if self.radius is not None:
            lower, upper = np.maximum(lower, -self.radius), np.minimum(upper, self.radius)
        if self.total is not None:
            others = np.array([_others(lower, -np.inf), _others(upper, np.inf)])
            lower, upper = np.maximum(lower, self.total - others[1]), np.minimum(upper, self.total - others[0])
        return lower, upper

    @property
    def limits(self) -> tuple[np.ndarray, np.ndarray]:
        """The given bounds, and implied bounds where none are given; an order implies bounds for all."""
        if self.chain:
            return self.ends
        return tuple(np.where(np.isfinite(own), own, end) for own, end in zip((self.lower, self.upper), self.ends, strict=True))  # type: ignore[return-value]

    @cached_property
    def bounded(self) -> bool:
        """Whether the constraint by itself bounds all coefficients; refuse it if no coefficients satisfy it."""
        if not self.A.shape[0] and self._plain(*self.limits):
            return bool(np.isfinite(self.limits).all())
        try:
            self._polytope(*self.limits)
        except InputError as error:
            if "must be bounded" in str(error):
                return False
            raise refused(self.text, "no coefficients satisfy all of it", "Remove or loosen one part") from None
        return True

    @cached_property
    def least(self) -> float:
        """min over feasible w of max_j |w_j|, for an unbounded constraint."""
        from scipy.optimize import linprog

        size = self.features.size
        if not self.A.shape[0] and self.total is None:
            return 0.0
        (upto, b, eq, c), eye = self._inequalities(), sp.eye_array(size)
        found = linprog(
            np.append(np.zeros(size), 1.0),
            sp.hstack([sp.vstack([upto, eye, -eye]), np.append(np.zeros(len(b)), -np.ones(2 * size)).reshape(-1, 1)]),
            np.append(b, np.zeros(2 * size)),
            sp.hstack([eq, np.zeros((len(c), 1))]),
            c,
            [*zip(*self.ends, strict=True), (0, None)],
            method="highs",
        )
        return float(found.fun) if found.status == 0 else 0.0

    def _plain(self, lower: np.ndarray, upper: np.ndarray) -> bool:
        """Whether a set other than a polytope suffices."""
        if self.chain:
            one = (lower == lower[0]).all() and (upper == upper[0]).all()
            return bool(one) and self.total is None and self.radius is None
        return self.total is None or self.radius is None

    def _inequalities(self) -> tuple[Any, np.ndarray, Any, np.ndarray]:
        """A_ub, b_ub, A_eq, b_eq, possibly without rows, and without the l1 norm."""
        size, rows, below, above = self.features.size, [self.A], [self.below], [self.above]
        if self.total is not None:
            rows, below, above = [*rows, sp.csr_array(np.ones((1, size)))], [*below, [self.total]], [*above, [self.total]]
        if self.chain and size > 1:
            steps = sp.eye_array(size - 1, size, k=1) - sp.eye_array(size - 1, size)
            rows, below, above = [*rows, self.chain * steps], [*below, np.zeros(size - 1)], [*above, np.full(size - 1, np.inf)]
        A, low, high = sp.csr_array(sp.vstack(rows)), np.concatenate(below), np.concatenate(above)
        equal = low == high
        up, down = ~equal & np.isfinite(high), ~equal & np.isfinite(low)
        return sp.csr_array(sp.vstack([A[up], -A[down]])), np.append(high[up], -low[down]), A[equal], high[equal]

    def _polytope(self, lower: np.ndarray, upper: np.ndarray) -> ConvexSet:
        if len(self.features.shape) > 1:
            reason = (
                f"a combination that needs linear programs is for one output, not coefficients of shape {self.features.shape}"
            )
            raise refused(self.text, reason, JOINED)
        A, b, equations, c = self._inequalities()
        return _program(A, b, equations, c, lower, upper, self.radius)


def _program(
    A: Any, b: np.ndarray, equations: Any, c: np.ndarray, lower: np.ndarray, upper: np.ndarray, radius: float | None
) -> Polytope:
    rows = {} if not len(b) else {"A_ub": A, "b_ub": b}
    rows |= {} if not len(c) else {"A_eq": equations, "b_eq": c}
    return Polytope(**rows, bounds=np.column_stack([lower, upper]), radius=radius)


def _others(bound: np.ndarray, end: float) -> np.ndarray:
    """For each entry, the sum of all other bounds; ``end`` if one of them is infinite."""
    finite = np.isfinite(bound)
    missing = np.count_nonzero(~finite)
    rest = bound[finite].sum() - np.where(finite, bound, 0.0)
    return np.where(missing - ~finite > 0, end, rest)


def _budget(lower: np.ndarray, upper: np.ndarray, total: float, shape: tuple[int, ...]) -> ConvexSet:
    if total > 0 and not lower.any():
        if (upper >= total).all():
            return Simplex(total, shape)
        return CappedSimplex(upper.reshape(shape), total)
    return BudgetBox(lower.reshape(shape), upper.reshape(shape), total)


def _ball(lower: np.ndarray, upper: np.ndarray, radius: float, shape: tuple[int, ...]) -> ConvexSet:
    wide = (upper >= radius).all()
    if wide and (lower <= -radius).all():
        return L1Ball(radius, shape=shape)
    if wide and not lower.any():
        return UnitSimplex(radius, shape)
    return BoundedL1Ball(radius, lower.reshape(shape), upper.reshape(shape))


def joined_regions(pieces: list[Piece], features: Features, text: str) -> Region:
    """The region of all pieces, or an error that says why it does not exist."""
    if any(piece.alone for piece in pieces):
        one = next(piece for piece in pieces if piece.alone)
        others = " & ".join(piece.text for piece in pieces if piece is not one)
        raise refused(text, f"{one.text} cannot be joined with {others}: there is no oracle for both", JOINED)
    bounds = [p for p in pieces if p.lower is not None or p.upper is not None]
    lower = np.max([np.full(features.size, -np.inf), *(p.lower for p in bounds if p.lower is not None)], axis=0)
    upper = np.min([np.full(features.size, np.inf), *(p.upper for p in bounds if p.upper is not None)], axis=0)
    totals, chains = {p.total for p in pieces if p.total is not None}, {p.chain for p in pieces if p.chain}
    if len(totals) > 1:
        raise refused(text, f"coefficients cannot sum to {' and to '.join(map(str, sorted(totals)))}", "Give one total")
    if len(chains) > 1:
        raise refused(text, "coefficients that neither fall nor rise are all equal", "Give one order")
    radii = [p.radius for p in pieces if p.l1 and p.radius is not None]
    rows = [(sp.csr_array((0, features.size)), [], []), *(p.rows for p in pieces if p.rows is not None)]
    A = sp.csr_array(sp.vstack([part[0] for part in rows]))
    below, above = (np.concatenate([part[k] for part in rows]) for k in (1, 2))
    region = Region(
        text, features, lower, upper, totals.pop() if totals else None, min(radii, default=None),
        chains.pop() if chains else 0, A, below, above,
    )  # fmt: skip
    region = _simpler(region)
    _refuse_crossed(region, pieces)
    _refuse_sums(region)
    _refuse_empty(region)
    one_sign = (region.lower >= 0).all() or (region.upper <= 0).all()
    return replace(region, radius=None) if one_sign and region.total is not None else region  # the total is the l1 norm


def _simpler(r: Region) -> Region:
    """Turn rows with one coefficient into bounds, and rows with equal coefficients into totals and budgets."""
    r.A.eliminate_zeros()
    lower, upper, total, radius = r.lower.copy(), r.upper.copy(), r.total, r.radius
    count, kept = np.diff(r.A.indptr), np.ones(r.A.shape[0], bool)
    for i in np.flatnonzero(count <= 1):
        kept[i] = False
        if count[i] == 0:
            if not r.below[i] <= 0 <= r.above[i]:
                raise refused(r.text, f"a row of zeros says {r.below[i]:g} <= 0 <= {r.above[i]:g}", "Remove that row")
            continue
        j, a = int(r.A.indices[r.A.indptr[i]]), float(r.A.data[r.A.indptr[i]])
        low, high = sorted((r.below[i] / a, r.above[i] / a))
        lower[j], upper[j] = max(lower[j], low), min(upper[j], high)
    for i in np.flatnonzero(count == r.features.size) if r.features.size > 1 else ():
        values = r.A.data[r.A.indptr[i] : r.A.indptr[i + 1]]
        if kept[i] and (values == values[0]).all():
            low, high = sorted((r.below[i] / values[0], r.above[i] / values[0]))
            if low == high and total in (None, low):
                total, kept[i] = float(low), False
            elif (lower >= 0).all() and low <= 0 and 0 < high < math.inf:
                radius, kept[i] = min(high, radius or math.inf), False
    rows = {"A": r.A[kept], "below": r.below[kept], "above": r.above[kept]}
    return replace(r, lower=lower, upper=upper, total=total, radius=radius, **rows)


def _refuse_crossed(r: Region, pieces: list[Piece]) -> None:
    crossed = np.flatnonzero(r.lower > r.upper)
    if len(crossed):
        j = int(crossed[0])
        said = [p.text for p in pieces if _ends_at(p.lower, j, r.lower) or _ends_at(p.upper, j, r.upper)]
        by = f" (by {' and '.join(said)})" if len(said) > 1 else ""
        raise refused(
            r.text, f"{r.features.name(j)} cannot be at least {r.lower[j]:g} and at most {r.upper[j]:g}{by}", "Loosen one"
        )


def _refuse_empty(r: Region) -> None:
    """Refuse implied bounds that cross."""
    lower, upper = r.ends
    crossed = np.flatnonzero(lower > upper + 1e-9 * np.maximum(np.abs(lower), np.abs(upper)))
    if len(crossed):
        j = int(crossed[0])
        reason = f"no coefficients satisfy it: {r.features.name(j)} would be at least {lower[j]:g} and at most {upper[j]:g}"
        raise refused(r.text, reason, "Loosen a bound, the total or the radius")


def _ends_at(bound: np.ndarray | None, j: int, common: np.ndarray) -> bool:
    return bound is not None and math.isfinite(bound[j]) and bound[j] == common[j]


def _refuse_sums(r: Region) -> None:
    """Refuse totals and radii that the bounds do not allow."""
    least, most = float(r.lower.sum()), float(r.upper.sum())
    if r.total is not None and not least - 1e-9 * abs(least) <= r.total <= most + 1e-9 * abs(most):
        raise refused(r.text, f"coefficients between their bounds sum to {least:g} to {most:g}, not to {r.total:g}", "Loosen one")
    if r.radius is not None:
        needed = max(float(np.abs(np.clip(0.0, r.lower, r.upper)).sum()), abs(r.total or 0.0))
        if needed > r.radius * (1 + 1e-12):
            reason = f"magnitudes between the bounds sum to at least {needed:g}, more than the radius {r.radius:g}"
            raise refused(r.text, reason, "Loosen a bound, or give a larger radius")
