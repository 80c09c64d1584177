"""Set cases: balls of vector norms. Norms are loops over their definitions; minima are taken over all vertices, or are duals."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable

import numpy as np
from set_case import SetCase

from extremal.sets.norms.balls import L1Ball, L2Ball, LinfBall, LpBall, NormBall, WeightedL1Ball
from extremal.sets.norms.groups import GroupBall, LatentGroupBall
from extremal.sets.norms.sorted import ElasticBall, KNormBall, KSparseBall, KSupportBall, OwlBall

Number = Callable[[np.ndarray], float]  # of a vector


# every vertex of the polytopes of radius 1, and norms by their definitions


def sign_vectors(d: int, k: int) -> np.ndarray:
    """All vectors with k entries of +-1 and d - k zeros."""
    rows = []
    for S in itertools.combinations(range(d), k):
        for signs in itertools.product([-1.0, 1.0], repeat=k):
            rows.append(np.zeros(d))
            rows[-1][list(S)] = signs
    return np.array(rows)


def least_of(V: np.ndarray) -> Number:
    return lambda g: float((V @ g).min())


def owl_vertices(w: np.ndarray) -> np.ndarray:
    return np.vstack([sign_vectors(len(w), k) / w[:k].sum() for k in range(1, len(w) + 1)])


def owl_norm(w: np.ndarray) -> Number:
    """The largest <permuted w, |x|>."""
    orders = np.array(list(itertools.permutations(w)))
    return lambda x: float((orders @ np.abs(x)).max())


def p_norm(p: float) -> Number:
    return lambda x: float(np.linalg.norm(x / np.abs(x).max(), p) * np.abs(x).max()) if x.any() else 0.0


def p_dual(p: float) -> Number:
    q = math.inf if p == 1 else 1.0 if p == math.inf else p / (p - 1)
    return lambda g: -p_norm(q)(g)


def elastic_norm(a: float) -> Number:
    return lambda x: float(a * np.abs(x).sum() + (1 - a) * np.linalg.norm(x))


def elastic_dual(a: float) -> Number:
    """-t, the smallest t with |soft(g, a t)|_2 <= (1 - a) t, by bisection."""

    def minimum(g: np.ndarray) -> float:
        low, high = 0.0, float(np.linalg.norm(g))  # the norm is |x|_2 at least, so the dual one |g|_2 at most
        for _ in range(80):
            t = (low + high) / 2
            beyond = np.linalg.norm(np.maximum(np.abs(g) - a * t, 0)) > (1 - a) * t
            low, high = (t, high) if beyond else (low, t)
        return -high

    return minimum


def group_norm(groups, w) -> Number:
    return lambda x: float(sum(c * math.hypot(*x[list(S)]) for S, c in zip(groups, w, strict=True)))


def group_dual(groups, w) -> Number:
    return lambda g: -max(math.hypot(*g[list(S)]) / c for S, c in zip(groups, w, strict=True))


def hull(groups, w) -> Callable[[np.random.Generator, int], np.ndarray]:
    """Convex combinations of points on groups."""

    def sample(rng: np.random.Generator, d: int) -> np.ndarray:
        x = np.zeros(d)
        picks = rng.integers(len(groups), size=3)
        for share, i in zip(rng.dirichlet(np.ones(4)), picks, strict=False):
            z = rng.standard_normal(len(groups[i]))
            x[list(groups[i])] += share * z / np.linalg.norm(z) / w[i]
        return x

    return sample


def scaled_to(norm: Number) -> Callable[[np.random.Generator, int], np.ndarray]:
    """Points of the unit ball by its norm, some of them sparse, some on the boundary."""

    def sample(rng: np.random.Generator, d: int) -> np.ndarray:
        z = rng.standard_normal(d) * (rng.random(d) < rng.choice([0.3, 1.0]))
        size = norm(z)
        return z * (rng.choice([rng.random(), 1.0]) / size) if size > 0 else z

    return sample


# rows


def row(C: NormBall, minimum: Number, unit_sample, reach: float, name: str) -> SetCase:
    """A case from what is known of the ball of radius 1 around 0, on vectors."""
    d, r = math.prod(C.shape), C.radius
    centre = np.zeros(C.shape) if C.centre is None else C.centre
    return SetCase(
        C,
        minimum=lambda g: float(np.vdot(centre, g)) + r * minimum(g.reshape(-1)),
        sample=lambda rng: centre + r * unit_sample(rng, d).reshape(C.shape),
        diameter=2 * r * reach,
        scaled=lambda f: dataclasses.replace(C, radius=r * f, centre=None if C.centre is None else f * C.centre),
        name=f"{type(C).__name__}-{name}",
    )


def at(*shape: int) -> np.ndarray:
    """A centre."""
    return np.linspace(-2.0, 3.0, math.prod(shape)).reshape(shape)


def lp_row(C: NormBall, p: float, name: str) -> SetCase:
    d = math.prod(C.shape)
    corner = np.ones(d) / p_norm(p)(np.ones(d))  # one of the two: all entries equal, or one only
    return row(C, p_dual(p), scaled_to(p_norm(p)), max(1.0, float(np.linalg.norm(corner))), name)


def plain() -> tuple[SetCase, ...]:
    return (
        lp_row(L1Ball(2.0, shape=7), 1, "7"),
        lp_row(L1Ball(0.5, shape=(2, 3)), 1, "2x3"),
        lp_row(L1Ball(3.0, shape=1), 1, "1"),
        lp_row(L1Ball(1.5, centre=at(5)), 1, "centre"),
        lp_row(L1Ball(0.25, centre=1e4 + at(2, 3)), 1, "far"),
        lp_row(L2Ball(1.5, shape=6), 2, "6"),
        lp_row(L2Ball(1.5, shape=1), 2, "1"),
        lp_row(L2Ball(0.3, centre=at(3, 2)), 2, "centre"),
        lp_row(L2Ball(0.3, centre=1e4 + at(5)), 2, "far"),
        lp_row(LinfBall(0.5, shape=6), math.inf, "6"),
        lp_row(LinfBall(0.5, shape=1), math.inf, "1"),
        lp_row(LinfBall(2.5, centre=at(2, 2)), math.inf, "centre"),
    )


def lp() -> tuple[SetCase, ...]:
    return (
        *(lp_row(LpBall(1.5, p, shape=6), p, f"p{p:g}") for p in (1, 1.0001, 1.01, 1.5, 2, 3.0, 50.0, 1e9, math.inf)),
        lp_row(LpBall(2.0, 4, shape=(2, 3)), 4, "2x3"),
        lp_row(LpBall(2.0, 3, shape=1), 3, "1"),
        lp_row(LpBall(2.0, 1.5, centre=at(5)), 1.5, "centre"),
    )


def weighted_row(C: WeightedL1Ball, name: str) -> SetCase:
    w = np.array(C.weights).reshape(-1)
    V = np.vstack([np.diag(1 / w), -np.diag(1 / w)])
    shares = scaled_to(lambda x: math.fsum(np.abs(x)))
    return row(C, least_of(V), lambda rng, d: shares(rng, d) / w, max(1 / c for c in w), name)


def weighted() -> tuple[SetCase, ...]:
    return (
        weighted_row(WeightedL1Ball(2.0, [1.0, 0.5, 3.0, 2.0, 1.0, 0.1, 7.0]), "7"),
        weighted_row(WeightedL1Ball(2.0, np.arange(1.0, 7.0).reshape(2, 3), centre=at(2, 3)), "centre"),
        weighted_row(WeightedL1Ball(2.0, [1e-3, 1e3, 1.0]), "spread"),
        weighted_row(WeightedL1Ball(2.0, [3.0]), "1"),
    )


def k_rows(kind: type, k: int, shape: tuple[int, ...], **more) -> SetCase:
    d = math.prod(shape)
    C = kind(1.5, k, shape=shape, **more)
    name = f"k{k}of{'x'.join(map(str, shape))}{'-centre' if more else ''}"
    if kind is KSupportBall:
        supports = list(itertools.combinations(range(d), k))
        return row(C, group_dual(supports, np.ones(len(supports))), hull(supports, np.ones(len(supports))), 1.0, name)
    if kind is KSparseBall:
        V = sign_vectors(d, k)
        norm = lambda x: max(float(np.abs(x).max()), float(np.abs(x).sum()) / k)  # noqa: E731
    else:
        V = np.vstack([sign_vectors(d, 1), sign_vectors(d, d) / k])
        supports = np.array([np.isin(np.arange(d), S) for S in itertools.combinations(range(d), k)], float)
        norm = lambda x: float((supports @ np.abs(x)).max())  # noqa: E731
    return row(C, least_of(V), scaled_to(norm), float(np.linalg.norm(V, axis=1).max()), name)


def sparse() -> tuple[SetCase, ...]:
    return tuple(
        k_rows(kind, k, shape, **more)
        for kind in (KSupportBall, KSparseBall, KNormBall)
        for k, shape, more in (
            (1, (5,), {}), (3, (7,), {}), (5, (5,), {}), (1, (1,), {}), (2, (2, 3), {}), (2, (5,), {"centre": at(5)}),
        )
    )  # fmt: skip


def owl_row(C: OwlBall, name: str) -> SetCase:
    w = np.array(C.weights)
    V = owl_vertices(w)
    return row(C, least_of(V), scaled_to(owl_norm(w)), float(np.linalg.norm(V, axis=1).max()), name)


def owl() -> tuple[SetCase, ...]:
    return (
        owl_row(OwlBall(1.5, [3.0, 2.0, 1.0, 0.5, 0.5, 0.1]), "6"),
        owl_row(OwlBall(1.5, [2.0, 2.0, 2.0, 2.0, 2.0]), "equal"),
        owl_row(OwlBall(1.5, [1.0, 1.0, 0.0, 0.0, 0.0]), "knorm"),
        owl_row(OwlBall(1.5, [4.0, 0.0, 0.0, 0.0]), "linf"),
        owl_row(OwlBall(1.5, [4.0, 3.0, 0.0, 0.0], centre=at(2, 2)), "centre"),
        owl_row(OwlBall(1.5, [3.0, 1.0, 1.0, 1.0, 1.0, 1.0], shape=(2, 3)), "2x3"),
        owl_row(OwlBall(1.5, [0.25]), "1"),
    )


def elastic() -> tuple[SetCase, ...]:
    def elastic_row(C: ElasticBall, name: str) -> SetCase:
        return row(C, elastic_dual(C.l1_ratio), scaled_to(elastic_norm(C.l1_ratio)), 1.0, name)

    ratios = (0, 1e-12, 0.3, 0.5, 0.95, 1 - 1e-6, 1 - 1e-12, 1)
    return (
        *(elastic_row(ElasticBall(1.5, a, shape=7), f"ratio{i}") for i, a in enumerate(ratios)),
        elastic_row(ElasticBall(1.5, 0.5, shape=1), "1"),
        elastic_row(ElasticBall(1.5, 0.4, shape=(2, 3)), "2x3"),
        elastic_row(ElasticBall(0.7, 0.6, centre=at(5)), "centre"),
    )


def grouped() -> tuple[SetCase, ...]:
    def group_row(C: GroupBall, lists, w, name: str) -> SetCase:
        return row(C, group_dual(lists, w), scaled_to(group_norm(lists, w)), max(1 / c for c in w), name)

    lists, w = [[5, 0, 2], [1], [3, 4, 6]], [1.0, 0.4, 1.5]
    labels = np.array([[2, 0, 2], [0, 9, 9]])
    by_label = [[1, 3], [0, 2], [4, 5]]
    return (
        group_row(GroupBall(1.5, lists, w), lists, w, "lists"),
        group_row(GroupBall(1.5, labels, w), by_label, w, "labels"),
        group_row(GroupBall(1.5, lists, centre=at(7)), lists, np.ones(3), "centre"),
        group_row(GroupBall(2.5, [[0, 1, 2, 3]], shape=(2, 2)), [[0, 1, 2, 3]], [1.0], "one"),
        group_row(GroupBall(2.5, [4, 3, 2, 1, 0]), [[4], [3], [2], [1], [0]], np.ones(5), "singles"),
        group_row(GroupBall(2.5, [[0]], [2.0]), [[0]], [2.0], "1"),
    )


def latent() -> tuple[SetCase, ...]:
    def latent_row(C: LatentGroupBall, lists, w, name: str) -> SetCase:
        return row(C, group_dual(lists, w), hull(lists, w), max(1 / c for c in w), name)

    chain = [[0, 1, 2], [2, 3, 4], [4, 5, 6]]
    ring = [*chain[:2], [5, 0]]
    nested = [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3], [3, 4], [3, 4], [0, 1, 2, 3, 4]]
    w = np.array([1.0, 1.2, 1.5, 1.7, 1.0, 1.0, 2.0])
    return (
        latent_row(LatentGroupBall(1.5, chain), chain, np.ones(3), "chain"),
        latent_row(LatentGroupBall(1.5, chain, [1.0, 0.5, 2.0], centre=at(7)), chain, [1.0, 0.5, 2.0], "centre"),
        latent_row(LatentGroupBall(0.5, nested, w), nested, w, "nested"),
        latent_row(LatentGroupBall(2.0, [[0, 1], [2]], [1.0, 3.0]), [[0, 1], [2]], [1.0, 3.0], "disjoint"),
        latent_row(LatentGroupBall(2.0, ring, shape=(2, 3)), ring, np.ones(3), "ring"),
        latent_row(LatentGroupBall(2.0, [[0], [0]], [2.0, 5.0]), [[0], [0]], [2.0, 5.0], "1"),
    )


CASES: tuple[SetCase, ...] = (*plain(), *lp(), *weighted(), *sparse(), *owl(), *elastic(), *grouped(), *latent())
