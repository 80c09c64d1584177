"""The largest eigenvalue of A'A, from products alone."""

from __future__ import annotations

import numpy as np

from extremal.checks import NonFiniteError
from extremal.data.contract import Data


def lambda_max(A: Data, weights: np.ndarray | None = None) -> float:
    """Largest eigenvalue of A'A, or of A' diag(weights) A, to a relative 1e-6 and never below it by more."""
    d = A.shape[1]
    if not A.row_norms2().any():
        return 0.0
    w = 1.0 if weights is None else weights.astype(A.dtype, copy=False)

    def gram(v: np.ndarray) -> np.ndarray:
        found = A.tdot(w * A.dot(v.reshape(-1).astype(A.dtype))).astype(np.float64)
        if not np.isfinite(found).all():
            raise NonFiniteError("the squares of the rows' entries are too large to work with")
        return found

    if d <= 64:
        columns = np.array([gram(e) for e in np.eye(d, dtype=A.dtype)])
        return max(0.0, float(np.linalg.eigvalsh(columns)[-1]))

    from scipy.sparse.linalg import LinearOperator, eigsh  # imported when first needed: it takes long

    operator = LinearOperator((d, d), matvec=gram, dtype=np.float64)  # pyright: ignore
    v0 = np.random.default_rng(0).standard_normal(d)
    top = eigsh(operator, k=1, tol=1e-7, v0=v0, return_eigenvectors=False)  # pyright: ignore
    return max(0.0, float(top[0])) * (1.0 + 1e-6)
