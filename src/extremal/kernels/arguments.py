"""How compiled code is called: by modules that are imported when first needed, since numba takes long, with what they are given.

Losses, sets and estimators are numbers because numba keeps no kernel on disk that takes a function.
"""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import NamedTuple

import numpy as np

from extremal.support.lazy import imported

LOGISTIC, NONLINEAR, SQUARED, HUBER = range(4)  # losses, see `extremal.kernels.terms`
PEAK, WEIGHTED, LEAST, UNIT, CORNER, FILL = range(6)  # sets, see `extremal.kernels.oracles`
RECURSE, AVERAGE, REFRESH, FOLLOW, TABLE, BOTH, SNAPSHOT = range(7)  # estimators, see `extremal.kernels.burst`
ORACLE_CODES = dict(zip(("peak", "weighted", "least", "unit", "corner", "fill"), range(6), strict=True))  # as sets call them
SHIFT = 6  # the index of oracles has blocks of 2^6 coordinates


@cache
def kernels(name: str) -> ModuleType:
    """A module of compiled code.

    Examples
    --------
    >>> kernels("draw").__name__
    'extremal.kernels.draw'
    """
    return imported(f"extremal.kernels.{name}")


def locked(a: np.ndarray) -> np.ndarray:
    """A read-only view: numba compiles apart for arrays that can be written.

    Examples
    --------
    >>> locked(np.zeros(2)).flags.writeable
    False
    """
    view = a.view()
    view.flags.writeable = False
    return view


SPARSE, DENSE = 3, 1  # fields of these two kinds of rows


class SparseRows(NamedTuple):
    """Rows of a CSR matrix."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray


class DenseRows(NamedTuple):
    """Rows of an array."""

    data: np.ndarray


class BurstModel(NamedTuple):
    """Rows with their targets, and a loss."""

    rows: SparseRows | DenseRows
    y: np.ndarray
    loss: int  # one of the numbers above
    parameter: float


class BurstOracle(NamedTuple):
    """A set, and the index of its oracle: see `extremal.kernels.oracles`."""

    kind: int  # one of the numbers above
    size: float  # radius or total; the amount to be spent for FILL
    lower: np.ndarray  # weights for WEIGHTED; an array, or one number for all coordinates
    upper: np.ndarray
    order: np.ndarray  # room for an order of all coordinates, for FILL
    blocks: np.ndarray  # bounds of the index; empty if there is none
    groups: np.ndarray


class BurstSteps(NamedTuple):
    """The iterations to be made: an entry of ``eta``, ``alpha`` and ``beta`` for each, and b rows of ``flat``."""

    kind: int  # the estimator: see `extremal.kernels.burst`
    b: int
    flat: np.ndarray  # batches, one after the other
    second: np.ndarray  # second batches, whose table entries are refreshed instead; empty if there are none
    eta: np.ndarray
    alpha: np.ndarray
    beta: np.ndarray


class BurstState(NamedTuple):
    """What a burst changes: x = xi v, g = M + sigma V, a table; and room to work in."""

    scales: np.ndarray  # xi, sigma and the number of iterations made
    v: np.ndarray
    G: np.ndarray  # d x 2, the columns V and M
    w: np.ndarray  # the snapshot
    table: np.ndarray
    margins: np.ndarray
    s: np.ndarray  # room for a vertex with many entries
    old: np.ndarray  # room for the table entries of a batch
    last: np.ndarray  # the batch that V stands on if V is cleared in each step; its first entry is -1 if it is not known


class DrawnBatch(NamedTuple):
    """The rows flat[q : q + b]; the draws behind them are there for looking ahead."""

    flat: np.ndarray
    q: int
    b: int


class ScaledPair(NamedTuple):
    """g = M + sigma V for G = (V, M); ``two`` says whether there is an M."""

    G: np.ndarray
    two: bool
    sigma: float


class TowardVertex(NamedTuple):
    """A step x <- (1 - eta) x + eta s, with s = ``length`` at coordinate j if it is ``single``."""

    eta: float
    single: bool
    j: int
    length: float
