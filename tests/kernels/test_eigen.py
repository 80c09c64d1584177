"""Eigenvalues and eigenvectors of small symmetric matrices, against their definition."""

from __future__ import annotations

import numpy as np
import pytest

from extremal.kernels.eigen import eigen
from extremal.kernels.jit import jit


@jit
def decomposed(M):
    return eigen(M)


@pytest.mark.parametrize("size", [1, 2, 3, 10, 64])
@pytest.mark.parametrize("kind", ["full", "rank two", "equal", "zero", "diagonal", "graded", "not definite"])
def test_rows_are_orthonormal_eigenvectors(size, kind):
    rng = np.random.default_rng(size)
    B = rng.standard_normal((size, size))
    spread = np.sqrt(np.logspace(0, -12, size))
    M = {
        "full": B @ B.T,
        "rank two": B[:, :2] @ B[:, :2].T,
        "equal": np.ones((size, size)),
        "zero": np.zeros((size, size)),
        "diagonal": np.diag(np.arange(size, 0.0, -1.0)),
        "graded": spread[:, None] * (B @ B.T) * spread,
        "not definite": B + B.T,
    }[kind]
    values, rows = decomposed(M.copy())
    scale = 100 * size * np.finfo(float).eps
    np.testing.assert_allclose(rows @ rows.T, np.eye(size), atol=scale)
    np.testing.assert_allclose((rows.T * values) @ rows, M, atol=scale * np.abs(M).sum())
    np.testing.assert_allclose(np.sort(values), np.linalg.eigvalsh(M), atol=scale * np.abs(M).sum())
