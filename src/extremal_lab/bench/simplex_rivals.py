"""Least squares over the simplex, hand-written with scipy or cvxpy, and forecasts to try it on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import numpy as np

BLOCK = 2**12  # rows in float64 at a time


def forecasts(n: int, d: int, targets: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Members with a common part, in float32, made by blocks; targets are near combinations of twenty members.

    Examples
    --------
    >>> A, y = forecasts(30, 25)
    >>> A.shape, A.dtype.name, y.shape, forecasts(30, 25, 3)[1].shape
    ((30, 25), 'float32', (30,), (30, 3))
    """
    rng, block_rows = np.random.default_rng(0), 2**14
    A, y, w = np.empty((n, d), np.float32), np.empty((n, targets), np.float32), np.zeros((d, targets), np.float32)
    w[:20] = rng.dirichlet(np.ones(20), targets).T
    for i in range(0, n, block_rows):
        block = A[i : i + block_rows]
        rng.standard_normal(out=block, dtype=np.float32)
        block += rng.standard_normal((len(block), 1), np.float32)
        y[i : i + block_rows] = block @ w + 0.5 * rng.standard_normal((len(block), targets))
    return A, y if targets > 1 else y[:, 0]


def blocks(A: np.ndarray, y: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Some rows at a time, in float64."""
    for i in range(0, len(y), BLOCK):
        yield A[i : i + BLOCK].astype(np.float64), y[i : i + BLOCK].astype(np.float64)


def certify(A: np.ndarray, y: np.ndarray, w: np.ndarray) -> tuple[float, float]:
    """f = |A w - y|^2 / (2 n) and its Frank-Wolfe gap over the simplex, in float64 and by blocks.

    Examples
    --------
    >>> certify(np.eye(2), np.array([1.0, 0.0]), np.array([0.5, 0.5]))
    (0.125, 0.25)
    """
    value, g = 0.0, np.zeros(A.shape[1])
    for a, b in blocks(A, y):
        r = a @ w - b
        value, g = value + 0.5 * float(r @ r) / len(y), g + r @ a / len(y)
    return value, float(g @ w - g.min())


def off(w: np.ndarray) -> float:
    """The distance of weights from the simplex: of their sum from one, or of the least weight from zero.

    Examples
    --------
    >>> off(np.array([0.5, 0.5])), off(np.array([1.25, -0.25])), off(np.array([0.5, 0.25]))
    (0.0, 0.25, 0.25)
    """
    return max(abs(float(w.sum()) - 1), -float(w.min()), 0.0)


def slsqp(value: Callable[..., float], grad: Callable[..., np.ndarray], d: int, **options: Any) -> np.ndarray:
    """A quadratic function over the simplex by scipy's SLSQP, from the centre.

    Examples
    --------
    >>> slsqp(lambda x: 0.5 * x @ x - x[0] / 2, lambda x: x - np.array([0.5, 0.0]), 2).round(6)
    array([0.75, 0.25])
    """
    from scipy.optimize import minimize

    sum_to_one = {"type": "eq", "fun": lambda x: x.sum() - 1, "jac": lambda x: np.ones(d)}
    told: dict[str, Any] = {"bounds": [(0, 1)] * d, "constraints": sum_to_one, "options": {"maxiter": 1000} | options}
    return minimize(value, np.full(d, 1 / d), jac=grad, method="SLSQP", **told).x


def by_slsqp(A: np.ndarray, y: np.ndarray, **options: Any) -> np.ndarray:
    """SLSQP on the rows. Products with A are in its own type: a float64 x would make numpy copy a float32 A."""

    def rest(x: np.ndarray) -> np.ndarray:
        return A @ x.astype(A.dtype) - y

    n = len(y)
    value, grad = lambda x: 0.5 * float(np.square(rest(x)).sum(dtype=np.float64)) / n, lambda x: (rest(x) @ A).astype(float) / n
    return slsqp(value, grad, A.shape[1], **options)


def by_products(A: np.ndarray, y: np.ndarray) -> np.ndarray:
    """A'A and A'y in float64 by blocks, then SLSQP on these."""
    d, n = A.shape[1], len(y)
    H, h = np.zeros((d, d)), np.zeros(d)
    for a, b in blocks(A, y):
        H += a.T @ a / n
        h += b @ a / n
    return slsqp(lambda x: 0.5 * x @ H @ x - h @ x, lambda x: H @ x - h, d, ftol=1e-12)


def by_nnls(A: np.ndarray, y: np.ndarray) -> np.ndarray:
    """scipy's nnls, with the sum as one more row, a thousand times as heavy as the data.

    Examples
    --------
    >>> by_nnls(np.eye(2), np.array([1.0, 0.5])).round(6)
    array([0.75, 0.25])
    """
    from scipy.optimize import nnls

    heavy = 1e3 * np.linalg.norm(A)
    return nnls(np.vstack([A.astype(np.float64), np.full((1, A.shape[1]), heavy)]), np.append(y.astype(np.float64), heavy))[0]


def by_cvxpy(A: np.ndarray, y: np.ndarray, solver: str) -> np.ndarray:
    """A solver of cvxpy for one problem."""
    cp = import_module("cvxpy")

    x = cp.Variable(A.shape[1])
    problem = cp.Problem(cp.Minimize(cp.sum_squares(A @ x - y) / len(y)), [x >= 0, cp.sum(x) == 1])
    problem.solve(solver=solver)
    return np.asarray(x.value)


def by_parameters(A: np.ndarray, B: np.ndarray, solver: str) -> list[np.ndarray]:
    """The same for many problems of one shape: one cvxpy problem, made once, with the data as parameters."""
    cp = import_module("cvxpy")

    x, a, b = cp.Variable(A.shape[2]), cp.Parameter(A.shape[1:]), cp.Parameter(A.shape[1])
    problem = cp.Problem(cp.Minimize(cp.sum_squares(a @ x - b)), [x >= 0, cp.sum(x) == 1])
    answers = []
    for a.value, b.value in zip(A, B, strict=True):
        problem.solve(solver=solver, warm_start=False)
        answers.append(np.asarray(x.value))
    return answers
