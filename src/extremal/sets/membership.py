"""By how much a point breaks a set, from the set's definition or from answers of its oracle alone: plain numpy, exact sums.

No method of a set is called here but ``lmo`` and ``diameter``, so that a check of a point does not trust the code that made it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

HALF = 2.0**-53  # the unit of rounding: half a unit in the last place of 1
_NEAR, _ANSWERS = 1e-12, 400  # the distance that counts as none, of the diameter; answers of the oracle that look for x


def exact_products(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """p + e = a b without error, unless a product overflows or underflows (Dekker 1971).

    Examples
    --------
    >>> p, e = exact_products(np.array([0.1]), np.array([3.0]))
    >>> from fractions import Fraction
    >>> Fraction(float(p[0])) + Fraction(float(e[0])) == Fraction(0.1) * 3
    True
    """
    p = a * b
    (ah, al), (bh, bl) = ((h := (t := 134217729.0 * v) - (t - v), v - h) for v in (a, b))
    return p, ((ah * bh - p) + ah * bl + al * bh) + al * bl


def exact_dot(a: Any, b: Any, less: float = 0.0) -> float:
    """<a, b> - less, rounded once.

    Examples
    --------
    >>> exact_dot([1e16, 1.0, -1e16], [1.0, 1.0, 1.0])
    1.0
    """
    p, e = exact_products(*(np.ravel(v) for v in np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(b, np.float64))))
    return math.fsum([*p.tolist(), *e.tolist(), -less])


def exact_total(a: Any) -> float:
    """The sum of all entries, rounded once."""
    return math.fsum(np.asarray(a, np.float64).reshape(-1).tolist())


def _length(a: Any) -> float:
    return math.sqrt(exact_dot(a, a))


def _power_sum(a: np.ndarray, p: float) -> float:
    top = float(a.max())
    return top if top == 0 or p == math.inf else top * exact_total((a / top) ** p) ** (1 / p)


_NORMS: dict[str, Callable[[Any, np.ndarray, np.ndarray], float]] = {  # of a point y with magnitudes a
    "L1Ball": lambda C, a, y: exact_total(a),
    "L2Ball": lambda C, a, y: _length(a),
    "LinfBall": lambda C, a, y: float(a.max()),
    "LpBall": lambda C, a, y: _power_sum(a, C.p),
    "BoundedL1Ball": lambda C, a, y: exact_total(a),
    "WeightedL1Ball": lambda C, a, y: exact_dot(np.ravel(C.weights), a),
    "KSparseBall": lambda C, a, y: max(float(a.max()), exact_total(a) / C.k),
    "KNormBall": lambda C, a, y: exact_total(np.sort(a)[-C.k :]),
    "OwlBall": lambda C, a, y: exact_dot(np.sort(np.ravel(C.weights))[::-1], np.sort(a)[::-1]),
    "ElasticBall": lambda C, a, y: C.l1_ratio * exact_total(a) + (1 - C.l1_ratio) * _length(a),
    "GroupBall": lambda C, a, y: exact_dot(C.weights, [_length(a[C.groups[i]]) for i in range(len(C.groups))]),
    "NuclearBall": lambda C, a, y: float(np.linalg.norm(y, "nuc")),
    "SpectralBall": lambda C, a, y: float(np.linalg.norm(y, 2)),
}
_TOTALS: dict[str, Callable[[Any], tuple[Any, Any, float, float]]] = {  # bounds of the entries, and of their sum
    "Simplex": lambda C: (0.0, math.inf, C.total, C.total),
    "UnitSimplex": lambda C: (0.0, math.inf, -math.inf, C.total),
    "Box": lambda C: (C.lower, C.upper, -math.inf, math.inf),
    "BoundedL1Ball": lambda C: (C.lower, C.upper, -math.inf, math.inf),
    "Monotone": lambda C: (C.lower, C.upper, -math.inf, math.inf),
    "CappedSimplex": lambda C: (0.0, C.cap, C.total, C.total),
    "BudgetBox": lambda C: (C.lower, C.upper, C.total, C.total),
    "Hypersimplex": lambda C: (0.0, C.scale, C.k * C.scale, C.k * C.scale),
}


def excesses(C: Any, x: np.ndarray) -> Iterator[tuple[float, float]]:
    """By how much x breaks each constraint of C, at most 0 for none, with a bound on the rounding of this number.

    Norms, bounds, totals, spectra and products of sets follow their definitions. For any other set it is a bound on the distance
    of x from combinations of the oracle's answers (atoms), which are in the set.

    Examples
    --------
    >>> import extremal as ex
    >>> [off for off, _ in excesses(ex.Simplex(), np.array([0.5, 0.75]))]
    [-0.5, 0.25]
    """
    name, centre = type(C).__name__, getattr(C, "centre", None)
    known = type(C).__module__.startswith("extremal.")  # a set of the user may have the same name
    if known and name in _NORMS:
        y = x if centre is None else x - centre
        norm, far = _NORMS[name](C, np.abs(y).reshape(-1), y), 0.0 if centre is None else exact_total(np.abs(centre))
        yield norm - C.radius, HALF * (64 + 8 * max(x.shape)) * (norm + 2 * far)
    if known and name in _TOTALS:
        low, high, least, most = _TOTALS[name](C)
        yield max(float((low - x).max()), float((x - high).max())), HALF * float(np.abs(x).max())
        yield max(least - exact_total(x), exact_total(x) - most), HALF * abs(exact_total(x))
        if name == "Monotone":
            falls = -np.diff(x.reshape(-1)) * (1 if C.increasing else -1)
            yield float(falls.max(initial=-math.inf)), 2 * HALF * float(np.abs(x).max())
    elif not (known and name in _NORMS):
        yield from _composed(C, name if known else "", x)


def _composed(C: Any, name: str, x: np.ndarray) -> Iterator[tuple[float, float]]:
    size = float(np.abs(x).max())
    if name in ("Product", "FacedProduct"):
        ends = np.cumsum([0, *(math.prod(part.shape) for part in C.sets)])
        for part, (i, j) in zip(C.sets, pairwise(ends), strict=True):
            yield from excesses(part, x[i:j].reshape(part.shape))
    elif name in ("Rows", "FacedRows", "Columns"):
        for line in x.T if name == "Columns" else x:
            yield from excesses(C.C, np.ascontiguousarray(line))
    elif name == "ShiftedSet":
        rough = 2 * HALF * (size + float(np.abs(C.offset).max())) * x.size
        yield from ((off, r + rough) for off, r in excesses(C.C, x - C.offset))
    elif name == "ScaledSet":
        c = abs(C.factor)
        yield from ((c * off, c * r + 2 * HALF * size * x.size) for off, r in excesses(C.C, x / C.factor))
    elif name == "AffineCut":
        yield from excesses(C.C, x)
        for row, low, high in zip(C.G.toarray() if hasattr(C.G, "toarray") else C.G, C.lower, C.upper, strict=True):
            ends = [s * exact_dot(row, np.ravel(x), end) for s, end in ((1, high), (-1, low)) if math.isfinite(end)]
            yield max(ends) / (float(np.abs(row).max()) or 1.0), HALF * size
    elif name in ("Birkhoff", "TransportPolytope"):
        yield -float(x.min()), 0.0
        for lines, total in ((x, getattr(C, "a", 1.0)), (x.T, getattr(C, "b", 1.0))):
            yield float(np.abs(np.array([exact_total(line) for line in lines]) - total).max()), 4 * HALF * float(np.max(total))
    elif name in ("Spectrahedron", "Fantope"):
        s, k = np.linalg.eigvalsh((x + x.T) / 2), getattr(C, "k", 0)
        off = max(-float(s[0]), float(s[-1]) - 1 if k else -math.inf, abs(exact_total(np.diag(x)) - (k or C.trace)))
        yield max(off, float(np.abs(x - x.T).max())), 64 * len(x) * HALF * float(np.abs(s).max())
    else:
        yield 0.0, _distance(C.on(x.shape), x)


def _distance(C: Any, x: np.ndarray) -> float:
    """A bound on the distance of x from the hull of answers of the oracle, by Wolfe's method for its nearest point (1976)."""

    def ask(g: np.ndarray) -> np.ndarray:
        return np.asarray(C.lmo(g.reshape(x.shape)).to_array(), np.float64).reshape(-1) - x.reshape(-1)

    P, w = ask(-x.reshape(-1))[None], np.ones(1)
    for _ in range(_ANSWERS):
        p = w @ P
        if p @ p <= (_NEAR * C.diameter) ** 2:
            break
        q = ask(p)
        if p @ p - p @ q <= 1e-15 * math.sqrt((p @ p) * (q @ q)):
            break
        P, w = _nearer(np.vstack([P, q]), np.append(w, 0.0))
    return float(np.linalg.norm(w @ P)) + (len(w) + 8) * HALF * float(np.abs(P).max() + np.abs(x).max())


def _nearer(P: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The points, and weights of the point of their affine hull nearest to 0, or of the last face on the way there."""
    while True:
        beta = np.linalg.pinv((P[1:] - P[0]).T) @ -P[0]
        new = np.append(1 - beta.sum(), beta)
        down = new <= 0
        if not down.any():
            return P, new
        step = float(np.min(w[down] / np.maximum(w[down] - new[down], 1e-300), initial=1.0))
        w = w + step * (new - w)
        kept = w > 1e-15
        P, w = P[kept], w[kept] / w[kept].sum()
