"""The contests of `extremal_lab.bench.peers`: the problem, our call, and the calls of the tools that people use for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy.optimize import minimize as scipy_minimize
from scipy.optimize import nnls

from extremal.losses import Logistic, Poisson, Squared
from extremal.objectives import LinearModel
from extremal.run import minimize
from extremal.sets import Box, GroupBall, L1Ball, Simplex
from extremal.sets.words import read_constraint
from extremal_lab.bench import peer_l1, peer_paths, peer_problems
from extremal_lab.bench.children import installed
from extremal_lab.bench.peer_problems import Data
from extremal_lab.bench.peers import LONG, Contest
from extremal_lab.bench.problems import named
from extremal_lab.bench.simplex_rivals import slsqp

GROUP = 5
BOXES = (100, 5), (1000, 10), (10_000, 100), (100_000, 50), (5000, 1000)


def contests(scale: str) -> Iterator[Contest]:
    """All contests: whole, half of them, or tiny ones of each kind."""
    yield from _l1(scale)
    yield from peer_paths.paths(scale)
    yield from _groups(scale)
    yield from _small(scale)
    yield from _boxes(scale)


def _l1(scale: str) -> Iterator[Contest]:
    if scale == "tiny":
        yield l1("text", peer_problems.text(200, 300, 20), 20.0, 1e-4, ("liblinear",))
        return
    sparse = ("liblinear", "skglm", "celer")
    w8a, snap = named("w8a"), (*sparse, "snapml")
    yield l1(w8a.name, (w8a.A, w8a.y), 30.3, 1e-6, snap, bar=0.9)
    A, z = peer_problems.genomics()
    genes = A, np.where(z > np.median(z), 1.0, -1.0)
    yield l1("genomics", genes, 6.73, 1e-6, ("skglm", "celer"), bar=1.0)
    if scale == "whole":
        yield l1(w8a.name, (w8a.A, w8a.y), 7.363, 1e-6, snap, bar=0.9)
        yield l1("genomics", genes, 2.549, 1e-6, ("skglm", "celer"), bar=1.0)
        yield l1("genomics", genes, 20.12, 1e-6, ("skglm", "celer"), bar=1.5)
        yield l1("text", peer_problems.text(), 2153.0, 1e-6, sparse, bar=0.8)
        for radius in (2000.0, 20_000.0):
            yield l1("rare text", peer_problems.rare(), radius, 1e-6, ("liblinear",), bar=1.5)


def l1(name: str, data: Data, radius: float, precision: float, tools: tuple[str, ...], bar: float | None = None) -> Contest:
    """l1 logistic regression: others get the penalty, and their answers are projected onto the ball off the clock."""
    A, y = data
    f = LinearModel(Logistic(), A, y)
    best = minimize(f, L1Ball(radius), tol=precision / 100, **LONG)
    lam, least = float(np.abs(f.grad(best.x)).max()), f.value(best.x)
    others = {t: peer_l1.PEERS[t][0](A, y) for t in tools if installed(peer_l1.PEERS[t][2])}
    return Contest(
        f"l1 logistic, {name} R = {radius:g} ({np.count_nonzero(best.x)} non-zeros)",
        lambda: minimize(f, L1Ball(radius), tol=precision, atol=0.0).x,
        {t: lambda tol, fit=fit: fit(lam, tol) for t, fit in others.items()},
        lambda x: f.value(peer_l1.projected(x, radius)) / least - 1,
        precision,
        bar,
        best.gap / least,
    )


def _groups(scale: str) -> Iterator[Contest]:
    if not installed("celer"):
        return
    n, d, true = (100, 10, 5) if scale == "tiny" else (2000, 500, 60)
    A, y = peer_problems.dense(n, d, true)
    whole = group_norm(np.linalg.lstsq(A[:, :true], y, rcond=None)[0])
    for share in (0.9, 0.97) if scale == "whole" else (0.9,):
        yield groups((A, y), share * whole, 2.0)


def groups(data: Data, radius: float, bar: float | None) -> Contest:
    """The group lasso against celer, which gets the penalty."""
    from celer import GroupLasso  # pyright: ignore[reportMissingImports]

    A, y = data
    f, d = LinearModel(Squared(), A, y), A.shape[1]
    C = GroupBall(radius, np.repeat(np.arange(d // GROUP), GROUP))
    best = minimize(f, C, tol=1e-8, **LONG)
    x = best.x
    lam = float(np.sqrt(np.square(f.grad(x)).reshape(-1, GROUP).sum(axis=1)).max())
    least, X = f.value(x) + lam * group_norm(x), np.asfortranarray(A)

    def by_celer(tol: float) -> np.ndarray:
        return GroupLasso(groups=GROUP, alpha=lam, tol=tol, fit_intercept=False, max_iter=1000).fit(X, y).coef_

    used = np.count_nonzero(np.abs(x).reshape(-1, GROUP).sum(axis=1))
    name = f"group lasso, {len(y)} x {d} R = {radius:.3g} ({used} groups)"
    ours = lambda: minimize(f, C, tol=1e-6, atol=0.0).x  # noqa: E731
    error = lambda x: (f.value(x) + lam * group_norm(x)) / least - 1  # noqa: E731
    return Contest(name, ours, {"celer": by_celer}, error, 1e-6, bar, best.gap / least)


def group_norm(x: np.ndarray) -> float:
    """The sum of the Euclidean norms of consecutive groups.

    Examples
    --------
    >>> group_norm(np.array([3.0, 4.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0]))
    7.0
    """
    whole = np.append(x, np.zeros(-len(x) % GROUP)).reshape(-1, GROUP)
    return float(np.sqrt(np.square(whole).sum(axis=1)).sum())


def _small(scale: str) -> Iterator[Contest]:
    yield linear(peer_problems.counts(100, 3) if scale == "tiny" else peer_problems.counts())
    for n, d in ((100, 5),) if scale == "tiny" else ((100, 5), (1000, 10), (100_000, 10)):
        yield simplex(peer_problems.members(n, d))
    A, z = peer_problems.dense(100, 5, 5)
    yield tiny((A, np.sign(z)), 1.0)


def linear(data: Data) -> Contest:
    """Poisson regression with x1 <= x2 and |x|_1 <= 3, against SLSQP on positive and negative parts."""
    A, y = data
    f, d = LinearModel(Poisson(), A, y), A.shape[1]
    C = read_constraint(["x1 <= x2", "l1:3"], None, (d,)).set()
    best = minimize(f, C, tol=1e-9, **LONG)
    least = f.value(best.x)
    row = np.zeros(2 * d)
    row[[1, 2, d + 1, d + 2]] = -1.0, 1.0, 1.0, -1.0
    rows = np.vstack([row, -np.ones(2 * d)])
    other = _by_parts(f, d, rows, np.array([0.0, 3.0]))
    ours = lambda: minimize(f, C, tol=1e-6, atol=0.0).x  # noqa: E731
    return Contest(
        f"x1 <= x2 and l1, Poisson {len(y)} x {d}",
        ours,
        {"SLSQP": other},
        lambda x: max(f.value(x) / least - 1, x[1] - x[2], float(np.abs(x).sum()) / 3 - 1),
        1e-6,
        3.0,
        best.gap / least,
    )


def _by_parts(f: Any, d: int, rows: np.ndarray, room: np.ndarray) -> Callable[[float], np.ndarray]:
    """SLSQP for x = u - v with u, v >= 0 and rows (u, v) + room >= 0, as a function of its tolerance."""

    def value(p: np.ndarray) -> tuple[float, np.ndarray]:
        value, g = f.value_and_grad(p[:d] - p[d:])
        return value, np.concatenate([g, -g])

    limits = {"type": "ineq", "fun": lambda p: rows @ p + room, "jac": lambda p: rows}
    told: dict[str, Any] = {"jac": True, "method": "SLSQP", "bounds": [(0, None)] * (2 * d), "constraints": limits}

    def solve(tol: float) -> np.ndarray:
        p = scipy_minimize(value, np.zeros(2 * d), options={"ftol": tol, "maxiter": 1000}, **told).x
        return p[:d] - p[d:]

    return solve


def simplex(data: Data) -> Contest:
    """Least squares over the simplex, against nnls on A'A with a heavy row, and SLSQP on A'A; both make A'A on the clock."""
    A, y = data
    n, d = A.shape
    f, C = LinearModel(Squared(), A, y), Simplex(shape=(d,))

    def by_nnls(_: float) -> np.ndarray:
        R, heavy = np.linalg.cholesky(A.T @ A).T, 1e3 * np.sqrt(n)
        w = nnls(np.vstack([R, np.full((1, d), heavy)]), np.append(np.linalg.solve(R.T, A.T @ y), heavy))[0]
        return w / w.sum()

    def by_slsqp(tol: float) -> np.ndarray:
        H, h = A.T @ A / n, A.T @ y / n
        return slsqp(lambda x: 0.5 * x @ H @ x - h @ x, lambda x: H @ x - h, d, ftol=tol)

    best = minimize(f, C, tol=1e-11, **LONG)
    least = f.value(best.x)
    ours = lambda: minimize(LinearModel(Squared(), A, y), C, tol=1e-8, atol=0.0).x  # noqa: E731
    tools = {"nnls on A'A": by_nnls, "SLSQP on A'A": by_slsqp}
    return Contest(f"simplex, {n} x {d}", ours, tools, lambda x: f.value(x) / least - 1, 1e-8, 1.5, best.gap / least)


