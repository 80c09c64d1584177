"""Random sets of vectors, each with its definition in extended precision: norm balls, simplices, boxes, chains.

A maker takes a generator, a shape and a scale, and answers a `Region`. Definitions are written from the mathematics, not from
the code, and work on flat arrays of long doubles.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import extremal as ex

Wide = np.longdouble
Number = Callable[[np.ndarray], float]


@dataclass(frozen=True)
class Region:
    """A set, and what its definition says of points and gradients."""

    C: ex.ConvexSet
    least: Number | None  # min over s of <g, s>, for a flat g of long doubles; None if only the oracle knows
    outside: Number | None  # by how much a flat x leaves the set, relative to its size; None if only ``contains`` knows


Maker = Callable[[np.random.Generator, tuple[int, ...], float], Region]


def wide(a) -> np.ndarray:
    return np.asarray(a, Wide).reshape(-1)


def total(a: np.ndarray) -> Wide:
    """The sum of long doubles, with one rounding or so."""
    high = a.astype(np.float64)
    return Wide(math.fsum(high)) + Wide(math.fsum((a - high).astype(np.float64)))


def length(a: np.ndarray) -> Wide:
    """|a|, without overflow."""
    top = np.abs(a).max(initial=0)
    return top * np.sqrt(total((a / top) ** 2)) if top > 0 else Wide(0)


def ordered(a: np.ndarray) -> np.ndarray:
    """Magnitudes, largest first."""
    return np.sort(np.abs(a))[::-1]


# balls


def ball(C: ex.ConvexSet, r: float, norm: Number | None, dual: Number, centre=None) -> Region:
    """{|x - c| <= r}, by its norm and the dual one."""
    c = wide(np.zeros(C.shape) if centre is None else centre)
    size = Wide(r) + (norm(c) if norm else 0)
    return Region(
        C,
        lambda g: total(c * g) - Wide(r) * dual(g),
        None if norm is None else lambda x: float((norm(x - c) - Wide(r)) / size),
    )


def p_norm(p: float) -> Number:
    def norm(a):
        top = np.abs(a).max(initial=0)
        if top == 0 or p == math.inf:
            return Wide(top)
        return top * total((np.abs(a) / top) ** Wide(p)) ** (1 / Wide(p))

    return norm


def conjugate(p: float) -> float:
    return math.inf if p == 1 else 1.0 if p == math.inf else p / (p - 1)


def lp_like(kind: Callable[..., ex.ConvexSet], p: float) -> Maker:
    def make(rng, shape, r):
        centre = r * rng.standard_normal(shape) * 10 ** rng.uniform(-2, 2) if rng.random() < 0.2 else None
        C = kind(r, shape=shape) if centre is None else kind(r, centre=centre)
        return ball(C, r, p_norm(p), p_norm(conjugate(p)), centre)

    return make


def lp(rng, shape, r) -> Region:
    p = float(rng.choice([1.0, 1.1, 1.5, 2.0, 3.0, 10.0, math.inf]))
    return lp_like(lambda r, **more: ex.LpBall(r, p, **more), p)(rng, shape, r)


def weighted_l1(rng, shape, r) -> Region:
    w = 10 ** rng.uniform(-2, 2, shape)
    flat = wide(w)
    return ball(ex.WeightedL1Ball(r, w), r, lambda x: total(flat * np.abs(x)), lambda g: (np.abs(g) / flat).max())


def k_support_norm(k: int) -> Number:
    def norm(x):
        a = ordered(x)
        for r in range(k):  # the smallest tail that is level enough
            head, tail = a[: k - r - 1], total(a[k - r - 1 :]) / (r + 1)
            if r == k - 1 or head[-1] >= tail:
                return length(np.append(head, tail * np.sqrt(Wide(r + 1))))
        raise AssertionError

    return norm


def k_balls(kind: type) -> Maker:
    def make(rng, shape, r):
        k = int(rng.integers(1, math.prod(shape) + 1))
        top = lambda a: total(ordered(a)[:k])  # noqa: E731
        box = lambda a: max(np.abs(a).max(), total(np.abs(a)) / k)  # noqa: E731
        norm, dual = {
            ex.KSupportBall: (k_support_norm(k), lambda g: length(ordered(g)[:k])),
            ex.KSparseBall: (box, top),
            ex.KNormBall: (top, box),
        }[kind]
        return ball(kind(r, k, shape=shape), r, norm, dual)

    return make


def owl(rng, shape, r) -> Region:
    w = np.sort(rng.random(math.prod(shape)) * rng.choice([0.0, 1.0], math.prod(shape)))[::-1]
    w[0] = w[0] or 1.0
    flat = wide(w)
    dual = lambda g: (np.cumsum(ordered(g)) / np.cumsum(flat)).max()  # noqa: E731
    return ball(ex.OwlBall(r, w, shape=shape), r, lambda x: total(flat * ordered(x)), dual)


def elastic(rng, shape, r) -> Region:
    a = Wide(float(rng.choice([0.0, 1.0, rng.random()])))

    def dual(g):
        low, high = Wide(0), length(g)
        for _ in range(80):
            t = (low + high) / 2
            beyond = length(np.maximum(np.abs(g) - a * t, 0)) > (1 - a) * t
            low, high = (t, high) if beyond else (low, t)
        return high

    return ball(ex.ElasticBall(r, float(a), shape=shape), r, lambda x: a * total(np.abs(x)) + (1 - a) * length(x), dual)


def groups_of(rng, d: int) -> list[list[int]]:
    """A partition."""
    order, count = rng.permutation(d), int(rng.integers(1, d + 1))
    return [list(map(int, part)) for part in np.array_split(order, count)]


def grouped(rng, shape, r) -> Region:
    lists = groups_of(rng, math.prod(shape))
    w = 10 ** rng.uniform(-1, 1, len(lists))
    norm = lambda x: total(np.array([Wide(c) * length(x[S]) for S, c in zip(lists, w, strict=True)]))  # noqa: E731
    dual = lambda g: max(length(g[S]) / Wide(c) for S, c in zip(lists, w, strict=True))  # noqa: E731
    return ball(ex.GroupBall(r, lists, w, shape=shape), r, norm, dual)


def latent(rng, shape, r) -> Region:
    d = math.prod(shape)
    lists = groups_of(rng, d)
    for _ in range(int(rng.integers(0, 3))):
        lists.append(sorted(map(int, rng.choice(d, size=int(rng.integers(1, d + 1)), replace=False))))
    w = 10 ** rng.uniform(-1, 1, len(lists))
    dual = lambda g: max(length(g[S]) / Wide(c) for S, c in zip(lists, w, strict=True))  # noqa: E731
    return ball(ex.LatentGroupBall(r, lists, w, shape=shape), r, None, dual)


# simplices and boxes


def fill(g: np.ndarray, lower: np.ndarray, upper: np.ndarray, budget: Wide) -> Wide:
    """min <g, x> over lower <= x <= upper with sum x = budget: the cheapest entries first."""
    order = np.argsort(g, kind="stable")
    room, left, found = (upper - lower)[order], budget - total(lower), total(g * lower)
    for cost, most in zip(g[order], room, strict=True):
        taken = min(most, max(left, Wide(0)))
        found, left = found + cost * taken, left - taken
    return found


def bounded_sum(C: ex.ConvexSet, lower, upper, budget: float) -> Region:
    d = math.prod(C.shape)
    lo, up = (wide(np.broadcast_to(np.asarray(b, float).reshape(-1) if np.ndim(b) else b, d)) for b in (lower, upper))
    up = np.minimum(up, Wide(budget) - total(lo) + lo)  # no more fits
    size = max(np.abs(lo).max(), np.abs(up).max(), abs(Wide(budget)))
    return Region(
        C,
        lambda g: fill(g, lo, up, Wide(budget)),
        lambda x: float(max(abs(total(x) - Wide(budget)), (lo - x).max(), (x - up).max()) / size),
    )


def simplex(rng, shape, r) -> Region:
    return bounded_sum(ex.Simplex(r, shape), 0.0, r, r)


def unit_simplex(rng, shape, r) -> Region:
    outside = lambda x: float(max(total(x) - Wide(r), -x.min()) / Wide(r))  # noqa: E731
    return Region(ex.UnitSimplex(r, shape), lambda g: min(Wide(r) * g.min(), Wide(0)), outside)


def capped(rng, shape, r) -> Region:
    d = math.prod(shape)
    share = rng.choice([1 / d, rng.uniform(1 / d, 1), 2.0])
    cap = r * share * (1 + 1e-6)
    caps = np.full(shape, cap) * rng.uniform(1, 3, shape) if rng.random() < 0.3 else cap
    return bounded_sum(ex.CappedSimplex(caps, r).on(shape), 0.0, caps, r)


def hypersimplex(rng, shape, r) -> Region:
    k = int(rng.integers(1, math.prod(shape) + 1))
    return bounded_sum(ex.Hypersimplex(k, r).on(shape), 0.0, r, float(Wide(k) * Wide(r)))


def bounds(rng, shape, r) -> tuple[np.ndarray, np.ndarray]:
    low = r * rng.standard_normal(shape) * rng.choice([0.0, 1.0, 1.0], shape)
    return low, low + r * rng.exponential(1.0, shape) * rng.choice([0.0, 1.0, 1.0, 1.0], shape)


def budget_box(rng, shape, r) -> Region:
    low, high = bounds(rng, shape, r)
    most, least = math.fsum(high.reshape(-1)), math.fsum(low.reshape(-1))
    budget = least + rng.random() * (most - least)
    return bounded_sum(ex.BudgetBox(low, high, budget), low, high, budget)


def box(rng, shape, r) -> Region:
    low, high = bounds(rng, shape, r) if rng.random() < 0.7 else (np.full(shape, -r * rng.random()), np.full(shape, r))
    lo, up = wide(low), wide(high)
    size = max(np.abs(lo).max(), np.abs(up).max(), Wide(1e-4000))
    outside = lambda x: float(max((lo - x).max(), (x - up).max()) / size)  # noqa: E731
    return Region(ex.Box(low, high), lambda g: total(np.minimum(g * lo, g * up)), outside)


def bounded_l1(rng, shape, r) -> Region:
    low = -r * 10 ** rng.uniform(-2, 1, shape) * rng.choice([0.0, 1.0, 1.0], shape)
    high = r * 10 ** rng.uniform(-2, 1, shape) * rng.choice([0.0, 1.0, 1.0], shape)
    low, high = (np.where(rng.random(shape) < 0.2, s * math.inf, b) for s, b in ((-1, low), (1, high)))
    lo, up = wide(low), wide(high)

    def least(g):
        room = np.minimum(np.where(g < 0, up, -lo), Wide(r))
        left, found = Wide(r), Wide(0)
        for j in np.argsort(-np.abs(g), kind="stable"):
            taken = min(room[j], left)
            found, left = found - np.abs(g[j]) * taken, left - taken
        return found

    outside = lambda x: float(max(total(np.abs(x)) - Wide(r), (lo - x).max(), (x - up).max()) / Wide(r))  # noqa: E731
    return Region(ex.BoundedL1Ball(r, low, high), least, outside)


def monotone(rng, shape, r) -> Region:
    low = r * rng.standard_normal()
    high, up = low + r * rng.exponential(), bool(rng.random() < 0.5)
    lo, hi = Wide(low), Wide(high)
    size = max(abs(lo), abs(hi))

    def least(g):
        tails = np.append(np.cumsum((g if up else g[::-1])[::-1])[::-1], 0)  # sums of the entries that are high
        return lo * total(g) + (hi - lo) * tails.min()

    def outside(x):
        falls = -np.diff(x if up else x[::-1])
        return float(max(lo - x.min(), x.max() - hi, falls.max(initial=-np.inf)) / size)

    return Region(ex.Monotone(low, high, up).on(shape), least, outside)


ANY_SHAPE: dict[str, Maker] = {
    "L1Ball": lp_like(ex.L1Ball, 1.0),
    "L2Ball": lp_like(ex.L2Ball, 2.0),
    "LinfBall": lp_like(ex.LinfBall, math.inf),
    "LpBall": lp,
    "WeightedL1Ball": weighted_l1,
    "KSupportBall": k_balls(ex.KSupportBall),
    "KSparseBall": k_balls(ex.KSparseBall),
    "KNormBall": k_balls(ex.KNormBall),
    "OwlBall": owl,
    "ElasticBall": elastic,
    "GroupBall": grouped,
    "LatentGroupBall": latent,
    "Simplex": simplex,
    "UnitSimplex": unit_simplex,
    "CappedSimplex": capped,
    "Hypersimplex": hypersimplex,
    "BudgetBox": budget_box,
    "Box": box,
    "BoundedL1Ball": bounded_l1,
    "Monotone": monotone,
}
