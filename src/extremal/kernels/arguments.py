"""How to call compiled code: kernel modules are imported on first use, because numba takes long; and their arguments.

Losses, sets and estimators are numbers, because numba cannot cache a kernel that takes a function.
"""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import NamedTuple

import numpy as np

from extremal.support.lazy import imported

LOGISTIC, NONLINEAR, SQUARED, HUBER = range(4)  # losses, see `extremal.kernels.terms`
PEAK, WEIGHTED, LEAST, UNIT, CORNER, FILL = range(6)  # sets, see `extremal.kernels.oracles`
RECURSE, AVERAGE, REFRESH, FOLLOW, TABLE, BOTH, SNAPSHOT, RENEW = range(8)  # estimators, see `extremal.kernels.burst`
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
    """A read-only view: numba would compile a second version for writable arrays.

    Examples
    --------
    >>> locked(np.zeros(2)).flags.writeable
    False
    """
    if not a.flags.writeable:  # as iterates and drawn rows are
        return a
    view = a.view()
    view.flags.writeable = False
    return view


def writable(a: np.ndarray, dtype: type | np.dtype) -> np.ndarray:
    """The array if it is writable, contiguous and of this type, otherwise a copy: kernels call each other with such arrays.

    Examples
    --------
    >>> writable(locked(np.zeros(2)), np.float64).flags.writeable
    True
    """
    if a.dtype == dtype and a.flags.carray:
        return a
    return np.require(a, dtype, ["C", "W"])


SPARSE, DENSE = 3, 1  # number of fields of the two kinds of rows


class SparseRows(NamedTuple):
    """Rows of a CSR matrix."""

    indptr: np.ndarray
    indices: np.ndarray
    data: np.ndarray  # an array without axes if all values are equal


class DenseRows(NamedTuple):
    """Rows of an array."""

    data: np.ndarray


class BurstModel(NamedTuple):
    """Rows with their targets, and a loss."""

    rows: SparseRows | DenseRows
    y: np.ndarray
    loss: int  # one of the codes above
    parameter: float
    uneven: bool  # whether rows differ in length, so that batches are sorted by it


class BurstOracle(NamedTuple):
    """A set, and the index of its oracle: see `extremal.kernels.oracles`."""

    kind: int  # one of the codes above
    size: float  # radius or total; for FILL, the amount to spend
    lower: np.ndarray  # weights for WEIGHTED; an array, or one number for all coordinates
    upper: np.ndarray
    order: np.ndarray  # workspace for an order of all coordinates, for FILL
    blocks: np.ndarray  # bounds of the index; empty without an index
    groups: np.ndarray


class BurstSteps(NamedTuple):
    """The iterations to make: each has an entry of ``eta``, ``alpha`` and ``beta``, and b rows of ``flat``."""

    kind: int  # the estimator: see `extremal.kernels.burst`
    b: int
    flat: np.ndarray  # batches, one after the other
    second: np.ndarray  # second batches, which refresh the table instead; empty if there are none
    eta: np.ndarray
    alpha: np.ndarray
    beta: np.ndarray


class BurstState(NamedTuple):
    """The state that a burst changes: x = xi v, g = M + sigma V, a table; and its workspace."""

    scales: np.ndarray  # xi, sigma and the number of iterations made
    X: np.ndarray  # d x 2, the columns v and w: the snapshot, or the vertex of the iteration
    G: np.ndarray  # d x 2, the columns V and M
    table: np.ndarray
    margins: np.ndarray
    s: np.ndarray  # workspace for a vertex with many entries
    order: np.ndarray  # workspace for the rows of a batch in the order in which they are read
    old: np.ndarray  # workspace for their entries of the table
    room: np.ndarray  # workspace for the numbers of some rows: see `extremal.kernels.passes`
    last: np.ndarray  # the batch that V consists of, if each step clears V; its first entry is -1 if unknown


class DrawnBatch(NamedTuple):
    """The rows flat[q : q + b]; the draws after them serve to look ahead."""

    flat: np.ndarray
    q: int
    b: int


class RowStep(NamedTuple):
    """The numbers of one iteration of an estimator."""

    kind: int  # one of the codes above
    xi: float
    sigma: float
    eta: float
    alpha: float
    beta: float
    put: bool  # whether the batch enters the table


class ScaledPair(NamedTuple):
    """g = M + sigma V for G = (V, M); ``two`` says whether M exists."""

    G: np.ndarray
    two: bool
    sigma: float


class TowardVertex(NamedTuple):
    """A step x <- (1 - eta) x + eta s; if ``single``, s has one entry, ``length`` at coordinate j."""

    eta: float
    single: bool
    j: int
    length: float


FAINTEST = 2.0**-1022  # the smallest normal number: a curvature that has underflowed counts as this one
ENDED, FULL_ROOM, ANEW = 1, 2, 3  # why a loop over faces ends early: a number that is not finite, no room, a due refresh


class FacedSet(NamedTuple):
    """A set with one-entry vertices, and what steps need of the columns and of the loss."""

    reach: np.ndarray  # the size of the vertex at each coordinate, or one size for all
    two_sided: bool  # whether vertices have both signs
    origin: bool  # whether 0 is a vertex
    noise: float  # share of the size that counts as rounding
    peaks: np.ndarray  # the largest |a_ij| of each column
    growth: float  # the self-concordance of the loss


class FaceStep(NamedTuple):
    """A step from the vertex ``down`` e_a to the vertex ``up`` e_s, at most a share t of the way."""

    s: int
    up: float
    a: int
    down: float
    t: float


class TrackedArrays(NamedTuple):
    """The table of `TrackedSag`, which loops change in place."""

    c: np.ndarray
    q: np.ndarray
    z: np.ndarray
    m: np.ndarray  # q itself, unless ``bounded``
    fresh: np.ndarray  # rows that were never drawn
    G: np.ndarray  # d
    H: np.ndarray  # d numbers for each column that is kept, one after the other, and room for more
    M: np.ndarray  # the same for m; H itself, unless ``bounded``
    place: np.ndarray  # where each column begins in H; -1 for columns that are not kept
    W: np.ndarray  # the columns that are kept
    counts: np.ndarray  # how many columns are kept, and how many rows were drawn
    bounded: bool


class FaceRoom(NamedTuple):
    """Workspace of loops over faces, and what they know of the columns."""

    order: np.ndarray  # the rows of a batch in the order in which they are read
    room: np.ndarray  # numbers of some rows: see `extremal.kernels.face_rows`
    support: np.ndarray  # the coordinates at which x is not 0, and their number
    marks: np.ndarray  # a bit for each row in each column, set where the row has an entry; empty if that takes too much memory
    split: np.ndarray  # where the entries of each row in kept columns begin; and the number of these columns


class Shares(NamedTuple):
    """The constants of shares of steps, see `extremal.gradients.curved`."""

    least: float
    trust: float
    few: float
    loudest: float


class CurvedArrays(NamedTuple):
    """The table of `Saga` with curvature, which loops change in place."""

    c: np.ndarray
    m: np.ndarray
    g: np.ndarray
    S: np.ndarray  # d x 4: g, the mean of the table, and the sums of m_i a_ij^2 and of their squares
    last: np.ndarray  # the last batch
    weights: np.ndarray  # its majorants
    changes: np.ndarray  # its changes of phi'
    drawn: np.ndarray  # the size of that batch
    noise: np.ndarray  # the mean of the measured noise
