"""The cost of one pass: the row kernels over scipy's or numpy's own pass, the l1 LMO over numpy's, on the same arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from extremal.losses import Logistic
from extremal.objectives import LinearModel
from extremal.sets import L1Ball
from extremal_lab.bench.iterations import power
from extremal_lab.bench.problems import generated
from extremal_lab.bench.timing import Found, Pair, compared

PART = "rows"
SCIPY = "times the CPU time of scipy's own pass"
NUMPY = "times the CPU time of numpy's own pass"
VECTOR = "times the CPU time of np.abs(g).max()"
ORDERED = "times the CPU time of the same rows in order"
BAR = 1.5
PER_ROW = 12


@dataclass(frozen=True)
class Sizes:
    """The sizes of a level of measurement."""

    rows: tuple[int, ...] = (20_000, 2_000_000)  # within the cache, and beyond it
    features: tuple[int, ...] = (1_000, 100_000)
    dense: int = 48  # features of dense rows; there are a quarter as many rows
    lmo: tuple[int, ...] = (10_000, 100_000, 1_000_000)
    repeats: int = 5
    target: float = 0.05  # approximate CPU seconds of a series of calls


LEVELS = {
    "smoke": Sizes((2_000,), (1_000,), 48, (1_000,), 2, 0.001),
    "quick": Sizes((20_000,), repeats=3, target=0.02),
    "default": Sizes(),
    "full": Sizes(repeats=9),
}


def measure(level: str) -> Found:
    """Measure the ratio of each pair of calls, in turns."""
    sizes = LEVELS[level]
    for pair in pairs(sizes):
        yield compared(PART, pair, sizes.repeats, sizes.target)


def pairs(sizes: Sizes) -> Iterator[Pair]:
    """All pairs; the arrays of one size are made after the measurements of the size before."""
    for n in sizes.rows:
        for d in sizes.features:
            yield from sparse(n, d)
        yield from dense(n // 4, sizes.dense)
    for d in sizes.lmo:
        yield from oracle(d)


def sparse(n: int, d: int) -> Iterator[Pair]:
    """CSR rows: the gradient, both products with all rows by their numbers, and the extra cost of random rows, without a bar.

    Examples
    --------
    >>> full, dot, tdot, mixed = sparse(200, 50)
    >>> full.name, mixed.bar
    ('200 x 50: full gradient', None)
    >>> [bool(np.allclose(pair.ours(), pair.other())) for pair in (full, dot, tdot)]
    [True, True, True]
    """
    problem, rng = generated(n, d, PER_ROW), np.random.default_rng(1)
    A, data, c = problem.A, problem.f.data, rng.standard_normal(n)
    x = np.linspace(-1, 1, d)  # the point of scipy's gradient
    every, mixed, where = np.arange(n), rng.permutation(n), f"{n} x {d}"
    yield Pair(f"{where}: full gradient", lambda: problem.f.grad(x), problem.scipy_gradient(), SCIPY, BAR)
    yield Pair(f"{where}: A[idx] x, all rows", lambda: data.dot(x, every), lambda: A @ x, SCIPY, BAR)
    yield Pair(f"{where}: A[idx]' c, all rows", lambda: data.tdot(c, every), lambda: A.T @ c, SCIPY, BAR)
    at_random, in_order = (lambda: data.dot(x, mixed), lambda: data.dot(x, every))
    yield Pair(f"rows at random: A[idx] x, {where}", at_random, in_order, ORDERED)


def dense(n: int, d: int) -> Iterator[Pair]:
    """Dense rows: the gradient.

    Examples
    --------
    >>> (full,) = dense(200, 6)
    >>> bool(np.allclose(full.ours(), full.other()))
    True
    """
    A, loss, x = np.random.default_rng(2).standard_normal((n, d)), Logistic(), np.full(d, 0.1)
    y = np.sign(A[:, 0])
    f = LinearModel(loss, A, y)
    name = f"{n} x {d}, dense: full gradient"
    yield Pair(name, lambda: f.grad(x), lambda: A.T @ loss.deriv(A @ x, y) / n, NUMPY, BAR)


def oracle(d: int) -> Iterator[Pair]:
    """The LMO of the l1 ball, which looks for the largest abs(g): for an open shape, and for the shape of g, as in a run.

    Examples
    --------
    >>> first, second = oracle(100)
    >>> first.name, first.bar
    ('l1 LMO: d = 100, any shape', 1.5)
    >>> first.ours() == second.ours()
    True
    """
    g = np.random.default_rng(3).standard_normal(d)
    for said, C in (("any shape", L1Ball(20.0)), ("known shape", L1Ball(20.0).on(d))):
        yield Pair(f"l1 LMO: d = {power(d)}, {said}", lambda C=C: C.lmo(g), lambda: np.abs(g).max(), VECTOR, BAR)
