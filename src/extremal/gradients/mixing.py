"""Graphs of agents as mixing matrices: the doubly stochastic weights with which agents average over their neighbours."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from extremal import checks
from extremal.checks import InputError


def metropolis(adjacency: ArrayLike) -> np.ndarray:
    """Mixing matrix of a graph with Metropolis weights: symmetric, so rows and columns sum to 1.

        c_ij = 1 / (1 + max(deg_i, deg_j))  for neighbours,   c_ii = 1 - sum of the others

    Parameters
    ----------
    adjacency : array of shape (m, m)
        Symmetric; i and j are neighbours if the entry is not zero. The diagonal is ignored. The graph must be connected.

    References
    ----------
    Xiao, Boyd, Lall (2005), A scheme for robust distributed sensor fusion based on average consensus.

    Examples
    --------
    >>> metropolis([[0, 1, 0], [1, 0, 1], [0, 1, 0]]).round(2)      # a path of three agents
    array([[0.67, 0.33, 0.  ],
           [0.33, 0.33, 0.33],
           [0.  , 0.33, 0.67]])
    """
    near = _square("metropolis", "adjacency", adjacency) != 0
    np.fill_diagonal(near, False)
    if (near != near.T).any():
        raise InputError("`metropolis(adjacency=...)` must be symmetric: a link goes both ways")
    degree = near.sum(axis=1)
    C = near / (1.0 + np.maximum(degree[:, None], degree))  # c_ij = 1 / (1 + max(deg_i, deg_j))
    return check_mixing("metropolis", C + np.diag(1.0 - C.sum(axis=1)), "adjacency")  # c_ii = 1 - sum_j c_ij


def ring(m: int) -> np.ndarray:
    """Mixing matrix of m agents on a ring: each averages over itself and its two neighbours.

    Parameters
    ----------
    m : int
        Number of agents, from 1.

    Examples
    --------
    >>> ring(4).round(2)
    array([[0.33, 0.33, 0.  , 0.33],
           [0.33, 0.33, 0.33, 0.  ],
           [0.  , 0.33, 0.33, 0.33],
           [0.33, 0.  , 0.33, 0.33]])
    """
    next_one = np.roll(np.eye(checks.whole("ring", "m", m, 1)), 1, axis=1)
    return metropolis(next_one + next_one.T)


def complete(m: int) -> np.ndarray:
    """Mixing matrix of m agents that all hear each other: c_ij = 1/m.

    Parameters
    ----------
    m : int
        Number of agents, from 1.

    Examples
    --------
    >>> complete(2)
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    m = checks.whole("complete", "m", m, 1)
    return check_mixing("complete", np.full((m, m), 1.0 / m), "m")


def check_mixing(call: str, mixing: ArrayLike, name: str = "mixing") -> np.ndarray:
    """The matrix in float64. It must be doubly stochastic and make the agents agree; others are refused."""
    C = _square(call, name, mixing)
    if (C < 0).any():
        raise InputError(f"`{call}({name}=...)` must have no negative weight, got {C.min():g}")
    for axis, what in ((1, "rows"), (0, "columns")):
        off = float(np.abs(C.sum(axis=axis) - 1.0).max())
        if off > 1e-12:
            raise InputError(f"`{call}({name}=...)` must be doubly stochastic: its {what} sum to 1 up to {off:.1e} only")
    if np.abs(np.linalg.eigvals(C - 1.0 / len(C))).max() > 1.0 - 1e-10:
        raise InputError(
            f"`{call}({name}=...)` must let the agents agree: the graph is not connected, or agents only swap places"
        )
    C.flags.writeable = False
    return C


def _square(call: str, name: str, value: object) -> np.ndarray:
    """A float64 copy of a square matrix of finite numbers."""
    C = checks.array(call, name, value)
    if C.ndim != 2 or C.shape[0] != C.shape[1] or C.size == 0 or C.dtype.kind not in "biuf":
        raise InputError(f"`{call}({name}=...)` must be a square matrix of numbers, got shape {C.shape}, dtype {C.dtype}")
    return checks.finite(call, name, C.astype(np.float64))


def mixed(row: np.ndarray, known: np.ndarray | Mapping[int, np.ndarray]) -> np.ndarray:
    """sum_j c_ij v_j, for the row c_i of a mixing matrix: over the agents that agent i hears, one by one, in order.

    An agent that knows no other vectors thus gets the same bits as an agent in a stack. Sums are in float64, because float32
    weights would drift out of the set.

    Examples
    --------
    >>> mixed(np.array([0.5, 0.0, 0.5]), {0: np.ones(2), 2: np.zeros(2)})
    array([0.5, 0.5])
    """
    first, *rest = np.flatnonzero(row).tolist()
    total = row[first] * known[first]
    for j in rest:
        total += row[j] * known[j]
    return total.astype(known[first].dtype, copy=False)


def in_brief(a: np.ndarray) -> str:
    """A matrix in words, by its shape."""
    return f"<{a.shape[0]} x {a.shape[1]}>"
