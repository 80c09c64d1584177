"""The cost of an oracle call of the nuclear norm ball on a sparse gradient, in calls of scipy's svds.

Gradients are 20000 x 10000 with 2 million entries: noise alone, where many singular values are nearly the largest; ten
directions of decreasing strength and noise; ten of equal strength and noise. Calls are cold, or warm: from the answer to a
gradient that differs by one per cent. The residual is |G'u - sigma v| / sigma; the bound is the relative excess of `low` over
sigma.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import svds

from extremal.sets import NuclearBall
from extremal_lab.bench.timing import Found, Measurement, in_turns, seconds

PART = "spectral"
TOLERANCES = {1e-4: 1e-4, 1e-8: 0.0}  # our tolerance, and the matching one of svds
_svds: Any = svds  # its stub says that tolerances are whole numbers
GRADIENTS = {"noise": (), "ten falling": np.linspace(1, 0.5, 10), "ten equal": np.ones(10)}
Pairs = tuple[np.ndarray, np.ndarray, float, float]  # u, v, sigma, and an upper bound on sigma
Call = Callable[[], Pairs]


@dataclass(frozen=True)
class Sizes:
    """The sizes of a level of measurement."""

    rows: int = 20_000
    columns: int = 10_000
    entries: int = 2_000_000
    repeats: int = 5


LEVELS = {
    "smoke": Sizes(60, 40, 1_000, 2),
    "quick": Sizes(4_000, 2_000, 200_000, 3),
    "default": Sizes(),
    "full": Sizes(repeats=9),
}


def measure(level: str) -> Found:
    """Measure ratios, residuals, bounds and memory for each gradient and tolerance."""
    sizes = LEVELS[level]
    for what, strengths in GRADIENTS.items():
        G = gradient(sizes, strengths)
        moved = G.copy()
        moved.data *= 1 + 0.01 * np.random.default_rng(2).standard_normal(G.nnz)
        for tol, other in TOLERANCES.items():
            yield from compared(what, G, moved, tol, other, sizes.repeats)


def compared(what: str, G: Any, moved: Any, tol: float, other: float, repeats: int) -> Iterator[Measurement]:
    """Cold and warm calls at one tolerance, in turns with svds."""
    C = NuclearBall(1.0, tol=tol)
    near = C.lmo(moved)
    ours: dict[str, Call] = {"cold": lambda: of_vertex(C.lmo(G), G), "warm": lambda: of_vertex(C.lmo_from(G, near), G)}
    theirs: Call = lambda: of_svds(G, other)  # noqa: E731
    contenders = {name: lambda call=call: seconds(call) for name, call in ours.items()}
    unit = f"times the CPU time of svds(tol={other:g})"
    for name, ratios in in_turns(lambda: seconds(theirs), contenders, repeats).items():
        yield Measurement.of(PART, f"{what}, tol {tol:g}: {name}", ratios, unit=unit)
    for name, call in {**ours, "svds": theirs}.items():
        yield from quality(f"{what}, tol {tol:g}", name, call, G)


def quality(head: str, name: str, call: Call, G: Any) -> Iterator[Measurement]:
    """The quality of an answer, and the memory of the call."""
    tracemalloc.start()
    u, v, sigma, upper = call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    residual = float(np.linalg.norm(G.T @ u - sigma * v)) / sigma
    yield Measurement.of(
        PART, f"residual, {head}: {name}", [residual], unit="|G'u - sigma v| / sigma", note=f"sigma {sigma:.10g}"
    )
    if np.isfinite(upper):
        yield Measurement.of(PART, f"bound, {head}: {name}", [upper / sigma - 1], unit="(proven bound - sigma) / sigma")
    yield Measurement.of(PART, f"memory, {head}: {name}", [peak / 1e6], unit="MB that a call allocates at most")


def gradient(sizes: Sizes, strengths: Sequence[float] | np.ndarray) -> Any:
    """Noise and directions of these strengths, at random places."""
    rng, shape = np.random.default_rng(0), (sizes.rows, sizes.columns)
    rows, cols = (rng.integers(0, side, sizes.entries) for side in shape)
    data = rng.standard_normal(sizes.entries)
    for c in strengths:
        data += c * rng.standard_normal(sizes.rows)[rows] * rng.standard_normal(sizes.columns)[cols]
    return sp.coo_array((data, (rows, cols)), shape).tocsr()


def of_vertex(s: Any, G: Any) -> Pairs:
    """The leading pair, from a vertex of the ball."""
    return -s.left, s.right, -s.dot(G), -s.low


def of_svds(G: Any, tol: float) -> Pairs:
    """The same by scipy, which proves no bound."""
    u, s, vt = _svds(G, k=1, tol=tol, v0=np.random.default_rng(0).standard_normal(min(G.shape)))
    return u[:, 0], vt[0], float(s[0]), np.nan
