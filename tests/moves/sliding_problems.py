"""The problems and sets that variance-reduced sliding is run on."""

from __future__ import annotations

import numpy as np
import pytest
from cases import DIM

import extremal as ex

ESTIMATORS = ("saga", "sarah", "saga-sarah", "svrg")
POLYTOPE = ex.Polytope(A_ub=np.vstack([np.ones(DIM), np.arange(DIM)]), b_ub=[1.0, 2.0], bounds=(-0.5, 1.0))
VECTOR_SETS = (
    ex.L1Ball(2.0),
    ex.Simplex(),
    ex.GroupBall(1.0, groups=np.arange(DIM) // 2),
    ex.Box(-0.3, 0.2),
    ex.L2Ball(0.7),
    POLYTOPE,
)


EVERY_ESTIMATOR = pytest.mark.parametrize("gradient", ESTIMATORS)
BOTH_FORMS = pytest.mark.parametrize("accelerated", [False, True])


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


ROWS = rng(3).standard_normal((120, DIM))


def strong(dtype=np.float64) -> ex.LinearModel:
    """Least squares, well-conditioned; the minimum lies on the boundary of each set."""
    y = ROWS @ np.linspace(-1.0, 1.0, DIM) + 0.3 * rng(4).standard_normal(len(ROWS))
    return ex.LinearModel(ex.Squared(), ROWS.astype(dtype), y.astype(dtype))


def run(f, C, method, passes=40, **options):
    return ex.minimize(f, C, method, **{"tol": 0.0, "atol": 0.0, "max_grads": passes * f.n} | options)


def outputs(n: int = 100, d: int = 5, k: int = 3) -> ex.LinearModel:
    A = rng(5).standard_normal((n, d))
    return ex.LinearModel(
        ex.MultiTask(ex.Squared(), k), A, A @ rng(6).standard_normal((d, k)) + 0.2 * rng(7).standard_normal((n, k))
    )


def completion() -> ex.LinearModel:
    at = np.flatnonzero(rng(3).random(48) < 0.7)
    rows, cols = np.divmod(at, 6)
    y = (rng(1).standard_normal((8, 2)) @ rng(2).standard_normal((2, 6)))[rows, cols]
    return ex.LinearModel(ex.Squared(), ex.Entries(rows, cols, (8, 6)), y)
