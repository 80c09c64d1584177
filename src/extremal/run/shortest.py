"""The shortest of many solutions: answers moved back along directions that the data do not determine."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg import eigh, qr, solve

from extremal.data.kept import Uniform
from extremal.data.parts import counting_rows
from extremal.data.rows import RowData
from extremal.losses.margin import Squared
from extremal.objectives.column_blocks import FORMED_COLUMNS
from extremal.objectives.margins import MarginModel
from extremal.points.iterates import farthest
from extremal.rounding.exact import settle
from extremal.run.result import Certificate, Result, Status
from extremal.sets.base import ConvexSet

FAR = 0.02  # an answer beyond this share of the artificial bounds may have drifted along an undetermined direction
NULL = {8: 1e-12, 4: 1e-6}  # eigenvalues of correlations that count as 0, by bytes of a number
INSIDE = 1e-14  # tolerance of the constraints during a move, as a share of the size of the set
ROUNDS_OF_MOVES = 10  # maximum number of moves along each direction, if the direct way is blocked


def shortened(f: MarginModel, C: ConvexSet, run: Result, reach: np.ndarray, tol: float, atol: float) -> Result:
    """Move an answer far out to the shortest point with the same margins, as far as the constraints allow, and certify it again.

    Columns that sum to a constant, such as all dummies of a feature, leave their common level to the intercept. Answers near 0,
    and answers that are determined by the data, are returned unchanged.
    """
    if not (np.abs(np.asarray(run.x)) > FAR * reach).any():
        return run
    calls = replace(run.calls)
    free = counting_rows(calls, undetermined, f)
    if not free.size:
        return run
    x = settle(C, toward_zero(C, np.asarray(run.x, np.float64), free))
    value, g = counting_rows(calls, f.value_and_grad, x)
    gap = C.gap(x, g)
    met = bool(Certificate(run.n_iter, x, value, gap).meets(tol, atol))
    if not value <= run.value + atol or not (met or gap <= run.gap):
        return run  # the direction counts after all, for f or for its certificate
    calls.certificate += 2 * f.n  # the Hessian, and the gradient at x
    status = Status.GAP if met else run.status
    return replace(run, x=x, value=value, gap=gap, converged=met, status=status, calls=calls, atoms=None)


def undetermined(f: MarginModel) -> np.ndarray:
    """An orthonormal basis of the v with A v = 0, or A v constant if there is an intercept, as columns.

    The cost is one Hessian: n d^2 for n rows of d features. Above 400 features the answer is the empty basis.

    Examples
    --------
    >>> import extremal as ex
    >>> f = ex.InterceptModel(ex.Squared(), np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]), np.ones(3))
    >>> np.abs(undetermined(f)).round(3).tolist()
    [[0.707], [0.707]]
    """
    d = f.shape[0]
    if d > FORMED_COLUMNS or not isinstance(f.data, RowData):
        return np.zeros((d, 0))
    rows = f.on_rows(f.data, type(f))
    rows.loss, rows.deriv_shape, rows.y = Squared(), (), Uniform((f.n,))  # type: ignore[assignment]
    H = np.asarray(rows.on_columns(np.arange(d)).hessian(rows.zero), np.float64)
    size = np.sqrt(np.diag(H))
    size = np.where(size > 0, size, 1.0)
    values, vectors = eigh(H / np.outer(size, size))
    null = vectors[:, values <= NULL[f.data.dtype.itemsize] * d]
    return np.linalg.qr(null / size[:, None])[0]


def toward_zero(C: ConvexSet, x: np.ndarray, free: np.ndarray) -> np.ndarray:
    """The shortest point of x + span(free), if C contains it; otherwise a point near it, by moves along sparse directions.

    Examples
    --------
    >>> import extremal as ex
    >>> toward_zero(ex.Box([2.0, -9.0], 9.0), np.array([5.0, 4.0]), np.full((2, 1), 0.5**0.5)).round(6)
    array([2., 1.])
    """
    short = x - free @ (free.T @ x)
    if C.contains(short, INSIDE):
        return short
    found: Any = qr(free.T, mode="r", pivoting=True)
    pivots = found[1][: free.shape[1]]
    sparse = solve(free[pivots].T, free.T).T  # each direction has a coordinate of its own
    sparse[np.abs(sparse) < 1e-12] = 0.0
    for _ in range(ROUNDS_OF_MOVES):
        before = x
        for v in sparse.T:
            for k in np.ndindex(x.shape[1:]):
                x = _moved(C, x, v, k)
        if np.allclose(x, before, rtol=1e-12, atol=0.0):
            break
    return x


def _moved(C: ConvexSet, x: np.ndarray, v: np.ndarray, k: tuple[int, ...]) -> np.ndarray:
    """x after the step along v in output k that makes x shortest, or after the largest feasible share of the step."""
    step = np.zeros_like(x)
    step[:, *k] = -(v @ x[:, *k]) / (v @ v) * v
    return x + farthest(lambda t: C.contains(x + t * step, INSIDE), 1e-15) * step
