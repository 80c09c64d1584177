"""Fully corrective moves: after every new vertex, f is minimised over the hull of all atoms."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from extremal import checks
from extremal.checks import NonFiniteError
from extremal.gradients.base import Estimate
from extremal.moves.atoms import AtomMove, AtomsPoint, View
from extremal.moves.base import MoveOracle
from extremal.objectives.on_atoms import Restriction
from extremal.points.active import rebuilt
from extremal.quadratic.search import first_decrease
from extremal.quadratic.solver import Quadratic
from extremal.sets.simplices.bounds import shrunk
from extremal.steps.base import Step

MEMORY = 10  # a step of the inner method may not exceed the largest of this many last values
NEWTON = 20  # largest number of Newton steps
FARTHEST = 1e100  # largest distance of a point that is projected; the answer is a vertex long before


@dataclass(frozen=True)
class CorrectivePoint(AtomsPoint):
    """A point with its atoms and their images under f."""

    images: dict[Hashable, np.ndarray] = field(default_factory=dict)  # the atoms' margins


@dataclass(frozen=True)
class FullyCorrective(AtomMove):
    """Move to the best point of the hull of all atoms, after every new vertex.

        s = lmo(g),   x <- argmin of f over the convex hull of s and the atoms,   atoms of weight zero are dropped

    A step takes one LMO, and there are few steps. The inner problem, over the simplex of weights, is solved until no pair of
    atoms promises more than a share ``tol`` of the gap. Newton steps solve it for a linear model of one output whose loss has
    second derivatives. Otherwise, or if these do not help, projected gradients with spectral steps do (Barzilai, Borwein).
    For a linear model the inner problem uses the atoms' margins (k n numbers for k atoms); an inner gradient or Hessian still
    counts as n component gradients. The step rule is not used. With a stochastic estimator g picks the vertex, f the weights.

    Parameters
    ----------
    tol : float
        Accuracy of the inner problem relative to the gap before it, in (0, 1].
    limit : int
        Largest number of iterations of one inner problem.

    References
    ----------
    Holloway (1974); Lacoste-Julien, Jaggi (2015), arXiv:1511.05932; Birgin, Martinez, Raydan (2000), Nonmonotone spectral
    projected gradient methods on convex sets.

    Examples
    --------
    >>> import numpy as np, extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.eye(3), np.array([0.6, 0.4, -1.0]))
    >>> method = ex.Method(ex.gradients.Full(), ex.steps.FullStep(), ex.moves.FullyCorrective())
    >>> r = ex.minimize(f, ex.Simplex(), method, tol=1e-9)
    >>> r.x.round(6), r.n_iter
    (array([0.6, 0.4, 0. ]), 1)
    """

    tol: float = 0.01
    limit: int = 1000

    def __post_init__(self):
        tol = checks.within("FullyCorrective", "tol", self.tol, 0, 1)
        checks.fix(self, tol=tol, limit=checks.whole("FullyCorrective", "limit", self.limit, 1))

    def advance(self, k: int, f: Any, C: MoveOracle, point: AtomsPoint, estimate: Estimate, step: Step) -> CorrectivePoint:
        view = View.of(point.atoms, estimate.g)
        s = C.lmo(estimate.g)
        atoms = point.atoms.with_atom(s)
        images = point.images if isinstance(point, CorrectivePoint) else {}
        h = f.on_atoms(atoms, images)
        gap = max(view.here - s.dot(estimate.g), view.spread, 0.0)
        weights = newton(h, atoms.weights, self.tol * gap)
        weights = minimise(h, weights, self.tol * gap, self.limit)
        kept = atoms.with_weights(weights)
        x = rebuilt(point.x, kept)
        images = {v.key: h.images[v.key] for v in kept.vertices} if h.images else {}
        return CorrectivePoint(x, x, active=kept, images=images)


def newton(h: Restriction, w: np.ndarray, tol: float) -> np.ndarray:
    """Improve w by Newton steps, if f has second derivatives and as long as they help; otherwise return w."""
    value = math.nan
    for _ in range(NEWTON):
        slopes = h.slopes(w)
        if not np.isfinite(slopes).all() or float(slopes[w > 0].max() - slopes.min()) <= tol:
            break
        H = h.hessian(w)
        if H is None:
            break
        d = Quadratic.over_weights(H, slopes, w).minimise(w, 0.1 * tol) - w
        value = h.value(w) if math.isnan(value) else value
        new, then = _search(h, w, d, float(slopes @ d), value)
        if new is None or not then < value:
            break
        w, value = new, then
    return w


def minimise(h: Restriction, w: np.ndarray, tol: float, limit: int) -> np.ndarray:
    """Weights on the simplex at which the largest dh/dw_i of an atom in use exceeds the least of all by at most ``tol``."""
    value, slopes = h.value(w), h.slopes(w)
    best, best_value = w, value
    past, length = deque([value], MEMORY), 1.0 / max(float(np.ptp(slopes)), 1e-300)
    for _ in range(limit):
        if not np.isfinite(slopes).all():
            raise NonFiniteError("FullyCorrective: a slope of f over the hull of the atoms is not finite")
        if float(slopes[w > 0].max() - slopes.min()) <= tol:
            return w
        d = project(w - length * slopes) - w
        new, value = _search(h, w, d, float(slopes @ d), max(past))
        if new is None:
            break
        past.append(value)
        new_slopes = h.slopes(new)
        change, bend = new - w, float((new - w) @ (new_slopes - slopes))
        length = float(change @ change) / bend if bend > 0 else 10 * length  # the spectral step
        length = min(length, FARTHEST / max(float(np.abs(new_slopes).max()), 1.0))
        w, slopes = new, new_slopes
        if value <= best_value:
            best, best_value = w, value
    return best


def _search(h: Restriction, w: np.ndarray, d: np.ndarray, slope: float, limit: float) -> tuple[np.ndarray | None, float]:
    """The longest of d, d/2, d/4, ... with a sufficient decrease, up to rounding; None if there is none."""

    def look(t: float) -> tuple[float, np.ndarray]:
        new = np.maximum(w + t * d, 0.0)
        new /= new.sum()
        return h.value(new), new

    found = first_decrease(look, limit, slope)
    return (None, limit) if found is None else (found[2], found[1])


def project(v: np.ndarray) -> np.ndarray:
    """The nearest non-negative weights with sum 1."""
    return shrunk(v - v.max(), np.ones(len(v)), 1.0)  # subtracting a constant leaves the answer unchanged
