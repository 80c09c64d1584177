"""A second family of problems, from index 10**6 on, so that the first one stays as it is: cuts, Loewner intervals, float32 rows.

- `AffineCut` of any set that has a definition: the point lies in the set that is cut, value and gap over it are true, and
  ``result.violation`` is what the bounds are broken by. That they hold in the end is not promised.
- `LoewnerInterval`, by its definition in eigenvalues.
- Linear models of float32 rows at a tolerance of 1e-8, over any set of the first family.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from problems_made import ALL
from problems_sets import ANY_SHAPE, Region, Wide, length, total
from problems_shaped import eigen, skew

import extremal as ex

LATER = 10**6  # index from which on problems are of this family
TIGHT = 1e-8  # tolerance for float32 rows
KINDS = ("AffineCut", "LoewnerInterval", "float32")


def cut(rng: np.random.Generator, shape: tuple[int, ...], r: float) -> Region:
    """A set that meets bounds on some sums of its entries, equations among them."""
    inner = ANY_SHAPE[rng.choice(list(ANY_SHAPE))](rng, shape, r)
    d, rows = math.prod(shape), int(rng.integers(1, 4))
    G = rng.standard_normal((rows, d)) * (rng.random((rows, d)) < rng.choice([0.3, 1.0]))
    vertices = [inner.C.lmo(rng.standard_normal(shape)).to_array().reshape(-1) for _ in range(3)]
    at = G @ np.mean(np.array(vertices, float), axis=0)  # some point satisfies all bounds
    width = rng.choice([0.0, 1.0], rows) * 0.1 * np.abs(at)
    C = ex.AffineCut(inner.C, G, at - width, at + width)
    return Region(C, inner.least, inner.outside)


def broken_by(C: ex.AffineCut, x: np.ndarray) -> float:
    """|G x - proj(G x)|, in extended precision."""
    z = np.array([total(row.astype(Wide) * x) for row in np.asarray(C.G)])
    return float(length(z - np.clip(z, np.asarray(C.lower, Wide), np.asarray(C.upper, Wide))))


def loewner(rng: np.random.Generator, shape: tuple[int, ...], r: float) -> Region:
    """Between two symmetric matrices, whose difference may be singular."""
    d = shape[0]
    S, B = rng.standard_normal((d, d)), rng.standard_normal((int(rng.integers(1, d + 2)), d))
    lower = r * (S + S.T) * rng.choice([0.0, 1.0])
    upper = lower + r * B.T @ B
    upper = (upper + upper.T) / 2
    C, size = ex.LoewnerInterval(lower, upper), max(float(np.abs(lower).max()), float(np.abs(upper).max()))

    def least(g: np.ndarray) -> float:
        """<g, lower> + the sum of the negative eigenvalues of P g P, those of L' g L for any root L of upper - lower."""
        G = g.reshape(d, d).astype(np.float64)
        top = float(np.abs(G).max()) or 1.0
        s = np.linalg.eigvalsh(r * B @ ((G + G.T) / (2 * top)) @ B.T)
        return float(total(g * lower.reshape(-1).astype(Wide))) + top * math.fsum(np.minimum(s, 0.0))

    def outside(x: np.ndarray) -> float:
        low, high = (x - lower.reshape(-1)).astype(np.float64), (upper.reshape(-1) - x).astype(np.float64)
        return max(-eigen(low, d)[0], -eigen(high, d)[0], skew(x, d)) / size

    return Region(C, least, outside)


def draw_region(rng: np.random.Generator, kind: str, shape_of: Any, r: float) -> tuple[str, Region]:
    """The set of a problem of this family, and its name."""
    if kind == "LoewnerInterval":
        d = int(rng.integers(1, 9))
        return kind, loewner(rng, (d, d), r)
    if kind == "AffineCut":
        return kind, cut(rng, shape_of(rng, "L2Ball"), r)
    name = str(rng.choice(list(ALL)))
    return name, ALL[name](rng, shape_of(rng, name), r)