def tiny(data: Data, radius: float) -> Contest:
    """One small l1 logistic regression, with the making of the model, against SLSQP."""
    A, y = data
    f, d = LinearModel(Logistic(), A, y), A.shape[1]
    best = minimize(f, L1Ball(radius), tol=1e-10, **LONG)
    least = f.value(best.x)
    other = _by_parts(_Rows(A, y), d, -np.ones((1, 2 * d)), np.array([radius]))
    ours = lambda: minimize(LinearModel(Logistic(), A, y), L1Ball(radius), tol=1e-6, atol=0.0).x  # noqa: E731
    error = lambda x: f.value(peer_l1.projected(x, radius)) / least - 1  # noqa: E731
    return Contest(f"tiny call, {len(y)} x {d}", ours, {"SLSQP": other}, error, 1e-6, 0.8, best.gap / least)


class _Rows:
    """Logistic loss by numpy, as a user would write it for SLSQP."""

    def __init__(self, A: np.ndarray, y: np.ndarray) -> None:
        self.B = -y[:, None] * A

    def value_and_grad(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        z = self.B @ x
        return float(np.logaddexp(0, z).mean()), (1 / (1 + np.exp(-z))) @ self.B / len(z)


def _boxes(scale: str) -> Iterator[Contest]:
    sizes = {"tiny": ((100, 5),), "half": ((10_000, 100),)}.get(scale, BOXES)
    for n, d in sizes:
        yield box(peer_problems.dense(n, d, d))


def box(data: Data) -> Contest:
    """Least squares over [-0.5, 0.5]^d, against L-BFGS-B on the rows."""
    A, y = data
    n, d = A.shape
    f, C = LinearModel(Squared(), A, y), Box(-0.5, 0.5, shape=(d,))

    def value(x: np.ndarray) -> tuple[float, np.ndarray]:
        r = A @ x - y
        return 0.5 * float(r @ r) / n, r @ A / n

    def other(tol: float) -> np.ndarray:
        options = {"ftol": tol, "gtol": 0.0, "maxiter": 10_000, "maxfun": 100_000}
        return scipy_minimize(value, np.zeros(d), jac=True, method="L-BFGS-B", bounds=[(-0.5, 0.5)] * d, options=options).x

    best = minimize(f, C, tol=1e-10, **LONG)
    least = f.value(best.x)
    ours = lambda: minimize(LinearModel(Squared(), A, y), C, tol=1e-8, atol=0.0).x  # noqa: E731
    return Contest(f"box, {n} x {d}", ours, {"L-BFGS-B": other}, lambda x: f.value(x) / least - 1, 1e-8, 1.5, best.gap / least)
