"""Losses of several outputs, their formulas, and models of them with and without the library's losses and data."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from cases import LOSSES, truth
from scipy.special import log_softmax, softmax

import extremal as ex
from extremal.losses.multi import Multinomial, MultiTask

N, D, K = 60, 8, 3
RNG = np.random.default_rng(7)
MATRIX = RNG.standard_normal((N, D))
SPARSE = MATRIX * (RNG.random((N, D)) < 0.6)
WIDE = RNG.standard_normal((N, 96)) * (RNG.random((N, 96)) < 0.7)  # wide enough for products by single columns
CLASSES = (MATRIX @ RNG.standard_normal((D, K)) + RNG.gumbel(size=(N, K))).argmax(axis=1)
X = RNG.standard_normal((D, K))
MULTI = (Multinomial(K), Multinomial(2), *(MultiTask(loss, K) for loss in LOSSES), MultiTask(ex.Squared(), 1))
EACH = pytest.mark.parametrize("loss", MULTI, ids=repr)


def targets(loss) -> np.ndarray:
    """Targets for MATRIX that the loss takes."""
    if isinstance(loss, Multinomial):
        return CLASSES % loss.classes
    y = MATRIX @ np.random.default_rng(1).standard_normal((D, loss.outputs))
    return y if loss.labels is None else np.where(y > 0, loss.labels[1], loss.labels[0])


def formulas(loss):
    """Value and derivative of rows of margins."""
    if isinstance(loss, Multinomial):
        eye = np.eye(loss.classes)
        return lambda z, y: -log_softmax(z, axis=1)[np.arange(len(z)), y], lambda z, y: softmax(z, axis=1) - eye[y]
    value, deriv = truth(loss.loss)
    return lambda z, y: sum(value(z[:, j], y[:, j]) for j in range(loss.outputs)), deriv


def model(loss, kind: str = "dense", A: np.ndarray = MATRIX, dtype=np.float64) -> ex.LinearModel:
    A = A.astype(dtype)
    return ex.LinearModel(loss, sp.csr_array(A) if kind == "csr" else A, targets(loss))


def separable(loss, A: np.ndarray = MATRIX) -> ex.Separable:
    """The same sum, with all component gradients as matrices."""
    (value, deriv), y = formulas(loss), targets(loss)
    return ex.Separable(
        len(A),
        (A.shape[1], loss.outputs),
        grad=lambda x, idx: np.einsum("ti,tj->tij", A[idx], deriv(A[idx] @ x, y[idx])),
        value=lambda x, idx: value(A[idx] @ x, y[idx]),
        convex=loss.convex,
        smoothness=loss.curvature * float(np.linalg.norm(A, 2)) ** 2 / len(A),
    )
