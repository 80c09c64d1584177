"""Set cases: spectral. Minima come from dense decompositions, samples from the definitions."""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import minimize_scalar
from set_case import SetCase

from extremal.sets.spectral.max_norm import MaxNormBall
from extremal.sets.spectral.nuclear import NuclearBall, SpectralBall
from extremal.sets.spectral.symmetric import Fantope, Spectrahedron


def unit_rows(rng, m, k):
    a = rng.standard_normal((m, k))
    return a / np.linalg.norm(a, axis=1, keepdims=True)


def mix(rng, points):
    """A random convex combination."""
    return np.tensordot(rng.dirichlet(np.ones(len(points))), np.stack(points), axes=1)


def nuclear(radius, shape):
    def sample(rng):
        pairs = [(unit_rows(rng, 1, shape[0])[0], unit_rows(rng, 1, shape[1])[0]) for _ in range(3)]
        return radius * rng.random() ** 0.2 * mix(rng, [np.outer(u, v) for u, v in pairs])

    return SetCase(
        NuclearBall(radius, shape=shape),
        minimum=lambda g: -radius * float(np.linalg.svd(g, compute_uv=False)[0]),
        sample=sample,
        diameter=2 * radius,
        scaled=lambda c: NuclearBall(c * radius, shape=shape),
    )


def spectral(radius, shape):
    def sample(rng):
        a = rng.standard_normal(shape)
        return radius * rng.random() ** 0.2 * a / math.sqrt(float(np.linalg.eigvalsh(a @ a.T)[-1]))

    return SetCase(
        SpectralBall(radius, shape=shape),
        minimum=lambda g: -radius * float(np.linalg.svd(g, compute_uv=False).sum()),
        sample=sample,
        diameter=2 * radius * math.sqrt(min(shape)),
        scaled=lambda c: SpectralBall(c * radius, shape=shape),
    )


def eigenvalues(g):
    return np.linalg.eigvalsh((g + g.T) / 2)


def spectrahedron(trace, d):
    def sample(rng):
        a = rng.standard_normal((d, int(rng.integers(1, d + 1))))
        return trace * (a @ a.T) / np.vdot(a, a)

    return SetCase(
        Spectrahedron(trace, shape=(d, d)),
        minimum=lambda g: trace * float(eigenvalues(g)[0]),
        sample=sample,
        diameter=math.sqrt(2) * trace if d > 1 else 0.0,
        scaled=(lambda c: Spectrahedron(c * trace, shape=(d, d))) if d > 1 else None,
    )


def fantope(k, d):
    def sample(rng):
        if k == d:
            return np.eye(d)
        bases = [np.linalg.qr(rng.standard_normal((d, k)))[0] for _ in range(3)]
        return mix(rng, [q @ q.T for q in bases])

    return SetCase(
        Fantope(k, shape=(d, d)),
        minimum=lambda g: float(eigenvalues(g)[:k].sum()),
        sample=sample,
        diameter=math.sqrt(2 * min(k, d - k)),
    )


def longest(g):
    """max <g, U V'> over rows of length one, for g of one or two rows: a search for the cosine of the angle between them."""
    if len(g) == 1:
        return float(np.abs(g).sum())

    def total(c):
        return float(np.sqrt(np.maximum((g * g).sum(axis=0) + 2 * c * g[0] * g[1], 0.0)).sum())

    inside = -minimize_scalar(lambda c: -total(c), bounds=(-1.0, 1.0), method="bounded", options={"xatol": 1e-12}).fun
    return max(float(inside), total(-1.0), total(1.0))


def max_norm(radius, shape):
    def sample(rng):
        u, v = (unit_rows(rng, m, 3) * math.sqrt(radius) * rng.random((m, 1)) ** 0.1 for m in shape)
        return u @ v.T

    return SetCase(
        MaxNormBall(radius, shape=shape),
        minimum=lambda g: -radius * longest(g if len(g) <= 2 else g.T),
        sample=sample,
        diameter=2 * radius * math.sqrt(math.prod(shape)),
        scaled=lambda c: MaxNormBall(c * radius, shape=shape),
        tol=1e-5,
    )


CASES: tuple[SetCase, ...] = (
    nuclear(2.0, (3, 4)),
    nuclear(0.5, (4, 2)),
    nuclear(1.5, (1, 6)),
    nuclear(3.0, (5, 1)),
    nuclear(2.0, (1, 1)),
    spectral(2.0, (3, 4)),
    spectral(0.5, (4, 2)),
    spectral(1.5, (1, 5)),
    spectral(3.0, (1, 1)),
    spectrahedron(1.0, 3),
    spectrahedron(2.5, 4),
    spectrahedron(2.0, 1),
    fantope(1, 3),
    fantope(2, 5),
    fantope(4, 5),
    fantope(3, 3),
    fantope(1, 1),
    max_norm(2.0, (2, 5)),
    max_norm(0.5, (4, 2)),
    max_norm(1.5, (1, 5)),
    max_norm(3.0, (1, 1)),
)
