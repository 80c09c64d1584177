"""Random sets made of sets, with definitions made of definitions; and the table of all makers."""

from __future__ import annotations

import itertools
import math

import numpy as np
import problems_shaped as shaped
from problems_sets import ANY_SHAPE, Maker, Region, Wide, length, total, wide
from problems_shaped import SQUARE, in_hull

import extremal as ex


def some(rng, shape, r) -> Region:
    return ANY_SHAPE[rng.choice(list(ANY_SHAPE))](rng, shape, r)


def scaled(rng, shape, r) -> Region:
    inner = (
        ALL[rng.choice([*ANY_SHAPE, *SQUARE])](rng, shape, 1.0)
        if len(shape) == 2 and shape[0] == shape[1]
        else some(rng, shape, 1.0)
    )
    c = Wide(r * rng.choice([-1.0, 1.0]))
    least = None if inner.least is None else lambda g: inner.least(c * g)
    outside = None if inner.outside is None else lambda x: inner.outside(x / c)
    return Region(ex.ScaledSet(inner.C, float(c)), least, outside)


def shifted(rng, shape, r) -> Region:
    inner, b = some(rng, shape, r), r * rng.standard_normal(shape)
    move = wide(b)
    least = None if inner.least is None else lambda g: total(g * move) + inner.least(g)
    share = Wide(r) / (Wide(r) + np.abs(move).max())  # what the size of the set is of that of its points
    outside = None if inner.outside is None else lambda x: float(inner.outside(x - move) * share)
    return Region(ex.ShiftedSet(inner.C, b), least, outside)


def minkowski(rng, shape, r) -> Region:
    parts = [some(rng, shape, r * 10 ** rng.uniform(-2, 0)) for _ in range(int(rng.integers(1, 4)))]
    least = None if any(p.least is None for p in parts) else lambda g: sum(p.least(g) for p in parts)
    return Region(ex.MinkowskiSum([p.C for p in parts]), least, None)


def image(rng, shape, r) -> Region:
    d = math.prod(shape)
    m = int(rng.integers(1, 2 * d + 1))
    M, inner = rng.standard_normal((d, m)), some(rng, (m,), r)
    least = None if inner.least is None else lambda g: inner.least(M.T.astype(Wide) @ g)
    return Region(ex.LinearImage(M, inner.C), least, None)


def product_of(kind: type, makers: dict[str, Maker]) -> Maker:
    def make(rng, shape, r):
        d, parts, left = math.prod(shape), [], math.prod(shape)
        while left:
            size = int(rng.integers(1, left + 1)) if len(parts) < 3 else left
            parts.append(makers[rng.choice(list(makers))](rng, (size,), r * 10 ** rng.uniform(-1, 0)))
            left -= size
        ends = np.cumsum([0] + [math.prod(p.C.shape) for p in parts])
        pieces = [slice(a, b) for a, b in itertools.pairwise(ends)]
        assert ends[-1] == d
        return joined(kind([p.C for p in parts]), parts, pieces)

    return make


def joined(C: ex.ConvexSet, parts: list[Region], pieces: list) -> Region:
    """Parts that take some entries each."""
    known = all(p.least is not None for p in parts), all(p.outside is not None for p in parts)
    return Region(
        C,
        (lambda g: sum(p.least(g[s]) for p, s in zip(parts, pieces, strict=True))) if known[0] else None,
        (lambda x: max(p.outside(x[s]) for p, s in zip(parts, pieces, strict=True))) if known[1] else None,
    )


def stacked(kind: type, makers: dict[str, Maker], by_rows: bool = True) -> Maker:
    def make(rng, shape, r):
        m, k = shape
        one = makers[rng.choice(list(makers))](rng, (k if by_rows else m,), r)
        index = np.arange(m * k).reshape(m, k)
        return joined(kind(one.C).on(shape), [one] * (m if by_rows else k), list(index if by_rows else index.T))

    return make


def symmetrised(rng, shape, r) -> Region:
    """Under the reversal of the entries, or transposition."""
    inner = ANY_SHAPE[rng.choice(["L1Ball", "L2Ball", "LinfBall", "Simplex", "UnitSimplex"])](rng, shape, r)
    if getattr(inner.C, "centre", None) is not None:
        return symmetrised(rng, shape, r)
    d = math.prod(shape)
    square = len(shape) == 2 and shape[0] == shape[1]
    p = np.arange(d).reshape(shape).T.reshape(-1) if square else np.arange(d)[::-1]
    outside = lambda x: max(inner.outside(x), float(np.abs(x - x[p]).max() / Wide(r)))  # noqa: E731
    return Region(ex.Symmetrised(inner.C, [p]), lambda g: inner.least((g + g[p]) / 2), outside)


def own(rng, shape, r) -> Region:
    """A user's oracle over points."""
    points = r * rng.standard_normal((int(rng.integers(2, 12)), *shape))
    flat = points.reshape(len(points), -1)
    far = 2 * float(max(length(row) for row in flat.astype(Wide)))

    @np.errstate(over="ignore", invalid="ignore")
    def lmo(g):
        return points[(flat @ np.asarray(g, float).reshape(-1)).argmin()]

    C = ex.Oracle(lmo, far, shape=shape)
    return Region(C, lambda g: (flat.astype(Wide) @ g).min(), in_hull(points))


FACED = {
    name: ANY_SHAPE[name]
    for name in ("Simplex", "Box", "UnitSimplex", "L1Ball", "L2Ball", "LinfBall", "GroupBall", "BoundedL1Ball", "KSparseBall")
}
VECTORS: dict[str, Maker] = shaped.VECTORS | {
    "LinearImage": image,
    "Product": product_of(ex.Product, ANY_SHAPE),
    "FacedProduct": product_of(ex.FacedProduct, FACED),
}
MATRICES: dict[str, Maker] = shaped.MATRICES | {
    "Rows": stacked(ex.Rows, ANY_SHAPE),
    "Columns": stacked(ex.Columns, ANY_SHAPE, by_rows=False),
    "FacedRows": stacked(ex.FacedRows, FACED),
}
MADE: dict[str, Maker] = {
    "ConvexHull": shaped.convex_hull, "ScaledSet": scaled, "ShiftedSet": shifted, "MinkowskiSum": minkowski,
    "Symmetrised": symmetrised, "Oracle": own,
}  # fmt: skip
ALL: dict[str, Maker] = ANY_SHAPE | VECTORS | MATRICES | SQUARE | MADE
