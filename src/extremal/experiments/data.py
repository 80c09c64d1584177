"""Data that need no download: scikit-learn's bundled sets, and a generator with the shape of a known one."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp


def breast_cancer() -> tuple[np.ndarray, np.ndarray]:
    """scikit-learn's breast cancer set, columns standardised: 569 x 30, labels -1 and 1."""
    return _bundled("load_breast_cancer", positive=lambda y: y == 1)


def digits() -> tuple[np.ndarray, np.ndarray]:
    """scikit-learn's digits, even against odd, columns standardised: 1797 x 64, labels -1 and 1."""
    return _bundled("load_digits", positive=lambda y: y % 2 == 0)


def like_w8a(seed: int = 0) -> tuple[sp.csr_array, np.ndarray]:
    """Random data with the shape of w8a: 49749 x 300, 0/1 entries, 11.65 a row, 3 % positive labels."""
    return sparse_binary(n=49749, d=300, per_row=11.65, positives=0.03, seed=seed)


def sparse_binary(n: int, d: int, per_row: float, positives: float, seed: int) -> tuple[sp.csr_array, np.ndarray]:
    """0/1 features of unequal frequency, and labels from a sparse linear rule with noise.

    Examples
    --------
    >>> A, y = sparse_binary(1000, 50, per_row=5, positives=0.1, seed=0)
    >>> A.shape, round(A.nnz / 1000), float((y == 1).mean())
    ((1000, 50), 5, 0.1)
    """
    rng = np.random.default_rng(seed)
    weights = 1.0 / np.arange(1, d + 1) ** 0.8
    rates = np.minimum(0.9, per_row * weights / weights.sum())
    columns = [np.flatnonzero(rng.random(n) < rate) for rate in rates]
    column = np.repeat(np.arange(d), [len(rows) for rows in columns])
    A = sp.csr_array((np.ones(len(column)), (np.concatenate(columns), column)), shape=(n, d))
    rule = rng.standard_normal(d) * (rng.random(d) < 0.2) * 2.0
    score = A @ rule + rng.logistic(size=n)
    return A, np.where(score > np.quantile(score, 1 - positives), 1.0, -1.0)


def _bundled(loader: str, positive: Any) -> tuple[np.ndarray, np.ndarray]:
    from sklearn import datasets

    X, y = getattr(datasets, loader)(return_X_y=True)
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0), np.where(positive(y), 1.0, -1.0)
