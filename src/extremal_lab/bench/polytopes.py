"""The cost of oracles of polytopes: linear programs from the last basis and from scratch, in those of scipy, and assignments.

Costs change a little from one program to the next, like gradients, and each solver solves each program in turn. Bases need
highspy.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment

from extremal.sets import Birkhoff, ConvexSet, Polytope, TransportPolytope
from extremal_lab.bench.children import installed
from extremal_lab.bench.timing import Found, Measurement, Pair, Skipped, compared, seconds

PART = "polytopes"
SCIPY = "times the CPU time of scipy's linear program for the same costs"
SOLVERS = {"highspy from scratch": False, "highspy from the last basis": True}  # whether it begins from its last basis


@dataclass(frozen=True)
class Sizes:
    """The sizes of a level of measurement."""

    programs: tuple[tuple[int, int, float], ...] = ((50, 30, 1.0), (200, 300, 0.05), (400, 1000, 0.02))  # rows, columns, density
    transports: tuple[int, ...] = (30, 100)
    assignments: tuple[int, ...] = (100, 500)
    calls: int = 25
    repeats: int = 9
    target: float = 0.05


LEVELS = {
    "smoke": Sizes(((10, 6, 1.0),), (4,), (6,), 3, 2, 0.001),
    "quick": Sizes(((50, 30, 1.0), (200, 300, 0.05)), (30,), (100,), 9, 3, 0.02),
    "default": Sizes(),
    "full": Sizes(calls=75, repeats=15),
}


def measure(level: str) -> Found:
    """Measure programs over rows, transports and assignments."""
    sizes, rng = LEVELS[level], np.random.default_rng(0)
    for m, d, density in sizes.programs:
        A = sp.random_array((m, d), density=density, rng=rng, data_sampler=lambda size: rng.random(size))
        yield from programs(f"Polytope {m} x {d}", lambda A=A, m=m: Polytope(A, np.ones(m), bounds=(0, 1)), (d,), rng, sizes)
    for n in sizes.transports:
        a, b = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(n))
        yield from programs(f"TransportPolytope {n} x {n}", lambda a=a, b=b: TransportPolytope(a, b), (n, n), rng, sizes)
    for n in sizes.assignments:
        C, g = Birkhoff(n), rng.standard_normal((n, n))
        unit = "times the CPU time of scipy's linear_sum_assignment"
        pair = Pair(f"Birkhoff: {n}", lambda C=C, g=g: C.lmo(g), lambda g=g: linear_sum_assignment(g), unit)
        yield compared(PART, pair, sizes.repeats, sizes.target)


def programs(
    title: str, make: Callable[[], ConvexSet], shape: tuple[int, ...], rng: np.random.Generator, sizes: Sizes
) -> Iterator[Measurement | Skipped]:
    """One oracle for costs that change: CPU ms by scipy, and the ratios of the others to it."""
    g = rng.standard_normal(shape)
    costs = [g := g + 0.03 * rng.standard_normal(shape) for _ in range(sizes.calls)]
    with no_highspy():
        (plain := make()).lmo(g)  # a set that has not found highspy
    oracles = {"scipy": Calls(plain, False)}
    if installed("highspy"):
        oracles |= {name: Calls(make(), last) for name, last in SOLVERS.items()}
    found: dict[str, list[float]] = {name: [] for name in oracles}
    for g in costs:
        for name, oracle in oracles.items():
            found[name].append(seconds(lambda oracle=oracle, g=g: oracle(g)))
    base = found.pop("scipy")[1:]  # the first call fills caches
    yield Measurement.of(PART, f"{title}, scipy: ms", [1e3 * each for each in base], unit="CPU ms of scipy's linear program")
    for name, spent in found.items():
        ratios = [mine / other for mine, other in zip(spent[1:], base, strict=True)]
        yield Measurement.of(PART, f"{title}: {name}", ratios, unit=SCIPY)
    if not found:
        yield Skipped(PART, title, "highspy is not installed")


class Calls:
    """Successive calls of an oracle: each from the last answer, or each from scratch."""

    def __init__(self, C: Any, last: bool):
        self.C, self.last, self.near = C, last, None

    def __call__(self, g: np.ndarray) -> Any:
        """The answer to the next costs."""
        self.near = self.C.lmo_from(g, self.near if self.last else None)
        return self.near


@contextmanager
def no_highspy() -> Iterator[None]:
    """Hide highspy, as if it were not installed.

    Examples
    --------
    >>> with no_highspy():
    ...     import highspy
    Traceback (most recent call last):
        ...
    ModuleNotFoundError: import of highspy halted; None in sys.modules
    """
    kept = sys.modules.get("highspy")
    sys.modules["highspy"] = None  # pyright: ignore[reportArgumentType]
    try:
        yield
    finally:
        del sys.modules["highspy"]
        if kept is not None:
            sys.modules["highspy"] = kept
