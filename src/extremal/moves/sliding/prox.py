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

PRODUCT_ROUNDING = 4  # gaps below so many units in the last place of the largest product are rounding
IDLE_ATOMS = 200  # without weight in a sub-problem, and as many as have some: when there are more, they are forgotten
TEST_ROWS = 10  # of a test of the curvature, at least


@dataclass(frozen=True)
class Solver:
    """How sub-problems are solved, and how well.

        u = argmin over the set of q(u) = <g, u> + beta/2 |u - centre|^2,   to
        max over s in the set of <grad q(u), u - s> <= max(accuracy beta |u - centre|^2, tol)

    By atoms: the best weights of those that are known, which need their inner products only, from the weights of the centre;
    then the oracle: it either finds the gap small enough, or answers with one atom more.
    So a step costs one LMO, and one for each atom that is new. By projection: u = project(centre - g / beta).

    References
    ----------
    Wolfe (1976), Finding the nearest point in a polytope; Lacoste-Julien, Jaggi (2015), arXiv:1511.05932.
    """

    accuracy: float
    onto: ConvexSet | None
    limit: int
    tol: float = 0.0  # if it is not 0, a sub-problem that takes more LMOs than ``limit`` is an error

    def __call__(self, C: MoveOracle, g: np.ndarray, centre: Iterate, hull: Hull | None, beta: float) -> tuple[Any, Hull | None]:
        """u, and its atoms if there are any; ``hull`` are those of the centre, None if it has none yet."""
        if not checks.all_finite(g):
            raise NonFiniteError("the gradient estimate has a NaN or an infinite entry")
        if self.onto is None:
            return self._by_atoms(C, g, centre, hull, beta)
        beta = max(beta, float(np.abs(g).max()) / float(np.finfo(g.dtype).max) ** 0.25)  # g / beta may not overflow
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
                break  # the weights are as good as they get: what is left is rounding
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
    """A weight of the proximal term that follows what some rows show of the curvature between x and the next point u.

        beta = factor * L,   L >= n(b - 1)/(b(n - 1)) |mean_i d_i| / |u - x| + 2V,   d_i = grad f_i(u) - grad f_i(x),
        V = (n - b)/(b(n - 1)) mean_i |d_i|^2 / mean_i |<d_i, u - x>|,   means over random rows

    Where a test finds L too small, L is doubled (or becomes what was found, if that is more) and the step is made again. From
    test to test L may fall, by half in a pass. A test costs two gradients of each of max(b, 10) rows. The first L is found
    on the way to the first vertex.

    References
    ----------
    Schmidt, Le Roux, Bach (2017), Minimizing finite sums with the stochastic average gradient, arXiv:1309.2388, section 4.6.
    """

    batch: int  # b, the rows of the estimator's batches
    every: int  # iterations from test to test; the first three are all tested
    least: float = 0.0  # L is never below
    factor: float = 1.0  # what the estimator needs beyond it

    def due(self, k: int) -> bool:
        """Whether step k is tested."""
        return k < 3 or k % self.every == 0

    def first(self, f: Objective, x: np.ndarray, s: Vertex) -> float:
        """L on the first hundredth of the way to a vertex; if some rows show nothing, all are looked at."""
        u = toward(x, s, 0.01)
        return max(self.seen(0, f, x, u) or self.seen(0, f, x, u, f.n), self.least, 1e-300)

    def lowered(self, L: float, n: int) -> float:
        """L as it may be after ``every`` more iterations."""
        return max(L * 0.5 ** min(1.0, self.every * self.batch / n), self.least)

    def seen(self, k: int, f: Objective, x: np.ndarray, u: np.ndarray, rows: int = 0) -> float:
        """What the rows of step k ask for, at least so many; 0 for steps that rounding would spoil."""
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
    """How much of the sum's smoothness and how much of the rows' own there is in that of a batch of b distinct rows, of n."""
    return (1.0, 0.0) if b == n else (n * (b - 1) / (b * (n - 1)), (n - b) / (b * (n - 1)))


def first_hull(C: MoveOracle, g: np.ndarray, x: Iterate) -> Hull:
    """A point as an atom, and the vertex that g asks for, in this order."""
    s = C.lmo(g)
    hull = Hull.at(x, s)
    return hull if hull.atoms.find(s) is not None else hull.with_atom(s)


def hull_of(hull: Hull | None, active: ActiveSet | None) -> Hull | None:
    """The hull of the atoms that a point has, made anew for atoms that came from outside."""
    if active is None or (hull is not None and hull.atoms is active):
        return hull
    return Hull.of(active)
