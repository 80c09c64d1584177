"""Set cases: simplices, boxes, boxes cut by a budget, chains."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
from set_case import SetCase

import extremal as ex
from extremal.sets.norms.bounded_l1 import BoundedL1Ball
from extremal.sets.simplices.boxes import BudgetBox, CappedSimplex, Hypersimplex
from extremal.sets.simplices.chains import Monotone
from extremal.sets.simplices.plain import UnitSimplex

INF = math.inf


def farthest(V: np.ndarray) -> float:
    """The largest distance of two rows."""
    return math.sqrt(max(((V - v) ** 2).sum(axis=1).max() for v in V))


def budget_corners(lower, upper, total: float, size: int) -> np.ndarray:
    """All extreme points of {lower <= x <= upper, sum x = total}: no two entries can be strictly between their bounds."""
    lower, upper = (np.broadcast_to(np.asarray(b, float).reshape(-1), size) for b in (lower, upper))
    ends = np.array(list(itertools.product((False, True), repeat=size)))
    found = []
    for j in range(size):
        V = np.where(ends, upper, lower)
        V[:, j] += total - V.sum(axis=1)
        found.append(V[(V[:, j] >= lower[j] - 1e-12) & (V[:, j] <= upper[j] + 1e-12)])
    return np.unique(np.vstack(found).round(14), axis=0)


def budget_point(rng: np.random.Generator, lower, upper, total: float, shape: tuple[int, ...]) -> np.ndarray:
    """From a feasible point, random amounts from one entry to another, as far as the bounds allow."""
    lower, upper = (np.broadcast_to(np.asarray(b, float), shape).reshape(-1) for b in (lower, upper))
    room = upper - lower
    x = lower + (room * (total - lower.sum()) / room.sum() if room.any() else 0.0)
    for i, j in rng.integers(len(x), size=(4 * len(x), 2)):
        move = rng.random() * min(x[i] - lower[i], upper[j] - x[j]) if i != j else 0.0
        x[i] -= move
        x[j] += move
    return x.reshape(shape)


def case(make, V: np.ndarray, draw, exact: bool = True) -> SetCase:
    """A case whose extreme points are the rows of V, where ``make`` answers the set times a factor."""
    C = make(1.0)
    return SetCase(
        C,
        minimum=lambda g: float((V @ g.reshape(-1)).min()),
        sample=draw if len(V) > 1 else lambda rng: V[0].reshape(C.shape).copy(),  # a single point without rounding
        diameter=farthest(V) if exact else None,
        scaled=make if len(V) > 1 else None,
        name=f"{C} on {C.shape}",
    )


def simplices() -> Iterator[SetCase]:
    for total, shape in ((1.0, (5,)), (2.5, (2, 3)), (3.0, (1,))):
        size = math.prod(shape)
        corners = total * np.eye(size)
        yield case(
            lambda c, t=total, s=shape: ex.Simplex(c * t).on(s),
            corners,
            lambda rng, t=total, s=shape: t * rng.dirichlet(np.ones(math.prod(s))).reshape(s),
        )
        yield case(
            lambda c, t=total, s=shape: UnitSimplex(c * t).on(s),
            np.vstack([corners, np.zeros(size)]),
            lambda rng, t=total, s=shape: t * rng.dirichlet(np.ones(math.prod(s) + 1))[1:].reshape(s),
        )


def budget(make, lower, upper, total: float, shape: tuple[int, ...], exact: bool = True) -> SetCase:
    """A case of {lower <= x <= upper, sum x = total}."""
    V = budget_corners(lower, upper, total, math.prod(shape))
    return case(lambda c: make(c).on(shape), V, lambda rng: budget_point(rng, lower, upper, total, shape), exact)


def capped() -> Iterator[SetCase]:
    one_cap = [
        (0.3, 1.0, (6,)),  # three full entries and a rest
        (0.3, 1.0, (4,)),
        (0.3, 1.0, (9,)),
        (0.1, 1.0, (12,)),  # no rest
        (0.45, 2.0, (2, 3)),
        (0.25, 1.0, (4,)),  # a single point
        (1 / 7, 1.0, (7,)),  # the same, but for rounding
        (2.0, 1.0, (4,)),  # a cap that never matters
        (2.0, 1.0, (1,)),
    ]
    for cap, total, shape in one_cap:
        yield budget(lambda c, u=cap, t=total: CappedSimplex(c * u, c * t), 0.0, min(cap, total), total, shape)
    many = np.array([0.1, 0.5, 0.0, INF, 0.4, 0.2])
    for caps, total in ((many, 1.0), (many.reshape(2, 3), 1.5), (np.array([0.5, 0.25, 0.25]), 1.0)):
        yield budget(
            lambda c, u=caps, t=total: CappedSimplex(c * u, c * t), 0.0, np.minimum(caps, total), total, caps.shape, exact=False
        )


def hypersimplices() -> Iterator[SetCase]:
    for k, scale, shape in ((2, 1.0, (6,)), (3, 0.1, (6,)), (5, 2.0, (2, 4)), (1, 1.0, (5,)), (5, 1.0, (5,)), (1, 3.0, (1,))):
        yield budget(lambda c, k=k, r=scale: Hypersimplex(k, c * r), 0.0, scale, k * scale, shape)


def budget_boxes() -> Iterator[SetCase]:
    low, high = np.array([-1.0, 0.0, 0.5, -2.0, 0.0]), np.array([1.0, 0.0, 2.0, -1.0, 3.0])
    for lower, upper, total, shape, exact in (
        (-0.5, 0.5, 0.0, (5,), True),
        (-0.5, 0.5, 0.2, (2, 2), True),
        (1.0, 3.0, 11.0, (4,), True),
        (-2.0, -1.0, -7.5, (6,), True),
        (0.0, 1e9, 1.0, (4,), True),  # a bound that never matters
        (low, high, 1.0, (5,), False),
        (low, high, float(low.sum()), (5,), False),  # single points
        (low, high, float(high.sum()), (5,), False),
        (low, low + 1.5, 2.0, (5,), True),
        (0.0, np.array([[1.0, 2.0, 0.5], [0.3, 1.0, 4.0]]), 4.0, (2, 3), False),
        (low, 3.0, 0.0, (5,), False),
        (0.2, 0.7, 0.6, (1,), True),
    ):
        yield budget(lambda c, lo=lower, up=upper, t=total: BudgetBox(c * lo, c * up, c * t), lower, upper, total, shape, exact)


def boxes() -> Iterator[SetCase]:
    low, high = np.array([-1.0, 0.0, 0.5, -2.0]), np.array([1.0, 0.0, 2.0, -1.0])
    for lower, upper, shape in ((low, high, (4,)), (-1.0, 2.0, (2, 3)), (0.0, 1.0, (1,)), (low.reshape(2, 2), 2.0, (2, 2))):
        wide = [np.broadcast_to(b, shape) for b in (lower, upper)]
        corners = np.array(list(itertools.product(*zip(*(b.reshape(-1) for b in wide), strict=True))))
        yield case(
            lambda c, lo=lower, up=upper, s=shape: ex.Box(c * lo, c * up).on(s),
            corners,
            lambda rng, w=wide: rng.uniform(*w),
        )


def bounded_l1_corners(radius: float, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """Feasible points, all extreme ones among them: entries at a bound, or at 0, but one that uses up the radius."""
    ends = np.array([np.clip(b, lower, upper) for b in (lower, np.zeros(len(lower)), upper)]).clip(-radius, radius)
    V = np.array(list(itertools.product(*ends.T)))
    found = [V]
    for j, sign in itertools.product(range(len(lower)), (-1.0, 1.0)):
        W = V.copy()
        W[:, j] = 0.0
        W[:, j] = sign * (radius - np.abs(W).sum(axis=1))
        found.append(W[(sign * W[:, j] >= 0) & (W[:, j] >= lower[j]) & (W[:, j] <= upper[j])])
    V = np.vstack(found)
    return np.unique(V[np.abs(V).sum(axis=1) <= radius * (1 + 1e-12)].round(14), axis=0)


def bounded_l1_point(rng: np.random.Generator, radius: float, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """From the point of least magnitudes toward a random one between the bounds, as far as the radius allows."""
    m, x = np.clip(0.0, lower, upper), rng.uniform(np.maximum(lower, -radius), np.minimum(upper, radius))
    more, left = np.abs(x).sum() - np.abs(m).sum(), radius - np.abs(m).sum()
    return m + (x - m) * min(1.0, rng.random() ** 0.2 * left / more if more > 0 else 1.0)


def bounded_l1_balls() -> Iterator[SetCase]:
    low, high = np.array([0.0, -0.5, -INF, 0.25, -2.0]), np.array([INF, 0.5, INF, 0.75, -0.5])
    for radius, lower, upper, exact in (
        (2.0, low, high, False),
        (0.75, low, high, False),  # a single point
        (100.0, low[[1, 3, 4]], high[[1, 3, 4]], False),  # bounds that leave some of the radius
        (1.5, np.full(4, -INF), np.full(4, INF), True),  # the l1 ball
        (1.5, np.zeros(4), np.full(4, INF), True),  # the simplex with its inside
        (1.5, np.array([0.0, -INF, 0.0, -2.0]), np.array([INF, 0.0, 0.0, 1.5]), True),  # signs
        (0.3, np.full(4, -0.1), np.full(4, 0.2), False),
        (3.0, np.array([0.5]), np.array([1.0]), False),
    ):
        V = bounded_l1_corners(radius, lower, upper)
        for shape in ((4,), (2, 2)) if len(lower) == 4 else (lower.shape,):
            yield case(
                lambda c, r=radius, lo=lower, up=upper, s=shape: BoundedL1Ball(c * r, c * lo.reshape(s), c * up.reshape(s)),
                V,
                lambda rng, r=radius, lo=lower, up=upper, s=shape: bounded_l1_point(rng, r, lo, up).reshape(s),
                exact,
            )


def chains() -> Iterator[SetCase]:
    for lower, upper, up, shape in (
        (0.0, 1.0, True, (6,)),
        (-2.0, 3.0, False, (2, 3)),
        (1.0, 1.5, True, (5,)),
        (-1.0, 1.0, True, (1,)),
        (2.0, 2.0, False, (3,)),
    ):
        size = math.prod(shape)
        corners = np.unique(np.where(np.tri(size + 1, size, -1) > 0, lower, upper), axis=0)
        yield case(
            lambda c, lo=lower, hi=upper, up=up, s=shape: Monotone(c * lo, c * hi, up).on(s),
            corners if up else corners[:, ::-1],
            lambda rng, lo=lower, hi=upper, up=up, s=shape: (
                (1 if up else -1) * np.sort((1 if up else -1) * rng.uniform(lo, hi, math.prod(s))).reshape(s)
            ),
        )


CASES: tuple[SetCase, ...] = (
    *simplices(),
    *capped(),
    *hypersimplices(),
    *budget_boxes(),
    *boxes(),
    *chains(),
    *bounded_l1_balls(),
)
