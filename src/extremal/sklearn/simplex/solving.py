"""Weights over a simplex for the targets of a regression: by active sets for all of them at once, or by Newton steps for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from extremal.losses.margin import Squared
from extremal.rounding.exact import settle, violation
from extremal.run.front import minimize
from extremal.run.many import least_squares_many
from extremal.run.result import Status, Trace
from extremal.sets.simplices.plain import Simplex
from extremal.sklearn.answer import Answer, answer_at, ended, gap_bound
from extremal.sklearn.options import Options
from extremal.sklearn.simplex.rows import SimplexRows

EIGEN_NOISE = 1e-14  # of an eigenvalue of the products, relative to the largest: what is below is rounding
ROW_ROUNDS = 4  # gradients from the rows, at most


def solve_simplex(rows: SimplexRows, C: Any, options: Options, starts: Sequence[np.ndarray | None]) -> list[Answer]:
    """The weights of all targets, by the solver that was asked for; ``starts`` are weights for Newton steps to begin at."""
    solver = rows.best_solver() if options.solver == "auto" else options.solver
    if solver == "newton":
        return [_by_newton(rows, C, options, t, start) for t, start in enumerate(starts)]
    answers = _by_active_sets(rows, C, options.tol)
    if options.solver == "auto":  # columns that are nearly dependent: the other method may get farther
        for t, answer in enumerate(answers):
            if answer.status != "tol":
                answers[t] = min(answer, _by_newton(rows, C, options, t, starts[t]), key=lambda found: found.gap)
    return answers


def _by_newton(rows: SimplexRows, C: Any, options: Options, t: int, start: np.ndarray | None) -> Answer:
    """One target, by a run."""
    f, slack, x0 = rows.model(t), rows.slack[t], None if start is None else settle(C, C.project(start.astype(np.float64)))
    r = minimize(f, C, x0=x0, seed=options.seed, tol=options.tol, atol=slack, max_iter=options.max_iter)
    return answer_at(f, C, r.x, options.tol, slack, r, "newton")


def _by_active_sets(rows: SimplexRows, C: Any, tol: float) -> list[Answer]:
    """All targets by `least_squares_many` on a factor of the rows, or on one of the products of the columns.

    Products lose digits that a further round finds again, from the gradient at the rows: H (w - x) + g is the gradient at w.
    """
    rounds = 1
    if rows.small:
        answers = _solved(rows, C, *rows.factor(), tol)
    else:
        H, h = rows.products(C.total if type(C) is Simplex else None)
        root, inverse = square_root(H)
        answers = _solved(rows, C, root, inverse @ h, tol)
        while any(answer.status != "tol" for answer in answers) and rounds < ROW_ROUNDS:
            x, g = (np.column_stack(parts) for parts in ([a.x.astype(np.float64) for a in answers], [a.g for a in answers]))
            new = _solved(rows, C, root, inverse @ (H @ x - rows.weight * g), tol)
            answers = [min(pair, key=lambda answer: answer.gap) for pair in zip(answers, new, strict=True)]
            rounds += 1
    grads = (1 + rounds) * rows.count
    return [replace(answer, n_grads=grads, trace=_trace(answer, grads)) for answer in answers]


def _solved(rows: SimplexRows, C: Any, R: np.ndarray, T: np.ndarray, tol: float) -> list[Answer]:
    """The minimisers of |R w - T_t|^2 in the float type of X, with values and gaps from the rows, which are read once for all."""
    found = least_squares_many(R, np.ascontiguousarray(T.T), type(C)(C.total))
    xs = [settle(C, w.astype(rows.X.dtype)) for w in found.x]
    values, gradients, intercepts = rows.look(np.column_stack(xs).astype(np.float64))
    answers = []
    for t, x in enumerate(xs):
        value, g = float(values[t]), np.ascontiguousarray(gradients[:, t])
        gap = float(gap_bound(C, x.astype(np.float64), g, value, Squared()))
        exact = rows.small and found.converged[t]  # the minimiser, up to rounding
        status = "tol" if exact else ended(gap, value, tol, rows.slack[t], Status.STALLED)
        cost = int(found.n_iter[t]), 0, rows.count, "active_set"
        answers.append(Answer(x, value, gap, C, violation(C, x), status, *cost, intercept=float(intercepts[t]), g=g))
    return answers


def square_root(H: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """R with R'R = H, and its pseudo-inverse transposed, from the eigenvalues of H that are not rounding.

    Examples
    --------
    >>> import numpy as np
    >>> R, inverse = square_root(np.diag([4.0, 0.0]))
    >>> R.round(12) + 0.0, (inverse @ np.array([2.0, 0.0])).round(12)
    (array([[0., 0.],
           [2., 0.]]), array([0., 1.]))
    """
    values, vectors = np.linalg.eigh(H)
    kept = values > EIGEN_NOISE * max(values[-1], 0.0)
    roots = np.sqrt(np.where(kept, values, 0.0))
    return roots[:, None] * vectors.T, np.divide(1.0, roots, out=np.zeros_like(roots), where=kept)[:, None] * vectors.T


def _trace(answer: Answer, grads: int) -> Trace:
    """One row: an active-set method has no gaps on its way."""
    trace, steps = Trace(), answer.n_iter
    row = {"iter": steps, "grads": grads, "passes": grads / answer.n, "lmos": steps + 1, "seconds": np.nan, "cpu": np.nan}
    trace.append(row | {"value": answer.value, "gap": answer.gap})
    return trace
