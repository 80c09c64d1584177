"""The paths among the contests of `extremal_lab.bench.peers`: many radii, against tools that take as many penalties."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from extremal.losses import Logistic, Squared
from extremal.objectives import LinearModel
from extremal.run import minimize, path
from extremal.sets import L1Ball
from extremal_lab.bench import peer_l1, peer_problems
from extremal_lab.bench.children import installed
from extremal_lab.bench.peer_problems import Data
from extremal_lab.bench.peers import LONG, Contest
from extremal_lab.bench.problems import named

SHARES = 200.0  # the largest radius of a path over its smallest
RADII = {"w8a": 30.3, "text": 1165.0, "genomics": 20.12}  # the largest radius of a logistic path
Tools = dict[str, Callable[[float], np.ndarray]]  # functions of the tolerance, with one row of weights for each penalty


def paths(scale: str) -> Iterator[Contest]:
    """All paths, or one of least squares."""
    if scale == "tiny":
        yield lasso_path("100 x 10", peer_problems.dense(100, 10, 3), 3, None)
        return
    yield lasso_path("2000 x 500", peer_problems.dense(2000, 500, 50), 100, 1.5)
    if scale == "whole":
        w8a, (A, z) = named("w8a"), peer_problems.genomics()
        yield lasso_path("genomics", (A, z), 100, 1.2, share=0.25)
        yield lasso_path("text", peer_problems.text(), 100, 1.2)
        yield logistic_path(w8a.name, (w8a.A, w8a.y), RADII["w8a"], 100, 0.5)
        yield logistic_path("text", peer_problems.text(), RADII["text"], 100, 0.5)
        yield logistic_path("genomics", (A, np.where(z > np.median(z), 1.0, -1.0)), RADII["genomics"], 100, None)


def lasso_path(name: str, data: Data, count: int, bar: float | None, share: float = 0.5) -> Contest:
    """Least squares at ``count`` radii up to a ``share`` of that of a free model.

    Where columns outnumber rows, larger shares would fit all targets exactly, and no penalty says the same as the radius.
    """
    A, y = data
    f = LinearModel(Squared(), A, y)
    radius = share * float(np.abs(minimize(f, L1Ball(1e3), tol=1e-2).x).sum())
    columns = peer_l1.by_columns(A)
    return _contest(f"least-squares path, {name}", f, radius, count, bar, lambda lams: _for_squares(columns, y, lams))


def logistic_path(name: str, data: Data, radius: float, count: int, bar: float | None) -> Contest:
    """l1 logistic regression at ``count`` radii."""
    A, y = data
    return _contest(
        f"logistic path, {name}", LinearModel(Logistic(), A, y), radius, count, bar, lambda lams: _for_labels(A, y, lams)
    )


def _contest(
    name: str, f: LinearModel, radius: float, count: int, bar: float | None, tools: Callable[[np.ndarray], Tools]
) -> Contest:
    """Others get the penalties of certified solutions, and the largest error of the penalised values counts."""
    sets = [L1Ball(r) for r in np.geomspace(radius / SHARES, radius, count)]
    found = path(f, sets, tol=1e-7, **LONG)
    best, doubt = [r.x for r in found], max(r.gap / f.value(r.x) for r in found)
    lams = np.array([np.abs(f.grad(x)).max() for x in best])
    least = np.array([penalised(f, x, lam) for x, lam in zip(best, lams, strict=True)])

    def error(X: np.ndarray) -> float:
        return max(penalised(f, x, lam) / low - 1 for x, lam, low in zip(X, lams, least, strict=True))

    def ours() -> np.ndarray:
        return np.array([r.x for r in path(f, sets, tol=1e-4, atol=0.0)])

    return Contest(name, ours, tools(lams), error, 1e-4, bar, doubt)


def penalised(f: Any, x: np.ndarray, lam: float) -> float:
    """f(x) + lambda |x|_1."""
    return f.value(x) + lam * float(np.abs(x).sum())


def _for_squares(X: Any, y: np.ndarray, lams: np.ndarray) -> Tools:
    """Both tools want penalties that decrease."""
    order = np.argsort(-lams)
    back, alphas = np.argsort(order), lams[order]
    tools: Tools = {}
    if installed("sklearn"):
        from sklearn.linear_model import lasso_path as by_sklearn

        given: dict[str, Any] = {"alphas": alphas, "max_iter": 100_000}
        tools["lasso_path"] = lambda tol: by_sklearn(X, y, tol=tol, **given)[1].T[back]
    if installed("celer"):
        from celer import celer_path  # pyright: ignore[reportMissingImports]

        tools["celer"] = lambda tol: celer_path(X, y, "lasso", alphas=alphas, tol=tol, max_iter=100)[1].T[back]
    return tools


def _for_labels(A: Any, y: np.ndarray, lams: np.ndarray) -> Tools:
    """celer goes from one penalty to the next; liblinear begins anew for each."""
    order = np.argsort(-lams)
    back, tools = np.argsort(order), {}
    if installed("sklearn"):
        fit = peer_l1.liblinear(A, y)
        tools["liblinear"] = lambda tol: np.array([fit(lam, tol) for lam in lams])
    if installed("celer"):
        from celer import celer_path  # pyright: ignore[reportMissingImports]

        columns, alphas = peer_l1.by_columns(A), len(y) * lams[order]
        tools["celer"] = lambda tol: celer_path(columns, y, "logreg", alphas=alphas, tol=tol, max_iter=100)[1].T[back]
    return tools
