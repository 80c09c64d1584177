"""Generated data for comparisons with other tools: documents, genes, groups, counts and tall tables."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from extremal_lab.bench.l1_problems import tf_idf, zipf

Data = tuple[Any, np.ndarray]  # rows and targets


def text(n: int = 20_242, d: int = 47_236, draws: int = 75, seed: int = 0) -> Data:
    """Documents by Zipf's law, tf-idf, rows of length 1; labels logistic in a margin with 400 true weights.

    Examples
    --------
    >>> A, y = text(200, 300, 20)
    >>> A.shape, bool(np.allclose((A * A).sum(axis=1), 1)), np.unique(y)
    ((200, 300), True, array([-1.,  1.]))
    """
    rng = np.random.default_rng(seed)
    A, z = _documents(rng, n, d, draws)
    return A, np.where(rng.random(n) < 1 / (1 + np.exp(np.median(z) - z)), 1.0, -1.0)


def rare(n: int = 7770, d: int = 8156, draws: int = 44, positives: int = 538, seed: int = 0) -> Data:
    """The same documents with few positives, those of the largest noisy margins: nearly separable.

    Examples
    --------
    >>> int((rare(200, 300, 20, positives=14)[1] > 0).sum())
    14
    """
    rng = np.random.default_rng(seed)
    A, z = _documents(rng, n, d, draws)
    y = np.full(n, -1.0)
    y[np.argsort(z + 0.3 * rng.logistic(size=n))[-positives:]] = 1.0
    return A, y


def _documents(rng: np.random.Generator, n: int, d: int, draws: int) -> tuple[Any, np.ndarray]:
    words = zipf(rng, d, 10.0, 0.9, n * draws)
    A = tf_idf(sp.csr_array((np.ones(n * draws), (np.repeat(np.arange(n), draws), words)), shape=(n, d)))
    w, among = np.zeros(d), min(5000, d)
    w[rng.choice(among, min(400, among), replace=False)] = 6 * rng.standard_normal(min(400, among))
    return A, A @ w


def genomics(n: int = 500, d: int = 20_000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Dense and wide, in blocks of 50 correlated columns, standardised; real targets of 30 true weights and noise 1.5.

    Examples
    --------
    >>> A, z = genomics(50, 100)
    >>> A.shape, bool(np.allclose(A.std(axis=0), 1))
    ((50, 100), True)
    """
    rng = np.random.default_rng(seed)
    A = 0.6 * rng.standard_normal((n, d)) + 0.8 * np.repeat(rng.standard_normal((n, d // 50)), 50, axis=1)
    A = (A - A.mean(axis=0)) / A.std(axis=0)
    chosen = rng.choice(d, 30, replace=False)
    return A, A[:, chosen] @ rng.standard_normal(30) + 1.5 * rng.standard_normal(n)


def dense(n: int, d: int, true: int, noise: float = 1.0, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Normal rows, and targets of the first ``true`` columns with noise.

    Examples
    --------
    >>> A, y = dense(30, 6, 2)
    >>> A.shape, y.shape
    ((30, 6), (30,))
    """
    rng = np.random.default_rng(seed)
    A, w = rng.standard_normal((n, d)), np.zeros(d)
    w[:true] = rng.standard_normal(true)
    return A, A @ w + noise * rng.standard_normal(n)


def members(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Columns with a common part, and targets near a combination of them whose weights sum to one.

    Examples
    --------
    >>> A, y = members(30, 5)
    >>> A.shape, y.shape
    ((30, 5), (30,))
    """
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, d)) + rng.standard_normal((n, 1))
    return A, A @ rng.dirichlet(np.ones(d)) + 0.5 * rng.standard_normal(n)


def counts(n: int = 4177, d: int = 8, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Poisson counts with the first weight above the second, so that x1 <= x2 is active.

    Examples
    --------
    >>> A, y = counts(20, 3)
    >>> bool((y >= 0).all())
    True
    """
    rng = np.random.default_rng(seed)
    A, w = 0.5 * rng.standard_normal((n, d)), np.linspace(1.0, -1.0, d)
    return A, rng.poisson(np.exp(A @ w)).astype(float)
