"""A certified reference minimum for experiments, by a method of another kind than the compared ones."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import cast

import numpy as np

from extremal.checks import InputError
from extremal.losses import Logistic, NonlinearLeastSquares
from extremal.methods import BlendedPairwiseFW
from extremal.objectives import LinearModel, Objective
from extremal.run import minimize
from extremal.sets import ConvexSet
from extremal.steps import LineSearch
from extremal_lab.reproduction.interior import Curved, descend, polish
from extremal_lab.reproduction.lifts import Lift, lift
from extremal_lab.reproduction.working_set import Sparse, by_columns

DIMENSION = 3000  # largest dimension for a d x d matrix: 72 MB, and a factor of it in seconds
HUGE = 1e100  # largest size of numbers: from 1e150 on squares overflow
MIXTURES = (1, 1, 4)  # numbers of vertices in the random starts, if f is not convex


@dataclass(frozen=True, eq=False)
class Reference:
    """The smallest known value of f, and its certificate.

    Examples
    --------
    >>> r = Reference(value=0.5, gap=1e-11, x=np.zeros(2), how="interior point, 12 Newton steps", convex=True, starts=1)
    >>> r.value - r.lower <= 1.01e-11
    True
    """

    value: float  # f(x)
    gap: float  # the Frank-Wolfe gap at x or a proven bound on it, in float64
    x: np.ndarray = field(repr=False)  # the point, feasible
    how: str  # the method, and its cost
    convex: bool  # whether f is convex: otherwise the gap proves stationarity only
    starts: int  # number of starts; the point is the best of them

    @property
    def lower(self) -> float:
        """A lower bound: f* >= f(x) - gap for convex f. If f is not convex, it is the value itself, and nothing is proven."""
        return self.value - self.gap if self.convex else self.value


def reference(f: Objective, C: ConvexSet) -> Reference:
    """The minimum of f over C by an interior-point Newton method, certified by its Frank-Wolfe gap.

        f(x) - f* <= gap(x) = max over s in C of <grad f(x), x - s>     (f convex)

    A linear model of up to 3000 coefficients on a ball, a box or a simplex usually takes 10 to 40 Newton steps to a gap of at
    most max(1e-11, 1e-10 |f|). A step costs the Hessian (the sum over rows of their squared number of entries) and a d x d
    factor: half a second in all for a8a, one to two for w8a. If rounding forbids that gap (columns of size 500 on a box of
    radius 2000), the result has the smallest gap reached.

    With more coefficients, on an l1 ball or a simplex and for convex f, the method runs on few columns, those with the largest
    derivatives. Columns are added until the gap over the whole set is as small, or there are 3000 (the result has the gap
    reached). It takes a second or two for the logistic loss, 1000 x 5000 with 1% of entries, and a radius of 200; a minute if
    nearly 3000 columns are needed.

    If f is not convex, the result is the best of several descents: from the centre, from near the logistic regression for the
    same labels (`NonlinearLeastSquares` only), and from random points of a fixed seed. It is stationary, not a proven minimum.

    All other problems (other sets, other objectives, larger d) use blended pairwise steps with line search: 3000 passes, or a gap
    of 1e-10 |f|, which they reach on polytopes. Rows, targets, sets and margins of sizes beyond 1e100 are refused.

    Parameters
    ----------
    f : Objective
        A `LinearModel`, or any other objective.
    C : ConvexSet
        An `L1Ball`, `L2Ball`, `LinfBall`, `Box` or `Simplex`, or any other set.

    References
    ----------
    Boyd, Vandenberghe (2004), Convex Optimization, section 11.7. Jaggi (2013), Revisiting Frank-Wolfe, for the certificate.

    Examples
    --------
    >>> import extremal as ex
    >>> f = ex.LinearModel(ex.Squared(), np.eye(3), np.array([3.0, 2.0, 0.1]))
    >>> r = reference(f, ex.L1Ball(3.0))
    >>> r.x.round(9), round(r.value, 9), r.gap < 1e-10, r.how.split(",")[0]
    (array([2., 1., 0.]), 0.335, True, 'interior point')
    """
    if isinstance(f, type) or not hasattr(f, "derivs"):
        raise InputError(f"`reference(f=...)` must be an objective such as LinearModel(Logistic(), A, y), got {f!r}")
    if not isinstance(C, ConvexSet):
        raise InputError(f"`reference(C=...)` must be a set such as L1Ball(20.0), got {C!r}")
    C = C.on(f.shape)
    if not isinstance(f, LinearModel) or f.deriv_shape or f.factored:
        return _by_atoms(f, C)
    _refuse_huge(f, C)
    few = f.shape[0] <= DIMENSION
    if few and (lifted := lift(C, f.shape[0])) is not None:
        return _by_newton(f, C, lifted)
    if not few and f.convex and isinstance(C, Sparse) and lift(C, f.shape[0]) is not None:
        return _by_columns(f, C)
    return _by_atoms(f, C)


def _refuse_huge(f: LinearModel, C: ConvexSet) -> None:
    """Refuse numbers whose products overflow: squares of margins, and products of these with multipliers."""
    ones = np.ones(f.shape)
    size = max(float(np.abs(C.lmo(g).to_array()).max()) for g in (ones, -ones))
    if size > HUGE:
        raise InputError(f"`reference(C=...)` must have points of size {HUGE:g} at most, got {C}")
    with np.errstate(over="ignore"):
        rows = min(math.sqrt(f.data.row_norms2().max()), float(np.finfo(f.data.dtype).max))  # float32 squares may overflow
    sizes = {"rows": rows, "targets": float(np.abs(f.y).max()), "margins on C": rows * size}
    for name, found in sizes.items():
        if found > HUGE:
            raise InputError(f"`reference(f=...)` must have {name} of size {HUGE:g} at most, got {found:.3g}")


def _by_newton(f: LinearModel, C: ConvexSet, lifted: Lift) -> Reference:
    """The reference by all columns."""
    x, steps, starts = _solved(f, C, lifted)
    best_of = f"best of {starts} starts, " if starts > 1 else ""
    return _told(f, C, x, f"interior point, {best_of}{steps} Newton steps", starts)


def _by_columns(f: LinearModel, C: Sparse) -> Reference:
    """The reference by as few columns as possible, up to 3000."""

    def solve(f: LinearModel, C: Sparse) -> tuple[np.ndarray, int]:
        return _solved(f, C, cast(Lift, lift(C, f.shape[0])))[:2]

    few = by_columns(f, C, solve, lambda x, value, g: C.gap(x, g) <= _enough(value), DIMENSION)
    rounds = f"{few.rounds} round{'s' if few.rounds > 1 else ''}"
    how = f"interior point on {few.columns} of {f.shape[0]} columns, {rounds}, {few.steps} Newton steps"
    return _told(f, C, few.x, how, 1)


def _told(f: LinearModel, C: ConvexSet, x: np.ndarray, how: str, starts: int) -> Reference:
    """The reference with the gap over the whole set."""
    value, g = f.value_and_grad(x)
    return Reference(value, C.gap(x, g), x, how, f.convex, starts)


def _solved(f: LinearModel, C: ConvexSet, lifted: Lift) -> tuple[np.ndarray, int, int]:
    """The best of the descents, polished if its gap is not small enough; the numbers of Newton steps and starts."""
    curved, gap = Curved(f), C.gap
    starts = [(None, 1.0)] if f.convex else list(_starts(f, C, lifted))
    found = [descend(curved, lifted, gap, _enough, w, weight) for w, weight in starts]
    x = min((lifted.feasible(d.x) for d in found), key=f.value)
    value, g = f.value_and_grad(x)
    if gap(x, g) > _enough(value):
        x = polish(curved, x, gap, partial(C.contains, tol=0.0))
    return x, sum(d.steps for d in found), len(starts)


def _enough(value: float) -> float:
    """The largest gap that is small enough."""
    return max(1e-11, 1e-10 * abs(value))


def _starts(f: LinearModel, C: ConvexSet, lifted: Lift) -> Iterator[tuple[np.ndarray | None, float]]:
    """Interior points in unit coordinates, and weights of the barrier that keep descents near them."""
    yield None, 1.0
    rng = np.random.default_rng(0)
    points = [(_mixture(C, rng, f.shape[0], k), 0.1) for k in MIXTURES]
    if isinstance(f.loss, NonlinearLeastSquares):
        x = _logistic(f, C, lifted)
        points += [(x, 0.1), (x, 0.01)]
    for x, share in points:
        yield (1.0 - share) * lifted.raised(x) + share * lifted.centre(), share**2


def _mixture(C: ConvexSet, rng: np.random.Generator, d: int, k: int) -> np.ndarray:
    """A random mixture of k vertices, each the oracle's answer to a random direction."""
    weights = rng.exponential(size=k)
    vertices = np.array([C.lmo(rng.standard_normal(d)).to_array() for _ in range(k)])
    return weights / weights.sum() @ vertices


def _logistic(f: LinearModel, C: ConvexSet, lifted: Lift) -> np.ndarray:
    """An approximate logistic regression: q = 1 / (1 + exp(z)) fits y = 1 by small margins, so the labels are 1 - 2 y."""
    model = LinearModel(Logistic(), f.data, 1.0 - 2.0 * f.y)
    found = descend(Curved(model), lifted, C.gap, lambda value: max(1e-11, 1e-4 * value))
    return lifted.feasible(found.x)


def _by_atoms(f: Objective, C: ConvexSet) -> Reference:
    r = minimize(f, C, BlendedPairwiseFW(step=LineSearch()), tol=1e-10, atol=1e-11, max_grads=3000 * f.n)
    return Reference(r.value, r.gap, r.x, f"blended pairwise steps with line search, {r.n_iter} of them", f.convex, 1)
