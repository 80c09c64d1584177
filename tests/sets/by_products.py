"""Matrices that are known by their products, and ones with given singular values."""

from __future__ import annotations

import numpy as np

TOL = 1e-8


class ByProducts:
    """A matrix that knows products with single vectors, and nothing else."""

    def __init__(self, a):
        self._a, self.shape, self.dtype = a, a.shape, a.dtype

    @property
    def T(self):
        return ByProducts(self._a.T)

    def __matmul__(self, v):
        assert v.ndim == 1
        return self._a @ v

    def __array__(self, *args, **kwargs):
        raise AssertionError("asked for a dense copy")


def orthonormal(rng, n):
    return np.linalg.qr(rng.standard_normal((n, n)))[0]


def with_values(rng, values, m, n):
    u, v = orthonormal(rng, m), orthonormal(rng, n)
    k = len(values)
    return (u[:, :k] * values) @ v[:, :k].T, u, v
