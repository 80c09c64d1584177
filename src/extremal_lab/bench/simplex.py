"""Many small least squares over the simplex in one call, in the CPU time of a problem, against loops over scipy and cvxpy.

There are 100 000 problems of 50 x 10: independent numbers, or the levels of random walks, as in synthetic control. Loops run on
a sample of the problems (`minimize` on twenty). Errors are (f - f*) / f*, with f* from the certified answers, in longdouble. An
error below zero belongs to a point off the simplex, and its distance is reported. cvxpy is skipped if it is not installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from extremal import BlendedPairwiseFW, LinearModel, Simplex, Squared, least_squares_many, minimize
from extremal_lab.bench.children import installed
from extremal_lab.bench.simplex_rivals import by_nnls, by_parameters, by_slsqp, off
from extremal_lab.bench.timing import Found, Measurement, Skipped, in_turns, keeping, seconds

PART = "simplex"
UNIT = "times the CPU time of least_squares_many, per problem"
ROWS, COLUMNS = 50, 10
FEW = 20  # problems for `minimize`
Solve = Callable[[np.ndarray, np.ndarray], Sequence[np.ndarray]]


@dataclass(frozen=True)
class Sizes:
    """The sizes of a level of measurement."""

    problems: int = 100_000
    sample: int = 200
    kinds: tuple[str, ...] = ("normal", "walks")
    repeats: int = 5


LEVELS = {
    "smoke": Sizes(50, 4, ("walks",), 1),
    "quick": Sizes(10_000, 50, repeats=3),
    "default": Sizes(),
    "full": Sizes(repeats=9),
}


def measure(level: str) -> Found:
    """Measure both kinds of problems, each solver in turns with ours."""
    sizes = LEVELS[level]
    if not installed("cvxpy"):
        yield Skipped(PART, "cvxpy", "it is not installed")
    for kind in sizes.kinds:
        yield from _kind(kind, *stacks(kind, sizes.problems), sizes)


def _kind(kind: str, A: np.ndarray, B: np.ndarray, sizes: Sizes) -> Iterator[Measurement]:
    few = A[: sizes.sample], B[: sizes.sample]
    solvers = dict(_loops(*few))
    answers = {name: np.array(work()) for name, (work, _) in solvers.items()}  # compiled and warm
    ours, kept = least_squares_many(A, B), dict[str, list[float]]()
    assert ours.converged.all()
    base = keeping(kept, "all", lambda: seconds(lambda: least_squares_many(A, B)))
    contenders: dict[str, Callable[[], float]] = {
        name: lambda work=work, size=size: seconds(work) / size for name, (work, size) in solvers.items()
    }
    contenders["one matrix for all"] = lambda: seconds(lambda: least_squares_many(A[0], B)) / len(B)
    for name, ratios in in_turns(lambda: base() / len(B), contenders, sizes.repeats).items():
        yield Measurement.of(PART, f"{kind}: {name}", ratios, unit=UNIT)
    yield Measurement.of(PART, f"all, {kind}: least_squares_many", kept["all"], unit=f"CPU seconds of {len(B)} problems")
    yield Measurement.of(
        PART, f"gap, {kind}: least_squares_many", (ours.gap / ours.value).tolist(), unit="certified relative gap"
    )
    best = values(*few, ours.x[: sizes.sample])
    for name, x in answers.items():
        yield from _quality(kind, name, x, values(A[: len(x)], B[: len(x)], x), best[: len(x)])


def _quality(kind: str, name: str, x: np.ndarray, found: np.ndarray, best: np.ndarray) -> Iterator[Measurement]:
    """Errors, and distances of the points from the simplex, over the problems of the sample."""
    errors = ((found - best) / best).astype(float)
    yield Measurement.of(PART, f"error, {kind}: {name}", errors.tolist(), unit="(f - f*) / f*")
    yield Measurement.of(PART, f"off, {kind}: {name}", [off(w) for w in x], unit="how far sum or least weight are off")


def stacks(kind: str, p: int) -> tuple[np.ndarray, np.ndarray]:
    """Matrices with their targets.

    Examples
    --------
    >>> A, B = stacks("walks", 3)
    >>> A.shape, B.shape, bool(90 < A.mean() < 110)
    ((3, 50, 10), (3, 50), True)
    """
    rng = np.random.default_rng(0)
    A = rng.standard_normal((p, ROWS, COLUMNS))
    if kind == "walks":
        np.cumsum(A, axis=1, out=A)
        A += 100
    w = rng.dirichlet(np.full(COLUMNS, 0.5), p)
    return A, np.einsum("pij,pj->pi", A, w) + 0.3 * rng.standard_normal((p, ROWS))


def _loops(A: np.ndarray, B: np.ndarray) -> Iterator[tuple[str, tuple[Callable[[], Any], int]]]:
    """The rivals: the work of each, and the number of problems that it solves."""
    for name, solve in {
        "scipy SLSQP, defaults": _each(by_slsqp),
        "scipy SLSQP, ftol 1e-12": _each(lambda a, b: by_slsqp(a, b, ftol=1e-12)),
        "scipy nnls, heavy row": _each(by_nnls),
    }.items():
        yield name, (lambda solve=solve: solve(A, B), len(B))
    for solver in ("OSQP", "CLARABEL") if installed("cvxpy") else ():
        yield f"cvxpy {solver}, parameters", (lambda solver=solver: by_parameters(A, B, solver), len(B))
    yield "minimize, one by one", (lambda: _each(_minimize)(A[:FEW], B[:FEW]), len(B[:FEW]))


def _each(solve: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Solve:
    return lambda A, B: [solve(a, b) for a, b in zip(A, B, strict=True)]


def _minimize(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return minimize(LinearModel(Squared(), a, b), Simplex(), BlendedPairwiseFW(), tol=1e-8).x


def values(A: np.ndarray, B: np.ndarray, x: np.ndarray) -> np.ndarray:
    """f in extended precision."""
    r = np.einsum("pij,pj->pi", A.astype(np.longdouble), x.astype(np.longdouble)) - B
    return (r * r).mean(axis=1) / 2
