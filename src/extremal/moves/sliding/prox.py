"""The proximal sub-problem of a sliding step: by linear minimisations over kept atoms, or by a projection."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal import checks
from extremal.checks import NonFiniteError, UnsolvedError
from extremal.moves.base import MoveOracle
from extremal.objectives.base import Objective
from extremal.points.active import ActiveSet, rebuilt
from extremal.points.iterates import freeze, inner, toward
from extremal.points.matrix import Iterate
from extremal.points.vertex import Vertex
from extremal.quadratic.solver import Hull, displacement, settle_atoms
from extremal.sets.base import ConvexSet

PRODUCT_ROUNDING = 4  # a gap below this many units in the last place of the largest product is rounding
IDLE_ATOMS = 200  # atoms without weight are dropped if they outnumber those with weight by more than this
TEST_ROWS = 10  # least number of rows in a test of the curvature


@dataclass(frozen=True)
class Solver:
    """The solver of sub-problems, with its accuracy.

        u = argmin over the set of q(u) = <g, u> + beta/2 |u - centre|^2,   to
        max over s in the set of <grad q(u), u - s> <= max(accuracy beta |u - centre|^2, tol)

    By atoms, the solver finds the best weights of the known atoms from the weights of the centre; this needs only their inner
    products. Then the oracle either proves that the gap is small enough, or answers with a new atom. A step thus costs one
    LMO, and one per new atom. By projection, u = project(centre - g / beta).

    References
    ----------
    Wolfe (1976), Finding the nearest point in a polytope; Lacoste-Julien, Jaggi (2015), arXiv:1511.05932.
    """

    accuracy: float
    onto: ConvexSet | None
    limit: int
    tol: float = 0.0  # unless 0, a sub-problem that takes more LMOs than ``limit`` is an error

    def __call__(self, C: MoveOracle, g: np.ndarray, centre: Iterate, hull: Hull | None, beta: float) -> tuple[Any, Hull | None]:
        """Return u, and its atoms if there are any; ``hull`` holds those of the centre, None if there are none yet."""
        if not checks.all_finite(g):
            raise NonFiniteError("the gradient estimate has a NaN or an infinite entry")
        if self.onto is None:
            return self._by_atoms(C, g, centre, hull, beta)
        beta = max(beta, float(np.abs(g).max()) / float(np.finfo(g.dtype).max) ** 0.25)  # keep g / beta from overflowing
        nearest = self.onto.project(centre - g / beta)  # type: ignore[attr-defined]
        return freeze(nearest.astype(centre.dtype, copy=False)), None

    def _by_atoms(self, C: MoveOracle, g: np.ndarray, centre: Iterate, hull: Hull | None, beta: float) -> tuple[Any, Hull]:
        hull, asked = (first_hull(C, g, centre), 1) if hull is None else (hull, 0)
        first = hull.atoms.dots(g).astype(np.float64)
        floor = PRODUCT_ROUNDING * float(np.finfo(centre.dtype).eps) * float(np.abs(first).max())
        weights, slopes = settle_atoms(hull, first, beta, floor, hull.atoms.weights)
        while asked < self.limit:
            change = weights - hull.atoms.weights
            slope = g + beta * displacement(centre, hull.atoms, change) if change.any() else g
            s, asked = C.lmo(slope), asked + 1
            gap, there = float(weights @ slopes), s.dot(slope)
            if gap - there <= max(self.accuracy * float(change @ (slopes - first)), floor, self.tol):
                break
            if hull.atoms.find(s) is not None:
                break  # the weights are as good as possible: the rest is rounding
            used = (weights > 0) | (hull.atoms.weights > 0)
            if len(used) > IDLE_ATOMS + 2 * np.count_nonzero(used):
                hull, first, weights = hull.only(used), first[used], weights[used]
            hull, first = hull.with_atom(s), np.append(first, s.dot(g))
            weights, slopes = settle_atoms(hull, first, beta, floor, np.append(weights, 0.0))
        else:
            if self.tol > 0:
                raise UnsolvedError(f"a proximal sub-problem took {asked} LMOs without reaching its tolerance {self.tol:.1e}")
        new = hull.with_weights(weights)
        return rebuilt(centre, new.atoms), new


@dataclass(frozen=True)
class Probe:
    """A weight of the proximal term that follows the curvature of some rows between x and the next point u.

        beta = factor * L,   L >= n(b - 1)/(b(n - 1)) |mean_i d_i| / |u - x| + 2V,   d_i = grad f_i(u) - grad f_i(x),
        V = (n - b)/(b(n - 1)) mean_i |d_i|^2 / mean_i |<d_i, u - x>|,   means over random rows

    If a test finds L too small, L is doubled (or set to the value found, if that is larger) and the step is repeated. Between
    tests L may fall, by half in a pass. A test takes two gradients of each of max(b, 10) rows. The first L is measured on the
    way to the first vertex.

    References
    ----------
    Schmidt, Le Roux, Bach (2017), Minimizing finite sums with the stochastic average gradient, arXiv:1309.2388, section 4.6.
    """

    batch: int  # b, the rows of the estimator's batches
    every: int  # iterations between tests; the first three are all tested
    least: float = 0.0  # a lower bound on L
    factor: float = 1.0  # the multiple of L that the estimator needs

    def due(self, k: int) -> bool:
        """Whether to test step k."""
        return k < 3 or k % self.every == 0

    def first(self, f: Objective, x: np.ndarray, s: Vertex) -> float:
        """L on the first hundredth of the way to a vertex; all rows are used if some rows show no curvature."""
        u = toward(x, s, 0.01)
        return max(self.seen(0, f, x, u) or self.seen(0, f, x, u, f.n), self.least, 1e-300)

    def lowered(self, L: float, n: int) -> float:
        """L after ``every`` more iterations without a test."""
        return max(L * 0.5 ** min(1.0, self.every * self.batch / n), self.least)

    def seen(self, k: int, f: Objective, x: np.ndarray, u: np.ndarray, rows: int = 0) -> float:
        """The L that at least ``rows`` rows of step k require; 0 if rounding would spoil the test."""
        step, n, b = u - x, f.n, self.batch
        length2 = inner(step, step)
        if length2 <= float(np.finfo(x.dtype).eps) * inner(x, x):
            return 0.0
        idx = np.random.default_rng((k, b)).choice(n, min(n, max(b, rows, TEST_ROWS)), replace=False)
        c = f.derivs(u, idx) - f.derivs(x, idx)
        mean = f.combine(c, idx)
        each = [f.combine(c[i : i + 1], idx[i : i + 1]) for i in range(len(idx))]
        along, size2 = sum(abs(inner(step, d)) for d in each), sum(inner(d, d) for d in each)
        shared, single = smoothness_shares(n, b)
        return shared * math.sqrt(inner(mean, mean) / length2) + 2 * single * (size2 / along if along else 0.0)


def smoothness_shares(n: int, b: int) -> tuple[float, float]:
    """The shares of the sum's smoothness and of the rows' own in the smoothness of a batch of b distinct rows out of n."""
    return (1.0, 0.0) if b == n else (n * (b - 1) / (b * (n - 1)), (n - b) / (b * (n - 1)))


def first_hull(C: MoveOracle, g: np.ndarray, x: Iterate) -> Hull:
    """A point as an atom, and the vertex for g, in this order."""
    s = C.lmo(g)
    hull = Hull.at(x, s)
    return hull if hull.atoms.find(s) is not None else hull.with_atom(s)


def hull_of(hull: Hull | None, active: ActiveSet | None) -> Hull | None:
    """The hull of a point's atoms; it is rebuilt if the atoms come from outside."""
    if active is None or (hull is not None and hull.atoms is active):
        return hull
    return Hull.of(active)
