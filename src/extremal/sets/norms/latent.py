"""The latent group norm: the cheapest way to write a vector as a sum of vectors on groups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

ACCURACY = 1e-10  # relative, between the two bounds on the norm
PRICING_STEPS = 100  # upper limit; about 10 are usual, and 31 were the maximum in 6000 random problems
SMALL_ENTRIES = 1e-13  # relative to the norm: entries that together matter less are priced directly


def latent_norm(a: np.ndarray, indices: np.ndarray, owner: np.ndarray, weights: np.ndarray) -> float:
    """The norm of a vector of magnitudes a, not all 0, from above: the value of one decomposition, accurate to 1e-10.

        norm(a) = min {sum_g weights_g |v_g|_2 : a = sum_g v_g, v_g zero outside group g}
                = min {sum_j a_j^2 / (2 H_j) + sum_g z_g / 2 : z >= 0},   H_j = sum_{g with j} z_g / weights_g^2

    A primal-dual interior-point method solves the second problem. Each z gives the decomposition v_g = z_g u_g / weights_g^2
    with u_j = a_j / H_j, and the lower bound <u, a> / max_g (|u_g|_2 / weights_g). The method stops when the two agree. Index
    ``indices[i]`` is in group ``owner[i]``, and each index is in at least one group.
    """
    least = np.full(len(a), np.inf)
    np.minimum.at(least, indices, weights[owner])  # the smallest weight of all groups with j
    price = a * least  # max(price) <= norm(a) <= sum(price)
    counts = price > SMALL_ENTRIES / len(a) * price.max()
    member = counts[indices]
    j, g = indices[member], owner[member]
    share = np.maximum((least[j] / weights[g]) ** 2, 1e-200)
    M = _Shares(np.cumsum(counts)[j] - 1, np.unique(g, return_inverse=True)[1], share)
    return float(price[~counts].sum()) + _infimum(price[counts], M)


@dataclass(frozen=True)
class _Shares:
    """A sparse matrix M >= 0 with a row per entry and a column per group."""

    rows: np.ndarray
    columns: np.ndarray
    values: np.ndarray

    def times(self, z: np.ndarray) -> np.ndarray:
        """M z."""
        return np.bincount(self.rows, self.values * z[self.columns])

    def transposed(self, u: np.ndarray) -> np.ndarray:
        """M' u."""
        return np.bincount(self.columns, self.values * u[self.rows])

    def newton(self, z: np.ndarray, slack: np.ndarray, root: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """r -> (M' diag(root^2) M + diag(slack / z))^-1 r, by the system of -I, B, B', slack: larger, sparse, quasi-definite."""
        from scipy.sparse import csc_array
        from scipy.sparse.linalg import splu

        half, n = np.sqrt(z), len(root)
        B = root[self.rows] * self.values * half[self.columns]
        corner = slack + 1e-13 * np.bincount(self.columns, B**2)  # equal groups would make it singular at the end
        diagonal, columns = np.arange(n + len(z)), n + self.columns
        places = np.concatenate([diagonal, self.rows, columns]), np.concatenate([diagonal, columns, self.rows])
        system = csc_array((np.concatenate([np.full(n, -1.0), corner, B, B]), places))
        factors = splu(system, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
        return lambda r: half * factors.solve(np.concatenate([np.zeros(n), half * r]))[n:]


def _infimum(c: np.ndarray, M: _Shares) -> float:
    """min {sum_j c_j^2 / (2 (M z)_j) + sum_g z_g / 2 : z >= 0}, for c > 0."""
    scale = float(c.max())
    c = c / scale
    z = np.sqrt(M.transposed(c**2))  # the solution for disjoint groups
    z = np.maximum(z, 1e-3 * z.max())
    slack, low, up = np.full(len(z), 0.5), 0.0, np.inf
    for _ in range(PRICING_STEPS):
        H = M.times(z)
        u = c / H
        q = M.transposed(u**2)  # (|u_g|_2 / weights_g)^2
        low, up = max(low, float(c @ u) / float(np.sqrt(q.max()))), min(up, float(z @ np.sqrt(q)))
        if up - low <= ACCURACY * up:
            break
        z, slack = _moved(z, slack, q, M.newton(z, slack, np.sqrt(2 / H) * u))
    return scale * up


def _moved(z: np.ndarray, slack: np.ndarray, q: np.ndarray, solve: Callable) -> tuple[np.ndarray, np.ndarray]:
    """One step toward z (1 - q) = 0 with both factors positive; its length decides the centring, as in Mehrotra's method."""

    def direction(mu: float) -> tuple[np.ndarray, np.ndarray]:
        dz = solve(mu / z - (1 - q))
        return dz, mu / z - slack - slack / z * dz

    dz, ds = direction(0.0)
    mean = float(z @ slack) / len(z)
    reached = float((z + _room(z, dz) * dz) @ (slack + _room(slack, ds) * ds)) / len(z)
    dz, ds = direction(mean * max((reached / mean) ** 3, 1e-4))
    return z + 0.99 * _room(z, dz) * dz, slack + 0.99 * _room(slack, ds) * ds


def _room(v: np.ndarray, dv: np.ndarray) -> float:
    """The largest t <= 1 with v + t dv >= 0."""
    return 1 / max(1.0, float((-dv / v).max()))
